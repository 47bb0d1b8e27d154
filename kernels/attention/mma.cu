/*
 * mma.cu - attention forward on the tensor cores by mma.sync.
 *
 * 1. mma  One kernel, no scores in memory. The split is that of Dao,
 *         "FlashAttention-2: faster attention with better parallelism and work
 *         partitioning", 2023: a block owns 128 query rows, each of its four
 *         warps 32 of them (16 where the grid would leave the device half
 *         empty), so that no warp waits for another's softmax and
 *         probabilities go from accumulator registers to operand registers
 *         without touching shared memory.
 *
 * Teaches: an m16n8k16 accumulator has the layout of an A operand; two row
 * tiles a warp halve the shared memory traffic of K and V, which with one row
 * tile (256 bytes an mma, of 128 a cycle) would be the bound; swizzled rows make
 * ldmatrix free of bank conflicts; K and V are each other's double buffer.
 *
 * Bound by the tensor cores: 128 operations per byte of K and V, which come
 * from the L2 cache, since the blocks of one head run side by side. mma.sync does
 * not feed the tensor cores of sm_90 as warpgroup products do.
 */
#include "mma.cuh"

namespace {

constexpr int WARPS = 4;
constexpr int THREADS = WARPS * 32;
constexpr int KEYS = 64;                       /* per tile */
constexpr int KEY_GROUPS = KEYS / 8;           /* columns of an accumulator: 8 */

/* Query rows of a block whose warps have ROW_TILES tiles of 16 rows each. */
template <int ROW_TILES>
constexpr int BLOCK_ROWS = WARPS * ROW_TILES * 16;

struct arguments {
    const void *q, *k, *v;
    void *out;
    float *lse;
    tensor_pitches qkv_pitches, out_pitches;
    int64_t tokens;
    unsigned row_blocks; /* of BLOCK_ROWS, per head */
    unsigned key_tiles;  /* of KEYS, per head */
    int last_keys;       /* in the last of them, 1 to KEYS */
    float log2_scale;    /* scores times this are exponents of 2 */
};

template <int D, int ROW_TILES>
struct shared_tiles {
    static constexpr int ROW_BYTES = tile_layout<D>::ROW_BYTES;
    char q[BLOCK_ROWS<ROW_TILES> * ROW_BYTES]; /* each warp's rows become its rows of the output */
    char k[KEYS * ROW_BYTES];
    char v[KEYS * ROW_BYTES];
};

/* What a thread keeps of its warp's rows: of each row tile the rows lane / 4
 * and lane / 4 + 8, and of them the columns that ptx.cuh tells. */
template <int D, int ROW_TILES>
struct row_state {
    float out[ROW_TILES][D / 8][4]; /* not yet divided by sum */
    float max[ROW_TILES][2];        /* of the unscaled scores */
    float sum[ROW_TILES][2];        /* of this thread's columns only */
};

template <int ROW_TILES>
using scores_type = float[ROW_TILES][KEY_GROUPS][4];

/* The online softmax step: scores become probabilities relative to the new
 * maximum, and what was summed relative to the old one is rescaled. Row 0,
 * key 0 is visible to every row, so the new maximum is finite. */
template <int D, int ROW_TILES>
__device__ __forceinline__ void update_softmax(scores_type<ROW_TILES> &scores,
                                               row_state<D, ROW_TILES> &rows, float log2_scale)
{
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float largest = rows.max[m][half];
#pragma unroll
            for (int n = 0; n < KEY_GROUPS; n++)
                largest = fmaxf(largest, fmaxf(scores[m][n][half * 2], scores[m][n][half * 2 + 1]));
            largest = quad_max(largest);
            float correction = ptx_exp2((rows.max[m][half] - largest) * log2_scale);
            float offset = -largest * log2_scale, sum = 0.0f;
            rows.max[m][half] = largest;
#pragma unroll
            for (int n = 0; n < KEY_GROUPS; n++)
#pragma unroll
                for (int i = half * 2; i < half * 2 + 2; i++) {
                    scores[m][n][i] = ptx_exp2(fmaf(scores[m][n][i], log2_scale, offset));
                    sum += scores[m][n][i];
                }
            rows.sum[m][half] = fmaf(rows.sum[m][half], correction, sum);
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int i = half * 2; i < half * 2 + 2; i++) rows.out[m][n][i] *= correction;
        }
}

/* Where a block works. */
struct position {
    unsigned head, row_block;
    int64_t first_row;
};

