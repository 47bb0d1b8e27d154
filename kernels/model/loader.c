/*
 * loader.c - batches that are made ahead: see loader.h.
 *
 * One lock and two conditions: makers wait until a batch is allowed and its slot is
 * free, the taker until its batch is there. Slots are in use from the number that is
 * being made first (`begun`) down to the one that was given back last (`returned`).
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, pthread_sigmask */
#endif
#include "loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct loader {
    loader_make *make;
    void *context;
    void *memory[LOADER_MOST_SLOTS];
    int64_t made[LOADER_MOST_SLOTS]; /* the number of the batch that lies there; -1: none */
    int slots, threads;
    pthread_t helpers[LOADER_MOST_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t may_make, is_made;
    int64_t allowed, begun, taken, returned; /* counts of batches */
    int64_t failed;                          /* the first number that could not be made; -1 */
    int64_t waited_ns;
    int ends;
    char reason[LOADER_REASON];
};

/* ---- making ------------------------------------------------------------------------ */

static int may_begin(const loader *l)
{
    return l->failed < 0 && l->begun < l->allowed && l->begun - l->returned < l->slots;
}

/* Makes the next batch; the lock is held before and after, and free while it works. Of
 * several that fail the first in the order of the batches is told. */
static void make_next(loader *l)
{
    char reason[LOADER_REASON] = "";
    int64_t number = l->begun++;
    int slot = (int)(number % l->slots);
    pthread_mutex_unlock(&l->lock);
    int code = l->make(l->context, number, l->memory[slot], reason);
    pthread_mutex_lock(&l->lock);
    if (code == 0)
        l->made[slot] = number;
    else if (l->failed < 0 || number < l->failed) {
        l->failed = number;
        for (int i = 0; i < LOADER_REASON; i++) l->reason[i] = reason[i];
    }
    pthread_cond_signal(&l->is_made);
}

static void *help(void *argument)
{
    loader *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!l->ends) {
        if (may_begin(l))
            make_next(l);
        else
            pthread_cond_wait(&l->may_make, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------- */

/* Signals are for the thread that trains. */
static int start_helpers(loader *l, int wanted)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; l->threads < wanted && !error; l->threads += !error)
        error = pthread_create(&l->helpers[l->threads], NULL, help, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

loader *loader_open(int threads, int slots, void *const *memory, loader_make *make, void *context)
{
    loader *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->make = make;
    l->context = context;
    l->slots = slots;
    l->failed = -1;
    for (int i = 0; i < slots; i++) {
        l->memory[i] = memory[i];
        l->made[i] = -1;
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->may_make, NULL);
    pthread_cond_init(&l->is_made, NULL);
    if (start_helpers(l, threads) == 0) return l;
    loader_close(l);
    return NULL;
}

void loader_close(loader *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->ends = 1;
    pthread_cond_broadcast(&l->may_make);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->threads; i++) pthread_join(l->helpers[i], NULL);
    pthread_cond_destroy(&l->is_made);
    pthread_cond_destroy(&l->may_make);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- taking -------------------------------------------------------------------------- */

void loader_allow(loader *l, int64_t count)
{
    pthread_mutex_lock(&l->lock);
    l->allowed += count;
    pthread_cond_broadcast(&l->may_make);
    pthread_mutex_unlock(&l->lock);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A batch that was made counts although a later one failed. */
void *loader_take(loader *l)
{
    int64_t began = now_ns(), number;
    void *memory = NULL;
    pthread_mutex_lock(&l->lock);
    number = l->taken;
    int slot = (int)(number % l->slots);
    if (l->threads == 0 && may_begin(l)) make_next(l);
    while (l->made[slot] != number && (l->failed < 0 || number < l->failed))
        pthread_cond_wait(&l->is_made, &l->lock);
    if (l->made[slot] == number) {
        memory = l->memory[slot];
        l->taken++;
    }
    l->waited_ns += now_ns() - began;
    pthread_mutex_unlock(&l->lock);
    return memory;
}

void loader_give_back(loader *l)
{
    pthread_mutex_lock(&l->lock);
    if (l->returned < l->taken) l->returned++;
    pthread_cond_signal(&l->may_make);
    pthread_mutex_unlock(&l->lock);
}

const char *loader_reason(const loader *l)
{
    return l->reason;
}

int64_t loader_waited_ns(const loader *l)
{
    return l->waited_ns;
}
