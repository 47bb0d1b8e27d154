/*
 * test_block.c - the block's counts, oracle and CPU variants against hand
 * counts, against a block written down here once more, all in double, and
 * against finite differences of that one.
 */
#include <stdio.h>

#include "kernel_test.h"

#include "../../kernels/block/block.h"
#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"

static double *fresh_doubles(int64_t count)
{
    return fresh((size_t)count * sizeof(double));
}

/* ---- counts ------------------------------------------------------------------------ */

static void test_counts(void **state)
{
    (void)state;
    /* GPT-2 small at batch 4, context 128: n = 512 rows. */
    const block_shape small = {4, 128, 768, 12, 3072};
    /* 2 * 512 * 12 * 768^2 and attention 4 * 4 * 12 * 128^2 * 64 / 2. */
    assert_int_equal(block_forward_flops(&small, BLOCK_WHOLE), 7247757312 + 100663296);
    assert_int_equal(block_backward_flops(&small, BLOCK_WHOLE), 2 * 7247757312 + 251658240);
    assert_int_equal(block_forward_flops(&small, BLOCK_FORWARD_QKV), 1811939328);
    assert_int_equal(block_backward_flops(&small, BLOCK_BACKWARD_UP_WEIGHT), 2415919104);
    assert_int_equal(block_forward_flops(&small, BLOCK_FORWARD_MERGE), 0);
    /* Weights 12 * 768^2, biases 9 * 768, norms 4 * 768: 7087872 parameters. */
    int64_t parameters = 0;
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        parameters += block_parameter_count(&small, (block_parameter)i);
    assert_int_equal(parameters, 7087872);
    /* With x and y, 393216 each; backward three of those and the parameters twice. */
    assert_int_equal(block_forward_bytes(&small, KERNEL_F32, BLOCK_WHOLE), 4 * 7874304);
    assert_int_equal(block_backward_bytes(&small, KERNEL_BF16, BLOCK_WHOLE), 2 * 15355392);
    /* 4 rows of 768 in, 3 * 768 out, and the weight: 512 * 3072 + 1769472 + 2304. */
    assert_int_equal(block_forward_bytes(&small, KERNEL_BF16, BLOCK_FORWARD_QKV), 2 * 3344640);
    /* Merged and x in, middle out, a weight and a bias: 3 * 393216 + 589824 + 768. */
    assert_int_equal(block_forward_bytes(&small, KERNEL_BF16, BLOCK_FORWARD_PROJECTION),
                     2 * 1770240);
    assert_int_equal(block_activation_count(&small, BLOCK_LSE), 6144);
    assert_int_equal(block_activation_count(&small, BLOCK_Q), 393216);
    assert_int_equal(block_gradient_count(&small, BLOCK_LSE), 0);
    assert_int_equal(block_activation_dtype(BLOCK_MEAN2, KERNEL_BF16), KERNEL_F32);
    assert_int_equal(block_activation_dtype(BLOCK_PRE, KERNEL_BF16), KERNEL_BF16);
}

static void test_count_limits(void **state)
{
    (void)state;
    const block_shape huge = {1, INT64_MAX, 4, 2, 4}, odd = {1, 1, 5, 2, 4};
    const block_shape empty = {1, 0, 4, 2, 4};
    assert_true(block_forward_flops(&huge, BLOCK_WHOLE) == UINT64_MAX);
    assert_true(block_backward_bytes(&huge, KERNEL_F32, BLOCK_WHOLE) == UINT64_MAX);
    assert_int_equal(block_forward_flops(&odd, BLOCK_WHOLE), 0); /* 2 does not divide 5 */
    assert_int_equal(block_forward_bytes(&empty, KERNEL_F32, BLOCK_WHOLE), 0);
    assert_int_equal(block_parameter_count(&odd, BLOCK_QKV_BIAS), 0);
    /* A head of 80, as in the 2.7B model, may be padded to 128. */
    const block_shape wide = {1, 2, 160, 2, 4};
    assert_int_equal(block_activation_count(&wide, BLOCK_V), 2 * 2 * 128);
}

