/*
 * simd.c - matrix products with the vector instructions that the processor has.
 *
 * 3. simd     both operands are packed once, as f32, into strips as wide as a
 *             register block (../common/simd_body.h); then blocks of the result
 *             run over them. One thread.
 * 4. threads  the same on all threads: strips, then tiles of the result, are
 *             handed out. A tile's sum does not depend on who computes it.
 *
 * Bound by arithmetic: in a block each vector that is loaded is used as often as
 * the block has rows.
 */
#include "linear.h"

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/pool.h"
#include "../common/saturating.h"
#include "../common/simd.h"

/* ---- packing ------------------------------------------------------------------- */

/* dst[p][lane] = x(first + lane, p) for p < depth, 0 from the lane `count` on.
 * Inlined with constants, of which compilers make loops without conditions. Eight
 * depths at a time, so that what is written stays in the first-level cache. */
static inline __attribute__((always_inline)) void
pack_strip(const void *data, kernel_dtype dtype, int64_t line_stride, int64_t depth_stride,
           int64_t count, int64_t depth, int64_t width, float *dst)
{
    enum { AT_A_TIME = 8 };
    for (int64_t from = 0; from < depth; from += AT_A_TIME) {
        int64_t to = depth - from < AT_A_TIME ? depth : from + AT_A_TIME;
        if (line_stride == 1) {
            for (int64_t p = from; p < to; p++)
                for (int64_t lane = 0; lane < count; lane++)
                    dst[p * width + lane] = element_get(data, dtype, lane + p * depth_stride);
        } else {
            for (int64_t lane = 0; lane < count; lane++)
                for (int64_t p = from; p < to; p++)
                    dst[p * width + lane] =
                        element_get(data, dtype, lane * line_stride + p * depth_stride);
        }
        for (int64_t p = from; p < to && count < width; p++)
            for (int64_t lane = count; lane < width; lane++) dst[p * width + lane] = 0;
    }
}

static void pack_strip_of(const linear_matrix *x, int64_t first, int64_t count, int64_t depth,
                          int64_t width, float *dst)
{
    const void *data = element_at(x->data, x->dtype, first * x->row_stride);
    int64_t line = x->row_stride, next = x->column_stride;
    if (x->dtype == KERNEL_F32 && next == 1)
        pack_strip(data, KERNEL_F32, line, 1, count, depth, width, dst);
    else if (x->dtype == KERNEL_F32 && line == 1)
        pack_strip(data, KERNEL_F32, 1, next, count, depth, width, dst);
    else if (x->dtype == KERNEL_BF16 && next == 1)
        pack_strip(data, KERNEL_BF16, line, 1, count, depth, width, dst);
    else if (x->dtype == KERNEL_BF16 && line == 1)
        pack_strip(data, KERNEL_BF16, 1, next, count, depth, width, dst);
    else
        pack_strip(data, x->dtype, line, next, count, depth, width, dst);
}

/* An operand: `lines` rows of a, or columns of b, as strips of width. */
typedef struct operand {
    linear_matrix x; /* its rows are the lines */
    int64_t lines, depth, width, strips;
    float *packed;
} operand;

static operand operand_of(linear_matrix x, int64_t lines, int64_t depth, int64_t width,
                          float *packed)
{
    return (operand){x, lines, depth, width, (lines + width - 1) / width, packed};
}

static void pack_one(const operand *o, int64_t strip)
{
    int64_t first = strip * o->width, left = o->lines - first;
    pack_strip_of(&o->x, first, left < o->width ? left : o->width, o->depth, o->width,
                  o->packed + first * o->depth);
}

/* ---- the product ----------------------------------------------------------------- */

typedef struct product {
    operand a, b;
    float *c;
    int64_t tile_rows, tile_columns, tiles_across;
} product;

static void pack_range(void *context, int worker, int64_t begin, int64_t end)
{
    const product *p = context;
    (void)worker;
    for (int64_t strip = begin; strip < end; strip++) {
        if (strip < p->a.strips)
            pack_one(&p->a, strip);
        else
            pack_one(&p->b, strip - p->a.strips);
    }
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

static void multiply_range(void *context, int worker, int64_t begin, int64_t end)
{
    const product *p = context;
    int64_t depth = p->a.depth, ldc = p->b.lines;
    (void)worker;
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t i = tile / p->tiles_across * p->tile_rows;
        int64_t j = tile % p->tiles_across * p->tile_columns;
        simd()->multiply_packed(at_most(p->a.lines - i, p->tile_rows),
                                at_most(ldc - j, p->tile_columns), depth,
                                p->a.packed + i * depth, p->b.packed + j * depth,
                                p->c + i * ldc + j, ldc);
    }
}

int linear_is_small(int64_t m, int64_t n, int64_t k)
{
    return (double)m * (double)n * (double)k < 1 << 20; /* some 20 microseconds */
}

static int64_t tile_count(const product *p)
{
    return (p->a.lines + p->tile_rows - 1) / p->tile_rows * p->tiles_across;
}

/* Tiles whose panels fit the second-level cache beside each other, or smaller ones, so
 * that threads end together. Where a tile ends makes no difference to a sum. */
static void divide(product *p, int threads, int64_t strip_rows)
{
    enum { MOST_STRIPS = 12, COLUMNS = 256, TILES_OF_THREAD = 4 };
    p->tile_columns = COLUMNS;
    p->tiles_across = (p->b.lines + COLUMNS - 1) / COLUMNS;
    for (int64_t strips = MOST_STRIPS;; strips /= 2) {
        p->tile_rows = strips * strip_rows;
        if (strips < 4 || threads == 1 || tile_count(p) >= threads * TILES_OF_THREAD) return;
    }
}

static void multiply_on(int threads, int64_t m, int64_t n, int64_t k, linear_matrix a,
                        linear_matrix b, float *c, float *scratch)
{
    int64_t rows = simd()->block_rows, columns = simd()->block_columns;
    linear_matrix b_lines = {b.data, b.dtype, b.column_stride, b.row_stride};
    product p = {.a = operand_of(a, m, k, rows, scratch), .c = c};
    p.b = operand_of(b_lines, n, k, columns, scratch + p.a.strips * rows * k);
    if (linear_is_small(m, n, k)) threads = 1;
    divide(&p, threads, rows);
    pool_for(threads, p.a.strips + p.b.strips, 4, pack_range, &p);
    pool_for(threads, tile_count(&p), 1, multiply_range, &p);
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

uint64_t linear_scratch_floats(int64_t m, int64_t n, int64_t k)
{
    uint64_t lines = saturating_sum(saturating_sum((uint64_t)m, (uint64_t)n),
                                    SIMD_MOST_ROWS + SIMD_MOST_COLUMNS);
    uint64_t packed = saturating_product(lines, (uint64_t)k);
    return packed > LINEAR_PANEL_FLOATS ? packed : LINEAR_PANEL_FLOATS;
}

uint64_t linear_layer_scratch_floats(int64_t tokens, int64_t in, int64_t out)
{
    uint64_t forward = linear_scratch_floats(tokens, out, in);
    uint64_t of_input = linear_scratch_floats(tokens, in, out);
    uint64_t of_weight = linear_scratch_floats(out, in, tokens);
    uint64_t most = forward > of_input ? forward : of_input;
    return most > of_weight ? most : of_weight;
}
