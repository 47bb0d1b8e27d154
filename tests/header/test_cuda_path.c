/* The CUDA path of gpubench.h on the substitute runtime in fake_cuda/, whose
 * times are simulated: what is right is known to the nanosecond. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "cuda_probe.h"

/* ---- what is healthy ---- */

static void a_kernel_is_timed_by_events(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_cell(bench, row, "backend", "cuda");
    expect_cell(bench, row, "mode", "cold");
    expect_number(bench, row, "min_us", 10 + FAKE_EVENT_US);
    expect_number(bench, row, "median_us", 10 + FAKE_EVENT_US);
    expect_number(bench, row, "max_us", 10 + FAKE_EVENT_US);
    expect_cell(bench, row, "stddev_us", "0");
    expect_number(bench, row, "overhead_us", FAKE_EMPTY_KERNEL_US + FAKE_EVENT_US);
    expect_no_flag(bench, row, "ungated");
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_device_is_described(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "device", "Fake GPU 0");
    expect_cell(bench, row, "uuid", UUID_0);
    expect_cell(bench, row, "compute_capability", "9.0");
    expect_cell(bench, row, "sm_count", "132");
    expect_cell(bench, row, "l2_bytes", "1048576");
    expect_cell(bench, row, "memory_bytes", "1073741824");
    expect_cell(bench, row, "cuda_runtime", "13.0");
    assert_true(*gpubench_value(bench, row, "cpu") != '\0');
    assert_int_equal(gpubench_is_cuda(bench), 1);
    assert_int_equal(gpubench_compute_capability(bench), 90);
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_method_is_described(void **state)
{
    gpubench *bench = OPEN("--max-time", "0.05", "--max-samples", "20", "--warmup", "1",
                           "--min-samples", "7", "--precision", "2.5");
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "schema", "2");
    expect_cell(bench, row, "pci", "0000:01:00.0");
    expect_cell(bench, row, "settings",
                "precision=2.5 max-time=0.05 min-samples=7 max-samples=20 warmup=1");
    expect_number(bench, row, "events_us", FAKE_EVENT_US);
    assert_int_equal(gpubench_close(bench), 0);
}

static void flush_and_reset_are_not_timed(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,graph,dirty");
    probe p = {.act = LAUNCH};
    gpubench_case one = gpubench_case_init("reset", run, &p);
    size_t row;
    (void)state;
    one.reset = reset; /* a millisecond */
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    for (row = 0; row < 3; row++)
        expect_number(bench, row, "max_us", 10 + FAKE_EVENT_US);
    expect_cell(bench, 2, "mode", "dirty");
    assert_int_equal(gpubench_close(bench), 0);
}

/* Without --mode, on a GPU: cold, however few the bytes, or what the case allows. */
static void a_case_can_have_one_mode_only(void **state)
{
    static const unsigned modes[] = {GPUBENCH_HOT, GPUBENCH_GRAPH, 0};
    static const char *const names[] = {"hot", "graph", "cold"};
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        gpubench *bench = OPEN(QUICK);
        probe p = {.act = LAUNCH};
        gpubench_case one = gpubench_case_init("ten", run, &p);
        one.modes = modes[i];
        one.bytes = 8;
        gpubench_measure(bench, &one);
        gpubench_run(bench);
        expect_cell(bench, 0, "status", "ok");
        expect_cell(bench, 0, "mode", names[i]);
        assert_int_equal(gpubench_close(bench), 0);
    }
}

/* What two events cost must stay under 0.1 % of a batch. */
static void hot_mode_divides_a_long_batch(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    double batch = value_of(bench, row, "batch");
    (void)state;
    assert_true(batch * 10 * 0.001 >= FAKE_EVENT_US);
    expect_number(bench, row, "median_us", (10 * batch + FAKE_EVENT_US) / batch);
    assert_int_equal(gpubench_close(bench), 0);
}

/* One run in front of the batch, so that the first timed one finds warm caches. */
static void hot_mode_runs_once_in_front_of_a_batch(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    probe p = {.act = LAUNCH};
    gpubench_case one = gpubench_case_init("reset", run, &p);
    double batch;
    (void)state;
    one.reset = reset;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    batch = value_of(bench, 0, "batch");
    assert_true((double)p.most_since_reset == batch + 1);
    expect_number(bench, 0, "median_us", (10 * batch + FAKE_EVENT_US) / batch);
    assert_int_equal(gpubench_close(bench), 0);
}

