/*
 * epilogue.cu - what surrounds the products of linear layers, where the
 * product does not do it itself.
 *
 * 1. map_kernel           bias, bias and GELU, GELU's gradient, addition: one
 *                         pass over the elements, 16 bytes a load, four vectors
 *                         in flight a thread.
 * 2. column_sum_kernel,   a bias gradient: a block sums a chunk of rows of up to
 *    column_total_kernel  32 vectors' columns, a second kernel sums the chunks;
 *                         no atomics, so equal inputs give equal bits.
 *
 * Teaches what a fused epilogue saves: each of these reads and writes, at the
 * speed of memory, what the product had in registers. Bound by bandwidth.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <float.h>

#include "../common/ceil_div.cuh"
#include "linear.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int IN_FLIGHT = 4;     /* vectors a thread loads before it waits */
constexpr int BLOCKS_PER_SM = 8; /* of a grid: 2048 threads, a full multiprocessor */

/* N elements that one instruction loads. */
template <typename T, int N>
struct alignas(sizeof(T) * N) lanes {
    T at[N];
};

template <typename T>
constexpr int LANES = 16 / sizeof(T);

__device__ __forceinline__ int64_t thread_index()
{
    return static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
}

__device__ __forceinline__ int64_t thread_count()
{
    return static_cast<int64_t>(gridDim.x) * THREADS;
}

/* ---- GELU ------------------------------------------------------------------ */

/* 0.5 (1 + tanh(z)) = 1 / (1 + exp(-2z)): exact at both ends, where the
 * exponential is 0 or infinite. */
__device__ __forceinline__ float half_one_plus_tanh(float z)
{
    return __fdividef(1.0f, 1.0f + __expf(-2.0f * z));
}

constexpr float SQRT_2_OVER_PI = 0.79788456080286535588f;
constexpr float CUBIC = 0.044715f;

__device__ __forceinline__ float gelu(float x)
{
    return x * half_one_plus_tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
}

/* With s = half_one_plus_tanh(z): (x s)' = s + x s', s' = 2 s (1 - s) z'. The square
 * stays finite, because s (1 - s) is 0 long before it would not. */
__device__ __forceinline__ float gelu_gradient(float x)
{
    float s = half_one_plus_tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
    float z_gradient = SQRT_2_OVER_PI * (1.0f + 3.0f * CUBIC * fminf(x * x, FLT_MAX));
    return s + x * 2.0f * s * (1.0f - s) * z_gradient;
}

/* ---- elementwise ------------------------------------------------------------ */

/* The operations of map_kernel: what a thread loads for the vector at index i,
 * whose first column is vector `column` of its row, and what it stores. */
template <typename T, int N>
struct pair_of_lanes {
    lanes<T, N> a, b;
};

template <typename T, int N>
struct bias_operation {
    using loaded = pair_of_lanes<T, N>;
    const lanes<T, N> *bias;
    lanes<T, N> *y;

    __device__ loaded load(int64_t i, unsigned column) const { return {y[i], bias[column]}; }

    __device__ void store(int64_t i, loaded in) const
    {
#pragma unroll
        for (int n = 0; n < N; n++)
            in.a.at[n] = T(static_cast<float>(in.a.at[n]) + static_cast<float>(in.b.at[n]));
        y[i] = in.a;
    }
};

/* GELU is taken of pre as it is stored, rounded: what a backward pass sees. */
template <typename T, int N>
struct bias_gelu_operation {
    using loaded = pair_of_lanes<T, N>;
    const lanes<T, N> *bias;
    lanes<T, N> *pre, *hidden;

    __device__ loaded load(int64_t i, unsigned column) const { return {pre[i], bias[column]}; }

    __device__ void store(int64_t i, loaded in) const
    {
        lanes<T, N> out;
#pragma unroll
        for (int n = 0; n < N; n++) {
            in.a.at[n] = T(static_cast<float>(in.a.at[n]) + static_cast<float>(in.b.at[n]));
            out.at[n] = T(gelu(static_cast<float>(in.a.at[n])));
        }
        if (pre != hidden) pre[i] = in.a;
        hidden[i] = out;
    }
};

