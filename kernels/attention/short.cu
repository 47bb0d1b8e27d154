/*
 * short.cu - attention forward of up to 128 tokens on the tensor
 * cores by mma.sync.
 *
 * 1. mma_short  A block asks for its Q and for all of the K and V that its rows
 *               see before it waits for any of it, so it waits for memory once,
 *               where mma waits for one tile of K and one of V after the other.
 *               It owns 32 query rows, 64 where those fill the device; two
 *               warps share 16 rows, each takes half of the keys, and what they
 *               sum is added up through shared memory (Dao et al.,
 *               "Flash-Decoding for long-context inference", 2023, does so
 *               among blocks).
 *
 * Teaches: with little work it is latencies in a row that count: the launch, one
 * trip to memory, the chain from scores to sums, the stores. So the scores of K
 * are turned into probabilities while V is still on its way; a softmax over
 * scores that are all there rescales nothing until the end; half the keys a warp
 * means half the products and exponentials in a row; and the grid's dimensions
 * are batch, heads and row blocks, because a division takes longer to find a
 * block's place than a multiplication.
 *
 * Bound by those latencies: a launch of it for a single token takes most of the
 * time that tens of heads of 128 tokens take. At hundreds of heads by the K and V
 * that each row block fetches anew from the L2 cache.
 */
#include "mma.cuh"
#include "../common/launch.cuh"

namespace {

constexpr int MOST_TOKENS = 128;
constexpr int MOST_HEADS = 65535; /* of a grid's y dimension */
constexpr int HALVES = 2;         /* warps that share rows: the first and the second keys */

/* Of a block with ROW_TILES tiles of 16 rows. */
template <int ROW_TILES>
constexpr int THREADS = ROW_TILES * HALVES * 32;

struct arguments {
    const void *q, *k, *v;
    void *out;
    float *lse;
    tensor_pitches qkv_pitches, out_pitches;
    int tokens;
    float log2_scale; /* scores times this are exponents of 2 */
};

template <int D, int ROW_TILES>
struct shared_tiles {
    static constexpr int ROW_BYTES = tile_layout<D>::ROW_BYTES;
    char q[ROW_TILES * 16 * ROW_BYTES]; /* becomes the rows of the output */
    char k[MOST_TOKENS * ROW_BYTES];    /* becomes what the second halves hand over */
    char v[MOST_TOKENS * ROW_BYTES];
    float4 numbers[ROW_TILES * 32];     /* of their rows: both maxima and both sums */
};

/* What a thread keeps of its warp's rows lane / 4 and lane / 4 + 8. */
template <int D>
struct row_state {
    float out[1][D / 8][4]; /* not yet divided by sum */
    float max[2];           /* of the unscaled scores; -INFINITY if no key is seen */
    float sum[2];
};

/* Where a warp works. */
template <int ROW_TILES>
struct place {
    int tile = threadIdx.x / 32 % ROW_TILES;
    int half = threadIdx.x / 32 / ROW_TILES;
};

__device__ __forceinline__ int64_t to_head(const tensor_pitches &pitches)
{
    return blockIdx.x * pitches.batch + blockIdx.y * pitches.head;
}

/* Starts the copies of Q and the first KEYS of K, a group, and of V, the next;
 * of the keys `seen` exist. */
template <int D, int ROW_TILES, int KEYS>
__device__ __forceinline__ void load(shared_tiles<D, ROW_TILES> &tiles, const arguments &a,
                                     int first_row, int seen)
{
    using layout = tile_layout<D>;
    constexpr int BLOCK = THREADS<ROW_TILES>;
    int pitch = a.qkv_pitches.token;
    int64_t head = to_head(a.qkv_pitches);
    const char *q = static_cast<const char *>(a.q) + head + first_row * int64_t(pitch);
    copy_tile<ROW_TILES * 16, D, layout, BLOCK>(ptx_shared_address(tiles.q), q, pitch,
                                                a.tokens - first_row);
    copy_tile<KEYS, D, layout, BLOCK>(ptx_shared_address(tiles.k),
                                      static_cast<const char *>(a.k) + head, pitch, seen);
    ptx_copy_async_commit();
    copy_tile<KEYS, D, layout, BLOCK>(ptx_shared_address(tiles.v),
                                      static_cast<const char *>(a.v) + head, pitch, seen);
    ptx_copy_async_commit();
}

/* Scores become probabilities relative to the largest of their row. */
template <int D, int GROUPS>
__device__ __forceinline__ void apply_softmax(float (&scores)[1][GROUPS][4], row_state<D> &rows,
                                              float log2_scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float largest = -INFINITY, sum = 0.0f;
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
            largest = fmaxf(largest, fmaxf(scores[0][n][half * 2], scores[0][n][half * 2 + 1]));
        largest = quad_max(largest);
        float offset = largest == -INFINITY ? 0.0f : -largest * log2_scale;
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int i = half * 2; i < half * 2 + 2; i++) {
                scores[0][n][i] = ptx_exp2(fmaf(scores[0][n][i], log2_scale, offset));
                sum += scores[0][n][i];
            }
        rows.max[half] = largest;
        rows.sum[half] = quad_sum(sum);
    }
}

