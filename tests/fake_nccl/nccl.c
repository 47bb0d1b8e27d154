/* A substitute for NCCL, of our own making, on the substitute for the CUDA runtime in
 * fake_cuda/: the part that the collective suite uses, by NCCL's documented interface, for
 * ranks of one process, and for processes with a rank each, which meet in a file in TMPDIR.
 * Each operation takes 5 us of simulated time on its stream, waits there for all ranks, and
 * moves the data. FAKE_NCCL says what goes wrong, in one or more words:
 *   old      its version is 2.8.4
 *   absent   rank 1 never takes part in an all-gather
 *   wrong    rank 1's sums have one wrong element
 *   failing  all-reduce returns an error
 *   broken   a rank's asynchronous error is one, once something was enqueued
 *   alone    rank 1 does not come when communicators are made
 *   stuck    an abort does not return
 *   long     an operation takes 500 us of simulated time, so that a batch is one of few
 *   longest  it takes a second of that, which no host needs to enqueue it
 *   apart    what a thread enqueues first takes rank 1's stream 20 ms of simulated time more
 *   late     enqueueing a group takes the host a millisecond
 *   waiting  enqueueing a group waits until its streams are done with what they have
 * A program in which calls are made to fail is asked at each (faulty.h): one that fails does
 * nothing but to end what it ends. */
#define _GNU_SOURCE
#include "cuda_runtime_api.h"
#include "faulty.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INTERNAL_ERROR = 3, BFLOAT16 = 9, MOST_RANKS = 8, MOST_CALLS = 256 };

/* Bytes that a rank gives to an operation, at most; what is not used takes no memory. */
enum { SLOT_BYTES = 8 << 20 };

/* What the communicators of one job share, which are threads of one process or processes.
 * Nothing in it is held by anyone, so that a rank that dies leaves the others waiting. */
typedef struct clique {
    atomic_int arrived, aborted;
    atomic_uint round;
    int count;
    double began_us[MOST_RANKS]; /* by the clock of each rank's stream */
    _Alignas(64) char slots[MOST_RANKS][SLOT_BYTES]; /* what each rank gives */
} clique;

typedef struct ncclComm {
    clique *all;
    int rank;
} communicator;

typedef struct unique_id {
    char bytes[128]; /* the file's name */
} unique_id;

enum what { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, EXCHANGE };

typedef struct transfer {
    char *memory;
    size_t bytes;
    int peer, is_send;
} transfer;

/* What one rank does in one operation; of graphs it is done again and again. */
typedef struct call {
    enum what what;
    communicator *one;
    cudaStream_t stream;
    const char *send;
    char *receive;
    size_t count;
    int type, transfers;
    transfer moves[2 * MOST_RANKS];
} call;

static call *pending[MOST_CALLS];
static int pending_count, depth, enqueued;

static int is_scripted(const char *word)
{
    const char *script = getenv("FAKE_NCCL");
    return script && strstr(script, word);
}

static int fails(const char *name)
{
    return faulty_call && faulty_call(name) != 0;
}

static size_t bytes_of(const call *c)
{
    return c->count * (c->type == BFLOAT16 ? 2 : 4);
}

/* ---- the data ---- */

static float load(const char *memory, int type, size_t i)
{
    float value;
    uint32_t bits;
    if (type != BFLOAT16) {
        memcpy(&value, memory + 4 * i, 4);
        return value;
    }
    bits = (uint32_t)((const uint16_t *)(const void *)memory)[i] << 16;
    memcpy(&value, &bits, 4);
    return value;
}

/* Halves are rounded to even, as the sums of the tests need. */
static void store(char *memory, int type, size_t i, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits += 0x7fffu + (bits >> 16 & 1u);
    if (type != BFLOAT16)
        memcpy(memory + 4 * i, &value, 4);
    else
        ((uint16_t *)(void *)memory)[i] = (uint16_t)(bits >> 16);
}

