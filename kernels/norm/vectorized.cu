/*
 * vectorized.cu - norms in one pass over memory.
 *
 * 2. vectorized  forward   A row lives in the registers of a warp (up to 512
 *                          f32 or 1024 bf16), of a block of 128 threads (2560
 *                          or 5120) or of 512 (12288 or 24576): every access
 *                          of the row is under way before the first is waited
 *                          for, mean and variance come from registers, and y is
 *                          written from them. Several rows share a
 *                          multiprocessor, so that loads of one hide the
 *                          reductions of another.
 *                backward  A block takes every gridDim-th row and keeps, for its
 *                          columns, the running sums of dweight and dbias in
 *                          registers, so x and dy are read once for all three
 *                          results; the next row's loads are under way while
 *                          this one is worked on. The grid is what the device
 *                          runs at once; its partial sums (a few MB, which stay
 *                          in L2) are added by a second kernel in a fixed
 *                          order: no atomics, equal bits on every run on one
 *                          device. Up to 6144 f32 or 8192 bf16 a row.
 *
 * Teaches that a norm is a copy with arithmetic in its shadow. Bound by device
 * memory at large shapes: forward moves 2 rows a row, backward 3, one more each
 * with the residual fused; at a few hundred rows by launch and memory latency.
 *
 * Widths that 16 bytes do not divide leave rows at any alignment: the same
 * kernels with one element an access, up to 4096 elements. Rows that fit no
 * register class run the naive kernels.
 */
#include "norm.cuh"
#include "../common/launch.cuh"
#include "../common/ptx.cuh"

