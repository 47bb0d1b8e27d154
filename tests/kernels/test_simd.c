/*
 * test_simd.c - the loops of every family of vector instructions that this
 * processor has, against double precision and closed forms.
 */
#include "kernel_test.h"

#include <float.h>


#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"
#include "../../kernels/common/simd.h"
#include "../../kernels/ffn/ffn.h"
#include "../../kernels/linear/grid.h"
#include "../../kernels/linear/linear.h"

typedef void test_of_family(const simd_functions *f);

static void for_families(test_of_family *test)
{
    int count = 0;
    for (int i = 0; i < SIMD_FAMILIES; i++)
        if (simd_family(i)) {
            test(simd_family(i));
            count++;
        }
    assert_true(count > 0);
}

/* A name that no family has is told of with those that there are; one of them is taken. */
static void test_unknown_names(void **state)
{
    (void)state;
    unsetenv("GPUBENCH_SIMD");
    assert_null(simd_refusal());
    setenv("GPUBENCH_SIMD", simd()->name, 1);
    assert_null(simd_refusal());
    for (int i = 0; i < SIMD_FAMILIES; i++) {
        setenv("GPUBENCH_SIMD", "avx17", 1);
        assert_non_null(simd_refusal());
        assert_true(!simd_family(i) || strstr(simd_refusal(), simd_family(i)->name));
    }
    unsetenv("GPUBENCH_SIMD");
}

static float *random_floats(int64_t count, uint64_t seed)
{
    float *values = fresh((size_t)count * sizeof *values);
    assert_int_equal(random_normal_cpu(values, KERNEL_F32, count, 0, 1, seed), 0);
    return values;
}

static void sizes_of(const simd_functions *f)
{
    assert_int_equal(SIMD_TILE_ROWS % f->block_rows, 0);
    assert_int_equal(SIMD_TILE % f->block_columns, 0);
    assert_true(f->block_rows <= SIMD_MOST_ROWS && f->block_columns <= SIMD_MOST_COLUMNS);
}

/* Columns of c that are not of the result stay as they are, the sums are right. */
static void tile_of(const simd_functions *f)
{
    enum { ROWS = SIMD_TILE_ROWS, COLUMNS = SIMD_TILE, LDB = SIMD_TILE + 3, LDC = SIMD_TILE + 5 };
    float *a = random_floats(ROWS * SIMD_TILE, 1), *b = random_floats(SIMD_TILE * LDB, 2);
    float *c = fresh(ROWS * LDC * sizeof *c);
    for (int depth = 1; depth <= SIMD_TILE; depth += 9) {
        int adds = depth % 2;
        for (int i = 0; i < ROWS * LDC; i++) c[i] = 2;
        f->multiply_tile(ROWS, COLUMNS, depth, a, b, LDB, c, LDC, adds);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < LDC; j++) {
                double sum = j < COLUMNS && !adds ? 0 : 2;
                for (int p = 0; p < depth && j < COLUMNS; p++)
                    sum += (double)a[i * SIMD_TILE + p] * (double)b[p * LDB + j];
                assert_close(c[i * LDC + j], sum, 2e-5);
            }
    }
    free(a);
    free(b);
    free(c);
}

/* Weights are 2^(score - max), so that after two tiles of known scores a row of
 * out that was 1 has been rescaled by 2^-3. */
static void softmax_of(const simd_functions *f)
{
    enum { DIM = 32 };
    float *scores = fresh(SIMD_TILE * sizeof *scores), out[DIM], max = -INFINITY, sum = 0;
    for (int j = 0; j < DIM; j++) out[j] = 0;
    for (int j = 0; j < SIMD_TILE; j++) scores[j] = j == 5 ? 4.0f : 3.0f;
    f->online_softmax(1, scores, &max, &sum, out, DIM);
    assert_close(max, 4, 0);
    assert_close(sum, 1 + 63 * 0.5, 1e-5);
    assert_close(scores[5], 1, 1e-7);
    assert_close(scores[6], 0.5, 1e-7);
    for (int j = 0; j < DIM; j++) out[j] = 1;
    for (int j = 0; j < SIMD_TILE; j++) scores[j] = j == 63 ? 7.0f : -INFINITY;
    f->online_softmax(1, scores, &max, &sum, out, DIM);
    assert_close(max, 7, 0);
    assert_close(sum, 32.5 / 8 + 1, 1e-6);
    for (int j = 0; j < DIM; j++) assert_close(out[j], 0.125, 1e-8);
    free(scores);
}

