/*
 * simd_avx2.c - vectors of 32 bytes: AVX2 with FMA.
 */
#include "simd_families.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define SIMD_NAME "avx2"
#define SIMD_BYTES 32
#include "simd_lanes.h"

enum { BLOCK_ROWS = 6, BLOCK_VECTORS = 2 }; /* of 16 registers 12 */

static inline lanes multiply_add(lanes x, lanes y, lanes sum)
{
    return (lanes)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)sum);
}

/* y, where one of them is no number. */
static inline lanes larger(lanes x, lanes y)
{
    return (lanes)_mm256_max_ps((__m256)x, (__m256)y);
}

static inline lanes square_root(lanes x)
{
    return (lanes)_mm256_sqrt_ps((__m256)x);
}

static inline void store_around(float *dst, lanes value)
{
    _mm256_stream_ps(dst, (__m256)value);
}

static inline void settle(void)
{
    _mm_sfence();
}

#define SIMD_TABLE simd_avx2
#include "simd_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
