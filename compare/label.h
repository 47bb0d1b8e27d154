/* A case's key as one line of text. */
#ifndef GPUBENCH_COMPARE_LABEL_H
#define GPUBENCH_COMPARE_LABEL_H

#include "results.h"

#include <stdio.h>

enum { label_capacity = 512 };

/* The parts of the key that are not empty, with blanks between them. Control
 * characters become '?', so that a label stays on its line and no terminal
 * obeys it. A longer label ends in "..." . Returns label. */
const char *case_label(const struct case_key *key, char label[label_capacity]);

/* Any text from a file, with control characters made harmless. */
void print_plain(FILE *out, const char *text);

#endif
