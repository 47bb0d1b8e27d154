/* The small functions that others rest on, each at its edges: numbers and texts, series of a
 * few samples, rows as text, digits and ranges of axes, what the command line sets. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

/* ---- numbers and text ---- */

static void a_decimal_point_is_any_locale_s(void **state)
{
    static const char *const pairs[][2] = {{"1,5", "1.5"},
                                           {"-12,25e-07", "-12.25e-07"},
                                           {"1.5", "1.5"},
                                           {"3\xd9\xab"
                                            "25",
                                            "3.25"},
                                           {"7", "7"},
                                           {"1e+16", "1e+16"},
                                           {"1::5", "1.5"},
                                           {"", ""}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[32];
        strcpy(text, pairs[i][0]);
        gpb_use_point(text);
        assert_string_equal(text, pairs[i][1]);
    }
}

static void what_is_no_number_has_no_text(void **state)
{
    char text[32] = "before";
    (void)state;
    gpubench_format_number(gpb_nan(), text);
    assert_string_equal(text, "");
    gpubench_format_number(0.1, text);
    assert_string_equal(text, "0.1");
    gpubench_format_number(1.0 / 3, text);
    assert_string_equal(text, "0.3333333333333333");
    gpubench_format_number(2.0 / 3 + 1, text);
    assert_string_equal(text, "1.6666666666666665");
}

/* 95 characters and the point of the locale fit, which is one of C's. */
static void numbers_of_any_length_but_too_long(void **state)
{
    char text[128];
    double value = 0;
    size_t length;
    (void)state;
    for (length = 90; length <= 100; length++) {
        memset(text, '0', length);
        text[length] = '\0';
        text[length - 1] = '7';
        value = 0;
        assert_int_equal(gpubench_parse_number(text, &value), length <= 94 ? 0 : -1);
        assert_true(value == (length <= 94 ? 7 : 0));
    }
    assert_int_equal(gpubench_parse_number("1e+2", &value), 0);
    assert_true(value == 100);
    assert_int_equal(gpubench_parse_number("25e-1", &value), 0);
    assert_true(value == 2.5);
    assert_int_equal(gpubench_parse_number("1.5e1", &value), 0);
    assert_true(value == 15);
    assert_int_equal(gpubench_parse_number("1.", &value), -1);
    assert_int_equal(gpubench_parse_number("1e+", &value), -1);
    assert_int_equal(gpubench_parse_number("1.e2", &value), -1);
    assert_true(value == 15);
}

