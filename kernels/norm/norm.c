/*
 * norm.c - norms on the host: the operation's formulas, the oracles, and two
 * plain variants.
 *
 * 1. naive       Element by element as the formulas read: a pass over the row
 *                for each sum and one to write; weight and bias gradients a
 *                column at a time. Teaches what order costs: a float sum that
 *                must be taken in order waits for every addition, and a walk
 *                down a column uses one element of each cache line.
 * 2. vectorized  A row is converted to f32 once and stays in the first-level
 *                cache; sums run in SUMS independent parts, which the compiler
 *                makes vectors of; weight and bias gradients grow row by row.
 *                Bound by memory for rows that no cache holds.
 *
 * One thread. simd.c has the faster ones.
 */
#include "norm.h"

#include <math.h>
#include <string.h>

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/saturating.h"
#include "../common/simd.h"
#include "simd.h"

/* ---- formulas ---------------------------------------------------------- */

static int is_valid(const norm_shape *s)
{
    return s->rows > 0 && s->width > 0;
}

/* `matrices` times [rows, width] and `vectors` times [width] elements, and the
 * statistics of each row. */
static uint64_t traffic(const norm_shape *s, norm_kind kind, kernel_dtype dtype, uint64_t matrices,
                        uint64_t vectors)
{
    if (!is_valid(s)) return 0;
    uint64_t rows = saturating_product((uint64_t)s->rows, matrices);
    uint64_t elements = saturating_product(saturating_sum(rows, vectors), (uint64_t)s->width);
    uint64_t statistics = saturating_product((uint64_t)s->rows, kind == NORM_LAYER ? 8 : 4);
    return saturating_sum(saturating_product(elements, kernel_dtype_bytes(dtype)), statistics);
}

uint64_t norm_forward_bytes(const norm_shape *shape, norm_kind kind, kernel_dtype dtype, int fused)
{
    return traffic(shape, kind, dtype, fused ? 4 : 2, kind == NORM_LAYER ? 2 : 1);
}

uint64_t norm_backward_bytes(const norm_shape *shape, norm_kind kind, kernel_dtype dtype, int fused)
{
    return traffic(shape, kind, dtype, fused ? 4 : 3, kind == NORM_LAYER ? 3 : 2);
}

static uint64_t operations(const norm_shape *s, uint64_t per_element)
{
    if (!is_valid(s)) return 0;
    return saturating_product(saturating_product((uint64_t)s->rows, (uint64_t)s->width),
                              per_element);
}

uint64_t norm_forward_flops(const norm_shape *shape, norm_kind kind, int fused)
{
    return operations(shape, (kind == NORM_LAYER ? 7u : 4u) + (fused ? 1u : 0u));
}

uint64_t norm_backward_flops(const norm_shape *shape, norm_kind kind, int fused)
{
    return operations(shape, (kind == NORM_LAYER ? 13u : 9u) + (fused ? 1u : 0u));
}

/* ---- oracles ----------------------------------------------------------- */

/* What is normalized, in double. */
static double reference_input(const float *x, const float *residual, int64_t j)
{
    return (double)x[j] + (residual ? (double)residual[j] : 0.0);
}

static void reference_statistics(int64_t width, norm_kind kind, const float *x,
                                 const float *residual, double *mean, double *rstd)
{
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < width; j++) sum += reference_input(x, residual, j);
    *mean = kind == NORM_LAYER ? sum / (double)width : 0;
    for (int64_t j = 0; j < width; j++) {
        double centered = reference_input(x, residual, j) - *mean;
        squares += centered * centered;
    }
    *rstd = 1 / sqrt(squares / (double)width + (double)NORM_EPSILON);
}

