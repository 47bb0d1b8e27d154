/*
 * collective_job.c - orders and answers: see collective_job.h. Whatever may hang, MPI's
 * and NCCL's calls among it, is done by a thread of its own (worker.h); who is alive is
 * known from datagrams (heartbeat.h).
 */
#define _XOPEN_SOURCE 700
#include "collective_job.h"

#include "../gpubench.h"
#include "collective_cards.h"
#include "heartbeat.h"
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    ranks_here here;
    launch_place place;
    int launched, joined, open, started, over, ended; /* joined: the launcher's job */
    int isolated; /* a process does not see the others' GPUs */
    const char *name; /* the suite's, in messages */
    job_task *task;
    double timeout_s;
    uint64_t sequence;
    ranks_answer *answers; /* of each process */
    char why[COLLECTIVE_MESSAGE]; /* it is over */
} job = {.timeout_s = 60, .place = {0, 1, 0, 1, 1, 0}};

/* ---- joining ----------------------------------------------------------------------- */

/* What an option was given last, NULL if it was not: asked before gpubench_open could say
 * it, and in processes that never call that. */
static const char *find_option(int argc, char **argv, const char *name)
{
    const size_t length = strlen(name);
    const char *text = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], name) && i + 1 < argc) text = argv[i + 1];
        if (!strncmp(argv[i], name, length) && argv[i][length] == '=') text = argv[i] + length + 1;
    }
    return text;
}

static double read_timeout(int argc, char **argv)
{
    const char *text = find_option(argc, argv, "--timeout");
    double seconds;
    return text && gpubench_parse_number(text, &seconds) == 0 && seconds > 0 ? seconds : 60;
}

static int exchange_addresses(void)
{
    heartbeat_address own = {0, 0};
    uint64_t token = (uint64_t)getpid() << 32 ^ (uint64_t)time(NULL);
    size_t count = (size_t)job.place.size;
    heartbeat_address *all = calloc(count, sizeof *all);
    job.answers = calloc(count, sizeof *job.answers);
    int code = all && job.answers ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0) code = heartbeat_open(job.place.hosts == 1, &own);
    if (code == 0) code = launch_gather(&own, all, sizeof own);
    if (code == 0) code = launch_broadcast(all, count * sizeof *all);
    if (code == 0) code = launch_broadcast(&token, sizeof token);
    if (code == 0) code = heartbeat_start(job.place.rank, job.place.size, all, token);
    free(all);
    if (code != 0) fprintf(stderr, "%s: the ranks cannot reach each other: %d\n", job.name, code);
    return code ? 2 : 0;
}

static int join(void *unused)
{
    int code = launch_open(&job.place);
    (void)unused;
    job.joined = code == 0;
    return code != 0 || job.place.size == 1 ? code : exchange_addresses();
}

/* ---- one order in one process -------------------------------------------------------- */

static const collective_library *find_library(const job_order *order)
{
#if GPUBENCH_CUDA
    if (order->cuda) {
        if (*order->nccl) collective_nccl_use(order->nccl);
        return &collective_nccl;
    }
#else
    (void)order;
#endif
    return &collective_mpi;
}

static void open_library(ranks_here *r, const job_order *order, ranks_answer *a)
{
    const launch_place *p = &job.place;
    const int alone = p->size == 1;
    const char *why_not;
    r->library = find_library(order);
    r->ranks = (collective_ranks){.first = p->rank, .count = alone ? order->ranks : 1,
                                  .all = alone ? order->ranks : p->size, .local = p->local_rank,
                                  .on_host = p->local_size, .device = order->device};
    why_not = r->library->why_not();
    if (why_not) {
        a->code = GPUBENCH_UNSUPPORTED;
        snprintf(a->message, sizeof a->message, "%.190s", why_not);
        return;
    }
    if (!job.joined && !order->cuda) {
        job.joined = launch_open(&job.place) == 0;
        if (!job.joined) a->code = GPUBENCH_FAILED;
    }
    if (a->code == 0 && !alone && r->library->card)
        a->code = cards_meet(r->library, &r->ranks, p, &job.isolated, a->message);
    if (a->code == 0)
        a->code = r->library->open(&r->ranks, launch_broadcast, &r->state, a->message);
}

static void close_library(ranks_here *r, const job_order *order, ranks_answer *a)
{
    ranks_close(r);
    if (job.task) job.task(r, order, a);
    if (r->state) r->library->close(r->state);
    r->state = NULL;
}

static void execute(ranks_here *r, const job_order *order, ranks_answer *a)
{
    collective_time took = {0, 0};
    heartbeat_arrives(order->sequence);
    a->code = r->library->execute(r->state, &r->shape, r->buffers, order->count, order->graph,
                                  &r->stop, &took, a->message);
    a->us = took.us;
    a->enqueue_us = took.enqueue_us;
}

