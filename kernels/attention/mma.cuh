/*
 * mma.cuh - what the attention kernels on the tensor cores share:
 * tiles in shared memory that ldmatrix reads without bank conflicts, products
 * of them by mma.sync m16n8k16, and what becomes of the products' rows.
 *
 * A warp's product has ROW_TILES * 16 rows and GROUPS * 8 columns; of each row
 * tile and group a thread holds four sums, laid out as ptx.cuh tells.
 */
#ifndef ATTENTION_MMA_CUH
#define ATTENTION_MMA_CUH

#include "attention.cuh"
#include "../common/ptx.cuh"

/* Of a block on the GPUs that have the instructions: those of 8.6, 8.9 and 12.0 have
 * the least. */
constexpr int LEAST_SHARED_BYTES = 99 * 1024;

/* Where a tile of rows of COLUMNS 16-bit elements, a multiple of 16, keeps
 * them: eight consecutive rows hold the same 16-byte chunk in eight different
 * bank groups. Rows of 128 and 256 bytes are swizzled for that (the chunk's
 * index is xored with the row's), others padded to an odd number of chunks. */
template <int COLUMNS>
struct tile_layout {
    static constexpr bool SWIZZLED = COLUMNS % 64 == 0;
    static constexpr int ROW_BYTES = (SWIZZLED ? COLUMNS : COLUMNS + 8) * 2;

    static __device__ __forceinline__ uint32_t offset(int row, int chunk)
    {
        return static_cast<uint32_t>(row * ROW_BYTES +
                                     ((SWIZZLED ? chunk ^ (row & 7) : chunk) << 4));
    }

    /* An offset at chunk 0 or 1, moved by `column`, a multiple of 16. */
    static __device__ __forceinline__ uint32_t advance(uint32_t offset, int column)
    {
        return SWIZZLED ? offset ^ (column * 2) : offset + column * 2;
    }
};

/* attention_strides in bytes. */
struct tensor_pitches {
    int64_t batch, head;
    int token;
    unsigned heads;

    /* Bytes to the first row of a head, counted over all batches. */
    __device__ __forceinline__ int64_t to_head(unsigned index) const
    {
        return index / heads * batch + index % heads * head;
    }
};

inline tensor_pitches pitches_of(const attention_shape &shape, attention_strides strides)
{
    strides = attention_strides_of(&shape, strides);
    return {strides.batch * 2, strides.head * 2, static_cast<int>(strides.token * 2),
            static_cast<unsigned>(shape.heads)};
}

/* Starts the copy of ROWS rows of D elements, `pitch` bytes apart, by a block
 * of THREADS; rows at or beyond rows_left become 0. Commits nothing. Opaque, so
 * that the addresses of the next tile's rows are not kept in registers. */
template <int ROWS, int D, typename layout, int THREADS>
__device__ __forceinline__ void copy_tile(uint32_t tile, const char *source, int pitch,
                                          int rows_left)
{
    constexpr int CHUNKS = D / 8, LANES = layout::SWIZZLED && D % 64 == 0 ? CHUNKS : 8;
    constexpr int ROWS_PER_PASS = THREADS / LANES;
    static_assert(ROWS % ROWS_PER_PASS == 0 && ROWS_PER_PASS % 8 == 0, "the swizzle repeats");
    int row = ptx_opaque(threadIdx.x / LANES), lane = threadIdx.x % LANES;
    pitch = ptx_opaque(pitch);
#pragma unroll
    for (int first = 0; first < CHUNKS; first += LANES) {
        int chunk = first + lane;
        if (first + LANES > CHUNKS && chunk >= CHUNKS) continue;
        uint32_t target = tile + layout::offset(row, chunk);
        const char *from = source + (int64_t(row) * pitch + chunk * 16);
#pragma unroll
        for (int i = 0; i < ROWS; i += ROWS_PER_PASS, from += int64_t(ROWS_PER_PASS) * pitch)
            ptx_copy_async_16(target + i * layout::ROW_BYTES, from,
                              row + i < rows_left ? 16 : 0);
    }
}

/* The lane's row address for ldmatrix within 16 rows of two chunks. Opaque, so
 * that the addresses of all steps are computed again in each tile (one
 * instruction each) and hold no registers across it. */
template <typename layout>
__device__ __forceinline__ uint32_t matrix_lane(int row, int chunk)
{
    return ptx_opaque(layout::offset(row, chunk));
}

/* Matrices 0 and 1 are the first chunk of both groups of 8 rows, 2 and 3 the
 * second: an A operand, and transposed two B operands of neighbouring columns. */
