/*
 * peaks.h - what this host can do at most, for the table's column `peak`.
 */
#ifndef SUITE_PEAKS_H
#define SUITE_PEAKS_H

#include "../gpubench.h"

/* Measures, before the first case, how fast all threads read and copy memory that no
 * cache holds and multiply f32 matrices by code of their own, in some 0.1 s. On a GPU
 * nothing: the device says what it can do. */
void suite_measure_peaks(gpubench *bench);

/* Memory of the pages that the rows' has, each of which was written to, for free(); without a
 * case whose it would be. NULL: there is none. */
void *suite_host_memory(size_t bytes);

#endif
