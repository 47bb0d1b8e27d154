/*
 * test_ffn.c - the feed-forward network's counts, oracle and CPU variants
 * against values known from elsewhere: hand counts, published values of GELU,
 * finite differences, the oracle.
 */
#include <stdio.h>

#include "kernel_test.h"

#include "../../kernels/common/convert.h"
#include "../../kernels/ffn/ffn.h"
#include "../../kernels/common/random.h"

static void test_counts(void **state)
{
    (void)state;
    /* 16 * 512 * 768^2 and twice that. */
    ffn_shape small = {512, 768, 3072};
    assert_int_equal(ffn_forward_flops(&small), 4831838208);
    assert_int_equal(ffn_backward_flops(&small), 9663676416);
    /* x and y 2 * 393216, weights 2 * 2359296, biases 3840 elements. */
    assert_int_equal(ffn_forward_bytes(&small, KERNEL_F32, 0), 4 * 5508864);
    /* and pre and hidden, 2 * 1572864. */
    assert_int_equal(ffn_forward_bytes(&small, KERNEL_BF16, 1), 2 * 8654592);
    /* e4m3: x 393216 and weights of a byte; y 393216 and biases of two. */
    assert_int_equal(ffn_forward_bytes(&small, KERNEL_E4M3, 0), 5111808 + 2 * 397056);
    /* x, dy, dx; pre, hidden; two weights and their gradients; db1 and db2. */
    assert_int_equal(ffn_backward_bytes(&small, KERNEL_F32), 4 * 13766400);
    ffn_shape huge = {INT64_MAX, INT64_MAX, 1}, empty = {1, 0, 1};
    assert_true(ffn_forward_flops(&huge) == UINT64_MAX);
    assert_true(ffn_forward_bytes(&huge, KERNEL_BF16, 1) == UINT64_MAX);
    assert_true(ffn_backward_bytes(&huge, KERNEL_BF16) == UINT64_MAX);
    assert_int_equal(ffn_forward_flops(&empty), 0);
    assert_int_equal(ffn_forward_bytes(&empty, KERNEL_F32, 0), 0);
}

/* Values of the tanh form by Python's math module; the limits are 0 and x. */
static void test_gelu(void **state)
{
    (void)state;
    assert_close(ffn_gelu(0), 0, 0);
    assert_close(ffn_gelu(1), 0.8411919906082768, 1e-15);
    assert_close(ffn_gelu(-1), -0.15880800939172324, 1e-15);
    assert_close(ffn_gelu(2), 1.9545976940877752, 1e-15);
    assert_close(ffn_gelu(-3), -0.0036373920817729943, 1e-15);
    assert_close(ffn_gelu(40), 40, 0);
    assert_close(ffn_gelu(-40), 0, 0);
    for (double x = -6; x <= 6; x += 0.375) {
        double step = 1e-5;
        assert_close(ffn_gelu_gradient(x), (ffn_gelu(x + step) - ffn_gelu(x - step)) / (2 * step),
                     1e-9);
    }
}

/* Two units of width two, by hand: which index of which weight is which. */
static void test_oracle_layout(void **state)
{
    (void)state;
    const float w1[] = {1, 2, 3, 4, 5, 6}; /* unit 0: 1, 2; unit 1: 3, 4; unit 2: 5, 6 */
    const float b1[] = {0.5f, -40, 1};
    const float w2[] = {1, 2, 3, 10, 20, 30}; /* output 0: 1, 2, 3; output 1: 10, 20, 30 */
    const float b2[] = {7, 8}, x[] = {20, 10};
    const ffn_parameters parameters = {w1, b1, w2, b2};
    ffn_shape shape = {1, 2, 3};
    double y[2], pre[3], hidden[3];

    ffn_forward_reference(&shape, &parameters, x, 1, y, pre, hidden);
    assert_close(pre[0], 40.5, 0);
    assert_close(pre[1], 60, 0);
    assert_close(pre[2], 161, 0);
    assert_close(hidden[1], 60, 0); /* so far out GELU is the identity */
    assert_close(y[0], 7 + 40.5 + 2 * 60 + 3 * 161, 0);
    assert_close(y[1], 8 + 10 * (40.5 + 2 * 60 + 3 * 161), 0);
}