template <typename layout>
__device__ __forceinline__ uint32_t matrix_lane_rows_first()
{
    return matrix_lane<layout>(threadIdx.x % 16, threadIdx.x / 16 % 2);
}

/* Matrices 0 and 1 are both chunks of the first 8 rows, 2 and 3 of the second:
 * two B operands, each in neighbouring registers, and transposed an A operand. */
template <typename layout>
__device__ __forceinline__ uint32_t matrix_lane_chunks_first()
{
    return matrix_lane<layout>(threadIdx.x % 8 + threadIdx.x / 16 % 2 * 8, threadIdx.x / 8 % 2);
}

/* sums = a b^T over DEPTH columns of ROW_TILES * 16 rows at a and GROUPS * 8
 * rows at b. */
template <typename T, typename layout, int DEPTH, int ROW_TILES, int GROUPS>
__device__ __forceinline__ void multiply_transposed(uint32_t a_rows, uint32_t b_rows,
                                                    float (&sums)[ROW_TILES][GROUPS][4])
{
    uint32_t a_lane = matrix_lane_rows_first<layout>();
    uint32_t b_lane = matrix_lane_chunks_first<layout>();
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[m][n][i] = 0.0f;
#pragma unroll
    for (int column = 0; column < DEPTH; column += 16) {
        uint32_t a[ROW_TILES][4];
#pragma unroll
        for (int m = 0; m < ROW_TILES; m++)
            ptx_load_matrix_x4(a[m], a_rows + layout::advance(a_lane, column) +
                                         m * 16 * layout::ROW_BYTES);
#pragma unroll
        for (int n = 0; n < GROUPS; n += 2) {
            uint32_t b[4];
            ptx_load_matrix_x4(b, b_rows + layout::advance(b_lane, column) +
                                      n * 8 * layout::ROW_BYTES);
#pragma unroll
            for (int m = 0; m < ROW_TILES; m++) {
                ptx_mma_16x8x16(sums[m][n], a[m], b[0], b[1], T());
                ptx_mma_16x8x16(sums[m][n + 1], a[m], b[2], b[3], T());
            }
        }
    }
}

/* sums += a[ROW_TILES] b for 16 rows of b and its columns [column, column +
 * GROUPS * 8). b_lane: rows first. */
template <typename T, typename layout, int ROW_TILES, int GROUPS>
__device__ __forceinline__ void multiply_step(const uint32_t (&a)[ROW_TILES][4], uint32_t b_rows,
                                              uint32_t b_lane, int column,
                                              float (&sums)[ROW_TILES][GROUPS][4])
{
#pragma unroll
    for (int n = 0; n < GROUPS; n += 2) {
        uint32_t b[4];
        ptx_load_matrix_x4_transposed(b, b_rows + layout::advance(b_lane, column + n * 8));
#pragma unroll
        for (int m = 0; m < ROW_TILES; m++) {
            ptx_mma_16x8x16(sums[m][n], a[m], b[0], b[1], T());
            ptx_mma_16x8x16(sums[m][n + 1], a[m], b[2], b[3], T());
        }
    }
}

/* sums += a b over DEPTH rows of b, its columns from b_column, and ROW_TILES *
 * 16 rows of a: those at a, their columns from a_column; or with A_TRANSPOSED
 * the columns from a_column of the tile at a, whose rows are the depth. */
template <typename T, typename a_layout, typename b_layout, int DEPTH, bool A_TRANSPOSED,
          int ROW_TILES, int GROUPS>
__device__ __forceinline__ void multiply_tiles(uint32_t a, int a_column, uint32_t b, int b_column,
                                               float (&sums)[ROW_TILES][GROUPS][4])
{
    uint32_t a_lane = A_TRANSPOSED ? matrix_lane_chunks_first<a_layout>()
                                   : matrix_lane_rows_first<a_layout>();
    uint32_t b_lane = matrix_lane_rows_first<b_layout>();
#pragma unroll
    for (int depth = 0; depth < DEPTH; depth += 16) {
        uint32_t operand[ROW_TILES][4];
#pragma unroll
        for (int m = 0; m < ROW_TILES; m++) {
            if (A_TRANSPOSED)
                ptx_load_matrix_x4_transposed(operand[m],
                                              a + a_layout::advance(a_lane, a_column + m * 16) +
                                                  depth * a_layout::ROW_BYTES);
            else
                ptx_load_matrix_x4(operand[m], a + a_layout::advance(a_lane, a_column + depth) +
                                                   m * 16 * a_layout::ROW_BYTES);
        }
        multiply_step<T, b_layout>(operand, b + depth * b_layout::ROW_BYTES, b_lane, b_column,
                                   sums);
    }
}

