/*
 * backward_tiled.cu - attention backward on the CUDA cores, no score
 * in memory.
 *
 * 1. tiled  A small kernel gives each row {-lse log2(e), delta}; then one kernel
 *           runs twice (Dao, "FlashAttention-2", 2023, algorithm 2, with dq
 *           taken out). A block owns 64 rows of one side and walks over tiles of
 *           32 rows of the other, the visitors: as owner of keys it sums dk and
 *           dv, as owner of queries dq, and nothing is added across blocks. Both
 *           times probabilities and gradients are computed again from lse: seven
 *           products instead of five. A thread owns 4 rows and a sixteenth of
 *           the columns; the sums stay in its registers.
 *
 * Teaches: that dk and dq are one kernel with its operands exchanged, and what
 * determinism costs: 2 products in 7. Bound by the f32 rate of the CUDA cores;
 * f16 and bf16 are converted on load and gain nothing. Takes any head_dim to
 * 256: a dimension other than 64, 128 and 256 pays for the next of them.
 */
#include "tiled.cuh"
#include "../common/ptx.cuh"

namespace {

constexpr int VISITORS = 32;                       /* rows of a visiting tile */
constexpr int COLUMN_THREADS = 16;                 /* threads that share owners */
constexpr int ROW_THREADS = 16;
constexpr int THREADS = COLUMN_THREADS * ROW_THREADS;
constexpr int THREAD_VISITORS = VISITORS / COLUMN_THREADS;
constexpr int PAD = 4;                             /* floats: spreads rows over the banks */

struct arguments {
    const void *q, *k, *v, *out, *dout;
    const float *lse;
    void *dq, *dk, *dv;
    float2 *rows; /* workspace, [batch, heads, tokens]: {-lse log2(e), delta} */
    int64_t tokens, all_rows;
    int owner_blocks; /* per head */
    int head_dim;
    int causal;
    float scale, log2_scale; /* scores times log2_scale are exponents of 2 */
};

/* Rows that a block owns. D is head_dim padded to 64, 128 or 256. */
template <int D>
constexpr int OWNERS = D > 128 ? 32 : 64;

template <int D>
constexpr int THREAD_OWNERS = OWNERS<D> / ROW_THREADS; /* side by side */

template <int D>
using owner_tile = float[OWNERS<D>][D + PAD];

template <int D>
using visitor_tile = float[VISITORS][D + PAD];

template <int D>
using pair_tile = float[VISITORS][OWNERS<D> + PAD];

template <int D>
struct shared_tiles {
    owner_tile<D> owner_x, owner_y;       /* k and v, or q and dout */
    visitor_tile<D> visitor_x, visitor_y; /* the other two */
    pair_tile<D> probabilities, gradients;
};

template <int D>
using pair_values = float[THREAD_OWNERS<D>][THREAD_VISITORS];

/* Of the thread's owners, columns 64 c + 4 column_thread() + 0..3. */
template <int D>
using owner_sums = float[THREAD_OWNERS<D>][D / 64][4];

__device__ __forceinline__ int row_thread() { return threadIdx.x / COLUMN_THREADS; }
__device__ __forceinline__ int column_thread() { return threadIdx.x % COLUMN_THREADS; }

/* ---- rows -------------------------------------------------------------- */

/* A warp a row. */
template <typename T>
__global__ void __launch_bounds__(THREADS) rows_kernel(const __grid_constant__ arguments a)
{
    int lane = threadIdx.x % 32;
    int64_t row = int64_t(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
    if (row >= a.all_rows) return;
    const T *out = static_cast<const T *>(a.out) + row * a.head_dim;
    const T *dout = static_cast<const T *>(a.dout) + row * a.head_dim;
    float delta = 0.0f;
    for (int c = lane; c < a.head_dim; c += 32)
        delta = fmaf(to_f32(out[c]), to_f32(dout[c]), delta);
#pragma unroll
    for (int other = 16; other > 0; other /= 2)
        delta += __shfl_xor_sync(0xffffffffu, delta, other);
    if (lane == 0) a.rows[row] = make_float2(-a.lse[row] * ATTENTION_LOG2_E, delta);
}

/* ---- gradients ---------------------------------------------------------- */

/* values = the products of the thread's owners with its visitors,
 * column_thread() + 16 j. */
template <int D>
__device__ __forceinline__ void multiply_rows(const owner_tile<D> &owners,
                                              const visitor_tile<D> &visitors,
                                              pair_values<D> &values)
{
#pragma unroll
    for (int i = 0; i < THREAD_OWNERS<D>; i++)
#pragma unroll
        for (int j = 0; j < THREAD_VISITORS; j++) values[i][j] = 0.0f;
#pragma unroll 2
    for (int c = 0; c < D; c += 4) {
        float4 visitor[THREAD_VISITORS];
#pragma unroll
        for (int j = 0; j < THREAD_VISITORS; j++)
            visitor[j] = load_four(&visitors[column_thread() + COLUMN_THREADS * j][c]);
#pragma unroll
        for (int i = 0; i < THREAD_OWNERS<D>; i++) {
            float4 owner = load_four(&owners[row_thread() * THREAD_OWNERS<D> + i][c]);
#pragma unroll
            for (int j = 0; j < THREAD_VISITORS; j++)
                values[i][j] = dot4(owner, visitor[j], values[i][j]);
        }
    }
}

/* The pairs' probabilities and gradients, from their scores and dp, into
 * shared memory. rows: the head's; a query beyond the last has zeros in every
 * operand and takes part as one that gives nothing. */
template <int D, bool OWNS_KEYS>
__device__ __forceinline__ void store_pairs(shared_tiles<D> &tiles, const pair_values<D> &scores,
                                            const pair_values<D> &dp, const float2 *rows,
                                            int64_t first_owner, int64_t first_visitor,
                                            const arguments &a)
{
#pragma unroll
    for (int j = 0; j < THREAD_VISITORS; j++)
#pragma unroll
        for (int i = 0; i < THREAD_OWNERS<D>; i++) {
            int owner = row_thread() * THREAD_OWNERS<D> + i;
            int visitor = column_thread() + COLUMN_THREADS * j;
            int64_t key = OWNS_KEYS ? first_owner + owner : first_visitor + visitor;
            int64_t query = OWNS_KEYS ? first_visitor + visitor : first_owner + owner;
            float2 row = query < a.tokens ? rows[query] : make_float2(0.0f, 0.0f);
            bool is_hidden = key >= a.tokens || (a.causal && key > query);
            float p = is_hidden ? 0.0f : ptx_exp2(fmaf(scores[i][j], a.log2_scale, row.x));
            tiles.probabilities[visitor][owner] = p;
            tiles.gradients[visitor][owner] = p * (dp[i][j] - row.y);
        }
}

/* sums += values^T rows, of the thread's owners and columns: values has a row
 * per visitor. */
template <int D>
__device__ __forceinline__ void add_products(const pair_tile<D> &values,
                                             const visitor_tile<D> &rows, owner_sums<D> &sums)
{
#pragma unroll 4
    for (int visitor = 0; visitor < VISITORS; visitor++) {
        float value[THREAD_OWNERS<D>];
#pragma unroll
        for (int i = 0; i < THREAD_OWNERS<D>; i += 2) {
            const float *two = &values[visitor][row_thread() * THREAD_OWNERS<D> + i];
            float2 x = *reinterpret_cast<const float2 *>(two);
            value[i] = x.x, value[i + 1] = x.y;
        }
#pragma unroll
        for (int c = 0; c < D / 64; c++) {
            float4 row = load_four(&rows[visitor][c * 64 + column_thread() * 4]);
#pragma unroll
            for (int i = 0; i < THREAD_OWNERS<D>; i++) {
                float(&sum)[4] = sums[i][c];
                sum[0] = fmaf(value[i], row.x, sum[0]);
                sum[1] = fmaf(value[i], row.y, sum[1]);
                sum[2] = fmaf(value[i], row.z, sum[2]);
                sum[3] = fmaf(value[i], row.w, sum[3]);
            }
        }
    }
}

template <int D, bool EXACT, typename T>
__device__ __forceinline__ void store_sums(T *head, int64_t first_owner, const arguments &a,
                                           float factor, const owner_sums<D> &sums)
{
    const int dim = EXACT ? D : a.head_dim;
#pragma unroll
    for (int i = 0; i < THREAD_OWNERS<D>; i++) {
        int64_t owner = first_owner + row_thread() * THREAD_OWNERS<D> + i;
        if (owner >= a.tokens) continue;
#pragma unroll
        for (int c = 0; c < D / 64; c++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int column = c * 64 + column_thread() * 4 + e;
                if (EXACT || column < dim)
                    from_f32(factor * sums[i][c][e], head + owner * dim + column);
            }
    }
}

/* The visitors of a block that owns rows from first_owner on. */
struct visitor_range {
    int64_t begin, end;
};

template <bool OWNS_KEYS>
__device__ __forceinline__ visitor_range visitors_of(const arguments &a, int64_t first_owner,
                                                     int owners)
{
    if (!a.causal) return {0, a.tokens};
    return OWNS_KEYS ? visitor_range{first_owner, a.tokens}
                     : visitor_range{0, min(first_owner + owners, a.tokens)};
}

/* Grid: blocks of a head side by side, so that they share the visitors in the
 * L2 cache; of causal blocks the longest first, for a short tail. As many
 * blocks a multiprocessor as its shared memory holds without spilling. */
template <typename T, int D, bool EXACT, bool OWNS_KEYS>
__global__ void __launch_bounds__(THREADS, D > 64 ? 1 : 2)
owners_kernel(const __grid_constant__ arguments a)
{
    extern __shared__ __align__(16) char memory[];
    shared_tiles<D> &tiles = *reinterpret_cast<shared_tiles<D> *>(memory);
    int64_t head = blockIdx.x / a.owner_blocks, block = blockIdx.x % a.owner_blocks;
    if (!OWNS_KEYS) block = a.owner_blocks - 1 - block;
    int64_t offset = head * a.tokens * (EXACT ? D : a.head_dim), first_owner = block * OWNERS<D>;
    const T *q = static_cast<const T *>(a.q) + offset, *k = static_cast<const T *>(a.k) + offset;
    const T *v = static_cast<const T *>(a.v) + offset;
    const T *dout = static_cast<const T *>(a.dout) + offset;
    owner_sums<D> x_sums = {}, y_sums = {};
    load_tile<THREADS, D, EXACT>(tiles.owner_x, OWNS_KEYS ? k : q, first_owner, a.tokens,
                                 a.head_dim, 1.0f);
    load_tile<THREADS, D, EXACT>(tiles.owner_y, OWNS_KEYS ? v : dout, first_owner, a.tokens,
                                 a.head_dim, 1.0f);
    visitor_range range = visitors_of<OWNS_KEYS>(a, first_owner, OWNERS<D>);
#pragma unroll 1
    for (int64_t visitor = range.begin; visitor < range.end; visitor += VISITORS) {
        pair_values<D> scores, dp;
        __syncthreads(); /* the last tile's readers are done */
        load_tile<THREADS, D, EXACT>(tiles.visitor_x, OWNS_KEYS ? q : k, visitor, a.tokens,
                                     a.head_dim, 1.0f);
        load_tile<THREADS, D, EXACT>(tiles.visitor_y, OWNS_KEYS ? dout : v, visitor, a.tokens,
                                     a.head_dim, 1.0f);
        __syncthreads();
        multiply_rows<D>(tiles.owner_x, tiles.visitor_x, scores);
        multiply_rows<D>(tiles.owner_y, tiles.visitor_y, dp);
        store_pairs<D, OWNS_KEYS>(tiles, scores, dp, a.rows + head * a.tokens, first_owner, visitor,
                                  a);
        __syncwarp(); /* an owner's values are written and read by one warp */
        add_products<D>(tiles.gradients, tiles.visitor_x, x_sums);
        if (OWNS_KEYS) add_products<D>(tiles.probabilities, tiles.visitor_y, y_sums);
    }
    store_sums<D, EXACT>(static_cast<T *>(OWNS_KEYS ? a.dk : a.dq) + offset, first_owner, a,
                         a.scale, x_sums);
    if (OWNS_KEYS)
        store_sums<D, EXACT>(static_cast<T *>(a.dv) + offset, first_owner, a, 1.0f, y_sums);
}

/* ---- launches ------------------------------------------------------------ */

template <typename T, int D, bool EXACT, bool OWNS_KEYS>
int launch_owners(const arguments &a, int64_t blocks, kernel_stream stream)
{
    constexpr int shared_bytes = sizeof(shared_tiles<D>);
    auto kernel = owners_kernel<T, D, EXACT, OWNS_KEYS>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    kernel<<<static_cast<unsigned>(blocks), THREADS, shared_bytes, stream>>>(a);
    return cudaGetLastError();
}

template <typename T, int D, bool EXACT>
int launch_both(arguments a, kernel_stream stream)
{
    int64_t owner_blocks = ceil_div(a.tokens, OWNERS<D>);
    int64_t blocks = a.all_rows / a.tokens * owner_blocks;
    int64_t row_blocks = ceil_div(a.all_rows, THREADS / 32);
    if (!attention_fits_grid(blocks) || !attention_fits_grid(row_blocks))
        return KERNEL_ERROR_ARGUMENT;
    a.owner_blocks = static_cast<int>(owner_blocks);
    rows_kernel<T><<<static_cast<unsigned>(row_blocks), THREADS, 0, stream>>>(a);
    int error = cudaGetLastError();
    if (!error) error = launch_owners<T, D, EXACT, true>(a, blocks, stream);
    return error ? error : launch_owners<T, D, EXACT, false>(a, blocks, stream);
}

template <typename T, int D>
int launch_padded(const arguments &a, kernel_stream stream)
{
    return a.head_dim == D ? launch_both<T, D, true>(a, stream)
                           : launch_both<T, D, false>(a, stream);
}

template <typename T>
int launch_dim(const arguments &a, kernel_stream stream)
{
    if (a.head_dim <= 64) return launch_padded<T, 64>(a, stream);
    if (a.head_dim <= 128) return launch_padded<T, 128>(a, stream);
    return launch_padded<T, 256>(a, stream);
}

arguments arguments_of(const attention_backward_args &args, void *workspace)
{
    const attention_shape &s = args.shape;
    arguments a = {};
    a.q = args.q, a.k = args.k, a.v = args.v, a.out = args.out, a.dout = args.dout;
    a.lse = args.lse;
    a.dq = args.dq, a.dk = args.dk, a.dv = args.dv;
    a.rows = static_cast<float2 *>(workspace);
    a.tokens = s.tokens;
    a.all_rows = s.batch * s.heads * s.tokens;
    a.head_dim = static_cast<int>(s.head_dim);
    a.causal = s.causal;
    a.scale = attention_scale(s);
    a.log2_scale = a.scale * ATTENTION_LOG2_E;
    return a;
}

} // namespace

const char *attention_backward_tiled_unsupported(const void *args)
{
    int64_t d = static_cast<const attention_backward_args *>(args)->shape.head_dim;
    if (d > 256) return "tiled takes head_dim up to 256";
    if (attention_backward_is_strided(args)) return attention_backward_is_strided(args);
    size_t bytes = d <= 64    ? sizeof(shared_tiles<64>)
                   : d <= 128 ? sizeof(shared_tiles<128>)
                              : sizeof(shared_tiles<256>);
    return device_shared_memory_unsupported(bytes);
}

size_t attention_backward_tiled_workspace_bytes(const void *args)
{
    const attention_shape &s = static_cast<const attention_backward_args *>(args)->shape;
    if (!attention_is_valid(s)) return 0;
    return attention_bytes({s.batch, s.heads, s.tokens, sizeof(float2)});
}

int attention_backward_tiled_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    const attention_backward_args &b = *static_cast<const attention_backward_args *>(args);
    if (!attention_is_valid(b.shape) || attention_backward_tiled_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    arguments a = arguments_of(b, workspace);
    switch (b.dtype) {
    case KERNEL_F32: return launch_dim<float>(a, stream);
    case KERNEL_F16: return launch_dim<__half>(a, stream);
    case KERNEL_BF16: return launch_dim<__nv_bfloat16>(a, stream);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
