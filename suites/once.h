/*
 * once.h - one run of another operation's variant while a case is built: the
 * forward pass whose results a backward case reads.
 */
#ifndef SUITE_ONCE_H
#define SUITE_ONCE_H

#include "suite.h"

/* Runs the variant once on the default stream, with a workspace from
 * gpubench_alloc, and waits for it if it has a workspace or a state. 0 or a code
 * for setup to return. */
int suite_run_once(gpubench *bench, const kernel_variant *variant, const void *args);

/* The same of the table's row of that name, wherever it is. A name that the
 * table does not have fails the case and says so. */
int suite_run_named(gpubench *bench, const kernel_table *table, const char *name,
                    const void *args);

#endif
