/*
 * backward_mma.cu - attention backward on the tensor cores by
 * mma.sync. No score in memory: probabilities are computed again from lse.
 *
 * A small kernel first gives each row {-lse log2(e), delta}
 * (attention_backward.cuh). Then:
 *
 * 1. mma         One kernel for dk and dv, a block of 8 warps for 128 keys,
 *                which walks over tiles of queries; one for dq, a block of 4
 *                warps for 128 queries, which walks over tiles of keys. Seven
 *                products where five would do, but nothing is added across
 *                blocks: equal bits in every run.
 * 2. mma_atomic  The first kernel also multiplies ds with its keys and adds
 *                that to f32 sums of dq in the workspace, which a last kernel
 *                rounds: five products (Dao, "FlashAttention-2", 2023, section
 *                3.1), and the order of the additions is the device's.
 *
 * Teaches: in the kernel of dk and dv the scores are computed transposed, keys
 * as rows, so that the sums of a warp's 32 keys pass to the next products as
 * rows in shared memory that every warp of those keys reads (half the queries a
 * warp in the first step, half the columns in the second: 192 to 256 bytes of
 * shared memory an mma where 16 keys a warp take 256 to 320). The sums of dq lie
 * in memory as the accumulators do: one 16-byte red.global.add a thread and
 * 16 x 8 values, 512 bytes a warp, is all that the atomics cost.
 *
 * Bound by the shared memory's 128 bytes a cycle, then by the tensor cores'
 * mma.sync rate; the exponentials are not hidden, since the 8 warps go through
 * both steps together.
 */
#include "backward.cuh"

namespace {

constexpr int ROW_TILES = 2; /* of 16 rows, per warp: in both kernels */
constexpr int WARP_ROWS = ROW_TILES * 16;

struct arguments : backward_arguments {
    unsigned key_blocks; /* of KEYS, per head */
    unsigned row_blocks; /* of ROWS, per head */
};

/* ---- dk, dv and the sums of dq ------------------------------------------ */

constexpr int KEY_WARPS = 4;                /* of WARP_ROWS keys */
constexpr int KEYS = KEY_WARPS * WARP_ROWS; /* of a block: 128 */
constexpr int HALVES = 2;                   /* warps that share their keys */
constexpr int THREADS = KEY_WARPS * HALVES * 32;

/* How the block's warps divide what they compute. */
template <int D>
struct division {
    static constexpr int QUERIES = D <= 64 ? 128 : 64;         /* of a tile */
    static constexpr int COLUMNS = D % 32 == 0 ? D : D + 16;   /* halves are multiples of 16 */
    static constexpr int WARP_QUERIES = QUERIES / HALVES;      /* of scores */
    static constexpr int WARP_COLUMNS = COLUMNS / HALVES;      /* of dk and dv */
    static constexpr int DQ_WARPS = D > 96 ? 2 : 4;            /* along the queries of dq */
    static constexpr int DQ_TILES = QUERIES / DQ_WARPS / 16;
    static constexpr int DQ_COLUMNS = COLUMNS * DQ_WARPS / (KEY_WARPS * HALVES);
    using operand = tile_layout<COLUMNS>; /* of q, k, v, dout */
    using matrix = tile_layout<QUERIES>;  /* of probabilities and gradients: a row per key */
};

template <int D>
struct shared_tiles {
    using operand = typename division<D>::operand;
    static constexpr int QUERIES = division<D>::QUERIES;
    static constexpr int MATRIX_BYTES = KEYS * division<D>::matrix::ROW_BYTES;
    char k[KEYS * operand::ROW_BYTES], v[KEYS * operand::ROW_BYTES];
    char q[2][QUERIES * operand::ROW_BYTES], dout[2][QUERIES * operand::ROW_BYTES];
    char probabilities[MATRIX_BYTES], gradients[MATRIX_BYTES];
    float2 rows[2][QUERIES];
};

template <int D>
using scores_type = float[ROW_TILES][division<D>::WARP_QUERIES / 8][4];

/* What a warp has summed for its keys and its half of the columns. */
template <int D>
struct key_sums {
    float dk[ROW_TILES][division<D>::WARP_COLUMNS / 8][4]; /* dk / scale */
    float dv[ROW_TILES][division<D>::WARP_COLUMNS / 8][4];
};

struct place {
    unsigned head, key_block;
    int64_t qkv, out; /* bytes to the head's first row */
};

__device__ __forceinline__ int key_warp() { return threadIdx.x / 32 % KEY_WARPS; }
__device__ __forceinline__ int half_index() { return threadIdx.x / 32 / KEY_WARPS; }

/* Starts the copy of a tile of queries: q, dout and their rows' numbers. */
template <int D>
__device__ __forceinline__ void load_queries(shared_tiles<D> &tiles, const arguments &a, place at,
                                             unsigned tile)
{
    constexpr int QUERIES = division<D>::QUERIES;
    using layout = typename division<D>::operand;
    int64_t first = int64_t(tile) * QUERIES;
    int left = rows_left(a.tokens, first, QUERIES);
    int pitch = a.qkv_pitches.token, out_pitch = a.out_pitches.token;
    unsigned buffer = tile % 2;
    copy_tile<QUERIES, D, layout, THREADS>(ptx_shared_address(tiles.q[buffer]),
                                           operand_at(a.q, at.qkv + first * pitch), pitch, left);
    copy_tile<QUERIES, D, layout, THREADS>(ptx_shared_address(tiles.dout[buffer]),
                                           operand_at(a.dout, at.out + first * out_pitch),
                                           out_pitch, left);
    if (threadIdx.x < QUERIES / 2)
        ptx_copy_async_16(ptx_shared_address(tiles.rows[buffer] + threadIdx.x * 2),
                          a.rows + at.head * a.padded_tokens + first + threadIdx.x * 2, 16);
    ptx_copy_async_commit();
}

/* Hides the keys from keys_left on and, if causal, those after the query;
 * diagonal: the tile's first query less the block's first key. */
template <int D, bool CAUSAL>
__device__ __forceinline__ void mask_scores(scores_type<D> &scores, int keys_left, int diagonal)
{
    int lane = threadIdx.x % 32, key = key_warp() * WARP_ROWS + lane / 4;
    int query = diagonal + half_index() * division<D>::WARP_QUERIES + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int n = 0; n < division<D>::WARP_QUERIES / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int at = key + m * 16 + i / 2 * 8;
                if (at >= keys_left || (CAUSAL && at > query + n * 8 + i % 2))
                    scores[m][n][i] = -INFINITY;
            }
}