void norm_forward_reference(const norm_shape *shape, norm_kind kind, const float *x,
                            const float *residual, const float *weight, const float *bias,
                            double *y, double *sum, double *mean, double *rstd)
{
    for (int64_t i = 0; i < shape->rows; i++) {
        int64_t first = i * shape->width;
        const float *added = residual ? residual + first : NULL;
        double row_mean, row_rstd;
        reference_statistics(shape->width, kind, x + first, added, &row_mean, &row_rstd);
        for (int64_t j = 0; j < shape->width; j++) {
            double in = reference_input(x + first, added, j);
            double shift = kind == NORM_LAYER ? (double)bias[j] : 0;
            if (sum) sum[first + j] = in;
            if (y) y[first + j] = (in - row_mean) * row_rstd * (double)weight[j] + shift;
        }
        if (mean) mean[i] = row_mean;
        if (rstd) rstd[i] = row_rstd;
    }
}

/* One row of the backward reference. */
typedef struct reference_row {
    int64_t width;
    norm_kind kind;
    const float *x, *weight, *dy, *dsum;
    double mean, rstd;
} reference_row;

static double reference_xhat(const reference_row *r, int64_t j)
{
    return ((double)r->x[j] - r->mean) * r->rstd;
}

static void reference_dx(const reference_row *r, double *dx)
{
    double g_sum = 0, product_sum = 0;
    for (int64_t j = 0; j < r->width; j++) {
        double g = (double)r->dy[j] * (double)r->weight[j];
        g_sum += g;
        product_sum += g * reference_xhat(r, j);
    }
    double mean_g = r->kind == NORM_LAYER ? g_sum / (double)r->width : 0;
    double mean_product = product_sum / (double)r->width;
    for (int64_t j = 0; j < r->width; j++) {
        double g = (double)r->dy[j] * (double)r->weight[j];
        dx[j] = r->rstd * (g - mean_g - reference_xhat(r, j) * mean_product);
        if (r->dsum) dx[j] += (double)r->dsum[j];
    }
}

void norm_backward_reference(const norm_shape *shape, norm_kind kind, const float *x,
                             const float *weight, const float *mean, const float *rstd,
                             const float *dy, const float *dsum, double *dx, double *dweight,
                             double *dbias)
{
    for (int64_t i = 0; i < shape->rows; i++) {
        int64_t first = i * shape->width;
        reference_row r = {.width = shape->width, .kind = kind, .x = x + first, .weight = weight,
                           .dy = dy + first, .dsum = dsum ? dsum + first : NULL,
                           .mean = kind == NORM_LAYER ? (double)mean[i] : 0,
                           .rstd = (double)rstd[i]};
        if (dx) reference_dx(&r, dx + first);
        for (int64_t j = 0; j < shape->width; j++) {
            if (dweight) dweight[j] += (double)r.dy[j] * reference_xhat(&r, j);
            if (dbias) dbias[j] += (double)r.dy[j];
        }
    }
}

/* ---- what both variants share ------------------------------------------ */

static int takes(const norm_shape *s, kernel_dtype dtype)
{
    return is_valid(s) && element_takes(dtype);
}

static float rstd_of(float squares, int64_t width)
{
    return 1.0f / sqrtf(squares / (float)width + NORM_EPSILON);
}

/* ---- naive ------------------------------------------------------------- */

static void naive_forward_row(const norm_forward_args *a, int64_t row)
{
    int64_t width = a->shape.width, first = row * width;
    const void *x = a->residual ? a->sum : a->x;
    float mean = 0, squares = 0;
    if (a->residual)
        for (int64_t j = first; j < first + width; j++)
            element_set(a->sum, a->dtype, j,
                        element_get(a->x, a->dtype, j) + element_get(a->residual, a->dtype, j));
    if (a->kind == NORM_LAYER) {
        for (int64_t j = 0; j < width; j++) mean += element_get(x, a->dtype, first + j);
        a->mean[row] = mean /= (float)width;
    }
    for (int64_t j = 0; j < width; j++) {
        float centered = element_get(x, a->dtype, first + j) - mean;
        squares += centered * centered;
    }
    float rstd = a->rstd[row] = rstd_of(squares, width);
    for (int64_t j = 0; j < width; j++) {
        float bias = a->kind == NORM_LAYER ? element_get(a->bias, a->dtype, j) : 0;
        float xhat = (element_get(x, a->dtype, first + j) - mean) * rstd;
        element_set(a->y, a->dtype, first + j, xhat * element_get(a->weight, a->dtype, j) + bias);
    }
}

