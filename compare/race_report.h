/* What a report of a race says beside the verdicts. */
#ifndef GPUBENCH_COMPARE_RACE_REPORT_H
#define GPUBENCH_COMPARE_RACE_REPORT_H

#include "comparison.h"
#include "race_files.h"
#include "report.h"

#include <stdio.h>

struct race_summary {
    const char *programs[2];
    bool same_file; /* a race of a program against itself */
    size_t pairs;
    uint64_t first_seed; /* that of a pair is one more than that of the pair before */
    size_t processes;
    bool verified_once; /* in the warm-up; else in each process */
    double seconds;
    double place_effect;  /* median over the cases of the logarithm of first / second */
    size_t pairs_outside; /* left out by the fence, over all cases */
    size_t open;          /* cases that stayed inconclusive */
    bool all_looks;       /* the race went to its last pair */
    bool out_of_time;     /* or --race-seconds ended it */
    const struct race_flags *flags;
    const char *kept; /* the folder with the rows, or NULL */
};

/* A line or more on how the race was run, before and after the verdicts. */
void report_race_before(FILE *out, const struct race_summary *race, enum format format);
void report_race_after(FILE *out, const struct race_summary *race, enum format format);

#endif
