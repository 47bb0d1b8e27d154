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

static inline float largest_lane(lanes x)
{
    __m128 half = _mm_max_ps(_mm256_castps256_ps128((__m256)x),
                             _mm256_extractf128_ps((__m256)x, 1));
    __m128 two = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline float sum_of_lanes(lanes x)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)x),
                             _mm256_extractf128_ps((__m256)x, 1));
    __m128 two = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
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

static inline int any_greater(lanes x, lanes y)
{
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)x, (__m256)y, _CMP_GT_OQ)) != 0;
}

#define SIMD_TABLE simd_avx2
#include "simd_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
