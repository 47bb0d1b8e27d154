/*
 * fused.cu - cross-entropy without a matrix in between.
 *
 * 2. fused           forward   A block a row, four 16-byte loads in flight a
 *                              thread, and the online softmax (Milakov and
 *                              Gimelshein, "Online normalizer calculation for
 *                              softmax", 2018): each thread keeps the maximum
 *                              and the sum of what it has seen, so the logits
 *                              are read once. Bound by reading.
 *                    backward  Every logit becomes its gradient from the row's
 *                              saved lse, with no reduction; a block takes a
 *                              piece of a row. Bound by a copy's traffic.
 * 3. fused_one_pass  Loss and gradient of a row by one block, which keeps the
 *                    row in shared memory between the two: 201 KB for 50,257
 *                    f32 logits, a whole multiprocessor of an H100, 101 KB for
 *                    bf16, two blocks. One read and one write instead of two
 *                    reads and one write: bound by a copy's traffic again.
 *                    Rows that do not fit (f32 beyond 57,856 logits on an H100,
 *                    beyond 41,472 on an A100) are read a second time, from L2
 *                    where the rows at work fit there.
 *
 * With one block a multiprocessor, nothing of fused_one_pass loads while a row is
 * reduced.
 *
 * Rows of an odd number of classes start at any element. Each row is split at
 * its 16-byte boundaries: up to 3 (f32) or 7 (bf16) elements in front and
 * behind go one by one, a thread each.
 *
 * Sums are kept relative to a maximum of at least LOWEST, a finite number, so
 * that a thread that saw nothing needs no special case; a row whose logits are
 * all below it has no loss. Exponentials and logarithms are base 2 inside.
 */
#include "loss.cuh"
#include "../common/ptx.cuh"

namespace {

constexpr float LOG2_E = 1.44269504088896340736f;
constexpr float LN_2 = 0.69314718055994530942f;
constexpr float LOWEST = -1e30f;

constexpr int FORWARD_THREADS = 512;
constexpr int BACKWARD_THREADS = 256;
constexpr int IN_FLIGHT = 4; /* 16-byte loads a thread issues before it waits */

/* ---- a row and its 16-byte boundaries ---------------------------------- */

/* Of one row: elements in front of the first boundary, 16-byte accesses, and
 * elements behind the last. */
template <typename T> struct row_split {
    static constexpr int COUNT = ROW_PER_16_BYTES<T>;
    int head, accesses, tail;

    __device__ __forceinline__ row_split(int64_t first, int classes)
    {
        int to_boundary = static_cast<int>((COUNT - first % COUNT) % COUNT);
        head = to_boundary < classes ? to_boundary : classes;
        accesses = (classes - head) / COUNT;
        tail = classes - head - accesses * COUNT;
    }

    /* The element outside the accesses that thread number `thread` takes, or
     * -1. Fewer than 2 * COUNT of them, and blocks are larger. */
    __device__ __forceinline__ int single(int thread) const
    {
        if (thread < head) return thread;
        return thread < head + tail ? thread + accesses * COUNT : -1;
    }
};

/* ---- the softmax of what was seen so far ------------------------------- */

/* max is in units of log2; sum is relative to it. */
using online = float2;

__device__ __forceinline__ online online_nothing()
{
    return make_float2(LOWEST, 0.0f);
}

struct online_merge {
    __device__ __forceinline__ online operator()(online a, online b) const
    {
        float max = fmaxf(a.x, b.x);
        return make_float2(max, a.y * ptx_exp2(a.x - max) + b.y * ptx_exp2(b.x - max));
    }
};

/* Several logits at once: one rescaling for all of them. */
template <int N> __device__ __forceinline__ void online_add(online &o, const float (&logits)[N])
{
    float largest = logits[0];
#pragma unroll
    for (int i = 1; i < N; i++) largest = fmaxf(largest, logits[i]);
    float max = fmaxf(o.x, largest * LOG2_E), sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) sum += ptx_exp2(fmaf(logits[i], LOG2_E, -max));
    o.y = o.y * ptx_exp2(o.x - max) + sum;
    o.x = max;
}

/* log2 of the sum of the logits' exponentials. */
__device__ __forceinline__ float online_lse2(online o)
{
    return o.x + log2f(o.y);
}

/* Every access of the row, IN_FLIGHT loads at a time: keep(index, raw) sees
 * each, and o gets its logits. Accesses beyond the row count as -infinity. */
template <typename T, typename Keep>
__device__ __forceinline__ void read_row(const T *row, int accesses, online &o, Keep keep)
{
    constexpr int COUNT = ROW_PER_16_BYTES<T>;
    int stride = blockDim.x;
    for (int begin = threadIdx.x; begin < accesses; begin += IN_FLIGHT * stride) {
        typename row_access<T, COUNT>::raw raw[IN_FLIGHT];
        float logits[IN_FLIGHT * COUNT];
#pragma unroll
        for (int n = 0; n < IN_FLIGHT; n++)
            if (begin + n * stride < accesses) raw[n] = row_load<COUNT>(row, begin + n * stride);
#pragma unroll
        for (int n = 0; n < IN_FLIGHT; n++) {
            bool inside = begin + n * stride < accesses;
            float values[COUNT];
            row_access<T, COUNT>::unpack(raw[n], values);
            if (inside) keep(begin + n * stride, raw[n]);
#pragma unroll
            for (int e = 0; e < COUNT; e++)
                logits[n * COUNT + e] = inside ? values[e] : -INFINITY;
        }
        online_add(o, logits);
    }
}

