/*
 * test_norm.c - layernorm's and rmsnorm's counts, oracles and CPU variants
 * against values known from elsewhere: hand counts, closed forms, finite
 * differences of the forward oracle in double, the oracle.
 */
#include <stdio.h>

#include "kernel_test.h"

#include "../../kernels/common/convert.h"
#include "../../kernels/norm/norm.h"
#include "../../kernels/common/random.h"

/* 512 rows of GPT-2 small's width: 393216 elements. */
static const norm_shape small = {512, 768};

static void test_bytes(void **state)
{
    (void)state;
    /* 2 * 393216 * 4 + 2 * 768 * 4 + 512 * 8 */
    assert_int_equal(norm_forward_bytes(&small, NORM_LAYER, KERNEL_F32, 0), 3155968);
    /* 4 * 393216 * 2 + 768 * 2 + 512 * 4 */
    assert_int_equal(norm_forward_bytes(&small, NORM_RMS, KERNEL_BF16, 1), 3149312);
    /* 3 * 393216 * 4 + 3 * 768 * 4 + 512 * 8 */
    assert_int_equal(norm_backward_bytes(&small, NORM_LAYER, KERNEL_F32, 0), 4731904);
    /* 4 * 393216 * 2 + 2 * 768 * 2 + 512 * 4 */
    assert_int_equal(norm_backward_bytes(&small, NORM_RMS, KERNEL_BF16, 1), 3150848);
    norm_shape huge = {INT64_MAX, INT64_MAX}, empty = {0, 1}, negative = {1, -1};
    assert_true(norm_forward_bytes(&huge, NORM_LAYER, KERNEL_F32, 0) == UINT64_MAX);
    assert_true(norm_backward_bytes(&huge, NORM_RMS, KERNEL_F32, 1) == UINT64_MAX);
    assert_int_equal(norm_forward_bytes(&empty, NORM_LAYER, KERNEL_F32, 0), 0);
    assert_int_equal(norm_backward_bytes(&negative, NORM_LAYER, KERNEL_F32, 0), 0);
}

static void test_flops(void **state)
{
    (void)state;
    assert_int_equal(norm_forward_flops(&small, NORM_LAYER, 0), 2752512);  /* 7 each */
    assert_int_equal(norm_forward_flops(&small, NORM_RMS, 1), 1966080);    /* 5 */
    assert_int_equal(norm_backward_flops(&small, NORM_LAYER, 0), 5111808); /* 13 */
    assert_int_equal(norm_backward_flops(&small, NORM_RMS, 1), 3932160);   /* 10 */
    norm_shape huge = {INT64_MAX, 2}, empty = {1, 0};
    assert_true(norm_forward_flops(&huge, NORM_LAYER, 0) == UINT64_MAX);
    assert_int_equal(norm_backward_flops(&empty, NORM_LAYER, 0), 0);
}

/* 1, 2, 3, 4: mean 5/2, variance 5/4, mean of squares 15/2. The second row, with
 * its residual, is 9 everywhere: nothing but the bias is left of it. */
static void test_oracle_closed_form(void **state)
{
    (void)state;
    const norm_shape shape = {2, 4};
    const float x[] = {1, 2, 3, 4, 8, 7, 6, 5}, residual[] = {0, 0, 0, 0, 1, 2, 3, 4};
    const float weight[] = {1, 2, -1, 3}, bias[] = {0.5f, 0, 1, -2};
    double y[8], sum[8], mean[2], rstd[2], epsilon = (double)NORM_EPSILON;
    norm_forward_reference(&shape, NORM_LAYER, x, residual, weight, bias, y, sum, mean, rstd);
    assert_close(mean[0], 2.5, 1e-15);
    assert_close(mean[1], 9, 1e-15);
    assert_close(rstd[0], 1 / sqrt(1.25 + epsilon), 1e-15);
    assert_close(rstd[1], 1 / sqrt(epsilon), 1e-9);
    for (int j = 0; j < 4; j++) {
        double expected = (x[j] - 2.5) / sqrt(1.25 + epsilon) * weight[j] + bias[j];
        assert_close(y[j], expected, 1e-14);
        assert_close(y[4 + j], bias[j], 1e-15);
        assert_close(sum[4 + j], 9, 1e-15);
    }
    norm_forward_reference(&shape, NORM_RMS, x, NULL, weight, NULL, y, NULL, mean, rstd);
    assert_close(mean[0], 0, 0);
    for (int j = 0; j < 4; j++)
        assert_close(y[j], x[j] / sqrt(7.5 + epsilon) * weight[j], 1e-14);
}

