/* gpubench-compare --race OLD NEW: two programs built on gpubench.h, measured in
 * turns on one card and judged as pairs (race_judge.h). */
#ifndef GPUBENCH_COMPARE_RACE_H
#define GPUBENCH_COMPARE_RACE_H

#include "comparison.h"
#include "options.h"

/* Runs the race that the options describe and hands the comparison to finish,
 * which reports it. Returns the exit status; a signal that ends programs ends this
 * one when its process has ended and its files are gone. */
int run_race(const struct options *options, const struct settings *settings,
             int (*finish)(const struct options *, const struct comparison *));

#endif
