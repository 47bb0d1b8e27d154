/*
 * element.h - single elements of the CPU variants' dtypes, f32 and bf16, as f32.
 * Of another dtype an element reads as NaN and is not written, which no check
 * lets pass: a variant that lists a dtype has to be taught it here.
 */
#ifndef KERNEL_ELEMENT_H
#define KERNEL_ELEMENT_H

#include <math.h>

#include "../convert.h"

static inline float element_get(const void *data, kernel_dtype dtype, int64_t index)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return ((const float *)data)[index];
    case KERNEL_BF16: return kernel_bf16_to_f32(((const uint16_t *)data)[index]);
    case KERNEL_F16:
    case KERNEL_U8: break;
    }
    return NAN;
}

static inline void element_set(void *data, kernel_dtype dtype, int64_t index, float value)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: ((float *)data)[index] = value; break;
    case KERNEL_BF16: ((uint16_t *)data)[index] = kernel_bf16_from_f32(value); break;
    case KERNEL_F16:
    case KERNEL_U8: break;
    }
}

/* Whether sums may be taken in the elements themselves, which are f32. */
static inline int element_is_f32(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return 1;
    case KERNEL_F16:
    case KERNEL_BF16:
    case KERNEL_U8: break;
    }
    return 0;
}

/* Where element `index` is. */
static inline const void *element_at(const void *data, kernel_dtype dtype, int64_t index)
{
    return (const char *)data + (size_t)index * kernel_dtype_bytes(dtype);
}

static inline void *element_to(void *data, kernel_dtype dtype, int64_t index)
{
    return (char *)data + (size_t)index * kernel_dtype_bytes(dtype);
}

#endif
