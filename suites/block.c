/*
 * block.c - the transformer block's suite: forward (without and with keeping
 * what a backward pass needs), backward, and every part of both on its own.
 *
 * Verified part by part: on sampled rows, each part's output against the
 * oracle's for the inputs that this part really had, which the block leaves in
 * its buffers. So all of it is checked at any size, and a part on its own in
 * the same way.
 */
#include "once.h"
#include "suite.h"

#include "../kernels/attention.h"
#include "../kernels/block.h"
#include "../kernels/ffn.h"
#include "../kernels/norm.h"
#include "../kernels/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const block_shape cpu_shapes[] = {{1, 64, 128, 2, 512}};

enum { SAMPLED_ROWS = 4, SAMPLED_HEADS = 2, CHUNK_ROWS = 64 };

/* ---- building ------------------------------------------------------------------- */

static void *device_memory(gpubench *bench, kernel_dtype dtype, int64_t count, int kind, int *code)
{
    void *memory = *code ? NULL : gpubench_alloc(bench, suite_bytes(count, dtype), kind);
    if (*code == 0 && !memory) *code = GPUBENCH_OOM;
    return memory;
}

static void *input(gpubench *bench, kernel_dtype dtype, int64_t count, double stddev, uint64_t id,
                   int *code)
{
    void *memory = NULL;
    if (*code == 0) *code = suite_input(bench, dtype, count, (float)stddev, id, &memory);
    return memory;
}

/* Weights by their fan in, so that every activation is of order one. */
static double stddev_of(const block_shape *s, int parameter)
{
    switch (parameter) {
    case BLOCK_QKV_WEIGHT:
    case BLOCK_PROJECTION_WEIGHT:
    case BLOCK_UP_WEIGHT: return 1 / sqrt((double)s->width);
    case BLOCK_DOWN_WEIGHT: return 1 / sqrt((double)s->hidden);
    case BLOCK_NORM1_WEIGHT:
    case BLOCK_NORM2_WEIGHT: return 1;
    default: return 0.1;
    }
}

/* What is computed by the case is an output, poisoned before the timed loop;
 * what it finds computed is not. */
static int kind_of(int computed)
{
    return computed ? GPUBENCH_DEVICE | GPUBENCH_OUTPUT : GPUBENCH_DEVICE;
}

/* Sets of bits: which activations there are, and which of them the case computes. */
static int build_forward_memory(gpubench *bench, block_forward_args *a, unsigned used,
                                unsigned computed, int computes_y)
{
    const block_shape *s = &a->shape;
    int64_t count = s->batch * s->tokens * s->width;
    int code = 0;
    a->x = input(bench, a->dtype, count, 1, 0, &code);
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        a->parameters[i] = input(bench, a->dtype, block_parameter_count(s, (block_parameter)i),
                                 stddev_of(s, i), 10 + (uint64_t)i, &code);
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        block_activation which = (block_activation)i;
        if (!(used >> i & 1)) continue;
        a->activations[i] = device_memory(bench, block_activation_dtype(which, a->dtype),
                                          block_activation_count(s, which),
                                          kind_of(computed >> i & 1), &code);
    }
    a->y = device_memory(bench, a->dtype, count, kind_of(computes_y), &code);
    return code;
}

/* The variant that leaves behind what a case of `variant` finds: of the same
 * name, but `best` for `graph`, which is the same kernels. */
static const char *start_of(const kernel_variant *variant)
{
    return strcmp(variant->name, "graph") ? variant->name : "best";
}

static kernel_table forward_table(const gpubench *bench)
{
    return gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(block_forward_cuda) : block_forward_cpu;
}

static kernel_table backward_table(const gpubench *bench)
{
    return gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(block_backward_cuda) : block_backward_cpu;
}

/* Whether the variant has the part that args name, for their shape and dtype. */
static int has_part(const kernel_variant *variant, const void *args)
{
    return !(variant->unsupported && variant->unsupported(args));
}

/* Whether the variant's attention reads qkv and writes merged (block.h). */
static int attends_in_place(const suite_case *c, const gpubench *bench, const block_shape *shape)
{
    block_forward_args split = {.shape = *shape, .dtype = c->dtype, .part = BLOCK_FORWARD_SPLIT};
    kernel_table table = forward_table(bench);
    const kernel_variant *variant = kernel_find(&table, start_of(c->variant));
    return variant && !has_part(variant, &split);
}

enum { HEADS = 1u << BLOCK_Q | 1u << BLOCK_K | 1u << BLOCK_V | 1u << BLOCK_ATTENTION };

/* The activations that the variant uses, as a set of bits. */
static unsigned used_activations(const suite_case *c, const gpubench *bench,
                                 const block_shape *shape)
{
    return attends_in_place(c, bench, shape) ? ~(unsigned)HEADS : ~0u;
}

static const unsigned forward_outputs[BLOCK_FORWARD_PARTS] = {
    [BLOCK_FORWARD_NORM1] = 1u << BLOCK_NORM1 | 1u << BLOCK_MEAN1 | 1u << BLOCK_RSTD1,
    [BLOCK_FORWARD_QKV] = 1u << BLOCK_QKV,
    [BLOCK_FORWARD_SPLIT] = 1u << BLOCK_Q | 1u << BLOCK_K | 1u << BLOCK_V,
    [BLOCK_FORWARD_ATTENTION] = 1u << BLOCK_ATTENTION | 1u << BLOCK_LSE,
    [BLOCK_FORWARD_MERGE] = 1u << BLOCK_MERGED,
    [BLOCK_FORWARD_PROJECTION] = 1u << BLOCK_MIDDLE,
    [BLOCK_FORWARD_NORM2] = 1u << BLOCK_NORM2 | 1u << BLOCK_MEAN2 | 1u << BLOCK_RSTD2,
    [BLOCK_FORWARD_UP] = 1u << BLOCK_PRE | 1u << BLOCK_HIDDEN,
    [BLOCK_FORWARD_DOWN] = 0,
};

