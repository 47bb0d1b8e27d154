/* How the cases of some files fared from campaign to campaign: see trend.h for the
 * rule. */
#ifndef GPUBENCH_COMPARE_HISTORY_H
#define GPUBENCH_COMPARE_HISTORY_H

#include "comparison.h"
#include "trend.h"

/* A campaign of one case, beside its point. */
struct history_point {
    uint32_t campaign;
    uint32_t revision; /* of its earliest row; INTERN_NONE where the file has none */
    int64_t time_s;    /* of its earliest row; 0 where it has none */
    double fastest;    /* logarithms of a cost */
    double slowest;
};

struct history_case {
    uint32_t case_id;
    size_t first; /* of its points */
    struct trend trend;
};

struct history {
    struct history_case *cases; /* with two campaigns or more */
    size_t case_count;
    struct history_point *points; /* those of a case next to each other, in the order of time */
    struct trend_point *levels;
    size_t point_count;
    size_t *starts;
    bool *lone;
    size_t single;                /* cases with but one campaign */
    size_t undated;               /* cases in the order of the files, for lack of a timestamp */
    size_t few;                   /* cases with too few campaigns to know what one does */
    size_t throttled;             /* ok rows that are no evidence, left out */
    const struct row *invalid;    /* an ok row without a value, or NULL: nothing is judged then */
    const struct row *device_row; /* a row on another device than its case's first, or NULL */
};

/* False means that memory ran out; history_free is due either way. */
bool find_history(struct history *out, const struct settings *settings,
                  const struct catalogue *catalogue, const struct results *results);

/* The cost of the level over that of the one before it. */
double change_of(const struct trend *trend, size_t level);

void history_free(struct history *history);

#endif
