#include "precise.h"

#include "evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run of the baseline is left out only this far (10 %) from the others, and at
 * most a tenth of the runs. Processes that run in one of two modes a few per cent
 * apart are what a new process will do, too: leaving the rarer one out made 40 %
 * of families of 100 such cases raise an alarm. Of fewer than ten runs one is left
 * out at a factor of 1.5. */
static const double fence_reach = 0.1;
static const double fence_reach_of_few = 0.5;
enum { fence_share = 10 };

/* Two campaigns tell too little of how campaigns spread. */
enum { least_campaigns = 3 };

struct tagged {
    double value;
    uint32_t campaign;
};

/* The runs of one side, those of a campaign next to each other. */
struct grouped {
    struct tagged *runs;
    double *values; /* the same values in the same order */
    size_t count;
};

static int by_campaign(const void *left, const void *right)
{
    uint32_t a = ((const struct tagged *)left)->campaign;
    uint32_t b = ((const struct tagged *)right)->campaign;
    return (a > b) - (a < b);
}

static void ungroup(struct grouped *grouped)
{
    free(grouped->runs);
    free(grouped->values);
}

/* outside may be NULL: then every run stays. */
static bool group_runs(struct side side, const bool *outside, struct grouped *out)
{
    out->runs = malloc(side.runs * sizeof out->runs[0]);
    out->values = malloc(side.runs * sizeof out->values[0]);
    out->count = 0;
    if (!out->runs || !out->values)
        return false;
    for (size_t i = 0; i < side.runs; i++)
        if (!outside || !outside[i])
            out->runs[out->count++] = (struct tagged){side.log_costs[i], side.campaigns[i]};
    qsort(out->runs, out->count, sizeof out->runs[0], by_campaign);
    for (size_t i = 0; i < out->count; i++)
        out->values[i] = out->runs[i].value;
    return true;
}

/* The end of the campaign that begins at first. */
static size_t campaign_end(const struct grouped *side, size_t first)
{
    size_t end = first + 1;
    while (end < side->count && side->runs[end].campaign == side->runs[first].campaign)
        end++;
    return end;
}

/* What an analysis of variance needs of one side. */
struct summary {
    size_t campaigns;
    double mean;
    double squares;        /* about the mean of the side */
    double squares_within; /* about the means of the campaigns */
    double squared_weights; /* the campaigns' shares in the runs, squared and added */
};

static struct summary summarize(const struct grouped *side)
{
    struct summary summary = {0};
    summary.mean = mean_of(side->values, side->count);
    summary.squares = squares_about_mean(side->values, side->count);
    for (size_t first = 0, end; first < side->count; first = end) {
        end = campaign_end(side, first);
        double weight = (double)(end - first) / (double)side->count;
        summary.campaigns++;
        summary.squares_within += squares_about_mean(side->values + first, end - first);
        summary.squared_weights += weight * weight;
    }
    return summary;
}

/* What campaigns on both sides take away from the campaigns' share in the
 * change: their effect is in both means. Both sides are in order. */
static double common_weights(const struct grouped *baseline, const struct grouped *current)
{
    double common = 0.0;
    size_t b = 0;
    size_t c = 0;
    while (b < baseline->count && c < current->count) {
        size_t b_end = campaign_end(baseline, b);
        size_t c_end = campaign_end(current, c);
        uint32_t b_campaign = baseline->runs[b].campaign;
        uint32_t c_campaign = current->runs[c].campaign;
        if (b_campaign == c_campaign)
            common += (double)(b_end - b) / (double)baseline->count * (double)(c_end - c) / (double)current->count;
        if (b_campaign <= c_campaign)
            b = b_end;
        if (c_campaign <= b_campaign)
            c = c_end;
    }
    return 2.0 * common;
}

static struct variance mean_square(double squares, double degrees)
{
    return (struct variance){degrees > 0.0 ? squares / degrees : 0.0, degrees};
}