static int build_forward(suite_case *c, gpubench *bench)
{
    block_forward_args *a = c->args;
    unsigned used = used_activations(c, bench, &a->shape) & ~(1u << BLOCK_PRE);
    return build_forward_memory(bench, a, used, ~0u, 1);
}

static int build_forward_keeping(suite_case *c, gpubench *bench)
{
    block_forward_args *a = c->args;
    return build_forward_memory(bench, a, used_activations(c, bench, &a->shape), ~0u, 1);
}

/* A part finds what the whole left behind. */
static int build_forward_part(suite_case *c, gpubench *bench)
{
    block_forward_args *a = c->args, whole;
    kernel_table table = forward_table(bench);
    unsigned used = used_activations(c, bench, &a->shape), computed = forward_outputs[a->part];
    int code;
    if (a->part == BLOCK_FORWARD_ATTENTION && !(used & HEADS))
        computed = 1u << BLOCK_MERGED | 1u << BLOCK_LSE;
    code = build_forward_memory(bench, a, used, computed, a->part == BLOCK_FORWARD_DOWN);
    whole = *a;
    whole.part = BLOCK_WHOLE;
    return code ? code : suite_run_named(bench, &table, start_of(c->variant), &whole);
}

static const unsigned backward_outputs[BLOCK_BACKWARD_PARTS] = {
    [BLOCK_BACKWARD_DOWN_INPUT] = 1u << BLOCK_PRE,
    [BLOCK_BACKWARD_UP_INPUT] = 1u << BLOCK_NORM2,
    [BLOCK_BACKWARD_NORM2] = 1u << BLOCK_MIDDLE,
    [BLOCK_BACKWARD_PROJECTION_INPUT] = 1u << BLOCK_MERGED,
    [BLOCK_BACKWARD_SPLIT] = 1u << BLOCK_ATTENTION,
    [BLOCK_BACKWARD_ATTENTION] = 1u << BLOCK_Q | 1u << BLOCK_K | 1u << BLOCK_V,
    [BLOCK_BACKWARD_MERGE] = 1u << BLOCK_QKV,
    [BLOCK_BACKWARD_QKV_INPUT] = 1u << BLOCK_NORM1,
};

static const unsigned backward_parameter_outputs[BLOCK_BACKWARD_PARTS] = {
    [BLOCK_BACKWARD_DOWN_INPUT] = 1u << BLOCK_UP_BIAS,
    [BLOCK_BACKWARD_DOWN_WEIGHT] = 1u << BLOCK_DOWN_WEIGHT | 1u << BLOCK_DOWN_BIAS,
    [BLOCK_BACKWARD_UP_WEIGHT] = 1u << BLOCK_UP_WEIGHT,
    [BLOCK_BACKWARD_NORM2] = 1u << BLOCK_NORM2_WEIGHT | 1u << BLOCK_NORM2_BIAS,
    [BLOCK_BACKWARD_PROJECTION_WEIGHT] =
        1u << BLOCK_PROJECTION_WEIGHT | 1u << BLOCK_PROJECTION_BIAS,
    [BLOCK_BACKWARD_QKV_WEIGHT] = 1u << BLOCK_QKV_WEIGHT | 1u << BLOCK_QKV_BIAS,
    [BLOCK_BACKWARD_NORM1] = 1u << BLOCK_NORM1_WEIGHT | 1u << BLOCK_NORM1_BIAS,
};

static int build_backward_memory(gpubench *bench, block_backward_args *a, unsigned used,
                                 unsigned gradients, unsigned parameters, int computes_dx)
{
    const block_shape *s = &a->shape;
    int64_t count = s->batch * s->tokens * s->width;
    int code = 0;
    a->y_gradient = input(bench, a->dtype, count, 1, 1, &code);
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        int64_t elements = block_gradient_count(s, (block_activation)i);
        if (elements > 0 && used >> i & 1)
            a->gradients[i] =
                device_memory(bench, a->dtype, elements, kind_of(gradients >> i & 1), &code);
    }
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        a->parameter_gradients[i] =
            device_memory(bench, a->dtype, block_parameter_count(s, (block_parameter)i),
                          kind_of(parameters >> i & 1), &code);
    a->x_gradient = device_memory(bench, a->dtype, count, kind_of(computes_dx), &code);
    return code;
}

/* Runs a forward pass for what the backward one reads. */
static int build_activations(suite_case *c, gpubench *bench, block_backward_args *a)
{
    block_forward_args forward = {.shape = a->shape, .dtype = a->dtype, .part = BLOCK_WHOLE};
    kernel_table table = forward_table(bench);
    int code =
        build_forward_memory(bench, &forward, used_activations(c, bench, &a->shape), 0, 0);
    a->x = forward.x;
    memcpy(a->parameters, forward.parameters, sizeof a->parameters);
    memcpy(a->activations, forward.activations, sizeof a->activations);
    return code ? code : suite_run_named(bench, &table, start_of(c->variant), &forward);
}

static int build_backward(suite_case *c, gpubench *bench)
{
    block_backward_args *a = c->args;
    unsigned used = used_activations(c, bench, &a->shape);
    int code = build_activations(c, bench, a);
    return code ? code : build_backward_memory(bench, a, used, ~0u, ~0u, 1);
}

static int build_backward_part(suite_case *c, gpubench *bench)
{
    block_backward_args *a = c->args, whole;
    kernel_table table = backward_table(bench);
    unsigned used = used_activations(c, bench, &a->shape), gradients = backward_outputs[a->part];
    int code = build_activations(c, bench, a);
    if (a->part == BLOCK_BACKWARD_ATTENTION && !(used & HEADS)) gradients = 1u << BLOCK_QKV;
    if (code == 0)
        code = build_backward_memory(bench, a, used, gradients,
                                     backward_parameter_outputs[a->part],
                                     a->part == BLOCK_BACKWARD_NORM1);
    whole = *a;
    whole.part = BLOCK_WHOLE;
    return code ? code : suite_run_named(bench, &table, start_of(c->variant), &whole);
}

/* ---- verifying: what every check uses ------------------------------------------------ */

/* A case's buffers, whichever pass it is of, and the first error. Once there is
 * one, the functions below do nothing. */