static void verify(ranks_here *r, const job_order *order, ranks_answer *a)
{
    ranks_fill(r, order->data, order->seed, a);
    if (a->code == 0) execute(r, order, a);
    if (a->code == 0) ranks_check(r, order->data, order->seed, a);
}

static void carry_out(const job_order *order, ranks_answer *a)
{
    ranks_here *r = &job.here;
    memset(a, 0, sizeof *a);
    heartbeat_begins(order->sequence);
    switch (order->what) {
    case JOB_OPEN: open_library(r, order, a); break;
    case JOB_CLOSE: close_library(r, order, a); break;
    case JOB_SET_UP: ranks_set_up(r, &order->shape, order->seed, a); break;
    case JOB_EXECUTE: execute(r, order, a); break;
    case JOB_VERIFY: verify(r, order, a); break;
    case JOB_RELEASE: ranks_release(r); break;
    case JOB_TASK:
        heartbeat_arrives(order->sequence);
        job.task(r, order, a);
        break;
    case JOB_QUIT:
        close_library(r, order, a);
        if (job.joined) launch_close();
        break;
    }
}

/* ---- the other ranks ------------------------------------------------------------------ */

static int follow(void *unused)
{
    job_order order = {.what = JOB_OPEN};
    (void)unused;
    while (order.what != JOB_QUIT) {
        ranks_answer answer;
        if (launch_broadcast(&order, sizeof order) != 0) return 1;
        carry_out(&order, &answer);
        if (order.what != JOB_QUIT && launch_gather(&answer, NULL, sizeof answer) != 0) return 1;
    }
    return 0;
}

/* Never returns. A rank that is left behind goes with its process. */
static void follow_until_end(void)
{
    int result = worker_do(follow, NULL, 0.1);
    while (result == WORKER_LATE) {
        double silence = heartbeat_silence();
        if (silence < 0) _exit(1);
        if (silence > job.timeout_s) {
            fprintf(stderr, "%s: rank %d: rank 0 is silent for %.0f s: ending\n", job.name,
                    job.place.rank, silence);
            _exit(1);
        }
        result = worker_wait(0.1);
    }
    heartbeat_close();
    worker_close();
    exit(result);
}

/* ---- rank 0 ---------------------------------------------------------------------------- */

static void at_exit(void)
{
    job_finish(1);
}

/* What would need each process to be started anew. */
static int refuses(int argc, char **argv)
{
    const char *runs = find_option(argc, argv, "--runs");
    const char *device = find_option(argc, argv, "--device"), *why = NULL;
    if (device && (strchr(device, ',') || !strcmp(device, "all")))
        why = "--device: not of several under a launcher: each rank takes one of the GPUs that "
              "its host shows";
    if (runs && strcmp(runs, "1") != 0)
        why = "--runs: not under a launcher: start it again for each run";
    if (why && job.place.rank == 0) fprintf(stderr, "%s: %s\n", job.name, why);
    return why != NULL;
}

void job_use(job_task *task)
{
    job.task = task;
}

int job_start(const char *name, int argc, char **argv, launch_place *place)
{
    int code;
    job.name = name;
    job.launched = launch_is_job() != NULL;
    job.timeout_s = read_timeout(argc, argv);
    if (worker_open() != 0) return 2;
    code = job.launched ? worker_do(join, NULL, job.timeout_s) : 0;
    if (code == WORKER_LATE) {
        fprintf(stderr, "%s: joining the job: not finished after %g s (--timeout): a rank "
                        "did not start, or was stopped\n", job.name, job.timeout_s);
        _exit(2);
    }
    if (code == 0 && job.place.size > COLLECTIVE_MOST_RANKS) {
        fprintf(stderr, "%s: at most %d ranks\n", job.name, COLLECTIVE_MOST_RANKS);
        code = 2;
    }
    if (code == 0 && job.launched && refuses(argc, argv)) code = 2;
    *place = job.place;
    if (code != 0) _exit(code);
    if (place->rank > 0) follow_until_end();
    if (!job.answers) job.answers = calloc(1, sizeof *job.answers);
    job.started = 1;
    (void)atexit(at_exit);
    return job.answers ? 0 : 2;
}

static int lead(void *context)
{
    job_order *order = context;
    int code = job.place.size > 1 ? launch_broadcast(order, sizeof *order) : 0;
    ranks_answer own;
    carry_out(order, &own);
    if (order->what == JOB_QUIT) return code;
    if (collective_is_stopped(&job.here.stop) && job.place.size > 1) return code;
    if (job.place.size == 1)
        job.answers[0] = own;
    else if (code == 0)
        code = launch_gather(&own, job.answers, sizeof own);
    return code;
}

