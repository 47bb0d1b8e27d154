/*
 * scaling_run.c - a rank's work once: passes, sums over the ranks, the update. See
 * scaling_train.h.
 *
 * The backward pass fills the gradients from the last one to the first, layer by layer,
 * and they are one contiguous array: so a bucket is so many bytes of it, from the end, and
 * its all-reduce starts once the lowest layer that it reaches into is done.
 */
#include "scaling_train.h"

/* What one rank's thread enqueues: a watch is told nothing but names. */
static _Thread_local train_rank *at_work;

static int run_tool(const train_rank *r, const train_tool *tool, kernel_stream stream)
{
    return tool->variant->run(tool->args, r->workspace, tool->state, stream);
}

/* ---- sums over the ranks --------------------------------------------------------------- */

static int start(train_rank *r, collective_operation operation, kernel_dtype dtype, int64_t block,
                 void *send, void *receive)
{
    collective_shape shape = {.operation = operation, .dtype = dtype, .ranks = r->ranks,
                              .in_place = 1, .block = block};
    collective_buffers b = {.send = send, .receive = receive};
    if (operation == COLLECTIVE_ALL_REDUCE) shape.in_place = send == receive;
    return block > 0 ? r->library->start(r->library_state, r->rank, &shape, &b) : 0;
}

static int join(train_rank *r)
{
    return r->library->join(r->library_state, r->rank);
}

static int sum_range(train_rank *r, int64_t begin, int64_t end)
{
    const size_t at = (size_t)begin * kernel_dtype_bytes(r->stored);
    return start(r, COLLECTIVE_ALL_REDUCE, r->stored, end - begin, (char *)r->gradients + at,
                 (char *)r->target + at);
}

static int64_t bucket_elements(const train_rank *r)
{
    const int64_t bucket = r->order.bucket_bytes / (int64_t)kernel_dtype_bytes(r->stored);
    return bucket < 1 || bucket > r->elements ? r->elements : bucket;
}

uint64_t train_buckets(const train_rank *r)
{
    const int64_t bucket = bucket_elements(r), summed = r->summed.end - r->summed.begin;
    return (uint64_t)((summed + bucket - 1) / bucket);
}

/* Starts the buckets that are complete when all gradients from `ready` on are there; the
 * last one is what is left. */
static int sum_ready(train_rank *r, int64_t ready)
{
    const int64_t bucket = bucket_elements(r), first = r->summed.begin;
    int code = 0;
    while (r->sent > first && code == 0) {
        int64_t begin = r->sent - first > bucket ? r->sent - bucket : first;
        if (begin < ready) break;
        code = sum_range(r, begin, r->sent);
        r->sent = begin;
    }
    return code;
}

/* ---- watching a pass --------------------------------------------------------------------- */

static void begin_op(const char *name)
{
    (void)name;
    at_work->depth++;
}

/* Ops end within their phase. */
static void end_op(void)
{
    train_rank *r = at_work;
    if (--r->depth != 1 || r->code != 0) return;
    r->code = sum_ready(r, r->running->ready[r->op++]);
}

static const model_watch watch = {begin_op, end_op};

/* overlaps: the sums start in the pass. */
static int run_pass(train_rank *r, train_pass *pass, int overlaps, kernel_stream stream)
{
    int code;
    at_work = r;
    r->running = pass;
    r->op = r->depth = r->code = 0;
    r->sent = r->summed.end;
    pass->args.watch = overlaps ? &watch : NULL;
    code = run_tool(r, &pass->tool, stream);
    return code ? code : r->code;
}

/* ---- the update ----------------------------------------------------------------------------- */

static int update(train_rank *r, kernel_stream stream)
{
    int code = run_tool(r, &r->clip, stream);
    return code ? code : run_tool(r, &r->adamw, stream);
}

static int share_norms(train_rank *r)
{
    int code = start(r, COLLECTIVE_ALL_GATHER, KERNEL_F32, 1, r->norms + r->rank, r->norms);
    return code ? code : join(r);
}

/* Each rank sums the squares of its part, rank's norms go to all; the rest has one of its
 * own, which is the same everywhere. */
static int update_part(train_rank *r, kernel_stream stream)
{
    char *part = (char *)r->values + (size_t)(r->rank * r->shard) * kernel_dtype_bytes(r->stored);
    int code = 0;
    for (int64_t i = 0; i < r->part_count && code == 0; i++)
        code = run_tool(r, &r->clip_part[i], stream);
    if (code == 0) code = share_norms(r);
    if (code == 0) code = update(r, stream);
    if (code == 0) code = start(r, COLLECTIVE_ALL_GATHER, r->stored, r->shard, part, r->values);
    return code ? code : join(r);
}

/* ---- all of it ------------------------------------------------------------------------- */

static int run_step(train_rank *r, kernel_stream stream)
{
    int code = run_pass(r, &r->whole, 1, stream);
    if (code == 0) code = join(r);
    return code ? code : update(r, stream);
}

static int run_sharded(train_rank *r, kernel_stream stream)
{
    const size_t at = (size_t)(r->rank * r->shard) * kernel_dtype_bytes(r->stored);
    char *part = (char *)r->gradients + at;
    int code = run_pass(r, &r->whole, 0, stream);
    if (code == 0)
        code = start(r, COLLECTIVE_REDUCE_SCATTER, r->stored, r->shard, r->gradients, part);
    if (code == 0) code = sum_range(r, r->shard * r->ranks, r->elements);
    if (code == 0) code = join(r);
    return code ? code : update_part(r, stream);
}

static int sum_all(train_rank *r)
{
    int code;
    r->sent = r->summed.end;
    code = sum_ready(r, 0);
    return code ? code : join(r);
}

/* What was in the norms until now is nobody's any more. */
int train_meet(train_rank *r)
{
    return share_norms(r);
}

int train_run(train_rank *r, train_work work, kernel_stream stream)
{
    int code;
    r->target = work == TRAIN_REDUCE ? r->scratch : r->gradients;
    switch (work) {
    case TRAIN_STEP: return run_step(r, stream);
    case TRAIN_STEP_SHARDED: return run_sharded(r, stream);
    case TRAIN_REDUCE: return sum_all(r);
    case TRAIN_BACKWARD: return run_pass(r, &r->backward, 0, stream);
    case TRAIN_SERIAL:
        code = run_pass(r, &r->backward, 0, stream);
        return code ? code : sum_all(r);
    case TRAIN_OVERLAPPED: break;
    }
    code = run_pass(r, &r->backward, 1, stream);
    return code ? code : join(r);
}