static void test_parts(void **state)
{
    (void)state;
    const block_shape shape = {2, 33, 96, 4, 200};
    uint64_t forward = 0, backward = 0;
    for (int i = 0; i < BLOCK_FORWARD_PARTS; i++) {
        forward += block_forward_flops(&shape, i);
        assert_true(block_forward_bytes(&shape, KERNEL_F32, i) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(block_forward_part_name(i), block_forward_part_name(j));
    }
    for (int i = 0; i < BLOCK_BACKWARD_PARTS; i++) {
        backward += block_backward_flops(&shape, i);
        assert_true(block_backward_bytes(&shape, KERNEL_F32, i) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(block_backward_part_name(i), block_backward_part_name(j));
    }
    assert_int_equal(forward, block_forward_flops(&shape, BLOCK_WHOLE));
    assert_int_equal(backward, block_backward_flops(&shape, BLOCK_WHOLE));
    assert_string_equal(block_forward_part_name(BLOCK_WHOLE), "whole");
}

/* ---- the block once more ---------------------------------------------------------- */

static void linear(const double *x, const double *weight, const double *bias, int64_t in,
                   int64_t out, double *y)
{
    for (int64_t o = 0; o < out; o++) {
        y[o] = bias[o];
        for (int64_t i = 0; i < in; i++) y[o] += weight[o * in + i] * x[i];
    }
}

static void layernorm(const double *x, const double *weight, const double *bias, int64_t width,
                      double *y)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; i++) mean += x[i] / (double)width;
    for (int64_t i = 0; i < width; i++) variance += pow(x[i] - mean, 2) / (double)width;
    for (int64_t i = 0; i < width; i++)
        y[i] = (x[i] - mean) / sqrt(variance + 1e-5) * weight[i] + bias[i];
}