/* ---- finite differences ------------------------------------------------------ */

enum { ROWS = 3, WIDTH = 7, ELEMENTS = ROWS * WIDTH };

/* A scalar function of all inputs: sum(dy * y) + sum(dsum * sum). Its gradient
 * with respect to x, weight and bias is what backward returns. */
typedef struct scalar {
    norm_kind kind;
    float x[ELEMENTS], residual[ELEMENTS], weight[WIDTH], bias[WIDTH];
    float dy[ELEMENTS], dsum[ELEMENTS];
} scalar;

static double value_of(const scalar *f)
{
    const norm_shape shape = {ROWS, WIDTH};
    double y[ELEMENTS], sum[ELEMENTS], value = 0;
    norm_forward_reference(&shape, f->kind, f->x, f->residual, f->weight, f->bias, y, sum, NULL,
                           NULL);
    for (int i = 0; i < ELEMENTS; i++)
        value += (double)f->dy[i] * y[i] + (double)f->dsum[i] * sum[i];
    return value;
}

static double difference_quotient(const scalar *f, float *input)
{
    float saved = *input, above, below;
    *input = above = saved + 0x1p-10f;
    double high = value_of(f);
    *input = below = saved - 0x1p-10f;
    double low = value_of(f);
    *input = saved;
    return (high - low) / ((double)above - (double)below);
}

static void fill(float *values, int count, float mean, uint64_t seed)
{
    assert_int_equal(random_normal_cpu(values, KERNEL_F32, count, mean, 1, seed), 0);
}

static scalar random_scalar(norm_kind kind)
{
    scalar f = {.kind = kind};
    fill(f.x, ELEMENTS, 2, 1);
    fill(f.residual, ELEMENTS, 0, 2);
    fill(f.weight, WIDTH, 1, 3);
    fill(f.bias, WIDTH, 0, 4);
    fill(f.dy, ELEMENTS, 0.5f, 5);
    fill(f.dsum, ELEMENTS, 0, 6);
    return f;
}

static void check_gradients(norm_kind kind)
{
    const norm_shape shape = {ROWS, WIDTH};
    scalar f = random_scalar(kind);
    double sum[ELEMENTS], mean[ROWS], rstd[ROWS];
    double dx[ELEMENTS], dweight[WIDTH] = {0}, dbias[WIDTH] = {0};
    float sum_f32[ELEMENTS], mean_f32[ROWS], rstd_f32[ROWS];
    /* The sum rounds to f32 here: half a unit of its last place, 1e-7. */
    norm_forward_reference(&shape, kind, f.x, f.residual, f.weight, f.bias, NULL, sum, mean, rstd);
    for (int i = 0; i < ELEMENTS; i++) sum_f32[i] = (float)sum[i];
    for (int i = 0; i < ROWS; i++) mean_f32[i] = (float)mean[i], rstd_f32[i] = (float)rstd[i];
    norm_backward_reference(&shape, kind, sum_f32, f.weight, mean_f32, rstd_f32, f.dy, f.dsum, dx,
                            dweight, dbias);
    for (int i = 0; i < ELEMENTS; i++) {
        assert_close(dx[i], difference_quotient(&f, &f.x[i]), 2e-5);
        assert_close(dx[i], difference_quotient(&f, &f.residual[i]), 2e-5);
    }
    for (int j = 0; j < WIDTH; j++) {
        assert_close(dweight[j], difference_quotient(&f, &f.weight[j]), 2e-5);
        if (kind == NORM_LAYER) assert_close(dbias[j], difference_quotient(&f, &f.bias[j]), 2e-5);
    }
}

static void test_gradients_layernorm(void **state)
{
    (void)state;
    check_gradients(NORM_LAYER);
}

static void test_gradients_rmsnorm(void **state)
{
    (void)state;
    check_gradients(NORM_RMS);
}

