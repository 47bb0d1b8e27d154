/*
 * nccl.cu - the collectives by NCCL: one communicator for each rank of this process, each
 * on a GPU and a stream of its own. All-to-all and send/receive are groups of sends and
 * receives.
 *
 * Bound by the links between the GPUs from about a megabyte on, by launching and the
 * ranks' handshakes below that. Times are events' on each rank's own stream, the longest
 * counts; of a batch the first execution is not timed, so that ranks of several processes
 * start together. A batch is enqueued behind a gate on each stream, which opens when all of it
 * is there: otherwise small messages would take what the host takes to enqueue them.
 */
#include "nccl_ranks.h"

#include <array>
#include <cstring>
#include <new>

using namespace nccl_ranks;

namespace {

cudaError_t find_devices(int *count, int *current)
{
    *count = *current = 0;
    cudaError_t code = cudaGetDeviceCount(count);
    if (code == cudaSuccess) code = cudaGetDevice(current);
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        *count = 0;
    }
    return code;
}

/* Any other error is none of what there is not, and is told by what needs a device. */
bool has_no_device()
{
    int count, current;
    cudaError_t code = find_devices(&count, &current);
    return code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ||
           (code == cudaSuccess && count < 1);
}

const char *why_not()
{
    const char *why, *version;
    (void)nccl_load(&why, &version);
    if (!why && has_no_device()) return "no GPU is visible";
    return why;
}

const char *version_text()
{
    const char *why, *version;
    (void)nccl_load(&why, &version);
    return version;
}

int card(const collective_ranks *ranks, char *address, size_t bytes)
{
    int current, visible = collective_nccl_devices(&current);
    int device = collective_pick_device(ranks->local, ranks->on_host, visible);
    *address = '\0';
    if (device < 0) return visible;
    if (cudaDeviceGetPCIBusId(address, static_cast<int>(bytes), device) != cudaSuccess) {
        (void)cudaGetLastError();
        *address = '\0';
    }
    return visible;
}

/* ---- communicators ------------------------------------------------------------------ */

void drop_graphs(nccl_state *s)
{
    if (!s->graph_memory) return;
    for (int i = 0; i < s->ranks.count; i++) {
        if (s->each[i].graph) (void)cudaGraphExecDestroy(s->each[i].graph);
        s->each[i].graph = nullptr;
    }
    s->graph_memory = nullptr;
}

/* Those that take times. */
std::array<cudaEvent_t *, 3 + 2 * COLLECTIVE_MOST_JOINS> events_of(rank_state &r)
{
    std::array<cudaEvent_t *, 3 + 2 * COLLECTIVE_MOST_JOINS> all = {&r.start, &r.stop, &r.lap};
    for (size_t i = 0; i < COLLECTIVE_MOST_JOINS; i++) {
        all[3 + 2 * i] = &r.before[i];
        all[4 + 2 * i] = &r.after[i];
    }
    return all;
}

void close_nccl(void *state)
{
    nccl_state *s = static_cast<nccl_state *>(state);
    drop_graphs(s);
    for (int i = 0; i < s->ranks.count; i++) {
        rank_state &r = s->each[i];
        (void)cudaSetDevice(r.device);
        if (r.communicator && !s->aborted) (void)s->api->CommDestroy(r.communicator);
        for (cudaEvent_t *event : events_of(r))
            if (*event) (void)cudaEventDestroy(*event);
        if (r.handed_on) (void)cudaEventDestroy(r.handed_on);
        if (r.beside) (void)cudaStreamDestroy(r.beside);
        if (r.stream) (void)cudaStreamDestroy(r.stream);
    }
    delete[] s->each;
    delete s;
}

