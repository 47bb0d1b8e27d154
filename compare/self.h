/* A/A: how often a file of runs of the same code would raise an alarm. */
#ifndef GPUBENCH_COMPARE_SELF_H
#define GPUBENCH_COMPARE_SELF_H

#include "comparison.h"

struct self_case {
    uint32_t case_id;
    size_t runs;
    size_t alarms; /* of the splits that could judge it */
    size_t splits;
};

struct self_result {
    size_t runs;
    size_t splits;
    bool every_split; /* or a random choice of them, from a fixed seed */
    size_t alarms;    /* splits with at least one case SLOWER */
    struct self_case *cases;
    size_t case_count;
    size_t campaigns; /* each against the others; 0 where there is but one */
    size_t campaign_alarms;
    size_t unusable; /* cases left out: not ok, or too few runs */
    const struct row *invalid; /* an ok row without a value, or NULL: nothing is judged then */
    const char *refusal; /* why there is no result, or NULL */
};

/* Splits the process runs of one side into a baseline half and a current half
 * in every balanced way, or in 4,000 random ways where there are more, and
 * judges each split as a comparison. Where the runs come from several
 * campaigns, each campaign is judged against the others as well: halves of one
 * sitting do not show what a new sitting does. False means that memory ran
 * out; self_free is due either way. */
bool self_compare(struct self_result *out, const struct settings *settings, const struct catalogue *catalogue,
                  const struct results *results);

/* EXIT_WORSE where more than 1 % of the splits raised an alarm: splits of the
 * same runs are not independent, so a rate is held to twice what one comparison
 * promises. */
int self_status(const struct self_result *result);

void self_free(struct self_result *result);

#endif
