/*
 * saturating.h - products and sums of sizes that stop at UINT64_MAX instead of
 * wrapping round: what the formulas of bytes, operations and workspaces use.
 */
#ifndef KERNEL_SATURATING_H
#define KERNEL_SATURATING_H

#include <stdint.h>

static inline uint64_t saturating_product(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static inline uint64_t saturating_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
