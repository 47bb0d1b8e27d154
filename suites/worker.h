/*
 * worker.h - a thread that does one thing at a time for a caller who waits for a limited
 * time only: a call of a library that never returns is left behind with its thread.
 */
#ifndef WORKER_H
#define WORKER_H

#include <pthread.h>

enum { WORKER_LATE = -1000000 };

/* Creates a thread that takes no signals but those of its own faults: what asks the program
 * to end, or says that time is up, is the main thread's. 0 or an errno. */
int worker_create(pthread_t *thread, void *(*function)(void *context));

/* Starts the thread. 0 or an errno. */
int worker_open(void);

/* Has the thread call task(context), and waits seconds for it at most: what it returned,
 * or WORKER_LATE, and then it is still at it: worker_wait goes on waiting. */
int worker_do(int (*task)(void *context), void *context, double seconds);
int worker_wait(double seconds);

/* Ends and joins the thread, which must not be at work. */
void worker_close(void);

#endif
