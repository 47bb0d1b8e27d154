/*
 * mpi.c - the collectives by MPI, on host memory: what an MPI library's own algorithms
 * do, one rank in each process. Compiled with KERNEL_MPI defined to 1 where there is an
 * MPI compiler; elsewhere it says so. MPI has to be initialized by whoever uses it.
 */
#define _XOPEN_SOURCE 700
#include "collective.h"

#include <stdio.h>

#ifndef KERNEL_MPI
#define KERNEL_MPI 0
#endif

#if KERNEL_MPI

#include "../common/convert.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Operations that are under way at a time: before one more, all are waited for. */
enum { MOST_STARTED = 1024 };

typedef struct mpi_state {
    int ranks, rank, started;
    MPI_Op sum_bf16;
    MPI_Request requests[MOST_STARTED];
    double lap_us, inside_us; /* when the stretch began; in MPI since the last join */
    collective_stalls stalls;
} mpi_state;

static const char *why_not(void)
{
    return NULL;
}

/* "Open MPI v4.1.4": up to the first comma or line end. */
static const char *version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (!*text) MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    return text;
}

static int explain(const char *what, int code, char *message)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_string(code, text, &length);
    snprintf(message, COLLECTIVE_MESSAGE, "%s: %.120s", what, text);
    return code;
}

/* MPI has no bf16: each addition is done in f32 and rounded. */
static void add_bf16(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = in_out;
    (void)type;
    for (int i = 0; i < *count; i++)
        b[i] = kernel_bf16_from_f32(kernel_bf16_to_f32(a[i]) + kernel_bf16_to_f32(b[i]));
}

static void close_mpi(void *state)
{
    mpi_state *m = state;
    MPI_Op_free(&m->sum_bf16);
    free(m);
}

static int open_mpi(const collective_ranks *ranks, int (*exchange)(void *memory, size_t bytes),
                    void **state, char *message)
{
    mpi_state *m = calloc(1, sizeof *m);
    int code;
    (void)exchange;
    if (!m) return KERNEL_ERROR_MEMORY;
    m->ranks = ranks->all;
    m->rank = ranks->first;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = explain("MPI_Op_create", MPI_Op_create(add_bf16, 1, &m->sum_bf16), message);
    if (code)
        free(m);
    else
        *state = m;
    return code;
}

static int allocate(void *state, int rank, size_t bytes, void **memory, char *message)
{
    (void)state;
    *memory = bytes < SIZE_MAX ? aligned_alloc(512, bytes) : NULL;
    if (!*memory)
        snprintf(message, COLLECTIVE_MESSAGE, "rank %d: no %zu bytes of memory", rank, bytes);
    return *memory ? 0 : KERNEL_ERROR_MEMORY;
}

static void release(void *state, int rank, void *memory)
{
    (void)state;
    (void)rank;
    free(memory);
}

static int copy(void *state, int rank, void *to, const void *from, size_t bytes, char *message)
{
    (void)state;
    (void)rank;
    (void)message;
    memcpy(to, from, bytes);
    return 0;
}

static void *take_host(void *state, size_t bytes)
{
    (void)state;
    return malloc(bytes);
}

