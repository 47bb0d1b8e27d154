/*
 * sorted.cu - the gradient of the tables without atomics.
 *
 * 1. sorted  The rows of dout are sorted by token (a stable radix sort of the
 *            token ids alone, by CUB), so that each table row's gradient is
 *            the sum of one run of rows, written once: no zeroing, no
 *            collisions, no second table for bf16, and equal inputs give equal
 *            bits, because the sort is stable and every sum has one order. The
 *            steps, a launch each but for the sort:
 *
 *            label      sort keys: the tokens; invalid ones last
 *            sort       of 4 + 4 bytes a row, two passes of 8 bits for 50,257
 *            find       where each token's run begins, by binary search
 *            tiles      a frequent token's run is too long for one warp, so
 *                       the sorted order is cut into tiles of 64 rows, and
 *                       each tile that is all one token's is summed apart
 *            tokens     a warp a table row and part of its columns: the rows of
 *                       its run outside of such tiles, then the tiles' sums;
 *                       zeros without a run
 *            positions  a warp a position and slice: every context-th row
 *
 * Bound by memory: dout read and the table written once, beside the sort's
 * passes; with positions dout is read a second time, in another order. Few
 * positions or small shapes: bound by the launches and the sort's fixed cost.
 */
#include <cub/device/device_radix_sort.cuh>

#include "embedding.cuh"