static void sum(const call *c, char *out, size_t first)
{
    for (size_t i = 0; i < c->count; i++) {
        float value = 0;
        for (int rank = 0; rank < c->one->all->count; rank++)
            value += load(c->one->all->slots[rank], c->type, first + i);
        if (is_scripted("wrong") && c->one->rank == 1 && i == 1)
            value += 1;
        store(out, c->type, i, value);
    }
}

/* In a slot, in front of what a rank sends to another. */
typedef struct parcel {
    size_t bytes;
    int peer;
} parcel;

/* What this rank gives goes where all can see it. */
static void give(const call *c)
{
    char *slot = c->one->all->slots[c->one->rank];
    if (c->what != EXCHANGE) {
        size_t blocks = c->what == REDUCE_SCATTER ? (size_t)c->one->all->count : 1;
        memcpy(slot, c->send, bytes_of(c) * blocks);
        return;
    }
    for (int i = 0; i < c->transfers; i++) {
        const transfer *t = &c->moves[i];
        parcel p = {t->bytes, t->peer};
        if (!t->is_send)
            continue;
        memcpy(slot, &p, sizeof p);
        memcpy(slot + sizeof p, t->memory, t->bytes);
        slot += sizeof p + t->bytes;
    }
    memcpy(slot, &(parcel){0, -1}, sizeof(parcel));
}

/* What the peer sends to this rank, of which there is one parcel. */
static const char *find_parcel(const call *c, int peer)
{
    const char *slot = c->one->all->slots[peer];
    parcel p;
    memcpy(&p, slot, sizeof p);
    while (p.peer != c->one->rank && p.peer >= 0) {
        slot += sizeof p + p.bytes;
        memcpy(&p, slot, sizeof p);
    }
    return slot + sizeof p;
}

static void exchange(const call *c, char *out)
{
    size_t at = 0;
    for (int i = 0; i < c->transfers; i++) {
        const transfer *t = &c->moves[i];
        if (t->is_send)
            continue;
        memcpy(out + at, find_parcel(c, t->peer), t->bytes);
        at += t->bytes;
    }
}

static void compute(const call *c, char *out)
{
    const size_t bytes = bytes_of(c);
    switch (c->what) {
    case ALL_REDUCE: sum(c, out, 0); break;
    case REDUCE_SCATTER: sum(c, out, (size_t)c->one->rank * c->count); break;
    case BROADCAST: memcpy(out, c->one->all->slots[0], bytes); break;
    case ALL_GATHER:
        for (int rank = 0; rank < c->one->all->count; rank++)
            memcpy(out + (size_t)rank * bytes, c->one->all->slots[rank], bytes);
        break;
    case EXCHANGE: exchange(c, out); break;
    }
}

static void write_out(const call *c, const char *out)
{
    size_t at = 0;
    if (c->what != EXCHANGE) {
        size_t blocks = c->what == ALL_GATHER ? (size_t)c->one->all->count : 1;
        memcpy(c->receive, out, bytes_of(c) * blocks);
        return;
    }
    for (int i = 0; i < c->transfers; i++)
        if (!c->moves[i].is_send) {
            memcpy(c->moves[i].memory, out + at, c->moves[i].bytes);
            at += c->moves[i].bytes;
        }
}

/* ---- the ranks of a stream each ---- */

