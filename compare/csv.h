/* A reader for RFC 4180 that names the place of every fault.
 *
 * It holds one record at a time, however long the file. It takes what people commit: LF and CRLF, also mixed, a UTF-8 byte order
 * mark, blank lines, and a last line without its end. It refuses what has no
 * one meaning: a quote inside a bare field, text after a closing quote, a
 * quote never closed, a lone carriage return, a NUL byte, a record that is
 * longer or shorter than the header, and a header that repeats a name. */
#ifndef GPUBENCH_COMPARE_CSV_H
#define GPUBENCH_COMPARE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { csv_error_capacity = 512 };

struct csv_reader {
    const char *path; /* for messages; not owned */
    FILE *stream;     /* NULL for bytes in memory */
    char *buffer;     /* the current record and what was read behind it; unescaped in place */
    size_t capacity;
    bool at_end; /* nothing is left to read */
    bool cut;    /* the current record ends with the file, not with a line end */
    char *plain_end; /* the line end of a record without a quote, else NULL */
    char *next;       /* the first character not read yet */
    char *end;
    const char *line_start;
    size_t line;        /* of the next character, from 1 */
    size_t record_line; /* where the current record began */
    char **fields;      /* of the current record; point into buffer */
    size_t field_count;
    size_t field_capacity;
    char **names; /* of the header; point into name_bytes */
    char *name_bytes;
    size_t column_count;
    char error[csv_error_capacity];
};

enum csv_outcome { CSV_RECORD, CSV_END, CSV_ERROR };

/* Reads the file at path ("-" is standard input) and its header. On false,
 * reader->error says why. csv_close is due either way. */
bool csv_open(struct csv_reader *reader, const char *path);

/* The same on bytes in memory, which are copied. */
bool csv_open_bytes(struct csv_reader *reader, const char *path, const char *bytes, size_t size);

/* Moves to the next record: fields[0 .. column_count) are valid until
 * the next call. */
enum csv_outcome csv_next(struct csv_reader *reader);

/* The index of the column called name, or -1. */
int csv_column(const struct csv_reader *reader, const char *name);

void csv_close(struct csv_reader *reader);

#endif
