/* The measuring engine: on host code in this process, and on a scripted backend whose
 * samples are given. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "engine_cases.h"

static int diary_reset(void *context, gpubench_stream stream)
{
    diarist *d = (diarist *)context;
    (void)stream;
    d->since_reset = 0;
    note('r');
    return 0;
}

/* ---- the life of a case ---- */

static void a_life_is_setup_pairs_verify_teardown(void **state)
{
    gpubench *bench = OPEN("--max-time", "10", "--min-samples", "6", "--max-samples", "6");
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("life", &d);
    size_t i, pairs;
    (void)state;
    one.reset = diary_reset;
    gpubench_measure(bench, &one);
    assert_string_equal(diary, ""); /* queued only */
    assert_int_equal(gpubench_close(bench), 0);
    assert_true(diary_length > 3 && diary_length % 2 == 1);
    pairs = (diary_length - 3) / 2;
    assert_int_equal(diary[0], 's');
    for (i = 0; i < pairs; i++)
        assert_memory_equal(diary + 1 + 2 * i, "rx", 2);
    assert_string_equal(diary + 1 + 2 * pairs, "vt");
    assert_true(pairs >= 6 + 2); /* samples, warm-up */
}

static void a_case_may_have_nothing_but_run(void **state)
{
    gpubench *bench = OPEN("--max-samples", "3", "--max-time", "0.01");
    diarist d = {.letter = 'x'};
    gpubench_case one = gpubench_case_init("bare", diary_run, &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 0, "variant", "");
    assert_int_equal(gpubench_close(bench), 0);
}

static void teardown_follows_a_half_done_setup(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x', .setup_code = GPUBENCH_FAILED};
    gpubench_case one = diary_case("half", &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_string_equal(diary, "st");
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, "reason=as_told");
    assert_int_equal(gpubench_close(bench), 1);
}

static void hot_mode_resets_before_a_batch(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    diarist d = {.letter = 'x', .pause_ns = 2000};
    gpubench_case one = diary_case("hot", &d);
    double batch;
    (void)state;
    one.reset = diary_reset;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    batch = value_of(bench, 0, "batch");
    expect_cell(bench, 0, "mode", "hot");
    assert_true(batch >= 2);
    assert_true((double)d.most_since_reset >= batch + 1); /* one in front of the timed ones */
    assert_string_equal(diary + diary_length - 4, "rxvt"); /* verify sees one run after a reset */
    assert_int_equal(gpubench_close(bench), 0);
}

static void single_cases_do_not_interleave(void **state)
{
    gpubench *bench = OPEN("--max-samples", "4", "--max-time", "0.01");
    diarist d[2] = {{.letter = 'A'}, {.letter = 'B'}};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench_case one = diary_case(i ? "b" : "a", &d[i]);
        gpubench_measure(bench, &one);
    }
    assert_int_equal(gpubench_close(bench), 0);
    for (i = 0; diary[i] != 'v'; i++)
        assert_true(diary[i] == 's' || diary[i] == diary[1]);
}

static void a_failure_in_a_group_spares_the_others(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d[3] = {{.letter = 'A'},
                    {.letter = 'B', .setup_code = GPUBENCH_FAILED},
                    {.letter = 'C'}};
    gpubench_case cases[3];
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        cases[i] = diary_case(names[i], &d[i]);
    }
    gpubench_measure_group(bench, cases, 3);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 1, "status", "failed");
    expect_cell(bench, 2, "status", "ok");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- what is queued ---- */

static void strings_are_copied(void **state)
{
    gpubench *bench = OPEN(QUICK);
    char name[] = "name", variant[] = "variant", dtype[] = "dtype", params[] = "params";
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case(name, &d);
    (void)state;
    one.variant = variant;
    one.dtype = dtype;
    one.params = params;
    gpubench_measure(bench, &one);
    name[0] = variant[0] = dtype[0] = params[0] = '?';
    gpubench_run(bench);
    expect_cell(bench, 0, "case", "name");
    expect_cell(bench, 0, "variant", "variant");
    expect_cell(bench, 0, "dtype", "dtype");
    expect_cell(bench, 0, "params", "params");
    assert_int_equal(gpubench_close(bench), 0);
}

static void what_is_queued_after_a_run_is_measured_too(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d[2] = {{.letter = 'A'}, {.letter = 'B'}};
    gpubench_case one = diary_case("first", &d[0]), other = diary_case("second", &d[1]);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    gpubench_measure(bench, &other);
    assert_int_equal(gpubench_close(bench), 0);
    assert_non_null(strchr(diary, 'B'));
    assert_null(strchr(strchr(diary, 'B'), 'A')); /* and the first not again */
}

