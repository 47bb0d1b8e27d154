/*
 * loss.c - cross-entropy on the host: the operation's formulas, the oracles,
 * and its plain variants.
 *
 * 1. naive           The logarithm of the softmax of every row in memory as
 *                    f32, then the loss or the gradient from it: what an
 *                    unfused framework does.
 * 2. fused           forward: the online softmax (Milakov and Gimelshein,
 *                    "Online normalizer calculation for softmax", 2018) over
 *                    pieces of a row that stay in the first-level cache;
 *                    backward: each logit becomes its gradient, from the
 *                    saved lse.
 * 3. fused_one_pass  Both of a row before the next one: the row comes from
 *                    memory once, its second reading from cache.
 *
 * All are bound by expf: one a logit and pass that needs one. One thread. simd.c has
 * the faster ones.
 */
#include "loss.h"

#include <math.h>

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/saturating.h"
#include "../common/simd.h"
#include "simd.h"

/* ---- formulas ---------------------------------------------------------- */

static int is_valid(const loss_shape *s)
{
    return s->rows > 0 && s->classes > 0 && s->classes <= INT32_MAX;
}

static uint64_t element_count(const loss_shape *s)
{
    if (s->rows <= 0 || s->classes <= 0) return 0;
    return saturating_product((uint64_t)s->rows, (uint64_t)s->classes);
}

static uint64_t traffic(const loss_shape *s, uint64_t bytes_per_element, uint64_t bytes_per_row)
{
    uint64_t elements = element_count(s);
    if (elements == 0) return 0;
    return saturating_sum(saturating_product(elements, bytes_per_element),
                          saturating_product((uint64_t)s->rows, bytes_per_row));
}

uint64_t loss_forward_bytes(const loss_shape *shape, kernel_dtype dtype)
{
    return traffic(shape, kernel_dtype_bytes(dtype), 8);
}

uint64_t loss_backward_bytes(const loss_shape *shape, kernel_dtype dtype)
{
    return traffic(shape, 2 * kernel_dtype_bytes(dtype), 12);
}

uint64_t loss_forward_backward_bytes(const loss_shape *shape, kernel_dtype dtype)
{
    return traffic(shape, 2 * kernel_dtype_bytes(dtype), 12);
}

uint64_t loss_forward_flops(const loss_shape *shape)
{
    return saturating_product(element_count(shape), 4);
}

uint64_t loss_backward_flops(const loss_shape *shape)
{
    return saturating_product(element_count(shape), 3);
}

uint64_t loss_forward_backward_flops(const loss_shape *shape)
{
    return saturating_product(element_count(shape), 5);
}

/* ---- oracles ----------------------------------------------------------- */

static double reference_lse(const float *logits, int64_t classes)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < classes; j++)
        if ((double)logits[j] > max) max = (double)logits[j];
    for (int64_t j = 0; j < classes; j++) sum += exp((double)logits[j] - max);
    /* cppcheck-suppress invalidFunctionArg ; the largest of them adds 1 to the sum */
    return max + log(sum);
}

void loss_forward_reference(const loss_shape *shape, const float *logits, const int32_t *targets,
                            double *loss, double *lse)
{
    for (int64_t i = 0; i < shape->rows; i++) {
        const float *row = logits + i * shape->classes;
        double row_lse = reference_lse(row, shape->classes);
        loss[i] = row_lse - (double)row[targets[i]];
        if (lse) lse[i] = row_lse;
    }
}

void loss_backward_reference(const loss_shape *shape, const float *logits, const int32_t *targets,
                             const float *dloss, double *dlogits)
{
    for (int64_t i = 0; i < shape->rows; i++) {
        const float *row = logits + i * shape->classes;
        double *gradient = dlogits + i * shape->classes, scale = (double)dloss[i];
        double row_lse = reference_lse(row, shape->classes);
        for (int64_t j = 0; j < shape->classes; j++)
            gradient[j] = exp((double)row[j] - row_lse) * scale;
        gradient[targets[i]] -= scale;
    }
}

/* ---- what the variants share ------------------------------------------- */

