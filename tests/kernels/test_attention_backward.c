/*
 * test_attention_backward.c - the backward pass's counts, oracle and CPU
 * variants against values known from elsewhere: hand counts, a closed form,
 * finite differences of the forward oracle in double, the oracle.
 */
#include <stdio.h>

#include "kernel_test.h"

#include "../../kernels/attention/attention.h"
#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"

static void test_counts(void **state)
{
    (void)state;
    /* GPT-2 small's heads at batch 4, context 128: 10 * 4 * 12 * 128^2 * 64. */
    attention_shape small = {4, 12, 128, 64, 0};
    assert_int_equal(attention_backward_flops(&small), 503316480);
    /* q, k, v, out, dout read and dq, dk, dv written: 8 * 393216 elements. */
    assert_int_equal(attention_backward_bytes(&small, KERNEL_F32), 12582912);
    assert_int_equal(attention_backward_bytes(&small, KERNEL_BF16), 6291456);
    small.causal = 1;
    assert_int_equal(attention_backward_flops(&small), 251658240);
    attention_shape huge = {INT64_MAX, 1, INT64_MAX, 1, 0}, empty = {0, 1, 1, 1, 0};
    assert_true(attention_backward_flops(&huge) == UINT64_MAX);
    assert_true(attention_backward_bytes(&huge, KERNEL_F32) == UINT64_MAX);
    assert_int_equal(attention_backward_flops(&empty), 0);
}

/* Two keys, one query with a gradient, head_dim 4: the weights are the logistic
 * function of the difference of scores, x = (q . (k0 - k1)) / 2. */
static void test_oracle_closed_form(void **state)
{
    (void)state;
    const float q[8] = {3, 1, 0, 0}, k[8] = {1, 0, 0, 0, 0, 2, 0, 0};
    const float v[8] = {5, 0, 0, 0, 1, 0, 0, 0}, dout[8] = {2, 0, 0, 0};
    const double p = 1 / (1 + exp(-0.5)), ds = p * (1 - p) * 2 * (5 - 1);
    const int64_t rows[] = {1, 0};
    attention_shape shape = {1, 1, 2, 4, 0};
    float lse[2] = {(float)(1.5 - log(p)), (float)log(2)};
    float out[8] = {(float)(5 * p + (1 - p)), 0, 0, 0, 3, 0, 0, 0};
    attention_backward_head head = {q, k, v, out, dout, lse};
    double dq[9] = {[8] = 77}, dk[8], dv[8];
    attention_backward_reference(&shape, &head, rows, 2, dq, dk, dv);
    assert_close(dq[8], 77, 0); /* behind the last row */
    assert_close(dq[4], ds / 2 * 1, 1e-6); /* row 0 is the second asked for */
    assert_close(dq[5], ds / 2 * -2, 1e-6);
    assert_close(dq[0], 0, 0);             /* row 1 has no gradient */
    assert_close(dk[4], ds / 2 * 3, 1e-6);
    assert_close(dk[5], ds / 2 * 1, 1e-6);
    assert_close(dk[0], -ds / 2 * 3, 1e-6);
    assert_close(dv[4], 2 * p, 1e-6);
    assert_close(dv[0], 2 * (1 - p), 1e-6);
    assert_close(dv[1], 0, 0);
    shape.causal = 1; /* query 0 sees key 0 only: a weight of 1, whatever q */
    lse[0] = 1.5f, out[0] = 5;
    attention_backward_reference(&shape, &head, rows, 2, dq, dk, dv);
    assert_close(dq[4], 0, 1e-12);
    assert_close(dk[4], 0, 1e-12);
    assert_close(dv[4], 2, 1e-12);
    assert_close(dv[0], 0, 0);
}

/* ---- finite differences ---- */

enum { FD_MAX = 64 };

typedef struct fd_problem {
    attention_shape shape;
    float inputs[3][FD_MAX], dout[FD_MAX]; /* q, k, v */
} fd_problem;

/* sum(dout * forward(q, k, v)), in double; and the forward's results. */
static double loss_of(const fd_problem *p, float *out, float *lse)
{
    double result[FD_MAX], row_lse[FD_MAX], loss = 0;
    int64_t rows[FD_MAX] = {0}, t = p->shape.tokens, d = p->shape.head_dim;
    for (int64_t i = 0; i < t; i++) rows[i] = i;
    attention_forward_reference(&p->shape, p->inputs[0], p->inputs[1], p->inputs[2], rows, t,
                                result, row_lse);
    for (int64_t i = 0; i < t * d; i++) {
        loss += (double)p->dout[i] * result[i];
        if (out) out[i] = (float)result[i];
    }
    for (int64_t i = 0; lse && i < t; i++) lse[i] = (float)row_lse[i];
    return loss;
}

static double slope(fd_problem *p, float *x, float step)
{
    float saved = *x;
    *x = saved + step;
    double above = loss_of(p, NULL, NULL);
    *x = saved - step;
    double below = loss_of(p, NULL, NULL);
    *x = saved;
    return (above - below) / (2 * (double)step);
}

