/*
 * scaling_train.c - orders to the ranks of a training step: see scaling_train.h.
 */
#include "scaling_reference.h"

#include "../gpubench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cases that are set up at the same time with memory of their own. */
enum { MOST_SETS = 4 };

static train_set sets[MOST_SETS];

static train_set *find_set(int id)
{
    for (int i = 0; i < MOST_SETS; i++)
        if (sets[i].users > 0 && sets[i].id == id) return &sets[i];
    return NULL;
}

static train_set *free_set(void)
{
    for (int i = 0; i < MOST_SETS; i++)
        if (sets[i].users == 0) return &sets[i];
    return NULL;
}

/* ---- all ranks of the process --------------------------------------------------------- */

typedef struct share {
    train_set *set;
    train_part *part;
} share;

static int do_share(void *context, int rank, kernel_stream stream)
{
    const share *s = context;
    return s->part(&s->set->ranks[rank - s->set->here->ranks.first], stream);
}

static void do_each(train_set *set, train_part *part, int held, ranks_answer *a)
{
    ranks_here *r = set->here;
    share s = {set, part};
    collective_work work = {.run = do_share, .context = &s, .held = held};
    collective_time took = {0, 0};
    const char *text;
    if (a->code != 0) return;
    a->code = r->library->each(r->state, &work, &r->stop, &took, a->message);
    a->us = took.us;
    a->enqueue_us = took.enqueue_us;
    text = kernel_error_string(a->code);
    if (a->code != 0 && !*a->message)
        snprintf(a->message, sizeof a->message, "training: %s (%d)", text ? text : "code", a->code);
}

void train_each(train_set *set, train_part *part, ranks_answer *a)
{
    do_each(set, part, 0, a);
}

static int prepare(train_rank *r, kernel_stream stream)
{
    (void)stream;
    return train_prepare(r);
}

static int release(train_rank *r, kernel_stream stream)
{
    (void)stream;
    train_free(r);
    return 0;
}

/* The threads of ranks, and processes, begin tens of us apart, which is not the work's. */
static int run(train_rank *r, kernel_stream stream)
{
    int code = r->library->begin ? train_meet(r) : 0;
    if (code == 0 && r->library->begin) code = r->library->begin(r->library_state, r->rank);
    for (uint64_t i = 0; i < r->count && code == 0; i++) {
        if (i + 1 == r->count) code = r->library->lap(r->library_state, r->rank);
        if (code == 0) code = train_run(r, r->work, stream);
    }
    return code;
}

/* ---- orders ------------------------------------------------------------------------------ */

/* What a rank's thread did not get to, because its GPU is lost or it could not be started, is
 * the host's to give back. */
static void drop_set(train_set *set)
{
    ranks_answer ignored = {.code = 0};
    train_each(set, release, &ignored);
    for (int i = 0; i < set->here->ranks.count; i++) train_free(&set->ranks[i]);
    free(set->ranks);
    *set = (train_set){.users = 0};
}

static void set_up(ranks_here *r, const train_order *order, ranks_answer *a)
{
    train_set *set = find_set(order->set);
    if (set) {
        set->users++;
        return;
    }
    set = free_set();
    if (set)
        *set = (train_set){order->set, 1, r, calloc((size_t)r->ranks.count, sizeof *set->ranks)};
    if (!set || !set->ranks) {
        a->code = GPUBENCH_OOM;
        if (set) set->users = 0;
        return;
    }
    for (int i = 0; i < r->ranks.count; i++) {
        train_rank *one = &set->ranks[i];
        one->library = r->library;
        one->library_state = r->state;
        one->order = *order;
        one->rank = r->ranks.first + i;
        one->ranks = r->ranks.all;
    }
    train_each(set, prepare, a);
    train_each(set, train_fill, a);
    if (a->code != 0) drop_set(set);
}

/* By rank. */
static collective_stalls last_stalls[COLLECTIVE_MOST_RANKS];

const collective_stalls *train_stalls_of(int rank)
{
    return &last_stalls[rank];
}

static void note_stalls(const train_set *set, ranks_answer *a)
{
    const ranks_here *r = set->here;
    for (int i = 0; i < r->ranks.count && a->code == 0; i++)
        a->code = r->library->stalls(r->state, r->ranks.first + i,
                                     &last_stalls[r->ranks.first + i], a->message);
    a->stalls = last_stalls[r->ranks.first];
}

/* Executions that can be held behind where ranks meet; 0: none. Of sums alone, as a pass is more
 * than a GPU's queue has room for; a single one is a long one, or the first, in which NCCL may
 * still have its connections to make. */
static uint64_t most_held(const train_set *set, uint64_t count)
{
    const train_rank *r = &set->ranks[0];
    const uint64_t room = r->library->most_held;
    return r->work == TRAIN_REDUCE && count > 1 && room > 0 ? (room - 1) / train_buckets(r) : 0;
}

static void execute_timed(train_set *set, uint64_t count, ranks_answer *a)
{
    const uint64_t most = most_held(set, count);
    collective_time took = {0, 0};
    int held = most > 0;
    for (uint64_t now; count > 0 && a->code == 0; count -= now) {
        now = most > 0 && most < count ? most : count;
        for (int i = 0; i < set->here->ranks.count; i++) set->ranks[i].count = now;
        do_each(set, run, held, a);
        held = held && a->enqueue_us <= 0; /* else it waited a second for nothing */
        took.us += a->us;
        took.enqueue_us += a->enqueue_us;
    }
    a->us = took.us;
    a->enqueue_us = took.enqueue_us;
}

static void execute(train_set *set, const train_order *order, ranks_answer *a)
{
    for (int i = 0; i < set->here->ranks.count; i++) {
        set->ranks[i].work = order->work;
        set->ranks[i].order.bucket_bytes = order->bucket_bytes;
    }
    if (order->what == TRAIN_EXECUTE) {
        execute_timed(set, order->count, a);
        note_stalls(set, a);
    } else
        train_check(set, order->work, a);
}

void train_task(ranks_here *r, const job_order *order, ranks_answer *a)
{
    train_order t;
    train_set *set;
    if (order->what != JOB_TASK) {
        for (int i = 0; i < MOST_SETS; i++)
            if (sets[i].users > 0) drop_set(&sets[i]);
        train_forget_reference();
        return;
    }
    memcpy(&t, order->task, sizeof t);
    set = find_set(t.set);
    if (t.what == TRAIN_SET_UP)
        set_up(r, &t, a);
    else if (t.what == TRAIN_RELEASE) {
        if (set && --set->users == 0) drop_set(set);
    } else if (set)
        execute(set, &t, a);
    else {
        a->code = GPUBENCH_SKIPPED;
        snprintf(a->message, sizeof a->message,
                 "its memory went with the communicators when a case beside it failed");
    }
}
