/*
 * simd_body.h - the loops of simd.h, for the family whose file includes this: it
 * has defined lanes, LANES, BLOCK_ROWS, BLOCK_VECTORS, multiply_add, larger,
 * largest_lane, sum_of_lanes and what simd_rows.h wants; SIMD_EXP2 says that it has
 * also defined exp2_nonpositive_lanes.
 * All are static but the table, so that no other file's code can be linked to them.
 */

enum { BLOCK_COLUMNS = BLOCK_VECTORS * LANES };

/* ---- the rest of a loop ------------------------------------------------------- */

/* Lanes of which the first `count` count; the others are `rest`. */
static inline __attribute__((always_inline)) lanes load_some(const float *src, int64_t count, float rest)
{
    lanes value = all_of(rest);
    memcpy(&value, src, (size_t)count * sizeof *src);
    return value;
}

static inline __attribute__((always_inline)) void store_some(float *dst, lanes value, int64_t count)
{
    memcpy(dst, &value, (size_t)count * sizeof *dst);
}

/* ---- products ---------------------------------------------------------------- */

/* c[BLOCK_ROWS, BLOCK_COLUMNS] = (adds ? c : 0) + a b, over depth. Element (r, p)
 * of a is at a[r * a_row + p * a_depth]; inlined where one of the two is a
 * constant. The sums stay in registers; c comes nearer while they grow. */
static inline __attribute__((always_inline)) void
multiply_block(int64_t depth, const float *restrict a, int64_t a_row, int64_t a_depth,
               const float *restrict b, int64_t ldb, float *restrict c, int64_t ldc, int adds)
{
    enum { FOR_WRITING = 1 };
    lanes sums[BLOCK_ROWS][BLOCK_VECTORS];
    for (int r = 0; r < BLOCK_ROWS; r++)
        for (int v = 0; v < BLOCK_VECTORS; v++) {
            sums[r][v] = all_of(0);
            __builtin_prefetch(c + r * ldc + v * LANES, FOR_WRITING);
        }
    for (int64_t p = 0; p < depth; p++) {
        lanes line[BLOCK_VECTORS];
        for (int v = 0; v < BLOCK_VECTORS; v++) line[v] = load(b + v * LANES);
        for (int r = 0; r < BLOCK_ROWS; r++) {
            lanes factor = all_of(a[r * a_row]);
            for (int v = 0; v < BLOCK_VECTORS; v++)
                sums[r][v] = multiply_add(factor, line[v], sums[r][v]);
        }
        a += a_depth;
        b += ldb;
    }
    for (int r = 0; r < BLOCK_ROWS; r++)
        for (int v = 0; v < BLOCK_VECTORS; v++) {
            float *at = c + r * ldc + v * LANES;
            store(at, adds ? load(at) + sums[r][v] : sums[r][v]);
        }
}

static void multiply_strips(int64_t depth, const float *a, const float *b, float *c, int64_t ldc,
                            int adds)
{
    multiply_block(depth, a, 1, BLOCK_ROWS, b, BLOCK_COLUMNS, c, ldc, adds);
}

/* A block that sticks out of c. */
static void multiply_edge(int64_t rows, int64_t columns, int64_t depth, const float *a,
                          const float *b, float *c, int64_t ldc, int adds)
{
    float block[BLOCK_ROWS * BLOCK_COLUMNS];
    multiply_strips(depth, a, b, block, BLOCK_COLUMNS, 0);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++)
            c[r * ldc + j] = block[r * BLOCK_COLUMNS + j] + (adds ? c[r * ldc + j] : 0);
}

/* The strip of b stays, that of a passes: of the two it is the one that is read faster. */
static void multiply_packed(int64_t rows, int64_t columns, int64_t depth, const float *a,
                            const float *b, float *c, int64_t ldc, int adds)
{
    for (int64_t j = 0; j < columns; j += BLOCK_COLUMNS)
        for (int64_t i = 0; i < rows; i += BLOCK_ROWS) {
            const float *a_strip = a + i * depth, *b_strip = b + j * depth;
            float *block = c + i * ldc + j;
            if (rows - i >= BLOCK_ROWS && columns - j >= BLOCK_COLUMNS)
                multiply_strips(depth, a_strip, b_strip, block, ldc, adds);
            else
                multiply_edge(rows - i < BLOCK_ROWS ? rows - i : BLOCK_ROWS,
                              columns - j < BLOCK_COLUMNS ? columns - j : BLOCK_COLUMNS, depth,
                              a_strip, b_strip, block, ldc, adds);
        }
}

static void multiply_tile(int64_t rows, int64_t columns, int64_t depth, const float *a,
                          const float *b, int64_t ldb, float *c, int64_t ldc, int adds)
{
    for (int64_t j = 0; j < columns; j += BLOCK_COLUMNS)
        for (int64_t i = 0; i < rows; i += BLOCK_ROWS)
            multiply_block(depth, a + i * SIMD_TILE, SIMD_TILE, 1, b + j, ldb, c + i * ldc + j,
                           ldc, adds);
}

