/*
 * attention_backward.cu - the table of CUDA attention backward variants.
 *
 * 1. naive         attention_backward_naive.cu: scores in memory, CUDA cores
 * 2. naive_cublas  attention_backward_naive.cu: scores in memory, cuBLAS
 * 3. tiled         attention_backward_tiled.cu: scores recomputed, CUDA cores
 * 4. mma           attention_backward_mma.cu: scores recomputed, tensor cores
 * 5. mma_atomic    attention_backward_mma.cu: recomputed once, dq by atomics
 * 6. wgmma         attention_backward_wgmma.cu: the same by warpgroups and the
 *                  copy engine
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include "attention.cuh"

static constexpr unsigned HALVES = KERNEL_DTYPE_BIT(KERNEL_F16) | KERNEL_DTYPE_BIT(KERNEL_BF16);
static constexpr unsigned FLOATS = HALVES | KERNEL_DTYPE_BIT(KERNEL_F32);

static const char *cublas_unsupported(const void *args)
{
    const char *reason = attention_backward_is_strided(args);
    return reason ? reason : device_products_unsupported<attention_backward_args>(args);
}

/* In the order of kernel_variant's members: name, note, dtypes, compute
 * capability, deterministic, unsupported, workspace_bytes, prepare, release,
 * run. */
static const kernel_variant backward_rows[] = {
    {"naive", "scores in memory; six kernels on CUDA cores", FLOATS, 75, 1,
     attention_backward_is_strided, attention_backward_naive_workspace_bytes, nullptr, nullptr,
     attention_backward_naive_run},
    {"naive_cublas", "scores in memory; five products by cuBLAS",
     FLOATS | KERNEL_DTYPE_BIT(KERNEL_TF32), 75, 1, cublas_unsupported,
     attention_backward_cublas_workspace_bytes, attention_cublas_prepare, attention_cublas_release,
     attention_backward_cublas_run},
    {"tiled", "scores recomputed on CUDA cores; dq by a pass of its own", FLOATS, 75, 1,
     attention_backward_tiled_unsupported, attention_backward_tiled_workspace_bytes, nullptr,
     nullptr, attention_backward_tiled_run},
    {"mma", "scores recomputed on tensor cores (mma.sync); dq by a kernel of its own", HALVES, 80,
     1, attention_backward_mma_unsupported, attention_backward_mma_workspace_bytes, nullptr,
     nullptr, attention_backward_mma_run},
    {"mma_atomic", "scores recomputed once on tensor cores (mma.sync); dq by f32 atomics", HALVES,
     80, 0, attention_backward_mma_unsupported, attention_backward_mma_atomic_workspace_bytes,
     nullptr, nullptr, attention_backward_mma_atomic_run},
    {"wgmma", "scores recomputed once by warpgroups (wgmma), loads by TMA; dq by f32 atomics",
     HALVES, 90, 0, attention_backward_wgmma_unsupported,
     attention_backward_mma_atomic_workspace_bytes, nullptr, nullptr,
     attention_backward_wgmma_run},
};

extern "C" const kernel_table attention_backward_cuda = {
    backward_rows, sizeof backward_rows / sizeof *backward_rows};
