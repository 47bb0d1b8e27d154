/* What a case may ask of its handle and answer: memory, codes and their explanations,
 * checks; and the fixture program, whose cases fail in every way. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "engine_cases.h"

/* ---- memory ---- */

static void a_case_that_does_not_fit_beside_the_others_is_measured_alone(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6");
    diarist d[2] = {{.letter = 'A'}, {.letter = 'B'}};
    gpubench_case cases[2];
    (void)state;
    cases[0] = diary_case("big-1", &d[0]);
    cases[1] = diary_case("big-2", &d[1]);
    script.room = 1;
    gpubench_measure_group(bench, cases, 2);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 2);
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 1, "status", "ok");
    expect_cell(bench, 1, "case", "big-2");
    assert_int_equal(script.taken, 0); /* all given back */
    assert_int_equal(gpubench_close(bench), 0);
}

static void *seen_memory[4];

static int allocate_setup(void *context, gpubench *bench)
{
    static const int kinds[] = {GPUBENCH_DEVICE, GPUBENCH_PINNED,
                                GPUBENCH_PAGEABLE | GPUBENCH_OUTPUT, GPUBENCH_DEVICE};
    static const size_t sizes[] = {1000, 1, 513, 0};
    static const char text[] = "copied";
    char back[sizeof text] = "";
    size_t i;
    (void)context;
    for (i = 0; i < 4; i++) {
        seen_memory[i] = gpubench_alloc(bench, sizes[i], kinds[i]);
        assert_non_null(seen_memory[i]);
        assert_int_equal((uintptr_t)seen_memory[i] % 512, 0);
        memset(seen_memory[i], 0, sizes[i]);
    }
    assert_int_equal(gpubench_copy(bench, seen_memory[0], text, sizeof text), 0);
    assert_int_equal(gpubench_copy(bench, back, seen_memory[0], sizeof text), 0);
    assert_string_equal(back, "copied");
    return GPUBENCH_OK;
}

/* Only what is an output is poisoned. */
static int allocate_verify(void *context, gpubench *bench)
{
    (void)context;
    (void)bench;
    assert_int_equal(((unsigned char *)seen_memory[1])[0], 0);
    assert_int_equal(((unsigned char *)seen_memory[2])[0], 0xff);
    assert_int_equal(((unsigned char *)seen_memory[2])[512], 0xff);
    gpubench_flag(bench, "two words");
    return gpubench_check(bench, 0.1, 0.5) | gpubench_check(bench, 0.3, 0.5) |
           gpubench_check(bench, 0.2, 0.5);
}

static void memory_is_aligned_and_outputs_are_poisoned(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x'};
    gpubench_case one = gpubench_case_init("memory", diary_run, &d);
    (void)state;
    one.setup = allocate_setup;
    one.verify = allocate_verify;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_number(bench, 0, "device_bytes", 1000);
    expect_number(bench, 0, "max_error", 0.3); /* the largest of three */
    expect_number(bench, 0, "tolerance", 0.5);
    expect_flag(bench, 0, "two_words");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- codes and their explanation ---- */

static int return_context(void *context, gpubench_stream stream)
{
    (void)stream;
    return *(int *)context;
}

static const char *explain(int code)
{
    return code == 77 ? "seventy-seven" : NULL;
}

static void expect_code(int code, const char *status, const char *flag, int exit_status)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("code", return_context, &code);
    (void)status;
    one.error_string = explain;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 1);
    expect_cell(bench, 0, "status", status);
    expect_cell(bench, 0, "median_us", "");
    expect_flag(bench, 0, flag);
    assert_int_equal(gpubench_close(bench), exit_status);
}

static void codes_become_a_status(void **state)
{
    (void)state;
    expect_code(77, "failed", "seventy-seven", 1);
    expect_code(ENOSPC, "failed", "No_space_left", 1);
    expect_code(GPUBENCH_FAILED, "failed", "reason=", 1);
    expect_code(GPUBENCH_OOM, "oom", "not_enough_memory", 1);
    expect_code(GPUBENCH_MISMATCH, "mismatch", "reason=", 1);
    expect_code(GPUBENCH_UNSUPPORTED, "unsupported", "reason=", 0);
    expect_code(GPUBENCH_SKIPPED, "skipped", "reason=", 0);
    expect_code(-12345, "failed", "reason=", 1);
}

