#include "precise.h"

#include "verdict.h"

#include <math.h>
#include <stdlib.h>

/* How many runs' or campaigns' worth of belief the other cases may lend to
 * one. The prior is fitted as if the cases were independent; they shared a
 * card and a sitting, so its own degrees promise too much. Chosen by
 * simulation: campaign effects that all cases share, 20 and 100 cases. A
 * case with more degrees than these keeps a spread above the prior's however
 * alike the cases are: it has runs enough of its own. */
static const double most_run_degrees = 30.0;
static const double most_campaign_degrees = 12.0;

/* How well the spread between campaigns is known where it is assumed. */
static const double assumed_degrees = 30.0;

/* How surely a change of smallest_change is found. */
static const double detection = 0.9;

struct rule default_rule(void)
{
    return (struct rule){.margin = 0.02,
                         .confidence = 0.95,
                         .false_alarms = 0.01,
                         .threshold = 0.05,
                         .campaign_spread = 0.01};
}

static bool has_spread(const struct evidence *evidence)
{
    return evidence->baseline_runs > 1;
}

static void judge_by_threshold(const struct rule *rule, struct judgement *judgement)
{
    double threshold = log1p(rule->threshold);
    judgement->low = judgement->high = (double)NAN;
    judgement->reason = REASON_BEYOND_THRESHOLD;
    if (judgement->log_ratio > threshold) {
        judgement->verdict = VERDICT_SLOWER;
    } else if (judgement->log_ratio < -threshold) {
        judgement->verdict = VERDICT_FASTER;
    } else {
        judgement->verdict = VERDICT_SAME;
        judgement->reason = REASON_WITHIN_THRESHOLD;
    }
}

/* Scratch for the cases that have a spread, index[i] being their place among
 * all. */
struct family {
    size_t count;
    size_t *index;
    struct variance *variances;
    double *change; /* p-values of "any change at all" */
    double *margin; /* p-values of "more than the margin" */
    bool *alone;    /* beyond the margin by itself */
};

static void free_family(struct family *family)
{
    free(family->index);
    free(family->variances);
    free(family->change);
    free(family->margin);
    free(family->alone);
}

/* The variances are zeroed, as further down and in trend.c: of an empty family nothing is set,
 * and gcc warns of that where it sees the whole program (-flto). */
static bool form_family(const struct evidence *evidence, size_t count, struct family *family)
{
    size_t room = count ? count : 1;
    family->count = 0;
    family->index = malloc(room * sizeof family->index[0]);
    family->variances = calloc(room, sizeof family->variances[0]);
    family->change = malloc(room * sizeof family->change[0]);
    family->margin = malloc(room * sizeof family->margin[0]);
    family->alone = malloc(room * sizeof family->alone[0]);
    if (!family->index || !family->variances || !family->change || !family->margin || !family->alone)
        return false;
    for (size_t i = 0; i < count; i++)
        if (has_spread(&evidence[i]))
            family->index[family->count++] = i;
    return true;
}

static struct variance capped(struct variance prior, double most)
{
    return (struct variance){prior.value, fmin(prior.degrees, most)};
}

/* Replaces the variances by the variances between runs, moderated. */
static void moderate_runs(const struct evidence *evidence, struct family *family)
{
    for (size_t i = 0; i < family->count; i++)
        family->variances[i] = evidence[family->index[i]].run_variance;
    struct variance prior = capped(variance_prior(family->variances, family->count), most_run_degrees);
    for (size_t i = 0; i < family->count; i++)
        family->variances[i] = moderated_variance(family->variances[i], prior);
}

/* The mean square between campaigns in units of the variance between runs:
 * what one campaign is to one run is alike in cases whose spreads differ a
 * hundredfold. No degrees where it does not apply. */
static struct variance campaign_ratio(const struct evidence *evidence, struct variance runs)
{
    if (!evidence->campaigns_counted || runs.value <= 0.0)
        return (struct variance){0.0, 0.0};
    return (struct variance){evidence->between_square.value / runs.value, evidence->between_square.degrees};
}

static bool fit_campaign_prior(const struct evidence *evidence, const struct family *family, struct variance *prior)
{
    struct variance *ratios = calloc(family->count ? family->count : 1, sizeof ratios[0]);
    if (!ratios)
        return false;
    for (size_t i = 0; i < family->count; i++)
        ratios[i] = campaign_ratio(&evidence[family->index[i]], family->variances[i]);
    *prior = capped(variance_prior(ratios, family->count), most_campaign_degrees);
    free(ratios);
    return true;
}

