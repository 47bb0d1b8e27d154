/*
 * mean.cu - the mean of the rows' losses, by one block: a few thousand numbers are
 * read in less time than a second launch takes.
 */
#include "model.cuh"

namespace {

constexpr int THREADS = 256;

__global__ void __launch_bounds__(THREADS) mean_kernel(const float *values, int64_t count,
                                                       float *mean)
{
    __shared__ double sums[THREADS];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) sum += values[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *mean = static_cast<float>(sums[0] / static_cast<double>(count));
}

} // namespace

int model_mean_run(const model_mean &m, kernel_stream stream)
{
    mean_kernel<<<1, THREADS, 0, stream>>>(m.values, m.count, m.mean);
    return cudaGetLastError();
}
