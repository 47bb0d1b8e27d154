/*
 * loss.cu - the tables of CUDA cross-entropy variants.
 *
 * 1. naive           naive.cu: the logarithm of the softmax in memory,
 *                    then a kernel for the loss and one for the gradient
 * 2. fused           fused.cu: forward reads the logits once, backward
 *                    reads and writes once
 * 3. fused_one_pass  fused.cu: loss and gradient from one read and one
 *                    write, the row kept in shared memory between them
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include "loss.cuh"

using run_function = int(const void *, void *, void *, kernel_stream);
using workspace_function = size_t(const void *);

/* No row here has state or refuses a shape, and all give equal bits. */
static constexpr kernel_variant row(const char *name, const char *note,
                                    workspace_function *workspace_bytes, run_function *run)
{
    return {.name = name, .note = note,
            .dtypes = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_F16) |
                      KERNEL_DTYPE_BIT(KERNEL_BF16),
            .min_compute_capability = 75, .deterministic = 1, .workspace_bytes = workspace_bytes,
            .run = run};
}

static const kernel_variant forward_rows[] = {
    row("naive", "log-softmax in memory, then a pick by target", loss_naive_workspace_bytes,
        loss_naive_forward_run),
    row("fused", "online softmax, logits read once", nullptr, loss_fused_forward_run),
};

static const kernel_variant backward_rows[] = {
    row("naive", "log-softmax in memory, then the gradient", loss_naive_workspace_bytes,
        loss_naive_backward_run),
    row("fused", "from the saved lse in one read and one write", nullptr, loss_fused_backward_run),
};

static const kernel_variant forward_backward_rows[] = {
    row("naive", "log-softmax in memory, then a pick, then the gradient",
        loss_naive_workspace_bytes, loss_naive_forward_backward_run),
    row("fused_one_pass", "one read and one write, the row in shared memory", nullptr,
        loss_fused_forward_backward_run),
};

extern "C" {
const kernel_table loss_forward_cuda = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table loss_backward_cuda = {backward_rows,
                                         sizeof backward_rows / sizeof *backward_rows};
const kernel_table loss_forward_backward_cuda = {
    forward_backward_rows, sizeof forward_backward_rows / sizeof *forward_backward_rows};
}
