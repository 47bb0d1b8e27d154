/*
 * checkpoint.h - a model's parameters in a safetensors file (safetensors.h), by
 * the names of parameters.h, those of a layer behind "h.LAYER.": "h.0.qkv.weight".
 * Weights are [out, in], as in PyTorch's Linear. Rows that pad the tables are not
 * in the file; a tied head is the token table and no entry of its own.
 */
#ifndef MODEL_CHECKPOINT_H
#define MODEL_CHECKPOINT_H

#include "../common/safetensors.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "F32" for f32 and tf32, "F16", "BF16". */
const char *model_checkpoint_dtype(kernel_dtype dtype);

/* values: host memory as MODEL_VALUES is laid out, of model_storage(dtype). 0, or -1
 * with a reason that names the path. */
int model_checkpoint_write(const char *path, const model_shape *shape, kernel_dtype dtype,
                           const void *values, char reason[SAFETENSORS_REASON]);

/* The same into a file that nobody finds afterwards: safetensors_write_scratch. */
int model_checkpoint_write_scratch(const model_shape *shape, kernel_dtype dtype,
                                   const void *values, char reason[SAFETENSORS_REASON]);

/* What a step leaves, in host memory: int32 [batch, tokens], one f32, and the gradients
 * as MODEL_GRADIENTS is laid out. */
typedef struct model_outcome {
    const void *tokens, *targets, *loss, *gradients;
} model_outcome;

/* A file of the gradients, by their parameters' names, before any clipping, with
 * "tokens", "targets" (I32) and "loss" (F32), of which they are: what another program
 * needs to check its own against. As model_checkpoint_write. */
int model_outcome_write(const char *path, const model_shape *shape, kernel_dtype dtype,
                        const model_outcome *outcome, char reason[SAFETENSORS_REASON]);

/* The inverse of model_checkpoint_write; padding rows become 0. Every tensor must be
 * there with its shape and the dtype, and nothing else but, where the shape is tied, a
 * "head.weight" that is the table again. -1, a reason that names the tensor, and values
 * partly written. */
int model_checkpoint_read(const char *path, const model_shape *shape, kernel_dtype dtype,
                          void *values, char reason[SAFETENSORS_REASON]);

#ifdef __cplusplus
}
#endif
#endif