static int run_naive_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const norm_forward_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (!takes(&a->shape, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t row = 0; row < a->shape.rows; row++) naive_forward_row(a, row);
    return KERNEL_OK;
}

static float naive_xhat(const norm_backward_args *a, int64_t row, int64_t column)
{
    float mean = a->kind == NORM_LAYER ? a->mean[row] : 0;
    return (element_get(a->x, a->dtype, row * a->shape.width + column) - mean) * a->rstd[row];
}

static void naive_backward_row(const norm_backward_args *a, int64_t row)
{
    int64_t width = a->shape.width, first = row * width;
    float mean_g = 0, mean_product = 0;
    for (int64_t j = 0; j < width; j++) {
        float g = element_get(a->dy, a->dtype, first + j) * element_get(a->weight, a->dtype, j);
        mean_g += g;
        mean_product += g * naive_xhat(a, row, j);
    }
    mean_g = a->kind == NORM_LAYER ? mean_g / (float)width : 0;
    mean_product /= (float)width;
    for (int64_t j = 0; j < width; j++) {
        float g = element_get(a->dy, a->dtype, first + j) * element_get(a->weight, a->dtype, j);
        float dx = a->rstd[row] * (g - mean_g - naive_xhat(a, row, j) * mean_product);
        element_set(a->dx, a->dtype, first + j,
                    a->dsum ? dx + element_get(a->dsum, a->dtype, first + j) : dx);
    }
}

static void naive_backward_column(const norm_backward_args *a, int64_t column)
{
    float weight_sum = 0, bias_sum = 0;
    for (int64_t row = 0; row < a->shape.rows; row++) {
        float dy = element_get(a->dy, a->dtype, row * a->shape.width + column);
        weight_sum += dy * naive_xhat(a, row, column);
        bias_sum += dy;
    }
    element_set(a->dweight, a->dtype, column, weight_sum);
    if (a->kind == NORM_LAYER) element_set(a->dbias, a->dtype, column, bias_sum);
}

static int run_naive_backward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const norm_backward_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (!takes(&a->shape, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t row = 0; row < a->shape.rows; row++) naive_backward_row(a, row);
    for (int64_t column = 0; column < a->shape.width; column++) naive_backward_column(a, column);
    return KERNEL_OK;
}

/* ---- vectorized -------------------------------------------------------- */

