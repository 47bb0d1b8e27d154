/*
 * test_ceilings.c - the ceilings' counts, oracle and CPU variants against hand
 * counts, small products by hand, and the oracle.
 */
#include <stdio.h>

#include "kernel_test.h"

#include "../../kernels/ceilings/ceilings.h"
#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"

static void test_counts(void **state)
{
    (void)state;
    assert_int_equal(ceilings_read_bytes(1 << 28), 1073741824);
    assert_int_equal(ceilings_write_bytes(3), 12);
    assert_int_equal(ceilings_copy_bytes(3), 24);
    assert_int_equal(ceilings_triad_bytes(3), 36);
    assert_int_equal(ceilings_triad_bytes(0), 0);
    assert_true(ceilings_copy_bytes(INT64_MAX) == UINT64_MAX);
    assert_int_equal(ceilings_gemm_flops(4096, 4096, 4096), 137438953472); /* 2 * 2^36 */
    assert_int_equal(ceilings_gemm_flops(2, 3, 5), 60);
    assert_int_equal(ceilings_gemm_bytes(2, 3, 5, KERNEL_BF16), 62); /* 10 + 15 + 6 elements */
    assert_int_equal(ceilings_gemm_flops(1, -1, 1), 0);
    assert_true(ceilings_gemm_flops(INT64_MAX, 4, 4) == UINT64_MAX);
    assert_true(ceilings_gemm_bytes(INT64_MAX, 4, 4, KERNEL_F32) == UINT64_MAX);
}

static void test_oracle(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
    const double expected[] = {58, 64, 139, 154};
    double c[4];
    ceilings_gemm_reference(2, 2, 3, a, b, c);
    for (int i = 0; i < 4; i++) assert_true(c[i] == expected[i]);
}

/* The last is three ranges of a thread, and five words. */
static const int64_t odd_sizes[] = {1, 3, 31, 33, 1025, 4096, 3 * (1 << 18) + 5};
enum { ODD_SIZES = sizeof odd_sizes / sizeof *odd_sizes };

/* One element more than is used, which must stay as it was. */
static void check_bandwidths(size_t row, int64_t words)
{
    size_t bytes = (size_t)words * sizeof(uint32_t);
    uint32_t sum = 0, expected = 0, *a = fresh(bytes + 4), *b = fresh(bytes + 4), *c = fresh(bytes + 4);
    random_normal_cpu(b, KERNEL_F32, words, 0, 1, 1);
    random_normal_cpu(c, KERNEL_F32, words, 0, 1, 2);
    b[words] = c[words] = 0; /* whose sum, unlike a NaN's, would be seen behind a's end */
    ceilings_bandwidth_args args = {words, a, b, c, &sum, 0x12345678u, 3.0f};

    for (int64_t i = 0; i < words; i++) expected += b[i];
    assert_int_equal(ceilings_read_cpu.rows[row].run(&args, NULL, NULL, NULL), 0);
    assert_int_equal(sum, expected);

    assert_int_equal(ceilings_write_cpu.rows[row].run(&args, NULL, NULL, NULL), 0);
    for (int64_t i = 0; i < words; i++) assert_int_equal(a[i], 0x12345678u);

    assert_int_equal(ceilings_copy_cpu.rows[row].run(&args, NULL, NULL, NULL), 0);
    assert_memory_equal(a, b, bytes);

    assert_int_equal(ceilings_triad_cpu.rows[row].run(&args, NULL, NULL, NULL), 0);
    for (int64_t i = 0; i < words; i++) {
        float left, right, result;
        memcpy(&left, b + i, 4);
        memcpy(&right, c + i, 4);
        memcpy(&result, a + i, 4);
        assert_true(fabs((double)result - ((double)left + 3 * (double)right)) < 1e-5);
    }
    assert_int_equal(a[words], 0xffffffffu);
    free(a);
    free(b);
    free(c);
}