/* The degrees of freedom of a sum of two parts: those whose quantile, at the tail
 * that Holm's first step asks for, makes the bound that both parts' own quantiles
 * make when their reaches are added in squares (as Graybill and Wang 1980 do for
 * variances, "Confidence intervals on nonnegative linear combinations of
 * variances"). Each part that shrinks narrows the bound. Satterthwaite's degrees,
 * which fall towards the campaigns' few as more runs leave less of the runs' part,
 * widened it: five new runs found less than three. Between its ends the logarithm
 * of a quantile is nearly straight in 1 / degrees. */
static double degrees_of_sum(struct variance campaigns, struct variance runs, double tail)
{
    double few = campaigns.degrees;
    double many = runs.degrees;
    if (!(few < many))
        return fmin(few, many);
    double wide = student_quantile(tail, few);
    double narrow = student_quantile(tail, many);
    double total = campaigns.value + runs.value;
    double wanted = sqrt((campaigns.value * wide * wide + runs.value * narrow * narrow) / total);
    double share = log(wanted / narrow) / log(wide / narrow);
    double inverse = share / few + (isinf(many) ? 0.0 : (1.0 - share) / many);
    return inverse > 0.0 ? 1.0 / inverse : many;
}

static void set_error(const struct evidence *evidence, struct variance runs, struct variance campaign_prior,
                      double tail, struct judgement *judgement)
{
    judgement->run_spread = sqrt(runs.value);
    judgement->standard_error = sqrt(runs.value * evidence->run_factor);
    judgement->degrees = runs.degrees;
    if (!evidence->campaigns_counted)
        return;
    struct variance between = evidence->between_square;
    if (runs.value > 0.0) {
        struct variance ratio = moderated_variance(campaign_ratio(evidence, runs), campaign_prior);
        between = (struct variance){ratio.value * runs.value, ratio.degrees};
    }
    if (between.value <= runs.value)
        return;
    double share = evidence->campaign_factor / evidence->runs_per_campaign;
    struct variance by_campaign_part = {share * between.value, between.degrees};
    struct variance by_run_part = {(evidence->run_factor - share) * runs.value, runs.degrees};
    judgement->campaign_spread = sqrt((between.value - runs.value) / evidence->runs_per_campaign);
    judgement->standard_error = sqrt(by_campaign_part.value + by_run_part.value);
    judgement->degrees = degrees_of_sum(by_campaign_part, by_run_part, tail);
}

/* Point 5 of the rule. */
static void set_claim_error(const struct evidence *evidence, const struct rule *rule, double tail,
                            struct judgement *judgement)
{
    double spread = rule->campaign_spread;
    double error = judgement->standard_error;
    struct variance measured = {error * error, judgement->degrees};
    struct variance assumed = {evidence->uncounted_factor * spread * spread, assumed_degrees};
    judgement->claim_error = sqrt(measured.value + assumed.value);
    judgement->claim_degrees = measured.degrees;
    if (assumed.value > 0.0 && measured.degrees < assumed.degrees)
        judgement->claim_degrees = degrees_of_sum(measured, assumed, tail);
    else if (assumed.value > 0.0)
        judgement->claim_degrees = degrees_of_sum(assumed, measured, tail);
}

/* P(a change as large as this | the true one is 0). With no spread at all the
 * change is exact. */
static double tail_of(double change, double error, double degrees)
{
    if (error > 0.0)
        return student_upper_tail(change / error, degrees);
    return change > 0.0 ? 0.0 : 1.0;
}

/* A change beyond the margin by itself: what do the other cases and the median
 * run say to it? */
static void settle(bool survives, bool median_agrees, enum verdict found, struct judgement *judgement)
{
    if (!survives) {
        judgement->reason = REASON_ONE_AMONG_MANY;
    } else if (!median_agrees) {
        judgement->reason = REASON_FEW_RUNS;
    } else {
        judgement->verdict = found;
        judgement->reason = REASON_BEYOND_MARGIN;
    }
}