int take_device(nccl_state *s, int i, const failure &failed)
{
    rank_state &r = s->each[i];
    int rank = s->ranks.first + i, current, visible;
    int code = failed(rank, "which GPUs there are", find_devices(&visible, &current));
    if (code != 0) return code;
    bool alone = s->ranks.count == s->ranks.all;
    r.device = alone ? (s->ranks.device + i) % (visible > 0 ? visible : 1)
                     : collective_pick_device(s->ranks.local, s->ranks.on_host, visible);
    if (r.device < 0 || (alone && i >= visible)) {
        snprintf(failed.message, COLLECTIVE_MESSAGE,
                 "rank %d: %d GPUs are visible to the %d ranks of its host", rank, visible,
                 alone ? s->ranks.count : s->ranks.on_host);
        return KERNEL_ERROR_ARGUMENT;
    }
    code = failed(rank, "cudaSetDevice", cudaSetDevice(r.device));
    if (code == 0)
        code = failed(rank, "a stream",
                      cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    if (code == 0)
        code = failed(rank, "a stream",
                      cudaStreamCreateWithFlags(&r.beside, cudaStreamNonBlocking));
    if (code == 0)
        code = failed(rank, "an event",
                      cudaEventCreateWithFlags(&r.handed_on, cudaEventDisableTiming));
    for (cudaEvent_t *event : events_of(r))
        if (code == 0) code = failed(rank, "an event", cudaEventCreate(event));
    return code;
}

int join_all(nccl_state *s, const failure &failed)
{
    nccl_communicator all[64] = {};
    int devices[64] = {}, count = s->ranks.count;
    if (count > 64) return KERNEL_ERROR_ARGUMENT;
    for (int i = 0; i < count; i++) devices[i] = s->each[i].device;
    int code = failed(s->api, "ncclCommInitAll", s->api->CommInitAll(all, count, devices));
    for (int i = 0; i < count && code == 0; i++) s->each[i].communicator = all[i];
    return code;
}

/* Rank 0's identifier is handed on even if there is none: the others wait for it. */
int join_one(nccl_state *s, int (*exchange)(void *, size_t), int before, const failure &failed)
{
    nccl_id id;
    memset(&id, 0, sizeof id);
    int code = before;
    if (code == 0 && s->ranks.first == 0)
        code = failed(s->api, "ncclGetUniqueId", s->api->GetUniqueId(&id));
    int exchanged = exchange(&id, sizeof id);
    if (code == 0) code = exchanged;
    return code ? code
                : failed(s->api, "ncclCommInitRank",
                         s->api->CommInitRank(&s->each[0].communicator, s->ranks.all, id,
                                              s->ranks.first));
}

int open_nccl(const collective_ranks *ranks, int (*exchange)(void *, size_t), void **state,
              char *message)
{
    const char *why, *version;
    const failure failed = {message};
    nccl_state *s = new (std::nothrow) nccl_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    s->api = nccl_load(&why, &version);
    s->ranks = *ranks;
    s->each = new (std::nothrow) rank_state[static_cast<size_t>(ranks->count)]();
    int code = s->each ? 0 : KERNEL_ERROR_MEMORY;
    for (int i = 0; i < ranks->count && code == 0; i++) code = take_device(s, i, failed);
    if (ranks->count < ranks->all)
        code = join_one(s, exchange, code, failed);
    else if (code == 0)
        code = join_all(s, failed);
    if (code == 0)
        *state = s;
    else if (s->each)
        close_nccl(s);
    return code;
}

/* ---- memory -------------------------------------------------------------------------- */

int allocate(void *state, int rank, size_t bytes, void **memory, char *message)
{
    const failure failed = {message};
    int code = failed(rank, "cudaSetDevice",
                      cudaSetDevice(rank_of(static_cast<nccl_state *>(state), rank).device));
    if (code != 0) return code;
    code = cudaMalloc(memory, bytes);
    if (code == 0) return 0;
    (void)cudaGetLastError();
    snprintf(message, COLLECTIVE_MESSAGE, "rank %d: no %zu bytes of its GPU's memory", rank, bytes);
    return code;
}

void release(void *state, int rank, void *memory)
{
    nccl_state *s = static_cast<nccl_state *>(state);
    drop_graphs(s);
    (void)cudaSetDevice(rank_of(s, rank).device);
    (void)cudaFree(memory);
}

int copy(void *state, int rank, void *to, const void *from, size_t bytes, char *message)
{
    const failure failed = {message};
    int code = failed(rank, "cudaSetDevice",
                      cudaSetDevice(rank_of(static_cast<nccl_state *>(state), rank).device));
    if (code == 0) code = failed(rank, "a copy", cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    /* Within a device it may return earlier. */
    return code ? code : failed(rank, "a copy", cudaStreamSynchronize(nullptr));
}

void *take_host(void *, size_t bytes)
{
    void *memory = nullptr;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) == cudaSuccess) return memory;
    (void)cudaGetLastError();
    return nullptr;
}

void drop_host(void *, void *memory)
{
    (void)cudaFreeHost(memory);
}

/* ---- executing ------------------------------------------------------------------------ */

int type_of(kernel_dtype dtype)
{
    return dtype == KERNEL_BF16 ? NCCL_BFLOAT16 : NCCL_FLOAT32;
}

