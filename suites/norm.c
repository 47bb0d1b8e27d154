/*
 * norm.c - the norm suite: layernorm and rmsnorm, forward and backward, alone
 * and with the residual addition in front of them fused in.
 */
#include "once.h"
#include "suite.h"

#include "../kernels/common/convert.h"
#include "../kernels/norm/norm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Batch 4, context 128 (512 rows) and batch 8, context 1024 (8192) are added
 * for the width of each model size. */
static const norm_shape gpu_extra[] = {{32768, 2560}};
static const norm_shape cpu_shapes[] = {{128, 768}};

enum { SAMPLED_ROWS = 64, SAMPLED_COLUMNS = 128 };

/* Rows whose sampled columns are on the host at a time, and in ranges of how
 * many the oracle sums them up. */
enum { ROWS_AT_A_TIME = 1 << 15, ROW_RANGE = 256, ROW_RANGES = ROWS_AT_A_TIME / ROW_RANGE };

/* What a variant gets, and whether the residual is part of it. */
typedef struct forward_case {
    norm_forward_args args;
    int fused;
} forward_case;

typedef struct backward_case {
    norm_backward_args args;
    int fused;
} backward_case;

/* ---- building ------------------------------------------------------------------ */

static int input(const suite_case *c, gpubench *bench, int64_t count, uint64_t id,
                 const void **memory)
{
    void *filled = NULL;
    int code = suite_input(bench, c->dtype, count, 1, id, &filled);
    *memory = filled;
    return code;
}

static int statistics_output(gpubench *bench, int64_t rows, int kind, float **memory)
{
    *memory = gpubench_alloc(bench, suite_bytes(rows, KERNEL_F32), kind);
    return *memory ? 0 : GPUBENCH_OOM;
}

static int64_t element_count(const norm_shape *s)
{
    int64_t factors[] = {s->rows, s->width};
    return suite_product(factors, 2);
}

static int build_forward(suite_case *c, gpubench *bench)
{
    enum { OUTPUT = GPUBENCH_DEVICE | GPUBENCH_OUTPUT };
    forward_case *f = c->args;
    norm_forward_args *a = &f->args;
    int64_t count = element_count(&a->shape), width = a->shape.width;
    int layer = a->kind == NORM_LAYER;
    int code = input(c, bench, count, 0, &a->x);
    if (code == 0) code = input(c, bench, width, 1, &a->weight);
    if (code == 0 && layer) code = input(c, bench, width, 2, &a->bias);
    if (code == 0 && f->fused) code = input(c, bench, count, 3, &a->residual);
    if (code == 0 && f->fused) code = suite_output(bench, c->dtype, count, &a->sum);
    if (code == 0) code = suite_output(bench, c->dtype, count, &a->y);
    if (code == 0 && layer) code = statistics_output(bench, a->shape.rows, OUTPUT, &a->mean);
    return code ? code : statistics_output(bench, a->shape.rows, OUTPUT, &a->rstd);
}

/* mean and rstd are inputs of the backward pass: one forward pass makes them.
 * Its y goes where dx will be, which is poisoned later. What comes after this
 * in build, filling dy, waits for it. */
static int make_statistics(gpubench *bench, norm_backward_args *a, const void *bias)
{
    norm_forward_args forward = {.shape = a->shape, .kind = a->kind, .dtype = a->dtype, .x = a->x,
                                 .weight = a->weight, .bias = bias, .y = a->dx};
    kernel_table table =
        gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(norm_forward_cuda) : norm_forward_cpu;
    int code = 0;
    if (a->kind == NORM_LAYER)
        code = statistics_output(bench, a->shape.rows, GPUBENCH_DEVICE, &forward.mean);
    if (code == 0)
        code = statistics_output(bench, a->shape.rows, GPUBENCH_DEVICE, &forward.rstd);
    a->mean = forward.mean;
    a->rstd = forward.rstd;
    return code ? code : suite_run_named(bench, &table, "naive", &forward);
}

