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

/* A report in memory, of which nothing may be obeyed. */
struct shown_report {
    FILE *file;
    char *text;
    size_t size;
};

static inline void shown_report_open(struct shown_report *report)
{
    report->text = NULL;
    report->file = open_memstream(&report->text, &report->size);
    require(report->file != NULL);
}

/* What a terminal takes for a control character, or a CI's log for a command of its own:
 * tests/scripts/test_injection.sh says why. */
static inline void require_plain(const char *text, size_t size)
{
    bool begins = true;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i], next = (unsigned char)(i + 1 < size ? text[i + 1] : 0);
        require((c >= 0x20 && c != 0x7f) || c == '\n');
        require(!(c == 0xc2 && next >= 0x80 && next < 0xa0));
        require(!(begins && c == ':' && next == ':'));
        require(!(c == '#' && next == '#' && i + 2 < size && text[i + 2] == '['));
        begins = c == '\n' || (begins && c == ' ');
    }
}

static inline void shown_report_close(struct shown_report *report, bool is_plain)
{
    require(!ferror(report->file) && fclose(report->file) == 0);
    if (is_plain)
        require_plain(report->text, report->size);
    free(report->text);
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
