/* Random numbers that are the same on every machine, for the tests. */
#ifndef GPUBENCH_TESTS_COMPARE_RANDOM_H
#define GPUBENCH_TESTS_COMPARE_RANDOM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* splitmix64, Steele, Lea and Flood (2014). */
static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In (0, 1). */
static inline double random_uniform(uint64_t *state)
{
    return ((double)(random_bits(state) >> 11) + 0.5) / 9007199254740992.0;
}

/* Box and Muller (1958). */
static inline double random_normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(random_uniform(state)));
    return radius * cos(6.283185307179586 * random_uniform(state));
}

static inline size_t random_below(uint64_t *state, size_t count)
{
    return (size_t)(random_bits(state) % count);
}

#endif
