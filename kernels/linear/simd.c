/*
 * simd.c - matrix products with the vector instructions that the processor has.
 *
 * 3. simd     a panel of each operand is packed, as f32, into strips as wide as a
 *             register block (../common/simd_body.h); then blocks of the result
 *             run over them. One thread.
 * 4. threads  the same of parts of the result (grid.h), which all threads take in turn
 *             and pack for themselves. A sum does not depend on who computes it.
 *
 * Bound by arithmetic: in a block each vector that is loaded is used as often as
 * the block has rows. What else there was, of 1024 x 1024 x 1024 on two threads of 95
 * GFLOP/s: packing, a seventh of the time, and blocks whose operands both came from the
 * second-level cache, 143 GFLOP/s where a neighbour on the host uses it too. Predicted:
 * the speed of OpenBLAS, by packing long pieces, each thread for itself, in panels that are
 * used at once, and with the strip of b that stays. Seen, of OpenBLAS 0.3.21 in turn on two
 * threads with AVX-512, on a machine that others use too: 0.95 to 1.11 for ten shapes of
 * 256 to 3072, single medians 0.89, where it was 0.62 to 1.16; on one thread 0.97 to 1.05.
 */
#include "linear.h"

#include <string.h>

#include "../common/pool.h"
#include "../common/saturating.h"
#include "../common/typed_rows.h"
#include "grid.h"

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* ---- packing ------------------------------------------------------------------- */

enum { PANEL_DEPTH = 256 }; /* a strip of it stays in the first-level cache */

/* Of an operand so many lines, rows of a or columns of b, and so much of the depth. They
 * become strips of width lines, in which there is a row of width elements for each depth;
 * what is beyond the matrix is 0. */
typedef struct panel {
    linear_matrix x; /* its rows are the lines */
    int64_t first, lines, from, depth, width;
    float *packed;
} panel;

static int64_t lines_of_strip(const panel *p, int64_t strip)
{
    return at_most(p->lines - strip * p->width, p->width);
}

static float *rows_of_strip(const panel *p, int64_t strip)
{
    return p->packed + strip * p->width * p->depth;
}

static int64_t index_of(const panel *p, int64_t strip, int64_t row)
{
    return (p->first + strip * p->width) * p->x.row_stride + (p->from + row) * p->x.column_stride;
}

/* Each line is contiguous: the strip is turned. */
static void pack_along(const panel *p, int64_t strip)
{
    float room[SIMD_MOST_COLUMNS * PANEL_DEPTH];
    int64_t first = index_of(p, strip, 0), stride = p->x.row_stride;
    int64_t count = lines_of_strip(p, strip);
    const float *lines = element_at(p->x.data, p->x.dtype, first);
    for (int64_t i = 0; i < count && !element_is_f32(p->x.dtype); i++)
        lines = typed_row(p->x.data, p->x.dtype, first + i * stride, p->depth,
                          room + i * PANEL_DEPTH);
    if (!element_is_f32(p->x.dtype)) lines = room, stride = PANEL_DEPTH;
    simd()->transpose(count, p->depth, lines, stride, rows_of_strip(p, strip), p->width);
}

/* The lines lie beside each other: a row is contiguous in each strip. Some strips in turn,
 * so that what is read lies in long pieces, and what is written in few places. */
static void pack_across(const panel *p, int64_t first_strip, int64_t end_strip)
{
    float room[SIMD_MOST_COLUMNS];
    for (int64_t row = 0; row < p->depth; row++)
        for (int64_t strip = first_strip; strip < end_strip; strip++) {
            int64_t lane = 0, count = lines_of_strip(p, strip);
            const float *src = typed_row(p->x.data, p->x.dtype, index_of(p, strip, row), count, room);
            float *dst = rows_of_strip(p, strip) + row * p->width;
            for (; lane + 4 <= count; lane += 4) memcpy(dst + lane, src + lane, 4 * sizeof *dst);
            for (; lane < count; lane++) dst[lane] = src[lane];
        }
}

static void pack_elements(const panel *p, int64_t strip)
{
    float *dst = rows_of_strip(p, strip);
    for (int64_t row = 0; row < p->depth; row++)
        for (int64_t lane = 0; lane < lines_of_strip(p, strip); lane++)
            dst[row * p->width + lane] = element_get(
                p->x.data, p->x.dtype, index_of(p, strip, row) + lane * p->x.row_stride);
}

static void clear_beyond(const panel *p, int64_t strip)
{
    for (int64_t row = 0; row < p->depth; row++)
        for (int64_t lane = lines_of_strip(p, strip); lane < p->width; lane++)
            rows_of_strip(p, strip)[row * p->width + lane] = 0;
}

static void pack(const panel *p)
{
    enum { STRIPS = 8 };
    int64_t strips = linear_pieces(p->lines, p->width);
    for (int64_t strip = 0; strip < strips; strip++) {
        if (p->x.column_stride == 1)
            pack_along(p, strip);
        else if (p->x.row_stride != 1)
            pack_elements(p, strip);
        else if (strip % STRIPS == 0)
            pack_across(p, strip, at_most(strip + STRIPS, strips));
    }
    clear_beyond(p, strips - 1);
}

