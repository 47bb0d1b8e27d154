/*
 * embedding.cuh - what the CUDA embedding variants share: their functions, as
 * embedding.cu's table names them, the checks of their arguments, and the
 * plan by which warps share out rows and columns.
 */
#ifndef EMBEDDING_CUH
#define EMBEDDING_CUH

#include "embedding.h"
#include "../common/row.cuh"

int embedding_naive_run(const void *args, void *workspace, void *state, kernel_stream stream);
int embedding_vectorized_run(const void *args, void *workspace, void *state, kernel_stream stream);

size_t embedding_atomic_workspace_bytes(const void *args);
int embedding_atomic_run(const void *args, void *workspace, void *state, kernel_stream stream);

size_t embedding_sorted_workspace_bytes(const void *args);
int embedding_sorted_run(const void *args, void *workspace, void *state, kernel_stream stream);

inline bool embedding_is_valid(const embedding_shape &s)
{
    return s.rows > 0 && s.rows <= INT32_MAX && s.vocabulary > 0 && s.vocabulary <= INT32_MAX &&
           s.columns > 0 && s.columns <= EMBEDDING_MAX_COLUMNS && s.context >= 0;
}

/* Whether every row of the tables starts at a multiple of 16 bytes. */
template <typename T> bool embedding_is_aligned(const embedding_shape &s)
{
    return s.columns % ROW_PER_16_BYTES<T> == 0;
}

constexpr int EMBEDDING_THREADS = 256;
constexpr int EMBEDDING_WARPS = EMBEDDING_THREADS / 32;

__device__ __forceinline__ int embedding_lane()
{
    return static_cast<int>(threadIdx.x % 32);
}

__device__ __forceinline__ unsigned embedding_warp()
{
    return threadIdx.x / 32;
}

/* The token of a row, or -1 where it is not in the vocabulary. The report of
 * that comes apart and last, because loads do not pass a store. */
__device__ __forceinline__ int embedding_token(const int32_t *tokens, int64_t row,
                                               int64_t vocabulary)
{
    int token = __ldg(tokens + row);
    return token >= 0 && token < vocabulary ? token : -1;
}

__device__ __forceinline__ void embedding_report(bool has_invalid_token, int *error_flag)
{
    if (has_invalid_token && error_flag) *error_flag = 1;
}

/* ---- the plan ---------------------------------------------------------- */

/* How many rows a warp takes at a time, all their loads in flight. They share
 * a position: rows position + sequence * context of neighbouring sequences, so
 * that its row of the position table is loaded once. */
constexpr int EMBEDDING_SEQUENCES = 4;

/* A slice is what a warp moves in one access: 512 bytes of a row. Slices are
 * grouped into bands, and all rows of one band come before the next band: a
 * band is so narrow that the part of the token table which it touches stays
 * in the L2 cache, so that a row that comes again is not read, or written,
 * again. With whole rows at a time, a table larger than the cache is. */
struct embedding_plan {
    unsigned period;          /* positions: context, or 1 without positions */
    unsigned groups;          /* of EMBEDDING_SEQUENCES sequences */
    unsigned band_slices;
    unsigned blocks_per_band; /* a warp a slice of a group of rows */
    unsigned bands;
};

struct embedding_task {
    unsigned position, group;
    int64_t column; /* this lane's first */
};

/* What this warp does; group is at least plan.groups where there is nothing
 * left. COUNT elements an access. */
template <int COUNT>
__device__ __forceinline__ embedding_task embedding_find_task(const embedding_plan &plan)
{
    unsigned band = blockIdx.x / plan.blocks_per_band;
    unsigned warp = blockIdx.x % plan.blocks_per_band * EMBEDDING_WARPS + embedding_warp();
    unsigned slice = band * plan.band_slices + warp % plan.band_slices;
    unsigned unit = warp / plan.band_slices;
    return {unit % plan.period, unit / plan.period,
            (static_cast<int64_t>(slice) * 32 + embedding_lane()) * COUNT};
}

/* band_slices: the most whose part of the table's rows, no more than there are
 * tokens, fills half of the L2 cache. The plan for elements of element_bytes
 * and count of them an access. */
inline int embedding_make_plan(const embedding_shape &s, size_t element_bytes, int count,
                               embedding_plan *plan)
{
    int device, l2_bytes;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device);
    if (error != cudaSuccess) return error;
    int64_t slices = ceil_div(s.columns, 32 * count);
    int64_t table_rows = s.rows < s.vocabulary ? s.rows : s.vocabulary;
    int64_t slice_bytes = 32 * count * static_cast<int64_t>(element_bytes);
    int64_t fitting = l2_bytes / 2 / (table_rows * slice_bytes);
    int64_t band_slices = fitting < 1 ? 1 : fitting < slices ? fitting : slices;
    int64_t period = s.context == 0 ? 1 : s.context < s.rows ? s.context : s.rows;
    int64_t groups = ceil_div(ceil_div(s.rows, period), EMBEDDING_SEQUENCES);
    int64_t blocks_per_band = ceil_div(period * groups * band_slices, EMBEDDING_WARPS);
    int64_t bands = ceil_div(slices, band_slices);
    if (bands > INT32_MAX || !row_fits_grid(blocks_per_band) ||
        !row_fits_grid(bands * blocks_per_band) || blocks_per_band > UINT32_MAX / EMBEDDING_WARPS)
        return KERNEL_ERROR_ARGUMENT;
    *plan = {static_cast<unsigned>(period), static_cast<unsigned>(groups),
             static_cast<unsigned>(band_slices), static_cast<unsigned>(blocks_per_band),
             static_cast<unsigned>(bands)};
    return KERNEL_OK;
}

#endif