/* ---- a problem: inputs of a dtype, the same as f32, and every output ------------- */

enum { X, W1, B1, W2, B2, DY, INPUTS };
enum { Y, PRE, HIDDEN, DX, DW1, DB1, DW2, DB2, OUTPUTS };

typedef struct problem {
    ffn_shape shape;
    kernel_dtype dtype;
    int64_t in_count[INPUTS], out_count[OUTPUTS];
    void *in[INPUTS], *out[OUTPUTS];
    float *in_f32[INPUTS], *out_f32[OUTPUTS];
} problem;

static void count_elements(problem *p)
{
    int64_t n = p->shape.tokens, w = p->shape.width, h = p->shape.hidden;
    const int64_t in[INPUTS] = {n * w, w * h, h, w * h, w, n * w};
    const int64_t out[OUTPUTS] = {n * w, n * h, n * h, n * w, w * h, h, w * h, w};
    memcpy(p->in_count, in, sizeof in);
    memcpy(p->out_count, out, sizeof out);
}

static void make_problem(problem *p, ffn_shape shape, kernel_dtype dtype)
{
    p->shape = shape;
    p->dtype = dtype;
    count_elements(p);
    for (int i = 0; i < INPUTS; i++) {
        double depth = (double)(i == W2 ? shape.hidden : i == W1 ? shape.width : 1);
        p->in[i] = fresh((size_t)p->in_count[i] * kernel_dtype_bytes(dtype));
        p->in_f32[i] = fresh((size_t)p->in_count[i] * sizeof(float));
        assert_int_equal(random_normal_cpu(p->in[i], dtype, p->in_count[i], 0,
                                           (float)(1 / sqrt(depth)), 20 + (uint64_t)i), 0);
        kernel_to_f32(p->in[i], dtype, p->in_count[i], p->in_f32[i]);
    }
    for (int i = 0; i < OUTPUTS; i++) {
        p->out[i] = fresh((size_t)p->out_count[i] * kernel_dtype_bytes(dtype));
        p->out_f32[i] = fresh((size_t)p->out_count[i] * sizeof(float));
    }
}

static void free_problem(problem *p)
{
    for (int i = 0; i < INPUTS; i++) free(p->in[i]), free(p->in_f32[i]);
    for (int i = 0; i < OUTPUTS; i++) free(p->out[i]), free(p->out_f32[i]);
}

static ffn_parameters parameters_of(const problem *p)
{
    return (ffn_parameters){p->in_f32[W1], p->in_f32[B1], p->in_f32[W2], p->in_f32[B2]};
}

static ffn_forward_args forward_args(problem *p, int keeps)
{
    return (ffn_forward_args){p->shape, p->dtype, p->in[X], p->in[W1], p->in[B1], p->in[W2],
                              p->in[B2], p->out[Y], keeps ? p->out[PRE] : NULL,
                              keeps ? p->out[HIDDEN] : NULL, NULL};
}

static ffn_backward_args backward_args(problem *p)
{
    return (ffn_backward_args){p->shape, p->dtype, p->in[X], p->in[W1], p->in[W2], p->out[PRE],
                               p->out[HIDDEN], p->in[DY], p->out[DX], p->out[DW1], p->out[DB1],
                               p->out[DW2], p->out[DB2]};
}

static int run_variant(const kernel_variant *variant, const void *args)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    void *workspace = fresh(bytes);
    int code = variant->run(args, workspace, NULL, NULL);
    free(workspace);
    return code;
}

/* ---- the oracle's gradients by finite differences --------------------------------- */