static void counts_end_at_64_bits(void **state)
{
    static const char *const bad[] = {
        "", "/", ":", "1/", "1:", "18446744073709551616", "99999999999999999999", "-0", "1 "};
    uint64_t value = 5;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(gpubench_parse_count(bad[i], &value), -1);
    assert_int_equal(value, 5);
    assert_int_equal(gpubench_parse_count("18446744073709551615", &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(gpubench_parse_count("0090", &value), 0);
    assert_int_equal(value, 90);
}

/* Room for as many as the next power of two, and what was there stays. */
static void an_array_grows_at_powers_of_two(void **state)
{
    size_t *array = NULL, count, i;
    (void)state;
    for (count = 0; count < 100; count++) {
        array = (size_t *)gpb_grow(array, count, sizeof *array);
        array[count] = count;
    }
    for (i = 0; i < 100; i++)
        assert_int_equal(array[i], i);
    free(array);
}

static void a_copy_is_another_text(void **state)
{
    char *copy = gpb_duplicate("text"), *empty = gpb_duplicate(NULL);
    (void)state;
    assert_string_equal(copy, "text");
    assert_string_equal(empty, "");
    free(copy);
    free(empty);
}

/* ---- series ---- */

/* 64 samples are eight batches of eight, whose signs do not change within a batch: sums of
 * +-8 and variance 1 make 8 * 64 / 7 / 8. Of 63 nothing is said. */
static void from_64_samples_on_dependence_is_known(void **state)
{
    double samples[64];
    size_t i;
    (void)state;
    for (i = 0; i < 64; i++)
        samples[i] = i / 8 % 2 ? 5 : 7;
    assert_true(gpubench_dependence(samples, 63) == 1);
    assert_true(gpubench_dependence(samples, 64) > 64.0 / 7 - 1e-9);
    assert_true(gpubench_dependence(samples, 64) < 64.0 / 7 + 1e-9);
}

/* Of every four samples three are above, in each batch alike: however far the sums are from 0,
 * they do not differ, and nothing depends on anything. */
static void sums_are_held_against_their_mean(void **state)
{
    double samples[64];
    size_t i;
    (void)state;
    for (i = 0; i < 64; i++)
        samples[i] = i % 4 ? 1 : -1;
    assert_true(gpb_dependence_around(0, samples, 64) == 1);
}

static void numbers_in_order(void **state)
{
    const double numbers[] = {1, 2};
    (void)state;
    assert_int_equal(gpb_compare_doubles(&numbers[0], &numbers[0]), 0);
    assert_int_equal(gpb_compare_doubles(&numbers[0], &numbers[1]), -1);
    assert_int_equal(gpb_compare_doubles(&numbers[1], &numbers[0]), 1);
}

/* Some samples are the median, and count for neither side: of 64 in batches of eight, each
 * with two ones, two threes and four twos, no sum differs from 0. */
static void samples_at_the_median_have_no_sign(void **state)
{
    double samples[64];
    size_t i;
    (void)state;
    for (i = 0; i < 64; i++)
        samples[i] = i % 8 < 2 ? 1 : i % 8 < 4 ? 3 : 2;
    assert_true(gpubench_dependence(samples, 64) == 1);
    /* Sums of +-4 of variance 1/2: 8 * 16 / 7 / 8 / (1/2). */
    for (i = 0; i < 64; i++)
        samples[i] = i % 8 >= 4 ? 2 : i / 8 % 2 ? 1 : 3;
    assert_true(gpubench_dependence(samples, 64) > 32.0 / 7 - 1e-9);
    assert_true(gpubench_dependence(samples, 64) < 32.0 / 7 + 1e-9);
}

/* 100 samples that count as 100 / 16: 0.98 * 10 * 4 - 0.5 ranks on each side of the middle are
 * 38.7 of 50, and eleven are outside. Where they count as next to none all are inside. */
static void ranks_of_samples_that_depend(void **state)
{
    size_t low, high;
    (void)state;
    gpb_dependent_ranks(100, 16, &low, &high);
    assert_int_equal(low, 10);
    assert_int_equal(high, 89);
    gpb_dependent_ranks(100, 400, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 99);
    gpb_dependent_ranks(20, 2, &low, &high); /* 0.98 * 6.3246 - 0.5 = 5.698 of 10 */
    assert_int_equal(low, 3);
    assert_int_equal(high, 16);
    gpb_dependent_ranks(1, 1, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 0);
}

static double fill_steps(double *samples, size_t count, double last)
{
    size_t i;
    for (i = 0; i < count; i++)
        samples[i] = i < count / 2 ? 100 : last;
    return gpubench_drift(samples, count);
}

/* A fifth of 30 is six, which is as few as have an interval. One per cent is none. */
static void a_drift_needs_thirty_samples_and_one_per_cent(void **state)
{
    double samples[40], drift;
    size_t i;
    (void)state;
    drift = fill_steps(samples, 30, 102);
    assert_true(drift > 0.0199999 && drift < 0.0200001);
    assert_true(gpubench_drift_is_real(samples, 30));
    fill_steps(samples, 29, 102);
    assert_false(gpubench_drift_is_real(samples, 29));
    fill_steps(samples, 40, 101.0000001);
    assert_true(gpubench_drift_is_real(samples, 40));
    fill_steps(samples, 40, 100.9999);
    assert_false(gpubench_drift_is_real(samples, 40));
    fill_steps(samples, 40, 98.9999);
    assert_true(gpubench_drift_is_real(samples, 40));
    fill_steps(samples, 40, 99.0001);
    assert_false(gpubench_drift_is_real(samples, 40));
    for (i = 0; i < 40; i++)
        samples[i] = i < 20 ? 0 : 5;
    assert_true(gpubench_drift(samples, 40) == 0); /* of nothing there is no share */
    assert_false(gpubench_drift_is_real(samples, 40));
    for (i = 0; i < 40; i++)
        samples[i] = i < 20 ? -5 : 5;
    assert_true(gpubench_drift(samples, 40) == 0);
    fill_steps(samples, 19, 200);
    assert_true(gpubench_drift(samples, 19) == 0);
    assert_true(fill_steps(samples, 20, 200) == 1);
    samples[10] = gpb_nan();
    assert_true(gpubench_drift(samples, 20) == 0);
}

/* 500 samples, the last fifth 3 above the others, each fifth with the same hundred values within
 * 5 of its level: out of order its median is known to 1, and in order, where neighbours are
 * alike, hardly at all. */
static void a_drift_is_held_against_each_fifth_s_own_noise(void **state)
{
    double samples[500];
    size_t i, stride;
    (void)state;
    for (stride = 1; stride <= 37; stride += 36) {
        for (i = 0; i < 500; i++)
            samples[i] = (i < 400 ? 100 : 103) + 0.1 * ((double)(i * stride % 100) - 49.5);
        assert_true(gpubench_drift(samples, 500) > 0.0299 && gpubench_drift(samples, 500) < 0.0301);
        assert_int_equal(gpubench_drift_is_real(samples, 500), stride != 1);
    }
}

/* ---- rows as text ---- */

/* The row written and read again, whose text is put into out. */
static void write_and_read(gpb_row *row, gpb_row *again, char *out, size_t bytes)
{
    FILE *file = tmpfile();
    size_t length;
    assert_non_null(file);
    gpb_write_row(file, row, GPB_COLUMN_COUNT);
    gpb_write_row(file, row, GPB_COLUMN_COUNT);
    rewind(file);
    length = fread(out, 1, bytes - 1, file);
    out[length] = '\0';
    rewind(file);
    memset(again, 0, sizeof *again);
    assert_int_equal(gpb_read_row(file, again), 1);
    gpb_free_row(again);
    memset(again, 0, sizeof *again);
    assert_int_equal(gpb_read_row(file, again), 1);
    {
        gpb_row none;
        memset(&none, 0, sizeof none);
        assert_int_equal(gpb_read_row(file, &none), 0);
    }
    fclose(file);
}

static void any_text_comes_back_from_a_row(void **state)
{
    static const char *const texts[] = {"plain", "a,b", "say \"hi\"", "two\nlines", "\"",
                                        "\"\"",  ",",   "a\rb",       "\n"};
    static char text[100000], longest[20001];
    gpb_row row, again;
    size_t i;
    (void)state;
    memset(&row, 0, sizeof row);
    memset(longest, 'x', sizeof longest - 1);
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
        gpb_set_text(&row, (int)i, texts[i]);
    gpb_set_text(&row, 12, longest);
    gpb_set_text(&row, GPB_COLUMN_COUNT - 1, "last");
    write_and_read(&row, &again, text, sizeof text);
    assert_int_equal(strncmp(text,
                             "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"\"\"\","
                             "\"\"\"\"\"\",\",\",\"a\rb\",\"\n\",",
                             60),
                     0);
    for (i = 0; i < GPB_COLUMN_COUNT; i++)
        assert_string_equal(gpb_text(&again, (int)i), gpb_text(&row, (int)i));
    gpb_free_row(&row);
    gpb_free_row(&again);
}

/* A line of another program may have more fields than there are columns. */
static void fields_too_many_are_left_out(void **state)
{
    FILE *file = tmpfile();
    gpb_row row;
    int i;
    (void)state;
    assert_non_null(file);
    for (i = 0; i <= GPB_COLUMN_COUNT + 2; i++)
        fprintf(file, "%sf%d", i ? "," : "", i);
    fputs("\nnext\n", file);
    rewind(file);
    memset(&row, 0, sizeof row);
    assert_int_equal(gpb_read_row(file, &row), 1);
    assert_string_equal(gpb_text(&row, 0), "f0");
    gpb_free_row(&row);
    memset(&row, 0, sizeof row);
    assert_int_equal(gpb_read_row(file, &row), 1);
    assert_string_equal(gpb_text(&row, 0), "next");
    gpb_free_row(&row);
    fclose(file);
}

static void a_field_is_a_text_a_number_or_nothing(void **state)
{
    gpb_row row;
    (void)state;
    memset(&row, 0, sizeof row);
    assert_string_equal(gpb_text(&row, 3), "");
    assert_true(gpb_number(&row, 3) == 0);
    gpb_set_number(&row, 3, 2.5);
    assert_string_equal(gpb_text(&row, 3), "2.5");
    assert_true(gpb_number(&row, 3) == 2.5);
    gpb_set_count(&row, 3, UINT64_MAX);
    assert_string_equal(gpb_text(&row, 3), "18446744073709551615");
    gpb_set_text(&row, 3, "word");
    assert_true(gpb_number(&row, 3) == 0);
    gpb_set_text(&row, 3, "");
    assert_null(row.fields[3]);
    gpb_set_text(&row, 3, NULL);
    assert_null(row.fields[3]);
    gpb_free_row(&row);
}

/* ---- digits, sizes and ranges ---- */

static void digits_and_powers(void **state)
{
    static const struct {
        const char *text, *rest;
        int code;
        uint64_t number, base;
    } cases[] = {{"64x", "x", 0, 64, 0},
                 {"2^6", "", 0, 64, 2},
                 {"2^63", "", 0, (uint64_t)1 << 63, 2},
                 {"2^64", NULL, -1, 0, 0},
                 {"3^40", "", 0, 12157665459056928801u, 3},
                 {"3^41", NULL, -1, 0, 0},
                 {"7^0", "", 0, 1, 7},
                 {"1^5", NULL, -1, 0, 0},
                 {"0^5", NULL, -1, 0, 0},
                 {"2^", NULL, -1, 0, 0},
                 {"^2", NULL, -1, 0, 0},
                 {"", NULL, -1, 0, 0},
                 {"00000000000000000000012", "", 0, 12, 0}, /* 23 digits */
                 {"000000000000000000000012", NULL, -1, 0, 0} /* 24 */};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = cases[i].text;
        uint64_t number = 0, base = 99;
        assert_int_equal(gpb_read_size(&at, &number, &base), cases[i].code);
        if (cases[i].code == 0) {
            assert_string_equal(at, cases[i].rest);
            assert_true(number == cases[i].number && base == cases[i].base);
        }
    }
}

/* In a range of factors the last step does not go beyond 64 bits, nor in one of summands. */
static void ranges_end_at_64_bits(void **state)
{
    static const char *const last[][2] = {
        {"2^62..2^63", "9223372036854775808"},
        {"1..18446744073709551615*4294967296", "4294967296"},
        {"18446744073709551610..18446744073709551615+4", "18446744073709551614"},
        {"5..5*7", "5"},
        {"3..9*3", "9"},
        {"3..8*3", "3"},
        {"2^1..2^2", "4"},
        {"2^1..4", "4"},
        {"2..2^2", "4"},
        {"2^1..3^1", "3"}};
    static const size_t counts[] = {2, 2, 2, 1, 2, 1, 2, 3, 3, 2};
    size_t i, k;
    (void)state;
    for (i = 0; i < sizeof last / sizeof last[0]; i++) {
        gpb_axis axis;
        memset(&axis, 0, sizeof axis);
        assert_null(gpb_read_axis(&axis, last[i][0]));
        assert_int_equal(axis.count, counts[i]);
        assert_string_equal(axis.values[axis.count - 1], last[i][1]);
        for (k = 0; k < axis.count; k++)
            free(axis.values[k]);
        free(axis.values);
        gpb_index_free(&axis.known);
    }
}

static void a_key_of_the_params(void **state)
{
    (void)state;
    assert_true(gpb_has_key("b=1 h=2", "b"));
    assert_true(gpb_has_key("b=1 h=2", "h"));
    assert_false(gpb_has_key("b=1 hh=2", "h"));
    assert_false(gpb_has_key("b=1 h=2", "2"));
    assert_false(gpb_has_key("bh=1", "b"));
    assert_false(gpb_has_key("", "b"));
    assert_false(gpb_has_key(NULL, "b"));
}

/* 2 x 3 x 1 points, the last axis first. */
static void points_are_counted_on(void **state)
{
    static const size_t wanted[][3] = {{0, 1, 0}, {0, 2, 0}, {1, 0, 0}, {1, 1, 0}, {1, 2, 0}};
    gpb_axis axes[3];
    size_t numbers[3] = {0, 0, 0}, i;
    (void)state;
    memset(axes, 0, sizeof axes);
    axes[0].count = 2;
    axes[1].count = 3;
    axes[2].count = 1;
    for (i = 0; i < 5; i++) {
        assert_int_equal(gpb_next_point(axes, 3, numbers), 1);
        assert_memory_equal(numbers, wanted[i], sizeof numbers);
    }
    assert_int_equal(gpb_next_point(axes, 3, numbers), 0);
    assert_int_equal(gpb_next_point(axes, 0, numbers), 0);
}

/* Whole numbers of 63 bits with a sign; what is beyond, or is none, fails the case. */
static void numbers_of_an_axis(void **state)
{
    static const struct {
        const char *text;
        int64_t number;
        int misused;
    } cases[] = {{"9223372036854775807", INT64_MAX, 0},
                 {"-9223372036854775807", -INT64_MAX, 0},
                 {"0", 0, 0},
                 {"9223372036854775808", 0, 1},
                 {"-9223372036854775808", 0, 1},
                 {"one", 0, 1},
                 {"1.5", 0, 1},
                 {"--1", 0, 1}};
    static gpubench bench;
    static gpb_live live;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char axis[] = "n", value[32];
        gpb_place place = {axis, value};
        gpb_item item;
        memset(&bench, 0, sizeof bench);
        memset(&live, 0, sizeof live);
        memset(&item, 0, sizeof item);
        strcpy(value, cases[i].text);
        item.places = &place;
        item.place_count = 1;
        live.item = &item;
        bench.current = &live;
        assert_true(gpubench_axis_number(&bench, "n") == cases[i].number);
        assert_int_equal(live.misused, cases[i].misused);
        assert_string_equal(gpubench_axis_text(&bench, "n"), cases[i].text);
        assert_true(gpubench_axis_number(&bench, "m") == 0);
        assert_int_equal(live.misused, 1);
    }
}

