/*
 * atomic.cu - the gradient of the tables by atomic additions.
 *
 * 1. atomic  Tables of f32 sums are set to zero, then each warp adds 512 bytes
 *            of each of four rows of dout to the rows of their tokens, where
 *            the L2 cache does the additions: four neighbouring floats an
 *            instruction from sm_90 on (red.global.add.v4.f32), one before.
 *            The four rows share a position, so only their sum is added to
 *            dposition_table. Teaches what a random read-modify-write of
 *            memory costs, and what collisions do: additions to one address
 *            come one after the other, so a frequent token (Zipf) is a queue.
 *            The order of the additions is the hardware's, so two runs differ
 *            in the last bits.
 *
 *            f32 adds in the gradients themselves. Halves add in f32 tables in
 *            the workspace, which a second kernel rounds once: atomics on
 *            halves would round after each addition.
 *
 * Bound by memory: dout read, the tables zeroed (4 bytes an element), the
 * distinct rows read and written again; halves also read the f32 tables and
 * write the narrow ones. Few distinct tokens: bound by the atomics' rate.
 */
#include "embedding.cuh"

namespace {

/* sums: f32 tables, [vocabulary, columns] and [context, columns]. */
template <typename T> struct backward_rows {
    embedding_shape shape;
    const int32_t *tokens;
    const T *dout;
    float *token_sums, *position_sums;
    int *error_flag;
};

/* dst[0..4) += value, each element atomically. dst is aligned to 16 bytes. */
__device__ __forceinline__ void add_four(float *dst, float4 value)
{
#if __CUDA_ARCH__ >= 900
    atomicAdd(reinterpret_cast<float4 *>(dst), value);
#else
    atomicAdd(dst, value.x);
    atomicAdd(dst + 1, value.y);
    atomicAdd(dst + 2, value.z);
    atomicAdd(dst + 3, value.w);
#endif
}

template <int COUNT>
__device__ __forceinline__ void add_atomically(float *dst, const float (&values)[COUNT])
{
    if constexpr (COUNT % 4 == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4)
            add_four(dst + i, make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]));
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) atomicAdd(dst + i, values[i]);
    }
}

template <typename T, int COUNT>
__global__ void __launch_bounds__(EMBEDDING_THREADS)
scatter_kernel(backward_rows<T> r, embedding_plan plan)
{
    using access = row_access<T, COUNT>;
    const embedding_shape &s = r.shape;
    embedding_task task = embedding_find_task<COUNT>(plan);
    if (task.group >= plan.groups || task.column >= s.columns) return;
    int64_t first = static_cast<int64_t>(task.group) * EMBEDDING_SEQUENCES;
    typename access::raw value[EMBEDDING_SEQUENCES];
    int64_t token[EMBEDDING_SEQUENCES];
    float position[COUNT] = {};
    bool has_invalid = false;
#pragma unroll
    for (int n = 0; n < EMBEDDING_SEQUENCES; n++) {
        int64_t row = (first + n) * plan.period + task.position;
        bool inside = row < s.rows;
        token[n] = inside ? embedding_token(r.tokens, row, s.vocabulary) : -1;
        has_invalid = has_invalid || (inside && token[n] < 0);
        value[n] = inside ? row_load<COUNT>(r.dout + row * s.columns + task.column, 0)
                          : typename access::raw{};
    }
#pragma unroll
    for (int n = 0; n < EMBEDDING_SEQUENCES; n++) {
        float row[COUNT];
        access::unpack(value[n], row);
        if (token[n] >= 0)
            add_atomically(r.token_sums + token[n] * s.columns + task.column, row);
#pragma unroll
        for (int i = 0; i < COUNT; i++) position[i] += row[i];
    }
    if (s.context > 0)
        add_atomically(r.position_sums + task.position * s.columns + task.column, position);
    embedding_report(has_invalid, r.error_flag);
}

