/* Cases that the baseline's hosts could measure and the current one cannot. */
#ifndef GPUBENCH_COMPARE_OTHER_HOSTS_H
#define GPUBENCH_COMPARE_OTHER_HOSTS_H

#include "comparison.h"

/* What has no current row, and names a number that is a param of the settings' host_params,
 * becomes OUTCOME_ELSEWHERE where current has rows of such numbers and no campaign of the baseline
 * whose highest is current's has measured it; where none has that highest, if current has
 * no row of the number, or has the case with other numbers alone. False: no memory. */
bool note_other_hosts(struct comparison *comparison);

/* Whether it is SUITE:PARAM, or several of them with a comma between two. */
bool is_host_params(const char *list);

#endif
