/*
 * collective.c - the collective suite: what ranks do together, by NCCL on GPUs and by MPI
 * on the CPU; as one process with all its GPUs, or as one process for each rank that
 * mpirun or srun starts. See collective_job.h for how the processes stay together.
 */
#include "collective_job.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

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
} collective_case;

static struct {
    suite s;
    launch_place place;
    const collective_library *library;
    int ranks, device;
    char runs_on[160];
} all;

/* ---- a case's life ---------------------------------------------------------------- */

static const char *nccl_option, *ranks_option;

/* A library's own code says no more than its message. */
static int tell(gpubench *bench, const ranks_answer *answer)
{
    int status = answer->code;
    if (status == 0) return 0;
    if (status > 0 || status < GPUBENCH_MISMATCH)
        status = status == KERNEL_ERROR_ARGUMENT ? GPUBENCH_UNSUPPORTED : GPUBENCH_FAILED;
    return gpubench_fail(bench, status, "%s", answer->message);
}

static int open_job(gpubench *bench)
{
    job_order order = {.what = JOB_OPEN, .cuda = gpubench_is_cuda(bench), .ranks = all.ranks,
                       .device = all.device};
    ranks_answer answer;
    if (job_is_open()) return 0;
    if (nccl_option) snprintf(order.nccl, sizeof order.nccl, "%s", nccl_option);
    answer = job_do(&order);
    return tell(bench, &answer);
}

static int set_up(void *context, gpubench *bench)
{
    const collective_case *c = context;
    const char *why_not = all.library->why_not();
    job_order order = {.what = JOB_SET_UP, .shape = c->shape, .seed = c->seed};
    double factor = collective_bus_factor(c->shape.operation, c->shape.ranks);
    ranks_answer answer;
    int code;
    if (why_not) return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "%s", why_not);
    code = open_job(bench);
    if (code != 0) return code;
    answer = job_do(&order);
    if (factor > 0)
        gpubench_rate(bench, "busB", factor * (double)collective_bytes(&c->shape));
    else
        gpubench_flag(bench, "one-rank");
    return tell(bench, &answer);
}

static int sample(void *context, unsigned mode, uint64_t count, double *us)
{
    collective_case *c = context;
    job_order order = {.what = JOB_EXECUTE, .count = count, .graph = mode == GPUBENCH_GRAPH};
    ranks_answer answer;
    if (order.graph && !all.library->has_graphs)
        return gpubench_fail(NULL, GPUBENCH_UNSUPPORTED, "graph mode needs a GPU");
    c->graph = order.graph;
    answer = job_do(&order);
    *us = answer.us;
    return tell(NULL, &answer);
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
    if (answer.code == 0 && collective_bytes(&c->shape) <= RANDOM_BYTES) {
        order.data = COLLECTIVE_RANDOM;
        answer = job_do(&order);
    }
    return answer.code ? tell(bench, &answer) : gpubench_check(bench, answer.error, 1);
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

/* ---- who takes part -------------------------------------------------------------------- */

#if GPUBENCH_CUDA
static void choose_nccl(gpubench *bench)
{
    uint64_t wanted = 0;
    int visible;
    if (nccl_option) collective_nccl_use(nccl_option);
    all.library = &collective_nccl;
    visible = collective_nccl_devices(&all.device);
    if (all.place.size == 1 && visible > 0) all.ranks = visible;
    if (!ranks_option) return;
    if (all.place.size > 1 || gpubench_parse_count(ranks_option, &wanted) != 0 || wanted < 1 ||
        wanted > 64)
        gpubench_usage_error(bench, "--ranks '%s': wants 1 to 64, and no launcher", ranks_option);
    else
        all.ranks = (int)wanted;
}
#endif

/* On the CPU a rank is a process. */
static void choose(gpubench *bench)
{
    const char *multicast = getenv("NCCL_NVLS_ENABLE");
    all.library = &collective_mpi;
    all.ranks = all.place.size;
#if GPUBENCH_CUDA
    if (gpubench_is_cuda(bench)) choose_nccl(bench);
#endif
    if (!gpubench_is_cuda(bench) && ranks_option)
        gpubench_usage_error(bench, "--ranks: of a process with several GPUs; on the CPU a "
                                    "launcher starts them: mpirun -np %s", ranks_option);
    snprintf(all.runs_on, sizeof all.runs_on, "%s, %d rank%s on %d host%s%s%.8s",
             all.library->version(), all.ranks, all.ranks == 1 ? "" : "s", all.place.hosts,
             all.place.hosts == 1 ? "" : "s",
             multicast && gpubench_is_cuda(bench) ? ", NCCL_NVLS_ENABLE=" : "",
             multicast && gpubench_is_cuda(bench) ? multicast : "");
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"bytes"};
    static const gpubench_option own[] = {
        {"--nccl", "FILE", "the NCCL to load (default: GPUBENCH_NCCL, or where the loader looks)",
         &nccl_option},
        {"--ranks", "N", "of this process, each on a GPU (default: as many as are visible)",
         &ranks_option}};
    int status = job_start(argc, argv, &all.place);
    if (status != 0) return status;
    all.s = suite_open_with("collective", "'bytes=4096; bytes=1048576' of the whole array", own, 2,
                            argc, argv);
    if (all.place.size > 1)
        gpubench_stay(all.s.bench, "it is a rank of a job");
    choose(all.s.bench);
    if (!suite_for_each_shape(&all.s, keys, 1, queue_given))
        queue_defaults(gpubench_is_cuda(all.s.bench));
    status = suite_close(&all.s);
    job_finish(status);
    return status;
}