/* ---- what the command line sets ---- */

static int nothing(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

/* What is listed has a case. */
static void close_fine(gpubench *bench)
{
    gpubench_case one = gpubench_case_init("nothing", nothing, NULL);
    gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 0);
}

static void defaults_are_as_documented(void **state)
{
    gpubench *bench = OPEN("--list");
    const gpb_settings *s = &bench->settings;
    (void)state;
    assert_string_equal(s->sort, "name");
    assert_true(s->precision == 0.005);
    assert_true(s->timeout_s == 60);
    assert_int_equal(s->min_samples, 30);
    assert_int_equal(s->max_samples, 100000);
    assert_int_equal(s->streams, GPB_STREAMS);
    assert_int_equal(s->runs, 1);
    assert_int_equal(s->seed, 1);
    assert_int_equal(s->list, 1);
    assert_false(s->energy || s->profile || s->no_verify || s->kernels || s->memory);
    assert_true(!s->csv && !s->json && !s->samples && !s->campaign && !s->filter && !s->trace);
    close_fine(bench);
}

static void each_option_sets_its_own(void **state)
{
    gpubench *bench = OPEN("--list", "--no-verify", "--energy", "--campaign", "monday", "--sort",
                           "queued", "--mode=hot");
    const gpb_settings *s = &bench->settings;
    (void)state;
    assert_true(s->list && s->quiet && s->no_verify && s->energy);
    assert_false(s->profile || s->kernels || s->memory);
    assert_string_equal(s->campaign, "monday");
    assert_string_equal(s->sort, "queued");
    assert_int_equal(s->modes, GPUBENCH_HOT);
    assert_string_equal(s->mode, "hot");
    close_fine(bench);
}

