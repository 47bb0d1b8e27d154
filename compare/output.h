/* Where a report goes: standard output, or what --output names. */
#ifndef GPUBENCH_COMPARE_OUTPUT_H
#define GPUBENCH_COMPARE_OUTPUT_H

#include "options.h"

#include <stdio.h>

/* Writes to where the options say; status, or EXIT_CANNOT_JUDGE after a message.
 * A file appears when it is complete, behind a link too; a pipe, a device or an
 * open descriptor (/dev/stdout) is written itself; one of the inputs is refused. */
int write_output(const struct options *options, int status, void (*write)(FILE *, const void *), const void *what);

#endif
