/*
 * ceilings.h - what a device can do at most: its memory read, written, copied
 * and combined (the triad of McCalpin, "Memory bandwidth and machine balance in
 * current high performance computers", 1995), and the rate of its libraries'
 * matrix products. Reports take their "of what is possible" from here.
 */
#ifndef CEILINGS_H
#define CEILINGS_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of arrays of `words` 32-bit words, aligned to 16 bytes and not overlapping,
 * words at least 1. Each operation uses what it needs:
 *   read:  *sum = the sum of all words of b, modulo 2^32, so that nothing is
 *          left out and the order does not matter;
 *   write: every word of a becomes value;
 *   copy:  a = b;
 *   triad: a = b + factor * c, words being f32. */
typedef struct ceilings_bandwidth_args {
    int64_t words;
    uint32_t *a;
    const uint32_t *b, *c;
    uint32_t *sum; /* on the device that computes it */
    uint32_t value;
    float factor;
} ceilings_bandwidth_args;

/* 4, 4, 8 and 12 bytes a word: each array once, without the reads that a CPU's
 * cache may add to a write. UINT64_MAX if the number does not fit, 0 if words
 * is not positive. */
uint64_t ceilings_read_bytes(int64_t words);
uint64_t ceilings_write_bytes(int64_t words);
uint64_t ceilings_copy_bytes(int64_t words);
uint64_t ceilings_triad_bytes(int64_t words);

/* c[m, n] = a[m, k] b[k, n], all row major, contiguous, of dtype, and each
 * dimension at least 1. */
typedef struct ceilings_gemm_args {
    int64_t m, n, k;
    kernel_dtype dtype;
    const void *a, *b;
    void *c;
} ceilings_gemm_args;

/* 2 m n k operations; m k + k n + m n elements. UINT64_MAX and 0 as above. */
uint64_t ceilings_gemm_flops(int64_t m, int64_t n, int64_t k);
uint64_t ceilings_gemm_bytes(int64_t m, int64_t n, int64_t k, kernel_dtype dtype);

/* The oracle for rows of c: a [rows, k] are rows of the left operand, b [k, n]
 * all of the right one; c: [rows, n]. */
void ceilings_gemm_reference(int64_t rows, int64_t n, int64_t k, const float *a, const float *b,
                             double *c);

/* The variants: launch shapes for the bandwidths, libraries for the product.
 * run returns KERNEL_ERROR_ARGUMENT for sizes that are not positive and for a
 * dtype that the row does not list. */
extern const kernel_table ceilings_read_cpu, ceilings_read_cuda;
extern const kernel_table ceilings_write_cpu, ceilings_write_cuda;
extern const kernel_table ceilings_copy_cpu, ceilings_copy_cuda;
extern const kernel_table ceilings_triad_cpu, ceilings_triad_cuda;
extern const kernel_table ceilings_gemm_cpu, ceilings_gemm_cuda;

#ifdef __cplusplus
}
#endif
#endif
