/*
 * clip.cu - the norm of all gradients, and their scaling in place.
 *
 * norm
 * 1. per_tensor        A reduction for each tensor, as a framework's loop runs
 *                      it: a launch for sums of slices, one to add them up;
 *                      then one over the tensors. Bound by launches but for
 *                      the largest models.
 * 2. fused_per_tensor  A launch a tensor for the sums of its slices, then one
 *                      to add up all.
 * 3. multi_tensor      One launch: a grid that stays on the device walks a table
 *                      of slices, and the block that arrives last adds up the
 *                      blocks' sums. No second launch, and no atomics but one
 *                      counter. Bound by memory: the gradients read once, four
 *                      loads of 16 bytes in flight a thread.
 *                      Dropped: reading the next slice's place in the table while
 *                      this one is summed. Predicted 1 to 2 us of 95.4 (f32) and
 *                      51.6 (bf16) at 0.1 billion parameters on an H200; it took
 *                      95.9 and 52.0: the five other blocks of a multiprocessor
 *                      hide that latency.
 *
 * Deterministic: a thread's elements, the tree over a block and the order of
 * the blocks' sums are fixed. multi_tensor's depend on the number of
 * multiprocessors, so another device may round differently. A thread adds
 * squares in f32 for one slice (32 of them), everything above in double.
 *
 * scale: what a step with gradient_scale gets for nothing.
 * 4. per_tensor        A launch a tensor, one element a thread.
 * 5. multi_tensor      One launch over the table of slices. Bound by memory:
 *                      the gradients read and written.
 */
#include "optimizer.cuh"

namespace {

constexpr int WARPS = OPTIMIZER_THREADS / 32;
constexpr int IN_FLIGHT = 4;
constexpr int BLOCKS_PER_SM = 6; /* 40 registers a thread */

/* ---- sums -------------------------------------------------------------- */

/* Over the block, in one order; thread 0 gets the result. */
__device__ double sum_block(double value)
{
    __shared__ double warps[WARPS];
    for (int lane = 16; lane > 0; lane /= 2)
        value += __shfl_down_sync(0xffffffffu, value, lane);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    double sum = 0;
    for (int i = 0; i < WARPS; i++) sum += warps[i];
    __syncthreads(); /* the next call may write */
    return sum;
}

template <int N, typename T>
__device__ __forceinline__ float square_sum(typename row_access<T, N>::raw values)
{
    float elements[N], sum = 0.0f;
    row_access<T, N>::unpack(values, elements);
#pragma unroll
    for (int i = 0; i < N; i++) sum = fmaf(elements[i], elements[i], sum);
    return sum;
}

/* This thread's share of accesses begin to end; *next is the first that is
 * left for a call with a smaller COUNT. */
template <int N, int COUNT, typename T>
__device__ __forceinline__ float square_sums(const T *gradient, int begin, int end, int *next)
{
    using raw = typename row_access<T, N>::raw;
    float sum = 0.0f;
    int index = begin;
    for (; index + (COUNT - 1) * OPTIMIZER_THREADS < end; index += COUNT * OPTIMIZER_THREADS) {
        raw values[COUNT];
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            values[n] = __ldcs(reinterpret_cast<const raw *>(gradient) + index +
                               n * OPTIMIZER_THREADS);
#pragma unroll
        for (int n = 0; n < COUNT; n++) sum += square_sum<N, T>(values[n]);
    }
    *next = index;
    return sum;
}

/* This thread's share of a slice. */
template <typename T> __device__ __forceinline__ float square_sum_slice(const optimizer_tensor &t)
{
    constexpr int ELEMENTS = ROW_PER_16_BYTES<T>;
    const T *gradient = static_cast<const T *>(t.gradient);
    int count = static_cast<int>(t.count), thread = static_cast<int>(threadIdx.x), done = 0, next;
    float sum = 0.0f;
    if (optimizer_is_aligned(t, sizeof(T), ELEMENTS, 0)) {
        int accesses = count / ELEMENTS;
        sum = square_sums<ELEMENTS, IN_FLIGHT>(gradient, thread, accesses, &next);
        sum += square_sums<ELEMENTS, 1>(gradient, next, accesses, &next);
        done = accesses * ELEMENTS;
    }
    return sum + square_sums<1, 1>(gradient, done + thread, count, &next);
}

/* The sum of values[count], in one order; thread 0 gets it. */
__device__ double add_up(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += OPTIMIZER_THREADS) sum += __ldcg(values + i);
    return sum_block(sum);
}