static void nap(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

/* Until all ranks are here. 0, or -1 once it is aborted. */
static int meet(clique *all)
{
    unsigned round = all->round;
    if (atomic_fetch_add(&all->arrived, 1) + 1 == all->count) {
        all->arrived = 0;
        all->round++;
    }
    while (all->round == round && !all->aborted)
        nap();
    return all->aborted ? -1 : 0;
}

/* When the last one came. */
static double latest_us(const clique *all)
{
    double latest = 0;
    for (int rank = 0; rank < all->count; rank++)
        latest = all->began_us[rank] > latest ? all->began_us[rank] : latest;
    return latest;
}

static void execute(void *argument)
{
    call *c = argument;
    clique *all = c->one->all;
    char *out = malloc((bytes_of(c) + 1) * MOST_RANKS);
    give(c);
    all->began_us[c->one->rank] = fake_host_began_us();
    if (meet(all) == 0) {
        compute(c, out);
        fake_host_ends(latest_us(all));
        if (meet(all) == 0)
            write_out(c, out);
        (void)meet(all);
    }
    free(out);
}

static int enqueue(call *c)
{
    static _Thread_local int has_begun;
    double us = is_scripted("longest") ? 1e6 : is_scripted("long") ? 500 : 5;
    enqueued = 1;
    if (is_scripted("apart") && c->one->rank == 1 && !has_begun)
        us += 20000;
    has_begun = 1;
    if (fake_launch(c->stream, us, 0) != cudaSuccess)
        return INTERNAL_ERROR;
    if (is_scripted("absent") && c->what == ALL_GATHER && c->one->rank == 1)
        return SUCCESS;
    return cudaLaunchHostFunc(c->stream, execute, c) == cudaSuccess ? SUCCESS : INTERNAL_ERROR;
}

static int end_group(void)
{
    int code = SUCCESS;
    if (is_scripted("late"))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    for (int i = 0; i < pending_count && is_scripted("waiting"); i++)
        (void)cudaStreamSynchronize(pending[i]->stream);
    for (int i = 0; i < pending_count && code == SUCCESS; i++)
        code = enqueue(pending[i]);
    pending_count = 0;
    return code;
}

/* Calls live until the process ends: a graph may hold them. */
static call *add_call(enum what what, communicator *one, cudaStream_t stream)
{
    call *c = calloc(1, sizeof *c);
    c->what = what;
    c->one = one;
    c->stream = stream;
    if (pending_count == MOST_CALLS)
        abort();
    pending[pending_count++] = c;
    return c;
}

static int add(enum what what, const void *send, void *receive, size_t count, int type,
               communicator *one, cudaStream_t stream)
{
    if (one->all->count == 1 && send == receive)
        return SUCCESS; /* as NCCL does, which enqueues nothing then */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* ranks may be threads */
    pthread_mutex_lock(&lock);
    call *c = add_call(what, one, stream);
    c->send = send;
    c->receive = receive;
    c->count = count;
    c->type = type;
    int code = depth > 0 ? SUCCESS : end_group();
    pthread_mutex_unlock(&lock);
    return code;
}

static int add_transfer(void *memory, size_t count, int type, int peer, int is_send,
                        communicator *one, cudaStream_t stream)
{
    call *c = NULL;
    for (int i = 0; i < pending_count && !c; i++)
        c = pending[i]->what == EXCHANGE && pending[i]->one == one ? pending[i] : NULL;
    if (!c)
        c = add_call(EXCHANGE, one, stream);
    c->moves[c->transfers] = (transfer){memory, count * (type == BFLOAT16 ? 2 : 4), peer, is_send};
    c->count += count;
    c->type = type;
    c->transfers++;
    return depth > 0 ? SUCCESS : end_group();
}

/* ---- NCCL's names ---- */

int ncclGetVersion(int *version)
{
    if (fails("ncclGetVersion"))
        return INTERNAL_ERROR;
    *version = is_scripted("old") ? 2804 : 22304;
    return SUCCESS;
}

const char *ncclGetErrorString(int code)
{
    return code == SUCCESS ? "no error" : "internal error - made up";
}

int ncclGetUniqueId(unique_id *id)
{
    if (fails("ncclGetUniqueId"))
        return INTERNAL_ERROR;
    static int made;
    const char *folder = getenv("TMPDIR");
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "%.90s/fake_nccl.%d.%d", folder ? folder : "/tmp",
             (int)getpid(), made++);
    return SUCCESS;
}

static communicator *join(clique *all, int rank)
{
    communicator *one = calloc(1, sizeof *one);
    *one = (communicator){all, rank};
    return one;
}