/* sum(dy * y) for the problem's f32 inputs: the gradients are its derivatives. */
static double loss(const problem *p)
{
    int64_t n = p->shape.tokens, w = p->shape.width, h = p->shape.hidden;
    double *y = fresh((size_t)(n * (w + 2 * h)) * sizeof *y), sum = 0;
    ffn_parameters parameters = parameters_of(p);
    ffn_forward_reference(&p->shape, &parameters, p->in_f32[X], n, y, y + n * w, y + n * (w + h));
    for (int64_t i = 0; i < n * w; i++) sum += (double)p->in_f32[DY][i] * y[i];
    free(y);
    return sum;
}

/* What the step in f32 really was is what the difference is divided by. */
static double derivative(problem *p, int input, int64_t index)
{
    float *value = &p->in_f32[input][index], saved = *value;
    float above = saved + 0x1p-10f, below = saved - 0x1p-10f;
    *value = above;
    double high = loss(p);
    *value = below;
    double low = loss(p);
    *value = saved;
    return (high - low) / ((double)above - (double)below);
}

/* All gradients, of the shapes of the problem's outputs. */
static void reference_gradients(const problem *p, double *const gradients[OUTPUTS])
{
    int64_t w = p->shape.width, h = p->shape.hidden;
    ffn_parameters parameters = parameters_of(p);
    double *column = fresh((size_t)w * sizeof *column);
    ffn_backward_reference_rows(&p->shape, &parameters, p->in_f32[X], p->in_f32[DY],
                                p->shape.tokens, gradients[DX], gradients[PRE]);
    for (int64_t unit = 0; unit < h; unit++) {
        ffn_backward_reference_unit(&p->shape, &parameters, p->in_f32[X], p->in_f32[DY], unit,
                                    gradients[DW1] + unit * w, gradients[DB1] + unit, column);
        for (int64_t c = 0; c < w; c++) gradients[DW2][c * h + unit] = column[c];
    }
    ffn_backward_reference_bias(&p->shape, p->in_f32[DY], gradients[DB2]);
    free(column);
}

static void allocate_doubles(const problem *p, double *gradients[OUTPUTS])
{
    for (int i = 0; i < OUTPUTS; i++)
        gradients[i] = fresh((size_t)p->out_count[i] * sizeof **gradients);
}

static void free_doubles(double *gradients[OUTPUTS])
{
    for (int i = 0; i < OUTPUTS; i++) free(gradients[i]);
}

static void test_oracle_gradients(void **state)
{
    static const int input_of[OUTPUTS] = {[DX] = X, [DW1] = W1, [DB1] = B1, [DW2] = W2, [DB2] = B2};
    (void)state;
    problem p;
    double *gradients[OUTPUTS];
    make_problem(&p, (ffn_shape){3, 5, 7}, KERNEL_F32);
    allocate_doubles(&p, gradients);
    reference_gradients(&p, gradients);
    for (int output = DX; output < OUTPUTS; output++)
        for (int64_t i = 0; i < p.out_count[output]; i++) {
            double expected = derivative(&p, input_of[output], i);
            if (!(fabs(gradients[output][i] - expected) < 1e-5))
                fail_msg("gradient %d, element %lld: %.9g, by differences %.9g", output,
                         (long long)i, gradients[output][i], expected);
        }
    free_doubles(gradients);
    free_problem(&p);
}

/* ---- variants -------------------------------------------------------------------- */

static double error_of(problem *p, int output, const double *reference)
{
    double difference = 0, norm = 0;
    kernel_to_f32(p->out[output], p->dtype, p->out_count[output], p->out_f32[output]);
    for (int64_t i = 0; i < p->out_count[output]; i++) {
        difference += pow((double)p->out_f32[output][i] - reference[i], 2);
        norm += reference[i] * reference[i];
    }
    return sqrt(difference / norm);
}

