/*
 * collective.c - the collective suite: what ranks do together, by NCCL on GPUs and by MPI
 * on the CPU; as one process with all its GPUs, or as one process for each rank that
 * mpirun or srun starts. See collective_job.h for how the processes stay together.
 */
#include "collective_suite.h"

/* Bytes of the whole array. */
static const int64_t gpu_sizes[] = {8,       64,      512,      4096,     32768,     262144,
                                    1 << 20, 8 << 20, 64 << 20, 256 << 20, 1 << 30};
static const int64_t cpu_sizes[] = {8, 4096, 1 << 20};

/* Above this, random inputs too would take longer to hold against sums than all else. */
enum { RANDOM_BYTES = 16 << 20 };

typedef struct collective_case {
    collective_shape shape;
    uint64_t seed;
    int graph; /* the mode of the last sample */
    collective_pace pace;
} collective_case;

static collective_suite all;

/* ---- a case's life ---------------------------------------------------------------- */

static int set_up(void *context, gpubench *bench)
{
    collective_case *c = context;
    job_order order = {.what = JOB_SET_UP, .shape = c->shape, .seed = c->seed};
    double factor = collective_bus_factor(c->shape.operation, c->shape.ranks);
    ranks_answer answer;
    int code = collective_suite_begin(&all, bench, all.ranks);
    c->pace = (collective_pace){0, 0};
    if (code != 0) return code;
    if (gpubench_is_cuda(bench) && c->shape.ranks == 1 && c->shape.in_place)
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED,
                             "one rank in place: NCCL has nothing to do");
    answer = job_do(&order);
    if (factor > 0)
        gpubench_rate(bench, "busB", factor * (double)collective_bytes(&c->shape));
    else
        gpubench_flag(bench, "one-rank");
    return collective_suite_tell(bench, &answer);
}

static int sample(void *context, unsigned mode, uint64_t count, double *us)
{
    collective_case *c = context;
    job_order order = {.what = JOB_EXECUTE, .count = count, .graph = mode == GPUBENCH_GRAPH};
    ranks_answer answer;
    if (order.graph && !all.library->has_graphs)
        return gpubench_fail(NULL, GPUBENCH_UNSUPPORTED, "graph mode needs a GPU");
    if (c->graph != order.graph) c->pace = (collective_pace){0, 0};
    c->graph = order.graph;
    answer = job_do(&order);
    *us = answer.us;
    collective_pace_add(&c->pace, &answer);
    return collective_suite_tell(NULL, &answer);
}

static int run(void *context, gpubench_stream stream)
{
    double us;
    (void)stream;
    return sample(context, GPUBENCH_HOT, 1, &us);
}

/* Each element of every rank, of whole numbers that must be met and of random ones. */
static int verify(void *context, gpubench *bench)
{
    const collective_case *c = context;
    job_order order = {.what = JOB_VERIFY, .count = 1, .graph = c->graph, .seed = c->seed + 1};
    ranks_answer answer = job_do(&order);
    collective_pace_tell(&c->pace, bench);
    if (answer.code == 0 && collective_bytes(&c->shape) <= RANDOM_BYTES) {
        order.data = COLLECTIVE_RANDOM;
        answer = job_do(&order);
    }
    return answer.code ? collective_suite_tell(bench, &answer)
                       : gpubench_check(bench, answer.error, 1);
}

static void tear_down(void *context)
{
    job_order order = {.what = JOB_RELEASE};
    (void)context;
    (void)job_do(&order);
}

/* ---- queueing ------------------------------------------------------------------------ */

static const char *variant_name(int in_place)
{
    return gpubench_text(all.s.bench, "%s%s", all.library->name, in_place ? "_in_place" : "");
}

static void queue_one(const collective_shape *shape)
{
    gpubench *bench = all.s.bench;
    collective_case *c = gpubench_own(bench, sizeof *c);
    gpubench_case one = gpubench_case_init(
        gpubench_text(bench, "collective.%s", collective_name(shape->operation)), run, c);
    c->shape = *shape;
    c->seed = gpubench_seed(bench) * 1000;
    one.variant = variant_name(shape->in_place);
    one.dtype = kernel_dtype_name(shape->dtype);
    one.params = gpubench_text(bench, "n=%d bytes=%llu", shape->ranks,
                               (unsigned long long)collective_bytes(shape));
    one.runs_on = all.runs_on;
    one.setup = set_up;
    one.sample = sample;
    one.verify = verify;
    one.teardown = tear_down;
    one.bytes = collective_bytes(shape);
    one.peak_gb_per_s = -1;
    one.modes = GPUBENCH_HOT | (all.library->has_graphs ? GPUBENCH_GRAPH : 0);
    gpubench_measure(bench, &one);
}

/* Of a size that gives the same block as the one before nothing is left to measure. */
static void queue_size(int64_t bytes, int64_t smaller)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};
    for (int i = 0; i < 2 * COLLECTIVE_OPERATIONS * 2; i++) {
        collective_shape shape = {.operation = i / 4, .dtype = dtypes[i / 2 % 2],
                                  .ranks = all.ranks, .in_place = i % 2};
        shape.block = collective_block(shape.operation, shape.dtype, all.ranks, bytes);
        if ((shape.in_place && !collective_has_in_place(shape.operation)) ||
            !suite_wants(shape.dtype) ||
            (smaller > 0 && shape.block == collective_block(shape.operation, shape.dtype,
                                                            all.ranks, smaller)))
            continue;
        queue_one(&shape);
    }
}

static void queue_defaults(int cuda)
{
    const int64_t *sizes = cuda ? gpu_sizes : cpu_sizes;
    size_t count = (cuda ? sizeof gpu_sizes : sizeof cpu_sizes) / sizeof *sizes;
    for (size_t i = 0; i < count; i++) queue_size(sizes[i], i > 0 ? sizes[i - 1] : 0);
}

static void queue_given(suite *s, const int64_t *values)
{
    if (values[0] == 0)
        gpubench_usage_error(s->bench, "--shape: bytes must be at least 1");
    else
        queue_size(values[0], 0);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"bytes"};
    int status = collective_suite_open(&all, "collective",
                                       "'bytes=4096; bytes=1048576' of the whole array", argc,
                                       argv);
    if (status != 0) return status;
    if (!suite_for_each_shape(&all.s, keys, 1, queue_given))
        queue_defaults(gpubench_is_cuda(all.s.bench));
    return collective_suite_close(&all);
}
