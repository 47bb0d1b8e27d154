/*
 * reference.c - the transformer block's oracle: the other operations'
 * references composed, all in double but for what one hands to the next.
 */
#include "block.h"

#include <stdlib.h>
#include <string.h>

#include "../attention/attention.h"
#include "../ffn/ffn.h"
#include "../norm/norm.h"

static int64_t rows_of(const block_shape *s)
{
    return s->batch * s->tokens;
}

static attention_shape attention_of(const block_shape *s)
{
    return (attention_shape){s->batch, s->heads, s->tokens, s->width / s->heads, 1};
}

static norm_shape norm_of(const block_shape *s)
{
    return (norm_shape){rows_of(s), s->width};
}

/* ---- memory ---------------------------------------------------------------------- */

/* Everything between x and y in f32, what the parts' references take, and one
 * line in double, what they give. */
typedef struct reference {
    const block_shape *shape;
    const float *const *p;
    float *act[BLOCK_ACTIVATIONS], *grad[BLOCK_ACTIVATIONS];
    double *line; /* room for the longest result that is handed over at once */
} reference;

static void reference_free(reference *r)
{
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) free(r->act[i]), free(r->grad[i]);
    free(r->line);
}

static int reference_allocate(reference *r, const block_shape *s, const float *const *parameters,
                              int with_gradients)
{
    int64_t n = rows_of(s), longest = 4 * (s->hidden + 3 * s->width);
    int complete;
    *r = (reference){.shape = s, .p = parameters};
    if (longest < s->tokens * (3 * s->width + 1)) longest = s->tokens * (3 * s->width + 1);
    if (longest < n * s->width) longest = n * s->width;
    r->line = malloc((size_t)longest * sizeof *r->line);
    complete = r->line != NULL;
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        block_activation which = (block_activation)i;
        size_t bytes = (size_t)block_activation_count(s, which) * sizeof(float);
        r->act[i] = malloc(bytes);
        r->grad[i] = with_gradients ? malloc(bytes) : NULL;
        complete = complete && r->act[i] && (r->grad[i] || !with_gradients);
    }
    if (complete) return KERNEL_OK;
    reference_free(r);
    return KERNEL_ERROR_MEMORY;
}

/* ---- parts ----------------------------------------------------------------------- */

static void round_to_f32(const double *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++) to[i] = (float)from[i];
}

/* One row of y = x weight^T + bias. */
static void layer_row(const float *x, const float *weight, const float *bias, int64_t in,
                      int64_t out, double *y)
{
    for (int64_t o = 0; o < out; o++) {
        y[o] = (double)bias[o];
        for (int64_t i = 0; i < in; i++) y[o] += (double)x[i] * (double)weight[o * in + i];
    }
}

/* x_gradient = y_gradient weight, for all rows, rounded. */
static void layer_input_gradient(const reference *r, int64_t in, int64_t out, const float *weight,
                                 const float *y_gradient, float *x_gradient)
{
    for (int64_t row = 0; row < rows_of(r->shape); row++) {
        memset(r->line, 0, (size_t)in * sizeof *r->line);
        for (int64_t o = 0; o < out; o++)
            for (int64_t i = 0; i < in; i++)
                r->line[i] += (double)y_gradient[row * out + o] * (double)weight[o * in + i];
        round_to_f32(r->line, in, x_gradient + row * in);
    }
}

static void layer_weight_gradient(const reference *r, int64_t in, int64_t out, const float *x,
                                  const float *y_gradient, double *weight, double *bias)
{
    memset(weight, 0, (size_t)(in * out) * sizeof *weight);
    memset(bias, 0, (size_t)out * sizeof *bias);
    for (int64_t row = 0; row < rows_of(r->shape); row++)
        for (int64_t o = 0; o < out; o++) {
            double gradient = (double)y_gradient[row * out + o];
            bias[o] += gradient;
            for (int64_t i = 0; i < in; i++)
                weight[o * in + i] += gradient * (double)x[row * in + i];
        }
}

