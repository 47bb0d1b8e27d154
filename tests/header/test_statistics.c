/* The pure functions: statistics, number formatting and number parsing. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include <math.h>

#include "support.h"

static const double tiny = 1e-12; /* relative; for sums whose order is free */

static void expect_close(double value, double wanted)
{
    if (!(fabs(value - wanted) <= tiny * fabs(wanted)))
        fail_msg("%.17g instead of %.17g", value, wanted);
}

static void expect_all_equal(const gpubench_statistics *s, double value)
{
    const double all[] = {s->min, s->max, s->mean, s->p5, s->p25, s->median, s->p75, s->p95,
                          s->p99, s->ci95_low, s->ci95_high};
    size_t i;
    for (i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_true(all[i] == value);
    assert_true(s->stddev == 0);
}

/* ---- describe ---- */

static void describe_refuses_nothing(void **state)
{
    double sample = 1;
    gpubench_statistics s;
    (void)state;
    memset(&s, 0x5a, sizeof s);
    assert_int_equal(gpubench_describe(&sample, 0, &s), -1);
    assert_int_equal(((unsigned char *)&s)[0], 0x5a);
}

static void describe_one(void **state)
{
    double sample = 12.25;
    gpubench_statistics s;
    (void)state;
    assert_int_equal(gpubench_describe(&sample, 1, &s), 0);
    assert_int_equal(s.count, 1);
    expect_all_equal(&s, 12.25);
}

static void describe_two(void **state)
{
    double samples[] = {14, 10};
    gpubench_statistics s;
    (void)state;
    assert_int_equal(gpubench_describe(samples, 2, &s), 0);
    assert_true(s.min == 10 && s.max == 14 && s.mean == 12 && s.median == 12);
    expect_close(s.stddev, 2.8284271247461903); /* sqrt(8); the population's would be 2 */
    expect_close(s.p5, 10.2);
    expect_close(s.p95, 13.8);
    assert_true(s.ci95_low == 10 && s.ci95_high == 14);
}

static void describe_equal(void **state)
{
    double fives[] = {5, 5, 5, 5}, tenths[7];
    gpubench_statistics s;
    size_t i;
    (void)state;
    assert_int_equal(gpubench_describe(fives, 4, &s), 0);
    expect_all_equal(&s, 5);
    for (i = 0; i < 7; i++)
        tenths[i] = 0.1; /* 7 * 0.1 / 7 is not 0.1 in binary */
    assert_int_equal(gpubench_describe(tenths, 7, &s), 0);
    expect_all_equal(&s, 0.1);
}

static void describe_one_to_eleven(void **state)
{
    double samples[] = {11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6};
    gpubench_statistics s;
    size_t i;
    (void)state;
    assert_int_equal(gpubench_describe(samples, 11, &s), 0);
    for (i = 0; i < 11; i++)
        assert_true(samples[i] == (double)(i + 1)); /* sorted */
    assert_true(s.min == 1 && s.max == 11 && s.mean == 6 && s.median == 6);
    expect_close(s.stddev, 3.3166247903553998); /* variance (n*n-1)/12 * n/(n-1) = 11 */
    expect_close(s.p5, 1.5);
    expect_close(s.p25, 3.5);
    expect_close(s.p75, 8.5);
    expect_close(s.p95, 10.5);
    expect_close(s.p99, 10.9);
    assert_true(s.ci95_low == 2 && s.ci95_high == 10);
}

/* A mean of billions plus a spread of one: sums of squares would lose it. */
static void describe_keeps_small_spread(void **state)
{
    double samples[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    gpubench_statistics s;
    (void)state;
    assert_int_equal(gpubench_describe(samples, 4, &s), 0);
    assert_true(s.mean == 1e9 + 10);
    expect_close(s.stddev, 5.4772255750516612); /* sqrt(30) */
}

static void describe_extreme_magnitudes(void **state)
{
    double small[] = {3e-9, 1e-9}, large[] = {1e15, 3e15};
    gpubench_statistics s;
    (void)state;
    gpubench_describe(small, 2, &s);
    expect_close(s.stddev, 1.4142135623730951e-9);
    gpubench_describe(large, 2, &s);
    expect_close(s.stddev, 1.4142135623730951e15);
}

/* Wherever it stands; and the samples stay as they were. */
static void describe_refuses_what_is_no_number(void **state)
{
    const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    size_t at, i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (at = 0; at < 4; at++) {
            double samples[] = {4, 3, 2, 1};
            gpubench_statistics s;
            memset(&s, 0x5a, sizeof s);
            samples[at] = bad[i];
            assert_int_equal(gpubench_describe(samples, 4, &s), -1);
            assert_int_equal(((unsigned char *)&s)[0], 0x5a);
            assert_int_equal(((unsigned char *)&s)[sizeof s - 1], 0x5a);
            assert_true(at == 0 || samples[0] == 4);
            assert_true(at == 3 || samples[3] == 1);
        }
}

/* ---- quantile ---- */

/* Hyndman and Fan's definition 7 on {15, 20, 35, 40, 50}, as in R's
 * quantile(x, p) and numpy.percentile. */
static void quantile_is_definition_7(void **state)
{
    const double sorted[] = {15, 20, 35, 40, 50};
    (void)state;
    assert_true(gpubench_quantile(sorted, 5, 0) == 15);
    assert_true(gpubench_quantile(sorted, 5, 1) == 50);
    assert_true(gpubench_quantile(sorted, 5, 0.25) == 20);
    assert_true(gpubench_quantile(sorted, 5, 0.5) == 35);
    expect_close(gpubench_quantile(sorted, 5, 0.4), 29);
    expect_close(gpubench_quantile(sorted, 5, 0.05), 16);
    expect_close(gpubench_quantile(sorted, 5, 0.99), 49.6);
    assert_true(gpubench_quantile(sorted, 1, 0.99) == 15);
    assert_true(gpubench_quantile(sorted, 4, 0.5) == 27.5);
}

/* ---- the interval of the median ---- */

static void expect_ranks(size_t count, size_t low, size_t high)
{
    size_t got_low = 999999, got_high = 999999;
    gpubench_median_ranks(count, &got_low, &got_high);
    if (got_low + 1 != low || got_high + 1 != high)
        fail_msg("n=%zu: ranks %zu and %zu instead of %zu and %zu", count, got_low + 1,
                 got_high + 1, low, high);
}

/* One-based, as published tables have them (Conover's table of the binomial;
 * Hollander and Wolfe, "Nonparametric statistical methods", sign test). */
static void ranks_of_tables(void **state)
{
    (void)state;
    expect_ranks(1, 1, 1);
    expect_ranks(2, 1, 2);
    expect_ranks(5, 1, 5);
    expect_ranks(6, 1, 6);
    expect_ranks(8, 1, 8);
    expect_ranks(9, 2, 8);
    expect_ranks(10, 2, 9);
    expect_ranks(15, 4, 12);
    expect_ranks(20, 6, 15);
    expect_ranks(25, 8, 18);
    expect_ranks(30, 10, 21);
    expect_ranks(50, 18, 33);
    expect_ranks(100, 40, 61);
    expect_ranks(1000, 469, 532);
}

/* The chance that fewer than rank of count values lie below the median. */
static long double tail(size_t count, size_t rank)
{
    long double sum = 0, n = (long double)count;
    size_t k;
    for (k = 0; k < rank; k++)
        sum += expl(lgammal(n + 1) - lgammal((long double)k + 1) -
                    lgammal(n - (long double)k + 1) - n * logl(2));
    return sum;
}

static size_t one_based_low_rank(size_t count)
{
    size_t low, high;
    gpubench_median_ranks(count, &low, &high);
    assert_int_equal(low + high, count - 1);
    return low + 1;
}

/* Enclosing with 95 % means: at most 2.5 % on each side, and one rank further
 * in would be more. */
static void ranks_are_exact_up_to_64(void **state)
{
    size_t count;
    (void)state;
    for (count = 6; count <= 64; count++) {
        size_t rank = one_based_low_rank(count);
        if (tail(count, rank) > 0.025L || tail(count, rank + 1) <= 0.025L)
            fail_msg("n=%zu: rank %zu has tail %Lg, the next %Lg", count, rank, tail(count, rank),
                     tail(count, rank + 1));
    }
}

/* The approximation may be a rank wider than need be, and as narrow as 94.8 %. */
static void ranks_are_close_above_64(void **state)
{
    static const size_t counts[] = {65, 66, 67, 99, 100, 101, 240, 500, 999, 1000, 4096, 10000};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t rank = one_based_low_rank(counts[i]);
        if (tail(counts[i], rank) > 0.026L || tail(counts[i], rank + 2) <= 0.025L)
            fail_msg("n=%zu: rank %zu has tail %Lg, two further in %Lg", counts[i], rank,
                     tail(counts[i], rank), tail(counts[i], rank + 2));
    }
}

/* ---- samples that depend on each other ---- */

/* Between 0 and 1, neither included. */
static double random_uniform(uint64_t *state)
{
    return ((double)(gpubench_random_word(state) >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller. */
static double random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(random_uniform(state)));
    return radius * cos(6.283185307179586 * random_uniform(state));
}

/* An autoregressive series around 100 with standard deviation 2. */
static void draw_series(double *samples, size_t count, double rho, uint64_t *state)
{
    double value = random_normal(state);
    size_t i;
    for (i = 0; i < count; i++) {
        samples[i] = 100 + 2 * value;
        value = rho * value + sqrt(1 - rho * rho) * random_normal(state);
    }
}

/* 32 batches of 32: signs that stay for a batch have batch sums of +-32 and
 * variance 1, so 32^2 * 32 / 31 / 32; signs that change each time have sums of 0. */
static void dependence_of_known_series(void **state)
{
    double samples[1024];
    size_t i;
    (void)state;
    for (i = 0; i < 1024; i++)
        samples[i] = i / 32 % 2 ? 5 : 7;
    expect_close(gpubench_dependence(samples, 1024), 32.0 * 32 / 31);
    for (i = 0; i < 1024; i++)
        samples[i] = i % 2 ? 5 : 7;
    assert_true(gpubench_dependence(samples, 1024) == 1);
    for (i = 0; i < 1024; i++)
        samples[i] = 5;
    assert_true(gpubench_dependence(samples, 1024) == 1);
    for (i = 0; i < 1024; i++)
        samples[i] = (double)i;
    assert_true(gpubench_dependence(samples, 63) == 1);
    assert_true(gpubench_dependence(samples, 1024) > 20);
    assert_true(samples[0] == 0 && samples[1023] == 1023);
    assert_true(gpubench_dependence(samples, 0) == 1);
    samples[3] = NAN;
    assert_true(gpubench_dependence(samples, 1024) == 1);
}

/* How often the interval of rho's series holds the true median, 100. */
static double coverage(double rho, size_t count, int know_dependence)
{
    enum { TRIALS = 1000 };
    static double samples[4000];
    uint64_t state = 42;
    int trial, held = 0;
    for (trial = 0; trial < TRIALS; trial++) {
        gpubench_statistics s;
        double dependence = know_dependence ? 0 : 1;
        draw_series(samples, count, rho, &state);
        assert_int_equal(gpb_describe_in_order(samples, count, &s, &dependence), 0);
        held += s.ci95_low <= 100 && 100 <= s.ci95_high;
    }
    return (double)held / TRIALS;
}

static void the_interval_holds_the_median(void **state)
{
    static const size_t counts[] = {1000, 2000, 4000};
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        double free_of_it = coverage(0, counts[i], 1), some = coverage(0.5, counts[i], 1);
        double much = coverage(0.9, counts[i], 1), believed = coverage(0.9, counts[i], 0);
        print_message("# n=%zu: coverage %.3f, %.3f, %.3f for rho 0, 0.5, 0.9; as if "
                      "independent %.3f\n", counts[i], free_of_it, some, much, believed);
        assert_true(free_of_it >= 0.94 && free_of_it <= 0.985);
        assert_true(some >= 0.92 && some <= 0.985);
        assert_true(much >= 0.88 && much <= 0.985);
        assert_true(believed < 0.6);
    }
}

/* ---- drift ---- */

static void drift_is_from_the_first_fifth_to_the_last(void **state)
{
    double samples[50];
    size_t i;
    (void)state;
    for (i = 0; i < 50; i++)
        samples[i] = i < 10 ? 100 : i < 40 ? 5000 : 103;
    expect_close(gpubench_drift(samples, 50), 1.03 - 1);
    assert_true(gpubench_drift_is_real(samples, 50));
    for (i = 40; i < 50; i++)
        samples[i] = 97;
    expect_close(gpubench_drift(samples, 50), 0.97 - 1);
    assert_true(gpubench_drift_is_real(samples, 50));
    for (i = 40; i < 50; i++)
        samples[i] = 100.9; /* sure, and too little to matter */
    assert_false(gpubench_drift_is_real(samples, 50));
    assert_true(gpubench_drift(samples, 19) == 0);
    assert_true(gpubench_drift(samples, 0) == 0);
    samples[20] = INFINITY;
    assert_true(gpubench_drift(samples, 50) == 0);
    assert_false(gpubench_drift_is_real(samples, 50));
}

/* How often a drift is seen in series that rise by `rise` from end to end. */
static double share_of_drifts(double rho, size_t count, double rise)
{
    enum { TRIALS = 1000 };
    double samples[1000];
    uint64_t state = 7;
    int trial, seen = 0;
    for (trial = 0; trial < TRIALS; trial++) {
        size_t i;
        draw_series(samples, count, rho, &state);
        for (i = 0; i < count; i++)
            samples[i] += 100 * rise * (double)i / (double)count;
        seen += gpubench_drift_is_real(samples, count);
    }
    return (double)seen / TRIALS;
}

static void drift_is_told_from_noise(void **state)
{
    static const size_t counts[] = {20, 29, 30, 100, 300, 1000};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++)
        assert_true(share_of_drifts(0, counts[i], 0) <= 0.01);
    assert_true(share_of_drifts(0.5, 1000, 0) <= 0.01);
    assert_true(share_of_drifts(0, 300, 0.05) >= 0.99);
    assert_true(share_of_drifts(0, 1000, 0.05) == 1);
    assert_true(share_of_drifts(0.5, 1000, -0.05) >= 0.99);
}

