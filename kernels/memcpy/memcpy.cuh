/*
 * memcpy.cuh - the kernels behind memcpy's rows that need more than one launch
 * to be described. Plain C, so that those rows need no CUDA compiler and are
 * tested without a GPU.
 */
#ifndef KERNEL_CUDA_MEMCPY_CUH
#define KERNEL_CUDA_MEMCPY_CUH

#include "memcpy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies by a kernel of the current device, 16 bytes an access where both
 * addresses allow. Either end may be any memory that the device can reach:
 * its own, mapped host memory, a peer's. */
int memcpy_copy_by_kernel(const memcpy_args *args, kernel_stream stream);

/* Computes count results, memcpy_overlap_result's. */
int memcpy_compute(float *results, size_t count, kernel_stream stream);

#ifdef __cplusplus
}
#endif
#endif
