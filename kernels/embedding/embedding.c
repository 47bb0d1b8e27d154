/*
 * embedding.c - embedding on the host: the operation's formulas, the oracle,
 * and the variants.
 *
 * forward
 * 1. naive       element by element, the dtype chosen anew for each.
 * 2. vectorized  row by row, in loops of one dtype that the compiler turns into
 *                vector instructions; without positions, a memcpy a row.
 * backward
 * 3. scatter     adds each row of dout to its table row as it comes: random
 *                writes, and for bf16 a second table in f32 to add in.
 * 4. sorted      counting sort by token, then each table row is summed while it
 *                is in the cache, one after the other.
 *
 * All are bound by memory. One thread; simd.c has the faster ones. Deterministic:
 * all backward variants add in the order of the rows.
 */
#include "embedding.h"

#include <string.h>

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/saturating.h"
#include "../common/simd.h"
#include "simd.h"

/* ---- formulas ---------------------------------------------------------- */

static int is_valid(const embedding_shape *s)
{
    return s->rows > 0 && s->rows <= INT32_MAX && s->vocabulary > 0 &&
           s->vocabulary <= INT32_MAX && s->columns > 0 && s->columns <= EMBEDDING_MAX_COLUMNS &&
           s->context >= 0;
}

/* `wide` rows of elements and one token id for each row of out. */
static uint64_t traffic(const embedding_shape *s, kernel_dtype dtype, uint64_t wide)
{
    uint64_t row_bytes = saturating_product((uint64_t)s->columns, kernel_dtype_bytes(dtype));
    return saturating_sum(saturating_product(wide, row_bytes),
                          (uint64_t)s->rows * sizeof(int32_t));
}

uint64_t embedding_forward_bytes(const embedding_shape *shape, kernel_dtype dtype,
                                 int64_t distinct_tokens)
{
    if (!is_valid(shape)) return 0;
    int64_t positions = shape->context < shape->rows ? shape->context : shape->rows;
    return traffic(shape, dtype, (uint64_t)(distinct_tokens + positions + shape->rows));
}

uint64_t embedding_backward_bytes(const embedding_shape *shape, kernel_dtype dtype)
{
    if (!is_valid(shape)) return 0;
    uint64_t rows = (uint64_t)(shape->rows + shape->vocabulary);
    return traffic(shape, dtype, saturating_sum(rows, (uint64_t)shape->context));
}

uint64_t embedding_forward_flops(const embedding_shape *shape)
{
    if (!is_valid(shape) || shape->context == 0) return 0;
    return saturating_product((uint64_t)shape->rows, (uint64_t)shape->columns);
}

uint64_t embedding_backward_flops(const embedding_shape *shape)
{
    if (!is_valid(shape)) return 0;
    uint64_t elements = saturating_product((uint64_t)shape->rows, (uint64_t)shape->columns);
    return saturating_product(elements, shape->context > 0 ? 2 : 1);
}

/* ---- oracle ------------------------------------------------------------ */

void embedding_forward_reference(const embedding_shape *shape, const int32_t *tokens,
                                 const float *token_table, const float *position_table,
                                 const int64_t *rows, int64_t count, double *out)
{
    int64_t columns = shape->columns;
    for (int64_t i = 0; i < count; i++) {
        const float *token = token_table + tokens[rows[i]] * columns;
        for (int64_t c = 0; c < columns; c++) out[i * columns + c] = (double)token[c];
        if (shape->context == 0) continue;
        const float *position = position_table + rows[i] % shape->context * columns;
        for (int64_t c = 0; c < columns; c++) out[i * columns + c] += (double)position[c];
    }
}

static void add_in_double(int64_t count, const float *src, double *dst)
{
    for (int64_t c = 0; c < count; c++) dst[c] += (double)src[c];
}

