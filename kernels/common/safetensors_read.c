/*
 * safetensors_read.c - reading tensors, of files from anywhere: see safetensors.h.
 * The header's grammar is parsed as it stands, without recursion.
 */
#define _POSIX_C_SOURCE 200809L
#include "safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };
#define MOST_HEADER_BYTES ((uint64_t)100000000) /* as the reference has it */

/* ---- JSON ------------------------------------------------------------------------------- */

/* The rest of the header; why is set by the first thing that is wrong. */
typedef struct parser {
    const char *at, *end;
    const char *why;
    char tensor[SAFETENSORS_NAME]; /* the one that is being parsed */
} parser;

static int fail(parser *p, const char *why)
{
    if (!p->why) p->why = why;
    return 0;
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && strchr(" \t\r\n", *p->at) && *p->at) p->at++;
}

/* Whether the next character is this one, which is then taken. */
static int takes(parser *p, char wanted)
{
    skip_blanks(p);
    if (p->why || p->at == p->end || *p->at != wanted) return 0;
    p->at++;
    return 1;
}

static int expect(parser *p, char wanted)
{
    return takes(p, wanted) || fail(p, "is no header of the form {\"name\": {...}}");
}

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef", *found = strchr(digits, c | (c > '9' ? 32 : 0));
    return c && found ? (int)(found - digits) : -1;
}

static int32_t parse_hex4(parser *p)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p->at < p->end ? hex_value(*p->at++) : -1;
        if (digit < 0) return fail(p, "has a wrong \\u escape"), -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The code point behind "\u", of which a pair of surrogates is one. */
static int32_t parse_code_point(parser *p)
{
    int32_t high = parse_hex4(p), low;
    if (high < 0xd800 || high > 0xdfff) return high;
    if (high > 0xdbff || p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
        return fail(p, "has half of a surrogate pair"), -1;
    p->at += 2;
    low = parse_hex4(p);
    if (low < 0xdc00 || low > 0xdfff) return fail(p, "has half of a surrogate pair"), -1;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* UTF-8 of a code point; how many bytes. */
static size_t encode(int32_t code, char out[4])
{
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12), out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18), out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63)), out[3] = (char)(0x80 | (code & 63));
    return 4;
}

/* One character of a string, escapes undone; its bytes. */
static size_t parse_character(parser *p, char out[4])
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *found;
    int32_t code;
    char c = *p->at++;
    if ((unsigned char)c < 0x20) return (size_t)fail(p, "has a control character in a name");
    if (c != '\\') return out[0] = c, 1;
    if (p->at == p->end) return (size_t)fail(p, "ends within a string");
    c = *p->at++;
    if (c == 'u') {
        code = parse_code_point(p);
        return code > 0 ? encode(code, out) : (size_t)fail(p, "has a zero in a name");
    }
    found = c ? strchr(escapes, c) : NULL;
    if (!found) return (size_t)fail(p, "has an unknown escape");
    return out[0] = meanings[found - escapes], 1;
}

/* A string into room bytes; room 0: looked at only. */
static int parse_string(parser *p, char *out, size_t room)
{
    size_t length = 0;
    if (!expect(p, '"')) return 0;
    while (!p->why && p->at < p->end && *p->at != '"') {
        char bytes[4];
        size_t count = parse_character(p, bytes);
        if (p->why) return 0;
        if (room > 0 && length + count >= room) return fail(p, "has a name that is too long");
        if (room > 0) memcpy(out + length, bytes, count);
        length += count;
    }
    if (room > 0) out[length] = '\0';
    if (p->at == p->end) return fail(p, "ends within a string");
    p->at++;
    return 1;
}

/* A whole number from 0 to INT64_MAX, of digits only. */
static int parse_count(parser *p, uint64_t *value)
{
    skip_blanks(p);
    if (p->at == p->end || *p->at < '0' || *p->at > '9')
        return fail(p, "has something else where a whole number from 0 on belongs");
    for (*value = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        uint64_t digit = (uint64_t)(*p->at - '0');
        if (*value > (INT64_MAX - digit) / 10) return fail(p, "has a number that is too large");
        *value = *value * 10 + digit;
    }
    if (p->at < p->end && strchr(".eE", *p->at) && *p->at)
        return fail(p, "has a number that is not whole");
    return 1;
}