/* What clipping is to know of the squares' sum. A NaN stays one. */
struct clipping {
    float max_norm;
    float *norm, *scale;

    __device__ void finish(double sum) const
    {
        double root = sqrt(sum), factor = max_norm / (root + 1e-6);
        *norm = static_cast<float>(root);
        *scale = factor >= 1 ? 1.0f : static_cast<float>(factor);
    }
};

/* ---- norm kernels ------------------------------------------------------ */

template <typename T>
__global__ void __launch_bounds__(OPTIMIZER_THREADS,
                                  row_resident_blocks(OPTIMIZER_THREADS, BLOCKS_PER_SM))
slices_kernel(optimizer_tensor t, int head, double *partials)
{
    double sum = square_sum_slice<T>(optimizer_slice_at(t, sizeof(T), head, blockIdx.x));
    sum = sum_block(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(OPTIMIZER_THREADS)
add_up_kernel(const double *values, int64_t count, double *total)
{
    double sum = add_up(values, count);
    if (threadIdx.x == 0) *total = sum;
}

__global__ void __launch_bounds__(OPTIMIZER_THREADS)
finish_kernel(const double *values, int64_t count, clipping clip)
{
    double sum = add_up(values, count);
    if (threadIdx.x == 0) clip.finish(sum);
}

/* Whether this block is the last of the grid to come here: then everything
 * that the others wrote before is visible to it. */
__device__ bool arrives_last(unsigned *arrived)
{
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
        if (is_last) __threadfence(); /* what is read below is read after the last arrival */
    }
    __syncthreads();
    return is_last;
}

template <typename T>
__global__ void __launch_bounds__(OPTIMIZER_THREADS,
                                  row_resident_blocks(OPTIMIZER_THREADS, BLOCKS_PER_SM))
table_kernel(optimizer_table table, clipping clip)
{
    double sum = 0;
    for (int64_t i = blockIdx.x; i < table.count; i += gridDim.x)
        sum += square_sum_slice<T>(table.slices[i]);
    sum = sum_block(sum);
    if (threadIdx.x == 0) table.partials[blockIdx.x] = sum;
    if (!arrives_last(table.arrived)) return;
    sum = add_up(table.partials, gridDim.x);
    if (threadIdx.x != 0) return;
    clip.finish(sum);
    *table.arrived = 0;
}

/* ---- norm launches ----------------------------------------------------- */

template <typename T> int head_of(const optimizer_tensor &t)
{
    return optimizer_head(optimizer_gradient_only(t), sizeof(T), ROW_PER_16_BYTES<T>);
}

/* Sums of the tensor's slices to partials; their number to *slices. */
template <typename T>
int launch_slices(const optimizer_tensor &t, double *partials, int64_t *slices,
                  kernel_stream stream)
{
    int head = head_of<T>(t);
    *slices = optimizer_slice_count(t, head);
    if (*slices == 0) return KERNEL_OK;
    if (!row_fits_grid(*slices)) return KERNEL_ERROR_ARGUMENT;
    slices_kernel<T><<<static_cast<unsigned>(*slices), OPTIMIZER_THREADS, 0, stream>>>(
        optimizer_gradient_only(t), head, partials);
    return cudaGetLastError();
}

int launch_finish(const optimizer_clip_args &a, const double *values, int64_t count,
                  kernel_stream stream)
{
    finish_kernel<<<1, OPTIMIZER_THREADS, 0, stream>>>(values, count,
                                                       {a.max_norm, a.norm, a.scale});
    return cudaGetLastError();
}

/* Workspace: the tensors' sums, then one tensor's slices. */
struct norm_per_tensor {
    template <typename T>
    static int run(const optimizer_clip_args &a, double *sums, kernel_stream stream)
    {
        double *partials = sums + a.list.count;
        for (int64_t i = 0; i < a.list.count; i++) {
            int64_t slices;
            int error = launch_slices<T>(a.list.tensors[i], partials, &slices, stream);
            if (error) return error;
            add_up_kernel<<<1, OPTIMIZER_THREADS, 0, stream>>>(partials, slices, sums + i);
            error = cudaGetLastError();
            if (error) return error;
        }
        return launch_finish(a, sums, a.list.count, stream);
    }
};

/* Workspace: the slices of all tensors. */
struct norm_fused_per_tensor {
    template <typename T>
    static int run(const optimizer_clip_args &a, double *partials, kernel_stream stream)
    {
        int64_t total = 0;
        for (int64_t i = 0; i < a.list.count; i++) {
            int64_t slices;
            int error = launch_slices<T>(a.list.tensors[i], partials + total, &slices, stream);
            if (error) return error;
            total += slices;
        }
        return launch_finish(a, partials, total, stream);
    }
};

struct norm_multi_tensor {
    template <typename T>
    static int run(const optimizer_clip_args &a, const optimizer_table *table, kernel_stream stream)
    {
        table_kernel<T><<<table->blocks, OPTIMIZER_THREADS, 0, stream>>>(
            *table, {a.max_norm, a.norm, a.scale});
        return cudaGetLastError();
    }
};

/* At most: a head is one slice more. */
int64_t most_slices(const optimizer_tensor &t)
{
    return ceil_div(t.count, OPTIMIZER_SLICE) + 1;
}

int make_gradient_table(const void *args, void **state)
{
    const optimizer_clip_args &a = *static_cast<const optimizer_clip_args *>(args);
    size_t element_bytes = kernel_dtype_bytes(a.dtype);
    if (element_bytes == 0) return KERNEL_ERROR_ARGUMENT;
    return optimizer_make_table(a.list, element_bytes, static_cast<int>(16 / element_bytes), true,
                                BLOCKS_PER_SM, state);
}

/* ---- scale ------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(OPTIMIZER_THREADS)
scale_tensor_kernel(T *gradient, int64_t count, const float *scale)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * OPTIMIZER_THREADS + threadIdx.x;
    if (i < count) row_set(gradient, i, *scale * row_get(gradient, i));
}

/* Accesses begin to end of this thread, COUNT in flight; returns the first
 * that is left. */
template <int N, int COUNT, typename T>
__device__ __forceinline__ int scale_accesses(T *gradient, int begin, int end, float scale)
{
    using access = row_access<T, N>;
    typename access::raw *array = reinterpret_cast<typename access::raw *>(gradient);
    int index = begin;
    for (; index + (COUNT - 1) * OPTIMIZER_THREADS < end; index += COUNT * OPTIMIZER_THREADS) {
        typename access::raw values[COUNT];
#pragma unroll
        for (int n = 0; n < COUNT; n++) values[n] = __ldcs(array + index + n * OPTIMIZER_THREADS);
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            float elements[N];
            access::unpack(values[n], elements);
#pragma unroll
            for (int i = 0; i < N; i++) elements[i] *= scale;
            __stcs(array + index + n * OPTIMIZER_THREADS, access::pack(elements));
        }
    }
    return index;
}