/* ---- numbers as text ---- */

static void expect_format(double value, const char *wanted)
{
    char text[32];
    gpubench_format_number(value, text);
    assert_string_equal(text, wanted);
}

static void format_is_short(void **state)
{
    (void)state;
    expect_format(0, "0");
    expect_format(0.1, "0.1");
    expect_format(0.125, "0.125");
    expect_format(1.0 / 3, "0.3333333333333333");
    expect_format(3.07, "3.07");
    expect_format(1e-5, "1e-05");
    expect_format(1e300, "1e+300");
    expect_format(-2.5, "-2.5");
    expect_format(2251799813685249.5, "2251799813685249.5"); /* 2^51 + 1.5 takes 17 digits */
    expect_format(12345678, "12345678");
}

static void format_leaves_out_what_is_no_number(void **state)
{
    (void)state;
    expect_format(NAN, "");
    expect_format(-NAN, "");
    expect_format(INFINITY, "");
    expect_format(-INFINITY, "");
}

static int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Doubles of every magnitude, drawn as bits. */
static double random_double(uint64_t *state)
{
    double value;
    do {
        uint64_t bits;
        *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
        bits = *state ^ (*state >> 29);
        bits &= UINT64_MAX >> 1;
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

static void expect_round_trips(void)
{
    uint64_t state = 20240601;
    int i;
    for (i = 0; i < 100000; i++) {
        double value = i % 2 ? random_double(&state) : ldexp(random_double(&state), -i % 7);
        double back = -1;
        char text[32];
        gpubench_format_number(value, text);
        if (strlen(text) > 31 || strchr(text, ',') || gpubench_parse_number(text, &back) != 0 ||
            !same_bits(value, back))
            fail_msg("%a became '%s', and that %a", value, text, back);
    }
}

static void numbers_round_trip(void **state)
{
    (void)state;
    expect_round_trips();
}

static void extreme_numbers_round_trip(void **state)
{
    const double values[] = {0, 5e-324, 2.2250738585072014e-308, 2.2250738585072009e-308,
                             1.7976931348623157e308, 1, 0x1.fffffffffffffp+0, 0x1p53, 0x1p64};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[32];
        double back = -1;
        gpubench_format_number(values[i], text);
        assert_int_equal(gpubench_parse_number(text, &back), 0);
        assert_true(same_bits(values[i], back));
    }
}

/* ---- text as numbers ---- */

static void parse_number_takes_decimals(void **state)
{
    static const struct { const char *text; double value; } good[] = {
        {"0", 0}, {"7", 7}, {"0.125", 0.125}, {"00.5", 0.5}, {"12.0", 12}, {"3.07", 3.07},
        {"1e+300", 1e300}, {"1e-05", 1e-5}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        double value = -1;
        assert_int_equal(gpubench_parse_number(good[i].text, &value), 0);
        assert_true(value == good[i].value);
    }
}

static void parse_number_refuses_the_rest(void **state)
{
    static const char *const bad[] = {
        "", " ", "abc", "nan", "inf", "-inf", "NaN", "-5", "+5", "5%", "1e400", "0x10", " 7", "7 ",
        "1.2.3", "0,125", "1.", ".5", ".", "1e", "1e+", "e5", "1 2", "1\n", "5us", "1_000",
        "1e3.5"};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double value = 42;
        if (gpubench_parse_number(bad[i], &value) != -1)
            fail_msg("'%s' was read as %g", bad[i], value);
        assert_true(value == 42);
    }
}

