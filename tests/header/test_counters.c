/* A case's own counters and rates: in the row, the table, JSON; wrong ones. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#define QUICK "--max-time", "0.02", "--min-samples", "3", "--warmup", "1"

/* What a case says in its setup and in its verify. */
typedef struct speaker {
    void (*in_setup)(gpubench *bench), (*in_verify)(gpubench *bench);
} speaker;

static int set_up(void *context, gpubench *bench)
{
    const speaker *s = context;
    if (s->in_setup)
        s->in_setup(bench);
    return 0;
}

static int run(void *context, gpubench_stream stream)
{
    struct timespec pause = {0, 100000};
    (void)context;
    (void)stream;
    return nanosleep(&pause, NULL);
}

static int verify(void *context, gpubench *bench)
{
    const speaker *s = context;
    if (s->in_verify)
        s->in_verify(bench);
    return 0;
}

static gpubench_case speaking(const char *name, speaker *s)
{
    gpubench_case one = gpubench_case_init(name, run, s);
    one.setup = set_up;
    one.verify = verify;
    return one;
}

/* The value of one counter of a row. */
static double counter_of(const gpubench *bench, size_t row, const char *name)
{
    double value = NAN;
    if (gpb_read_counter(&bench->rows[row], name, &value) != 0)
        fail_msg("no '%s' in '%s'", name, gpubench_value(bench, row, "counters"));
    return value;
}

static void say_too_much(gpubench *bench)
{
    gpubench_rate(bench, "beyond", 1e305);
    gpubench_counter(bench, "steps", 17);
}

/* It costs the others nothing, in JSON neither. */
static void a_rate_beyond_any_number(void **state)
{
    const char *path = support_path("beyond.json");
    speaker s = {say_too_much, NULL};
    gpubench *bench = OPEN(QUICK, "--json", path);
    gpubench_case one = speaking("one", &s);
    char *text;
    (void)state;
    gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 0);
    text = support_read(path);
    support_expect_text(text, "\"counters\": {\"steps\": 17}");
    free(text);
    unlink(path);
}

static void say_both(gpubench *bench)
{
    gpubench_counter(bench, "steps", 99);
    gpubench_counter(bench, "steps", 17); /* the last one counts */
    gpubench_rate(bench, "tokens", 3000);
}

static void say_share(gpubench *bench)
{
    gpubench_counter(bench, "share", -0.25);
}

static void counters_and_rates_stand_in_the_row(void **state)
{
    speaker s = {say_both, say_share};
    gpubench_case one = speaking("speaking", &s);
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot"); /* one setup for both */
    size_t row;
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 2);
    for (row = 0; row < 2; row++) {
        double per_second = 3000 / (value_of(bench, row, "median_us") / 1e6);
        assert_memory_equal(gpubench_value(bench, row, "counters"), "steps=17 tokens/s=", 18);
        assert_true(fabs(counter_of(bench, row, "tokens/s") / per_second - 1) < 1e-12);
        assert_true(fabs(counter_of(bench, row, "share") + 0.25) < 1e-15);
    }
    assert_int_equal(gpubench_close(bench), 0);
}

static void what_says_nothing_has_an_empty_column(void **state)
{
    speaker s = {NULL, NULL};
    gpubench_case one = speaking("silent", &s);
    gpubench *bench = OPEN(QUICK);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "counters", "");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- wrong ones ---- */

static const char *bad_name;
static double bad_value;

static void say_bad(gpubench *bench)
{
    gpubench_counter(bench, bad_name, bad_value);
}

static void say_nine(gpubench *bench)
{
    char name[2] = "a";
    for (; name[0] <= 'i'; name[0]++)
        gpubench_rate(bench, name, 1);
}

static void expect_refused(speaker s, const char *reason)
{
    gpubench_case one = speaking("wrong", &s);
    gpubench *bench = OPEN(QUICK);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "failed");
    expect_cell(bench, 0, "counters", "");
    expect_flag(bench, 0, reason);
    assert_int_equal(gpubench_close(bench), 1);
}