/* ---- exponentials ------------------------------------------------------------- */

#ifndef SIMD_EXP2
/* 2^x for x <= 0: below 2^-126 it is 2^-126, which vanishes beside a sum that holds
 * at least one 1. A number added that leaves no bits for a fraction, and taken off
 * again, rounds to the nearest whole; its lowest bits are that whole. The polynomial
 * of degree 6 that is closest to 2^f on [-1/2, 1/2], with 1 in front: 8e-8. */
static inline lanes exp2_nonpositive_lanes(lanes x)
{
    const float no_fraction = 0x1.8p23f;
    lanes clamped = larger(all_of(-126.0f), x); /* this way round keeps a NaN */
    lanes shifted = clamped + no_fraction, f = clamped - (shifted - no_fraction);
    lanes p = all_of(1.5345811927e-4f);
    p = multiply_add(p, f, all_of(1.3399931219e-3f));
    p = multiply_add(p, f, all_of(9.6184889574e-3f));
    p = multiply_add(p, f, all_of(5.5503287770e-2f));
    p = multiply_add(p, f, all_of(2.4022646891e-1f));
    p = multiply_add(p, f, all_of(6.9314720574e-1f));
    p = multiply_add(p, f, all_of(1.0f));
    return (lanes)((uint_lanes)p + ((uint_lanes)shifted << 23));
}
#endif

static float row_max(int64_t count, const float *row)
{
    lanes most = load_some(row, count < LANES ? count : LANES, row[0]);
    int64_t j = LANES;
    for (; j + LANES <= count; j += LANES) most = larger(load(row + j), most);
    if (j < count) most = larger(load_some(row + j, count - j, row[0]), most);
    return largest_lane(most);
}

static float exponentiate(int64_t count, float factor, float max, float *row)
{
    lanes sum = all_of(0);
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        lanes weight = exp2_nonpositive_lanes((load(row + j) - max) * factor);
        sum += weight;
        store(row + j, weight);
    }
    if (j < count) {
        lanes x = load_some(row + j, count - j, -INFINITY);
        store_some(row + j, exp2_nonpositive_lanes((x - max) * factor), count - j);
        for (; j < count; j++) sum[0] += row[j];
    }
    return sum_of_lanes(sum);
}

static void scale(int64_t count, float factor, float *row)
{
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) store(row + j, load(row + j) * factor);
    for (; j < count; j++) row[j] *= factor;
}

static inline float tile_row_max(const float *row)
{
    lanes most = load(row);
    for (int j = LANES; j < SIMD_TILE; j += LANES) most = larger(load(row + j), most);
    return largest_lane(most);
}

/* row[j] = 2^(row[j] - max); returns their sum. */
static inline float exponentiate_row(float *row, float max)
{
    lanes sum = all_of(0);
    for (int j = 0; j < SIMD_TILE; j += LANES) {
        lanes weight = exp2_nonpositive_lanes(load(row + j) - max);
        sum += weight;
        store(row + j, weight);
    }
    return sum_of_lanes(sum);
}

static void online_softmax(int64_t rows, float *scores, float *max, float *sum, float *out,
                           int64_t dim)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = scores + i * SIMD_TILE, before = max[i], now = tile_row_max(row);
        if (now > before) {
            float correction = exp2_nonpositive_lanes(all_of(before - now))[0];
            max[i] = now;
            sum[i] *= correction;
            scale(dim, correction, out + i * dim);
        }
        sum[i] += exponentiate_row(row, max[i]);
    }
}

static void probabilities(int64_t rows, float factor, const float *lse, const float *delta,
                          float *scores, float *products)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i * SIMD_TILE; j < (i + 1) * SIMD_TILE; j += LANES) {
            lanes x = multiply_add(load(scores + j), all_of(factor), all_of(-lse[i]));
            lanes p = exp2_nonpositive_lanes(x);
            store(scores + j, p);
            store(products + j, p * (load(products + j) - delta[i]));
        }
}

/* ---- transposing ------------------------------------------------------------------ */

typedef float quad __attribute__((vector_size(16)));
typedef int32_t int_quad __attribute__((vector_size(16)));

#if defined(__clang__)
#define SIMD_SHUFFLE(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define SIMD_SHUFFLE(x, y, a, b, c, d) __builtin_shuffle(x, y, (int_quad){a, b, c, d})
#endif

static inline void transpose_4x4(const float *src, int64_t src_stride, float *dst,
                                 int64_t dst_stride)
{
    quad in[4], half[4], out[4];
    for (int i = 0; i < 4; i++) memcpy(&in[i], src + i * src_stride, sizeof in[i]);
    half[0] = SIMD_SHUFFLE(in[0], in[1], 0, 4, 1, 5);
    half[1] = SIMD_SHUFFLE(in[0], in[1], 2, 6, 3, 7);
    half[2] = SIMD_SHUFFLE(in[2], in[3], 0, 4, 1, 5);
    half[3] = SIMD_SHUFFLE(in[2], in[3], 2, 6, 3, 7);
    out[0] = SIMD_SHUFFLE(half[0], half[2], 0, 1, 4, 5);
    out[1] = SIMD_SHUFFLE(half[0], half[2], 2, 3, 6, 7);
    out[2] = SIMD_SHUFFLE(half[1], half[3], 0, 1, 4, 5);
    out[3] = SIMD_SHUFFLE(half[1], half[3], 2, 3, 6, 7);
    for (int i = 0; i < 4; i++) memcpy(dst + i * dst_stride, &out[i], sizeof out[i]);
}

