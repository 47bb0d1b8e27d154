/* The CSV reader and the number parser: what they take, and where they say
 * that a file is broken. */
#include "../../compare/csv.h"
#include "../../compare/number.h"

#include "cmocka_all.h"

#include <locale.h>
#include <string.h>

static bool open_text(struct csv_reader *reader, const char *text)
{
    return csv_open_bytes(reader, "t.csv", text, strlen(text));
}

/* Reads every record; returns how many, or -1 with the reader's message. */
static int count_records(const char *text, char *error)
{
    struct csv_reader reader;
    int records = 0;
    bool complete = open_text(&reader, text);
    while (complete) {
        enum csv_outcome outcome = csv_next(&reader);
        if (outcome == CSV_END)
            break;
        complete = outcome == CSV_RECORD;
        records++;
    }
    strcpy(error, reader.error);
    csv_close(&reader);
    return complete ? records : -1;
}

static void assert_refused(const char *text, const char *message)
{
    char error[csv_error_capacity];
    assert_int_equal(count_records(text, error), -1);
    if (!strstr(error, message))
        fail_msg("'%s' does not say '%s'", error, message);
}

static void assert_records(const char *text, int records)
{
    char error[csv_error_capacity];
    if (count_records(text, error) != records)
        fail_msg("not %d records: %s", records, error);
}

/* O08 */
static void quotes_hold_any_text(void **state)
{
    (void)state;
    struct csv_reader reader;
    assert_true(open_text(&reader, "a,b,c\n\"copy<float,4>\",\"say \"\"hi\"\"\", lead and trail \n\"two\nlines\",,=1+1\n"));
    assert_int_equal(csv_next(&reader), CSV_RECORD);
    assert_string_equal(reader.fields[0], "copy<float,4>");
    assert_string_equal(reader.fields[1], "say \"hi\"");
    assert_string_equal(reader.fields[2], " lead and trail ");
    assert_int_equal(csv_next(&reader), CSV_RECORD);
    assert_int_equal(reader.record_line, 3);
    assert_string_equal(reader.fields[0], "two\nlines");
    assert_string_equal(reader.fields[1], "");
    assert_string_equal(reader.fields[2], "=1+1");
    assert_int_equal(csv_next(&reader), CSV_END);
    csv_close(&reader);
}

/* O09 */
static void line_ends(void **state)
{
    (void)state;
    struct csv_reader reader;
    assert_true(open_text(&reader, "a,b\r\n1,2\r\n\r\n3,4\n\n5,\"6\"\r\n"));
    assert_int_equal(csv_column(&reader, "b"), 1);
    for (int row = 0; row < 3; row++)
        assert_int_equal(csv_next(&reader), CSV_RECORD);
    assert_string_equal(reader.fields[1], "6");
    assert_int_equal(reader.record_line, 6);
    assert_int_equal(csv_next(&reader), CSV_END);
    csv_close(&reader);
    assert_records("a,b\n1,2", 1);
    assert_records("a,b", 0);
    assert_refused("a,b\r\n1,2\r\r\n", "t.csv:2:4: a carriage return without a line feed");
    assert_refused("a,b\r1,2\r", "t.csv:1:4: ");
}

static void byte_order_mark(void **state)
{
    (void)state;
    struct csv_reader reader;
    assert_true(open_text(&reader, "\xEF\xBB\xBF" "a,b\n1,2\n"));
    assert_int_equal(csv_column(&reader, "a"), 0);
    assert_int_equal(csv_column(&reader, "c"), -1);
    csv_close(&reader);
}

/* O11 */
static void rows_must_fit_the_header(void **state)
{
    (void)state;
    assert_refused("a,b,c\n1,2,3\n1,2\n", "t.csv:3: column 'c': the line has 2 fields, the header 3");
    assert_refused("a,b,c\n1,2,3,\n", "t.csv:2: column '(behind the last)': the line has 4 fields");
    assert_refused("a,b,a\n1,2,3\n", "t.csv:1: column 'a': the header names it twice");
    assert_refused("", "t.csv:1: no header");
    assert_refused("\n\n", "no header");
}

