/*
 * random.cu - seeded inputs in device memory, by cuRAND's Philox4x32-10.
 *
 * Numbers come in chunks of one fixed size through a temporary buffer, so that
 * memory is bounded, curandGenerateNormal's demand for even counts is met
 * whatever the count, and element i is the same however many follow it.
 */
#include "random.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <curand.h>

namespace {

constexpr int64_t CHUNK_WORDS = int64_t(1) << 22; /* f32 or 32 random bits each: 16 MiB */
constexpr int THREADS = 256;

/* What a fill holds and must give back. */
struct fill {
    curandGenerator_t generator;
    void *chunk;
    kernel_stream stream;
};

int curand_error(curandStatus_t status)
{
    return status == CURAND_STATUS_SUCCESS ? KERNEL_OK : KERNEL_ERROR_CURAND + status;
}

int open_fill(fill *f, uint64_t seed)
{
    int error = curand_error(curandCreateGenerator(&f->generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    if (!error) error = curand_error(curandSetPseudoRandomGeneratorSeed(f->generator, seed));
    if (!error) error = curand_error(curandSetStream(f->generator, f->stream));
    return error ? error : cudaMalloc(&f->chunk, CHUNK_WORDS * sizeof(float));
}

/* Waits, so that nothing uses the chunk any more; the first error wins. */
int close_fill(fill *f, int error)
{
    cudaError_t waited = cudaStreamSynchronize(f->stream);
    cudaError_t freed = cudaFree(f->chunk);
    int destroyed = f->generator ? curand_error(curandDestroyGenerator(f->generator)) : KERNEL_OK;
    if (error) return error;
    if (waited != cudaSuccess) return waited;
    return freed != cudaSuccess ? static_cast<int>(freed) : destroyed;
}

__device__ void store(float value, __half *dst) { *dst = __float2half_rn(value); }
__device__ void store(float value, __nv_bfloat16 *dst) { *dst = __float2bfloat16_rn(value); }
__device__ void store(float value, __nv_fp8_e4m3 *dst) { *dst = __nv_fp8_e4m3(value); }

template <typename T>
__global__ void __launch_bounds__(THREADS) convert_kernel(const float *src, int64_t count, T *dst)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count) store(src[i], dst + i);
}

template <typename T>
int convert(const float *src, int64_t count, void *dst, kernel_stream stream)
{
    unsigned blocks = static_cast<unsigned>((count + THREADS - 1) / THREADS);
    convert_kernel<T><<<blocks, THREADS, 0, stream>>>(src, count, static_cast<T *>(dst));
    return cudaGetLastError();
}

/* The chunk's first `count` elements, as dtype, at dst. */
int copy_out(const fill &f, kernel_dtype dtype, int64_t count, void *dst)
{
    switch (dtype) {
    case KERNEL_F16: return convert<__half>(static_cast<float *>(f.chunk), count, dst, f.stream);
    case KERNEL_BF16:
        return convert<__nv_bfloat16>(static_cast<float *>(f.chunk), count, dst, f.stream);
    case KERNEL_E4M3:
        return convert<__nv_fp8_e4m3>(static_cast<float *>(f.chunk), count, dst, f.stream);
    case KERNEL_F32:
    case KERNEL_TF32:
    case KERNEL_U8:
        return cudaMemcpyAsync(dst, f.chunk, count * kernel_dtype_bytes(dtype),
                               cudaMemcpyDeviceToDevice, f.stream);
    }
    return KERNEL_ERROR_ARGUMENT;
}

int generate_chunk(const fill &f, kernel_dtype dtype, float mean, float stddev)
{
    if (dtype == KERNEL_U8)
        return curand_error(
            curandGenerate(f.generator, static_cast<unsigned *>(f.chunk), CHUNK_WORDS));
    return curand_error(curandGenerateNormal(f.generator, static_cast<float *>(f.chunk),
                                             CHUNK_WORDS, mean, stddev));
}

int fill_chunks(const fill &f, char *data, kernel_dtype dtype, int64_t count, float mean,
                float stddev)
{
    int64_t chunk_count = dtype == KERNEL_U8 ? CHUNK_WORDS * 4 : CHUNK_WORDS;
    for (int64_t begin = 0; begin < count; begin += chunk_count) {
        int64_t left = count - begin < chunk_count ? count - begin : chunk_count;
        int error = generate_chunk(f, dtype, mean, stddev);
        if (!error) error = copy_out(f, dtype, left, data + begin * kernel_dtype_bytes(dtype));
        if (error) return error;
    }
    return KERNEL_OK;
}

} // namespace

int random_normal_cuda(void *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                       uint64_t seed, kernel_stream stream)
{
    if (count < 0 || kernel_dtype_bytes(dtype) == 0) return KERNEL_ERROR_ARGUMENT;
    fill f = {nullptr, nullptr, stream};
    int error = open_fill(&f, seed);
    if (!error) error = fill_chunks(f, static_cast<char *>(data), dtype, count, mean, stddev);
    return close_fill(&f, error);
}