/* A text that is longer than any number must be refused, not cut. */
static void parse_number_refuses_endless_text(void **state)
{
    char text[300];
    double value = 42;
    (void)state;
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(gpubench_parse_number(text, &value), -1);
    assert_true(value == 42);
}

static void parse_count_takes_whole_numbers(void **state)
{
    uint64_t value = 1;
    (void)state;
    assert_int_equal(gpubench_parse_count("0", &value), 0);
    assert_true(value == 0);
    assert_int_equal(gpubench_parse_count("007", &value), 0);
    assert_true(value == 7);
    assert_int_equal(gpubench_parse_count("12884901888", &value), 0);
    assert_true(value == UINT64_C(12884901888));
    assert_int_equal(gpubench_parse_count("18446744073709551615", &value), 0);
    assert_true(value == UINT64_MAX);
}

static void parse_count_refuses_the_rest(void **state)
{
    static const char *const bad[] = {"", " ", "abc", "10x", "-5", "+5", "1e3", " 7", "7 ", "0x10",
                                      "1.0", "18446744073709551616", "99999999999999999999",
                                      "184467440737095516150", "\t1", "1,000"};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t value = 42;
        if (gpubench_parse_count(bad[i], &value) != -1)
            fail_msg("'%s' was read as %llu", bad[i], (unsigned long long)value);
        assert_true(value == 42);
    }
}