void embedding_backward_tokens_reference(const embedding_shape *shape, const int32_t *tokens,
                                         const float *dout, const int64_t *rows, int64_t count,
                                         double *dtable)
{
    int64_t columns = shape->columns;
    memset(dtable, 0, (size_t)(count * columns) * sizeof *dtable);
    for (int64_t i = 0; i < count; i++)
        for (int64_t row = 0; row < shape->rows; row++)
            if (tokens[row] == rows[i])
                add_in_double(columns, dout + row * columns, dtable + i * columns);
}

void embedding_backward_positions_reference(const embedding_shape *shape, const float *dout,
                                            const int64_t *rows, int64_t count, double *dtable)
{
    int64_t columns = shape->columns;
    memset(dtable, 0, (size_t)(count * columns) * sizeof *dtable);
    for (int64_t i = 0; i < count; i++)
        for (int64_t row = rows[i]; row < shape->rows; row += shape->context)
            add_in_double(columns, dout + row * columns, dtable + i * columns);
}

/* ---- what the variants share ------------------------------------------- */

int embedding_check(const embedding_shape *s, kernel_dtype dtype, const int32_t *tokens)
{
    if (!is_valid(s)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < s->rows; i++)
        if (tokens[i] < 0 || tokens[i] >= s->vocabulary) return KERNEL_ERROR_INDEX;
    return KERNEL_OK;
}

static const void *const_row(const void *table, const embedding_shape *s, kernel_dtype dtype,
                             int64_t row)
{
    return (const char *)table + (size_t)(row * s->columns) * kernel_dtype_bytes(dtype);
}

static void *row_of(void *table, const embedding_shape *s, kernel_dtype dtype, int64_t row)
{
    return (char *)table + (size_t)(row * s->columns) * kernel_dtype_bytes(dtype);
}

/* ---- forward: naive ---------------------------------------------------- */

static int run_naive(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const embedding_forward_args *a = args;
    const embedding_shape *s = &a->shape;
    const kernel_dtype dtype = a->dtype;
    int error = embedding_check(s, dtype, a->tokens);
    (void)workspace, (void)state, (void)stream;
    if (error) return error;
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t c = 0; c < s->columns; c++) {
            float value = element_get(a->token_table, dtype, a->tokens[i] * s->columns + c);
            if (s->context > 0)
                value += element_get(a->position_table, dtype, i % s->context * s->columns + c);
            element_set(a->out, dtype, i * s->columns + c, value);
        }
    return KERNEL_OK;
}

/* ---- forward: vectorized ----------------------------------------------- */

static void sum_rows_f32(int64_t count, const float *restrict a, const float *restrict b,
                         float *restrict out)
{
    for (int64_t c = 0; c < count; c++) out[c] = a[c] + b[c];
}

static void sum_rows_bf16(int64_t count, const uint16_t *restrict a, const uint16_t *restrict b,
                          uint16_t *restrict out)
{
    for (int64_t c = 0; c < count; c++)
        out[c] = kernel_bf16_from_f32(kernel_bf16_to_f32(a[c]) + kernel_bf16_to_f32(b[c]));
}

static void sum_rows_f16(int64_t count, const uint16_t *restrict a, const uint16_t *restrict b,
                         uint16_t *restrict out)
{
    for (int64_t c = 0; c < count; c++)
        out[c] = kernel_f16_from_f32(kernel_f16_to_f32(a[c]) + kernel_f16_to_f32(b[c]));
}

static void forward_row(const embedding_forward_args *a, int64_t i)
{
    const embedding_shape *s = &a->shape;
    const void *token = const_row(a->token_table, s, a->dtype, a->tokens[i]);
    void *out = row_of(a->out, s, a->dtype, i);
    if (s->context == 0) {
        memcpy(out, token, (size_t)s->columns * kernel_dtype_bytes(a->dtype));
        return;
    }
    const void *position = const_row(a->position_table, s, a->dtype, i % s->context);
    switch (a->dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: sum_rows_f32(s->columns, token, position, out); break;
    case KERNEL_F16: sum_rows_f16(s->columns, token, position, out); break;
    case KERNEL_BF16: sum_rows_bf16(s->columns, token, position, out); break;
    case KERNEL_E4M3:
    case KERNEL_U8: break; /* embedding_check refuses them */
    }
}

