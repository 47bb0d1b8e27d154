/* Cases that the baseline's hosts could measure and the current one cannot. */
#ifndef GPUBENCH_COMPARE_OTHER_HOSTS_H
#define GPUBENCH_COMPARE_OTHER_HOSTS_H

#include "comparison.h"

/* What has no current row, and is of a number of GPUs or ranks that no current row of its suite is
 * of, becomes OUTCOME_ELSEWHERE where rows of other numbers are there. False: no memory. */
bool note_other_hosts(struct comparison *comparison);

#endif