/* Scores become probabilities, and dp = v dout^T their scores' gradients. */
template <int D>
__device__ __forceinline__ void differentiate(scores_type<D> &scores, scores_type<D> &dp,
                                              const float2 *rows, float log2_scale)
{
    rows += half_index() * division<D>::WARP_QUERIES + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < division<D>::WARP_QUERIES / 8; n++) {
        float4 pair = *reinterpret_cast<const float4 *>(rows + n * 8);
#pragma unroll
        for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float p = ptx_exp2(fmaf(scores[m][n][i], log2_scale, i % 2 ? pair.z : pair.x));
                scores[m][n][i] = p;
                dp[m][n][i] = p * (dp[m][n][i] - (i % 2 ? pair.w : pair.y));
            }
    }
}

/* The warp's keys and queries of a matrix, rounded to T. */
template <typename T, int D>
__device__ __forceinline__ void store_matrix(char *matrix, const scores_type<D> &values)
{
    using layout = typename division<D>::matrix;
    int lane = threadIdx.x % 32, row = key_warp() * WARP_ROWS + lane / 4;
    int first_chunk = half_index() * (division<D>::WARP_QUERIES / 8);
    matrix += lane % 4 * 4;
#pragma unroll
    for (int n = 0; n < division<D>::WARP_QUERIES / 8; n++) {
        char *target = matrix + layout::offset(row, first_chunk + n);
#pragma unroll
        for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                *reinterpret_cast<uint32_t *>(target + (m * 16 + i * 8) * layout::ROW_BYTES) =
                    ptx_pack(values[m][n][i * 2], values[m][n][i * 2 + 1], T());
    }
}