/* ---- forward ----------------------------------------------------------- */

template <typename T>
__device__ __forceinline__ void store_loss(const loss_rows<T> &r, int64_t row, int target,
                                           float target_logit, float lse2)
{
    r.report(target);
    float lse = lse2 * LN_2;
    r.loss[row] = lse - target_logit;
    if (r.lse) r.lse[row] = lse;
}

/* The element outside the accesses that is this thread's: its index and value. */
template <typename T> struct single_logit {
    int index; /* -1: none */
    float value;

    __device__ __forceinline__ single_logit(const T *logits, const row_split<T> &split)
        : index(split.single(threadIdx.x)), value(index < 0 ? 0.0f : row_get(logits, index))
    {
    }

    __device__ __forceinline__ void add_to(online &o) const
    {
        const float alone[1] = {value};
        if (index >= 0) online_add(o, alone);
    }
};

template <typename T>
__global__ void __launch_bounds__(FORWARD_THREADS, 2) forward_kernel(loss_rows<T> r)
{
    using raw_access = typename row_access<T, ROW_PER_16_BYTES<T>>::raw;
    __shared__ online warps[FORWARD_THREADS / 32];
    int64_t row = blockIdx.x;
    const T *logits = r.logits + r.first(row);
    row_split<T> split(r.first(row), r.classes);
    int target = r.targets[row];
    online o = online_nothing();
    single_logit<T>(logits, split).add_to(o);
    read_row(logits + split.head, split.accesses, o, [](int, raw_access) {});
    float target_logit = threadIdx.x == 0 ? r.target_logit(row, target) : 0.0f;
    o = row_reduce_block<FORWARD_THREADS>(o, online_merge(), warps);
    if (threadIdx.x == 0) store_loss(r, row, target, target_logit, online_lse2(o));
}

template <typename T> int launch_forward(const loss_rows<T> &r, kernel_stream stream)
{
    forward_kernel<T><<<static_cast<unsigned>(r.rows), FORWARD_THREADS, 0, stream>>>(r);
    return cudaGetLastError();
}

/* ---- gradient ---------------------------------------------------------- */

/* What turns a row's logits into their gradient. A target that is no class is
 * no index either, and has a scale of NaN. */
struct gradient {
    int target;
    float lse2, scale;

    __device__ __forceinline__ float operator()(float logit, int index) const
    {
        float softmax = ptx_exp2(fmaf(logit, LOG2_E, -lse2));
        return (softmax - (index == target ? 1.0f : 0.0f)) * scale;
    }

    /* An access whose first element has number `first` of the row. */
    template <typename T>
    __device__ __forceinline__ void store(typename row_access<T, ROW_PER_16_BYTES<T>>::raw raw,
                                          int first, T *dst, int index) const
    {
        constexpr int COUNT = ROW_PER_16_BYTES<T>;
        float values[COUNT];
        row_access<T, COUNT>::unpack(raw, values);
#pragma unroll
        for (int e = 0; e < COUNT; e++) values[e] = (*this)(values[e], first + e);
        row_store<COUNT>(dst, index, row_access<T, COUNT>::pack(values));
    }
};

/* ---- backward ---------------------------------------------------------- */

constexpr int PIECE_ACCESSES = BACKWARD_THREADS * IN_FLIGHT;

/* `pieces` blocks a row, PIECE_ACCESSES each; the first also takes the
 * elements outside the accesses. */
template <typename T>
__global__ void __launch_bounds__(BACKWARD_THREADS) backward_kernel(loss_rows<T> r, unsigned pieces)
{
    constexpr int COUNT = ROW_PER_16_BYTES<T>;
    int64_t row = blockIdx.x / pieces;
    int piece = static_cast<int>(blockIdx.x % pieces);
    const T *logits = r.logits + r.first(row);
    T *dlogits = r.dlogits + r.first(row);
    row_split<T> split(r.first(row), r.classes);
    int begin = piece * PIECE_ACCESSES + static_cast<int>(threadIdx.x);
    typename row_access<T, COUNT>::raw raw[IN_FLIGHT];
#pragma unroll
    for (int n = 0; n < IN_FLIGHT; n++)
        if (begin + n * BACKWARD_THREADS < split.accesses)
            raw[n] = row_load<COUNT>(logits + split.head, begin + n * BACKWARD_THREADS);
    int target = r.targets[row];
    gradient of = {target, r.lse[row] * LOG2_E, r.scale(target, r.dloss[row])};
#pragma unroll
    for (int n = 0; n < IN_FLIGHT; n++) {
        int index = begin + n * BACKWARD_THREADS;
        if (index < split.accesses)
            of.store(raw[n], split.head + index * COUNT, dlogits + split.head, index);
    }
    if (piece > 0) return;
    if (threadIdx.x == 0) r.report(target);
    single_logit<T> single(logits, split);
    if (single.index >= 0) row_set(dlogits, single.index, of(single.value, single.index));
}