static void test_bandwidths(void **state)
{
    (void)state;
    for (size_t row = 0; row < ceilings_read_cpu.count; row++)
        for (int i = 0; i < ODD_SIZES; i++) check_bandwidths(row, odd_sizes[i]);
}

static void fill(void *data, float *as_f32, kernel_dtype dtype, int64_t count, uint64_t seed)
{
    assert_int_equal(random_normal_cpu(data, dtype, count, 0, 1, seed), 0);
    kernel_to_f32(data, dtype, count, as_f32);
}

static void check_gemm(const kernel_variant *variant, int64_t m, int64_t n, int64_t k,
                       kernel_dtype dtype)
{
    size_t bytes = kernel_dtype_bytes(dtype);
    void *a = fresh((size_t)(m * k) * bytes), *b = fresh((size_t)(k * n) * bytes);
    void *c = fresh((size_t)(m * n) * bytes);
    float *a32 = fresh((size_t)(m * k) * 4), *b32 = fresh((size_t)(k * n) * 4);
    float *c32 = fresh((size_t)(m * n) * 4);
    double *reference = fresh((size_t)(m * n) * sizeof *reference), difference = 0, norm = 0;
    fill(a, a32, dtype, m * k, 3);
    fill(b, b32, dtype, k * n, 4);
    ceilings_gemm_args args = {m, n, k, dtype, a, b, c};
    void *workspace = fresh(variant->workspace_bytes(&args));
    assert_int_equal(variant->run(&args, workspace, NULL, NULL), 0);
    kernel_to_f32(c, dtype, m * n, c32);
    ceilings_gemm_reference(m, n, k, a32, b32, reference);
    for (int64_t i = 0; i < m * n; i++) {
        difference += pow((double)c32[i] - reference[i], 2);
        norm += reference[i] * reference[i];
    }
    if (!(sqrt(difference / norm) < (dtype == KERNEL_BF16 ? 4e-3 : 2e-6)))
        fail_msg("%s m=%lld n=%lld k=%lld: error %g", variant->name, (long long)m, (long long)n,
                 (long long)k, sqrt(difference / norm));
    void *all[] = {a, b, c, a32, b32, c32, reference, workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void test_gemm(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {33, 31, 1}, {127, 129, 65}, {65, 1025, 257},
                                        {64, 512, 256}, {3, 513, 515}};
    (void)state;
    for (size_t row = 0; row < ceilings_gemm_cpu.count; row++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const kernel_variant *variant = &ceilings_gemm_cpu.rows[row];
            if (why_not(variant, NULL)) continue;
            check_gemm(variant, shapes[i][0], shapes[i][1], shapes[i][2], KERNEL_F32);
            check_gemm(variant, shapes[i][0], shapes[i][1], shapes[i][2], KERNEL_BF16);
        }
}

static void test_refusals(void **state)
{
    (void)state;
    const kernel_table tables[] = {ceilings_read_cpu, ceilings_write_cpu, ceilings_copy_cpu,
                                   ceilings_triad_cpu};
    ceilings_bandwidth_args empty = {.words = 0};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (size_t row = 0; row < tables[i].count; row++)
            assert_int_equal(tables[i].rows[row].run(&empty, NULL, NULL, NULL),
                             KERNEL_ERROR_ARGUMENT);
    for (size_t row = 0; row < ceilings_gemm_cpu.count; row++) {
        ceilings_gemm_args args = {1, 0, 1, KERNEL_F32, NULL, NULL, NULL};
        assert_int_equal(ceilings_gemm_cpu.rows[row].run(&args, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
        if (ceilings_gemm_cpu.rows[row].workspace_bytes)
            assert_int_equal(ceilings_gemm_cpu.rows[row].workspace_bytes(&args), 0);
        args.n = 1;
        args.dtype = KERNEL_U8;
        assert_int_equal(ceilings_gemm_cpu.rows[row].run(&args, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_bandwidths), cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("ceilings", tests, NULL, NULL);
}
