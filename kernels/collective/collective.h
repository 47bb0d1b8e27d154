/*
 * collective.h - what ranks do together: all-reduce, all-gather, reduce-scatter,
 * broadcast, all-to-all, and a ring of send and receive. Which elements each rank
 * gives and gets, what they must be, what a size and a bandwidth mean, and the
 * libraries that do it (nccl.cu, mpi.c).
 *
 * S is the bytes of the whole array that was moved: what each rank has of an
 * all-reduce, a broadcast and a send, what a rank gets of an all-gather and gives
 * to a reduce-scatter and an all-to-all. Algorithm bandwidth is S over the time,
 * bus bandwidth that times a factor which makes it what a link carries: as
 * nccl-tests, doc/PERFORMANCE.md.
 */
#ifndef KERNEL_COLLECTIVE_H
#define KERNEL_COLLECTIVE_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum collective_operation {
    COLLECTIVE_ALL_REDUCE,     /* each gets the sum of all */
    COLLECTIVE_ALL_GATHER,     /* each gets every rank's block, in order */
    COLLECTIVE_REDUCE_SCATTER, /* rank r gets block r of the sum */
    COLLECTIVE_BROADCAST,      /* each gets what rank 0 has */
    COLLECTIVE_ALL_TO_ALL,     /* rank r gets block r of every rank, in order */
    COLLECTIVE_SEND_RECEIVE    /* each sends to the next rank, the last one to rank 0 */
} collective_operation;

enum { COLLECTIVE_OPERATIONS = COLLECTIVE_SEND_RECEIVE + 1 };

/* block: elements of one rank's part, and of the whole where there are no parts.
 * in_place: the result goes where the input is. */
typedef struct collective_shape {
    collective_operation operation;
    kernel_dtype dtype; /* f32 or bf16 */
    int ranks, in_place;
    int64_t block;
} collective_shape;

/* "all_reduce", ... */
const char *collective_name(collective_operation operation);

/* In place is not defined for pairs of sends and receives, which all-to-all is made
 * of: their buffers must not overlap. */
int collective_has_in_place(collective_operation operation);

/* Elements of a block so that S is at most bytes; at least 1. */
int64_t collective_block(collective_operation operation, kernel_dtype dtype, int ranks,
                         int64_t bytes);

/* Elements that a rank gives and gets. */
int64_t collective_send_count(const collective_shape *s);
int64_t collective_receive_count(const collective_shape *s);

/* S in bytes; UINT64_MAX if that does not fit. */
uint64_t collective_bytes(const collective_shape *s);

/* Bus bandwidth over algorithm bandwidth: 2(n-1)/n for all-reduce, (n-1)/n for
 * all-gather, reduce-scatter and all-to-all, 1 for broadcast and send/receive. 0
 * for one rank, where no link carries anything. */
double collective_bus_factor(collective_operation operation, int ranks);

/* What the inputs are made of. COUNTED: whole numbers so small that every sum of them
 * is one of both dtypes, whatever the order: results are exact. RANDOM: uniform in
 * (-1, 1), where each rounding of a sum may differ. Both are functions of the place, so
 * that what went elsewhere shows. */
typedef enum collective_data { COLLECTIVE_COUNTED, COLLECTIVE_RANDOM } collective_data;

/* As many ranks may sum COUNTED inputs exactly. */
enum { COLLECTIVE_MOST_RANKS = 256 };

/* A rank's inputs begin anew after so many elements, so that what was made once can be copied
 * and compared as memory. It is a prime: what goes elsewhere by so many blocks, chunks or
 * bytes of a power of two meets other numbers there. */
enum { COLLECTIVE_PERIOD = 131071 };

/* Element index of what a rank gives, as its dtype holds it. */
float collective_input(const collective_shape *s, collective_data data, uint64_t seed, int rank,
                       int64_t index);

/* Where element index of what a rank must get comes from: element `at` of rank `from`, or,
 * where that is COLLECTIVE_SUM, of the sum over the ranks; the next ones up to `count` in all
 * come from behind it. */
enum { COLLECTIVE_SUM = -1 };
typedef struct collective_origin {
    int from;
    int64_t at, count;
} collective_origin;

collective_origin collective_origin_of(const collective_shape *s, int rank, int64_t index);

/* Element index of what a rank must get, and by how much a result may differ from it:
 * 0 where nothing is rounded. */
typedef struct collective_expected {
    double value, tolerance;
} collective_expected;

collective_expected collective_output(const collective_shape *s, collective_data data,
                                      uint64_t seed, int rank, int64_t index);

/* Of the ranks that a job has, those of one process: first, first + 1, ...; the first is
 * number `local` of on_host on its host. */
typedef struct collective_ranks {
    int first, count, all, local, on_host;
    int device; /* of a process with all ranks: the first one's; the others have the next */
} collective_ranks;

/* The GPU of rank number `local` of on_host on its host, where so many are visible to its
 * process: that one, or the only one, which then is another for each process. -1 where
 * two ranks would share one. */
int collective_pick_device(int local, int on_host, int visible);