/* First step: a warp's 32 keys and half of the tile's queries. */
template <typename T, int D, bool CAUSAL>
__device__ __forceinline__ void compute_matrices(shared_tiles<D> &tiles, const arguments &a,
                                                 unsigned buffer, int keys_left, int diagonal)
{
    using layout = typename division<D>::operand;
    uint32_t keys = key_warp() * (WARP_ROWS * layout::ROW_BYTES);
    uint32_t queries = half_index() * (division<D>::WARP_QUERIES * layout::ROW_BYTES);
    scores_type<D> scores, dp;
    multiply_transposed<T, layout, D>(ptx_shared_address(tiles.k) + keys,
                                      ptx_shared_address(tiles.q[buffer]) + queries, scores);
    if (keys_left < KEYS || (CAUSAL && diagonal < KEYS))
        mask_scores<D, CAUSAL>(scores, keys_left, diagonal);
    multiply_transposed<T, layout, D>(ptx_shared_address(tiles.v) + keys,
                                      ptx_shared_address(tiles.dout[buffer]) + queries, dp);
    differentiate<D>(scores, dp, tiles.rows[buffer], a.log2_scale);
    store_matrix<T, D>(tiles.probabilities, scores);
    store_matrix<T, D>(tiles.gradients, dp);
}

/* Second step: a warp's 32 keys and half of the columns. */
template <typename T, int D>
__device__ __forceinline__ void add_key_sums(shared_tiles<D> &tiles, unsigned buffer,
                                             key_sums<D> &sums)
{
    using matrix = typename division<D>::matrix;
    using layout = typename division<D>::operand;
    constexpr int QUERIES = division<D>::QUERIES;
    uint32_t keys = key_warp() * (WARP_ROWS * matrix::ROW_BYTES);
    int column = half_index() * division<D>::WARP_COLUMNS;
    multiply_tiles<T, matrix, layout, QUERIES, false>(
        ptx_shared_address(tiles.probabilities) + keys, 0, ptx_shared_address(tiles.dout[buffer]),
        column, sums.dv);
    multiply_tiles<T, matrix, layout, QUERIES, false>(
        ptx_shared_address(tiles.gradients) + keys, 0, ptx_shared_address(tiles.q[buffer]), column,
        sums.dk);
}

/* And, of the tile's dq, the warp's rows and columns over the block's keys. */
template <typename T, int D>
__device__ __forceinline__ void add_dq(shared_tiles<D> &tiles, const arguments &a, unsigned head,
                                       int64_t first_query)
{
    using matrix = typename division<D>::matrix;
    using layout = typename division<D>::operand;
    constexpr int TILES = division<D>::DQ_TILES, GROUPS = division<D>::DQ_COLUMNS / 8;
    int warp = threadIdx.x / 32, query = warp % division<D>::DQ_WARPS * (TILES * 16);
    int group = warp / division<D>::DQ_WARPS * GROUPS;
    float dq[TILES][GROUPS][4] = {};
    multiply_tiles<T, matrix, layout, KEYS, true>(ptx_shared_address(tiles.gradients), query,
                                                  ptx_shared_address(tiles.k), group * 8, dq);
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
            if (D == division<D>::COLUMNS || group + n < D / 8)
                ptx_add_to_global(dq_sums_of<D>(a, head, first_query + query + m * 16, group + n,
                                                threadIdx.x % 32),
                                  dq[m][n]);
}

/* The warp's rows of an accumulator, times factor, to rows `pitch` bytes apart
 * of which `first` is the warp's first; `left` of them exist. */
template <typename T, int D, int GROUPS>
__device__ __forceinline__ void store_sums(char *first, int64_t pitch, int left, int column,
                                           const float (&sums)[ROW_TILES][GROUPS][4], float factor)
{
    int lane = threadIdx.x % 32;
    char *target = first + lane / 4 * pitch + (column + lane % 4 * 2) * 2;
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (lane / 4 + m * 16 + i * 8 >= left) continue;
#pragma unroll
            for (int n = 0; n < GROUPS; n++)
                if (D % 32 == 0 || column + n * 8 < D)
                    *reinterpret_cast<uint32_t *>(target + (m * 16 + i * 8) * pitch + n * 16) =
                        ptx_pack(factor * sums[m][n][i * 2], factor * sums[m][n][i * 2 + 1], T());
        }
}

/* Grid: key blocks of a head side by side, so that they share its q and dout
 * in the L2 cache; of causal blocks the longest come first as they are. */