namespace {

/* ---- a thread's part of a row ------------------------------------------ */

/* Access i of a thread is number i * ROW_THREADS + lane of the row's, and
 * exists if that is below `accesses`: 16-byte classes have the fewest accesses
 * that hold the row, so there only the last can be missing. Loops over i
 * unroll, so that arrays stay in registers. */
template <typename T, int COUNT, int ROW_THREADS, int ACCESSES> struct slice {
    using access = row_access<T, COUNT>;
    using raws = typename access::raw[ACCESSES];
    int lane, accesses;

    __device__ __forceinline__ slice(int64_t width)
        : lane(threadIdx.x % ROW_THREADS), accesses(static_cast<int>(width / COUNT))
    {
    }

    __device__ __forceinline__ int number(int i) const { return i * ROW_THREADS + lane; }
    __device__ __forceinline__ bool has(int i) const
    {
        return (COUNT > 1 && i < ACCESSES - 1) || number(i) < accesses;
    }

    __device__ __forceinline__ void load(const T *row, raws &raw) const
    {
#pragma unroll
        for (int i = 0; i < ACCESSES; i++)
            if (has(i)) raw[i] = row_load<COUNT>(row, number(i));
    }

    /* Of memory that a kernel may still write when this one starts. */
    __device__ __forceinline__ void load_written(const T *row, raws &raw) const
    {
#pragma unroll
        for (int i = 0; i < ACCESSES; i++)
            if (has(i)) raw[i] = row_load_written<COUNT>(row, number(i));
    }

    /* function(i, e) for every element that exists. */
    template <typename Function> __device__ __forceinline__ void for_each(Function function) const
    {
#pragma unroll
        for (int i = 0; i < ACCESSES; i++)
            if (has(i))
#pragma unroll
                for (int e = 0; e < COUNT; e++) function(i, e);
    }
};

/* ---- forward ----------------------------------------------------------- */

/* Narrow rows share a block of this size, a warp each. */
constexpr int LEAST_THREADS = 128;

/* A multiprocessor's threads that the registers have to suffice for, 102 each;
 * 64 each where a thread's part of a bf16 row fits that: it is half the bytes in
 * flight, so more rows are needed to cover memory's latency. */
template <typename T, int ACCESSES>
constexpr int RESIDENT_THREADS = sizeof(T) == 2 && ACCESSES <= 3 ? 1024 : 640;

template <int ROW_THREADS>
constexpr int BLOCK_THREADS = ROW_THREADS < LEAST_THREADS ? LEAST_THREADS : ROW_THREADS;

/* Weight and bias of a thread's part. They are the same for every row, so they
 * come from L1; loading them early takes even that off the way from the last
 * reduction to the stores. */
template <typename T, int COUNT, int ROW_THREADS, int ACCESSES> struct scales {
    typename slice<T, COUNT, ROW_THREADS, ACCESSES>::raws weight, bias;
};

/* values = x, or the rounded x + residual, which is stored too. */
template <typename T, int COUNT, int ROW_THREADS, int ACCESSES>
__device__ __forceinline__ void load_values(const norm_forward_rows<T> &r, int64_t first,
                                            const slice<T, COUNT, ROW_THREADS, ACCESSES> &part,
                                            float (&values)[ACCESSES][COUNT])
{
    using access = row_access<T, COUNT>;
    typename access::raw x[ACCESSES], residual[ACCESSES];
    part.load_written(r.x + first, x);
    if (r.residual) part.load_written(r.residual + first, residual);
#pragma unroll
    for (int i = 0; i < ACCESSES; i++) {
        if (!part.has(i)) continue;
        access::unpack(x[i], values[i]);
        if (!r.residual) continue;
        float added[COUNT];
        access::unpack(residual[i], added);
#pragma unroll
        for (int e = 0; e < COUNT; e++) values[i][e] += added[e];
        typename access::raw sum = access::pack(values[i]);
        row_store<COUNT>(r.sum + first, part.number(i), sum);
        access::unpack(sum, values[i]);
    }
}

template <typename T, int COUNT, int ROW_THREADS, int ACCESSES>
__device__ __forceinline__ void store_normalized(const norm_forward_rows<T> &r, int64_t first,
                                                 const slice<T, COUNT, ROW_THREADS, ACCESSES> &part,
                                                 const scales<T, COUNT, ROW_THREADS, ACCESSES> &by,
                                                 const float (&values)[ACCESSES][COUNT],
                                                 float mean, float rstd)
{
    using access = row_access<T, COUNT>;
#pragma unroll
    for (int i = 0; i < ACCESSES; i++) {
        if (!part.has(i)) continue;
        float weight[COUNT], bias[COUNT] = {}, y[COUNT];
        access::unpack(by.weight[i], weight);
        if (r.bias) access::unpack(by.bias[i], bias);
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            y[e] = (values[i][e] - mean) * rstd * weight[e] + bias[e];
        row_store<COUNT>(r.y + first, part.number(i), access::pack(y));
    }
}

template <typename T, int COUNT, int ROW_THREADS, int ACCESSES>
__global__ void __launch_bounds__(BLOCK_THREADS<ROW_THREADS>,
                                  RESIDENT_THREADS<T, ACCESSES> / BLOCK_THREADS<ROW_THREADS>)
forward_kernel(norm_forward_rows<T> r)
{
    constexpr int BLOCK_ROWS = BLOCK_THREADS<ROW_THREADS> / ROW_THREADS;
    __shared__ float warps[2][ROW_THREADS / 32];
    int64_t row = static_cast<int64_t>(blockIdx.x) * BLOCK_ROWS + threadIdx.x / ROW_THREADS;
    if (row >= r.rows) return; /* a whole warp, or no thread */
    slice<T, COUNT, ROW_THREADS, ACCESSES> part(r.width);
    scales<T, COUNT, ROW_THREADS, ACCESSES> by;
    float values[ACCESSES][COUNT], sum = 0.0f, squares = 0.0f, mean = 0.0f;
    ptx_wait_for_kernel_before();
    load_values(r, row * r.width, part, values);
    part.load(r.weight, by.weight);
    if (r.bias) part.load(r.bias, by.bias);
    if (r.mean) {
        part.for_each([&](int i, int e) { sum += values[i][e]; });
        mean = row_reduce_block<ROW_THREADS>(sum, row_addition(), warps[0]) * r.inverse_width;
    }
    part.for_each([&](int i, int e) {
        float centered = values[i][e] - mean;
        squares += centered * centered;
    });
    squares = row_reduce_block<ROW_THREADS>(squares, row_addition(), warps[1]);
    float rstd = rsqrtf(squares * r.inverse_width + NORM_EPSILON);
    store_normalized(r, row * r.width, part, by, values, mean, rstd);
    if (part.lane > 0) return;
    if (r.mean) r.mean[row] = mean;
    r.rstd[row] = rstd;
}

template <typename T, int COUNT, int ROW_THREADS, int ACCESSES>
int launch_forward(const norm_forward_rows<T> &r, kernel_stream stream)
{
    constexpr int BLOCK_ROWS = BLOCK_THREADS<ROW_THREADS> / ROW_THREADS;
    int64_t blocks = ceil_div(r.rows, BLOCK_ROWS);
    if (!row_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    return launch_early(forward_kernel<T, COUNT, ROW_THREADS, ACCESSES>,
                        static_cast<unsigned>(blocks), BLOCK_THREADS<ROW_THREADS>, 0, stream, r);
}

/* The class of ROW_THREADS with the fewest accesses, from ACCESSES to MOST,
 * that hold a row. (Of 2560 16-bit values the third access of 128 threads is half
 * empty; 160 threads, whose two are full, took 90.4 us instead of 87.1 for 32768
 * rows on an H200, and 320 threads of one access 107.9 instead of 86.4.) */
template <typename T, int COUNT, int ROW_THREADS, int ACCESSES, int MOST>
int launch_fewest(const norm_forward_rows<T> &r, kernel_stream stream)
{
    if constexpr (ACCESSES < MOST)
        if (r.width > ACCESSES * ROW_THREADS * COUNT)
            return launch_fewest<T, COUNT, ROW_THREADS, ACCESSES + 1, MOST>(r, stream);
    return launch_forward<T, COUNT, ROW_THREADS, ACCESSES>(r, stream);
}

template <typename T> int run_forward(const norm_forward_rows<T> &r, kernel_stream stream)
{
    constexpr int COUNT = ROW_PER_16_BYTES<T>;
    if (r.width % COUNT == 0) {
        int64_t accesses = r.width / COUNT;
        if (accesses <= 4 * 32) return launch_fewest<T, COUNT, 32, 1, 4>(r, stream);
        if (accesses <= 5 * 128) return launch_fewest<T, COUNT, 128, 2, 5>(r, stream);
        if (accesses <= 6 * 512) return launch_fewest<T, COUNT, 512, 2, 6>(r, stream);
    }
    if (r.width <= 8 * 128) return launch_forward<T, 1, 128, 8>(r, stream);
    if (r.width <= 8 * 512) return launch_forward<T, 1, 512, 8>(r, stream);
    return norm_naive_forward(r, stream);
}

/* ---- backward ---------------------------------------------------------- */

/* What a thread reads of a row, as it was stored. */
template <typename T, int COUNT, int THREADS, int ACCESSES> struct row_inputs {
    using slice_type = slice<T, COUNT, THREADS, ACCESSES>;
    typename slice_type::raws x, dy;
    float mean, rstd;

    __device__ __forceinline__ void load(const norm_backward_rows<T> &r, int64_t row,
                                         const slice_type &part)
    {
        part.load(r.x + row * r.width, x);
        part.load(r.dy + row * r.width, dy);
        mean = r.mean ? __ldg(r.mean + row) : 0.0f;
        rstd = __ldg(r.rstd + row);
    }
};

/* Makes the compiler load or unpack again what it could keep in registers
 * across the reduction: as f32, a bf16 row would take twice as many. Elements
 * that are f32 already, or alone in a register, have nothing to gain. */
__device__ __forceinline__ void forget(uint4 &raw)
{
    raw = make_uint4(ptx_opaque(raw.x), ptx_opaque(raw.y), ptx_opaque(raw.z), ptx_opaque(raw.w));
}

template <typename Raw> __device__ __forceinline__ void forget(Raw &) {}

/* xhat and g = dy * weight of one access, and dy. number is the access's place
 * in the weights. */
template <typename T, int COUNT, typename Raw>
__device__ __forceinline__ void unpack_inputs(const norm_backward_rows<T> &r, int number, Raw x_raw,
                                              Raw dy_raw, float mean, float rstd,
                                              float (&xhat)[COUNT], float (&g)[COUNT],
                                              float (&dy)[COUNT])
{
    using access = row_access<T, COUNT>;
    float weight[COUNT];
    access::unpack(row_load<COUNT>(r.weight, number), weight);
    access::unpack(x_raw, xhat);
    access::unpack(dy_raw, dy);
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        xhat[e] = (xhat[e] - mean) * rstd;
        g[e] = dy[e] * weight[e];
    }
}

/* Running sums over the rows of a block, for the columns of a thread. */
template <int COUNT, int ACCESSES> struct column_sums {
    float weight[ACCESSES][COUNT], bias[ACCESSES][COUNT];
};

/* Adds a row to the columns' sums; returns the row's sums of g and of g * xhat
 * over this thread's elements. */
template <typename T, int COUNT, int THREADS, int ACCESSES>
__device__ __forceinline__ float2 add_row(const norm_backward_rows<T> &r,
                                          const slice<T, COUNT, THREADS, ACCESSES> &part,
                                          const row_inputs<T, COUNT, THREADS, ACCESSES> &in,
                                          column_sums<COUNT, ACCESSES> &columns)
{
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < ACCESSES; i++) {
        if (!part.has(i)) continue;
        float xhat[COUNT], g[COUNT], dy[COUNT];
        unpack_inputs(r, part.number(i), in.x[i], in.dy[i], in.mean, in.rstd, xhat, g, dy);
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
            columns.weight[i][e] += dy[e] * xhat[e];
            columns.bias[i][e] += dy[e];
            sums.x += g[e];
            sums.y += g[e] * xhat[e];
        }
    }
    return sums;
}