/* The buffers of one rank. In place, both are in one piece of memory. */
typedef struct collective_buffers {
    void *memory, *send, *receive;
    size_t bytes; /* of memory */
} collective_buffers;

/* Bytes of a rank's memory, SIZE_MAX if that does not fit; and where in it send and
 * receive are. */
size_t collective_memory_bytes(const collective_shape *s);
void collective_place(const collective_shape *s, int rank, collective_buffers *b);

/* One stretch of a rank's work: what it took, and for how long its stream stood still at each
 * of the first joins in it. us 0: there was none. */
enum { COLLECTIVE_MOST_JOINS = 4 };
typedef struct collective_stalls {
    double us, stall_us[COLLECTIVE_MOST_JOINS];
    int joins;
} collective_stalls;

/* A message of up to so many bytes for what went wrong. */
enum { COLLECTIVE_MESSAGE = 200 };

/* What executions took: the longest from a rank's start to its end, and the host until all of
 * them were enqueued; 0 where calls return when they are done, or a gate held the GPUs. */
typedef struct collective_time {
    double us, enqueue_us;
} collective_time;

/* What each rank of this process does, on a thread of its own where there are several: run, with
 * its GPU the current one and a stream to enqueue on, returns 0, or a code that ends it. held: the
 * GPUs of this process begin when all of it is enqueued, of which there may be up to most_held
 * operations. */
typedef struct collective_work {
    int (*run)(void *context, int rank, kernel_stream stream);
    void *context;
    int held;
} collective_work;

/* A library at work for the ranks of this process. All functions but why_not are called
 * by one thread, by every process of a job in the same order; they return 0 or a code
 * other than 0 and a message. */
typedef struct collective_library {
    const char *name; /* what the CSV calls it */
    /* Why it cannot be used here; NULL: it can. */
    const char *(*why_not)(void);
    /* "NCCL 2.28.9", of the library that is loaded. */
    const char *(*version)(void);
    /* Where that depends on the process: the address of the GPU that its rank takes, empty if
     * it has none, and how many are visible to it. NULL: ranks need no GPU. */
    int (*card)(const collective_ranks *ranks, char *address, size_t bytes);
    /* The communicators. exchange: copies bytes at memory from rank 0's process to all. */
    int (*open)(const collective_ranks *ranks, int (*exchange)(void *memory, size_t bytes),
                void **state, char *message);
    void (*close)(void *state);
    int (*allocate)(void *state, int rank, size_t bytes, void **memory, char *message);
    void (*release)(void *state, int rank, void *memory);
    /* Between the host and a rank's memory, or within that; it is done on return. */
    int (*copy)(void *state, int rank, void *to, const void *from, size_t bytes, char *message);
    /* Memory of the host that copies are quick to; NULL if there is none. */
    void *(*take_host)(void *state, size_t bytes);
    void (*drop_host)(void *state, void *memory);
    /* Executes the operation count times in a row on all ranks of this process, waits, and
     * says what it took. graph: captured once and replayed. Where it can, it ends with an
     * error when *stop becomes other than 0. After an error only release and close may be
     * called. */
    int (*execute)(void *state, const collective_shape *s, collective_buffers *buffers,
                   uint64_t count, int graph, const volatile int *stop, collective_time *took,
                   char *message);
    int has_graphs;
    /* Work of the ranks between collectives. each: has every rank of this process do it,
     * waits as execute does, and says what the longest took, and enqueueing the longest. Within
     * work: start begins an operation behind what the stream has so far, and what is enqueued
     * on the stream after join comes behind all that was started. Between the two they may
     * overlap; buffers need send and receive only. Both return 0, or a code that ends the
     * rank's work. */
    int (*each)(void *state, const collective_work *work, const volatile int *stop,
                collective_time *took, char *message);
    int (*start)(void *state, int rank, const collective_shape *s, const collective_buffers *b);
    int (*join)(void *state, int rank);
    /* Operations that held work may start; 0: it is not held. Within work, begin: what it took
     * is from here on, and not from its own beginning; NULL where ranks begin together. */
    uint64_t most_held;
    int (*begin)(void *state, int rank);
    /* Within work, lap: from here on to its end is the stretch that stalls tells about once
     * each has returned. The last lap counts. */
    int (*lap)(void *state, int rank);
    int (*stalls)(void *state, int rank, collective_stalls *s, char *message);
} collective_library;

/* *stop, which another thread sets meanwhile. C and C++ have no atomic type in common. */
static inline int collective_is_stopped(const volatile int *stop)
{
    return __atomic_load_n(stop, __ATOMIC_ACQUIRE);
}

static inline void collective_set_stop(volatile int *stop, int value)
{
    __atomic_store_n(stop, value, __ATOMIC_RELEASE);
}

extern const collective_library collective_mpi;

/* Of the CUDA backend. use: the file to load instead of looking for one, before anything
 * else. devices: how many are visible, and which is the calling thread's. */
extern const collective_library collective_nccl;
void collective_nccl_use(const char *path);
int collective_nccl_devices(int *current);

#ifdef __cplusplus
}
#endif
#endif
