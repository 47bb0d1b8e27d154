/*
 * collective_suite.h - what suites of several ranks share: who takes part, by which
 * library, and the job behind their cases.
 */
#ifndef COLLECTIVE_SUITE_H
#define COLLECTIVE_SUITE_H

#include "collective_job.h"
#include "suite.h"

typedef struct collective_suite {
    suite s;
    launch_place place;
    const collective_library *library;
    int ranks, device; /* the first rank's, of a process that has them all */
    char runs_on[160]; /* library, version, ranks and hosts, for the rows */
} collective_suite;

/* Joins the launcher's job, if there is one, and opens the suite with --nccl and --ranks.
 * Returns in rank 0's process only. 0, or an exit status after a message. */
int collective_suite_open(collective_suite *c, const char *name, const char *shape_help, int argc,
                          char **argv);

/* Measures, and ends the job: the exit status. */
int collective_suite_close(collective_suite *c);

/* In a case's setup: communicators of so many ranks. 0 or a code. */
int collective_suite_begin(collective_suite *c, gpubench *bench, int ranks);

/* An answer as the code of a case's function. */
int collective_suite_tell(gpubench *bench, const ranks_answer *answer);

/* Whether a case's times are the host's: of its samples those that took no longer than enqueueing
 * them, so that the GPUs waited for it. Of zeros when the case is set up. */
typedef struct collective_pace {
    int64_t samples, paced;
} collective_pace;
void collective_pace_add(collective_pace *p, const ranks_answer *answer);

/* Flags a row `host-paced` if most were. */
void collective_pace_tell(const collective_pace *p, gpubench *bench);

#endif
