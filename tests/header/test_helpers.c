/* What setups and verifies share: uploads, random elements, comparison with a
 * reference, what lives until gpubench_close. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#include <math.h>

#define QUICK "--max-time", "0.01", "--min-samples", "6", "--max-samples", "8", "--warmup", "1"

/* ---- a case whose setup and verify the test gives ---- */

typedef struct probe {
    int (*setup)(gpubench *bench);
    int (*verify)(gpubench *bench);
} probe;

static int set_up(void *context, gpubench *bench)
{
    const probe *p = (const probe *)context;
    return p->setup ? p->setup(bench) : GPUBENCH_OK;
}

static int run_something(void *context, gpubench_stream stream)
{
    struct timespec pause = {0, 20000};
    (void)context;
    (void)stream;
    nanosleep(&pause, NULL);
    return 0;
}

static int verify(void *context, gpubench *bench)
{
    const probe *p = (const probe *)context;
    return p->verify ? p->verify(bench) : GPUBENCH_OK;
}

static gpubench *measured(probe *p)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("probe", run_something, p);
    one.setup = set_up;
    one.verify = verify;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    return bench;
}

/* One row, what its status is, and a word of its flags. */
static void expect_row(probe p, const char *status, const char *flag)
{
    gpubench *bench = measured(&p);
    expect_cell(bench, 0, "status", status);
    expect_flag(bench, 0, flag);
    assert_int_equal(gpubench_close(bench), strcmp(status, "ok") != 0);
}

/* ---- uploads and allocations ---- */

static const char sent[] = "what the host had";
static char received[sizeof sent];

static int upload_text(gpubench *bench)
{
    char *there = (char *)gpubench_upload(bench, sent, sizeof sent);
    if (there)
        memcpy(received, there, sizeof received);
    return gpubench_allocated(bench);
}

static void an_upload_holds_what_the_host_had(void **state)
{
    (void)state;
    expect_row((probe){upload_text, NULL}, "ok", "");
    assert_string_equal(received, sent);
}

static int upload_too_much(gpubench *bench)
{
    (void)gpubench_upload(bench, sent, SIZE_MAX / 4);
    (void)gpubench_upload(bench, sent, sizeof sent);
    return gpubench_allocated(bench);
}

static int random_too_much(gpubench *bench)
{
    (void)gpubench_random(bench, "f32", SIZE_MAX / 2);
    return gpubench_allocated(bench);
}

static void one_allocation_that_failed_is_known_at_the_end(void **state)
{
    char needed[64];
    (void)state;
    snprintf(needed, sizeof needed, "needed_bytes=%llu", (unsigned long long)(SIZE_MAX / 4));
    expect_row((probe){upload_too_much, NULL}, "oom", needed);
    expect_row((probe){random_too_much, NULL}, "oom", "free_bytes=");
}

/* ---- random elements ---- */

enum { MANY = 100000 };

typedef struct moments {
    double mean, variance, kurtosis, largest;
} moments;

static moments moments_of(const float *values, size_t count)
{
    double sums[5] = {0};
    moments m = {0, 0, 0, 0};
    size_t i, power;
    for (i = 0; i < count; i++) {
        double x = 1;
        for (power = 1; power <= 4; power++)
            sums[power] += x *= (double)values[i];
        m.largest = fmax(m.largest, fabs((double)values[i]));
    }
    m.mean = sums[1] / (double)count;
    m.variance = sums[2] / (double)count;
    m.kurtosis = sums[4] / (double)count / (m.variance * m.variance);
    return m;
}

static void expect_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
}

/* Of the sum of four uniform numbers: variance 1 by scaling, kurtosis
 * 3 - 6/5/4 = 2.7, no element beyond sqrt(12). Four standard errors: of the mean
 * 1/sqrt(n), of the variance sqrt(1.7/n), of the kurtosis below 3/sqrt(n). */