/* ---- a locale whose decimal point is a comma ---- */

static int enter_german(void **state)
{
    char command[256];
    (void)state;
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' 2>'%s/localedef.txt'", support_folder,
             support_folder);
    if (system(command) != 0) {
        print_message("# skipped: localedef made no de_DE.UTF-8\n");
        return 0;
    }
    setenv("LOCPATH", support_folder, 1);
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        print_message("# skipped: de_DE.UTF-8 cannot be set\n");
    return 0;
}

static int leave_german(void **state)
{
    (void)state;
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    return 0;
}

static void numbers_have_a_point_in_german(void **state)
{
    double value = 0;
    (void)state;
    if (strcmp(localeconv()->decimal_point, ",") != 0)
        skip();
    assert_true(strtod("0.125", NULL) == 0); /* what a careless reader gets */
    expect_format(0.125, "0.125");
    expect_format(1.5e-7, "1.5e-07");
    expect_format(1.0 / 3, "0.3333333333333333");
    assert_int_equal(gpubench_parse_number("0.125", &value), 0);
    assert_true(value == 0.125);
    assert_int_equal(gpubench_parse_number("0,125", &value), -1);
    expect_round_trips();
}

/* splitmix64 of state 1234567, from the reference implementation's published test vector. */
static void random_is_splitmix64(void **state)
{
    uint64_t at = 1234567;
    (void)state;
    assert_true(gpubench_random_word(&at) == UINT64_C(6457827717110365317));
    assert_true(gpubench_random_word(&at) == UINT64_C(3203168211198807973));
    assert_true(gpubench_random_word(&at) == UINT64_C(9817491932198370423));
}

