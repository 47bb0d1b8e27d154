/*
 * convert.c - f32 to and from the storage dtypes, by bit operations.
 *
 * Layouts: IEEE 754-2008, section 3.4 (binary16: 5 bits of exponent with bias
 * 15, 10 of fraction); bf16 is the upper half of binary32; e4m3: Micikevicius and
 * others, "FP8 formats for deep learning", 2022, table 1.
 */
#include "convert.h"

static uint32_t bits_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* value >> shift to nearest, ties to even; 1 <= shift <= 31. */
static uint32_t shift_right_to_even(uint32_t value, uint32_t shift)
{
    uint32_t below_half = (1u << (shift - 1)) - 1;
    uint32_t odd = value >> shift & 1u;
    return (value + below_half + odd) >> shift;
}

uint16_t kernel_f16_from_f32(float value)
{
    uint32_t bits = bits_from_float(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) {
        half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    } else if (magnitude >= 0x477ff000u) { /* 65520: halfway beyond the largest, 65504 */
        half = 0x7c00u;
    } else if (magnitude >= 0x38800000u) { /* 2^-14: the smallest normal */
        half = shift_right_to_even(magnitude, 13) - ((127 - 15) << 10);
    } else if (magnitude >= 0x33000000u) { /* 2^-25: half of the smallest subnormal */
        uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
        half = shift_right_to_even(significand, 126 - (magnitude >> 23));
    } else {
        half = 0;
    }
    return (uint16_t)(sign | half);
}

uint8_t kernel_e4m3_from_f32(float value)
{
    uint32_t bits = bits_from_float(value);
    uint32_t sign = bits >> 24 & 0x80u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t byte;
    if (magnitude > 0x7f800000u) {
        byte = 0x7fu;
    } else if (magnitude >= 0x43e00000u) { /* 448: the largest */
        byte = 0x7eu;
    } else if (magnitude >= 0x3c800000u) { /* 2^-6: the smallest normal */
        byte = shift_right_to_even(magnitude, 20) - ((127 - 7) << 3);
    } else if (magnitude >= 0x3a800000u) { /* 2^-10: half of the smallest subnormal */
        uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
        byte = shift_right_to_even(significand, 141 - (magnitude >> 23));
    } else {
        byte = 0;
    }
    return (uint8_t)(sign | byte);
}

static uint8_t u8_from_f32(float value)
{
    if (!(value > 0.0f)) return 0; /* NaN too */
    if (value >= 255.0f) return 255;
    uint32_t whole = (uint32_t)value;
    float rest = value - (float)whole;
    int up = rest > 0.5f || (rest == 0.5f && (whole & 1u));
    return (uint8_t)(whole + (uint32_t)up);
}

void kernel_to_f32(const void *src, kernel_dtype dtype, int64_t count, float *dst)
{
    const uint16_t *halves = src;
    const uint8_t *bytes = src;
    switch (dtype) {
    case KERNEL_BF16:
        for (int64_t i = 0; i < count; i++) dst[i] = kernel_bf16_to_f32(halves[i]);
        break;
    case KERNEL_F16:
        for (int64_t i = 0; i < count; i++) dst[i] = kernel_f16_to_f32(halves[i]);
        break;
    case KERNEL_E4M3:
        for (int64_t i = 0; i < count; i++) dst[i] = kernel_e4m3_to_f32(bytes[i]);
        break;
    case KERNEL_U8:
        for (int64_t i = 0; i < count; i++) dst[i] = (float)bytes[i];
        break;
    case KERNEL_F32:
    case KERNEL_TF32:
        memcpy(dst, src, (size_t)count * sizeof *dst);
        break;
    }
}

void kernel_from_f32(const float *src, kernel_dtype dtype, int64_t count, void *dst)
{
    uint16_t *halves = dst;
    uint8_t *bytes = dst;
    switch (dtype) {
    case KERNEL_BF16:
        for (int64_t i = 0; i < count; i++) halves[i] = kernel_bf16_from_f32(src[i]);
        break;
    case KERNEL_F16:
        for (int64_t i = 0; i < count; i++) halves[i] = kernel_f16_from_f32(src[i]);
        break;
    case KERNEL_E4M3:
        for (int64_t i = 0; i < count; i++) bytes[i] = kernel_e4m3_from_f32(src[i]);
        break;
    case KERNEL_U8:
        for (int64_t i = 0; i < count; i++) bytes[i] = u8_from_f32(src[i]);
        break;
    case KERNEL_F32:
    case KERNEL_TF32:
        memcpy(dst, src, (size_t)count * sizeof *src);
        break;
    }
}
