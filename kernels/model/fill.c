/*
 * fill.c - what a model starts from: parameters, moments, constants.
 */
#include "model.h"

#include "../common/tokens.h"

#include <math.h>
#include <stdlib.h>

typedef struct distribution {
    float mean, stddev;
} distribution;

/* Of a block's parameters; the tensors outside of blocks are as tables and norms. */
static distribution block_distribution(const model_shape *s, int which)
{
    const float narrow = 0.02f;
    switch ((block_parameter)which) {
    case BLOCK_NORM1_WEIGHT:
    case BLOCK_NORM2_WEIGHT: return (distribution){1, narrow};
    case BLOCK_PROJECTION_WEIGHT:
    case BLOCK_DOWN_WEIGHT:
        return (distribution){0, narrow / sqrtf(2 * (float)s->layers)};
    case BLOCK_NORM1_BIAS:
    case BLOCK_QKV_WEIGHT:
    case BLOCK_QKV_BIAS:
    case BLOCK_PROJECTION_BIAS:
    case BLOCK_NORM2_BIAS:
    case BLOCK_UP_WEIGHT:
    case BLOCK_UP_BIAS:
    case BLOCK_DOWN_BIAS:
    case BLOCK_PARAMETERS: break;
    }
    return (distribution){0, narrow};
}

static distribution distribution_of(const model_shape *s, int64_t tensor)
{
    int64_t in_blocks = tensor - model_layer_tensor(0);
    if (tensor == model_norm_tensor(s)) return block_distribution(s, BLOCK_NORM1_WEIGHT);
    if (in_blocks < 0 || tensor > model_norm_tensor(s))
        return block_distribution(s, BLOCK_QKV_WEIGHT);
    return block_distribution(s, (int)(in_blocks % BLOCK_PARAMETERS));
}

/* Rows behind the vocabulary, of a table's values or master weights. */
static int clear_padding(const model_shape *s, model_fill_function *fill, kernel_dtype dtype,
                         void *table)
{
    int64_t begin = s->vocabulary * s->width, end = s->table_rows * s->width;
    if (begin == end || !table) return KERNEL_OK;
    return fill((char *)table + (size_t)begin * kernel_dtype_bytes(dtype), dtype, end - begin, 0, 0,
                0);
}

/* All parameters as most are, in one call, and then those that are not: values and
 * master weights by the same numbers. */
static int fill_parameters(const model_args *a, const model_plan *plan, model_fill_function *fill,
                           uint64_t seed, model_buffer buffer)
{
    const model_shape *s = &a->shape;
    const distribution most = block_distribution(s, BLOCK_QKV_WEIGHT);
    kernel_dtype dtype = buffer == MODEL_VALUES ? model_storage(a->dtype) : KERNEL_F32;
    void *all = model_memory(a, plan, buffer);
    int error = !all ? KERNEL_OK
                     : fill(all, dtype, model_tensor_offset(s, model_tensor_count(s)), most.mean,
                            most.stddev, seed);
    for (int64_t i = 0; i < model_tensor_count(s) && all && !error; i++) {
        void *memory = model_tensor_memory(a, plan, buffer, i);
        parameters_tensor t = model_tensor_at(s, i);
        distribution d = distribution_of(s, i);
        if (d.mean != most.mean || d.stddev != most.stddev)
            error = fill(memory, dtype, parameters_elements(&t), d.mean, d.stddev,
                         seed * 4096 + (uint64_t)i);
        if (!error && (i == 0 || i == model_head_tensor(s)))
            error = clear_padding(s, fill, dtype, memory);
    }
    return error;
}

/* A whole buffer of equal numbers, if there is one. */
static int fill_constant(const model_args *a, const model_plan *plan, model_fill_function *fill,
                         model_buffer buffer, kernel_dtype dtype, float value)
{
    void *memory = model_memory(a, plan, buffer);
    int64_t count = (int64_t)(plan->bytes[buffer] / kernel_dtype_bytes(dtype));
    return memory ? fill(memory, dtype, count, value, 0, 0) : KERNEL_OK;
}

static int fill_mask(const model_args *a, const model_plan *plan, model_fill_function *fill)
{
    const model_shape *s = &a->shape;
    kernel_dtype dtype = model_storage(a->dtype);
    char *mask = model_memory(a, plan, MODEL_MASK);
    int error;
    if (!mask) return KERNEL_OK;
    error = fill(mask, dtype, s->vocabulary, 0, 0, 0);
    if (error) return error;
    return fill(mask + (size_t)s->vocabulary * kernel_dtype_bytes(dtype), dtype,
                s->table_rows - s->vocabulary, MODEL_MASKED, 0, 0);
}

/* All its numbers are 0, whose bits an f32's are too, but for the scale. */
static int fill_scaler(const model_args *a, const model_plan *plan, model_fill_function *fill)
{
    optimizer_scaler *scaler = model_memory(a, plan, MODEL_SCALER);
    int error = fill_constant(a, plan, fill, MODEL_SCALER, KERNEL_F32, 0);
    if (!scaler || error) return error;
    error = fill(&scaler->scale, KERNEL_F32, 1, a->scaling.initial, 0, 0);
    return error ? error : fill(&scaler->used, KERNEL_F32, 1, a->scaling.initial, 0, 0);
}

int model_fill(const model_args *a, model_fill_function *fill, uint64_t seed)
{
    model_plan plan = model_plan_of(a);
    float each = (float)(1.0 / (double)model_step_rows(a));
    int error = fill_mask(a, &plan, fill);
    if (!error) error = fill_constant(a, &plan, fill, MODEL_ROW_WEIGHTS, KERNEL_F32, each);
    if (!error) error = fill_constant(a, &plan, fill, MODEL_FIRST, KERNEL_F32, 0);
    if (!error) error = fill_constant(a, &plan, fill, MODEL_SECOND, KERNEL_F32, 0);
    if (!error) error = fill_scaler(a, &plan, fill);
    if (!error) error = fill_parameters(a, &plan, fill, seed, MODEL_VALUES);
    return error ? error : fill_parameters(a, &plan, fill, seed, MODEL_MASTER);
}

int model_fill_tokens(const model_args *a, uint64_t seed, int32_t *rows)
{
    int64_t n = model_step_rows(a), t = a->shape.tokens;
    int32_t *text = malloc((size_t)(n + n / t) * sizeof *text);
    int code = text ? tokens_fill(text, n + n / t, a->shape.vocabulary, TOKENS_ZIPF, seed)
                    : KERNEL_ERROR_MEMORY;
    for (int64_t i = 0; i < n && code == 0; i++) {
        rows[i] = text[i + i / t];
        rows[n + i] = text[i + i / t + 1];
    }
    free(text);
    return code;
}
