/*
 * ffn.c - the feed-forward network on the host: the operation's formulas, the
 * oracle, and a variant for each way of linear.h.
 *
 * 1. naive    one dot product per result.
 * 2. tiled    packed panels, register blocks.
 * 3. simd     the same with the vector instructions that the processor has.
 * 4. threads  the same on all threads.
 * 5. blas     a library's products, on as many threads.
 *
 * All are bound by arithmetic.
 */
#include "ffn.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../common/oracle.h"
#include "../common/element.h"
#include "../common/simd.h"
#include "e4m3.h"
#include "../linear/linear.h"
#include "../common/saturating.h"

/* ---- formulas ----------------------------------------------------------------- */

static int is_valid(const ffn_shape *s)
{
    return s->tokens > 0 && s->width > 0 && s->hidden > 0;
}

static uint64_t flops_of(const ffn_shape *s, uint64_t products)
{
    if (!is_valid(s)) return 0;
    uint64_t each = saturating_product((uint64_t)s->tokens, (uint64_t)s->width);
    return saturating_product(saturating_product(each, (uint64_t)s->hidden), 2 * products);
}

uint64_t ffn_forward_flops(const ffn_shape *shape)
{
    return flops_of(shape, 2);
}

uint64_t ffn_backward_flops(const ffn_shape *shape)
{
    return flops_of(shape, 4);
}

/* tokens * width, tokens * hidden, width * hidden and width + hidden, times
 * these factors, in bytes. */
static uint64_t bytes_of(const ffn_shape *s, kernel_dtype dtype, uint64_t narrow, uint64_t wide,
                         uint64_t weights, uint64_t biases)
{
    if (!is_valid(s)) return 0;
    uint64_t n = (uint64_t)s->tokens, w = (uint64_t)s->width, h = (uint64_t)s->hidden;
    uint64_t sum = saturating_product(narrow, saturating_product(n, w));
    sum = saturating_sum(sum, saturating_product(wide, saturating_product(n, h)));
    sum = saturating_sum(sum, saturating_product(weights, saturating_product(w, h)));
    sum = saturating_sum(sum, saturating_product(biases, saturating_sum(w, h)));
    return saturating_product(sum, kernel_dtype_bytes(dtype));
}

uint64_t ffn_forward_bytes(const ffn_shape *shape, kernel_dtype dtype, int keeps)
{
    uint64_t operands = bytes_of(shape, dtype, 1, 0, 2, 0);
    return saturating_sum(operands,
                          bytes_of(shape, kernel_result_dtype(dtype), 1, keeps ? 2 : 0, 0, 1));
}

uint64_t ffn_backward_bytes(const ffn_shape *shape, kernel_dtype dtype)
{
    return bytes_of(shape, dtype, 3, 2, 4, 1);
}

/* ---- oracle ------------------------------------------------------------------- */

static const double sqrt_2_over_pi = 0.79788456080286535588;
static const double cubic = 0.044715;

double ffn_gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt_2_over_pi * (x + cubic * x * x * x)));
}

