/*
 * safetensors_write.c - writing tensors: see safetensors.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t safetensors_element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } dtypes[] = {{"F64", 8}, {"F32", 4},  {"F16", 2},     {"BF16", 2},    {"I64", 8},
                  {"I32", 4}, {"I16", 2},  {"I8", 1},      {"U64", 8},     {"U32", 4},
                  {"U16", 2}, {"U8", 1},   {"BOOL", 1},    {"F8_E4M3", 1}, {"F8_E5M2", 1}};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, dtype)) return dtypes[i].bytes;
    return 0;
}

/* ---- the header ------------------------------------------------------------------------ */

/* A text that grows; text is NULL once memory did not suffice. */
typedef struct builder {
    char *text;
    size_t length, room;
} builder;

static void append(builder *b, const char *piece, size_t length)
{
    if (b->text && b->length + length > b->room) {
        size_t room = 2 * (b->length + length) + 256;
        char *grown = realloc(b->text, room);
        if (!grown) free(b->text);
        b->text = grown;
        b->room = room;
    }
    if (b->text) memcpy(b->text + b->length, piece, length);
    b->length += length;
}

static void append_text(builder *b, const char *piece)
{
    append(b, piece, strlen(piece));
}

static void append_number(builder *b, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    append_text(b, text);
}

static void append_quoted(builder *b, const char *name)
{
    append_text(b, "\"");
    for (; *name; name++) {
        char escaped[8];
        if ((unsigned char)*name < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*name);
        else
            snprintf(escaped, sizeof escaped, "%s%c", strchr("\"\\", *name) ? "\\" : "", *name);
        append_text(b, escaped);
    }
    append_text(b, "\"");
}

static void append_tensor(builder *b, const safetensors_tensor *t, uint64_t begin)
{
    append_quoted(b, t->name);
    append_text(b, ":{\"dtype\":");
    append_quoted(b, t->dtype);
    append_text(b, ",\"shape\":[");
    for (int i = 0; i < t->rank; i++) {
        if (i > 0) append_text(b, ",");
        append_number(b, (uint64_t)t->shape[i]);
    }
    append_text(b, "],\"data_offsets\":[");
    append_number(b, begin);
    append_text(b, ",");
    append_number(b, begin + t->bytes);
    append_text(b, "]}");
}

/* Padded with blanks, so that the data begin at a multiple of 8. */
static builder header_of(const safetensors_tensor *tensors, size_t count)
{
    builder b = {malloc(256), 0, 256};
    uint64_t begin = 0;
    append_text(&b, "{");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) append_text(&b, ",");
        append_tensor(&b, &tensors[i], begin);
        begin += tensors[i].bytes;
    }
    append_text(&b, "}");
    while (b.length % 8) append_text(&b, " ");
    return b;
}

/* ---- the file -------------------------------------------------------------------------- */

static int write_all(int file, const void *data, uint64_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t done = write(file, at, bytes < (1u << 30) ? (size_t)bytes : 1u << 30);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        at += done;
        bytes -= (uint64_t)done;
    }
    return 0;
}

static int write_parts(int file, const builder *header, const safetensors_tensor *tensors,
                       size_t count)
{
    uint64_t length = header->length;
    int code = write_all(file, &length, sizeof length);
    if (code == 0) code = write_all(file, header->text, header->length);
    for (size_t i = 0; i < count && code == 0; i++)
        code = write_all(file, tensors[i].data, tensors[i].bytes);
    return code == 0 ? fsync(file) : code;
}

/* errno, as the first call that failed left it, or 0. */
static int write_beside(const char *path, const char *beside, const builder *header,
                        const safetensors_tensor *tensors, size_t count)
{
    int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC, 0666), error = 0;
    if (file < 0) return errno;
    if (write_parts(file, header, tensors, count) != 0) error = errno;
    if (close(file) != 0 && !error) error = errno;
    if (!error && rename(beside, path) != 0) error = errno;
    if (error) unlink(beside);
    return error;
}

int safetensors_write(const char *path, const safetensors_tensor *tensors, size_t count,
                      char reason[SAFETENSORS_REASON])
{
    builder header = header_of(tensors, count);
    size_t room = strlen(path) + sizeof ".part";
    char *beside = malloc(room);
    int error = header.text && beside ? 0 : ENOMEM;
    if (!error) {
        snprintf(beside, room, "%s.part", path);
        error = write_beside(path, beside, &header, tensors, count);
    }
    if (error) snprintf(reason, SAFETENSORS_REASON, "'%.300s': %s", path, strerror(error));
    free(header.text);
    free(beside);
    return error ? -1 : 0;
}

/* ---- a file without a name ----------------------------------------------------------- */

static int write_nameless(char *path, const builder *header, const safetensors_tensor *tensors,
                          size_t count)
{
    int file = mkstemp(path), error = 0;
    if (file < 0) return errno;
    if (unlink(path) != 0) error = errno;
    if (!error && write_parts(file, header, tensors, count) != 0) error = errno;
    if (close(file) != 0 && !error) error = errno;
    return error;
}

int safetensors_write_scratch(const safetensors_tensor *tensors, size_t count,
                              char reason[SAFETENSORS_REASON])
{
    const char *folder = getenv("TMPDIR");
    char path[512];
    builder header = header_of(tensors, count);
    int error = header.text ? 0 : ENOMEM;
    if (!folder || !*folder) folder = "/tmp";
    if (snprintf(path, sizeof path, "%s/gpubench-XXXXXX", folder) >= (int)sizeof path)
        error = ENAMETOOLONG;
    if (!error) error = write_nameless(path, &header, tensors, count);
    if (error)
        snprintf(reason, SAFETENSORS_REASON, "a file in '%.300s': %s", folder, strerror(error));
    free(header.text);
    return error ? -1 : 0;
}
