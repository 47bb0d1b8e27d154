/*
 * scaling_check.c - what ranks left against one rank's step of the whole batch: see
 * scaling_train.h. Every element is looked at, on several threads, as there may be hundreds
 * of millions.
 */
#include "scaling_reference.h"

#include "../gpubench.h"
#include "../kernels/common/convert.h"
#include "parallel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the ranks' step --------------------------------------------------------------------- */

static int make_linear(train_rank *r, kernel_stream stream)
{
    r->adamw_args.settings = train_linear;
    return train_fill(r, stream);
}

/* Whose gradients must come from it, and not from before. */
static int clear_gradients(train_rank *r, kernel_stream stream)
{
    (void)stream;
    if (r->work == TRAIN_REDUCE) return 0;
    return train_filler(r->order.cuda)(r->gradients, r->stored, r->elements, 0, 0, 0);
}

/* The backward pass has nothing to be held against but its share of a sum. */
static int run_once(train_rank *r, kernel_stream stream)
{
    return train_run(r, r->work == TRAIN_BACKWARD ? TRAIN_SERIAL : r->work, stream);
}

/* The ranks' shares of the loss, in place. */
static int sum_loss(train_rank *r, kernel_stream stream)
{
    void *loss = model_memory(&r->whole.args, &r->plan, MODEL_RESULTS);
    collective_shape shape = {.operation = COLLECTIVE_ALL_REDUCE, .dtype = KERNEL_F32,
                              .ranks = r->ranks, .in_place = 1, .block = 1};
    collective_buffers b = {.send = loss, .receive = loss};
    int code = r->library->start(r->library_state, r->rank, &shape, &b);
    (void)stream;
    return code ? code : r->library->join(r->library_state, r->rank);
}

/* ---- comparing ------------------------------------------------------------------------------ */

enum { PIECE = 1024, MOST_RANGES = 256 };

/* Arrays of a dtype that are compared, and sums of squares of each range of their elements. */
typedef struct comparison {
    kernel_dtype dtype;
    const void *found, *to, *from; /* from may be NULL: zeros */
    int64_t range_length;
    double wrong[MOST_RANGES], whole[MOST_RANGES];
} comparison;

static void widen(const comparison *c, const void *array, int64_t first, int64_t count, float *to)
{
    const size_t bytes = kernel_dtype_bytes(c->dtype);
    if (array)
        kernel_to_f32((const char *)array + (size_t)first * bytes, c->dtype, count, to);
    else
        memset(to, 0, (size_t)count * sizeof *to);
}

static void add_range(void *context, int64_t begin, int64_t end)
{
    comparison *c = context;
    const int64_t range = begin / c->range_length;
    float found[PIECE], to[PIECE], from[PIECE];
    for (int64_t first = begin; first < end; first += PIECE) {
        const int64_t count = end - first < PIECE ? end - first : PIECE;
        widen(c, c->found, first, count, found);
        widen(c, c->to, first, count, to);
        widen(c, c->from, first, count, from);
        for (int64_t i = 0; i < count; i++) {
            double off = (double)found[i] - (double)to[i];
            double moved = (double)to[i] - (double)from[i];
            c->wrong[range] += off * off;
            c->whole[range] += moved * moved;
        }
    }
}

/* norm(found - to) / norm(to - from); from may be NULL: 0. Infinite for what is no number. */
static double distance(kernel_dtype dtype, const void *found, const void *to, const void *from,
                       int64_t count)
{
    comparison c = {.dtype = dtype, .found = found, .to = to, .from = from};
    double wrong = 0, whole = 0;
    c.range_length = (count / MOST_RANGES / PIECE + 1) * PIECE;
    parallel_for(count, c.range_length, add_range, &c);
    for (int i = 0; i < MOST_RANGES; i++) {
        wrong += c.wrong[i];
        whole += c.whole[i];
    }
    if (!gpubench_is_finite(wrong) || !(whole > 0)) return HUGE_VAL;
    return sqrt(wrong / whole);
}

/* Each rank's share of a sum is rounded, and each sum of them. */
static void judge(const train_rank *r, const char *what, double error, ranks_answer *a)
{
    double bound = (r->stored == KERNEL_BF16 ? 6e-3 : 1e-5) * (1 + r->ranks);
    if (error / bound > a->error) a->error = error / bound;
    if (error <= bound || a->code != 0) return;
    a->code = GPUBENCH_MISMATCH;
    snprintf(a->message, sizeof a->message,
             "rank %d: the %s differs by %.2g of it from one rank's, %.2g are allowed", r->rank,
             what, error, bound);
}

static void compare_step(const train_rank *r, const train_reference *one, ranks_answer *a)
{
    float loss = 0;
    a->code = train_copy(r, &loss, model_memory(&r->whole.args, &r->plan, MODEL_RESULTS),
                         sizeof loss);
    if (a->code == 0) judge(r, "loss", distance(KERNEL_F32, &loss, &one->loss, NULL, 1), a);
    if (a->code == 0) a->code = train_copy(r, one->found, r->values, train_array_bytes(r));
    if (a->code == 0)
        judge(r, "update",
              distance(r->stored, one->found, one->after, one->before, r->elements), a);
}

/* Those that are summed; others are each rank's own. */
static void compare_gradients(const train_rank *r, const train_reference *one, ranks_answer *a)
{
    const size_t at = (size_t)r->summed.begin * kernel_dtype_bytes(r->stored);
    a->code = train_copy(r, one->found, r->target, train_array_bytes(r));
    if (a->code == 0)
        judge(r, "gradient",
              distance(r->stored, (const char *)one->found + at,
                       (const char *)one->gradients + at, NULL,
                       r->summed.end - r->summed.begin), a);
}

static void compare(const train_rank *r, const train_reference *one, ranks_answer *a)
{
    if (r->work <= TRAIN_STEP_SHARDED) compare_step(r, one, a);
    if (a->code == 0 && r->work != TRAIN_STEP_SHARDED) compare_gradients(r, one, a);
}

/* ---- all of it ------------------------------------------------------------------------- */

void train_check(train_set *set, train_work work, ranks_answer *a)
{
    const int count = set->here->ranks.count;
    const train_reference *one;
    for (int i = 0; i < count; i++) set->ranks[i].work = work;
    train_each(set, make_linear, a);
    train_each(set, clear_gradients, a);
    train_each(set, run_once, a);
    if (work <= TRAIN_STEP_SHARDED) train_each(set, sum_loss, a);
    one = train_reference_of(set, a);
    for (int i = 0; i < count && a->code == 0; i++) compare(&set->ranks[i], one, a);
}