static void wrong_counters_fail_the_case(void **state)
{
    static const char *const names[] = {"", "two words", "a=b", "a,b", "a\"b", "a\nb",
                                        "a-name-that-has-thirty-two-bytes"};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        bad_name = names[i];
        bad_value = 1;
        expect_refused((speaker){say_bad, NULL}, "wants_a_name_of_1_to_31_bytes");
    }
    bad_name = "a-name-that-has-thirty-one-byte";
    bad_value = strtod("nan", NULL);
    expect_refused((speaker){say_bad, NULL}, "is_no_finite_number");
    bad_value = strtod("inf", NULL);
    expect_refused((speaker){NULL, say_bad}, "is_no_finite_number");
    expect_refused((speaker){say_nine, NULL}, "counter_'i':_has_8_already");
}

/* ---- the table: of rows that are made by hand ---- */

static gpb_row *add_row(gpubench *bench, const char *name, const char *run_number,
                        const char *counters)
{
    gpb_row *row = gpb_new_row(bench);
    gpb_set_text(row, GPB_COLUMN_case, name);
    gpb_set_text(row, GPB_COLUMN_mode, "cold");
    gpb_set_text(row, GPB_COLUMN_status, "ok");
    gpb_set_text(row, GPB_COLUMN_run, run_number);
    gpb_set_text(row, GPB_COLUMN_median_us, "100");
    gpb_set_text(row, GPB_COLUMN_counters, counters);
    return row;
}

static char *table_of(const gpubench *bench)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    gpb_print_table(bench, file);
    fclose(file);
    return text;
}

/* With one blank for several. */
static void expect_line(const char *table, const char *wanted)
{
    char text[4096] = "";
    size_t used = 0;
    for (; *table && used + 1 < sizeof text; table++)
        if (*table != ' ' || (used > 0 && text[used - 1] != ' '))
            text[used++] = *table;
    text[used] = '\0';
    support_expect_text(text, wanted);
}

static void the_table_has_a_column_for_each(void **state)
{
    gpubench *bench = OPEN(QUICK);
    char *table;
    (void)state;
    add_row(bench, "a", "1", "steps=17 tokens/s=2500000000");
    add_row(bench, "b", "1", "tokens/s=40000000 share=-0.25");
    add_row(bench, "c", "1", "");
    table = table_of(bench);
    expect_line(table, "case mode median steps Gtokens/s share p95\n");
    expect_line(table, "a cold 100.0 us 17 2.50 - ");
    expect_line(table, "b cold 100.0 us - 0.0400 -0.250 ");
    expect_line(table, "c cold 100.0 us - - - ");
    free(table);
    gpubench_close(bench);
}

static void several_runs_have_their_median(void **state)
{
    gpubench *bench = OPEN(QUICK);
    char *table;
    (void)state;
    bench->settings.runs = 3;
    add_row(bench, "a", "1", "steps=10 tokens/s=100");
    add_row(bench, "a", "2", "steps=70 tokens/s=900");
    add_row(bench, "a", "3", "steps=40 tokens/s=300");
    table = table_of(bench);
    expect_line(table, " steps tokens/s p95\n");
    expect_line(table, " 40 300 ");
    free(table);
    gpubench_close(bench);
}

static void numbers_are_readable(void **state)
{
    static const struct {
        double value;
        const char *text;
    } numbers[] = {{0, "0"}, {5, "5"}, {123456789, "123456789"}, {0.123456, "0.123"},
                   {-2.5, "-2.50"}, {1234.6, "1235"}, {1e18, "1e+18"}};
    char text[64];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        gpb_format_counter(numbers[i].value, text);
        assert_string_equal(text, numbers[i].text);
    }
}

static void json_has_them_as_an_object(void **state)
{
    gpubench *bench = OPEN(QUICK);
    char *text;
    (void)state;
    add_row(bench, "a", "1", "steps=17 tokens/s=2.5e9 share=-0.25");
    add_row(bench, "b", "1", "");
    gpb_json_rows(bench, 0, &text);
    support_expect_text(text, "\"counters\": {\"steps\": 17, \"tokens/s\": 2500000000, "
                              "\"share\": -0.25}");
    support_expect_text(text, "\"counters\": null");
    free(text);
    gpubench_close(bench);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_and_rates_stand_in_the_row),
        cmocka_unit_test(a_rate_beyond_any_number),
        cmocka_unit_test(what_says_nothing_has_an_empty_column),
        cmocka_unit_test(wrong_counters_fail_the_case),
        cmocka_unit_test(the_table_has_a_column_for_each),
        cmocka_unit_test(several_runs_have_their_median),
        cmocka_unit_test(numbers_are_readable),
        cmocka_unit_test(json_has_them_as_an_object),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("counters", tests, NULL, NULL));
}
