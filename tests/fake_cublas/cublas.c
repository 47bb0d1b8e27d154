/* A substitute for cuBLAS, of our own making, on the substitute for the CUDA runtime in
 * fake_cuda/: the part that kernels/ use, by its documented interface, for f32. A product takes
 * simulated time on its stream and is computed there. A program in which calls are made to fail
 * is asked at each (fake_cuda/faulty.h): one that fails does nothing but to destroy what it
 * destroys. */
#include "inside.h"

#include <cublas_v2.h>

#include <stdlib.h>

struct cublasContext {
    cudaStream_t stream;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    if (fails("cublasCreate"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return fails("cublasDestroy") ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    if (fails("cublasSetStream"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t enqueue(cublasHandle_t handle, const product *what)
{
    return fake_enqueue_product(handle->stream, what) == 0 ? CUBLAS_STATUS_SUCCESS
                                                           : CUBLAS_STATUS_EXECUTION_FAILED;
}

static int are_f32(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c)
{
    return a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a,
                               cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
                               const void *alpha, const void *a, cudaDataType_t type_a,
                               int64_t lda, const void *b, cudaDataType_t type_b, int64_t ldb,
                               const void *beta, void *c, cudaDataType_t type_c, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    const product what = {.a_is_transposed = op_a != CUBLAS_OP_N,
                          .b_is_transposed = op_b != CUBLAS_OP_N,
                          .m = m, .n = n, .k = k, .batch = 1,
                          .lda = lda, .ldb = ldb, .ldc = ldc, .ldd = ldc,
                          .a = a, .b = b, .c = c, .d = c,
                          .alpha = *(const float *)alpha, .beta = *(const float *)beta};
    (void)compute;
    (void)algorithm;
    if (fails("cublasGemmEx"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (!are_f32(type_a, type_b, type_c))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return enqueue(handle, &what);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,
    int64_t k, const void *alpha, const void *a, cudaDataType_t type_a, int64_t lda,
    long long stride_a, const void *b, cudaDataType_t type_b, int64_t ldb, long long stride_b,
    const void *beta, void *c, cudaDataType_t type_c, int64_t ldc, long long stride_c,
    int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    const product what = {.a_is_transposed = op_a != CUBLAS_OP_N,
                          .b_is_transposed = op_b != CUBLAS_OP_N,
                          .m = m, .n = n, .k = k, .batch = batch,
                          .lda = lda, .ldb = ldb, .ldc = ldc, .ldd = ldc,
                          .stride_a = stride_a, .stride_b = stride_b, .stride_d = stride_c,
                          .a = a, .b = b, .c = c, .d = c,
                          .alpha = *(const float *)alpha, .beta = *(const float *)beta};
    (void)compute;
    (void)algorithm;
    if (fails("cublasGemmStridedBatchedEx"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (!are_f32(type_a, type_b, type_c) || what.beta != 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return enqueue(handle, &what);
}
