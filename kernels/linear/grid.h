/*
 * grid.h - how a product on the host falls into parts, for the threads that share it.
 *
 * Each thread packs what it multiplies, for itself: then no line of packed memory comes
 * out of another core's cache, and nobody waits for a panel. What that costs grows with a
 * part's sides, and what it multiplies with its area, so parts are large and about square;
 * but they are as many as let all threads end together, and a few more where it costs
 * little, so that one which began late has less left.
 */
#ifndef LINEAR_GRID_H
#define LINEAR_GRID_H

#include <stdint.h>

static inline int64_t linear_pieces(int64_t count, int64_t size)
{
    /* What has a product is not empty, nor are its blocks. NOLINTNEXTLINE(*-core.DivideZero) */
    return count / size + (count % size > 0);
}

/* Parts of [rows, columns], those at the ends smaller. */
typedef struct linear_grid {
    int64_t rows, columns, across, parts;
} linear_grid;

/* Of a result [m, n] cut where blocks of registers end, or where such of a library may. */
static inline linear_grid linear_grid_of(int64_t m, int64_t n, int64_t down, int64_t across,
                                         int64_t block_rows, int64_t block_columns)
{
    linear_grid g;
    g.rows = linear_pieces(linear_pieces(m, down), block_rows) * block_rows;
    g.columns = linear_pieces(linear_pieces(n, across), block_columns) * block_columns;
    g.across = linear_pieces(n, g.columns);
    g.parts = linear_pieces(m, g.rows) * g.across;
    return g;
}

/* How long threads take, in multiplications of an element by a row: packing an element
 * takes as long as some 20 do. The fraction of a part is what one waits for the last. */
static inline double linear_grid_cost(const linear_grid *g, int threads)
{
    const double packing = 20, late = 1.0 / 16;
    double part = (double)g->rows * (double)g->columns +
                  packing * ((double)g->rows + (double)g->columns);
    return part * ((double)linear_pieces(g->parts, threads) + late);
}

static inline linear_grid linear_divide(int64_t m, int64_t n, int threads, int64_t block_rows,
                                        int64_t block_columns)
{
    enum { PARTS_OF_THREAD = 4 };
    linear_grid best = linear_grid_of(m, n, 1, 1, block_rows, block_columns);
    for (int64_t down = 1; down <= threads && threads > 1; down++)
        for (int64_t parts = threads; parts <= threads * PARTS_OF_THREAD; parts += threads) {
            linear_grid g = linear_grid_of(m, n, down, linear_pieces(parts, down), block_rows,
                                           block_columns);
            if (linear_grid_cost(&g, threads) < linear_grid_cost(&best, threads)) best = g;
        }
    return best;
}

#endif
