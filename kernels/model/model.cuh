/*
 * model.cuh - the model's own kernels (mean.cu, accumulate.cu), and a step by any choice of the other
 * operations' variants (model.cu), which what a habit costs is measured with
 * (habits.cu).
 */
#ifndef MODEL_CUH
#define MODEL_CUH

#include "model.h"
#include "../part/part.cuh"

constexpr int MODEL_MOST_NAMES = 2;

/* Names of other operations' variants, of which the first that takes the op counts. */
struct model_way_cuda {
    part_way_cuda parts;
    const char *embedding[MODEL_MOST_NAMES], *embedding_gradient[MODEL_MOST_NAMES];
    const char *loss[MODEL_MOST_NAMES], *loss_gradient[MODEL_MOST_NAMES];
    const char *clip[MODEL_MOST_NAMES], *adamw[MODEL_MOST_NAMES];
};

/* The fastest of each. */
model_way_cuda model_best_cuda();

/* A variant's functions, for args of a way; model_run_cuda runs the list that prepare
 * made of args. */
const char *model_unsupported_cuda(const void *args);
size_t model_workspace_bytes_cuda(const void *args, const model_way_cuda &way);
int model_prepare_cuda(const void *args, const model_way_cuda &way, void **state);
void model_release_cuda(void *state);
int model_run_cuda(const void *args, void *workspace, void *state, kernel_stream stream);

/* Enqueues an addition of gradients (accumulate.cu). */
int model_accumulate_run(const model_accumulate &accumulate, kernel_stream stream);

/* Enqueues the mean. The sum is in double and in a fixed order. */
int model_mean_run(const model_mean &mean, kernel_stream stream);

#endif