static void a_run_function_is_needed(void **state)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("idle", NULL, NULL);
    (void)state;
    gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 2);
}

static void a_refused_handle_measures_nothing(void **state)
{
    gpubench *bench = OPEN("--warmup", "no");
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("never", &d);
    (void)state;
    assert_non_null(bench);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 0);
    assert_int_equal(gpubench_close(bench), 2);
    assert_string_equal(diary, "");
}

static void a_program_may_refuse_its_command_line(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("never", &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_usage_error(bench, "--shape '%s': no such shape", "b=0");
    assert_int_equal(gpubench_close(bench), 2);
    assert_string_equal(diary, "");
}

/* Like a filter that matches nothing: measuring nothing is no success. */
static void a_mode_that_no_case_has_is_refused(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("cold-only", &d);
    (void)state;
    one.modes = GPUBENCH_COLD;
    gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 2);
}

/* ---- modes ---- */

static void each_mode_is_a_row(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "all");
    diarist d = {.letter = 'x', .pause_ns = 2000};
    gpubench_case one = diary_case("modes", &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 3);
    expect_cell(bench, 0, "mode", "cold");
    expect_cell(bench, 0, "batch", "1");
    expect_cell(bench, 1, "mode", "hot");
    assert_true(value_of(bench, 1, "batch") > 1);
    expect_cell(bench, 2, "mode", "graph");
    expect_cell(bench, 2, "status", "unsupported");
    expect_cell(bench, 2, "median_us", "");
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_case_chooses_its_modes(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot");
    diarist d = {.letter = 'x', .pause_ns = 100000};
    gpubench_case one = diary_case("hot-only", &d);
    (void)state;
    one.modes = GPUBENCH_HOT | GPUBENCH_GRAPH;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 1);
    expect_cell(bench, 0, "mode", "hot");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- a backend whose samples are given ---- */

static void queue_scripted(gpubench *bench, diarist *d, uint64_t bytes, uint64_t flops)
{
    gpubench_case one = diary_case("scripted", d);
    d->letter = 'x';
    one.bytes = bytes;
    one.flops = flops;
    gpubench_measure(bench, &one);
}

/* The samples of a group take turns, after all are set up and warm. */
static void groups_interleave(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--min-samples", "8", "--max-samples", "8",
                                    "--max-time", "9");
    diarist d[3] = {{.letter = 'A'}, {.letter = 'B'}, {.letter = 'C'}};
    gpubench_case cases[3];
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        cases[i] = diary_case(names[i], &d[i]);
    }
    gpubench_measure_group(bench, cases, 3);
    gpubench_run(bench);
    assert_memory_equal(diary, "sss", 3);
    /* each runs once more before its verify, on outputs that are poisoned */
    assert_string_equal(diary + diary_length - 9 - 24, "ABCABCABCABCABCABCABCABCAvBvCvttt");
    assert_int_equal(gpubench_row_count(bench), 3);
    expect_number(bench, 2, "samples", 8);
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_row_describes_its_samples(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(eleven, "--max-samples", "11", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 6000, 12000000);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_number(bench, 0, "samples", 11);
    expect_number(bench, 0, "batch", 1);
    expect_number(bench, 0, "min_us", 1);
    expect_number(bench, 0, "p5_us", 1.5);
    expect_number(bench, 0, "p25_us", 3.5);
    expect_number(bench, 0, "median_us", 6);
    expect_number(bench, 0, "p75_us", 8.5);
    expect_number(bench, 0, "p95_us", 10.5);
    expect_number(bench, 0, "p99_us", 10.9);
    expect_number(bench, 0, "max_us", 11);
    expect_number(bench, 0, "mean_us", 6);
    expect_number(bench, 0, "stddev_us", 3.3166247903553998); /* sqrt(11) */
    expect_number(bench, 0, "ci95_low_us", 2);
    expect_number(bench, 0, "ci95_high_us", 10);
    expect_number(bench, 0, "overhead_us", 1);
    expect_number(bench, 0, "gb_per_s", 1);    /* 6000 bytes in 6 us */
    expect_number(bench, 0, "tflop_per_s", 2); /* 12e6 operations in 6 us */
    assert_int_equal(gpubench_close(bench), 0);
}

