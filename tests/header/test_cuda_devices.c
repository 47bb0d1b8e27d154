/* Which device is measured, and what remains when a context is lost: on the substitute
 * runtime. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "cuda_probe.h"

/* ---- which device ---- */

static void expect_device(const char *wanted, int ordinal)
{
    gpubench *bench = OPEN(QUICK, "--device", wanted);
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    expect_cell(bench, row, "device", ordinal ? "Fake GPU 1" : "Fake GPU 0");
    expect_cell(bench, row, "uuid", ordinal ? UUID_1 : UUID_0);
    expect_cell(bench, row, "compute_capability", ordinal ? "8.0" : "9.0");
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_device_is_chosen_by_number_or_uuid(void **state)
{
    (void)state;
    expect_device("auto", 0);
    expect_device("0", 0);
    expect_device("1", 1);
    expect_device(UUID_0, 0);
    expect_device(UUID_1, 1);
    expect_device("GPU-a0a1a2a3", 1);
    expect_device("GPU-1011", 0);
    expect_device("GPU-A0A1A2A3", 1);
    expect_device("MIG-a0a1a2a3", 1);
}

static void the_chosen_device_is_the_current_one(void **state)
{
    gpubench *bench = OPEN(QUICK, "--device", "1");
    probe p = {.act = LAUNCH};
    (void)state;
    assert_int_equal(fake_current_device(), 1); /* before anything is measured */
    assert_int_equal(gpubench_compute_capability(bench), 80);
    measure(bench, "ten", &p);
    assert_int_equal(fake_current_device(), 1);
    assert_int_equal(gpubench_close(bench), 0);
}

static void an_unknown_device_is_refused(void **state)
{
    static const char *const unknown[] = {"2", "99", "18446744073709551615", "GPU-ffffffff",
                                          UUID_0 "0", "GPU-a0a1a2a4"};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        gpubench *bench = OPEN(QUICK, "--device", unknown[i]);
        probe p = {.act = LAUNCH};
        queue(bench, "ten", &p);
        assert_int_equal(gpubench_close(bench), 2);
    }
}

static void a_device_that_cannot_be_prepared_is_refused(void **state)
{
    int step;
    (void)state;
    for (step = 0; step < 3; step++) {
        gpubench *bench;
        probe p = {.act = LAUNCH};
        fake_cuda.properties_error = step == 0 ? cudaErrorInvalidValue : cudaSuccess;
        bench = OPEN(QUICK);
        fake_cuda.stream_error = step == 1 ? cudaErrorMemoryAllocation : cudaSuccess;
        fake_cuda.malloc_error = step == 2 ? cudaErrorMemoryAllocation : cudaSuccess;
        queue(bench, "ten", &p);
        assert_int_equal(gpubench_close(bench), 2);
        fake_start();
    }
}

/* ---- through a program: no driver, lost contexts ---- */

static void expect_no_gpu(const char *driver, const char *name, const char *explanation)
{
    const char *csv = support_path("no-gpu.csv");
    outcome result = RUN("cuda", "--driver", driver, "--csv", csv, QUICK);
    support_expect_status(&result, 2);
    support_expect_text(result.err, name);
    support_expect_text(result.err, explanation);
    support_expect_text(result.err, "--device");
    assert_false(support_exists(csv));
    support_free_outcome(&result);
}

static void without_a_gpu_cudas_reason_is_told(void **state)
{
    (void)state;
    expect_no_gpu("none", "cudaErrorNoDevice", "there is no device (fake)");
    expect_no_gpu("empty", "cudaErrorNoDevice", "there is no device (fake)");
    expect_no_gpu("old", "cudaErrorInsufficientDriver", "the driver is too old (fake)");
}

static void looking_needs_no_gpu(void **state)
{
    outcome result = RUN("cuda", "--driver", "none", "--list", "--set", "crash");
    (void)state;
    support_expect_status(&result, 0);
    assert_string_equal(result.out, "healthy-1\nfaulty\nhealthy-2\nhealthy-3\n");
    support_free_outcome(&result);
    result = RUN("cuda", "--driver", "none", "--help");
    support_expect_status(&result, 0);
    support_free_outcome(&result);
}

static void an_unknown_device_leaves_the_file_alone(void **state)
{
    const char *csv = support_path("kept.csv");
    outcome result;
    char *text;
    (void)state;
    support_write(csv, "precious\n");
    result = RUN("cuda", "--device", "7", "--csv", csv, QUICK);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--device 7");
    text = support_read(csv);
    assert_string_equal(text, "precious\n");
    free(text);
    support_free_outcome(&result);
}

/* One faulty case that costs the context, three healthy ones around it: all
 * are measured, in whatever order the seed has them. */
