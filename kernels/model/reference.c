/*
 * reference.c - the model's oracle: the operations' references composed, all in
 * double but for what one hands to the next. For small shapes.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

/* What lies between the ops, in f32, and one line in double. */
typedef struct reference {
    const model_shape *shape;
    const float *const *p;
    const int32_t *tokens, *targets;
    float *stream;          /* x_0 to x_layers */
    float *final, *mean, *rstd;
    float *logits, *logit_gradients, *row_weights;
    float *gradient, *final_gradient; /* [rows, width] */
    double *line;           /* [rows, the wider of width and vocabulary] */
    int64_t *indices;       /* 0, 1, ... of table rows and rows of tokens */
} reference;

static void reference_free(reference *r)
{
    free(r->stream), free(r->final), free(r->mean), free(r->rstd);
    free(r->logits), free(r->logit_gradients), free(r->row_weights);
    free(r->gradient), free(r->final_gradient), free(r->line), free(r->indices);
}

/* Zeros, so that clang's analyzer, which sees one file, takes none for what nobody wrote. */
static float *floats(int64_t count)
{
    return calloc((size_t)count, sizeof(float));
}

static int reference_allocate(reference *r)
{
    const model_shape *s = r->shape;
    int64_t n = model_rows(s), wider = s->width > s->vocabulary ? s->width : s->vocabulary;
    int64_t longest = n > s->table_rows ? n : s->table_rows;
    r->stream = floats((s->layers + 1) * n * s->width);
    r->final = floats(n * s->width);
    r->mean = floats(n);
    r->rstd = floats(n);
    r->logits = floats(n * s->vocabulary);
    r->logit_gradients = floats(n * s->vocabulary);
    r->row_weights = floats(n);
    r->gradient = floats(n * s->width);
    r->final_gradient = floats(n * s->width);
    r->line = malloc((size_t)(n * wider) * sizeof *r->line);
    r->indices = malloc((size_t)longest * sizeof *r->indices);
    if (!r->stream || !r->final || !r->mean || !r->rstd || !r->logits || !r->logit_gradients ||
        !r->row_weights || !r->gradient || !r->final_gradient || !r->line || !r->indices)
        return KERNEL_ERROR_MEMORY;
    for (int64_t i = 0; i < n; i++) r->row_weights[i] = (float)(1.0 / (double)n);
    for (int64_t i = 0; i < longest; i++) r->indices[i] = i;
    return KERNEL_OK;
}

static void round_to_f32(const double *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++) to[i] = (float)from[i];
}

static float *stream_at(const reference *r, int64_t layer)
{
    return r->stream + layer * model_rows(r->shape) * r->shape->width;
}

static embedding_shape embedding_of(const model_shape *s)
{
    return (embedding_shape){model_rows(s), s->vocabulary, s->width, s->tokens};
}

static const float *head_of(const reference *r)
{
    return r->p[model_head_tensor(r->shape)];
}

/* ---- forward -------------------------------------------------------------------------- */

static int forward_blocks(const reference *r)
{
    const model_shape *s = r->shape;
    block_shape block = model_block_shape(s);
    int error = KERNEL_OK;
    for (int64_t layer = 0; layer < s->layers && !error; layer++) {
        error = block_forward_reference(&block, r->p + model_layer_tensor(layer),
                                        stream_at(r, layer), r->line);
        if (!error) round_to_f32(r->line, model_rows(s) * s->width, stream_at(r, layer + 1));
    }
    return error;
}

static void forward_norm(const reference *r)
{
    const model_shape *s = r->shape;
    norm_shape row = {1, s->width};
    int64_t tensor = model_norm_tensor(s);
    for (int64_t i = 0; i < model_rows(s); i++) {
        double mean, rstd;
        norm_forward_reference(&row, NORM_LAYER, stream_at(r, s->layers) + i * s->width, NULL,
                               r->p[tensor], r->p[tensor + 1], r->line, NULL, &mean, &rstd);
        round_to_f32(r->line, s->width, r->final + i * s->width);
        r->mean[i] = (float)mean;
        r->rstd[i] = (float)rstd;
    }
}

static void forward_head(const reference *r)
{
    const model_shape *s = r->shape;
    for (int64_t i = 0; i < model_rows(s); i++)
        for (int64_t v = 0; v < s->vocabulary; v++) {
            const float *x = r->final + i * s->width, *weight = head_of(r) + v * s->width;
            double sum = 0;
            for (int64_t c = 0; c < s->width; c++) sum += (double)x[c] * (double)weight[c];
            r->logits[i * s->vocabulary + v] = (float)sum;
        }
}

