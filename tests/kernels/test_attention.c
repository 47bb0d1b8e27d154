/*
 * test_attention.c - attention's counts, oracle and CPU variants against
 * values known from elsewhere: hand counts, closed forms, the oracle.
 */
#include <stdio.h>

#include "kernel_test.h"

#include "../../kernels/attention/attention.h"
#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"

static void test_counts(void **state)
{
    (void)state;
    /* GPT-2 small's heads at batch 4, context 128: 4 * 4 * 12 * 128^2 * 64. */
    attention_shape small = {4, 12, 128, 64, 0};
    assert_int_equal(attention_forward_flops(&small), 201326592);
    /* q, k, v read and out written: 4 * 393216 elements. */
    assert_int_equal(attention_forward_bytes(&small, KERNEL_F32), 6291456);
    assert_int_equal(attention_forward_bytes(&small, KERNEL_BF16), 3145728);
    /* q, k and v of a byte, out of two. */
    assert_int_equal(attention_forward_bytes(&small, KERNEL_E4M3), 1966080);
    small.causal = 1;
    assert_int_equal(attention_forward_flops(&small), 100663296);
    attention_shape huge = {INT64_MAX, 1, INT64_MAX, 1, 0}, empty = {0, 1, 1, 1, 0};
    assert_true(attention_forward_flops(&huge) == UINT64_MAX);
    assert_int_equal(attention_forward_flops(&empty), 0);
}

/* With all scores equal, softmax is the mean over the visible keys, and its
 * logarithm of the sum of exponentials is log(keys) + score. */
static void test_oracle_closed_form(void **state)
{
    enum { TOKENS = 5, DIM = 3 };
    (void)state;
    float q[TOKENS * DIM] = {0}, k[TOKENS * DIM], v[TOKENS * DIM];
    int64_t rows[] = {0, 4, 2};
    double out[3 * DIM], lse[3];
    for (int i = 0; i < TOKENS * DIM; i++) {
        k[i] = (float)(i * i % 7);
        v[i] = (float)i;
    }
    attention_shape causal = {1, 1, TOKENS, DIM, 1};
    attention_forward_reference(&causal, q, k, v, rows, 3, out, lse);
    for (int d = 0; d < DIM; d++) {
        assert_close(out[d], v[d], 1e-15);                    /* row 0 sees itself */
        assert_close(out[DIM + d], 6 + d, 1e-14);             /* mean of d, d+3, ... d+12 */
        assert_close(out[2 * DIM + d], 3 + d, 1e-14);         /* mean of d, d+3, d+6 */
    }
    assert_close(lse[0], 0, 1e-15);
    assert_close(lse[1], log(5), 1e-15);
    causal.causal = 0;
    attention_forward_reference(&causal, q, k, v, rows, 1, out, lse);
    assert_close(out[0], 6, 1e-14);
    assert_close(lse[0], log(5), 1e-15);
}

/* Two keys with scores s and 0: weights are the logistic function of s. */
static void test_oracle_scale(void **state)
{
    (void)state;
    float k[] = {1, 0, 0, 0, 0, 0, 0, 0}, v[] = {1, 0, 0, 0, 0, 0, 0, 0};
    float q[] = {3, 0, 0, 0, 3, 0, 0, 0};
    int64_t row = 0;
    double out[4];
    attention_shape shape = {1, 1, 2, 4, 0};

    attention_forward_reference(&shape, q, k, v, &row, 1, out, NULL);
    assert_close(out[0], 1 / (1 + exp(-1.5)), 1e-15); /* 3 * 1 / sqrt(4) */
}

typedef struct problem {
    attention_forward_args args;
    float *q, *k, *v, *out; /* the same as f32 */
    int64_t count;
} problem;

static const void *random_input(problem *p, uint64_t seed, float **as_f32)
{
    void *data = fresh((size_t)p->count * kernel_dtype_bytes(p->args.dtype));
    *as_f32 = fresh((size_t)p->count * sizeof(float));
    assert_int_equal(random_normal_cpu(data, p->args.dtype, p->count, 0, 1, seed), 0);
    kernel_to_f32(data, p->args.dtype, p->count, *as_f32);
    return data;
}

