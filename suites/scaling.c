/*
 * scaling.c - the scaling suite: a GPT's training step on several ranks, data parallel,
 * weak (each rank has the batch of one) and strong (all share it); and what of the
 * gradients' all-reduce the backward pass hides, of the model and of one block. By NCCL on
 * GPUs and MPI on the CPU, as the collective suite (collective_job.h).
 *
 * The learning rate of what is measured is 0, as in the model's suite: each sample does the
 * same work on the same numbers.
 */
#include "collective_suite.h"
#include "scaling_shares.h"
#include "scaling_train.h"

#include <stdio.h>
#include <string.h>

typedef struct scaling_case {
    train_order order;
    int ranks;
    step_history history;
    collective_pace pace;
} scaling_case;

static collective_suite all;

/* ---- a case's life ---------------------------------------------------------------- */

static ranks_answer ask(const scaling_case *c, train_what what, uint64_t count)
{
    job_order order = {.what = JOB_TASK};
    train_order task = c->order;
    task.what = what;
    task.count = count;
    memcpy(order.task, &task, sizeof task);
    return job_do(&order);
}

static int set_up(void *context, gpubench *bench)
{
    scaling_case *c = context;
    ranks_answer answer;
    int code = collective_suite_begin(&all, bench, c->ranks);
    if (code != 0) return code;
    answer = ask(c, TRAIN_SET_UP, 0);
    c->history.count = 0;
    c->pace = (collective_pace){0, 0};
    if (c->order.work <= TRAIN_STEP_SHARDED)
        gpubench_rate(bench, "tokens", (double)(model_rows(&c->order.shape) * c->ranks));
    gpubench_counter(bench, "rank_bytes", (double)train_bytes(&c->order, c->ranks));
    if (c->ranks == 1) gpubench_flag(bench, "one-rank");
    return collective_suite_tell(bench, &answer);
}

/* Of the last step of those that a sample is made of. */
static void note_shares(scaling_case *c)
{
    static collective_stalls each[COLLECTIVE_MOST_RANKS];
    step_shares shares;
    for (int i = 0; i < c->ranks; i++)
        each[i] = all.place.size > 1 ? job_answer_of(i)->stalls : *train_stalls_of(i);
    shares = step_shares_of(each, c->ranks);
    step_history_add(&c->history, &shares);
}

static int sample(void *context, unsigned mode, uint64_t count, double *us)
{
    scaling_case *c = context;
    ranks_answer answer = ask(c, TRAIN_EXECUTE, count);
    (void)mode;
    *us = answer.us;
    if (answer.code == 0) {
        note_shares(c);
        collective_pace_add(&c->pace, &answer);
    }
    return collective_suite_tell(NULL, &answer);
}

static int run(void *context, gpubench_stream stream)
{
    double us;
    (void)stream;
    return sample(context, GPUBENCH_HOT, 1, &us);
}

/* The three shares add up to a step; nobody waits where there is one rank. */
static void tell_shares(const scaling_case *c, gpubench *bench)
{
    const step_shares s = step_history_median(&c->history);
    gpubench_counter(bench, "compute_us", s.compute_us);
    gpubench_counter(bench, "exposed_us", s.exposed_us);
    if (c->ranks == 1) return;
    gpubench_counter(bench, "wait_us", s.wait_us);
    gpubench_counter(bench, "longest_wait_us", s.longest_us);
    gpubench_counter(bench, "slowest_rank", s.slowest);
}

static int verify(void *context, gpubench *bench)
{
    const scaling_case *c = context;
    ranks_answer answer;
    tell_shares(c, bench);
    collective_pace_tell(&c->pace, bench);
    answer = ask(c, TRAIN_CHECK, 1);
    return answer.code ? collective_suite_tell(bench, &answer)
                       : gpubench_check(bench, answer.error, 1);
}

static void tear_down(void *context)
{
    (void)ask(context, TRAIN_RELEASE, 0);
}

/* ---- queueing ------------------------------------------------------------------------ */

static gpubench_case case_of(const char *name, const char *variant, const train_order *order,
                             int ranks, const char *params)
{
    gpubench *bench = all.s.bench;
    scaling_case *c = gpubench_own(bench, sizeof *c);
    gpubench_case one = gpubench_case_init(name, run, c);
    c->order = *order;
    c->ranks = ranks;
    one.variant = variant;
    one.dtype = kernel_dtype_name(order->dtype);
    one.params = params;
    one.runs_on = all.runs_on;
    one.setup = set_up;
    one.sample = sample;
    one.verify = verify;
    one.teardown = tear_down;
    one.peak_gb_per_s = -1;
    one.modes = GPUBENCH_HOT;
    return one;
}

/* "gpus=2 size=tiny b=4 ..."; batch: that of one rank, or of all. */
static const char *describe(const char *size, const model_shape *s, int ranks, int64_t batch)
{
    gpubench *bench = all.s.bench;
    return gpubench_text(bench, "%s=%d size=%s b=%lld t=%lld d=%lld h=%lld ff=%lld l=%lld v=%lld",
                         gpubench_is_cuda(bench) ? "gpus" : "ranks", ranks, size, (long long)batch,
                         (long long)s->tokens, (long long)s->width, (long long)s->heads,
                         (long long)s->hidden, (long long)s->layers, (long long)s->vocabulary);
}

static int next_set; /* each memory has a number of its own */

enum { USUAL_BUCKET = 25 << 20 };

