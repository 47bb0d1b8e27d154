/*
 * tiled.cuh - what the attention variants that tile for the CUDA
 * cores share: f32 tiles of any dtype's rows in shared memory.
 */
#ifndef ATTENTION_TILED_CUH
#define ATTENTION_TILED_CUH

#include "attention.cuh"

/* Four consecutive elements as f32, by one load of 16 or 8 bytes. */
__device__ __forceinline__ float4 load_four(const float *src)
{
    return *reinterpret_cast<const float4 *>(src);
}

template <typename T>
__device__ __forceinline__ float4 load_four(const T *src)
{
    uint2 raw = *reinterpret_cast<const uint2 *>(src);
    const T *e = reinterpret_cast<const T *>(&raw);
    return make_float4(to_f32(e[0]), to_f32(e[1]), to_f32(e[2]), to_f32(e[3]));
}

/* Elements [column, column + 4) of a row of `dim`; 0 beyond its end. */
template <typename T>
__device__ __forceinline__ float4 load_guarded(const T *row, int column, int dim)
{
    float e[4];
#pragma unroll
    for (int i = 0; i < 4; i++) e[i] = column + i < dim ? to_f32(row[column + i]) : 0.0f;
    return make_float4(e[0], e[1], e[2], e[3]);
}

/* tile = factor * COUNT rows from `first` of a head's [tokens, head_dim], by a
 * block of THREADS; rows at or beyond `tokens` and columns at or beyond
 * head_dim become 0. EXACT: head_dim is D. */
template <int THREADS, int D, bool EXACT, int COUNT, int STRIDE, typename T>
__device__ __forceinline__ void load_tile(float (&tile)[COUNT][STRIDE], const T *head,
                                          int64_t first, int64_t tokens, int head_dim,
                                          float factor)
{
    constexpr int FOURS = D / 4;
    const int dim = EXACT ? D : head_dim;
#pragma unroll 4
    for (int e = threadIdx.x; e < COUNT * FOURS; e += THREADS) {
        int row = e / FOURS, column = e % FOURS * 4;
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (first + row < tokens) {
            const T *source = head + (first + row) * dim;
            x = EXACT ? load_four(source + column) : load_guarded(source, column, dim);
        }
        *reinterpret_cast<float4 *>(&tile[row][column]) =
            make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
    }
}

__device__ __forceinline__ float dot4(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

#endif
