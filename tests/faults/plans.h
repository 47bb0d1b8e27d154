/* What is run while its calls fail. */
#ifndef GPUBENCH_TESTS_PLANS_H
#define GPUBENCH_TESTS_PLANS_H

#include "trial.h"

#include <stddef.h>

enum { MOST_SCENARIOS = 64 };

typedef struct scenario {
    const char *plan, *name;
    const char *arguments[TRIAL_ARGUMENTS]; /* the program, and what it is given */
    const char *const *kinds; /* see fault.h */
    const char *const *few;  /* the kinds that a plain test has time for; NULL: none of it */
    int from_cases;          /* the uses in front of the first case are another scenario's */
    int says_the_same;       /* or refuses: no rows, but a verdict is its outcome */
    int tells_time;          /* and how long it took: only its status is the same */
    int writes_file;         /* and then rows.csv is its own, all of it or none */
} scenario;

extern const scenario scenarios[];
extern const size_t scenario_count;

#endif
