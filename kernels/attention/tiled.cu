/*
 * tiled.cu - attention forward in one kernel on the CUDA cores.
 *
 * 1. tiled  A block owns 64 query rows and walks over tiles of keys with the
 *           online softmax (Dao et al., "FlashAttention", 2022, algorithm 1):
 *           scores never reach memory. A thread owns 8 rows and, of them, 4
 *           columns in 64: scores and outputs stay in its registers, and of
 *           the operands it reads 16 bytes for every 10 to 16 multiply-adds.
 *
 * Teaches: what tiling alone gains over naive, with the same arithmetic units.
 * Bound by the f32 rate of the CUDA cores; f16 and bf16 are converted on load
 * and gain nothing. Takes any head_dim to 256: a dimension other than 64, 128
 * and 256 pays for the next of them.
 */
#include "tiled.cuh"
#include "../common/ptx.cuh"

namespace {

constexpr int ROWS = 64;                          /* of queries, per block */
constexpr int COLUMN_THREADS = 16;                /* threads that share a row */
constexpr int ROW_THREADS = 8;
constexpr int THREADS = COLUMN_THREADS * ROW_THREADS;
constexpr int THREAD_ROWS = ROWS / ROW_THREADS;   /* ROW_THREADS apart */
constexpr int PAD = 4;                            /* floats: spreads rows over the banks */

struct arguments {
    const void *q, *k, *v;
    void *out;
    float *lse;
    int64_t tokens;
    int row_blocks; /* of ROWS, per head */
    int head_dim;
    int causal;
    float log2_scale; /* scores times this are exponents of 2 */
};

/* D is head_dim padded to 64, 128 or 256. The probabilities of a tile take
 * the place of its keys. */
template <int D>
struct shared_tiles {
    static constexpr int KEYS = D > 128 ? 32 : 64;
    /* Blocks that fit a multiprocessor's 228 KiB: how many registers they share. */
    static constexpr int BLOCKS_PER_SM = D > 128 ? 1 : D > 64 ? 2 : 3;
    float q[ROWS][D + PAD];
    union {
        float k[KEYS][D + PAD];
        float p[ROWS][KEYS + PAD];
    };
    float v[KEYS][D];
};

/* What a thread keeps of its rows threadIdx.x / 16 + 8 i. */
template <int D>
struct row_state {
    float out[THREAD_ROWS][D / 64][4]; /* columns 64 c + 4 (threadIdx.x % 16); not yet divided */
    float max[THREAD_ROWS];            /* in units of log2 */
    float sum[THREAD_ROWS];            /* of this thread's keys only */
};

template <int D>
using scores_type = float[THREAD_ROWS][shared_tiles<D>::KEYS / COLUMN_THREADS];

__device__ __forceinline__ int row_thread() { return threadIdx.x / COLUMN_THREADS; }
__device__ __forceinline__ int column_thread() { return threadIdx.x % COLUMN_THREADS; }

/* Scores of the thread's rows and its keys column_thread() + 16 j. */
template <int D>
__device__ __forceinline__ void multiply_keys(const shared_tiles<D> &tiles, scores_type<D> &scores)
{
    constexpr int THREAD_KEYS = shared_tiles<D>::KEYS / COLUMN_THREADS;
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; i++)
#pragma unroll
        for (int j = 0; j < THREAD_KEYS; j++) scores[i][j] = 0.0f;
#pragma unroll 2
    for (int c = 0; c < D; c += 4) {
        float4 k[THREAD_KEYS];
#pragma unroll
        for (int j = 0; j < THREAD_KEYS; j++)
            k[j] = load_four(&tiles.k[column_thread() + COLUMN_THREADS * j][c]);
#pragma unroll
        for (int i = 0; i < THREAD_ROWS; i++) {
            float4 q = load_four(&tiles.q[row_thread() + ROW_THREADS * i][c]);
#pragma unroll
            for (int j = 0; j < THREAD_KEYS; j++) scores[i][j] = dot4(q, k[j], scores[i][j]);
        }
    }
}

template <int D>
__device__ __forceinline__ void mask_scores(scores_type<D> &scores, int64_t first_row,
                                            int64_t first_key, const arguments &a)
{
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; i++)
#pragma unroll
        for (int j = 0; j < shared_tiles<D>::KEYS / COLUMN_THREADS; j++) {
            int64_t row = first_row + row_thread() + ROW_THREADS * i;
            int64_t key = first_key + column_thread() + COLUMN_THREADS * j;
            if (key >= a.tokens || (a.causal && key > row)) scores[i][j] = -INFINITY;
        }
}

