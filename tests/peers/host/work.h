/* What all tools time: functions of another file, so that each calls the same code. */
#ifndef WORK_H
#define WORK_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_BYTES = 1 << 20, SEARCHED_BYTES = 4096, NUMBERS = 10000 };

#ifdef __cplusplus
extern "C" {
#endif

/* Zeros, but that the last of each SEARCHED_BYTES is an x. */
extern unsigned char work_text[TEXT_BYTES];

void work_fill(void);

/* The hash FNV-1a (Fowler, Noll and Vo) of the text's first bytes. */
uint64_t work_hash(size_t bytes);

/* Sorts NUMBERS numbers, each time the same unsorted ones; the least of them. */
uint32_t work_sort(void);

#ifdef __cplusplus
}
#endif
#endif