/* The square stays finite: 1 - t^2 is 0 long before it would not. */
double ffn_gelu_gradient(double x)
{
    double t = tanh(sqrt_2_over_pi * (x + cubic * x * x * x));
    double inner = sqrt_2_over_pi * (1 + 3 * cubic * fmin(x * x, DBL_MAX));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

static double pre_of(const ffn_shape *s, const ffn_parameters *p, const float *x_row, int64_t unit)
{
    return (double)p->b1[unit] + oracle_dot(x_row, p->w1 + unit * s->width, s->width);
}

static void forward_reference_row(const ffn_shape *s, const ffn_parameters *p, const float *x,
                                  double *y, double *pre, double *hidden)
{
    for (int64_t unit = 0; unit < s->hidden; unit++) {
        pre[unit] = pre_of(s, p, x, unit);
        hidden[unit] = ffn_gelu(pre[unit]);
    }
    for (int64_t c = 0; c < s->width; c++) {
        double sum = (double)p->b2[c];
        for (int64_t unit = 0; unit < s->hidden; unit++)
            sum += hidden[unit] * (double)p->w2[c * s->hidden + unit];
        y[c] = sum;
    }
}

void ffn_forward_reference(const ffn_shape *shape, const ffn_parameters *parameters,
                           const float *x, int64_t rows, double *y, double *pre, double *hidden)
{
    for (int64_t i = 0; i < rows; i++)
        forward_reference_row(shape, parameters, x + i * shape->width, y + i * shape->width,
                              pre + i * shape->hidden, hidden + i * shape->hidden);
}

static void backward_reference_row(const ffn_shape *s, const ffn_parameters *p, const float *x,
                                   const float *dy, double *dx, double *dpre)
{
    for (int64_t unit = 0; unit < s->hidden; unit++) dpre[unit] = 0;
    for (int64_t c = 0; c < s->width; c++)
        oracle_add_scaled(s->hidden, (double)dy[c], p->w2 + c * s->hidden, dpre);
    for (int64_t c = 0; c < s->width; c++) dx[c] = 0;
    for (int64_t unit = 0; unit < s->hidden; unit++) {
        dpre[unit] *= ffn_gelu_gradient(pre_of(s, p, x, unit));
        oracle_add_scaled(s->width, dpre[unit], p->w1 + unit * s->width, dx);
    }
}

void ffn_backward_reference_rows(const ffn_shape *shape, const ffn_parameters *parameters,
                                 const float *x, const float *dy, int64_t rows, double *dx,
                                 double *dpre)
{
    for (int64_t i = 0; i < rows; i++)
        backward_reference_row(shape, parameters, x + i * shape->width, dy + i * shape->width,
                               dx + i * shape->width, dpre + i * shape->hidden);
}

void ffn_backward_reference_unit(const ffn_shape *shape, const ffn_parameters *parameters,
                                 const float *x, const float *dy, int64_t unit, double *dw1_row,
                                 double *db1, double *dw2_column)
{
    int64_t width = shape->width;
    *db1 = 0;
    for (int64_t c = 0; c < width; c++) dw1_row[c] = dw2_column[c] = 0;
    for (int64_t i = 0; i < shape->tokens; i++) {
        const float *x_row = x + i * width, *dy_row = dy + i * width;
        double pre = pre_of(shape, parameters, x_row, unit), gradient = 0;
        for (int64_t c = 0; c < width; c++)
            gradient += (double)dy_row[c] * (double)parameters->w2[c * shape->hidden + unit];
        gradient *= ffn_gelu_gradient(pre);
        *db1 += gradient;
        oracle_add_scaled(width, gradient, x_row, dw1_row);
        oracle_add_scaled(width, ffn_gelu(pre), dy_row, dw2_column);
    }
}

void ffn_backward_reference_bias(const ffn_shape *shape, const float *dy, double *db2)
{
    for (int64_t c = 0; c < shape->width; c++) db2[c] = 0;
    for (int64_t i = 0; i < shape->tokens; i++)
        oracle_add_scaled(shape->width, 1, dy + i * shape->width, db2);
}

/* ---- variants ------------------------------------------------------------------ */

static int takes(const ffn_shape *s, kernel_dtype dtype)
{
    return is_valid(s) && element_takes(dtype);
}

static int takes_forward(const ffn_forward_args *a)
{
    return takes(&a->shape, a->dtype) && (a->pre == NULL) == (a->hidden == NULL);
}

static size_t size_of(uint64_t bytes)
{
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

/* Of both layers: their products have the same sizes. */
static uint64_t scratch_floats(const ffn_shape *s)
{
    return linear_layer_scratch_floats(s->tokens, s->width, s->hidden);
}

/* [tokens, hidden] twice, as stored and as f32; the products' scratch and f32
 * results, the largest of which is [tokens or width, hidden or width]. */
static size_t workspace_bytes_of(const ffn_shape *s)
{
    uint64_t lines = (uint64_t)(s->tokens > s->width ? s->tokens : s->width);
    uint64_t columns = (uint64_t)(s->hidden > s->width ? s->hidden : s->width);
    uint64_t floats = saturating_product(lines, columns);
    if (!is_valid(s)) return 0;
    floats = saturating_sum(floats, saturating_product((uint64_t)s->tokens, (uint64_t)s->hidden));
    return size_of(saturating_product(saturating_sum(floats, scratch_floats(s)), sizeof(float)));
}

static size_t forward_workspace_bytes(const void *args)
{
    const ffn_forward_args *a = args;
    if (a->dtype == KERNEL_E4M3) return size_of(ffn_e4m3_workspace_bytes(&a->shape));
    return workspace_bytes_of(&((const ffn_forward_args *)args)->shape);
}

static size_t backward_workspace_bytes(const void *args)
{
    return workspace_bytes_of(&((const ffn_backward_args *)args)->shape);
}

/* The two layers, and [tokens, hidden] elements of the dtype. */
typedef struct scratch {
    linear_layer up, down;
    void *wide;
} scratch;

static scratch scratch_in(void *workspace, const ffn_shape *s, kernel_dtype dtype,
                          const linear_way *way)
{
    float *packed = workspace, *wide = packed + scratch_floats(s);
    float *product = wide + s->tokens * s->hidden;
    return (scratch){{way, dtype, s->tokens, s->width, s->hidden, packed, product},
                     {way, dtype, s->tokens, s->hidden, s->width, packed, product},
                     wide};
}

static int run_forward(const ffn_forward_args *a, void *workspace, const linear_way *way)
{
    const ffn_shape *s = &a->shape;
    if (!takes_forward(a) || linear_is_missing(way)) return KERNEL_ERROR_ARGUMENT;
    scratch t = scratch_in(workspace, s, a->dtype, way);
    void *pre = a->pre ? a->pre : t.wide, *hidden = a->hidden ? a->hidden : t.wide;
    linear_layer_forward(&t.up, a->x, a->w1, a->b1, NULL, pre);
    linear_gelu(way, pre, a->dtype, s->tokens * s->hidden, hidden);
    linear_layer_forward(&t.down, hidden, a->w2, a->b2, NULL, a->y);
    return KERNEL_OK;
}

static int run_backward(const ffn_backward_args *a, void *workspace, const linear_way *way)
{
    if (!takes(&a->shape, a->dtype) || linear_is_missing(way)) return KERNEL_ERROR_ARGUMENT;
    scratch t = scratch_in(workspace, &a->shape, a->dtype, way);
    linear_layer_input_gradient(&t.down, a->dy, a->w2, a->pre, t.wide);
    linear_layer_weight_gradient(&t.down, a->hidden, a->dy, NULL, a->dw2);
    linear_layer_bias_gradient(&t.down, a->dy, a->db2);
    linear_layer_input_gradient(&t.up, t.wide, a->w1, NULL, a->dx);
    linear_layer_weight_gradient(&t.up, a->x, t.wide, NULL, a->dw1);
    linear_layer_bias_gradient(&t.up, t.wide, a->db1);
    return KERNEL_OK;
}

static int run_forward_naive(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ffn_forward_args *a = args;
    (void)state, (void)stream;
    if (a->dtype == KERNEL_E4M3) return ffn_e4m3_forward_naive(a, workspace);
    return run_forward(a, workspace, &linear_naive);
}

static int run_forward_tiled(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_forward(args, workspace, &linear_tiled);
}

static int run_forward_simd(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_forward(args, workspace, &linear_simd);
}

static int run_forward_threads(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_forward(args, workspace, &linear_threads);
}

static int run_forward_blas(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_forward(args, workspace, &linear_blas);
}

static int run_backward_naive(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_backward(args, workspace, &linear_naive);
}

static int run_backward_tiled(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_backward(args, workspace, &linear_tiled);
}

static int run_backward_simd(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_backward(args, workspace, &linear_simd);
}

static int run_backward_threads(const void *args, void *workspace, void *state,
                                kernel_stream stream)
{
    (void)state, (void)stream;
    return run_backward(args, workspace, &linear_threads);
}

static int run_backward_blas(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_backward(args, workspace, &linear_blas);
}

static const char *has_no_blas(const void *args)
{
    (void)args;
    return linear_has_no_blas();
}

/* ---- tables --------------------------------------------------------------------- */

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "one dot product per result",
     .dtypes = ELEMENT_DTYPES | KERNEL_DTYPE_BIT(KERNEL_E4M3), .deterministic = 1,
     .workspace_bytes = forward_workspace_bytes, .run = run_forward_naive},
    {.name = "tiled", .note = "packed panels, register blocks", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = forward_workspace_bytes, .run = run_forward_tiled},
    {.name = "simd", .note = "the same with this processor's vectors", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = forward_workspace_bytes, .run = run_forward_simd,
     .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = forward_workspace_bytes, .run = run_forward_threads,
     .runs_on = simd_runs_on_threads},
    {.name = "blas", .note = "cblas_sgemm", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .unsupported = has_no_blas, .workspace_bytes = forward_workspace_bytes, .run = run_forward_blas,
     .runs_on = linear_blas_runs_on},
};

static const kernel_variant backward_rows[] = {
    {.name = "naive", .note = "one dot product per result", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = backward_workspace_bytes, .run = run_backward_naive},
    {.name = "tiled", .note = "packed panels, register blocks", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = backward_workspace_bytes, .run = run_backward_tiled},
    {.name = "simd", .note = "the same with this processor's vectors", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = backward_workspace_bytes, .run = run_backward_simd,
     .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = backward_workspace_bytes, .run = run_backward_threads,
     .runs_on = simd_runs_on_threads},
    {.name = "blas", .note = "cblas_sgemm", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .unsupported = has_no_blas, .workspace_bytes = backward_workspace_bytes,
     .run = run_backward_blas,
     .runs_on = linear_blas_runs_on},
};

const kernel_table ffn_forward_cpu = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table ffn_backward_cpu = {backward_rows, sizeof backward_rows / sizeof *backward_rows};