/* The largest and the smallest are taken, which others have seen refused beyond. */
static void limits_themselves_are_taken(void **state)
{
    gpubench *bench =
        OPEN("--list", "--precision", "100", "--max-time", "86400", "--timeout", "86400",
             "--min-samples", "1", "--max-samples", "10000000", "--warmup", "1000000", "--streams",
             "28", "--runs", "1000", "--seed", "18446744073709551615");
    const gpb_settings *s = &bench->settings;
    (void)state;
    assert_true(s->precision == 1 && s->max_time_s == 86400 && s->timeout_s == 86400);
    assert_int_equal(s->min_samples, 1);
    assert_int_equal(s->max_samples, 10000000);
    assert_int_equal(s->warmup, 1000000);
    assert_int_equal(s->streams, 28);
    assert_int_equal(s->runs, 1000);
    assert_true(s->seed == UINT64_MAX);
    close_fine(bench);
    bench = OPEN("--list", "--timeout", "86400.5");
    assert_true(bench->refused);
    assert_int_equal(gpubench_close(bench), 2);
    bench = OPEN("--list", "--max-samples", "10000001");
    assert_true(bench->refused);
    assert_int_equal(gpubench_close(bench), 2);
}

/* One of the two moves the other's default along; both are taken as they are. */
static void samples_least_and_most(void **state)
{
    gpubench *bench = OPEN("--list", "--max-samples", "7");
    (void)state;
    assert_int_equal(bench->settings.min_samples, 7);
    assert_int_equal(bench->settings.max_samples, 7);
    close_fine(bench);
    bench = OPEN("--list", "--min-samples", "200000");
    assert_int_equal(bench->settings.min_samples, 200000);
    assert_int_equal(bench->settings.max_samples, 200000);
    close_fine(bench);
    bench = OPEN("--list", "--min-samples", "8", "--max-samples", "8");
    assert_false(bench->refused);
    close_fine(bench);
    bench = OPEN("--list", "--min-samples", "9", "--max-samples", "8");
    assert_true(bench->refused);
    assert_int_equal(gpubench_close(bench), 2);
}

