/*
 * row.cuh - what kernels over the rows of a matrix share: elements of any
 * dtype moved 16 bytes or one element at a time, as f32, and reductions over
 * a warp or a block.
 */
#ifndef KERNEL_ROW_CUH
#define KERNEL_ROW_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "ceil_div.cuh"

/* Of `blocks` as many as a multiprocessor has threads for: 2048 on 8.0, 9.0 and
 * 10.0, 1024 on 7.5, 1536 on the others. For __launch_bounds__, which takes no more. */
constexpr int row_resident_blocks(int threads, int blocks)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || \
    (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1100)
    constexpr int MOST_THREADS = 2048;
#elif __CUDA_ARCH__ >= 860
    constexpr int MOST_THREADS = 1536;
#else
    constexpr int MOST_THREADS = 1024;
#endif
    return blocks * threads <= MOST_THREADS ? blocks : MOST_THREADS / threads;
}

/* Elements of T in 16 bytes. */
template <typename T> constexpr int ROW_PER_16_BYTES = 16 / sizeof(T);

/* `COUNT` elements of T as one access: `raw` is what a load returns and a store
 * takes. unpack gives f32, pack rounds to nearest even. COUNT is
 * ROW_PER_16_BYTES<T>, for addresses that are multiples of 16, or 1. */
template <typename T, int COUNT> struct row_access;

template <> struct row_access<float, 4> {
    using raw = float4;
    static __device__ __forceinline__ void unpack(raw value, float (&out)[4])
    {
        out[0] = value.x, out[1] = value.y, out[2] = value.z, out[3] = value.w;
    }
    static __device__ __forceinline__ raw pack(const float (&in)[4])
    {
        return make_float4(in[0], in[1], in[2], in[3]);
    }
};

template <> struct row_access<float, 1> {
    using raw = float;
    static __device__ __forceinline__ void unpack(raw value, float (&out)[1]) { out[0] = value; }
    static __device__ __forceinline__ raw pack(const float (&in)[1]) { return in[0]; }
};

/* Two elements of 16 bits as one word. */
template <typename T> struct row_pair;

/* A bf16 is the upper half of an f32, so each word of two unpacks by a shift
 * and a mask. */
template <> struct row_pair<__nv_bfloat16> {
    static __device__ __forceinline__ void unpack(uint32_t word, float &low, float &high)
    {
        low = __uint_as_float(word << 16);
        high = __uint_as_float(word & 0xffff0000u);
    }
    static __device__ __forceinline__ uint32_t pack(float low, float high)
    {
        __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&pair);
    }
};

template <> struct row_pair<__half> {
    static __device__ __forceinline__ void unpack(uint32_t word, float &low, float &high)
    {
        float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&word));
        low = pair.x;
        high = pair.y;
    }
    static __device__ __forceinline__ uint32_t pack(float low, float high)
    {
        __half2 pair = __floats2half2_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&pair);
    }
};

template <typename T> struct row_access<T, 8> {
    using raw = uint4;
    using pair = row_pair<T>;
    static __device__ __forceinline__ void unpack(raw value, float (&out)[8])
    {
        pair::unpack(value.x, out[0], out[1]);
        pair::unpack(value.y, out[2], out[3]);
        pair::unpack(value.z, out[4], out[5]);
        pair::unpack(value.w, out[6], out[7]);
    }
    static __device__ __forceinline__ raw pack(const float (&in)[8])
    {
        return make_uint4(pair::pack(in[0], in[1]), pair::pack(in[2], in[3]),
                          pair::pack(in[4], in[5]), pair::pack(in[6], in[7]));
    }
};

template <> struct row_access<__nv_bfloat16, 1> {
    using raw = __nv_bfloat16;
    static __device__ __forceinline__ void unpack(raw value, float (&out)[1])
    {
        out[0] = __bfloat162float(value);
    }
    static __device__ __forceinline__ raw pack(const float (&in)[1])
    {
        return __float2bfloat16_rn(in[0]);
    }
};

template <> struct row_access<__half, 1> {
    using raw = __half;
    static __device__ __forceinline__ void unpack(raw value, float (&out)[1])
    {
        out[0] = __half2float(value);
    }
    static __device__ __forceinline__ raw pack(const float (&in)[1])
    {
        return __float2half_rn(in[0]);
    }
};

/* Access number `index` of a row: elements index * COUNT and on. Of memory that
 * the kernel does not write: the compiler may move the load across stores. */
template <int COUNT, typename T>
__device__ __forceinline__ typename row_access<T, COUNT>::raw row_load(const T *row, int64_t index)
{
    return __ldg(reinterpret_cast<const typename row_access<T, COUNT>::raw *>(row) + index);
}

/* The same of memory that another kernel may still write when this one starts: the load
 * stays behind the wait for that. */
template <int COUNT, typename T>
__device__ __forceinline__ typename row_access<T, COUNT>::raw row_load_written(const T *row,
                                                                               int64_t index)
{
    return reinterpret_cast<const typename row_access<T, COUNT>::raw *>(row)[index];
}

template <int COUNT, typename T>
__device__ __forceinline__ void row_store(T *row, int64_t index,
                                          typename row_access<T, COUNT>::raw value)
{
    reinterpret_cast<typename row_access<T, COUNT>::raw *>(row)[index] = value;
}

/* Element `index` of a row, as f32. */
template <typename T> __device__ __forceinline__ float row_get(const T *row, int64_t index)
{
    float value[1];
    row_access<T, 1>::unpack(row[index], value);
    return value[0];
}

template <typename T> __device__ __forceinline__ void row_set(T *row, int64_t index, float value)
{
    const float values[1] = {value};
    row[index] = row_access<T, 1>::pack(values);
}

/* ---- reductions -------------------------------------------------------- */

__device__ __forceinline__ float row_exchange(float value, int lane_mask)
{
    return __shfl_xor_sync(0xffffffffu, value, lane_mask);
}

__device__ __forceinline__ float2 row_exchange(float2 value, int lane_mask)
{
    return make_float2(row_exchange(value.x, lane_mask), row_exchange(value.y, lane_mask));
}

struct row_addition {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
    __device__ __forceinline__ float2 operator()(float2 a, float2 b) const
    {
        return make_float2(a.x + b.x, a.y + b.y);
    }
};

struct row_maximum {
    __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/* Over each group of LANES neighbouring lanes (a power of two); every lane
 * gets the same bits if operation commutes. All 32 lanes of the warp call. */
template <int LANES = 32, typename Value, typename Operation>
__device__ __forceinline__ Value row_reduce_warp(Value value, Operation operation)
{
#pragma unroll
    for (int mask = LANES / 2; mask > 0; mask /= 2)
        value = operation(value, row_exchange(value, mask));
    return value;
}

/* Over a block of THREADS, a power of two; every thread gets the same bits.
 * warps is shared memory, which the next call must not use unless a barrier
 * stands between. A block of one warp neither waits nor uses it. */
template <int THREADS, typename Value, typename Operation>
__device__ __forceinline__ Value row_reduce_block(Value value, Operation operation, Value *warps)
{
    constexpr int WARPS = THREADS / 32;
    value = row_reduce_warp(value, operation);
    if (WARPS == 1) return value;
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    return row_reduce_warp<WARPS>(warps[threadIdx.x % WARPS], operation);
}

/* ---- launches ---------------------------------------------------------- */

/* Whether so many blocks fit the x dimension of a grid, the only one used
 * here, because y and z end at 65535. */
inline bool row_fits_grid(int64_t blocks)
{
    return blocks <= INT32_MAX;
}

#endif
