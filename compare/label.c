#include "label.h"

#include <stdlib.h>
#include <string.h>

/* Control characters of ASCII, and those that UTF-8 spells with two bytes, as terminals
 * obey them, too. before: the text's character in front, or 0. */
static bool is_control(char before, const char *at)
{
    unsigned char c = (unsigned char)*at;
    unsigned char next = (unsigned char)at[1];
    if (c == 0xc2)
        return next >= 0x80 && next < 0xa0;
    return c < 0x20 || c == 0x7f || ((unsigned char)before == 0xc2 && c >= 0x80 && c < 0xa0);
}

/* A CI's log takes "::error::" at the beginning of a line for a command of its own, and
 * "##[error]" and "##vso[" anywhere. */
static bool is_command(bool begins, char before, const char *at)
{
    return (begins && at[0] == ':' && at[1] == ':') || (before == '#' && at[0] == '#');
}

/* The character at `at` as it may be shown. begun: has a visible one been in front? */
static char shown(bool *begun, char before, const char *at)
{
    char c = is_control(before, at) || is_command(!*begun, before, at) ? '?' : *at;
    *begun = *begun || (c > 0x20 && c < 0x7f);
    return c;
}

static char *append(char *end, const char *text)
{
    bool begun = false;
    for (const char *at = text; *at; at++)
        *end++ = shown(&begun, at > text ? at[-1] : 0, at);
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
    bool begun = false;
    for (const char *at = text; *at; at++)
        putc(shown(&begun, at > text ? at[-1] : 0, at), out);
}
