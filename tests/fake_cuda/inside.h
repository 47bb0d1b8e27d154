/* What the files of the substitute for the CUDA runtime know of each other. One thread per
 * stream takes operations from the stream's queue; one lock guards everything. */
#ifndef GPUBENCH_TESTS_FAKE_INSIDE_H
#define GPUBENCH_TESTS_FAKE_INSIDE_H

#include "cuda_runtime_api.h"

#include <pthread.h>
#include <time.h>

enum operation_kind { KERNEL, WRITE, COPY, HOST, RECORD, WAIT, CRASH, HANG, HOLD, STAMP };

typedef struct operation {
    struct operation *next;
    uint64_t number; /* in the order of all that streams were given */
    enum operation_kind kind;
    double us;
    int byte;
    struct timespec until; /* KERNEL ends no sooner, in real time; 0: at once */
    void *memory; /* of WRITE and COPY; HOST's argument; what HOLD and the host share */
    const void *source;
    uint64_t records; /* of its event, that WAIT waits for */
    size_t bytes;
    cudaHostFn_t function;
    cudaEvent_t event;
    int ends_graph; /* the last of a graph that was launched */
} operation;

struct CUstream_st {
    pthread_t thread;
    pthread_cond_t filled;
    operation *first, **last; /* the head stays until it is executed */
    int count; /* of what is queued */
    double now_us;
    int ended, blocking; /* blocking: in order with the default stream */
    cudaGraph_t capture; /* while capturing */
    int capture_spoilt;
};

struct CUevent_st {
    int pending; /* records that are queued */
    int users;   /* operations that are queued and name it */
    int dropped; /* by the program: the last user frees it */
    uint64_t recorded; /* records that are executed */
    double us;
};

struct CUgraph_st {
    operation *first, **last;
    size_t count;
};

struct CUgraphExec_st {
    operation *first;
};

extern pthread_mutex_t fake_lock;
extern struct CUstream_st fake_default_stream;
extern int fake_device;  /* the current one */
extern int fake_objects; /* alive: blocks, streams, events, graphs, modules */

/* What a call says: a destroyed context's error before any other, which is remembered
 * once. With the lock held; _locked takes it. */
cudaError_t fake_answer(cudaError_t code);
cudaError_t fake_answer_locked(cudaError_t code);

/* The answer to a call that takes something, unless code says more. With the lock held. */
cudaError_t fake_answer_take(cudaError_t code);

/* No error is remembered any more. With the lock held. */
void fake_forget_errors(void);

/* Until every stream has executed what it was given. With the lock held. */
void fake_wait_idle(void);

/* Adds an operation to a list, to a stream (with the lock held), to a stream. */
void fake_append(operation ***last, const operation *op);
void fake_queue(cudaStream_t stream, const operation *op);
cudaError_t fake_enqueue(cudaStream_t stream, const operation *op);

#endif
