/*
 * linear.c - matrix products on the host.
 *
 * 1. naive  one dot product per result, as a first version would be written.
 *           Its sum is a chain of dependent additions. Bound by their latency,
 *           and by the cache misses of whichever operand is walked down.
 * 2. tiled  the scheme of Goto and van de Geijn, "Anatomy of high-performance
 *           matrix multiplication", 2008: a panel of each operand is packed
 *           into consecutive f32 (which also converts and transposes), and
 *           register blocks of the result run over the panels. Bound by
 *           arithmetic.
 *
 * One thread. simd.c and blas.c have the faster ways.
 */
#include "linear.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../common/convert.h"
#include "../common/lanes.h"
#include "../common/pool.h"
#include "../common/typed_rows.h"

linear_matrix linear_rows(const void *data, kernel_dtype dtype, int64_t columns)
{
    return (linear_matrix){data, dtype, columns, 1};
}

linear_matrix linear_transposed(const void *data, kernel_dtype dtype, int64_t columns)
{
    return (linear_matrix){data, dtype, 1, columns};
}

static inline float element(linear_matrix x, int64_t row, int64_t column)
{
    int64_t at = row * x.row_stride + column * x.column_stride;
    return element_get(x.data, x.dtype, at);
}

/* ---- naive ------------------------------------------------------------------- */

static void multiply_naive(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                           float *c, float *panels)
{
    (void)panels;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++) sum += element(a, i, p) * element(b, p, j);
            c[i * n + j] = sum;
        }
}

/* ---- tiled ------------------------------------------------------------------- */

enum { BLOCK_ROWS = 4, BLOCK_COLUMNS = 2 * LANES };

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* dst[strip][p][lane] = x(first + strip * width + lane, depth + p), 0 beyond
 * limit: the order in which a register block reads it. */
static void pack(linear_matrix x, int64_t first, int64_t count, int64_t limit, int64_t depth,
                 int64_t depth_count, int64_t width, float *dst)
{
    for (int64_t strip = 0; strip < count; strip += width)
        for (int64_t p = 0; p < depth_count; p++)
            for (int64_t lane = 0; lane < width; lane++) {
                int64_t line = first + strip + lane;
                *dst++ = line < limit ? element(x, line, depth + p) : 0.0f;
            }
}

/* c[BLOCK_ROWS, BLOCK_COLUMNS] += strips a and b, over depth; c's rows are ldc
 * apart. */
static void multiply_block(int64_t depth, const float *restrict a, const float *restrict b,
                           float *restrict c, int64_t ldc)
{
    float_lanes left[BLOCK_ROWS], right[BLOCK_ROWS];
    for (int r = 0; r < BLOCK_ROWS; r++) {
        left[r] = load_lanes(c + r * ldc);
        right[r] = load_lanes(c + r * ldc + LANES);
    }
    for (int64_t p = 0; p < depth; p++) {
        float_lanes b_left = load_lanes(b), b_right = load_lanes(b + LANES);
        for (int r = 0; r < BLOCK_ROWS; r++) {
            left[r] += a[r] * b_left;
            right[r] += a[r] * b_right;
        }
        a += BLOCK_ROWS;
        b += BLOCK_COLUMNS;
    }
    for (int r = 0; r < BLOCK_ROWS; r++) {
        store_lanes(c + r * ldc, left[r]);
        store_lanes(c + r * ldc + LANES, right[r]);
    }
}

/* tile[LINEAR_PANEL_ROWS, LINEAR_PANEL_COLUMNS] += panels of depth. */
static void multiply_panels(int64_t rows, int64_t columns, int64_t depth, const float *a,
                            const float *b, float *tile)
{
    for (int64_t j = 0; j < columns; j += BLOCK_COLUMNS)
        for (int64_t i = 0; i < rows; i += BLOCK_ROWS)
            multiply_block(depth, a + i * depth, b + j * depth,
                           tile + i * LINEAR_PANEL_COLUMNS + j, LINEAR_PANEL_COLUMNS);
}

/* A column of b's transpose is a row of b: what pack walks. */
static linear_matrix exchange(linear_matrix x)
{
    return (linear_matrix){x.data, x.dtype, x.column_stride, x.row_stride};
}

