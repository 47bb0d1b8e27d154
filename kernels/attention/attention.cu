/*
 * attention.cu - the table of CUDA attention variants.
 *
 * 1. naive         naive.cu: scores in memory, products on CUDA cores
 * 2. naive_cublas  naive.cu: scores in memory, products by cuBLAS
 * 3. tiled         tiled.cu: online softmax on CUDA cores
 * 4. mma           mma.cu: online softmax on tensor cores
 * 5. mma_short     short.cu: up to 128 tokens, all keys at once
 * 6. wgmma         wgmma.cu: as mma, by warpgroups and the copy engine
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include "attention.cuh"

static constexpr unsigned HALVES = KERNEL_DTYPE_BIT(KERNEL_F16) | KERNEL_DTYPE_BIT(KERNEL_BF16);
static constexpr unsigned FLOATS = HALVES | KERNEL_DTYPE_BIT(KERNEL_F32);

static const char *cublas_unsupported(const void *args)
{
    const char *reason = attention_forward_is_strided(args);
    return reason ? reason : device_products_unsupported<attention_forward_args>(args);
}

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "scores in memory; three kernels on CUDA cores", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .unsupported = attention_forward_is_strided,
     .workspace_bytes = attention_naive_workspace_bytes, .run = attention_naive_run},
    {.name = "naive_cublas", .note = "scores in memory; cuBLAS, softmax, cuBLAS",
     .dtypes = FLOATS | KERNEL_DTYPE_BIT(KERNEL_TF32), .min_compute_capability = 75,
     .deterministic = 1, .unsupported = cublas_unsupported,
     .workspace_bytes = attention_cublas_workspace_bytes, .prepare = attention_cublas_prepare,
     .release = attention_cublas_release, .run = attention_cublas_run},
    {.name = "tiled", .note = "online softmax in one kernel on CUDA cores", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .unsupported = attention_tiled_unsupported,
     .run = attention_tiled_run},
    {.name = "mma", .note = "online softmax in one kernel on tensor cores (mma.sync)",
     .dtypes = HALVES, .min_compute_capability = 80, .deterministic = 1,
     .unsupported = attention_mma_unsupported, .run = attention_mma_run},
    {.name = "mma_short", .note = "up to 128 tokens: all keys at once on tensor cores (mma.sync)",
     .dtypes = HALVES, .min_compute_capability = 80, .deterministic = 1,
     .unsupported = attention_short_unsupported, .run = attention_short_run},
    {.name = "wgmma",
     .note = "online softmax overlapped with warpgroup products (wgmma), loads by TMA",
     .dtypes = HALVES | KERNEL_DTYPE_BIT(KERNEL_E4M3), .min_compute_capability = 90,
     .deterministic = 1, .unsupported = attention_wgmma_unsupported,
     .prepare = attention_wgmma_prepare, .release = attention_wgmma_release, .run = attention_wgmma_run},
};

extern "C" const kernel_table attention_forward_cuda = {forward_rows,
                                                        sizeof forward_rows / sizeof *forward_rows};
