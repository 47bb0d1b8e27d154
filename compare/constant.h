/* The host's constant, taken out of a comparison.
 *
 * Two events with nothing between them read 1.25 us on hosts with one GPU and
 * 3.0 us on hosts with several (H100, H200). That is in every time, so that
 * identical code comes out faster or slower on another host. An empty kernel by
 * the same method in the same process, overhead_us, has it too: two hosts' empty
 * kernels differ by what their constants differ.
 *
 * What is taken from a row is the median of its campaign and mode, a campaign
 * being one sitting on one host, pooled with those that lie within 0.1 us of it.
 * Each row's own overhead_us says less: it is one
 * median of a few hundred launches, and taking it out doubled the spread between
 * runs of attention's kernels below 10 us (0.7 to 1.4 %), where the campaign's
 * median left it as it was, in all nine suites.
 *
 * Left alone are: rows of the CPU backend (there is no event), mode hot (its two
 * events stand around 256 launches or 1.5 ms, of which a difference of 1.75 us is
 * at most 0.4 %, and overhead_us is what a back-to-back launch costs), rows
 * without overhead_us, and campaigns pooled with most of the baseline: 0.1 us are
 * three steps of an event, and as far as campaigns of one kind of host come apart. */
#ifndef GPUBENCH_COMPARE_CONSTANT_H
#define GPUBENCH_COMPARE_CONSTANT_H

#include "results.h"

/* What two sides' empty kernels take in one mode, where something is taken out. */
struct constant {
    const char *mode;
    double baseline_us; /* of most of its rows: where every row is moved to */
    double current_us;  /* of most of its rows; 0 where there are none */
    size_t moved_rows;
};

enum { most_constants = 16 };

struct constants {
    struct constant of_mode[most_constants];
    size_t count;
};

/* Fills shift_us of the rows of both sides; current may be empty. Returns false
 * when memory ran out. */
bool find_constants(struct constants *constants, const struct catalogue *catalogue, struct results *baseline,
                    struct results *current);

/* The row's metric with the constant taken out. Not above 0 where the constant is
 * as long as the time. */
double value_without_constant(const struct metric *metric, const struct row *row);

#endif