static void make_problem(problem *p, attention_shape shape, kernel_dtype dtype)
{
    p->count = shape.batch * shape.heads * shape.tokens * shape.head_dim;
    p->args = (attention_forward_args){.shape = shape, .dtype = dtype};
    p->args.q = random_input(p, 11, &p->q);
    p->args.k = random_input(p, 12, &p->k);
    p->args.v = random_input(p, 13, &p->v);
    p->args.out = fresh((size_t)p->count * kernel_dtype_bytes(kernel_result_dtype(dtype)));
    p->args.lse = fresh((size_t)(p->count / shape.head_dim) * sizeof(float));
    p->out = fresh((size_t)p->count * sizeof(float));
}

static void free_problem(problem *p)
{
    void *all[] = {(void *)(uintptr_t)p->args.q, (void *)(uintptr_t)p->args.k,
                   (void *)(uintptr_t)p->args.v, p->args.out, p->args.lse,
                   p->q, p->k, p->v, p->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void run_variant(const kernel_variant *variant, problem *p)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(&p->args) : 0;
    void *workspace = fresh(bytes + 1), *own = NULL;
    if (variant->prepare)
        assert_int_equal(variant->prepare(&p->args, &own), 0);
    assert_int_equal(variant->run(&p->args, workspace, own, NULL), 0);
    if (variant->release)
        variant->release(own);
    free(workspace);
    kernel_to_f32(p->args.out, kernel_result_dtype(p->args.dtype), p->count, p->out);
}

static double error_against_oracle(const problem *p, double *lse_error)
{
    const attention_shape *s = &p->args.shape;
    int64_t per_head = s->tokens * s->head_dim;
    double difference = 0, norm = 0;
    double *reference = fresh((size_t)per_head * sizeof *reference);
    double *lse = fresh((size_t)s->tokens * sizeof *lse);
    int64_t *rows = fresh((size_t)s->tokens * sizeof *rows);
    *lse_error = 0;
    for (int64_t t = 0; t < s->tokens; t++)
        rows[t] = t;
    for (int64_t head = 0; head < s->batch * s->heads; head++) {
        int64_t at = head * per_head;
        attention_forward_reference(s, p->q + at, p->k + at, p->v + at, rows, s->tokens, reference,
                                    lse);
        for (int64_t i = 0; i < per_head; i++) {
            difference += pow((double)p->out[at + i] - reference[i], 2);
            norm += reference[i] * reference[i];
        }
        for (int64_t t = 0; t < s->tokens; t++)
            *lse_error = fmax(*lse_error, fabs((double)p->args.lse[head * s->tokens + t] - lse[t]));
    }
    free(reference);
    free(lse);
    free(rows);
    return sqrt(difference / norm);
}

static void test_variants(void **state)
{
    static const attention_shape shapes[] = {{1, 1, 1, 64, 0},
                                             {2, 3, 127, 64, 0},
                                             {1, 2, 129, 40, 0},
                                             {1, 1, 200, 17, 0},
                                             {1, 1, 65, 128, 0},
                                             {1, 3, 300, 32, 0}}; /* ranges across heads */
    /* Of e4m3 the variants here round nothing but the output, to bf16. */
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16, KERNEL_F16, KERNEL_E4M3};
    static const double bounds[] = {2e-6, 4e-3, 1e-3, 4e-3};
    enum { DTYPES = sizeof dtypes / sizeof *dtypes };
    (void)state;
    for (size_t row = 0; row < attention_forward_cpu.count; row++)
        for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++)
            for (int dtype = 0; dtype < DTYPES; dtype++) {
                const kernel_variant *variant = &attention_forward_cpu.rows[row];
                attention_shape shape = shapes[i / 2];
                problem p;
                double lse_error, error;
                shape.causal = (int)(i % 2);
                if (!(variant->dtypes & KERNEL_DTYPE_BIT(dtypes[dtype]))) continue;
                make_problem(&p, shape, dtypes[dtype]);
                if (why_not(variant, &p.args)) {
                    free_problem(&p);
                    continue;
                }
                run_variant(variant, &p);
                error = error_against_oracle(&p, &lse_error);
                if (!(error < bounds[dtype]) || !(lse_error < 1e-5))
                    fail_msg("%s t=%lld d=%lld causal=%d: error %g, lse %g", variant->name,
                             (long long)shape.tokens, (long long)shape.head_dim, shape.causal,
                             error, lse_error);
                free_problem(&p);
            }
}

