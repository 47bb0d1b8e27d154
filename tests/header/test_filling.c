/* From what was measured to the fields of a row, with measurements made by hand. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

/* A case on the host that took 100 us a run, 5,000 bytes and 40,000 operations. */
static gpubench bench;
static gpb_item item;
static gpb_live live;
static gpb_row row;

static int make_case(void **state)
{
    (void)state;
    memset(&bench, 0, sizeof bench);
    memset(&item, 0, sizeof item);
    memset(&live, 0, sizeof live);
    memset(&row, 0, sizeof row);
    bench.backend = gpb_find_backend("cpu");
    bench.suite = (char *)(uintptr_t) "mine";
    bench.settings.quiet = 1;
    bench.settings.precision = 0.005;
    bench.run = 3;
    strcpy(bench.campaign, "monday");
    item.one.name = "copy";
    item.one.variant = "plain";
    item.one.dtype = "f32";
    item.one.params = "n=1";
    item.key = (char *)(uintptr_t) "copy plain f32 n=1";
    live.item = &item;
    live.mode = GPUBENCH_HOT;
    live.batch = 4;
    live.warmup = 7;
    live.bytes = 5000;
    live.flops = 40000;
    return 0;
}

static int free_row(void **state)
{
    (void)state;
    gpb_free_row(&row);
    return 0;
}

static void expect_field(const char *column, const char *wanted)
{
    int i;
    for (i = 0; i < GPB_COLUMN_COUNT; i++)
        if (!strcmp(gpb_column_names[i], column)) {
            if (strcmp(gpb_text(&row, i), wanted))
                fail_msg("%s is '%s' and not '%s'", column, gpb_text(&row, i), wanted);
            return;
        }
    fail_msg("no column '%s'", column);
}

/* Pairs of a column and what it holds. */
static void expect_fields(const char *const pairs[][2])
{
    for (; (*pairs)[0]; pairs++)
        expect_field((*pairs)[0], (*pairs)[1]);
}

static void a_row_says_whose_it_is(void **state)
{
    static const char *const wanted[][2] = {
        {"schema", "2"},        {"suite", "mine"}, {"case", "copy"},  {"variant", "plain"},
        {"backend", "cpu"},     {"dtype", "f32"},  {"params", "n=1"}, {"mode", "hot"},
        {"campaign", "monday"}, {"run", "3"},      {"status", "ok"},  {"flags", ""},
        {"runs_on", ""},        {NULL, NULL}};
    (void)state;
    gpb_fill_identity(&bench, &live, &row);
    expect_fields(wanted);
    live.status = "failed";
    strcpy(live.flags, "one two");
    item.one.runs_on = "two cores";
    gpb_fill_identity(&bench, &live, &row);
    expect_field("status", "failed");
    expect_field("flags", "one two");
    expect_field("runs_on", "two cores");
}

/* Precision is in percent, as on the command line; streams are told where they are other. */
static void settings_are_told_as_they_are_given(void **state)
{
    (void)state;
    bench.settings.max_time_s = 0.25;
    bench.settings.min_samples = 30;
    bench.settings.max_samples = 1000;
    bench.settings.warmup = 2;
    bench.settings.streams = GPB_STREAMS;
    gpb_fill_settings(&bench, &row);
    expect_field("settings",
                 "precision=0.5 max-time=0.25 min-samples=30 max-samples=1000 warmup=2");
    bench.settings.streams = 1;
    gpb_fill_settings(&bench, &row);
    expect_field("settings",
                 "precision=0.5 max-time=0.25 min-samples=30 max-samples=1000 warmup=2 streams=1");
}

static void a_machine_is_told_as_far_as_it_is_known(void **state)
{
    static const char *const known[][2] = {{"device", "H200"},
                                           {"uuid", "GPU-1"},
                                           {"pci", "0000:01:00.0"},
                                           {"compute_capability", "9.0"},
                                           {"sm_count", "1"},
                                           {"l2_bytes", "1"},
                                           {"memory_bytes", "12"},
                                           {"power_limit_w", "0.5"},
                                           {"driver", "580"},
                                           {"cuda_runtime", "13.0"},
                                           {"cpu", "Xeon"},
                                           {"seed", "11"},
                                           {"gpubench_version", GPUBENCH_VERSION},
                                           {"compiler", GPUBENCH_COMPILER},
                                           {"git", GPUBENCH_GIT},
                                           {NULL, NULL}};
    static const char *const unknown[][2] = {
        {"device", ""},   {"uuid", ""},          {"sm_count", ""},
        {"l2_bytes", ""}, {"memory_bytes", "0"}, {"power_limit_w", ""},
        {"driver", ""},   {"cpu", ""},           {NULL, NULL}};
    gpb_machine *machine = &bench.machine;
    const char *timestamp;
    (void)state;
    gpb_fill_machine(&bench, &row);
    expect_fields(unknown);
    strcpy(machine->device, "H200");
    strcpy(machine->uuid, "GPU-1");
    strcpy(machine->pci, "0000:01:00.0");
    strcpy(machine->compute_capability, "9.0");
    strcpy(machine->driver, "580");
    strcpy(machine->cuda_runtime, "13.0");
    strcpy(machine->cpu, "Xeon");
    machine->sm_count = 1;
    machine->l2_bytes = 1;
    machine->memory_bytes = 12;
    machine->power_limit_w = 0.5;
    bench.settings.seed = 11;
    gpb_fill_machine(&bench, &row);
    expect_fields(known);
    timestamp = gpb_text(&row, GPB_COLUMN_timestamp);
    assert_int_equal(strlen(timestamp), strlen("2026-01-01T00:00:00Z"));
    assert_true(timestamp[4] == '-' && timestamp[10] == 'T' && timestamp[19] == 'Z');
}

