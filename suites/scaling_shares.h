/*
 * scaling_shares.h - where the time of a step on several ranks goes: to computing, to
 * communication that nothing hides, and to waiting for the slowest rank.
 *
 * At a join a rank's stream stands still until what was started is done, which no rank's is
 * before the last one has come to it. So what the rank with the least to stand still for
 * stands still is the communication's, and what another one does beyond that, waiting.
 * Joins are taken one by one: by the sum alone two ranks that are late in turn would both
 * seem to be in time.
 */
#ifndef SCALING_SHARES_H
#define SCALING_SHARES_H

#include "../kernels/collective/collective.h"

/* Means over the ranks, in microseconds of one step, that add up to what it took. longest:
 * the wait of the rank that waits most; slowest: the one that waits least. */
typedef struct step_shares {
    double compute_us, exposed_us, wait_us, longest_us;
    int slowest;
} step_shares;

/* each: of every rank. All zero where a rank has no times. */
step_shares step_shares_of(const collective_stalls *each, int ranks);

/* The last so many steps of a case. */
enum { STEPS_KEPT = 63 };
typedef struct step_history {
    step_shares steps[STEPS_KEPT];
    uint64_t count; /* of all that there were */
} step_history;

void step_history_add(step_history *h, const step_shares *one);

/* The median of each number, and the rank that was slowest most often. */
step_shares step_history_median(const step_history *h);

#endif
