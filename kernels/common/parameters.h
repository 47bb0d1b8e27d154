/*
 * parameters.h - the parameter tensors of a pre-norm GPT, one by one: what an
 * optimizer step really walks over, a few huge matrices between many small
 * vectors. The architecture is that of Radford et al., "Language models are
 * unsupervised multitask learners", 2019, with an output head of its own.
 */
#ifndef KERNEL_PARAMETERS_H
#define KERNEL_PARAMETERS_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each at least 1, layers at least 0. Heads do not change a parameter's shape. */
typedef struct parameters_model {
    int64_t d_model, d_ff, layers, vocabulary, context;
} parameters_model;

/* One tensor, [rows, columns]; vectors have one row. */
typedef struct parameters_tensor {
    const char *name; /* "qkv.weight" */
    int64_t layer;    /* 0..layers-1, -1 outside of the blocks */
    int64_t rows, columns;
} parameters_tensor;

/* 12 a layer and 5 outside of them: token and position embedding before, final
 * layer norm (weight, bias) and head (no bias) behind. */
int64_t parameters_tensor_count(const parameters_model *model);

/* The index-th tensor, 0 <= index < parameters_tensor_count. In a layer:
 * layer norm 1 (weight, bias), qkv, projection, layer norm 2, the feed-forward
 * network's two products, each weight ([outputs, inputs]) then bias. */
parameters_tensor parameters_tensor_at(const parameters_model *model, int64_t index);

/* Elements of one tensor, and of all tensors of the model. */
int64_t parameters_elements(const parameters_tensor *tensor);
int64_t parameters_total(const parameters_model *model);

#ifdef __cplusplus
}
#endif
#endif
