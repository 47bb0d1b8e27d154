/* See work.h. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

unsigned char work_text[TEXT_BYTES];
static uint32_t unsorted[NUMBERS], sorted[NUMBERS];

void work_fill(void)
{
    size_t i;
    uint32_t number = 1;
    for (i = SEARCHED_BYTES - 1; i < TEXT_BYTES; i += SEARCHED_BYTES)
        work_text[i] = 'x';
    for (i = 0; i < NUMBERS; i++) /* Knuth's and Lewis's generator of 32 bits */
        unsorted[i] = number = number * 1664525u + 1013904223u;
}

uint64_t work_hash(size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u;
    size_t i;
    for (i = 0; i < bytes; i++)
        hash = (hash ^ work_text[i]) * 0x100000001b3u;
    return hash;
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

uint32_t work_sort(void)
{
    memcpy(sorted, unsorted, sizeof sorted);
    qsort(sorted, NUMBERS, sizeof *sorted, compare);
    return sorted[0];
}
