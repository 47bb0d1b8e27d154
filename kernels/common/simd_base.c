/*
 * simd_base.c - vectors of 16 bytes, which every x86-64 (SSE2) and every 64-bit
 * Arm (NEON) has. Elsewhere the compiler makes of them what it can.
 */
#include "simd_families.h"

/* A 32-bit x86 without SSE passes no vectors and computes in long double. */
#if defined(__i386__) && !defined(__SSE2_MATH__) && !defined(__clang__)
#pragma GCC target("sse2,fpmath=sse")
#endif

#if defined(__aarch64__)
#include <arm_neon.h>
#define SIMD_NAME "neon"
#elif defined(__x86_64__) || defined(__i386__)
#include <emmintrin.h>
#define SIMD_NAME "sse2"
#else
#define SIMD_NAME "vectors"
#endif

#define SIMD_BYTES 16
#include "simd_lanes.h"

#if defined(__aarch64__)
enum { BLOCK_ROWS = 12, BLOCK_VECTORS = 2 }; /* of 32 registers 24 */

static inline lanes multiply_add(lanes x, lanes y, lanes sum)
{
    return (lanes)vfmaq_f32((float32x4_t)sum, (float32x4_t)x, (float32x4_t)y);
}
#else
enum { BLOCK_ROWS = 4, BLOCK_VECTORS = 2 }; /* of 16 registers 8, and the products' */

static inline lanes multiply_add(lanes x, lanes y, lanes sum)
{
    return x * y + sum;
}
#endif

static inline lanes larger(lanes x, lanes y)
{
    int_lanes greater = x > y;
    return (lanes)((greater & (int_lanes)x) | (~greater & (int_lanes)y));
}

static inline int any_greater(lanes x, lanes y)
{
    int_lanes greater = x > y;
    return (greater[0] | greater[1] | greater[2] | greater[3]) != 0;
}

static inline float largest_lane(lanes x)
{
    float left = x[0] > x[2] ? x[0] : x[2], right = x[1] > x[3] ? x[1] : x[3];
    return left > right ? left : right;
}

static inline float sum_of_lanes(lanes x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

#if defined(__x86_64__) || defined(__i386__)
static inline lanes square_root(lanes x)
{
    return (lanes)_mm_sqrt_ps((__m128)x);
}

static inline void store_around(float *dst, lanes value)
{
    _mm_stream_ps(dst, (__m128)value);
}

static inline void settle(void)
{
    _mm_sfence();
}
#else /* through the caches, in order */
static inline lanes square_root(lanes x)
{
    for (int l = 0; l < LANES; l++) x[l] = sqrtf(x[l]);
    return x;
}

static inline void store_around(float *dst, lanes value)
{
    store(dst, value);
}

static inline void settle(void)
{
}
#endif

#define SIMD_TABLE simd_base
#include "simd_body.h"
