/* What is printed of rows that stand there: factors, sentences, units, order,
 * widths. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "table_rows.h"

/* The table for so many columns, to free. */
static char *fitted(const gpubench *bench, int columns)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    gpb_print_fitted(bench, file, columns);
    assert_int_equal(fclose(file), 0);
    return text;
}

static char *table_of(const gpubench *bench)
{
    return fitted(bench, 0);
}

static void expect_printed(const gpubench *bench, const char *wanted)
{
    char *table = table_of(bench);
    assert_string_equal(table, wanted);
    free(table);
}

/* The rows go with their handle. */
static void expect_table(gpubench *bench, const char *wanted)
{
    expect_printed(bench, wanted);
    assert_int_equal(gpubench_close(bench), 2); /* nothing was measured */
}

static int run_nothing(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

static void queue(gpubench *bench, const char *name, const char *variant)
{
    gpubench_case one = gpubench_case_init(name, run_nothing, NULL);
    one.variant = variant;
    gpubench_measure(bench, &one);
}

/* ---- gathering runs ---- */

/* Interleaved runs of cases that are not in order; the worst status is told. */
static void the_table_gathers_the_runs_of_a_case(void **state)
{
    static const struct { const char *name; int run; double us; } rows[] = {
        {"b", 1, 20}, {"a", 1, 10}, {"c", 1, 7}, {"b", 2, 30}, {"a", 2, 11}, {"c", 2, 7},
        {"b", 3, 22}, {"a", 3, 12}, {"c", 3, 7}};
    gpubench *bench = OPEN("--runs", "1");
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        gpb_set_count(add_row(bench, rows[i].name, "", "", rows[i].us), GPB_COLUMN_run,
                      (uint64_t)rows[i].run);
    fail_row(&bench->rows[5], "oom");
    bench->settings.runs = 3;
    expect_table(bench, "test on toy\n"
                        "case  mode    median  range       p95\n"
                        "a     cold  11.00 us  18.2%  11.00 us\n"
                        "b     cold  22.00 us  45.5%  22.00 us\n"
                        "c     cold       oom      -         -\n");
}

static void of_one_sample_no_interval_is_told(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    gpb_row *row = add_row(bench, "one", "", "", 10);
    (void)state;
    gpb_set_number(row, GPB_COLUMN_ci95_low_us, 10);
    gpb_set_number(row, GPB_COLUMN_ci95_high_us, 10);
    gpb_set_count(row, GPB_COLUMN_samples, 1);
    row = add_row(bench, "two", "", "", 10);
    gpb_set_number(row, GPB_COLUMN_ci95_low_us, 9);
    gpb_set_number(row, GPB_COLUMN_ci95_high_us, 11);
    gpb_set_count(row, GPB_COLUMN_samples, 2);
    expect_table(bench, "test on toy\n"
                        "case  mode    median   ci95       p95\n"
                        "one   cold  10.00 us      -  10.00 us\n"
                        "two   cold  10.00 us  20.0%  10.00 us\n");
}

static void no_row_prints_nothing(void **state)
{
    (void)state;
    expect_table(OPEN("--runs", "1"), "");
}

/* ---- factors ---- */

/* The first is the one that was queued first, whatever it is called, and also if
 * its row came later. */
static void factors_are_against_the_first_variant(void **state)
{
    gpubench *bench = OPEN("--list");
    (void)state;
    queue(bench, "sum", "plain");
    queue(bench, "sum", "fast");
    queue(bench, "sum", "bad");
    add_row(bench, "sum", "bad", "", 40);
    add_row(bench, "sum", "fast", "", 12.5);
    add_row(bench, "sum", "plain", "", 20);
    expect_printed(bench, "test on toy\n"
                          "case  variant  mode    median  vs plain       p95\n"
                          "sum   plain    cold  20.00 us        1x  20.00 us\n"
                          "sum   fast     cold  12.50 us     1.60x  12.50 us\n"
                          "sum   bad      cold  40.00 us    0.500x  40.00 us\n"
                          "\n"
                          "sum: fast is 1.60 times as fast as plain\n"
                          "sum: bad is 0.500 times as fast as plain\n"
                          "sum: bad is 0.312 times as fast as fast\n");
    assert_int_equal(gpubench_close(bench), 0);
}

/* Of rows alone, as those of --runs, the first is the one that was measured first. */
static void without_a_queue_the_first_row_is_first(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    (void)state;
    add_row(bench, "sum", "z", "", 3);
    add_row(bench, "sum", "a", "", 1);
    expect_table(bench, "test on toy\n"
                        "case  variant  mode    median   vs z       p95\n"
                        "sum   z        cold  3.000 us     1x  3.000 us\n"
                        "sum   a        cold  1.000 us  3.00x  1.000 us\n"
                        "\n"
                        "sum: a is 3.00 times as fast as z\n");
}

/* Where the first one failed the next is the measure, and the sentences do not
 * mix the two. Against y, z is 5/2 and 6/3: together the root of 5. */
static void a_first_variant_that_failed_is_replaced(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    (void)state;
    add_row(bench, "sum", "x", "n=1", 10);
    add_row(bench, "sum", "y", "n=1", 5);
    add_row(bench, "sum", "z", "n=1", 2);
    fail_row(add_row(bench, "sum", "x", "n=2", 0), "oom");
    add_row(bench, "sum", "y", "n=2", 6);
    add_row(bench, "sum", "z", "n=2", 3);
    fail_row(add_row(bench, "sum", "x", "n=3", 0), "failed");
    fail_row(add_row(bench, "sum", "y", "n=3", 0), "skipped");
    add_row(bench, "sum", "z", "n=3", 3);
    expect_table(bench, "test on toy\n"
                        "case  variant  params  mode     median  vs first        p95\n"
                        "sum   x        n=1     cold  10.000 us        1x  10.000 us\n"
                        "sum   y        n=1     cold   5.000 us     2.00x   5.000 us\n"
                        "sum   z        n=1     cold   2.000 us     5.00x   2.000 us\n"
                        "sum   x        n=2     cold        oom         -          -\n"
                        "sum   y        n=2     cold   6.000 us        1x   6.000 us\n"
                        "sum   z        n=2     cold   3.000 us     2.00x   3.000 us\n"
                        "sum   x        n=3     cold     failed         -          -\n"
                        "sum   y        n=3     cold    skipped         -          -\n"
                        "sum   z        n=3     cold   3.000 us         -   3.000 us\n"
                        "\n"
                        "sum: y is 2.00 times as fast as x\n"
                        "sum: z is 5.00 times as fast as x\n"
                        "sum: z is 2.24 times as fast as y: geometric mean of 2 pairs, 2.00 to "
                        "2.50\n");
}

/* 2 and 8: the geometric mean is 4, the arithmetic one 5. Rows of another mode
 * have a sentence of their own; a variant without a partner has none. */
static void sentences_give_the_geometric_mean(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    char *table;
    (void)state;
    add_row(bench, "sum", "slow", "n=1", 10);
    add_row(bench, "sum", "quick", "n=1", 5);
    add_row(bench, "sum", "slow", "n=2", 40);
    add_row(bench, "sum", "quick", "n=2", 5);
    gpb_set_text(add_row(bench, "sum", "slow", "n=1", 3), GPB_COLUMN_mode, "hot");
    gpb_set_text(add_row(bench, "sum", "quick", "n=1", 4), GPB_COLUMN_mode, "hot");
    add_row(bench, "alone", "quick", "n=1", 1);
    table = table_of(bench);
    support_expect_text(table, "\n\nsum cold: quick is 4.00 times as fast as slow: geometric mean "
                               "of 2 pairs, 2.00 to 8.00\n"
                               "sum hot: quick is 0.750 times as fast as slow\n");
    support_expect_no_text(table, "alone cold:");
    free(table);
    assert_int_equal(gpubench_close(bench), 2);
}

/* c is behind b by 2 and 8, whose mean is 4; where b failed, a is in front of c. d is
 * behind c by 4 and 1, and behind b, where c failed, by 3. The products of the three
 * factors against a are 12, 512 and 2304, of which these are the cube roots. */
static void sentences_tell_what_each_step_brings(void **state)
{
    static const char *const variants[] = {"a", "b", "c", "d"};
    static const char *const sizes[] = {"n=1", "n=2", "n=3", "n=4"};
    static const double us[][4] = {{64, 32, 16, 4}, {64, 32, 4, 4}, {27, 9, 0, 3}, {8, 0, 1, 0}};
    gpubench *bench = OPEN("--runs", "1");
    char *table;
    size_t size, variant;
    (void)state;
    for (size = 0; size < 4; size++)
        for (variant = 0; variant < 4; variant++) {
            gpb_row *row = add_row(bench, "sum", variants[variant], sizes[size], us[size][variant]);
            if (us[size][variant] <= 0)
                fail_row(row, "failed");
        }
    table = table_of(bench);
    support_expect_text(
        table, "\n\nsum: b is 2.29 times as fast as a: geometric mean of 3 pairs, 2.00 to 3.00\n"
               "sum: c is 8.00 times as fast as a: geometric mean of 3 pairs, 4.00 to 16.0\n"
               "sum: c is 4.00 times as fast as b: geometric mean of 2 pairs, 2.00 to 8.00\n"
               "sum: d is 13.2 times as fast as a: geometric mean of 3 pairs, 9.00 to 16.0\n"
               "sum: d is 2.00 times as fast as c: geometric mean of 2 pairs, 1.00 to 4.00\n"
               "sum: d is 3.00 times as fast as b\n");
    free(table);
    assert_int_equal(gpubench_close(bench), 2);
}

static void logarithms_are_those_of_libm(void **state)
{
    double x;
    (void)state;
    assert_true(gpb_log2(8) == 3 && gpb_log2(0.25) == -2 && gpb_log2(1) == 0);
    assert_true(gpb_exp2(10) == 1024 && gpb_exp2(-1) == 0.5 && gpb_exp2(0) == 1);
    for (x = 1e-9; x < 1e9; x *= 1.37) {
        if (!(fabs(gpb_log2(x) - log2(x)) < 1e-13 * (1 + fabs(log2(x)))))
            fail_msg("log2(%.17g) is %.17g instead of %.17g", x, gpb_log2(x), log2(x));
        if (!(fabs(gpb_exp2(log2(x)) - x) < 1e-12 * x))
            fail_msg("2 to the %.17g is %.17g instead of %.17g", log2(x), gpb_exp2(log2(x)), x);
    }
}

static void only_so_many_sentences(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    char name[16], *table;
    int i;
    (void)state;
    for (i = 0; i < 85; i++) {
        sprintf(name, "c%d", i);
        add_row(bench, name, "x", "", 2);
        add_row(bench, name, "y", "", 1);
    }
    table = table_of(bench);
    support_expect_text(table, "c79: y is 2.00 times as fast as x\nand 5 more\n");
    support_expect_no_text(table, "c80:");
    free(table);
    assert_int_equal(gpubench_close(bench), 2);
}

/* ---- units ---- */

static void expect_time(double us, const char *wanted)
{
    gpb_line line;
    char text[64];
    memset(&line, 0, sizeof line);
    line.ok = 1;
    line.median_us = us;
    gpb_choose_units(&line, 1);
    gpb_format_time(&line, us, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void times_have_four_digits_below_1000(void **state)
{
    (void)state;
    expect_time(0.003, "3.000 ns");
    expect_time(0.00031, "0.3100 ns");
    expect_time(0.0625, "62.50 ns");
    expect_time(0.9995, "999.5 ns");
    expect_time(0.99994, "999.9 ns");
    expect_time(0.99996, "1.000 us"); /* and neither 1000.0 ns nor 1.0000 us */
    expect_time(0.0099996, "10.00 ns");
    expect_time(1, "1.000 us");
    expect_time(999.5, "999.5 us");
    expect_time(999.94, "999.9 us");
    expect_time(999.96, "1.000 ms");
    expect_time(18779.811, "18.78 ms");
    expect_time(178597.059, "178.6 ms");
    expect_time(999960, "1.000 s ");
    expect_time(4.2e9, "4200 s ");
}

/* The eye compares within a group: one unit there, that of the fastest. */
static void a_group_has_one_unit(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    (void)state;
    add_row(bench, "a", "x", "", 1500);
    add_row(bench, "a", "y", "", 0.9995);
    add_row(bench, "b", "x", "", 1500);
    add_row(bench, "b", "y", "", 2500000);
    gpb_set_number(&bench->rows[2], GPB_COLUMN_p95_us, 1512.3456);
    expect_table(bench, "test on toy\n"
                        "case  variant  mode        median       vs x           p95\n"
                        "a     x        cold  1500000.0 ns         1x  1500000.0 ns\n"
                        "a     y        cold      999.5 ns      1501x      999.5 ns\n"
                        "b     x        cold      1.500 ms         1x      1.512 ms\n"
                        "b     y        cold   2500.000 ms  0.000600x   2500.000 ms\n"
                        "\n"
                        "a: y is 1501 times as fast as x\n"
                        "b: y is 0.000600 times as fast as x\n");
}

/* Compute and traffic of a row, as they stand in the CSV. */
static void set_rates(gpb_row *row, double gb_per_s, double tflop_per_s)
{
    gpb_set_number(row, GPB_COLUMN_gb_per_s, gb_per_s);
    gpb_set_number(row, GPB_COLUMN_tflop_per_s, tflop_per_s);
}

/* The unit fits the largest; what is smaller has three digits all the same. */
static void rates_have_units_that_fit(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    (void)state;
    set_rates(add_row(bench, "a", "", "", 1), 0.0213, 0.00682);
    set_rates(add_row(bench, "b", "", "", 1), 0.9994, 0.0000457);
    expect_printed(bench, "test on toy\n"
                          "case  mode    median  MB/s  GFLOP/s       p95\n"
                          "a     cold  1.000 us  21.3     6.82  1.000 us\n"
                          "b     cold  1.000 us   999   0.0457  1.000 us\n");
    set_rates(add_row(bench, "c", "", "", 1), 1.5, 685.7);
    expect_table(bench, "test on toy\n"
                        "case  mode    median    GB/s    TFLOP/s       p95\n"
                        "a     cold  1.000 us  0.0213    0.00682  1.000 us\n"
                        "b     cold  1.000 us   0.999  0.0000457  1.000 us\n"
                        "c     cold  1.000 us    1.50        686  1.000 us\n");
}

static void the_point_is_a_point_in_any_locale(void **state)
{
    gpubench *bench;
    char *table;
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE.utf8"))
        skip();
    bench = OPEN("--runs", "1");
    add_row(bench, "a", "", "", 1.5);
    table = table_of(bench);
    support_expect_text(table, "1.500 us");
    free(table);
    assert_int_equal(gpubench_close(bench), 2);
    setlocale(LC_NUMERIC, "C");
}

/* ---- order ---- */

static void sizes_are_ordered_as_numbers(void **state)
{
    static const char *const ordered[] = {
        "",          "b=1 t=9",   "b=1 t=10",  "b=1 t=010", "b=1 t=10 d=4", "b=2 t=8", "b=10",
        "p.9",       "p.10",      "p=0.125",   "p=0.25",    "p=0.5",        "p=1",     "p=1.5",
        "p=10",      "q",
        "q=12345678901234567890123", "q=12345678901234567890124", "r"};
    size_t count = sizeof ordered / sizeof ordered[0], i, j;
    (void)state;
    for (i = 0; i < count; i++)
        for (j = 0; j < count; j++) {
            int order = gpb_compare_natural(ordered[i], ordered[j]);
            int wanted = (i > j) - (i < j);
            if (!strcmp(ordered[i], "b=1 t=010") || !strcmp(ordered[j], "b=1 t=010"))
                assert_int_equal(order == 0, i == j); /* another text is another case */
            else if ((order > 0) - (order < 0) != wanted)
                fail_msg("'%s' against '%s': %d", ordered[i], ordered[j], order);
        }
}

/* The cases of the table's lines, in their order. */
static void expect_order(const char *key, const char *wanted)
{
    gpubench *bench = OPEN("--sort", key);
    char *table, *at, got[16] = "";
    add_row(bench, "c2", "x", "", 9);
    add_row(bench, "c2", "y", "", 3);
    add_row(bench, "c10", "x", "", 8);
    add_row(bench, "c10", "y", "", 2);
    fail_row(add_row(bench, "a", "w", "", 0), "failed");
    add_row(bench, "b", "v", "", 7);
    table = table_of(bench);
    at = strchr(strchr(table, '\n') + 1, '\n') + 1;
    for (; *at != '\n'; at = strchr(at, '\n') + 1)
        strncat(got, at + strcspn(at, " ") + strspn(at + strcspn(at, " "), " "), 1);
    if (strcmp(got, wanted) != 0)
        fail_msg("--sort %s: %s instead of %s in:\n%s", key, got, wanted, table);
    free(table);
    assert_int_equal(gpubench_close(bench), 2);
}

static void lines_are_sorted_as_asked(void **state)
{
    outcome result = RUN("host", "--sort", "size");
    (void)state;
    expect_order("name", "wvxyxy");   /* a, b, c2, c10 */
    expect_order("time", "yyvxxw");   /* 2, 3, 7, 8, 9, none */
    expect_order("factor", "yyxxwv"); /* 4, 3, 1, 1, none */
    expect_order("queued", "xyxywv");
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--sort 'size': wants name, time, factor or queued");
    support_free_outcome(&result);
}

/* ---- flags ---- */

static void flags_of_all_rows_stand_there_once(void **state)
{
    static const char *const flags[] = {"stop=max-time imprecise few-samples",
                                        "unsteady imprecise stop=max-samples few-samples",
                                        "few-samples drift=+2.5% imprecise"};
    gpubench *bench = OPEN("--runs", "1");
    gpb_row *failed;
    char name[2] = "a";
    (void)state;
    for (; *name < 'd'; ++*name)
        gpb_set_text(add_row(bench, name, "", "", 1), GPB_COLUMN_flags, flags[*name - 'a']);
    failed = add_row(bench, "d", "", "", 1);
    fail_row(failed, "failed");
    gpb_set_text(failed, GPB_COLUMN_flags, "imprecise reason=run:_no");
    expect_table(bench, "test on toy\n"
                        "case  mode    median       p95  flags\n"
                        "a     cold  1.000 us  1.000 us\n"
                        "b     cold  1.000 us  1.000 us  unsteady\n"
                        "c     cold  1.000 us  1.000 us  drift=+2.5%\n"
                        "d     cold    failed         -  imprecise reason=run:_no\n"
                        "\n"
                        "flags of every row: imprecise few-samples\n");
}

/* A word is not part of another one. */
static void words_are_whole(void **state)
{
    char text[GPB_FLAGS_MOST];
    (void)state;
    gpb_select_words("fits-l2 fits slow stop=precision", "fits-l2 slower", 1, text);
    assert_string_equal(text, "fits-l2");
    gpb_select_words("fits-l2 fits slow stop=precision", "fits-l2 slower", 0, text);
    assert_string_equal(text, "fits slow");
}

/* ---- width ---- */

/* As wide as the attention suite's rows on a GPU: 12 shapes, four variants. */
static gpubench *open_wide(void)
{
    static const char *const variants[] = {"naive", "naive_cublas", "tiled", "wgmma"};
    static const char *const cases[] = {"attention.forward", "attention.backward"};
    gpubench *bench = OPEN("--runs", "1");
    char params[64];
    int i, v;
    for (i = 0; i < 24; i++)
        for (v = 0; v < 4; v++) {
            gpb_row *row;
            sprintf(params, "b=2 h=16 t=8192 d=%d causal=%d", 64 + i / 2, i % 2);
            row = add_row(bench, cases[i % 2], variants[v], params, 154405.25 / (1 + v));
            gpb_set_text(row, GPB_COLUMN_dtype, "bf16");
            gpb_set_number(row, GPB_COLUMN_ci95_low_us, 100);
            gpb_set_number(row, GPB_COLUMN_ci95_high_us, 100 + i * 30);
            set_rates(row, 2345.6, 685.7);
        }
    return bench;
}

/* Of the table; sentences may be broken. */
static size_t longest_line(const char *text)
{
    const char *end = strstr(text, "\nattention.backward: ");
    size_t longest = 0;
    while (text < end) {
        size_t length = strcspn(text, "\n");
        longest = length > longest ? length : longest;
        text += length + (text[length] == '\n');
    }
    return longest;
}

/* No line of a terminal's 100 columns is broken, and no row or number of worth
 * is lost: only p95 gives way. */
static void wide_rows_fit_100_columns(void **state)
{
    gpubench *bench = open_wide();
    char *whole = fitted(bench, 0), *narrow = fitted(bench, 100), *at;
    size_t rows = 0;
    (void)state;
    assert_true(longest_line(whole) > 100);
    if (longest_line(narrow) > 100)
        fail_msg("%zu columns:\n%s", longest_line(narrow), narrow);
    for (at = narrow; (at = strstr(at, "causal=")); at++)
        rows++;
    assert_int_equal(rows, 96);
    support_expect_text(narrow, "\n\nattention.forward bf16 cold\n"
                                "variant       params                         ");
    support_expect_text(narrow, "vs naive");
    support_expect_text(narrow, "TFLOP/s");
    support_expect_text(narrow, "attention.forward: wgmma is 4.00 times as fast as naive: "
                                "geometric mean of 12 pairs, 4.00 to 4.00\n");
    free(whole);
    free(narrow);
    assert_int_equal(gpubench_close(bench), 2);
}

/* Elsewhere a line is a line: each holds all that tells its case, and as many
 * fields as every other; nothing is coloured. */
static void whole_lines_can_be_parsed(void **state)
{
    gpubench *bench = open_wide();
    char *whole, *at, *end;
    int rows = 0;
    (void)state;
    set_rates(&bench->rows[5], 0, 0);
    gpb_set_text(&bench->rows[5], GPB_COLUMN_gb_per_s, "");
    gpb_set_text(&bench->rows[5], GPB_COLUMN_tflop_per_s, "");
    whole = fitted(bench, 0);
    support_expect_no_text(whole, "\033");
    at = strchr(strchr(whole, '\n') + 1, '\n') + 1;
    for (; *at != '\n'; at = end + 1, rows++) {
        int fields = 0;
        const char *field;
        end = strchr(at, '\n');
        *end = '\0';
        assert_memory_equal(at, "attention.", 10);
        for (field = strtok(at, " "); field; field = strtok(NULL, " "))
            fields++;
        assert_int_equal(fields, 17);
    }
    assert_int_equal(rows, 96);
    free(whole);
    assert_int_equal(gpubench_close(bench), 2);
}

/* Many cases of one row each are not cut into as many sections. */
static void headings_must_be_worth_it(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    char name[2] = "a", *narrow;
    (void)state;
    for (; *name < 'k'; ++*name)
        add_row(bench, name, "a_variant_with_a_name", "and=1 a=2 few=3 parameters=4", 1);
    narrow = fitted(bench, 60);
    support_expect_no_text(narrow, "\n\n");
    support_expect_no_text(narrow, "p95");
    support_expect_text(narrow, "\na     a_variant_with_a_name  and=1");
    free(narrow);
    assert_int_equal(gpubench_close(bench), 2);
}

/* ---- time left ---- */

static void the_time_left_is_what_the_others_took(void **state)
{
    char text[32];
    (void)state;
    assert_true(gpb_time_left(12, 4, 10, 0, 2) == 18);  /* six more of 3 s */
    assert_true(gpb_time_left(12, 4, 10, 5, 2) == 13);  /* of which 5 s are over */
    assert_true(gpb_time_left(12, 4, 10, 50, 2) == 12); /* four are still to come */
    gpb_format_time_left(-1, text);
    assert_string_equal(text, "");
    gpb_format_time_left(0.0 / gpubench_sqrt(0), text);
    assert_string_equal(text, "");
    gpb_format_time_left(13.4, text);
    assert_string_equal(text, ", 13 s left");
    gpb_format_time_left(100, text);
    assert_string_equal(text, ", 2 min left");
    gpb_format_time_left(3 * 3600, text);
    assert_string_equal(text, ", 3 h left");
}

/* What the fixture prints on a terminal of so many columns, to free. */
static char *on_a_terminal(unsigned short columns, const char *const *arguments)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    const char *slash = strrchr(support_program, '/');
    int master = posix_openpt(O_RDWR | O_NOCTTY), i;
    char program[1100], *text = NULL;
    size_t length;
    ssize_t got;
    FILE *copy = open_memstream(&text, &length);
    pid_t child;
    snprintf(program, sizeof program, "%.*s/host", slash ? (int)(slash - support_program) : 1,
             slash ? support_program : ".");
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    child = fork();
    if (child == 0) {
        int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
        for (i = 0; i < 3; i++)
            dup2(terminal, i);
        if (ioctl(terminal, TIOCSWINSZ, &size) == 0)
            execv(program, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    do { /* the end is an error on Linux, once nobody has the terminal open */
        char chunk[512];
        got = read(master, chunk, sizeof chunk);
        fwrite(chunk, 1, got > 0 ? (size_t)got : 0, copy);
    } while (got > 0);
    fclose(copy);
    close(master);
    assert_int_equal(support_wait(child), 0);
    return text;
}

/* On one line, which is cleared for what is said between; and so that it is no
 * wider than the terminal, where only a part of it could be cleared. */
static void progress_stands_on_one_line(void **state)
{
    static const char *const arguments[] = {"host", "--set", "several", "--max-time", "0.3",
                                            "--min-samples", "1000000", "--max-samples", "1000000",
                                            NULL};
    char *text = on_a_terminal(40, arguments), *at;
    int with_time = 0;
    (void)state;
    support_expect_text(text, "\r\033[K[0 of 6 done] ");
    for (at = text; (at = strstr(at, "\r\033[K[")); at++) {
        char *left = strstr(at + 4, " s left] "), *own = strstr(at + 4, "teardown ");
        size_t width = strcspn(at + 4, "\r\n"); /* the fixture's own words may follow */
        width = own && own < at + 4 + width ? (size_t)(own - at - 4) : width;
        with_time += left && left < at + 4 + width;
        assert_between(width, 1, 39);
    }
    assert_true(with_time > 0);
    for (at = text; (at = strchr(at, '\033')); at++)
        assert_memory_equal(at, "\033[K", 3); /* no colours */
    support_expect_text(text, "\r\033[Kfixture on "); /* nothing stands in front of the table */
    free(text);
}

/* ---- many ---- */

/* Each of these would take minutes if the framework looked at all rows for each. */
enum { MANY = 20000 };

static void name_case(size_t i, char *name)
{
    sprintf(name, "case.%zu", i * 7919 % MANY);
}

static void many_cases_are_queued_and_found(void **state)
{
    gpubench *bench = OPEN("--list");
    char name[32];
    size_t i;
    (void)state;
    for (i = 0; i < MANY; i++) {
        name_case(i, name);
        queue(bench, name, "");
    }
    assert_int_equal(bench->item_count, MANY);
    for (i = 0; i < MANY; i++) {
        add_row(bench, bench->items[i].one.name, "", "", 1 + (double)i);
        assert_ptr_equal(gpb_find_row(bench, &bench->items[i], GPUBENCH_COLD),
                         &bench->rows[i]);
        assert_null(gpb_find_row(bench, &bench->items[i], GPUBENCH_HOT));
        assert_int_equal(gpb_first_of_group(bench, i), i);
    }
    assert_false(bench->refused);
    name_case(MANY / 2, name);
    queue(bench, name, "");
    assert_true(bench->refused);
    assert_int_equal(gpubench_close(bench), 2);
}

static void many_rows_make_a_table(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    char *table, *at, name[32];
    size_t i, lines = 0;
    uint64_t run;
    double start;
    (void)state;
    for (run = 1; run <= 5; run++)
        for (i = 0; i < MANY; i++) {
            name_case(i, name);
            gpb_set_count(add_row(bench, name, "", "", 100 + (double)run), GPB_COLUMN_run, run);
        }
    start = gpb_now_s();
    table = table_of(bench);
    print_message("# %d cases of five runs: %.2f s\n", MANY, gpb_now_s() - start);
    for (at = table; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, 2 + MANY);
    assert_non_null(strstr(table, "case.0      cold  103.0 us  3.88%  103.0 us\n"));
    free(table);
    assert_int_equal(gpubench_close(bench), 2);
}

/* ---- names that a terminal or a log would obey ---- */

/* ESC, BEL, a new line, DEL, CSI in two bytes of UTF-8 and in one of Latin-1 (RFC 3629 has
 * no such byte); of both letters a-umlaut only UTF-8's is one. */
static void what_a_terminal_obeys_is_not_shown(void **state)
{
    static const struct { const char *text, *wanted; } cases[] = {
        {"\033[31mred\a", "?[31mred?"},
        {"two\nlines\r\177", "two?lines??"},
        {"\xc2\x9b" "2J\x9b", "??2J?"},
        {"\xc3\xa4\xe4", "\xc3\xa4?"},
        {"  ::error::a::b", "  ?:error::a::b"},
        {"\xc2\xa0::add-mask::a", "\xc2\xa0?:add-mask::a"},
        {"###[error]", "#??[error]"},
        {"copy<float, 4> #1 a::b", "copy<float, 4> #1 a::b"},
        {"", ""}};
    char room[40];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(gpubench_plain(cases[i].text, room, sizeof room), cases[i].wanted);
    assert_string_equal(gpubench_plain("abc\xc3\xa4", room, 5), "abc"); /* no half character */
    assert_string_equal(gpubench_plain("abc", room, 1), "");
}

static void the_table_shows_names_as_text(void **state)
{
    gpubench *bench = OPEN("--runs", "1");
    (void)state;
    add_row(bench, "::a\033[2J", "v\n1", "", 20);
    add_row(bench, "::a\033[2J", "##2", "", 10);
    gpb_set_text(&bench->rows[0], GPB_COLUMN_device, "\033]0;x\a");
    gpb_set_text(&bench->rows[1], GPB_COLUMN_flags, "reason=\033c");
    expect_table(bench, "test on ?]0;x?\n"
                        "case     variant  mode    median  vs v?1       p95  flags\n"
                        "?:a?[2J  v?1      cold  20.00 us      1x  20.00 us\n"
                        "?:a?[2J  #?2      cold  10.00 us   2.00x  10.00 us  reason=?c\n"
                        "\n"
                        "?:a?[2J: #?2 is 2.00 times as fast as v?1\n");
}

/* The file is for programs: what they read is what was named, formulas too. */
static void the_file_holds_names_as_they_are(void **state)
{
    static const char *const names[] = {"=cmd|'/C calc'!A0", "\033[2J\a", "\xc2\x9b\xff", "a,\"b\"\r\n::error::"};
    gpubench *bench = OPEN("--runs", "1");
    char *text = NULL;
    size_t length, i;
    FILE *file = open_memstream(&text, &length);
    gpb_row row;
    (void)state;
    assert_non_null(file);
    for (i = 0; i < 4; i++)
        gpb_write_row(file, add_row(bench, names[i], "", "", 1), GPB_FILE_COLUMNS);
    fclose(file);
    file = fmemopen(text, length, "r");
    for (i = 0; i < 4; i++) {
        memset(&row, 0, sizeof row);
        assert_true(gpb_read_row(file, &row));
        assert_string_equal(gpb_text(&row, GPB_COLUMN_case), names[i]);
        gpb_free_row(&row);
    }
    fclose(file);
    free(text);
    assert_int_equal(gpubench_close(bench), 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_gathers_the_runs_of_a_case),
        cmocka_unit_test(of_one_sample_no_interval_is_told),
        cmocka_unit_test(no_row_prints_nothing),
        cmocka_unit_test(factors_are_against_the_first_variant),
        cmocka_unit_test(without_a_queue_the_first_row_is_first),
        cmocka_unit_test(a_first_variant_that_failed_is_replaced),
        cmocka_unit_test(sentences_give_the_geometric_mean),
        cmocka_unit_test(sentences_tell_what_each_step_brings),
        cmocka_unit_test(logarithms_are_those_of_libm),
        cmocka_unit_test(only_so_many_sentences),
        cmocka_unit_test(times_have_four_digits_below_1000),
        cmocka_unit_test(a_group_has_one_unit),
        cmocka_unit_test(rates_have_units_that_fit),
        cmocka_unit_test(the_point_is_a_point_in_any_locale),
        cmocka_unit_test(sizes_are_ordered_as_numbers),
        cmocka_unit_test(lines_are_sorted_as_asked),
        cmocka_unit_test(flags_of_all_rows_stand_there_once),
        cmocka_unit_test(words_are_whole),
        cmocka_unit_test(wide_rows_fit_100_columns),
        cmocka_unit_test(whole_lines_can_be_parsed),
        cmocka_unit_test(headings_must_be_worth_it),
        cmocka_unit_test(the_time_left_is_what_the_others_took),
        cmocka_unit_test(progress_stands_on_one_line),
        cmocka_unit_test(many_cases_are_queued_and_found),
        cmocka_unit_test(many_rows_make_a_table),
        cmocka_unit_test(what_a_terminal_obeys_is_not_shown),
        cmocka_unit_test(the_table_shows_names_as_text),
        cmocka_unit_test(the_file_holds_names_as_they_are),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("table", tests, NULL, NULL));
}