static void square_roots_are_right(void **state)
{
    static const double values[] = {1e-300, 2e-9, 0.25, 1, 2, 3, 1e6, 12345.678, 1e300};
    size_t i;
    (void)state;
    assert_true(gpubench_sqrt(0) == 0 && gpubench_sqrt(4) == 2 && gpubench_sqrt(0.25) == 0.5);
    for (i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_true(fabs(gpubench_sqrt(values[i]) - sqrt(values[i])) <= 4e-16 * sqrt(values[i]));
}

static void roots_of_what_has_none(void **state)
{
    (void)state;
    assert_true(isnan(gpubench_sqrt(NAN)) && isnan(gpubench_sqrt(-NAN)));
    assert_true(isnan(gpubench_sqrt(-1)) && isnan(gpubench_sqrt(-5e-324)));
    assert_true(isnan(gpubench_sqrt(-INFINITY)));
    assert_true(gpubench_sqrt(INFINITY) == INFINITY);
    assert_true(gpubench_sqrt(-0.0) == 0);
}

static void finite_is_told_by_bits(void **state)
{
    const double finite[] = {0, -0.0, 1, -1, 5e-324, 1.7976931348623157e308};
    const double other[] = {NAN, -NAN, INFINITY, -INFINITY};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof finite / sizeof finite[0]; i++)
        assert_true(gpubench_is_finite(finite[i]) && gpubench_is_finite(-finite[i]));
    for (i = 0; i < sizeof other / sizeof other[0]; i++)
        assert_false(gpubench_is_finite(other[i]));
}