typedef struct view {
    gpubench *bench;
    const block_shape *shape;
    kernel_dtype dtype;
    const void *x, *y, *dx, *dy;
    const void *const *p;
    void *const *act, *const *grad, *const *dp;
    int64_t n, w, h; /* rows, width, hidden */
    int in_place;    /* attention reads qkv and writes merged */
    int64_t rows[SAMPLED_ROWS], row_count;
    int code;
} view;

static void view_begin(view *v, const suite_case *c, gpubench *bench, const block_shape *shape)
{
    memset(v, 0, sizeof *v);
    v->bench = bench;
    v->shape = shape;
    v->dtype = c->dtype;
    v->in_place = attends_in_place(c, bench, shape);
    v->n = shape->batch * shape->tokens;
    v->w = shape->width;
    v->h = shape->hidden;
    v->row_count = suite_sample_indices(gpubench_seed(bench), v->n, SAMPLED_ROWS, v->rows);
}

static void *allocate(view *v, int64_t count, size_t element_bytes)
{
    void *memory = v->code ? NULL : calloc((size_t)count, element_bytes);
    if (v->code == 0 && !memory) v->code = KERNEL_ERROR_MEMORY;
    return memory;
}

static double *doubles(view *v, int64_t count)
{
    return allocate(v, count, sizeof(double));
}

/* Elements as f32, to be freed. */
static float *get_as(view *v, const void *memory, kernel_dtype dtype, int64_t first, int64_t count)
{
    float *values = allocate(v, count, sizeof *values);
    if (v->code == 0) v->code = suite_fetch(v->bench, memory, dtype, first, count, values);
    return values;
}

static float *get(view *v, const void *memory, int64_t first, int64_t count)
{
    return get_as(v, memory, v->dtype, first, count);
}

static void compare_as(view *v, const void *output, kernel_dtype dtype, int64_t first,
                       int64_t count, const double *reference, suite_error *error)
{
    float *values = get_as(v, output, dtype, first, count);
    if (v->code == 0) suite_compare(error, values, reference, count);
    free(values);
}

static void compare(view *v, const void *output, int64_t first, int64_t count,
                    const double *reference, suite_error *error)
{
    compare_as(v, output, v->dtype, first, count, reference, error);
}

/* A token's row of attention's: weighted by the keys that it sees, which its
 * squares fall with, lest the first hide the errors of the last. */
static void compare_token(view *v, const void *output, int64_t first, int64_t count, int64_t token,
                          const double *reference, suite_error *error)
{
    float *values = get(v, output, first, count);
    if (v->code == 0)
        suite_compare_weighted(error, values, reference, count, (double)(token + 1));
    free(values);
}

static void judge_as(view *v, const suite_error *error, kernel_dtype dtype, double factor)
{
    if (v->code == 0) v->code = suite_check(v->bench, error, dtype, factor);
}

static void judge(view *v, const suite_error *error, double factor)
{
    judge_as(v, error, v->dtype, factor);
}

static void check_written(view *v, const void *output, kernel_dtype dtype, int64_t count)
{
    if (v->code == 0) v->code = suite_check_written(v->bench, output, dtype, count);
}

/* ---- linear layers -------------------------------------------------------------------- */

/* output = input weight^T + bias + residual (or NULL), or GELU of that; sampled
 * rows of it. */
typedef struct layer {
    int64_t in, out;
    const void *input, *residual;
    block_parameter weight; /* its bias follows */
    const void *output;
    int through_gelu;
} layer;

static void layer_reference(const layer *l, const float *x, const float *residual,
                            const float *weight, const float *bias, double *y)
{
    for (int64_t o = 0; o < l->out; o++) {
        y[o] = (double)bias[o] + oracle_dot(x, weight + o * l->in, l->in);
        if (residual) y[o] += (double)residual[o];
        if (l->through_gelu) y[o] = ffn_gelu(y[o]);
    }
}

static void check_layer(view *v, layer l)
{
    float *weight = get(v, v->p[l.weight], 0, l.in * l.out), *bias;
    double *y = doubles(v, l.out);
    suite_error error = {0, 0};
    bias = get(v, v->p[l.weight + 1], 0, l.out);
    for (int64_t i = 0; i < v->row_count && v->code == 0; i++) {
        float *x = get(v, l.input, v->rows[i] * l.in, l.in);
        float *residual = l.residual ? get(v, l.residual, v->rows[i] * l.out, l.out) : NULL;
        if (v->code == 0) {
            layer_reference(&l, x, residual, weight, bias, y);
            compare(v, l.output, v->rows[i] * l.out, l.out, y, &error);
        }
        free(x);
        free(residual);
    }
    free(weight);
    free(bias);
    free(y);
    judge(v, &error, l.through_gelu ? 2 : 1); /* GELU's input may be rounded too */
    check_written(v, l.output, v->dtype, v->n * l.out);
}

/* in_gradient = out_gradient weight, times gelu'(pre) if that is given, of
 * sampled rows. */
static void check_input_gradient(view *v, int64_t in, int64_t out, const void *out_gradient,
                                 block_parameter weight_index, const void *pre,
                                 const void *in_gradient)
{
    float *weight = get(v, v->p[weight_index], 0, in * out);
    double *dx = doubles(v, in);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < v->row_count && v->code == 0; i++) {
        float *dy = get(v, out_gradient, v->rows[i] * out, out);
        float *u = pre ? get(v, pre, v->rows[i] * in, in) : NULL;
        if (v->code == 0) {
            memset(dx, 0, (size_t)in * sizeof *dx);
            for (int64_t o = 0; o < out; o++)
                oracle_add_scaled(in, (double)dy[o], weight + o * in, dx);
            for (int64_t c = 0; c < in && u; c++) dx[c] *= ffn_gelu_gradient((double)u[c]);
            compare(v, in_gradient, v->rows[i] * in, in, dx, &error);
        }
        free(dy);
        free(u);
    }
    free(weight);
    free(dx);
    judge(v, &error, 1);
    check_written(v, in_gradient, v->dtype, v->n * in);
}