/* dst[i] = src[i], rounded. */
template <typename T>
__global__ void __launch_bounds__(EMBEDDING_THREADS)
round_kernel(const float *src, T *dst, int64_t count)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * EMBEDDING_THREADS + threadIdx.x;
    if (i < count) row_set(dst, i, src[i]);
}

template <typename T, int COUNT>
int launch_scatter(const backward_rows<T> &r, kernel_stream stream)
{
    embedding_plan plan;
    int error = embedding_make_plan(r.shape, sizeof(T), COUNT, &plan);
    if (error) return error;
    scatter_kernel<T, COUNT>
        <<<plan.bands * plan.blocks_per_band, EMBEDDING_THREADS, 0, stream>>>(r, plan);
    return cudaGetLastError();
}

template <typename T> int scatter(const backward_rows<T> &r, kernel_stream stream)
{
    size_t row_bytes = r.shape.columns * sizeof(float);
    int error = cudaMemsetAsync(r.token_sums, 0, r.shape.vocabulary * row_bytes, stream);
    if (!error && r.shape.context > 0)
        error = cudaMemsetAsync(r.position_sums, 0, r.shape.context * row_bytes, stream);
    if (error) return error;
    if (embedding_is_aligned<T>(r.shape))
        return launch_scatter<T, ROW_PER_16_BYTES<T>>(r, stream);
    return launch_scatter<T, 1>(r, stream);
}

template <typename T>
int round_table(const float *sums, void *table, int64_t elements, kernel_stream stream)
{
    int64_t blocks = ceil_div(elements, EMBEDDING_THREADS);
    if (elements == 0) return KERNEL_OK;
    if (!row_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    round_kernel<<<static_cast<unsigned>(blocks), EMBEDDING_THREADS, 0, stream>>>(
        sums, static_cast<T *>(table), elements);
    return cudaGetLastError();
}

int run_f32(const embedding_backward_args &a, kernel_stream stream)
{
    backward_rows<float> r = {a.shape,
                              a.tokens,
                              static_cast<const float *>(a.dout),
                              static_cast<float *>(a.dtoken_table),
                              static_cast<float *>(a.dposition_table),
                              a.error_flag};
    return scatter(r, stream);
}

/* By way of tables in f32. */
template <typename T>
int run_half(const embedding_backward_args &a, float *sums, kernel_stream stream)
{
    int64_t token_elements = a.shape.vocabulary * a.shape.columns;
    int64_t position_elements = a.shape.context * a.shape.columns;
    backward_rows<T> r = {a.shape, a.tokens,      static_cast<const T *>(a.dout), sums,
                          sums + token_elements, a.error_flag};
    int error = scatter(r, stream);
    if (!error) error = round_table<T>(r.token_sums, a.dtoken_table, token_elements, stream);
    return error ? error
                 : round_table<T>(r.position_sums, a.dposition_table, position_elements, stream);
}

} // namespace

/* Sums are taken in f32 tables: in the gradients themselves where they are f32. */
static bool sums_in_place(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return true;
    case KERNEL_F16:
    case KERNEL_BF16:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return false;
}

size_t embedding_atomic_workspace_bytes(const void *args)
{
    const embedding_backward_args &a = *static_cast<const embedding_backward_args *>(args);
    const embedding_shape &s = a.shape;
    if (sums_in_place(a.dtype) || !embedding_is_valid(s)) return 0;
    size_t row_bytes = s.columns * sizeof(float), rows = s.vocabulary + s.context;
    return rows > SIZE_MAX / row_bytes ? SIZE_MAX : rows * row_bytes;
}

int embedding_atomic_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    const embedding_backward_args &a = *static_cast<const embedding_backward_args *>(args);
    if (!embedding_is_valid(a.shape)) return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F32: return run_f32(a, stream);
    case KERNEL_F16: return run_half<__half>(a, static_cast<float *>(workspace), stream);
    case KERNEL_BF16: return run_half<__nv_bfloat16>(a, static_cast<float *>(workspace), stream);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
