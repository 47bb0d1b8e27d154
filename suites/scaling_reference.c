/*
 * scaling_reference.c - one rank's step of the whole batch: see scaling_reference.h.
 */
#include "scaling_reference.h"

#include "../gpubench.h"

#include <stdlib.h>
#include <string.h>

const optimizer_adamw train_linear = {100, 0.9f, 0.95f, 1, 0, 1};

/* What it is of, and whether it is there. */
static struct {
    int stands, cuda;
    model_shape shape; /* of the whole batch */
    kernel_dtype dtype;
    uint64_t seed;
    train_reference left;
} kept;

/* While it is computed. */
static struct {
    const train_rank *by;
    model_args args;
    model_plan plan;
    const kernel_variant *variant;
    void *workspace, *state;
} at_work;

/* ---- what is kept -------------------------------------------------------------------------- */

static model_shape whole_shape(const train_rank *r)
{
    model_shape s = r->order.shape;
    s.batch *= r->ranks;
    return s;
}

static int is_same_shape(const model_shape *a, const model_shape *b)
{
    return a->batch == b->batch && a->tokens == b->tokens && a->width == b->width &&
           a->heads == b->heads && a->hidden == b->hidden && a->layers == b->layers &&
           a->vocabulary == b->vocabulary && a->table_rows == b->table_rows && a->tied == b->tied;
}

static int stands_for(const train_rank *r)
{
    const model_shape shape = whole_shape(r);
    return kept.stands && kept.cuda == r->order.cuda && kept.dtype == r->order.dtype &&
           kept.seed == r->order.seed && is_same_shape(&kept.shape, &shape);
}

void train_forget_reference(void)
{
    void *arrays[] = {kept.left.before, kept.left.after, kept.left.gradients, kept.left.found};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    memset(&kept, 0, sizeof kept);
}

static int make_room(const train_rank *r)
{
    void **arrays[] = {&kept.left.before, &kept.left.after, &kept.left.gradients,
                       &kept.left.found};
    const size_t bytes = train_array_bytes(r);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = malloc(bytes);
        if (!*arrays[i]) return GPUBENCH_OOM;
    }
    return 0;
}

/* ---- the step ------------------------------------------------------------------------------ */

static int fetch(const train_rank *r, model_buffer part, void *to)
{
    return train_copy(r, to, model_memory(&at_work.args, &at_work.plan, part),
                      train_array_bytes(r));
}

/* As the model's suite has it, without micro-batches. */
static model_args args_of(const train_rank *r)
{
    model_args a = train_args(&r->order, r->ranks);
    a.shape = whole_shape(r);
    a.phases = MODEL_STEP;
    a.micro_batches = a.micro_one = 0;
    a.no_state = 0;
    a.settings = train_linear;
    return a;
}

static int take_memory(const train_rank *r)
{
    size_t bytes;
    int code = train_take(r, (size_t)at_work.plan.total, &at_work.args.memory);
    if (code != 0) return code;
    if (!at_work.variant) return KERNEL_ERROR_ARGUMENT;
    bytes = at_work.variant->workspace_bytes ? at_work.variant->workspace_bytes(&at_work.args) : 0;
    return train_take(r, bytes + 1, &at_work.workspace);
}

static int begin(train_rank *r, kernel_stream stream)
{
    const model_args *a = &at_work.args;
    model_fill_function *fill = train_filler(r->order.cuda);
    int code;
    if (r != at_work.by) return 0;
    at_work.args = args_of(r);
    at_work.plan = model_plan_of(a);
    at_work.variant = train_model(r->order.cuda);
    code = take_memory(r);
    if (code == 0)
        code = fill(a->memory, KERNEL_F32, (int64_t)(at_work.plan.total / sizeof(float)), 0, 0, 0);
    if (code == 0) code = model_fill(a, fill, r->order.seed);
    if (code == 0) code = train_fill_tokens(r, a, &at_work.plan);
    if (code == 0) code = fetch(r, MODEL_VALUES, kept.left.before);
    if (code == 0 && at_work.variant->prepare) code = at_work.variant->prepare(a, &at_work.state);
    return code ? code : at_work.variant->run(a, at_work.workspace, at_work.state, stream);
}

static int end(train_rank *r, kernel_stream stream)
{
    const void *loss;
    int code;
    (void)stream;
    if (r != at_work.by) return 0;
    loss = model_memory(&at_work.args, &at_work.plan, MODEL_RESULTS);
    code = fetch(r, MODEL_VALUES, kept.left.after);
    if (code == 0) code = fetch(r, MODEL_GRADIENTS, kept.left.gradients);
    return code ? code : train_copy(r, &kept.left.loss, loss, sizeof kept.left.loss);
}

static int drop(train_rank *r, kernel_stream stream)
{
    (void)stream;
    if (r != at_work.by) return 0;
    if (at_work.state) at_work.variant->release(at_work.state);
    if (at_work.args.memory)
        r->library->release(r->library_state, r->rank, at_work.args.memory);
    if (at_work.workspace) r->library->release(r->library_state, r->rank, at_work.workspace);
    at_work.state = at_work.args.memory = at_work.workspace = NULL;
    return 0;
}

static void keep(const train_rank *r)
{
    kept.stands = 1;
    kept.cuda = r->order.cuda;
    kept.shape = whole_shape(r);
    kept.dtype = r->order.dtype;
    kept.seed = r->order.seed;
}

const train_reference *train_reference_of(train_set *set, ranks_answer *a)
{
    train_rank *by = &set->ranks[0];
    if (a->code != 0) return NULL;
    if (stands_for(by)) return &kept.left;
    train_forget_reference();
    memset(&at_work, 0, sizeof at_work);
    at_work.by = by;
    a->code = make_room(by);
    train_each(set, begin, a);
    train_each(set, end, a);
    train_each(set, drop, &(ranks_answer){.code = 0});
    (void)drop(by, NULL); /* where its thread did not get to it */
    if (a->code == 0)
        keep(by);
    else
        train_forget_reference();
    return a->code ? NULL : &kept.left;
}