/* GELU is taken of pre as it is, since no backward pass sees it. */
template <typename T, int N>
struct bias_gelu_e4m3_operation {
    using loaded = pair_of_lanes<T, N>;
    const lanes<T, N> *bias, *pre;
    const float *scale;
    lanes<__nv_fp8_e4m3, N> *hidden;

    __device__ loaded load(int64_t i, unsigned column) const { return {pre[i], bias[column]}; }

    __device__ void store(int64_t i, const loaded &in) const
    {
        lanes<__nv_fp8_e4m3, N> out;
        float factor = *scale;
#pragma unroll
        for (int n = 0; n < N; n++)
            out.at[n] = __nv_fp8_e4m3(
                factor * gelu(static_cast<float>(in.a.at[n]) + static_cast<float>(in.b.at[n])));
        hidden[i] = out;
    }
};

template <typename T, int N>
struct gelu_gradient_operation {
    using loaded = pair_of_lanes<T, N>;
    const lanes<T, N> *pre;
    lanes<T, N> *gradient;

    __device__ loaded load(int64_t i, unsigned) const { return {gradient[i], pre[i]}; }

    __device__ void store(int64_t i, loaded in) const
    {
#pragma unroll
        for (int n = 0; n < N; n++)
            in.a.at[n] = T(static_cast<float>(in.a.at[n]) *
                           gelu_gradient(static_cast<float>(in.b.at[n])));
        gradient[i] = in.a;
    }
};

template <typename T, int N>
struct add_operation {
    using loaded = pair_of_lanes<T, N>;
    const lanes<T, N> *a, *b;
    lanes<T, N> *sum;

    __device__ loaded load(int64_t i, unsigned) const { return {a[i], b[i]}; }

    __device__ void store(int64_t i, loaded in) const
    {
#pragma unroll
        for (int n = 0; n < N; n++)
            in.a.at[n] = T(static_cast<float>(in.a.at[n]) + static_cast<float>(in.b.at[n]));
        sum[i] = in.a;
    }
};

/* Follows the column of a flat index that grows by the same stride each time,
 * so that there is one division a thread and none in the loop. */
struct column_walk {
    unsigned width, step; /* step: the stride modulo width */

    __device__ __forceinline__ unsigned next(unsigned column) const
    {
        column += step;
        return column >= width ? column - width : column;
    }
};

template <typename Operation>
__global__ void __launch_bounds__(THREADS)
map_kernel(Operation operation, column_walk walk, int64_t vectors)
{
    int64_t i = thread_index(), stride = thread_count();
    unsigned column = static_cast<unsigned>(i % walk.width);
    for (; i + (IN_FLIGHT - 1) * stride < vectors; i += IN_FLIGHT * stride) {
        typename Operation::loaded in[IN_FLIGHT];
#pragma unroll
        for (int n = 0; n < IN_FLIGHT; n++) {
            in[n] = operation.load(i + n * stride, column);
            column = walk.next(column);
        }
#pragma unroll
        for (int n = 0; n < IN_FLIGHT; n++) operation.store(i + n * stride, in[n]);
    }
    for (; i < vectors; i += stride) {
        operation.store(i, operation.load(i, column));
        column = walk.next(column);
    }
}

int multiprocessor_count(int64_t *count)
{
    int device, multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    *count = multiprocessors;
    return error;
}

/* columns: vectors in a row; below 2^31, so that a walk's sum does not wrap. */
template <typename Operation>
int launch_map(Operation operation, int64_t rows, int64_t columns, kernel_stream stream)
{
    int64_t multiprocessors, vectors = rows * columns;
    int error = multiprocessor_count(&multiprocessors);
    if (error) return error;
    int64_t needed = ceil_div(vectors, THREADS), most = multiprocessors * BLOCKS_PER_SM;
    int64_t blocks = needed < most ? needed : most;
    column_walk walk = {static_cast<unsigned>(columns),
                        static_cast<unsigned>(blocks * THREADS % columns)};
    map_kernel<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(operation, walk, vectors);
    return cudaGetLastError();
}

/* ---- sums over rows ----------------------------------------------------------- */

constexpr int WARPS = THREADS / 32;
constexpr int ROW_CHUNKS = 64; /* at most: what the second kernel adds up */