static train_order order_of(const model_shape *shape, kernel_dtype dtype, train_work work, int set)
{
    return (train_order){.work = work, .shape = *shape, .dtype = dtype,
                         .cuda = gpubench_is_cuda(all.s.bench), .set = set,
                         .bucket_bytes = USUAL_BUCKET, .seed = gpubench_seed(all.s.bench)};
}

/* batch: as it is in params. */
static void queue_steps(const char *name, const char *size, const model_shape *shape,
                        kernel_dtype dtype, int ranks, int64_t batch)
{
    static const char *const variants[] = {"replicated", "sharded"};
    gpubench_case cases[2];
    for (int i = 0; i < 2; i++) {
        train_order order = order_of(shape, dtype, (train_work)i, ++next_set);
        cases[i] = case_of(name, variants[i], &order, ranks, describe(size, shape, ranks, batch));
    }
    gpubench_measure_group(all.s.bench, cases, 2);
}

/* The four that belong together share their memory and take turns. */
static void queue_overlap(const char *name, const char *size, const model_shape *shape,
                          kernel_dtype dtype, int blocks_only, int64_t bucket)
{
    static const char *const variants[] = {"reduce", "backward", "serial", "overlapped"};
    gpubench *bench = all.s.bench;
    gpubench_case cases[4];
    const char *whole = describe(size, shape, all.ranks, shape->batch);
    const char *params = bucket ? gpubench_text(bench, "%s bucket=%lld", whole, (long long)bucket)
                                : gpubench_text(bench, "%s bucket=all", whole);
    next_set++;
    for (int i = 0; i < 4; i++) {
        train_order order = order_of(shape, dtype, (train_work)(TRAIN_REDUCE + i), next_set);
        order.bucket_bytes = bucket;
        order.blocks_only = blocks_only;
        cases[i] = case_of(name, variants[i], &order, all.ranks, params);
    }
    gpubench_measure_group(bench, cases, 4);
}

/* A bucket that holds all gradients is the last one. */
static void queue_buckets(const char *name, const char *size, const model_shape *shape,
                          kernel_dtype dtype, int blocks_only)
{
    static const int64_t on_gpu[] = {1 << 20, 5 << 20, 25 << 20, 100 << 20};
    static const int64_t on_cpu[] = {64 << 10, 256 << 10};
    const int cuda = gpubench_is_cuda(all.s.bench);
    const int64_t *buckets = cuda ? on_gpu : on_cpu;
    size_t count = cuda ? sizeof on_gpu / sizeof *on_gpu : sizeof on_cpu / sizeof *on_cpu;
    train_order order = order_of(shape, dtype, TRAIN_REDUCE, 0);
    train_range summed;
    int64_t bytes;
    order.blocks_only = blocks_only;
    summed = train_summed(&order);
    bytes = (summed.end - summed.begin) * (int64_t)kernel_dtype_bytes(model_storage(dtype));
    for (size_t i = 0; i < count && buckets[i] < bytes; i++)
        queue_overlap(name, size, shape, dtype, blocks_only, buckets[i]);
    queue_overlap(name, size, shape, dtype, blocks_only, 0);
}

/* Of one block, and of the whole model. */
static void queue_overlaps(const char *size, const model_shape *shape, kernel_dtype dtype)
{
    model_shape block = *shape;
    block.layers = 1;
    queue_buckets("scaling.block", size, &block, dtype, 1);
    queue_buckets("scaling.overlap", size, shape, dtype, 0);
}

/* Ranks that are processes are as many as there are; of one process 1, 2, 4, ... and all. */
static void queue_size(const char *size, const model_shape *shape)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};
    const int first = gpubench_is_cuda(all.s.bench) && all.place.size == 1 ? 1 : all.ranks;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        if (!suite_wants(dtypes[d])) continue;
        for (int ranks = first; ranks <= all.ranks;
             ranks = ranks < all.ranks && 2 * ranks > all.ranks ? all.ranks : 2 * ranks) {
            model_shape part = *shape;
            queue_steps("scaling.weak", size, shape, dtypes[d], ranks, shape->batch);
            part.batch /= ranks;
            if (shape->batch % ranks == 0)
                queue_steps("scaling.strong", size, &part, dtypes[d], ranks, shape->batch);
        }
        queue_overlaps(size, shape, dtypes[d]);
    }
}

static void queue_given(suite *s, const int64_t *values)
{
    model_shape shape = {values[0], values[1], values[2], values[3], values[4],
                         values[5], values[6], values[6], 0};
    shape.table_rows = (values[6] + 7) / 8 * 8;
    if (!model_is_valid(&shape))
        gpubench_usage_error(s->bench, "--shape: b, t, d, h, ff, l and v must be at least 1, and h "
                                       "must divide d");
    else
        queue_size("given", &shape);
}

static void queue_defaults(int cuda)
{
    const suite_model *m = &suite_models[0];
    model_shape tiny = {4, 32, 64, 2, 256, 2, 256, 256, 0};
    model_shape small = {8, 1024, m->d_model, m->heads, m->d_ff, m->layers, 10000, 10000, 0};
    queue_size(cuda ? m->name : "tiny", cuda ? &small : &tiny);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"b", "t", "d", "h", "ff", "l", "v"};
    int status;
    job_use(train_task);
    status = collective_suite_open(&all, "scaling",
                                   "'b=8 t=1024 d=768 h=12 ff=3072 l=12 v=10000' instead of the "
                                   "defaults", argc, argv);
    if (status != 0) return status;
    if (!suite_for_each_shape(&all.s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(gpubench_is_cuda(all.s.bench));
    return collective_suite_close(&all);
}
