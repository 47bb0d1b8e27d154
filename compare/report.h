/* A comparison, or an A/A result, written for a reader or for a program. */
#ifndef GPUBENCH_COMPARE_REPORT_H
#define GPUBENCH_COMPARE_REPORT_H

#include "comparison.h"
#include "self.h"

#include <stdio.h>

enum format { FORMAT_TEXT, FORMAT_MARKDOWN, FORMAT_CSV, FORMAT_GITHUB, FORMAT_JSON };

enum sort { SORT_CHANGE, SORT_NAME, SORT_FILE };

/* Which cases a text or markdown report lists, and in which order. */
struct listing {
    enum sort sort;
    size_t limit; /* 0 lists as many as there are */
    bool screen;  /* text: fewer where not all of the report would fit a screen */
    bool all;     /* also the cases without a change and the inconclusive ones */
};

/* colour is for text on a terminal only. */
void report_comparison(FILE *out, const struct comparison *comparison, enum format format,
                       const struct listing *listing, bool colour);

void report_self(FILE *out, const struct self_result *result, const struct settings *settings,
                 const struct catalogue *catalogue, enum format format);

#endif
