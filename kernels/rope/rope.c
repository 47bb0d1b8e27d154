/*
 * rope.c - rotary position embedding on the host: the formulas, the oracle, and two
 * variants of one thread.
 *
 * 1. naive  Sine and cosine of every pair's angle where it is needed, so again for
 *           every batch and head. Bound by the C library's functions.
 * 2. table  Sines and cosines once for each token and pair, then one pass over the
 *           rows. Bound by memory where batch * heads is large.
 */
#include "rope.h"

#include <math.h>

#include "../common/element.h"
#include "../common/saturating.h"

/* ---- formulas ---------------------------------------------------------- */

static int is_valid(const rope_shape *s)
{
    return s->batch > 0 && s->heads > 0 && s->tokens > 0 && s->head_dim > 0 &&
           s->head_dim % 2 == 0;
}

static uint64_t element_count(const rope_shape *s)
{
    if (!is_valid(s)) return 0;
    uint64_t rows = saturating_product((uint64_t)s->batch, (uint64_t)s->heads);
    rows = saturating_product(rows, (uint64_t)s->tokens);
    return saturating_product(rows, (uint64_t)s->head_dim);
}

uint64_t rope_bytes(const rope_shape *shape, kernel_dtype dtype)
{
    return saturating_product(element_count(shape), 2 * kernel_dtype_bytes(dtype));
}

uint64_t rope_flops(const rope_shape *shape)
{
    return saturating_product(element_count(shape), 3);
}

static double angle_of(const rope_shape *s, int64_t token, int64_t pair)
{
    return (double)token * pow(10000.0, -2.0 * (double)pair / (double)s->head_dim);
}

/* ---- oracle ------------------------------------------------------------ */

void rope_forward_reference(const rope_shape *shape, int64_t token, const float *x, double *out)
{
    int64_t half = shape->head_dim / 2;
    for (int64_t i = 0; i < half; i++) {
        double c = cos(angle_of(shape, token, i)), s = sin(angle_of(shape, token, i));
        out[i] = (double)x[i] * c - (double)x[i + half] * s;
        out[i + half] = (double)x[i] * s + (double)x[i + half] * c;
    }
}

void rope_backward_reference(const rope_shape *shape, int64_t token, const float *dout,
                             double *dx)
{
    int64_t half = shape->head_dim / 2;
    for (int64_t i = 0; i < half; i++) {
        double c = cos(angle_of(shape, token, i)), s = sin(angle_of(shape, token, i));
        dx[i] = (double)dout[i] * c + (double)dout[i + half] * s;
        dx[i + half] = (double)dout[i + half] * c - (double)dout[i] * s;
    }
}

/* ---- what the variants share ------------------------------------------- */

static int takes(const rope_args *a)
{
    return is_valid(&a->shape) && element_takes(a->dtype);
}

/* The pair whose first element is `first`, turned. */
static void turn_pair(const rope_args *a, int64_t first, float c, float s)
{
    int64_t second = first + a->shape.head_dim / 2;
    float x = element_get(a->in, a->dtype, first), y = element_get(a->in, a->dtype, second);
    element_set(a->out, a->dtype, first, x * c - y * s);
    element_set(a->out, a->dtype, second, x * s + y * c);
}

/* ---- naive ------------------------------------------------------------- */

static int turn_naive(const rope_args *a, double direction)
{
    const rope_shape *s = &a->shape;
    if (!takes(a)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t row = 0; row < s->batch * s->heads * s->tokens; row++)
        for (int64_t i = 0; i < s->head_dim / 2; i++) {
            double angle = direction * angle_of(s, row % s->tokens, i);
            turn_pair(a, row * s->head_dim + i, (float)cos(angle), (float)sin(angle));
        }
    return KERNEL_OK;
}

static int run_naive_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)workspace, (void)state, (void)stream;
    return turn_naive(args, 1);
}

static int run_naive_backward(const void *args, void *workspace, void *state,
                              kernel_stream stream)
{
    (void)workspace, (void)state, (void)stream;
    return turn_naive(args, -1);
}

/* ---- table ------------------------------------------------------------- */

/* Workspace: cosines, then sines, each [tokens, head_dim / 2]. */
static size_t table_workspace(const void *args)
{
    const rope_shape *s = &((const rope_args *)args)->shape;
    if (!is_valid(s)) return 0;
    uint64_t floats = saturating_product((uint64_t)s->tokens, (uint64_t)s->head_dim);
    uint64_t bytes = saturating_product(floats, sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

static int turn_by_table(const rope_args *a, float *cosines, double direction)
{
    const rope_shape *s = &a->shape;
    if (!takes(a)) return KERNEL_ERROR_ARGUMENT;
    int64_t half = s->head_dim / 2;
    float *sines = cosines + s->tokens * half;
    for (int64_t i = 0; i < s->tokens * half; i++) {
        double angle = direction * angle_of(s, i / half, i % half);
        cosines[i] = (float)cos(angle);
        sines[i] = (float)sin(angle);
    }
    for (int64_t row = 0; row < s->batch * s->heads * s->tokens; row++) {
        int64_t entry = row % s->tokens * half;
        for (int64_t i = 0; i < half; i++)
            turn_pair(a, row * s->head_dim + i, cosines[entry + i], sines[entry + i]);
    }
    return KERNEL_OK;
}

static int run_table_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return turn_by_table(args, workspace, 1);
}

static int run_table_backward(const void *args, void *workspace, void *state,
                              kernel_stream stream)
{
    (void)state, (void)stream;
    return turn_by_table(args, workspace, -1);
}

/* ---- tables ------------------------------------------------------------ */

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "sine and cosine of each pair", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_naive_forward},
    {.name = "table", .note = "sines and cosines once for each token", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = table_workspace, .run = run_table_forward},
};

static const kernel_variant backward_rows[] = {
    {.name = "naive", .note = "sine and cosine of each pair", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_naive_backward},
    {.name = "table", .note = "sines and cosines once for each token", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = table_workspace, .run = run_table_backward},
};

const kernel_table rope_forward_cpu = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table rope_backward_cpu = {backward_rows,
                                        sizeof backward_rows / sizeof *backward_rows};