static int run_vectorized(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const embedding_forward_args *a = args;
    int error = embedding_check(&a->shape, a->dtype, a->tokens);
    (void)workspace, (void)state, (void)stream;
    if (error) return error;
    for (int64_t i = 0; i < a->shape.rows; i++) forward_row(a, i);
    return KERNEL_OK;
}

/* ---- backward ---------------------------------------------------------- */

static void add_row_f32(int64_t count, const float *restrict src, float *restrict sums)
{
    for (int64_t c = 0; c < count; c++) sums[c] += src[c];
}

static void add_row_bf16(int64_t count, const uint16_t *restrict src, float *restrict sums)
{
    for (int64_t c = 0; c < count; c++) sums[c] += kernel_bf16_to_f32(src[c]);
}

static void add_row_f16(int64_t count, const uint16_t *restrict src, float *restrict sums)
{
    for (int64_t c = 0; c < count; c++) sums[c] += kernel_f16_to_f32(src[c]);
}

/* sums[columns] += row `row` of dout */
static void add_row(const embedding_backward_args *a, int64_t row, float *sums)
{
    const void *src = const_row(a->dout, &a->shape, a->dtype, row);
    switch (a->dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: add_row_f32(a->shape.columns, src, sums); break;
    case KERNEL_F16: add_row_f16(a->shape.columns, src, sums); break;
    case KERNEL_BF16: add_row_bf16(a->shape.columns, src, sums); break;
    case KERNEL_E4M3:
    case KERNEL_U8: break; /* embedding_check refuses them */
    }
}

/* ---- backward: scatter ------------------------------------------------- */