/* Where a thread of a second half leaves its sums for the same one of the first. */
template <int D, int ROW_TILES>
__device__ __forceinline__ float4 *handed_over(shared_tiles<D, ROW_TILES> &tiles, int tile)
{
    static_assert(ROW_TILES * 16 * D * sizeof(float) <= sizeof tiles.k, "K makes room");
    return reinterpret_cast<float4 *>(tiles.k) + tile * (D / 8 * 32) + threadIdx.x % 32;
}

template <int D, int ROW_TILES>
__device__ __forceinline__ void hand_over(shared_tiles<D, ROW_TILES> &tiles, int tile,
                                          const row_state<D> &rows)
{
    float4 *sums = handed_over(tiles, tile);
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        const float(&four)[4] = rows.out[0][n];
        sums[n * 32] = make_float4(four[0], four[1], four[2], four[3]);
    }
    tiles.numbers[tile * 32 + threadIdx.x % 32] =
        make_float4(rows.max[0], rows.max[1], rows.sum[0], rows.sum[1]);
}

/* The first half's rows, whose maximum is finite because every row sees key 0,
 * and the second half's become one; out is divided by the sum. */
template <int D, int ROW_TILES>
__device__ __forceinline__ void take_over(shared_tiles<D, ROW_TILES> &tiles, int tile,
                                          row_state<D> &rows, float log2_scale)
{
    float4 numbers = tiles.numbers[tile * 32 + threadIdx.x % 32];
    float max[2] = {numbers.x, numbers.y}, sum[2] = {numbers.z, numbers.w}, own[2], other[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float largest = fmaxf(rows.max[i], max[i]);
        own[i] = ptx_exp2((rows.max[i] - largest) * log2_scale);
        other[i] = ptx_exp2((max[i] - largest) * log2_scale);
        rows.max[i] = largest;
        rows.sum[i] = rows.sum[i] * own[i] + sum[i] * other[i];
        own[i] /= rows.sum[i];
        other[i] /= rows.sum[i];
    }
    const float4 *sums = handed_over(tiles, tile);
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        float4 more = sums[n * 32];
        float(&four)[4] = rows.out[0][n];
        four[0] = four[0] * own[0] + more.x * other[0];
        four[1] = four[1] * own[0] + more.y * other[0];
        four[2] = four[2] * own[1] + more.z * other[1];
        four[3] = four[3] * own[1] + more.w * other[1];
    }
}

/* A warp's 16 rows, complete. */
template <typename T, int D, int ROW_TILES>
__device__ __forceinline__ void store_rows(shared_tiles<D, ROW_TILES> &tiles, const arguments &a,
                                           int first_row, int tile, const row_state<D> &rows)
{
    using layout = tile_layout<D>;
    int lane = threadIdx.x % 32, rows_left = a.tokens - first_row;
    int64_t head = int64_t(blockIdx.x) * a.qkv_pitches.heads + blockIdx.y;
    int64_t pitch = a.out_pitches.token;
    char *out = static_cast<char *>(a.out) + to_head(a.out_pitches) + first_row * pitch;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = tile * 16 + half * 8 + lane / 4;
        stage_row<T, layout>(tiles.q, row, rows.out[0], half, 1.0f);
        if (a.lse && lane % 4 == 0 && row < rows_left)
            a.lse[head * a.tokens + first_row + row] =
                rows.max[half] * a.log2_scale * ATTENTION_LN_2 + logf(rows.sum[half]);
    }
    store_staged<16, D, layout>(out, pitch, tiles.q, tile * 16, rows_left);
}