static int refused_by_itself(const char *const *words)
{
    gpubench *bench = open_bench(words);
    int refused = bench->refused;
    gpubench_close(bench);
    return refused;
}

#define REFUSED(...) refused_by_itself((const char *const[]){"--list", __VA_ARGS__, NULL})

static void contradictions_and_campaigns(void **state)
{
    static char long_name[65];
    (void)state;
    memset(long_name, 'x', 63);
    assert_false(REFUSED("--campaign", long_name));
    long_name[63] = 'x';
    assert_true(REFUSED("--campaign", long_name));
    assert_true(REFUSED("--campaign", ""));
    assert_true(REFUSED("--csv", "f", "--json", "f"));
    assert_true(REFUSED("--samples", "f", "--json", "f"));
    assert_true(REFUSED("--profile", "--csv", "f"));
    assert_true(REFUSED("--profile", "--trace", "f"));
    assert_true(REFUSED("--profile", "--kernels"));
    assert_true(REFUSED("--profile", "--memory"));
    assert_false(REFUSED("--profile"));
    assert_true(REFUSED("--csv", "-", "--json", "-"));
    assert_true(REFUSED("--csv", "/dev/stdout", "--json", "-"));
    assert_true(REFUSED("--device", "all"));
    assert_true(REFUSED("--device", "0,1"));
    assert_true(REFUSED("--device", "0,cpu"));
    assert_false(REFUSED("--device", "cpu"));
    assert_true(REFUSED("--axis", "n=1", "--axis", "n=2"));
}

