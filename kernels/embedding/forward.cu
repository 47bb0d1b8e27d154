/*
 * forward.cu - a gather of table rows, and an addition of positions.
 *
 * 1. naive       A thread an element of out. Teaches what an index costs: two
 *                divisions and a token load for 4 bytes, and one load in flight
 *                a thread. Bound by instructions and by memory latency.
 * 2. vectorized  A warp moves 512 bytes of each of four rows, 16 bytes a lane,
 *                so four independent loads are in flight before the first
 *                store; the rows share a position, whose part is loaded once.
 *                Columns come in bands that keep the table's part in the L2
 *                cache (embedding.cuh): a token that comes again is a cache
 *                hit, so memory sees each row once. Stores are marked to be
 *                evicted first, so that they do not push the table out. (Loads
 *                marked to be evicted last are faster, but such lines can
 *                outlive the flush between two samples, so what that measures
 *                is not a cold cache.) Bound by memory: the distinct rows read,
 *                512 bytes at a time at random places, and out written.
 *                Dropped, on an H200 at 32,768 rows of 1600 (f32 96.0 us, bf16
 *                52.0): bands that fill all of the L2 cache instead of half (98.5,
 *                52.3), eight rows a warp (97.0, 52.9), two (95.8, 52.5, and 2 %
 *                faster than four only at 8192 rows of bf16).
 */
#include "embedding.cuh"

namespace {

/* ---- naive ------------------------------------------------------------- */

template <typename T> struct forward_rows {
    embedding_shape shape;
    const int32_t *tokens;
    const T *token_table, *position_table;
    T *out;
    int *error_flag;
};

template <typename T>
__global__ void __launch_bounds__(EMBEDDING_THREADS) naive_kernel(forward_rows<T> r)
{
    const embedding_shape &s = r.shape;
    int64_t i = static_cast<int64_t>(blockIdx.x) * EMBEDDING_THREADS + threadIdx.x;
    int64_t row = i / s.columns, column = i - row * s.columns;
    if (row >= s.rows) return;
    int64_t token = embedding_token(r.tokens, row, s.vocabulary);
    float value = token < 0 ? 0.0f : row_get(r.token_table, token * s.columns + column);
    if (s.context > 0) value += row_get(r.position_table, row % s.context * s.columns + column);
    row_set(r.out, i, value);
    embedding_report(token < 0, r.error_flag);
}

template <typename T> int launch_naive(const forward_rows<T> &r, kernel_stream stream)
{
    if (r.shape.columns > INT64_MAX / r.shape.rows) return KERNEL_ERROR_ARGUMENT;
    int64_t blocks = ceil_div(r.shape.rows * r.shape.columns, EMBEDDING_THREADS);
    if (!row_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    naive_kernel<<<static_cast<unsigned>(blocks), EMBEDDING_THREADS, 0, stream>>>(r);
    return cudaGetLastError();
}

/* ---- vectorized -------------------------------------------------------- */

template <typename T, int COUNT>
__device__ __forceinline__ typename row_access<T, COUNT>::raw
add_access(typename row_access<T, COUNT>::raw left, typename row_access<T, COUNT>::raw right)
{
    using access = row_access<T, COUNT>;
    float sum[COUNT], term[COUNT];
    access::unpack(left, sum);
    access::unpack(right, term);
#pragma unroll
    for (int i = 0; i < COUNT; i++) sum[i] += term[i];
    return access::pack(sum);
}

template <typename T, int COUNT>
__global__ void __launch_bounds__(EMBEDDING_THREADS)
vectorized_kernel(forward_rows<T> r, embedding_plan plan)
{
    using raw = typename row_access<T, COUNT>::raw;
    const embedding_shape &s = r.shape;
    embedding_task task = embedding_find_task<COUNT>(plan);
    if (task.group >= plan.groups || task.column >= s.columns) return;
    int64_t first = static_cast<int64_t>(task.group) * EMBEDDING_SEQUENCES;
    int64_t token[EMBEDDING_SEQUENCES];
    raw value[EMBEDDING_SEQUENCES], position;
    bool has_invalid = false;
#pragma unroll
    for (int n = 0; n < EMBEDDING_SEQUENCES; n++) {
        int64_t row = (first + n) * plan.period + task.position;
        bool inside = row < s.rows;
        token[n] = inside ? embedding_token(r.tokens, row, s.vocabulary) : -1;
        has_invalid = has_invalid || (inside && token[n] < 0);
    }
    if (s.context > 0)
        position = row_load<COUNT>(r.position_table + task.position * s.columns + task.column, 0);
#pragma unroll
    for (int n = 0; n < EMBEDDING_SEQUENCES; n++)
        value[n] = token[n] < 0
                       ? raw{}
                       : row_load<COUNT>(r.token_table + token[n] * s.columns + task.column, 0);
#pragma unroll
    for (int n = 0; n < EMBEDDING_SEQUENCES; n++) {
        int64_t row = (first + n) * plan.period + task.position;
        if (row >= s.rows) break;
        if (s.context > 0) value[n] = add_access<T, COUNT>(value[n], position);
        __stcs(reinterpret_cast<raw *>(r.out + row * s.columns + task.column), value[n]);
    }
    embedding_report(has_invalid, r.error_flag);
}

template <typename T, int COUNT>
int launch_vectorized(const forward_rows<T> &r, kernel_stream stream)
{
    embedding_plan plan;
    int error = embedding_make_plan(r.shape, sizeof(T), COUNT, &plan);
    if (error) return error;
    vectorized_kernel<T, COUNT>
        <<<plan.bands * plan.blocks_per_band, EMBEDDING_THREADS, 0, stream>>>(r, plan);
    return cudaGetLastError();
}

/* ---- dispatch ---------------------------------------------------------- */

struct naive {
    template <typename T> static int launch(const forward_rows<T> &r, kernel_stream stream)
    {
        return launch_naive(r, stream);
    }
};

struct vectorized {
    template <typename T> static int launch(const forward_rows<T> &r, kernel_stream stream)
    {
        if (embedding_is_aligned<T>(r.shape))
            return launch_vectorized<T, ROW_PER_16_BYTES<T>>(r, stream);
        return launch_vectorized<T, 1>(r, stream);
    }
};

template <typename T> forward_rows<T> typed(const embedding_forward_args &a)
{
    return {a.shape,
            a.tokens,
            static_cast<const T *>(a.token_table),
            static_cast<const T *>(a.position_table),
            static_cast<T *>(a.out),
            a.error_flag};
}

template <typename Variant> int run(const void *args, kernel_stream stream)
{
    const embedding_forward_args &a = *static_cast<const embedding_forward_args *>(args);
    if (!embedding_is_valid(a.shape)) return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F32: return Variant::launch(typed<float>(a), stream);
    case KERNEL_F16: return Variant::launch(typed<__half>(a), stream);
    case KERNEL_BF16: return Variant::launch(typed<__nv_bfloat16>(a), stream);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

} // namespace

int embedding_naive_run(const void *args, void *, void *, kernel_stream stream)
{
    return run<naive>(args, stream);
}

int embedding_vectorized_run(const void *args, void *, void *, kernel_stream stream)
{
    return run<vectorized>(args, stream);
}