/* The block's rows and the first KEYS keys, of which they see `seen`. */
template <typename T, int D, int ROW_TILES, bool CAUSAL, int KEYS>
__device__ __forceinline__ void attend(shared_tiles<D, ROW_TILES> &tiles, const arguments &a,
                                       int first_row, int seen)
{
    using layout = tile_layout<D>;
    constexpr int WARP_KEYS = KEYS / HALVES;
    const place<ROW_TILES> at;
    int first_key = at.half * WARP_KEYS;
    uint32_t q_rows = ptx_shared_address(tiles.q) + at.tile * (16 * layout::ROW_BYTES);
    uint32_t keys = first_key * layout::ROW_BYTES;
    float scores[1][WARP_KEYS / 8][4];
    row_state<D> rows = {};
    load<D, ROW_TILES, KEYS>(tiles, a, first_row, seen);
    ptx_copy_async_wait_group<1>();
    __syncthreads(); /* Q and K have landed */
    multiply_transposed<T, layout, D>(q_rows, ptx_shared_address(tiles.k) + keys, scores);
    if (CAUSAL || seen < KEYS)
        mask_keys<CAUSAL>(scores, seen - first_key, first_row + at.tile * 16 - first_key);
    apply_softmax(scores, rows, a.log2_scale);
    ptx_copy_async_wait_all();
    __syncthreads(); /* V has landed, and every warp has left Q and K */
    multiply_sums<T, layout>(scores, ptx_shared_address(tiles.v) + keys, rows.out);
    if (at.half == 1) hand_over(tiles, at.tile, rows);
    __syncthreads(); /* the second halves have handed over */
    if (at.half == 1) return;
    take_over(tiles, at.tile, rows, a.log2_scale);
    store_rows<T>(tiles, a, first_row, at.tile, rows);
}

/* Grid: batch, heads, row blocks; of causal rows the longest first. The 1 gives
 * the compiler the registers that it would else spill for more blocks. */
template <typename T, int D, int ROW_TILES, bool CAUSAL>
__global__ void __launch_bounds__(THREADS<ROW_TILES>, 1)
    forward_kernel(const __grid_constant__ arguments a)
{
#if BUILT_FOR_MMA
    constexpr int ROWS = ROW_TILES * 16;
    extern __shared__ __align__(256) char memory[];
    shared_tiles<D, ROW_TILES> &tiles = *reinterpret_cast<shared_tiles<D, ROW_TILES> *>(memory);
    int first_row = (CAUSAL ? gridDim.z - 1 - blockIdx.z : blockIdx.z) * ROWS;
    int seen = CAUSAL ? min(first_row + ROWS, a.tokens) : a.tokens;
    ptx_wait_for_kernel_before();
    if (seen > MOST_TOKENS / 2)
        attend<T, D, ROW_TILES, CAUSAL, MOST_TOKENS>(tiles, a, first_row, seen);
    else
        attend<T, D, ROW_TILES, CAUSAL, MOST_TOKENS / 2>(tiles, a, first_row, seen);
#endif
}

template <typename T, int D, int ROW_TILES, bool CAUSAL>
int launch_kernel(const attention_forward_args &args, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    if (!attention_fits_grid(s.batch)) return KERNEL_ERROR_ARGUMENT;
    constexpr int shared_bytes = sizeof(shared_tiles<D, ROW_TILES>);
    static_assert(shared_bytes <= LEAST_SHARED_BYTES, "no GPU from 8.0 on is unsupported");
    auto kernel = forward_kernel<T, D, ROW_TILES, CAUSAL>;
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    arguments a = {.q = args.q,
                   .k = args.k,
                   .v = args.v,
                   .out = args.out,
                   .lse = args.lse,
                   .qkv_pitches = pitches_of(s, args.qkv_strides),
                   .out_pitches = pitches_of(s, args.out_strides),
                   .tokens = static_cast<int>(s.tokens),
                   .log2_scale = attention_scale(s) * ATTENTION_LOG2_E};
    dim3 grid(static_cast<unsigned>(s.batch), static_cast<unsigned>(s.heads),
              static_cast<unsigned>(ceil_div(s.tokens, ROW_TILES * 16)));
    return launch_early(kernel, grid, THREADS<ROW_TILES>, shared_bytes, stream, a);
}

/* Blocks of 64 rows where they have so many rows and fill the device. */
template <typename T, int D, bool CAUSAL>
struct by_rows {
    static int launch(const attention_forward_args &args, kernel_stream stream)
    {
        const attention_shape &s = args.shape;
        bool fills;
        int64_t blocks = ceil_div(s.tokens, 64) * s.batch * s.heads;
        cudaError_t error = attention_fills_device(blocks, &fills);
        if (error != cudaSuccess) return error;
        return fills && s.tokens > 32 ? launch_kernel<T, D, 4, CAUSAL>(args, stream)
                                      : launch_kernel<T, D, 2, CAUSAL>(args, stream);
    }
};

} // namespace

const char *attention_short_unsupported(const void *args)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    int64_t d = a.shape.head_dim;
    if (a.mask) return attention_forward_is_masked(args);
    if (d != 64 && d != 80 && d != 128) return "mma_short takes head_dim 64, 80 and 128";
    if (a.shape.tokens > MOST_TOKENS) return "mma_short takes up to 128 tokens";
    if (a.shape.heads > MOST_HEADS) return "mma_short takes up to 65535 heads";
    return attention_strides_unsupported(a.qkv_strides, a.out_strides);
}

int attention_short_run(const void *args, void *, void *, kernel_stream stream)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    if (!attention_is_valid(a.shape) || attention_short_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    return launch_for<by_rows>(a, stream);
}
