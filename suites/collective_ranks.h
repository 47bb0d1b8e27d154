/*
 * collective_ranks.h - what one process does for the ranks that live in it: their
 * memory, filling it, executing, and holding every element against what it must be.
 */
#ifndef COLLECTIVE_RANKS_H
#define COLLECTIVE_RANKS_H

#include "../kernels/collective/collective.h"

/* Of this process: the library at work, and what is set up. */
typedef struct ranks_here {
    const collective_library *library;
    collective_ranks ranks;
    void *state; /* the library's; NULL: no communicators */
    collective_shape shape;
    void *piece; /* of the host's memory, for looking at results; NULL: not yet */
    collective_buffers *buffers; /* one for each rank here; NULL: nothing is set up */
    volatile int stop;           /* another thread wants what executes to end */
} ranks_here;

/* What went wrong, or how near a result came to what is allowed: 1 is just within. */
typedef struct ranks_answer {
    int code; /* 0, a status of gpubench.h, or a library's */
    double us, error;
    double enqueue_us; /* of it, the host's until all was enqueued */
    collective_stalls stalls; /* of the process's first rank, where its work has laps */
    char message[COLLECTIVE_MESSAGE];
} ranks_answer;

/* Memory, filled with inputs. */
void ranks_set_up(ranks_here *r, const collective_shape *shape, uint64_t seed, ranks_answer *a);
void ranks_release(ranks_here *r);

/* That too which stays from one shape to the next, before communicators are closed. */
void ranks_close(ranks_here *r);

/* Fresh inputs, and poison everywhere else. */
void ranks_fill(ranks_here *r, collective_data data, uint64_t seed, ranks_answer *a);

/* Each element that was to be received. */
void ranks_check(ranks_here *r, collective_data data, uint64_t seed, ranks_answer *a);

#endif
