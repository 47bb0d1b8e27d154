/* What the libFuzzer targets share. Each is a program of its own: it takes any bytes as
 * what a stranger wrote, and aborts where a promise of the reader does not hold. */
#ifndef GPUBENCH_TESTS_FUZZ_H
#define GPUBENCH_TESTS_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

/* A file of memory with these bytes, for readers that take a path. */
struct memory_file {
    int descriptor;
    char path[40];
};

static inline struct memory_file memory_file_open(const uint8_t *data, size_t size)
{
    struct memory_file file = {.descriptor = memfd_create("fuzz", 0)};
    require(file.descriptor >= 0 && write(file.descriptor, data, size) == (ssize_t)size);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    return file;
}

static inline void memory_file_close(struct memory_file *file)
{
    close(file->descriptor);
}

/* Where reports go that nobody reads. */
static inline FILE *open_nowhere(void)
{
    FILE *nowhere = fopen("/dev/null", "w");
    require(nowhere != NULL);
    return nowhere;
}

enum { most_words = 64 };

/* The bytes as a command line: a word a line. words[0] is the program's name. */
struct command_line {
    char *bytes;
    char *words[most_words + 2];
    int count;
};

static inline struct command_line command_line_split(const uint8_t *data, size_t size)
{
    static char name[] = "fuzz";
    struct command_line line = {.bytes = malloc(size + 1), .words = {name}, .count = 1};
    require(line.bytes != NULL);
    if (size > 0)
        memcpy(line.bytes, data, size);
    line.bytes[size] = '\0';
    char *rest = line.bytes;
    while (rest && rest < line.bytes + size && line.count <= most_words) {
        char *end = strchr(rest, '\n');
        if (end)
            *end = '\0';
        line.words[line.count++] = rest;
        rest = end ? end + 1 : NULL;
    }
    return line;
}

#endif
