/*
 * simd.h - what the host's vectorized forward and backward variants share: loading
 * tiles of heads, and products of them; and the variants themselves, for the tables.
 */
#ifndef ATTENTION_SIMD_H
#define ATTENTION_SIMD_H

#include "attention.h"
#include "../common/element.h"
#include "../common/simd.h"

#include <string.h>

/* All of `threads`, or one for work of so few operations that waking another costs more:
 * some 20 microseconds. */
static inline int simd_threads_for(uint64_t flops, int threads)
{
    return flops < UINT64_C(1) << 21 ? 1 : threads;
}

/* Of `count` things, so many at a time. */
static inline int64_t simd_tiles(int64_t count, int64_t size)
{
    return count / size + (count % size > 0);
}

/* head_dim rounded up so that every family's blocks need no bounds checks. */
static inline int64_t simd_padded_dim(int64_t head_dim)
{
    return simd_tiles(head_dim, SIMD_TILE / 2) * (SIMD_TILE / 2);
}

/* dst[c][i] = element `first` + i * d + c of src for i < count, 0 for i from there
 * to SIMD_TILE. */
static inline void simd_load_transposed(const void *src, kernel_dtype dtype, int64_t first,
                                        int64_t count, int64_t d, float *dst)
{
    float square[SIMD_TILE * SIMD_TILE];
    if (count < SIMD_TILE) memset(dst, 0, (size_t)(d * SIMD_TILE) * sizeof *dst);
    if (element_is_f32(dtype)) {
        simd()->transpose(count, d, element_at(src, dtype, first), d, dst, SIMD_TILE);
        return;
    }
    for (int64_t from = 0; from < d; from += SIMD_TILE) {
        int64_t now = d - from < SIMD_TILE ? d - from : SIMD_TILE;
        for (int64_t i = 0; i < count; i++)
            kernel_to_f32(element_at(src, dtype, first + i * d + from), dtype, now,
                          square + i * SIMD_TILE);
        simd()->transpose(count, now, square, SIMD_TILE, dst + from * SIMD_TILE, SIMD_TILE);
    }
}

/* dst[i][c] = element `first` + i * d + c of src for i < count and c < d, 0 for the
 * rest of [rows, dim]. */
static inline void simd_load_padded(const void *src, kernel_dtype dtype, int64_t first,
                                    int64_t count, int64_t d, int64_t rows, int64_t dim,
                                    float *dst)
{
    if (count < rows || d < dim) memset(dst, 0, (size_t)(rows * dim) * sizeof *dst);
    for (int64_t i = 0; i < count; i++)
        kernel_to_f32(element_at(src, dtype, first + i * d), dtype, d, dst + i * dim);
}

/* The same times factor as [chunks of SIMD_TILE columns, rows, SIMD_TILE], which is
 * how multiply_tile wants a left operand that is wider than SIMD_TILE. */
static inline void simd_load_chunks(const void *src, kernel_dtype dtype, int64_t first,
                                    int64_t count, int64_t d, int64_t rows, float factor,
                                    float *dst)
{
    for (int64_t from = 0; from < d; from += SIMD_TILE, dst += rows * SIMD_TILE) {
        int64_t now = d - from < SIMD_TILE ? d - from : SIMD_TILE;
        if (count < rows || now < SIMD_TILE)
            memset(dst, 0, (size_t)(rows * SIMD_TILE) * sizeof *dst);
        for (int64_t i = 0; i < count; i++) {
            float *row = dst + i * SIMD_TILE;
            kernel_to_f32(element_at(src, dtype, first + i * d + from), dtype, now, row);
            for (int64_t c = 0; c < now; c++) row[c] *= factor;
        }
    }
}

/* c[rows, columns] = a b, a [rows, depth] in chunks, rows of c SIMD_TILE apart. */
static inline void simd_multiply_chunks(const simd_functions *vectors, int64_t rows,
                                        int64_t columns, int64_t depth, const float *a,
                                        const float *b, int64_t ldb, float *c)
{
    for (int64_t from = 0; from < depth; from += SIMD_TILE, a += SIMD_TILE_ROWS * SIMD_TILE)
        vectors->multiply_tile(rows, columns, depth - from < SIMD_TILE ? depth - from : SIMD_TILE,
                               a, b + from * ldb, ldb, c, SIMD_TILE, from > 0);
}

/* ---- forward variants --------------------------------------------------------- */

size_t attention_simd_workspace(const void *args);
size_t attention_threads_workspace(const void *args);
size_t attention_blas_workspace(const void *args);
const char *attention_blas_unsupported(const void *args);
int attention_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int attention_run_threads(const void *args, void *workspace, void *state, kernel_stream stream);
int attention_run_blas(const void *args, void *workspace, void *state, kernel_stream stream);

/* ---- backward variants -------------------------------------------------------- */

size_t attention_backward_simd_workspace(const void *args);
size_t attention_backward_threads_workspace(const void *args);
size_t attention_backward_blas_workspace(const void *args);
const char *attention_backward_blas_unsupported(const void *args);
int attention_backward_run_blas(const void *args, void *workspace, void *state,
                                kernel_stream stream);
int attention_backward_run_simd(const void *args, void *workspace, void *state,
                                kernel_stream stream);
int attention_backward_run_threads(const void *args, void *workspace, void *state,
                                   kernel_stream stream);

#endif