/* Richardson's extrapolation of central differences: an error of step^4. The
 * inputs are multiples of 2^-10, so that stepping by 2^-7 and 2^-8 is exact. */
static double derivative(fd_problem *p, float *x)
{
    return (4 * slope(p, x, 0x1p-8f) - slope(p, x, 0x1p-7f)) / 3;
}

static void random_multiples(float *values, int64_t count, uint64_t seed)
{
    assert_int_equal(random_normal_cpu(values, KERNEL_F32, count, 0, 1, seed), 0);
    for (int64_t i = 0; i < count; i++) values[i] = roundf(values[i] * 1024) / 1024;
}

static void check_finite_differences(attention_shape shape)
{
    fd_problem p = {.shape = shape};
    float out[FD_MAX], lse[FD_MAX];
    double gradients[3][FD_MAX];
    int64_t rows[FD_MAX], count = shape.tokens * shape.head_dim;
    assert_true(count <= FD_MAX);
    for (uint64_t i = 0; i < 3; i++) random_multiples(p.inputs[i], count, 20 + i);
    random_multiples(p.dout, count, 23);
    for (int64_t i = 0; i < shape.tokens; i++) rows[i] = i;
    loss_of(&p, out, lse);
    attention_backward_head head = {p.inputs[0], p.inputs[1], p.inputs[2], out, p.dout, lse};
    attention_backward_reference(&shape, &head, rows, shape.tokens, gradients[0], gradients[1],
                                 gradients[2]);
    for (int input = 0; input < 3; input++)
        for (int64_t i = 0; i < count; i++)
            assert_close(gradients[input][i], derivative(&p, &p.inputs[input][i]), 2e-6);
}

static void test_oracle_finite_differences(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 3}, {2, 1}, {7, 4}, {12, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int causal = 0; causal < 2; causal++)
            check_finite_differences((attention_shape){1, 1, sizes[i][0], sizes[i][1], causal});
}

/* ---- variants ---- */

enum { INPUTS = 5, GRADIENTS = 3 }; /* q, k, v, out, dout; dq, dk, dv */

typedef struct problem {
    attention_backward_args args;
    void *memory[INPUTS + GRADIENTS];
    float *floats[INPUTS + GRADIENTS]; /* the same as f32 */
    float *lse;
    int64_t count;
} problem;

static void run_forward(problem *p)
{
    attention_forward_args args = {.shape = p->args.shape, .dtype = p->args.dtype,
                                   .q = p->memory[0], .k = p->memory[1], .v = p->memory[2],
                                   .out = p->memory[3], .lse = p->lse};
    const kernel_variant *forward = kernel_find(&attention_forward_cpu, "naive");
    void *workspace = fresh(forward->workspace_bytes(&args));
    assert_int_equal(forward->run(&args, workspace, NULL, NULL), 0);
    free(workspace);
}

static void make_problem(problem *p, attention_shape shape, kernel_dtype dtype)
{
    p->count = shape.batch * shape.heads * shape.tokens * shape.head_dim;
    for (int i = 0; i < INPUTS + GRADIENTS; i++) {
        p->memory[i] = fresh((size_t)p->count * kernel_dtype_bytes(dtype));
        p->floats[i] = fresh((size_t)p->count * sizeof(float));
        if (i < INPUTS)
            assert_int_equal(random_normal_cpu(p->memory[i], dtype, p->count, 0, 1,
                                               31 + (uint64_t)i), 0);
    }
    p->lse = fresh((size_t)(p->count / shape.head_dim) * sizeof(float));
    p->args = (attention_backward_args){
        .shape = shape, .dtype = dtype, .q = p->memory[0], .k = p->memory[1], .v = p->memory[2],
        .out = p->memory[3], .dout = p->memory[4], .lse = p->lse, .dq = p->memory[5],
        .dk = p->memory[6], .dv = p->memory[7]};
    run_forward(p);
}

static void free_problem(problem *p)
{
    for (int i = 0; i < INPUTS + GRADIENTS; i++) {
        free(p->memory[i]);
        free(p->floats[i]);
    }
    free(p->lse);
}

static void run_variant(const kernel_variant *variant, problem *p)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(&p->args) : 0;
    void *workspace = fresh(bytes);
    for (int i = INPUTS; i < INPUTS + GRADIENTS; i++)
        memset(p->memory[i], 0xff, (size_t)p->count * kernel_dtype_bytes(p->args.dtype));
    assert_int_equal(variant->run(&p->args, workspace, NULL, NULL), 0);
    assert_int_equal(((unsigned char *)workspace)[bytes], 0xff); /* no write beyond its end */
    free(workspace);
    for (int i = 0; i < INPUTS + GRADIENTS; i++)
        kernel_to_f32(p->memory[i], p->args.dtype, p->count, p->floats[i]);
}

