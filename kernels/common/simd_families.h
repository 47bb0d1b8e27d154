/*
 * simd_families.h - the families' tables, for the choice between them.
 */
#ifndef KERNEL_SIMD_FAMILIES_H
#define KERNEL_SIMD_FAMILIES_H

#include "simd.h"

extern const simd_functions simd_base; /* what every processor of the platform has */
extern const simd_functions simd_avx2, simd_avx512; /* x86-64 */

#endif
