/*
 * naive.cuh - what the attention variants with scores in memory
 * share: reductions over a block, and batched products on CUDA cores and by
 * cuBLAS.
 */
#ifndef ATTENTION_NAIVE_CUH
#define ATTENTION_NAIVE_CUH

#include "attention.cuh"
#include "../common/ceil_div.cuh"
#include "../common/cublas.cuh"

inline int64_t head_count(const attention_shape &s)
{
    return s.batch * s.heads;
}

/* Elements of all score matrices times element_bytes, or SIZE_MAX. */
inline size_t score_bytes(const attention_shape &s, int64_t element_bytes)
{
    if (!attention_is_valid(s)) return 0;
    return attention_bytes({s.batch, s.heads, s.tokens, s.tokens, element_bytes});
}

/* Of an element of a score matrix that cuBLAS makes and reads: f32 and, for the
 * dtypes that are not stored as that, the probability as an operand behind it. */
inline int64_t score_element_bytes(kernel_dtype dtype)
{
    size_t bytes = kernel_dtype_bytes(dtype);
    return static_cast<int64_t>(sizeof(float) + (bytes < sizeof(float) ? bytes : 0));
}

/* ---- rows: a block each ------------------------------------------------- */

constexpr int ROW_THREADS = 256;
constexpr int ROW_WARPS = ROW_THREADS / 32;

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
    __shared__ float warps[ROW_WARPS];
    for (int lane = 16; lane > 0; lane /= 2)
        value = operation(value, __shfl_xor_sync(0xffffffffu, value, lane));
    __syncthreads(); /* the last call's readers are done */
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = Operation::neutral;
    for (int i = 0; i < ROW_WARPS; i++) value = operation(value, warps[i]);
    return value;
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

__device__ inline void multiply_panels(const shared_panel &a, const shared_panel &b,
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

/* B_TRANSPOSED: b is stored [n, depth], as k is for q k^T; A_TRANSPOSED: a is
 * stored [depth, m]. */
template <typename A, typename B, typename C, bool A_TRANSPOSED, bool B_TRANSPOSED>
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
        if (A_TRANSPOSED)
            load_across_depth(a_panel, a, row, s.m, depth, s.depth);
        else
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

template <bool A_TRANSPOSED, bool B_TRANSPOSED, typename A, typename B, typename C>
int launch_product(int64_t heads, int64_t m, int64_t n, int64_t depth, float factor, const A *a,
                   const B *b, C *c, kernel_stream stream)
{
    product_shape s = {m, n, depth, ceil_div(m, TILE), ceil_div(n, TILE),
                       factor};
    int64_t blocks = heads * s.row_tiles * s.column_tiles;
    if (!attention_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    product_kernel<A, B, C, A_TRANSPOSED, B_TRANSPOSED>
        <<<static_cast<unsigned>(blocks), PRODUCT_THREADS, 0, stream>>>(s, a, b, c);
    return cudaGetLastError();
}

/* ---- products by cuBLAS ------------------------------------------------ */

/* c[m, n] = factor * a b for every head of contiguous row-major matrices: a is
 * stored [m, depth], or [depth, m] if it is transposed; b [depth, n] or
 * [n, depth]. */
struct cublas_product {
    int64_t m, n, depth;
    bool a_transposed, b_transposed;
    float factor;
};

/* cuBLAS is column major: a row-major [r, c] matrix is its c x r one. So the
 * product is computed transposed: c^T = b^T a^T. a and b are of types.element. */
inline int multiply_by_cublas(cublasHandle_t handle, int64_t heads, const cublas_product &p,
                              cublas_types types, const void *a, const void *b, void *c,
                              cudaDataType_t c_type)
{
    float zero = 0.0f;
    return cublas_error(cublasGemmStridedBatchedEx_64(
        handle, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p.n, p.m, p.depth, &p.factor, b, types.element,
        p.b_transposed ? p.depth : p.n, p.n * p.depth, a, types.element,
        p.a_transposed ? p.m : p.depth, p.m * p.depth, &zero, c, c_type, p.n, p.m * p.n, heads,
        types.compute, CUBLAS_GEMM_DEFAULT));
}

#endif
