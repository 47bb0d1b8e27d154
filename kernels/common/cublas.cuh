/*
 * cublas.cuh - the cuBLAS libraries' names for dtypes, and their statuses as
 * error codes.
 */
#ifndef KERNEL_CUBLAS_CUH
#define KERNEL_CUBLAS_CUH

/* Our switches name every dtype; a function in the library's header does not. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
#include <cublasLt.h>
#include <cublas_v2.h>
#pragma GCC diagnostic pop

#include "kernel.h"

/* The names of the operands' elements and of the arithmetic. */
struct cublas_types {
    cudaDataType_t element;
    cublasComputeType_t compute;
};

inline cublas_types cublas_types_of(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32: return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case KERNEL_TF32: return {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case KERNEL_F16: return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case KERNEL_BF16: return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case KERNEL_E4M3: return {CUDA_R_8F_E4M3, CUBLAS_COMPUTE_32F};
    case KERNEL_U8: break;
    }
    return {CUDA_R_8U, CUBLAS_COMPUTE_32F}; /* which cuBLAS refuses */
}

inline int cublas_error(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? KERNEL_OK : KERNEL_ERROR_CUBLAS + status;
}

#endif
