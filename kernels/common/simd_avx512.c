/*
 * simd_avx512.c - vectors of 64 bytes: AVX-512, its foundation and DQ.
 */
#include "simd_families.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx2,fma")
#endif

#define SIMD_NAME "avx512"
#define SIMD_BYTES 64
#include "simd_lanes.h"

enum { BLOCK_ROWS = 12, BLOCK_VECTORS = 2 }; /* of 32 registers 24 */

static inline lanes multiply_add(lanes x, lanes y, lanes sum)
{
    return (lanes)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)sum);
}

/* y, where one of them is no number. */
static inline lanes larger(lanes x, lanes y)
{
    return (lanes)_mm512_max_ps((__m512)x, (__m512)y);
}

static inline float largest_lane(lanes x)
{
    return _mm512_reduce_max_ps((__m512)x);
}

static inline float sum_of_lanes(lanes x)
{
    return _mm512_reduce_add_ps((__m512)x);
}

static inline lanes square_root(lanes x)
{
    return (lanes)_mm512_sqrt_ps((__m512)x);
}

static inline void store_around(float *dst, lanes value)
{
    _mm512_stream_ps(dst, (__m512)value);
}

static inline void settle(void)
{
    _mm_sfence();
}

#define SIMD_TABLE simd_avx512
#include "simd_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