__device__ __forceinline__ float row_max(float value)
{
#pragma unroll
    for (int lane = COLUMN_THREADS / 2; lane > 0; lane /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, lane));
    return value;
}

__device__ __forceinline__ float row_sum(float value)
{
#pragma unroll
    for (int lane = COLUMN_THREADS / 2; lane > 0; lane /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, lane);
    return value;
}

/* The online softmax step: scores become probabilities relative to the new
 * maximum, in shared memory, and what was summed relative to the old one is
 * rescaled. Every row sees key 0, so the new maximum is finite. */
template <int D>
__device__ __forceinline__ void update_softmax(shared_tiles<D> &tiles, const scores_type<D> &scores,
                                               row_state<D> &rows)
{
    constexpr int THREAD_KEYS = shared_tiles<D>::KEYS / COLUMN_THREADS;
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; i++) {
        float largest = rows.max[i];
#pragma unroll
        for (int j = 0; j < THREAD_KEYS; j++) largest = fmaxf(largest, scores[i][j]);
        largest = row_max(largest);
        float correction = ptx_exp2(rows.max[i] - largest);
        rows.max[i] = largest;
        rows.sum[i] *= correction;
#pragma unroll
        for (int j = 0; j < THREAD_KEYS; j++) {
            float p = ptx_exp2(scores[i][j] - largest);
            rows.sum[i] += p;
            tiles.p[row_thread() + ROW_THREADS * i][column_thread() + COLUMN_THREADS * j] = p;
        }
#pragma unroll
        for (int c = 0; c < D / 64; c++)
#pragma unroll
            for (int e = 0; e < 4; e++) rows.out[i][c][e] *= correction;
    }
}

/* out += probabilities v */
template <int D>
__device__ __forceinline__ void multiply_values(const shared_tiles<D> &tiles, row_state<D> &rows)
{
#pragma unroll 1
    for (int key = 0; key < shared_tiles<D>::KEYS; key += 4) {
        float p[THREAD_ROWS][4];
#pragma unroll
        for (int i = 0; i < THREAD_ROWS; i++) {
            float4 x = load_four(&tiles.p[row_thread() + ROW_THREADS * i][key]);
            p[i][0] = x.x, p[i][1] = x.y, p[i][2] = x.z, p[i][3] = x.w;
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int c = 0; c < D / 64; c++) {
                float4 v = load_four(&tiles.v[key + j][c * 64 + column_thread() * 4]);
#pragma unroll
                for (int i = 0; i < THREAD_ROWS; i++) {
                    float(&out)[4] = rows.out[i][c];
                    out[0] = fmaf(p[i][j], v.x, out[0]);
                    out[1] = fmaf(p[i][j], v.y, out[1]);
                    out[2] = fmaf(p[i][j], v.z, out[2]);
                    out[3] = fmaf(p[i][j], v.w, out[3]);
                }
            }
    }
}

template <int D, bool EXACT, typename T>
__device__ __forceinline__ void store_rows(T *head_out, float *head_lse, int64_t first_row,
                                           const arguments &a, const row_state<D> &rows)
{
    const int dim = EXACT ? D : a.head_dim;
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; i++) {
        int64_t row = first_row + row_thread() + ROW_THREADS * i;
        float sum = row_sum(rows.sum[i]), inverse = 1.0f / sum;
        if (row >= a.tokens) continue;
#pragma unroll
        for (int c = 0; c < D / 64; c++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int column = c * 64 + column_thread() * 4 + e;
                if (EXACT || column < dim)
                    from_f32(rows.out[i][c][e] * inverse, head_out + row * dim + column);
            }
        if (head_lse && column_thread() == 0)
            head_lse[row] = rows.max[i] * ATTENTION_LN_2 + logf(sum);
    }
}

/* Grid: row blocks of a head side by side, so that they share its k and v in
 * the L2 cache; of causal rows the longest first, for a short tail. */
