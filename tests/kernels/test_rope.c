/*
 * test_rope.c - the rope operation: its formulas against counts by hand, the oracle
 * against angles whose sines are known and against finite differences, and the CPU
 * variants against the oracle at odd shapes.
 */
#include "kernel_test.h"

#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"
#include "../../kernels/rope/rope.h"

static void test_formulas(void **state)
{
    const rope_shape s = {2, 3, 5, 4}, odd = {2, 3, 5, 3}, none = {0, 3, 5, 4};
    const rope_shape huge = {INT64_MAX, 3, 5, 4};
    (void)state;
    assert_int_equal(rope_bytes(&s, KERNEL_F32), 2 * 120 * 4);
    assert_int_equal(rope_bytes(&s, KERNEL_BF16), 2 * 120 * 2);
    assert_int_equal(rope_flops(&s), 60 * 6);
    assert_int_equal(rope_bytes(&odd, KERNEL_F32), 0);
    assert_int_equal(rope_flops(&none), 0);
    assert_true(rope_bytes(&huge, KERNEL_F32) == UINT64_MAX);
}

/* Angles of token 3: 3 of the first pair, 3 / 100 of the second (10000^(-1/2)). */
static void test_oracle_by_hand(void **state)
{
    const rope_shape s = {1, 1, 4, 4};
    const float x[] = {1, 2, 0, 0};
    double out[4];
    (void)state;
    rope_forward_reference(&s, 0, x, out);
    for (int i = 0; i < 4; i++)
        assert_close(out[i], (double)x[i], 0);
    rope_forward_reference(&s, 3, x, out);
    assert_close(out[0], -0.98999249660044546, 1e-15);
    assert_close(out[2], 0.14112000805986722, 1e-15);
    assert_close(out[1], 2 * 0.99955003374898754, 1e-15);
    assert_close(out[3], 2 * 0.02999550020249566, 1e-15);
}

/* The map is linear: a difference quotient is exact but for rounding. */
static void test_backward_by_finite_differences(void **state)
{
    enum { DIM = 6, TOKEN = 5 };
    const rope_shape s = {1, 1, 9, DIM};
    float x[DIM], dout[DIM];
    double dx[DIM], above[DIM], below[DIM];
    (void)state;
    random_normal_cpu(dout, KERNEL_F32, DIM, 0, 1, 3);
    rope_backward_reference(&s, TOKEN, dout, dx);
    for (int i = 0; i < DIM; i++) {
        double quotient = 0;
        for (int j = 0; j < DIM; j++) x[j] = j == i ? 1.5f : 1;
        rope_forward_reference(&s, TOKEN, x, above);
        x[i] = 0.5f;
        rope_forward_reference(&s, TOKEN, x, below);
        for (int j = 0; j < DIM; j++) quotient += (double)dout[j] * (above[j] - below[j]);
        assert_close(dx[i], quotient, 1e-14);
    }
}

typedef void row_reference(const rope_shape *shape, int64_t token, const float *in, double *out);

/* Every row against the oracle, and nothing written behind the last. */
static void check_variant(const kernel_variant *variant, const rope_shape *s, kernel_dtype dtype,
                          row_reference *reference, double tolerance)
{
    int64_t rows = s->batch * s->heads * s->tokens, count = rows * s->head_dim;
    size_t bytes = (size_t)count * kernel_dtype_bytes(dtype);
    rope_args args = {.shape = *s, .dtype = dtype, .in = fresh(bytes), .out = fresh(bytes)};
    void *workspace = fresh(variant->workspace_bytes ? variant->workspace_bytes(&args) : 0);
    float *in = fresh((size_t)count * sizeof *in), *out = fresh((size_t)count * sizeof *out);
    double expected[64];
    random_normal_cpu((void *)args.in, dtype, count, 0, 1, 7);
    assert_int_equal(variant->run(&args, workspace, NULL, NULL), KERNEL_OK);
    kernel_to_f32(args.in, dtype, count, in);
    kernel_to_f32(args.out, dtype, count, out);
    for (int64_t row = 0; row < rows; row++) {
        reference(s, row % s->tokens, in + row * s->head_dim, expected);
        for (int64_t i = 0; i < s->head_dim; i++)
            assert_close((double)out[row * s->head_dim + i], expected[i], tolerance);
    }
    assert_int_equal(((unsigned char *)args.out)[bytes], 0xff);
    free((void *)args.in);
    free(args.out);
    free(workspace);
    free(in);
    free(out);
}

static void test_variants(void **state)
{
    const rope_shape shapes[] = {{1, 1, 1, 2}, {2, 3, 7, 6}, {1, 1, 5000, 10}, {3, 1, 17, 64}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t row = 0; row < rope_forward_cpu.count; row++) {
            check_variant(&rope_forward_cpu.rows[row], &shapes[i], KERNEL_F32,
                          rope_forward_reference, 2e-6);
            check_variant(&rope_forward_cpu.rows[row], &shapes[i], KERNEL_BF16,
                          rope_forward_reference, 4e-2);
        }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t row = 0; row < rope_backward_cpu.count; row++) {
            check_variant(&rope_backward_cpu.rows[row], &shapes[i], KERNEL_F32,
                          rope_backward_reference, 2e-6);
            check_variant(&rope_backward_cpu.rows[row], &shapes[i], KERNEL_BF16,
                          rope_backward_reference, 4e-2);
        }
}

static void test_refusals(void **state)
{
    const rope_args good = {.shape = {1, 1, 2, 4}, .dtype = KERNEL_F32};
    (void)state;
    for (size_t row = 0; row < rope_forward_cpu.count; row++) {
        rope_args half = good, odd = good;
        half.dtype = KERNEL_U8;
        odd.shape.head_dim = 3;
        assert_int_equal(rope_forward_cpu.rows[row].run(&half, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
        assert_int_equal(rope_backward_cpu.rows[row].run(&odd, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_oracle_by_hand),
        cmocka_unit_test(test_backward_by_finite_differences),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
