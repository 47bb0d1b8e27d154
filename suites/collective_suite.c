/*
 * collective_suite.c - who takes part: see collective_suite.h.
 */
#include "collective_suite.h"

#include <stdio.h>
#include <stdlib.h>

static const char *nccl_option, *ranks_option;

/* ---- the job behind the cases ------------------------------------------------------- */

/* A library's own code says no more than its message. */
int collective_suite_tell(gpubench *bench, const ranks_answer *answer)
{
    int status = answer->code;
    if (status == 0) return 0;
    if (status > 0 || status < GPUBENCH_MISMATCH)
        status = status == KERNEL_ERROR_ARGUMENT ? GPUBENCH_UNSUPPORTED : GPUBENCH_FAILED;
    return gpubench_fail(bench, status, "%s", answer->message);
}

static int flag_isolated(gpubench *bench)
{
    if (job_is_isolated()) gpubench_flag(bench, "isolated");
    return 0;
}

int collective_suite_begin(collective_suite *c, gpubench *bench, int ranks)
{
    static int open_ranks;
    const char *why_not = c->library->why_not();
    job_order closing = {.what = JOB_CLOSE};
    job_order order = {.what = JOB_OPEN, .cuda = gpubench_is_cuda(bench), .ranks = ranks,
                       .device = c->device};
    ranks_answer answer;
    if (why_not) return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "%s", why_not);
    if (job_is_open() && open_ranks == ranks) return flag_isolated(bench);
    if (job_is_open()) (void)job_do(&closing);
    if (nccl_option) snprintf(order.nccl, sizeof order.nccl, "%s", nccl_option);
    answer = job_do(&order);
    open_ranks = ranks;
    (void)flag_isolated(bench);
    return collective_suite_tell(bench, &answer);
}

/* ---- who takes part -------------------------------------------------------------------- */

#if GPUBENCH_CUDA
static void choose_nccl(collective_suite *c)
{
    gpubench *bench = c->s.bench;
    uint64_t wanted = 0;
    int visible;
    if (nccl_option) collective_nccl_use(nccl_option);
    c->library = &collective_nccl;
    visible = collective_nccl_devices(&c->device);
    if (visible < 1) gpubench_usage_error(bench, "CUDA does not tell which GPUs there are");
    if (c->place.size == 1 && visible > 0) c->ranks = visible;
    if (!ranks_option) return;
    if (c->place.size > 1 || gpubench_parse_count(ranks_option, &wanted) != 0 || wanted < 1 ||
        wanted > 64)
        gpubench_usage_error(bench, "--ranks '%s': wants 1 to 64, and no launcher", ranks_option);
    else
        c->ranks = (int)wanted;
}
#endif

/* On the CPU a rank is a process. */
static void choose(collective_suite *c)
{
    gpubench *bench = c->s.bench;
    const char *multicast = getenv("NCCL_NVLS_ENABLE");
    c->library = &collective_mpi;
    c->ranks = c->place.size;
#if GPUBENCH_CUDA
    if (gpubench_is_cuda(bench)) choose_nccl(c);
#endif
    if (!gpubench_is_cuda(bench) && ranks_option)
        gpubench_usage_error(bench, "--ranks: of a process with several GPUs; on the CPU a "
                                    "launcher starts them: mpirun -np %s", ranks_option);
    snprintf(c->runs_on, sizeof c->runs_on, "%s, %d rank%s on %d host%s%s%.8s",
             c->library->version(), c->ranks, c->ranks == 1 ? "" : "s", c->place.hosts,
             c->place.hosts == 1 ? "" : "s",
             multicast && gpubench_is_cuda(bench) ? ", NCCL_NVLS_ENABLE=" : "",
             multicast && gpubench_is_cuda(bench) ? multicast : "");
}

int collective_suite_open(collective_suite *c, const char *name, const char *shape_help, int argc,
                          char **argv)
{
    static const gpubench_option own[] = {
        {"--nccl", "FILE", "the NCCL to load (default: GPUBENCH_NCCL, or where the loader looks)",
         &nccl_option},
        {"--ranks", "N", "of this process, each on a GPU (default: as many as are visible)",
         &ranks_option}};
    int status = job_start(name, argc, argv, &c->place);
    if (status != 0) return status;
    c->s = suite_open_with(name, shape_help, own, 2, argc, argv);
    if (c->place.size > 1)
        gpubench_stay(c->s.bench, "it is a rank of a job");
    choose(c);
    return 0;
}

/* What enqueueing takes of a sample's time, from which on the GPUs waited for the host. */
static const double PACED = 0.9;

void collective_pace_add(collective_pace *p, const ranks_answer *answer)
{
    p->samples++;
    p->paced += answer->enqueue_us > PACED * answer->us;
}

void collective_pace_tell(const collective_pace *p, gpubench *bench)
{
    if (2 * p->paced > p->samples) gpubench_flag(bench, "host-paced");
}

int collective_suite_close(collective_suite *c)
{
    int status = suite_close(&c->s);
    job_finish(status);
    return status;
}
