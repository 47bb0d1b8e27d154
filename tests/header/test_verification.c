/* Verification that must not pass by accident: errors and tolerances that are
 * no numbers, and cases of a group that write, or do not write, one output. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#define QUICK "--max-time", "0.01", "--min-samples", "6", "--max-samples", "8", "--warmup", "1"

enum { ELEMENTS = 64 };

/* ---- what gpubench_check takes ---- */

typedef struct checked {
    double error, tolerance;
} checked;

static int run_nothing(void *context, gpubench_stream stream)
{
    struct timespec pause = {0, 20000};
    (void)context;
    (void)stream;
    nanosleep(&pause, NULL);
    return 0;
}

/* Whatever the case makes of the finding. */
static int verify_checked(void *context, gpubench *bench)
{
    const checked *c = (const checked *)context;
    (void)gpubench_check(bench, c->error, c->tolerance);
    return GPUBENCH_OK;
}

static void expect_verdict(double error, double tolerance, const char *status, const char *flag)
{
    gpubench *bench = OPEN(QUICK);
    checked c = {error, tolerance};
    gpubench_case one = gpubench_case_init("checked", run_nothing, &c);
    one.verify = verify_checked;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", status);
    expect_flag(bench, 0, flag);
    assert_int_equal(gpubench_close(bench), strcmp(status, "ok") != 0);
}

static void an_error_is_a_number_from_0_on(void **state)
{
    (void)state;
    expect_verdict(0, 0, "ok", "");
    expect_verdict(-0.0, 0, "ok", "");
    expect_verdict(0.5, 0.5, "ok", "");
    expect_verdict(0.5, 0.25, "mismatch", "error_0.5_exceeds_the_tolerance_0.25");
    expect_verdict(NAN, 1, "mismatch", "the_error_nan_is_no_finite_number");
    expect_verdict(INFINITY, 1, "mismatch", "the_error_inf_is_no_finite_number");
    expect_verdict(-INFINITY, 1, "mismatch", "the_error_-inf_is_no_finite_number");
    expect_verdict(-1e-9, 1, "mismatch", "the_error_-1e-09_is_no_finite_number");
    expect_verdict(NAN, NAN, "mismatch", "the_error_nan_is_no_finite_number");
}

static void a_tolerance_is_a_number_from_0_on(void **state)
{
    (void)state;
    expect_verdict(0, NAN, "mismatch", "the_tolerance_nan_is_no_finite_number");
    expect_verdict(0, INFINITY, "mismatch", "the_tolerance_inf_is_no_finite_number");
    expect_verdict(0, -INFINITY, "mismatch", "the_tolerance_-inf_is_no_finite_number");
    expect_verdict(0, -1, "mismatch", "the_tolerance_-1_is_no_finite_number");
    expect_verdict(INFINITY, INFINITY, "mismatch", "the_error_inf_is_no_finite_number");
}

/* ---- --no-verify ---- */

/* A wrong result is not looked at, and the row says so; a case without a verify has
 * nothing to leave out. */
static void without_verify_a_row_says_so(void **state)
{
    gpubench *bench = OPEN(QUICK, "--no-verify");
    checked wrong = {2, 1};
    gpubench_case one = gpubench_case_init("checked", run_nothing, &wrong);
    (void)state;
    one.verify = verify_checked;
    gpubench_measure(bench, &one);
    one.verify = NULL;
    one.name = "unchecked";
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    for (size_t row = 0; row < 2; row++) {
        int has_verify = !strcmp(gpubench_value(bench, row, "case"), "checked");
        const char *flags = gpubench_value(bench, row, "flags");
        expect_cell(bench, row, "status", "ok");
        expect_cell(bench, row, "max_error", "");
        expect_cell(bench, row, "tolerance", "");
        assert_int_equal(strstr(flags, "unverified") != NULL, has_verify);
    }
    assert_int_equal(gpubench_close(bench), 0);
}

/* What the framework itself looks for costs little, and is looked for. */
static int overrun_setup(void *context, gpubench *bench)
{
    *(char **)context = (char *)gpubench_alloc(bench, ELEMENTS, GPUBENCH_DEVICE);
    return *(char **)context ? GPUBENCH_OK : GPUBENCH_OOM;
}

static int overrun_run(void *context, gpubench_stream stream)
{
    (*(char **)context)[ELEMENTS] = 1;
    return run_nothing(context, stream);
}

static void without_verify_a_write_behind_the_end_is_found(void **state)
{
    gpubench *bench = OPEN(QUICK, "--no-verify");
    char *memory = NULL;
    gpubench_case one = gpubench_case_init("overrun", overrun_run, &memory);
    (void)state;
    one.setup = overrun_setup;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "mismatch");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- cases of a group that share their output ---- */

typedef struct sharer {
    float **output;   /* the group's */
    float value;      /* what the right result is */
    size_t written;   /* how much of it run writes */
    int allocates, registers;
    int has_reset, since_reset;
} sharer;

