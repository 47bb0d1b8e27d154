/* From the runs of two sides to a verdict, as pure functions.
 *
 * The unit is a process run and its value is the logarithm of a cost (a time,
 * or one over a throughput), so that a difference is a relative change and a
 * slowdown is positive. The rule:
 *
 *  1. Baseline runs beyond Tukey's far fence and 10 % are left out, but no more
 *     than a tenth of them and no whole campaign; current ones never.
 *  2. The change is the difference of the mean logarithms. Its standard error
 *     comes from the spread between runs, pooled over both sides. Where the
 *     baseline has three campaigns or more, the spread between campaigns is
 *     estimated too (one-way analysis of variance within each side, by the
 *     method of moments: Searle, Casella and McCulloch 1992, "Variance
 *     Components", chapter 3) and counted for each campaign of either side;
 *     its degrees of freedom are such that more runs never widen a bound.
 *  3. The cases of one comparison lend each other what their spreads have in
 *     common (Smyth 2004, moderated variances): the variance between runs,
 *     and the ratio of the mean squares between and within campaigns. Where
 *     they tell less than the case's own runs do, they may widen its spread
 *     and not narrow it.
 *  4. SLOWER needs three things. The case by itself is beyond the margin
 *     (Student's t, one-sided, at the confidence asked for). It survives Holm's
 *     correction over all cases in one of two tests: "any change at all", at
 *     the rate of false alarms asked for, or "more than the margin", at the
 *     confidence. And its median run is beyond the margin: one run that took
 *     ten times as long is no slower kernel. FASTER is the mirror.
 *
 *     The two tests share the work. "Any change at all" does not lose sight of
 *     a 5 % slowdown among a hundred cases, and where nothing changed it keeps
 *     the chance of any alarm below its rate; what it promises of the margin
 *     holds for each case by itself. "More than the margin" is the sharper one
 *     for cases that spread by more than about 3 %, and what it promises holds
 *     for all claims together. Where nothing changed, an alarm by either is at
 *     worst as likely as the rate and 1 - confidence together.
 *  5. A baseline of one or two campaigns does not tell what another card or sitting
 *     does to a case. Its intervals are those of the sittings that were measured;
 *     SLOWER and FASTER, which claim something of the code, count a spread between
 *     campaigns of 1 % beside the runs', as if known from 31 campaigns (where cards
 *     spread by that, 34 to 98 % of families of 20 and 100 cases raised an alarm
 *     without it).
 *  6. SAME when the whole interval lies inside the margin, two one-sided tests
 *     (Schuirmann 1987). Otherwise INCONCLUSIVE.
 *
 * A baseline of one run has no spread: then a plain relative threshold rules,
 * and the interval is NAN. */
#ifndef GPUBENCH_COMPARE_VERDICT_H
#define GPUBENCH_COMPARE_VERDICT_H

#include "evidence.h"

#include <stdbool.h>
#include <stddef.h>

/* What the command line starts from. */
struct rule default_rule(void);

/* PASSED is not the rule's: a screen (comparison.h) lets an inconclusive case pass. */
enum verdict {
    VERDICT_SAME,
    VERDICT_PASSED,
    VERDICT_INCONCLUSIVE,
    VERDICT_FASTER,
    VERDICT_SLOWER
};

enum reason {
    REASON_BEYOND_THRESHOLD, /* of a baseline of one run */
    REASON_WITHIN_THRESHOLD,
    REASON_BEYOND_MARGIN,
    REASON_WITHIN_MARGIN,
    REASON_ACROSS_MARGIN,  /* the interval holds changes of both kinds */
    REASON_ONE_AMONG_MANY, /* beyond the margin alone, not after Holm */
    REASON_FEW_RUNS,       /* beyond the margin, but the median run is not */
    REASON_FEW_CAMPAIGNS,  /* beyond the margin, but a card or a sitting may do that */
    REASON_FEW_PAIRS,      /* of a race: they make no interval */
};

struct judgement {
    enum verdict verdict;
    enum reason reason;
    double log_ratio;
    double low; /* bounds of log_ratio; NAN without a spread */
    double high;
    double standard_error; /* of what the interval tells */
    double degrees;
    double claim_error; /* of what SLOWER and FASTER claim: of point 5 too */
    double claim_degrees;
    double run_spread;      /* standard deviations of the logarithm */
    double campaign_spread; /* 0 where campaigns are not counted */
    size_t family;          /* how many cases Holm's correction was over */
};

/* Judges the cases of one comparison together. Returns false when memory ran
 * out. */
bool judge_family(const struct evidence *evidence, size_t count, const struct rule *rule,
                  struct judgement *judgements);

/* The smallest true slowdown, as a fraction, that a comparison with this
 * spread and this many cases finds nine times in ten. */
double smallest_change(const struct judgement *judgement, const struct rule *rule);

#endif