/* A bias's gradient: all of it, from all rows. */
static void check_bias_gradient(view *v, int64_t out, const void *out_gradient,
                                const void *bias_gradient)
{
    double *sums = doubles(v, out);
    suite_error error = {0, 0};
    for (int64_t row = 0; row < v->n && v->code == 0; row += CHUNK_ROWS) {
        int64_t count = v->n - row < CHUNK_ROWS ? v->n - row : CHUNK_ROWS;
        float *dy = get(v, out_gradient, row * out, count * out);
        for (int64_t i = 0; i < count && v->code == 0; i++)
            oracle_add_scaled(out, 1, dy + i * out, sums);
        free(dy);
    }
    compare(v, bias_gradient, 0, out, sums, &error);
    free(sums);
    judge(v, &error, 1);
}

/* Sampled rows of a weight's gradient, out_gradient^T input, from all rows. */
static void check_weight_gradient(view *v, int64_t in, int64_t out, const void *input_rows,
                                  const void *out_gradient, block_parameter weight)
{
    int64_t outputs[SAMPLED_ROWS];
    int64_t count = suite_sample_indices(gpubench_seed(v->bench), out, SAMPLED_ROWS, outputs);
    double *dw = doubles(v, count * in);
    suite_error error = {0, 0};
    for (int64_t row = 0; row < v->n && v->code == 0; row += CHUNK_ROWS) {
        int64_t rows = v->n - row < CHUNK_ROWS ? v->n - row : CHUNK_ROWS;
        float *x = get(v, input_rows, row * in, rows * in);
        float *dy = get(v, out_gradient, row * out, rows * out);
        for (int64_t i = 0; i < rows * count && v->code == 0; i++)
            oracle_add_scaled(in, (double)dy[i / count * out + outputs[i % count]],
                              x + i / count * in, dw + i % count * in);
        free(x);
        free(dy);
    }
    for (int64_t i = 0; i < count; i++)
        compare(v, v->dp[weight], outputs[i] * in, in, dw + i * in, &error);
    free(dw);
    judge(v, &error, 1);
    check_written(v, v->dp[weight], v->dtype, in * out);
}

/* ---- norms ------------------------------------------------------------------------------ */

static void check_norm(view *v, const void *input_rows, block_parameter weight_index,
                       block_activation y)
{
    norm_shape shape = {1, v->w};
    float *weight = get(v, v->p[weight_index], 0, v->w);
    float *bias = get(v, v->p[weight_index + 1], 0, v->w);
    double *normed = doubles(v, v->w), mean, rstd;
    suite_error error = {0, 0}, mean_error = {0, 0}, rstd_error = {0, 0};
    for (int64_t i = 0; i < v->row_count && v->code == 0; i++) {
        int64_t row = v->rows[i];
        float *x = get(v, input_rows, row * v->w, v->w);
        if (v->code == 0) {
            norm_forward_reference(&shape, NORM_LAYER, x, NULL, weight, bias, normed, NULL, &mean,
                                   &rstd);
            compare(v, v->act[y], row * v->w, v->w, normed, &error);
            compare_as(v, v->act[y + 1], KERNEL_F32, row, 1, &mean, &mean_error);
            compare_as(v, v->act[y + 2], KERNEL_F32, row, 1, &rstd, &rstd_error);
        }
        free(x);
    }
    free(weight);
    free(bias);
    free(normed);
    judge(v, &error, 1);
    judge_as(v, &mean_error, KERNEL_F32, 100); /* means of about 0: what cancels is left */
    judge_as(v, &rstd_error, KERNEL_F32, 1);
    check_written(v, v->act[y], v->dtype, v->n * v->w);
}

/* What a norm's backward check gathers over chunks of rows. */
typedef struct norm_check {
    const void *x, *sum_gradient, *dx;
    block_parameter weight;
    block_activation y;
    float *weight_values;
    double *dx_rows, *dweight, *dbias;
    suite_error error;
} norm_check;

static void check_norm_rows(view *v, norm_check *k, int64_t row, int64_t rows)
{
    norm_shape shape = {rows, v->w};
    int64_t first = row * v->w, count = rows * v->w;
    float *x = get(v, k->x, first, count), *dy = get(v, v->grad[k->y], first, count);
    float *dsum = get(v, k->sum_gradient, first, count);
    float *mean = get_as(v, v->act[k->y + 1], KERNEL_F32, row, rows);
    float *rstd = get_as(v, v->act[k->y + 2], KERNEL_F32, row, rows);
    if (v->code == 0) {
        norm_backward_reference(&shape, NORM_LAYER, x, k->weight_values, mean, rstd, dy, dsum,
                                k->dx_rows, k->dweight, k->dbias);
        compare(v, k->dx, first, count, k->dx_rows, &k->error);
    }
    free(x);
    free(dy);
    free(dsum);
    free(mean);
    free(rstd);
}

/* All rows: the gradients of weight and bias need them anyway. */
static void check_norm_backward(view *v, norm_check k)
{
    suite_error weight_error = {0, 0}, bias_error = {0, 0};
    k.weight_values = get(v, v->p[k.weight], 0, v->w);
    k.dx_rows = doubles(v, CHUNK_ROWS * v->w);
    k.dweight = doubles(v, v->w);
    k.dbias = doubles(v, v->w);
    for (int64_t row = 0; row < v->n && v->code == 0; row += CHUNK_ROWS)
        check_norm_rows(v, &k, row, v->n - row < CHUNK_ROWS ? v->n - row : CHUNK_ROWS);
    compare(v, v->dp[k.weight], 0, v->w, k.dweight, &weight_error);
    compare(v, v->dp[k.weight + 1], 0, v->w, k.dbias, &bias_error);
    free(k.weight_values);
    free(k.dx_rows);
    free(k.dweight);
    free(k.dbias);
    judge(v, &k.error, 1);
    judge(v, &weight_error, 1);
    judge(v, &bias_error, 1);
}

/* ---- heads -------------------------------------------------------------------------------- */

static int64_t head_dim(const view *v)
{
    return v->w / v->shape->heads;
}

