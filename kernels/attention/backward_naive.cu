/*
 * backward_naive.cu - attention backward with the scores in memory.
 *
 * 1. naive         Six kernels: scores = scale q k^T and dp = dout v^T; of each
 *                  row the probabilities and the scores' gradients in their
 *                  place; then dv, dk and dq. The products are naive.cu's
 *                  64 x 64 tiles. Two f32 matrices a head, each written twice and
 *                  read two or three times: 36 tokens^2 bytes. Bound by the CUDA
 *                  cores' f32 rate and by that traffic.
 * 2. naive_cublas  The same with the products by cuBLAS, on tensor cores for
 *                  f16, bf16 and tf32: what is left is the traffic, 36 tokens^2
 *                  bytes a head for f32 and tf32; 26 for f16 and bf16, whose
 *                  probabilities and gradients are two more, 16-bit matrices.
 *
 * Causal: both compute every score and leave the later keys out in the step
 * over rows, as a framework without a fused kernel does.
 */
#include "naive.cuh"

namespace {

/* A block a row. scores become probabilities exp(score - lse), and dp their
 * gradients p (dp - delta); 0 for keys that the row does not see. T's matrices
 * may be the f32 ones themselves. */
template <typename E, typename T>
__global__ void __launch_bounds__(ROW_THREADS)
gradients_kernel(const float *scores, const float *dp, T *probabilities, T *gradients, const E *out,
                 const E *dout, const float *lse, int64_t tokens, int64_t head_dim, int causal)
{
    int64_t index = blockIdx.x;
    int64_t keys = causal ? index % tokens + 1 : tokens;
    float delta = 0.0f, row_lse = lse[index];
    for (int64_t c = threadIdx.x; c < head_dim; c += ROW_THREADS)
        delta = fmaf(to_f32(out[index * head_dim + c]), to_f32(dout[index * head_dim + c]), delta);
    delta = reduce_block(delta, addition());
    for (int64_t j = threadIdx.x; j < tokens; j += ROW_THREADS) {
        int64_t at = index * tokens + j;
        float p = j < keys ? expf(scores[at] - row_lse) : 0.0f;
        float ds = j < keys ? p * (dp[at] - delta) : 0.0f;
        from_f32(p, probabilities + at);
        from_f32(ds, gradients + at);
    }
}

template <typename E, typename T>
int launch_gradients(const attention_backward_args &args, const float *scores, const float *dp,
                     T *probabilities, T *gradients, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t rows = head_count(s) * s.tokens;
    if (!attention_fits_grid(rows)) return KERNEL_ERROR_ARGUMENT;
    gradients_kernel<E, T><<<static_cast<unsigned>(rows), ROW_THREADS, 0, stream>>>(
        scores, dp, probabilities, gradients, static_cast<const E *>(args.out),
        static_cast<const E *>(args.dout), args.lse, s.tokens, s.head_dim, s.causal);
    return cudaGetLastError();
}

int64_t matrix_elements(const attention_shape &s)
{
    return head_count(s) * s.tokens * s.tokens;
}

/* ---- products on CUDA cores -------------------------------------------- */

template <typename T>
int run_naive(const attention_backward_args &args, float *scores, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t heads = head_count(s), t = s.tokens, d = s.head_dim;
    float scale = attention_scale(s), *dp = scores + matrix_elements(s);
    const T *q = static_cast<const T *>(args.q), *k = static_cast<const T *>(args.k);
    const T *v = static_cast<const T *>(args.v), *dout = static_cast<const T *>(args.dout);
    T *dq = static_cast<T *>(args.dq), *dk = static_cast<T *>(args.dk);
    T *dv = static_cast<T *>(args.dv);
    int error = launch_product<false, true>(heads, t, t, d, scale, q, k, scores, stream);
    if (!error) error = launch_product<false, true>(heads, t, t, d, 1.0f, dout, v, dp, stream);
    if (!error) error = launch_gradients<T>(args, scores, dp, scores, dp, stream);
    if (!error) error = launch_product<true, false>(heads, t, d, t, 1.0f, scores, dout, dv, stream);
    if (!error) error = launch_product<true, false>(heads, t, d, t, scale, dp, q, dk, stream);
    return error ? error : launch_product<false, false>(heads, t, d, t, scale, dp, k, dq, stream);
}

/* ---- by cuBLAS ---------------------------------------------------------- */

template <typename E>
int run_cublas(const attention_backward_args &args, float *scores, E *probabilities, E *gradients,
               cublasHandle_t handle, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    cublas_types types = cublas_types_of(args.dtype);
    int64_t heads = head_count(s), t = s.tokens, d = s.head_dim;
    float scale = attention_scale(s), *dp = scores + matrix_elements(s);
    cublas_product to_scores = {t, t, d, false, true, scale};
    cublas_product to_dp = {t, t, d, false, true, 1.0f};
    cublas_product to_dv = {t, d, t, true, false, 1.0f};
    cublas_product to_dk = {t, d, t, true, false, scale};
    cublas_product to_dq = {t, d, t, false, false, scale};
    auto multiply = [&](const cublas_product &p, const void *a, const void *b, void *c,
                        cudaDataType_t type) {
        return multiply_by_cublas(handle, heads, p, types, a, b, c, type);
    };
    int error = multiply(to_scores, args.q, args.k, scores, CUDA_R_32F);
    if (!error) error = multiply(to_dp, args.dout, args.v, dp, CUDA_R_32F);
    if (!error) error = launch_gradients<E>(args, scores, dp, probabilities, gradients, stream);
    if (!error) error = multiply(to_dv, probabilities, args.dout, args.dv, types.element);
    if (!error) error = multiply(to_dk, gradients, args.q, args.dk, types.element);
    return error ? error : multiply(to_dq, gradients, args.k, args.dq, types.element);
}

/* The 16-bit matrices lie behind the two f32 ones. */
template <typename E>
int run_cublas_half(const attention_backward_args &args, float *scores, cublasHandle_t handle,
                    kernel_stream stream)
{
    int64_t elements = matrix_elements(args.shape);
    E *probabilities = reinterpret_cast<E *>(scores + 2 * elements);
    return run_cublas<E>(args, scores, probabilities, probabilities + elements, handle, stream);
}

} // namespace

