/*
 * test_loss.c - cross-entropy's counts, oracles and CPU variants against
 * values known from elsewhere: hand counts, closed forms, finite differences
 * of the forward oracle in double, the oracle.
 */
#include <stdio.h>

#include "kernel_test.h"

#include "../../kernels/common/convert.h"
#include "../../kernels/loss/loss.h"
#include "../../kernels/common/random.h"

static void test_bytes(void **state)
{
    const loss_shape small = {512, 10000}; /* 5120000 logits */
    (void)state;
    assert_int_equal(loss_forward_bytes(&small, KERNEL_F32), 20484096);  /* 4 each, 8 a row */
    assert_int_equal(loss_forward_bytes(&small, KERNEL_BF16), 10244096);
    assert_int_equal(loss_backward_bytes(&small, KERNEL_F32), 40966144); /* 8 each, 12 a row */
    assert_int_equal(loss_forward_backward_bytes(&small, KERNEL_BF16), 20486144);
    loss_shape huge = {INT64_MAX, INT64_MAX}, empty = {0, 1};
    assert_true(loss_forward_bytes(&huge, KERNEL_BF16) == UINT64_MAX);
    assert_true(loss_backward_bytes(&huge, KERNEL_BF16) == UINT64_MAX);
    assert_int_equal(loss_forward_bytes(&empty, KERNEL_F32), 0);
    assert_int_equal(loss_forward_backward_bytes(&empty, KERNEL_F32), 0);
}

static void test_flops(void **state)
{
    const loss_shape small = {512, 10000};
    (void)state;
    assert_int_equal(loss_forward_flops(&small), 20480000);
    assert_int_equal(loss_backward_flops(&small), 15360000);
    assert_int_equal(loss_forward_backward_flops(&small), 25600000);
    loss_shape huge = {INT64_MAX, 3}, negative = {-1, 1};
    assert_true(loss_forward_flops(&huge) == UINT64_MAX);
    assert_int_equal(loss_backward_flops(&negative), 0);
}

/* Equal logits: every class has probability 1/n. Logits log(1), log(2), log(5)
 * far from zero: probabilities 1/8, 2/8, 5/8. */
static void test_oracle_closed_form(void **state)
{
    const loss_shape uniform = {1, 5}, shifted = {1, 3};
    const float equal[] = {-7, -7, -7, -7, -7};
    const float logits[] = {1000, 1000.6875f, 1001.625f}; /* log 2 and log 5, nearly */
    const float dloss = 2;
    const int32_t target = 2;
    double loss, lse, dlogits[5];
    (void)state;
    loss_forward_reference(&uniform, equal, &target, &loss, &lse);
    assert_close(loss, log(5), 1e-15);
    assert_close(lse, log(5) - 7, 1e-15);
    loss_backward_reference(&uniform, equal, &target, &dloss, dlogits);
    assert_close(dlogits[0], 0.4, 1e-15);
    assert_close(dlogits[2], -1.6, 1e-15);
    loss_forward_reference(&shifted, logits, &target, &loss, &lse);
    double sum = 1 + exp(0.6875) + exp(1.625);
    assert_close(loss, log(sum) - 1.625, 1e-13);
    loss_backward_reference(&shifted, logits, &target, &dloss, dlogits);
    assert_close(dlogits[0], 2 / sum, 1e-13);
    assert_close(dlogits[1], 2 * exp(0.6875) / sum, 1e-13);
    assert_close(dlogits[2], 2 * exp(1.625) / sum - 2, 1e-13);
}

/* ---- finite differences ------------------------------------------------------ */

enum { ROWS = 3, CLASSES = 7, ELEMENTS = ROWS * CLASSES };

static double weighted_loss(const float *logits, const int32_t *targets, const float *dloss)
{
    const loss_shape shape = {ROWS, CLASSES};
    double loss[ROWS], sum = 0;
    loss_forward_reference(&shape, logits, targets, loss, NULL);
    for (int i = 0; i < ROWS; i++) sum += (double)dloss[i] * loss[i];
    return sum;
}

static void test_gradients(void **state)
{
    const loss_shape shape = {ROWS, CLASSES};
    const int32_t targets[ROWS] = {0, 6, 3};
    const float dloss[ROWS] = {1, -0.5f, 3};
    float logits[ELEMENTS];
    double dlogits[ELEMENTS];
    (void)state;
    assert_int_equal(random_normal_cpu(logits, KERNEL_F32, ELEMENTS, 0, 2, 1), 0);
    loss_backward_reference(&shape, logits, targets, dloss, dlogits);
    for (int i = 0; i < ELEMENTS; i++) {
        float saved = logits[i], above = saved + 0x1p-10f, below = saved - 0x1p-10f;
        logits[i] = above;
        double high = weighted_loss(logits, targets, dloss);
        logits[i] = below;
        double low = weighted_loss(logits, targets, dloss);
        logits[i] = saved;
        assert_close(dlogits[i], (high - low) / ((double)above - (double)below), 2e-6);
    }
}