/* ||out - reference|| / ||reference|| of each gradient over all heads. With
 * one token dq and dk are 0: their error then counts as it stands. */
static void errors_against_oracle(const problem *p, double *errors)
{
    const attention_shape *s = &p->args.shape;
    int64_t per_head = s->tokens * s->head_dim;
    double difference[GRADIENTS] = {0}, norm[GRADIENTS] = {0};
    double *reference = fresh((size_t)(GRADIENTS * per_head) * sizeof *reference);
    int64_t *rows = fresh((size_t)s->tokens * sizeof *rows);
    for (int64_t i = 0; i < s->tokens; i++) rows[i] = i;
    for (int64_t index = 0; index < s->batch * s->heads; index++) {
        int64_t at = index * per_head;
        attention_backward_head head = {p->floats[0] + at, p->floats[1] + at, p->floats[2] + at,
                                        p->floats[3] + at, p->floats[4] + at,
                                        p->lse + index * s->tokens};
        attention_backward_reference(s, &head, rows, s->tokens, reference, reference + per_head,
                                     reference + 2 * per_head);
        for (int g = 0; g < GRADIENTS; g++)
            for (int64_t i = 0; i < per_head; i++) {
                double expected = reference[g * per_head + i];
                difference[g] += pow((double)p->floats[INPUTS + g][at + i] - expected, 2);
                norm[g] += expected * expected;
            }
    }
    for (int g = 0; g < GRADIENTS; g++)
        errors[g] = sqrt(difference[g]) / (s->tokens == 1 && g < 2 ? 1 : sqrt(norm[g]));
    free(reference);
    free(rows);
}

static void check_variants(attention_shape shape, kernel_dtype dtype, double tolerance)
{
    problem p;
    make_problem(&p, shape, dtype);
    for (size_t row = 0; row < attention_backward_cpu.count; row++) {
        const kernel_variant *variant = &attention_backward_cpu.rows[row];
        double errors[GRADIENTS];
        if (!(variant->dtypes & KERNEL_DTYPE_BIT(dtype))) continue;
        if (why_not(variant, &p.args)) continue;
        run_variant(variant, &p);
        errors_against_oracle(&p, errors);
        for (int g = 0; g < GRADIENTS; g++)
            if (!(errors[g] < tolerance))
                fail_msg("%s %s t=%d d=%d causal=%d gradient %d: error %g", variant->name,
                         kernel_dtype_name(dtype), (int)shape.tokens, (int)shape.head_dim,
                         shape.causal, g, errors[g]);
    }
    free_problem(&p);
}

static void test_variants(void **state)
{
    (void)state;
    static const attention_shape shapes[] = {
        {1, 1, 1, 1, 0}, {1, 1, 1, 64, 0}, {2, 3, 33, 17, 0}, {1, 2, 63, 32, 0},
        {1, 2, 64, 64, 0}, {1, 1, 65, 80, 0}, {1, 2, 127, 31, 0}, {1, 1, 129, 128, 0},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int causal = 0; causal < 2; causal++) {
            attention_shape shape = shapes[i];
            shape.causal = causal;
            check_variants(shape, KERNEL_F32, 3e-6);
            check_variants(shape, KERNEL_BF16, 4e-3);
            check_variants(shape, KERNEL_F16, 1e-3);
        }
}

static void test_refusals(void **state)
{
    (void)state;
    problem p;
    make_problem(&p, (attention_shape){1, 1, 2, 2, 0}, KERNEL_F32);
    for (size_t row = 0; row < attention_backward_cpu.count; row++) {
        attention_backward_args args = p.args;
        args.dtype = KERNEL_U8;
        assert_int_equal(attention_backward_cpu.rows[row].run(&args, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
        args = p.args;
        args.shape.tokens = 0;
        assert_int_equal(attention_backward_cpu.rows[row].run(&args, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
    }
    free_problem(&p);
}

static void assert_refused(const kernel_variant *variant, const attention_backward_args *args)
{
    assert_non_null(variant->unsupported(args));
    assert_int_equal(variant->run(args, NULL, NULL, NULL), KERNEL_ERROR_ARGUMENT);
}

static void test_strides_refused(void **state)
{
    (void)state;
    problem p;
    make_problem(&p, (attention_shape){1, 1, 4, 8, 0}, KERNEL_F32);
    for (size_t row = 0; row < attention_backward_cpu.count; row++) {
        const kernel_variant *variant = &attention_backward_cpu.rows[row];
        attention_backward_args args = p.args;
        if (strcmp(variant->name, "blas") != 0)
            assert_null(variant->unsupported(&args));
        args.qkv_strides = (attention_strides){32, 32, 8};
        assert_refused(variant, &args);
        args = p.args;
        args.out_strides = (attention_strides){32, 32, 8};
        assert_refused(variant, &args);
    }
    free_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_oracle_closed_form),
        cmocka_unit_test(test_oracle_finite_differences),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_strides_refused),
    };
    return cmocka_run_group_tests_name("attention backward", tests, NULL, NULL);
}
