#include "label.h"

#include <string.h>

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static size_t append(char *label, size_t size, const char *text)
{
    for (; *text && size < label_capacity - 4; text++)
        label[size++] = is_control(*text) ? '?' : *text;
    if (*text && size >= 3)
        memcpy(label + size, "...", 4);
    return size;
}

const char *case_label(const struct case_key *key, char label[label_capacity])
{
    size_t size = 0;
    memset(label, 0, label_capacity);
    for (int part = 0; part < KEY_PARTS; part++) {
        if (*key->parts[part] == '\0')
            continue;
        if (size > 0)
            size = append(label, size, " ");
        size = append(label, size, key->parts[part]);
    }
    return label;
}

void print_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        putc(is_control(*text) ? '?' : *text, out);
}
