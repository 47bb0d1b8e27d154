/* A substitute for NCCL, of our own making, on the substitute for the CUDA runtime in
 * fake_cuda/: the part that the collective suite uses, by NCCL's documented interface, for
 * ranks of one process. Each operation takes 5 us of simulated time on its stream, waits
 * there for all ranks, and moves the data. FAKE_NCCL says what goes wrong,
 * in one or more words:
 *   old      its version is 2.8.4
 *   absent   rank 1 never takes part in an all-gather
 *   wrong    rank 1's sums have one wrong element
 *   failing  all-reduce returns an error
 *   broken   a rank's asynchronous error is one, once something was enqueued
 * Beside that the program may say of any call that it fails. */
#include "cuda_runtime_api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* See fake_cuda/faulty.h. */
int faulty_call(const char *call) __attribute__((weak));

enum { SUCCESS = 0, INTERNAL_ERROR = 3, BFLOAT16 = 9, MOST_RANKS = 8, MOST_CALLS = 256 };

/* What the communicators of one job share. */
typedef struct clique {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, arrived, aborted;
    unsigned round;
    struct call *calls[MOST_RANKS];
} clique;

typedef struct ncclComm {
    clique *all;
    int rank;
} communicator;

typedef struct unique_id {
    char bytes[128];
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
            value += load(c->one->all->calls[rank]->send, c->type, first + i);
        if (is_scripted("wrong") && c->one->rank == 1 && i == 1)
            value += 1;
        store(out, c->type, i, value);
    }
}

/* The sends of a rank to this one, in their order, against its receives from that rank. */
static void exchange(const call *c, char *out)
{
    size_t at = 0;
    for (int i = 0; i < c->transfers; i++) {
        const transfer *t = &c->moves[i];
        const call *peer = c->one->all->calls[t->peer];
        for (int j = 0; j < peer->transfers && !t->is_send; j++)
            if (peer->moves[j].is_send && peer->moves[j].peer == c->one->rank)
                memcpy(out + at, peer->moves[j].memory, t->bytes);
        at += t->is_send ? 0 : t->bytes;
    }
}

static void compute(const call *c, char *out)
{
    const size_t bytes = bytes_of(c);
    switch (c->what) {
    case ALL_REDUCE: sum(c, out, 0); break;
    case REDUCE_SCATTER: sum(c, out, (size_t)c->one->rank * c->count); break;
    case BROADCAST: memcpy(out, c->one->all->calls[0]->send, bytes); break;
    case ALL_GATHER:
        for (int rank = 0; rank < c->one->all->count; rank++)
            memcpy(out + (size_t)rank * bytes, c->one->all->calls[rank]->send, bytes);
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

/* Until all ranks are here; with the lock held. 0, or -1 once it is aborted. */
static int meet(clique *all)
{
    unsigned round = all->round;
    if (++all->arrived == all->count) {
        all->arrived = 0;
        all->round++;
        pthread_cond_broadcast(&all->changed);
    }
    while (all->round == round && !all->aborted)
        pthread_cond_wait(&all->changed, &all->lock);
    return all->aborted ? -1 : 0;
}

static void execute(void *argument)
{
    call *c = argument;
    clique *all = c->one->all;
    char *out = malloc((bytes_of(c) + 1) * MOST_RANKS);
    pthread_mutex_lock(&all->lock);
    all->calls[c->one->rank] = c;
    if (meet(all) == 0) {
        compute(c, out);
        if (meet(all) == 0)
            write_out(c, out);
        (void)meet(all);
    }
    pthread_mutex_unlock(&all->lock);
    free(out);
}

static int enqueue(call *c)
{
    enqueued = 1;
    if (fake_launch(c->stream, 5, 0) != cudaSuccess)
        return INTERNAL_ERROR;
    if (is_scripted("absent") && c->what == ALL_GATHER && c->one->rank == 1)
        return SUCCESS;
    return cudaLaunchHostFunc(c->stream, execute, c) == cudaSuccess ? SUCCESS : INTERNAL_ERROR;
}

static int end_group(void)
{
    int code = SUCCESS;
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
    memset(id, 1, sizeof *id);
    return SUCCESS;
}

int ncclCommInitAll(communicator **ones, int count, const int *devices)
{
    clique *all = calloc(1, sizeof *all);
    (void)devices;
    if (fails("ncclCommInitAll"))
        return INTERNAL_ERROR;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    all->count = count;
    for (int rank = 0; rank < count; rank++) {
        ones[rank] = calloc(1, sizeof *ones[rank]);
        *ones[rank] = (communicator){all, rank};
    }
    return SUCCESS;
}

int ncclCommInitRank(communicator **one, int count, unique_id id, int rank)
{
    (void)id;
    if (fails("ncclCommInitRank"))
        return INTERNAL_ERROR;
    return count == 1 && rank == 0 ? ncclCommInitAll(one, 1, NULL) : INTERNAL_ERROR;
}

int ncclCommAbort(communicator *one)
{
    pthread_mutex_lock(&one->all->lock);
    one->all->aborted = 1;
    pthread_cond_broadcast(&one->all->changed);
    pthread_mutex_unlock(&one->all->lock);
    return fails("ncclCommAbort") ? INTERNAL_ERROR : SUCCESS;
}

int ncclCommDestroy(communicator *one)
{
    (void)one;
    return fails("ncclCommDestroy") ? INTERNAL_ERROR : SUCCESS;
}

int ncclCommGetAsyncError(communicator *one, int *error)
{
    (void)one;
    if (fails("ncclCommGetAsyncError"))
        return INTERNAL_ERROR;
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
    int code = --depth > 0 ? SUCCESS : end_group();
    return fails("ncclGroupEnd") ? INTERNAL_ERROR : code;
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation,
                  communicator *one, cudaStream_t stream)
{
    (void)operation;
    if (fails("ncclAllReduce"))
        return INTERNAL_ERROR;
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
    (void)operation;
    if (fails("ncclReduceScatter"))
        return INTERNAL_ERROR;
    return add(REDUCE_SCATTER, send, receive, count, type, one, stream);
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                  communicator *one, cudaStream_t stream)
{
    (void)root;
    if (fails("ncclBroadcast"))
        return INTERNAL_ERROR;
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
