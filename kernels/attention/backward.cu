/*
 * backward.cu - the table of CUDA attention backward variants.
 *
 * 1. naive         backward_naive.cu: scores in memory, CUDA cores
 * 2. naive_cublas  backward_naive.cu: scores in memory, cuBLAS
 * 3. tiled         backward_tiled.cu: scores recomputed, CUDA cores
 * 4. mma           backward_mma.cu: scores recomputed, tensor cores
 * 5. mma_atomic    backward_mma.cu: recomputed once, dq by atomics
 * 6. wgmma         backward_wgmma.cu: the same by warpgroups and the
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

static const kernel_variant backward_rows[] = {
    {.name = "naive", .note = "scores in memory; six kernels on CUDA cores", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .unsupported = attention_backward_is_strided,
     .workspace_bytes = attention_backward_naive_workspace_bytes,
     .run = attention_backward_naive_run},
    {.name = "naive_cublas", .note = "scores in memory; five products by cuBLAS",
     .dtypes = FLOATS | KERNEL_DTYPE_BIT(KERNEL_TF32), .min_compute_capability = 75,
     .deterministic = 1, .unsupported = cublas_unsupported,
     .workspace_bytes = attention_backward_cublas_workspace_bytes,
     .prepare = attention_cublas_prepare, .release = attention_cublas_release,
     .run = attention_backward_cublas_run},
    {.name = "tiled", .note = "scores recomputed on CUDA cores; dq by a pass of its own",
     .dtypes = FLOATS, .min_compute_capability = 75, .deterministic = 1,
     .unsupported = attention_backward_tiled_unsupported,
     .workspace_bytes = attention_backward_tiled_workspace_bytes,
     .run = attention_backward_tiled_run},
    {.name = "mma",
     .note = "scores recomputed on tensor cores (mma.sync); dq by a kernel of its own",
     .dtypes = HALVES, .min_compute_capability = 80, .deterministic = 1,
     .unsupported = attention_backward_mma_unsupported,
     .workspace_bytes = attention_backward_mma_workspace_bytes, .run = attention_backward_mma_run},
    {.name = "mma_atomic",
     .note = "scores recomputed once on tensor cores (mma.sync); dq by f32 atomics",
     .dtypes = HALVES, .min_compute_capability = 80,
     .unsupported = attention_backward_mma_unsupported,
     .workspace_bytes = attention_backward_mma_atomic_workspace_bytes,
     .run = attention_backward_mma_atomic_run},
    {.name = "wgmma",
     .note = "scores recomputed once by warpgroups (wgmma), loads by TMA; dq by f32 atomics",
     .dtypes = HALVES, .min_compute_capability = 90,
     .unsupported = attention_backward_wgmma_unsupported,
     .workspace_bytes = attention_backward_wgmma_workspace_bytes,
     .run = attention_backward_wgmma_run},
};

extern "C" const kernel_table attention_backward_cuda = {
    backward_rows, sizeof backward_rows / sizeof *backward_rows};
