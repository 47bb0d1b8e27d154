/*
 * launch.c - the processes of a job: see launch.h. Compiled with KERNEL_MPI defined to 1
 * where there is an MPI compiler.
 */
#define _XOPEN_SOURCE 700
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef KERNEL_MPI
#define KERNEL_MPI 0
#endif

/* SLURM_NTASKS is not among them: it stands in the shell of an allocation too. */
const char *launch_is_job(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && strtol(value, NULL, 10) > 1) return names[i];
    }
    return NULL;
}

#if KERNEL_MPI

#include <mpi.h>

/* How many ranks are the first of their host. */
static int count_hosts(int local_rank)
{
    int first = local_rank == 0, hosts = 0;
    MPI_Allreduce(&first, &hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return hosts;
}

/* A number for NCCL_HOSTID's text, 0 without one. */
static int host_number(void)
{
    const char *text = getenv("NCCL_HOSTID");
    unsigned sum = 0;
    while (text && *text) sum = sum * 31 + (unsigned char)*text++;
    return (int)(sum & 0x7fffffff);
}

static void find_host(launch_place *place)
{
    MPI_Comm machine, host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, place->rank, MPI_INFO_NULL, &machine);
    MPI_Comm_split(machine, host_number(), place->rank, &host);
    MPI_Comm_rank(host, &place->local_rank);
    MPI_Comm_size(host, &place->local_size);
    place->host = place->rank;
    MPI_Bcast(&place->host, 1, MPI_INT, 0, host);
    MPI_Comm_free(&host);
    MPI_Comm_free(&machine);
}

/* A launcher of another MPI than this one's leaves each process alone, as rank 0 of 1. */
static int refuse_lonely(const launch_place *place)
{
    const char *variable = launch_is_job();
    if (place->size > 1 || !variable) return 0;
    fprintf(stderr,
            "ranks: %s=%s, but MPI sees one process: the launcher is not that of the MPI "
            "which this was built with\n",
            variable, getenv(variable));
    return 2;
}

int launch_open(launch_place *place)
{
    int provided;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        fputs("ranks: MPI_Init_thread failed\n", stderr);
        return 2;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &place->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &place->size);
    find_host(place);
    place->hosts = count_hosts(place->local_rank);
    return refuse_lonely(place);
}

void launch_close(void)
{
    MPI_Finalize();
}

int launch_broadcast(void *memory, size_t bytes)
{
    return MPI_Bcast(memory, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

int launch_gather(const void *one, void *all, size_t bytes)
{
    return MPI_Gather(one, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

#else

/* Alone, or refused: many processes that each believe to be the only one would all
 * report a result. */
int launch_open(launch_place *place)
{
    const char *variable = launch_is_job();
    *place = (launch_place){0, 1, 0, 1, 1, 0};
    if (!variable) return 0;
    fprintf(stderr,
            "ranks: %s=%s: a launcher started several processes, but this was built "
            "without MPI (make MPI=1, which needs mpicc)\n",
            variable, getenv(variable));
    return 2;
}

void launch_close(void) {}

int launch_broadcast(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    return 0;
}

int launch_gather(const void *one, void *all, size_t bytes)
{
    memcpy(all, one, bytes);
    return 0;
}

#endif
