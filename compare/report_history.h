/* The history of cases, written for a reader or a program. */
#ifndef GPUBENCH_COMPARE_REPORT_HISTORY_H
#define GPUBENCH_COMPARE_REPORT_HISTORY_H

#include "history.h"
#include "report.h"

/* As text, of the cases that changed or of all, or as CSV or JSON with every
 * campaign. */
void report_history(FILE *out, const struct history *history, const struct settings *settings,
                    const struct catalogue *catalogue, const struct results *results,
                    enum format format, const struct listing *listing);

#endif
