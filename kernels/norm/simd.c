/*
 * simd.c - norms with the vector instructions that the processor has.
 *
 * 3. simd     vectorized's scheme: a row comes from memory once and stays in the
 *             first-level cache for its second and third reading. Large results go
 *             around the caches. One thread.
 * 4. threads  the same on all threads: rows are handed out. Backward, the rows fall
 *             into parts whose weight and bias gradients are summed apart, then
 *             added up in order: equal bits for any number of threads.
 *
 * Bound by memory: forward 8 bytes an element of f32 against some 6 vector
 * instructions for 16 of them, backward 12 against some 16.
 */
#include "simd.h"

#include <math.h>
#include <string.h>

#include "../common/pool.h"
#include "../common/saturating.h"
#include "../common/typed_rows.h"

static int takes(const norm_shape *s, kernel_dtype dtype)
{
    return s->rows > 0 && s->width > 0 && element_takes(dtype);
}

/* `rows` rows of f32; SIZE_MAX if they do not fit. */
static size_t rows_workspace(int64_t width, uint64_t rows)
{
    uint64_t floats = width > 0 ? saturating_product(rows, (uint64_t)width) : 0;
    uint64_t bytes = saturating_product(floats, sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

static uint64_t result_bytes(const norm_shape *s, kernel_dtype dtype)
{
    return saturating_product(saturating_product((uint64_t)s->rows, (uint64_t)s->width),
                              kernel_dtype_bytes(dtype));
}

/* ---- forward --------------------------------------------------------------------- */

/* Rows of f32: weight and bias of all, then of each worker x or the sum, the
 * residual, y. */
enum { SHARED_ROWS = 2, OWN_ROWS = 3 };

typedef struct forward_job {
    const norm_forward_args *args;
    const float *weight, *bias;
    float *own;
    int around;
} forward_job;

/* x, or the sum, which is stored. Around the caches it is stored from `room`, where
 * it is read again. */
static const float *forward_input(const forward_job *j, int64_t first, float *room,
                                  float *more_room)
{
    const norm_forward_args *a = j->args;
    int64_t width = a->shape.width;
    const float *x = typed_row(a->x, a->dtype, first, width, room);
    if (!a->residual) return x;
    const float *residual = typed_row(a->residual, a->dtype, first, width, more_room);
    float *sum = j->around ? room : typed_row_to_fill(a->sum, a->dtype, first, room);
    simd()->add_scaled(width, x, 1, residual, sum, 0);
    typed_row_done(sum, a->sum, a->dtype, first, width);
    if (!element_is_f32(a->dtype)) return typed_row(a->sum, a->dtype, first, width, room);
    if (j->around) simd()->copy(width, sum, element_to(a->sum, a->dtype, first), 1);
    return sum;
}

static void forward_row(const forward_job *j, int64_t row, float *own)
{
    const norm_forward_args *a = j->args;
    int64_t width = a->shape.width, first = row * width;
    const float *x = forward_input(j, first, own, own + width);
    float *y = typed_row_to_fill(a->y, a->dtype, first, own + 2 * width);
    float mean = a->kind == NORM_LAYER ? simd()->sum(width, x) / (float)width : 0;
    float variance = simd()->sum_of_squares(width, x, mean) / (float)width;
    float rstd = a->rstd[row] = 1 / sqrtf(variance + NORM_EPSILON);
    if (a->kind == NORM_LAYER) a->mean[row] = mean;
    simd()->normalize(width, x, mean, rstd, j->weight, j->bias, y, j->around);
    typed_row_done(y, a->y, a->dtype, first, width);
}

static void forward_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const forward_job *j = context;
    float *own = j->own + worker * OWN_ROWS * j->args->shape.width;
    for (int64_t row = begin; row < end; row++) forward_row(j, row, own);
    simd()->settle();
}

static size_t forward_workspace(const norm_forward_args *a, int threads)
{
    return rows_workspace(a->shape.width, SHARED_ROWS + OWN_ROWS * (uint64_t)threads);
}

static int forward_on(int threads, const norm_forward_args *a, float *workspace)
{
    int64_t width = a->shape.width;
    if (!takes(&a->shape, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    forward_job j = {.args = a, .own = workspace + SHARED_ROWS * width};
    j.weight = typed_row(a->weight, a->dtype, 0, width, workspace);
    if (a->kind == NORM_LAYER)
        j.bias = typed_row(a->bias, a->dtype, 0, width, workspace + width);
    j.around = element_is_f32(a->dtype) && simd_goes_around(result_bytes(&a->shape, a->dtype));
    threads = typed_rows_threads(threads, a->shape.rows, width);
    pool_for(threads, a->shape.rows, typed_rows_range(threads, a->shape.rows, width), forward_rows,
             &j);
    return KERNEL_OK;
}

size_t norm_forward_simd_workspace(const void *args)
{
    return forward_workspace(args, 1);
}

size_t norm_forward_threads_workspace(const void *args)
{
    return forward_workspace(args, pool_threads());
}

int norm_forward_run_simd(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return forward_on(1, args, workspace);
}

int norm_forward_run_threads(const void *args, void *workspace, void *state,
                             kernel_stream stream)
{
    (void)state, (void)stream;
    return forward_on(pool_threads(), args, workspace);
}

/* ---- backward --------------------------------------------------------------------- */

/* Rows of f32: the weight, then of each part the sums for dweight and dbias, then of
 * each worker x, dy, dsum, dx. */
enum { PART_ROWS = 2, OWN_BACKWARD_ROWS = 4, MOST_PARTS = 32 };

typedef struct backward_job {
    const norm_backward_args *args;
    const float *weight;
    float *sums, *own;
    int64_t rows_of_part;
    int around;
} backward_job;

static int64_t part_count(const norm_shape *s)
{
    int64_t parts = s->rows / typed_rows_at_a_time(s->width);
    return parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
}

static void backward_row(const backward_job *j, int64_t row, float *sums, float *own)
{
    const norm_backward_args *a = j->args;
    int64_t width = a->shape.width, first = row * width;
    float statistics[4] = {a->kind == NORM_LAYER ? a->mean[row] : 0, a->rstd[row], 0, 0};
    float of_row[2];
    const float *x = typed_row(a->x, a->dtype, first, width, own), *dsum = NULL;
    const float *dy = typed_row(a->dy, a->dtype, first, width, own + width);
    if (a->dsum) dsum = typed_row(a->dsum, a->dtype, first, width, own + 2 * width);
    float *dx = typed_row_to_fill(a->dx, a->dtype, first, own + 3 * width);
    simd()->add_norm_gradients(width, statistics[0], statistics[1], x, dy, j->weight, sums,
                               sums + width, of_row);
    if (a->kind == NORM_LAYER) statistics[2] = of_row[0] / (float)width;
    statistics[3] = of_row[1] / (float)width;
    simd()->norm_input_gradient(width, statistics, x, dy, j->weight, dsum, dx, j->around);
    typed_row_done(dx, a->dx, a->dtype, first, width);
}

static void backward_parts(void *context, int worker, int64_t begin, int64_t end)
{
    const backward_job *j = context;
    int64_t width = j->args->shape.width, rows = j->args->shape.rows;
    float *own = j->own + worker * OWN_BACKWARD_ROWS * width;
    for (int64_t part = begin; part < end; part++) {
        float *sums = j->sums + part * PART_ROWS * width;
        int64_t row = part * j->rows_of_part, last = row + j->rows_of_part;
        memset(sums, 0, (size_t)(PART_ROWS * width) * sizeof *sums);
        for (; row < last && row < rows; row++) backward_row(j, row, sums, own);
    }
    simd()->settle();
}

static size_t backward_workspace(const norm_backward_args *a, int threads)
{
    if (a->shape.rows < 1 || a->shape.width < 1) return 0;
    uint64_t rows = 1 + PART_ROWS * (uint64_t)part_count(&a->shape);
    return rows_workspace(a->shape.width, rows + OWN_BACKWARD_ROWS * (uint64_t)threads);
}

static int backward_on(int threads, const norm_backward_args *a, float *workspace)
{
    int64_t width = a->shape.width;
    if (!takes(&a->shape, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    int64_t parts = part_count(&a->shape);
    backward_job j = {.args = a, .sums = workspace + width};
    j.own = j.sums + parts * PART_ROWS * width;
    j.weight = typed_row(a->weight, a->dtype, 0, width, workspace);
    j.rows_of_part = (a->shape.rows + parts - 1) / parts;
    j.around = element_is_f32(a->dtype) && simd_goes_around(result_bytes(&a->shape, a->dtype));
    pool_for(typed_rows_threads(threads, a->shape.rows, width), parts, 1, backward_parts, &j);
    for (int64_t part = 1; part < parts; part++)
        simd()->add_scaled(PART_ROWS * width, j.sums, 1, j.sums + part * PART_ROWS * width,
                           j.sums, 0);
    kernel_from_f32(j.sums, a->dtype, width, a->dweight);
    if (a->kind == NORM_LAYER) kernel_from_f32(j.sums + width, a->dtype, width, a->dbias);
    return KERNEL_OK;
}

size_t norm_backward_simd_workspace(const void *args)
{
    return backward_workspace(args, 1);
}

size_t norm_backward_threads_workspace(const void *args)
{
    return backward_workspace(args, pool_threads());
}

int norm_backward_run_simd(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return backward_on(1, args, workspace);
}

int norm_backward_run_threads(const void *args, void *workspace, void *state,
                              kernel_stream stream)
{
    (void)state, (void)stream;
    return backward_on(pool_threads(), args, workspace);
}
