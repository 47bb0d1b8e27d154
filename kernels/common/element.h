/*
 * element.h - single elements of the CPU variants' dtypes as f32. Which dtypes
 * those are is said here, once and for every variant that asks element_takes.
 */
#ifndef KERNEL_ELEMENT_H
#define KERNEL_ELEMENT_H

#include "convert.h"

/* Whether the functions below know the dtype: one that is let in here has to be
 * taught to them. */
static inline int element_takes(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_F16:
    case KERNEL_BF16: return 1;
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return 0;
}

/* The same as a set of KERNEL_DTYPE_BIT, for rows of tables. */
enum {
    ELEMENT_DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_F16) |
                     KERNEL_DTYPE_BIT(KERNEL_BF16)
};

/* Of a dtype that element_takes. Comparisons, which compilers take out of a loop, as they
 * do not a switch. */
static inline float element_get(const void *data, kernel_dtype dtype, int64_t index)
{
    if (dtype == KERNEL_F32) return ((const float *)data)[index];
    return dtype == KERNEL_BF16 ? kernel_bf16_to_f32(((const uint16_t *)data)[index])
                                : kernel_f16_to_f32(((const uint16_t *)data)[index]);
}

static inline void element_set(void *data, kernel_dtype dtype, int64_t index, float value)
{
    if (dtype == KERNEL_F32)
        ((float *)data)[index] = value;
    else
        ((uint16_t *)data)[index] =
            dtype == KERNEL_BF16 ? kernel_bf16_from_f32(value) : kernel_f16_from_f32(value);
}

/* Whether sums may be taken in the elements themselves, which are f32. */
static inline int element_is_f32(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return 1;
    case KERNEL_F16:
    case KERNEL_BF16:
    case KERNEL_E4M3:
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