/* One norm: y, mean and rstd to activations. */
static void reference_norm(const reference *r, const float *x, block_parameter weight,
                           block_activation y)
{
    norm_shape shape = {1, r->shape->width};
    for (int64_t row = 0; row < rows_of(r->shape); row++) {
        double mean, rstd;
        norm_forward_reference(&shape, NORM_LAYER, x + row * shape.width, NULL, r->p[weight],
                               r->p[weight + 1], r->line, NULL, &mean, &rstd);
        round_to_f32(r->line, shape.width, r->act[y] + row * shape.width);
        r->act[y + 1][row] = (float)mean; /* MEAN1 and RSTD1 follow NORM1 */
        r->act[y + 2][row] = (float)rstd;
    }
}

/* Head `index` of a row-major [.., parts, heads, head_dim] array to or from a
 * contiguous [tokens, head_dim]. */
static void copy_head(const block_shape *s, int64_t batch, int64_t head, int part, int parts,
                      float *rows, float *contiguous, int to_rows)
{
    int64_t dim = s->width / s->heads;
    for (int64_t t = 0; t < s->tokens; t++) {
        float *row = rows + ((batch * s->tokens + t) * parts + part) * s->width + head * dim;
        if (to_rows)
            memcpy(row, contiguous + t * dim, (size_t)dim * sizeof *row);
        else
            memcpy(contiguous + t * dim, row, (size_t)dim * sizeof *row);
    }
}

/* The head's [tokens, head_dim] within an activation by heads, and its lse. */
static float *head_at(const block_shape *s, float *activation, int64_t batch, int64_t head)
{
    return activation + (batch * s->heads + head) * s->tokens * (s->width / s->heads);
}

static void reference_attention_head(const reference *r, int64_t batch, int64_t head,
                                     int64_t *tokens)
{
    const block_shape *s = r->shape;
    attention_shape shape = attention_of(s);
    int64_t count = s->tokens * shape.head_dim;
    float *q = head_at(s, r->act[BLOCK_Q], batch, head);
    float *k = head_at(s, r->act[BLOCK_K], batch, head);
    float *v = head_at(s, r->act[BLOCK_V], batch, head);
    float *out = head_at(s, r->act[BLOCK_ATTENTION], batch, head);
    float *lse = r->act[BLOCK_LSE] + (batch * s->heads + head) * s->tokens;
    copy_head(s, batch, head, 0, 3, r->act[BLOCK_QKV], q, 0);
    copy_head(s, batch, head, 1, 3, r->act[BLOCK_QKV], k, 0);
    copy_head(s, batch, head, 2, 3, r->act[BLOCK_QKV], v, 0);
    attention_forward_reference(&shape, q, k, v, tokens, s->tokens, r->line, r->line + count);
    round_to_f32(r->line, count, out);
    round_to_f32(r->line + count, s->tokens, lse);
    copy_head(s, batch, head, 0, 1, r->act[BLOCK_MERGED], out, 1);
}

static void reference_attention_head_backward(const reference *r, int64_t batch, int64_t head,
                                              int64_t *tokens)
{
    const block_shape *s = r->shape;
    attention_shape shape = attention_of(s);
    int64_t count = s->tokens * shape.head_dim;
    float *dout = head_at(s, r->grad[BLOCK_ATTENTION], batch, head);
    attention_backward_head h = {head_at(s, r->act[BLOCK_Q], batch, head),
                                 head_at(s, r->act[BLOCK_K], batch, head),
                                 head_at(s, r->act[BLOCK_V], batch, head),
                                 head_at(s, r->act[BLOCK_ATTENTION], batch, head), dout,
                                 r->act[BLOCK_LSE] + (batch * s->heads + head) * s->tokens};
    copy_head(s, batch, head, 0, 1, r->grad[BLOCK_MERGED], dout, 0);
    attention_backward_reference(&shape, &h, tokens, s->tokens, r->line, r->line + count,
                                 r->line + 2 * count);
    for (int part = 0; part < 3; part++) {
        float *gradient = head_at(s, r->grad[BLOCK_Q + part], batch, head);
        round_to_f32(r->line + part * count, count, gradient);
        copy_head(s, batch, head, part, 3, r->grad[BLOCK_QKV], gradient, 1);
    }
}