/* dx of a row, from the row's means of g and of g * xhat. */
template <typename T, int COUNT, int THREADS, int ACCESSES>
__device__ __forceinline__ void store_dx(const norm_backward_rows<T> &r, int64_t row,
                                         const slice<T, COUNT, THREADS, ACCESSES> &part,
                                         row_inputs<T, COUNT, THREADS, ACCESSES> &in, float2 means)
{
    using access = row_access<T, COUNT>;
#pragma unroll
    for (int i = 0; i < ACCESSES; i++) {
        if (!part.has(i)) continue;
        float xhat[COUNT], g[COUNT], dy[COUNT], above[COUNT] = {}, dx[COUNT];
        forget(in.x[i]);
        forget(in.dy[i]);
        unpack_inputs(r, ptx_opaque(part.number(i)), in.x[i], in.dy[i], in.mean, in.rstd, xhat, g,
                      dy);
        if (r.dsum) access::unpack(row_load<COUNT>(r.dsum + row * r.width, part.number(i)), above);
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            dx[e] = in.rstd * (g[e] - means.x - xhat[e] * means.y) + above[e];
        row_store<COUNT>(r.dx + row * r.width, part.number(i), access::pack(dx));
    }
}

template <typename T, int COUNT, int THREADS, int ACCESSES>
__device__ __forceinline__ void store_columns(const slice<T, COUNT, THREADS, ACCESSES> &part,
                                              const float (&sums)[ACCESSES][COUNT], float *row)
{
    constexpr int WIDE = COUNT > 1 ? 4 : 1;
#pragma unroll
    for (int i = 0; i < ACCESSES; i++) {
        if (!part.has(i)) continue;
#pragma unroll
        for (int e = 0; e < COUNT; e += WIDE)
            row_store<WIDE>(row, (part.number(i) * COUNT + e) / WIDE,
                            row_access<float, WIDE>::pack(
                                reinterpret_cast<const float(&)[WIDE]>(sums[i][e])));
    }
}

