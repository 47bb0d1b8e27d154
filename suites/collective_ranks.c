/*
 * collective_ranks.c - the ranks of one process: see collective_ranks.h.
 */
#include "collective_ranks.h"

#include "../gpubench.h"
#include "../kernels/common/convert.h"
#include "parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that are made or looked at on the host at a time, and by one thread. */
enum { PIECE = 1 << 22, RANGE = 1 << 14 };

/* A piece of one rank's buffer on the host. */
typedef struct piece {
    const collective_shape *shape;
    collective_data data;
    uint64_t seed;
    int rank;
    int64_t at;
    unsigned char *raw;
    double error; /* largest, over what is allowed */
    int64_t wrong; /* the first element that is; -1: none */
    pthread_mutex_t lock;
} piece;

/* ---- inputs ------------------------------------------------------------------------ */

static void fill_range(void *context, int64_t begin, int64_t end)
{
    const piece *p = context;
    size_t bytes = kernel_dtype_bytes(p->shape->dtype);
    for (int64_t i = begin; i < end; i++) {
        float value = collective_input(p->shape, p->data, p->seed, p->rank, p->at + i);
        kernel_from_f32(&value, p->shape->dtype, 1, p->raw + (size_t)i * bytes);
    }
}

static int copy(const ranks_here *r, int rank, void *to, const void *from, size_t bytes,
                ranks_answer *a)
{
    a->code = r->library->copy(r->state, rank, to, from, bytes, a->message);
    return a->code;
}

static void poison(const ranks_here *r, piece *p, const collective_buffers *b, ranks_answer *a)
{
    size_t most = (size_t)PIECE * sizeof(float);
    memset(p->raw, 0xff, most);
    for (size_t at = 0; at < b->bytes && a->code == 0; at += most)
        (void)copy(r, p->rank, (char *)b->memory + at, p->raw,
                   b->bytes - at < most ? b->bytes - at : most, a);
}

/* In place, the input stands on top of the poison. */
static void fill_rank(const ranks_here *r, piece *p, const collective_buffers *b, ranks_answer *a)
{
    int64_t count = collective_send_count(p->shape);
    size_t bytes = kernel_dtype_bytes(p->shape->dtype);
    poison(r, p, b, a);
    for (p->at = 0; p->at < count && a->code == 0; p->at += PIECE) {
        int64_t now = count - p->at < PIECE ? count - p->at : PIECE;
        parallel_for(now, RANGE, fill_range, p);
        (void)copy(r, p->rank, (char *)b->send + (size_t)p->at * bytes, p->raw,
                   (size_t)now * bytes, a);
    }
}

/* ---- outputs ----------------------------------------------------------------------- */

/* Infinite for a NaN, which poison is. */
static double error_of(double found, collective_expected wanted)
{
    double difference = fabs(found - wanted.value);
    if (difference == 0) return 0;
    return gpubench_is_finite(difference) && wanted.tolerance > 0 ? difference / wanted.tolerance
                                                                  : HUGE_VAL;
}

static void check_range(void *context, int64_t begin, int64_t end)
{
    piece *p = context;
    size_t bytes = kernel_dtype_bytes(p->shape->dtype);
    double worst = 0;
    int64_t wrong = -1;
    for (int64_t i = begin; i < end; i++) {
        float found;
        double error;
        kernel_to_f32(p->raw + (size_t)i * bytes, p->shape->dtype, 1, &found);
        error = error_of((double)found,
                         collective_output(p->shape, p->data, p->seed, p->rank, p->at + i));
        worst = error > worst ? error : worst;
        if (error > 1 && wrong < 0) wrong = p->at + i;
    }
    pthread_mutex_lock(&p->lock);
    p->error = worst > p->error ? worst : p->error;
    if (wrong >= 0 && (p->wrong < 0 || wrong < p->wrong)) p->wrong = wrong;
    pthread_mutex_unlock(&p->lock);
}