/* The interval is wider by half a step of the clock over a batch, and ends at 0. */
static void times_stand_in_their_columns(void **state)
{
    static const char *const wanted[][2] = {
        {"samples", "9"},     {"batch", "4"},           {"warmup", "7"},
        {"min_us", "1"},      {"p5_us", "2"},           {"p25_us", "3"},
        {"median_us", "4"},   {"p75_us", "5"},          {"p95_us", "6"},
        {"p99_us", "7"},      {"max_us", "8"},          {"mean_us", "4.5"},
        {"stddev_us", "0.5"}, {"ci95_low_us", "3.375"}, {"ci95_high_us", "4.625"},
        {"overhead_us", ""},  {"events_us", ""},        {"host_us", ""},
        {NULL, NULL}};
    gpubench_statistics statistics;
    (void)state;
    memset(&statistics, 0, sizeof statistics);
    statistics.count = 9;
    statistics.min = 1;
    statistics.p5 = 2;
    statistics.p25 = 3;
    statistics.median = 4;
    statistics.p75 = 5;
    statistics.p95 = 6;
    statistics.p99 = 7;
    statistics.max = 8;
    statistics.mean = 4.5;
    statistics.stddev = 0.5;
    statistics.ci95_low = 3.5;
    statistics.ci95_high = 4.5;
    bench.clock_step_us = 1; /* half of it over a batch of 4 is 0.125 */
    bench.overhead_us[GPUBENCH_COLD] = bench.nothing_us[GPUBENCH_COLD] = 9; /* another mode's */
    gpb_fill_times(&bench, &live, &statistics, &row);
    expect_fields(wanted);
    bench.clock_step_us = 40;
    bench.overhead_us[GPUBENCH_HOT] = 0.5;
    bench.nothing_us[GPUBENCH_HOT] = 0.25;
    live.host_us = 1.23456;
    gpb_fill_times(&bench, &live, &statistics, &row);
    expect_field("ci95_low_us", "0");
    expect_field("ci95_high_us", "9.5");
    expect_field("overhead_us", "0.5");
    expect_field("events_us", "0.25");
    expect_field("host_us", "1.235");
}

/* 5,000 bytes in 100 us are 0.05 GB/s, 40,000 operations 0.0004 TFLOP/s: of peaks of 0.1 and
 * 0.0005 that is 50 and 80 %. */
static void work_is_over_the_median(void **state)
{
    static const char *const wanted[][2] = {
        {"bytes", "5000"}, {"flops", "40000"}, {"gb_per_s", "0.05"},  {"tflop_per_s", "0.0004"},
        {"max_error", ""}, {"tolerance", ""},  {"device_bytes", "0"}, {NULL, NULL}};
    static const char *const none[][2] = {
        {"bytes", ""},      {"flops", ""},         {"gb_per_s", ""},       {"tflop_per_s", ""},
        {"max_error", "0"}, {"tolerance", "0.25"}, {"device_bytes", "64"}, {NULL, NULL}};
    static const char *const least[][2] = {{"bytes", "1"},
                                           {"flops", "1"},
                                           {"gb_per_s", "0.001"},
                                           {"tflop_per_s", "1e-06"},
                                           {NULL, NULL}};
    (void)state;
    bench.machine.measured_gb_per_s = 0.1;
    bench.machine.measured_tflop_per_s = 0.0005;
    gpb_fill_work(&bench, &live, 100, &row);
    expect_fields(wanted);
    assert_true(gpb_number(&row, GPB_COLUMN_share_of_peak) > 0.7999999 &&
                gpb_number(&row, GPB_COLUMN_share_of_peak) < 0.8000001);
    gpb_free_row(&row);
    memset(&row, 0, sizeof row);
    live.bytes = live.flops = 0;
    live.checked = 1;
    live.tolerance = 0.25;
    live.device_bytes = 64;
    gpb_fill_work(&bench, &live, 100, &row);
    expect_fields(none);
    live.bytes = live.flops = 1;
    gpb_fill_work(&bench, &live, 1, &row);
    expect_fields(least);
}