/* Blocks that a multiprocessor's 65536 registers hold: beside 32 for the rest,
 * an access takes two a column for the sums, and the x and dy of two rows: 16
 * bytes are four registers, an element alone is one (and one to unpack into). */
template <int COUNT, int THREADS, int ACCESSES>
constexpr int RESIDENT_BLOCKS =
    65536 / (THREADS * (32 + ACCESSES * (2 * COUNT + (COUNT > 1 ? 16 : 5))));

/* partials: [2 or 1, gridDim.x, width]: each block's dweight, then dbias. A
 * row's loads are issued before the row in front of it is worked on. The two
 * halves of warps take turns, so that one barrier a row is enough. */
template <typename T, int COUNT, int THREADS, int ACCESSES>
__global__ void __launch_bounds__(
    THREADS, row_resident_blocks(THREADS, RESIDENT_BLOCKS<COUNT, THREADS, ACCESSES>))
backward_kernel(norm_backward_rows<T> r, float *partials)
{
    __shared__ float2 warps[2][THREADS / 32];
    slice<T, COUNT, THREADS, ACCESSES> part(r.width);
    column_sums<COUNT, ACCESSES> columns = {};
    row_inputs<T, COUNT, THREADS, ACCESSES> in, next;
    int turn = 0;
    in.load(r, blockIdx.x, part);
    for (int64_t row = blockIdx.x; row < r.rows; row += gridDim.x, turn ^= 1) {
        if (row + gridDim.x < r.rows) next.load(r, row + gridDim.x, part);
        float2 sums = row_reduce_block<THREADS>(add_row(r, part, in, columns), row_addition(),
                                                warps[turn]);
        float mean_g = r.mean ? sums.x * r.inverse_width : 0.0f;
        store_dx(r, row, part, in, make_float2(mean_g, sums.y * r.inverse_width));
        in = next;
    }
    store_columns(part, columns.weight, partials + blockIdx.x * r.width);
    if (r.dbias) store_columns(part, columns.bias, partials + (gridDim.x + blockIdx.x) * r.width);
}