template <typename T, int D, bool EXACT>
__global__ void __launch_bounds__(THREADS, shared_tiles<D>::BLOCKS_PER_SM)
forward_kernel(const __grid_constant__ arguments a)
{
    constexpr int KEYS = shared_tiles<D>::KEYS;
    extern __shared__ __align__(16) char memory[];
    shared_tiles<D> &tiles = *reinterpret_cast<shared_tiles<D> *>(memory);
    int64_t head = blockIdx.x / a.row_blocks, row_block = blockIdx.x % a.row_blocks;
    if (a.causal) row_block = a.row_blocks - 1 - row_block;
    int64_t first_row = row_block * ROWS, offset = head * a.tokens * (EXACT ? D : a.head_dim);
    int64_t key_end = a.causal ? min(first_row + ROWS, a.tokens) : a.tokens;
    int64_t unmasked_end = a.causal ? first_row : a.tokens;
    const T *k = static_cast<const T *>(a.k) + offset, *v = static_cast<const T *>(a.v) + offset;
    row_state<D> rows = {};
    for (int i = 0; i < THREAD_ROWS; i++) rows.max[i] = -INFINITY;
    load_tile<THREADS, D, EXACT>(tiles.q, static_cast<const T *>(a.q) + offset, first_row, a.tokens,
                                 a.head_dim, a.log2_scale);
#pragma unroll 1
    for (int64_t key = 0; key < key_end; key += KEYS) {
        scores_type<D> scores;
        __syncthreads(); /* the last tile's readers are done */
        load_tile<THREADS, D, EXACT>(tiles.k, k, key, a.tokens, a.head_dim, 1.0f);
        load_tile<THREADS, D, EXACT>(tiles.v, v, key, a.tokens, a.head_dim, 1.0f);
        __syncthreads();
        multiply_keys<D>(tiles, scores);
        if (key + KEYS > unmasked_end) mask_scores<D>(scores, first_row, key, a);
        __syncthreads(); /* the keys have been read: probabilities take their place */
        update_softmax<D>(tiles, scores, rows);
        __syncwarp(); /* a row's probabilities are written and read by one warp */
        multiply_values<D>(tiles, rows);
    }
    store_rows<D, EXACT>(static_cast<T *>(a.out) + offset,
                         a.lse ? a.lse + head * a.tokens : nullptr, first_row, a, rows);
}

template <typename T, int D, bool EXACT>
int launch(const attention_forward_args &args, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t row_blocks = ceil_div(s.tokens, ROWS);
    int64_t blocks = row_blocks * s.batch * s.heads;
    if (!attention_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    constexpr int shared_bytes = sizeof(shared_tiles<D>);
    cudaError_t error = cudaFuncSetAttribute(
        forward_kernel<T, D, EXACT>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    arguments a = {.q = args.q,
                   .k = args.k,
                   .v = args.v,
                   .out = args.out,
                   .lse = args.lse,
                   .tokens = s.tokens,
                   .row_blocks = static_cast<int>(row_blocks),
                   .head_dim = static_cast<int>(s.head_dim),
                   .causal = s.causal,
                   .log2_scale = attention_scale(s) * ATTENTION_LOG2_E};
    forward_kernel<T, D, EXACT>
        <<<static_cast<unsigned>(blocks), THREADS, shared_bytes, stream>>>(a);
    return cudaGetLastError();
}

template <typename T, int D>
int launch_padded(const attention_forward_args &args, kernel_stream stream)
{
    return args.shape.head_dim == D ? launch<T, D, true>(args, stream)
                                    : launch<T, D, false>(args, stream);
}

template <typename T>
int launch_dim(const attention_forward_args &args, kernel_stream stream)
{
    if (args.shape.head_dim <= 64) return launch_padded<T, 64>(args, stream);
    if (args.shape.head_dim <= 128) return launch_padded<T, 128>(args, stream);
    return launch_padded<T, 256>(args, stream);
}

} // namespace

const char *attention_tiled_unsupported(const void *args)
{
    int64_t d = static_cast<const attention_forward_args *>(args)->shape.head_dim;
    if (d > 256) return "tiled takes head_dim up to 256";
    if (attention_forward_is_special(args)) return attention_forward_is_special(args);
    size_t bytes = d <= 64    ? sizeof(shared_tiles<64>)
                   : d <= 128 ? sizeof(shared_tiles<128>)
                              : sizeof(shared_tiles<256>);
    return device_shared_memory_unsupported(bytes);
}

int attention_tiled_run(const void *args, void *, void *, kernel_stream stream)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    if (!attention_is_valid(a.shape) || attention_tiled_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F32: return launch_dim<float>(a, stream);
    case KERNEL_F16: return launch_dim<__half>(a, stream);
    case KERNEL_BF16: return launch_dim<__nv_bfloat16>(a, stream);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
