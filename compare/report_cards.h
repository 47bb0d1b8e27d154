/* Cards against the others of their model, written for a reader or a program. */
#ifndef GPUBENCH_COMPARE_REPORT_CARDS_H
#define GPUBENCH_COMPARE_REPORT_CARDS_H

#include "cards.h"
#include "report.h"

/* As text, or as CSV or JSON with every card; the text has those that are not odd where all
 * is set. */
void report_cards(FILE *out, const struct cards_result *result, const struct settings *settings,
                  const struct catalogue *catalogue, const struct results *results,
                  enum format format, bool all);

#endif