/* ---- variants against the oracle --------------------------------------------- */

/* A buffer of elements, poisoned with NaNs, with one more element behind that
 * nothing may write. */
static void *fresh_array(int64_t count, kernel_dtype dtype)
{
    size_t bytes = (size_t)(count + 1) * kernel_dtype_bytes(dtype);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0xff, (bytes + 63) / 64 * 64);
    return memory;
}

static double error_of(const void *out, kernel_dtype dtype, const double *reference, int64_t count)
{
    float *values = fresh_array(count + 1, KERNEL_F32);
    double difference = 0, norm = 0;
    kernel_to_f32(out, dtype, count + 1, values);
    assert_true(isnan(values[count]));
    for (int64_t i = 0; i < count; i++) {
        difference += pow((double)values[i] - reference[i], 2);
        norm += reference[i] * reference[i];
    }
    free(values);
    return difference == 0 ? 0 : sqrt(difference / norm);
}

static int run_variant(const kernel_variant *variant, const loss_args *args)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    void *workspace = fresh_array((int64_t)bytes, KERNEL_U8);
    int code = variant->run(args, workspace, NULL, NULL);
    free(workspace);
    return code;
}

/* The arguments of all passes and what the oracle makes of them. lse has both:
 * the variants' output and, for backward, the oracle's rounded. */
typedef struct problem {
    loss_args args;
    double *loss, *lse, *dlogits;
    float *given_lse;
} problem;

static problem make_problem(loss_shape shape, kernel_dtype dtype)
{
    int64_t count = shape.rows * shape.classes;
    void *logits = fresh_array(count, dtype);
    int32_t *targets = calloc((size_t)shape.rows, sizeof *targets);
    float *dloss = fresh_array(shape.rows, KERNEL_F32), *as_f32 = fresh_array(count, KERNEL_F32);
    problem p = {.args = {.shape = shape, .dtype = dtype}};
    assert_int_equal(random_normal_cpu(logits, dtype, count, 1, 3, 1), 0);
    assert_int_equal(random_normal_cpu(dloss, KERNEL_F32, shape.rows, 1, 1, 2), 0);
    for (int64_t i = 0; i < shape.rows; i++) /* the last class, and others */
        targets[i] = (int32_t)((shape.classes - 1 + 7919 * i) % shape.classes);
    p.args.logits = logits;
    p.args.targets = targets;
    p.args.dloss = dloss;
    p.args.loss = fresh_array(shape.rows, KERNEL_F32);
    p.args.lse = fresh_array(shape.rows, KERNEL_F32);
    p.args.dlogits = fresh_array(count, dtype);
    p.loss = calloc((size_t)shape.rows, sizeof(double));
    p.lse = calloc((size_t)shape.rows, sizeof(double));
    p.dlogits = calloc((size_t)count, sizeof(double));
    p.given_lse = fresh_array(shape.rows, KERNEL_F32);
    kernel_to_f32(logits, dtype, count, as_f32);
    loss_forward_reference(&shape, as_f32, targets, p.loss, p.lse);
    loss_backward_reference(&shape, as_f32, targets, dloss, p.dlogits);
    for (int64_t i = 0; i < shape.rows; i++) p.given_lse[i] = (float)p.lse[i];
    free(as_f32);
    return p;
}