constexpr int SUM_WARPS = 32;

/* 32 columns a block, a warp every SUM_WARPS-th partial row; the first half of
 * the blocks makes dweight, the second dbias. */
template <typename T>
__global__ void __launch_bounds__(SUM_WARPS * 32)
sum_partials_kernel(norm_backward_rows<T> r, const float *partials, int partial_rows,
                    int column_blocks)
{
    __shared__ float warps[SUM_WARPS][33]; /* 33: columns of it spread over the banks */
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool is_bias = blockIdx.x >= column_blocks;
    int64_t first = static_cast<int64_t>(blockIdx.x - is_bias * column_blocks) * 32;
    if (is_bias) partials += partial_rows * r.width;
    float sum = 0.0f;
    if (first + lane < r.width)
#pragma unroll 4
        for (int i = warp; i < partial_rows; i += SUM_WARPS)
            sum += __ldg(partials + i * r.width + first + lane);
    warps[warp][lane] = sum;
    __syncthreads();
    sum = row_reduce_warp(warps[lane][warp], row_addition()); /* column first + warp */
    if (lane == 0 && first + warp < r.width)
        row_set(is_bias ? r.dbias : r.dweight, first + warp, sum);
}

template <typename T>
int launch_sum(const norm_backward_rows<T> &r, const float *partials, int partial_rows,
               kernel_stream stream)
{
    int64_t column_blocks = ceil_div(r.width, 32), blocks = column_blocks * (r.dbias ? 2 : 1);
    sum_partials_kernel<T><<<static_cast<unsigned>(blocks), SUM_WARPS * 32, 0, stream>>>(
        r, partials, partial_rows, static_cast<int>(column_blocks));
    return cudaGetLastError();
}

/* How backward runs a width: a kernel and its block size, or no kernel. */
template <typename T> struct backward_class {
    void (*kernel)(norm_backward_rows<T>, float *);
    int threads;
};