template <typename T, int D, bool CAUSAL, bool WITH_DQ>
__global__ void __launch_bounds__(THREADS, 1) keys_kernel(const __grid_constant__ arguments a)
{
#if BUILT_FOR_MMA
    constexpr int QUERIES = division<D>::QUERIES;
    using layout = typename division<D>::operand;
    extern __shared__ __align__(256) char memory[];
    shared_tiles<D> &tiles = *reinterpret_cast<shared_tiles<D> *>(memory);
    place at = {blockIdx.x / a.key_blocks, blockIdx.x % a.key_blocks, 0, 0};
    at.qkv = a.qkv_pitches.to_head(at.head);
    at.out = a.out_pitches.to_head(at.head);
    int pitch = a.qkv_pitches.token;
    int64_t first_key = int64_t(at.key_block) * KEYS;
    int keys_left = rows_left(a.tokens, first_key, KEYS);
    copy_tile<KEYS, D, layout, THREADS>(ptx_shared_address(tiles.k),
                                        operand_at(a.k, at.qkv + first_key * pitch), pitch,
                                        keys_left);
    copy_tile<KEYS, D, layout, THREADS>(ptx_shared_address(tiles.v),
                                        operand_at(a.v, at.qkv + first_key * pitch), pitch,
                                        keys_left);
    unsigned tile = CAUSAL ? at.key_block * (KEYS / QUERIES) : 0;
    unsigned end = static_cast<unsigned>((a.tokens + QUERIES - 1) / QUERIES);
    load_queries<D>(tiles, a, at, tile);
    key_sums<D> sums = {};
    for (; tile < end; tile++) {
        int64_t first_query = int64_t(tile) * QUERIES;
        ptx_copy_async_wait_all();
        __syncthreads(); /* the tile has landed, and every warp has left the last one */
        if (tile + 1 < end) load_queries<D>(tiles, a, at, tile + 1);
        compute_matrices<T, D, CAUSAL>(
            tiles, a, tile % 2, keys_left,
            CAUSAL ? static_cast<int>(min(first_query - first_key, int64_t(KEYS))) : 0);
        __syncthreads(); /* the matrices are complete */
        add_key_sums<T, D>(tiles, tile % 2, sums);
        if (WITH_DQ) add_dq<T, D>(tiles, a, at.head, first_query);
    }
    int first = key_warp() * WARP_ROWS, column = half_index() * division<D>::WARP_COLUMNS;
    int64_t offset = at.qkv + (first_key + first) * pitch;
    store_sums<T, D>(result_at(a.dk, offset), pitch, keys_left - first, column, sums.dk, a.scale);
    store_sums<T, D>(result_at(a.dv, offset), pitch, keys_left - first, column, sums.dv, 1.0f);
#endif
}

/* ---- dq by itself -------------------------------------------------------- */

constexpr int DQ_WARPS = 4;
constexpr int DQ_THREADS = DQ_WARPS * 32;
constexpr int ROWS = DQ_WARPS * WARP_ROWS; /* queries of a block: 128 */
constexpr int TILE_KEYS = 32;

template <int D>
struct dq_tiles {
    using layout = tile_layout<D>;
    char q[ROWS * layout::ROW_BYTES], dout[ROWS * layout::ROW_BYTES];
    char k[2][TILE_KEYS * layout::ROW_BYTES], v[2][TILE_KEYS * layout::ROW_BYTES];
};

using dq_scores = float[ROW_TILES][TILE_KEYS / 8][4];

template <int D>
__device__ __forceinline__ void load_keys(dq_tiles<D> &tiles, const arguments &a, int64_t head,
                                          unsigned tile)
{
    using layout = tile_layout<D>;
    int pitch = a.qkv_pitches.token;
    int64_t first = int64_t(tile) * TILE_KEYS, offset = head + first * pitch;
    int left = rows_left(a.tokens, first, TILE_KEYS);
    copy_tile<TILE_KEYS, D, layout, DQ_THREADS>(ptx_shared_address(tiles.k[tile % 2]),
                                                operand_at(a.k, offset), pitch, left);
    copy_tile<TILE_KEYS, D, layout, DQ_THREADS>(ptx_shared_address(tiles.v[tile % 2]),
                                                operand_at(a.v, offset), pitch, left);
    ptx_copy_async_commit();
}

/* dp = dout v^T becomes the gradients of the scores q k^T of the warp's rows;
 * a key from keys_left on, or if causal after its row, has none. diagonal: the
 * block's first row less the tile's first key. */