/* The largest times and error of all, and the first message of a rank. */
static ranks_answer worst_answer(void)
{
    ranks_answer worst = job.answers[0];
    for (int i = 0; i < job.place.size; i++) {
        const ranks_answer *a = &job.answers[i];
        worst.us = a->us > worst.us ? a->us : worst.us;
        worst.enqueue_us = a->enqueue_us > worst.enqueue_us ? a->enqueue_us : worst.enqueue_us;
        worst.error = a->error > worst.error ? a->error : worst.error;
        if (worst.code == 0 && a->code != 0) {
            worst.code = a->code;
            memcpy(worst.message, a->message, sizeof worst.message);
            if (!*worst.message) snprintf(worst.message, sizeof worst.message, "rank %d failed", i);
        }
    }
    return worst;
}

static const char *name_of(job_what what)
{
    static const char *const names[] = {"communicators", "closing", "setup", "run",
                                        "verify",        "release", "training", "end"};
    return names[what];
}

/* The limit leaves the rest of --timeout to whoever watches this process. */
static double limit_s(void)
{
    return 0.9 * job.timeout_s;
}

/* A process that is alone ends by itself what hangs, if the library lets it, and closes the
 * communicators: who said where it hung, or NULL. */
static const char *take_back(void)
{
    static char who[COLLECTIVE_MESSAGE];
    job_order order = {.what = JOB_CLOSE};
    collective_set_stop(&job.here.stop, 1);
    if (worker_wait(2) == WORKER_LATE) return NULL;
    collective_set_stop(&job.here.stop, 0);
    snprintf(who, sizeof who, "%.150s", job.answers[0].message);
    return worker_do(lead, &order, limit_s()) == WORKER_LATE ? NULL : who;
}

/* What this process has on its GPU waits for the others for ever: only when it is aborted
 * can the device be asked anything. */
static void let_go(void)
{
    const double half_s = 0.05 * job.timeout_s; /* of what limit_s leaves */
    collective_set_stop(&job.here.stop, 1);
    (void)worker_wait(half_s < 2 ? half_s : 2);
}

static ranks_answer give_up(const job_order *order)
{
    ranks_answer answer = {.code = GPUBENCH_FAILED};
    char silent[COLLECTIVE_MESSAGE];
    const char *who = silent;
    if (job.place.size > 1) {
        heartbeat_blame(order->sequence, silent, sizeof silent);
        let_go();
    } else {
        who = take_back();
    }
    job.open = 0;
    job.over = who == silent || !who;
    snprintf(job.why, sizeof job.why, "%s not finished after %.3g s (--timeout): %.120s",
             name_of(order->what), limit_s(), who && *who ? who : "the library did not return");
    memcpy(answer.message, job.why, sizeof answer.message);
    return answer;
}

/* What became of the communicators. After a library's error they are of no more use: alone,
 * they are opened anew for the next case; the other processes of a job may be stuck in it. */
static void note(const job_order *order, const ranks_answer *answer)
{
    const int executed = order->what == JOB_EXECUTE || order->what == JOB_VERIFY ||
                         order->what == JOB_TASK;
    job_order closing = {.what = JOB_CLOSE};
    if (order->what == JOB_OPEN) job.open = answer->code == 0;
    if (!executed || answer->code <= 0 || answer->code == KERNEL_ERROR_ARGUMENT) return;
    job.open = 0;
    job.over = job.place.size > 1 || worker_do(lead, &closing, limit_s()) == WORKER_LATE;
    memcpy(job.why, answer->message, sizeof job.why);
}

ranks_answer job_do(const job_order *order)
{
    static job_order under_way;
    ranks_answer answer = {.code = GPUBENCH_SKIPPED};
    int code;
    if (job.over) {
        snprintf(answer.message, sizeof answer.message, "%.190s", job.why);
        return answer;
    }
    under_way = *order;
    under_way.sequence = ++job.sequence;
    code = worker_do(lead, &under_way, limit_s());
    if (code == WORKER_LATE) return give_up(&under_way);
    if (code == 0) {
        answer = worst_answer();
        note(order, &answer);
        return answer;
    }
    answer.code = GPUBENCH_FAILED;
    job.over = 1;
    snprintf(job.why, sizeof job.why, "the ranks do not reach each other: %d", code);
    memcpy(answer.message, job.why, sizeof answer.message);
    return answer;
}

const ranks_answer *job_answer_of(int process)
{
    return &job.answers[process];
}

int job_is_isolated(void)
{
    return job.isolated;
}

int job_is_open(void)
{
    return job.open;
}

void job_finish(int status)
{
    if (!job.started || job.ended) return;
    job.ended = 1;
    if (!job.over) {
        job_order order = {.what = JOB_QUIT, .sequence = ++job.sequence};
        job.over = worker_do(lead, &order, limit_s()) == WORKER_LATE;
    }
    if (!job.over) {
        heartbeat_close();
        worker_close();
        free(job.answers);
        return;
    }
    heartbeat_end_all();
    fflush(NULL);
    _exit(status ? status : 1);
}