static int share_setup(void *context, gpubench *bench)
{
    sharer *s = (sharer *)context;
    if (s->allocates)
        *s->output = (float *)gpubench_alloc(bench, ELEMENTS * sizeof(float),
                                             GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    if (s->registers)
        return gpubench_output(bench, *s->output, ELEMENTS * sizeof(float));
    return *s->output ? GPUBENCH_OK : GPUBENCH_OOM;
}

static int share_reset(void *context, gpubench_stream stream)
{
    (void)stream;
    ((sharer *)context)->since_reset = 0;
    return 0;
}

static int share_run(void *context, gpubench_stream stream)
{
    sharer *s = (sharer *)context;
    size_t i;
    s->since_reset++;
    for (i = 0; i < s->written; i++)
        (*s->output)[i] = s->value;
    return run_nothing(context, stream);
}

static int share_verify(void *context, gpubench *bench)
{
    const sharer *s = (const sharer *)context;
    double error = 0;
    size_t i;
    if (s->has_reset && s->since_reset != 1)
        return gpubench_fail(bench, GPUBENCH_FAILED, "%d runs since the reset", s->since_reset);
    for (i = 0; i < ELEMENTS; i++)
        error += fabs((double)(*s->output)[i] - (double)s->value);
    return gpubench_check(bench, error, 0);
}

static void measure_sharers(gpubench *bench, sharer *sharers, size_t count)
{
    static const char *const names[] = {"a", "b", "c"};
    gpubench_case cases[3];
    size_t i;
    for (i = 0; i < count; i++) {
        cases[i] = gpubench_case_init(names[i], share_run, &sharers[i]);
        cases[i].setup = share_setup;
        cases[i].verify = share_verify;
        cases[i].reset = sharers[i].has_reset ? share_reset : NULL;
    }
    gpubench_measure_group(bench, cases, count);
    gpubench_run(bench);
}

static void expect_statuses(gpubench *bench, const char *const *wanted, size_t count)
{
    size_t i;
    assert_int_equal(gpubench_row_count(bench), count);
    for (i = 0; i < count; i++)
        expect_cell(bench, i, "status", wanted[i]);
}

/* All write the same: one that writes nothing must not pass by what the others
 * wrote, wherever it stands, and whoever allocated the output. */
static void another_cases_result_is_not_ones_own(void **state)
{
    static const char *const modes[] = {"cold", "hot"};
    size_t idle, mode;
    (void)state;
    for (mode = 0; mode < 2; mode++)
        for (idle = 0; idle < 3; idle++) {
            gpubench *bench = OPEN(QUICK, "--mode", modes[mode]);
            float *output = NULL;
            const char *wanted[] = {"ok", "ok", "ok"};
            sharer sharers[3] = {{.allocates = 1}};
            size_t i;
            for (i = 0; i < 3; i++) {
                sharers[i].output = &output;
                sharers[i].value = 3;
                sharers[i].written = i == idle ? ELEMENTS - 1 : ELEMENTS;
            }
            wanted[idle] = "mismatch";
            measure_sharers(bench, sharers, 3);
            expect_statuses(bench, wanted, 3);
            assert_int_equal(gpubench_close(bench), 1);
        }
}

/* Cases with different results in one output: each is verified on its own. */
static void each_is_verified_on_what_it_wrote(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot");
    static const char *const wanted[] = {"ok", "ok", "ok", "ok"};
    float *output = NULL;
    sharer sharers[2] = {{.output = &output, .value = 1, .written = ELEMENTS, .allocates = 1},
                         {.output = &output, .value = 2, .written = ELEMENTS, .has_reset = 1}};
    (void)state;
    measure_sharers(bench, sharers, 2);
    expect_statuses(bench, wanted, 4);
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- outputs that the framework did not allocate ---- */

static void a_registered_output_is_poisoned(void **state)
{
    gpubench *bench = OPEN(QUICK);
    float own[ELEMENTS], *output = own;
    sharer idle = {.output = &output, .value = 3, .registers = 1};
    static const char *const wanted[] = {"mismatch"};
    size_t i;
    (void)state;
    for (i = 0; i < ELEMENTS; i++)
        own[i] = 3; /* what an earlier run may have left */
    measure_sharers(bench, &idle, 1);
    expect_statuses(bench, wanted, 1);
    for (i = 0; i < ELEMENTS; i++)
        assert_true(isnan(own[i]));
    assert_int_equal(gpubench_close(bench), 1);
}

static void it_is_forgotten_at_teardown(void **state)
{
    gpubench *bench = OPEN(QUICK);
    float own[ELEMENTS], other[ELEMENTS], *output = own, *second = other;
    sharer first = {.output = &output, .value = 3, .written = ELEMENTS, .registers = 1};
    sharer last = {.output = &second, .value = 3, .written = ELEMENTS, .registers = 1};
    gpubench_case one = gpubench_case_init("later", share_run, &last);
    size_t i;
    (void)state;
    measure_sharers(bench, &first, 1);
    assert_null(bench->outputs);
    one.setup = share_setup;
    one.verify = share_verify;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    for (i = 0; i < ELEMENTS; i++)
        assert_true(own[i] == 3);
    assert_int_equal(gpubench_close(bench), 0);
}

static void it_is_named_in_setup(void **state)
{
    gpubench *bench = OPEN(QUICK);
    float own[ELEMENTS];
    (void)state;
    assert_int_equal(gpubench_output(bench, own, sizeof own), GPUBENCH_FAILED);
    assert_int_equal(gpubench_close(bench), 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_a_number_from_0_on),
        cmocka_unit_test(a_tolerance_is_a_number_from_0_on),
        cmocka_unit_test(another_cases_result_is_not_ones_own),
        cmocka_unit_test(each_is_verified_on_what_it_wrote),
        cmocka_unit_test(a_registered_output_is_poisoned),
        cmocka_unit_test(it_is_forgotten_at_teardown),
        cmocka_unit_test(it_is_named_in_setup),
        cmocka_unit_test(without_verify_a_row_says_so),
        cmocka_unit_test(without_verify_a_write_behind_the_end_is_found),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("verification", tests, NULL, NULL));
}
