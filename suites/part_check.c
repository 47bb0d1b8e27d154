/*
 * part_check.c - checks of linear layers and norms, and of any part by its kind:
 * see part_check.h.
 */
#include "part_check.h"

#include "../kernels/ffn/ffn.h"
#include "../kernels/common/oracle.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS = 64 };

/* ---- what every check uses ------------------------------------------------------- */

part_sample part_sample_of(const part_checker *c, int64_t rows)
{
    part_sample sample;
    sample.count =
        suite_sample_indices(gpubench_seed(c->bench), rows, PART_CHECK_ROWS, sample.at);
    return sample;
}

void *part_check_room(part_checker *c, int64_t count, size_t element_bytes)
{
    void *memory = c->code ? NULL : calloc((size_t)count, element_bytes);
    if (c->code == 0 && !memory) c->code = KERNEL_ERROR_MEMORY;
    return memory;
}

double *part_check_doubles(part_checker *c, int64_t count)
{
    return part_check_room(c, count, sizeof(double));
}

static float *get_as(part_checker *c, const void *memory, kernel_dtype dtype, int64_t first,
                     int64_t count)
{
    float *values = part_check_room(c, count, sizeof *values);
    if (c->code == 0) c->code = suite_fetch(c->bench, memory, dtype, first, count, values);
    return values;
}

float *part_check_get(part_checker *c, const void *memory, int64_t first, int64_t count)
{
    return get_as(c, memory, c->dtype, first, count);
}

float *part_check_get_f32(part_checker *c, const void *memory, int64_t first, int64_t count)
{
    return get_as(c, memory, KERNEL_F32, first, count);
}

static void compare_as(part_checker *c, const void *output, kernel_dtype dtype, int64_t first,
                       int64_t count, const double *reference, suite_error *error)
{
    float *values = get_as(c, output, dtype, first, count);
    if (c->code == 0) suite_compare(error, values, reference, count);
    free(values);
}

void part_check_compare(part_checker *c, const void *output, int64_t first, int64_t count,
                        const double *reference, suite_error *error)
{
    compare_as(c, output, c->dtype, first, count, reference, error);
}

void part_check_compare_f32(part_checker *c, const void *output, int64_t first, int64_t count,
                            const double *reference, suite_error *error)
{
    compare_as(c, output, KERNEL_F32, first, count, reference, error);
}

void part_check_judge(part_checker *c, const suite_error *error, double factor)
{
    if (c->code == 0) c->code = suite_check(c->bench, error, c->dtype, factor);
}

void part_check_judge_f32(part_checker *c, const suite_error *error, double factor)
{
    if (c->code == 0) c->code = suite_check(c->bench, error, KERNEL_F32, factor);
}

void part_check_written(part_checker *c, const void *output, int64_t count)
{
    if (c->code == 0) c->code = suite_check_written(c->bench, output, c->dtype, count);
}

void part_check_written_f32(part_checker *c, const void *output, int64_t count)
{
    if (c->code == 0) c->code = suite_check_written(c->bench, output, KERNEL_F32, count);
}

/* ---- linear layers -------------------------------------------------------------------- */

/* A product of one row, whose elements several threads divide among them: with a
 * vocabulary of 50,000 it is most of a check. */
typedef struct row_product {
    const float *x, *weight;
    int64_t in, out;
    double *y;
} row_product;

enum { OUTPUTS_AT_A_TIME = 256, INPUTS_AT_A_TIME = 64 };

static void dot_outputs(void *context, int64_t begin, int64_t end)
{
    const row_product *p = context;
    for (int64_t o = begin; o < end; o++)
        p->y[o] = oracle_dot(p->x, p->weight + o * p->in, p->in);
}

void part_check_row_times_weight(const float *x, const float *weight, int64_t in, int64_t out,
                                 double *y)
{
    row_product product = {x, weight, in, out, y};
    parallel_for(out, OUTPUTS_AT_A_TIME, dot_outputs, &product);
}

/* Here x is a row of the output's gradient, and y one of the input's. */
static void add_inputs(void *context, int64_t begin, int64_t end)
{
    const row_product *p = context;
    for (int64_t o = 0; o < p->out; o++)
        oracle_add_scaled(end - begin, (double)p->x[o], p->weight + o * p->in + begin,
                          p->y + begin);
}

/* A row of a layer's output, or of GELU of that; bias and residual may be NULL. */
static void layer_reference(const part_layer *l, const float *x, const float *residual,
                            const float *weight, const float *bias, int through_gelu, double *y)
{
    part_check_row_times_weight(x, weight, l->in, l->out, y);
    for (int64_t o = 0; o < l->out; o++) {
        if (bias) y[o] += (double)bias[o];
        if (residual) y[o] += (double)residual[o];
        if (through_gelu) y[o] = ffn_gelu(y[o]);
    }
}