/* ---- the product ----------------------------------------------------------------- */

typedef struct product {
    linear_matrix a, b_lines;
    int64_t m, n, k;
    float *c, *scratch; /* a worker's panels */
    linear_grid grid;
} product;

/* A part's rows of a and columns of b, of some of the depth. */
static uint64_t panel_floats(const linear_grid *g, int64_t k)
{
    return saturating_product((uint64_t)g->rows + (uint64_t)g->columns,
                              (uint64_t)at_most(k, PANEL_DEPTH));
}

/* So many rows of a stay in the second-level cache while the columns of b pass. */
static void multiply_panels(const panel *a, const panel *b, float *c, int64_t ldc)
{
    enum { ROWS = 288 };
    for (int64_t i = 0; i < a->lines; i += ROWS)
        simd()->multiply_packed(at_most(a->lines - i, ROWS), b->lines, a->depth,
                                a->packed + i * a->depth, b->packed, c + i * ldc, ldc,
                                a->from > 0);
}

static void multiply_part(const product *p, int64_t i, int64_t j, float *room)
{
    const linear_grid *g = &p->grid;
    panel a = {.x = p->a, .first = i, .lines = at_most(p->m - i, g->rows), .packed = room};
    panel b = {.x = p->b_lines, .first = j, .lines = at_most(p->n - j, g->columns)};
    int64_t panels = linear_pieces(p->k, PANEL_DEPTH), depth = linear_pieces(p->k, panels);
    a.width = simd()->block_rows, b.width = simd()->block_columns;
    b.packed = room + g->rows * at_most(p->k, PANEL_DEPTH);
    for (; a.from < p->k; a.from = b.from += depth) {
        a.depth = b.depth = at_most(p->k - a.from, depth);
        pack(&a);
        pack(&b);
        multiply_panels(&a, &b, p->c + i * p->n + j, p->n);
    }
}

static void multiply_parts(void *context, int worker, int64_t begin, int64_t end)
{
    const product *p = context;
    const linear_grid *g = &p->grid;
    for (int64_t part = begin; part < end; part++)
        multiply_part(p, part / g->across * g->rows, part % g->across * g->columns,
                      p->scratch + (uint64_t)worker * panel_floats(g, p->k));
}

int linear_is_small(int64_t m, int64_t n, int64_t k)
{
    return (double)m * (double)n * (double)k < 1 << 20; /* some 20 microseconds */
}

static linear_grid grid_for(int threads, int64_t m, int64_t n)
{
    return linear_divide(m, n, threads, simd()->block_rows, simd()->block_columns);
}

static void multiply_on(int threads, int64_t m, int64_t n, int64_t k, linear_matrix a,
                        linear_matrix b, float *c, float *scratch)
{
    product p = {.a = a, .b_lines = {b.data, b.dtype, b.column_stride, b.row_stride},
                 .m = m, .n = n, .k = k, .c = c, .scratch = scratch};
    if (linear_is_small(m, n, k)) threads = 1;
    p.grid = grid_for(threads, m, n);
    pool_for(threads, p.grid.parts, 1, multiply_parts, &p);
}

static void multiply_simd(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                          float *c, float *scratch)
{
    multiply_on(1, m, n, k, a, b, c, scratch);
}

static void multiply_threads(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                             float *c, float *scratch)
{
    multiply_on(pool_threads(), m, n, k, a, b, c, scratch);
}

static int one_thread(void)
{
    return 1;
}

const linear_way linear_simd = {multiply_simd, one_thread, 1};
const linear_way linear_threads = {multiply_threads, pool_threads, 1};

/* ---- scratch --------------------------------------------------------------------- */

static uint64_t scratch_on(int threads, int64_t m, int64_t n, int64_t k)
{
    linear_grid g = grid_for(threads, m, n);
    return saturating_product((uint64_t)threads, panel_floats(&g, k));
}

/* Of blas a copy of both operands. */
uint64_t linear_scratch_floats(int64_t m, int64_t n, int64_t k)
{
    uint64_t most = saturating_product(saturating_sum((uint64_t)m, (uint64_t)n), (uint64_t)k);
    uint64_t alone = scratch_on(1, m, n, k), all = scratch_on(pool_threads(), m, n, k);
    most = most > alone ? most : alone;
    most = most > all ? most : all;
    return most > LINEAR_PANEL_FLOATS ? most : LINEAR_PANEL_FLOATS;
}

uint64_t linear_layer_scratch_floats(int64_t tokens, int64_t in, int64_t out)
{
    uint64_t forward = linear_scratch_floats(tokens, out, in);
    uint64_t of_input = linear_scratch_floats(tokens, in, out);
    uint64_t of_weight = linear_scratch_floats(out, in, tokens);
    uint64_t most = forward > of_input ? forward : of_input;
    return most > of_weight ? most : of_weight;
}