static void random_elements_have_the_moments_that_they_should(void **state)
{
    gpubench *bench = OPEN(QUICK);
    float *values = calloc(MANY, sizeof *values);
    moments m;
    (void)state;
    assert_int_equal(gpubench_fill(bench, values, "f32", MANY), 0);
    m = moments_of(values, MANY);
    expect_near(m.mean, 0, 4 / sqrt(MANY));
    expect_near(m.variance, 1, 4 * sqrt(1.7 / MANY));
    expect_near(m.kurtosis, 2.7, 12 / sqrt(MANY));
    assert_true(m.largest > 3 && m.largest < 3.4642);
    free(values);
    (void)gpubench_close(bench);
}

static double correlation(const float *x, const float *y, size_t count)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < count; i++)
        sum += (double)x[i] * (double)y[i];
    return sum / (double)count;
}

static void random_elements_follow_from_the_seed_and_the_turn(void **state)
{
    gpubench *bench = OPEN(QUICK, "--seed", "7"), *same = OPEN(QUICK, "--seed", "7");
    gpubench *other = OPEN(QUICK, "--seed", "8");
    float *values = calloc(4 * MANY, sizeof *values), *at[4];
    size_t i;
    (void)state;
    for (i = 0; i < 4; i++)
        at[i] = values + i * MANY;
    assert_int_equal(gpubench_fill(bench, at[0], "f32", MANY), 0);
    assert_int_equal(gpubench_fill(bench, at[1], "f32", MANY), 0);
    assert_int_equal(gpubench_fill(same, at[2], "f32", MANY), 0);
    assert_int_equal(gpubench_fill(other, at[3], "f32", MANY), 0);
    assert_memory_equal(at[0], at[2], MANY * sizeof *values);
    expect_near(correlation(at[0], at[1], MANY), 0, 4 / sqrt(MANY));
    expect_near(correlation(at[0], at[3], MANY), 0, 4 / sqrt(MANY));
    expect_near(correlation(at[0], at[0] + 1, MANY - 1), 0, 4 / sqrt(MANY));
    free(values);
    (void)gpubench_close(bench);
    (void)gpubench_close(same);
    (void)gpubench_close(other);
}

static float first_elements[2];
static int setups;

static int keep_first_element(gpubench *bench)
{
    const float *values = (const float *)gpubench_random(bench, "f32", 3);
    if (values)
        first_elements[setups++ % 2] = values[0];
    return gpubench_allocated(bench);
}

static void each_case_gets_the_same_random_elements(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {keep_first_element, NULL};
    gpubench_case one = gpubench_case_init("probe", run_something, &p);
    (void)state;
    setups = 0;
    one.setup = set_up;
    for (one.variant = "a"; *one.variant != 'c'; one.variant = *one.variant == 'a' ? "b" : "c")
        gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 0);
    assert_int_equal(setups, 2);
    assert_true(first_elements[0] == first_elements[1]);
    assert_true(first_elements[0] != 0);
}

/* The elements of one seed in each dtype are one number, rounded: to 24, 11, 8 and 4
 * bits, that is to within half a unit in the last of them. */
