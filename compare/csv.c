#include "csv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header longer than this is not a table of results. */
enum { most_columns = 4096 };

static bool fail(struct csv_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->error, sizeof reader->error, format, arguments);
    va_end(arguments);
    return false;
}

/* A fault at the character that is read next. */
static bool fail_here(struct csv_reader *reader, const char *what)
{
    size_t character = (size_t)(reader->next - reader->line_start) + 1;
    return fail(reader, "%s:%zu:%zu: %s", reader->path, reader->line, character, what);
}

/* What a read asks for; a record that is longer makes the buffer grow. */
enum { first_capacity = 1 << 18 };

static bool grow(struct csv_reader *reader)
{
    size_t held = (size_t)(reader->end - reader->next);
    size_t capacity = reader->capacity ? 2 * reader->capacity : first_capacity;
    char *larger = realloc(reader->buffer, capacity);
    if (!larger)
        return fail(reader, "%s: not enough memory to read it", reader->path);
    reader->buffer = reader->next = larger;
    reader->end = larger + held;
    reader->capacity = capacity;
    return true;
}

/* Reads on behind what is held. The record that begins at next moves to the front;
 * one byte behind the end stays free for the last field's NUL. */
static bool refill(struct csv_reader *reader)
{
    size_t held = (size_t)(reader->end - reader->next);
    memmove(reader->buffer, reader->next, held);
    reader->next = reader->buffer;
    reader->end = reader->buffer + held;
    if (held + 1 >= reader->capacity && !grow(reader))
        return false;
    size_t room = reader->capacity - held - 1;
    size_t size = fread(reader->end, 1, room, reader->stream);
    reader->end += size;
    reader->at_end = size < room;
    reader->line_start = reader->next;
    return !ferror(reader->stream) || fail(reader, "%s: cannot read: %s", reader->path, strerror(errno));
}

static size_t count_quotes(const char *from, const char *to)
{
    size_t quotes = 0;
    while (from < to && (from = memchr(from, '"', (size_t)(to - from)))) {
        quotes++;
        from++;
    }
    return quotes;
}

/* Makes sure that the record at next is held to the end of its last line: a line
 * end behind an odd number of quotes is inside a field. */
static bool hold_record(struct csv_reader *reader)
{
    size_t seen = 0;
    size_t quotes = 0;
    reader->plain_end = NULL;
    for (;;) {
        char *from = reader->next + seen;
        size_t held = (size_t)(reader->end - from);
        char *line_end = held > 0 ? memchr(from, '\n', held) : NULL;
        const char *to = line_end ? line_end : reader->end;
        quotes += count_quotes(from, to);
        seen += (size_t)(to - from) + (line_end != NULL);
        if (quotes == 0)
            reader->plain_end = line_end;
        if (line_end ? quotes % 2 == 0 : reader->at_end)
            return true;
        if (!line_end && !refill(reader))
            return false;
    }
}

static void start_line(struct csv_reader *reader)
{
    reader->line++;
    reader->line_start = reader->next;
}

/* Steps over one LF or CRLF, if it is there. */
static bool skip_line_end(struct csv_reader *reader)
{
    char *next = reader->next;
    if (next < reader->end && *next == '\r' && next + 1 < reader->end)
        next++;
    if (next >= reader->end || *next != '\n')
        return false;
    reader->next = next + 1;
    start_line(reader);
    return true;
}

/* What ends a bare field or may not stand in one. */
static const bool is_special[256] = {
    [','] = true, ['\n'] = true, ['\r'] = true, ['"'] = true, ['\0'] = true};

/* Reads a bare field; its end is the separator, which the caller looks at. */
static bool read_bare_field(struct csv_reader *reader)
{
    for (;;) {
        while (reader->next < reader->end && !is_special[(unsigned char)*reader->next])
            reader->next++;
        if (reader->next >= reader->end)
            return true;
        char c = *reader->next;
        if (c == ',' || c == '\n')
            return true;
        if (c == '\r')
            return (reader->next + 1 < reader->end && reader->next[1] == '\n') ||
                   fail_here(reader, "a carriage return without a line feed");
        if (c == '"')
            return fail_here(reader, "a quote inside a field that does not begin with one");
        return fail_here(reader, "a NUL byte");
    }
}

/* Reads a quoted field and moves its text to *out without the quotes around
 * it; *out ends up behind the last character. */