/* ---- other libraries' codes ---- */

enum library_status { LIBRARY_FINE, LIBRARY_ODD = 13, LIBRARY_SILENT = 14 };

static enum library_status call_library(enum library_status status)
{
    return status;
}

static const char *library_text(enum library_status status)
{
    return status == LIBRARY_ODD ? "it is odd" : NULL;
}

/* Which of a case's functions calls the library in vain. */
static const char *failing_stage;
static enum library_status failing_status;

static int call_in(const char *stage)
{
    GPUBENCH_TRY(call_library(LIBRARY_FINE), library_text);
    if (!strcmp(stage, failing_stage))
        GPUBENCH_TRY(call_library(failing_status), library_text);
    return GPUBENCH_OK;
}

static int set_up_library(void *context, gpubench *bench)
{
    (void)context, (void)bench;
    return call_in("setup");
}

static int reset_library(void *context, gpubench_stream stream)
{
    (void)context, (void)stream;
    return call_in("reset");
}

static int run_library(void *context, gpubench_stream stream)
{
    (void)context, (void)stream;
    return call_in("run");
}

static int verify_library(void *context, gpubench *bench)
{
    (void)context, (void)bench;
    return call_in("verify");
}

static void expect_library(const char *stage, enum library_status status, const char *flag)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("library", run_library, NULL);
    failing_stage = stage;
    failing_status = status;
    one.setup = set_up_library;
    one.reset = reset_library;
    one.verify = verify_library;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", *stage ? "failed" : "ok");
    expect_flag(bench, 0, flag);
    assert_int_equal(gpubench_close(bench), *stage != 0);
}

static void a_librarys_code_has_its_own_text(void **state)
{
    static const char *const stages[] = {"setup", "reset", "run", "verify"};
    size_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        expect_library(stages[i], LIBRARY_ODD, "reason=call_library:_it_is_odd_(13)");
        expect_library(stages[i], LIBRARY_SILENT, "reason=call_library:_unknown_error_(14)");
    }
    expect_library("", LIBRARY_ODD, "stop=");
}

static int skip_with_a_reason(void *context, gpubench_stream stream)
{
    (void)stream;
    return gpubench_fail(NULL, GPUBENCH_SKIPPED, "%s has %d", (const char *)context, 3);
}

static void run_can_say_why(void **state)
{
    gpubench *bench = OPEN(QUICK), *idle = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("says", skip_with_a_reason, (void *)(uintptr_t)"it");
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "skipped");
    expect_flag(bench, 0, "reason=it_has_3");
    assert_int_equal(gpubench_close(bench), 0);
    assert_int_equal(gpubench_fail(NULL, GPUBENCH_OOM, "nobody"), GPUBENCH_OOM);
    assert_int_equal(gpubench_fail_call("f(x)", 1, NULL), GPUBENCH_FAILED);
    gpubench_usage_error(idle, "measures nothing");
    (void)gpubench_close(idle);
}

static void nan_and_infinity_never_pass_a_check(void **state)
{
    gpubench *bench = OPEN(QUICK);
    (void)state;
    assert_int_equal(gpubench_check(bench, NAN, 1), GPUBENCH_MISMATCH);
    assert_int_equal(gpubench_check(bench, 0, NAN), GPUBENCH_MISMATCH);
    assert_int_equal(gpubench_check(bench, INFINITY, 1), GPUBENCH_MISMATCH);
    assert_int_equal(gpubench_check(bench, 1, 1), GPUBENCH_OK);
    assert_int_equal(gpubench_check(bench, 0, 0), GPUBENCH_OK);
    assert_int_equal(gpubench_check(bench, 1.0000001, 1), GPUBENCH_MISMATCH);
    gpubench_close(bench);
}

static int forgetful_verify(void *context, gpubench *bench)
{
    (void)context;
    (void)gpubench_check(bench, 0.1, 0.5);
    (void)gpubench_check(bench, 0.7, 0.5); /* fails */
    return gpubench_check(bench, 0.2, 0.5);
}

/* Verify may look at several outputs and return only the last answer. */
static void a_failed_check_stays_failed(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("forgetful", &d);
    (void)state;
    one.verify = forgetful_verify;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "mismatch");
    expect_flag(bench, 0, "0.7_exceeds");
    expect_cell(bench, 0, "median_us", "");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- the handle's answers ---- */

