/*
 * scaling_check.c - what ranks left against one rank's step of the whole batch: see
 * scaling_train.h.
 *
 * The step that is checked has a large epsilon and no decay: AdamW then moves a parameter by
 * its gradient times the learning rate, nearly. With the usual one it moves by the rate
 * whatever the gradient's size, and its sign where that is nothing but rounding.
 */
#include "scaling_train.h"

#include "../gpubench.h"
#include "../kernels/common/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const optimizer_adamw linear = {100, 0.9f, 0.95f, 1, 0, 1};

/* One rank's step, done by this process's first rank; and what it leaves, on the host: all
 * elements, also those between tensors. */
static struct {
    const train_rank *by;
    model_args args;
    model_plan plan;
    const kernel_variant *variant;
    void *workspace, *state;
    float *before, *after, *gradients, *found; /* found: of the rank that is looked at */
    float loss;
} wanted;

/* ---- one rank's step --------------------------------------------------------------------- */

static int fetch(const train_rank *r, const void *memory, float *values)
{
    size_t bytes = (size_t)r->elements * kernel_dtype_bytes(r->stored);
    void *raw = malloc(bytes);
    int code = raw ? train_copy(r, raw, memory, bytes) : KERNEL_ERROR_MEMORY;
    if (code == 0) kernel_to_f32(raw, r->stored, r->elements, values);
    free(raw);
    return code;
}

/* As the model's suite has it, without micro-batches. */
static model_args reference_args(const train_rank *r)
{
    model_args a = train_args(&r->order, r->ranks);
    a.shape.batch *= r->ranks;
    a.phases = MODEL_STEP;
    a.micro_batches = a.micro_one = 0;
    a.no_state = 0;
    a.settings = linear;
    return a;
}

static int take_reference(train_rank *r)
{
    size_t bytes;
    int code = train_take(r, (size_t)wanted.plan.total, &wanted.args.memory);
    if (code != 0) return code;
    if (!wanted.variant) return KERNEL_ERROR_ARGUMENT;
    bytes = wanted.variant->workspace_bytes ? wanted.variant->workspace_bytes(&wanted.args) : 0;
    return train_take(r, bytes + 1, &wanted.workspace);
}

static int begin_reference(train_rank *r, kernel_stream stream)
{
    const model_args *a = &wanted.args;
    model_fill_function *fill = train_filler(r->order.cuda);
    int code;
    if (r != wanted.by) return 0;
    wanted.args = reference_args(r);
    wanted.plan = model_plan_of(a);
    wanted.variant = train_model(r->order.cuda);
    code = take_reference(r);
    if (code == 0)
        code = fill(a->memory, KERNEL_F32, (int64_t)(wanted.plan.total / sizeof(float)), 0, 0, 0);
    if (code == 0) code = model_fill(a, fill, r->order.seed);
    if (code == 0) code = train_fill_tokens(r, a, &wanted.plan);
    if (code == 0)
        code = fetch(r, model_memory(a, &wanted.plan, MODEL_VALUES), wanted.before);
    if (code == 0 && wanted.variant->prepare) code = wanted.variant->prepare(a, &wanted.state);
    return code ? code : wanted.variant->run(a, wanted.workspace, wanted.state, stream);
}

static int end_reference(train_rank *r, kernel_stream stream)
{
    const model_args *a = &wanted.args;
    int code;
    (void)stream;
    if (r != wanted.by) return 0;
    code = fetch(r, model_memory(a, &wanted.plan, MODEL_VALUES), wanted.after);
    if (code == 0)
        code = fetch(r, model_memory(a, &wanted.plan, MODEL_GRADIENTS), wanted.gradients);
    return code ? code
                : train_copy(r, &wanted.loss, model_memory(a, &wanted.plan, MODEL_RESULTS),
                             sizeof wanted.loss);
}

static int drop_reference(train_rank *r, kernel_stream stream)
{
    (void)stream;
    if (r != wanted.by) return 0;
    if (wanted.state) wanted.variant->release(wanted.state);
    if (wanted.args.memory) r->library->release(r->library_state, r->rank, wanted.args.memory);
    if (wanted.workspace) r->library->release(r->library_state, r->rank, wanted.workspace);
    wanted.state = wanted.args.memory = wanted.workspace = NULL;
    return 0;
}

/* ---- the ranks' step --------------------------------------------------------------------- */

static int make_linear(train_rank *r, kernel_stream stream)
{
    r->adamw_args.settings = linear;
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

/* norm(found - to) / norm(to - from); from may be NULL: 0. Infinite for what is no number. */
static double distance(const float *found, const float *to, const float *from, int64_t count)
{
    double wrong = 0, whole = 0;
    for (int64_t i = 0; i < count; i++) {
        double off = (double)found[i] - (double)to[i];
        double moved = (double)to[i] - (from ? (double)from[i] : 0);
        wrong += off * off;
        whole += moved * moved;
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

static void compare_step(const train_rank *r, ranks_answer *a)
{
    float loss = 0;
    a->code = train_copy(r, &loss, model_memory(&r->whole.args, &r->plan, MODEL_RESULTS),
                         sizeof loss);
    if (a->code == 0) judge(r, "loss", distance(&loss, &wanted.loss, NULL, 1), a);
    if (a->code == 0) a->code = fetch(r, r->values, wanted.found);
    if (a->code == 0)
        judge(r, "update", distance(wanted.found, wanted.after, wanted.before, r->elements), a);
}

static void compare(const train_rank *r, ranks_answer *a)
{
    const int64_t first = r->summed.begin;
    if (r->work <= TRAIN_STEP_SHARDED) compare_step(r, a);
    if (a->code != 0 || r->work == TRAIN_STEP_SHARDED) return;
    a->code = fetch(r, r->target, wanted.found);
    if (a->code == 0)
        judge(r, "gradient", distance(wanted.found + first, wanted.gradients + first, NULL,
                                      r->summed.end - first), a);
}

/* ---- all of it ------------------------------------------------------------------------- */

static int take_host(int64_t elements)
{
    float **arrays[] = {&wanted.before, &wanted.after, &wanted.gradients, &wanted.found};
    int code = 0;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = malloc((size_t)elements * sizeof(float));
        if (!*arrays[i]) code = GPUBENCH_OOM;
    }
    return code;
}

void train_check(train_set *set, train_work work, ranks_answer *a)
{
    const int count = set->here->ranks.count;
    memset(&wanted, 0, sizeof wanted);
    wanted.by = &set->ranks[0];
    for (int i = 0; i < count; i++) set->ranks[i].work = work;
    a->code = take_host(wanted.by->elements);
    train_each(set, make_linear, a);
    train_each(set, clear_gradients, a);
    train_each(set, run_once, a);
    if (work <= TRAIN_STEP_SHARDED) train_each(set, sum_loss, a);
    train_each(set, begin_reference, a);
    train_each(set, end_reference, a);
    for (int i = 0; i < count && a->code == 0; i++) compare(&set->ranks[i], a);
    train_each(set, drop_reference, &(ranks_answer){.code = 0});
    (void)drop_reference(&set->ranks[0], NULL); /* where its thread did not get to it */
    free(wanted.before);
    free(wanted.after);
    free(wanted.gradients);
    free(wanted.found);
}