typedef void head_function(const reference *r, int64_t batch, int64_t head, int64_t *tokens);

static int for_each_head(const reference *r, head_function *function)
{
    const block_shape *s = r->shape;
    int64_t *tokens = malloc((size_t)s->tokens * sizeof *tokens);
    if (!tokens) return KERNEL_ERROR_MEMORY;
    for (int64_t t = 0; t < s->tokens; t++) tokens[t] = t;
    for (int64_t i = 0; i < s->batch * s->heads; i++)
        function(r, i / s->heads, i % s->heads, tokens);
    free(tokens);
    return KERNEL_OK;
}

/* ---- passes ---------------------------------------------------------------------- */

static ffn_parameters feed_forward_of(const reference *r)
{
    return (ffn_parameters){r->p[BLOCK_UP_WEIGHT], r->p[BLOCK_UP_BIAS], r->p[BLOCK_DOWN_WEIGHT],
                            r->p[BLOCK_DOWN_BIAS]};
}

/* x to MIDDLE. */
static int reference_attention_half(const reference *r, const float *x)
{
    const block_shape *s = r->shape;
    int64_t w = s->width, n = rows_of(s);
    reference_norm(r, x, BLOCK_NORM1_WEIGHT, BLOCK_NORM1);
    for (int64_t row = 0; row < n; row++) {
        layer_row(r->act[BLOCK_NORM1] + row * w, r->p[BLOCK_QKV_WEIGHT], r->p[BLOCK_QKV_BIAS], w,
                  3 * w, r->line);
        round_to_f32(r->line, 3 * w, r->act[BLOCK_QKV] + row * 3 * w);
    }
    int error = for_each_head(r, reference_attention_head);
    if (error) return error;
    for (int64_t row = 0; row < n; row++) {
        layer_row(r->act[BLOCK_MERGED] + row * w, r->p[BLOCK_PROJECTION_WEIGHT],
                  r->p[BLOCK_PROJECTION_BIAS], w, w, r->line);
        for (int64_t c = 0; c < w; c++) r->line[c] += (double)x[row * w + c];
        round_to_f32(r->line, w, r->act[BLOCK_MIDDLE] + row * w);
    }
    return KERNEL_OK;
}

/* MIDDLE to y. */
static void reference_feed_forward_half(const reference *r, double *y)
{
    const block_shape *s = r->shape;
    int64_t w = s->width;
    ffn_shape shape = {1, w, s->hidden};
    ffn_parameters parameters = feed_forward_of(r);
    reference_norm(r, r->act[BLOCK_MIDDLE], BLOCK_NORM2_WEIGHT, BLOCK_NORM2);
    for (int64_t row = 0; row < rows_of(s); row++) {
        ffn_forward_reference(&shape, &parameters, r->act[BLOCK_NORM2] + row * w, 1, y + row * w,
                              r->line, r->line + s->hidden);
        for (int64_t c = 0; c < w; c++) y[row * w + c] += (double)r->act[BLOCK_MIDDLE][row * w + c];
    }
}

int block_forward_reference(const block_shape *shape, const float *const *parameters,
                            const float *x, double *y)
{
    reference r;
    int error = reference_allocate(&r, shape, parameters, 0);
    if (error) return error;
    error = reference_attention_half(&r, x);
    if (!error) reference_feed_forward_half(&r, y);
    reference_free(&r);
    return error;
}

/* All of a norm's gradients; x_gradient includes sum_gradient, what reaches the
 * norm's input past it. It is left in r->line. */
static void reference_norm_backward(const reference *r, const float *x, block_parameter weight,
                                    block_activation y, const float *sum_gradient,
                                    double *const *parameter_gradients)
{
    norm_shape shape = norm_of(r->shape);
    for (int i = 0; i < 2; i++)
        memset(parameter_gradients[(int)weight + i], 0, (size_t)shape.width * sizeof(double));
    norm_backward_reference(&shape, NORM_LAYER, x, r->p[weight], r->act[y + 1], r->act[y + 2],
                            r->grad[y], sum_gradient, r->line, parameter_gradients[weight],
                            parameter_gradients[weight + 1]);
}