template <bool CAUSAL>
__device__ __forceinline__ void differentiate_rows(const dq_scores &scores, dq_scores &dp,
                                                   const float2 (&rows)[ROW_TILES][2],
                                                   float log2_scale, int keys_left, int diagonal)
{
    int lane = threadIdx.x % 32, row = diagonal + threadIdx.x / 32 * WARP_ROWS + lane / 4;
    bool is_masked = keys_left < TILE_KEYS || (CAUSAL && diagonal < TILE_KEYS);
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int n = 0; n < TILE_KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float2 numbers = rows[m][i / 2];
                int key = n * 8 + lane % 4 * 2 + i % 2;
                float p = ptx_exp2(fmaf(scores[m][n][i], log2_scale, numbers.x));
                bool later = CAUSAL && key > row + m * 16 + i / 2 * 8;
                if (is_masked && (key >= keys_left || later)) p = 0.0f;
                dp[m][n][i] = p * (dp[m][n][i] - numbers.y);
            }
}

template <typename T, int D, bool CAUSAL>
__device__ __forceinline__ void add_tile_dq(dq_tiles<D> &tiles, const arguments &a, unsigned tile,
                                            int64_t first, const float2 (&rows)[ROW_TILES][2],
                                            float (&dq)[ROW_TILES][D / 8][4])
{
    using layout = tile_layout<D>;
    uint32_t warp_rows = threadIdx.x / 32 * (WARP_ROWS * layout::ROW_BYTES);
    uint32_t k = ptx_shared_address(tiles.k[tile % 2]), v = ptx_shared_address(tiles.v[tile % 2]);
    int64_t first_key = int64_t(tile) * TILE_KEYS;
    dq_scores scores, dp;
    multiply_transposed<T, layout, D>(ptx_shared_address(tiles.q) + warp_rows, k, scores);
    multiply_transposed<T, layout, D>(ptx_shared_address(tiles.dout) + warp_rows, v, dp);
    differentiate_rows<CAUSAL>(
        scores, dp, rows, a.log2_scale, rows_left(a.tokens, first_key, TILE_KEYS),
        CAUSAL ? static_cast<int>(min(first - first_key, int64_t(TILE_KEYS))) : 0);
    multiply_sums<T, layout>(dp, k, dq);
}

/* The numbers of the thread's rows; the workspace has some for the padding. */
__device__ __forceinline__ void load_rows(const arguments &a, unsigned head, int64_t first,
                                          float2 (&rows)[ROW_TILES][2])
{
    const float2 *source = a.rows + head * a.padded_tokens + first +
                           threadIdx.x / 32 * WARP_ROWS + threadIdx.x % 32 / 4;
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) rows[m][i] = source[m * 16 + i * 8];
}

/* Grid: as the forward's. */
template <typename T, int D, bool CAUSAL>
__global__ void __launch_bounds__(DQ_THREADS, 2) dq_kernel(const __grid_constant__ arguments a)
{
#if BUILT_FOR_MMA
    using layout = tile_layout<D>;
    extern __shared__ __align__(256) char memory[];
    dq_tiles<D> &tiles = *reinterpret_cast<dq_tiles<D> *>(memory);
    unsigned head = blockIdx.x / a.row_blocks, block = blockIdx.x % a.row_blocks;
    if (CAUSAL) block = a.row_blocks - 1 - block; /* the longest first: a short tail */
    int pitch = a.qkv_pitches.token, out_pitch = a.out_pitches.token;
    int64_t first = int64_t(block) * ROWS, qkv = a.qkv_pitches.to_head(head);
    int left = rows_left(a.tokens, first, ROWS);
    copy_tile<ROWS, D, layout, DQ_THREADS>(ptx_shared_address(tiles.q),
                                           operand_at(a.q, qkv + first * pitch), pitch, left);
    copy_tile<ROWS, D, layout, DQ_THREADS>(
        ptx_shared_address(tiles.dout),
        operand_at(a.dout, a.out_pitches.to_head(head) + first * out_pitch), out_pitch, left);
    load_keys<D>(tiles, a, qkv, 0);
    float2 rows[ROW_TILES][2];
    load_rows(a, head, first, rows);
    float dq[ROW_TILES][D / 8][4] = {};
    int64_t keys = CAUSAL ? first + left : a.tokens;
    unsigned end = static_cast<unsigned>((keys + TILE_KEYS - 1) / TILE_KEYS);
    for (unsigned tile = 0; tile < end; tile++) {
        ptx_copy_async_wait_all();
        __syncthreads(); /* the tile has landed, and every warp has left the last one */
        if (tile + 1 < end) load_keys<D>(tiles, a, qkv, tile + 1);
        add_tile_dq<T, D, CAUSAL>(tiles, a, tile, first, rows, dq);
    }
    int warp_first = threadIdx.x / 32 * WARP_ROWS;
    store_sums<T, D>(result_at(a.dq, qkv + (first + warp_first) * pitch), pitch,
                     left - warp_first, 0, dq, a.scale);
#endif
}

