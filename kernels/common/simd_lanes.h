/*
 * simd_lanes.h - vectors of SIMD_BYTES, spelled out (an extension of gcc and
 * clang), because compilers keep an array of plain floats in memory. For the
 * families' files, under their target, before multiply_add and larger.
 */
#include <math.h>
#include <string.h>

enum { LANES = SIMD_BYTES / sizeof(float) };
typedef float lanes __attribute__((vector_size(SIMD_BYTES)));
typedef int32_t int_lanes __attribute__((vector_size(SIMD_BYTES)));
typedef uint32_t uint_lanes __attribute__((vector_size(SIMD_BYTES)));

static inline lanes load(const float *src)
{
    lanes value;
    memcpy(&value, src, sizeof value);
    return value;
}

static inline void store(float *dst, lanes value)
{
    memcpy(dst, &value, sizeof value);
}

static inline lanes all_of(float value)
{
    return value - (lanes){0};
}