int loss_check(const loss_args *a)
{
    if (!is_valid(&a->shape)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->shape.rows; i++)
        if (a->targets[i] < 0 || a->targets[i] >= a->shape.classes) return KERNEL_ERROR_INDEX;
    return KERNEL_OK;
}

static float logit_at(const loss_args *a, int64_t row, int64_t column)
{
    float value;
    kernel_to_f32(element_at(a->logits, a->dtype, row * a->shape.classes + column), a->dtype, 1,
                  &value);
    return value;
}

enum { PIECE = 1024 }; /* logits that are converted to f32 at a time */

/* Piece `begin` of a row as f32 in `values`; returns its length. */
static int64_t load_piece(const loss_args *a, int64_t row, int64_t begin, float *values)
{
    int64_t left = a->shape.classes - begin, count = left < PIECE ? left : PIECE;
    kernel_to_f32(element_at(a->logits, a->dtype, row * a->shape.classes + begin), a->dtype, count,
                  values);
    return count;
}

static void store_gradient(const loss_args *a, int64_t row, int64_t begin, int64_t count,
                           const float *values)
{
    size_t offset = (size_t)(row * a->shape.classes + begin) * kernel_dtype_bytes(a->dtype);
    kernel_from_f32(values, a->dtype, count, (char *)a->dlogits + offset);
}

static void store_loss(const loss_args *a, int64_t row, float lse)
{
    a->loss[row] = lse - logit_at(a, row, a->targets[row]);
    if (a->lse) a->lse[row] = lse;
}

/* ---- naive ------------------------------------------------------------- */

/* The logarithm of the softmax, f32 [rows, classes]. */
static size_t naive_workspace(const void *args)
{
    uint64_t elements = element_count(&((const loss_args *)args)->shape);
    uint64_t bytes = saturating_product(elements, sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

/* In place; returns the row's lse. */
static float log_softmax_row(float *row, int64_t classes)
{
    float max = row[0], sum = 0;
    for (int64_t j = 1; j < classes; j++) max = row[j] > max ? row[j] : max;
    for (int64_t j = 0; j < classes; j++) sum += expf(row[j] - max);
    /* cppcheck-suppress invalidFunctionArg ; the largest of them adds 1 to the sum */
    float lse = max + logf(sum);
    for (int64_t j = 0; j < classes; j++) row[j] -= lse;
    return lse;
}

/* lse: [rows] or NULL. */
static void log_softmax(const loss_args *a, float *out, float *lse)
{
    int64_t classes = a->shape.classes;
    kernel_to_f32(a->logits, a->dtype, a->shape.rows * classes, out);
    for (int64_t row = 0; row < a->shape.rows; row++) {
        float row_lse = log_softmax_row(out + row * classes, classes);
        if (lse) lse[row] = row_lse;
    }
}

static void naive_losses(const loss_args *a, const float *log_softmax)
{
    for (int64_t row = 0; row < a->shape.rows; row++)
        a->loss[row] = -log_softmax[row * a->shape.classes + a->targets[row]];
}

/* In place, then stored. */
static void naive_gradients(const loss_args *a, float *log_softmax)
{
    int64_t classes = a->shape.classes;
    for (int64_t row = 0; row < a->shape.rows; row++) {
        float *gradient = log_softmax + row * classes;
        for (int64_t j = 0; j < classes; j++) gradient[j] = expf(gradient[j]) * a->dloss[row];
        gradient[a->targets[row]] -= a->dloss[row];
    }
    kernel_from_f32(log_softmax, a->dtype, a->shape.rows * classes, a->dlogits);
}

static int run_naive_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const loss_args *a = args;
    int error = loss_check(a);
    (void)state, (void)stream;
    if (error) return error;
    log_softmax(a, workspace, a->lse);
    naive_losses(a, workspace);
    return KERNEL_OK;
}

static int run_naive_backward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const loss_args *a = args;
    int error = loss_check(a);
    (void)state, (void)stream;
    if (error) return error;
    log_softmax(a, workspace, NULL);
    naive_gradients(a, workspace);
    return KERNEL_OK;
}

