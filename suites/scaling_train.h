/*
 * scaling_train.h - a model's training step on several ranks, each with a share of the
 * batch: what rank 0 asks of the others, and the memory that a rank has for it.
 *
 * A rank runs one micro-batch of those of the whole batch (model.h), which leaves its
 * share of the gradients: their sum over the ranks is what one rank's pass of the whole
 * batch would leave. The optimizer's state is not the model's but the rank's own: of all
 * parameters, or, sharded, of an equal part of them (Rajbhandari et al., "ZeRO: memory
 * optimizations toward training trillion parameter models", 2020, its first stage).
 */
#ifndef SCALING_TRAIN_H
#define SCALING_TRAIN_H

#include "../kernels/model/model.h"
#include "collective_job.h"

typedef enum train_work {
    TRAIN_STEP,         /* all-reduce beside the backward pass, every rank updates all */
    TRAIN_STEP_SHARDED, /* reduce-scatter, AdamW of the rank's part, all-gather */
    TRAIN_REDUCE,       /* the gradients' all-reduce alone */
    TRAIN_BACKWARD,     /* the backward pass alone */
    TRAIN_SERIAL,       /* the all-reduce once the backward pass is done */
    TRAIN_OVERLAPPED    /* each bucket's as soon as its gradients are there */
} train_work;

typedef enum train_what { TRAIN_SET_UP, TRAIN_EXECUTE, TRAIN_CHECK, TRAIN_RELEASE } train_what;

/* set: which memory; those with an equal one share it, and work of steps has its own. */
typedef struct train_order {
    train_what what;
    train_work work;
    model_shape shape; /* batch: of one rank */
    kernel_dtype dtype;
    int cuda, set;
    int blocks_only; /* of the backward pass and its gradients those of the blocks alone */
    int64_t bucket_bytes; /* of an all-reduce; 0: all gradients in one */
    uint64_t seed, count;
} train_order;

/* For job_use: carries out the train_order of a job_order. */
void train_task(ranks_here *r, const job_order *order, ranks_answer *a);

/* Bytes that a rank takes for it, without workspaces; elements of all gradients, and those
 * of them that are summed over the ranks. */
uint64_t train_bytes(const train_order *order, int ranks);
int64_t train_elements(const train_order *order);
typedef struct train_range {
    int64_t begin, end;
} train_range;
train_range train_summed(const train_order *order);

/* How the last step of the last TRAIN_EXECUTE went, of a rank of this process: what its
 * stream stood still for. */
const collective_stalls *train_stalls_of(int rank);

/* ---- within -------------------------------------------------------------------------- */

/* A variant of an operation with what it is run with. */
typedef struct train_tool {
    const kernel_variant *variant;
    const void *args;
    void *state;
} train_tool;

/* A pass of the model. ready: for each of its ops the first element from which on all
 * gradients are there once it is done. */
typedef struct train_pass {
    model_args args;
    train_tool tool;
    int64_t *ready;
} train_pass;

/* The parts of a rank's gradients that it updates: all, or its own and what is left when
 * each rank has as much, which all update. */
enum { TRAIN_PARTS = 2 };

typedef struct train_rank {
    const collective_library *library;
    void *library_state;
    train_order order;
    int rank, ranks;
    int64_t elements, shard; /* of all gradients, and of a rank's part of them */
    train_range summed; /* of the gradients */
    kernel_dtype stored;
    model_plan plan;
    void *memory, *own, *workspace; /* of the model; of the optimizer; of whatever runs */
    void *values, *gradients, *target; /* target: where their sum over the ranks goes */
    void *scratch; /* behind the numbers below: the optimizer's state, or sums apart */
    train_pass whole, backward;
    optimizer_tensor parts[TRAIN_PARTS], norms_tensor;
    int64_t part_count;
    float *norms, *norm, *scale; /* of each rank's part and the rest; of all */
    optimizer_clip_args clip_part_args[TRAIN_PARTS], clip_args;
    optimizer_adamw_args adamw_args;
    train_tool clip_part[TRAIN_PARTS], clip, adamw;
    /* Of the pass that is being enqueued: */
    const train_pass *running;
    int64_t op, sent; /* sent: from that element on the sums are under way */
    int depth, code;
    /* What its thread is to do: */
    train_work work;
    uint64_t count;
} train_rank;

/* Ranks of this process whose memory is one set. */
typedef struct train_set {
    int id, users;
    ranks_here *here;
    train_rank *ranks;
} train_set;

/* Memory, tools and inputs of a rank, by its thread. Giving back what it took may be
 * done twice. */
int train_prepare(train_rank *r);
void train_free(train_rank *r);

/* Parameters, state and tokens as they were first, and the gradients of a pass where
 * order's work is less than a step. */
int train_fill(train_rank *r, kernel_stream stream);

/* Enqueues order's work once. */
int train_run(train_rank *r, train_work work, kernel_stream stream);

/* Enqueues one operation that ends on all ranks at the same time. */
int train_meet(train_rank *r);

/* All-reduces of the gradients' sum. */
uint64_t train_buckets(const train_rank *r);

/* The variant that runs passes. */
const kernel_variant *train_model(int cuda);

/* Memory of the rank, and copies between it and the host's. 0 or a code. */
int train_take(const train_rank *r, size_t bytes, void **memory);
int train_copy(const train_rank *r, void *to, const void *from, size_t bytes);

/* Bytes of all elements of its parameters or gradients, as they are stored. */
size_t train_array_bytes(const train_rank *r);
model_fill_function *train_filler(int cuda);

/* A rank's passes, but for which micro-batch is its own, and memory. */
model_args train_args(const train_order *order, int ranks);

/* Tokens and targets of the whole batch. */
int train_fill_tokens(const train_rank *r, const model_args *a, const model_plan *plan);

/* Of this process's ranks each has its thread do that: a's code and time. */
typedef int train_part(train_rank *r, kernel_stream stream);
void train_each(train_set *set, train_part *part, ranks_answer *a);

/* Does the work once more from the start, with parameters that move, and holds what it
 * leaves on each rank against one rank's step of the whole batch. */
void train_check(train_set *set, train_work work, ranks_answer *a);

#endif