static void check_layer_output(part_checker *c, const part_linear *p, const void *output,
                               int through_gelu)
{
    const part_layer *l = &p->layer;
    part_sample rows = part_sample_of(c, l->rows);
    float *weight = part_check_get(c, p->weight, 0, l->in * l->out);
    float *bias = p->bias ? part_check_get(c, p->bias, 0, l->out) : NULL;
    double *y = part_check_doubles(c, l->out);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < rows.count && c->code == 0; i++) {
        int64_t first = rows.at[i] * l->out;
        float *x = part_check_get(c, p->x, rows.at[i] * l->in, l->in);
        float *residual = p->residual ? part_check_get(c, p->residual, first, l->out) : NULL;
        if (c->code == 0) {
            layer_reference(l, x, residual, weight, bias, through_gelu, y);
            part_check_compare(c, output, first, l->out, y, &error);
        }
        free(x);
        free(residual);
    }
    free(weight);
    free(bias);
    free(y);
    part_check_judge(c, &error, through_gelu ? 2 : 1); /* GELU's input may be rounded too */
    part_check_written(c, output, l->rows * l->out);
}

static void check_linear(part_checker *c, const part_args *part)
{
    const part_linear *p = &part->as.linear;
    if (part->with_gelu && p->pre) check_layer_output(c, p, p->pre, 0);
    check_layer_output(c, p, p->y, part->with_gelu);
}

/* A bias's gradient: all of it, from all rows. */
static void check_bias_gradient(part_checker *c, int64_t rows, int64_t out,
                                const void *out_gradient, const void *bias_gradient)
{
    double *sums = part_check_doubles(c, out);
    suite_error error = {0, 0};
    for (int64_t row = 0; row < rows && c->code == 0; row += CHUNK_ROWS) {
        int64_t count = rows - row < CHUNK_ROWS ? rows - row : CHUNK_ROWS;
        float *dy = part_check_get(c, out_gradient, row * out, count * out);
        for (int64_t i = 0; i < count && c->code == 0; i++)
            oracle_add_scaled(out, 1, dy + i * out, sums);
        free(dy);
    }
    part_check_compare(c, bias_gradient, 0, out, sums, &error);
    free(sums);
    part_check_judge(c, &error, 1);
}

/* Sampled rows. */
static void check_input_gradient(part_checker *c, const part_args *part)
{
    const part_input_gradient *p = &part->as.input_gradient;
    const part_layer *l = &p->layer;
    part_sample rows = part_sample_of(c, l->rows);
    float *weight = part_check_get(c, p->weight, 0, l->in * l->out);
    double *dx = part_check_doubles(c, l->in);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < rows.count && c->code == 0; i++) {
        int64_t first = rows.at[i] * l->in;
        float *dy = part_check_get(c, p->y_gradient, rows.at[i] * l->out, l->out);
        float *u = part->with_gelu ? part_check_get(c, p->pre, first, l->in) : NULL;
        if (c->code == 0) {
            row_product product = {dy, weight, l->in, l->out, dx};
            memset(dx, 0, (size_t)l->in * sizeof *dx);
            parallel_for(l->in, INPUTS_AT_A_TIME, add_inputs, &product);
            for (int64_t k = 0; k < l->in && u; k++) dx[k] *= ffn_gelu_gradient((double)u[k]);
            part_check_compare(c, p->x_gradient, first, l->in, dx, &error);
        }
        free(dy);
        free(u);
    }
    free(weight);
    free(dx);
    part_check_judge(c, &error, 1);
    part_check_written(c, p->x_gradient, l->rows * l->in);
    if (part->with_gelu)
        check_bias_gradient(c, l->rows, l->in, p->x_gradient, p->pre_bias_gradient);
}

/* Sampled outputs' rows of the weight's gradient, out_gradient^T input, from all
 * rows of those. */
static void check_weight_gradient(part_checker *c, const part_args *part)
{
    const part_weight_gradient *p = &part->as.weight_gradient;
    int64_t in = p->layer.in, out = p->layer.out, n = p->layer.rows;
    part_sample outputs = part_sample_of(c, out);
    double *dw = part_check_doubles(c, outputs.count * in);
    suite_error error = {0, 0};
    for (int64_t row = 0; row < n && c->code == 0; row += CHUNK_ROWS) {
        int64_t rows = n - row < CHUNK_ROWS ? n - row : CHUNK_ROWS;
        float *x = part_check_get(c, p->x, row * in, rows * in);
        float *dy = part_check_get(c, p->y_gradient, row * out, rows * out);
        for (int64_t i = 0; i < rows * outputs.count && c->code == 0; i++) {
            int64_t line = i / outputs.count, which = i % outputs.count;
            oracle_add_scaled(in, (double)dy[line * out + outputs.at[which]], x + line * in,
                              dw + which * in);
        }
        free(x);
        free(dy);
    }
    for (int64_t i = 0; i < outputs.count; i++)
        part_check_compare(c, p->weight_gradient, outputs.at[i] * in, in, dw + i * in, &error);
    free(dw);
    part_check_judge(c, &error, 1);
    part_check_written(c, p->weight_gradient, in * out);
    if (part->with_bias) check_bias_gradient(c, n, out, p->y_gradient, p->bias_gradient);
}