template <bool CAUSAL, int ROW_TILES>
__device__ __forceinline__ position locate(const arguments &a)
{
    unsigned head = blockIdx.x / a.row_blocks, row_block = blockIdx.x % a.row_blocks;
    /* Of causal rows the longest first: a short tail. */
    if (CAUSAL) row_block = a.row_blocks - 1 - row_block;
    return {head, row_block, static_cast<int64_t>(row_block) * BLOCK_ROWS<ROW_TILES>};
}

template <int D>
__device__ __forceinline__ void load_keys(uint32_t tile, const void *operand, int64_t offset,
                                          unsigned index, const arguments &a)
{
    int pitch = a.qkv_pitches.token;
    const char *source =
        static_cast<const char *>(operand) + offset + static_cast<int64_t>(index) * KEYS * pitch;
    copy_tile<KEYS, D, tile_layout<D>, THREADS>(
        tile, source, pitch, index + 1 == a.key_tiles ? a.last_keys : KEYS);
    ptx_copy_async_commit();
}

/* One tile of keys: its K is on the way, the next one's is when it returns.
 * offset: bytes to the head's first row. */
template <typename T, int D, int ROW_TILES, bool CAUSAL, bool MASKED>
__device__ __forceinline__ void process_tile(shared_tiles<D, ROW_TILES> &tiles, const arguments &a,
                                             int64_t offset, unsigned row_block, unsigned index,
                                             bool is_last, row_state<D, ROW_TILES> &rows)
{
    using layout = tile_layout<D>;
    scores_type<ROW_TILES> scores;
    uint32_t q_rows =
        ptx_shared_address(tiles.q) + threadIdx.x / 32 * (ROW_TILES * 16 * layout::ROW_BYTES);
    ptx_copy_async_wait_all();
    __syncthreads(); /* K has landed, and every warp has left the last V */
    load_keys<D>(ptx_shared_address(tiles.v), a.v, offset, index, a);
    multiply_transposed<T, layout, D>(q_rows, ptx_shared_address(tiles.k), scores);
    if (MASKED)
        mask_keys<CAUSAL>(
            scores, index + 1 == a.key_tiles ? a.last_keys : KEYS,
            static_cast<int>(row_block * (BLOCK_ROWS<ROW_TILES> / KEYS) - index) * KEYS +
                static_cast<int>(threadIdx.x / 32 * (ROW_TILES * 16)));
    ptx_copy_async_wait_all();
    __syncthreads(); /* V has landed, and every warp has left this K */
    if (!is_last) load_keys<D>(ptx_shared_address(tiles.k), a.k, offset, index + 1, a);
    update_softmax<D, ROW_TILES>(scores, rows, a.log2_scale);
    multiply_sums<T, layout>(scores, ptx_shared_address(tiles.v), rows.out);
}

/* Divides by the sums and writes the warp's rows through its part of the Q
 * tile, so that global stores are 16 bytes wide. */
template <typename T, int D, int ROW_TILES>
__device__ __forceinline__ void store_rows(shared_tiles<D, ROW_TILES> &tiles, const arguments &a,
                                           position at, row_state<D, ROW_TILES> &rows)
{
    using layout = tile_layout<D>;
    constexpr int WARP_ROWS = ROW_TILES * 16;
    int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * WARP_ROWS;
    int64_t rows_left = a.tokens - at.first_row;
    int64_t first = at.head * a.tokens + at.first_row, pitch = a.out_pitches.token;
    char *out = static_cast<char *>(a.out) + a.out_pitches.to_head(at.head) + at.first_row * pitch;
    __syncwarp(); /* every lane has read its last Q */
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = warp_row + m * 16 + half * 8 + lane / 4;
            float sum = quad_sum(rows.sum[m][half]);
            stage_row<T, layout>(tiles.q, row, rows.out[m], half, 1.0f / sum);
            if (a.lse && lane % 4 == 0 && row < rows_left)
                a.lse[first + row] = rows.max[m][half] * a.log2_scale * ATTENTION_LN_2 + logf(sum);
        }
    store_staged<WARP_ROWS, D, layout>(out, pitch, tiles.q, warp_row, rows_left);
}

/* Grid: row blocks of a head side by side, so that they share its K and V in
 * the L2 cache. */