/* Which variances count: see point 2 of the rule. */
static void choose_variances(struct summary baseline, struct summary current, double campaign_factor,
                             struct evidence *evidence)
{
    double runs = (double)(evidence->baseline_runs + evidence->current_runs);
    struct variance total = mean_square(baseline.squares + current.squares, runs - 2.0);
    struct variance within = mean_square(baseline.squares_within + current.squares_within,
                                         runs - (double)(baseline.campaigns + current.campaigns));
    evidence->run_variance = total;
    if (campaign_factor < 1e-9) {
        /* Every campaign has the same share in both means, and cancels. */
        if (within.degrees > 0.0)
            evidence->run_variance = within;
        return;
    }
    if (baseline.campaigns < least_campaigns) {
        evidence->uncounted_factor = campaign_factor;
        return;
    }
    if (within.degrees <= 0.0) {
        /* One run a campaign: the total spread is that of both together. */
        evidence->run_factor = fmax(evidence->run_factor, campaign_factor);
        return;
    }
    /* A campaign that both sides share counts for each of them; but then much of
     * its effect cancels in the change, too. */
    double between_degrees = (double)(baseline.campaigns + current.campaigns - 2);
    double between_squares = baseline.squares - baseline.squares_within + current.squares - current.squares_within;
    evidence->campaigns_counted = true;
    evidence->run_variance = within;
    evidence->between_square = mean_square(between_squares, between_degrees);
    evidence->campaign_factor = campaign_factor;
    evidence->runs_per_campaign = ((double)evidence->baseline_runs * (1.0 - baseline.squared_weights) +
                                   (double)evidence->current_runs * (1.0 - current.squared_weights)) /
                                  between_degrees;
}

/* Sorts the values: what comes after needs no order. */
static double median_of(const struct grouped *side)
{
    sort_values(side->values, side->count);
    return sorted_quantile(side->values, side->count, 0.5);
}

static void weigh_sides(const struct grouped *baseline, const struct grouped *current, const struct rule *rule,
                        struct evidence *evidence)
{
    struct summary old = summarize(baseline);
    struct summary new = summarize(current);
    evidence->log_ratio = new.mean - old.mean;
    evidence->baseline_runs = baseline->count;
    evidence->current_runs = current->count;
    evidence->baseline_campaigns = old.campaigns;
    evidence->current_campaigns = new.campaigns;
    evidence->run_factor = 1.0 / (double)baseline->count + 1.0 / (double)current->count;
    double campaign_factor = old.squared_weights + new.squared_weights;
    if (rule->campaigns_in_common)
        campaign_factor -= common_weights(baseline, current);
    choose_variances(old, new, campaign_factor, evidence);
    evidence->median_log_ratio = median_of(current) - median_of(baseline);
}

/* A campaign is no accident either. */
static bool leaves_every_campaign(struct side side, const bool *outside)
{
    for (size_t i = 0; i < side.runs; i++) {
        bool left = !outside[i];
        for (size_t j = 0; !left && j < side.runs; j++)
            left = side.campaigns[j] == side.campaigns[i] && !outside[j];
        if (!left)
            return false;
    }
    return true;
}

/* Marks the baseline runs that are left out; SIZE_MAX when memory ran out. */
static size_t fence_baseline(struct side side, bool *outside)
{
    bool few = side.runs < fence_share;
    size_t marked = tukey_far_fence(side.log_costs, side.runs, log1p(few ? fence_reach_of_few : fence_reach),
                                    few ? 1 : side.runs / fence_share, outside);
    if (marked == 0 || marked == SIZE_MAX || leaves_every_campaign(side, outside))
        return marked;
    memset(outside, 0, side.runs * sizeof outside[0]);
    return 0;
}

bool gather_evidence(struct side baseline, struct side current, const struct rule *rule, bool *outside,
                     struct evidence *evidence)
{
    *evidence = (struct evidence){0};
    struct grouped old = {0};
    struct grouped new = {0};
    size_t marked = fence_baseline(baseline, outside);
    bool ready = marked != SIZE_MAX && group_runs(baseline, outside, &old) && group_runs(current, NULL, &new);
    if (ready) {
        evidence->baseline_outside = marked;
        weigh_sides(&old, &new, rule, evidence);
    }
    ungroup(&old);
    ungroup(&new);
    return ready;
}