/* Rows of every length to beyond four vectors of the widest family. */
static void rows_of(const simd_functions *f)
{
    for (int count = 1; count < 70; count++) {
        float *row = fresh((size_t)(count + 1) * sizeof *row);
        for (int i = 0; i < count; i++) row[i] = (float)-i;
        row[count] = 100; /* not of the row */
        assert_close(f->row_max(count, row), 0, 0);
        float sum = f->exponentiate(count, 0.5f, 1, row); /* 2^(-(i + 1) / 2) */
        double expected = 0;
        for (int i = 0; i < count; i++) {
            expected += pow(2, -(i + 1) / 2.0);
            assert_close(row[i], pow(2, -(i + 1) / 2.0), 1e-7);
        }
        assert_close(sum, expected, 1e-6);
        row[0] = 3;
        f->scale(count, 2, row);
        assert_close(row[0], 6, 0);
        assert_close(row[count], 100, 0);
        free(row);
    }
}

static void gelu_of(const simd_functions *f)
{
    enum { COUNT = 801 };
    float *x = fresh((COUNT + 1) * sizeof *x), *slope = fresh((COUNT + 1) * sizeof *slope);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i - COUNT / 2) / 40;
        slope[i] = 2;
    }
    slope[COUNT] = x[COUNT] = 5;
    f->multiply_gelu_gradient(COUNT, x, slope);
    f->gelu(COUNT, x);
    for (int i = 0; i < COUNT; i++) {
        double at = (double)((float)(i - COUNT / 2) / 40);
        assert_close(x[i], ffn_gelu(at), 1e-6 * fmax(1, fabs(at)));
        assert_close(slope[i], 2 * ffn_gelu_gradient(at), 4e-6);
    }
    assert_close(slope[COUNT], 5, 0);
    assert_close(x[COUNT], 5, 0);
    free(x);
    free(slope);
}

/* Of COUNT elements that are 0 the one at each place is 3, or no number, or nothing. */
static void places_of(const simd_functions *f)
{
    enum { COUNT = 300 };
    float x[COUNT] = {0};
    for (int place = 0; place < COUNT; place++) {
        const float value[] = {3, -INFINITY, NAN};
        const double sum[] = {1 + (COUNT - 1) * exp(-3), COUNT - 1, NAN};
        for (int i = 0; i < 3; i++) {
            float largest = -FLT_MAX, total = 0;
            x[place] = value[i];
            f->add_exponentials(COUNT, x, &largest, &total);
            if (i < 2) assert_close(largest, i == 0 ? 3 : 0, 0);
            if (i < 2) assert_close(total, sum[i], 1e-6 * sum[i]);
            assert_int_equal(isnan(total), i == 2);
        }
        x[place] = 0;
    }
}

/* What is no number stays none, and what is masked vanishes. */
static void nan_of(const simd_functions *f)
{
    float masked[2] = {-INFINITY, -1e30f};
    f->exponentiate(2, 1, 0, masked);
    assert_true(masked[0] >= 0 && masked[0] < 2e-38f && masked[1] >= 0 && masked[1] < 2e-38f);
    float row[3] = {1, NAN, 2}, pair[2] = {NAN, 1}, slope[2] = {1, 1};
    f->exponentiate(3, 1, 2, row);
    assert_true(isnan(row[1]));
    f->multiply_gelu_gradient(2, pair, slope);
    assert_true(isnan(slope[0]) && !isnan(slope[1]));
    f->gelu(2, pair);
    assert_true(isnan(pair[0]) && !isnan(pair[1]));
}

/* ---- rows that memory bounds ------------------------------------------------------- */