static void random_elements_are_the_same_in_every_dtype(void **state)
{
    gpubench *benches[5];
    const char *const dtypes[5] = {"f32", "f64", "f16", "bf16", "e4m3"};
    float *singles = calloc(MANY, sizeof *singles);
    double *doubles = calloc(MANY, sizeof *doubles);
    uint16_t *halves = calloc(2 * MANY, sizeof *halves);
    uint8_t *bytes = calloc(MANY, sizeof *bytes);
    void *to[5];
    size_t i;
    (void)state;
    to[0] = singles, to[1] = doubles, to[2] = halves, to[3] = halves + MANY, to[4] = bytes;
    for (i = 0; i < 5; i++) {
        benches[i] = OPEN(QUICK);
        assert_int_equal(gpubench_fill(benches[i], to[i], dtypes[i], MANY), 0);
        (void)gpubench_close(benches[i]);
    }
    for (i = 0; i < MANY; i++) {
        double value = doubles[i], half, brain, quarter;
        int exponent;
        uint32_t bits = (uint32_t)halves[MANY + i] << 16;
        float wide;
        memcpy(&wide, &bits, sizeof wide);
        brain = (double)wide;
        half = ldexp(halves[i] & 0x3ff, -24); /* below 2^-14 */
        if (halves[i] & 0x7c00)
            half = ldexp(1024 + (halves[i] & 0x3ff), (halves[i] >> 10 & 31) - 25);
        half = halves[i] & 0x8000 ? -half : half;
        quarter = ldexp(bytes[i] & 7, -9); /* below 2^-6 */
        if (bytes[i] & 0x78)
            quarter = ldexp(8 + (bytes[i] & 7), (bytes[i] >> 3 & 15) - 10);
        quarter = bytes[i] & 0x80 ? -quarter : quarter;
        (void)frexp(value, &exponent); /* value: at least 2^(exponent-1), below 2^exponent */
        assert_true((double)singles[i] == value);
        expect_near(brain, value, ldexp(1, exponent - 9));
        expect_near(half, value, ldexp(1, exponent > -13 ? exponent - 12 : -25));
        expect_near(quarter, value, ldexp(1, exponent > -5 ? exponent - 5 : -10));
    }
    free(singles);
    free(doubles);
    free(halves);
    free(bytes);
}

/* ---- comparison ---- */

/* What the next verify compares. */
static struct compared {
    const void *output, *reference;
    const char *dtype, *reference_dtype;
    size_t count;
    double tolerance;
} compared;

static int compare(gpubench *bench)
{
    (void)gpubench_compare(bench, compared.output, compared.dtype, compared.reference,
                           compared.reference_dtype, compared.count, compared.tolerance);
    return GPUBENCH_OK; /* the finding ends the case all the same */
}

static void expect_comparison(struct compared what, const char *status, const char *flag)
{
    compared = what;
    expect_row((probe){NULL, compare}, status, flag);
}

static void expect_error(struct compared what, const char *max_error, const char *tolerance)
{
    probe p = {NULL, compare};
    gpubench *bench;
    compared = what;
    bench = measured(&p);
    expect_cell(bench, 0, "max_error", max_error);
    expect_cell(bench, 0, "tolerance", tolerance);
    (void)gpubench_close(bench);
}

/* |(3, 4)| = 5, and the first is 2.5 off: half of it. */
static void the_error_is_that_of_norms(void **state)
{
    const float is[] = {5.5f, 4}, should_be[] = {3, 4};
    const double reference[] = {3, 4};
    (void)state;
    expect_error((struct compared){is, should_be, "f32", "f32", 2, 0.5}, "0.5", "0.5");
    expect_error((struct compared){is, reference, "f32", "f64", 2, 1}, "0.5", "1");
    expect_comparison((struct compared){is, should_be, "f32", "f32", 2, 0.5}, "ok", "");
    expect_comparison((struct compared){is, should_be, "f32", "f32", 2, 0.25}, "mismatch",
                      "error_0.5_exceeds_the_tolerance_0.25:_element_0_is_5.5_instead_of_3");
    expect_comparison((struct compared){is, is, "f32", "f32", 2, 0}, "ok", "");
}

/* 1, -2, 0.5, 2^-24 (the smallest of f16) and 65504 (the largest), by their bits; of e4m3
 * these are 2^-9 and 448. */