/* `rows` rows of f32; SIZE_MAX if they do not fit. */
static size_t row_workspace(int64_t width, uint64_t rows)
{
    uint64_t bytes = width > 0 ? saturating_product(rows * sizeof(float), (uint64_t)width) : 0;
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

/* As f32: the row itself, or its conversion in `room`. */
static const float *row_as_f32(const void *data, kernel_dtype dtype, int64_t first, int64_t width,
                               float *room)
{
    if (element_is_f32(dtype)) return element_at(data, dtype, first);
    kernel_to_f32(element_at(data, dtype, first), dtype, width, room);
    return room;
}

/* Where to compute a row of results: in place if it is stored as f32. */
static float *row_to_fill(void *data, kernel_dtype dtype, int64_t first, float *room)
{
    return element_is_f32(dtype) ? element_to(data, dtype, first) : room;
}

static void store_filled(const float *row, void *data, kernel_dtype dtype, int64_t first,
                         int64_t width)
{
    if (!element_is_f32(dtype))
        kernel_from_f32(row, dtype, width, element_to(data, dtype, first));
}

enum { SUMS = 16 }; /* a multiple of the lanes of any vector */

static float total(const float *sums)
{
    float sum = 0;
    for (int l = 0; l < SUMS; l++) sum += sums[l];
    return sum;
}

static float row_sum(const float *x, int64_t width)
{
    float sums[SUMS] = {0};
    int64_t j = 0;
    for (; j + SUMS <= width; j += SUMS)
        for (int l = 0; l < SUMS; l++) sums[l] += x[j + l];
    for (; j < width; j++) sums[0] += x[j];
    return total(sums);
}

static float row_squares(const float *x, int64_t width, float mean)
{
    float sums[SUMS] = {0};
    int64_t j = 0;
    for (; j + SUMS <= width; j += SUMS)
        for (int l = 0; l < SUMS; l++) sums[l] += (x[j + l] - mean) * (x[j + l] - mean);
    for (; j < width; j++) sums[0] += (x[j] - mean) * (x[j] - mean);
    return total(sums);
}

static float row_product(const float *restrict a, const float *restrict b, int64_t width)
{
    float sums[SUMS] = {0};
    int64_t j = 0;
    for (; j + SUMS <= width; j += SUMS)
        for (int l = 0; l < SUMS; l++) sums[l] += a[j + l] * b[j + l];
    for (; j < width; j++) sums[0] += a[j] * b[j];
    return total(sums);
}

/* Workspace: weight, bias, x or the sum, the residual, y. */
static size_t forward_workspace(const void *args)
{
    return row_workspace(((const norm_forward_args *)args)->shape.width, 5);
}

/* x, or the stored sum. */
static const float *forward_input(const norm_forward_args *a, int64_t first, float *room,
                                  float *more_room)
{
    int64_t width = a->shape.width;
    const float *x = row_as_f32(a->x, a->dtype, first, width, room);
    if (!a->residual) return x;
    const float *residual = row_as_f32(a->residual, a->dtype, first, width, more_room);
    float *sum = row_to_fill(a->sum, a->dtype, first, room);
    for (int64_t j = 0; j < width; j++) sum[j] = x[j] + residual[j];
    store_filled(sum, a->sum, a->dtype, first, width);
    return row_as_f32(a->sum, a->dtype, first, width, room);
}

static void forward_row(const norm_forward_args *a, int64_t row, const float *restrict weight,
                        const float *restrict bias, float *rooms)
{
    int64_t width = a->shape.width, first = row * width;
    const float *x = forward_input(a, first, rooms, rooms + width);
    float *y = row_to_fill(a->y, a->dtype, first, rooms + 2 * width);
    float mean = a->kind == NORM_LAYER ? row_sum(x, width) / (float)width : 0;
    float rstd = a->rstd[row] = rstd_of(row_squares(x, width, mean), width);
    if (a->kind == NORM_LAYER) {
        a->mean[row] = mean;
        for (int64_t j = 0; j < width; j++) y[j] = (x[j] - mean) * rstd * weight[j] + bias[j];
    } else {
        for (int64_t j = 0; j < width; j++) y[j] = x[j] * rstd * weight[j];
    }
    store_filled(y, a->y, a->dtype, first, width);
}

static int run_vectorized_forward(const void *args, void *workspace, void *state,
                                  kernel_stream stream)
{
    const norm_forward_args *a = args;
    float *rooms = workspace;
    int64_t width = a->shape.width;
    (void)state, (void)stream;
    if (!takes(&a->shape, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    const float *weight = row_as_f32(a->weight, a->dtype, 0, width, rooms), *bias = NULL;
    if (a->kind == NORM_LAYER) bias = row_as_f32(a->bias, a->dtype, 0, width, rooms + width);
    for (int64_t row = 0; row < a->shape.rows; row++)
        forward_row(a, row, weight, bias, rooms + 2 * width);
    return KERNEL_OK;
}

/* A row's working set and the running sums, each [width] f32. */
typedef struct backward_rooms {
    float *weight, *weight_sums, *bias_sums, *xhat, *g, *x, *dy, *dx, *dsum;
} backward_rooms;

enum { BACKWARD_ROOMS = 9 };

static size_t backward_workspace(const void *args)
{
    return row_workspace(((const norm_backward_args *)args)->shape.width, BACKWARD_ROOMS);
}

static backward_rooms rooms_in(float *workspace, int64_t width)
{
    return (backward_rooms){.weight = workspace,
                            .weight_sums = workspace + width,
                            .bias_sums = workspace + 2 * width,
                            .xhat = workspace + 3 * width,
                            .g = workspace + 4 * width,
                            .x = workspace + 5 * width,
                            .dy = workspace + 6 * width,
                            .dx = workspace + 7 * width,
                            .dsum = workspace + 8 * width};
}

/* xhat and g of a row; adds it to the running sums. */
static void add_row(int64_t width, float mean, float rstd, const float *restrict x,
                    const float *restrict dy, const float *restrict weight,
                    float *restrict xhat, float *restrict g, float *restrict weight_sums,
                    float *restrict bias_sums)
{
    for (int64_t j = 0; j < width; j++) {
        xhat[j] = (x[j] - mean) * rstd;
        g[j] = dy[j] * weight[j];
        weight_sums[j] += dy[j] * xhat[j];
        bias_sums[j] += dy[j];
    }
}

static void backward_row(const norm_backward_args *a, int64_t row, const float *weight,
                         const backward_rooms *r)
{
    int64_t width = a->shape.width, first = row * width;
    float mean = a->kind == NORM_LAYER ? a->mean[row] : 0, rstd = a->rstd[row];
    const float *x = row_as_f32(a->x, a->dtype, first, width, r->x);
    const float *dy = row_as_f32(a->dy, a->dtype, first, width, r->dy);
    float *dx = row_to_fill(a->dx, a->dtype, first, r->dx);
    add_row(width, mean, rstd, x, dy, weight, r->xhat, r->g, r->weight_sums, r->bias_sums);
    float mean_g = a->kind == NORM_LAYER ? row_sum(r->g, width) / (float)width : 0;
    float mean_product = row_product(r->g, r->xhat, width) / (float)width;
    for (int64_t j = 0; j < width; j++)
        dx[j] = rstd * (r->g[j] - mean_g - r->xhat[j] * mean_product);
    if (a->dsum) {
        const float *above = row_as_f32(a->dsum, a->dtype, first, width, r->dsum);
        for (int64_t j = 0; j < width; j++) dx[j] += above[j];
    }
    store_filled(dx, a->dx, a->dtype, first, width);
}

static int run_vectorized_backward(const void *args, void *workspace, void *state,
                                   kernel_stream stream)
{
    const norm_backward_args *a = args;
    int64_t width = a->shape.width;
    (void)state, (void)stream;
    if (!takes(&a->shape, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    backward_rooms r = rooms_in(workspace, width);
    memset(r.weight_sums, 0, (size_t)width * sizeof(float));
    memset(r.bias_sums, 0, (size_t)width * sizeof(float));
    const float *weight = row_as_f32(a->weight, a->dtype, 0, width, r.weight);
    for (int64_t row = 0; row < a->shape.rows; row++) backward_row(a, row, weight, &r);
    kernel_from_f32(r.weight_sums, a->dtype, width, a->dweight);
    if (a->kind == NORM_LAYER) kernel_from_f32(r.bias_sums, a->dtype, width, a->dbias);
    return KERNEL_OK;
}

/* ---- tables ------------------------------------------------------------ */

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "three passes, an element at a time", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_naive_forward},
    {.name = "vectorized", .note = "a row in cache, sums in vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = forward_workspace, .run = run_vectorized_forward},
    {.name = "simd", .note = "vectorized with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = norm_forward_simd_workspace,
     .run = norm_forward_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = norm_forward_threads_workspace, .run = norm_forward_run_threads,
     .runs_on = simd_runs_on_threads},
};

static const kernel_variant backward_rows[] = {
    {.name = "naive", .note = "rows for dx, then columns for dweight and dbias",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .run = run_naive_backward},
    {.name = "vectorized", .note = "one pass, dweight and dbias grow row by row",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .workspace_bytes = backward_workspace,
     .run = run_vectorized_backward},
    {.name = "simd", .note = "vectorized with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = norm_backward_simd_workspace,
     .run = norm_backward_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = norm_backward_threads_workspace, .run = norm_backward_run_threads,
     .runs_on = simd_runs_on_threads},
};

const kernel_table norm_forward_cpu = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table norm_backward_cpu = {backward_rows,
                                        sizeof backward_rows / sizeof *backward_rows};