/* A case needs a name and a run function, and stands there once. */
static void cases_that_cannot_be(void **state)
{
    gpubench_case one = gpubench_case_init("one", nothing, NULL);
    gpubench_case bad[3];
    size_t i;
    (void)state;
    bad[0] = gpubench_case_init(NULL, nothing, NULL);
    bad[1] = gpubench_case_init("", nothing, NULL);
    bad[2] = gpubench_case_init("no run", NULL, NULL);
    for (i = 0; i < 3; i++) {
        gpubench *bench = OPEN("--list");
        gpubench_measure(bench, &bad[i]);
        assert_true(bench->refused);
        gpubench_close(bench);
    }
    {
        gpubench *bench = OPEN("--list");
        gpubench_measure(bench, &one);
        assert_false(bench->refused);
        gpubench_measure(bench, &one);
        assert_true(bench->refused);
        gpubench_close(bench);
    }
}

/* What the filter does not take is counted; what it takes is a copy of the case's texts. */
static void the_queue_keeps_texts_of_its_own(void **state)
{
    char name[] = "first", variant[] = "v", dtype[] = "f32", params[] = "n=1",
         runs_on[] = "two cores";
    gpubench_case one = gpubench_case_init(name, nothing, NULL);
    gpubench *bench = OPEN("--list", "--filter", "^first v");
    (void)state;
    one.variant = variant;
    one.dtype = dtype;
    one.params = params;
    one.runs_on = runs_on;
    gpb_queue(bench, &one, 5);
    one.variant = "w";
    gpb_queue(bench, &one, 6);
    memset(name, 'x', 5);
    memset(variant, 'x', 1);
    memset(dtype, 'x', 3);
    memset(params, 'x', 3);
    memset(runs_on, 'x', 9);
    assert_int_equal(bench->item_count, 1);
    assert_int_equal(bench->filtered_out, 1);
    assert_string_equal(bench->items[0].one.name, "first");
    assert_string_equal(bench->items[0].one.variant, "v");
    assert_string_equal(bench->items[0].one.dtype, "f32");
    assert_string_equal(bench->items[0].one.params, "n=1");
    assert_string_equal(bench->items[0].one.runs_on, "two cores");
    assert_string_equal(bench->items[0].key, "first v f32 n=1");
    assert_int_equal(bench->items[0].group, 5);
    gpubench_close(bench);
}

