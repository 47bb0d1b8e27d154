/* What is right of an execution in which something failed, held against one in which
 * nothing did. */
#ifndef GPUBENCH_TESTS_OUTCOME_H
#define GPUBENCH_TESTS_OUTCOME_H

#include "plans.h"
#include "trial.h"

/* Of a scenario, without a fault. */
typedef struct healthy {
    trial_rows rows;
    char *out, *file; /* standard output, and what rows.csv holds */
    int status;
} healthy;

/* Complains of the rows, or of the verdict, of a trial. is_once: the fault costs at most
 * one row, and the others are measured. */
void look_at_outcome(trial *one, const scenario *of, const healthy *without, int is_once);

/* Is what came out without a fault worth to be held against? Says what is not. */
int look_at_healthy(trial *one, const scenario *of);

#endif
