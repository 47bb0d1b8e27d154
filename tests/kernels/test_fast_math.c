/* Built with -ffast-math, where compilers take a comparison with NaN for a
 * constant: what is no number is a mismatch all the same. NaNs and infinities
 * are made of bits here, and come out of memory, as they do of a case. */
/* In front of the header, whose pragmas make gcc 11 forget it. */
#ifndef __FAST_MATH__
#error "this test is about -ffast-math"
#endif

#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#define QUICK "--max-time", "0.01", "--min-samples", "6", "--max-samples", "8", "--warmup", "1"

static const uint64_t not_finite[] = {
    0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, /* NaNs */
    0xffffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000  /* and infinities */
};
enum { NOT_FINITE = sizeof not_finite / sizeof not_finite[0] };

static double of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void finite_is_told_by_bits(void **state)
{
    size_t i;
    (void)state;
    for (i = 0; i < NOT_FINITE; i++)
        assert_false(gpubench_is_finite(of_bits(not_finite[i])));
    assert_true(gpubench_is_finite(0) && gpubench_is_finite(-1e308));
}

static void a_root_of_nan_is_nan(void **state)
{
    (void)state;
    assert_true((bits_of(gpubench_sqrt(of_bits(not_finite[0]))) & INT64_MAX) > not_finite[4]);
    assert_true((bits_of(gpubench_sqrt(-1)) & INT64_MAX) > not_finite[4]);
    assert_true(bits_of(gpubench_sqrt(of_bits(not_finite[4]))) == not_finite[4]);
    assert_true(gpubench_sqrt(4) == 2 && gpubench_sqrt(0) == 0);
}

static void describe_refuses_what_is_no_number(void **state)
{
    size_t i;
    (void)state;
    for (i = 0; i < NOT_FINITE; i++) {
        double samples[] = {2, of_bits(not_finite[i]), 1};
        gpubench_statistics s;
        assert_int_equal(gpubench_describe(samples, 3, &s), -1);
    }
}

/* ---- a case whose result is what the poison left, or what it wrote ---- */

typedef struct writer {
    double *output;
    const double *result; /* NULL: nothing is written */
    double right;
} writer;

static int set_up(void *context, gpubench *bench)
{
    writer *w = (writer *)context;
    w->output = (double *)gpubench_alloc(bench, sizeof *w->output,
                                         GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return w->output ? GPUBENCH_OK : GPUBENCH_OOM;
}

static int run(void *context, gpubench_stream stream)
{
    const writer *w = (const writer *)context;
    (void)stream;
    if (w->result)
        memcpy(w->output, w->result, sizeof *w->output);
    return 0;
}

/* The difference, as arithmetic has it: of a NaN another NaN. */
static int verify(void *context, gpubench *bench)
{
    const writer *w = (const writer *)context;
    double difference = *w->output - w->right;
    return gpubench_check(bench, difference < 0 ? -difference : difference, 1);
}

static void expect_status(const double *result, const char *status)
{
    gpubench *bench = OPEN(QUICK);
    writer w = {NULL, result, 10};
    gpubench_case one = gpubench_case_init("writer", run, &w);
    one.setup = set_up;
    one.verify = verify;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", status);
    assert_int_equal(gpubench_close(bench), strcmp(status, "ok") != 0);
}

static void a_result_that_is_no_number_is_a_mismatch(void **state)
{
    const double right = 10.5, wrong = 12;
    size_t i;
    (void)state;
    expect_status(&right, "ok");
    expect_status(&wrong, "mismatch");
    expect_status(NULL, "mismatch");
    for (i = 0; i < NOT_FINITE; i++) {
        double result = of_bits(not_finite[i]);
        expect_status(&result, "mismatch");
    }
}

static void a_tolerance_that_is_no_number_is_a_mismatch(void **state)
{
    gpubench *bench = OPEN(QUICK);
    size_t i;
    (void)state;
    for (i = 0; i < NOT_FINITE; i++)
        assert_int_equal(gpubench_check(bench, 0, of_bits(not_finite[i])), GPUBENCH_MISMATCH);
    assert_int_equal(gpubench_check(bench, 0, 0), GPUBENCH_OK);
    assert_int_equal(gpubench_close(bench), 2);
}

static void no_such_number_is_written(void **state)
{
    size_t i;
    char text[32];
    (void)state;
    for (i = 0; i < NOT_FINITE; i++) {
        gpubench_format_number(of_bits(not_finite[i]), text);
        assert_string_equal(text, "");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finite_is_told_by_bits),
        cmocka_unit_test(a_root_of_nan_is_nan),
        cmocka_unit_test(describe_refuses_what_is_no_number),
        cmocka_unit_test(a_result_that_is_no_number_is_a_mismatch),
        cmocka_unit_test(a_tolerance_that_is_no_number_is_a_mismatch),
        cmocka_unit_test(no_such_number_is_written),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("fast math", tests, NULL, NULL));
}
