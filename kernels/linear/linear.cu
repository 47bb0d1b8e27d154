/*
 * linear.cu - products of linear layers by cuBLAS and cuBLASLt: see linear.cuh.
 *
 * 1. separate  cublasGemmEx, then the kernels of epilogue.cu.
 * 2. timed     cublasLtMatmul with the algorithm that tuner.cu chose,
 *              with the epilogue inside or outside.
 * 3. first     the same with the algorithm that the library proposes first.
 *
 * e4m3 sums as inference does, with the tensor cores' fast accumulation (on 9.0 what they
 * add within a product has fewer bits than f32); its factors come from device memory, where
 * delayed scaling has them.
 *
 * Teaches what an epilogue saves. Bound by the tensor cores (f32: by the CUDA
 * cores) for large shapes, by launches and the last wave of tiles for small ones.
 */
#include "linear.cuh"
#include "tuner.cuh"

namespace {

constexpr float ONE = 1.0f, ZERO = 0.0f;

bool has_product(kernel_dtype dtype, linear_way way)
{
    switch (dtype) {
    case KERNEL_E4M3: return way != LINEAR_SEPARATE;
    case KERNEL_F32:
    case KERNEL_TF32:
    case KERNEL_F16:
    case KERNEL_BF16: return true;
    case KERNEL_U8: break;
    }
    return false;
}

char *align_up(void *memory)
{
    uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    uintptr_t pieces = (address + LINEAR_ALIGNMENT - 1) / LINEAR_ALIGNMENT;
    return reinterpret_cast<char *>(pieces * LINEAR_ALIGNMENT);
}

/* Leading dimensions: the rows of the matrices as they are stored. */
int64_t leading_a(const linear_problem &p) { return p.op_a == CUBLAS_OP_N ? p.m : p.k; }
int64_t leading_b(const linear_problem &p) { return p.op_b == CUBLAS_OP_N ? p.k : p.n; }

/* ---- describing a product to cuBLASLt ------------------------------------------ */

bool writes_aux(linear_epilogue epilogue) { return epilogue == LINEAR_GELU_AUX_BIAS; }
bool uses_aux(linear_epilogue epilogue)
{
    return writes_aux(epilogue) || epilogue == LINEAR_DGELU_BGRAD;
}

cublasLtEpilogue_t name_of(linear_epilogue epilogue)
{
    switch (epilogue) {
    case LINEAR_BIAS: return CUBLASLT_EPILOGUE_BIAS;
    case LINEAR_GELU_BIAS: return CUBLASLT_EPILOGUE_GELU_BIAS;
    case LINEAR_GELU_AUX_BIAS: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case LINEAR_DGELU_BGRAD: return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    case LINEAR_BGRADB: return CUBLASLT_EPILOGUE_BGRADB;
    case LINEAR_PLAIN: break;
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
}

template <typename T>
cublasStatus_t set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, T value)
{
    return cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof value);
}

/* Whether d is rounded to e4m3, which the product does only with the epilogue inside. */
bool rounds_d(const linear_problem &p) { return p.d_dtype == KERNEL_E4M3; }

cublasStatus_t describe_e4m3(cublasLtMatmulDesc_t operation)
{
    cublasStatus_t status = set(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t(1));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(CUDA_R_16BF));
}

int describe_operation(linear_plan *plan)
{
    const linear_problem &p = plan->problem;
    cublasStatus_t status =
        cublasLtMatmulDescCreate(&plan->operation, cublas_types_of(p.dtype).compute, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, p.op_a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, p.op_b);
    if (status == CUBLAS_STATUS_SUCCESS && plan->fused)
        status = set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, name_of(p.epilogue));
    if (status == CUBLAS_STATUS_SUCCESS && plan->fused && uses_aux(p.epilogue))
        status = set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.m);
    if (status == CUBLAS_STATUS_SUCCESS && p.dtype == KERNEL_E4M3)
        status = describe_e4m3(plan->operation);
    return cublas_error(status);
}

cublasStatus_t create_layout(cublasLtMatrixLayout_t *layout, kernel_dtype dtype, int64_t rows,
                             int64_t columns)
{
    return cublasLtMatrixLayoutCreate(layout, cublas_types_of(dtype).element,
                                      static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                      rows);
}

} // namespace

