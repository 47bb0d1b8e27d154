/*
 * embedding.cu - the tables of CUDA embedding variants.
 *
 * forward
 * 1. naive       embedding_forward.cu: a thread an element
 * 2. vectorized  embedding_forward.cu: 512 bytes of four rows a warp, in bands
 * backward
 * 3. atomic      embedding_atomic.cu: additions in the L2 cache
 * 4. sorted      embedding_sorted.cu: rows sorted by token, no atomics
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include "embedding.cuh"

static constexpr unsigned FLOATS = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_BF16);

/* In the order of kernel_variant's members: name, note, dtypes, compute
 * capability, deterministic, unsupported, workspace_bytes, prepare, release,
 * run. */
static const kernel_variant forward_rows[] = {
    {"naive", "a thread an element", FLOATS, 75, 1, nullptr, nullptr, nullptr, nullptr,
     embedding_naive_run},
    {"vectorized", "512 bytes of four rows a warp, columns in bands that fit the cache", FLOATS, 75,
     1, nullptr, nullptr, nullptr, nullptr, embedding_vectorized_run},
};

static const kernel_variant backward_rows[] = {
    {"atomic", "f32 atomic additions into zeroed tables", FLOATS, 75, 0, nullptr,
     embedding_atomic_workspace_bytes, nullptr, nullptr, embedding_atomic_run},
    {"sorted", "rows sorted by token, each table row summed in order and written once", FLOATS, 75,
     1, nullptr, embedding_sorted_workspace_bytes, nullptr, nullptr, embedding_sorted_run},
};

extern "C" {
const kernel_table embedding_forward_cuda = {forward_rows,
                                             sizeof forward_rows / sizeof *forward_rows};
const kernel_table embedding_backward_cuda = {backward_rows,
                                              sizeof backward_rows / sizeof *backward_rows};
}
