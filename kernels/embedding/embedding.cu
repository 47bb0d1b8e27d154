/*
 * embedding.cu - the tables of CUDA embedding variants.
 *
 * forward
 * 1. naive       forward.cu: a thread an element
 * 2. vectorized  forward.cu: 512 bytes of four rows a warp, in bands
 * backward
 * 3. atomic      atomic.cu: additions in the L2 cache
 * 4. sorted      sorted.cu: rows sorted by token, no atomics
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include "embedding.cuh"

static constexpr unsigned FLOATS = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_F16) |
                                   KERNEL_DTYPE_BIT(KERNEL_BF16);

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "a thread an element", .dtypes = FLOATS, .min_compute_capability = 75,
     .deterministic = 1, .run = embedding_naive_run},
    {.name = "vectorized",
     .note = "512 bytes of four rows a warp, columns in bands that fit the cache", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .run = embedding_vectorized_run},
};

static const kernel_variant backward_rows[] = {
    {.name = "atomic", .note = "f32 atomic additions into zeroed tables", .dtypes = FLOATS,
     .min_compute_capability = 75, .workspace_bytes = embedding_atomic_workspace_bytes,
     .run = embedding_atomic_run},
    {.name = "sorted",
     .note = "rows sorted by token, each table row summed in order and written once",
     .dtypes = FLOATS, .min_compute_capability = 75, .deterministic = 1,
     .workspace_bytes = embedding_sorted_workspace_bytes, .run = embedding_sorted_run},
};

extern "C" {
const kernel_table embedding_forward_cuda = {forward_rows,
                                             sizeof forward_rows / sizeof *forward_rows};
const kernel_table embedding_backward_cuda = {backward_rows,
                                              sizeof backward_rows / sizeof *backward_rows};
}
