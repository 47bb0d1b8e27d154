/*
 * launch.h - the processes of a job that a launcher started (mpirun, srun): who they are,
 * and the few messages between them that steer a measurement. By MPI, where the suites
 * were built with it. One thread of a process calls all of these but launch_is_job.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>

/* Whether the environment says that a launcher started this as one of several processes:
 * the name of the variable that does, or NULL. */
const char *launch_is_job(void);

/* This process among the job's, and those on its host. Processes with different texts in
 * NCCL_HOSTID are on different hosts, as they are to NCCL: so one machine can be several. */
typedef struct launch_place {
    int rank, size, local_rank, local_size, hosts;
    int host; /* the first rank on this one */
} launch_place;

/* Joins the job. 0, or a code after a message on standard error. */
int launch_open(launch_place *place);
void launch_close(void);

/* Bytes of rank 0 to all; of all to rank 0, in the order of the ranks. 0 or a code. */
int launch_broadcast(void *memory, size_t bytes);
int launch_gather(const void *one, void *all, size_t bytes);

#endif