static int build_backward(suite_case *c, gpubench *bench)
{
    backward_case *b = c->args;
    norm_backward_args *a = &b->args;
    int64_t count = element_count(&a->shape), width = a->shape.width;
    int layer = a->kind == NORM_LAYER;
    const void *bias = NULL;
    int code = input(c, bench, count, 0, &a->x);
    if (code == 0) code = input(c, bench, width, 1, &a->weight);
    if (code == 0 && layer) code = input(c, bench, width, 2, &bias);
    if (code == 0) code = suite_output(bench, c->dtype, count, &a->dx);
    if (code == 0) code = suite_output(bench, c->dtype, width, &a->dweight);
    if (code == 0 && layer) code = suite_output(bench, c->dtype, width, &a->dbias);
    if (code == 0) code = make_statistics(bench, a, bias);
    if (code == 0 && b->fused) code = input(c, bench, count, 4, &a->dsum);
    return code ? code : input(c, bench, count, 5, &a->dy);
}

/* ---- verifying ------------------------------------------------------------------ */

/* Room on the host for sampled rows. Each matrix is [SAMPLED_ROWS, width]. */
typedef struct sample {
    gpubench *bench;
    norm_shape shape; /* of the sample */
    kernel_dtype dtype;
    int64_t rows[SAMPLED_ROWS];
    float *in[4], *weight, *bias;
    double *reference[2];
} sample;

static int open_sample(sample *s, gpubench *bench, const norm_shape *shape, kernel_dtype dtype)
{
    size_t width = (size_t)shape->width, matrix = SAMPLED_ROWS * width;
    *s = (sample){.bench = bench, .dtype = dtype};
    s->shape.width = shape->width;
    s->shape.rows = suite_sample_indices(gpubench_seed(bench), shape->rows, SAMPLED_ROWS, s->rows);
    float *floats = malloc((4 * matrix + 2 * width) * sizeof *floats);
    double *doubles = malloc(2 * matrix * sizeof *doubles);
    s->in[0] = floats;
    s->reference[0] = doubles;
    if (!floats || !doubles) return KERNEL_ERROR_MEMORY;
    for (int i = 1; i < 4; i++) s->in[i] = floats + (size_t)i * matrix;
    s->weight = floats + 4 * matrix;
    s->bias = s->weight + width;
    s->reference[1] = doubles + matrix;
    return 0;
}

static void close_sample(sample *s)
{
    free(s->in[0]);
    free(s->reference[0]);
}

/* The sampled rows of a matrix. */
static int fetch_rows(const sample *s, const void *matrix, float *values)
{
    int64_t width = s->shape.width;
    int code = 0;
    for (int64_t i = 0; i < s->shape.rows && code == 0; i++)
        code = suite_fetch(s->bench, matrix, s->dtype, s->rows[i] * width, width,
                           values + i * width);
    return code;
}

static int fetch_statistics(const sample *s, const float *statistics, float *values)
{
    int code = 0;
    for (int64_t i = 0; i < s->shape.rows && code == 0; i++)
        code = suite_fetch(s->bench, statistics, KERNEL_F32, s->rows[i], 1, values + i);
    return code;
}

/* The sampled rows of an output against a reference of the same shape. */
static int check_rows(const sample *s, const void *out, float *room, const double *reference)
{
    suite_error error = {0, 0};
    int code = fetch_rows(s, out, room);
    if (code) return code;
    suite_compare(&error, room, reference, s->shape.rows * s->shape.width);
    return suite_check(s->bench, &error, s->dtype, 1);
}

static int check_statistics(const sample *s, const float *out, const double *reference)
{
    float values[SAMPLED_ROWS];
    suite_error error = {0, 0};
    int code = out ? fetch_statistics(s, out, values) : 0;
    if (code || !out) return code;
    suite_compare(&error, values, reference, s->shape.rows);
    return suite_check(s->bench, &error, KERNEL_F32, 1);
}

/* Of a fused norm, the sum is checked against its terms, and all else against
 * the norm of the sum that was stored: what norm.h promises. */