static void expect_outputs(problem *p, const char *variant, int first, int last,
                           double *const references[OUTPUTS])
{
    double bound = p->dtype == KERNEL_BF16 ? 1.2e-2 : 3e-6;
    for (int output = first; output <= last; output++) {
        double error = error_of(p, output, references[output]);
        if (!(error < bound))
            fail_msg("%s tokens=%lld width=%lld hidden=%lld %s: output %d is off by %g", variant,
                     (long long)p->shape.tokens, (long long)p->shape.width,
                     (long long)p->shape.hidden, kernel_dtype_name(p->dtype), output, error);
    }
}

static const ffn_shape odd_shapes[] = {
    {1, 1, 1}, {1, 31, 33}, {127, 33, 129}, {129, 31, 65}, {3, 300, 1025}, {65, 64, 256},
};
enum { ODD_SHAPES = sizeof odd_shapes / sizeof *odd_shapes };

static void check_variants(ffn_shape shape, kernel_dtype dtype)
{
    problem p;
    double *references[OUTPUTS];
    ffn_parameters parameters;
    make_problem(&p, shape, dtype);
    allocate_doubles(&p, references);
    parameters = parameters_of(&p);
    for (size_t row = 0; row < ffn_forward_cpu.count; row++)
        for (int keeps = 0; keeps < 2; keeps++) {
            ffn_forward_args args = forward_args(&p, keeps);
            if (why_not(&ffn_forward_cpu.rows[row], &args)) continue;
            memset(p.out[Y], 0xff, (size_t)p.out_count[Y] * kernel_dtype_bytes(dtype));
            assert_int_equal(run_variant(&ffn_forward_cpu.rows[row], &args), 0);
            ffn_forward_reference(&shape, &parameters, p.in_f32[X], shape.tokens, references[Y],
                                  references[PRE], references[HIDDEN]);
            expect_outputs(&p, ffn_forward_cpu.rows[row].name, Y, keeps ? HIDDEN : Y, references);
        }
    reference_gradients(&p, references);
    for (size_t row = 0; row < ffn_backward_cpu.count; row++) {
        ffn_backward_args args = backward_args(&p);
        if (why_not(&ffn_backward_cpu.rows[row], &args)) continue;
        for (int output = DX; output < OUTPUTS; output++)
            memset(p.out[output], 0xff, (size_t)p.out_count[output] * kernel_dtype_bytes(dtype));
        assert_int_equal(run_variant(&ffn_backward_cpu.rows[row], &args), 0);
        expect_outputs(&p, ffn_backward_cpu.rows[row].name, DX, DB2, references);
    }
    free_doubles(references);
    free_problem(&p);
}

static void test_variants(void **state)
{
    (void)state;
    for (int i = 0; i < ODD_SHAPES; i++) {
        check_variants(odd_shapes[i], KERNEL_F32);
        check_variants(odd_shapes[i], KERNEL_BF16);
    }
}

/* Where x^2 no longer fits, the slope is 1 or 0, and nothing is infinity times 0. */
static void test_gelu_of_huge_values(void **state)
{
    (void)state;
    assert_close(ffn_gelu_gradient(1e200), 1, 0);
    assert_close(ffn_gelu_gradient(-1e200), 0, 0);
    for (size_t row = 0; row < ffn_backward_cpu.count; row++) {
        problem p;
        if (why_not(&ffn_backward_cpu.rows[row], NULL)) continue;
        make_problem(&p, (ffn_shape){.tokens = 1, .width = 1, .hidden = 2}, KERNEL_F32);
        ffn_backward_args args = backward_args(&p);
        float *pre = p.out[PRE];
        const float *db1 = p.out[DB1];
        pre[0] = 3e38f, pre[1] = -3e38f;
        memset(p.out[HIDDEN], 0, 2 * sizeof(float));
        assert_int_equal(run_variant(&ffn_backward_cpu.rows[row], &args), 0);
        assert_true(db1[0] == p.in_f32[DY][0] * p.in_f32[W2][0]);
        assert_true(db1[1] == 0);
        free_problem(&p);
    }
}