/* Rows fed one by one add up. */
static void test_oracle_accumulates(void **state)
{
    const norm_shape one = {1, 2};
    const float x[] = {3, 5, 7, 9}, dy[] = {1, 2, 10, 20}, weight[] = {1, 1};
    const float mean[] = {1, 2}, rstd[] = {1, 0.5f};
    double dweight[2] = {0}, dbias[2] = {100, 0};
    (void)state;
    for (int i = 0; i < 2; i++)
        norm_backward_reference(&one, NORM_LAYER, x + 2 * i, weight, mean + i, rstd + i, dy + 2 * i,
                                NULL, NULL, dweight, dbias);
    assert_close(dweight[0], 1 * 2 + 10 * 2.5, 0);
    assert_close(dweight[1], 2 * 4 + 20 * 3.5, 0);
    assert_close(dbias[0], 111, 0);
    assert_close(dbias[1], 22, 0);
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

static void *random_input(int64_t count, kernel_dtype dtype, float mean, uint64_t seed)
{
    void *memory = fresh_array(count, dtype);
    assert_int_equal(random_normal_cpu(memory, dtype, count, mean, 1, seed), 0);
    return memory;
}

static float *as_f32(const void *data, kernel_dtype dtype, int64_t count)
{
    float *values = fresh_array(count, KERNEL_F32);
    if (data) kernel_to_f32(data, dtype, count, values);
    return values;
}

static double norm_of(const double *values, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += values[i] * values[i];
    return sqrt(squares);
}

/* norm(out - reference) / scale, NaN if an element is; fails if the element
 * behind the output was written. */
static double scaled_error(const void *out, kernel_dtype dtype, const double *reference,
                           int64_t count, double scale)
{
    float *values = as_f32(out, dtype, count + 1);
    double difference = 0;
    assert_true(isnan(values[count]));
    for (int64_t i = 0; i < count; i++) difference += pow((double)values[i] - reference[i], 2);
    free(values);
    return difference == 0 ? 0 : sqrt(difference) / scale;
}

static double error_of(const void *out, kernel_dtype dtype, const double *reference, int64_t count)
{
    return scaled_error(out, dtype, reference, count, norm_of(reference, count));
}

static int run_variant(const kernel_variant *variant, const void *args)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    void *workspace = fresh_array((int64_t)bytes, KERNEL_U8);
    int code = variant->run(args, workspace, NULL, NULL);
    free(workspace);
    return code;
}

static double bound_of(kernel_dtype dtype)
{
    return dtype == KERNEL_F32 ? 2e-6 : 8e-3;
}

/* Every input of both passes and every output of forward, as the variant gets
 * them and as the oracle does. */
typedef struct problem {
    norm_forward_args args;
    void *dy, *dsum;
    float *x, *residual, *weight, *bias;
    double *y, *sum, *mean, *rstd;
} problem;

static problem make_problem(norm_shape shape, norm_kind kind, kernel_dtype dtype, int fused)
{
    int64_t count = shape.rows * shape.width;
    problem p = {.args = {.shape = shape, .kind = kind, .dtype = dtype}};
    norm_forward_args *a = &p.args;
    int layer = kind == NORM_LAYER;
    a->x = random_input(count, dtype, 1, 1);
    a->residual = fused ? random_input(count, dtype, 0, 2) : NULL;
    a->weight = random_input(shape.width, dtype, 1, 3);
    a->bias = layer ? random_input(shape.width, dtype, 0, 4) : NULL;
    p.dy = random_input(count, dtype, 0, 5);
    p.dsum = fused ? random_input(count, dtype, 0, 6) : NULL;
    a->y = fresh_array(count, dtype);
    a->sum = fused ? fresh_array(count, dtype) : NULL;
    a->mean = layer ? fresh_array(shape.rows, KERNEL_F32) : NULL;
    a->rstd = fresh_array(shape.rows, KERNEL_F32);
    p.x = as_f32(a->x, dtype, count);
    p.residual = as_f32(a->residual, dtype, count);
    p.weight = as_f32(a->weight, dtype, shape.width);
    p.bias = as_f32(a->bias, dtype, shape.width);
    p.y = calloc((size_t)count, sizeof(double));
    p.sum = calloc((size_t)count, sizeof(double));
    p.mean = calloc((size_t)shape.rows, sizeof(double));
    p.rstd = calloc((size_t)shape.rows, sizeof(double));
    norm_forward_reference(&shape, kind, p.x, fused ? p.residual : NULL, p.weight, p.bias, p.y,
                           p.sum, p.mean, p.rstd);
    return p;
}

