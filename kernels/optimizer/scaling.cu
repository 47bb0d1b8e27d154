/*
 * scaling.cu - dynamic loss scaling on the GPU: nothing of it is read on the host, so a
 * step does not wait and can be captured.
 *
 * 1. single  unscale: one thread, since a dozen numbers are all there is; scale_loss: one
 *            block. Both are bound by their launch.
 */
#include "optimizer.cuh"
#include "scaling.h"

namespace {

__global__ void unscale_kernel(optimizer_unscale_args args)
{
    optimizer_unscale(&args);
}

__global__ void __launch_bounds__(OPTIMIZER_THREADS) scale_loss_kernel(optimizer_scale_loss_args a)
{
    float weight = static_cast<float>(static_cast<double>(a.scaler->scale) /
                                      static_cast<double>(a.rows));
    for (int64_t i = threadIdx.x; i < a.count; i += OPTIMIZER_THREADS) a.weights[i] = weight;
    if (threadIdx.x == 0) a.scaler->used = a.scaler->scale;
}

int run_unscale(const void *args, void *, void *, kernel_stream stream)
{
    unscale_kernel<<<1, 1, 0, stream>>>(*static_cast<const optimizer_unscale_args *>(args));
    return cudaGetLastError();
}

int run_scale_loss(const void *args, void *, void *, kernel_stream stream)
{
    scale_loss_kernel<<<1, OPTIMIZER_THREADS, 0, stream>>>(
        *static_cast<const optimizer_scale_loss_args *>(args));
    return cudaGetLastError();
}

const kernel_variant UNSCALE[] = {
    {.name = "single", .note = "one thread", .min_compute_capability = 75, .run = run_unscale},
};

const kernel_variant SCALE_LOSS[] = {
    {.name = "single", .note = "one block", .min_compute_capability = 75, .run = run_scale_loss},
};

} // namespace

extern "C" {
const kernel_table optimizer_unscale_cuda = {UNSCALE, 1};
const kernel_table optimizer_scale_loss_cuda = {SCALE_LOSS, 1};
}
