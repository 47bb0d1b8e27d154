/* The name of a case as a reader sees it. */
#ifndef GPUBENCH_COMPARE_LABEL_H
#define GPUBENCH_COMPARE_LABEL_H

#include "results.h"

#include <stdio.h>

/* The parts of the key that are not empty, separated by blanks; control characters,
 * and what a CI's log would take for a command, become question marks, so that a name
 * from a file cannot steer a terminal or a log. behind
 * may be NULL; it follows in brackets. To be freed; NULL when memory ran out. */
char *case_label(const struct case_key *key, const char *behind);

/* Any text from a file, with the same replaced. */
void print_plain(FILE *out, const char *text);

#endif