int ncclCommInitAll(communicator **ones, int count, const int *devices)
{
    if (fails("ncclCommInitAll"))
        return INTERNAL_ERROR;
    clique *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)devices;
    if (all == MAP_FAILED)
        return INTERNAL_ERROR;
    all->count = count;
    for (int rank = 0; rank < count; rank++)
        ones[rank] = join(all, rank);
    return SUCCESS;
}

/* Returns when all ranks have come. */
int ncclCommInitRank(communicator **one, int count, unique_id id, int rank)
{
    if (fails("ncclCommInitRank"))
        return INTERNAL_ERROR;
    int file = open(id.bytes, O_RDWR | O_CREAT, 0600);
    clique *all = MAP_FAILED;
    if (is_scripted("alone") && rank == 1)
        pause();
    if (file >= 0 && ftruncate(file, sizeof *all) == 0)
        all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (all == MAP_FAILED)
        return INTERNAL_ERROR;
    all->count = count;
    *one = join(all, rank);
    (void)meet(all);
    if (rank == 0)
        unlink(id.bytes);
    return SUCCESS;
}

int ncclCommAbort(communicator *one)
{
    if (is_scripted("stuck"))
        pause();
    one->all->aborted = 1;
    return fails("ncclCommAbort") ? INTERNAL_ERROR : SUCCESS;
}

int ncclCommDestroy(communicator *one)
{
    (void)one;
    return fails("ncclCommDestroy") ? INTERNAL_ERROR : SUCCESS;
}

int ncclCommGetAsyncError(communicator *one, int *error)
{
    if (fails("ncclCommGetAsyncError"))
        return INTERNAL_ERROR;
    (void)one;
    *error = enqueued && is_scripted("broken") ? INTERNAL_ERROR : SUCCESS;
    return SUCCESS;
}

int ncclGroupStart(void)
{
    if (fails("ncclGroupStart"))
        return INTERNAL_ERROR;
    depth++;
    return SUCCESS;
}

int ncclGroupEnd(void)
{
    depth -= depth > 0; /* whose start failed, is none */
    if (fails("ncclGroupEnd")) {
        pending_count = 0;
        return INTERNAL_ERROR;
    }
    return depth > 0 ? SUCCESS : end_group();
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation,
                  communicator *one, cudaStream_t stream)
{
    if (fails("ncclAllReduce"))
        return INTERNAL_ERROR;
    (void)operation;
    if (is_scripted("failing"))
        return INTERNAL_ERROR;
    return add(ALL_REDUCE, send, receive, count, type, one, stream);
}

int ncclAllGather(const void *send, void *receive, size_t count, int type, communicator *one,
                  cudaStream_t stream)
{
    if (fails("ncclAllGather"))
        return INTERNAL_ERROR;
    return add(ALL_GATHER, send, receive, count, type, one, stream);
}

int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int operation,
                      communicator *one, cudaStream_t stream)
{
    if (fails("ncclReduceScatter"))
        return INTERNAL_ERROR;
    (void)operation;
    return add(REDUCE_SCATTER, send, receive, count, type, one, stream);
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                  communicator *one, cudaStream_t stream)
{
    if (fails("ncclBroadcast"))
        return INTERNAL_ERROR;
    (void)root;
    return add(BROADCAST, send, receive, count, type, one, stream);
}

int ncclSend(const void *send, size_t count, int type, int peer, communicator *one,
             cudaStream_t stream)
{
    if (fails("ncclSend"))
        return INTERNAL_ERROR;
    return add_transfer((void *)(uintptr_t)send, count, type, peer, 1, one, stream);
}

int ncclRecv(void *receive, size_t count, int type, int peer, communicator *one,
             cudaStream_t stream)
{
    if (fails("ncclRecv"))
        return INTERNAL_ERROR;
    return add_transfer(receive, count, type, peer, 0, one, stream);
}
