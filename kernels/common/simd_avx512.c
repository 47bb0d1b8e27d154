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

static inline int any_greater(lanes x, lanes y)
{
    return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_GT_OQ) != 0;
}

/* 2^x: what x has beyond the whole below it, and 2 to that whole, are an instruction
 * each, which take infinities and any NaN too. The polynomial of degree 5 that is closest
 * to 2^f on [0, 1], with 1 in front: of a single class the gradient is 0. 8e-8. Predicted:
 * 6 of the multipliers' cycles instead of 7, and 9 instructions instead of 13, for 16
 * numbers; cross-entropy in the first-level cache took 2.3 ns for 16 instead of 3.1. */
#define SIMD_EXP2
static inline lanes exp2_nonpositive_lanes(lanes x)
{
    enum { BELOW = 1 }; /* rounds down; of the fraction no bits are kept */
    lanes f = (lanes)_mm512_reduce_ps((__m512)x, BELOW);
    lanes p = all_of(1.8671300803e-3f);
    p = multiply_add(p, f, all_of(9.0170302947e-3f));
    p = multiply_add(p, f, all_of(5.5799913130e-2f));
    p = multiply_add(p, f, all_of(2.4016445014e-1f));
    p = multiply_add(p, f, all_of(6.9315131181e-1f));
    p = multiply_add(p, f, all_of(1.0f));
    return (lanes)_mm512_scalef_ps((__m512)p, (__m512)x);
}

#define SIMD_TABLE simd_avx512
#include "simd_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
