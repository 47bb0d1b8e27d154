/*
 * naive.cu - norms as their formulas read.
 *
 * 1. naive  forward   A block a row, one element an access: a pass for the
 *                     mean, one for the variance, one to write, and one more
 *                     in front that stores the sum if a residual is fused.
 *           backward  dx in two passes by a block a row; then dweight and dbias
 *                     by a thread a column, which walks down all rows.
 *
 * Teaches what passes cost: device memory sees one (the row stays in the
 * caches), but each pass issues four or eight times the accesses it needs and
 * waits for a reduction. Backward reads x and dy from memory twice, and its
 * column sums use width threads of a device that runs 200,000: they are bound
 * by the latency of rows reads in a row, the rest by the instructions that
 * loads take. Works at every width.
 */
#include "norm.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int COLUMN_THREADS = 64;

/* Sum over the block of function(j) for each column j. */
template <typename Value, typename Function>
__device__ Value sum_over_row(int64_t width, Value *warps, Value value, Function function)
{
    row_addition add;
    for (int64_t j = threadIdx.x; j < width; j += THREADS) value = add(value, function(j));
    return row_reduce_block<THREADS>(value, add, warps);
}

/* sum[j] = x[j] + residual[j]. A thread later reads only what it wrote. */
template <typename T>
__device__ void add_residual(const T *x, const T *residual, T *sum, int64_t width)
{
    for (int64_t j = threadIdx.x; j < width; j += THREADS)
        row_set(sum, j, row_get(x, j) + row_get(residual, j));
}

template <typename T>
__global__ void __launch_bounds__(THREADS) forward_kernel(norm_forward_rows<T> r)
{
    __shared__ float warps[2][THREADS / 32];
    int64_t row = blockIdx.x, first = row * r.width;
    const T *x = r.x + first;
    T *y = r.y + first;
    float mean = 0.0f;
    if (r.residual) {
        add_residual(x, r.residual + first, r.sum + first, r.width);
        x = r.sum + first;
    }
    if (r.mean)
        mean = sum_over_row(r.width, warps[0], 0.0f, [=](int64_t j) { return row_get(x, j); }) *
               r.inverse_width;
    float squares = sum_over_row(r.width, warps[1], 0.0f, [=](int64_t j) {
        float centered = row_get(x, j) - mean;
        return centered * centered;
    });
    float rstd = rsqrtf(squares * r.inverse_width + NORM_EPSILON);
    for (int64_t j = threadIdx.x; j < r.width; j += THREADS) {
        float bias = r.bias ? row_get(r.bias, j) : 0.0f;
        row_set(y, j, (row_get(x, j) - mean) * rstd * row_get(r.weight, j) + bias);
    }
    if (threadIdx.x > 0) return;
    if (r.mean) r.mean[row] = mean;
    r.rstd[row] = rstd;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) backward_rows_kernel(norm_backward_rows<T> r)
{
    __shared__ float2 warps[THREADS / 32];
    int64_t row = blockIdx.x, first = row * r.width;
    const T *x = r.x + first, *dy = r.dy + first;
    T *dx = r.dx + first;
    float mean = r.mean ? r.mean[row] : 0.0f, rstd = r.rstd[row];
    float2 sums = sum_over_row(r.width, warps, make_float2(0.0f, 0.0f), [=](int64_t j) {
        float g = row_get(dy, j) * row_get(r.weight, j);
        return make_float2(g, g * (row_get(x, j) - mean) * rstd);
    });
    float mean_g = r.mean ? sums.x * r.inverse_width : 0.0f;
    float mean_product = sums.y * r.inverse_width;
    for (int64_t j = threadIdx.x; j < r.width; j += THREADS) {
        float g = row_get(dy, j) * row_get(r.weight, j);
        float xhat = (row_get(x, j) - mean) * rstd;
        float above = r.dsum ? row_get(r.dsum + first, j) : 0.0f;
        row_set(dx, j, rstd * (g - mean_g - xhat * mean_product) + above);
    }
}

template <typename T>
__global__ void __launch_bounds__(COLUMN_THREADS) backward_columns_kernel(norm_backward_rows<T> r)
{
    int64_t column = static_cast<int64_t>(blockIdx.x) * COLUMN_THREADS + threadIdx.x;
    if (column >= r.width) return;
    float weight_sum = 0.0f, bias_sum = 0.0f;
    for (int64_t row = 0; row < r.rows; row++) {
        float mean = r.mean ? r.mean[row] : 0.0f;
        float dy = row_get(r.dy, row * r.width + column);
        weight_sum += dy * (row_get(r.x, row * r.width + column) - mean) * r.rstd[row];
        bias_sum += dy;
    }
    row_set(r.dweight, column, weight_sum);
    if (r.dbias) row_set(r.dbias, column, bias_sum);
}

} // namespace

template <typename T> int norm_naive_forward(const norm_forward_rows<T> &r, kernel_stream stream)
{
    if (!row_fits_grid(r.rows)) return KERNEL_ERROR_ARGUMENT;
    forward_kernel<T><<<static_cast<unsigned>(r.rows), THREADS, 0, stream>>>(r);
    return cudaGetLastError();
}

template <typename T> int norm_naive_backward(const norm_backward_rows<T> &r, kernel_stream stream)
{
    int64_t column_blocks = ceil_div(r.width, COLUMN_THREADS);
    if (!row_fits_grid(r.rows) || !row_fits_grid(column_blocks)) return KERNEL_ERROR_ARGUMENT;
    backward_rows_kernel<T><<<static_cast<unsigned>(r.rows), THREADS, 0, stream>>>(r);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    backward_columns_kernel<T>
        <<<static_cast<unsigned>(column_blocks), COLUMN_THREADS, 0, stream>>>(r);
    return cudaGetLastError();
}

template int norm_naive_forward(const norm_forward_rows<float> &, kernel_stream);
template int norm_naive_forward(const norm_forward_rows<__half> &, kernel_stream);
template int norm_naive_forward(const norm_forward_rows<__nv_bfloat16> &, kernel_stream);
template int norm_naive_backward(const norm_backward_rows<float> &, kernel_stream);
template int norm_naive_backward(const norm_backward_rows<__half> &, kernel_stream);
template int norm_naive_backward(const norm_backward_rows<__nv_bfloat16> &, kernel_stream);

int norm_naive_forward_run(const void *args, void *, void *, kernel_stream stream)
{
    return norm_dispatch(*static_cast<const norm_forward_args *>(args),
                         [=](const auto &rows) { return norm_naive_forward(rows, stream); });
}

int norm_naive_backward_run(const void *args, void *, void *, kernel_stream stream)
{
    return norm_dispatch(*static_cast<const norm_backward_args *>(args),
                         [=](const auto &rows) { return norm_naive_backward(rows, stream); });
}
