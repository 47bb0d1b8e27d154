/* Characters of UTF-8 (RFC 3629). */
#ifndef GPUBENCH_COMPARE_UTF8_H
#define GPUBENCH_COMPARE_UTF8_H

#include <stddef.h>

/* The bytes of the character at text, or 0 where there is none: no start of one, a cut one,
 * one that is longer than it need be, a surrogate, or one beyond U+10FFFF. */
size_t utf8_length(const unsigned char *text);

#endif