template <typename T>
__global__ void __launch_bounds__(OPTIMIZER_THREADS)
scale_table_kernel(const optimizer_tensor *slices, const float *scale)
{
    constexpr int ELEMENTS = ROW_PER_16_BYTES<T>;
    optimizer_tensor t = slices[blockIdx.x];
    T *gradient = static_cast<T *>(t.gradient);
    int count = static_cast<int>(t.count), thread = static_cast<int>(threadIdx.x), done = 0;
    float factor = *scale;
    if (optimizer_is_aligned(t, sizeof(T), ELEMENTS, 0)) {
        int accesses = count / ELEMENTS;
        int next = scale_accesses<ELEMENTS, IN_FLIGHT>(gradient, thread, accesses, factor);
        scale_accesses<ELEMENTS, 1>(gradient, next, accesses, factor);
        done = accesses * ELEMENTS;
    }
    scale_accesses<1, 1>(gradient, done + thread, count, factor);
}

template <typename T>
int scale_tensor(const optimizer_tensor &t, const float *scale, kernel_stream stream)
{
    int64_t blocks = ceil_div(t.count, OPTIMIZER_THREADS);
    if (blocks == 0) return KERNEL_OK;
    if (!row_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    scale_tensor_kernel<<<static_cast<unsigned>(blocks), OPTIMIZER_THREADS, 0, stream>>>(
        static_cast<T *>(t.gradient), t.count, scale);
    return cudaGetLastError();
}

struct scale_per_tensor {
    template <typename T> static int run(const optimizer_clip_args &a, kernel_stream stream)
    {
        int error = KERNEL_OK;
        for (int64_t i = 0; i < a.list.count && !error; i++)
            error = scale_tensor<T>(a.list.tensors[i], a.scale, stream);
        return error;
    }
};

struct scale_multi_tensor {
    template <typename T>
    static int run(const optimizer_clip_args &a, const optimizer_table *table, kernel_stream stream)
    {
        if (table->count == 0) return KERNEL_OK;
        scale_table_kernel<T><<<static_cast<unsigned>(table->count), OPTIMIZER_THREADS, 0,
                                stream>>>(table->slices, a.scale);
        return cudaGetLastError();
    }
};

const optimizer_clip_args &clip_args(const void *args)
{
    return *static_cast<const optimizer_clip_args *>(args);
}

} // namespace

