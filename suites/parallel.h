/*
 * parallel.h - loops over several threads, for what is checked between
 * measurements. The threads live for one loop: none is there, not even asleep,
 * while a sample is taken.
 */
#ifndef PARALLEL_H
#define PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* Takes the indices begin to end-1 of a loop; others are taken meanwhile. */
typedef void parallel_function(void *context, int64_t begin, int64_t end);

enum { PARALLEL_MOST_THREADS = 16 };

/* A loop that is being run. One of zeros is one that has ended. */
typedef struct parallel_loop {
    parallel_function *function;
    void *context;
    int64_t count, range_length, range_count;
    atomic_int_fast64_t next_range;
    pthread_t helpers[PARALLEL_MOST_THREADS - 1];
    int helper_count;
} parallel_loop;

/* Calls function once for each range of range_length (at least 1) indices of
 * 0..count-1, the last range being shorter where it must: range i begins at
 * i * range_length however many threads there are, so that what is summed per
 * range and then over the ranges does not depend on their number. Takes as
 * many threads as the process may use processors, at most
 * PARALLEL_MOST_THREADS, and makes do with fewer, down to the caller alone,
 * where the system gives no more or the first ones are done already. */
void parallel_for(int64_t count, int64_t range_length, parallel_function *function, void *context);

/* The same in two steps, for a caller with something else to do meanwhile: it
 * takes part only in parallel_finish, which returns when all is done. */
void parallel_start(parallel_loop *loop, int64_t count, int64_t range_length,
                    parallel_function *function, void *context);
void parallel_finish(parallel_loop *loop);

/* How many ranges that is. */
int64_t parallel_range_count(int64_t count, int64_t range_length);

#endif
