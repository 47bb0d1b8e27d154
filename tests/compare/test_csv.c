/* The CSV reader and the number parser: what they take, and where they say
 * that a file is broken. */
#define _POSIX_C_SOURCE 200809L

#include "../../compare/csv.h"
#include "../../compare/number.h"

#include "cmocka_all.h"
#include "random.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
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
    assert_refused("\xEF\xBB\xBF", "no header");
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

/* What stands between two commas is the field, wherever in the line the commas are and
 * however the line ends; with or without quotes around it. */
static void lines_of_many_lengths(void **state)
{
    (void)state;
    enum { most_fields = 40, most_length = 90 };
    static const char characters[] = "aZ09.;+- \x01\x2b\x2d\x7f\xac\xff";
    static char fields[most_fields][most_length + 1];
    static char text[2 * most_fields * (most_length + 4)];
    uint64_t random = 20261128;
    for (int turn = 0; turn < 3000; turn++) {
        size_t count = 1 + random_below(&random, most_fields);
        size_t longest = 1 + random_below(&random, most_length);
        char *end = text;
        for (size_t i = 0; i < count; i++)
            end += sprintf(end, "%sc%zu", i ? "," : "", i);
        end = stpcpy(end, "\n");
        for (size_t i = 0; i < count; i++) {
            size_t length = i == 0 ? longest : random_below(&random, longest + 1);
            for (size_t k = 0; k < length; k++)
                fields[i][k] = characters[random_below(&random, sizeof characters - 1)];
            fields[i][length] = '\0';
            end += sprintf(end, turn % 3 == 2 ? "%s\"%s\"" : "%s%s", i ? "," : "", fields[i]);
        }
        end = stpcpy(end, turn % 2 ? "\r\n" : "\n");
        struct csv_reader reader;
        assert_true(csv_open_bytes(&reader, "t.csv", text, (size_t)(end - text)));
        assert_int_equal(csv_next(&reader), CSV_RECORD);
        for (size_t i = 0; i < count; i++)
            assert_string_equal(reader.fields[i], fields[i]);
        assert_int_equal(csv_next(&reader), CSV_END);
        csv_close(&reader);
    }
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

/* Every spelling is the double that strtod makes of it, which rounds correctly; also
 * those just between two doubles: 2^53 + 1 is one. */
static void numbers_are_strtods(void **state)
{
    (void)state;
    const char *hard[] = {"9007199254740993",     "9007199254740993.0",   "9007199254740993.1",
                          "9007199254740995",     "9007199254740992.999", "4503599627370497.5",
                          "2251799813685248.75",  "2251799813685249.25",  "9999999999999999999",
                          "0.9999999999999999999", "18446744073709551615", "0.0000000000000000001",
                          "1844674407370955264.", "5497558138880000001",  "0000000000000000000"};
    uint64_t random = 20261128;
    char text[64];
    double value = 0.0;
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        assert_true(parse_decimal(hard[i], &value));
        assert_memory_equal(&value, &(double){strtod(hard[i], NULL)}, sizeof value);
    }
    for (int i = 0; i < 300000; i++) {
        size_t digits = 1 + random_below(&random, 21);
        size_t point = random_below(&random, digits + 2);
        size_t length = 0;
        for (size_t k = 0; k < digits; k++) {
            if (k == point)
                text[length++] = '.';
            text[length++] = (char)('0' + random_below(&random, 10));
        }
        text[length] = '\0';
        assert_true(parse_decimal(text, &value));
        assert_memory_equal(&value, &(double){strtod(text, NULL)}, sizeof value);
        double near = 1000.0 * random_uniform(&random);
        snprintf(text, sizeof text, "%.*g", 15 + (int)random_below(&random, 5), near);
        assert_true(parse_decimal(text, &value));
        assert_memory_equal(&value, &(double){strtod(text, NULL)}, sizeof value);
    }
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
        cmocka_unit_test(lines_of_many_lengths),
        cmocka_unit_test(numbers),
        cmocka_unit_test(numbers_are_strtods),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(numbers_ignore_the_locale),
    };
    return cmocka_run_group_tests_name("compare: CSV", tests, NULL, NULL);
}
