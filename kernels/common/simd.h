/*
 * simd.h - the loops that all operations on the host are made of, once for every
 * family of vector instructions, and which family this processor has.
 *
 * Each family is a file (simd_avx2.c, ...) that includes simd_body.h under its own
 * target; nothing else is compiled for more than the platform's least processor.
 * No resolver of the loader chooses (ifunc, target_clones): musl has none, and
 * sanitizers are not ready when it runs.
 */
#ifndef KERNEL_SIMD_H
#define KERNEL_SIMD_H

#include <stdint.h>

/* Of multiply_tile and online_softmax. Every family's block_rows divides
 * SIMD_TILE_ROWS and its block_columns SIMD_TILE. */
enum { SIMD_TILE_ROWS = 48, SIMD_TILE = 64, SIMD_MOST_ROWS = 16, SIMD_MOST_COLUMNS = 64 };

typedef struct simd_functions {
    const char *name;                  /* "sse2", "avx2", "avx512", "neon" */
    int64_t block_rows, block_columns; /* of a product that stays in registers */

    /* c[rows, columns] = a[rows, depth] b[depth, columns]. a: strips of block_rows
     * rows, b: strips of block_columns columns, of each strip one line for every
     * depth, what is beyond the matrix 0; strips are depth lines apart. Rows of c
     * are ldc apart. */
    void (*multiply_packed)(int64_t rows, int64_t columns, int64_t depth, const float *a,
                            const float *b, float *c, int64_t ldc);

    /* c[rows, columns] += a[rows, depth] b[depth, columns]. Rows of a are SIMD_TILE
     * apart, of b ldb, of c ldc. rows is rounded up to block_rows; block_columns
     * divides columns; depth is at most SIMD_TILE. */
    void (*multiply_tile)(int64_t rows, int64_t columns, int64_t depth, const float *a,
                          const float *b, int64_t ldb, float *c, int64_t ldc);

    /* The online softmax step of [rows, SIMD_TILE] scores in units of log2: they
     * become weights relative to the new maximum, and what was summed relative to
     * the old one, sum and out [rows, dim], is rescaled. SIMD_TILE's 16th part
     * divides dim. */
    void (*online_softmax)(int64_t rows, float *scores, float *max, float *sum, float *out,
                           int64_t dim);

    /* Of [rows, SIMD_TILE] scores and products with dout: score = 2^(factor * score -
     * lse[row]), the probability, and product = score * (product - delta[row]), the
     * score's gradient. */
    void (*probabilities)(int64_t rows, float factor, const float *lse, const float *delta,
                          float *scores, float *products);

    /* dst[j * SIMD_TILE + i] = src[i * SIMD_TILE + j] for i < rows, a multiple of 4,
     * and j < SIMD_TILE. */
    void (*transpose)(int64_t rows, const float *src, float *dst);

    /* Of a row of at least 1: its largest element; row = 2^(factor * (row - max)) for
     * a max that is none smaller and a positive factor, returning the sum; row *= factor. */
    float (*row_max)(int64_t count, const float *row);
    float (*exponentiate)(int64_t count, float factor, float max, float *row);
    void (*scale)(int64_t count, float factor, float *row);

    /* x = gelu(x), and product *= gelu'(pre): ffn.h's formula. */
    void (*gelu)(int64_t count, float *x);
    void (*multiply_gelu_gradient)(int64_t count, const float *pre, float *product);
} simd_functions;

/* The widest family that was built and that the processor has; the environment's
 * GPUBENCH_SIMD=sse2|avx2|avx512|neon takes a lower one. Chosen once. */
const simd_functions *simd(void);

/* For tables: what `simd` and `threads` run on, as "avx2" and "avx2, 2 threads". */
const char *simd_runs_on(void);
const char *simd_runs_on_threads(void);

/* All that were built; NULL where the processor lacks it. */
const simd_functions *simd_family(int index);
enum { SIMD_FAMILIES = 3 };

#endif