struct column_sum_shape {
    int64_t rows, chunk_rows;
    unsigned columns;       /* vectors in a row */
    unsigned column_blocks; /* of 32 vectors */
};

/* Adds the warps' sums; the first warp returns with them. */
template <int N>
__device__ __forceinline__ void add_warps(float (&sum)[N])
{
    __shared__ float warps[WARPS][N][32];
#pragma unroll
    for (int n = 0; n < N; n++) warps[threadIdx.x / 32][n][threadIdx.x % 32] = sum[n];
    __syncthreads();
    if (threadIdx.x >= 32) return;
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int warp = 1; warp < WARPS; warp++) sum[n] += warps[warp][n][threadIdx.x];
}

/* A lane owns a column vector, a warp every WARPS-th row of the chunk. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
column_sum_kernel(column_sum_shape s, const lanes<T, N> *matrix, float *partial)
{
    unsigned column = blockIdx.x % s.column_blocks * 32 + threadIdx.x % 32;
    int64_t chunk = blockIdx.x / s.column_blocks;
    int64_t row = chunk * s.chunk_rows + threadIdx.x / 32;
    int64_t end = min((chunk + 1) * s.chunk_rows, s.rows);
    float sum[N] = {};
    if (column < s.columns) {
#pragma unroll 4
        for (; row < end; row += WARPS) {
            lanes<T, N> in = matrix[row * s.columns + column];
#pragma unroll
            for (int n = 0; n < N; n++) sum[n] += static_cast<float>(in.at[n]);
        }
    }
    add_warps(sum);
    if (threadIdx.x >= 32 || column >= s.columns) return;
#pragma unroll
    for (int n = 0; n < N; n++)
        partial[(chunk * s.columns + column) * N + n] = sum[n];
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
column_total_kernel(const float *partial, int64_t chunks, int64_t width, T *total)
{
    int64_t column = thread_index();
    if (column >= width) return;
    float sum = 0.0f;
#pragma unroll 8
    for (int64_t chunk = 0; chunk < chunks; chunk++) sum += partial[chunk * width + column];
    total[column] = T(sum);
}

template <typename T, int N>
int launch_column_sum(int64_t rows, int64_t width, const void *matrix, void *total, float *partial,
                      kernel_stream stream)
{
    column_sum_shape s = {rows, ceil_div(rows, ROW_CHUNKS),
                          static_cast<unsigned>(width / N),
                          static_cast<unsigned>((width / N + 31) / 32)};
    int64_t chunks = (rows + s.chunk_rows - 1) / s.chunk_rows;
    unsigned blocks = static_cast<unsigned>(chunks) * s.column_blocks;
    column_sum_kernel<<<blocks, THREADS, 0, stream>>>(
        s, static_cast<const lanes<T, N> *>(matrix), partial);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    unsigned total_blocks = static_cast<unsigned>(ceil_div(width, THREADS));
    column_total_kernel<<<total_blocks, THREADS, 0, stream>>>(partial, chunks, width,
                                                              static_cast<T *>(total));
    return cudaGetLastError();
}

/* ---- choosing an instantiation ------------------------------------------------ */

/* Widths below 2^30 keep every 32-bit column and block count right. */
bool is_valid(int64_t rows, int64_t width)
{
    return rows > 0 && width > 0 && width < (int64_t(1) << 30) && rows <= INT64_MAX / width;
}

/* Calls function.run<T, N>() for dtype: vectors of 16 bytes where they divide
 * the width, so that every row starts with one, else single elements. */
template <typename T, typename Function>
int choose_lanes(int64_t width, const Function &function)
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "lanes are converted to and from f32");
    return width % LANES<T> == 0 ? function.template run<T, LANES<T>>()
                                 : function.template run<T, 1>();
}

