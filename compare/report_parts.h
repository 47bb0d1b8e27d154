/* What the reports in several formats share. */
#ifndef GPUBENCH_COMPARE_REPORT_PARTS_H
#define GPUBENCH_COMPARE_REPORT_PARTS_H

#include "report.h"

#include <stdio.h>

/* How a reader should look at a case, the most urgent first. */
enum urgency { URGENCY_BAD, URGENCY_UNSURE, URGENCY_GOOD, URGENCY_CALM, URGENCY_LEVELS };

enum urgency urgency_of(const struct case_result *result);

/* One or two words, such as SLOWER or "not ok". */
const char *verdict_word(const struct case_result *result);

/* Why, in one line: the rule that decided, the spread and the runs. */
void print_reason(FILE *out, const struct comparison *comparison, const struct case_result *result);

/* "12 cases: 1 slower, 11 same; ..." in one line. */
void print_summary(FILE *out, const struct comparison *comparison);

/* What a reader should know beside the verdicts, one line each: other drivers,
 * runs left out. prefix begins every line. */
void print_notes(FILE *out, const struct comparison *comparison, const char *prefix);

/* With what probability both bounds of an interval hold, in per cent. */
double interval_level(const struct rule *rule);

/* The rule in force, in one line. */
void print_rule(FILE *out, const struct settings *settings);

/* The number with four significant digits and no exponent; "-" for NAN. */
void print_value(FILE *out, int width, double value);

/* The name of the case, against which variant it stands where variants are
 * compared. */
void print_label(FILE *out, const struct comparison *comparison, const struct case_result *result,
                 void (*print)(FILE *, const char *));

/* The name of any case, with something in brackets behind it, or NULL. */
void print_case_label(FILE *out, const struct case_key *key, const char *behind,
                      void (*print)(FILE *, const char *));

/* The cases of the urgencies from one to another in the listing's order, the most
 * urgent first; count is set. NULL when memory ran out. To be freed. */
const struct case_result **list_cases(const struct comparison *comparison, const struct listing *listing,
                                      enum urgency from, enum urgency to, size_t *count);

/* The geometric mean of all changes, the cards and the runs of both sides. */
void print_overview(FILE *out, const struct comparison *comparison, const char *prefix);

void report_text(FILE *out, const struct comparison *comparison, const struct listing *listing, bool colour);
void report_markdown(FILE *out, const struct comparison *comparison, const struct listing *listing);

/* Annotations of GitHub's workflow commands: one for each case that fails. */
void report_github(FILE *out, const struct comparison *comparison);

/* One object for programs: what was compared, by which rule, and each case. */
void report_json(FILE *out, const struct comparison *comparison);
void report_csv(FILE *out, const struct comparison *comparison);

/* Text with the characters that markdown and HTML would obey made harmless. */
void print_markdown(FILE *out, const char *text);

/* One field of RFC 4180, quoted where it must be. */
void print_csv_field(FILE *out, const char *text);

/* A decimal that reads back as the same double; nothing for NAN. */
void print_csv_number(FILE *out, double value);

#endif
