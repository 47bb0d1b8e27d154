/*
 * tensor_map.cuh - descriptors for the copy engine of sm_90 (TMA).
 */
#ifndef TENSOR_MAP_CUH
#define TENSOR_MAP_CUH

#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "kernel.h"

/* The driver's encoder, found at run time so that nothing links libcuda; NULL
 * if this driver has none. */
inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder()
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                         cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess
               ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)
               : nullptr;
}

/* A tensor of 16-bit or 8-bit elements: elements in each dimension, the innermost first,
 * and elements from one to the next in the second to the fourth, multiples of 16 bytes. */
struct tensor_4d {
    const void *data;
    cuuint64_t sizes[4];
    int64_t strides[3];
};

/* The library's name of a dtype of 16 or 8 bits (bytes are bytes); false for the others. */
inline bool tensor_map_type(kernel_dtype dtype, CUtensorMapDataType *type)
{
    switch (dtype) {
    case KERNEL_F16: *type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16; return true;
    case KERNEL_BF16: *type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16; return true;
    case KERNEL_E4M3: *type = CU_TENSOR_MAP_DATA_TYPE_UINT8; return true;
    case KERNEL_F32:
    case KERNEL_TF32:
    case KERNEL_U8: break;
    }
    return false;
}

/* Boxes of 128 bytes of innermost elements by `rows` (at most 256) of the
 * second dimension, in shared memory as rows of 128 bytes with the 128-byte
 * swizzle. Returns a kernel error code. */
inline int tensor_map_encode(CUtensorMap *map, const tensor_4d &tensor, kernel_dtype dtype,
                             unsigned rows)
{
    static const PFN_cuTensorMapEncodeTiled_v12000 encode = tensor_map_encoder();
    if (!encode) return cudaErrorNotSupported;
    cuuint64_t pitches[3];
    const cuuint32_t bytes = static_cast<cuuint32_t>(kernel_dtype_bytes(dtype));
    for (int i = 0; i < 3; i++) pitches[i] = static_cast<cuuint64_t>(tensor.strides[i]) * bytes;
    const cuuint32_t box[4] = {128 / bytes, rows, 1, 1}, every[4] = {1, 1, 1, 1};
    CUtensorMapDataType type;
    if (!tensor_map_type(dtype, &type)) return KERNEL_ERROR_ARGUMENT;
    CUresult result =
        encode(map, type, 4, const_cast<void *>(tensor.data), tensor.sizes, pitches, box, every,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) return cudaErrorInvalidValue;
    return KERNEL_OK;
}

#endif
