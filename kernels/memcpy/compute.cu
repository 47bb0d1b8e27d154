/*
 * compute.cu - the kernel that memcpy.overlap puts beside a copy: chains
 * of fused multiply-adds in registers, one store at the end of each. It leaves
 * device memory and the link alone, so that what overlap gains or loses is not
 * a matter of who gets the bandwidth. Bound by the f32 units.
 */
#include "memcpy.cuh"

#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int UNROLLED = 64; /* so that the loop's own instructions do not show */

__global__ void __launch_bounds__(THREADS) compute_kernel(float *results, size_t count)
{
    size_t i = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= count) return;
    float x = MEMCPY_OVERLAP_START(i);
#pragma unroll UNROLLED
    for (int n = 0; n < MEMCPY_OVERLAP_CHAIN; n++)
        x = fmaf(x, MEMCPY_OVERLAP_DECAY, MEMCPY_OVERLAP_GAIN);
    results[i] = x;
}

} // namespace

int memcpy_compute(float *results, size_t count, kernel_stream stream)
{
    size_t blocks = (count + THREADS - 1) / THREADS;
    if (blocks == 0) return KERNEL_OK;
    if (blocks > INT32_MAX) return KERNEL_ERROR_ARGUMENT;
    compute_kernel<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(results, count);
    return cudaGetLastError();
}
