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

/* Elements that are looked at on the host at a time, and by one thread. */
enum { PIECE = 1 << 22, RANGE = 1 << 14 };

/* What each rank gives, and the sum of it, as far as it is not the same again: made where it
 * is asked for. */
typedef struct patterns {
    const collective_shape *shape;
    collective_data data;
    uint64_t seed;
    int64_t length;
    unsigned char **each; /* of the ranks, and behind them of the sum */
} patterns;

/* A piece of one rank's buffer on the host. */
typedef struct piece {
    patterns *patterns;
    int rank;
    int64_t at;
    unsigned char *raw;
    double error; /* largest, over what is allowed */
    int64_t wrong; /* the first element that is; -1: none */
    pthread_mutex_t lock;
} piece;

/* ---- patterns ---------------------------------------------------------------------- */

typedef struct making {
    const patterns *of;
    int from;
    unsigned char *raw;
} making;

static void make_range(void *context, int64_t begin, int64_t end)
{
    const making *m = context;
    const patterns *p = m->of;
    const size_t bytes = kernel_dtype_bytes(p->shape->dtype);
    collective_shape sums = *p->shape;
    sums.operation = COLLECTIVE_ALL_REDUCE;
    for (int64_t i = begin; i < end; i++) {
        float value = m->from == COLLECTIVE_SUM
                          ? (float)collective_output(&sums, p->data, p->seed, 0, i).value
                          : collective_input(p->shape, p->data, p->seed, m->from, i);
        kernel_from_f32(&value, p->shape->dtype, 1, m->raw + (size_t)i * bytes);
    }
}

static size_t pattern_bytes(const patterns *p)
{
    return (size_t)p->length * kernel_dtype_bytes(p->shape->dtype);
}

/* NULL if there is no memory for it. */
static const unsigned char *pattern_of(patterns *p, int from)
{
    unsigned char **place = &p->each[from == COLLECTIVE_SUM ? p->shape->ranks : from];
    if (!*place) {
        making m = {p, from, malloc(pattern_bytes(p))};
        if (m.raw) parallel_for(p->length, RANGE, make_range, &m);
        *place = m.raw;
    }
    return *place;
}

static int open_patterns(patterns *p, const collective_shape *shape, collective_data data,
                         uint64_t seed)
{
    int64_t count = collective_send_count(shape);
    *p = (patterns){.shape = shape, .data = data, .seed = seed};
    p->length = count < COLLECTIVE_PERIOD ? count : COLLECTIVE_PERIOD;
    p->each = calloc((size_t)shape->ranks + 1, sizeof *p->each);
    return p->each ? 0 : GPUBENCH_OOM;
}

static void close_patterns(patterns *p)
{
    for (int i = 0; i <= p->shape->ranks && p->each; i++) free(p->each[i]);
    free(p->each);
}

/* ---- inputs ------------------------------------------------------------------------ */

static int copy(const ranks_here *r, int rank, void *to, const void *from, size_t bytes,
                ranks_answer *a)
{
    a->code = r->library->copy(r->state, rank, to, from, bytes, a->message);
    return a->code;
}

/* Memory whose first bytes are there gets them again and again, where it is: what it has
 * so far is copied behind itself. */
static void repeat(const ranks_here *r, int rank, void *memory, size_t first, size_t bytes,
                   ranks_answer *a)
{
    for (size_t at = first; at < bytes && a->code == 0; at *= 2)
        (void)copy(r, rank, (char *)memory + at, memory, bytes - at < at ? bytes - at : at, a);
}

static void fill_with(const ranks_here *r, int rank, void *memory, const void *pattern,
                      size_t length, size_t bytes, ranks_answer *a)
{
    const size_t first = length < bytes ? length : bytes;
    if (copy(r, rank, memory, pattern, first, a) == 0) repeat(r, rank, memory, first, bytes, a);
}

/* Ones in every bit are no number in either dtype. */
static void poison(const ranks_here *r, int rank, const collective_buffers *b, ranks_answer *a)
{
    static unsigned char ones[1 << 16];
    memset(ones, 0xff, sizeof ones);
    fill_with(r, rank, b->memory, ones, sizeof ones, b->bytes, a);
}

