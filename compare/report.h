/* A comparison, or an A/A result, written for a reader or for a program. */
#ifndef GPUBENCH_COMPARE_REPORT_H
#define GPUBENCH_COMPARE_REPORT_H

#include "comparison.h"
#include "self.h"

#include <stdio.h>

enum format { FORMAT_TEXT, FORMAT_MARKDOWN, FORMAT_CSV };

/* colour is for text on a terminal only. */
void report_comparison(FILE *out, const struct comparison *comparison, enum format format, bool colour);

void report_self(FILE *out, const struct self_result *result, const struct settings *settings,
                 const struct catalogue *catalogue, enum format format);

#endif
