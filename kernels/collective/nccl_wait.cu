/*
 * nccl_wait.cu - waiting for the ranks of a process: until they may begin, and until they are
 * done or never will be.
 */
#include "nccl_ranks.h"

#include <ctime>

#include <cstring>
#include <thread>

namespace nccl_ranks {

namespace {

/* Which ranks of this process are done, and which are not. */
int tell_unfinished(nccl_state *s, const failure &failed)
{
    char done[80] = "", open[80] = "";
    for (int i = 0; i < s->ranks.count; i++) {
        char *text = cudaEventQuery(s->each[i].stop) == cudaErrorNotReady ? open : done;
        size_t length = strlen(text);
        snprintf(text + length, sizeof done - length, " %d", s->ranks.first + i);
    }
    snprintf(failed.message, COLLECTIVE_MESSAGE, "not done on rank%.60s%s%.60s", open,
             *done ? "; done, and so perhaps not in it, on rank" : "", done);
    return cudaErrorNotReady;
}

/* What NCCL found out meanwhile, which it is asked a few times a second. */
int look_for_errors(nccl_state *s, const failure &failed)
{
    int code = 0;
    for (int i = 0; i < s->ranks.count && code == 0; i++) {
        int error = 0;
        code = failed(s->api, "ncclCommGetAsyncError",
                      s->api->CommGetAsyncError(s->each[i].communicator, &error));
        if (code == 0) code = failed(s->api, "NCCL", error);
    }
    return code;
}

} // namespace

void abort_all(nccl_state *s)
{
    s->aborted = true;
    for (int i = 0; i < s->ranks.count; i++) (void)s->api->CommAbort(s->each[i].communicator);
}

double now_s()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int wait_all(nccl_state *s, const volatile int *stop, const failure &failed)
{
    double next_s = now_s() + 0.2;
    for (int i = 0; i < s->ranks.count;) {
        cudaError_t state = cudaEventQuery(s->each[i].stop);
        int code = 0;
        if (state == cudaSuccess) {
            i++;
            continue;
        }
        if (state != cudaErrorNotReady) return failed(s->ranks.first + i, "the run", state);
        if (collective_is_stopped(stop)) {
            code = tell_unfinished(s, failed);
        } else if (now_s() > next_s) {
            next_s = now_s() + 0.2;
            code = look_for_errors(s, failed);
        }
        if (code != 0) return code;
        std::this_thread::yield(); /* the gate's may have no other processor */
    }
    return 0;
}

int between(int rank, cudaEvent_t start, cudaEvent_t stop, double *us, const failure &failed)
{
    float ms = 0;
    int code = failed(rank, "a time", cudaEventElapsedTime(&ms, start, stop));
    *us = static_cast<double>(ms) * 1e3;
    return code;
}

int longest(nccl_state *s, double *us, const failure &failed)
{
    int code = 0;
    *us = 0;
    for (int i = 0; i < s->ranks.count && code == 0; i++) {
        double took_us = 0;
        code = between(s->ranks.first + i, s->each[i].start, s->each[i].stop, &took_us, failed);
        if (took_us > *us) *us = took_us;
    }
    return code;
}

/* ---- a gate ---- */

constexpr int MOST_TIME_OUTS = 2;

bool may_hold(const nccl_state *s)
{
    return s->time_outs < MOST_TIME_OUTS;
}

int hold(nccl_state *s, const failure &failed)
{
    int code = 0;
    nccl_gate::close();
    for (int i = 0; i < s->ranks.count && code == 0; i++) {
        (void)cudaSetDevice(s->each[i].device);
        code = failed(s->ranks.first + i, "a host function",
                      nccl_gate::enqueue(s->each[i].stream));
    }
    return code;
}

bool let_go(nccl_state *s, bool held)
{
    const bool timed_out = nccl_gate::open();
    if (held) s->time_outs = timed_out ? s->time_outs + 1 : 0;
    return held && !timed_out;
}

} // namespace nccl_ranks
