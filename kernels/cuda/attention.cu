/*
 * attention.cu - the table of CUDA attention variants.
 *
 * 1. naive         attention_naive.cu: scores in memory, products on CUDA cores
 * 2. naive_cublas  attention_naive.cu: scores in memory, products by cuBLAS
 * 3. tiled         attention_tiled.cu: online softmax on CUDA cores
 * 4. mma           attention_mma.cu: online softmax on tensor cores
 * 5. mma_short     attention_short.cu: up to 128 tokens, all keys at once
 * 6. wgmma         attention_wgmma.cu: as mma, by warpgroups and the copy engine
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

/* In the order of kernel_variant's members: name, note, dtypes, compute
 * capability, deterministic, unsupported, workspace_bytes, prepare, release,
 * run. */
static const kernel_variant forward_rows[] = {
    {"naive", "scores in memory; three kernels on CUDA cores", FLOATS, 75, 1,
     attention_forward_is_strided, attention_naive_workspace_bytes, nullptr, nullptr,
     attention_naive_run},
    {"naive_cublas", "scores in memory; cuBLAS, softmax, cuBLAS",
     FLOATS | KERNEL_DTYPE_BIT(KERNEL_TF32), 75, 1, cublas_unsupported,
     attention_cublas_workspace_bytes, attention_cublas_prepare, attention_cublas_release,
     attention_cublas_run},
    {"tiled", "online softmax in one kernel on CUDA cores", FLOATS, 75, 1,
     attention_tiled_unsupported, nullptr, nullptr, nullptr, attention_tiled_run},
    {"mma", "online softmax in one kernel on tensor cores (mma.sync)", HALVES, 80, 1,
     attention_mma_unsupported, nullptr, nullptr, nullptr, attention_mma_run},
    {"mma_short", "up to 128 tokens: all keys at once on tensor cores (mma.sync)", HALVES, 80, 1,
     attention_short_unsupported, nullptr, nullptr, nullptr, attention_short_run},
    {"wgmma", "online softmax overlapped with warpgroup products (wgmma), loads by TMA", HALVES,
     90, 1, attention_wgmma_unsupported, nullptr, attention_wgmma_prepare, attention_wgmma_release,
     attention_wgmma_run},
};

extern "C" const kernel_table attention_forward_cuda = {forward_rows,
                                                        sizeof forward_rows / sizeof *forward_rows};
