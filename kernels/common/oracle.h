/*
 * oracle.h - the two loops that every double-precision reference of a product
 * is made of, for the references in cpu/ and for the suites' checks.
 */
#ifndef KERNEL_ORACLE_H
#define KERNEL_ORACLE_H

#include <stdint.h>

/* The sum of x[i] * y[i], in double. Eight partial sums, so that the compiler
 * may overlap them. */
static inline double oracle_dot(const float *x, const float *y, int64_t count)
{
    enum { SUMS = 8 };
    double sums[SUMS] = {0}, total = 0;
    int64_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (int s = 0; s < SUMS; s++) sums[s] += (double)x[i + s] * (double)y[i + s];
    for (; i < count; i++) total += (double)x[i] * (double)y[i];
    for (int s = 0; s < SUMS; s++) total += sums[s];
    return total;
}

/* y[i] += factor * x[i] for count elements. */
static inline void oracle_add_scaled(int64_t count, double factor, const float *restrict x,
                                     double *restrict y)
{
    for (int64_t i = 0; i < count; i++) y[i] += factor * (double)x[i];
}

#endif
