#include "intern.h"

#include <stdlib.h>
#include <string.h>

struct intern_entry {
    uint64_t hash;
    size_t size;
    char *bytes;
};

/* Eight bytes a step, each spread as splitmix64 does (Steele, Lea and Flood 2014);
 * the low bits choose the slot. */
static uint64_t spread(uint64_t hash, uint64_t word)
{
    uint64_t z = (hash ^ word) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 31);
}

static uint64_t hash_of(const unsigned char *bytes, size_t size)
{
    uint64_t hash = size * 0x9e3779b97f4a7c15u;
    uint64_t word = 0;
    for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = spread(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, size);
    return spread(spread(hash, word), 0x94d049bb133111ebu);
}

/* The slot that holds the string, or the empty one where it belongs. */
static size_t slot_of(const struct intern_table *table, uint64_t hash, const void *bytes, size_t size)
{
    size_t mask = table->slot_count - 1;
    for (size_t slot = (size_t)hash & mask;; slot = (slot + 1) & mask) {
        if (table->slots[slot] == 0)
            return slot;
        const struct intern_entry *entry = &table->entries[table->slots[slot] - 1];
        if (entry->hash == hash && entry->size == size && memcmp(entry->bytes, bytes, size) == 0)
            return slot;
    }
}

uint32_t intern_find(const struct intern_table *table, const void *bytes, size_t size)
{
    if (table->slot_count == 0)
        return INTERN_NONE;
    uint32_t held = table->slots[slot_of(table, hash_of(bytes, size), bytes, size)];
    return held ? held - 1 : INTERN_NONE;
}

/* Doubles the slots; they stay at most half full, so probes stay short. */
static bool grow_slots(struct intern_table *table)
{
    size_t slot_count = table->slot_count ? 2 * table->slot_count : 64;
    uint32_t *slots = calloc(slot_count, sizeof slots[0]);
    if (!slots)
        return false;
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    for (size_t id = 0; id < table->count; id++) {
        size_t slot = (size_t)table->entries[id].hash & (slot_count - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = (uint32_t)id + 1;
    }
    return true;
}

static bool grow_entries(struct intern_table *table)
{
    size_t capacity = table->capacity ? 2 * table->capacity : 32;
    struct intern_entry *larger = realloc(table->entries, capacity * sizeof larger[0]);
    if (!larger)
        return false;
    table->entries = larger;
    table->capacity = capacity;
    return true;
}

uint32_t intern_add(struct intern_table *table, const void *bytes, size_t size, bool *is_new)
{
    if (is_new)
        *is_new = false;
    if (2 * (table->count + 1) > table->slot_count && !grow_slots(table))
        return INTERN_NONE;
    uint64_t hash = hash_of(bytes, size);
    size_t slot = slot_of(table, hash, bytes, size);
    if (table->slots[slot] != 0)
        return table->slots[slot] - 1;
    if (table->count == INTERN_NONE - 1 || (table->count == table->capacity && !grow_entries(table)))
        return INTERN_NONE;
    char *copy = malloc(size + 1);
    if (!copy)
        return INTERN_NONE;
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    table->entries[table->count] = (struct intern_entry){hash, size, copy};
    table->slots[slot] = (uint32_t)++table->count;
    if (is_new)
        *is_new = true;
    /* cppcheck-suppress memleak ; the entry holds the copy */
    return (uint32_t)table->count - 1;
}

const char *intern_text(const struct intern_table *table, uint32_t id)
{
    return table->entries[id].bytes;
}

void intern_free(struct intern_table *table)
{
    for (size_t id = 0; id < table->count; id++)
        free(table->entries[id].bytes);
    free(table->entries);
    free(table->slots);
    *table = (struct intern_table){0};
}
