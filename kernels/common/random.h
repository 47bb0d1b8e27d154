/*
 * random.h - seeded inputs: normally distributed numbers for every
 * floating-point dtype, uniform bytes for u8.
 *
 * Both generators are counter based (Philox4x32-10: Salmon, Moraes, Dror and
 * Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011), so the same
 * seed gives the same data on every run. The two backends do not give the
 * same data as each other.
 */
#ifndef KERNEL_RANDOM_H
#define KERNEL_RANDOM_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills count elements of dtype at data. Floating-point dtypes: normal with
 * the given mean and standard deviation, rounded to nearest even. u8: uniform
 * over 0..255; mean and stddev are not used. Element i does not depend on
 * count: a longer fill with the same seed starts with the same elements.
 * Returns KERNEL_OK, or KERNEL_ERROR_ARGUMENT for a negative count or an
 * unknown dtype. */
int random_normal_cpu(void *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                      uint64_t seed);

/* The same into device memory, with cuRAND's Philox4x32-10. Needs
 * 16 MiB of temporary device memory, whatever count is. Synchronizes the
 * stream before it returns, so it must not be captured or timed. Returns
 * KERNEL_OK, KERNEL_ERROR_ARGUMENT as above, a cudaError_t or
 * KERNEL_ERROR_CURAND plus a curandStatus_t. */
int random_normal_cuda(void *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                       uint64_t seed, kernel_stream stream);

#ifdef __cplusplus
}
#endif
#endif