/* ---- e4m3 -------------------------------------------------------------------------- */

/* A pass of e4m3, by its only variant on the CPU, of values that e4m3 and bf16 have. */
typedef struct small_e4m3 {
    ffn_shape shape;
    const float *x, *w1, *b1, *w2, *b2;
    ffn_scales scales;
} small_e4m3;

static void *encode(const float *values, kernel_dtype dtype, int64_t count)
{
    void *memory = fresh((size_t)count * kernel_dtype_bytes(dtype));
    kernel_from_f32(values, dtype, count, memory);
    return memory;
}

static void run_e4m3(const small_e4m3 *p, float *y)
{
    int64_t n = p->shape.tokens, w = p->shape.width, h = p->shape.hidden;
    void *memory[] = {encode(p->x, KERNEL_E4M3, n * w), encode(p->w1, KERNEL_E4M3, w * h),
                      encode(p->b1, KERNEL_BF16, h),    encode(p->w2, KERNEL_E4M3, w * h),
                      encode(p->b2, KERNEL_BF16, w),    fresh((size_t)(n * w) * 2)};
    ffn_forward_args args = {.shape = p->shape, .dtype = KERNEL_E4M3, .x = memory[0],
                             .w1 = memory[1], .b1 = memory[2], .w2 = memory[3], .b2 = memory[4],
                             .y = memory[5], .scales = &p->scales};
    assert_int_equal(run_variant(kernel_find(&ffn_forward_cpu, "naive"), &args), 0);
    kernel_to_f32(args.y, KERNEL_BF16, n * w, y);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) free(memory[i]);
}

/* By hand, of x = 8, 16 and -32 and factors that differ: pre is 2 * (8 + 2 * 16) + 17 = 97,
 * 2 * 32 + 10 = 74 and -2 * 32 + 216 = 152, so far out that GELU is the identity. */
static void test_e4m3_by_hand(void **state)
{
    (void)state;
    const float x[] = {2, 4, -8}, w1[] = {1, 2, 0, 0, 0, -1, 0, 0, 1}, b1[] = {17, 10, 216};
    const float w2[] = {1, 2, -1, 0.5f, 0, 0, 0, 1, 0}, b2[] = {3, -1, 0.5f};
    float y[3];
    small_e4m3 p = {{1, 3, 3}, x, w1, b1, w2, b2,
                    {{.factor = 4}, {.factor = 2}, {.factor = 4}, {.factor = 0.25f}, {.factor = 0.5f}}};
    run_e4m3(&p, y);
    /* In steps of 4 hidden is 24.25, 18.5 and 38, of which e4m3 has 24, 18 and (between 36
     * and 40, a tie) 40: 96, 72 and 160. */
    assert_true(y[0] == 3 + 0.5f * (96 + 2 * 72 - 160));
    p.scales.hidden.factor = 0.125f;
    p.scales.per_hidden.factor = 8; /* 776, 592 and 1216, all beyond 448: 56 each */
    run_e4m3(&p, y);
    assert_true(y[1] == -1 + 0.5f * 0.5f * 56);
    assert_true(y[2] == 0.5f + 0.5f * 56);
}

/* Against the oracle, whose hidden is not rounded: within suite.h's bound, and not within
 * a quarter of it, as what did not round at all would be. */
