/*
 * attention_naive.cu - attention forward with the scores in memory.
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
#include <cublas_v2.h>

#include "attention.cuh"

namespace {

/* ---- softmax ----------------------------------------------------------- */

constexpr int SOFTMAX_THREADS = 256;
constexpr int SOFTMAX_WARPS = SOFTMAX_THREADS / 32;

struct maximum {
    static constexpr float neutral = -INFINITY;
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct addition {
    static constexpr float neutral = 0.0f;
    __device__ float operator()(float a, float b) const { return a + b; }
};

/* Over the whole block; every thread gets the result. */
template <typename Operation>
__device__ float reduce_block(float value, Operation operation)
{
    __shared__ float warps[SOFTMAX_WARPS];
    for (int lane = 16; lane > 0; lane /= 2)
        value = operation(value, __shfl_xor_sync(0xffffffffu, value, lane));
    __syncthreads(); /* the last call's readers are done */
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = Operation::neutral;
    for (int i = 0; i < SOFTMAX_WARPS; i++) value = operation(value, warps[i]);
    return value;
}

/* A block a row: probabilities = softmax of the row's visible scores, 0 for
 * the others. probabilities may be the scores themselves. */
template <typename T>
__global__ void __launch_bounds__(SOFTMAX_THREADS)
softmax_kernel(const float *scores, T *probabilities, float *lse, int64_t tokens, int causal)
{
    int64_t index = blockIdx.x;
    int64_t keys = causal ? index % tokens + 1 : tokens;
    const float *row = scores + index * tokens;
    T *out = probabilities + index * tokens;
    float max = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < keys; j += SOFTMAX_THREADS) max = fmaxf(max, row[j]);
    max = reduce_block(max, maximum());
    for (int64_t j = threadIdx.x; j < keys; j += SOFTMAX_THREADS) sum += expf(row[j] - max);
    sum = reduce_block(sum, addition());
    float inverse = 1.0f / sum;
    for (int64_t j = threadIdx.x; j < tokens; j += SOFTMAX_THREADS)
        from_f32(j < keys ? expf(row[j] - max) * inverse : 0.0f, out + j);
    if (lse && threadIdx.x == 0) lse[index] = max + logf(sum);
}

int64_t head_count(const attention_shape &s)
{
    return s.batch * s.heads;
}

template <typename T>
int launch_softmax(const attention_forward_args &args, const float *scores, T *probabilities,
                   kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t rows = head_count(s) * s.tokens;
    if (!attention_fits_grid(rows)) return KERNEL_ERROR_ARGUMENT;
    softmax_kernel<T><<<static_cast<unsigned>(rows), SOFTMAX_THREADS, 0, stream>>>(
        scores, probabilities, args.lse, s.tokens, s.causal);
    return cudaGetLastError();
}

/* ---- products on CUDA cores -------------------------------------------- */

constexpr int TILE = 64;           /* rows and columns of a block's result */
constexpr int DEPTH = 16;          /* of the inner dimension at a time */
constexpr int PER_THREAD = 4;      /* rows and columns of a thread's result */
constexpr int SIDE = TILE / PER_THREAD;
constexpr int PRODUCT_THREADS = SIDE * SIDE;

/* c[m, n] = factor * a[m, depth] b[depth, n], for every head, contiguous. */
struct product_shape {
    int64_t m, n, depth;
    int64_t row_tiles, column_tiles;
    float factor;
};

/* Rows padded by 4: aligned to 16 bytes, and the transposing stores spread
 * over the banks. */
using shared_panel = float[DEPTH][TILE + 4];

/* panel[i][j] = operand(first + j, depth + i) of an operand that is contiguous
 * along depth; 0 outside of it. */
template <typename T>
__device__ void load_along_depth(shared_panel &panel, const T *operand, int64_t first,
                                 int64_t limit, int64_t depth, int64_t depth_limit)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += PRODUCT_THREADS) {
        int64_t line = first + e / DEPTH, i = depth + e % DEPTH;
        bool inside = line < limit && i < depth_limit;
        panel[e % DEPTH][e / DEPTH] = inside ? to_f32(operand[line * depth_limit + i]) : 0.0f;
    }
}