static void drop_host(void *state, void *memory)
{
    (void)state;
    free(memory);
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* What the C library's copy is to NCCL's root: its receive buffer gets the data too. */
static int broadcast(const mpi_state *m, const collective_buffers *b, int count, MPI_Datatype type,
                     size_t bytes)
{
    if (m->rank == 0 && b->send != b->receive) memcpy(b->receive, b->send, bytes);
    return MPI_Bcast(b->receive, count, type, 0, MPI_COMM_WORLD);
}

/* In place, MPI leaves a rank's block at the array's start, and NCCL where it is in the
 * array: it is moved there, and that belongs to the time. */
static int reduce_scatter(const collective_shape *s, const collective_buffers *b, int count,
                          MPI_Datatype type, MPI_Op sum)
{
    int code;
    if (!s->in_place)
        return MPI_Reduce_scatter_block(b->send, b->receive, count, type, sum, MPI_COMM_WORLD);
    code = MPI_Reduce_scatter_block(MPI_IN_PLACE, b->send, count, type, sum, MPI_COMM_WORLD);
    if (b->receive != b->send)
        memcpy(b->receive, b->send, (size_t)s->block * kernel_dtype_bytes(s->dtype));
    return code;
}

static int execute_once(const mpi_state *m, const collective_shape *s, const collective_buffers *b)
{
    const MPI_Datatype type = s->dtype == KERNEL_BF16 ? MPI_UINT16_T : MPI_FLOAT;
    const MPI_Op sum = s->dtype == KERNEL_BF16 ? m->sum_bf16 : MPI_SUM;
    const void *send = s->in_place ? MPI_IN_PLACE : b->send;
    const int n = (int)s->block, next = (m->rank + 1) % m->ranks;
    switch (s->operation) {
    case COLLECTIVE_ALL_REDUCE:
        return MPI_Allreduce(send, b->receive, n, type, sum, MPI_COMM_WORLD);
    case COLLECTIVE_ALL_GATHER:
        return MPI_Allgather(send, n, type, b->receive, n, type, MPI_COMM_WORLD);
    case COLLECTIVE_REDUCE_SCATTER:
        return reduce_scatter(s, b, n, type, sum);
    case COLLECTIVE_BROADCAST:
        return broadcast(m, b, n, type, (size_t)s->block * kernel_dtype_bytes(s->dtype));
    case COLLECTIVE_ALL_TO_ALL:
        return MPI_Alltoall(send, n, type, b->receive, n, type, MPI_COMM_WORLD);
    case COLLECTIVE_SEND_RECEIVE: break;
    }
    return MPI_Sendrecv(b->send, n, type, next, 0, b->receive, n, type,
                        (m->rank + m->ranks - 1) % m->ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* MPI counts elements in an int. */
static int counts(const collective_shape *s)
{
    return s->block <= INT_MAX / s->ranks;
}

static int execute(void *state, const collective_shape *s, collective_buffers *buffers,
                   uint64_t count, int graph, const volatile int *stop, collective_time *took,
                   char *message)
{
    const mpi_state *m = state;
    double start;
    int code;
    (void)graph;
    (void)stop;
    if (!counts(s)) {
        snprintf(message, COLLECTIVE_MESSAGE, "MPI counts elements in an int");
        return KERNEL_ERROR_ARGUMENT;
    }
    code = MPI_Barrier(MPI_COMM_WORLD);
    start = now_us();
    for (uint64_t i = 0; i < count && code == MPI_SUCCESS; i++) code = execute_once(m, s, buffers);
    *took = (collective_time){.us = now_us() - start};
    return explain(collective_name(s->operation), code, message);
}

/* ---- beside other work ----------------------------------------------------------------- */

static int each(void *state, const collective_work *work, const volatile int *stop,
                collective_time *took, char *message)
{
    mpi_state *m = state;
    int code = explain("MPI_Barrier", MPI_Barrier(MPI_COMM_WORLD), message);
    double start = now_us(), end;
    (void)stop;
    m->lap_us = 0;
    m->stalls = (collective_stalls){.us = 0};
    if (code == 0) code = work->run(work->context, m->rank, NULL);
    end = now_us();
    *took = (collective_time){.us = end - start};
    if (m->lap_us > 0) m->stalls.us = end - m->lap_us;
    return code;
}

static int wait_for_all(mpi_state *m)
{
    int count = m->started;
    m->started = 0;
    return MPI_Waitall(count, m->requests, MPI_STATUSES_IGNORE);
}

/* What is summed on all ranks goes on beside the caller's work, as far as the library does
 * anything between its calls; the others are finished here. */
static int start_one(mpi_state *m, const collective_shape *s, const collective_buffers *b)
{
    const int bf16 = s->dtype == KERNEL_BF16;
    int code = MPI_SUCCESS;
    if (!counts(s)) return KERNEL_ERROR_ARGUMENT;
    if (m->started == MOST_STARTED || s->operation != COLLECTIVE_ALL_REDUCE) code = wait_for_all(m);
    if (code != MPI_SUCCESS || s->operation != COLLECTIVE_ALL_REDUCE)
        return code ? code : execute_once(m, s, b);
    return MPI_Iallreduce(s->in_place ? MPI_IN_PLACE : b->send, b->receive, (int)s->block,
                          bf16 ? MPI_UINT16_T : MPI_FLOAT, bf16 ? m->sum_bf16 : MPI_SUM,
                          MPI_COMM_WORLD, &m->requests[m->started++]);
}

static int start(void *state, int rank, const collective_shape *s, const collective_buffers *b)
{
    mpi_state *m = state;
    double began = now_us();
    int code = start_one(m, s, b);
    (void)rank;
    m->inside_us += now_us() - began;
    return code;
}

static int join(void *state, int rank)
{
    mpi_state *m = state;
    double began = now_us();
    int code = wait_for_all(m);
    (void)rank;
    m->inside_us += now_us() - began;
    if (m->lap_us > 0 && m->stalls.joins < COLLECTIVE_MOST_JOINS)
        m->stalls.stall_us[m->stalls.joins++] = m->inside_us;
    m->inside_us = 0;
    return code;
}

static int lap(void *state, int rank)
{
    mpi_state *m = state;
    (void)rank;
    m->stalls.joins = 0;
    m->inside_us = 0;
    m->lap_us = now_us();
    return 0;
}

static int stalls(void *state, int rank, collective_stalls *s, char *message)
{
    const mpi_state *m = state;
    (void)rank;
    (void)message;
    *s = m->stalls;
    return 0;
}

const collective_library collective_mpi = {
    .name = "mpi", .why_not = why_not, .version = version, .open = open_mpi, .close = close_mpi,
    .allocate = allocate, .release = release, .copy = copy,
    .take_host = take_host, .drop_host = drop_host, .execute = execute, .each = each, .start = start, .join = join,
    .lap = lap, .stalls = stalls};

#else

static const char *why_not(void)
{
    return "built without MPI: no mpicc was found";
}

static const char *version(void)
{
    return "no MPI";
}

const collective_library collective_mpi = {.name = "mpi", .why_not = why_not, .version = version};

#endif
