/*
 * pool.h - loops on all threads that the process may use, for variants that are
 * timed: the threads stay, and sleep when there is nothing to do.
 *
 * What a range computes must not depend on which worker does it or on what else
 * was done before: then results have the same bits for any number of threads.
 */
#ifndef KERNEL_POOL_H
#define KERNEL_POOL_H

#include <stdint.h>

/* Does elements begin to end - 1. worker: 0 to threads - 1, no two at a time with
 * the same, so that each may have scratch memory of its own. */
typedef void pool_function(void *context, int worker, int64_t begin, int64_t end);

/* How many a loop may use: cpu_threads(), or what pool_set_threads said. */
int pool_threads(void);

/* At least 1. Takes effect with the next loop; not to be called from within one. */
void pool_set_threads(int threads);

/* Calls function for ranges of range_length of count elements (the last may be
 * shorter) on up to `threads` threads, the caller's one of them, and returns when
 * all are done. One loop at a time; a loop within a loop is not possible. Where a
 * thread cannot be had the others do its work. */
void pool_for(int threads, int64_t count, int64_t range_length, pool_function *function,
              void *context);

/* Calls visit(context, thread, threads) once on every thread that a loop may use, thread
 * being 0 (the caller's) to threads - 1, and returns when all have returned: for what is a
 * thread's or its processor's own. It waits for helpers that sleep, as pool_for does not. */
void pool_each(void (*visit)(void *context, int thread, int threads), void *context);

#endif