static void counters_and_rates(void **state)
{
    (void)state;
    gpb_fill_counters(&bench, &live, 100, &row);
    expect_field("counters", "");
    live.counter_count = 3;
    strcpy(live.counters[0].name, "steps");
    live.counters[0].value = 17;
    strcpy(live.counters[1].name, "tokens");
    live.counters[1].value = 3;
    live.counters[1].is_rate = 1;
    strcpy(live.counters[2].name, "longest");
    live.counters[2].value = -2.2250738585072014e-308; /* no number takes more characters */
    gpb_fill_counters(&bench, &live, 100, &row);
    expect_field("counters", "steps=17 tokens/s=30000 longest=-2.2250738585072014e-308");
}

/* What the device did not say has no number. */
static void the_state_is_told_as_far_as_it_is_known(void **state)
{
    static const char *const wanted[][2] = {{"sm_mhz", "1980"},       {"mem_mhz", ""},
                                            {"temperature_c", "0.5"}, {"power_w", ""},
                                            {"energy_mj", "4"},       {NULL, NULL}};
    (void)state;
    live.sm_mhz = 1980;
    live.temperature_c = 0.5;
    live.power_w = -1;
    live.energy_mj = 4;
    gpb_fill_state(&live, &row);
    expect_fields(wanted);
}

static void expect_warnings(double median_us, const char *wanted)
{
    live.flags[0] = '\0';
    gpb_add_warnings(&bench, &live, median_us);
    if (strcmp(live.flags, wanted))
        fail_msg("at %g us: '%s' and not '%s'", median_us, live.flags, wanted);
}

/* Each at its limit and beyond it. */
static void warnings_begin_beyond_their_limits(void **state)
{
    (void)state;
    expect_warnings(100, "");
    bench.overhead_us[GPUBENCH_HOT] = 50;
    expect_warnings(100, "");
    expect_warnings(99.99, "near-overhead");
    bench.overhead_us[GPUBENCH_HOT] = 0;
    live.enqueue_us = 40;
    expect_warnings(20, "");
    expect_warnings(19.99, "host-bound");
    live.enqueue_us = 12;
    expect_warnings(2, ""); /* more than twice, but by no more than 10 us */
    expect_warnings(1.99, "host-bound");
    live.enqueue_us = 0;
    bench.settings.precision = 0.5;
    bench.clock_step_us = 8; /* over a batch of 4: 2 us, of 4 us the half */
    expect_warnings(4, "");
    expect_warnings(3.99, "coarse-clock");
    bench.clock_step_us = 0;
    bench.machine.l2_bytes = 5000;
    expect_warnings(100, "fits-l2");
    bench.machine.l2_bytes = 4999;
    expect_warnings(100, "");
    live.bytes = 0;
    expect_warnings(100, "");
    live.bytes = 5000;
    item.one.peak_gb_per_s = 0.05; /* which 5,000 bytes in 100 us are */
    live.flops = 0;
    expect_warnings(100, "");
    expect_warnings(99, "above-peak");
}

/* With a batch of 4 a step of 8 us is 2 us of a run: what agrees with it to a thousandth, or
 * takes no time at all, has none. */
static void what_is_shorter_than_a_step_has_no_time(void **state)
{
    (void)state;
    bench.clock_step_us = 8;
    gpb_refuse_below_step(&bench, &live, 1.999);
    assert_null(live.status);
    gpb_refuse_below_step(&bench, &live, 1.9979);
    assert_string_equal(live.status, "failed");
    assert_string_equal(live.reason, "shorter than the clock's step of 8 us");
    live.status = NULL;
    live.mode = GPUBENCH_COLD;
    bench.clock_step_us = 0;
    gpb_refuse_below_step(&bench, &live, 0);
    assert_string_equal(live.reason, "shorter than the clock's step of 0 us: mode hot can time it");
    live.status = "oom"; /* it has failed before, and stays so */
    gpb_refuse_below_step(&bench, &live, 0);
    assert_string_equal(live.status, "oom");
}

static const char *status_at(double median_us, uint64_t bytes, uint64_t flops)
{
    live.status = NULL;
    live.bytes = bytes;
    live.flops = flops;
    gpb_refuse_discarded(&bench, &live, median_us);
    return live.status ? live.status : "ok";
}

static int sample_of_its_own(void *context, unsigned mode, uint64_t batch, double *us)
{
    (void)context;
    (void)mode;
    (void)batch;
    *us = 1;
    return 0;
}