int send_blocks(const nccl_api *api, const collective_shape *s, const collective_buffers *b,
                const rank_state &r)
{
    const size_t n = static_cast<size_t>(s->block), bytes = n * kernel_dtype_bytes(s->dtype);
    char *send = static_cast<char *>(b->send), *receive = static_cast<char *>(b->receive);
    int code = 0, type = type_of(s->dtype);
    for (int peer = 0; peer < s->ranks && code == 0; peer++) {
        size_t at = static_cast<size_t>(peer) * bytes;
        code = api->Send(send + at, n, type, peer, r.communicator, r.stream);
        if (code == 0) code = api->Recv(receive + at, n, type, peer, r.communicator, r.stream);
    }
    return code;
}

} // namespace

int nccl_ranks::enqueue(const nccl_api *api, const collective_shape *s, const collective_buffers *b,
                        const rank_state &r, int rank)
{
    const int type = type_of(s->dtype), next = (rank + 1) % s->ranks;
    const size_t n = static_cast<size_t>(s->block);
    int code;
    switch (s->operation) {
    case COLLECTIVE_ALL_REDUCE:
        return api->AllReduce(b->send, b->receive, n, type, NCCL_SUM, r.communicator, r.stream);
    case COLLECTIVE_ALL_GATHER:
        return api->AllGather(b->send, b->receive, n, type, r.communicator, r.stream);
    case COLLECTIVE_REDUCE_SCATTER:
        return api->ReduceScatter(b->send, b->receive, n, type, NCCL_SUM, r.communicator, r.stream);
    case COLLECTIVE_BROADCAST:
        return api->Broadcast(b->send, b->receive, n, type, 0, r.communicator, r.stream);
    case COLLECTIVE_ALL_TO_ALL: return send_blocks(api, s, b, r);
    case COLLECTIVE_SEND_RECEIVE: break;
    }
    code = api->Send(b->send, n, type, next, r.communicator, r.stream);
    return code ? code
                : api->Recv(b->receive, n, type, (rank + s->ranks - 1) % s->ranks, r.communicator,
                            r.stream);
}

namespace {

/* Once, on all ranks of this process. The group is ended also if a call in it failed. */
int enqueue_all(nccl_state *s, const collective_shape *shape, const collective_buffers *buffers,
                const failure &failed)
{
    int code = s->api->GroupStart();
    for (int i = 0; i < s->ranks.count && code == 0; i++)
        code = enqueue(s->api, shape, &buffers[i], s->each[i], s->ranks.first + i);
    int ended = s->api->GroupEnd();
    return failed(s->api, collective_name(shape->operation), code ? code : ended);
}

/* Of all streams, before anything else: while one of this thread's is captured, a graph cannot be
 * made of another's. */
int end_captures(nccl_state *s, int begun, int code, cudaGraph_t *graphs, const failure &failed)
{
    for (int i = 0; i < begun; i++) {
        (void)cudaSetDevice(s->each[i].device);
        cudaError_t ended = cudaStreamEndCapture(s->each[i].stream, &graphs[i]);
        if (code == 0) code = failed(s->ranks.first + i, "a capture", ended);
    }
    return code;
}

int capture(nccl_state *s, const collective_shape *shape, const collective_buffers *buffers,
            const failure &failed)
{
    cudaGraph_t graphs[COLLECTIVE_MOST_RANKS] = {};
    int code = 0, begun = 0;
    for (; begun < s->ranks.count && code == 0; begun++) {
        (void)cudaSetDevice(s->each[begun].device);
        code = failed(s->ranks.first + begun, "a capture",
                      cudaStreamBeginCapture(s->each[begun].stream,
                                             cudaStreamCaptureModeThreadLocal));
    }
    if (code == 0) code = enqueue_all(s, shape, buffers, failed);
    code = end_captures(s, begun, code, graphs, failed);
    for (int i = 0; i < begun; i++) {
        (void)cudaSetDevice(s->each[i].device);
        if (code == 0)
            code = failed(s->ranks.first + i, "a graph",
                          cudaGraphInstantiateWithFlags(&s->each[i].graph, graphs[i], 0));
        if (graphs[i]) (void)cudaGraphDestroy(graphs[i]);
    }
    if (code != 0) (void)cudaGetLastError();
    s->graph_shape = *shape;
    s->graph_memory = buffers[0].memory;
    return code;
}

bool is_captured(const nccl_state *s, const collective_shape *shape,
                 const collective_buffers *buffers)
{
    return s->graph_memory == buffers[0].memory && !memcmp(&s->graph_shape, shape, sizeof *shape);
}

int replay(nccl_state *s, const failure &failed)
{
    int code = 0;
    for (int i = 0; i < s->ranks.count && code == 0; i++) {
        (void)cudaSetDevice(s->each[i].device);
        code = failed(s->ranks.first + i, "a graph",
                      cudaGraphLaunch(s->each[i].graph, s->each[i].stream));
    }
    return code;
}

int record(nccl_state *s, bool stop, const failure &failed)
{
    int code = 0;
    for (int i = 0; i < s->ranks.count && code == 0; i++) {
        rank_state &r = s->each[i];
        (void)cudaSetDevice(r.device);
        code = failed(s->ranks.first + i, "an event",
                      cudaEventRecord(stop ? r.stop : r.start, r.stream));
    }
    return code;
}

/* ---- batches behind a gate ---------------------------------------------------------------- */

/* Executions that a gate holds, at most: each is a few entries of a stream's queue, which has
 * some 1000, and none of them may wait for room in it. Of an H200's it was full of 28 graphs.
 * Every process of a job has the same, as all do the same number of executions. */
constexpr uint64_t MOST_HELD = 64, MOST_GRAPHS_HELD = 16;

/* What is executed again and again. */
struct execution {
    nccl_state *s;
    const collective_shape *shape;
    const collective_buffers *buffers;
    bool graph;
    const volatile int *stop;

