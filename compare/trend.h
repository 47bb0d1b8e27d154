/* Where in their history cases changed, as pure functions.
 *
 * A campaign is one sitting; its point is the median of its runs' logarithms of a
 * cost. A level changes between two campaigns where the means of the points on both
 * sides are further apart than the margin and than chance allows, and so on within
 * each side (binary segmentation: Scott and Knott 1974, "A cluster analysis method for
 * grouping means in the analysis of variance").
 *
 * What chance allows is Student's quantile at half of the rate of false alarms over
 * the number of places in all cases at which a level could change (Bonferroni). The
 * spread of a point is the larger of two: of its runs, pooled over the case; and, from
 * five campaigns on, of the points themselves, by the median size of the steps from
 * one to the next, which a few true changes do not move, while the sittings' own
 * effects are in it. Cases lend each other both (see verdict.h, 3).
 *
 * A level of one campaign above or below both levels around it is no level: one bad
 * sitting is not a change up and another one down. It stands alone, belongs to none,
 * and the levels are looked for again without it. */
#ifndef GPUBENCH_COMPARE_TREND_H
#define GPUBENCH_COMPARE_TREND_H

#include "evidence.h"

/* From so many campaigns on their own spread is known. */
enum { least_steady_campaigns = 5 };

struct trend_point {
    size_t runs;
    double level;   /* the median of the runs' logarithms */
    double squares; /* of their distances from their mean */
};

/* One case, its points in the order of time. */
struct trend {
    const struct trend_point *points;
    size_t count;
    size_t *starts; /* room for count; filled with where each level begins, the first at 0 */
    size_t level_count;
    bool *lone; /* room for count; filled: is the point in no level? */
    struct variance run_spread; /* moderated; as is the next */
    struct variance point_spread;
};

/* False when memory ran out. */
bool find_changes(struct trend *trends, size_t count, const struct rule *rule);

/* The mean of the points of one of the trend's levels, and how many they are. */
double level_of(const struct trend *trend, size_t level);
size_t points_of(const struct trend *trend, size_t level);

#endif