static void equal_samples_have_no_spread(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "40", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_cell(bench, 0, "min_us", "5");
    expect_cell(bench, 0, "max_us", "5");
    expect_cell(bench, 0, "mean_us", "5");
    expect_cell(bench, 0, "stddev_us", "0");
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_machines_state_is_recorded(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_number(bench, 0, "sm_mhz", 1980);
    expect_number(bench, 0, "mem_mhz", 2619);
    expect_number(bench, 0, "temperature_c", 41);
    expect_number(bench, 0, "power_w", 123.5);
    expect_cell(bench, 0, "energy_mj", "");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- when a case has enough ---- */

static void it_stops_when_precise(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--min-samples", "6", "--max-time", "2");
    diarist d = {0};
    (void)state;
    script.pause_ns = 1000000;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "stop=precision");
    expect_no_flag(bench, 0, "imprecise");
    assert_true(value_of(bench, 0, "samples") >= 6);
    assert_int_equal(gpubench_close(bench), 0);
}

static void it_stops_at_max_samples(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(eleven, "--max-samples", "9", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_number(bench, 0, "samples", 9);
    expect_flag(bench, 0, "stop=max-samples imprecise");
    assert_int_equal(gpubench_close(bench), 0);
}

static void it_stops_at_max_time(void **state)
{
    double noisy[1000];
    gpubench *bench;
    diarist d = {0};
    size_t i;
    (void)state;
    for (i = 0; i < 1000; i++)
        noisy[i] = i % 2 ? 1 : 100;
    bench = OPEN_SCRIPTED(noisy, "--max-time", "0.05");
    script.pause_ns = 1000000; /* so that 100,000 samples cannot come first */
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "stop=max-time imprecise");
    assert_true(value_of(bench, 0, "samples") <= 60);
    assert_int_equal(gpubench_close(bench), 0);
}

static void fewer_than_six_samples_are_never_precise(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "5", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "imprecise");
    assert_int_equal(gpubench_close(bench), 0);
}

/* More than the default maximum, asked for by name, is not cut in silence. */
static void min_samples_may_exceed_the_default_maximum(void **state)
{
    gpubench *bench = OPEN("--min-samples", "200000");
    (void)state;
    assert_int_equal(bench->settings.min_samples, 200000);
    assert_true(bench->settings.max_samples >= 200000);
    gpubench_close(bench);
    bench = OPEN("--max-samples", "4"); /* below the default minimum */
    assert_int_equal(bench->settings.max_samples, 4);
    assert_true(bench->settings.min_samples <= 4);
    gpubench_close(bench);
}

static void warm_up_that_never_settles_is_marked(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--max-time", "0.05");
    diarist d = {0};
    (void)state;
    script.drift = 1;
    script.pause_ns = 1000000; /* windows of ten samples: each median is 10 us above the last */
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "unsteady");
    assert_int_equal(gpubench_close(bench), 0);
}

static void warm_up_has_at_least_what_was_asked(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--warmup", "3000",
                                    "--max-time", "1");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    assert_true(value_of(bench, 0, "warmup") >= 3000);
    expect_no_flag(bench, 0, "unsteady");
    assert_int_equal(gpubench_close(bench), 0);
}

/* 1.5 ms of work between two looks at the clock. */
static void hot_batches_are_long_enough(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--mode", "hot", "--max-samples", "6");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    assert_true(value_of(bench, 0, "batch") * 5 >= 1000 || value_of(bench, 0, "batch") >= 256);
    expect_number(bench, 0, "median_us", 5); /* of one run */
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- warnings ---- */

static const char *flags_of(gpubench *bench, uint64_t bytes, double peak)
{
    static char flags[512];
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("scripted", &d);
    one.bytes = bytes;
    one.peak_gb_per_s = peak;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    snprintf(flags, sizeof flags, "%s", gpubench_value(bench, 0, "flags"));
    assert_int_equal(gpubench_close(bench), 0);
    return flags;
}

static void doubtful_rows_are_marked(void **state)
{
    static const double short_time[] = {1.5}; /* the overhead is 1 */
    const char *flags;
    (void)state;
    flags = flags_of(OPEN_SCRIPTED(short_time, "--max-samples", "6"), 0, 0);
    support_expect_text(flags, "near-overhead");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 1000, 0);
    support_expect_text(flags, "fits-l2"); /* of 1000 bytes */
    support_expect_no_text(flags, "near-overhead");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 6000, 1);
    support_expect_text(flags, "above-peak"); /* 1.2 GB/s of 1 */
    support_expect_no_text(flags, "fits-l2");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 6000, 1.3);
    support_expect_no_text(flags, "above-peak");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 6000, -1);
    support_expect_no_text(flags, "above-peak");
}

