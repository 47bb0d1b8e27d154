/*
 * naive.cu - cross-entropy as a framework without a fused kernel does it.
 *
 * 1. naive  A block a row finds the maximum, then the sum of exponentials,
 *           then writes logits - lse as f32 [rows, classes]: the logarithm of
 *           the softmax. A second kernel picks -log p[target] as the loss;
 *           a third turns the whole matrix into the gradient.
 *
 * Teaches what materializing costs: forward moves 4 bytes a logit out to memory
 * for one number a row, and two of its three reads of the row come from the
 * caches only where a row fits there beside its neighbours. Backward computes
 * the same matrix again, then reads it and writes the gradient. One element an
 * access. Bound by device memory and, for bf16, by the instructions of a pass.
 */
#include "loss.cuh"

namespace {

constexpr int THREADS = 256;

/* lse_out: [rows] or NULL: r's lse is an input of backward. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
log_softmax_kernel(loss_rows<T> r, float *log_softmax, float *lse_out)
{
    __shared__ float warps[2][THREADS / 32];
    int64_t row = blockIdx.x;
    const T *logits = r.logits + r.first(row);
    float max = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < r.classes; j += THREADS) max = fmaxf(max, row_get(logits, j));
    max = row_reduce_block<THREADS>(max, row_maximum(), warps[0]);
    for (int j = threadIdx.x; j < r.classes; j += THREADS) sum += expf(row_get(logits, j) - max);
    sum = row_reduce_block<THREADS>(sum, row_addition(), warps[1]);
    float lse = max + logf(sum);
    if (lse_out && threadIdx.x == 0) lse_out[row] = lse;
    for (int j = threadIdx.x; j < r.classes; j += THREADS)
        log_softmax[r.first(row) + j] = row_get(logits, j) - lse;
}

/* A thread a row. */
template <typename T>
__global__ void __launch_bounds__(THREADS) pick_kernel(loss_rows<T> r, const float *log_softmax)
{
    int64_t row = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (row >= r.rows) return;
    int target = r.targets[row];
    r.loss[row] = r.is_class(target) ? -log_softmax[r.first(row) + target] : NAN;
    r.report(target);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
gradient_kernel(loss_rows<T> r, const float *log_softmax)
{
    int64_t row = blockIdx.x;
    int target = r.targets[row];
    float scale = r.scale(target, r.dloss[row]);
    for (int j = threadIdx.x; j < r.classes; j += THREADS) {
        float softmax = expf(log_softmax[r.first(row) + j]);
        row_set(r.dlogits + r.first(row), j, (softmax - (j == target ? 1.0f : 0.0f)) * scale);
    }
    if (threadIdx.x == 0) r.report(target);
}

template <typename T>
int launch_log_softmax(const loss_rows<T> &r, float *log_softmax, float *lse, kernel_stream stream)
{
    log_softmax_kernel<T>
        <<<static_cast<unsigned>(r.rows), THREADS, 0, stream>>>(r, log_softmax, lse);
    return cudaGetLastError();
}

template <typename T>
int launch_pick(const loss_rows<T> &r, const float *log_softmax, kernel_stream stream)
{
    int64_t blocks = ceil_div(r.rows, THREADS);
    pick_kernel<T><<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(r, log_softmax);
    return cudaGetLastError();
}

template <typename T>
int launch_gradient(const loss_rows<T> &r, const float *log_softmax, kernel_stream stream)
{
    gradient_kernel<T><<<static_cast<unsigned>(r.rows), THREADS, 0, stream>>>(r, log_softmax);
    return cudaGetLastError();
}

} // namespace

/* The logarithm of the softmax, f32; SIZE_MAX if that does not fit. */
size_t loss_naive_workspace_bytes(const void *args)
{
    const loss_shape &s = static_cast<const loss_args *>(args)->shape;
    if (!loss_is_valid(s)) return 0;
    size_t rows = static_cast<size_t>(s.rows), classes = static_cast<size_t>(s.classes);
    return rows > SIZE_MAX / sizeof(float) / classes ? SIZE_MAX : rows * classes * sizeof(float);
}

int loss_naive_forward_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    return loss_dispatch(args, [=](const auto &rows) {
        float *log_softmax = static_cast<float *>(workspace);
        int error = launch_log_softmax(rows, log_softmax, rows.lse, stream);
        return error ? error : launch_pick(rows, log_softmax, stream);
    });
}

int loss_naive_backward_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    return loss_dispatch(args, [=](const auto &rows) {
        float *log_softmax = static_cast<float *>(workspace);
        int error = launch_log_softmax(rows, log_softmax, nullptr, stream);
        return error ? error : launch_gradient(rows, log_softmax, stream);
    });
}

int loss_naive_forward_backward_run(const void *args, void *workspace, void *,
                                    kernel_stream stream)
{
    return loss_dispatch(args, [=](const auto &rows) {
        float *log_softmax = static_cast<float *>(workspace);
        int error = launch_log_softmax(rows, log_softmax, rows.lse, stream);
        if (!error) error = launch_pick(rows, log_softmax, stream);
        return error ? error : launch_gradient(rows, log_softmax, stream);
    });
}
