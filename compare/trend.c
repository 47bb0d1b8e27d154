#include "precise.h"

#include "trend.h"

#include <math.h>
#include <stdlib.h>

static const double half_pi = 1.5707963267948966;

/* The median size of normal values is this part of their deviation. */
static const double median_of_normal = 0.6745;

/* Between the equal values that steps of a clock make, nothing is known. */
static const double least_deviation = 0.0005;

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
    double spread = fmax(trend->run_spread.value, least_deviation * least_deviation);
    return factor * spread / (double)point->runs;
}

/* What two neighbouring levels differ by, the error of that, and what is known of it. */
struct split {
    double difference;
    double error;
    double degrees;
};

/* The sums over the points of one side of a split. */
struct side_sums {
    double levels; /* less that of the first point of the stretch */
    double variances;
    double points;
};

/* Moves a point to a side, or away from it where sign is -1. */
static void move_point(const struct trend *trend, size_t first, size_t i, double sign,
                       struct side_sums *side)
{
    const struct trend_point *point = &trend->points[i];
    side->levels += sign * (point->level - trend->points[first].level);
    side->variances += sign * fmax(variance_by_runs(trend, point), trend->point_spread.value);
    side->points += sign;
}

static struct split split_of(struct side_sums before, struct side_sums after)
{
    double variance = before.variances / before.points / before.points +
                      after.variances / after.points / after.points;
    return (struct split){after.levels / after.points - before.levels / before.points,
                          sqrt(variance), 0.0};
}

/* Those of the spread that counts, or of the points' where both do. */
static double degrees_of(const struct trend *trend, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        if (trend->point_spread.value > variance_by_runs(trend, &trend->points[i]))
            return trend->point_spread.degrees;
    return trend->run_spread.degrees;
}

/* The split of [first, last) whose difference is the most errors; *middle is first where
 * there is none. */
static struct split largest_split(const struct trend *trend, size_t first, size_t last,
                                  size_t *middle)
{
    struct side_sums before = {0.0, 0.0, 0.0}, after = {0.0, 0.0, 0.0};
    struct split largest = {0.0, 0.0, 0.0};
    for (size_t i = first; i < last; i++)
        move_point(trend, first, i, 1.0, &after);
    *middle = first;
    for (size_t i = first; i + 1 < last; i++) {
        move_point(trend, first, i, 1.0, &before);
        move_point(trend, first, i, -1.0, &after);
        struct split split = split_of(before, after);
        if (*middle == first ||
            fabs(split.difference) * largest.error > fabs(largest.difference) * split.error) {
            largest = split;
            *middle = i + 1;
        }
    }
    largest.degrees = degrees_of(trend, first, last);
    return largest;
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
    struct split largest = largest_split(search->trend, first, last, &best);
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
    struct variance *runs = calloc(count + 1, sizeof runs[0]);
    struct variance *points = calloc(count + 1, sizeof points[0]);
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

/* Room for the points that do not stand alone, and where among all they are. */
struct inner_points {
    struct trend_point *points;
    size_t *places;
    bool *lone;
};

/* Marks the levels of one point that stand alone; false where there is none. */
static bool mark_lone(const struct trend *inner, const size_t *places, bool *lone)
{
    bool marked = false;
    for (size_t level = 1; level + 1 < inner->level_count; level++) {
        double before = level_of(inner, level - 1);
        double here = level_of(inner, level);
        double after = level_of(inner, level + 1);
        bool between = here <= fmax(before, after) && here >= fmin(before, after);
        if (between || points_of(inner, level) > 1)
            continue;
        lone[places[inner->starts[level]]] = true;
        marked = true;
    }
    return marked;
}

static void find_levels(struct search search, const struct inner_points *room)
{
    struct trend *trend = search.trend;
    struct trend inner = *trend;
    inner.points = room->points;
    inner.lone = room->lone;
    search.trend = &inner;
    for (size_t i = 0; i < trend->count; i++)
        trend->lone[i] = room->lone[i] = false;
    do {
        inner.count = 0;
        for (size_t i = 0; i < trend->count; i++) {
            room->places[inner.count] = i;
            room->points[inner.count] = trend->points[i];
            inner.count += !trend->lone[i];
        }
        inner.starts[0] = 0;
        inner.level_count = 1;
        segment(&search, 0, inner.count);
    } while (mark_lone(&inner, room->places, trend->lone));
    trend->level_count = inner.level_count;
    for (size_t level = 0; level < inner.level_count; level++)
        /* A level begins at a point. NOLINTNEXTLINE(*-core.uninitialized.Assign) */
        trend->starts[level] = room->places[inner.starts[level]];
}

bool find_changes(struct trend *trends, size_t count, const struct rule *rule)
{
    size_t places = 0, most_points = 0;
    for (size_t i = 0; i < count; i++) {
        places += trends[i].count - 1;
        most_points = trends[i].count > most_points ? trends[i].count : most_points;
    }
    struct inner_points room = {malloc((most_points + 1) * sizeof room.points[0]),
                                malloc((most_points + 1) * sizeof room.places[0]),
                                malloc((most_points + 1) * sizeof room.lone[0])};
    bool complete =
        room.points && room.places && room.lone && measure_spreads(trends, count, most_points);
    double tail = rule->false_alarms / 2.0 / fmax(1.0, (double)places);
    for (size_t i = 0; complete && i < count; i++)
        find_levels((struct search){&trends[i], log1p(rule->margin), tail}, &room);
    free(room.points);
    free(room.places);
    free(room.lone);
    return complete;
}

static size_t level_end(const struct trend *trend, size_t level)
{
    return level + 1 < trend->level_count ? trend->starts[level + 1] : trend->count;
}

double level_of(const struct trend *trend, size_t level)
{
    double sum = 0.0;
    for (size_t i = trend->starts[level]; i < level_end(trend, level); i++)
        sum += trend->lone[i] ? 0.0 : trend->points[i].level;
    return sum / (double)points_of(trend, level);
}

size_t points_of(const struct trend *trend, size_t level)
{
    size_t points = 0;
    for (size_t i = trend->starts[level]; i < level_end(trend, level); i++)
        points += !trend->lone[i];
    return points;
}
