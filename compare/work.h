/* Whether the rows of a case do the same work: as many bytes and operations.
 *
 * What a case has to do may depend on its inputs, and these on the seed: a lookup in a
 * table reads as many lines as there are different tokens in what the seed drew. So only
 * rows of one seed tell whether the work changed, on one side or between the two; rows
 * that name no seed are as rows of one. A seed that only one side has says nothing of
 * the other. Where no seed is on both sides, other work and another draw look alike:
 * different work is then taken for changed, as nobody can tell that it is not. */
#ifndef GPUBENCH_COMPARE_WORK_H
#define GPUBENCH_COMPARE_WORK_H

#include "rows_by_case.h"

/* A row, and the one that says other bytes or operations than it does. */
struct other_work {
    const struct row *row;
    const struct row *than;
    bool in_baseline;
    bool than_in_baseline;
};

/* Room for what the rows of each seed say; empty between two cases. */
struct works {
    struct work *of_seed; /* behind one for the rows without a seed */
};

/* Once all rows are read. works_free is due either way; false means that memory ran out. */
bool works_make(struct works *works, const struct catalogue *catalogue);
void works_free(struct works *works);

/* Looks at the rows that are ok. */
bool work_changed(struct works *works, struct row_span baseline, struct row_span current,
                  struct other_work *found);

#endif
