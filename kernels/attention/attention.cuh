/*
 * attention.cuh - what the CUDA attention variants share: their functions, as
 * attention.cu's table names them, the checks of their arguments, and
 * elements of any dtype as f32.
 */
#ifndef ATTENTION_CUH
#define ATTENTION_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>

#include <initializer_list>

#include "attention.h"
#include "../common/ceil_div.cuh"
#include "../common/device.cuh"

constexpr float ATTENTION_LOG2_E = 1.44269504088896340736f;
constexpr float ATTENTION_LN_2 = 0.69314718055994530942f;

size_t attention_naive_workspace_bytes(const void *args);
int attention_naive_run(const void *args, void *workspace, void *state, kernel_stream stream);

size_t attention_cublas_workspace_bytes(const void *args);
int attention_cublas_prepare(const void *args, void **state);
void attention_cublas_release(void *state);
int attention_cublas_run(const void *args, void *workspace, void *state, kernel_stream stream);

const char *attention_tiled_unsupported(const void *args);
int attention_tiled_run(const void *args, void *workspace, void *state, kernel_stream stream);

const char *attention_mma_unsupported(const void *args);
int attention_mma_run(const void *args, void *workspace, void *state, kernel_stream stream);

const char *attention_short_unsupported(const void *args);
int attention_short_run(const void *args, void *workspace, void *state, kernel_stream stream);

/* For both passes: why not, if this GPU or this build has no wgmma or wgmma does
 * not take the shape, or NULL. */
const char *attention_wgmma_unsupported_shape(const attention_shape &shape);
const char *attention_wgmma_unsupported(const void *args);
int attention_wgmma_prepare(const void *args, void **state);
void attention_wgmma_release(void *state);
int attention_wgmma_run(const void *args, void *workspace, void *state, kernel_stream stream);

size_t attention_backward_naive_workspace_bytes(const void *args);
int attention_backward_naive_run(const void *args, void *workspace, void *state,
                                 kernel_stream stream);

size_t attention_backward_cublas_workspace_bytes(const void *args);
int attention_backward_cublas_run(const void *args, void *workspace, void *state,
                                  kernel_stream stream);

const char *attention_backward_tiled_unsupported(const void *args);
size_t attention_backward_tiled_workspace_bytes(const void *args);
int attention_backward_tiled_run(const void *args, void *workspace, void *state,
                                 kernel_stream stream);

const char *attention_backward_mma_unsupported(const void *args);
size_t attention_backward_mma_workspace_bytes(const void *args);
size_t attention_backward_mma_atomic_workspace_bytes(const void *args);
size_t attention_backward_wgmma_workspace_bytes(const void *args);
int attention_backward_mma_run(const void *args, void *workspace, void *state,
                               kernel_stream stream);
int attention_backward_mma_atomic_run(const void *args, void *workspace, void *state,
                                      kernel_stream stream);

const char *attention_backward_wgmma_unsupported(const void *args);
int attention_backward_wgmma_run(const void *args, void *workspace, void *state,
                                 kernel_stream stream);

inline bool attention_is_valid(const attention_shape &s)
{
    return s.batch > 0 && s.heads > 0 && s.tokens > 0 && s.head_dim > 0;
}

/* Whether so many blocks fit the x dimension of a grid. Grids here are one
 * dimensional, because y and z end at 65535. */
inline bool attention_fits_grid(int64_t blocks)
{
    return blocks <= INT32_MAX;
}

/* The product of positive factors, SIZE_MAX if it does not fit. */
inline size_t attention_bytes(std::initializer_list<int64_t> factors)
{
    size_t bytes = 1;
    for (int64_t factor : factors) {
        if (bytes > SIZE_MAX / static_cast<size_t>(factor)) return SIZE_MAX;
        bytes *= static_cast<size_t>(factor);
    }
    return bytes;
}

/* Why a kernel that moves 16 bytes at a time and counts those between rows in an
 * int does not take the strides, or NULL. */
inline const char *attention_strides_unsupported(attention_strides qkv, attention_strides out)
{
    for (attention_strides s : {qkv, out}) {
        if (!s.batch && !s.head && !s.token) continue;
        for (int64_t stride : {s.batch, s.head, s.token})
            if (stride <= 0 || stride % 8 != 0) return "strides must be positive multiples of 8";
        if (s.token > INT32_MAX / 2) return "takes rows that are less than 2 GiB apart";
    }
    return nullptr;
}

/* Whether so many blocks give every multiprocessor of the current device one. */
inline cudaError_t attention_fills_device(int64_t blocks, bool *fills)
{
    int device, multiprocessors;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess) *fills = blocks >= multiprocessors;
    return error;
}

inline float attention_scale(const attention_shape &s)
{
    return static_cast<float>(1.0 / sqrt(static_cast<double>(s.head_dim)));
}

__device__ __forceinline__ float to_f32(float value) { return value; }
__device__ __forceinline__ float to_f32(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_f32(__nv_bfloat16 value) { return __bfloat162float(value); }

/* Rounds to nearest even. */
__device__ __forceinline__ void from_f32(float value, float *dst) { *dst = value; }
__device__ __forceinline__ void from_f32(float value, __half *dst)
{
    *dst = __float2half_rn(value);
}

__device__ __forceinline__ void from_f32(float value, __nv_bfloat16 *dst)
{
    *dst = __float2bfloat16_rn(value);
}

/* The largest of a row over the four lanes that share it. */
__device__ __forceinline__ float quad_max(float value)
{
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value)
{
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

#endif
