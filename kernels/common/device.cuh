/*
 * device.cuh - what the current GPU can do, as reasons for `unsupported`: on
 * which GPUs a kernel runs is decided before it is launched.
 */
#ifndef KERNEL_DEVICE_CUH
#define KERNEL_DEVICE_CUH

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "kernel.h"

inline int device_attribute(cudaDeviceAttr attribute)
{
    int device, value;
    return cudaGetDevice(&device) == cudaSuccess &&
                   cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess
               ? value
               : 0;
}

/* 80 is sm_80; 0 if there is no device. */
inline int device_compute_capability()
{
    return device_attribute(cudaDevAttrComputeCapabilityMajor) * 10 +
           device_attribute(cudaDevAttrComputeCapabilityMinor);
}

/* Why a block of the current device cannot have so many bytes of shared memory,
 * or NULL: it has 64 KiB on 7.5, 163 on 8.0, 99 on 8.6, 8.9 and 12.0, 227 on 9.0
 * and 10.0. The text lives until the thread asks for the next one. */
inline const char *device_shared_memory_unsupported(size_t bytes)
{
    static thread_local char reason[96];
    size_t limit =
        static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
    if (bytes <= limit) return nullptr;
    snprintf(reason, sizeof reason, "needs %zu KiB of shared memory per block, this GPU has %zu",
             (bytes + 1023) / 1024, limit / 1024);
    return reason;
}

/* Why the tensor cores of the current device do not take the dtype, or NULL: for
 * rows whose products are cuBLAS's and that take other dtypes on older GPUs. */
inline const char *device_products_unsupported(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_BF16:
    case KERNEL_TF32:
        return device_compute_capability() < 80
                   ? "bf16 and tf32 products need compute capability 8.0"
                   : nullptr;
    case KERNEL_E4M3:
        return device_compute_capability() < 89 ? "e4m3 products need compute capability 8.9"
                                                : nullptr;
    case KERNEL_F32:
    case KERNEL_F16:
    case KERNEL_U8: break;
    }
    return nullptr;
}

/* The same as a row's `unsupported`. */
template <typename Args> const char *device_products_unsupported(const void *args)
{
    return device_products_unsupported(static_cast<const Args *>(args)->dtype);
}

#endif