static size_t scatter_workspace(const void *args)
{
    const embedding_backward_args *a = args;
    if (element_is_f32(a->dtype) || !is_valid(&a->shape)) return 0;
    uint64_t rows = saturating_sum((uint64_t)a->shape.vocabulary, (uint64_t)a->shape.context);
    uint64_t floats = saturating_product(rows, (uint64_t)a->shape.columns);
    uint64_t bytes = saturating_product(floats, sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

static int run_scatter(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const embedding_backward_args *a = args;
    const embedding_shape *s = &a->shape;
    int error = embedding_check(s, a->dtype, a->tokens);
    int64_t token_elements = s->vocabulary * s->columns;
    int64_t position_elements = s->context * s->columns;
    (void)state, (void)stream;
    if (error) return error;
    int in_place = element_is_f32(a->dtype);
    float *token_sums = in_place ? a->dtoken_table : workspace;
    float *position_sums = in_place ? a->dposition_table : token_sums + token_elements;
    memset(token_sums, 0, (size_t)token_elements * sizeof *token_sums);
    if (s->context > 0) memset(position_sums, 0, (size_t)position_elements * sizeof(float));
    for (int64_t i = 0; i < s->rows; i++) {
        add_row(a, i, token_sums + a->tokens[i] * s->columns);
        if (s->context > 0) add_row(a, i, position_sums + i % s->context * s->columns);
    }
    if (in_place) return KERNEL_OK;
    kernel_from_f32(token_sums, a->dtype, token_elements, a->dtoken_table);
    if (s->context > 0) kernel_from_f32(position_sums, a->dtype, position_elements,
                                        a->dposition_table);
    return KERNEL_OK;
}

/* ---- backward: sorted -------------------------------------------------- */

uint64_t embedding_order_bytes(const embedding_shape *s)
{
    uint64_t rows = ((uint64_t)s->rows + 1) / 2 * 2; /* so that what follows is aligned */
    return saturating_sum((uint64_t)(s->vocabulary + 1) * sizeof(int64_t),
                          rows * sizeof(int32_t));
}

/* Counts go one entry high, so that after the placing, which moves each begin
 * to its token's end, begin[v] is the end of the token before: v's begin. */
embedding_order embedding_order_rows(const embedding_shape *s, const int32_t *tokens,
                                     void *workspace)
{
    embedding_order o = {.begin = workspace};
    o.order = (int32_t *)(o.begin + s->vocabulary + 1);
    memset(o.begin, 0, (size_t)(s->vocabulary + 1) * sizeof *o.begin);
    for (int64_t i = 0; i < s->rows; i++)
        if (tokens[i] + INT64_C(2) <= s->vocabulary) o.begin[tokens[i] + 2]++;
    for (int64_t v = 1; v <= s->vocabulary; v++) o.begin[v] += o.begin[v - 1];
    for (int64_t i = 0; i < s->rows; i++) o.order[o.begin[tokens[i] + 1]++] = (int32_t)i;
    return o;
}

/* The order, then one row of sums for bf16. */
static size_t sorted_workspace(const void *args)
{
    const embedding_shape *s = &((const embedding_backward_args *)args)->shape;
    if (!is_valid(s)) return 0;
    uint64_t bytes = saturating_product((uint64_t)s->columns, sizeof(float));
    bytes = saturating_sum(bytes, embedding_order_bytes(s));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

/* Where the sums of a table row are taken: in the row itself if that is f32. */
static float *clear_sums(const embedding_backward_args *a, void *table, int64_t row, float *buffer)
{
    float *sums = element_is_f32(a->dtype) ? row_of(table, &a->shape, a->dtype, row) : buffer;
    memset(sums, 0, (size_t)a->shape.columns * sizeof *sums);
    return sums;
}

static void store_sums(const embedding_backward_args *a, const float *sums, void *table,
                       int64_t row)
{
    if (!element_is_f32(a->dtype))
        kernel_from_f32(sums, a->dtype, a->shape.columns, row_of(table, &a->shape, a->dtype, row));
}

static int run_sorted(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const embedding_backward_args *a = args;
    const embedding_shape *s = &a->shape;
    int error = embedding_check(s, a->dtype, a->tokens);
    (void)state, (void)stream;
    if (error) return error;
    embedding_order o = embedding_order_rows(s, a->tokens, workspace);
    float *row_sums = (float *)((char *)workspace + embedding_order_bytes(s));
    for (int64_t v = 0; v < s->vocabulary; v++) {
        float *sums = clear_sums(a, a->dtoken_table, v, row_sums);
        for (int64_t i = o.begin[v]; i < o.begin[v + 1]; i++) add_row(a, o.order[i], sums);
        store_sums(a, sums, a->dtoken_table, v);
    }
    for (int64_t p = 0; p < s->context; p++) {
        float *sums = clear_sums(a, a->dposition_table, p, row_sums);
        for (int64_t i = p; i < s->rows; i += s->context) add_row(a, i, sums);
        store_sums(a, sums, a->dposition_table, p);
    }
    return KERNEL_OK;
}

/* ---- tables ------------------------------------------------------------ */

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "element by element", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .run = run_naive},
    {.name = "vectorized", .note = "row by row, in loops of one dtype", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_vectorized},
    {.name = "simd", .note = "vectorized with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = embedding_forward_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .run = embedding_forward_run_threads, .runs_on = simd_runs_on_threads},
};

static const kernel_variant backward_rows[] = {
    {.name = "scatter", .note = "adds each row to its table row as it comes",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .workspace_bytes = scatter_workspace,
     .run = run_scatter},
    {.name = "sorted", .note = "counting sort by token, each table row written once",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .workspace_bytes = sorted_workspace,
     .run = run_sorted},
    {.name = "simd", .note = "sorted with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = embedding_backward_simd_workspace,
     .run = embedding_backward_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = embedding_backward_threads_workspace,
     .run = embedding_backward_run_threads, .runs_on = simd_runs_on_threads},
};

const kernel_table embedding_forward_cpu = {forward_rows,
                                            sizeof forward_rows / sizeof *forward_rows};
const kernel_table embedding_backward_cpu = {backward_rows,
                                             sizeof backward_rows / sizeof *backward_rows};
