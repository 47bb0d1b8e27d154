/* Gives equal byte strings equal small numbers, 0, 1, 2 in the order of their
 * first appearance, in constant time each. */
#ifndef GPUBENCH_COMPARE_INTERN_H
#define GPUBENCH_COMPARE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern_table {
    uint32_t *slots; /* id + 1, or 0 where empty */
    size_t slot_count;
    struct intern_entry *entries;
    size_t count;
    size_t capacity;
};

/* What intern_find and intern_add return when there is no such string, or no
 * memory for it. */
#define INTERN_NONE UINT32_MAX

uint32_t intern_find(const struct intern_table *table, const void *bytes, size_t size);

/* Finds the string or copies it in; *is_new may be NULL. */
uint32_t intern_add(struct intern_table *table, const void *bytes, size_t size, bool *is_new);

/* The bytes of an id, with a NUL behind them. */
const char *intern_text(const struct intern_table *table, uint32_t id);

void intern_free(struct intern_table *table);

#endif
