/* The same for cuBLASLt. Descriptions are kept as the calls gave them; of epilogues none is
 * computed. The heuristic proposes two algorithms, which are one. */
#include "inside.h"

#include <cublasLt.h>

#include <stdlib.h>
#include <string.h>

enum { PROPOSALS = 2 };

typedef struct operation {
    int32_t op_a, op_b;
} operation;

typedef struct layout {
    int64_t rows, columns, ld;
    cudaDataType type;
} layout;

/* A zeroed object behind a handle of the library's. */
static cublasStatus_t make(const char *call, void *handle, size_t bytes)
{
    void *made;
    if (fails(call))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    made = calloc(1, bytes);
    memcpy(handle, &made, sizeof made);
    return made ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t destroy(const char *call, void *object)
{
    free(object);
    return fails(call) ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptions ---- */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *handle, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    (void)compute;
    (void)scale;
    return make("cublasLtMatmulDescCreate", handle, sizeof(operation));
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle)
{
    return destroy("cublasLtMatmulDescDestroy", handle);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    operation *one = (operation *)(void *)handle;
    if (fails("cublasLtMatmulDescSetAttribute"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA && bytes == sizeof one->op_a)
        memcpy(&one->op_a, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSB && bytes == sizeof one->op_b)
        memcpy(&one->op_b, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *handle, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    cublasStatus_t status = make("cublasLtMatrixLayoutCreate", handle, sizeof(layout));
    if (status == CUBLAS_STATUS_SUCCESS)
        *(layout *)(void *)*handle = (layout){(int64_t)rows, (int64_t)columns, ld, type};
    return status;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle)
{
    return destroy("cublasLtMatrixLayoutDestroy", handle);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *handle)
{
    return make("cublasLtMatmulPreferenceCreate", handle, 1);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle)
{
    return destroy("cublasLtMatmulPreferenceDestroy", handle);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    (void)handle, (void)attribute, (void)value, (void)bytes;
    return fails("cublasLtMatmulPreferenceSetAttribute") ? CUBLAS_STATUS_INTERNAL_ERROR
                                                         : CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t described, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int most, cublasLtMatmulHeuristicResult_t *results,
    int *count)
{
    int i;
    (void)handle, (void)described, (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (fails("cublasLtMatmulAlgoGetHeuristic"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    *count = most < PROPOSALS ? most : PROPOSALS;
    for (i = 0; i < *count; i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].state = CUBLAS_STATUS_SUCCESS;
        results[i].algo.data[0] = (uint64_t)i;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static int are_f32(const layout *a, const layout *b, const layout *d)
{
    return a->type == CUDA_R_32F && b->type == CUDA_R_32F && d->type == CUDA_R_32F;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t described,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t layout_a,
                              const void *b, cublasLtMatrixLayout_t layout_b, const void *beta,
                              const void *c, cublasLtMatrixLayout_t layout_c, void *d,
                              cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    const operation *one = (const operation *)(const void *)described;
    const layout *of_a = (const layout *)(const void *)layout_a;
    const layout *of_b = (const layout *)(const void *)layout_b;
    const layout *of_c = (const layout *)(const void *)layout_c;
    const layout *of_d = (const layout *)(const void *)layout_d;
    const product what = {.a_is_transposed = one->op_a != CUBLAS_OP_N,
                          .b_is_transposed = one->op_b != CUBLAS_OP_N,
                          .m = of_d->rows, .n = of_d->columns,
                          .k = one->op_a == CUBLAS_OP_N ? of_a->columns : of_a->rows, .batch = 1,
                          .lda = of_a->ld, .ldb = of_b->ld, .ldc = of_c->ld, .ldd = of_d->ld,
                          .a = a, .b = b, .c = c, .d = d,
                          .alpha = *(const float *)alpha, .beta = *(const float *)beta};
    (void)handle, (void)algorithm, (void)workspace, (void)workspace_bytes;
    if (fails("cublasLtMatmul"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (!are_f32(of_a, of_b, of_d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return fake_enqueue_product(stream, &what) == 0 ? CUBLAS_STATUS_SUCCESS
                                                    : CUBLAS_STATUS_EXECUTION_FAILED;
}
