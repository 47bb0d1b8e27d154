/*
 * convert.h - host conversion between f32 and the dtypes of kernel.h, by bit
 * operations, so that references and CPU variants need neither CUDA headers
 * nor a compiler with _Float16.
 */
#ifndef KERNEL_CONVERT_H
#define KERNEL_CONVERT_H

#include <stdint.h>
#include <string.h>

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* f32 from one bf16, exactly: a bf16 is the upper half of an f32. In the
 * header because the CPU variants' inner loops use it. */
static inline float kernel_bf16_to_f32(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* bf16 from f32, to nearest even. A NaN stays a (quiet) NaN of its sign. */
static inline uint16_t kernel_bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    int is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)((is_nan ? bits | 0x00400000u : rounded) >> 16);
}

/* f32 from one IEEE binary16, exactly: its bits as those of an f32, whose exponent is
 * biased by 112 more, also that of a subnormal. */
static inline float kernel_f16_to_f32(uint16_t half)
{
    const float two_to_112 = 5192296858534827628530496329220096.0f;
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13, bits;
    float value;
    memcpy(&value, &magnitude, sizeof value);
    value *= two_to_112;
    memcpy(&bits, &value, sizeof bits);
    if (magnitude >= 0x0f800000u) bits = magnitude | 0x7f800000u; /* infinity or NaN */
    bits |= (uint32_t)(half & 0x8000u) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE binary16 from f32, to nearest even: subnormals are kept, values of
 * 65520 and more become infinity, a NaN stays a (quiet) NaN of its sign. */
uint16_t kernel_f16_from_f32(float value);

/* f32 from one e4m3 (4 bits of exponent with bias 7, 3 of fraction; no infinity, and of
 * each sign one NaN), exactly: as f16's, by an exponent biased by 120 more. */
static inline float kernel_e4m3_to_f32(uint8_t byte)
{
    const float two_to_120 = 1329227995784915872903807060280344576.0f;
    uint32_t magnitude = (uint32_t)(byte & 0x7fu) << 20, bits;
    float value;
    memcpy(&value, &magnitude, sizeof value);
    value *= two_to_120;
    memcpy(&bits, &value, sizeof bits);
    if ((byte & 0x7fu) == 0x7fu) bits = 0x7fc00000u;
    bits |= (uint32_t)(byte & 0x80u) << 24;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* e4m3 from f32, to nearest even: subnormals are kept, what is beyond 448 or infinite
 * becomes 448, as quantizing wants it, a NaN stays a NaN of its sign. */
uint8_t kernel_e4m3_from_f32(float value);

/* dst[i] = src[i] for count elements of dtype. u8 gives 0 to 255; tf32 is
 * stored as f32. src and dst do not overlap. */
void kernel_to_f32(const void *src, kernel_dtype dtype, int64_t count, float *dst);

/* The inverse, rounding to nearest even. u8 clamps to 0..255 and a NaN
 * becomes 0; tf32 is stored as f32 (the tensor core drops the low bits). */
void kernel_from_f32(const float *src, kernel_dtype dtype, int64_t count, void *dst);

#ifdef __cplusplus
}
#endif
#endif
