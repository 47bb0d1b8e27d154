#include "label.h"

#include <stdlib.h>
#include <string.h>

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static char *append(char *end, const char *text)
{
    for (; *text; text++)
        *end++ = is_control(*text) ? '?' : *text;
    return end;
}

char *case_label(const struct case_key *key, const char *behind)
{
    size_t size = behind ? strlen(behind) + sizeof " ()" : 1;
    for (int part = 0; part < KEY_PARTS; part++)
        size += strlen(key->parts[part]) + 1;
    char *label = malloc(size);
    char *end = label;
    for (int part = 0; label && part < KEY_PARTS; part++) {
        if (*key->parts[part] == '\0')
            continue;
        if (end > label)
            *end++ = ' ';
        end = append(end, key->parts[part]);
    }
    if (label && behind) {
        end = append(append(end, " ("), behind);
        *end++ = ')';
    }
    if (label)
        *end = '\0';
    return label;
}

void print_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        putc(is_control(*text) ? '?' : *text, out);
}