static void free_problem(problem *p)
{
    const norm_forward_args *a = &p->args;
    const void *all[] = {a->x,  a->residual, a->weight, a->bias,     a->y,      a->sum,
                         a->mean, a->rstd,   p->dy,     p->dsum,     p->x,      p->residual,
                         p->weight, p->bias, p->y,      p->sum,      p->mean,   p->rstd};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free((void *)(uintptr_t)all[i]);
}

static void assert_small(double error, double bound, const char *what,
                         const kernel_variant *variant, const norm_forward_args *a)
{
    if (!(error <= bound))
        fail_msg("%s: error of %s is %g: kind %d, %lld rows of %lld, %s, fused %d", variant->name,
                 what, error, a->kind, (long long)a->shape.rows, (long long)a->shape.width,
                 kernel_dtype_name(a->dtype), a->residual != NULL);
}

static void check_forward(const kernel_variant *variant, const problem *p)
{
    const norm_forward_args *a = &p->args;
    int64_t count = a->shape.rows * a->shape.width;
    int64_t rows = a->shape.rows;
    double bound = bound_of(a->dtype);
    assert_int_equal(run_variant(variant, a), 0);
    assert_small(error_of(a->y, a->dtype, p->y, count), bound, "y", variant, a);
    if (a->sum) assert_small(error_of(a->sum, a->dtype, p->sum, count), bound, "sum", variant, a);
    if (a->mean)
        assert_small(error_of(a->mean, KERNEL_F32, p->mean, rows), bound, "mean", variant, a);
    assert_small(error_of(a->rstd, KERNEL_F32, p->rstd, rows), bound, "rstd", variant, a);
}

/* norm(rstd * g), of which dx is what is left after two projections: of a row
 * of one element nothing, but for epsilon and rounding. */
static double dx_scale(const norm_backward_args *a, const float *dy, const float *weight)
{
    double squares = 0;
    for (int64_t i = 0; i < a->shape.rows * a->shape.width; i++)
        squares += pow((double)a->rstd[i / a->shape.width] * (double)dy[i] *
                           (double)weight[i % a->shape.width], 2);
    return sqrt(squares);
}

