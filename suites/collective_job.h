/*
 * collective_job.h - a job of one or many processes as one thing: rank 0's process gives
 * orders, every process carries them out for its own ranks, and the worst answer comes
 * back. So all ranks do the same number of executions, whatever decides it in rank 0. No
 * order takes longer than --timeout: then whoever is late is named, and the job is over.
 */
#ifndef COLLECTIVE_JOB_H
#define COLLECTIVE_JOB_H

#include "collective_ranks.h"
#include "launch.h"

enum { JOB_PATH = 256, JOB_TASK_BYTES = 256 };

typedef enum job_what {
    JOB_OPEN,    /* communicators */
    JOB_CLOSE,   /* memory and communicators, if there are any */
    JOB_SET_UP,  /* memory and inputs of the shape */
    JOB_EXECUTE, /* count times, timed */
    JOB_VERIFY,
    JOB_RELEASE,
    JOB_TASK, /* what the suite has its ranks do beside collectives */
    JOB_QUIT
} job_what;

/* Those members count that what needs. */
typedef struct job_order {
    job_what what;
    uint64_t sequence, count, seed;
    collective_shape shape;
    collective_data data;
    int graph, cuda; /* cuda: by NCCL, on GPUs */
    int ranks, device; /* of a process alone: how many ranks it has, on GPUs from that one on */
    char nccl[JOB_PATH];
    unsigned char task[JOB_TASK_BYTES]; /* what JOB_TASK is about */
} job_order;

/* Carries out JOB_TASK; before communicators are closed, it is also given the order to do
 * that, and returns the memory that it had of them. */
typedef void job_task(ranks_here *r, const job_order *order, ranks_answer *a);

/* Before job_start, by every process. */
void job_use(job_task *task);

/* Joins the job that a launcher started, if one did, in the name of a suite. Where this is not rank 0, carries out
 * orders until the job is over, and does not return. 0, or an exit status after a message. */
int job_start(const char *name, int argc, char **argv, launch_place *place);

/* Gives an order and waits: the worst answer, whose message names its rank where several
 * have one. Once the job is over: GPUBENCH_SKIPPED. What a process that is alone could end
 * by itself closes its communicators: the next JOB_SET_UP wants a JOB_OPEN first. */
ranks_answer job_do(const job_order *order);

/* What the process of that rank answered to the last order. */
const ranks_answer *job_answer_of(int process);

/* Whether a process does not see the GPUs of all ranks of its host (collective_cards.h). */
int job_is_isolated(void);

/* Whether communicators are open. */
int job_is_open(void);

/* Ends the job, and the process too where a rank was left behind. */
void job_finish(int status);

#endif