static void test_e4m3_rounds_once(void **state)
{
    (void)state;
    enum { N = 16, W = 48, H = 160 };
    float values[5][W * H], y[N * W];
    double expected[N * W], pre[N * H], hidden[N * H], difference = 0, norm = 0;
    const int64_t counts[] = {N * W, W * H, H, W * H, W};
    const float factors[] = {1 / 64.0f, 1 / 448.0f, 1, 1 / 768.0f, 1};
    const ffn_scales scales = {{.factor = factors[0]}, {.factor = factors[1]},
                               {.factor = 1 / 64.0f}, {.factor = 64}, {.factor = factors[3]}};
    ffn_shape shape = {N, W, H};
    for (int i = 0; i < 5; i++) {
        kernel_dtype dtype = factors[i] < 1 ? KERNEL_E4M3 : KERNEL_BF16;
        void *memory = fresh((size_t)counts[i] * 2);
        random_normal_cpu(memory, dtype, counts[i], 0, dtype == KERNEL_E4M3 ? 64 : 0.1f,
                          50 + (uint64_t)i);
        kernel_to_f32(memory, dtype, counts[i], values[i]);
        free(memory);
    }
    small_e4m3 p = {shape, values[0], values[1], values[2], values[3], values[4], scales};
    run_e4m3(&p, y);
    for (int i = 0; i < 5; i++)
        for (int64_t j = 0; j < counts[i]; j++) values[i][j] *= factors[i];
    ffn_parameters parameters = {values[1], values[2], values[3], values[4]};
    ffn_forward_reference(&shape, &parameters, values[0], N, expected, pre, hidden);
    for (int i = 0; i < N * W; i++) {
        difference += pow((double)y[i] - expected[i], 2);
        norm += expected[i] * expected[i];
    }
    assert_true(sqrt(difference / norm) < 0.0361);
    assert_true(sqrt(difference / norm) > 0.0361 / 4);
}

static void test_e4m3_refusals(void **state)
{
    (void)state;
    uint16_t kept[1];
    const ffn_scales scales = {{.factor = 1}, {.factor = 1}, {.factor = 1}, {.factor = 1},
                               {.factor = 1}};
    const kernel_variant *naive = kernel_find(&ffn_forward_cpu, "naive");
    ffn_forward_args args = {.shape = {1, 1, 1}, .dtype = KERNEL_E4M3};
    assert_int_equal(run_variant(naive, &args), KERNEL_ERROR_ARGUMENT); /* no scales */
    args.scales = &scales;
    args.pre = args.hidden = kept;
    assert_int_equal(run_variant(naive, &args), KERNEL_ERROR_ARGUMENT); /* nothing is kept */
    args.pre = args.hidden = NULL;
    assert_int_equal(run_variant(kernel_find(&ffn_forward_cpu, "tiled"), &args),
                     KERNEL_ERROR_ARGUMENT);
}

static void test_refusals(void **state)
{
    (void)state;
    problem p;
    make_problem(&p, (ffn_shape){2, 3, 4}, KERNEL_F32);
    for (size_t row = 0; row < ffn_forward_cpu.count; row++) {
        ffn_forward_args args = forward_args(&p, 1);
        args.dtype = KERNEL_U8;
        assert_int_equal(run_variant(&ffn_forward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
        args = forward_args(&p, 1);
        args.pre = NULL;
        assert_int_equal(run_variant(&ffn_forward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
        args = forward_args(&p, 1);
        args.shape.tokens = 0;
        assert_int_equal(run_variant(&ffn_forward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
    }
    for (size_t row = 0; row < ffn_backward_cpu.count; row++) {
        ffn_backward_args args = backward_args(&p);
        args.dtype = KERNEL_U8;
        assert_int_equal(run_variant(&ffn_backward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
        args = backward_args(&p);
        args.shape.hidden = -1;
        assert_int_equal(run_variant(&ffn_backward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
    }
    free_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),          cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_oracle_layout),   cmocka_unit_test(test_oracle_gradients),
        cmocka_unit_test(test_variants),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gelu_of_huge_values), cmocka_unit_test(test_e4m3_by_hand),
        cmocka_unit_test(test_e4m3_rounds_once), cmocka_unit_test(test_e4m3_refusals),
    };
    return cmocka_run_group_tests_name("ffn", tests, NULL, NULL);
}