/* Up to 4 TB/s and 40 TFLOP/s in less than a microsecond on the host. */
static void what_no_core_can_do_was_not_done(void **state)
{
    (void)state;
    assert_string_equal(status_at(0.5, 2000000, 20000000), "ok");
    assert_string_equal(status_at(0.5, 2000001, 0), "failed");
    assert_string_equal(live.reason, "did less than it says: 500 ns for 2e+06 bytes and 0 "
                                     "operations; hand the result to gpubench_keep");
    assert_string_equal(status_at(0.5, 0, 20000001), "failed");
    assert_string_equal(status_at(1, 999000000, 999000000), "ok");
    item.one.sample = sample_of_its_own;
    assert_string_equal(status_at(0.5, 2000001, 0), "ok");
    item.one.sample = NULL;
    live.status = "oom";
    gpb_refuse_discarded(&bench, &live, 0.5);
    assert_string_equal(live.status, "oom");
}

static void failures_are_described(void **state)
{
    static const struct {
        const char *status;
        int is_failure;
    } kinds[] = {{"failed", 1},      {"mismatch", 1}, {"oom", 1},
                 {"unsupported", 0}, {"skipped", 0},  {"ok", 0}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        live.flags[0] = '\0';
        bench.failed = 0;
        live.status = kinds[i].status;
        strcpy(live.reason, "so it is");
        gpb_describe_failure(&bench, &live);
        assert_int_equal(bench.failed, kinds[i].is_failure);
        assert_string_equal(live.flags, "reason=so_it_is");
    }
    live.flags[0] = '\0';
    live.needed_bytes = 1;
    live.free_bytes = 12;
    gpb_describe_failure(&bench, &live);
    assert_string_equal(live.flags, "needed_bytes=1 free_bytes=12 reason=so_it_is");
    bench.failed = 1; /* and stays so behind what is none */
    live.status = "skipped";
    gpb_describe_failure(&bench, &live);
    assert_int_equal(bench.failed, 1);
}

/* Forty samples that rise, or fall, by steps between two levels. */
static void a_drift_is_told_with_its_sign(void **state)
{
    static double samples[40];
    size_t i;
    (void)state;
    live.samples = samples;
    live.count = 40;
    for (i = 0; i < 40; i++)
        samples[i] = i < 20 ? 100 : 112.34;
    gpb_flag_drift(&live);
    assert_string_equal(live.flags, "drift=+12.3%");
    live.flags[0] = '\0';
    for (i = 0; i < 40; i++)
        samples[i] = i < 20 ? 100 : 98.76;
    gpb_flag_drift(&live);
    assert_string_equal(live.flags, "drift=-1.2%");
    live.flags[0] = '\0';
    for (i = 0; i < 40; i++)
        samples[i] = 100;
    gpb_flag_drift(&live);
    assert_string_equal(live.flags, "");
}

/* Rows of a handle are empty at first, and stay where they are found by number. */
static void rows_begin_empty(void **state)
{
    size_t i;
    int column;
    (void)state;
    for (i = 0; i < 9; i++) {
        gpb_row *made = gpb_new_row(&bench);
        assert_ptr_equal(made, &bench.rows[i]);
        for (column = 0; column < GPB_COLUMN_COUNT; column++)
            assert_null(made->fields[column]);
        gpb_set_count(made, GPB_COLUMN_run, i);
    }
    assert_int_equal(bench.row_count, 9);
    for (i = 0; i < 9; i++) {
        assert_true(gpb_number(&bench.rows[i], GPB_COLUMN_run) == (double)i);
        gpb_free_row(&bench.rows[i]);
    }
    free(bench.rows);
}

#define OF_A_CASE(test) cmocka_unit_test_setup_teardown(test, make_case, free_row)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        OF_A_CASE(a_row_says_whose_it_is),
        OF_A_CASE(settings_are_told_as_they_are_given),
        OF_A_CASE(a_machine_is_told_as_far_as_it_is_known),
        OF_A_CASE(times_stand_in_their_columns),
        OF_A_CASE(work_is_over_the_median),
        OF_A_CASE(counters_and_rates),
        OF_A_CASE(the_state_is_told_as_far_as_it_is_known),
        OF_A_CASE(warnings_begin_beyond_their_limits),
        OF_A_CASE(what_is_shorter_than_a_step_has_no_time),
        OF_A_CASE(what_no_core_can_do_was_not_done),
        OF_A_CASE(failures_are_described),
        OF_A_CASE(a_drift_is_told_with_its_sign),
        OF_A_CASE(rows_begin_empty),
    };
    support_start(argv[0]);
    (void)argc;
    return support_stop(cmocka_run_group_tests_name("rows from measurements", tests, NULL, NULL));
}