static int run_naive_forward_backward(const void *args, void *workspace, void *state,
                                      kernel_stream stream)
{
    const loss_args *a = args;
    int error = loss_check(a);
    (void)state, (void)stream;
    if (error) return error;
    log_softmax(a, workspace, a->lse);
    naive_losses(a, workspace);
    naive_gradients(a, workspace);
    return KERNEL_OK;
}

/* ---- fused ------------------------------------------------------------- */

static float lse_of_row(const loss_args *a, int64_t row)
{
    float values[PIECE], max = -INFINITY, sum = 0;
    for (int64_t begin = 0; begin < a->shape.classes; begin += PIECE) {
        int64_t count = load_piece(a, row, begin, values);
        float old_max = max, piece_sum = 0;
        for (int64_t j = 0; j < count; j++) max = values[j] > max ? values[j] : max;
        for (int64_t j = 0; j < count; j++) piece_sum += expf(values[j] - max);
        sum = sum * expf(old_max - max) + piece_sum;
    }
    /* cppcheck-suppress invalidFunctionArg ; the largest of them adds 1 to the sum */
    return max + logf(sum);
}

static void gradient_of_row(const loss_args *a, int64_t row, float lse)
{
    float values[PIECE], scale = a->dloss[row];
    for (int64_t begin = 0; begin < a->shape.classes; begin += PIECE) {
        int64_t count = load_piece(a, row, begin, values), target = a->targets[row] - begin;
        for (int64_t j = 0; j < count; j++) values[j] = expf(values[j] - lse) * scale;
        if (target >= 0 && target < count) values[target] -= scale;
        store_gradient(a, row, begin, count, values);
    }
}

static int run_fused_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const loss_args *a = args;
    int error = loss_check(a);
    (void)workspace, (void)state, (void)stream;
    for (int64_t row = 0; row < a->shape.rows && !error; row++)
        store_loss(a, row, lse_of_row(a, row));
    return error;
}

static int run_fused_backward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const loss_args *a = args;
    int error = loss_check(a);
    (void)workspace, (void)state, (void)stream;
    for (int64_t row = 0; row < a->shape.rows && !error; row++)
        gradient_of_row(a, row, a->lse[row]);
    return error;
}

static int run_fused_one_pass(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const loss_args *a = args;
    int error = loss_check(a);
    (void)workspace, (void)state, (void)stream;
    for (int64_t row = 0; row < a->shape.rows && !error; row++) {
        float lse = lse_of_row(a, row);
        store_loss(a, row, lse);
        gradient_of_row(a, row, lse);
    }
    return error;
}

/* ---- tables ------------------------------------------------------------ */

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "log-softmax in memory, then a pick by target",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .workspace_bytes = naive_workspace,
     .run = run_naive_forward},
    {.name = "fused", .note = "online softmax, logits read once", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_fused_forward},
    {.name = "simd", .note = "fused with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = loss_forward_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = loss_forward_run_threads, .runs_on = simd_runs_on_threads},
};

static const kernel_variant backward_rows[] = {
    {.name = "naive", .note = "log-softmax in memory, then the gradient", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = naive_workspace, .run = run_naive_backward},
    {.name = "fused", .note = "from the saved lse in one read and one write",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .run = run_fused_backward},
    {.name = "simd", .note = "fused with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = loss_backward_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = loss_backward_run_threads, .runs_on = simd_runs_on_threads},
};

static const kernel_variant forward_backward_rows[] = {
    {.name = "naive", .note = "log-softmax in memory, then a pick, then the gradient",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .workspace_bytes = naive_workspace,
     .run = run_naive_forward_backward},
    {.name = "fused_one_pass", .note = "loss and gradient of a row while it is in cache",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .run = run_fused_one_pass},
    {.name = "simd", .note = "fused_one_pass with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = loss_both_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = loss_both_run_threads, .runs_on = simd_runs_on_threads},
};

const kernel_table loss_forward_cpu = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table loss_backward_cpu = {backward_rows,
                                        sizeof backward_rows / sizeof *backward_rows};
const kernel_table loss_forward_backward_cpu = {
    forward_backward_rows, sizeof forward_backward_rows / sizeof *forward_backward_rows};
