/*
 * heads.cu - rows of tokens to heads and back.
 *
 * 1. heads_kernel  a block a token, a thread for each 16 bytes of its row: the
 *                  row is read (or written) in order, a head's part of it, 128
 *                  bytes at head_dim 64, goes to (or comes from) its head.
 *
 * Teaches what the layout between a linear layer and attention costs: q, k and
 * v are read and written once more, at the speed of memory. Bound by bandwidth.
 *
 * Padding lets a kernel for head_dim 128 do 80: zeros add nothing to a score,
 * and the factor on q makes up for the other square root in its scale.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "block.cuh"

namespace {

constexpr int THREADS = 128;

template <typename T, int N>
struct alignas(sizeof(T) * N) lanes {
    T at[N];
};

/* Dimensions in vectors of N elements. */
template <typename T, int N>
struct typed_move {
    unsigned tokens, heads, dim, padded_dim, parts;
    float first_factor;
    lanes<T, N> *rows, *first, *second, *third;
};

template <typename T, int N>
__device__ __forceinline__ lanes<T, N> scale(lanes<T, N> value, float factor)
{
#pragma unroll
    for (int n = 0; n < N; n++) value.at[n] = T(static_cast<float>(value.at[n]) * factor);
    return value;
}

template <typename T, int N, bool SPLITS>
__global__ void __launch_bounds__(THREADS) heads_kernel(typed_move<T, N> m)
{
    unsigned batch = blockIdx.x / m.tokens, token = blockIdx.x % m.tokens;
    unsigned chunks = SPLITS ? m.padded_dim : m.dim;
    int64_t row = static_cast<int64_t>(blockIdx.x) * m.parts * m.heads;
    for (unsigned i = threadIdx.x; i < m.parts * m.heads * chunks; i += THREADS) {
        unsigned line = i / chunks, chunk = i % chunks; /* of parts and heads together */
        unsigned part = line / m.heads, head = line % m.heads;
        lanes<T, N> *of_part = part == 0 ? m.first : part == 1 ? m.second : m.third;
        int64_t head_row = (static_cast<int64_t>(batch) * m.heads + head) * m.tokens + token;
        lanes<T, N> *by_head = of_part + head_row * m.padded_dim + chunk;
        lanes<T, N> *by_row = m.rows + (row + line) * m.dim + chunk;
        lanes<T, N> value = {};
        if (chunk < m.dim) value = SPLITS ? *by_row : *by_head;
        if (part == 0 && m.first_factor != 1.0f) value = scale(value, m.first_factor);
        *(SPLITS ? by_head : by_row) = value;
    }
}

template <typename T, int N>
int launch(const part_heads &b, kernel_stream stream)
{
    auto of = [](void *memory) { return static_cast<lanes<T, N> *>(memory); };
    typed_move<T, N> m = {.tokens = static_cast<unsigned>(b.tokens),
                          .heads = static_cast<unsigned>(b.heads),
                          .dim = static_cast<unsigned>(b.head_dim / N),
                          .padded_dim = static_cast<unsigned>(b.padded_dim / N),
                          .parts = static_cast<unsigned>(b.parts),
                          .first_factor = b.first_factor,
                          .rows = of(b.rows),
                          .first = of(b.heads_of[0]),
                          .second = of(b.heads_of[1]),
                          .third = of(b.heads_of[2])};
    unsigned blocks = static_cast<unsigned>(b.batch * b.tokens);
    if (b.splits)
        heads_kernel<T, N, true><<<blocks, THREADS, 0, stream>>>(m);
    else
        heads_kernel<T, N, false><<<blocks, THREADS, 0, stream>>>(m);
    return cudaGetLastError();
}

/* Vectors of 16 bytes where each head starts with one. */
template <typename T>
int choose_lanes(const part_heads &b, kernel_stream stream)
{
    constexpr int LANES = 16 / sizeof(T);
    bool whole = b.head_dim % LANES == 0 && b.padded_dim % LANES == 0;
    return whole ? launch<T, LANES>(b, stream) : launch<T, 1>(b, stream);
}

} // namespace

/* A grid's blocks and a row's elements are 32-bit numbers. */
int block_move_heads(const part_heads &b, kernel_stream stream)
{
    if (b.tokens > INT32_MAX / b.batch) return KERNEL_ERROR_ARGUMENT;
    if (b.padded_dim > INT32_MAX / (3 * b.heads)) return KERNEL_ERROR_ARGUMENT;
    switch (b.dtype) {
    case KERNEL_F32: return choose_lanes<float>(b, stream);
    case KERNEL_F16: return choose_lanes<__half>(b, stream);
    case KERNEL_BF16: return choose_lanes<__nv_bfloat16>(b, stream);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