static double gelu(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

/* Token `token`'s attention in one sequence's rows of qkv. */
static void attend(const block_shape *s, const double *qkv, int64_t token, double *out)
{
    int64_t w = s->width, dim = w / s->heads;
    for (int64_t head = 0; head < s->heads; head++) {
        const double *q = qkv + token * 3 * w + head * dim;
        double total = 0;
        for (int64_t c = 0; c < dim; c++) out[head * dim + c] = 0;
        for (int64_t key = 0; key <= token; key++) {
            const double *k = qkv + key * 3 * w + w + head * dim;
            double score = 0;
            for (int64_t c = 0; c < dim; c++) score += q[c] * k[c] / sqrt((double)dim);
            total += exp(score);
            for (int64_t c = 0; c < dim; c++) out[head * dim + c] += exp(score) * k[w + c];
        }
        for (int64_t c = 0; c < dim; c++) out[head * dim + c] /= total;
    }
}

/* One row, from its attention on. */
static void finish_row(const block_shape *s, double *const *p, const double *x,
                       const double *attention, double *y)
{
    int64_t w = s->width, h = s->hidden;
    double *middle = fresh_doubles(2 * w + h), *norm = middle + w, *hidden = norm + w;
    linear(attention, p[BLOCK_PROJECTION_WEIGHT], p[BLOCK_PROJECTION_BIAS], w, w, middle);
    for (int64_t i = 0; i < w; i++) middle[i] += x[i];
    layernorm(middle, p[BLOCK_NORM2_WEIGHT], p[BLOCK_NORM2_BIAS], w, norm);
    linear(norm, p[BLOCK_UP_WEIGHT], p[BLOCK_UP_BIAS], w, h, hidden);
    for (int64_t i = 0; i < h; i++) hidden[i] = gelu(hidden[i]);
    linear(hidden, p[BLOCK_DOWN_WEIGHT], p[BLOCK_DOWN_BIAS], h, w, y);
    for (int64_t i = 0; i < w; i++) y[i] += middle[i];
    free(middle);
}

static void block(const block_shape *s, double *const *p, const double *x, double *y)
{
    int64_t w = s->width;
    double *norm = fresh_doubles(w + s->tokens * 3 * w), *qkv = norm + w;
    for (int64_t sequence = 0; sequence < s->batch; sequence++) {
        const double *rows = x + sequence * s->tokens * w;
        for (int64_t t = 0; t < s->tokens; t++) {
            layernorm(rows + t * w, p[BLOCK_NORM1_WEIGHT], p[BLOCK_NORM1_BIAS], w, norm);
            linear(norm, p[BLOCK_QKV_WEIGHT], p[BLOCK_QKV_BIAS], w, 3 * w, qkv + t * 3 * w);
        }
        for (int64_t t = 0; t < s->tokens; t++) {
            attend(s, qkv, t, norm);
            finish_row(s, p, rows + t * w, norm, y + (sequence * s->tokens + t) * w);
        }
    }
    free(norm);
}

/* ---- a problem: everything in the dtype, in f32 and in double ----------------------- */

typedef struct problem {
    block_shape shape;
    kernel_dtype dtype;
    int64_t count; /* of x */
    void *x, *dy, *y, *dx;
    float *x32, *dy32;
    double *x64, *dy64;
    void *parameters[BLOCK_PARAMETERS], *gradients[BLOCK_PARAMETERS];
    float *parameters32[BLOCK_PARAMETERS];
    double *parameters64[BLOCK_PARAMETERS];
    void *activations[BLOCK_ACTIVATIONS], *activation_gradients[BLOCK_ACTIVATIONS];
} problem;

static void *input(kernel_dtype dtype, int64_t count, double mean, double stddev, uint64_t seed,
                   float **as_f32, double **as_double)
{
    void *data = fresh((size_t)count * kernel_dtype_bytes(dtype));
    *as_f32 = fresh((size_t)count * sizeof(float));
    *as_double = fresh_doubles(count);
    assert_int_equal(random_normal_cpu(data, dtype, count, (float)mean, (float)stddev, seed), 0);
    kernel_to_f32(data, dtype, count, *as_f32);
    for (int64_t i = 0; i < count; i++) (*as_double)[i] = (double)(*as_f32)[i];
    return data;
}

static int is_norm_weight(int parameter)
{
    return parameter == BLOCK_NORM1_WEIGHT || parameter == BLOCK_NORM2_WEIGHT;
}

static double stddev_of(const block_shape *s, int parameter)
{
    switch (parameter) {
    case BLOCK_QKV_WEIGHT:
    case BLOCK_PROJECTION_WEIGHT:
    case BLOCK_UP_WEIGHT: return 1 / sqrt((double)s->width);
    case BLOCK_DOWN_WEIGHT: return 1 / sqrt((double)s->hidden);
    default: return 0.2;
    }
}

static void make_problem(problem *p, block_shape shape, kernel_dtype dtype)
{
    size_t bytes = kernel_dtype_bytes(dtype);
    p->shape = shape;
    p->dtype = dtype;
    p->count = shape.batch * shape.tokens * shape.width;
    p->x = input(dtype, p->count, 0, 1, 40, &p->x32, &p->x64);
    p->dy = input(dtype, p->count, 0, 1, 41, &p->dy32, &p->dy64);
    p->y = fresh((size_t)p->count * bytes);
    p->dx = fresh((size_t)p->count * bytes);
    for (int i = 0; i < BLOCK_PARAMETERS; i++) {
        int64_t count = block_parameter_count(&shape, (block_parameter)i);
        p->parameters[i] = input(dtype, count, is_norm_weight(i) ? 1 : 0, stddev_of(&shape, i),
                                 50 + (uint64_t)i, &p->parameters32[i], &p->parameters64[i]);
        p->gradients[i] = fresh((size_t)count * bytes);
    }
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        block_activation which = (block_activation)i;
        size_t element = kernel_dtype_bytes(block_activation_dtype(which, dtype));
        p->activations[i] = fresh((size_t)block_activation_count(&shape, which) * element);
        p->activation_gradients[i] = fresh((size_t)block_gradient_count(&shape, which) * element);
    }
}