size_t attention_backward_naive_workspace_bytes(const void *args)
{
    const attention_backward_args &a = *static_cast<const attention_backward_args *>(args);
    return score_bytes(a.shape, 2 * sizeof(float));
}

int attention_backward_naive_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    const attention_backward_args &a = *static_cast<const attention_backward_args *>(args);
    float *scores = static_cast<float *>(workspace);
    if (!attention_is_valid(a.shape) || attention_backward_is_strided(args))
        return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F32: return run_naive<float>(a, scores, stream);
    case KERNEL_F16: return run_naive<__half>(a, scores, stream);
    case KERNEL_BF16: return run_naive<__nv_bfloat16>(a, scores, stream);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

size_t attention_backward_cublas_workspace_bytes(const void *args)
{
    const attention_backward_args &a = *static_cast<const attention_backward_args *>(args);
    return score_bytes(a.shape, 2 * score_element_bytes(a.dtype));
}

int attention_backward_cublas_run(const void *args, void *workspace, void *state,
                                  kernel_stream stream)
{
    const attention_backward_args &a = *static_cast<const attention_backward_args *>(args);
    cublasHandle_t handle = static_cast<cublasHandle_t>(state);
    float *scores = static_cast<float *>(workspace);
    if (!attention_is_valid(a.shape) || attention_backward_is_strided(args))
        return KERNEL_ERROR_ARGUMENT;
    int error = cublas_error(cublasSetStream(handle, stream));
    if (error) return error;
    switch (a.dtype) {
    case KERNEL_F32:
    case KERNEL_TF32:
        return run_cublas(a, scores, scores, scores + matrix_elements(a.shape), handle, stream);
    case KERNEL_F16: return run_cublas_half<__half>(a, scores, handle, stream);
    case KERNEL_BF16: return run_cublas_half<__nv_bfloat16>(a, scores, handle, stream);
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