/* sums += a b of another product's sums a, rounded to T: an accumulator pair
 * of 8 columns each is the A operand of a step of 16 rows of b as it stands. */
template <typename T, typename layout, int ROW_TILES, int DEPTH_GROUPS, int GROUPS>
__device__ __forceinline__ void multiply_sums(const float (&a)[ROW_TILES][DEPTH_GROUPS][4],
                                              uint32_t b_tile, float (&sums)[ROW_TILES][GROUPS][4])
{
    uint32_t b_lane = matrix_lane_rows_first<layout>();
#pragma unroll
    for (int step = 0; step < DEPTH_GROUPS / 2; step++) {
        uint32_t operand[ROW_TILES][4];
#pragma unroll
        for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float(&pair)[4] = a[m][step * 2 + i / 2];
                operand[m][i] = ptx_pack(pair[i % 2 * 2], pair[i % 2 * 2 + 1], T());
            }
        multiply_step<T, layout>(operand, b_tile + step * 16 * layout::ROW_BYTES, b_lane, 0, sums);
    }
}

/* Hides a warp's keys from keys_left on and, if causal, those after the row;
 * first_row: the warp's first row less its first key. */
template <bool CAUSAL, int ROW_TILES, int GROUPS>
__device__ __forceinline__ void mask_keys(float (&scores)[ROW_TILES][GROUPS][4], int keys_left,
                                          int first_row)
{
    int lane = threadIdx.x % 32, row = first_row + lane / 4, column = lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int key = n * 8 + column + i % 2;
                bool later = CAUSAL && key > row + m * 16 + i / 2 * 8;
                if (key >= keys_left || later) scores[m][n][i] = -INFINITY;
            }
}

/* A thread's upper (half 0) or lower (1) row of an accumulator, times factor
 * and rounded to T, to a row of a tile. */
template <typename T, typename layout, int GROUPS>
__device__ __forceinline__ void stage_row(char *tile, int row, const float (&sums)[GROUPS][4],
                                          int half, float factor)
{
#pragma unroll
    for (int n = 0; n < GROUPS; n++)
        *reinterpret_cast<uint32_t *>(tile + layout::offset(row, n) + threadIdx.x % 4 * 4) =
            ptx_pack(sums[n][half * 2] * factor, sums[n][half * 2 + 1] * factor, T());
}

/* A warp's ROWS rows that its lanes have staged, from first_row of the tile on,
 * to memory, so that stores are 16 bytes wide; out: where row 0 of the tile
 * goes, the next `pitch` bytes on; rows from rows_left on do not exist. */
template <int ROWS, int D, typename layout>
__device__ __forceinline__ void store_staged(char *out, int64_t pitch, const char *tile,
                                             int first_row, int64_t rows_left)
{
    constexpr int CHUNKS = D / 8;
    __syncwarp();
#pragma unroll
    for (int i = threadIdx.x % 32; i < ROWS * CHUNKS; i += 32) {
        int row = first_row + i / CHUNKS, chunk = i % CHUNKS;
        if (row < rows_left)
            *reinterpret_cast<uint4 *>(out + row * pitch + chunk * 16) =
                *reinterpret_cast<const uint4 *>(tile + layout::offset(row, chunk));
    }
}

/* ---- which instance of a forward kernel ------------------------------------------ */

/* Launch<T, D, CAUSAL>::launch(args, stream) for what the arguments ask for:
 * f16 or bf16, head_dim 64, 80 or 128. */
template <template <typename, int, bool> class Launch, typename T, int D>
int launch_for_mask(const attention_forward_args &args, kernel_stream stream)
{
    return args.shape.causal ? Launch<T, D, true>::launch(args, stream)
                             : Launch<T, D, false>::launch(args, stream);
}

template <template <typename, int, bool> class Launch, typename T>
int launch_for_head_dim(const attention_forward_args &args, kernel_stream stream)
{
    static_assert(sizeof(T) == 2, "fragments hold two elements a register");
    switch (args.shape.head_dim) {
    case 64: return launch_for_mask<Launch, T, 64>(args, stream);
    case 80: return launch_for_mask<Launch, T, 80>(args, stream);
    case 128: return launch_for_mask<Launch, T, 128>(args, stream);
    default: return KERNEL_ERROR_ARGUMENT;
    }
}

template <template <typename, int, bool> class Launch>
int launch_for(const attention_forward_args &args, kernel_stream stream)
{
    switch (args.dtype) {
    case KERNEL_F16: return launch_for_head_dim<Launch, __half>(args, stream);
    case KERNEL_BF16: return launch_for_head_dim<Launch, __nv_bfloat16>(args, stream);
    case KERNEL_F32:
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

#endif
