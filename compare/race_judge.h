/* The statistics of a race: two programs measured in turns on one card, judged
 * as pairs.
 *
 * A pair is one process of OLD and one of NEW, next to each other in time; its
 * value for a case is the difference of the logarithms of the two medians. What
 * card, host and sitting do to a case is in both and cancels.
 *
 *  1. The sides take turns in going first. The change is the mean of two means,
 *     that of the pairs with OLD first and that of those with NEW first: what the
 *     place within a pair costs, and a steady drift, are in these with opposite
 *     signs and cancel, whether or not the two kinds are equally many. Two degrees
 *     of freedom are spent on it.
 *  2. A pair beyond Tukey's far fence and 10 % is left out, at most one of ten, on
 *     whichever side the slow process was.
 *  3. The rule is verdict.h's points 3 to 5, at four looks: after 5, 10, 20 and 40
 *     pairs. A look may spend of both error rates the share that its new pairs have
 *     in all 40 (Lan and DeMets 1983, "Discrete sequential boundaries for clinical
 *     trials", with the linear spending function, the power family of Kim and
 *     DeMets 1987 with exponent 1): 1/8, 1/8, 1/4, 1/2. The shares are used as the
 *     levels of the looks, and the looks bounded by their sum, so that nothing is
 *     assumed about how the looks depend on each other; the intervals hold at all
 *     looks together (Jennison and Turnbull 1989, "Interim analyses: the repeated
 *     confidence interval approach").
 *  4. A case that is SLOWER, FASTER or SAME at a look is decided and is measured no
 *     more. Holm's correction still counts those that are SAME: they left because
 *     of what they measured, and the ones that stay are those that look worst, so a
 *     correction for these alone would alarm too often. Those found SLOWER or
 *     FASTER are not counted any more, as in Holm's procedure itself (Maurer and
 *     Bretz 2013, "Multiple testing in group sequential trials using graphical
 *     approaches"). */
#ifndef GPUBENCH_COMPARE_RACE_JUDGE_H
#define GPUBENCH_COMPARE_RACE_JUDGE_H

#include "verdict.h"

enum { race_looks = 4, race_most_pairs = 40 };

/* How many pairs there are at each look. */
extern const size_t race_pairs_at[race_looks];

struct race_pair {
    double log_ratio; /* of the costs, new / old */
    bool new_first;
    bool outside; /* left out by the fence */
};

struct race_case {
    struct race_pair pairs[race_most_pairs];
    size_t count;
    bool decided;
    size_t look;         /* at which it was judged last */
    double place_effect; /* logarithm of first / second */
    struct evidence evidence;
    struct judgement judgement;
};

/* The rule at a look. */
struct rule race_rule(const struct rule *rule, size_t look);

/* Judges the cases that are not decided, with all pairs that they have. One with
 * fewer than three pairs, or without a pair of either order, stays inconclusive.
 * False means that memory ran out. */
bool race_judge(struct race_case *cases, size_t count, const struct rule *rule, size_t look);

#endif
