/*
 * nccl_ranks.h - the ranks of this process as NCCL's: what each has, and waiting for them.
 */
#ifndef COLLECTIVE_NCCL_RANKS_H
#define COLLECTIVE_NCCL_RANKS_H

#include "collective.h"
#include "nccl_api.h"
#include "nccl_gate.h"

#include <cstdio>

namespace nccl_ranks {

struct rank_state {
    int device;
    nccl_communicator communicator;
    cudaStream_t stream, beside; /* beside: operations that started and were not joined */
    cudaEvent_t start, stop, handed_on;
    cudaEvent_t lap, before[COLLECTIVE_MOST_JOINS], after[COLLECTIVE_MOST_JOINS];
    int joins; /* since the lap; -1: there was none */
    double began_s; /* when that was enqueued where what is timed begins */
    cudaGraphExec_t graph;
};

struct nccl_state {
    const nccl_api *api;
    int time_outs; /* of the gate, in a row */
    collective_ranks ranks;
    rank_state *each; /* of this process */
    collective_shape graph_shape;
    void *graph_memory; /* what the graphs are of; NULL: there are none */
    bool aborted;
};

/* A call of the CUDA runtime or of NCCL that failed, as a code and a message. */
struct failure {
    char *message;

    int operator()(int rank, const char *what, cudaError_t code) const
    {
        if (code != cudaSuccess)
            snprintf(message, COLLECTIVE_MESSAGE, "rank %d: %s: %.100s", rank, what,
                     cudaGetErrorString(code));
        return code;
    }
    int operator()(const nccl_api *api, const char *what, int code) const
    {
        if (code != NCCL_SUCCESS && code != NCCL_IN_PROGRESS)
            snprintf(message, COLLECTIVE_MESSAGE, "%s: %.140s", what, api->GetErrorString(code));
        else
            code = 0;
        return code;
    }
};

inline rank_state &rank_of(nccl_state *s, int rank)
{
    return s->each[rank - s->ranks.first];
}

/* Of one rank, on its stream; a code of NCCL's. */
int enqueue(const nccl_api *api, const collective_shape *s, const collective_buffers *b,
            const rank_state &r, int rank);

/* Whatever was enqueued on some ranks and not on others ends by it. */
void abort_all(nccl_state *s);

double now_s();

/* Until each rank's `stop` is there. Never by a call that blocks: of a collective that lacks a
 * rank it does not return. */
int wait_all(nccl_state *s, const volatile int *stop, const failure &failed);

int between(int rank, cudaEvent_t start, cudaEvent_t stop, double *us, const failure &failed);

/* From a rank's `start` to its `stop`. */
int longest(nccl_state *s, double *us, const failure &failed);

/* Whether a gate may hold the streams: one that opened by itself may be a process that was stopped
 * for a while; after two in a row a call waits for its device, and nothing is held any more. */
bool may_hold(const nccl_state *s);
int hold(nccl_state *s, const failure &failed);

/* Opens the gate. True: it was closed until now, and so what is behind it waited for nothing that
 * the host enqueued. */
bool let_go(nccl_state *s, bool held);

/* Members of collective_library. */
int start(void *state, int rank, const collective_shape *shape, const collective_buffers *b);
int join(void *state, int rank);
int begin(void *state, int rank);
int lap(void *state, int rank);
int stalls(void *state, int rank, collective_stalls *s, char *message);
int each(void *state, const collective_work *work, const volatile int *stop,
         collective_time *took, char *message);

/* Each is some five entries of a stream's queue, which has some 1000, and none may wait for room. */
constexpr uint64_t MOST_STARTED = 96;

} // namespace nccl_ranks

#endif