/* Up to four lines. */
static inline void transpose_lines(int64_t lines, int64_t length, const float *src,
                                   int64_t src_stride, float *dst, int64_t dst_stride)
{
    int64_t j = 0;
    for (; lines == 4 && j + 4 <= length; j += 4)
        transpose_4x4(src + j, src_stride, dst + j * dst_stride, dst_stride);
    for (; j < length; j++)
        for (int64_t i = 0; i < lines; i++) dst[j * dst_stride + i] = src[i * src_stride + j];
}

/* So much of four lines at a time as a cache line has of each: lines that are a power of
 * two apart push one another out of the first-level cache. */
static void transpose(int64_t lines, int64_t length, const float *src, int64_t src_stride,
                      float *dst, int64_t dst_stride)
{
    enum { CACHE_LINE = 16 };
    for (int64_t j = 0; j < length; j += CACHE_LINE)
        for (int64_t i = 0; i < lines; i += 4)
            transpose_lines(lines - i < 4 ? lines - i : 4,
                            length - j < CACHE_LINE ? length - j : CACHE_LINE,
                            src + i * src_stride + j, src_stride, dst + j * dst_stride + i,
                            dst_stride);
}

/* ---- GELU ---------------------------------------------------------------------- */

/* With u = sqrt(2 / pi) (x + 0.044715 x^3) and s = 1 / (1 + exp(-2 u)), the tanh of
 * ffn.h's GELU is 2 s - 1, so gelu(x) = x s. exp is taken of -|2 u| only. */
static inline lanes gelu_sigmoid(lanes x)
{
    const float twice_log2_e = 2 * 1.44269504088896340736f * 0.79788456080286535588f;
    lanes u = twice_log2_e * multiply_add(0.044715f * x * x, x, x);
    lanes magnitude = larger(-u, u);
    int_lanes vanishes = magnitude > 126.0f, negative = u < 0; /* x may be larger than 2^126 */
    lanes e = (lanes)(~vanishes & (int_lanes)exp2_nonpositive_lanes(-magnitude));
    lanes inverse = 1.0f / (1.0f + e), of_negative = e * inverse;
    return (lanes)((negative & (int_lanes)of_negative) | (~negative & (int_lanes)inverse));
}

static inline lanes gelu_lanes(lanes x)
{
    return x * gelu_sigmoid(x);
}

/* s + x s' with s' = s (1 - s) 2 u'. u' is kept finite: 1 - s is 0 long before. */
static inline lanes gelu_gradient_lanes(lanes x)
{
    const float sqrt_8_over_pi = 2 * 0.79788456080286535588f;
    lanes s = gelu_sigmoid(x), near = larger(all_of(-100), -larger(x, -x));
    lanes twice_slope = sqrt_8_over_pi * (1 + 3 * 0.044715f * near * near);
    return multiply_add(x * s * (1 - s), twice_slope, s);
}

static void gelu(int64_t count, float *x)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store(x + i, gelu_lanes(load(x + i)));
    if (i < count) store_some(x + i, gelu_lanes(load_some(x + i, count - i, 0)), count - i);
}

static void multiply_gelu_gradient(int64_t count, const float *pre, float *product)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(product + i, load(product + i) * gelu_gradient_lanes(load(pre + i)));
    if (i < count) {
        lanes slope = gelu_gradient_lanes(load_some(pre + i, count - i, 0));
        store_some(product + i, load_some(product + i, count - i, 0) * slope, count - i);
    }
}

#include "simd_rows.h"

const simd_functions SIMD_TABLE = {
    .name = SIMD_NAME,
    .block_rows = BLOCK_ROWS,
    .block_columns = BLOCK_COLUMNS,
    .multiply_packed = multiply_packed,
    .multiply_tile = multiply_tile,
    .online_softmax = online_softmax,
    .probabilities = probabilities,
    .transpose = transpose,
    .row_max = row_max,
    .exponentiate = exponentiate,
    .scale = scale,
    .gelu = gelu,
    .multiply_gelu_gradient = multiply_gelu_gradient,
    .widen = widen,
    .narrow = narrow,
    .copy = copy,
    .fill = fill,
    .settle = settle,
    .add_scaled = add_scaled,
    .sum = sum,
    .sum_of_squares = sum_of_squares,
    .sum_words = sum_words,
    .normalize = normalize,
    .add_norm_gradients = add_norm_gradients,
    .norm_input_gradient = norm_input_gradient,
    .add_exponentials = add_exponentials,
    .softmax_gradient = softmax_gradient,
    .adamw = adamw,
    .sgd = sgd,
};
