/*
 * tile.h - what the forward and the backward variants on the host
 * share: sizes that cannot overflow, and products of small f32 tiles.
 */
#ifndef ATTENTION_TILE_H
#define ATTENTION_TILE_H

#include "attention.h"
#include "../common/oracle.h"
#include "../common/lanes.h"
#include "../common/saturating.h"

#include <math.h>
#include <string.h>

static inline int is_valid(const attention_shape *s)
{
    return s->batch > 0 && s->heads > 0 && s->tokens > 0 && s->head_dim > 0;
}

/* Elements of q, which k, v and out have too. */
static inline uint64_t element_count(const attention_shape *s)
{
    if (!is_valid(s)) return 0;
    uint64_t rows = saturating_product((uint64_t)s->batch, (uint64_t)s->heads);
    rows = saturating_product(rows, (uint64_t)s->tokens);
    return saturating_product(rows, (uint64_t)s->head_dim);
}

static inline int64_t visible_keys(const attention_shape *s, int64_t row)
{
    return s->causal ? row + 1 : s->tokens;
}

/* Of one query and one key, scaled. */
static inline double score_in_double(const attention_shape *s, const float *q_row,
                                     const float *k_row)
{
    return oracle_dot(q_row, k_row, s->head_dim) / sqrt((double)s->head_dim);
}

static inline size_t workspace_of(uint64_t floats)
{
    uint64_t bytes = saturating_product(floats, sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

/* dst[column * ld + row] = src[row * columns + column] */
static inline void transpose(const float *restrict src, int64_t rows, int64_t columns,
                             float *restrict dst, int64_t ld)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) dst[c * ld + i] = src[i * columns + c];
}

/* y[0..n) += factor * x[0..n) */
static inline void add_scaled(int64_t n, float factor, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] += factor * x[i];
}

/* ---- tiles ------------------------------------------------------------- */

enum { TILE_ROWS = 64, TILE_KEYS = 64, BLOCK_ROWS = 4, BLOCK_COLUMNS = 2 * LANES };

/* head_dim rounded up so that register blocks need no bounds checks. */
static inline int64_t padded_dim(int64_t head_dim)
{
    return (head_dim + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS * BLOCK_COLUMNS;
}

static inline int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* c[BLOCK_ROWS, BLOCK_COLUMNS] += a[BLOCK_ROWS, depth] b[depth, BLOCK_COLUMNS]:
 * the sums stay in registers. */
static inline void multiply_block(int64_t depth, const float *restrict a, int64_t lda,
                                  const float *restrict b, int64_t ldb, float *restrict c,
                                  int64_t ldc)
{
    float_lanes left[BLOCK_ROWS], right[BLOCK_ROWS];
    for (int r = 0; r < BLOCK_ROWS; r++) {
        left[r] = load_lanes(c + r * ldc);
        right[r] = load_lanes(c + r * ldc + LANES);
    }
    for (int64_t i = 0; i < depth; i++) {
        float_lanes b_left = load_lanes(b + i * ldb), b_right = load_lanes(b + i * ldb + LANES);
        for (int r = 0; r < BLOCK_ROWS; r++) {
            left[r] += a[r * lda + i] * b_left;
            right[r] += a[r * lda + i] * b_right;
        }
    }
    for (int r = 0; r < BLOCK_ROWS; r++) {
        store_lanes(c + r * ldc, left[r]);
        store_lanes(c + r * ldc + LANES, right[r]);
    }
}

/* c[rows, columns] += a[rows, depth] b[depth, columns], contiguous. rows is
 * rounded up to BLOCK_ROWS, which divides TILE_ROWS; BLOCK_COLUMNS divides
 * columns. */
static inline void multiply_tile(int64_t rows, int64_t columns, int64_t depth, const float *a,
                                 const float *b, float *c)
{
    for (int64_t j = 0; j < columns; j += BLOCK_COLUMNS)
        for (int64_t i = 0; i < rows; i += BLOCK_ROWS)
            multiply_block(depth, a + i * depth, depth, b + j, columns, c + i * columns + j,
                           columns);
}

/* 2^x for x <= 0. Nearest integer by truncation towards zero of x - 1/2, then
 * the Taylor series of 2^f on [-1/2, 1/2] to degree 7: its remainder is below
 * 1e-8. Below 2^-126, -infinity included, the result is 2^-126, which vanishes
 * beside a sum that holds at least one 1. No branch, so that loops over it
 * vectorize, and nothing that a compiler may reorder. */
static inline float exp2_nonpositive(float x)
{
    float clamped = x < -126.0f ? -126.0f : x; /* this way round keeps a NaN */
    int32_t whole = (int32_t)(clamped >= -126.0f ? clamped - 0.5f : 0.0f);
    float f = clamped - (float)whole;
    float p = 1.5252733804e-5f;
    p = p * f + 1.5403530394e-4f;
    p = p * f + 1.3333558146e-3f;
    p = p * f + 9.6181291076e-3f;
    p = p * f + 5.5504108665e-2f;
    p = p * f + 2.4022650696e-1f;
    p = p * f + 6.9314718056e-1f;
    p = p * f + 1.0f;
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (uint32_t)whole << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

#endif