/* In place, the input stands on top of the poison. */
static void fill_rank(const ranks_here *r, piece *p, const collective_buffers *b, ranks_answer *a)
{
    const collective_shape *s = p->patterns->shape;
    const unsigned char *pattern = pattern_of(p->patterns, p->rank);
    if (!pattern) a->code = GPUBENCH_OOM;
    if (a->code == 0) poison(r, p->rank, b, a);
    if (a->code == 0)
        fill_with(r, p->rank, b->send, pattern, pattern_bytes(p->patterns),
                  (size_t)collective_send_count(s) * kernel_dtype_bytes(s->dtype), a);
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

/* One by one, which says what is wrong, and how near the rest is to it. */
static void check_elements(piece *p, int64_t begin, int64_t end)
{
    const patterns *of = p->patterns;
    const size_t bytes = kernel_dtype_bytes(of->shape->dtype);
    double worst = 0;
    int64_t wrong = -1;
    for (int64_t i = begin; i < end; i++) {
        float found;
        double error;
        kernel_to_f32(p->raw + (size_t)i * bytes, of->shape->dtype, 1, &found);
        error = error_of((double)found,
                         collective_output(of->shape, of->data, of->seed, p->rank, p->at + i));
        worst = error > worst ? error : worst;
        if (error > 1 && wrong < 0) wrong = p->at + i;
    }
    pthread_mutex_lock(&p->lock);
    p->error = worst > p->error ? worst : p->error;
    if (wrong >= 0 && (p->wrong < 0 || wrong < p->wrong)) p->wrong = wrong;
    pthread_mutex_unlock(&p->lock);
}

/* Runs of elements from one place are compared as memory: all are equal where nothing is
 * rounded, and most results are that. */
static void check_range(void *context, int64_t begin, int64_t end)
{
    piece *p = context;
    patterns *of = p->patterns;
    const size_t bytes = kernel_dtype_bytes(of->shape->dtype);
    for (int64_t i = begin; i < end;) {
        collective_origin o = collective_origin_of(of->shape, p->rank, p->at + i);
        int64_t at = o.at % of->length, count = end - i;
        if (count > o.count) count = o.count;
        if (count > of->length - at) count = of->length - at;
        if (memcmp(p->raw + (size_t)i * bytes, pattern_of(of, o.from) + (size_t)at * bytes,
                   (size_t)count * bytes) != 0)
            check_elements(p, i, i + count);
        i += count;
    }
}

/* Those that the elements of a rank come from, before several threads want them. */
static int make_patterns(piece *p)
{
    const collective_shape *s = p->patterns->shape;
    int64_t count = collective_receive_count(s);
    for (int64_t i = 0; i < count;) {
        collective_origin o = collective_origin_of(s, p->rank, i);
        if (!pattern_of(p->patterns, o.from)) return GPUBENCH_OOM;
        i += o.count;
    }
    return 0;
}

static void blame(const ranks_here *r, const piece *p, const collective_buffers *b, ranks_answer *a)
{
    const patterns *of = p->patterns;
    const size_t bytes = kernel_dtype_bytes(of->shape->dtype);
    const double wanted =
        collective_output(of->shape, of->data, of->seed, p->rank, p->wrong).value;
    float found = 0;
    unsigned char raw[sizeof found];
    if (copy(r, p->rank, raw, (const char *)b->receive + (size_t)p->wrong * bytes, bytes, a) != 0)
        return;
    kernel_to_f32(raw, of->shape->dtype, 1, &found);
    a->code = GPUBENCH_MISMATCH;
    snprintf(a->message, sizeof a->message, "rank %d: element %lld of %lld is %g instead of %g",
             p->rank, (long long)p->wrong, (long long)collective_receive_count(of->shape),
             (double)found, wanted);
}

static void check_rank(const ranks_here *r, piece *p, const collective_buffers *b, ranks_answer *a)
{
    int64_t count = collective_receive_count(p->patterns->shape);
    size_t bytes = kernel_dtype_bytes(p->patterns->shape->dtype);
    p->wrong = -1;
    a->code = make_patterns(p);
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
    patterns given;
    piece p = {.patterns = &given, .raw = r->piece};
    a->code = open_patterns(&given, &r->shape, data, seed);
    pthread_mutex_init(&p.lock, NULL);
    for (int i = 0; i < r->ranks.count && a->code == 0; i++) {
        p.rank = r->ranks.first + i;
        work(r, &p, &r->buffers[i], a);
    }
    pthread_mutex_destroy(&p.lock);
    close_patterns(&given);
}

/* Where results are looked at: as long as there are communicators, because memory that a
 * device copies to quickly takes long to get. */
static int take_piece(ranks_here *r)
{
    if (!r->piece)
        r->piece = r->library->take_host(r->state, (size_t)PIECE * sizeof(float));
    return r->piece ? 0 : GPUBENCH_OOM;
}

void ranks_close(ranks_here *r)
{
    ranks_release(r);
    if (r->piece) r->library->drop_host(r->state, r->piece);
    r->piece = NULL;
}

void ranks_set_up(ranks_here *r, const collective_shape *shape, uint64_t seed, ranks_answer *a)
{
    r->shape = *shape;
    r->buffers = calloc((size_t)r->ranks.count, sizeof *r->buffers);
    a->code = r->buffers ? take_piece(r) : GPUBENCH_OOM;
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