template <typename T, int COUNT, int THREADS, int ACCESSES>
constexpr backward_class<T> CLASS = {backward_kernel<T, COUNT, THREADS, ACCESSES>, THREADS};

/* The smallest block whose threads hold x, dy and the running sums of a row
 * without spilling: 8 to 24 registers an element of an access. */
template <typename T> backward_class<T> choose_class(int64_t width)
{
    constexpr int COUNT = ROW_PER_16_BYTES<T>;
    int64_t accesses = width / COUNT;
    if (width % COUNT == 0) {
        if (accesses <= 1 * 128) return CLASS<T, COUNT, 128, 1>;
        if (accesses <= 2 * 128) return CLASS<T, COUNT, 128, 2>;
        if (accesses <= 3 * 128) return CLASS<T, COUNT, 128, 3>;
        if (accesses <= 2 * 256) return CLASS<T, COUNT, 256, 2>;
        if constexpr (COUNT == 4)
            if (accesses <= 5 * 128) return CLASS<T, COUNT, 128, 5>;
        if (accesses <= 3 * 256) return CLASS<T, COUNT, 256, 3>;
        if (accesses <= 2 * 512) return CLASS<T, COUNT, 512, 2>;
        if constexpr (COUNT == 4)
            if (accesses <= 3 * 512) return CLASS<T, COUNT, 512, 3>;
    }
    if (width <= 8 * 128) return CLASS<T, 1, 128, 8>;
    if (width <= 8 * 512) return CLASS<T, 1, 512, 8>;
    return {nullptr, 0};
}

/* As many blocks as the device runs at once, and no more than rows. */
template <typename T>
int choose_blocks(const backward_class<T> &c, int64_t rows, int *blocks)
{
    int device, multiprocessors, resident;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, c.kernel, c.threads, 0);
    if (error != cudaSuccess) return error;
    int64_t most = static_cast<int64_t>(multiprocessors) * resident;
    *blocks = static_cast<int>(rows < most ? rows : most);
    return KERNEL_OK;
}

template <typename T>
int run_backward(const norm_backward_rows<T> &r, float *partials, kernel_stream stream)
{
    backward_class<T> c = choose_class<T>(r.width);
    if (!c.kernel) return norm_naive_backward(r, stream);
    int blocks, error = choose_blocks(c, r.rows, &blocks);
    if (error) return error;
    c.kernel<<<blocks, c.threads, 0, stream>>>(r, partials);
    error = cudaGetLastError();
    return error ? error : launch_sum(r, partials, blocks, stream);
}

/* 0 also where the device cannot be asked: run then reports why. */
template <typename T> size_t partial_bytes(const norm_backward_rows<T> &r)
{
    backward_class<T> c = choose_class<T>(r.width);
    int blocks;
    if (!c.kernel || choose_blocks(c, r.rows, &blocks) != KERNEL_OK) return 0;
    return 2 * sizeof(float) * static_cast<size_t>(blocks) * static_cast<size_t>(r.width);
}

} // namespace

int norm_vectorized_forward_run(const void *args, void *, void *, kernel_stream stream)
{
    return norm_dispatch(*static_cast<const norm_forward_args *>(args),
                         [=](const auto &rows) { return run_forward(rows, stream); });
}

int norm_vectorized_backward_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    return norm_dispatch(*static_cast<const norm_backward_args *>(args), [=](const auto &rows) {
        return run_backward(rows, static_cast<float *>(workspace), stream);
    });
}

size_t norm_vectorized_backward_workspace_bytes(const void *args)
{
    const norm_backward_args &a = *static_cast<const norm_backward_args *>(args);
    if (!norm_is_valid(a.shape)) return 0;
    switch (a.dtype) {
    case KERNEL_F32: return partial_bytes(norm_typed<float>(a));
    case KERNEL_F16: return partial_bytes(norm_typed<__half>(a));
    case KERNEL_BF16: return partial_bytes(norm_typed<__nv_bfloat16>(a));
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return 0;
}
