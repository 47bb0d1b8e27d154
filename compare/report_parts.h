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

/* How text from the files is written. */
struct style {
    void (*print)(FILE *, const char *);
    void (*print_path)(FILE *, const char *);
};

extern const struct style plain_style;

/* Why, in one line: the rule that decided, the spread and the runs. */
void print_reason(FILE *out, const struct comparison *comparison, const struct style *style,
                  const struct case_result *result);

/* The file and the line of a row. */
void print_place(FILE *out, const struct comparison *comparison, const struct style *style,
                 const struct row *row, bool in_baseline);

/* "12 cases: 1 slower, 11 same; ..." in one line. */
void print_summary(FILE *out, const struct comparison *comparison);

/* What a reader should know beside the verdicts, one line each: other drivers,
 * runs left out. prefix begins every line. */
void print_notes(FILE *out, const struct comparison *comparison, const struct style *style, const char *prefix);

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

/* What a reader has to see: what changed, got lost or cannot be right; what cannot be
 * told; and what is as it was. Each case is one of the three. */
bool is_news(const struct case_result *result);
bool is_inconclusive(const struct case_result *result);
bool is_unchanged(const struct case_result *result);
bool is_any(const struct case_result *result);

/* The wanted cases in the listing's order, by change the most urgent first; count is set.
 * NULL when memory ran out. To be freed. */
const struct case_result **list_cases(const struct comparison *comparison, const struct listing *listing,
                                      bool (*wanted)(const struct case_result *), size_t *count);

/* The geometric mean of all changes, the cards and the runs of both sides. */
void print_overview(FILE *out, const struct comparison *comparison, const struct style *style,
                    const char *prefix);

/* What a reader may do about it: the command line of a race. */
void print_next(FILE *out, const struct comparison *comparison);

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

/* A name from a file for a table that people may open in a spreadsheet, which computes what
 * begins with =, +, - or @, in quotes or not: an apostrophe in front keeps it from that. */
void print_csv_name(FILE *out, const char *text);

/* A decimal that reads back as the same double; nothing for NAN. */
void print_csv_number(FILE *out, double value);

#endif