/* Halves of every kind, of every length to beyond two vectors, as convert.h has them. */
static void halves_of(const simd_functions *f)
{
    static const float special[] = {NAN, -NAN, INFINITY, -INFINITY, 0, -0.0f, 3.4e38f, 1e-45f,
                                    0x1.01p0f, 0x1.03p0f, 0x1.010002p0f};
    enum { COUNT = 35, SPECIAL = sizeof special / sizeof *special };
    float *values = random_floats(COUNT, 5), wide[COUNT + 1], expected_wide[COUNT];
    uint16_t halves[COUNT + 1], expected[COUNT];
    memcpy(values, special, sizeof special);
    kernel_from_f32(values, KERNEL_BF16, COUNT, expected);
    kernel_to_f32(expected, KERNEL_BF16, COUNT, expected_wide);
    for (int count = 0; count <= COUNT; count++) {
        halves[count] = 77;
        wide[count] = 77;
        f->narrow(count, values, halves);
        f->widen(count, halves, wide);
        assert_memory_equal(halves, expected, (size_t)count * sizeof *halves);
        assert_memory_equal(wide, expected_wide, (size_t)count * sizeof *wide);
        assert_int_equal(halves[count], 77);
        assert_close(wide[count], 77, 0);
    }
    free(values);
}

/* From any element to any other, through the caches and around them, and nothing
 * beside them is written. */
static void maps_of(const simd_functions *f)
{
    enum { MOST = 200 };
    float x[MOST], y[MOST], *dst = fresh(MOST * sizeof *dst);
    for (int i = 0; i < MOST; i++) x[i] = (float)i, y[i] = (float)(1000 - i);
    for (int first = 0; first < 17; first++)
        for (int count = 0; first + count < 150; count += 7)
            for (int around = 0; around < 2; around++)
                for (int which = 0; which < 3; which++) {
                    for (int i = 0; i < MOST; i++) dst[i] = -1;
                    if (which == 0) f->copy(count, x + 3, dst + first, around);
                    if (which == 1) f->fill(count, 9, dst + first, around);
                    if (which == 2) f->add_scaled(count, x + 3, 2, y + 1, dst + first, around);
                    for (int i = 0; i < MOST; i++) {
                        int at = i - first, is_in = at >= 0 && at < count;
                        float values[] = {(float)(at + 3), 9, (float)(at + 3 + 2 * (999 - at))};
                        assert_close(dst[i], is_in ? values[which] : -1, 0);
                    }
                }
    free(dst);
}

/* 1 to n: n (n + 1) / 2, and squares about the middle (n^3 - n) / 12. */
static void sums_of(const simd_functions *f)
{
    enum { MOST = 150 };
    float x[MOST + 1];
    uint32_t words[MOST + 1];
    for (int i = 0; i <= MOST; i++) x[i] = (float)(i + 1), words[i] = UINT32_MAX - 1 + (unsigned)i;
    for (int n = 1; n <= MOST; n++) {
        double middle = (n + 1) / 2.0;
        assert_close(f->sum(n, x), n * middle, 0);
        assert_close(f->sum_of_squares(n, x, (float)middle), (pow(n, 3) - n) / 12, 1e-6 * n * n * n);
        assert_int_equal(f->sum_words(n, words), (uint32_t)(n * (n - 1) / 2 - 2 * n));
        float largest = -FLT_MAX, total = 0;
        f->add_exponentials(n, x, &largest, &total); /* a geometric series of 1 / e */
        assert_close(largest, (double)x[n - 1], 0);
        assert_close(total, (1 - exp(-n)) / (1 - exp(-1)), 1e-6);
        f->add_exponentials(1, x, &largest, &total); /* nothing larger */
        assert_close(total, (1 - exp(-n)) / (1 - exp(-1)) + exp(1 - n), 1e-6);
        float gradient[MOST];
        f->softmax_gradient(n, x[n - 1], 3, x, gradient, 0);
        for (int i = 0; i < n; i++) assert_close(gradient[i], 3 * exp(i + 1 - n), 4e-7);
    }
}

/* What is beside the result stays as it is. */
static void transpose_of(const simd_functions *f)
{
    enum { LINES = 35, LENGTH = 70, SRC = LENGTH + 1, DST = LINES + 3 };
    float src[LINES * SRC], dst[(LENGTH + 1) * DST];
    for (int i = 0; i < LINES * SRC; i++) src[i] = (float)i;
    for (int lines = 1; lines <= LINES; lines += lines < 9 ? 1 : 13)
        for (int length = 1; length <= LENGTH; length += length < 9 ? 1 : 7) {
            for (int i = 0; i < (LENGTH + 1) * DST; i++) dst[i] = -1;
            f->transpose(lines, length, src, SRC, dst, DST);
            for (int j = 0; j <= LENGTH; j++)
                for (int i = 0; i < DST; i++)
                    assert_close(dst[j * DST + i], i < lines && j < length ? i * SRC + j : -1, 0);
        }
}