static void every_dtype_is_read_as_what_it_says(void **state)
{
    const uint16_t halves[] = {0x3c00, 0xc000, 0x3800, 0x0001, 0x7bff, 0x8000};
    const uint16_t brains[] = {0x3f80, 0xc000, 0x3f00, 0x3380, 0x477f, 0x8000};
    const uint8_t bytes[] = {0x38, 0xc0, 0x30, 0x01, 0x7e, 0x80};
    const double octal[] = {1, -2, 0.5, 0x1p-9, 448, 0};
    const double exact[] = {1, -2, 0.5, 0x1p-24, 65504, 0};
    const double brain[] = {1, -2, 0.5, 0x1p-24, 65280, 0};
    const float singles[] = {1, -2, 0.5f, 0x1p-24f, 65504, -0.0f};
    (void)state;
    expect_comparison((struct compared){halves, exact, "f16", "f64", 6, 0}, "ok", "");
    expect_comparison((struct compared){brains, brain, "bf16", "f64", 6, 0}, "ok", "");
    expect_comparison((struct compared){singles, exact, "f32", "f64", 6, 0}, "ok", "");
    expect_comparison((struct compared){halves, singles, "f16", "tf32", 6, 0}, "ok", "");
    expect_comparison((struct compared){bytes, octal, "e4m3", "f64", 6, 0}, "ok", "");
}

static void a_dtype_brings_its_tolerance(void **state)
{
    const uint8_t bytes[] = {0x38};
    const uint16_t halves[] = {0x3c00};
    const float one[] = {1};
    const double exact[] = {1};
    (void)state;
    expect_error((struct compared){exact, exact, "f64", "f64", 1, GPUBENCH_OF_DTYPE}, "0", "1e-12");
    expect_error((struct compared){one, exact, "f32", "f64", 1, GPUBENCH_OF_DTYPE}, "0", "1e-05");
    expect_error((struct compared){one, one, "tf32", "f32", 1, GPUBENCH_OF_DTYPE}, "0", "0.001");
    expect_error((struct compared){halves, one, "f16", "f32", 1, GPUBENCH_OF_DTYPE}, "0", "0.001");
    expect_error((struct compared){halves, halves, "bf16", "bf16", 1, GPUBENCH_OF_DTYPE}, "0",
                 "0.006");
    expect_error((struct compared){one, halves, "f32", "f16", 1, GPUBENCH_OF_DTYPE}, "0", "0.001");
    expect_error((struct compared){bytes, one, "e4m3", "f32", 1, GPUBENCH_OF_DTYPE}, "0", "0.0361");
}

static void what_is_no_number_never_passes(void **state)
{
    const uint32_t poison[] = {0x3f800000, 0xffffffff}, infinity[] = {0x3f800000, 0x7f800000};
    const uint8_t byte_nan[] = {0x7f};
    const uint16_t half_nan[] = {0x7e00}, half_infinity[] = {0x7c00}, brain_nan[] = {0xffff};
    const float ones[] = {1, 1}, zeros[] = {0, 0};
    (void)state;
    expect_comparison((struct compared){poison, ones, "f32", "f32", 2, 1e300}, "mismatch",
                      "element_1_is_nan_instead_of_1");
    expect_comparison((struct compared){infinity, ones, "f32", "f32", 2, 1e300}, "mismatch",
                      "element_1_is_infinite_instead_of_1");
    expect_comparison((struct compared){infinity, infinity, "f32", "f32", 2, 1e300}, "mismatch",
                      "element_1_is_infinite_instead_of_infinite");
    expect_comparison((struct compared){half_nan, ones, "f16", "f32", 1, 1e300}, "mismatch",
                      "element_0_is_nan");
    expect_comparison((struct compared){half_infinity, ones, "f16", "f32", 1, 1e300}, "mismatch",
                      "element_0_is_infinite");
    expect_comparison((struct compared){brain_nan, ones, "bf16", "f32", 1, 1e300}, "mismatch",
                      "element_0_is_nan");
    expect_comparison((struct compared){byte_nan, ones, "e4m3", "f32", 1, 1e300}, "mismatch",
                      "element_0_is_nan");
    expect_comparison((struct compared){ones, zeros, "f32", "f32", 2, 1e100}, "mismatch",
                      "element_0_is_1_instead_of_0");
    expect_comparison((struct compared){zeros, zeros, "f32", "f32", 2, 0}, "ok", "");
    expect_comparison((struct compared){ones, ones, "f32", "f32", 0, 1}, "mismatch",
                      "gpubench_compare:_there_is_no_element");
}

