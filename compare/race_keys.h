/* The names by which programs know their cases (the lines of --list), and how a
 * race asks for some of them. */
#ifndef GPUBENCH_COMPARE_RACE_KEYS_H
#define GPUBENCH_COMPARE_RACE_KEYS_H

#include "results.h"

/* A set of names, sorted, each once. */
struct race_keys {
    char **items;
    size_t count;
    size_t capacity;
};

/* The --list line of a case. To be freed; NULL when memory ran out. */
char *race_key(const struct case_key *key);

/* Adds a name, which it owns from then on; false when memory ran out. */
bool race_keys_add(struct race_keys *keys, char *name);

/* After the last was added. */
void race_keys_sort(struct race_keys *keys);

bool race_keys_hold(const struct race_keys *keys, const char *name);

/* Reads a file of one name a line; empty lines are none. False with errno. */
bool race_keys_read(struct race_keys *keys, const char *path);

void race_keys_free(struct race_keys *keys);

/* The longest regular expression that is handed to a program: Linux takes 128 KiB
 * for one argument. */
enum { race_longest_filter = 100000 };

/* The POSIX extended regular expression that takes these names and no other,
 * whatever characters they hold. To be freed; NULL where it would be too long, or
 * when memory ran out. */
char *race_filter(const struct race_keys *keys);

#endif