/* Heads: of each, a row of dim elements a token. */
typedef struct heads {
    const void *memory;
    int64_t first, batch, head, token; /* elements to the first row, and from one to the next */
    int64_t dim;
} heads;

/* By themselves: [batch, heads, tokens, dim]. */
static heads heads_apart(const view *v, const void *memory, int64_t dim)
{
    int64_t head = v->shape->tokens * dim;
    return (heads){memory, 0, v->shape->heads * head, head, dim, dim};
}

/* Part `part` of rows [batch * tokens, parts, heads, head_dim]. */
static heads heads_in_rows(const view *v, const void *memory, int part, int parts)
{
    int64_t row = parts * v->w;
    return (heads){memory, part * v->w, v->shape->tokens * row, head_dim(v), row, head_dim(v)};
}

/* BLOCK_Q, K, V or ATTENTION, activations or gradients, where attention has
 * them; dim wide if that is by themselves. */
static heads heads_of(const view *v, void *const *memory, int which, int64_t dim)
{
    if (!v->in_place) return heads_apart(v, memory[which], dim);
    return which == BLOCK_ATTENTION ? heads_in_rows(v, memory[BLOCK_MERGED], 0, 1)
                                    : heads_in_rows(v, memory[BLOCK_QKV], which - BLOCK_Q, 3);
}

/* Where the row of a token of the index-th head (over all sequences) starts. */
static int64_t at_head(const view *v, heads h, int64_t index, int64_t token)
{
    int64_t count = v->shape->heads;
    return h.first + index / count * h.batch + index % count * h.head + token * h.token;
}

/* How wide the variant made the heads: the width at which the last token's last
 * head of k stands where that width puts it. */
static int64_t padded_dim(view *v)
{
    int64_t own = head_dim(v), candidates[] = {own, 64, 128}, found = own;
    int64_t last = v->shape->batch * v->shape->heads - 1, token = v->shape->tokens - 1;
    int64_t room = block_activation_count(v->shape, BLOCK_K);
    heads rows = heads_in_rows(v, v->act[BLOCK_QKV], 1, 3);
    float *expected;
    if (v->in_place) return own;
    expected = get(v, rows.memory, at_head(v, rows, last, token), own);
    for (int i = 2; i >= 0 && v->code == 0; i--) {
        heads k = heads_apart(v, v->act[BLOCK_K], candidates[i]);
        float *values;
        if (k.dim < own || k.head * (last + 1) > room) continue;
        values = get(v, k.memory, at_head(v, k, last, token), own);
        if (v->code == 0 && !memcmp(values, expected, (size_t)own * sizeof *values)) found = k.dim;
        free(values);
    }
    free(expected);
    return found;
}

/* Sampled tokens of `to`, which are those of `from` times factor, and zeros
 * where `to` is wider. */
static void check_moved(view *v, heads from, heads to, double factor)
{
    int64_t dim = head_dim(v), count = v->shape->heads, tokens = v->shape->tokens;
    double *expected = doubles(v, to.dim);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < v->row_count * count && v->code == 0; i++) {
        int64_t row = v->rows[i / count], head = row / tokens * count + i % count;
        float *values = get(v, from.memory, at_head(v, from, head, row % tokens), dim);
        for (int64_t c = 0; c < dim && v->code == 0; c++) expected[c] = factor * (double)values[c];
        compare(v, to.memory, at_head(v, to, head, row % tokens), to.dim, expected, &error);
        free(values);
    }
    free(expected);
    judge(v, &error, 1);
}

/* All of q, k and v, or of their gradients. */
static void check_heads_written(view *v, void *const *memory, int64_t dim)
{
    if (v->in_place) {
        check_written(v, memory[BLOCK_QKV], v->dtype, v->n * 3 * v->w);
        return;
    }
    for (int i = BLOCK_Q; i <= BLOCK_V; i++)
        check_written(v, memory[i], v->dtype, v->n * v->shape->heads * dim);
}

/* Of q: attention divides the scores by sqrt(dim). */
static double q_factor(const view *v, int64_t dim)
{
    return sqrt((double)dim / (double)head_dim(v));
}

static void check_split(view *v, int64_t dim)
{
    for (int part = 0; part < 3; part++)
        check_moved(v, heads_in_rows(v, v->act[BLOCK_QKV], part, 3),
                    heads_apart(v, v->act[BLOCK_Q + part], dim), part == 0 ? q_factor(v, dim) : 1);
    check_heads_written(v, v->act, dim);
}

static void check_merge(view *v, int64_t dim)
{
    check_moved(v, heads_apart(v, v->act[BLOCK_ATTENTION], dim),
                heads_in_rows(v, v->act[BLOCK_MERGED], 0, 1), 1);
    check_written(v, v->act[BLOCK_MERGED], v->dtype, v->n * v->w);
}

static void check_split_gradient(view *v, int64_t dim)
{
    check_moved(v, heads_in_rows(v, v->grad[BLOCK_MERGED], 0, 1),
                heads_apart(v, v->grad[BLOCK_ATTENTION], dim), 1);
}

static void check_merge_gradients(view *v, int64_t dim)
{
    for (int part = 0; part < 3; part++)
        check_moved(v, heads_apart(v, v->grad[BLOCK_Q + part], dim),
                    heads_in_rows(v, v->grad[BLOCK_QKV], part, 3),
                    part == 0 ? q_factor(v, dim) : 1);
    check_written(v, v->grad[BLOCK_QKV], v->dtype, v->n * 3 * v->w);
}

/* The sampled heads, and sampled tokens of each. */
typedef struct head_sample {
    int64_t heads[SAMPLED_HEADS], head_count, tokens[SAMPLED_ROWS], token_count;
} head_sample;

static head_sample sample_heads(const view *v)
{
    head_sample sample;
    uint64_t seed = gpubench_seed(v->bench);
    sample.head_count = suite_sample_indices(seed, v->shape->batch * v->shape->heads,
                                             SAMPLED_HEADS, sample.heads);
    sample.token_count =
        suite_sample_indices(seed, v->shape->tokens, SAMPLED_ROWS, sample.tokens);
    return sample;
}