static void graph_mode_replays_what_was_captured(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "graph");
    probe p = {.act = FILL, .bytes = BUFFER_BYTES};
    size_t row = measure(bench, "fill", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok"); /* verified after replaying alone */
    expect_cell(bench, row, "mode", "graph");
    expect_number(bench, row, "median_us", 3.254); /* 2 + 0.004096 + 1.25, to the nanosecond */
    assert_int_equal(gpubench_close(bench), 0);
}

static void memory_of_every_kind_works(void **state)
{
    static const int kinds[] = {GPUBENCH_DEVICE, GPUBENCH_PINNED, GPUBENCH_PAGEABLE};
    static const char *const names[] = {"device", "pinned", "pageable"};
    gpubench *bench = OPEN(QUICK);
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        probe p = {.act = FILL, .bytes = BUFFER_BYTES, .kind = kinds[i]};
        size_t row = measure(bench, names[i], &p);
        expect_cell(bench, row, "status", "ok");
        assert_true(i == 0 ? value_of(bench, row, "device_bytes") >= BUFFER_BYTES
                           : value_of(bench, row, "device_bytes") == 0);
    }
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_cases_own_device_memory_is_counted(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH, .own_bytes = 1 << 20};
    size_t row = measure(bench, "own", &p);
    (void)state;
    assert_true(value_of(bench, row, "device_bytes") >= 1 << 20);
    assert_int_equal(gpubench_close(bench), 0);
}