static void broken_quotes(void **state)
{
    (void)state;
    assert_refused("a,b\n1,2\"\n", "t.csv:2:4: a quote inside a field");
    assert_refused("a,b\n1,\"2\"x\n", "t.csv:2:6: text after a closing quote");
    assert_refused("a,b\n1,\"2\n3\n", "t.csv:2: a quoted field that never ends");
    assert_refused("a,b\n\"x\ny\",2\"\n", "t.csv:3:5: a quote inside a field");
}

static void nul_bytes(void **state)
{
    (void)state;
    struct csv_reader reader;
    const char bytes[] = "a,b\n1,\0\n";
    assert_true(csv_open_bytes(&reader, "t.csv", bytes, sizeof bytes - 1));
    assert_int_equal(csv_next(&reader), CSV_ERROR);
    assert_non_null(strstr(reader.error, "t.csv:2:3: a NUL byte"));
    csv_close(&reader);
    const char quoted[] = "a\n\"\0\"\n";
    assert_true(csv_open_bytes(&reader, "t.csv", quoted, sizeof quoted - 1));
    assert_int_equal(csv_next(&reader), CSV_ERROR);
    csv_close(&reader);
}

static void too_many_columns(void **state)
{
    (void)state;
    char text[12001];
    memset(text, ',', 12000);
    text[12000] = '\0';
    assert_refused(text, "more than 4096 fields");
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    struct csv_reader reader;
    assert_false(csv_open(&reader, "no/such/file.csv"));
    assert_non_null(strstr(reader.error, "no/such/file.csv: cannot open"));
    csv_close(&reader);
    assert_false(csv_open(&reader, "/"));
    assert_non_null(strstr(reader.error, "/: cannot "));
    csv_close(&reader);
    assert_false(csv_open(&reader, "/dev/null"));
    csv_close(&reader);
}

static void numbers(void **state)
{
    (void)state;
    const char *good[] = {"0", "-0", "12.5", "+1e-3", ".5", "5.", "1E+300", "0.000"};
    const double values[] = {0.0, 0.0, 12.5, 1e-3, 0.5, 5.0, 1e300, 0.0};
    double value = 0.0;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(parse_decimal(good[i], &value));
        assert_true(value == values[i]);
    }
    const char *bad[] = {"", " 1", "1 ", "0,125", "nan", "inf", "0x10", "1e", "1e400", ".", "-", "1.2.3", "12us", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (parse_decimal(bad[i], &value))
            fail_msg("'%s' is no number", bad[i]);
}

static void whole_numbers(void **state)
{
    (void)state;
    uint64_t value = 0;
    assert_true(parse_whole("18446744073709551615", &value));
    assert_true(value == UINT64_MAX);
    assert_false(parse_whole("18446744073709551616", &value));
    assert_false(parse_whole("", &value));
    assert_false(parse_whole("-1", &value));
    assert_false(parse_whole("1.0", &value));
}

/* O10, with a locale whose decimal point is a comma where one is installed. */
static void numbers_ignore_the_locale(void **state)
{
    (void)state;
    const char *names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8"};
    bool set = false;
    for (size_t i = 0; !set && i < 4; i++)
        set = setlocale(LC_ALL, names[i]) && strcmp(localeconv()->decimal_point, ",") == 0;
    double value = 0.0;
    bool right = parse_decimal("0.125", &value) && value == 0.125 && !parse_decimal("0,125", &value);
    setlocale(LC_ALL, "C");
    assert_true(right);
    if (!set)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotes_hold_any_text),
        cmocka_unit_test(line_ends),
        cmocka_unit_test(byte_order_mark),
        cmocka_unit_test(rows_must_fit_the_header),
        cmocka_unit_test(broken_quotes),
        cmocka_unit_test(nul_bytes),
        cmocka_unit_test(too_many_columns),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(numbers),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(numbers_ignore_the_locale),
    };
    return cmocka_run_group_tests_name("compare: CSV", tests, NULL, NULL);
}
