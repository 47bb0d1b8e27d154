/* Whether a case can be judged, and if not, what became of it. */
#ifndef GPUBENCH_COMPARE_OUTCOME_H
#define GPUBENCH_COMPARE_OUTCOME_H

#include "work.h"

enum outcome {
    OUTCOME_JUDGED,
    OUTCOME_NOT_OK,         /* ok in the baseline, no longer */
    OUTCOME_MISSING,        /* ok in the baseline, not measured in current */
    OUTCOME_ELSEWHERE,      /* the same, but on a host of another number of GPUs or ranks */
    OUTCOME_INVALID,        /* a value that no measurement can have */
    OUTCOME_BELOW_CONSTANT, /* a time that is no longer than its host's constant */
    OUTCOME_THROTTLED, /* every run of a side was held back by heat or power brake */
    OUTCOME_WORK_CHANGED,   /* other bytes or operations than before: see work.h */
    OUTCOME_NEW,            /* ok in current only */
    OUTCOME_NEVER_OK,       /* ok on neither side */
    OUTCOME_NOT_APPLICABLE, /* the case has no such metric */
};

/* The row that made the outcome; NULL where none did. */
struct problem {
    const struct row *row;
    bool in_baseline;
    const struct row *than; /* where work changed: the row that says otherwise */
    bool than_in_baseline;
};

enum outcome outcome_of(const struct metric *metric, struct works *works, struct row_span baseline,
                        struct row_span current, struct problem *problem);

#endif
