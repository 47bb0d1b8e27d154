/*
 * lanes.h - vectors of f32 as wide as the target's: 16 bytes for SSE2 and NEON,
 * 32 for AVX, 64 for AVX-512. They are spelled out (an extension of gcc and
 * clang) because gcc keeps an array of plain floats in memory, which halves the
 * speed. To be included before anything that computes.
 */
#ifndef KERNEL_LANES_H
#define KERNEL_LANES_H

/* A 32-bit x86 without SSE passes no vectors and computes in long double; no
 * processor that a GPU is plugged into lacks SSE2. clang assumes it by itself. */
#if defined(__i386__) && !defined(__SSE2_MATH__) && !defined(__clang__)
#pragma GCC target("sse2,fpmath=sse")
#endif

#include <stdint.h>
#include <string.h>

enum { LANE_BYTES = __BIGGEST_ALIGNMENT__, LANES = LANE_BYTES / sizeof(float) };
typedef float float_lanes __attribute__((vector_size(LANE_BYTES)));
typedef int32_t int_lanes __attribute__((vector_size(LANE_BYTES)));

static inline float_lanes load_lanes(const float *src)
{
    float_lanes value;
    memcpy(&value, src, sizeof value);
    return value;
}

static inline void store_lanes(float *dst, float_lanes value)
{
    memcpy(dst, &value, sizeof value);
}

#endif