/* The names of axes are kept for a message, as many as there is room for. */
static void names_of_axes_without_end(void **state)
{
    char names[3][121];
    gpubench_axis axes[3];
    gpubench_case one = gpubench_case_init("one", nothing, NULL);
    gpubench *bench = OPEN("--list");
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        memset(names[i], 'a' + (int)i, 120);
        names[i][120] = '\0';
        axes[i].name = names[i];
        axes[i].values = "1";
    }
    gpubench_sweep(bench, &one, 1, axes, 3);
    gpubench_sweep(bench, &one, 1, axes, 1);
    assert_int_equal(strlen(bench->axis_names), 2 * 121);
    assert_non_null(strstr(bench->axis_names, names[0]));
    assert_non_null(strstr(bench->axis_names, names[1]));
    assert_int_equal(bench->item_count, 2);
    assert_int_equal(gpubench_close(bench), 0);
}

/* Samples gather beside their file, and not behind what another process of that number left. */
static void samples_begin_anew(void **state)
{
    char path[300], left[400];
    gpubench *bench;
    (void)state;
    snprintf(path, sizeof path, "%s", support_path("samples.csv"));
    snprintf(left, sizeof left, "%s.%ld.samples.tmp", path, (long)getpid());
    support_write(left, "of another process\n");
    bench = OPEN("--list", "--samples", path);
    assert_false(bench->refused);
    assert_string_equal(bench->samples_path, path);
    assert_string_equal(bench->samples_temporary, left);
    assert_false(support_exists(left));
    close_fine(bench);
    bench = OPEN("--list", "--samples", support_path("no/such/folder.csv"));
    assert_true(bench->refused);
    gpubench_close(bench);
    bench = OPEN("--list", "--samples", support_folder);
    assert_true(bench->refused);
    gpubench_close(bench);
    assert_true(REFUSED("--samples", ""));
    assert_true(REFUSED("--samples", "-"));
    assert_true(REFUSED("--samples", "/dev/null"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decimal_point_is_any_locale_s),
        cmocka_unit_test(what_is_no_number_has_no_text),
        cmocka_unit_test(numbers_of_any_length_but_too_long),
        cmocka_unit_test(counts_end_at_64_bits),
        cmocka_unit_test(an_array_grows_at_powers_of_two),
        cmocka_unit_test(a_copy_is_another_text),
        cmocka_unit_test(from_64_samples_on_dependence_is_known),
        cmocka_unit_test(sums_are_held_against_their_mean),
        cmocka_unit_test(numbers_in_order),
        cmocka_unit_test(samples_at_the_median_have_no_sign),
        cmocka_unit_test(ranks_of_samples_that_depend),
        cmocka_unit_test(a_drift_needs_thirty_samples_and_one_per_cent),
        cmocka_unit_test(a_drift_is_held_against_each_fifth_s_own_noise),
        cmocka_unit_test(any_text_comes_back_from_a_row),
        cmocka_unit_test(fields_too_many_are_left_out),
        cmocka_unit_test(a_field_is_a_text_a_number_or_nothing),
        cmocka_unit_test(digits_and_powers),
        cmocka_unit_test(ranges_end_at_64_bits),
        cmocka_unit_test(a_key_of_the_params),
        cmocka_unit_test(points_are_counted_on),
        cmocka_unit_test(numbers_of_an_axis),
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(each_option_sets_its_own),
        cmocka_unit_test(limits_themselves_are_taken),
        cmocka_unit_test(samples_least_and_most),
        cmocka_unit_test(contradictions_and_campaigns),
        cmocka_unit_test(cases_that_cannot_be),
        cmocka_unit_test(the_queue_keeps_texts_of_its_own),
        cmocka_unit_test(names_of_axes_without_end),
        cmocka_unit_test(samples_begin_anew),
    };
    support_start(argv[0]);
    (void)argc;
    return support_stop(cmocka_run_group_tests_name("pieces", tests, NULL, NULL));
}
