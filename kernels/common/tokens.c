/*
 * tokens.c - seeded token ids: random.h's Philox words through the inverse of
 * the distribution function.
 */
#include "tokens.h"

#include <stdlib.h>

#include "random.h"

const char *tokens_distribution_name(tokens_distribution distribution)
{
    switch (distribution) {
    case TOKENS_UNIFORM: return "uniform";
    case TOKENS_ZIPF: return "zipf";
    case TOKENS_DISTRIBUTION_COUNT: break;
    }
    return "unknown";
}

/* In [0, 1), all 53 bits of a double used. */
static double unit_interval(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

static void fill_uniform(int32_t *tokens, const uint64_t *words, int64_t count, int64_t vocabulary)
{
    for (int64_t i = 0; i < count; i++)
        tokens[i] = (int32_t)(unit_interval(words[i]) * (double)vocabulary);
}

/* sums[k] = 1/1 + ... + 1/(k + 1) */
static double *harmonic_sums(int64_t vocabulary)
{
    double *sums = malloc((size_t)vocabulary * sizeof *sums);
    double sum = 0;
    for (int64_t k = 0; sums && k < vocabulary; k++) sums[k] = sum += 1.0 / (double)(k + 1);
    return sums;
}

/* The first k whose sum is above value; the last one if none is. */
static int64_t first_above(const double *sums, int64_t count, double value)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sums[middle] > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int fill_zipf(int32_t *tokens, const uint64_t *words, int64_t count, int64_t vocabulary)
{
    double *sums = harmonic_sums(vocabulary);
    if (!sums) return KERNEL_ERROR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        double value = unit_interval(words[i]) * sums[vocabulary - 1];
        tokens[i] = (int32_t)first_above(sums, vocabulary, value);
    }
    free(sums);
    return KERNEL_OK;
}

int tokens_fill(int32_t *tokens, int64_t count, int64_t vocabulary,
                tokens_distribution distribution, uint64_t seed)
{
    if (count < 0 || vocabulary < 1 || vocabulary > INT32_MAX) return KERNEL_ERROR_ARGUMENT;
    if ((unsigned)distribution >= TOKENS_DISTRIBUTION_COUNT) return KERNEL_ERROR_ARGUMENT;
    if (count == 0) return KERNEL_OK;
    uint64_t *words = calloc((size_t)count, sizeof *words);
    if (!words) return KERNEL_ERROR_MEMORY;
    int error = random_normal_cpu(words, KERNEL_U8, count * (int64_t)sizeof *words, 0, 1, seed);
    if (!error && distribution == TOKENS_UNIFORM) fill_uniform(tokens, words, count, vocabulary);
    if (!error && distribution == TOKENS_ZIPF) error = fill_zipf(tokens, words, count, vocabulary);
    free(words);
    return error;
}

int64_t tokens_count_distinct(const int32_t *tokens, int64_t count, int64_t vocabulary)
{
    unsigned char *seen = calloc((size_t)vocabulary, 1);
    int64_t distinct = 0;
    if (!seen) return -1;
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= vocabulary || seen[tokens[i]]) continue;
        seen[tokens[i]] = 1;
        distinct++;
    }
    free(seen);
    return distinct;
}