    int once(const failure &failed) const
    {
        return graph ? replay(s, failed) : enqueue_all(s, shape, buffers, failed);
    }
};

/* So many, and in front of them one that is not timed, where `led`. Adds what the host takes for
 * those that are. */
int enqueue_batch(const execution &e, uint64_t count, bool led, double *enqueue_us,
                  const failure &failed)
{
    int code = led ? e.once(failed) : 0;
    if (code == 0) code = record(e.s, false, failed);
    const double start_s = now_s();
    for (uint64_t i = 0; i < count && code == 0; i++) code = e.once(failed);
    *enqueue_us += (now_s() - start_s) * 1e6;
    return code ? code : record(e.s, true, failed);
}

/* Adds what it takes. */
int execute_batch(const execution &e, uint64_t count, bool led, collective_time *took,
                  const failure &failed)
{
    nccl_state *s = e.s;
    const bool held = led && may_hold(s);
    double us = 0, enqueue_us = 0;
    int code = held ? hold(s, failed) : 0;
    if (code == 0) code = enqueue_batch(e, count, led, &enqueue_us, failed);
    const bool was_held = let_go(s, held);
    if (code == 0) code = wait_all(s, e.stop, failed);
    if (code == 0) code = longest(s, &us, failed);
    took->us += us;
    if (!was_held) took->enqueue_us += enqueue_us;
    return code;
}

int execute(void *state, const collective_shape *shape, collective_buffers *buffers,
            uint64_t count, int graph, const volatile int *stop, collective_time *took,
            char *message)
{
    const execution e = {static_cast<nccl_state *>(state), shape, buffers, graph != 0, stop};
    const failure failed = {message};
    const bool led = count > 1;
    int code = 0;
    *took = {};
    if (graph && !is_captured(e.s, shape, buffers)) {
        drop_graphs(e.s);
        code = capture(e.s, shape, buffers, failed);
    }
    const uint64_t most = graph ? MOST_GRAPHS_HELD : MOST_HELD;
    for (uint64_t now; count > 0 && code == 0; count -= now) {
        now = count < most ? count : most;
        code = execute_batch(e, now, led, took, failed);
    }
    if (code != 0) abort_all(e.s);
    return code;
}

} // namespace

extern "C" {
const collective_library collective_nccl = {
    .name = "nccl", .why_not = why_not, .version = version_text, .card = card,
    .open = open_nccl,
    .close = close_nccl, .allocate = allocate, .release = release, .copy = copy,
    .take_host = take_host, .drop_host = drop_host, .execute = execute, .has_graphs = 1,
    .each = each, .start = start, .join = join, .most_held = MOST_STARTED, .begin = begin,
    .lap = lap, .stalls = stalls};

void collective_nccl_use(const char *path)
{
    nccl_use(path);
}

int collective_nccl_devices(int *current)
{
    int count;
    (void)find_devices(&count, current);
    return count;
}
}