template <typename T, int D, int ROW_TILES, bool CAUSAL>
__global__ void __launch_bounds__(THREADS, 2) forward_kernel(const __grid_constant__ arguments a)
{
#if BUILT_FOR_MMA
    constexpr int ROWS = BLOCK_ROWS<ROW_TILES>;
    extern __shared__ __align__(256) char memory[];
    shared_tiles<D, ROW_TILES> &tiles = *reinterpret_cast<shared_tiles<D, ROW_TILES> *>(memory);
    position at = locate<CAUSAL, ROW_TILES>(a);
    int64_t offset = a.qkv_pitches.to_head(at.head);
    int64_t rows_left = a.tokens - at.first_row;
    unsigned unmasked = a.last_keys == KEYS ? a.key_tiles : a.key_tiles - 1;
    unsigned end = a.key_tiles;
    if (CAUSAL) {
        unmasked = at.row_block * (ROWS / KEYS);
        end = min(unmasked + ROWS / KEYS, a.key_tiles);
    }
    row_state<D, ROW_TILES> rows = {};
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++) rows.max[m][0] = rows.max[m][1] = -INFINITY;
    copy_tile<ROWS, D, tile_layout<D>, THREADS>(
        ptx_shared_address(tiles.q),
        static_cast<const char *>(a.q) + offset + at.first_row * a.qkv_pitches.token,
        a.qkv_pitches.token, static_cast<int>(min(rows_left, int64_t(ROWS))));
    load_keys<D>(ptx_shared_address(tiles.k), a.k, offset, 0, a);
    unsigned index = 0;
    for (; index < unmasked; index++)
        process_tile<T, D, ROW_TILES, CAUSAL, false>(tiles, a, offset, at.row_block, index,
                                                     index + 1 == end, rows);
    for (; index < end; index++)
        process_tile<T, D, ROW_TILES, CAUSAL, true>(tiles, a, offset, at.row_block, index,
                                                    index + 1 == end, rows);
    store_rows<T, D, ROW_TILES>(tiles, a, at, rows);
#endif
}

template <typename T, int D, int ROW_TILES, bool CAUSAL>
int launch_kernel(const attention_forward_args &args, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t row_blocks = ceil_div(s.tokens, BLOCK_ROWS<ROW_TILES>);
    int64_t blocks = row_blocks * s.batch * s.heads;
    if (!attention_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    constexpr int shared_bytes = sizeof(shared_tiles<D, ROW_TILES>);
    static_assert(shared_bytes <= LEAST_SHARED_BYTES, "no GPU from 8.0 on is unsupported");
    auto kernel = forward_kernel<T, D, ROW_TILES, CAUSAL>;
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    int64_t key_tiles = ceil_div(s.tokens, KEYS);
    arguments a = {.q = args.q,
                   .k = args.k,
                   .v = args.v,
                   .out = args.out,
                   .lse = args.lse,
                   .qkv_pitches = pitches_of(s, args.qkv_strides),
                   .out_pitches = pitches_of(s, args.out_strides),
                   .tokens = s.tokens,
                   .row_blocks = static_cast<unsigned>(row_blocks),
                   .key_tiles = static_cast<unsigned>(key_tiles),
                   .last_keys = static_cast<int>(s.tokens - (key_tiles - 1) * KEYS),
                   .log2_scale = attention_scale(s) * ATTENTION_LOG2_E};
    kernel<<<static_cast<unsigned>(blocks), THREADS, shared_bytes, stream>>>(a);
    return cudaGetLastError();
}

/* Blocks of 64 rows where blocks of 128 would leave multiprocessors idle. */
template <typename T, int D, bool CAUSAL>
struct by_rows {
    static int launch(const attention_forward_args &args, kernel_stream stream)
    {
        const attention_shape &s = args.shape;
        bool fills;
        int64_t blocks = ceil_div(s.tokens, BLOCK_ROWS<2>) * s.batch * s.heads;
        cudaError_t error = attention_fills_device(blocks, &fills);
        if (error != cudaSuccess) return error;
        return fills ? launch_kernel<T, D, 2, CAUSAL>(args, stream)
                     : launch_kernel<T, D, 1, CAUSAL>(args, stream);
    }
};

} // namespace

const char *attention_mma_unsupported(const void *args)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    int64_t d = a.shape.head_dim;
    if (a.mask) return attention_forward_is_masked(args);
    if (d != 64 && d != 80 && d != 128) return "mma takes head_dim 64, 80 and 128";
    return attention_strides_unsupported(a.qkv_strides, a.out_strides);
}

int attention_mma_run(const void *args, void *, void *, kernel_stream stream)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    if (!attention_is_valid(a.shape) || attention_mma_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    return launch_for<by_rows>(a, stream);
}
