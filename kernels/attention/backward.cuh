/*
 * backward.cuh - what the backward kernels on the tensor cores share:
 * their arguments, and the small kernels before and after them. The first gives
 * each row two numbers, {-lse log2(e), delta}; the last rounds the sums of dq,
 * if they were added up in memory.
 */
#ifndef ATTENTION_BACKWARD_CUH
#define ATTENTION_BACKWARD_CUH

#include "mma.cuh"

constexpr int BACKWARD_PADDING = 128; /* rows per head are rounded up to it in the workspace */

struct backward_arguments {
    const void *q, *k, *v, *out, *dout;
    const float *lse;
    void *dq, *dk, *dv;
    float2 *rows;        /* workspace: {-lse log2(e), delta}; 0 for padding */
    bool rows_are_apart; /* of 64 rows all the first numbers, then the second ones */
    float *dq_sums;      /* workspace, or NULL: dq / scale; see dq_sums_of */
    unsigned *taken;     /* workspace, or NULL: how many blocks of keys have been taken */
    int counts;          /* so many from there on are zeroed, no more than there are rows */
    tensor_pitches qkv_pitches, out_pitches; /* of the gradients too */
    int64_t tokens, padded_tokens;
    float scale, log2_scale; /* scores times log2_scale are exponents of 2 */
};

__device__ __forceinline__ const char *operand_at(const void *operand, int64_t offset)
{
    return static_cast<const char *>(operand) + offset;
}

__device__ __forceinline__ char *result_at(void *result, int64_t offset)
{
    return static_cast<char *>(result) + offset;
}

__device__ __forceinline__ int rows_left(int64_t tokens, int64_t first, int limit)
{
    return static_cast<int>(min(tokens - first, int64_t(limit)));
}

/* dq's sums of 16 rows from `row` (a multiple of 16) of a head, and of them the 8 columns
 * of `group`: 128 floats, four of each lane in turn, two columns of its row and two of the
 * eighth behind that. */
template <int D>
__device__ __forceinline__ float *dq_sums_of(const backward_arguments &a, unsigned head,
                                             int64_t row, int group, int lane)
{
    int64_t tile = (head * a.padded_tokens + row) / 16;
    return a.dq_sums + (tile * (D / 8) + group) * 128 + lane * 4;
}

/* ---- rows -------------------------------------------------------------- */

constexpr int ROW_LANES = 8;
constexpr int ROWS_THREADS = 256;
constexpr int ROWS_PER_BLOCK = ROWS_THREADS / ROW_LANES;

template <typename T>
__device__ __forceinline__ float dot_chunk(const char *x, const char *y)
{
    uint4 raw_x = *reinterpret_cast<const uint4 *>(x), raw_y = *reinterpret_cast<const uint4 *>(y);
    const T *a = reinterpret_cast<const T *>(&raw_x), *b = reinterpret_cast<const T *>(&raw_y);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) sum = fmaf(to_f32(a[i]), to_f32(b[i]), sum);
    return sum;
}

constexpr int ROWS_APART = 64;

__device__ __forceinline__ void store_numbers(const backward_arguments &a, int64_t row,
                                              float2 numbers)
{
    if (!a.rows_are_apart) {
        a.rows[row] = numbers;
        return;
    }
    float *first = reinterpret_cast<float *>(a.rows + row / ROWS_APART * ROWS_APART);
    first[row % ROWS_APART] = numbers.x;
    first[ROWS_APART + row % ROWS_APART] = numbers.y;
}

/* Eight threads a row: its two numbers, and zeros for its share of dq's sums and
 * for the counts of blocks. */
template <typename T, int D>
__global__ void __launch_bounds__(ROWS_THREADS)
    rows_kernel(const __grid_constant__ backward_arguments a)
{
    ptx_let_kernel_behind_start();
    int lane = threadIdx.x % ROW_LANES;
    unsigned blocks = static_cast<unsigned>(a.padded_tokens / ROWS_PER_BLOCK); /* of a head */
    unsigned head = blockIdx.x / blocks, in_block = threadIdx.x / ROW_LANES;
    int64_t index = int64_t(blockIdx.x) * ROWS_PER_BLOCK + in_block;
    int64_t token = int64_t(blockIdx.x % blocks) * ROWS_PER_BLOCK + in_block;
    int64_t row = a.out_pitches.to_head(head) + token * a.out_pitches.token;
    bool inside = token < a.tokens;
    float delta = 0.0f, lse = 0.0f;
    if (inside) {
        lse = a.lse[head * a.tokens + token];
#pragma unroll
        for (int chunk = lane; chunk < D / 8; chunk += ROW_LANES)
            delta += dot_chunk<T>(operand_at(a.out, row + chunk * 16),
                                  operand_at(a.dout, row + chunk * 16));
    }
#pragma unroll
    for (int other = ROW_LANES / 2; other > 0; other /= 2)
        delta += __shfl_xor_sync(0xffffffffu, delta, other);
    if (lane == 0) store_numbers(a, index, {-lse * ATTENTION_LOG2_E, delta});
    if (a.dq_sums)
#pragma unroll
        for (int column = lane * 4; column < D; column += ROW_LANES * 4)
            *reinterpret_cast<float4 *>(a.dq_sums + index * D + column) = float4();
    if (a.taken && index < a.counts && lane == 0) a.taken[index] = 0;
}