namespace {

constexpr int TILE = 64;      /* rows of the sorted order */
constexpr int ALIGNMENT = 256;

/* ---- workspace --------------------------------------------------------- */

/* Offsets in bytes. CUB's own memory comes last. */
struct layout {
    size_t keys, sorted_keys, rows, order, begin, partials, sort;
    size_t sort_bytes, total;
};

int key_bits(const embedding_shape &s)
{
    int bits = 1;
    while (bits < 31 && (s.vocabulary >> bits) != 0) bits++; /* the largest key is vocabulary */
    return bits;
}

int sort_pairs(void *memory, size_t *bytes, const int32_t *keys, int32_t *sorted_keys,
               const int32_t *rows, int32_t *order, const embedding_shape &s, kernel_stream stream)
{
    return cub::DeviceRadixSort::SortPairs(memory, *bytes, keys, sorted_keys, rows, order,
                                           static_cast<int>(s.rows), 0, key_bits(s), stream);
}

size_t take(size_t *total, int64_t count, size_t element_bytes)
{
    size_t offset = *total;
    *total += ceil_div(count * element_bytes, ALIGNMENT) * ALIGNMENT;
    return offset;
}

int64_t tile_count(const embedding_shape &s)
{
    return s.rows / TILE; /* a last tile that is not full is never all one token's */
}

int make_layout(const embedding_shape &s, layout *l)
{
    size_t total = 0;
    int error = sort_pairs(nullptr, &l->sort_bytes, nullptr, nullptr, nullptr, nullptr, s, nullptr);
    l->keys = take(&total, s.rows, sizeof(int32_t));
    l->sorted_keys = take(&total, s.rows, sizeof(int32_t));
    l->rows = take(&total, s.rows, sizeof(int32_t));
    l->order = take(&total, s.rows, sizeof(int32_t));
    l->begin = take(&total, s.vocabulary + 1, sizeof(int32_t));
    l->partials = take(&total, tile_count(s) * s.columns, sizeof(float));
    l->sort = take(&total, l->sort_bytes, 1);
    l->total = total;
    return error;
}

/* ---- label and find ---------------------------------------------------- */

__global__ void __launch_bounds__(EMBEDDING_THREADS)
label_kernel(embedding_shape s, const int32_t *tokens, int32_t *keys, int32_t *rows,
             int *error_flag)
{
    int64_t row = static_cast<int64_t>(blockIdx.x) * EMBEDDING_THREADS + threadIdx.x;
    if (row >= s.rows) return;
    int token = embedding_token(tokens, row, s.vocabulary);
    keys[row] = token < 0 ? static_cast<int32_t>(s.vocabulary) : token;
    rows[row] = static_cast<int32_t>(row);
    embedding_report(token < 0, error_flag);
}

/* begin[v] = the first i with sorted_keys[i] >= v, for v in 0..vocabulary. */
__global__ void __launch_bounds__(EMBEDDING_THREADS)
find_kernel(embedding_shape s, const int32_t *sorted_keys, int32_t *begin)
{
    int64_t v = static_cast<int64_t>(blockIdx.x) * EMBEDDING_THREADS + threadIdx.x;
    if (v > s.vocabulary) return;
    int64_t low = 0, high = s.rows;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (sorted_keys[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    begin[v] = static_cast<int32_t>(low);
}

/* ---- sums of rows ------------------------------------------------------ */

/* Which columns a lane sums: SLICES accesses, stride elements apart, from
 * first on. A lane beyond the last column loads the last access of the row,
 * which costs no traffic and no branch, and does not store. */
template <int COUNT, int SLICES> struct lane_columns {
    int first, stride, columns;

    __device__ __forceinline__ bool has(int slice) const
    {
        return first + slice * stride < columns;
    }
    __device__ __forceinline__ int at(int slice) const
    {
        return has(slice) ? first + slice * stride : columns - COUNT;
    }
};

/* The i-th row of a sum: those of `order` but for `gap` rows behind the first
 * `head`, or every stride-th row. */
struct listed_rows {
    const int32_t *order;
    int head, gap;
    __device__ __forceinline__ int operator[](int i) const
    {
        return order[i < head ? i : i + gap];
    }
};

struct strided_rows {
    int64_t first, stride;
    __device__ __forceinline__ int operator[](int i) const
    {
        return static_cast<int>(first + i * stride);
    }
};

/* sums += ROWS rows of src, in order, all loaded before the first is added.
 * The number of row n is what lane `lane` + n holds. */
template <int ROWS, typename T, int COUNT, int SLICES>
__device__ __forceinline__ void add_batch(float (&sums)[SLICES][COUNT], const T *src, int number,
                                          int lane, const lane_columns<COUNT, SLICES> &columns)
{
    using access = row_access<T, COUNT>;
    typename access::raw value[ROWS][SLICES];
#pragma unroll
    for (int n = 0; n < ROWS; n++) {
        int64_t row = __shfl_sync(0xffffffffu, number, lane + n);
#pragma unroll
        for (int slice = 0; slice < SLICES; slice++)
            value[n][slice] = row_load<COUNT>(src + row * columns.columns + columns.at(slice), 0);
    }
#pragma unroll
    for (int n = 0; n < ROWS; n++)
#pragma unroll
        for (int slice = 0; slice < SLICES; slice++) {
            float terms[COUNT];
            access::unpack(value[n][slice], terms);
#pragma unroll
            for (int c = 0; c < COUNT; c++) sums[slice][c] += terms[c];
        }
}

/* sums += the first `count` of rows, in that order, IN_FLIGHT at a time and
 * then one by one. The lanes fetch 32 row numbers at a time. The whole warp
 * calls, with the same count. */
template <int IN_FLIGHT, typename T, int COUNT, int SLICES, typename Rows>
__device__ __forceinline__ void add_rows(float (&sums)[SLICES][COUNT], const T *src, Rows rows,
                                         int count, const lane_columns<COUNT, SLICES> &columns)
{
    for (int done = 0; done < count; done += 32) {
        int left = count - done < 32 ? count - done : 32, i = 0;
        int number = embedding_lane() < left ? rows[done + embedding_lane()] : 0;
#pragma unroll 1
        for (; i + IN_FLIGHT <= left; i += IN_FLIGHT)
            add_batch<IN_FLIGHT>(sums, src, number, i, columns);
        if constexpr (IN_FLIGHT > 1)
#pragma unroll 1
            for (; i < left; i++) add_batch<1>(sums, src, number, i, columns);
    }
}

/* sums += tiles begin to end of partials, f32 and at most 16 bytes a load. */
template <int COUNT, int SLICES>
__device__ __forceinline__ void add_partials(float (&sums)[SLICES][COUNT], const float *partials,
                                             int begin, int end,
                                             const lane_columns<COUNT, SLICES> &columns)
{
    constexpr int WIDTH = COUNT < 4 ? COUNT : 4;
#pragma unroll 1
    for (int64_t tile = begin; tile < end; tile++)
#pragma unroll
        for (int slice = 0; slice < SLICES; slice++) {
            const float *row = partials + tile * columns.columns + columns.at(slice);
#pragma unroll
            for (int c = 0; c < COUNT; c += WIDTH) {
                float terms[WIDTH];
                row_access<float, WIDTH>::unpack(row_load<WIDTH>(row + c, 0), terms);
#pragma unroll
                for (int i = 0; i < WIDTH; i++) sums[slice][c + i] += terms[i];
            }
        }
}

/* To be evicted first: nothing reads the gradients again here. */
template <typename T, int COUNT, int SLICES>
__device__ __forceinline__ void store_sums(const float (&sums)[SLICES][COUNT], T *row,
                                           const lane_columns<COUNT, SLICES> &columns)
{
    using raw = typename row_access<T, COUNT>::raw;
#pragma unroll
    for (int slice = 0; slice < SLICES; slice++)
        if (columns.has(slice))
            __stcs(reinterpret_cast<raw *>(row + columns.at(slice)),
                   row_access<T, COUNT>::pack(sums[slice]));
}

template <int COUNT>
__device__ __forceinline__ void store_partial(const float (&sums)[COUNT], float *row,
                                              const lane_columns<COUNT, 1> &columns)
{
    constexpr int WIDTH = COUNT < 4 ? COUNT : 4;
    using access = row_access<float, WIDTH>;
    if (!columns.has(0)) return;
#pragma unroll
    for (int c = 0; c < COUNT; c += WIDTH) {
        float values[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = sums[c + i];
        __stwb(reinterpret_cast<typename access::raw *>(row + columns.at(0) + c),
               access::pack(values));
    }
}

/* ---- kernels ----------------------------------------------------------- */

/* Slices of one warp in the tokens kernel: 16 sums a lane for vectors of f32
 * and of bf16. Most runs are of one row, so what is in flight is that row's
 * slices, and more warps serve better than more rows a warp. */
template <int COUNT> constexpr int TOKEN_SLICES = COUNT == 8 ? 2 : 4;
constexpr int TOKEN_ROWS_IN_FLIGHT = 1;
constexpr int TOKEN_BLOCKS_PER_SM = 4;
constexpr int LONG_ROWS_IN_FLIGHT = 8;

/* The line (table row, position or tile) that a warp works on, and which part
 * of its columns: neighbouring blocks take the parts of the same lines. */
struct line_part {
    int64_t line;
    unsigned part;
};

__device__ __forceinline__ line_part find_line(unsigned parts)
{
    return {static_cast<int64_t>(blockIdx.x / parts) * EMBEDDING_WARPS + embedding_warp(),
            blockIdx.x % parts};
}

/* Part p of `parts` gets slices p, p + parts, ..., so that parts are equal. */
template <int COUNT, int SLICES>
__device__ __forceinline__ lane_columns<COUNT, SLICES> find_columns(const embedding_shape &s,
                                                                    unsigned part, unsigned parts)
{
    return {(static_cast<int>(part) * 32 + embedding_lane()) * COUNT,
            static_cast<int>(parts) * 32 * COUNT, static_cast<int>(s.columns)};
}

template <typename T, int COUNT>
__global__ void __launch_bounds__(EMBEDDING_THREADS)
tiles_kernel(embedding_shape s, const T *dout, const int32_t *sorted_keys, const int32_t *order,
             float *partials, unsigned parts)
{
    line_part task = find_line(parts);
    if (task.line >= s.rows / TILE) return;
    int64_t begin = task.line * TILE;
    if (sorted_keys[begin] != sorted_keys[begin + TILE - 1]) return;
    lane_columns<COUNT, 1> columns = find_columns<COUNT, 1>(s, task.part, parts);
    float sums[1][COUNT] = {};
    add_rows<LONG_ROWS_IN_FLIGHT>(sums, dout, listed_rows{order + begin, TILE, 0}, TILE, columns);
    store_partial(sums[0], partials + task.line * s.columns, columns);
}

template <typename T, int COUNT>
__global__ void __launch_bounds__(EMBEDDING_THREADS, TOKEN_BLOCKS_PER_SM)
tokens_kernel(embedding_shape s, const T *dout, const int32_t *begins, const int32_t *order,
              const float *partials, T *dtoken_table, unsigned parts)
{
    constexpr int SLICES = TOKEN_SLICES<COUNT>;
    line_part task = find_line(parts);
    if (task.line >= s.vocabulary) return;
    lane_columns<COUNT, SLICES> columns = find_columns<COUNT, SLICES>(s, task.part, parts);
    int begin = begins[task.line], end = begins[task.line + 1];
    int first_tile = begin / TILE + (begin % TILE != 0), last_tile = end / TILE;
    int in_tiles = first_tile < last_tile ? (last_tile - first_tile) * TILE : 0;
    float sums[SLICES][COUNT] = {};
    listed_rows rows = {order + begin, first_tile * TILE - begin, in_tiles};
    add_rows<TOKEN_ROWS_IN_FLIGHT>(sums, dout, rows, end - begin - in_tiles, columns);
    add_partials(sums, partials, first_tile, last_tile, columns);
    store_sums(sums, dtoken_table + task.line * s.columns, columns);
}

template <typename T, int COUNT>
__global__ void __launch_bounds__(EMBEDDING_THREADS)
positions_kernel(embedding_shape s, const T *dout, T *dposition_table, unsigned parts)
{
    line_part task = find_line(parts);
    if (task.line >= s.context) return;
    lane_columns<COUNT, 1> columns = find_columns<COUNT, 1>(s, task.part, parts);
    int count = task.line < s.rows
                    ? static_cast<int>((s.rows - task.line - 1) / s.context + 1)
                    : 0;
    float sums[1][COUNT] = {};
    add_rows<LONG_ROWS_IN_FLIGHT>(sums, dout, strided_rows{task.line, s.context}, count, columns);
    store_sums(sums, dposition_table + task.line * s.columns, columns);
}

/* ---- launches ---------------------------------------------------------- */

/* A grid of a warp for each of `lines` and each of their parts. */
struct line_grid {
    unsigned blocks, parts;
    int error;
};

line_grid make_grid(int64_t lines, int64_t columns, int64_t columns_per_part)
{
    int64_t parts = ceil_div(columns, columns_per_part);
    int64_t groups = ceil_div(lines, EMBEDDING_WARPS);
    if (parts > INT32_MAX || !row_fits_grid(groups) || !row_fits_grid(groups * parts))
        return {0, 0, KERNEL_ERROR_ARGUMENT};
    return {static_cast<unsigned>(groups * parts), static_cast<unsigned>(parts), KERNEL_OK};
}

/* The workspace's arrays. */
struct arrays {
    int32_t *keys, *sorted_keys, *rows, *order, *begin;
    float *partials;
};

arrays arrays_in(void *workspace, const layout &l)
{
    char *base = static_cast<char *>(workspace);
    return {reinterpret_cast<int32_t *>(base + l.keys),
            reinterpret_cast<int32_t *>(base + l.sorted_keys),
            reinterpret_cast<int32_t *>(base + l.rows),
            reinterpret_cast<int32_t *>(base + l.order),
            reinterpret_cast<int32_t *>(base + l.begin),
            reinterpret_cast<float *>(base + l.partials)};
}

int launch_sort(const embedding_backward_args &a, void *workspace, const layout &l,
                const arrays &w, kernel_stream stream)
{
    const embedding_shape &s = a.shape;
    unsigned row_blocks = static_cast<unsigned>(ceil_div(s.rows, EMBEDDING_THREADS));
    unsigned find_blocks = static_cast<unsigned>(ceil_div(s.vocabulary + 1, EMBEDDING_THREADS));
    label_kernel<<<row_blocks, EMBEDDING_THREADS, 0, stream>>>(s, a.tokens, w.keys, w.rows,
                                                               a.error_flag);
    int error = cudaGetLastError();
    if (error) return error;
    size_t sort_bytes = l.sort_bytes;
    error = sort_pairs(static_cast<char *>(workspace) + l.sort, &sort_bytes, w.keys, w.sorted_keys,
                       w.rows, w.order, s, stream);
    if (error) return error;
    find_kernel<<<find_blocks, EMBEDDING_THREADS, 0, stream>>>(s, w.sorted_keys, w.begin);
    return cudaGetLastError();
}

template <typename T, int COUNT>
int launch_tokens(const embedding_backward_args &a, const arrays &w, kernel_stream stream)
{
    const embedding_shape &s = a.shape;
    const T *dout = static_cast<const T *>(a.dout);
    line_grid tiles = make_grid(tile_count(s), s.columns, 32 * COUNT);
    line_grid tokens = make_grid(s.vocabulary, s.columns, 32 * COUNT * TOKEN_SLICES<COUNT>);
    if (tiles.error || tokens.error) return KERNEL_ERROR_ARGUMENT;
    if (tiles.blocks > 0)
        tiles_kernel<T, COUNT><<<tiles.blocks, EMBEDDING_THREADS, 0, stream>>>(
            s, dout, w.sorted_keys, w.order, w.partials, tiles.parts);
    int error = cudaGetLastError();
    if (error) return error;
    tokens_kernel<T, COUNT><<<tokens.blocks, EMBEDDING_THREADS, 0, stream>>>(
        s, dout, w.begin, w.order, w.partials, static_cast<T *>(a.dtoken_table), tokens.parts);
    return cudaGetLastError();
}

template <typename T, int COUNT>
int launch_positions(const embedding_backward_args &a, kernel_stream stream)
{
    const embedding_shape &s = a.shape;
    if (s.context == 0) return KERNEL_OK;
    line_grid grid = make_grid(s.context, s.columns, 32 * COUNT);
    if (grid.error) return grid.error;
    positions_kernel<T, COUNT><<<grid.blocks, EMBEDDING_THREADS, 0, stream>>>(
        s, static_cast<const T *>(a.dout), static_cast<T *>(a.dposition_table), grid.parts);
    return cudaGetLastError();
}

template <typename T, int COUNT>
int run(const embedding_backward_args &a, void *workspace, kernel_stream stream)
{
    layout l;
    int error = make_layout(a.shape, &l);
    if (error) return error;
    arrays w = arrays_in(workspace, l);
    error = launch_sort(a, workspace, l, w, stream);
    if (!error) error = launch_positions<T, COUNT>(a, stream);
    return error ? error : launch_tokens<T, COUNT>(a, w, stream);
}

template <typename T> int run(const embedding_backward_args &a, void *workspace,
                              kernel_stream stream)
{
    if (embedding_is_aligned<T>(a.shape))
        return run<T, ROW_PER_16_BYTES<T>>(a, workspace, stream);
    return run<T, 1>(a, workspace, stream);
}

} // namespace

/* SIZE_MAX without a device to ask CUB about: no memory is so large. */
size_t embedding_sorted_workspace_bytes(const void *args)
{
    const embedding_shape &s = static_cast<const embedding_backward_args *>(args)->shape;
    layout l;
    if (!embedding_is_valid(s)) return 0;
    return make_layout(s, &l) ? SIZE_MAX : l.total;
}

int embedding_sorted_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    const embedding_backward_args &a = *static_cast<const embedding_backward_args *>(args);
    if (!embedding_is_valid(a.shape)) return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F32: return run<float>(a, workspace, stream);
    case KERNEL_F16: return run<__half>(a, workspace, stream);
    case KERNEL_BF16: return run<__nv_bfloat16>(a, workspace, stream);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