/* ---- launches ------------------------------------------------------------ */

template <typename T, int D, bool CAUSAL>
int run_deterministic(const arguments &a, int64_t heads, kernel_stream stream)
{
    int error = backward_launch_rows<T, D>(a, heads, stream);
    if (!error)
        error = backward_launch(keys_kernel<T, D, CAUSAL, false>, heads * a.key_blocks, THREADS,
                                sizeof(shared_tiles<D>), a, stream);
    return error ? error
                 : backward_launch(dq_kernel<T, D, CAUSAL>, heads * a.row_blocks, DQ_THREADS,
                                   sizeof(dq_tiles<D>), a, stream);
}

template <typename T, int D, bool CAUSAL>
int run_atomic(const arguments &a, int64_t heads, kernel_stream stream)
{
    int error = backward_launch_rows<T, D>(a, heads, stream);
    if (!error)
        error = backward_launch(keys_kernel<T, D, CAUSAL, true>, heads * a.key_blocks, THREADS,
                                sizeof(shared_tiles<D>), a, stream);
    return error ? error : backward_launch_round<T, D>(a, heads, stream);
}

arguments arguments_of(const attention_backward_args &args, void *workspace, bool is_atomic)
{
    int64_t tokens = args.shape.tokens;
    return {backward_arguments_of(args, workspace, is_atomic),
            static_cast<unsigned>(ceil_div(tokens, KEYS)),
            static_cast<unsigned>(ceil_div(tokens, ROWS))};
}

template <typename T, int D, bool CAUSAL>
int run_causal(const arguments &a, int64_t heads, kernel_stream stream)
{
    return a.dq_sums ? run_atomic<T, D, CAUSAL>(a, heads, stream)
                     : run_deterministic<T, D, CAUSAL>(a, heads, stream);
}

template <typename T, int D>
int run_dim(const attention_shape &s, const arguments &a, kernel_stream stream)
{
    return s.causal ? run_causal<T, D, true>(a, s.batch * s.heads, stream)
                    : run_causal<T, D, false>(a, s.batch * s.heads, stream);
}

template <typename T>
int run_type(const attention_shape &s, const arguments &a, kernel_stream stream)
{
    static_assert(sizeof(T) == 2, "fragments hold two elements a register");
    switch (s.head_dim) {
    case 64: return run_dim<T, 64>(s, a, stream);
    case 80: return run_dim<T, 80>(s, a, stream);
    default: return run_dim<T, 128>(s, a, stream);
    }
}

int run(const void *args, void *workspace, bool is_atomic, kernel_stream stream)
{
    const attention_backward_args &b = *static_cast<const attention_backward_args *>(args);
    if (!attention_is_valid(b.shape) || attention_backward_mma_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    arguments a = arguments_of(b, workspace, is_atomic);
    switch (b.dtype) {
    case KERNEL_F16: return run_type<__half>(b.shape, a, stream);
    case KERNEL_BF16: return run_type<__nv_bfloat16>(b.shape, a, stream);
    case KERNEL_F32:
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

} // namespace

const char *attention_backward_mma_unsupported(const void *args)
{
    const attention_backward_args &a = *static_cast<const attention_backward_args *>(args);
    const char *reason = attention_strides_unsupported(a.qkv_strides, a.out_strides);
    int64_t d = a.shape.head_dim;
    if (d != 64 && d != 80 && d != 128) return "mma takes head_dim 64, 80 and 128";
    if (reason) return reason;
    size_t bytes = d == 64   ? sizeof(shared_tiles<64>)
                   : d == 80 ? sizeof(shared_tiles<80>)
                             : sizeof(shared_tiles<128>);
    return device_shared_memory_unsupported(bytes);
}

size_t attention_backward_mma_workspace_bytes(const void *args)
{
    return backward_workspace_bytes(static_cast<const attention_backward_args *>(args)->shape,
                                    false);
}

size_t attention_backward_mma_atomic_workspace_bytes(const void *args)
{
    return backward_workspace_bytes(static_cast<const attention_backward_args *>(args)->shape,
                                    true);
}

int attention_backward_mma_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    return run(args, workspace, false, stream);
}

int attention_backward_mma_atomic_run(const void *args, void *workspace, void *,
                                      kernel_stream stream)
{
    return run(args, workspace, true, stream);
}