static void free_problem(problem *p)
{
    void *all[] = {p->x, p->dy, p->y, p->dx, p->x32, p->dy32, p->x64, p->dy64};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    for (int i = 0; i < BLOCK_PARAMETERS; i++) {
        free(p->parameters[i]);
        free(p->gradients[i]);
        free(p->parameters32[i]);
        free(p->parameters64[i]);
    }
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        free(p->activations[i]);
        free(p->activation_gradients[i]);
    }
}

static block_forward_args forward_args(const problem *p, int part)
{
    block_forward_args a = {.shape = p->shape, .dtype = p->dtype, .part = part, .x = p->x,
                            .y = p->y};
    for (int i = 0; i < BLOCK_PARAMETERS; i++) a.parameters[i] = p->parameters[i];
    memcpy(a.activations, p->activations, sizeof a.activations);
    return a;
}

static block_backward_args backward_args(const problem *p, int part)
{
    block_backward_args a = {.shape = p->shape, .dtype = p->dtype, .part = part, .x = p->x,
                             .y_gradient = p->dy, .x_gradient = p->dx};
    for (int i = 0; i < BLOCK_PARAMETERS; i++) a.parameters[i] = p->parameters[i];
    memcpy(a.activations, p->activations, sizeof a.activations);
    memcpy(a.gradients, p->activation_gradients, sizeof a.gradients);
    memcpy(a.parameter_gradients, p->gradients, sizeof a.parameter_gradients);
    return a;
}

static int run_variant(const kernel_variant *variant, const void *args)
{
    void *workspace = fresh(variant->workspace_bytes ? variant->workspace_bytes(args) : 0);
    int code = variant->run(args, workspace, NULL, NULL);
    free(workspace);
    return code;
}

/* ---- the oracle --------------------------------------------------------------------- */

static void expect_near(const char *what, const double *values, const double *expected,
                        int64_t count, double bound)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += pow(values[i] - expected[i], 2);
        norm += expected[i] * expected[i];
    }
    if (!(sqrt(difference / norm) < bound))
        fail_msg("%s is off by %g", what, sqrt(difference / norm));
}