/* The same for an operand whose rows run along depth, [depth_limit, limit]. */
template <typename T>
__device__ void load_across_depth(shared_panel &panel, const T *operand, int64_t first,
                                  int64_t limit, int64_t depth, int64_t depth_limit)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += PRODUCT_THREADS) {
        int64_t line = first + e % TILE, i = depth + e / TILE;
        bool inside = line < limit && i < depth_limit;
        panel[e / TILE][e % TILE] = inside ? to_f32(operand[i * limit + line]) : 0.0f;
    }
}

__device__ void multiply_panels(const shared_panel &a, const shared_panel &b,
                                float (&sums)[PER_THREAD][PER_THREAD])
{
    int row = threadIdx.x / SIDE * PER_THREAD, column = threadIdx.x % SIDE * PER_THREAD;
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
        float4 left = *reinterpret_cast<const float4 *>(&a[i][row]);
        float4 right = *reinterpret_cast<const float4 *>(&b[i][column]);
        const float x[PER_THREAD] = {left.x, left.y, left.z, left.w};
        const float y[PER_THREAD] = {right.x, right.y, right.z, right.w};
#pragma unroll
        for (int r = 0; r < PER_THREAD; r++)
#pragma unroll
            for (int c = 0; c < PER_THREAD; c++) sums[r][c] = fmaf(x[r], y[c], sums[r][c]);
    }
}

/* B_TRANSPOSED: b is stored [n, depth], as k is for q k^T. */
template <typename A, typename B, typename C, bool B_TRANSPOSED>
__global__ void __launch_bounds__(PRODUCT_THREADS)
product_kernel(product_shape s, const A *a, const B *b, C *c)
{
    __shared__ shared_panel a_panel, b_panel;
    float sums[PER_THREAD][PER_THREAD] = {};
    int64_t tile = blockIdx.x % (s.row_tiles * s.column_tiles);
    int64_t head = blockIdx.x / (s.row_tiles * s.column_tiles);
    int64_t row = tile / s.column_tiles * TILE, column = tile % s.column_tiles * TILE;
    a += head * s.m * s.depth;
    b += head * s.n * s.depth;
    c += head * s.m * s.n;
    for (int64_t depth = 0; depth < s.depth; depth += DEPTH) {
        load_along_depth(a_panel, a, row, s.m, depth, s.depth);
        if (B_TRANSPOSED)
            load_along_depth(b_panel, b, column, s.n, depth, s.depth);
        else
            load_across_depth(b_panel, b, column, s.n, depth, s.depth);
        __syncthreads();
        multiply_panels(a_panel, b_panel, sums);
        __syncthreads();
    }
    row += threadIdx.x / SIDE * PER_THREAD;
    column += threadIdx.x % SIDE * PER_THREAD;
    for (int r = 0; r < PER_THREAD; r++)
        for (int i = 0; i < PER_THREAD; i++)
            if (row + r < s.m && column + i < s.n)
                from_f32(s.factor * sums[r][i], c + (row + r) * s.n + column + i);
}

