/*
 * norm.cu - the tables of CUDA norm variants.
 *
 * 1. naive       norm_naive.cu: a block a row, element by element, several
 *                passes; weight and bias gradients by a thread a column
 * 2. vectorized  norm_vectorized.cu: rows in registers, 16 bytes an access,
 *                one pass; weight and bias gradients by partial sums
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include "norm.cuh"

static constexpr unsigned DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_BF16);

/* In the order of kernel_variant's members: name, note, dtypes, compute
 * capability, deterministic, unsupported, workspace_bytes, prepare, release,
 * run. */
static const kernel_variant forward_rows[] = {
    {"naive", "a block a row, three passes, an element an access", DTYPES, 75, 1, nullptr, nullptr,
     nullptr, nullptr, norm_naive_forward_run},
    {"vectorized", "a row in registers, one pass, 16 bytes an access", DTYPES, 75, 1, nullptr,
     nullptr, nullptr, nullptr, norm_vectorized_forward_run},
};

static const kernel_variant backward_rows[] = {
    {"naive", "a block a row for dx, a thread a column for dweight", DTYPES, 75, 1, nullptr,
     nullptr, nullptr, nullptr, norm_naive_backward_run},
    {"vectorized", "dx and partial dweight in one pass, then their sum", DTYPES, 75, 1, nullptr,
     norm_vectorized_backward_workspace_bytes, nullptr, nullptr, norm_vectorized_backward_run},
};

extern "C" {
const kernel_table norm_forward_cuda = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table norm_backward_cuda = {backward_rows,
                                         sizeof backward_rows / sizeof *backward_rows};
}