/* 6000 bytes and 1000 operations in 5 us: 1.2 GB/s and 0.0002 TFLOP/s. The larger of the
 * two shares is meant; above the ceilings there is none. */
static void measured_peaks_are_shares(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6");
    gpubench_case one;
    gpb_item item;
    gpb_live live;
    (void)state;
    one = gpubench_case_init("known", diary_run, NULL);
    one.dtype = "";
    memset(&item, 0, sizeof item);
    memset(&live, 0, sizeof live);
    one.dtype = "";
    item.one = one, live.item = &item, live.bytes = 6000, live.flops = 1000;
    assert_true(gpb_share_of_peak(bench, &live, 5) == 0); /* nobody knows */
    gpubench_measured_peaks(bench, 2.4, 0.0008);
    assert_true(fabs(gpb_share_of_peak(bench, &live, 5) - 0.5) < 1e-12);
    gpubench_measured_peaks(bench, 2.4, 0.00025);
    assert_true(fabs(gpb_share_of_peak(bench, &live, 5) - 0.8) < 1e-12);
    gpubench_measured_peaks(bench, 1, 0.00025);
    assert_true(gpb_share_of_peak(bench, &live, 5) == 0);
    assert_int_equal(gpubench_close(bench), 2);
}

/* A clock that steps by half a microsecond knows five of them to a quarter. */
static void a_coarse_clock_widens_the_interval(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "40", "--max-time", "100");
    diarist d = {0};
    (void)state;
    script.clock_step = 0.5;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_number(bench, 0, "median_us", 5);
    expect_number(bench, 0, "ci95_low_us", 4.75);
    expect_number(bench, 0, "ci95_high_us", 5.25);
    expect_flag(bench, 0, "coarse-clock");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- energy ---- */

static void energy_is_in_the_row(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--energy");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_number(bench, 0, "energy_mj", 0.5);
    expect_cell(bench, 0, "mode", "cold");
    expect_number(bench, 0, "batch", 1);
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_failure_while_measuring_energy_fails_the_case(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--energy");
    diarist d = {0};
    (void)state;
    script.energy_fails = 1;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, "measuring_the_energy");
    assert_int_equal(gpubench_close(bench), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(a_life_is_setup_pairs_verify_teardown),
        ENGINE_TEST(a_case_may_have_nothing_but_run),
        ENGINE_TEST(teardown_follows_a_half_done_setup),
        ENGINE_TEST(hot_mode_resets_before_a_batch),
        ENGINE_TEST(groups_interleave),
        ENGINE_TEST(single_cases_do_not_interleave),
        ENGINE_TEST(a_failure_in_a_group_spares_the_others),
        ENGINE_TEST(strings_are_copied),
        ENGINE_TEST(what_is_queued_after_a_run_is_measured_too),
        ENGINE_TEST(a_run_function_is_needed),
        ENGINE_TEST(a_refused_handle_measures_nothing),
        ENGINE_TEST(a_program_may_refuse_its_command_line),
        ENGINE_TEST(a_mode_that_no_case_has_is_refused),
        ENGINE_TEST(each_mode_is_a_row),
        ENGINE_TEST(a_case_chooses_its_modes),
        ENGINE_TEST(a_row_describes_its_samples),
        ENGINE_TEST(equal_samples_have_no_spread),
        ENGINE_TEST(the_machines_state_is_recorded),
        ENGINE_TEST(it_stops_when_precise),
        ENGINE_TEST(it_stops_at_max_samples),
        ENGINE_TEST(it_stops_at_max_time),
        ENGINE_TEST(fewer_than_six_samples_are_never_precise),
        ENGINE_TEST(min_samples_may_exceed_the_default_maximum),
        ENGINE_TEST(warm_up_that_never_settles_is_marked),
        ENGINE_TEST(warm_up_has_at_least_what_was_asked),
        ENGINE_TEST(hot_batches_are_long_enough),
        ENGINE_TEST(doubtful_rows_are_marked),
        ENGINE_TEST(measured_peaks_are_shares),
        ENGINE_TEST(a_coarse_clock_widens_the_interval),
        ENGINE_TEST(energy_is_in_the_row),
        ENGINE_TEST(a_failure_while_measuring_energy_fails_the_case),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("engine", tests, NULL, NULL));
}