static attention_shape attention_of(const view *v, int64_t dim)
{
    return (attention_shape){v->shape->batch, v->shape->heads, v->shape->tokens, dim, 1};
}

/* All tokens of a head behind each other, to be freed. */
static float *get_head(view *v, heads h, int64_t index)
{
    int64_t tokens = v->shape->tokens, step = h.token == h.dim ? tokens : 1;
    float *values = allocate(v, tokens * h.dim, sizeof *values);
    for (int64_t t = 0; t < tokens && v->code == 0; t += step)
        v->code = suite_fetch(v->bench, h.memory, v->dtype, at_head(v, h, index, t), step * h.dim,
                              values + t * h.dim);
    return values;
}

static void check_attention(view *v, int64_t dim)
{
    head_sample k = sample_heads(v);
    attention_shape shape = attention_of(v, dim);
    heads result = heads_of(v, v->act, BLOCK_ATTENTION, dim);
    double *out = doubles(v, SAMPLED_ROWS * dim), lse[SAMPLED_ROWS];
    suite_error error = {0, 0}, lse_error = {0, 0};
    for (int64_t i = 0; i < k.head_count && v->code == 0; i++) {
        int64_t head = k.heads[i];
        float *query = get_head(v, heads_of(v, v->act, BLOCK_Q, dim), head);
        float *key = get_head(v, heads_of(v, v->act, BLOCK_K, dim), head);
        float *value = get_head(v, heads_of(v, v->act, BLOCK_V, dim), head);
        if (v->code == 0)
            attention_forward_reference(&shape, query, key, value, k.tokens, k.token_count, out,
                                        lse);
        for (int64_t t = 0; t < k.token_count; t++) {
            compare_token(v, result.memory, at_head(v, result, head, k.tokens[t]), dim,
                          k.tokens[t], out + t * dim, &error);
            compare_as(v, v->act[BLOCK_LSE], KERNEL_F32, head * v->shape->tokens + k.tokens[t], 1,
                       lse + t, &lse_error);
        }
        free(query);
        free(key);
        free(value);
    }
    free(out);
    judge(v, &error, 1);
    judge_as(v, &lse_error, v->dtype, 1);
    check_written(v, v->act[BLOCK_LSE], KERNEL_F32, v->n * v->shape->heads);
    check_written(v, result.memory, v->dtype, v->n * v->shape->heads * dim);
}

static void check_head_backward(view *v, int64_t head, const head_sample *k, int64_t dim,
                                double *gradients, suite_error *error)
{
    attention_shape shape = attention_of(v, dim);
    int64_t part = SAMPLED_ROWS * dim;
    float *query = get_head(v, heads_of(v, v->act, BLOCK_Q, dim), head);
    float *key = get_head(v, heads_of(v, v->act, BLOCK_K, dim), head);
    float *value = get_head(v, heads_of(v, v->act, BLOCK_V, dim), head);
    float *out = get_head(v, heads_of(v, v->act, BLOCK_ATTENTION, dim), head);
    float *dout = get_head(v, heads_of(v, v->grad, BLOCK_ATTENTION, dim), head);
    float *lse =
        get_as(v, v->act[BLOCK_LSE], KERNEL_F32, head * v->shape->tokens, v->shape->tokens);
    attention_backward_head inputs = {query, key, value, out, dout, lse};
    if (v->code == 0)
        attention_backward_reference(&shape, &inputs, k->tokens, k->token_count, gradients,
                                     gradients + part, gradients + 2 * part);
    for (int64_t i = 0; i < 3 * k->token_count; i++) {
        int64_t t = i / 3, which = i % 3;
        heads result = heads_of(v, v->grad, BLOCK_Q + (int)which, dim);
        compare_token(v, result.memory, at_head(v, result, head, k->tokens[t]), dim, k->tokens[t],
                      gradients + which * part + t * dim, &error[which]);
    }
    free(query);
    free(key);
    free(value);
    free(out);
    free(dout);
    free(lse);
}

