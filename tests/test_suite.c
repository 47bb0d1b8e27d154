/*
 * test_suite.c - what the suites share: the search for elements that were not
 * written, samples of indices, sizes that do not fit.
 */
#include "../suites/suite.c"

#include "kernel_test.h"

enum { COUNT = 1000 };

/* Ordinary numbers and infinities of either sign. */
static void fill(float *values)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i - COUNT / 2) * 1e3f;
    values[3] = INFINITY;
    values[4] = -INFINITY;
}

/* A NaN that was computed, and bytes that poison left, are found where they are. */
static void test_nans_are_found(void **state)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    float values[COUNT];
    uint32_t raw[COUNT];
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        size_t element = kernel_dtype_bytes(dtypes[d]);
        fill(values);
        kernel_from_f32(values, dtypes[d], COUNT, raw);
        assert_int_equal(find_nan(raw, dtypes[d], COUNT), COUNT);
        for (int at = 0; at < COUNT; at += 37) {
            fill(values);
            values[at] = NAN;
            kernel_from_f32(values, dtypes[d], COUNT, raw);
            assert_int_equal(find_nan(raw, dtypes[d], COUNT), at);
            memset((char *)raw + (size_t)at * element, 0xff, element);
            assert_int_equal(find_nan(raw, dtypes[d], COUNT), at);
        }
    }
}

/* The first, the last, ascending, no repeats, all of them where few are there. */
static void test_samples_of_indices(void **state)
{
    int64_t indices[64], all = suite_sample_indices(1, 5, 64, indices);
    (void)state;
    assert_int_equal(all, 5);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(indices[i], i);
    for (uint64_t seed = 0; seed < 100; seed++) {
        int64_t count = suite_sample_indices(seed, 1000, 64, indices);
        assert_in_range(count, 50, 64);
        assert_int_equal(indices[0], 0);
        assert_int_equal(indices[count - 1], 999);
        for (int64_t i = 1; i < count; i++)
            assert_true(indices[i] > indices[i - 1]);
    }
}

static void test_sizes_that_do_not_fit(void **state)
{
    int64_t fits[] = {3, 5, 7}, huge[] = {INT64_MAX, 2};
    (void)state;
    assert_int_equal(suite_product(fits, 3), 105);
    assert_true(suite_product(huge, 2) == INT64_MAX);
    assert_int_equal(suite_bytes(3, KERNEL_BF16), 6);
    assert_true(suite_bytes(INT64_MAX, KERNEL_F32) == SIZE_MAX);
    assert_true(suite_bytes(-1, KERNEL_F32) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nans_are_found),
        cmocka_unit_test(test_samples_of_indices),
        cmocka_unit_test(test_sizes_that_do_not_fit),
    };
    return cmocka_run_group_tests_name("suite", tests, NULL, NULL);
}