/* NVIDIA's TFLOP/s of a GPU, its SMs and its clock in MHz, from the white papers. */
typedef struct known_peak {
    int capability;
    const char *dtype;
    double tflop_per_s, sms, mhz;
} known_peak;

static void peaks_are_as_published(void **state)
{
    static const known_peak known[] = {
        {75, "f16", 65, 40, 1590},    {75, "f32", 8.1, 40, 1590},     /* T4 */
        {80, "bf16", 312, 108, 1410}, {80, "tf32", 156, 108, 1410},   /* A100 */
        {86, "f16", 149.7, 84, 1740}, {86, "f32", 37.4, 84, 1740},    /* A40 */
        {87, "f32", 5.3, 16, 1300},                                   /* Orin */
        {89, "bf16", 362, 142, 2520}, {89, "tf32", 183, 142, 2520},   /* L40S */
        {90, "bf16", 989.4, 132, 1830}, {90, "f32", 66.9, 132, 1980}, /* H100 SXM */
        {120, "f16", 503.8, 188, 2617}, {120, "f32", 126, 188, 2617}, /* RTX PRO 6000 */
        {89, "e4m3", 733, 142, 2520}, {90, "e4m3", 1978.9, 132, 1830}, /* L40S, H100 SXM */
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        double per_clock = known[i].tflop_per_s * 1e6 / known[i].sms / known[i].mhz;
        double share = gpb_flops_per_clock(known[i].capability, known[i].dtype) / per_clock;
        assert_true(share > 0.98 && share < 1.02);
    }
    assert_true(gpb_flops_per_clock(75, "bf16") == 0);
    assert_true(gpb_flops_per_clock(75, "tf32") == 0);
    assert_true(gpb_flops_per_clock(87, "bf16") == 0);
    assert_true(gpb_flops_per_clock(86, "e4m3") == 0);
    assert_true(gpb_flops_per_clock(103, "f16") == gpb_flops_per_clock(100, "f16"));
    assert_true(gpb_flops_per_clock(121, "f32") == 0);
    assert_true(gpb_flops_per_clock(90, "u8") == 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describe_refuses_nothing),
        cmocka_unit_test(describe_one),
        cmocka_unit_test(describe_two),
        cmocka_unit_test(describe_equal),
        cmocka_unit_test(describe_one_to_eleven),
        cmocka_unit_test(describe_keeps_small_spread),
        cmocka_unit_test(describe_extreme_magnitudes),
        cmocka_unit_test(describe_refuses_what_is_no_number),
        cmocka_unit_test(dependence_of_known_series),
        cmocka_unit_test(the_interval_holds_the_median),
        cmocka_unit_test(drift_is_from_the_first_fifth_to_the_last),
        cmocka_unit_test(drift_is_told_from_noise),
        cmocka_unit_test(roots_of_what_has_none),
        cmocka_unit_test(finite_is_told_by_bits),
        cmocka_unit_test(quantile_is_definition_7),
        cmocka_unit_test(ranks_of_tables),
        cmocka_unit_test(ranks_are_exact_up_to_64),
        cmocka_unit_test(ranks_are_close_above_64),
        cmocka_unit_test(format_is_short),
        cmocka_unit_test(format_leaves_out_what_is_no_number),
        cmocka_unit_test(numbers_round_trip),
        cmocka_unit_test(extreme_numbers_round_trip),
        cmocka_unit_test(parse_number_takes_decimals),
        cmocka_unit_test(parse_number_refuses_the_rest),
        cmocka_unit_test(parse_number_refuses_endless_text),
        cmocka_unit_test(parse_count_takes_whole_numbers),
        cmocka_unit_test(parse_count_refuses_the_rest),
        cmocka_unit_test_setup_teardown(numbers_have_a_point_in_german, enter_german, leave_german),
        cmocka_unit_test(random_is_splitmix64),
        cmocka_unit_test(square_roots_are_right),
        cmocka_unit_test(peaks_are_as_published),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("statistics", tests, NULL, NULL));
}
