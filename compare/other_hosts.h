/* Cases that the baseline's hosts could measure and the current one cannot. */
#ifndef GPUBENCH_COMPARE_OTHER_HOSTS_H
#define GPUBENCH_COMPARE_OTHER_HOSTS_H

#include "comparison.h"

/* What is missing and of a number of GPUs or ranks that no current row of its suite has, where
 * rows of other numbers are there, becomes OUTCOME_ELSEWHERE. False: no memory. */
bool note_other_hosts(struct comparison *comparison);

#endif