static void multiply_tiled(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                           float *c, float *panels)
{
    float *a_panel = panels, *b_panel = a_panel + LINEAR_PANEL_ROWS * LINEAR_PANEL_DEPTH;
    float *tile = b_panel + LINEAR_PANEL_COLUMNS * LINEAR_PANEL_DEPTH;
    linear_matrix b_lines = exchange(b);
    for (int64_t j = 0; j < n; j += LINEAR_PANEL_COLUMNS)
        for (int64_t p = 0; p < k; p += LINEAR_PANEL_DEPTH) {
            int64_t columns = at_most(n - j, LINEAR_PANEL_COLUMNS);
            int64_t depth = at_most(k - p, LINEAR_PANEL_DEPTH);
            pack(b_lines, j, columns, n, p, depth, BLOCK_COLUMNS, b_panel);
            for (int64_t i = 0; i < m; i += LINEAR_PANEL_ROWS) {
                int64_t rows = at_most(m - i, LINEAR_PANEL_ROWS);
                pack(a, i, rows, m, p, depth, BLOCK_ROWS, a_panel);
                memset(tile, 0, LINEAR_PANEL_ROWS * LINEAR_PANEL_COLUMNS * sizeof *tile);
                multiply_panels(rows, columns, depth, a_panel, b_panel, tile);
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t s = 0; s < columns; s++) {
                        float *sum = c + (i + r) * n + j + s;
                        *sum = tile[r * LINEAR_PANEL_COLUMNS + s] + (p > 0 ? *sum : 0.0f);
                    }
            }
        }
}

const linear_way linear_naive = {multiply_naive, NULL, 0};
const linear_way linear_tiled = {multiply_tiled, NULL, 0};

/* ---- element by element ------------------------------------------------------- */

enum { PIECE = 256, EACH_RANGE = 1 << 14 }; /* converted at a time; of a thread at least */

static int threads_of(const linear_way *way)
{
    return way->threads ? way->threads() : 1;
}

/* Calls function for ranges of rows of `row` elements. */
static void for_rows(const linear_way *way, int64_t rows, int64_t row, pool_function *function,
                     void *context)
{
    pool_for(threads_of(way), rows, row < EACH_RANGE ? EACH_RANGE / row : 1, function, context);
}

/* row[0..count) += src[0..count) of dtype. */
static void add_elements(const void *src, kernel_dtype dtype, int64_t count, float *row)
{
    float piece[PIECE];
    for (int64_t i = 0; i < count; i += PIECE) {
        int64_t now = at_most(count - i, PIECE);
        const float *x = typed_row(src, dtype, i, now, piece);
        for (int64_t j = 0; j < now; j++) row[i + j] += x[j];
    }
}

static const float sqrt_2_over_pi = 0.79788456080286535588f, cubic = 0.044715f;

static float gelu(float x)
{
    return 0.5f * x * (1.0f + tanhf(sqrt_2_over_pi * (x + cubic * x * x * x)));
}

/* The square stays finite: 1 - t^2 is 0 long before it would not. */
static float gelu_gradient(float x)
{
    float t = tanhf(sqrt_2_over_pi * (x + cubic * x * x * x));
    float inner = sqrt_2_over_pi * (1.0f + 3.0f * cubic * fminf(x * x, FLT_MAX));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner;
}

typedef struct gelu_job {
    const linear_way *way;
    const void *pre;
    kernel_dtype dtype;
    void *hidden;
} gelu_job;

static void gelu_range(void *context, int worker, int64_t begin, int64_t end)
{
    const gelu_job *g = context;
    float piece[PIECE];
    (void)worker;
    for (int64_t i = begin; i < end; i += PIECE) {
        int64_t now = at_most(end - i, PIECE);
        kernel_to_f32(element_at(g->pre, g->dtype, i), g->dtype, now, piece);
        if (g->way->vectors) simd()->gelu(now, piece);
        for (int64_t j = 0; j < now && !g->way->vectors; j++) piece[j] = gelu(piece[j]);
        kernel_from_f32(piece, g->dtype, now, element_to(g->hidden, g->dtype, i));
    }
}

void linear_gelu(const linear_way *way, const void *pre, kernel_dtype dtype, int64_t count,
                 void *hidden)
{
    gelu_job g = {way, pre, dtype, hidden};
    pool_for(threads_of(way), count, EACH_RANGE, gelu_range, &g);
}