static void test_oracle_forward(void **state)
{
    (void)state;
    const block_shape shapes[] = {{2, 5, 6, 2, 7}, {1, 17, 24, 3, 50}, {3, 1, 8, 8, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        problem p;
        make_problem(&p, shapes[i], KERNEL_F32);
        double *y = fresh_doubles(2 * p.count), *expected = y + p.count;
        const float *const *parameters = (const float *const *)p.parameters32;
        assert_int_equal(block_forward_reference(&p.shape, parameters, p.x32, y), 0);
        block(&p.shape, p.parameters64, p.x64, expected);
        expect_near("y", y, expected, p.count, 1e-6);
        free(y);
        free_problem(&p);
    }
}

/* The derivative of sum(dy * y) by the double at `value`. */
static double derivative(const problem *p, double *value, double *y)
{
    double saved = *value, step = 1e-5, sum = 0;
    for (int sign = 1; sign >= -1; sign -= 2) {
        *value = saved + sign * step;
        block(&p->shape, p->parameters64, p->x64, y);
        for (int64_t i = 0; i < p->count; i++) sum += sign * p->dy64[i] * y[i];
    }
    *value = saved;
    return sum / (2 * step);
}

static void differentiate(const problem *p, double *values, int64_t count, double *derivatives)
{
    double *y = fresh_doubles(p->count);
    for (int64_t i = 0; i < count; i++) derivatives[i] = derivative(p, values + i, y);
    free(y);
}

static void test_oracle_backward(void **state)
{
    (void)state;
    problem p;
    double *gradients[BLOCK_PARAMETERS], *dx, *expected;
    make_problem(&p, (block_shape){2, 4, 6, 2, 7}, KERNEL_F32);
    dx = fresh_doubles(p.count);
    expected = fresh_doubles(200);
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        gradients[i] = fresh_doubles(block_parameter_count(&p.shape, (block_parameter)i));
    assert_int_equal(block_backward_reference(&p.shape, (const float *const *)p.parameters32,
                                              p.x32, p.dy32, dx, gradients), 0);
    differentiate(&p, p.x64, p.count, expected);
    expect_near("the gradient of x", dx, expected, p.count, 1e-6);
    for (int i = 0; i < BLOCK_PARAMETERS; i++) {
        int64_t count = block_parameter_count(&p.shape, (block_parameter)i);
        char what[48];
        snprintf(what, sizeof what, "the gradient of parameter %d", i);
        differentiate(&p, p.parameters64[i], count, expected);
        expect_near(what, gradients[i], expected, count, 1e-6);
        free(gradients[i]);
    }
    free(dx);
    free(expected);
    free_problem(&p);
}

/* ---- variants ------------------------------------------------------------------------ */

static void expect_output(const problem *p, const char *what, const void *output, int64_t count,
                          const double *expected)
{
    float *as_f32 = fresh((size_t)count * sizeof *as_f32);
    double *as_double = fresh_doubles(count);
    kernel_to_f32(output, p->dtype, count, as_f32);
    for (int64_t i = 0; i < count; i++) as_double[i] = (double)as_f32[i];
    expect_near(what, as_double, expected, count, p->dtype == KERNEL_BF16 ? 2.5e-2 : 1e-5);
    free(as_f32);
    free(as_double);
}

static void check_forward(problem *p, const kernel_variant *variant, int keeps)
{
    double *expected = fresh_doubles(p->count);
    char what[96];
    block_forward_args args = forward_args(p, BLOCK_WHOLE);
    if (!keeps) args.activations[BLOCK_PRE] = NULL;
    memset(p->y, 0xff, (size_t)p->count * kernel_dtype_bytes(p->dtype));
    assert_int_equal(run_variant(variant, &args), 0);
    block(&p->shape, p->parameters64, p->x64, expected);
    snprintf(what, sizeof what, "%s %s t=%lld w=%lld keeps=%d: y", variant->name,
             kernel_dtype_name(p->dtype), (long long)p->shape.tokens, (long long)p->shape.width,
             keeps);
    expect_output(p, what, p->y, p->count, expected);
    free(expected);
}

/* After a forward pass that kept everything. */
static void check_backward(problem *p, const kernel_variant *variant)
{
    double *gradients[BLOCK_PARAMETERS], *dx = fresh_doubles(p->count);
    char what[96];
    block_backward_args args = backward_args(p, BLOCK_WHOLE);
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        gradients[i] = fresh_doubles(block_parameter_count(&p->shape, (block_parameter)i));
    assert_int_equal(block_backward_reference(&p->shape, (const float *const *)p->parameters32,
                                              p->x32, p->dy32, dx, gradients), 0);
    assert_int_equal(run_variant(variant, &args), 0);
    snprintf(what, sizeof what, "%s %s t=%lld w=%lld: gradient", variant->name,
             kernel_dtype_name(p->dtype), (long long)p->shape.tokens, (long long)p->shape.width);
    expect_output(p, what, p->dx, p->count, dx);
    for (int i = 0; i < BLOCK_PARAMETERS; i++) {
        expect_output(p, what, p->gradients[i],
                      block_parameter_count(&p->shape, (block_parameter)i), gradients[i]);
        free(gradients[i]);
    }
    free(dx);
}

static const block_shape odd_shapes[] = {
    {1, 2, 32, 4, 33}, {3, 31, 34, 2, 65}, {2, 33, 80, 1, 129}, {1, 129, 36, 3, 100},
};

static void test_variants(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof odd_shapes / sizeof *odd_shapes; i++)
        for (size_t row = 0; row < block_forward_cpu.count; row++) {
            problem p;
            if (why_not(&block_forward_cpu.rows[row], NULL)) continue;
            make_problem(&p, odd_shapes[i / 2], i % 2 ? KERNEL_BF16 : KERNEL_F32);
            check_forward(&p, &block_forward_cpu.rows[row], 0);
            check_forward(&p, &block_forward_cpu.rows[row], 1);
            check_backward(&p, &block_backward_cpu.rows[row]);
            free_problem(&p);
        }
}