/* [a, b, ...]: how many of at most `most`, or -1. */
static int parse_counts(parser *p, uint64_t *values, int most)
{
    int count = 0;
    if (!expect(p, '[')) return -1;
    if (takes(p, ']')) return 0;
    do {
        uint64_t value;
        if (count == most) return fail(p, "has a list that is too long"), -1;
        if (!parse_count(p, &value)) return -1;
        values[count++] = value;
    } while (takes(p, ','));
    return expect(p, ']') ? count : -1;
}

/* ---- one tensor ------------------------------------------------------------------------- */

/* What a tensor's object must have, each once. */
enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

static int parse_member(parser *p, safetensors_tensor *t, uint64_t offsets[2], int *has)
{
    uint64_t shape[SAFETENSORS_RANK] = {0};
    char key[16];
    int which;
    if (!parse_string(p, key, sizeof key) || !expect(p, ':')) return 0;
    which = !strcmp(key, "dtype")          ? HAS_DTYPE
            : !strcmp(key, "shape")        ? HAS_SHAPE
            : !strcmp(key, "data_offsets") ? HAS_OFFSETS
                                           : 0;
    if (!which || (*has & which)) return fail(p, "has a tensor with an unknown or repeated member");
    *has |= which;
    if (which == HAS_DTYPE) return parse_string(p, t->dtype, sizeof t->dtype);
    if (which == HAS_OFFSETS)
        return parse_counts(p, offsets, 2) == 2 || fail(p, "has offsets that are not two");
    t->rank = parse_counts(p, shape, SAFETENSORS_RANK);
    for (int i = 0; i < t->rank; i++) t->shape[i] = (int64_t)shape[i];
    return t->rank >= 0;
}

static int multiply(uint64_t *product, uint64_t factor)
{
    if (factor != 0 && *product > UINT64_MAX / factor) return 0;
    *product *= factor;
    return 1;
}

/* Offsets against the data's size, and both against the shape. */
static int check_span(parser *p, safetensors_tensor *t, const uint64_t offsets[2],
                      const unsigned char *data, uint64_t data_bytes)
{
    uint64_t bytes = safetensors_element_bytes(t->dtype);
    if (bytes == 0) return fail(p, "has a tensor of an unknown dtype");
    for (int i = 0; i < t->rank; i++)
        if (!multiply(&bytes, (uint64_t)t->shape[i]))
            return fail(p, "has a shape that is too large");
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes)
        return fail(p, "has offsets outside of the data");
    if (offsets[1] - offsets[0] != bytes) return fail(p, "has offsets that do not fit the shape");
    t->data = data + offsets[0];
    t->bytes = bytes;
    return 1;
}

static int parse_tensor(parser *p, safetensors_tensor *t, const unsigned char *data,
                        uint64_t data_bytes)
{
    uint64_t offsets[2] = {0, 0};
    int has = 0;
    if (!expect(p, '{')) return 0;
    do {
        if (!parse_member(p, t, offsets, &has)) return 0;
    } while (takes(p, ','));
    if (!expect(p, '}')) return 0;
    if (has != HAS_ALL) return fail(p, "has a tensor without dtype, shape or data_offsets");
    return check_span(p, t, offsets, data, data_bytes);
}

/* __metadata__: texts by name, which nothing here uses. */
static int skip_metadata(parser *p)
{
    if (!expect(p, '{')) return 0;
    if (takes(p, '}')) return 1;
    do {
        if (!parse_string(p, NULL, 0) || !expect(p, ':') || !parse_string(p, NULL, 0)) return 0;
    } while (takes(p, ','));
    return expect(p, '}');
}

/* ---- all tensors ------------------------------------------------------------------------- */

/* Room for one more; 0 without memory. */
static int grow(parser *p, safetensors_file *file)
{
    safetensors_tensor *grown;
    if (file->count & (file->count - 1)) return 1;
    grown = realloc(file->tensors, (file->count ? 2 * file->count : 1) * sizeof *grown);
    if (!grown) return fail(p, "needs more memory than there is");
    file->tensors = grown;
    return 1;
}

static int parse_entry(parser *p, safetensors_file *file, const unsigned char *data,
                       uint64_t data_bytes)
{
    safetensors_tensor t;
    memset(&t, 0, sizeof t);
    if (!parse_string(p, t.name, sizeof t.name) || !expect(p, ':')) return 0;
    if (!strcmp(t.name, "__metadata__")) return skip_metadata(p);
    memcpy(p->tensor, t.name, sizeof t.name);
    if (!parse_tensor(p, &t, data, data_bytes) || !grow(p, file)) return 0;
    p->tensor[0] = '\0';
    file->tensors[file->count++] = t;
    return 1;
}