static int check_forward(const sample *s, const norm_forward_args *a)
{
    double mean[SAMPLED_ROWS], rstd[SAMPLED_ROWS];
    int64_t width = a->shape.width;
    int code = suite_fetch(s->bench, a->weight, s->dtype, 0, width, s->weight);
    if (code == 0 && a->bias) code = suite_fetch(s->bench, a->bias, s->dtype, 0, width, s->bias);
    if (code == 0) code = fetch_rows(s, a->x, s->in[0]);
    if (code == 0 && a->residual) {
        code = fetch_rows(s, a->residual, s->in[1]);
        if (code) return code;
        norm_forward_reference(&s->shape, a->kind, s->in[0], s->in[1], s->weight, s->bias, NULL,
                               s->reference[0], NULL, NULL);
        code = check_rows(s, a->sum, s->in[0], s->reference[0]);
    }
    if (code) return code;
    norm_forward_reference(&s->shape, a->kind, s->in[0], NULL, s->weight, s->bias, s->reference[0],
                           NULL, mean, rstd);
    code = check_statistics(s, a->mean, mean);
    if (code == 0) code = check_statistics(s, a->rstd, rstd);
    return code ? code : check_rows(s, a->y, s->in[1], s->reference[0]);
}

static int verify_forward(suite_case *c, gpubench *bench)
{
    const norm_forward_args *a = &((const forward_case *)c->args)->args;
    int64_t count = element_count(&a->shape);
    sample s;
    int code = open_sample(&s, bench, &a->shape, c->dtype);
    if (code == 0) code = check_forward(&s, a);
    close_sample(&s);
    if (code == 0) code = suite_check_written(bench, a->y, c->dtype, count);
    if (code == 0 && a->sum) code = suite_check_written(bench, a->sum, c->dtype, count);
    if (code == 0 && a->mean) code = suite_check_written(bench, a->mean, KERNEL_F32, a->shape.rows);
    return code ? code : suite_check_written(bench, a->rstd, KERNEL_F32, a->shape.rows);
}

/* dx of the sampled rows. It is what is left of rstd * dy * weight after two
 * projections (of a row of one element: nothing), so that is what its error is
 * measured by. */
static int check_dx(const sample *s, const norm_backward_args *a)
{
    float mean[SAMPLED_ROWS], rstd[SAMPLED_ROWS];
    int64_t width = a->shape.width;
    suite_error error = {0, 0};
    int code = suite_fetch(s->bench, a->weight, s->dtype, 0, width, s->weight);
    if (code == 0) code = fetch_rows(s, a->x, s->in[0]);
    if (code == 0) code = fetch_rows(s, a->dy, s->in[1]);
    if (code == 0 && a->dsum) code = fetch_rows(s, a->dsum, s->in[2]);
    if (code == 0) code = fetch_rows(s, a->dx, s->in[3]);
    if (code == 0 && a->mean) code = fetch_statistics(s, a->mean, mean);
    if (code == 0) code = fetch_statistics(s, a->rstd, rstd);
    if (code) return code;
    norm_backward_reference(&s->shape, a->kind, s->in[0], s->weight, mean, rstd, s->in[1],
                            a->dsum ? s->in[2] : NULL, s->reference[0], NULL, NULL);
    suite_compare(&error, s->in[3], s->reference[0], s->shape.rows * width);
    error.reference2 = 0;
    for (int64_t i = 0; i < s->shape.rows * width; i++)
        error.reference2 += /* of fetched rows only: NOLINTNEXTLINE(*-core.UndefinedBinary*) */
            pow((double)rstd[i / width] * (double)s->in[1][i] * (double)s->weight[i % width], 2);
    return suite_check(s->bench, &error, s->dtype, 1);
}

/* Sampled columns of x and dy, of many rows at a time, and what becomes of them. */
typedef struct columns {
    const norm_backward_args *args;
    int64_t count, indices[SAMPLED_COLUMNS];
    float *x, *dy;      /* [rows, count] */
    float *mean, *rstd; /* [rows] */
    double dweight[SAMPLED_COLUMNS], dbias[SAMPLED_COLUMNS];
    double range_dweight[ROW_RANGES][SAMPLED_COLUMNS], range_dbias[ROW_RANGES][SAMPLED_COLUMNS];
} columns;

/* Where the columns of a matrix go. */
typedef struct gathering {
    const columns *k;
    float *values;
} gathering;

