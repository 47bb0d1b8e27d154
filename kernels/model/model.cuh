/*
 * model.cuh - the model's own kernels (mean.cu).
 */
#ifndef MODEL_CUH
#define MODEL_CUH

#include "model.h"

/* Enqueues the mean. The sum is in double and in a fixed order. */
int model_mean_run(const model_mean &mean, kernel_stream stream);

#endif