size_t optimizer_norm_per_tensor_workspace_bytes(const void *args)
{
    const optimizer_list &list = clip_args(args).list;
    int64_t largest = 0;
    for (int64_t i = 0; i < list.count; i++) {
        int64_t slices = most_slices(list.tensors[i]);
        if (slices > largest) largest = slices;
    }
    return static_cast<size_t>(list.count + largest) * sizeof(double);
}

int optimizer_norm_per_tensor_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    return optimizer_dispatch<norm_per_tensor>(clip_args(args), static_cast<double *>(workspace),
                                               stream);
}

size_t optimizer_norm_fused_per_tensor_workspace_bytes(const void *args)
{
    const optimizer_list &list = clip_args(args).list;
    int64_t slices = 0;
    for (int64_t i = 0; i < list.count; i++) slices += most_slices(list.tensors[i]);
    return static_cast<size_t>(slices) * sizeof(double);
}

int optimizer_norm_fused_per_tensor_run(const void *args, void *workspace, void *,
                                        kernel_stream stream)
{
    return optimizer_dispatch<norm_fused_per_tensor>(
        clip_args(args), static_cast<double *>(workspace), stream);
}

int optimizer_norm_multi_tensor_prepare(const void *args, void **state)
{
    return make_gradient_table(args, state);
}

int optimizer_norm_multi_tensor_run(const void *args, void *, void *state, kernel_stream stream)
{
    return optimizer_dispatch<norm_multi_tensor>(
        clip_args(args), static_cast<const optimizer_table *>(state), stream);
}

int optimizer_scale_per_tensor_run(const void *args, void *, void *, kernel_stream stream)
{
    return optimizer_dispatch<scale_per_tensor>(clip_args(args), stream);
}

int optimizer_scale_multi_tensor_prepare(const void *args, void **state)
{
    return make_gradient_table(args, state);
}

int optimizer_scale_multi_tensor_run(const void *args, void *, void *state, kernel_stream stream)
{
    return optimizer_dispatch<scale_multi_tensor>(
        clip_args(args), static_cast<const optimizer_table *>(state), stream);
}