static void gather(void *context, const void *raw, int64_t at, int64_t count)
{
    const gathering *g = context;
    int64_t width = g->k->args->shape.width;
    kernel_dtype dtype = g->k->args->dtype;
    for (int64_t row = at / width; row * width < at + count; row++)
        for (int64_t j = 0; j < g->k->count; j++) {
            int64_t i = row * width + g->k->indices[j] - at;
            if (i >= 0 && i < count)
                kernel_to_f32((const char *)raw + suite_bytes(i, dtype), dtype, 1,
                              &g->values[row * g->k->count + j]);
        }
}

static int fetch_columns(gpubench *bench, const columns *k, const void *matrix, int64_t first,
                         int64_t rows, float *values)
{
    int64_t width = k->args->shape.width;
    gathering g = {k, values};
    return suite_look_at(bench, matrix, k->args->dtype, first * width, rows * width, gather, &g);
}

/* The columns of dweight and dbias do not depend on each other, so the oracle
 * can do with some; it gets every row. */
static void sum_rows(void *context, int64_t begin, int64_t end)
{
    columns *k = context;
    const norm_shape piece = {end - begin, k->count};
    int64_t range = begin / ROW_RANGE, first = begin * k->count;
    memset(k->range_dweight[range], 0, sizeof k->range_dweight[range]);
    memset(k->range_dbias[range], 0, sizeof k->range_dbias[range]);
    norm_backward_reference(&piece, k->args->kind, k->x + first, NULL, k->mean + begin,
                            k->rstd + begin, k->dy + first, NULL, NULL, k->range_dweight[range],
                            k->range_dbias[range]);
}

static int add_rows(gpubench *bench, columns *k, int64_t first, int64_t rows)
{
    const norm_backward_args *a = k->args;
    int code = fetch_columns(bench, k, a->x, first, rows, k->x);
    if (code == 0) code = fetch_columns(bench, k, a->dy, first, rows, k->dy);
    if (code == 0 && a->mean) code = suite_fetch(bench, a->mean, KERNEL_F32, first, rows, k->mean);
    if (code == 0) code = suite_fetch(bench, a->rstd, KERNEL_F32, first, rows, k->rstd);
    if (code) return code;
    parallel_for(rows, ROW_RANGE, sum_rows, k);
    for (int64_t range = 0; range < parallel_range_count(rows, ROW_RANGE); range++)
        for (int64_t j = 0; j < k->count; j++) {
            k->dweight[j] += k->range_dweight[range][j];
            k->dbias[j] += k->range_dbias[range][j];
        }
    return 0;
}

static int add_all_rows(gpubench *bench, columns *k)
{
    int64_t rows = k->args->shape.rows, most = rows < ROWS_AT_A_TIME ? rows : ROWS_AT_A_TIME;
    int code = 0;
    k->x = malloc((size_t)(2 * most * (k->count + 1)) * sizeof *k->x);
    if (!k->x) return KERNEL_ERROR_MEMORY;
    k->dy = k->x + most * k->count;
    k->mean = k->dy + most * k->count;
    k->rstd = k->mean + most;
    for (int64_t row = 0; row < rows && code == 0; row += most)
        code = add_rows(bench, k, row, rows - row < most ? rows - row : most);
    free(k->x);
    return code;
}

static int check_columns(gpubench *bench, const columns *k, const void *out, kernel_dtype dtype,
                         const double *reference)
{
    suite_error error = {0, 0};
    int code = 0;
    for (int64_t j = 0; j < k->count && code == 0; j++) {
        float value;
        code = suite_fetch(bench, out, dtype, k->indices[j], 1, &value);
        if (code == 0) suite_compare(&error, &value, &reference[j], 1);
    }
    return code ? code : suite_check(bench, &error, dtype, 1);
}

static int check_parameters(gpubench *bench, const norm_backward_args *a)
{
    columns *k = calloc(1, sizeof *k);
    if (!k) return KERNEL_ERROR_MEMORY;
    k->args = a;
    k->count =
        suite_sample_indices(gpubench_seed(bench), a->shape.width, SAMPLED_COLUMNS, k->indices);
    int code = add_all_rows(bench, k);
    if (code == 0) code = check_columns(bench, k, a->dweight, a->dtype, k->dweight);
    if (code == 0 && a->dbias) code = check_columns(bench, k, a->dbias, a->dtype, k->dbias);
    free(k);
    return code;
}

