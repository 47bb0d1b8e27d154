/*
 * nccl_beside.cu - work of the ranks with collectives beside it: a thread for each rank, a stream
 * that it enqueues on and one for NCCL, events between the two.
 */
#include "nccl_ranks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

namespace nccl_ranks {

namespace {

/* What comes on `to` waits for what `from` has so far. */
int hand_on(const rank_state &r, cudaStream_t from, cudaStream_t to)
{
    int code = cudaEventRecord(r.handed_on, from);
    return code ? code : cudaStreamWaitEvent(to, r.handed_on, 0);
}

} // namespace

/* By the rank's own thread, which is why there is no group. */
int start(void *state, int rank, const collective_shape *shape, const collective_buffers *b)
{
    nccl_state *s = static_cast<nccl_state *>(state);
    rank_state r = rank_of(s, rank);
    int code = hand_on(r, r.stream, r.beside);
    if (code != 0) return code;
    r.stream = r.beside;
    code = enqueue(s->api, shape, b, r, rank);
    if (code == NCCL_SUCCESS || code == NCCL_IN_PROGRESS) return 0;
    return kernel_fail("%s: %s", collective_name(shape->operation), s->api->GetErrorString(code));
}

int join(void *state, int rank)
{
    rank_state &r = rank_of(static_cast<nccl_state *>(state), rank);
    const int at = r.joins;
    const bool timed = at >= 0 && at < COLLECTIVE_MOST_JOINS;
    int code = timed ? cudaEventRecord(r.before[at], r.stream) : 0;
    if (code == 0) code = hand_on(r, r.beside, r.stream);
    if (code == 0 && timed) code = cudaEventRecord(r.after[at], r.stream);
    r.joins += timed;
    return code;
}

int begin(void *state, int rank)
{
    rank_state &r = rank_of(static_cast<nccl_state *>(state), rank);
    r.began_s = now_s();
    return cudaEventRecord(r.start, r.stream);
}

int lap(void *state, int rank)
{
    rank_state &r = rank_of(static_cast<nccl_state *>(state), rank);
    r.joins = 0;
    return cudaEventRecord(r.lap, r.stream);
}

int stalls(void *state, int rank, collective_stalls *s, char *message)
{
    const rank_state &r = rank_of(static_cast<nccl_state *>(state), rank);
    const failure failed = {message};
    *s = {};
    if (r.joins < 0) return 0;
    s->joins = r.joins;
    int code = between(rank, r.lap, r.stop, &s->us, failed);
    for (int i = 0; i < r.joins && code == 0; i++)
        code = between(rank, r.before[i], r.after[i], &s->stall_us[i], failed);
    return code;
}

/* ---- threads ---- */

namespace {

/* A rank's thread: what it is to do, and what became of it. */
struct rank_work {
    nccl_state *state;
    const collective_work *work;
    int rank, code;
    double enqueue_us;
    char message[COLLECTIVE_MESSAGE];
};

void explain(rank_work *w)
{
    const char *text = kernel_error_string(w->code);
    if (w->code > 0)
        snprintf(w->message, sizeof w->message, "rank %d: %.150s", w->rank,
                 text ? text : cudaGetErrorString(static_cast<cudaError_t>(w->code)));
}

void do_work(rank_work *w)
{
    rank_state &r = rank_of(w->state, w->rank);
    w->code = cudaSetDevice(r.device);
    if (w->code == 0) w->code = begin(w->state, w->rank);
    if (w->code == 0) w->code = w->work->run(w->work->context, w->rank, r.stream);
    w->enqueue_us = (now_s() - r.began_s) * 1e6;
    if (w->code == 0) w->code = cudaEventRecord(r.stop, r.stream);
    explain(w);
}

/* Says which threads are still at work, and ends what they may be waiting for. */
int end_threads(nccl_state *s, const std::atomic<int> *done, char *message)
{
    char open[80] = "";
    for (int i = 0; i < s->ranks.count; i++) {
        size_t length = strlen(open);
        if (!done[i].load())
            snprintf(open + length, sizeof open - length, " %d", s->ranks.first + i);
    }
    snprintf(message, COLLECTIVE_MESSAGE, "not done on rank%.60s", open);
    (void)nccl_gate::open(); /* an abort may wait for what is behind it */
    abort_all(s);
    return cudaErrorNotReady;
}

/* A rank whose call failed leaves the others in operations that never end, and so does
 * *stop: then all communicators are aborted. */
int await_threads(nccl_state *s, const rank_work *works, const std::atomic<int> *done,
                  const volatile int *stop, char *message)
{
    int finished = 0, code = 0;
    while (finished < s->ranks.count) {
        bool give_up = collective_is_stopped(stop) != 0;
        finished = 0;
        for (int i = 0; i < s->ranks.count; i++) {
            if (!done[i].load()) continue;
            finished++;
            give_up = give_up || works[i].code > 0;
        }
        if (give_up && finished < s->ranks.count && !s->aborted)
            code = end_threads(s, done, message);
        std::this_thread::yield();
    }
    return code;
}

int run_threads(nccl_state *s, rank_work *works, const volatile int *stop, char *message)
{
    std::thread threads[64];
    std::atomic<int> done[64] = {};
    int begun = 0, code = 0;
    for (; begun < s->ranks.count && code == 0; begun++) {
        std::atomic<int> *is_done = &done[begun];
        rank_work *one = &works[begun];
        try {
            threads[begun] = std::thread([one, is_done] { do_work(one), is_done->store(1); });
        } catch (const std::system_error &) {
            snprintf(message, COLLECTIVE_MESSAGE, "rank %d: no thread", one->rank);
            one->code = code = KERNEL_ERROR_MEMORY;
        }
    }
    for (int i = code ? begun - 1 : begun; i < s->ranks.count; i++) done[i].store(1);
    int ended = await_threads(s, works, done, stop, message);
    for (int i = 0; i < begun; i++)
        if (threads[i].joinable()) threads[i].join();
    for (int i = 0; i < s->ranks.count && code == 0; i++) {
        code = works[i].code;
        if (code != 0) memcpy(message, works[i].message, sizeof works[i].message);
    }
    return code ? code : ended;
}

} // namespace

int each(void *state, const collective_work *work, const volatile int *stop,
         collective_time *took, char *message)
{
    nccl_state *s = static_cast<nccl_state *>(state);
    const failure failed = {message};
    const bool was_aborted = s->aborted, held = work->held && may_hold(s);
    rank_work *works = new (std::nothrow) rank_work[static_cast<size_t>(s->ranks.count)]();
    if (!works) return KERNEL_ERROR_MEMORY;
    for (int i = 0; i < s->ranks.count; i++) {
        works[i].state = s;
        works[i].work = work;
        works[i].rank = s->ranks.first + i;
        s->each[i].joins = -1;
    }
    *took = {};
    int code = held ? hold(s, failed) : 0;
    if (code == 0) code = run_threads(s, works, stop, message);
    const bool was_held = let_go(s, held);
    for (int i = 0; i < s->ranks.count && !was_held; i++)
        took->enqueue_us = std::max(took->enqueue_us, works[i].enqueue_us);
    delete[] works;
    if (was_aborted) return code;
    if (code == 0) code = wait_all(s, stop, failed);
    if (code == 0) code = longest(s, &took->us, failed);
    if (code > 0 && !s->aborted) abort_all(s);
    return code;
}

} // namespace nccl_ranks