/* ---- dq from its sums --------------------------------------------------- */

constexpr int ROUND_ROWS = 32;
static_assert(BACKWARD_PADDING % ROUND_ROWS == 0 && BACKWARD_PADDING % ROWS_PER_BLOCK == 0,
              "no block's rest");

template <int D> constexpr int round_threads = ROUND_ROWS / 16 * D;

/* Eight columns of a row, from the sums of four lanes and `half` of each. */
template <typename T>
__device__ __forceinline__ uint4 round_row(const float4 (&sums)[4], int half, float scale)
{
    uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = half == 0 ? ptx_pack(scale * sums[i].x, scale * sums[i].y, T())
                             : ptx_pack(scale * sums[i].z, scale * sums[i].w, T());
    return {pairs[0], pairs[1], pairs[2], pairs[3]};
}

/* D threads for 16 rows, the padding among them; of each thread eight columns of two rows:
 * it reads 64 bytes that lie together, and neighbours write to one row, 16 bytes each. */
template <typename T, int D>
__global__ void __launch_bounds__(round_threads<D>)
    round_kernel(const __grid_constant__ backward_arguments a)
{
#if BUILT_FOR_MMA
    ptx_wait_for_kernel_before();
    unsigned blocks = static_cast<unsigned>(a.padded_tokens / ROUND_ROWS); /* of a head */
    unsigned head = blockIdx.x / blocks;
    int64_t first = int64_t(blockIdx.x % blocks) * ROUND_ROWS + threadIdx.x / D * 16;
    int row = threadIdx.x % D / (D / 8), group = threadIdx.x % (D / 8);
    int left = rows_left(a.tokens, first, 16);
    if (row >= left) return;
    const float *from = dq_sums_of<D>(a, head, first, group, row * 4);
    float4 sums[4];
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] = reinterpret_cast<const float4 *>(from)[i];
    int64_t pitch = a.qkv_pitches.token;
    char *target =
        result_at(a.dq, a.qkv_pitches.to_head(head) + (first + row) * pitch + group * 16);
    *reinterpret_cast<uint4 *>(target) = round_row<T>(sums, 0, a.scale);
    if (row + 8 < left)
        *reinterpret_cast<uint4 *>(target + 8 * pitch) = round_row<T>(sums, 1, a.scale);
#endif
}

/* ---- launches ------------------------------------------------------------ */

/* Launches `kernel` with `shared_bytes` of dynamic shared memory. */
template <typename Arguments>
int backward_launch(void (*kernel)(Arguments), int64_t blocks, int threads, int shared_bytes,
                    const Arguments &a, kernel_stream stream)
{
    if (!attention_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    kernel<<<static_cast<unsigned>(blocks), threads, shared_bytes, stream>>>(a);
    return cudaGetLastError();
}

template <typename T, int D>
int backward_launch_rows(const backward_arguments &a, int64_t heads, kernel_stream stream)
{
    return backward_launch(rows_kernel<T, D>, heads * (a.padded_tokens / ROWS_PER_BLOCK),
                           ROWS_THREADS, 0, a, stream);
}

template <typename T, int D>
int backward_launch_round(const backward_arguments &a, int64_t heads, kernel_stream stream)
{
    return backward_launch(round_kernel<T, D>, heads * (a.padded_tokens / ROUND_ROWS),
                           round_threads<D>, 0, a, stream);
}

inline int64_t backward_padded(int64_t tokens)
{
    return ceil_div(tokens, BACKWARD_PADDING) * BACKWARD_PADDING;
}

/* The workspace holds the rows' numbers, and with_sums the sums of dq. */
inline size_t backward_workspace_bytes(const attention_shape &s, bool with_sums)
{
    if (!attention_is_valid(s)) return 0;
    int64_t sums_bytes = with_sums ? s.head_dim * int64_t(sizeof(float)) : 0;
    return attention_bytes({s.batch, s.heads, backward_padded(s.tokens),
                            int64_t(sizeof(float2)) + sums_bytes});
}

inline backward_arguments backward_arguments_of(const attention_backward_args &args,
                                                void *workspace, bool with_sums)
{
    const attention_shape &s = args.shape;
    backward_arguments a = {};
    a.q = args.q, a.k = args.k, a.v = args.v, a.out = args.out, a.dout = args.dout;
    a.lse = args.lse;
    a.dq = args.dq, a.dk = args.dk, a.dv = args.dv;
    a.qkv_pitches = pitches_of(s, args.qkv_strides);
    a.out_pitches = pitches_of(s, args.out_strides);
    a.tokens = s.tokens;
    a.padded_tokens = backward_padded(s.tokens);
    a.rows = static_cast<float2 *>(workspace);
    if (with_sums)
        a.dq_sums = reinterpret_cast<float *>(a.rows + s.batch * s.heads * a.padded_tokens);
    a.scale = attention_scale(s);
    a.log2_scale = a.scale * ATTENTION_LOG2_E;
    return a;
}

#endif