/* More elements than are looked at at a time, and only the last one differs. */
static void the_last_of_many_elements_counts(void **state)
{
    enum { COUNT = 70001 };
    float *is = calloc(COUNT, sizeof *is), *should_be = calloc(COUNT, sizeof *should_be);
    (void)state;
    is[COUNT - 1] = 3;
    should_be[COUNT - 1] = 2;
    expect_comparison((struct compared){is, should_be, "f32", "f32", COUNT, 0.25}, "mismatch",
                      "error_0.5_exceeds_the_tolerance_0.25:_element_70000_is_3_instead_of_2");
    free(is);
    free(should_be);
}

static void an_unknown_dtype_is_refused_by_name(void **state)
{
    gpubench *bench = OPEN(QUICK);
    float value = 0;
    (void)state;
    assert_int_equal(gpubench_fill(bench, &value, "float", 1), GPUBENCH_FAILED);
    assert_int_equal(gpubench_compare(bench, &value, "f32", &value, NULL, 1, 0), GPUBENCH_FAILED);
    assert_int_equal(gpubench_close(bench), 2);
}

/* ---- what lives until close ---- */

static char ends[8];

static void note_end(void *argument)
{
    strcat(ends, (const char *)argument);
}

static void close_calls_the_last_first(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {NULL, NULL};
    gpubench_case one = gpubench_case_init("probe", run_something, &p);
    char a[] = "a", b[] = "b", c[] = "c";
    (void)state;
    ends[0] = '\0';
    gpubench_at_close(bench, note_end, a);
    gpubench_at_close(bench, note_end, b);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    gpubench_at_close(bench, note_end, c);
    assert_string_equal(ends, "");
    assert_int_equal(gpubench_close(bench), 0);
    assert_string_equal(ends, "cba");
}

/* The sanitizer tells whether they are freed. */
static void owned_memory_is_zero_and_texts_have_any_length(void **state)
{
    gpubench *bench = OPEN(QUICK);
    const unsigned char *bytes = (const unsigned char *)gpubench_own(bench, 1000);
    const char *first = gpubench_text(bench, "n=%d b=%s", 12, "x");
    const char *second = gpubench_text(bench, "%1000d", 7);
    size_t i;
    (void)state;
    assert_non_null(gpubench_own(bench, 0));
    for (i = 0; i < 1000; i++)
        assert_int_equal(bytes[i], 0);
    assert_string_equal(first, "n=12 b=x");
    assert_int_equal(strlen(second), 1000);
    assert_int_equal(second[999], '7');
    (void)gpubench_close(bench);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_upload_holds_what_the_host_had),
        cmocka_unit_test(one_allocation_that_failed_is_known_at_the_end),
        cmocka_unit_test(random_elements_have_the_moments_that_they_should),
        cmocka_unit_test(random_elements_follow_from_the_seed_and_the_turn),
        cmocka_unit_test(each_case_gets_the_same_random_elements),
        cmocka_unit_test(random_elements_are_the_same_in_every_dtype),
        cmocka_unit_test(the_error_is_that_of_norms),
        cmocka_unit_test(every_dtype_is_read_as_what_it_says),
        cmocka_unit_test(a_dtype_brings_its_tolerance),
        cmocka_unit_test(what_is_no_number_never_passes),
        cmocka_unit_test(the_last_of_many_elements_counts),
        cmocka_unit_test(an_unknown_dtype_is_refused_by_name),
        cmocka_unit_test(close_calls_the_last_first),
        cmocka_unit_test(owned_memory_is_zero_and_texts_have_any_length),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests(tests, NULL, NULL));
}
