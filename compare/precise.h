/* Included first where numbers may be absent (NAN) or without bound: a build with
 * -Ofast or -ffinite-math-only lets the compiler assume that there are none, and
 * an ok row without a time would pass. */
#ifndef GPUBENCH_COMPARE_PRECISE_H
#define GPUBENCH_COMPARE_PRECISE_H

#if defined(__clang__)
#pragma float_control(precise, on)
#elif defined(__GNUC__) && defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#pragma GCC optimize("no-fast-math")
#endif

#endif
