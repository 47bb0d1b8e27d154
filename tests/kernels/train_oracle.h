/* What training tests share: a text, and the oracle that trains in double precision beside
 * a model. Without cmocka, for programs that run on a GPU as well (tests/gpu/train.c). */
#ifndef TRAIN_ORACLE_H
#define TRAIN_ORACLE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/model/model.h"

enum { TRAIN_LETTERS = 11 };

/* A text in which each letter is the one before plus 3. */
static inline void train_write_text(int32_t *text, int64_t count)
{
    for (int64_t i = 0; i < count; i++) text[i] = (int32_t)((1 + 3 * i) % TRAIN_LETTERS);
}

static inline void *train_room(int64_t count, size_t bytes)
{
    void *room = calloc((size_t)count, bytes);
    if (!room) {
        fputs("no memory for the oracle\n", stderr);
        exit(2);
    }
    return room;
}

/* Of every tensor the parameter, the moments and the gradient in double, and the
 * parameter as the reference takes it. unit: 0, or by how much of itself each number is
 * nudged (train_bound.h); chance: what says whether up or down. */
typedef struct train_oracle {
    model_shape shape;
    int64_t count;
    double **value, **first, **second, **gradient;
    float **rounded;
    double unit;
    uint64_t chance;
} train_oracle;

static inline int64_t train_elements(const train_oracle *o, int64_t tensor)
{
    parameters_tensor t = model_tensor_at(&o->shape, tensor);
    return parameters_elements(&t);
}

static inline double **train_doubles(const train_oracle *o)
{
    double **all = train_room(o->count, sizeof *all);
    for (int64_t i = 0; i < o->count; i++) all[i] = train_room(train_elements(o, i), sizeof **all);
    return all;
}

/* values: f32, all tensors at their offsets. */
static inline train_oracle train_open(const model_shape *shape, const float *values)
{
    train_oracle o = {.shape = *shape, .count = model_tensor_count(shape)};
    o.value = train_doubles(&o), o.first = train_doubles(&o), o.second = train_doubles(&o);
    o.gradient = train_doubles(&o);
    o.rounded = train_room(o.count, sizeof *o.rounded);
    for (int64_t i = 0; i < o.count; i++) {
        const float *from = values + model_tensor_offset(shape, i);
        o.rounded[i] = train_room(train_elements(&o, i), sizeof **o.rounded);
        for (int64_t k = 0; k < train_elements(&o, i); k++) o.value[i][k] = (double)from[k];
    }
    return o;
}

static inline void train_close(train_oracle *o)
{
    for (int64_t i = 0; i < o->count; i++) {
        free(o->value[i]), free(o->first[i]), free(o->second[i]);
        free(o->gradient[i]), free(o->rounded[i]);
    }
    free(o->value), free(o->first), free(o->second), free(o->gradient), free(o->rounded);
}

/* size or -size, by chance. */
static inline double train_either(train_oracle *o, double size)
{
    o->chance = o->chance * 6364136223846793005u + 1442695040888963407u;
    return o->chance >> 63 ? size : -size;
}

/* The parameters as the forward pass takes them. */
static inline void train_round_values(train_oracle *o)
{
    for (int64_t i = 0; i < o->count; i++)
        for (int64_t k = 0; k < train_elements(o, i); k++)
            o->rounded[i][k] = (float)(o->value[i][k] * (1 + train_either(o, o->unit)));
}

/* Root of the mean square. */
static inline double train_size(const double *values, int64_t count)
{
    double squares = 0;
    for (int64_t k = 0; k < count; k++) squares += values[k] * values[k];
    return sqrt(squares / (double)count);
}

/* Roundoff on the way leaves in each element some of its tensor's size, not of its own. What
 * is 0 stays so: nothing has reached it. */
static inline void train_nudge_gradients(train_oracle *o)
{
    for (int64_t i = 0; i < o->count; i++) {
        double size = o->unit * train_size(o->gradient[i], train_elements(o, i));
        for (int64_t k = 0; k < train_elements(o, i); k++)
            if (o->gradient[i][k] != 0) o->gradient[i][k] += train_either(o, size);
    }
}

/* One step on a batch; the loss before it. A gradient is rounded once, as a model's is. */
static inline double train_step(train_oracle *o, const optimizer_adamw *settings, float max_norm,
                                const int32_t *tokens, const int32_t *targets)
{
    double loss = 0, squares = 0, scale;
    train_round_values(o);
    if (model_reference(&o->shape, (const float *const *)o->rounded, tokens, targets, &loss,
                        o->gradient) != 0)
        return NAN;
    train_nudge_gradients(o);
    for (int64_t i = 0; i < o->count; i++) {
        int64_t count = train_elements(o, i);
        squares += pow(train_size(o->gradient[i], count), 2) * (double)count;
    }
    scale = optimizer_clip_scale_reference(sqrt(squares), (double)max_norm);
    for (int64_t i = 0; i < o->count; i++) {
        int64_t count = train_elements(o, i);
        for (int64_t k = 0; k < count; k++) o->rounded[i][k] = (float)o->gradient[i][k];
        optimizer_adamw_reference(settings, scale, count, o->rounded[i], o->value[i], o->first[i],
                                  o->second[i]);
    }
    return loss;
}

#endif