static int verify_backward(suite_case *c, gpubench *bench)
{
    const norm_backward_args *a = &((const backward_case *)c->args)->args;
    int64_t width = a->shape.width;
    sample s;
    int code = open_sample(&s, bench, &a->shape, c->dtype);
    if (code == 0) code = check_dx(&s, a);
    close_sample(&s);
    if (code == 0) code = check_parameters(bench, a);
    if (code == 0) code = suite_check_written(bench, a->dx, c->dtype, element_count(&a->shape));
    if (code == 0) code = suite_check_written(bench, a->dweight, c->dtype, width);
    if (code == 0 && a->dbias) code = suite_check_written(bench, a->dbias, c->dtype, width);
    return code;
}

/* ---- queueing ------------------------------------------------------------------- */

/* A pass of a kind of norm, with or without a fused residual. */
#define OPERATION(NAME, PASS)                                                             \
    {                                                                                     \
        .name = NAME "." #PASS, .cpu = &norm_##PASS##_cpu,                                \
        .cuda = SUITE_CUDA(norm_##PASS##_cuda), .args_bytes = sizeof(PASS##_case),        \
        .build = build_##PASS, .verify = verify_##PASS                                    \
    }

/* By kind, then by whether the residual is fused. */
static const suite_operation forward_operations[2][2] = {
    {OPERATION("layernorm", forward), OPERATION("layernorm_residual", forward)},
    {OPERATION("rmsnorm", forward), OPERATION("rmsnorm_residual", forward)},
};
static const suite_operation backward_operations[2][2] = {
    {OPERATION("layernorm", backward), OPERATION("layernorm_residual", backward)},
    {OPERATION("rmsnorm", backward), OPERATION("rmsnorm_residual", backward)},
};

static void queue(suite *s, const norm_shape *shape, norm_kind kind, int fused, kernel_dtype dtype)
{
    char params[64];
    forward_case forward = {{.shape = *shape, .kind = kind, .dtype = dtype}, fused};
    backward_case backward = {{.shape = *shape, .kind = kind, .dtype = dtype}, fused};
    snprintf(params, sizeof params, "n=%lld c=%lld", (long long)shape->rows,
             (long long)shape->width);
    suite_queue(s, &forward_operations[kind == NORM_RMS][fused], dtype, params, &forward,
                norm_forward_bytes(shape, kind, dtype, fused),
                norm_forward_flops(shape, kind, fused));
    suite_queue(s, &backward_operations[kind == NORM_RMS][fused], dtype, params, &backward,
                norm_backward_bytes(shape, kind, dtype, fused),
                norm_backward_flops(shape, kind, fused));
}

static void queue_shape(suite *s, norm_shape shape)
{
    static const norm_kind kinds[] = {NORM_LAYER, NORM_RMS};
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};
    for (int i = 0; i < 8; i++)
        queue(s, &shape, kinds[i / 4], i / 2 % 2, dtypes[i % 2]);
}

static void queue_defaults(suite *s)
{
    if (!gpubench_is_cuda(s->bench)) {
        for (size_t i = 0; i < sizeof cpu_shapes / sizeof *cpu_shapes; i++)
            queue_shape(s, cpu_shapes[i]);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        queue_shape(s, (norm_shape){4 * 128, suite_models[i].d_model});
        if (suite_fills_gpu(&suite_models[i]))
            queue_shape(s, (norm_shape){8 * 1024, suite_models[i].d_model});
    }
    for (size_t i = 0; i < sizeof gpu_extra / sizeof *gpu_extra; i++)
        queue_shape(s, gpu_extra[i]);
}

static void queue_given(suite *s, const int64_t *values)
{
    norm_shape shape = {values[0], values[1]};
    if (norm_forward_flops(&shape, NORM_LAYER, 0) == 0)
        gpubench_usage_error(s->bench, "--shape: n and c must be at least 1");
    else
        queue_shape(s, shape);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"n", "c"};
    suite s = suite_open("norm", "'n=512 c=768; ...' (rows, width) instead of the defaults", argc,
                         argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
