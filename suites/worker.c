/*
 * worker.c - a thread for what may hang: see worker.h.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include "worker.h"

#include <signal.h>
#include <time.h>

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int (*task)(void *context);
    void *context;
    int busy, ended, result;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&worker.lock);
    for (;;) {
        while (!worker.task && !worker.ended) pthread_cond_wait(&worker.changed, &worker.lock);
        if (worker.ended) break;
        pthread_mutex_unlock(&worker.lock);
        int result = worker.task(worker.context);
        pthread_mutex_lock(&worker.lock);
        worker.result = result;
        worker.task = NULL;
        worker.busy = 0;
        pthread_cond_broadcast(&worker.changed);
    }
    pthread_mutex_unlock(&worker.lock);
    return NULL;
}

int worker_create(pthread_t *thread, void *(*function)(void *context))
{
    static const int asked[] = {SIGALRM, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set, before;
    int code;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) sigaddset(&set, asked[i]);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    code = pthread_create(thread, NULL, function, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* Waits go by the clock that nobody sets: one that is set back would lengthen them. */
static int create_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int code = pthread_condattr_init(&attributes);
    if (code != 0) return code;
    code = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (code == 0) code = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return code;
}

int worker_open(void)
{
    int code = create_condition(&worker.changed);
    if (code != 0) return code;
    worker.ended = 0;
    return worker_create(&worker.thread, work);
}

int worker_wait(double seconds)
{
    struct timespec until;
    int result = WORKER_LATE, waited = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&worker.lock);
    while (worker.busy && waited == 0)
        waited = pthread_cond_timedwait(&worker.changed, &worker.lock, &until);
    if (!worker.busy) result = worker.result;
    pthread_mutex_unlock(&worker.lock);
    return result;
}

int worker_do(int (*task)(void *context), void *context, double seconds)
{
    pthread_mutex_lock(&worker.lock);
    worker.task = task;
    worker.context = context;
    worker.busy = 1;
    pthread_cond_broadcast(&worker.changed);
    pthread_mutex_unlock(&worker.lock);
    return worker_wait(seconds);
}

void worker_close(void)
{
    pthread_mutex_lock(&worker.lock);
    worker.ended = 1;
    pthread_cond_broadcast(&worker.changed);
    pthread_mutex_unlock(&worker.lock);
    pthread_join(worker.thread, NULL);
    pthread_cond_destroy(&worker.changed);
}