static void test_strides(void **state)
{
    (void)state;
    const attention_shape shape = {2, 3, 5, 64, 0};
    attention_strides contiguous = attention_strides_of(&shape, (attention_strides){0, 0, 0});
    assert_int_equal(contiguous.token, 64);
    assert_int_equal(contiguous.head, 5 * 64);
    assert_int_equal(contiguous.batch, 3 * 5 * 64);
    /* Heads in rows [batch, tokens, 3, heads, head_dim]. */
    attention_strides rows = attention_strides_of(&shape, (attention_strides){2880, 64, 576});
    assert_int_equal(rows.batch, 2880);
    assert_int_equal(rows.head, 64);
    assert_int_equal(rows.token, 576);
}

static void test_refusals(void **state)
{
    problem p;
    (void)state;
    make_problem(&p, (attention_shape){1, 1, 4, 8, 0}, KERNEL_F32);
    for (size_t row = 0; row < attention_forward_cpu.count; row++) {
        attention_forward_args args = p.args;
        args.dtype = KERNEL_U8;
        assert_int_equal(attention_forward_cpu.rows[row].run(&args, p.out, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
        args = p.args;
        args.shape.tokens = 0;
        assert_int_equal(attention_forward_cpu.rows[row].run(&args, p.out, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
    }
    free_problem(&p);
}

static void assert_refused(const kernel_variant *variant, const attention_forward_args *args)
{
    assert_non_null(variant->unsupported(args));
    assert_int_equal(variant->run(args, NULL, NULL, NULL), KERNEL_ERROR_ARGUMENT);
}

static void test_strides_refused(void **state)
{
    problem p;
    (void)state;
    make_problem(&p, (attention_shape){1, 1, 4, 8, 0}, KERNEL_F32);
    for (size_t row = 0; row < attention_forward_cpu.count; row++) {
        const kernel_variant *variant = &attention_forward_cpu.rows[row];
        attention_forward_args args = p.args;
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

/* All scores are 0, and each row sees only the keys whose mask is 0: their mean, and a
 * lse of the logarithm of their number, whatever causal says. */
static void test_mask(void **state)
{
    const float zeros[3] = {0, 0, 0}, v[3] = {8, 2, 5};
    const float mask[9] = {0, -INFINITY, 0, 0, 0, 0, -INFINITY, 0, -INFINITY};
    const double expected[3] = {6.5, 5, 2}, seen[3] = {2, 3, 1};
    float out[3], lse[3];
    (void)state;
    for (size_t i = 0; i < attention_forward_cpu.count; i++) {
        const kernel_variant *variant = &attention_forward_cpu.rows[i];
        attention_forward_args args = {{1, 1, 3, 1, 1}, KERNEL_F32, zeros, zeros, v, out, lse,
                                       {0, 0, 0}, {0, 0, 0}, mask};
        void *workspace = fresh(variant->workspace_bytes(&args));
        int code = variant->run(&args, workspace, NULL, NULL);
        free(workspace);
        if (strcmp(variant->name, "naive")) {
            assert_string_equal(why_not(variant, &args), "takes no mask");
            assert_int_equal(code, KERNEL_ERROR_ARGUMENT);
            continue;
        }
        assert_int_equal(code, KERNEL_OK);
        for (int row = 0; row < 3; row++) {
            assert_close((double)out[row], expected[row], 1e-5);
            assert_close((double)lse[row], log(seen[row]), 1e-5);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),       cmocka_unit_test(test_oracle_closed_form),
        cmocka_unit_test(test_oracle_scale), cmocka_unit_test(test_variants),
        cmocka_unit_test(test_strides),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_strides_refused), cmocka_unit_test(test_mask),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
