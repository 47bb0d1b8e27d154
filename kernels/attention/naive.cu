/*
 * naive.cu - attention forward with the scores in memory.
 *
 * 1. naive         Three kernels: scores = scale q k^T, softmax of each row in
 *                  place, out = probabilities v. The products are 64 x 64 tiles
 *                  through shared memory, 4 x 4 results a thread in registers.
 *                  Teaches the cost of materializing: the f32 matrix of a head
 *                  is written and read twice, 16 tokens^2 bytes, where q, k, v
 *                  and out are a few tokens * head_dim. Bound by the CUDA cores'
 *                  f32 rate and by that traffic.
 * 2. naive_cublas  The same with the products by cuBLAS, on tensor cores for
 *                  f16, bf16 and tf32: what is left is the traffic. Bound by
 *                  bytes: 16 tokens^2 a head for f32 and tf32; 12 tokens^2 for
 *                  f16 and bf16, whose probabilities are a second, 16-bit matrix.
 *
 * Causal: both compute every score and hide the later keys in the softmax, as
 * a framework without a fused kernel does.
 */
#include "naive.cuh"

namespace {

/* ---- softmax ----------------------------------------------------------- */

/* A block a row: probabilities = softmax of the row's visible scores, 0 for
 * the others; MASKED: of all scores with the mask's row added. probabilities may be
 * the scores themselves. */
template <bool MASKED, typename T>
__global__ void __launch_bounds__(ROW_THREADS)
softmax_kernel(const float *scores, const float *mask, T *probabilities, float *lse, int64_t tokens,
               int causal)
{
    int64_t index = blockIdx.x;
    int64_t keys = causal && !MASKED ? index % tokens + 1 : tokens;
    auto score = [=](int64_t j) {
        float value = scores[index * tokens + j];
        return MASKED ? value + mask[index % tokens * tokens + j] : value;
    };
    T *out = probabilities + index * tokens;
    float max = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < keys; j += ROW_THREADS) max = fmaxf(max, score(j));
    max = reduce_block(max, maximum());
    for (int64_t j = threadIdx.x; j < keys; j += ROW_THREADS) sum += expf(score(j) - max);
    sum = reduce_block(sum, addition());
    float inverse = 1.0f / sum;
    for (int64_t j = threadIdx.x; j < tokens; j += ROW_THREADS)
        from_f32(j < keys ? expf(score(j) - max) * inverse : 0.0f, out + j);
    if (lse && threadIdx.x == 0) lse[index] = max + logf(sum);
}

template <typename T>
int launch_softmax(const attention_forward_args &args, const float *scores, T *probabilities,
                   kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t rows = head_count(s) * s.tokens;
    if (!attention_fits_grid(rows)) return KERNEL_ERROR_ARGUMENT;
    auto kernel = args.mask ? softmax_kernel<true, T> : softmax_kernel<false, T>;
    kernel<<<static_cast<unsigned>(rows), ROW_THREADS, 0, stream>>>(
        scores, args.mask, probabilities, args.lse, s.tokens, s.causal);
    return cudaGetLastError();
}

template <typename T>
int run_naive(const attention_forward_args &args, float *scores, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t heads = head_count(s);
    int error = launch_product<false, true>(
        heads, s.tokens, s.tokens, s.head_dim, attention_scale(s), static_cast<const T *>(args.q),
        static_cast<const T *>(args.k), scores, stream);
    if (!error) error = launch_softmax(args, scores, scores, stream);
    if (error) return error;
    return launch_product<false, false>(heads, s.tokens, s.head_dim, s.tokens, 1.0f, scores,
                                        static_cast<const T *>(args.v), static_cast<T *>(args.out),
                                        stream);
}

/* ---- by cuBLAS ---------------------------------------------------------- */

template <typename T>
int run_cublas(const attention_forward_args &args, float *scores, T *probabilities,
               cublasHandle_t handle, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    cublas_types types = cublas_types_of(args.dtype);
    int64_t heads = head_count(s), t = s.tokens, d = s.head_dim;
    int error = multiply_by_cublas(handle, heads, {t, t, d, false, true, attention_scale(s)},
                                   types, args.q, args.k, scores, CUDA_R_32F);
    if (!error) error = launch_softmax(args, scores, probabilities, stream);
    return error ? error
                 : multiply_by_cublas(handle, heads, {t, d, t, false, false, 1.0f}, types,
                                      probabilities, args.v, args.out, types.element);
}

} // namespace

size_t attention_naive_workspace_bytes(const void *args)
{
    return score_bytes(static_cast<const attention_forward_args *>(args)->shape, sizeof(float));
}

int attention_naive_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    float *scores = static_cast<float *>(workspace);
    if (!attention_is_valid(a.shape) || attention_forward_is_strided(args))
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

/* f32 scores and, for the 16-bit dtypes, the probabilities behind them. */
size_t attention_cublas_workspace_bytes(const void *args)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    return score_bytes(a.shape, score_element_bytes(a.dtype));
}

int attention_cublas_prepare(const void *, void **state)
{
    return cublas_error(cublasCreate(reinterpret_cast<cublasHandle_t *>(state)));
}

void attention_cublas_release(void *state)
{
    cublasDestroy(static_cast<cublasHandle_t>(state));
}

int attention_cublas_run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    cublasHandle_t handle = static_cast<cublasHandle_t>(state);
    float *scores = static_cast<float *>(workspace);
    if (!attention_is_valid(a.shape) || attention_forward_is_strided(args))
        return KERNEL_ERROR_ARGUMENT;
    void *behind = scores + head_count(a.shape) * a.shape.tokens * a.shape.tokens;
    int error = cublas_error(cublasSetStream(handle, stream));
    if (error) return error;
    switch (a.dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return run_cublas(a, scores, scores, handle, stream);
    case KERNEL_F16: return run_cublas(a, scores, static_cast<__half *>(behind), handle, stream);
    case KERNEL_BF16:
        return run_cublas(a, scores, static_cast<__nv_bfloat16 *>(behind), handle, stream);
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