static void the_handle_answers(void **state)
{
    gpubench *bench = OPEN(QUICK, "--seed", "42");
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("asked", &d);
    (void)state;
    assert_int_equal(gpubench_is_cuda(bench), 0);
    assert_int_equal(gpubench_compute_capability(bench), 0);
    assert_int_equal(gpubench_seed(bench), 42);
    assert_null(gpubench_value(bench, 0, "case"));
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_null(gpubench_value(bench, 0, "no_such_column"));
    assert_null(gpubench_value(bench, 1, "case"));
    expect_cell(bench, 0, "uuid", "");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- the whole program ---- */

static csv_table *run_set(const char *set, int status)
{
    const char *csv = support_path("engine.csv");
    outcome result = RUN("host", "--set", set, "--csv", csv, QUICK);
    csv_table *table = support_read_csv(csv);
    support_expect_status(&result, status);
    support_expect_no_text(result.err, "Sanitizer");
    support_free_outcome(&result);
    return table;
}

static void every_fault_gets_its_status(void **state)
{
    csv_table *table = run_set("failures", 1);
    (void)state;
    support_expect_failed(table, "setup-fails", "failed", "the_setup_says_no");
    support_expect_failed(table, "setup-errno", "failed", "No_such_file");
    support_expect_failed(table, "run-fails", "failed", "No_space_left");
    support_expect_failed(table, "run-fails-later", "failed", "reason=run:");
    support_expect_failed(table, "verify-fails", "mismatch", "0.5");
    support_expect_failed(table, "nan", "mismatch", "nan");
    support_expect_failed(table, "writes-nothing", "mismatch", "reason=");
    support_expect_failed(table, "writes-before", "mismatch", "in_front_of");
    support_expect_failed(table, "writes-behind", "mismatch", "behind");
    support_expect_failed(table, "tebibyte", "oom", "needed_bytes=1099511627776 free_bytes=");
    support_expect_failed(table, "size-max", "oom",
                          "needed_bytes=18446744073709551615 free_bytes=");
    support_free_csv(table);
}

static void healthy_cases_among_faulty_ones_are_measured(void **state)
{
    csv_table *table = run_set("failures", 1);
    char name[32];
    int i;
    (void)state;
    for (i = 1; i <= 11; i++) {
        snprintf(name, sizeof name, "healthy-%d", i);
        support_expect_measured(table, name);
    }
    support_free_csv(table);
}

static void every_setup_has_its_teardown(void **state)
{
    outcome result = RUN("host", "--set", "failures", "--quiet", QUICK);
    const char *at;
    int setups = 0, teardowns = 0;
    (void)state;
    for (at = result.err; (at = strstr(at, "setup ")) != NULL; at++)
        setups += at == result.err || at[-1] == '\n';
    for (at = result.err; (at = strstr(at, "teardown ")) != NULL; at++)
        teardowns++;
    assert_int_equal(setups, 22);
    assert_int_equal(teardowns, 22);
    support_free_outcome(&result);
}

static void what_does_not_fit_spares_the_rest_of_its_group(void **state)
{
    csv_table *table = run_set("starved", 1);
    (void)state;
    assert_int_equal(table->row_count, 4);
    support_expect_measured(table, "small-1");
    support_expect_measured(table, "small-2");
    support_expect_failed(table, "tebibyte", "oom", "needed_bytes=1099511627776");
    support_free_csv(table);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(a_case_that_does_not_fit_beside_the_others_is_measured_alone),
        ENGINE_TEST(memory_is_aligned_and_outputs_are_poisoned),
        ENGINE_TEST(codes_become_a_status),
        ENGINE_TEST(a_librarys_code_has_its_own_text),
        ENGINE_TEST(run_can_say_why),
        ENGINE_TEST(nan_and_infinity_never_pass_a_check),
        ENGINE_TEST(a_failed_check_stays_failed),
        ENGINE_TEST(the_handle_answers),
        ENGINE_TEST(every_fault_gets_its_status),
        ENGINE_TEST(healthy_cases_among_faulty_ones_are_measured),
        ENGINE_TEST(every_setup_has_its_teardown),
        ENGINE_TEST(what_does_not_fit_spares_the_rest_of_its_group),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("codes", tests, NULL, NULL));
}
