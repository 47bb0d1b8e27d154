#include "precise.h"

#include "trend.h"

#include <math.h>
#include <stdlib.h>

static const double half_pi = 1.5707963267948966;

/* The median size of normal values is this part of their deviation. */
static const double median_of_normal = 0.6745;

/* Squared, the median size of steps knows as little as so many squares of theirs:
 * its efficiency. */
static const double median_efficiency = 0.37;

static struct variance spread_of_runs(const struct trend *trend)
{
    struct variance spread = {0.0, 0.0};
    for (size_t i = 0; i < trend->count; i++) {
        spread.value += trend->points[i].squares;
        spread.degrees += (double)(trend->points[i].runs - 1);
    }
    spread.value /= fmax(1.0, spread.degrees);
    return spread;
}

/* A step is the difference of two points, so its variance is twice theirs. */
static struct variance spread_of_points(const struct trend *trend, double *scratch)
{
    size_t steps = trend->count - 1;
    if (trend->count < least_steady_campaigns)
        return (struct variance){0.0, 0.0};
    for (size_t i = 0; i < steps; i++)
        scratch[i] = fabs(trend->points[i + 1].level - trend->points[i].level);
    double deviation = median_by_sorting(scratch, steps) / median_of_normal;
    return (struct variance){deviation * deviation / 2.0, median_efficiency * (double)steps};
}

/* The variance of a median of normal runs. */
static double variance_by_runs(const struct trend *trend, const struct trend_point *point)
{
    double factor = point->runs < 3 ? 1.0 : half_pi;
    return factor * trend->run_spread.value / (double)point->runs;
}

/* What two neighbouring levels differ by, in errors of that, and what is known. */
struct split {
    double difference;
    double error;
    double degrees;
};

static struct split split_at(const struct trend *trend, size_t first, size_t middle, size_t last)
{
    double sums[2] = {0.0, 0.0};
    double variances[2] = {0.0, 0.0};
    struct split split = {.degrees = trend->run_spread.degrees};
    for (size_t i = first; i < last; i++) {
        int side = i >= middle;
        double variance = variance_by_runs(trend, &trend->points[i]);
        if (trend->point_spread.value > variance)
            split.degrees = trend->point_spread.degrees;
        sums[side] += trend->points[i].level - trend->points[first].level;
        variances[side] += fmax(variance, trend->point_spread.value);
    }
    double before = (double)(middle - first);
    double after = (double)(last - middle);
    split.difference = sums[1] / after - sums[0] / before;
    split.error = sqrt(variances[0] / before / before + variances[1] / after / after);
    return split;
}

struct search {
    struct trend *trend;
    double margin;
    double tail;
};

/* Whether nothing but chance could make so large a difference; where no spread is
 * known at all, no difference is too large. */
static bool is_change(const struct search *search, const struct split *split)
{
    if (!(split->degrees > 0.0) || fabs(split->difference) <= search->margin)
        return false;
    return fabs(split->difference) > student_quantile(search->tail, split->degrees) * split->error;
}

/* Adds the starts of the levels inside [first, last), but for first itself. */
static void segment(const struct search *search, size_t first, size_t last)
{
    size_t best = first;
    struct split largest = {0};
    for (size_t middle = first + 1; middle < last; middle++) {
        struct split split = split_at(search->trend, first, middle, last);
        if (best == first ||
            fabs(split.difference) * largest.error > fabs(largest.difference) * split.error) {
            largest = split;
            best = middle;
        }
    }
    if (best == first || !is_change(search, &largest))
        return;
    segment(search, first, best);
    search->trend->starts[search->trend->level_count++] = best;
    segment(search, best, last);
}

/* Replaces each trend's spreads by what its own and those of all say together. */
static void lend(struct trend *trends, size_t count, struct variance *runs, struct variance *points)
{
    for (size_t i = 0; i < count; i++) {
        runs[i] = trends[i].run_spread;
        points[i] = trends[i].point_spread;
    }
    struct variance of_runs = variance_prior(runs, count);
    struct variance of_points = variance_prior(points, count);
    for (size_t i = 0; i < count; i++) {
        trends[i].run_spread = moderated_variance(runs[i], of_runs);
        if (points[i].degrees > 0.0)
            trends[i].point_spread = moderated_variance(points[i], of_points);
    }
}

static bool lend_spreads(struct trend *trends, size_t count)
{
    struct variance *runs = malloc((count + 1) * sizeof runs[0]);
    struct variance *points = malloc((count + 1) * sizeof points[0]);
    bool complete = runs && points;
    if (complete)
        lend(trends, count, runs, points);
    free(runs);
    free(points);
    return complete;
}

static bool measure_spreads(struct trend *trends, size_t count, size_t most_points)
{
    double *scratch = malloc((most_points + 1) * sizeof scratch[0]);
    for (size_t i = 0; scratch && i < count; i++) {
        trends[i].run_spread = spread_of_runs(&trends[i]);
        trends[i].point_spread = spread_of_points(&trends[i], scratch);
    }
    free(scratch);
    return scratch && lend_spreads(trends, count);
}

bool find_changes(struct trend *trends, size_t count, const struct rule *rule)
{
    size_t places = 0, most_points = 0;
    for (size_t i = 0; i < count; i++) {
        places += trends[i].count - 1;
        most_points = trends[i].count > most_points ? trends[i].count : most_points;
    }
    if (!measure_spreads(trends, count, most_points))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct search search = {&trends[i], log1p(rule->margin),
                                rule->false_alarms / 2.0 / fmax(1.0, (double)places)};
        trends[i].starts[0] = 0;
        trends[i].level_count = 1;
        segment(&search, 0, trends[i].count);
    }
    return true;
}

double level_of(const struct trend *trend, size_t level)
{
    size_t first = trend->starts[level];
    size_t last = level + 1 < trend->level_count ? trend->starts[level + 1] : trend->count;
    double sum = 0.0;
    for (size_t i = first; i < last; i++)
        sum += trend->points[i].level;
    return sum / (double)(last - first);
}
