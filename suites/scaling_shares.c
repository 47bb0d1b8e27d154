/*
 * scaling_shares.c - where a step's time goes: see scaling_shares.h.
 */
#include "scaling_shares.h"

#include "../gpubench.h"

#include <string.h>

static double least_at(const collective_stalls *each, int ranks, int join)
{
    double least = each[0].stall_us[join];
    for (int i = 1; i < ranks; i++)
        least = each[i].stall_us[join] < least ? each[i].stall_us[join] : least;
    return least;
}

/* The waiting and the computing of one rank. */
static void add_rank(step_shares *s, const collective_stalls *one, const double *least, int rank,
                     double *shortest)
{
    double wait = 0, stalled = 0;
    for (int k = 0; k < one->joins; k++) {
        wait += one->stall_us[k] - least[k];
        stalled += one->stall_us[k];
    }
    s->wait_us += wait;
    s->compute_us += one->us - stalled;
    if (wait > s->longest_us) s->longest_us = wait;
    if (rank == 0 || wait < *shortest) {
        *shortest = wait;
        s->slowest = rank;
    }
}

step_shares step_shares_of(const collective_stalls *each, int ranks)
{
    step_shares s = {0, 0, 0, 0, 0};
    double least[COLLECTIVE_MOST_JOINS], shortest = 0;
    for (int i = 0; i < ranks; i++)
        if (!(each[i].us > 0) || each[i].joins != each[0].joins) return s;
    for (int k = 0; k < each[0].joins; k++) {
        least[k] = least_at(each, ranks, k);
        s.exposed_us += least[k];
    }
    for (int i = 0; i < ranks; i++) add_rank(&s, &each[i], least, i, &shortest);
    s.compute_us /= ranks;
    s.wait_us /= ranks;
    return s;
}

void step_history_add(step_history *h, const step_shares *one)
{
    h->steps[h->count++ % STEPS_KEPT] = *one;
}

static double median_of(const step_history *h, size_t count, size_t offset)
{
    gpubench_statistics statistics;
    double values[STEPS_KEPT];
    for (size_t i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&h->steps[i] + offset, sizeof *values);
    gpubench_describe(values, count, &statistics);
    return statistics.median;
}

step_shares step_history_median(const step_history *h)
{
    const size_t count = h->count < STEPS_KEPT ? (size_t)h->count : STEPS_KEPT;
    step_shares s = {0, 0, 0, 0, 0};
    int votes[COLLECTIVE_MOST_RANKS] = {0};
    if (count == 0) return s;
    s.compute_us = median_of(h, count, offsetof(step_shares, compute_us));
    s.exposed_us = median_of(h, count, offsetof(step_shares, exposed_us));
    s.wait_us = median_of(h, count, offsetof(step_shares, wait_us));
    s.longest_us = median_of(h, count, offsetof(step_shares, longest_us));
    for (size_t i = 0; i < count; i++) votes[h->steps[i].slowest]++;
    for (int i = 1; i < COLLECTIVE_MOST_RANKS; i++)
        if (votes[i] > votes[s.slowest]) s.slowest = i;
    return s;
}