/* ---- norms ------------------------------------------------------------------------------ */

static void check_norm(part_checker *c, const norm_forward_args *p)
{
    int64_t width = p->shape.width;
    norm_shape shape = {1, width};
    part_sample rows = part_sample_of(c, p->shape.rows);
    float *weight = part_check_get(c, p->weight, 0, width);
    float *bias = part_check_get(c, p->bias, 0, width);
    double *normed = part_check_doubles(c, width), mean, rstd;
    suite_error error = {0, 0}, mean_error = {0, 0}, rstd_error = {0, 0};
    for (int64_t i = 0; i < rows.count && c->code == 0; i++) {
        int64_t row = rows.at[i];
        float *x = part_check_get(c, p->x, row * width, width);
        if (c->code == 0) {
            norm_forward_reference(&shape, NORM_LAYER, x, NULL, weight, bias, normed, NULL, &mean,
                                   &rstd);
            part_check_compare(c, p->y, row * width, width, normed, &error);
            part_check_compare_f32(c, p->mean, row, 1, &mean, &mean_error);
            part_check_compare_f32(c, p->rstd, row, 1, &rstd, &rstd_error);
        }
        free(x);
    }
    free(weight);
    free(bias);
    free(normed);
    part_check_judge(c, &error, 1);
    part_check_judge_f32(c, &mean_error, 100); /* means of about 0: what cancels is left */
    part_check_judge_f32(c, &rstd_error, 1);
    part_check_written(c, p->y, p->shape.rows * width);
}

/* What a norm's backward check gathers over chunks of rows. */
typedef struct norm_sums {
    float *weight;
    double *dx_rows, *dweight, *dbias;
    suite_error error;
} norm_sums;

static void check_norm_rows(part_checker *c, const norm_backward_args *p, norm_sums *sums,
                            int64_t row, int64_t rows)
{
    norm_shape shape = {rows, p->shape.width};
    int64_t first = row * shape.width, count = rows * shape.width;
    float *x = part_check_get(c, p->x, first, count);
    float *dy = part_check_get(c, p->dy, first, count);
    float *dsum = p->dsum ? part_check_get(c, p->dsum, first, count) : NULL;
    float *mean = part_check_get_f32(c, p->mean, row, rows);
    float *rstd = part_check_get_f32(c, p->rstd, row, rows);
    if (c->code == 0) {
        norm_backward_reference(&shape, NORM_LAYER, x, sums->weight, mean, rstd, dy, dsum,
                                sums->dx_rows, sums->dweight, sums->dbias);
        part_check_compare(c, p->dx, first, count, sums->dx_rows, &sums->error);
    }
    free(x);
    free(dy);
    free(dsum);
    free(mean);
    free(rstd);
}

/* All rows: the gradients of weight and bias need them anyway. */
static void check_norm_gradient(part_checker *c, const norm_backward_args *p)
{
    int64_t width = p->shape.width, n = p->shape.rows;
    norm_sums sums = {.error = {0, 0}};
    suite_error weight_error = {0, 0}, bias_error = {0, 0};
    sums.weight = part_check_get(c, p->weight, 0, width);
    sums.dx_rows = part_check_doubles(c, CHUNK_ROWS * width);
    sums.dweight = part_check_doubles(c, width);
    sums.dbias = part_check_doubles(c, width);
    for (int64_t row = 0; row < n && c->code == 0; row += CHUNK_ROWS)
        check_norm_rows(c, p, &sums, row, n - row < CHUNK_ROWS ? n - row : CHUNK_ROWS);
    part_check_compare(c, p->dweight, 0, width, sums.dweight, &weight_error);
    part_check_compare(c, p->dbias, 0, width, sums.dbias, &bias_error);
    free(sums.weight);
    free(sums.dx_rows);
    free(sums.dweight);
    free(sums.dbias);
    part_check_judge(c, &sums.error, 1);
    part_check_judge(c, &weight_error, 1);
    part_check_judge(c, &bias_error, 1);
}

/* ---- any part ----------------------------------------------------------------------------- */

int part_check(gpubench *bench, const part_args *part)
{
    part_checker c = {.bench = bench, .dtype = part->dtype};
    switch (part->kind) {
    case PART_NORM: check_norm(&c, &part->as.norm); break;
    case PART_NORM_GRADIENT: check_norm_gradient(&c, &part->as.norm_gradient); break;
    case PART_LINEAR: check_linear(&c, part); break;
    case PART_INPUT_GRADIENT: check_input_gradient(&c, part); break;
    case PART_WEIGHT_GRADIENT: check_weight_gradient(&c, part); break;
    case PART_ATTENTION: part_check_attention(&c, &part->as.attention); break;
    case PART_ATTENTION_GRADIENT:
        part_check_attention_gradient(&c, &part->as.attention_gradient);
        break;
    case PART_SPLIT:
    case PART_MERGE: part_check_heads_moved(&c, &part->as.heads); break;
    }
    return c.code;
}