static void expect_survived(const char *set, const char *seed, const char *grouped,
                            const char *reason)
{
    static const char *const healthy[] = {"healthy-1", "healthy-2", "healthy-3"};
    const char *csv = support_path("lost.csv");
    const char *timeout = strcmp(set, "hang") ? "60" : "0.3"; /* only what hangs may reach it */
    outcome result = RUN("cuda", "--set", set, "--csv", csv, "--timeout", timeout, "--seed", seed,
                         QUICK, grouped ? "--grouped" : NULL, grouped);
    csv_table *table;
    size_t i;
    support_expect_status(&result, 1);
    table = support_read_csv(csv);
    for (i = 0; i < 3; i++)
        support_expect_measured(table, healthy[i]);
    support_expect_failed(table, "faulty", strcmp(set, "crash_verify") ? "failed" : "mismatch",
                          reason);
    support_expect_text(result.out, "faulty"); /* the table has the rows of all processes */
    support_expect_text(result.out, "healthy-2");
    for (i = 2; i < table->row_count; i++)
        assert_string_equal(support_cell(table, i, "campaign"), support_cell(table, 1, "campaign"));
    unlink(csv);
    support_free_csv(table);
    support_free_outcome(&result);
}

static void a_lost_context_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash", "1", NULL, "cudaErrorIllegalAddress");
    expect_survived("crash", "2", NULL, "cudaErrorIllegalAddress");
    expect_survived("crash", "3", NULL, "cudaErrorIllegalAddress");
}

static void a_context_lost_in_reset_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash_reset", "1", NULL, "cudaErrorIllegalAddress");
}

static void a_context_lost_in_setup_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash_setup", "1", NULL, "filling_failed");
    expect_survived("crash_setup", "2", NULL, "filling_failed");
}

static void a_context_lost_in_verify_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash_verify", "1", NULL, "cannot_read");
    expect_survived("crash_verify", "2", NULL, "cannot_read");
}

static void a_context_lost_in_a_group_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash", "1", "yes", "cudaErrorIllegalAddress");
}

static void two_lost_contexts_cost_two_cases(void **state)
{
    (void)state;
    expect_survived("crash_twice", "1", NULL, "cudaErrorIllegalAddress");
    expect_survived("crash_twice", "1", "yes", "cudaErrorIllegalAddress");
}

static void a_hung_kernel_costs_one_case(void **state)
{
    (void)state;
    expect_survived("hang", "1", NULL, "not_finished_after_0.3_s");
    expect_survived("hang", "2", NULL, "not_finished_after_0.3_s");
}

/* Every process added its samples: three healthy cases in two runs begin. */
static void expect_all_samples(const char *path)
{
    csv_table *table = support_read_csv(path);
    size_t row, begun = 0;
    for (row = 1; row < table->row_count; row++)
        begun += !strcmp(support_cell(table, row, "sample"), "1");
    assert_int_equal(begun, 6);
    support_free_csv(table);
}

static void lost_contexts_and_several_runs_go_together(void **state)
{
    const char *csv = support_path("runs.csv"), *samples = support_path("samples.csv");
    char folder[128];
    outcome result;
    csv_table *table;
    size_t row, failed = 0;
    (void)state;
    snprintf(folder, sizeof folder, "%s", support_path("rows"));
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("TMPDIR", folder, 1);
    result = RUN("cuda", "--set", "crash", "--csv", csv, "--runs", "2", "--samples", samples,
                 QUICK);
    unsetenv("TMPDIR");
    support_expect_status(&result, 1);
    table = support_read_csv(csv);
    assert_int_equal(table->row_count, 1 + 2 * 4);
    for (row = 1; row < table->row_count; row++) {
        char order[16];
        snprintf(order, sizeof order, "%u", (unsigned)(row - 1) % 4 + 1);
        assert_string_equal(support_cell(table, row, "order"), order);
        assert_string_equal(support_cell(table, row, "run"), row <= 4 ? "1" : "2");
        failed += strcmp(support_cell(table, row, "status"), "ok") != 0;
    }
    assert_int_equal(failed, 2);
    expect_all_samples(samples);
    assert_int_equal(rmdir(folder), 0); /* the rows' file is gone */
    support_free_csv(table);
    support_free_outcome(&result);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(a_device_is_chosen_by_number_or_uuid),
        CUDA_TEST(the_chosen_device_is_the_current_one),
        CUDA_TEST(an_unknown_device_is_refused),
        CUDA_TEST(a_device_that_cannot_be_prepared_is_refused),
        cmocka_unit_test(without_a_gpu_cudas_reason_is_told),
        cmocka_unit_test(looking_needs_no_gpu),
        cmocka_unit_test(an_unknown_device_leaves_the_file_alone),
        cmocka_unit_test(a_lost_context_costs_one_case),
        cmocka_unit_test(a_context_lost_in_reset_costs_one_case),
        cmocka_unit_test(a_context_lost_in_setup_costs_one_case),
        cmocka_unit_test(a_context_lost_in_verify_costs_one_case),
        cmocka_unit_test(a_context_lost_in_a_group_costs_one_case),
        cmocka_unit_test(two_lost_contexts_cost_two_cases),
        cmocka_unit_test(a_hung_kernel_costs_one_case),
        cmocka_unit_test(lost_contexts_and_several_runs_go_together),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("CUDA devices", tests, NULL, NULL));
}