static bool read_quoted_field(struct csv_reader *reader, char **out)
{
    size_t opened = reader->line;
    reader->next++;
    while (reader->next < reader->end) {
        char c = *reader->next;
        if (c == '\0')
            return fail_here(reader, "a NUL byte");
        reader->next++;
        if (c == '"') {
            if (reader->next >= reader->end || *reader->next != '"')
                return true;
            reader->next++;
        }
        *(*out)++ = c;
        if (c == '\n')
            start_line(reader);
    }
    return fail(reader, "%s:%zu: a quoted field that never ends", reader->path, opened);
}

static bool at_field_end(const struct csv_reader *reader)
{
    const char *next = reader->next;
    if (next >= reader->end || *next == ',' || *next == '\n')
        return true;
    return *next == '\r' && next + 1 < reader->end && next[1] == '\n';
}

static bool add_field(struct csv_reader *reader, char *text)
{
    if (reader->field_count == most_columns)
        return fail(reader, "%s:%zu: more than %d fields", reader->path, reader->record_line, most_columns);
    if (reader->field_count == reader->field_capacity) {
        size_t capacity = reader->field_capacity ? 2 * reader->field_capacity : 64;
        char **larger = realloc(reader->fields, capacity * sizeof larger[0]);
        if (!larger)
            return fail(reader, "%s: not enough memory for %zu fields", reader->path, capacity);
        reader->fields = larger;
        reader->field_capacity = capacity;
    }
    reader->fields[reader->field_count++] = text;
    return true;
}

/* Reads one field up to its separator and ends its text with a NUL, which may
 * overwrite the separator: *separator keeps it. */
static bool read_field(struct csv_reader *reader, char *separator)
{
    char *text = reader->next;
    char *text_end = text;
    if (reader->next < reader->end && *reader->next == '"') {
        if (!read_quoted_field(reader, &text_end))
            return false;
        if (!at_field_end(reader))
            return fail_here(reader, "text after a closing quote");
    } else {
        if (!read_bare_field(reader))
            return false;
        text_end = reader->next;
    }
    *separator = reader->next < reader->end ? *reader->next : '\0';
    reader->cut = reader->next >= reader->end;
    if (*separator == ',')
        reader->next++;
    else
        skip_line_end(reader);
    /* The buffer has one byte behind its end for the last field's NUL. */
    *text_end = '\0';
    return add_field(reader, text);
}

/* One bit for each of 64 characters, the first one's the lowest: is it a comma?
 * Eight at a time: a byte of difference that is 0 leaves its highest bit free, and a
 * product gathers the eight highest bits. */
static uint64_t find_commas(const char *text)
{
    static const uint64_t low_bits = 0x7f7f7f7f7f7f7f7fu;
    uint64_t found = 0;
    for (int word = 0; word < 8; word++) {
        uint64_t difference;
        memcpy(&difference, text + 8 * word, sizeof difference);
        difference ^= 0x2c2c2c2c2c2c2c2cu;
        uint64_t high_bits = ~(((difference & low_bits) + low_bits) | difference | low_bits);
        found |= ((high_bits >> 7) * 0x0102040810204080u) >> 56 << (8 * word);
    }
    return found;
}

/* Whether split_plain can take the record: a line without a quote, a carriage return
 * but that of its end, or a NUL byte. The first character is the lowest byte of a word
 * only on machines that count from there. */
static bool is_plain(const struct csv_reader *reader)
{
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (!reader->plain_end)
        return false;
    size_t size = (size_t)(reader->plain_end - reader->next);
    size -= size > 0 && reader->plain_end[-1] == '\r';
    return !memchr(reader->next, '\r', size) && !memchr(reader->next, '\0', size);
#else
    (void)reader;
    return false;
#endif
}

/* What the fields of nearly every record are found by, without a look at each
 * character. */
static bool split_plain(struct csv_reader *reader)
{
    char *text = reader->next;
    char *from = text;
    char *end = reader->plain_end;
    end -= end > text && end[-1] == '\r';
    while (from < end) {
        uint64_t commas = end - from >= 64 ? find_commas(from) : *from == ',';
        char *next = from + (end - from >= 64 ? 64 : 1);
        for (; commas; commas &= commas - 1) {
            char *comma = from + __builtin_ctzll(commas);
            *comma = '\0';
            if (!add_field(reader, text))
                return false;
            text = comma + 1;
        }
        from = next;
    }
    *end = '\0';
    reader->next = reader->plain_end + 1;
    reader->cut = false;
    start_line(reader);
    return add_field(reader, text);
}