template <typename T> int launch_backward(const loss_rows<T> &r, kernel_stream stream)
{
    int64_t pieces = ceil_div(ceil_div(r.classes, ROW_PER_16_BYTES<T>), PIECE_ACCESSES);
    if (!row_fits_grid(r.rows * pieces)) return KERNEL_ERROR_ARGUMENT;
    backward_kernel<T><<<static_cast<unsigned>(r.rows * pieces), BACKWARD_THREADS, 0, stream>>>(
        r, static_cast<unsigned>(pieces));
    return cudaGetLastError();
}

/* ---- forward and backward in one pass ---------------------------------- */

/* Where a row's accesses are between the two halves: every thread reads again
 * only what it put there itself. */
extern __shared__ uint4 kept_accesses[];

template <typename T, int THREADS, bool KEEPS_ROW>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS) one_pass_kernel(loss_rows<T> r)
{
    constexpr int COUNT = ROW_PER_16_BYTES<T>;
    using raw_access = typename row_access<T, COUNT>::raw;
    __shared__ online warps[THREADS / 32];
    raw_access *kept = reinterpret_cast<raw_access *>(kept_accesses);
    int64_t row = blockIdx.x;
    const T *logits = r.logits + r.first(row);
    T *dlogits = r.dlogits + r.first(row);
    row_split<T> split(r.first(row), r.classes);
    int target = r.targets[row];
    float dloss = r.dloss[row];
    single_logit<T> single(logits, split);
    online o = online_nothing();
    single.add_to(o);
    read_row(logits + split.head, split.accesses, o, [=](int index, raw_access raw) {
        if (KEEPS_ROW) kept[index] = raw;
    });
    float target_logit = threadIdx.x == 0 ? r.target_logit(row, target) : 0.0f;
    o = row_reduce_block<THREADS>(o, online_merge(), warps);
    if (threadIdx.x == 0) store_loss(r, row, target, target_logit, online_lse2(o));
    gradient of = {target, online_lse2(o), r.scale(target, dloss)};
    if (single.index >= 0) row_set(dlogits, single.index, of(single.value, single.index));
#pragma unroll 4
    for (int i = threadIdx.x; i < split.accesses; i += THREADS) {
        raw_access raw = KEEPS_ROW ? kept[i] : row_load<COUNT>(logits + split.head, i);
        of.store(raw, split.head + i * COUNT, dlogits + split.head, i);
    }
}

template <typename T, int THREADS, bool KEEPS_ROW>
int launch_one_pass(const loss_rows<T> &r, size_t kept_bytes, kernel_stream stream)
{
    auto kernel = one_pass_kernel<T, THREADS, KEEPS_ROW>;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(kept_bytes));
    if (error != cudaSuccess) return error;
    kernel<<<static_cast<unsigned>(r.rows), THREADS, kept_bytes, stream>>>(r);
    return cudaGetLastError();
}

/* Shared memory of a block that rows can be kept in: what a kernel may ask for,
 * less what the reduction takes. */
int most_kept_bytes(size_t *bytes)
{
    int device, limit;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return error;
    *bytes = static_cast<size_t>(limit) - 1024;
    return KERNEL_OK;
}

/* Two blocks of 512 threads where two rows fit a multiprocessor (each block
 * costs it 1 KB more than it asks for), else one of 1024: at 64 registers a
 * thread either fills it. */
template <typename T> int run_one_pass(const loss_rows<T> &r, kernel_stream stream)
{
    size_t kept_bytes = static_cast<size_t>(r.classes / ROW_PER_16_BYTES<T>) * 16, most;
    int error = most_kept_bytes(&most);
    if (error) return error;
    if (kept_bytes <= most / 2 - 1024) return launch_one_pass<T, 512, true>(r, kept_bytes, stream);
    if (kept_bytes <= most) return launch_one_pass<T, 1024, true>(r, kept_bytes, stream);
    return launch_one_pass<T, 512, false>(r, 0, stream);
}

} // namespace

int loss_fused_forward_run(const void *args, void *, void *, kernel_stream stream)
{
    return loss_dispatch(args, [=](const auto &rows) { return launch_forward(rows, stream); });
}

int loss_fused_backward_run(const void *args, void *, void *, kernel_stream stream)
{
    return loss_dispatch(args, [=](const auto &rows) { return launch_backward(rows, stream); });
}

int loss_fused_forward_backward_run(const void *args, void *, void *, kernel_stream stream)
{
    return loss_dispatch(args, [=](const auto &rows) { return run_one_pass(rows, stream); });
}