static int by_data(const void *left, const void *right)
{
    const safetensors_tensor *a = *(safetensors_tensor *const *)left;
    const safetensors_tensor *b = *(safetensors_tensor *const *)right;
    if (a->data != b->data) return a->data < b->data ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int by_name(const void *left, const void *right)
{
    return strcmp((*(safetensors_tensor *const *)left)->name,
                  (*(safetensors_tensor *const *)right)->name);
}

/* Tensors lie behind each other from the first byte to the last. */
static int check_cover(parser *p, safetensors_tensor **sorted, size_t count,
                       const unsigned char *data, uint64_t data_bytes)
{
    const unsigned char *end = data;
    qsort(sorted, count, sizeof *sorted, by_data);
    for (size_t i = 0; i < count; i++) {
        if (sorted[i]->data != end) return fail(p, "has tensors with holes or overlaps");
        end += sorted[i]->bytes;
    }
    return end == data + data_bytes || fail(p, "has data that belong to no tensor");
}

static int check_all(parser *p, safetensors_file *file, const unsigned char *data,
                     uint64_t data_bytes)
{
    safetensors_tensor **sorted = malloc((file->count + 1) * sizeof *sorted);
    int good = sorted != NULL || fail(p, "needs more memory than there is");
    for (size_t i = 0; i < file->count && good; i++) sorted[i] = &file->tensors[i];
    good = good && check_cover(p, sorted, file->count, data, data_bytes);
    if (good && file->count > 0) qsort(sorted, file->count, sizeof *sorted, by_name);
    for (size_t i = 1; i < file->count && good; i++)
        if (!by_name(&sorted[i - 1], &sorted[i])) good = fail(p, "has a name twice");
    free(sorted);
    return good;
}

static int parse_header(parser *p, safetensors_file *file, const unsigned char *data,
                        uint64_t data_bytes)
{
    if (!expect(p, '{')) return 0;
    if (!takes(p, '}')) {
        do {
            if (!parse_entry(p, file, data, data_bytes)) return 0;
        } while (takes(p, ','));
        if (!expect(p, '}')) return 0;
    }
    skip_blanks(p);
    if (p->at != p->end) return fail(p, "has something behind the header's end");
    return check_all(p, file, data, data_bytes);
}

/* ---- the file ---------------------------------------------------------------------------- */

/* All of a file in memory; NULL with a reason. */
static unsigned char *slurp(const char *path, uint64_t *bytes, const char **why)
{
    FILE *file = fopen(path, "rb");
    unsigned char *memory = NULL;
    long length = -1;
    *why = "cannot be read";
    if (file && fseek(file, 0, SEEK_END) == 0) length = ftell(file);
    if (length >= 0 && fseek(file, 0, SEEK_SET) == 0) memory = malloc((size_t)length + 1);
    if (memory && fread(memory, 1, (size_t)length, file) != (size_t)length) {
        free(memory);
        memory = NULL;
    }
    if (!memory && errno) *why = strerror(errno);
    if (file) fclose(file);
    *bytes = length > 0 ? (uint64_t)length : 0;
    return memory;
}

int safetensors_read(const char *path, safetensors_file *file, char reason[SAFETENSORS_REASON])
{
    parser p = {NULL, NULL, NULL, ""};
    uint64_t bytes, header = 0;
    *file = (safetensors_file){NULL, 0, NULL};
    file->memory = slurp(path, &bytes, &p.why);
    if (file->memory) p.why = NULL;
    if (file->memory && bytes >= LENGTH_BYTES) memcpy(&header, file->memory, LENGTH_BYTES);
    if (bytes < LENGTH_BYTES || header > bytes - LENGTH_BYTES || header > MOST_HEADER_BYTES)
        fail(&p, "is cut or no safetensors file: its header does not fit");
    if (!p.why) {
        p.at = (const char *)file->memory + LENGTH_BYTES;
        p.end = p.at + header;
        parse_header(&p, file, (const unsigned char *)p.end, bytes - LENGTH_BYTES - header);
    }
    if (!p.why) return 0;
    snprintf(reason, SAFETENSORS_REASON, "'%.200s': %s%.100s%s%s", path,
             p.tensor[0] ? "tensor '" : "", p.tensor, p.tensor[0] ? "' " : "", p.why);
    safetensors_close(file);
    return -1;
}

const safetensors_tensor *safetensors_find(const safetensors_file *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name)) return &file->tensors[i];
    return NULL;
}

void safetensors_close(safetensors_file *file)
{
    free(file->tensors);
    free(file->memory);
    *file = (safetensors_file){NULL, 0, NULL};
}
