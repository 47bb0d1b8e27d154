/* What the kernels' tests share: cmocka with what it needs in front of it,
 * comparison of doubles, memory that shows what was not written. */
#ifndef KERNEL_TEST_H
#define KERNEL_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../kernels/common/kernel.h"
#include "../between.h"

static inline void assert_close(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
}

/* bytes of memory to free, aligned to 64, all bits set: NaNs in every dtype. */
static inline void *fresh(size_t bytes)
{
    size_t padded = (bytes + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, padded);
    assert_non_null(memory);
    return memset(memory, 0xff, padded);
}

/* Why the variant cannot be had here, as one that needs a library; NULL: it can. */
static inline const char *why_not(const kernel_variant *variant, const void *args)
{
    return variant->unsupported ? variant->unsupported(args) : NULL;
}

#endif
