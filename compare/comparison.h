/* Pairs the cases of two sides, says what became of each, and gives those that
 * can be judged to the verdict rule. */
#ifndef GPUBENCH_COMPARE_COMPARISON_H
#define GPUBENCH_COMPARE_COMPARISON_H

#include "constant.h"
#include "outcome.h"
#include "results.h"
#include "verdict.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

/* The exit status of the program. */
enum { EXIT_FINE = 0, EXIT_WORSE = 1, EXIT_CANNOT_JUDGE = 2 };

struct settings {
    struct rule rule;
    const struct metric *metric;
    const regex_t *filter; /* on the case's label; NULL takes every case */
    bool subset;           /* cases may be missing in current */
    /* Params of suites that measure as much as the host has, as "scaling:gpus,collective:n", or
     * NULL: cases that only hosts of another number have are not missing. */
    const char *host_params;
    bool ignore_device;
    bool keep_constant; /* of the host: compare times as measured */
    /* 0, or what a screen in front of a race lets pass: an inconclusive case whose
     * median is at most this much worse than the baseline's (0.02 for 2 %). What is
     * worse by more is to be raced. */
    double screen;
    const struct constants *constants; /* what was found of it, or NULL */
};

struct case_result {
    uint32_t case_id;
    uint32_t baseline_case_id; /* another one where variants are compared */
    enum outcome outcome;
    bool in_current; /* rows, whatever their status */
    struct problem problem;
    const char *other_flush; /* the mode that the other side has instead, or NULL */
    double baseline_median;  /* of the metric, without the constant; NAN without values */
    double current_median;
    double drift; /* of the baseline: log of its last campaign over its first; 0 of one */
    double measured_log_ratio; /* of the medians as measured, as costs; where judged */
    size_t baseline_throttled; /* how many runs are no evidence because of that */
    size_t current_throttled;
    struct evidence evidence; /* these three only where judged */
    struct judgement judgement;
    double smallest_change;
};

/* A run that stands far from the others of its side. Those of the baseline are
 * left out; those of current count, and are named. */
struct far_run {
    const struct row *row;
    size_t result;
    bool in_baseline;
    double change; /* against the median of its side, as a fraction */
};

struct race_summary;

struct comparison {
    const struct settings *settings;
    const struct catalogue *catalogue;
    const struct results *baseline;
    const struct results *current; /* the same results where variants are compared */
    bool of_variants;
    const struct race_summary *race; /* how the two sides were measured, if by a race */
    struct case_result *results;
    size_t count;
    struct far_run *far_runs;
    size_t far_count;
    size_t far_capacity;
    size_t suites; /* with judged cases: each a family of Holm's correction */
    size_t common; /* cases with rows on both sides */
    size_t other_flushes; /* cases that one side has behind another flush */
    const struct row *device_row; /* a row on another device than its case's first, or NULL */
    const struct row *device_first;
    bool device_row_in_baseline;
    size_t device_cases; /* how many cases have such a row */
};

/* comparison_free is due either way; false means that memory ran out. */
bool compare_sides(struct comparison *comparison, const struct settings *settings,
                   const struct catalogue *catalogue, const struct results *baseline,
                   const struct results *current);

/* Within one side, each variant against the first of its case. */
bool compare_variants(struct comparison *comparison, const struct settings *settings,
                      const struct catalogue *catalogue, const struct results *results);

void comparison_free(struct comparison *comparison);

size_t count_outcomes(const struct comparison *comparison, enum outcome outcome);
size_t count_verdicts(const struct comparison *comparison, enum verdict verdict);

/* EXIT_CANNOT_JUDGE where a case holds no valid value or other work, or no case
 * could be judged; else EXIT_WORSE where one is slower, missing or no longer
 * ok; else EXIT_FINE. Between variants, slower and not ok are findings. */
int comparison_status(const struct comparison *comparison);

/* current / baseline of the metric, and its interval, from costs. */
struct ratio {
    double value, low, high;
};
struct ratio metric_ratio(const struct case_result *result, const struct metric *metric);

/* Whether the filter takes a case; settings->filter may be NULL. */
bool case_is_wanted(const struct settings *settings, const struct case_key *key);

/* The natural logarithm of what the metric costs: a slowdown is positive
 * whether the metric is a time or a throughput. value > 0. */
double log_cost(const struct metric *metric, double value);

#endif