static void check_attention_backward(view *v, int64_t dim)
{
    head_sample k = sample_heads(v);
    double *gradients = doubles(v, 3 * SAMPLED_ROWS * dim);
    suite_error error[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (int64_t i = 0; i < k.head_count && v->code == 0; i++)
        check_head_backward(v, k.heads[i], &k, dim, gradients, error);
    free(gradients);
    if (v->shape->tokens == 1) /* dq and dk of a single token are 0: held against dv */
        error[0].reference2 = error[1].reference2 = error[2].reference2;
    for (int i = 0; i < 3; i++) judge(v, &error[i], 3);
    check_heads_written(v, v->grad, dim);
}

/* ---- parts ---------------------------------------------------------------------------------- */

static void check_forward_part(view *v, int part)
{
    void *const *act = v->act;
    int64_t w = v->w, h = v->h;
    switch (part) {
    case BLOCK_FORWARD_NORM1: check_norm(v, v->x, BLOCK_NORM1_WEIGHT, BLOCK_NORM1); break;
    case BLOCK_FORWARD_QKV:
        check_layer(v, (layer){w, 3 * w, act[BLOCK_NORM1], NULL, BLOCK_QKV_WEIGHT, act[BLOCK_QKV],
                               0});
        break;
    case BLOCK_FORWARD_SPLIT:
        if (!v->in_place) check_split(v, padded_dim(v));
        break;
    case BLOCK_FORWARD_ATTENTION: check_attention(v, padded_dim(v)); break;
    case BLOCK_FORWARD_MERGE:
        if (!v->in_place) check_merge(v, padded_dim(v));
        break;
    case BLOCK_FORWARD_PROJECTION:
        check_layer(v, (layer){w, w, act[BLOCK_MERGED], v->x, BLOCK_PROJECTION_WEIGHT,
                               act[BLOCK_MIDDLE], 0});
        break;
    case BLOCK_FORWARD_NORM2:
        check_norm(v, act[BLOCK_MIDDLE], BLOCK_NORM2_WEIGHT, BLOCK_NORM2);
        break;
    case BLOCK_FORWARD_UP:
        if (act[BLOCK_PRE])
            check_layer(v, (layer){w, h, act[BLOCK_NORM2], NULL, BLOCK_UP_WEIGHT, act[BLOCK_PRE],
                                   0});
        check_layer(v, (layer){w, h, act[BLOCK_NORM2], NULL, BLOCK_UP_WEIGHT, act[BLOCK_HIDDEN],
                               1});
        break;
    default:
        check_layer(v, (layer){h, w, act[BLOCK_HIDDEN], act[BLOCK_MIDDLE], BLOCK_DOWN_WEIGHT, v->y,
                               0});
        break;
    }
}

static void check_layer_gradients(view *v, int64_t in, int64_t out, const void *input_rows,
                                  const void *out_gradient, block_parameter weight)
{
    check_weight_gradient(v, in, out, input_rows, out_gradient, weight);
    check_bias_gradient(v, out, out_gradient, v->dp[weight + 1]);
}

static void check_backward_part(view *v, int part)
{
    void *const *act = v->act, *const *grad = v->grad;
    int64_t w = v->w, h = v->h;
    switch (part) {
    case BLOCK_BACKWARD_DOWN_INPUT:
        check_input_gradient(v, h, w, v->dy, BLOCK_DOWN_WEIGHT, act[BLOCK_PRE], grad[BLOCK_PRE]);
        check_bias_gradient(v, h, grad[BLOCK_PRE], v->dp[BLOCK_UP_BIAS]);
        break;
    case BLOCK_BACKWARD_DOWN_WEIGHT:
        check_layer_gradients(v, h, w, act[BLOCK_HIDDEN], v->dy, BLOCK_DOWN_WEIGHT);
        break;
    case BLOCK_BACKWARD_UP_INPUT:
        check_input_gradient(v, w, h, grad[BLOCK_PRE], BLOCK_UP_WEIGHT, NULL, grad[BLOCK_NORM2]);
        break;
    case BLOCK_BACKWARD_UP_WEIGHT:
        check_weight_gradient(v, w, h, act[BLOCK_NORM2], grad[BLOCK_PRE], BLOCK_UP_WEIGHT);
        break;
    case BLOCK_BACKWARD_NORM2:
        check_norm_backward(v, (norm_check){.x = act[BLOCK_MIDDLE], .sum_gradient = v->dy,
                                            .dx = grad[BLOCK_MIDDLE], .weight = BLOCK_NORM2_WEIGHT,
                                            .y = BLOCK_NORM2});
        break;
    case BLOCK_BACKWARD_PROJECTION_INPUT:
        check_input_gradient(v, w, w, grad[BLOCK_MIDDLE], BLOCK_PROJECTION_WEIGHT, NULL,
                             grad[BLOCK_MERGED]);
        break;
    case BLOCK_BACKWARD_PROJECTION_WEIGHT:
        check_layer_gradients(v, w, w, act[BLOCK_MERGED], grad[BLOCK_MIDDLE],
                              BLOCK_PROJECTION_WEIGHT);
        break;
    case BLOCK_BACKWARD_SPLIT:
        if (!v->in_place) check_split_gradient(v, padded_dim(v));
        break;
    case BLOCK_BACKWARD_ATTENTION: check_attention_backward(v, padded_dim(v)); break;
    case BLOCK_BACKWARD_MERGE:
        if (!v->in_place) check_merge_gradients(v, padded_dim(v));
        break;
    case BLOCK_BACKWARD_QKV_INPUT:
        check_input_gradient(v, w, 3 * w, grad[BLOCK_QKV], BLOCK_QKV_WEIGHT, NULL,
                             grad[BLOCK_NORM1]);
        break;
    case BLOCK_BACKWARD_QKV_WEIGHT:
        check_layer_gradients(v, w, 3 * w, act[BLOCK_NORM1], grad[BLOCK_QKV], BLOCK_QKV_WEIGHT);
        break;
    default:
        check_norm_backward(v, (norm_check){.x = v->x, .sum_gradient = grad[BLOCK_MIDDLE],
                                            .dx = v->dx, .weight = BLOCK_NORM1_WEIGHT,
                                            .y = BLOCK_NORM1});
        break;
    }
}

static int verify_forward(suite_case *c, gpubench *bench)
{
    const block_forward_args *a = c->args;
    view v;
    view_begin(&v, c, bench, &a->shape);
    v.x = a->x;
    v.y = a->y;
    v.p = a->parameters;
    v.act = a->activations;
    for (int i = 0; i < BLOCK_FORWARD_PARTS && v.code == 0; i++)
        if (a->part == BLOCK_WHOLE || a->part == i) check_forward_part(&v, i);
    return v.code;
}

static int verify_backward(suite_case *c, gpubench *bench)
{
    const block_backward_args *a = c->args;
    view v;
    view_begin(&v, c, bench, &a->shape);
    v.x = a->x;
    v.dx = a->x_gradient;
    v.dy = a->y_gradient;
    v.p = a->parameters;
    v.act = a->activations;
    v.grad = a->gradients;
    v.dp = a->parameter_gradients;
    for (int i = 0; i < BLOCK_BACKWARD_PARTS && v.code == 0; i++)
        if (a->part == BLOCK_WHOLE || a->part == i) check_backward_part(&v, i);
    return v.code;
}

/* ---- queueing ------------------------------------------------------------------- */

static void queue_forward(suite *s, const block_shape *shape, kernel_dtype dtype,
                          const char *dimensions, int keeps)
{
    static suite_operation forward[2] = {
        {.name = "block.forward", .build = build_forward},
        {.name = "block.forward", .build = build_forward_keeping},
    };
    block_forward_args args = {.shape = *shape, .dtype = dtype, .part = BLOCK_WHOLE};
    suite_operation *operation = &forward[keeps];
    char params[192];
    operation->cpu = block_forward_cpu;
    operation->cuda = SUITE_CUDA_TABLE(block_forward_cuda);
    operation->args_bytes = sizeof args;
    operation->verify = verify_forward;
    snprintf(params, sizeof params, "%s keep=%d", dimensions, keeps);
    suite_queue(s, operation, dtype, params, &args, block_forward_bytes(shape, dtype, BLOCK_WHOLE),
                block_forward_flops(shape, BLOCK_WHOLE));
}

static void queue_backward(suite *s, const block_shape *shape, kernel_dtype dtype,
                           const char *dimensions)
{
    static suite_operation backward = {.name = "block.backward",
                                       .args_bytes = sizeof(block_backward_args),
                                       .build = build_backward,
                                       .verify = verify_backward};
    block_backward_args args = {.shape = *shape, .dtype = dtype, .part = BLOCK_WHOLE};
    backward.cpu = block_backward_cpu;
    backward.cuda = SUITE_CUDA_TABLE(block_backward_cuda);
    suite_queue(s, &backward, dtype, dimensions, &args,
                block_backward_bytes(shape, dtype, BLOCK_WHOLE),
                block_backward_flops(shape, BLOCK_WHOLE));
}

/* Whether the one variant that is measured has the part that args name. */
static int is_measured(const suite *s, const suite_operation *operation, const void *args)
{
    kernel_table table = gpubench_is_cuda(s->bench) ? operation->cuda : operation->cpu;
    return table.count > 0 && has_part(table.rows, args);
}

/* Of a table, the row `best` alone. */
static kernel_table best_of(kernel_table table)
{
    const kernel_variant *best = kernel_find(&table, "best");
    return (kernel_table){best, best != NULL};
}

static void queue_forward_parts(suite *s, const block_shape *shape, kernel_dtype dtype,
                                const char *dimensions)
{
    static suite_operation operation = {.name = "block.part",
                                        .args_bytes = sizeof(block_forward_args),
                                        .build = build_forward_part,
                                        .verify = verify_forward};
    operation.cpu = best_of(block_forward_cpu);
    operation.cuda = best_of(SUITE_CUDA_TABLE(block_forward_cuda));
    for (int part = 0; part < BLOCK_FORWARD_PARTS; part++) {
        block_forward_args args = {.shape = *shape, .dtype = dtype, .part = part};
        char params[192];
        if (!is_measured(s, &operation, &args)) continue;
        snprintf(params, sizeof params, "pass=forward part=%s %s", block_forward_part_name(part),
                 dimensions);
        suite_queue(s, &operation, dtype, params, &args, block_forward_bytes(shape, dtype, part),
                    block_forward_flops(shape, part));
    }
}

static void queue_backward_parts(suite *s, const block_shape *shape, kernel_dtype dtype,
                                 const char *dimensions)
{
    static suite_operation operation = {.name = "block.part",
                                        .args_bytes = sizeof(block_backward_args),
                                        .build = build_backward_part,
                                        .verify = verify_backward};
    operation.cpu = best_of(block_backward_cpu);
    operation.cuda = best_of(SUITE_CUDA_TABLE(block_backward_cuda));
    for (int part = 0; part < BLOCK_BACKWARD_PARTS; part++) {
        block_backward_args args = {.shape = *shape, .dtype = dtype, .part = part};
        char params[192];
        if (!is_measured(s, &operation, &args)) continue;
        snprintf(params, sizeof params, "pass=backward part=%s %s", block_backward_part_name(part),
                 dimensions);
        suite_queue(s, &operation, dtype, params, &args, block_backward_bytes(shape, dtype, part),
                    block_backward_flops(shape, part));
    }
}

static void queue_dtype(suite *s, const block_shape *shape, kernel_dtype dtype, int with_parts)
{
    char dimensions[128];
    snprintf(dimensions, sizeof dimensions, "b=%lld t=%lld d=%lld h=%lld ff=%lld",
             (long long)shape->batch, (long long)shape->tokens, (long long)shape->width,
             (long long)shape->heads, (long long)shape->hidden);
    queue_forward(s, shape, dtype, dimensions, 0);
    queue_backward(s, shape, dtype, dimensions);
    if (!with_parts) return;
    queue_forward(s, shape, dtype, dimensions, 1); /* what the parts add up to */
    queue_forward_parts(s, shape, dtype, dimensions);
    queue_backward_parts(s, shape, dtype, dimensions);
}

static void queue_shape(suite *s, const block_shape *shape)
{
    queue_dtype(s, shape, KERNEL_F32, 1);
    queue_dtype(s, shape, KERNEL_BF16, 1);
}

/* Batch 4, context 128 of every model; the parts, up to 22 cases a dtype, of the
 * smallest and the largest. Batch 8, context 1024 of these two, f32 of the
 * smallest only: the tuner of the products would take minutes. */
static void queue_defaults(suite *s)
{
    if (!gpubench_is_cuda(s->bench)) {
        for (size_t i = 0; i < sizeof cpu_shapes / sizeof *cpu_shapes; i++)
            queue_shape(s, &cpu_shapes[i]);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        const suite_model *m = &suite_models[i];
        int end = i == 0 || i == SUITE_MODEL_COUNT - 1;
        block_shape context = {4, 128, m->d_model, m->heads, m->d_ff};
        block_shape filling = {8, 1024, m->d_model, m->heads, m->d_ff};
        queue_dtype(s, &context, KERNEL_F32, i == 0);
        queue_dtype(s, &context, KERNEL_BF16, end);
        if (i == 0)
            queue_dtype(s, &filling, KERNEL_F32, 0);
        if (end)
            queue_dtype(s, &filling, KERNEL_BF16, 1);
    }
}

static void queue_given(suite *s, const int64_t *values)
{
    block_shape shape = {values[0], values[1], values[2], values[3], values[4]};
    if (block_forward_flops(&shape, BLOCK_WHOLE) == 0)
        gpubench_usage_error(s->bench, "--shape: b, t, d, h and ff must be at least 1, and h must "
                                       "divide d");
    else
        queue_shape(s, &shape);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"b", "t", "d", "h", "ff"};
    suite s = suite_open("block", "'b=4 t=128 d=768 h=12 ff=3072; ...' instead of the defaults",
                         argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