static double mean_loss(const reference *r)
{
    loss_shape shape = {model_rows(r->shape), r->shape->vocabulary};
    double sum = 0;
    loss_forward_reference(&shape, r->logits, r->targets, r->line, NULL);
    for (int64_t i = 0; i < shape.rows; i++) sum += r->line[i];
    return sum / (double)shape.rows;
}

static int forward(const reference *r, double *loss)
{
    const model_shape *s = r->shape;
    embedding_shape shape = embedding_of(s);
    embedding_forward_reference(&shape, r->tokens, r->p[0], r->p[1], r->indices, shape.rows,
                                r->line);
    round_to_f32(r->line, shape.rows * s->width, stream_at(r, 0));
    int error = forward_blocks(r);
    if (error) return error;
    forward_norm(r);
    forward_head(r);
    *loss = mean_loss(r);
    return KERNEL_OK;
}

/* ---- backward ------------------------------------------------------------------------- */

static void backward_head(const reference *r, double *weight_gradient)
{
    const model_shape *s = r->shape;
    loss_shape shape = {model_rows(s), s->vocabulary};
    int64_t w = s->width;
    loss_backward_reference(&shape, r->logits, r->targets, r->row_weights, r->line);
    round_to_f32(r->line, shape.rows * s->vocabulary, r->logit_gradients);
    for (int64_t i = 0; i < shape.rows; i++) {
        memset(r->line, 0, (size_t)w * sizeof *r->line);
        for (int64_t v = 0; v < s->vocabulary; v++) {
            double g = (double)r->logit_gradients[i * s->vocabulary + v];
            for (int64_t c = 0; c < w; c++) {
                r->line[c] += g * (double)head_of(r)[v * w + c];
                weight_gradient[v * w + c] += g * (double)r->final[i * w + c];
            }
        }
        round_to_f32(r->line, w, r->final_gradient + i * w);
    }
}

static void backward_norm(const reference *r, double *const *gradients)
{
    const model_shape *s = r->shape;
    norm_shape shape = {model_rows(s), s->width};
    int64_t tensor = model_norm_tensor(s);
    norm_backward_reference(&shape, NORM_LAYER, stream_at(r, s->layers), r->p[tensor], r->mean,
                            r->rstd, r->final_gradient, NULL, r->line, gradients[tensor],
                            gradients[tensor + 1]);
    round_to_f32(r->line, shape.rows * shape.width, r->gradient);
}

static int backward_blocks(const reference *r, double *const *gradients)
{
    const model_shape *s = r->shape;
    block_shape block = model_block_shape(s);
    int error = KERNEL_OK;
    for (int64_t layer = s->layers - 1; layer >= 0 && !error; layer--) {
        int64_t tensor = model_layer_tensor(layer);
        error = block_backward_reference(&block, r->p + tensor, stream_at(r, layer), r->gradient,
                                         r->line, gradients + tensor);
        round_to_f32(r->line, model_rows(s) * s->width, r->gradient);
    }
    return error;
}

/* Added: a tied table has the head's already. */
static void backward_embedding(const reference *r, double *const *gradients)
{
    const model_shape *s = r->shape;
    int64_t w = s->width;
    for (int64_t i = 0; i < model_rows(s); i++)
        for (int64_t c = 0; c < w; c++) {
            double g = (double)r->gradient[i * w + c];
            gradients[0][r->tokens[i] * w + c] += g;
            gradients[1][i % s->tokens * w + c] += g;
        }
}

int model_reference(const model_shape *shape, const float *const *parameters,
                    const int32_t *tokens, const int32_t *targets, double *loss,
                    double *const *gradients)
{
    reference r = {.shape = shape, .p = parameters, .tokens = tokens, .targets = targets};
    int error = reference_allocate(&r);
    if (!error) error = forward(&r, loss);
    for (int64_t i = 0; i < model_tensor_count(shape) && gradients && !error; i++) {
        parameters_tensor tensor = model_tensor_at(shape, i);
        memset(gradients[i], 0, (size_t)parameters_elements(&tensor) * sizeof(double));
    }
    if (!error && gradients) {
        backward_head(&r, gradients[model_head_tensor(shape)]);
        backward_norm(&r, gradients);
        error = backward_blocks(&r, gradients);
        if (!error) backward_embedding(&r, gradients);
    }
    reference_free(&r);
    return error;
}