static void multiply_gelu_gradient(const linear_way *way, const void *pre, kernel_dtype dtype,
                                   int64_t count, float *product)
{
    float piece[PIECE];
    for (int64_t i = 0; i < count; i += PIECE) {
        int64_t now = at_most(count - i, PIECE);
        kernel_to_f32(element_at(pre, dtype, i), dtype, now, piece);
        if (way->vectors) simd()->multiply_gelu_gradient(now, piece, product + i);
        for (int64_t j = 0; j < now && !way->vectors; j++)
            product[i + j] *= gelu_gradient(piece[j]);
    }
}

/* ---- layers --------------------------------------------------------------------- */

/* What becomes of a product's rows: with a row's bias, residual or GELU's slope
 * where there are any, they are stored as y. */
typedef struct epilogue {
    const linear_layer *layer;
    int64_t columns;
    const void *bias, *residual, *pre;
    void *y;
    float *product; /* y itself, where that is f32 and is not added to */
} epilogue;

static void finish_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const epilogue *e = context;
    kernel_dtype dtype = e->layer->dtype;
    int64_t first = begin * e->columns, count = (end - begin) * e->columns;
    float *product = e->product + first;
    void *y = element_to(e->y, dtype, first);
    (void)worker;
    for (int64_t i = 0; e->bias && i < end - begin; i++)
        add_elements(e->bias, dtype, e->columns, product + i * e->columns);
    if (e->residual) add_elements(element_at(e->residual, dtype, first), dtype, count, product);
    if (e->pre)
        multiply_gelu_gradient(e->layer->way, element_at(e->pre, dtype, first), dtype, count,
                               product);
    if (product != y) kernel_from_f32(product, dtype, count, y);
}

static void run(const linear_layer *l, int64_t rows, int64_t depth, linear_matrix a,
                linear_matrix b, epilogue e)
{
    int in_place = element_is_f32(l->dtype) && e.y != e.residual && e.y != e.pre;
    e.layer = l;
    e.product = in_place ? e.y : l->product;
    l->way->multiply(rows, e.columns, depth, a, b, e.product, l->scratch);
    if (e.product != e.y || e.bias || e.residual || e.pre)
        for_rows(l->way, rows, e.columns, finish_rows, &e);
}

void linear_layer_forward(const linear_layer *l, const void *x, const void *weight,
                          const void *bias, const void *residual, void *y)
{
    run(l, l->tokens, l->in, linear_rows(x, l->dtype, l->in),
        linear_transposed(weight, l->dtype, l->in),
        (epilogue){.columns = l->out, .bias = bias, .residual = residual, .y = y});
}

void linear_layer_input_gradient(const linear_layer *l, const void *y_gradient, const void *weight,
                                 const void *pre, void *x_gradient)
{
    run(l, l->tokens, l->out, linear_rows(y_gradient, l->dtype, l->out),
        linear_rows(weight, l->dtype, l->in),
        (epilogue){.columns = l->in, .pre = pre, .y = x_gradient});
}

void linear_layer_weight_gradient(const linear_layer *l, const void *x, const void *y_gradient,
                                  const void *residual, void *weight_gradient)
{
    run(l, l->out, l->tokens, linear_transposed(y_gradient, l->dtype, l->out),
        linear_rows(x, l->dtype, l->in),
        (epilogue){.columns = l->in, .residual = residual, .y = weight_gradient});
}

/* Columns of y_gradient, so that a column's sum does not depend on the threads. */
typedef struct bias_job {
    const linear_layer *layer;
    const void *y_gradient;
    void *bias_gradient;
} bias_job;

static void sum_columns(void *context, int worker, int64_t begin, int64_t end)
{
    const bias_job *b = context;
    const linear_layer *l = b->layer;
    float *sums = l->product + begin;
    (void)worker;
    memset(sums, 0, (size_t)(end - begin) * sizeof *sums);
    for (int64_t i = 0; i < l->tokens; i++)
        add_elements(element_at(b->y_gradient, l->dtype, i * l->out + begin), l->dtype,
                     end - begin, sums);
    kernel_from_f32(sums, l->dtype, end - begin, element_to(b->bias_gradient, l->dtype, begin));
}

void linear_layer_bias_gradient(const linear_layer *l, const void *y_gradient,
                                void *bias_gradient)
{
    bias_job b = {l, y_gradient, bias_gradient};
    pool_for(threads_of(l->way), l->out, PIECE, sum_columns, &b);
}