/* On what forward left behind; the oracle gets the same. */
static void check_backward(const kernel_variant *variant, const problem *p)
{
    const norm_forward_args *f = &p->args;
    int64_t count = f->shape.rows * f->shape.width, width = f->shape.width;
    double bound = bound_of(f->dtype);
    norm_backward_args a = {.shape = f->shape, .kind = f->kind, .dtype = f->dtype,
                            .x = f->sum ? f->sum : f->x, .weight = f->weight, .dy = p->dy,
                            .dsum = p->dsum, .mean = f->mean, .rstd = f->rstd,
                            .dx = fresh_array(count, f->dtype),
                            .dweight = fresh_array(width, f->dtype),
                            .dbias = f->mean ? fresh_array(width, f->dtype) : NULL};
    float *x = as_f32(a.x, a.dtype, count), *dy = as_f32(a.dy, a.dtype, count);
    float *dsum = as_f32(a.dsum, a.dtype, count);
    double *dx = calloc((size_t)count, sizeof *dx);
    double *dweight = calloc((size_t)width, sizeof *dweight);
    double *dbias = calloc((size_t)width, sizeof *dbias);
    norm_backward_reference(&a.shape, a.kind, x, p->weight, a.mean, a.rstd, dy,
                            a.dsum ? dsum : NULL, dx, dweight, dbias);
    assert_int_equal(run_variant(variant, &a), 0);
    double scale = fmax(norm_of(dx, count), dx_scale(&a, dy, p->weight));
    assert_small(scaled_error(a.dx, a.dtype, dx, count, scale), bound, "dx", variant, f);
    assert_small(error_of(a.dweight, a.dtype, dweight, width), bound, "dweight", variant, f);
    if (a.dbias) assert_small(error_of(a.dbias, a.dtype, dbias, width), bound, "dbias", variant, f);
    void *all[] = {a.dx, a.dweight, a.dbias, x, dy, dsum, dx, dweight, dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void test_variants(void **state)
{
    static const norm_shape shapes[] = {{1, 1},   {127, 31}, {129, 33}, {5, 129},
                                        {1, 127}, {33, 768}, {3, 1025},
                                        {130, 2053}}; /* the last: several threads' */
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16, KERNEL_F16};
    (void)state;
    for (size_t i = 0; i < 12 * sizeof shapes / sizeof *shapes; i++) {
        norm_kind kind = i & 1 ? NORM_RMS : NORM_LAYER;
        problem p = make_problem(shapes[i / 12], kind, dtypes[i / 4 % 3], i / 2 % 2);
        for (size_t row = 0; row < norm_forward_cpu.count; row++)
            check_forward(&norm_forward_cpu.rows[row], &p);
        for (size_t row = 0; row < norm_backward_cpu.count; row++)
            check_backward(&norm_backward_cpu.rows[row], &p);
        free_problem(&p);
    }
}

/* The fused forward gives the bits of an addition followed by a norm. */
static void test_fused_equals_parts(void **state)
{
    const norm_shape shape = {9, 40};
    const size_t bytes = 9 * 40 * 2;
    (void)state;
    for (size_t row = 0; row < norm_forward_cpu.count; row++) {
        problem p = make_problem(shape, NORM_LAYER, KERNEL_BF16, 1);
        assert_int_equal(run_variant(&norm_forward_cpu.rows[row], &p.args), 0);
        norm_forward_args apart = p.args;
        apart.x = p.args.sum;
        apart.residual = NULL;
        apart.sum = NULL;
        apart.y = fresh_array(9 * 40, KERNEL_BF16);
        assert_int_equal(run_variant(&norm_forward_cpu.rows[row], &apart), 0);
        assert_memory_equal(apart.y, p.args.y, bytes);
        free(apart.y);
        free_problem(&p);
    }
}

/* One gradient for each column, and none behind them. */
static void test_columns_end(void **state)
{
    enum { WIDE = 3, ROOM = 8 };
    const float x[ROOM] = {1, 2, 3, 4, 5, 6, 7, 8}, weight[ROOM] = {1, 1, 1, 1}, ones[ROOM] = {1, 1, 1};
    float dx[ROOM], dweight[ROOM], dbias[ROOM];
    norm_backward_args a = {.shape = {2, WIDE}, .kind = NORM_LAYER, .dtype = KERNEL_F32, .x = x,
                            .weight = weight, .dy = x, .mean = ones, .rstd = ones, .dx = dx,
                            .dweight = dweight, .dbias = dbias};
    (void)state;
    for (size_t row = 0; row < norm_backward_cpu.count; row++) {
        const kernel_variant *v = &norm_backward_cpu.rows[row];
        void *workspace = v->workspace_bytes ? fresh(v->workspace_bytes(&a)) : NULL;
        for (int i = 0; i < ROOM; i++) dx[i] = dweight[i] = dbias[i] = 77;
        if (!why_not(v, &a)) {
            assert_int_equal(v->run(&a, workspace, NULL, NULL), 0);
            assert_close(dweight[0], 1 * 0 + 4 * 3, 0); /* of dy = x, less a mean of 1 */
            assert_close(dweight[2], 3 * 2 + 6 * 5, 0);
            assert_close(dbias[0], 1 + 4, 0);
            assert_close(dbias[2], 3 + 6, 0);
            for (int i = WIDE; i < ROOM; i++)
                assert_true(dweight[i] == 77 && dbias[i] == 77);
        }
        free(workspace);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    for (size_t row = 0; row < norm_forward_cpu.count; row++) {
        norm_forward_args half = {.shape = small, .dtype = KERNEL_U8};
        norm_forward_args empty = {.shape = {0, 8}, .dtype = KERNEL_F32};
        assert_int_equal(norm_forward_cpu.rows[row].run(&half, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
        assert_int_equal(norm_forward_cpu.rows[row].run(&empty, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
    }
    for (size_t row = 0; row < norm_backward_cpu.count; row++) {
        norm_backward_args bytes = {.shape = small, .dtype = KERNEL_U8};
        norm_backward_args empty = {.shape = {8, 0}, .dtype = KERNEL_F32};
        assert_int_equal(norm_backward_cpu.rows[row].run(&bytes, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
        assert_int_equal(norm_backward_cpu.rows[row].run(&empty, NULL, NULL, NULL),
                         KERNEL_ERROR_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_oracle_closed_form),
        cmocka_unit_test(test_gradients_layernorm),
        cmocka_unit_test(test_gradients_rmsnorm),
        cmocka_unit_test(test_oracle_accumulates),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_fused_equals_parts),
        cmocka_unit_test(test_columns_end),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