/* y_gradient to the gradient of MIDDLE. */
static void reference_feed_forward_backward(const reference *r, const float *y_gradient,
                                            double *const *gradients)
{
    const block_shape *s = r->shape;
    int64_t w = s->width, h = s->hidden, n = rows_of(s);
    ffn_shape shape = {n, w, h};
    ffn_parameters parameters = feed_forward_of(r);
    const float *x = r->act[BLOCK_NORM2];
    double *down_column = r->line;
    for (int64_t row = 0; row < n; row++) {
        ffn_backward_reference_rows(&shape, &parameters, x + row * w, y_gradient + row * w, 1,
                                    r->line, r->line + w);
        round_to_f32(r->line, w, r->grad[BLOCK_NORM2] + row * w);
    }
    for (int64_t unit = 0; unit < h; unit++) {
        ffn_backward_reference_unit(&shape, &parameters, x, y_gradient, unit,
                                    gradients[BLOCK_UP_WEIGHT] + unit * w,
                                    gradients[BLOCK_UP_BIAS] + unit, down_column);
        for (int64_t c = 0; c < w; c++) gradients[BLOCK_DOWN_WEIGHT][c * h + unit] = down_column[c];
    }
    ffn_backward_reference_bias(&shape, y_gradient, gradients[BLOCK_DOWN_BIAS]);
    reference_norm_backward(r, r->act[BLOCK_MIDDLE], BLOCK_NORM2_WEIGHT, BLOCK_NORM2, y_gradient,
                            gradients);
    round_to_f32(r->line, n * w, r->grad[BLOCK_MIDDLE]);
}

/* From there to the gradient of x. */
static int reference_attention_backward(const reference *r, const float *x, double *x_gradient,
                                        double *const *gradients)
{
    const block_shape *s = r->shape;
    int64_t w = s->width;
    layer_input_gradient(r, w, w, r->p[BLOCK_PROJECTION_WEIGHT], r->grad[BLOCK_MIDDLE],
                         r->grad[BLOCK_MERGED]);
    layer_weight_gradient(r, w, w, r->act[BLOCK_MERGED], r->grad[BLOCK_MIDDLE],
                          gradients[BLOCK_PROJECTION_WEIGHT], gradients[BLOCK_PROJECTION_BIAS]);
    int error = for_each_head(r, reference_attention_head_backward);
    if (error) return error;
    layer_input_gradient(r, w, 3 * w, r->p[BLOCK_QKV_WEIGHT], r->grad[BLOCK_QKV],
                         r->grad[BLOCK_NORM1]);
    layer_weight_gradient(r, w, 3 * w, r->act[BLOCK_NORM1], r->grad[BLOCK_QKV],
                          gradients[BLOCK_QKV_WEIGHT], gradients[BLOCK_QKV_BIAS]);
    reference_norm_backward(r, x, BLOCK_NORM1_WEIGHT, BLOCK_NORM1, r->grad[BLOCK_MIDDLE],
                            gradients);
    memcpy(x_gradient, r->line, (size_t)(rows_of(s) * w) * sizeof *x_gradient);
    return KERNEL_OK;
}

int block_backward_reference(const block_shape *shape, const float *const *parameters,
                             const float *x, const float *y_gradient, double *x_gradient,
                             double *const *parameter_gradients)
{
    reference r;
    int error = reference_allocate(&r, shape, parameters, 1);
    if (error) return error;
    error = reference_attention_half(&r, x);
    if (!error) {
        reference_feed_forward_half(&r, x_gradient); /* y, which is not needed */
        reference_feed_forward_backward(&r, y_gradient, parameter_gradients);
        error = reference_attention_backward(&r, x, x_gradient, parameter_gradients);
    }
    reference_free(&r);
    return error;
}
