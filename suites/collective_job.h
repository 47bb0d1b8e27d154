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

enum { JOB_PATH = 256 };

typedef enum job_what {
    JOB_OPEN,    /* communicators */
    JOB_SET_UP,  /* memory and inputs of the shape */
    JOB_EXECUTE, /* count times, timed */
    JOB_VERIFY,
    JOB_RELEASE,
    JOB_QUIT
} job_what;

/* Those members count that what needs. */
typedef struct job_order {
    job_what what;
    uint64_t sequence, count, seed;
    collective_shape shape;
    collective_data data;
    int graph, cuda; /* cuda: by NCCL, on GPUs */
    char nccl[JOB_PATH];
} job_order;

/* Joins the job that a launcher started, if one did. Where this is not rank 0, carries out
 * orders until the job is over, and does not return. 0, or an exit status after a message. */
int job_start(int argc, char **argv, launch_place *place);

/* Of rank 0: this process alone has so many ranks (GPUs), where no launcher started more. */
void job_set_ranks(int count);

/* Gives an order and waits: the worst answer, whose message names its rank where several
 * have one. Once the job is over: GPUBENCH_SKIPPED. */
ranks_answer job_do(const job_order *order);

/* Ends the job, and the process too where a rank was left behind. */
void job_finish(int status);

#endif