int linear_describe(linear_plan *plan)
{
    const linear_problem &p = plan->problem;
    int64_t rows_a = leading_a(p), rows_b = leading_b(p);
    int error = describe_operation(plan);
    if (error) return error;
    cublasStatus_t status = create_layout(&plan->a, p.dtype, rows_a, p.m + p.k - rows_a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = create_layout(&plan->b, p.dtype, rows_b, p.k + p.n - rows_b);
    kernel_dtype result = kernel_result_dtype(p.dtype);
    if (status == CUBLAS_STATUS_SUCCESS) status = create_layout(&plan->c, result, p.m, p.n);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = create_layout(&plan->d, plan->fused ? p.d_dtype : result, p.m, p.n);
    return cublas_error(status);
}

int linear_set_pointers(const linear_plan &plan, const linear_operands &o)
{
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (plan.problem.dtype == KERNEL_E4M3)
        status = set(plan.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.a_scale);
    if (status == CUBLAS_STATUS_SUCCESS && plan.problem.dtype == KERNEL_E4M3)
        status = set(plan.operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.b_scale);
    if (!plan.fused || status != CUBLAS_STATUS_SUCCESS) return cublas_error(status);
    status = set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
    if (status == CUBLAS_STATUS_SUCCESS && rounds_d(plan.problem))
        status = set(plan.operation, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, o.d_scale);
    if (status == CUBLAS_STATUS_SUCCESS && uses_aux(plan.problem.epilogue))
        status = set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.aux);
    return cublas_error(status);
}

/* ---- running -------------------------------------------------------------------- */

namespace {

int run_lt(cublasLtHandle_t lt, const linear_plan &plan, const linear_operands &o, void *workspace,
           kernel_stream stream)
{
    bool adds_c = plan.problem.adds_c, rounds = plan.fused && rounds_d(plan.problem);
    const void *c = adds_c ? o.c : rounds ? nullptr : o.d;
    int error = linear_set_pointers(plan, o);
    if (error) return error;
    return cublas_error(cublasLtMatmul(lt, plan.operation, &ONE, o.a, plan.a, o.b, plan.b,
                                       adds_c ? &ONE : &ZERO, c, plan.c, o.d, plan.d,
                                       &plan.algorithm, workspace, LINEAR_LT_WORKSPACE_BYTES,
                                       stream));
}

/* cublasGemmEx adds only what d holds already: another c is linear_run's to add. */
bool adds_to_d(const linear_problem &p, const linear_operands &o)
{
    return p.adds_c && o.c == o.d;
}

int run_gemm(cublasHandle_t handle, const linear_problem &p, const linear_operands &o,
             kernel_stream stream)
{
    cublas_types types = cublas_types_of(p.dtype);
    cublasStatus_t status = cublasSetStream(handle, stream);
    if (status != CUBLAS_STATUS_SUCCESS) return cublas_error(status);
    return cublas_error(cublasGemmEx_64(handle, p.op_a, p.op_b, p.m, p.n, p.k, &ONE, o.a,
                                        types.element, leading_a(p), o.b, types.element,
                                        leading_b(p), adds_to_d(p, o) ? &ONE : &ZERO, o.d,
                                        types.element, p.m, types.compute, CUBLAS_GEMM_DEFAULT));
}

/* The epilogue by our kernels. d^T is [n, m] row major; b, of a weight
 * gradient, [k, n]. */
int run_epilogue(const linear_problem &p, const linear_operands &o, void *partials,
                 kernel_stream stream)
{
    kernel_dtype result = kernel_result_dtype(p.dtype);
    int error = KERNEL_OK;
    switch (p.epilogue) {
    case LINEAR_BIAS: return linear_add_bias(result, p.n, p.m, o.bias, o.d, stream);
    case LINEAR_GELU_BIAS:
        if (rounds_d(p))
            return linear_bias_gelu_e4m3(p.n, p.m, o.bias, o.aux, o.d_scale, o.d, stream);
        return linear_bias_gelu(result, p.n, p.m, o.bias, o.d, o.d, stream);
    case LINEAR_GELU_AUX_BIAS:
        return linear_bias_gelu(p.dtype, p.n, p.m, o.bias, o.aux, o.d, stream);
    case LINEAR_DGELU_BGRAD:
        error = linear_gelu_gradient(p.dtype, p.n, p.m, o.aux, o.d, stream);
        if (error) return error;
        return linear_column_sum(p.dtype, p.n, p.m, o.d, o.bias, partials, stream);
    case LINEAR_BGRADB:
        return linear_column_sum(p.dtype, p.k, p.n, o.b, o.bias, partials, stream);
    case LINEAR_PLAIN: break;
    }
    return KERNEL_OK;
}

} // namespace

