/*
 * tokens.h - seeded token ids on the host. How tokens are distributed decides
 * the cost of an embedding: which rows are read again, and how many gradients
 * meet in one row of the table.
 */
#ifndef KERNEL_TOKENS_H
#define KERNEL_TOKENS_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tokens_distribution {
    TOKENS_UNIFORM, /* each of the vocabulary is as likely as any other */
    TOKENS_ZIPF,    /* token k has a probability proportional to 1 / (k + 1), as words of a
                       text have (Zipf, "Human behavior and the principle of least effort",
                       1949); frequent tokens are neighbours, as in a BPE vocabulary */
    TOKENS_DISTRIBUTION_COUNT
} tokens_distribution;

/* "uniform", "zipf"; "unknown" for any other value. */
const char *tokens_distribution_name(tokens_distribution distribution);

/* Fills tokens[count] with ids in 0..vocabulary-1. Equal seeds give equal
 * tokens. KERNEL_OK; KERNEL_ERROR_ARGUMENT for a negative count, a vocabulary
 * outside 1..INT32_MAX or an unknown distribution; KERNEL_ERROR_MEMORY: needs
 * 8 bytes a token, and 8 bytes an entry of the vocabulary for Zipf. */
int tokens_fill(int32_t *tokens, int64_t count, int64_t vocabulary,
                tokens_distribution distribution, uint64_t seed);

/* How many different ids are among tokens[count]; ids outside of
 * 0..vocabulary-1 are not counted. -1 where a byte an entry of the vocabulary
 * could not be allocated. */
int64_t tokens_count_distinct(const int32_t *tokens, int64_t count, int64_t vocabulary);

#ifdef __cplusplus
}
#endif
#endif