/* Point 4 of the rule, for slowdowns (direction 1) or speedups (-1). */
static bool find_changes(const struct evidence *evidence, struct family *family, const struct rule *rule,
                         double direction, enum verdict found, struct judgement *judgements)
{
    double alpha = 1.0 - rule->confidence;
    double margin = log1p(rule->margin);
    for (size_t i = 0; i < family->count; i++) {
        struct judgement *judgement = &judgements[family->index[i]];
        double change = direction * judgement->log_ratio;
        double error = judgement->claim_error;
        double degrees = judgement->claim_degrees;
        family->change[i] = tail_of(change, error, degrees);
        family->margin[i] = tail_of(change - margin, error, degrees);
        family->alone[i] = family->margin[i] <= alpha;
        if (tail_of(change - margin, judgement->standard_error, judgement->degrees) <= alpha)
            judgement->reason = REASON_FEW_CAMPAIGNS; /* unless it is beyond that as well */
    }
    if (!holm_adjust(family->change, family->count) || !holm_adjust(family->margin, family->count))
        return false;
    for (size_t i = 0; i < family->count; i++) {
        bool survives = family->change[i] <= rule->false_alarms || family->margin[i] <= alpha;
        bool median_agrees = direction * evidence[family->index[i]].median_log_ratio > margin;
        if (family->alone[i])
            settle(survives, median_agrees, found, &judgements[family->index[i]]);
    }
    return true;
}

static void set_interval(const struct rule *rule, struct judgement *judgement)
{
    double reach = 0.0;
    if (judgement->standard_error > 0.0)
        reach = judgement->standard_error * student_quantile(1.0 - rule->confidence, judgement->degrees);
    judgement->low = judgement->log_ratio - reach;
    judgement->high = judgement->log_ratio + reach;
    double margin = log1p(rule->margin);
    judgement->verdict = VERDICT_INCONCLUSIVE;
    judgement->reason = REASON_ACROSS_MARGIN;
    if (judgement->low >= -margin && judgement->high <= margin) {
        judgement->verdict = VERDICT_SAME;
        judgement->reason = REASON_WITHIN_MARGIN;
    }
}

static bool judge_spread(const struct evidence *evidence, const struct rule *rule, struct family *family,
                         struct judgement *judgements)
{
    struct variance campaign_prior = {0};
    moderate_runs(evidence, family);
    if (!fit_campaign_prior(evidence, family, &campaign_prior))
        return false;
    for (size_t i = 0; i < family->count; i++) {
        struct judgement *judgement = &judgements[family->index[i]];
        const struct evidence *one = &evidence[family->index[i]];
        double tail = rule->false_alarms / (double)family->count;
        set_error(one, family->variances[i], campaign_prior, tail, judgement);
        set_claim_error(one, rule, tail, judgement);
        set_interval(rule, judgement);
        judgement->family = family->count;
    }
    return find_changes(evidence, family, rule, 1.0, VERDICT_SLOWER, judgements) &&
           find_changes(evidence, family, rule, -1.0, VERDICT_FASTER, judgements);
}

bool judge_family(const struct evidence *evidence, size_t count, const struct rule *rule,
                  struct judgement *judgements)
{
    for (size_t i = 0; i < count; i++) {
        judgements[i] = (struct judgement){.log_ratio = evidence[i].log_ratio, .family = 1};
        if (!has_spread(&evidence[i]))
            judge_by_threshold(rule, &judgements[i]);
    }
    struct family family = {0};
    bool judged = form_family(evidence, count, &family) && judge_spread(evidence, rule, &family, judgements);
    free_family(&family);
    return judged;
}

double smallest_change(const struct judgement *judgement, const struct rule *rule)
{
    if (judgement->reason == REASON_FEW_PAIRS)
        return (double)NAN;
    if (isnan(judgement->low))
        return rule->threshold;
    if (judgement->claim_error <= 0.0)
        return rule->margin;
    double error = judgement->claim_error;
    double degrees = judgement->claim_degrees;
    double alpha = 1.0 - rule->confidence;
    double cases = (double)judgement->family;
    double alone = log1p(rule->margin) + error * student_quantile(alpha, degrees);
    double among_margin = log1p(rule->margin) + error * student_quantile(alpha / cases, degrees);
    double among_change = error * student_quantile(rule->false_alarms / cases, degrees);
    double found_from = fmax(alone, fmin(among_margin, among_change));
    return expm1(found_from + error * student_quantile(1.0 - detection, degrees));
}