static void without_an_empty_kernel_there_is_no_overhead(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot,dirty");
    probe p = {.act = LAUNCH};
    size_t row;
    (void)state;
    fake_cuda.no_driver_functions = 1;
    measure(bench, "ten", &p);
    expect_row_failed(bench, 0, "unsupported", "--mode_dirty"); /* nothing can sweep */
    for (row = 1; row < 3; row++) {
        expect_cell(bench, row, "status", "ok");
        expect_cell(bench, row, "overhead_us", "");
    }
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_cpu_can_be_measured_too(void **state)
{
    gpubench *bench = OPEN(QUICK, "--device", "cpu");
    probe p = {.act = LAUNCH_NOTHING, .names_default = 1};
    size_t row;
    (void)state;
    fake_cuda.count_error = cudaErrorNoDevice;
    row = measure(bench, "nothing", &p);
    expect_cell(bench, row, "status", "ok");
    expect_cell(bench, row, "backend", "cpu");
    expect_no_flag(bench, row, "own-stream");
    assert_int_equal(gpubench_is_cuda(bench), 0);
    p.act = RETURN_7;
    row = measure(bench, "seven", &p);
    expect_row_failed(bench, row, "failed", "or_of_CUDA's_cudaErrorProfilerAlreadyStarted");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- power ---- */

/* Ten microseconds at 500 W are 5 mJ; the reset's millisecond is not the run's.
 * The counter steps by a tenth of a second of two. */
static void energy_is_that_of_the_runs(void **state)
{
    gpubench *bench;
    probe p = {.act = LAUNCH};
    gpubench_case one = gpubench_case_init("energetic", run, &p);
    (void)state;
    fake_nvml.present = 1;
    fake_nvml.watts = 500;
    bench = OPEN(QUICK, "--energy");
    one.reset = reset;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    assert_true(value_of(bench, 0, "energy_mj") > 4.75);
    assert_true(value_of(bench, 0, "energy_mj") < 5.25);
    assert_int_equal(gpubench_close(bench), 0);
}

static void without_an_energy_counter_that_is_said(void **state)
{
    gpubench *bench = OPEN(QUICK, "--energy");
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_cell(bench, row, "energy_mj", "");
    expect_flag(bench, row, "no-energy-counter");
    assert_int_equal(gpubench_close(bench), 0);
}

/* Warm-up executions of a case of which nothing is sampled longer than it must be. */
static double warmed_up_in(const char *mode, enum act act, unsigned watts)
{
    gpubench *bench;
    probe p = {.act = act};
    size_t row;
    double warmup;
    fake_nvml.present = 1;
    fake_nvml.watts_now = watts;
    bench = OPEN(QUICK, "--mode", mode);
    row = measure(bench, "warmed", &p);
    expect_cell(bench, row, "status", "ok");
    expect_number(bench, row, "power_limit_w", 700);
    warmup = value_of(bench, row, "warmup");
    assert_int_equal(gpubench_close(bench), 0);
    return warmup;
}

static double warmed_up(enum act act, unsigned watts)
{
    return warmed_up_in("cold", act, watts);
}

/* A case near the power cap runs for two seconds before it is sampled, one far
 * from it does not, nor one of microseconds, whose power no look would see. */
static void a_load_at_the_power_cap_is_warmed_up_for_seconds(void **state)
{
    double calm = warmed_up(LAUNCH_LONG, 300);
    double least = INFINITY, most = 0.0;
    (void)state;
    assert_true(warmed_up(LAUNCH_LONG, FAKE_HOT_WATTS) > 4 * calm);
    /* How many of these fit into the shortest warm-up differs where the host is busy: two
     * seconds' worth would show in each. */
    for (int i = 0; i < 3; i++) {
        least = fmin(least, warmed_up(LAUNCH, FAKE_HOT_WATTS));
        most = fmax(most, warmed_up(LAUNCH, 300));
    }
    assert_true(least < 4 * most);
}

/* By the first of the cases, where it is another program's. */
static void a_load_that_never_ends_is_waited_for_once(void **state)
{
    static const unsigned watts[] = {300, FAKE_HOT_WATTS};
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench *bench;
        probe p = {.act = LAUNCH};
        fake_nvml.present = 1;
        fake_nvml.watts_now = watts[i];
        bench = OPEN(QUICK);
        expect_cell(bench, measure(bench, "ten", &p), "status", "ok");
        assert_int_equal(bench->is_never_calm, i);
        assert_int_equal(gpubench_close(bench), 0);
    }
}

/* A batch of hot runs is a load without a rest, too. */
static void a_long_batch_is_looked_at_as_a_long_run(void **state)
{
    (void)state;
    assert_true(warmed_up_in("hot", LAUNCH, FAKE_HOT_WATTS) > 4 * warmed_up_in("hot", LAUNCH, 300));
}

static double now_s(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void what_ran_before_is_waited_out(void **state)
{
    double calm = warmed_up(LAUNCH_LONG, 300);
    (void)state;
    fake_nvml.hot_until_s = now_s() + 0.7;
    assert_true(warmed_up(LAUNCH_LONG, 300) < 2 * calm);
    fake_nvml.hot_until_s = 0;
}

/* The sensor follows the load in tenths of a second: here after 12 runs, where 10 ms, which
 * are enough otherwise, are over after 10 at most. */
static void power_that_shows_late_is_seen(void **state)
{
    double calm = warmed_up(LAUNCH_LONG, 300);
    (void)state;
    fake_nvml.hot_after_us = 12 * 2000;
    assert_true(warmed_up(LAUNCH_LONG, 300) > 4 * calm);
    fake_nvml.hot_after_us = 0;
}

/* Cold before the case, cold behind the first window, hot behind the second, whose times agree
 * with the first's: one more look must tell whether that is the load. */
static void one_hot_look_is_not_the_last(void **state)
{
    double calm = warmed_up(LAUNCH_LONG, 300);
    (void)state;
    fake_nvml.hot_from_read = fake_nvml.reads + 5; /* twice each time */
    assert_true(warmed_up(LAUNCH_LONG, 300) > 4 * calm);
    fake_nvml.hot_from_read = 0;
}

/* ---- memory ---- */

static void too_much_memory_is_oom(void **state)
{
    static const size_t sizes[] = {(size_t)1 << 40, SIZE_MAX, SIZE_MAX - 1024, (size_t)1 << 63};
    static const char *const flags[] = {"needed_bytes=1099511627776 free_bytes=",
                                        "needed_bytes=18446744073709551615 free_bytes=",
                                        "needed_bytes=18446744073709550591 free_bytes=",
                                        "needed_bytes=9223372036854775808 free_bytes="};
    size_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        gpubench *bench = OPEN(QUICK);
        probe p = {.act = FILL, .bytes = sizes[i]};
        expect_row_failed(bench, measure(bench, "huge", &p), "oom", flags[i]);
        expect_next_is_measured(bench);
        assert_int_equal(gpubench_close(bench), 1);
    }
}

/* An allocation may fail for another reason, and that reason has a name. */
static void a_failed_allocation_is_not_always_oom(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = FILL, .bytes = BUFFER_BYTES, .malloc_error = cudaErrorInvalidValue};
    (void)state;
    expect_row_failed(bench, measure(bench, "refused", &p), "failed", "cudaErrorInvalidValue");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- outputs that cases share, or that the framework did not allocate ---- */

static probe *lender;

static int borrow(void *context, gpubench *bench)
{
    probe *p = (probe *)context;
    (void)bench;
    p->bytes = lender->bytes;
    p->output = lender->output;
    return GPUBENCH_OK;
}

static int register_own(void *context, gpubench *bench)
{
    probe *p = (probe *)context;
    int code = (int)cudaMalloc((void **)&p->own, BUFFER_BYTES);
    p->bytes = BUFFER_BYTES;
    p->output = p->own;
    if (code == 0) /* what an earlier run may have left */
        code = (int)cudaMemset(p->own, 7, BUFFER_BYTES);
    return code ? code : gpubench_output(bench, p->own, BUFFER_BYTES);
}

/* The group's idle case, in each place, must not pass by what the other wrote. */
static void a_case_does_not_pass_by_anothers_output(void **state)
{
    static const char *const modes[] = {"cold", "hot", "graph"};
    size_t idle, mode, i;
    (void)state;
    for (mode = 0; mode < 3; mode++)
        for (idle = 0; idle < 2; idle++) {
            gpubench *bench = OPEN(QUICK, "--mode", modes[mode]);
            probe probes[2] = {{.act = FILL, .bytes = BUFFER_BYTES}, {.act = FILL}};
            gpubench_case cases[2];
            probes[idle].act = LAUNCH;
            lender = &probes[0];
            for (i = 0; i < 2; i++) {
                cases[i] = gpubench_case_init(i ? "borrower" : "lender", run, &probes[i]);
                cases[i].setup = i ? borrow : set_up;
                cases[i].verify = verify;
            }
            gpubench_measure_group(bench, cases, 2);
            gpubench_run(bench);
            expect_cell(bench, idle, "status", "mismatch");
            expect_cell(bench, 1 - idle, "status", "ok");
            assert_int_equal(gpubench_close(bench), 1);
        }
}

static void a_registered_output_is_poisoned(void **state)
{
    static const enum act acts[] = {FILL, LAUNCH};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench *bench = OPEN(QUICK);
        probe p = {.act = acts[i]};
        gpubench_case one = gpubench_case_init("own", run, &p);
        one.setup = register_own;
        one.verify = verify;
        one.teardown = tear_down;
        gpubench_measure(bench, &one);
        gpubench_run(bench);
        expect_cell(bench, 0, "status", i ? "mismatch" : "ok");
        assert_int_equal(gpubench_close(bench), i != 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(a_kernel_is_timed_by_events),
        CUDA_TEST(the_device_is_described),
        CUDA_TEST(the_method_is_described),
        CUDA_TEST(flush_and_reset_are_not_timed),
        CUDA_TEST(a_case_can_have_one_mode_only),
        CUDA_TEST(hot_mode_divides_a_long_batch),
        CUDA_TEST(hot_mode_runs_once_in_front_of_a_batch),
        CUDA_TEST(graph_mode_replays_what_was_captured),
        CUDA_TEST(memory_of_every_kind_works),
        CUDA_TEST(a_cases_own_device_memory_is_counted),
        CUDA_TEST(a_case_does_not_pass_by_anothers_output),
        CUDA_TEST(a_registered_output_is_poisoned),
        CUDA_TEST(without_an_empty_kernel_there_is_no_overhead),
        CUDA_TEST(the_cpu_can_be_measured_too),
        CUDA_TEST(energy_is_that_of_the_runs),
        CUDA_TEST(without_an_energy_counter_that_is_said),
        CUDA_TEST(a_load_at_the_power_cap_is_warmed_up_for_seconds),
        CUDA_TEST(a_load_that_never_ends_is_waited_for_once),
        CUDA_TEST(a_long_batch_is_looked_at_as_a_long_run),
        CUDA_TEST(what_ran_before_is_waited_out),
        CUDA_TEST(power_that_shows_late_is_seen),
        CUDA_TEST(one_hot_look_is_not_the_last),
        CUDA_TEST(too_much_memory_is_oom),
        CUDA_TEST(a_failed_allocation_is_not_always_oom),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("CUDA path", tests, NULL, NULL));
}
