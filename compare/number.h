/* Numbers as a CSV file and a command line spell them, whatever the locale. */
#ifndef GPUBENCH_COMPARE_NUMBER_H
#define GPUBENCH_COMPARE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads a decimal number with a point, such as -12.5e-3. The whole text must
 * be the number: no blanks, no comma, no hexadecimal, no inf, no nan, and
 * nothing too large for a double. Returns false and leaves *out otherwise. */
bool parse_decimal(const char *text, double *out);

/* Whether it is spelled as one, however large. */
bool is_decimal(const char *text);

/* These look at the bits, so that they hold in a build with -Ofast as well. */
bool is_absent(double value);   /* NAN */
bool is_positive(double value); /* above 0 and finite */

/* Reads digits only, up to UINT64_MAX. */
bool parse_whole(const char *text, uint64_t *out);

#endif
