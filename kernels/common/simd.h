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

/* optimizer.h's AdamW with everything that does not depend on the element worked
 * out: decay = 1 - learning_rate * weight_decay, rate = learning_rate / (1 -
 * beta1^t), root = 1 / sqrt(1 - beta2^t), rest = 1 - beta, and the gradient's scale. */
typedef struct simd_adamw {
    float beta1, beta2, rest1, rest2, decay, rate, root, epsilon, scale;
} simd_adamw;

typedef struct simd_functions {
    const char *name;                  /* "sse2", "avx2", "avx512", "neon" */
    int64_t block_rows, block_columns; /* of a product that stays in registers */

    /* c[rows, columns] = (adds ? c : 0) + a[rows, depth] b[depth, columns]. a: strips of
     * block_rows rows, b: strips of block_columns columns, of each strip one line for
     * every depth, what is beyond the matrix 0. Rows of c are ldc apart. */
    void (*multiply_packed)(int64_t rows, int64_t columns, int64_t depth, const float *a,
                            const float *b, float *c, int64_t ldc, int adds);

    /* c[rows, columns] = (adds ? c : 0) + a[rows, depth] b[depth, columns]. Rows of a
     * are SIMD_TILE apart, of b ldb, of c ldc. rows is rounded up to block_rows;
     * block_columns divides columns; depth is at most SIMD_TILE. */
    void (*multiply_tile)(int64_t rows, int64_t columns, int64_t depth, const float *a,
                          const float *b, int64_t ldb, float *c, int64_t ldc, int adds);

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

    /* dst[j * dst_stride + i] = src[i * src_stride + j] for i < lines and j < length. */
    void (*transpose)(int64_t lines, int64_t length, const float *src, int64_t src_stride,
                      float *dst, int64_t dst_stride);

    /* Of a row of at least 1: its largest element; row = 2^(factor * (row - max)) for
     * a max that is none smaller and a positive factor, returning the sum; row *= factor. */
    float (*row_max)(int64_t count, const float *row);
    float (*exponentiate)(int64_t count, float factor, float max, float *row);
    void (*scale)(int64_t count, float factor, float *row);

    /* x = gelu(x), and product *= gelu'(pre): ffn.h's formula. */
    void (*gelu)(int64_t count, float *x);
    void (*multiply_gelu_gradient)(int64_t count, const float *pre, float *product);

    /* ---- rows that memory bounds, of any count and alignment ---- */

    /* f32 from bf16 and back, to nearest even. */
    void (*widen)(int64_t count, const uint16_t *src, float *dst);
    void (*narrow)(int64_t count, const float *src, uint16_t *dst);

    /* dst = x, = value, = x + factor * y; dst may be x. around: past the caches, see
     * simd_goes_around; other threads see it behind settle(), which waits for the memory
     * and so is for the end of a thread's rows, not of each. */
    void (*copy)(int64_t count, const float *x, float *dst, int around);
    void (*fill)(int64_t count, float value, float *dst, int around);
    void (*add_scaled)(int64_t count, const float *x, float factor, const float *y, float *dst,
                       int around);
    void (*settle)(void);

    /* Of x, of (x - mean)^2; of words modulo 2^32. */
    float (*sum)(int64_t count, const float *x);
    float (*sum_of_squares)(int64_t count, const float *x, float mean);
    uint32_t (*sum_words)(int64_t count, const uint32_t *x);

    /* norm.h's formulas for a row. bias, dsum: NULL, there is none. Of the gradients
     * the first adds to weight_sums and bias_sums and says sums = {of g, of g xhat};
     * statistics = {mean, rstd, mean of g, mean of g xhat}. */
    void (*normalize)(int64_t count, const float *x, float mean, float rstd, const float *weight,
                      const float *bias, float *y, int around);
    void (*add_norm_gradients)(int64_t count, float mean, float rstd, const float *x,
                               const float *dy, const float *weight, float *weight_sums,
                               float *bias_sums, float *sums);
    void (*norm_input_gradient)(int64_t count, const float *statistics, const float *x,
                                const float *dy, const float *weight, const float *dsum,
                                float *dx, int around);

    /* *sum, of e^(x - *max) over what came before, goes on over x; *max becomes the
     * largest. A sum starts as 0, relative to -FLT_MAX. dst = scale * e^(x - lse). */
    void (*add_exponentials)(int64_t count, const float *x, float *max, float *sum);
    void (*softmax_gradient)(int64_t count, float lse, float scale, const float *x, float *dst,
                             int around);

    /* optimizer.h's steps, in place. */
    void (*adamw)(int64_t count, const simd_adamw *factors, const float *gradient, float *value,
                  float *first, float *second);
    void (*sgd)(int64_t count, float rate, float momentum, float scale, const float *gradient,
                float *value, float *first);
} simd_functions;

/* The widest family that was built and that the processor has; the environment's
 * GPUBENCH_SIMD=sse2|avx2|avx512|neon takes a lower one. Chosen once. */
const simd_functions *simd(void);

/* Why what GPUBENCH_SIMD asks for is not taken; NULL: it is, or nothing was asked for. */
const char *simd_refusal(void);

/* For tables: what `simd` and `threads` run on, as "avx2" and "avx2, 2 threads". */
const char *simd_runs_on(void);
const char *simd_runs_on_threads(void);

/* Whether so many bytes of results should go around the caches: they would not be
 * there any more when somebody reads them, and a line that is written whole need not
 * be read first. */
int simd_goes_around(uint64_t bytes);

/* All that were built; NULL where the processor lacks it. */
const simd_functions *simd_family(int index);
enum { SIMD_FAMILIES = 3 };

#endif
