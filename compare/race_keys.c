#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "race_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *race_key(const struct case_key *key)
{
    static const enum key_part parts[] = {KEY_CASE, KEY_VARIANT, KEY_DTYPE, KEY_PARAMS};
    enum { part_count = sizeof parts / sizeof parts[0] };
    size_t size = part_count;
    for (size_t i = 0; i < part_count; i++)
        size += strlen(key->parts[parts[i]]);
    char *name = malloc(size);
    if (!name)
        return NULL;
    name[0] = '\0';
    for (size_t i = 0; i < part_count; i++) {
        const char *text = key->parts[parts[i]];
        if (*name && *text)
            strcat(name, " ");
        strcat(name, text);
    }
    return name;
}

bool race_keys_add(struct race_keys *keys, char *name)
{
    if (!name)
        return false;
    if (keys->count == keys->capacity) {
        size_t capacity = keys->capacity ? 2 * keys->capacity : 64;
        char **larger = realloc(keys->items, capacity * sizeof larger[0]);
        if (!larger) {
            free(name);
            return false;
        }
        keys->items = larger;
        keys->capacity = capacity;
    }
    keys->items[keys->count++] = name;
    return true;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

void race_keys_sort(struct race_keys *keys)
{
    size_t kept = 0;
    if (keys->count == 0)
        return;
    qsort(keys->items, keys->count, sizeof keys->items[0], by_name);
    for (size_t i = 1; i < keys->count; i++) {
        if (strcmp(keys->items[i], keys->items[kept]) == 0)
            free(keys->items[i]);
        else
            keys->items[++kept] = keys->items[i];
    }
    keys->count = kept + 1;
}

bool race_keys_hold(const struct race_keys *keys, const char *name)
{
    return keys->count > 0 &&
           bsearch(&name, keys->items, keys->count, sizeof keys->items[0], by_name);
}

bool race_keys_read(struct race_keys *keys, const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "r");
    bool complete = file != NULL;
    ssize_t size;
    while (complete && (size = getline(&line, &capacity, file)) > 0) {
        if (line[size - 1] == '\n')
            line[--size] = '\0';
        if (size > 0)
            complete = race_keys_add(keys, strdup(line));
    }
    complete = complete && !ferror(file);
    free(line);
    if (file)
        fclose(file);
    race_keys_sort(keys);
    return complete;
}

void race_keys_free(struct race_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->items[i]);
    free(keys->items);
    *keys = (struct race_keys){0};
}

static char *escape(char *end, const char *name)
{
    for (; *name; name++) {
        if (strchr(".[\\()*+?{|^$", *name))
            *end++ = '\\';
        *end++ = *name;
    }
    return end;
}

char *race_filter(const struct race_keys *keys)
{
    size_t size = sizeof "^()$";
    for (size_t i = 0; i < keys->count; i++)
        size += 2 * strlen(keys->items[i]) + 1;
    char *filter = malloc(size);
    if (!filter || keys->count == 0) {
        free(filter);
        return NULL;
    }
    char *end = filter;
    for (size_t i = 0; i < keys->count; i++) {
        end = strcpy(end, i == 0 ? "^(" : "|") + (i == 0 ? 2 : 1);
        end = escape(end, keys->items[i]);
    }
    strcpy(end, ")$");
    if (strlen(filter) <= race_longest_filter)
        return filter;
    free(filter);
    return NULL;
}
