/*
 * pool.c - a fork-join pool: see pool.h.
 *
 * A helper that has nothing to do looks for work for some microseconds, so that
 * the next loop of the same sample finds it awake, then sleeps on a condition:
 * between samples, and while another library's threads are timed, it costs nothing.
 *
 * A loop does not wait for helpers that have not begun: on a busy machine the
 * processor that one sleeps on may be somebody else's for milliseconds. So the caller
 * closes the loop when no range is left, and waits for those only that are inside.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* pthread_sigmask */
#endif
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "cpu.h"

enum { MOST_THREADS = 1024, LOOKS = 2000 };

/* Of the gate: who finds it open may go in, and the loop stays what it is until all
 * are out again. */
#define OPEN 0x1000u
#define GENERATION 0x2000u

static unsigned inside(unsigned gate)
{
    return gate % OPEN;
}

static unsigned generation_of(unsigned gate)
{
    return gate / GENERATION;
}

typedef struct loop {
    pool_function *function;
    void *context;
    int64_t count, range_length, range_count;
    int threads;
} loop;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int wanted;  /* threads of a loop; 0: cpu_threads() */
    int helpers; /* that were started; each takes part in every loop */
    loop now;
    atomic_llong next_range;
    atomic_uint gate; /* GENERATION times the loop's number, OPEN, and the helpers inside */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

int pool_threads(void)
{
    return pool.wanted > 0 ? pool.wanted : cpu_threads();
}

void pool_set_threads(int threads)
{
    pool.wanted = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
}

/* Takes ranges until none is left. */
static void work(const loop *l, int worker)
{
    if (worker >= l->threads) return;
    for (;;) {
        int64_t range = atomic_fetch_add(&pool.next_range, 1);
        if (range >= l->range_count) return;
        int64_t begin = range * l->range_length, left = l->count - begin;
        l->function(l->context, worker, begin,
                    begin + (left < l->range_length ? left : l->range_length));
    }
}

static inline void look_again(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Returns the number of a loop after `seen`. */
static unsigned await_loop(unsigned seen)
{
    for (int i = 0; i < LOOKS; i++) {
        unsigned generation = generation_of(atomic_load(&pool.gate));
        if (generation != seen) return generation;
        look_again();
    }
    pthread_mutex_lock(&pool.lock);
    while (generation_of(atomic_load(&pool.gate)) == seen)
        pthread_cond_wait(&pool.wake, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    return generation_of(atomic_load(&pool.gate));
}

/* Whether the loop was still open. */
static int go_in(void)
{
    unsigned gate = atomic_load(&pool.gate);
    while (gate & OPEN)
        if (atomic_compare_exchange_weak(&pool.gate, &gate, gate + 1)) return 1;
    return 0;
}

static void go_out(void)
{
    unsigned gate = atomic_fetch_sub(&pool.gate, 1) - 1;
    if (gate & OPEN || inside(gate) > 0) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_signal(&pool.done);
    pthread_mutex_unlock(&pool.lock);
}

static void close_loop(void)
{
    unsigned gate = atomic_fetch_and(&pool.gate, ~OPEN);
    for (int i = 0; i < LOOKS && inside(gate) > 0; i++) {
        look_again();
        gate = atomic_load(&pool.gate);
    }
    if (inside(gate) == 0) return;
    pthread_mutex_lock(&pool.lock);
    while (inside(atomic_load(&pool.gate)) > 0) pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

/* With the lock held. */
static void open_loop(const loop *l)
{
    unsigned next = atomic_load(&pool.gate) / GENERATION * GENERATION + GENERATION;
    pool.now = *l;
    atomic_store(&pool.next_range, 0);
    atomic_store(&pool.gate, next | OPEN);
    pthread_cond_broadcast(&pool.wake);
}

/* The first loop that it takes part in is the one after those before its start. */
typedef struct helper {
    int worker;
    unsigned seen;
} helper;

static void *help(void *argument)
{
    const helper *self = argument;
    for (unsigned seen = self->seen;;) {
        seen = await_loop(seen);
        if (!go_in()) continue;
        work(&pool.now, self->worker);
        go_out();
    }
    return NULL;
}

/* Signals are the main thread's to handle: helpers are started with all blocked
 * but those that a thread's own instruction causes. */
static int start_helper(helper *self)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, help, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) pthread_detach(thread);
    return error;
}

static void start_helpers(int count)
{
    static helper helpers[MOST_THREADS];
    while (pool.helpers < count) {
        helper *next = &helpers[pool.helpers];
        *next = (helper){pool.helpers + 1, generation_of(atomic_load(&pool.gate))};
        if (start_helper(next) != 0) return;
        pool.helpers++;
    }
}

static void run_alone(const loop *l)
{
    for (int64_t begin = 0; begin < l->count; begin += l->range_length) {
        int64_t left = l->count - begin;
        l->function(l->context, 0, begin,
                    begin + (left < l->range_length ? left : l->range_length));
    }
}

void pool_for(int threads, int64_t count, int64_t range_length, pool_function *function,
              void *context)
{
    loop l = {function, context, count, range_length,
              count / range_length + (count % range_length > 0), threads};
    if (threads <= 1 || l.range_count <= 1) {
        run_alone(&l);
        return;
    }
    start_helpers(threads < MOST_THREADS ? threads - 1 : MOST_THREADS - 1);
    pthread_mutex_lock(&pool.lock);
    open_loop(&l);
    pthread_mutex_unlock(&pool.lock);
    work(&l, 0);
    close_loop();
}

typedef struct everyone {
    void (*visit)(void *context, int thread, int threads);
    void *context;
    int threads;
    atomic_int begun;
} everyone;

/* Who left before the last has begun would take another's range. */
static void take_part(void *context, int worker, int64_t begin, int64_t end)
{
    everyone *all = context;
    (void)begin;
    (void)end;
    atomic_fetch_add(&all->begun, 1);
    all->visit(all->context, worker, all->threads);
    while (atomic_load(&all->begun) < all->threads) sched_yield();
}

void pool_each(void (*visit)(void *context, int thread, int threads), void *context)
{
    start_helpers(pool_threads() - 1);
    int threads = pool.helpers + 1;
    everyone all = {visit, context, threads, 0};
    pool_for(threads, threads, 1, take_part, &all);
}
