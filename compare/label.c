#include "label.h"

#include "utf8.h"

#include <stdlib.h>
#include <string.h>

/* Control characters of ASCII, and those that UTF-8 spells with two bytes, as terminals
 * obey them, too; so do some of a byte that is no UTF-8. */
static bool is_control(const unsigned char *at, size_t length)
{
    return length == 0 || *at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0);
}

/* A CI's log takes "::error::" at the beginning of a line for a command of its own, and
 * "##[error]" and "##vso[" anywhere. */
static bool is_command(bool begins, char before, const char *at)
{
    return (begins && at[0] == ':' && at[1] == ':') || (before == '#' && at[0] == '#');
}

/* A text on its way to a reader. */
struct walk {
    const char *at;
    char before; /* the byte in front, or 0 */
    bool begun;  /* a visible character has been in front */
    bool hidden; /* the character is to be shown as question marks, one a byte */
};

/* The bytes of the character at `at`, or 0 at the end; it is looked at. */
static size_t look(struct walk *walk)
{
    if (!*walk->at)
        return 0;
    size_t length = utf8_length((const unsigned char *)walk->at);
    walk->hidden = is_control((const unsigned char *)walk->at, length) ||
                   is_command(!walk->begun, walk->before, walk->at);
    return length ? length : 1;
}

/* The next byte as it may be shown. */
static char step(struct walk *walk)
{
    char c = walk->hidden ? '?' : *walk->at;
    walk->begun = walk->begun || (c > 0x20 && c < 0x7f);
    walk->before = *walk->at++;
    return c;
}

static char *append(char *end, const char *text)
{
    struct walk walk = {.at = text};
    for (size_t length; (length = look(&walk));)
        for (; length > 0; length--)
            *end++ = step(&walk);
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
    struct walk walk = {.at = text};
    for (size_t length; (length = look(&walk));)
        for (; length > 0; length--)
            putc(step(&walk), out);
}