static enum csv_outcome read_record(struct csv_reader *reader)
{
    do {
        if (!hold_record(reader))
            return CSV_ERROR;
    } while (skip_line_end(reader));
    if (reader->next >= reader->end)
        return CSV_END;
    reader->record_line = reader->line;
    reader->field_count = 0;
    if (is_plain(reader))
        return split_plain(reader) ? CSV_RECORD : CSV_ERROR;
    char separator = ',';
    while (separator == ',')
        if (!read_field(reader, &separator))
            return CSV_ERROR;
    return CSV_RECORD;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Two columns of one name would leave open which of them counts. */
static bool names_differ(struct csv_reader *reader)
{
    size_t size = reader->column_count * sizeof reader->names[0];
    char **sorted = malloc(size);
    if (!sorted)
        return fail(reader, "%s: not enough memory for the header", reader->path);
    memcpy(sorted, reader->names, size);
    qsort(sorted, reader->column_count, sizeof sorted[0], by_name);
    bool differ = true;
    for (size_t i = 1; differ && i < reader->column_count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            differ = fail(reader, "%s:%zu: column '%.100s': the header names it twice", reader->path,
                          reader->record_line, sorted[i]);
    free(sorted);
    return differ;
}

/* The names outlive the record that they stand in. */
static bool keep_names(struct csv_reader *reader)
{
    size_t size = 0;
    for (size_t i = 0; i < reader->field_count; i++)
        size += strlen(reader->fields[i]) + 1;
    reader->column_count = reader->field_count;
    /* A record has a field at least. NOLINTNEXTLINE(*.UnixAPI) */
    reader->names = malloc(reader->column_count * sizeof reader->names[0]);
    reader->name_bytes = malloc(size);
    if (!reader->names || !reader->name_bytes)
        return fail(reader, "%s: not enough memory for the header", reader->path);
    char *next = reader->name_bytes;
    for (size_t i = 0; i < reader->column_count; i++) {
        reader->names[i] = strcpy(next, reader->fields[i]);
        next += strlen(next) + 1;
    }
    return names_differ(reader);
}

static bool read_header(struct csv_reader *reader)
{
    reader->line = 1;
    reader->line_start = reader->next;
    if (!hold_record(reader))
        return false;
    if (reader->end - reader->next >= 3 && memcmp(reader->next, "\xEF\xBB\xBF", 3) == 0)
        reader->next += 3;
    enum csv_outcome outcome = read_record(reader);
    if (outcome == CSV_END)
        return fail(reader, "%s:1: no header: the file is empty", reader->path);
    return outcome == CSV_RECORD && keep_names(reader);
}

bool csv_open(struct csv_reader *reader, const char *path)
{
    *reader = (struct csv_reader){.path = path};
    reader->stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!reader->stream)
        return fail(reader, "%s: cannot open: %s", path, strerror(errno));
    return grow(reader) && read_header(reader);
}

bool csv_open_bytes(struct csv_reader *reader, const char *path, const char *bytes, size_t size)
{
    *reader = (struct csv_reader){.path = path, .at_end = true};
    reader->buffer = malloc(size + 1);
    if (!reader->buffer)
        return fail(reader, "%s: not enough memory to read it", path);
    if (size > 0)
        memcpy(reader->buffer, bytes, size);
    reader->next = reader->buffer;
    reader->end = reader->buffer + size;
    return read_header(reader);
}

enum csv_outcome csv_next(struct csv_reader *reader)
{
    enum csv_outcome outcome = read_record(reader);
    if (outcome != CSV_RECORD || reader->field_count == reader->column_count)
        return outcome;
    size_t shorter = reader->field_count < reader->column_count ? reader->field_count : reader->column_count;
    fail(reader, "%s:%zu: column '%.100s': the line has %zu fields, the header %zu", reader->path,
         reader->record_line, shorter < reader->column_count ? reader->names[shorter] : "(behind the last)",
         reader->field_count, reader->column_count);
    return CSV_ERROR;
}

int csv_column(const struct csv_reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->column_count; i++)
        if (strcmp(reader->names[i], name) == 0)
            return (int)i;
    return -1;
}

void csv_close(struct csv_reader *reader)
{
    free(reader->buffer);
    free(reader->fields);
    free(reader->names);
    free(reader->name_bytes);
    if (reader->stream && reader->stream != stdin)
        fclose(reader->stream);
    *reader = (struct csv_reader){0};
}
