/*
 * norm.cu - the tables of CUDA norm variants.
 *
 * 1. naive       naive.cu: a block a row, element by element, several
 *                passes; weight and bias gradients by a thread a column
 * 2. vectorized  vectorized.cu: rows in registers, 16 bytes an access,
 *                one pass; weight and bias gradients by partial sums
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include "norm.cuh"

static constexpr unsigned DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_F16) |
                                   KERNEL_DTYPE_BIT(KERNEL_BF16);

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "a block a row, three passes, an element an access", .dtypes = DTYPES,
     .min_compute_capability = 75, .deterministic = 1, .run = norm_naive_forward_run},
    {.name = "vectorized", .note = "a row in registers, one pass, 16 bytes an access",
     .dtypes = DTYPES, .min_compute_capability = 75, .deterministic = 1,
     .run = norm_vectorized_forward_run},
};

static const kernel_variant backward_rows[] = {
    {.name = "naive", .note = "a block a row for dx, a thread a column for dweight",
     .dtypes = DTYPES, .min_compute_capability = 75, .deterministic = 1,
     .run = norm_naive_backward_run},
    {.name = "vectorized", .note = "dx and partial dweight in one pass, then their sum",
     .dtypes = DTYPES, .min_compute_capability = 75, .deterministic = 1,
     .workspace_bytes = norm_vectorized_backward_workspace_bytes,
     .run = norm_vectorized_backward_run},
};

extern "C" {
const kernel_table norm_forward_cuda = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table norm_backward_cuda = {backward_rows,
                                         sizeof backward_rows / sizeof *backward_rows};
}