static void test_families(void **state)
{
    (void)state;
    for_families(sizes_of);
    for_families(tile_of);
    for_families(softmax_of);
    for_families(rows_of);
    for_families(gelu_of);
    for_families(places_of);
    for_families(nan_of);
    for_families(halves_of);
    for_families(maps_of);
    for_families(sums_of);
    for_families(transpose_of);
}

/* ---- products of any size and layout --------------------------------------------- */

static linear_matrix matrix(const float *data, int64_t rows, int64_t columns, int transposed)
{
    return transposed ? linear_transposed(data, KERNEL_F32, rows)
                      : linear_rows(data, KERNEL_F32, columns);
}

static void expect_product(const linear_way *way, int64_t m, int64_t n, int64_t k, int layout)
{
    float *a = random_floats(m * k, 3), *b = random_floats(k * n, 4);
    float *c = fresh((size_t)(m * n) * sizeof *c);
    float *scratch = fresh(linear_scratch_floats(m, n, k) * sizeof *scratch);
    int ta = layout & 1, tb = layout >> 1;
    way->multiply(m, n, k, matrix(a, m, k, ta), matrix(b, k, n, tb), c, scratch);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)a[ta ? p * m + i : i * k + p] *
                       (double)b[tb ? j * k + p : p * n + j];
            assert_close(c[i * n + j], sum, 2e-6 * (double)(k + 10));
        }
    free(a);
    free(b);
    free(c);
    free(scratch);
}

static void test_products(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 33, 7},    {13, 1, 300}, {12, 32, 256},
                                       {25, 65, 513}, {150, 300, 17}, {3, 520, 40},
                                       {130, 200, 47}, {61, 301, 270}}; /* several threads' */
    const linear_way *ways[] = {&linear_naive, &linear_tiled, &linear_simd, &linear_threads,
                                &linear_blas};
    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !linear_is_missing(ways[w]); i++)
            for (int layout = 0; layout < 4; layout++)
                expect_product(ways[w], sizes[i][0], sizes[i][1], sizes[i][2], layout);
}

/* Of matrices in which no two elements lie side by side, sums of whole numbers. */
static void test_strides(void **state)
{
    enum { M = 50, N = 70, K = 301 };
    const linear_way *ways[] = {&linear_simd, &linear_threads};
    float *a = fresh(2 * M * K * sizeof *a), *b = fresh(3 * K * N * sizeof *b);
    float *c = fresh(M * N * sizeof *c), *scratch = fresh(linear_scratch_floats(M, N, K) * 4);
    (void)state;
    for (int i = 0; i < 2 * M * K; i++) a[i] = (float)(i % 7);
    for (int i = 0; i < 3 * K * N; i++) b[i] = (float)(i % 5);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        ways[w]->multiply(M, N, K, (linear_matrix){a, KERNEL_F32, 2 * K, 2},
                          (linear_matrix){b, KERNEL_F32, 3 * N, 3}, c, scratch);
        for (int i = 0; i < M * N; i++) {
            int sum = 0;
            for (int p = 0; p < K; p++)
                sum += (2 * (i / N * K + p)) % 7 * ((3 * (i % N + p * N)) % 5);
            assert_close(c[i], sum, 0);
        }
    }
    free(a);
    free(b);
    free(c);
    free(scratch);
}

/* Every element is in one part, and no thread has much more than its share: 5 % where the
 * threads divide evenly, 20 % where they are a prime, or three of them and five. */
static void test_parts(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 16; threads++)
        for (int64_t m = 512; m <= 2048; m += 256)
            for (int64_t n = 768; n <= 3072; n += 256) {
                linear_grid g = linear_divide(m, n, threads, 12, 32);
                int64_t down = g.parts / g.across;
                assert_int_equal(g.parts, down * g.across);
                assert_true(down * g.rows >= m && (down - 1) * g.rows < m);
                assert_true(g.across * g.columns >= n && (g.across - 1) * g.columns < n);
                assert_true(g.rows % 12 == 0 && g.columns % 32 == 0);
                double most = (double)(linear_pieces(g.parts, threads) * g.rows * g.columns);
                int even = (threads & (threads - 1)) == 0;
                assert_true(most <= (even ? 1.05 : 1.2) * (double)(m * n) / threads);
                assert_true(g.parts >= threads || !even);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests_name("simd", tests, NULL, NULL);
}