template <typename A, typename B, typename C, bool B_TRANSPOSED>
int launch_product(int64_t heads, int64_t m, int64_t n, int64_t depth, float factor, const A *a,
                   const B *b, C *c, kernel_stream stream)
{
    product_shape s = {m, n, depth, attention_ceil_div(m, TILE), attention_ceil_div(n, TILE),
                       factor};
    int64_t blocks = heads * s.row_tiles * s.column_tiles;
    if (!attention_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    product_kernel<A, B, C, B_TRANSPOSED>
        <<<static_cast<unsigned>(blocks), PRODUCT_THREADS, 0, stream>>>(s, a, b, c);
    return cudaGetLastError();
}

template <typename T>
int run_naive(const attention_forward_args &args, float *scores, kernel_stream stream)
{
    const attention_shape &s = args.shape;
    int64_t heads = head_count(s);
    int error = launch_product<T, T, float, true>(
        heads, s.tokens, s.tokens, s.head_dim, attention_scale(s), static_cast<const T *>(args.q),
        static_cast<const T *>(args.k), scores, stream);
    if (!error) error = launch_softmax(args, scores, scores, stream);
    if (error) return error;
    return launch_product<float, T, T, false>(heads, s.tokens, s.head_dim, s.tokens, 1.0f, scores,
                                              static_cast<const T *>(args.v),
                                              static_cast<T *>(args.out), stream);
}

/* ---- products by cuBLAS ------------------------------------------------ */

/* cuBLAS's names for the operands' dtype and for the arithmetic. */
struct cublas_types {
    cudaDataType_t element;
    cublasComputeType_t compute;
};

cublas_types types_of(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F16: return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case KERNEL_BF16: return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case KERNEL_TF32: return {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    default: return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
    }
}

int cublas_error(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? KERNEL_OK : KERNEL_ERROR_CUBLAS + status;
}

/* cuBLAS is column major: a row-major [r, c] matrix is its c x r one. So the
 * products are computed transposed: scores^T = k q^T, out^T = v^T p^T. */
int cublas_scores(const attention_forward_args &args, float *scores, cublasHandle_t handle)
{
    const attention_shape &s = args.shape;
    cublas_types types = types_of(args.dtype);
    float factor = attention_scale(s), zero = 0.0f;
    int64_t t = s.tokens, d = s.head_dim;
    return cublas_error(cublasGemmStridedBatchedEx_64(
        handle, CUBLAS_OP_T, CUBLAS_OP_N, t, t, d, &factor, args.k, types.element, d, t * d, args.q,
        types.element, d, t * d, &zero, scores, CUDA_R_32F, t, t * t, head_count(s), types.compute,
        CUBLAS_GEMM_DEFAULT));
}

int cublas_values(const attention_forward_args &args, const void *probabilities,
                  cublasHandle_t handle)
{
    const attention_shape &s = args.shape;
    cublas_types types = types_of(args.dtype);
    float one = 1.0f, zero = 0.0f;
    int64_t t = s.tokens, d = s.head_dim;
    return cublas_error(cublasGemmStridedBatchedEx_64(
        handle, CUBLAS_OP_N, CUBLAS_OP_N, d, t, t, &one, args.v, types.element, d, t * d,
        probabilities, types.element, t, t * t, &zero, args.out, types.element, d, t * d,
        head_count(s), types.compute, CUBLAS_GEMM_DEFAULT));
}

template <typename T>
int run_cublas(const attention_forward_args &args, float *scores, T *probabilities,
               cublasHandle_t handle, kernel_stream stream)
{
    int error = cublas_scores(args, scores, handle);
    if (!error) error = launch_softmax(args, scores, probabilities, stream);
    return error ? error : cublas_values(args, probabilities, handle);
}

/* Elements of all score matrices times element_bytes, or SIZE_MAX. */
size_t score_bytes(const attention_shape &s, size_t element_bytes)
{
    if (!attention_is_valid(s)) return 0;
    size_t bytes = element_bytes;
    for (int64_t factor : {s.batch, s.heads, s.tokens, s.tokens}) {
        if (bytes > SIZE_MAX / static_cast<size_t>(factor)) return SIZE_MAX;
        bytes *= static_cast<size_t>(factor);
    }
    return bytes;
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
    if (!attention_is_valid(a.shape)) return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F32: return run_naive<float>(a, scores, stream);
    case KERNEL_F16: return run_naive<__half>(a, scores, stream);
    case KERNEL_BF16: return run_naive<__nv_bfloat16>(a, scores, stream);
    default: return KERNEL_ERROR_ARGUMENT;
    }
}

/* f32 scores and, for the 16-bit dtypes, the probabilities behind them. */
size_t attention_cublas_workspace_bytes(const void *args)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    bool is_half = a.dtype == KERNEL_F16 || a.dtype == KERNEL_BF16;
    return score_bytes(a.shape, is_half ? sizeof(float) + sizeof(__half) : sizeof(float));
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
    if (!attention_is_valid(a.shape)) return KERNEL_ERROR_ARGUMENT;
    void *behind = scores + head_count(a.shape) * a.shape.tokens * a.shape.tokens;
    int error = cublas_error(cublasSetStream(handle, stream));
    if (error) return error;
    switch (a.dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return run_cublas(a, scores, scores, handle, stream);
    case KERNEL_F16: return run_cublas(a, scores, static_cast<__half *>(behind), handle, stream);
    case KERNEL_BF16:
        return run_cublas(a, scores, static_cast<__nv_bfloat16 *>(behind), handle, stream);
    default: return KERNEL_ERROR_ARGUMENT;
    }
}