template <typename Function>
int choose(kernel_dtype dtype, int64_t rows, int64_t width, const Function &function)
{
    if (!is_valid(rows, width)) return KERNEL_ERROR_ARGUMENT;
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return choose_lanes<float>(width, function);
    case KERNEL_F16: return choose_lanes<__half>(width, function);
    case KERNEL_BF16: return choose_lanes<__nv_bfloat16>(width, function);
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

template <typename T, int N>
const lanes<T, N> *as_lanes(const void *memory)
{
    return static_cast<const lanes<T, N> *>(memory);
}

template <typename T, int N>
lanes<T, N> *as_lanes(void *memory)
{
    return static_cast<lanes<T, N> *>(memory);
}

struct matrix_call {
    int64_t rows, width;
    kernel_stream stream;
};

struct add_bias_call : matrix_call {
    const void *bias;
    void *y;

    template <typename T, int N>
    int run() const
    {
        return launch_map(bias_operation<T, N>{as_lanes<T, N>(bias), as_lanes<T, N>(y)}, rows,
                          width / N, stream);
    }
};

struct bias_gelu_call : matrix_call {
    const void *bias;
    void *pre, *hidden;

    template <typename T, int N>
    int run() const
    {
        return launch_map(bias_gelu_operation<T, N>{as_lanes<T, N>(bias), as_lanes<T, N>(pre),
                                                    as_lanes<T, N>(hidden)},
                          rows, width / N, stream);
    }
};

struct bias_gelu_e4m3_call : matrix_call {
    const void *bias, *pre;
    const float *scale;
    void *hidden;

    template <typename T, int N>
    int run() const
    {
        return launch_map(bias_gelu_e4m3_operation<T, N>{as_lanes<T, N>(bias), as_lanes<T, N>(pre),
                                                         scale,
                                                         as_lanes<__nv_fp8_e4m3, N>(hidden)},
                          rows, width / N, stream);
    }
};

struct gelu_gradient_call : matrix_call {
    const void *pre;
    void *gradient;

    template <typename T, int N>
    int run() const
    {
        return launch_map(
            gelu_gradient_operation<T, N>{as_lanes<T, N>(pre), as_lanes<T, N>(gradient)}, rows,
            width / N, stream);
    }
};

struct add_call : matrix_call {
    const void *a, *b;
    void *sum;

    template <typename T, int N>
    int run() const
    {
        return launch_map(
            add_operation<T, N>{as_lanes<T, N>(a), as_lanes<T, N>(b), as_lanes<T, N>(sum)}, rows,
            width / N, stream);
    }
};

struct column_sum_call : matrix_call {
    const void *matrix;
    void *total;
    float *partial;

    template <typename T, int N>
    int run() const
    {
        return launch_column_sum<T, N>(rows, width, matrix, total, partial, stream);
    }
};

} // namespace

int linear_add_bias(kernel_dtype dtype, int64_t rows, int64_t width, const void *bias, void *y,
                    kernel_stream stream)
{
    return choose(dtype, rows, width, add_bias_call{{rows, width, stream}, bias, y});
}

int linear_bias_gelu(kernel_dtype dtype, int64_t rows, int64_t width, const void *bias, void *pre,
                     void *hidden, kernel_stream stream)
{
    return choose(dtype, rows, width, bias_gelu_call{{rows, width, stream}, bias, pre, hidden});
}

int linear_bias_gelu_e4m3(int64_t rows, int64_t width, const void *bias, const void *pre,
                          const float *scale, void *hidden, kernel_stream stream)
{
    if (!is_valid(rows, width)) return KERNEL_ERROR_ARGUMENT;
    return choose_lanes<__nv_bfloat16>(
        width, bias_gelu_e4m3_call{{rows, width, stream}, bias, pre, scale, hidden});
}

int linear_gelu_gradient(kernel_dtype dtype, int64_t rows, int64_t width, const void *pre,
                         void *gradient, kernel_stream stream)
{
    return choose(dtype, rows, width, gelu_gradient_call{{rows, width, stream}, pre, gradient});
}

int linear_add(kernel_dtype dtype, int64_t rows, int64_t width, const void *a, const void *b,
               void *sum, kernel_stream stream)
{
    return choose(dtype, rows, width, add_call{{rows, width, stream}, a, b, sum});
}

size_t linear_column_sum_bytes(int64_t width)
{
    return static_cast<size_t>(ROW_CHUNKS) * static_cast<size_t>(width) * sizeof(float);
}

int linear_column_sum(kernel_dtype dtype, int64_t rows, int64_t width, const void *matrix,
                      void *total, void *workspace, kernel_stream stream)
{
    return choose(dtype, rows, width,
                  column_sum_call{{rows, width, stream}, matrix, total,
                                  static_cast<float *>(workspace)});
}