static void blame(const ranks_here *r, const piece *p, const collective_buffers *b, ranks_answer *a)
{
    const size_t bytes = kernel_dtype_bytes(p->shape->dtype);
    const double wanted =
        collective_output(p->shape, p->data, p->seed, p->rank, p->wrong).value;
    float found = 0;
    unsigned char raw[sizeof found];
    if (copy(r, p->rank, raw, (const char *)b->receive + (size_t)p->wrong * bytes, bytes, a) != 0)
        return;
    kernel_to_f32(raw, p->shape->dtype, 1, &found);
    a->code = GPUBENCH_MISMATCH;
    snprintf(a->message, sizeof a->message, "rank %d: element %lld of %lld is %g instead of %g",
             p->rank, (long long)p->wrong, (long long)collective_receive_count(p->shape),
             (double)found, wanted);
}

static void check_rank(const ranks_here *r, piece *p, const collective_buffers *b, ranks_answer *a)
{
    int64_t count = collective_receive_count(p->shape);
    size_t bytes = kernel_dtype_bytes(p->shape->dtype);
    p->wrong = -1;
    for (p->at = 0; p->at < count && a->code == 0 && p->wrong < 0; p->at += PIECE) {
        int64_t now = count - p->at < PIECE ? count - p->at : PIECE;
        if (copy(r, p->rank, p->raw, (const char *)b->receive + (size_t)p->at * bytes,
                 (size_t)now * bytes, a) == 0)
            parallel_for(now, RANGE, check_range, p);
    }
    if (a->code == 0 && p->wrong >= 0) blame(r, p, b, a);
    a->error = p->error > a->error ? p->error : a->error;
}

/* ---- all ranks of the process -------------------------------------------------------- */

typedef void rank_work(const ranks_here *r, piece *p, const collective_buffers *b,
                       ranks_answer *a);

static void for_each_rank(ranks_here *r, rank_work *work, collective_data data, uint64_t seed,
                          ranks_answer *a)
{
    piece p = {.shape = &r->shape, .data = data, .seed = seed};
    p.raw = malloc((size_t)PIECE * sizeof(float));
    if (!p.raw) {
        a->code = GPUBENCH_OOM;
        return;
    }
    pthread_mutex_init(&p.lock, NULL);
    for (int i = 0; i < r->ranks.count && a->code == 0; i++) {
        p.rank = r->ranks.first + i;
        work(r, &p, &r->buffers[i], a);
    }
    pthread_mutex_destroy(&p.lock);
    free(p.raw);
}

void ranks_set_up(ranks_here *r, const collective_shape *shape, uint64_t seed, ranks_answer *a)
{
    r->shape = *shape;
    r->buffers = calloc((size_t)r->ranks.count, sizeof *r->buffers);
    if (!r->buffers) a->code = GPUBENCH_OOM;
    for (int i = 0; i < r->ranks.count && a->code == 0; i++) {
        int rank = r->ranks.first + i;
        a->code = r->library->allocate(r->state, rank, collective_memory_bytes(shape),
                                       &r->buffers[i].memory, a->message);
        if (a->code) a->code = GPUBENCH_OOM;
        if (a->code == 0) collective_place(shape, rank, &r->buffers[i]);
    }
    if (a->code == 0) ranks_fill(r, COLLECTIVE_COUNTED, seed, a);
}

void ranks_release(ranks_here *r)
{
    for (int i = 0; i < r->ranks.count && r->buffers; i++)
        if (r->buffers[i].memory)
            r->library->release(r->state, r->ranks.first + i, r->buffers[i].memory);
    free(r->buffers);
    r->buffers = NULL;
}

void ranks_fill(ranks_here *r, collective_data data, uint64_t seed, ranks_answer *a)
{
    for_each_rank(r, fill_rank, data, seed, a);
}

void ranks_check(ranks_here *r, collective_data data, uint64_t seed, ranks_answer *a)
{
    for_each_rank(r, check_rank, data, seed, a);
}
