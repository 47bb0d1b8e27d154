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

/* A text in which the next letter nearly follows from the last: each is the one
 * before plus 3, and now and then any other. */
static inline void train_write_text(int32_t *text, int64_t count)
{
    uint64_t state = 12345;
    text[0] = 1;
    for (int64_t i = 1; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        text[i] = state >> 60 == 0 ? (int32_t)((state >> 33) % TRAIN_LETTERS)
                                   : (text[i - 1] + 3) % TRAIN_LETTERS;
    }
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
 * parameter as the reference takes it. */
typedef struct train_oracle {
    model_shape shape;
    int64_t count;
    double **value, **first, **second, **gradient;
    float **rounded;
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
    train_oracle o = {*shape, model_tensor_count(shape), NULL, NULL, NULL, NULL, NULL};
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

static inline void train_round(const double *from, int64_t count, float *to)
{
    for (int64_t k = 0; k < count; k++) to[k] = (float)from[k];
}

/* One step on a batch; the loss before it. A gradient is rounded once, as a model's is. */
static inline double train_step(train_oracle *o, const optimizer_adamw *settings, float max_norm,
                                const int32_t *tokens, const int32_t *targets)
{
    double loss = 0, squares = 0, scale;
    for (int64_t i = 0; i < o->count; i++)
        train_round(o->value[i], train_elements(o, i), o->rounded[i]);
    if (model_reference(&o->shape, (const float *const *)o->rounded, tokens, targets, &loss,
                        o->gradient) != 0)
        return NAN;
    for (int64_t i = 0; i < o->count; i++)
        for (int64_t k = 0; k < train_elements(o, i); k++)
            squares += o->gradient[i][k] * o->gradient[i][k];
    scale = optimizer_clip_scale_reference(sqrt(squares), (double)max_norm);
    for (int64_t i = 0; i < o->count; i++) {
        train_round(o->gradient[i], train_elements(o, i), o->rounded[i]);
        optimizer_adamw_reference(settings, scale, train_elements(o, i), o->rounded[i],
                                  o->value[i], o->first[i], o->second[i]);
    }
    return loss;
}

#endif