static void forget(const problem *p, void *const *memory)
{
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        block_activation which = (block_activation)i;
        size_t element = kernel_dtype_bytes(block_activation_dtype(which, p->dtype));
        int64_t count = memory == p->activations ? block_activation_count(&p->shape, which)
                                                 : block_gradient_count(&p->shape, which);
        memset(memory[i], 0xff, (size_t)count * element);
    }
}

/* Part by part in order gives the bits of the whole. */
static void test_parts_make_the_whole(void **state)
{
    (void)state;
    problem p;
    make_problem(&p, odd_shapes[1], KERNEL_BF16);
    size_t bytes = (size_t)p.count * kernel_dtype_bytes(p.dtype);
    void *whole = fresh(bytes);
    const kernel_variant *forward = kernel_find(&block_forward_cpu, "best");
    const kernel_variant *backward = kernel_find(&block_backward_cpu, "best");
    block_forward_args args = forward_args(&p, BLOCK_WHOLE);
    assert_int_equal(run_variant(forward, &args), 0);
    memcpy(whole, p.y, bytes);
    memset(p.y, 0xff, bytes);
    forget(&p, p.activations);
    for (args.part = 0; args.part < BLOCK_FORWARD_PARTS; args.part++)
        assert_int_equal(run_variant(forward, &args), 0);
    assert_memory_equal(p.y, whole, bytes);

    block_backward_args back = backward_args(&p, BLOCK_WHOLE);
    assert_int_equal(run_variant(backward, &back), 0);
    memcpy(whole, p.dx, bytes);
    memset(p.dx, 0xff, bytes);
    forget(&p, p.activation_gradients);
    for (back.part = 0; back.part < BLOCK_BACKWARD_PARTS; back.part++)
        assert_int_equal(run_variant(backward, &back), 0);
    assert_memory_equal(p.dx, whole, bytes);
    free(whole);
    free_problem(&p);
}

static void test_refusals(void **state)
{
    (void)state;
    problem p;
    make_problem(&p, (block_shape){1, 2, 8, 2, 8}, KERNEL_F32);
    for (size_t row = 0; row < block_forward_cpu.count; row++) {
        block_forward_args args = forward_args(&p, BLOCK_FORWARD_PARTS);
        assert_int_equal(run_variant(&block_forward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
        args = forward_args(&p, BLOCK_WHOLE);
        args.shape.heads = 3;
        assert_int_equal(run_variant(&block_forward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
        args = forward_args(&p, BLOCK_WHOLE);
        args.dtype = KERNEL_U8;
        assert_int_equal(run_variant(&block_forward_cpu.rows[row], &args), KERNEL_ERROR_ARGUMENT);
        block_backward_args back = backward_args(&p, -2);
        assert_int_equal(run_variant(&block_backward_cpu.rows[row], &back), KERNEL_ERROR_ARGUMENT);
        back = backward_args(&p, BLOCK_WHOLE);
        back.shape.tokens = 0;
        assert_int_equal(run_variant(&block_backward_cpu.rows[row], &back), KERNEL_ERROR_ARGUMENT);
    }
    free_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),         cmocka_unit_test(test_count_limits),
        cmocka_unit_test(test_parts),          cmocka_unit_test(test_oracle_forward),
        cmocka_unit_test(test_oracle_backward), cmocka_unit_test(test_variants),
        cmocka_unit_test(test_parts_make_the_whole), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