static void free_problem(problem *p)
{
    const loss_args *a = &p->args;
    const void *all[] = {a->logits,  a->targets, a->dloss, a->loss,    a->lse,
                         a->dlogits, p->loss,    p->lse,   p->dlogits, p->given_lse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free((void *)(uintptr_t)all[i]);
}

enum { LOSSES = 1, GRADIENTS = 2 };

static void check_variant(const kernel_variant *variant, const problem *p, int outputs)
{
    loss_args a = p->args;
    int64_t count = a.shape.rows * a.shape.classes;
    double loss_error = 0, lse_error = 0, gradient_error = 0;
    memset(a.loss, 0xff, (size_t)a.shape.rows * sizeof *a.loss);
    memset(a.lse, 0xff, (size_t)a.shape.rows * sizeof *a.lse);
    memset(a.dlogits, 0xff, (size_t)count * kernel_dtype_bytes(a.dtype));
    if (!(outputs & LOSSES)) a.lse = p->given_lse, a.loss = NULL;
    assert_int_equal(run_variant(variant, &a), 0);
    if (outputs & LOSSES) {
        loss_error = error_of(a.loss, KERNEL_F32, p->loss, a.shape.rows);
        lse_error = error_of(a.lse, KERNEL_F32, p->lse, a.shape.rows);
    }
    if (outputs & GRADIENTS) gradient_error = error_of(a.dlogits, a.dtype, p->dlogits, count);
    if (!(loss_error <= 2e-6) || !(lse_error <= 2e-6) ||
        !(gradient_error <= (a.dtype == KERNEL_F32 ? 2e-6 : 4e-3)))
        fail_msg("%s, %lld rows of %lld, %s: errors of loss %g, lse %g, dlogits %g", variant->name,
                 (long long)a.shape.rows, (long long)a.shape.classes, kernel_dtype_name(a.dtype),
                 loss_error, lse_error, gradient_error);
}

static void check_table(kernel_table table, const problem *p, int outputs)
{
    for (size_t row = 0; row < table.count; row++) check_variant(&table.rows[row], p, outputs);
}

static void test_variants(void **state)
{
    static const loss_shape shapes[] = {{1, 1},  {127, 31},  {129, 33}, {5, 129},
                                        {1, 127}, {3, 1025}, {2, 5003},
                                        {27, 10007}}; /* the last: several threads' */
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16, KERNEL_F16};
    (void)state;
    for (size_t i = 0; i < 3 * sizeof shapes / sizeof *shapes; i++) {
        problem p = make_problem(shapes[i / 3], dtypes[i % 3]);
        check_table(loss_forward_cpu, &p, LOSSES);
        check_table(loss_backward_cpu, &p, GRADIENTS);
        check_table(loss_forward_backward_cpu, &p, LOSSES | GRADIENTS);
        free_problem(&p);
    }
}

/* Backward's lse is an input: also one that is not the logits' stays. */
static void test_backward_keeps_lse(void **state)
{
    const float lse[] = {10, 11, 12, 13};
    (void)state;
    problem p = make_problem((loss_shape){4, 9}, KERNEL_F32);
    memcpy(p.args.lse, lse, sizeof lse);
    for (size_t row = 0; row < loss_backward_cpu.count; row++) {
        assert_int_equal(run_variant(&loss_backward_cpu.rows[row], &p.args), 0);
        assert_memory_equal(p.args.lse, lse, sizeof lse);
    }
    free_problem(&p);
}

static void assert_refused(kernel_table table, const loss_args *a, int code)
{
    for (size_t row = 0; row < table.count; row++)
        assert_int_equal(run_variant(&table.rows[row], a), code);
}

static void assert_all_refuse(const loss_args *a, int code)
{
    assert_refused(loss_forward_cpu, a, code);
    assert_refused(loss_backward_cpu, a, code);
    assert_refused(loss_forward_backward_cpu, a, code);
}

/* A target that is no class: nothing is written, the code says so. */
static void test_target_outside(void **state)
{
    const int32_t outside[] = {-1, 9, INT32_MIN, INT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        problem p = make_problem((loss_shape){4, 9}, KERNEL_F32);
        int32_t targets[] = {0, 8, 3, outside[i]};
        loss_args a = p.args;
        a.targets = targets;
        assert_all_refuse(&a, KERNEL_ERROR_INDEX);
        for (int j = 0; j < 4; j++) assert_true(isnan(a.loss[j]));
        for (int j = 0; j < 36; j++) assert_true(isnan(((float *)a.dlogits)[j]));
        free_problem(&p);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    problem p = make_problem((loss_shape){4, 9}, KERNEL_F32);
    loss_args half = p.args, empty = p.args, wide = p.args;
    half.dtype = KERNEL_U8;
    empty.shape.rows = 0;
    assert_all_refuse(&half, KERNEL_ERROR_ARGUMENT);
    assert_all_refuse(&empty, KERNEL_ERROR_ARGUMENT);
    wide.shape.classes = (int64_t)INT32_MAX + 1;
    assert_int_equal(loss_forward_cpu.rows[0].run(&wide, NULL, NULL, NULL), KERNEL_ERROR_ARGUMENT);
    free_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_oracle_closed_form),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_backward_keeps_lse),
        cmocka_unit_test(test_target_outside),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