linear_problem linear_forward(kernel_dtype dtype, int64_t tokens, int64_t in, int64_t out,
                              linear_epilogue epilogue, bool adds_c)
{
    return {.op_a = CUBLAS_OP_T, .op_b = CUBLAS_OP_N, .m = out, .n = tokens, .k = in,
            .dtype = dtype, .epilogue = epilogue, .adds_c = adds_c,
            .d_dtype = kernel_result_dtype(dtype)};
}

linear_problem linear_input_gradient(kernel_dtype dtype, int64_t tokens, int64_t in, int64_t out,
                                     linear_epilogue epilogue)
{
    return {.op_a = CUBLAS_OP_N, .op_b = CUBLAS_OP_N, .m = in, .n = tokens, .k = out,
            .dtype = dtype, .epilogue = epilogue, .d_dtype = kernel_result_dtype(dtype)};
}

linear_problem linear_weight_gradient(kernel_dtype dtype, int64_t tokens, int64_t in, int64_t out,
                                      linear_epilogue epilogue)
{
    return {.op_a = CUBLAS_OP_N, .op_b = CUBLAS_OP_T, .m = in, .n = out, .k = tokens,
            .dtype = dtype, .epilogue = epilogue, .d_dtype = kernel_result_dtype(dtype)};
}

size_t linear_workspace_bytes(int64_t width)
{
    return LINEAR_ALIGNMENT + LINEAR_LT_WORKSPACE_BYTES + linear_column_sum_bytes(width);
}

int linear_run(cublasHandle_t handle, const linear_plan &plan, const linear_operands &operands,
               void *workspace, kernel_stream stream)
{
    const linear_problem &p = plan.problem;
    char *lt_workspace = align_up(workspace), *partials = lt_workspace + LINEAR_LT_WORKSPACE_BYTES;
    linear_operands product = operands;
    if (!plan.fused && (writes_aux(p.epilogue) || rounds_d(p))) product.d = operands.aux;
    int error;
    if (plan.by_lt)
        error = run_lt(reinterpret_cast<cublasLtHandle_t>(handle), plan, product, lt_workspace,
                       stream);
    else
        error = run_gemm(handle, p, product, stream);
    if (error || plan.fused) return error;
    if (!plan.by_lt && p.adds_c && !adds_to_d(p, product))
        error = linear_add(p.dtype, p.n, p.m, product.d, operands.c, product.d, stream);
    return error ? error : run_epilogue(p, operands, partials, stream);
}

int linear_plan_create(cublasHandle_t handle, const linear_problem &problem, linear_way way,
                       linear_plan *plan)
{
    *plan = {};
    plan->problem = problem;
    if (!has_product(problem.dtype, way) || problem.m < 1 || problem.n < 1 || problem.k < 1)
        return KERNEL_ERROR_ARGUMENT;
    if (way == LINEAR_SEPARATE) return KERNEL_OK;
    linear_choice best;
    int error = way == LINEAR_FIRST ? linear_propose_first(handle, problem, &best)
                                    : linear_choose(handle, problem, &best);
    if (error) return error;
    plan->by_lt = true;
    plan->fused = best.fused;
    plan->algorithm = best.algorithm;
    return linear_describe(plan);
}

void linear_plan_destroy(linear_plan *plan)
{
    if (plan->d) cublasLtMatrixLayoutDestroy(plan->d);
    if (plan->c) cublasLtMatrixLayoutDestroy(plan->c);
    if (plan->b) cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->a) cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->operation) cublasLtMatmulDescDestroy(plan->operation);
    *plan = {};
}
