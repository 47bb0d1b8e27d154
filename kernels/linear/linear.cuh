/*
 * linear.cuh - the products of linear layers by cuBLAS and cuBLASLt, with what
 * is done to their results on the way: bias, GELU, their gradients. ffn and
 * block are made of these.
 *
 * A step is one product and its epilogue. It is done in one of three ways:
 *
 *   separate  cublasGemmEx with its default algorithm, then kernels of our own
 *             (epilogue.cu);
 *   timed     cublasLtMatmul, with the epilogue fused where the library does
 *             that for the shape and dtype; which of the algorithms that its
 *             heuristic proposes, fused or with our kernels, is found by timing
 *             them when the plan is made, on scratch memory;
 *   first     the same by the heuristic's first proposal, fused where it has one.
 *
 * e4m3 is cuBLASLt's only, and that wants op_a T and op_b N, which is a forward step.
 *
 * Layout: rows of tokens, row major; a weight is [out, in], as in PyTorch's
 * Linear. cuBLAS is column major: there a row-major [r, c] matrix is the c x r
 * one with leading dimension c. So each product is asked for transposed:
 *
 *   y = x w^T    [tokens, out]   y^T  [out x tokens] = w x^T      op_a T, op_b N
 *   dx = dy w    [tokens, in]    dx^T [in x tokens]  = w^T dy^T   op_a N, op_b N
 *   dw = dy^T x  [out, in]       dw^T [in x out]     = x^T dy     op_a N, op_b T
 *
 * and a bias, one value per column of y, is one per row of y^T: cuBLASLt's kind.
 */
#ifndef LINEAR_CUH
#define LINEAR_CUH

#include <cuda_runtime.h>

#include "../common/kernel.h"
#include "../common/cublas.cuh"

/* What happens to the product p. bias and aux are the operands' members. */
enum linear_epilogue {
    LINEAR_PLAIN,         /* d = p */
    LINEAR_BIAS,          /* d = p + bias */
    LINEAR_GELU_BIAS,     /* d = gelu(p + bias) */
    LINEAR_GELU_AUX_BIAS, /* aux = p + bias, d = gelu(aux) */
    LINEAR_DGELU_BGRAD,   /* d = p * gelu'(aux), bias = d summed over the tokens */
    LINEAR_BGRADB         /* d = p, bias = b summed over the tokens */
};

/* d[m x n] = op_a(a) op_b(b), of depth k, column major and contiguous; with
 * adds_c, c is added before anything else. */
struct linear_problem {
    cublasOperation_t op_a, op_b;
    int64_t m, n, k;
    kernel_dtype dtype; /* f32, tf32, f16, bf16 or e4m3, of a and b; sums are f32 */
    linear_epilogue epilogue;
    bool adds_c;
    kernel_dtype d_dtype; /* of d: kernel_result_dtype(dtype), which bias, c and aux are too,
                             or, of LINEAR_GELU_BIAS, e4m3: the next product's operand */
};

/* Device memory, aligned to 16 bytes. A gradient's epilogue writes bias and
 * reads aux; a forward one reads bias and writes aux. c may be d. */
struct linear_operands {
    const void *a, *b, *c;
    void *d, *bias, *aux;
    /* Of e4m3, one f32 each: the factors of a and b, and what is multiplied into d before
     * it is rounded to e4m3. aux is then scratch, of bf16 and as large as d. */
    const float *a_scale, *b_scale, *d_scale;
};

linear_problem linear_forward(kernel_dtype dtype, int64_t tokens, int64_t in, int64_t out,
                              linear_epilogue epilogue, bool adds_c);
linear_problem linear_input_gradient(kernel_dtype dtype, int64_t tokens, int64_t in, int64_t out,
                                     linear_epilogue epilogue);
linear_problem linear_weight_gradient(kernel_dtype dtype, int64_t tokens, int64_t in, int64_t out,
                                      linear_epilogue epilogue);

/* How a problem is done. Made by linear_plan_create, undone by
 * linear_plan_destroy, which also takes one that is all zeros. */
struct linear_plan {
    linear_problem problem;
    bool by_lt; /* cuBLASLt with the members below; else cublasGemmEx */
    bool fused; /* the epilogue is inside the product */
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulAlgo_t algorithm;
};

enum linear_way { LINEAR_SEPARATE, LINEAR_TIMED, LINEAR_FIRST };

/* LINEAR_TIMED, the first time that the process asks for a problem, allocates
 * and frees scratch of the operands' sizes, runs the candidates and
 * synchronizes. Returns KERNEL_OK, a cudaError_t or
 * KERNEL_ERROR_CUBLAS + a status. */
int linear_plan_create(cublasHandle_t handle, const linear_problem &problem, linear_way way,
                       linear_plan *plan);
void linear_plan_destroy(linear_plan *plan);

/* Bytes of the workspace of one linear_run whose outputs and bias are at most
 * `width` wide. Runs on one stream share it. */
size_t linear_workspace_bytes(int64_t width);

/* Enqueues the step. */
int linear_run(cublasHandle_t handle, const linear_plan &plan, const linear_operands &operands,
               void *workspace, kernel_stream stream);

/* ---- the separate kernels (epilogue.cu) ---------------------------- */

/* Matrices are [rows, width], contiguous, of dtype. Each returns an error code.
 * linear_add_bias: y += bias, in place. */
int linear_add_bias(kernel_dtype dtype, int64_t rows, int64_t width, const void *bias, void *y,
                    kernel_stream stream);

/* pre += bias in place, hidden = gelu(pre); hidden may be pre, which then
 * becomes gelu(pre + bias). GELU is its tanh form (Hendrycks and Gimpel,
 * "Gaussian error linear units", 2016):
 * 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). */
int linear_bias_gelu(kernel_dtype dtype, int64_t rows, int64_t width, const void *bias, void *pre,
                     void *hidden, kernel_stream stream);

/* hidden = gelu(pre + bias) * *scale, rounded to e4m3, of pre and bias in bf16. */
int linear_bias_gelu_e4m3(int64_t rows, int64_t width, const void *bias, const void *pre,
                          const float *scale, void *hidden, kernel_stream stream);

/* gradient *= gelu'(pre), in place. */
int linear_gelu_gradient(kernel_dtype dtype, int64_t rows, int64_t width, const void *pre,
                         void *gradient, kernel_stream stream);

/* sum = a + b; sum may be either. */
int linear_add(kernel_dtype dtype, int64_t rows, int64_t width, const void *a, const void *b,
               void *sum, kernel_stream stream);

/* total[width] = matrix summed over its rows, in f32 and in a fixed order.
 * workspace: linear_column_sum_bytes(width). */
size_t linear_column_sum_bytes(int64_t width);
int linear_column_sum(kernel_dtype dtype, int64_t rows, int64_t width, const void *matrix,
                      void *total, void *workspace, kernel_stream stream);

#endif
