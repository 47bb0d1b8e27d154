/*
 * ceil_div.cuh - how many pieces of a size something takes: blocks of a grid.
 */
#ifndef KERNEL_CEIL_DIV_CUH
#define KERNEL_CEIL_DIV_CUH

#include <stdint.h>

inline int64_t ceil_div(int64_t value, int64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

#endif
