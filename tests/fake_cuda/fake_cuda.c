/* See cuda_runtime_api.h. One thread per stream takes operations from the
 * stream's queue; one lock guards everything. */
#define _GNU_SOURCE
#include "cuda_runtime_api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = 2, MOST_STREAMS = 256 };
static const size_t memory_bytes = (size_t)1 << 30;

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
} operation;

struct CUstream_st {
    pthread_t thread;
    pthread_cond_t filled;
    operation *first, **last; /* the head stays until it is executed */
    double now_us;
    int ended, blocking; /* blocking: in order with the default stream */
    cudaGraph_t capture; /* while capturing */
    int capture_spoilt;
};

struct CUevent_st {
    int pending; /* records that are queued */
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

/* What stands in front of a block, as far from the caller as malloc aligns. */
typedef union block {
    struct {
        size_t bytes;
        union block *next;
        int device; /* HOST_MEMORY, or the device that was current */
    } is;
    long double align;
} block;

enum { HOST_MEMORY = -1 };

struct fake_cuda fake_cuda;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t executed = PTHREAD_COND_INITIALIZER;
static struct CUstream_st *streams[MOST_STREAMS];
static struct CUstream_st default_stream;
static uint64_t operations; /* that streams were given */
static cudaError_t last_error, context_error;
static int current_device, live_objects;
static int held; /* by a kernel that fills the device: no other one starts */
static uint64_t release_threshold;
static double executed_us;
static block *blocks;
static int has_access[DEVICES]; /* to the other one */
static size_t used_bytes;

/* ---- errors ---- */

/* A destroyed context answers everything; anything else is remembered once. */
static cudaError_t answer(cudaError_t code)
{
    if (context_error != cudaSuccess)
        code = context_error;
    if (code != cudaSuccess && code != cudaErrorNotReady)
        last_error = code;
    return code;
}

static cudaError_t answer_locked(cudaError_t code)
{
    pthread_mutex_lock(&lock);
    code = answer(code);
    pthread_mutex_unlock(&lock);
    return code;
}

/* The answer to a call that takes something, unless code says more. With the lock held. */
static cudaError_t answer_take(cudaError_t code)
{
    int fails = fake_cuda.failing_take > 0 && --fake_cuda.failing_take == 0;
    return answer(code == cudaSuccess && fails ? cudaErrorMemoryAllocation : code);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code;
    pthread_mutex_lock(&lock);
    code = context_error != cudaSuccess ? context_error : last_error;
    last_error = cudaSuccess;
    pthread_mutex_unlock(&lock);
    return code;
}

const char *cudaGetErrorName(cudaError_t code)
{
    switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorProfilerAlreadyStarted: return "cudaErrorProfilerAlreadyStarted";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorPeerAccessAlreadyEnabled: return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorPeerAccessNotEnabled: return "cudaErrorPeerAccessNotEnabled";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureImplicit: return "cudaErrorStreamCaptureImplicit";
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaErrorInsufficientDriver: return "the driver is too old (fake)";
    case cudaErrorNoDevice: return "there is no device (fake)";
    case cudaErrorIllegalAddress: return "a kernel wrote where it must not (fake)";
    default: return "explained (fake)";
    }
}

/* ---- execution ---- */

/* The part of an operation that takes real time, without the lock. */
static void perform(const operation *op)
{
    if (op->kind == HOST)
        op->function(op->memory);
    if (op->kind == WRITE)
        memset(op->memory, op->byte, op->bytes);
    if (op->kind == COPY)
        memcpy(op->memory, op->source, op->bytes);
    if (op->until.tv_sec > 0)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &op->until, NULL);
}

/* The streams' clocks run by themselves; where something ended that all others
 * can be seen from (a host function, the hold of the device), it is later than
 * all that was done. With the lock held. */
static double latest_us(void)
{
    double latest = default_stream.now_us;
    int i;
    for (i = 0; i < MOST_STREAMS; i++)
        if (streams[i] && streams[i]->now_us > latest)
            latest = streams[i]->now_us;
    return latest;
}

/* As after a moment at which all of them wait. With the lock held. */
static void align_streams(void)
{
    double latest = latest_us();
    int i;
    for (i = 0; i < MOST_STREAMS; i++)
        if (streams[i])
            streams[i]->now_us = latest;
    default_stream.now_us = latest;
}

/* What the kernel that holds the device shares with the host: whether the host
 * has released it, whether it is there, whether its time ran out. */
static void hold(const operation *op)
{
    volatile unsigned *shared = op->memory;
    static const struct timespec pause = {0, 50000};
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    held = 1;
    shared[1] = 1;
    while (!shared[0] && !shared[2]) {
        pthread_mutex_unlock(&lock);
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        shared[2] = (double)(now.tv_sec - start.tv_sec) * 1e6 +
                        (double)(now.tv_nsec - start.tv_nsec) / 1e3 > op->us;
        pthread_mutex_lock(&lock);
    }
    align_streams();
    held = 0;
    pthread_cond_broadcast(&executed);
}

static int is_kernel(const operation *op)
{
    return op->kind == KERNEL || op->kind == WRITE || op->kind == STAMP;
}

/* With the lock held. What a destroyed context had queued is dropped, but
 * events count down, so that nobody waits for them. */
static void execute(cudaStream_t stream, const operation *op)
{
    while (op->kind == HANG)
        pthread_cond_wait(&stream->filled, &lock);
    while (is_kernel(op) && held)
        pthread_cond_wait(&executed, &lock);
    if (op->kind == HOLD) {
        hold(op);
        return;
    }
    while (op->kind == WAIT && op->event->recorded < op->records)
        pthread_cond_wait(&executed, &lock);
    if (op->kind == WAIT && stream->now_us < op->event->us)
        stream->now_us = op->event->us;
    if (context_error == cudaSuccess) {
        pthread_mutex_unlock(&lock);
        perform(op);
        pthread_mutex_lock(&lock);
        if (op->kind == HOST)
            stream->now_us = latest_us();
        stream->now_us += op->us;
        executed_us += op->us;
        if (op->kind == STAMP)
            *(uint64_t *)op->memory = (uint64_t)(stream->now_us * 1e3);
    }
    if (op->kind == CRASH)
        context_error = cudaErrorIllegalAddress;
    if (op->kind == RECORD) {
        op->event->us = stream->now_us;
        op->event->pending--;
        op->event->recorded++;
    }
}

static int stands_before(const struct CUstream_st *stream, const operation *op)
{
    return stream->first && stream->first->number < op->number;
}

/* The default stream waits for all that blocking streams were given before, and they
 * for it. With the lock held. */
static void wait_for_turn(const struct CUstream_st *stream, const operation *op)
{
    int i;
    while (stream->blocking && stands_before(&default_stream, op))
        pthread_cond_wait(&executed, &lock);
    for (i = 0; i < MOST_STREAMS && stream == &default_stream; i++)
        while (streams[i] && streams[i]->blocking && stands_before(streams[i], op))
            pthread_cond_wait(&executed, &lock);
}

/* Whose clock is behind waits for the other. With the lock held. */
static void meet_blocking_streams(int before)
{
    int i;
    for (i = 0; i < MOST_STREAMS; i++) {
        if (!streams[i] || !streams[i]->blocking)
            continue;
        if (before && streams[i]->now_us > default_stream.now_us)
            default_stream.now_us = streams[i]->now_us;
        if (!before && default_stream.now_us > streams[i]->now_us)
            streams[i]->now_us = default_stream.now_us;
    }
}

static void *work(void *argument)
{
    cudaStream_t stream = (cudaStream_t)argument;
    pthread_mutex_lock(&lock);
    while (!stream->ended || stream->first) {
        operation *op = stream->first;
        if (!op) {
            pthread_cond_wait(&stream->filled, &lock);
            continue;
        }
        wait_for_turn(stream, op);
        if (stream == &default_stream)
            meet_blocking_streams(1);
        execute(stream, op);
        if (stream == &default_stream)
            meet_blocking_streams(0);
        stream->first = op->next;
        if (!stream->first)
            stream->last = &stream->first;
        free(op);
        pthread_cond_broadcast(&executed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void append(operation ***last, const operation *op)
{
    operation *copy = malloc(sizeof *copy);
    *copy = *op;
    copy->next = NULL;
    copy->number = ++operations;
    **last = copy;
    *last = &copy->next;
}

/* With the lock held. */
static void queue(cudaStream_t stream, const operation *op)
{
    if (stream->capture && op->kind == WAIT) {
        stream->capture_spoilt = 1; /* for what the captured stream did not start */
        return;
    }
    if (stream->capture && op->kind == RECORD)
        return; /* no node */
    if (stream->capture) {
        append(&stream->capture->last, op);
        stream->capture->count++;
        return;
    }
    if (op->kind == RECORD)
        op->event->pending++;
    append(&stream->last, op);
    pthread_cond_signal(&stream->filled);
}

/* With the lock held. */
static void start_stream(cudaStream_t stream)
{
    stream->last = &stream->first;
    pthread_cond_init(&stream->filled, NULL);
    pthread_create(&stream->thread, NULL, work, stream);
}

/* What a stream that captures would have to wait for is no part of its graph. With the
 * lock held. */
static cudaError_t use_default_stream(void)
{
    cudaError_t code = cudaSuccess;
    int i;
    for (i = 0; i < MOST_STREAMS; i++)
        if (streams[i] && streams[i]->blocking && streams[i]->capture) {
            streams[i]->capture_spoilt = 1;
            code = cudaErrorStreamCaptureImplicit;
        }
    if (!default_stream.last)
        start_stream(&default_stream);
    return code;
}

static cudaError_t enqueue(cudaStream_t stream, const operation *op)
{
    cudaError_t code;
    pthread_mutex_lock(&lock);
    code = answer(stream ? cudaSuccess : use_default_stream());
    if (code == cudaSuccess)
        queue(stream ? stream : &default_stream, op);
    pthread_mutex_unlock(&lock);
    return code;
}

/* With the lock held. */
static void wait_idle(void)
{
    int i;
    for (i = 0; i < MOST_STREAMS; i++)
        while (streams[i] && streams[i]->first)
            pthread_cond_wait(&executed, &lock);
    while (default_stream.first)
        pthread_cond_wait(&executed, &lock);
}

cudaError_t cudaDeviceSynchronize(void)
{
    static const struct timespec late = {0, 5000000};
    cudaError_t code;
    if (fake_cuda.late_synchronizations > 0) {
        fake_cuda.late_synchronizations--;
        nanosleep(&late, NULL);
    }
    pthread_mutex_lock(&lock);
    wait_idle();
    align_streams();
    code = answer(cudaSuccess);
    pthread_mutex_unlock(&lock);
    return code;
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = fake_cuda.count_error || fake_cuda.no_devices ? 0 : fake_cuda.one_device ? 1 : DEVICES;
    return answer_locked(fake_cuda.count_error);
}

static int is_device(int device)
{
    return device >= 0 && device < DEVICES;
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t code = answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
    if (code == cudaSuccess)
        current_device = device;
    return code;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return answer_locked(cudaSuccess);
}

static int are_two(int device, int peer)
{
    return is_device(device) && is_device(peer) && device != peer;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = !fake_cuda.no_peer_access;
    return answer_locked(are_two(device, peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    cudaError_t code;
    pthread_mutex_lock(&lock);
    code = answer_take(flags || !are_two(current_device, peer) ? cudaErrorInvalidDevice
                       : has_access[current_device]            ? cudaErrorPeerAccessAlreadyEnabled
                                                               : cudaSuccess);
    if (code == cudaSuccess)
        has_access[current_device] = 1;
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    int enabled = are_two(current_device, peer) && has_access[current_device];
    if (enabled)
        has_access[current_device] = 0;
    return answer_locked(enabled ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    cudaError_t code = fake_cuda.properties_error;
    int i;
    code = answer_locked(is_device(device) ? code : cudaErrorInvalidDevice);
    if (code != cudaSuccess)
        return code;
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
    /* Bytes 0x10 to 0x1f, or 0xa0 to 0xaf. */
    for (i = 0; i < 16; i++)
        properties->uuid.bytes[i] = (char)((device ? 0xa0 : 0x10) + i);
    properties->totalGlobalMem = memory_bytes;
    properties->major = device ? 8 : 9;
    properties->minor = 0;
    properties->multiProcessorCount = device ? 108 : 132;
    properties->l2CacheSize = 1 << 20;
    properties->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    snprintf(text, (size_t)bytes, "0000:%02x:00.0", device + 1);
    return answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    *pool = (cudaMemPool_t)(void *)&release_threshold;
    return answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    memcpy(value, pool, sizeof release_threshold);
    return answer_locked(attribute == cudaMemPoolAttrReleaseThreshold ? cudaSuccess
                                                                      : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    memcpy(pool, value, sizeof release_threshold);
    return answer_locked(attribute == cudaMemPoolAttrReleaseThreshold ? cudaSuccess
                                                                      : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    switch (attribute) {
    case cudaDevAttrClockRate: *value = 1980000; break;
    case cudaDevAttrMemoryClockRate: *value = 2619000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = 5120; break;
    case cudaDevAttrComputeCapabilityMajor: *value = device ? 8 : 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (device ? 163 : 227) * 1024; break;
    }
    return answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return answer_locked(cudaSuccess);
}

/* ---- memory ---- */

/* With the lock held. */
static void *take_block(size_t bytes, int device)
{
    block *made = malloc(sizeof *made + bytes);
    if (!made)
        return NULL;
    made->is.bytes = bytes;
    made->is.device = device;
    made->is.next = blocks;
    blocks = made;
    if (device != HOST_MEMORY)
        used_bytes += bytes;
    live_objects++;
    return made + 1;
}

static void drop_block(void *memory)
{
    block *made = (block *)memory - 1, **link = &blocks;
    while (*link != made)
        link = &(*link)->is.next;
    *link = made->is.next;
    if (made->is.device != HOST_MEMORY)
        used_bytes -= made->is.bytes;
    live_objects--;
    free(made);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t code;
    *memory = NULL;
    pthread_mutex_lock(&lock);
    code = answer_take(fake_cuda.malloc_error != cudaSuccess   ? fake_cuda.malloc_error
                       : bytes > memory_bytes - used_bytes ? cudaErrorMemoryAllocation
                                                           : cudaSuccess);
    if (code == cudaSuccess && bytes > 0)
        *memory = take_block(bytes, current_device);
    pthread_mutex_unlock(&lock);
    return code;
}

/* Like the real one it waits for the device, so a hung kernel hangs it. */
static cudaError_t free_block(void *memory)
{
    cudaError_t code;
    pthread_mutex_lock(&lock);
    if (memory)
        wait_idle();
    code = answer(cudaSuccess);
    if (memory)
        drop_block(memory);
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaFree(void *memory)
{
    return free_block(memory);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    cudaError_t code;
    *memory = NULL;
    pthread_mutex_lock(&lock);
    code = answer(flags != cudaHostAllocDefault || bytes > memory_bytes ? cudaErrorMemoryAllocation
                                                                        : cudaSuccess);
    if (code == cudaSuccess)
        *memory = take_block(bytes, HOST_MEMORY);
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaFreeHost(void *memory)
{
    return free_block(memory);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = memory_bytes - used_bytes;
    *total = memory_bytes;
    return answer_locked(cudaSuccess);
}

cudaError_t cudaMemcpy(void *destination, const void *source, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    cudaError_t code = cudaDeviceSynchronize();
    if (code == cudaSuccess && kind == cudaMemcpyDefault)
        memcpy(destination, source, bytes);
    return code;
}

/* 50 GB/s, and 2 us for starting. */
cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    operation op = {.kind = COPY, .memory = destination, .source = source, .bytes = bytes};
    (void)kind;
    op.us = 2 + (double)bytes / 5e4;
    return enqueue(stream, &op);
}

cudaError_t cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source,
                                int source_device, size_t bytes, cudaStream_t stream)
{
    if (fake_device_of(destination) != destination_device ||
        fake_device_of(source) != source_device)
        return answer_locked(cudaErrorInvalidValue);
    return cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemset(void *memory, int byte, size_t bytes)
{
    cudaError_t code = cudaDeviceSynchronize();
    if (code == cudaSuccess)
        memset(memory, byte, bytes);
    return code;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
    return fake_launch_write(stream, memory, byte, bytes);
}

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaStream_t made = calloc(1, sizeof *made);
    cudaError_t code;
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < MOST_STREAMS && streams[i])
        i++;
    code = answer_take((flags != cudaStreamNonBlocking && flags != cudaStreamDefault) ||
                               i == MOST_STREAMS
                           ? cudaErrorInvalidValue
                           : fake_cuda.stream_error);
    if (code == cudaSuccess) {
        made->blocking = flags == cudaStreamDefault;
        start_stream(made);
        streams[i] = made;
        live_objects++;
        *stream = made;
    }
    pthread_mutex_unlock(&lock);
    if (code != cudaSuccess)
        free(made);
    return code;
}

/* Joins the thread, which the real one need not, so that no test leaves any behind. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    int i;
    pthread_mutex_lock(&lock);
    stream->ended = 1;
    pthread_cond_signal(&stream->filled);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&lock);
    for (i = 0; i < MOST_STREAMS; i++)
        if (streams[i] == stream)
            streams[i] = NULL;
    live_objects--;
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&stream->filled);
    free(stream);
    return answer_locked(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    stream = stream ? stream : &default_stream;
    pthread_mutex_lock(&lock);
    if (stream->capture) {
        stream->capture_spoilt = 1;
        code = cudaErrorStreamCaptureUnsupported;
    }
    while (stream->first)
        pthread_cond_wait(&executed, &lock);
    code = answer(code);
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    operation op = {.kind = WAIT, .event = event};
    pthread_mutex_lock(&lock);
    op.records = event->recorded + (uint64_t)event->pending;
    pthread_mutex_unlock(&lock);
    return flags ? answer_locked(cudaErrorInvalidValue) : enqueue(stream, &op);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    operation op = {.kind = HOST, .function = function, .memory = argument};
    return enqueue(stream, &op);
}

/* ---- events ---- */

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t code;
    pthread_mutex_lock(&lock);
    code = answer_take(flags & ~(unsigned)cudaEventDisableTiming ? cudaErrorInvalidValue
                                                                 : cudaSuccess);
    if (code == cudaSuccess) {
        *event = calloc(1, sizeof **event);
        live_objects++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    live_objects--;
    pthread_mutex_unlock(&lock);
    free(event);
    return answer_locked(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    operation op = {.kind = RECORD, .event = event, .us = FAKE_EVENT_US};
    return enqueue(stream, &op);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t code;
    pthread_mutex_lock(&lock);
    code = answer(event->pending > 0 ? cudaErrorNotReady : cudaSuccess);
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop)
{
    cudaError_t code;
    pthread_mutex_lock(&lock);
    code = answer(start->pending > 0 || stop->pending > 0 ? cudaErrorNotReady : cudaSuccess);
    *ms = (float)((stop->us - start->us) / 1e3);
    pthread_mutex_unlock(&lock);
    return code;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaError_t code = stream ? fake_cuda.capture_error : cudaErrorStreamCaptureUnsupported;
    pthread_mutex_lock(&lock);
    code = answer(mode != cudaStreamCaptureModeThreadLocal ? cudaErrorInvalidValue : code);
    if (code == cudaSuccess) {
        stream->capture = calloc(1, sizeof *stream->capture);
        stream->capture->last = &stream->capture->first;
        stream->capture_spoilt = 0;
        live_objects++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static void free_operations(operation *op)
{
    while (op) {
        operation *next = op->next;
        free(op);
        op = next;
    }
}

/* With the lock held. */
static void drop_graph(cudaGraph_t graph)
{
    free_operations(graph->first);
    free(graph);
    live_objects--;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t code;
    *graph = NULL;
    pthread_mutex_lock(&lock);
    code = answer(!stream->capture          ? cudaErrorInvalidValue
                  : stream->capture_spoilt ? cudaErrorStreamCaptureInvalidated
                                           : cudaSuccess);
    if (code == cudaSuccess)
        *graph = stream->capture;
    else if (stream->capture)
        drop_graph(stream->capture);
    stream->capture = NULL;
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    *count = graph->count;
    return answer_locked(nodes ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags)
{
    cudaError_t code;
    const operation *op;
    operation **last;
    *executable = NULL;
    pthread_mutex_lock(&lock);
    code = answer(flags ? cudaErrorInvalidValue : cudaSuccess);
    if (code == cudaSuccess) {
        *executable = calloc(1, sizeof **executable);
        last = &(*executable)->first;
        for (op = graph->first; op; op = op->next)
            append(&last, op);
        live_objects++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    cudaError_t code;
    const operation *op;
    pthread_mutex_lock(&lock);
    code = answer(cudaSuccess);
    for (op = executable->first; op && code == cudaSuccess; op = op->next)
        queue(stream ? stream : &default_stream, op);
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    pthread_mutex_lock(&lock);
    drop_graph(graph);
    pthread_mutex_unlock(&lock);
    return answer_locked(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    pthread_mutex_lock(&lock);
    wait_idle();
    free_operations(executable->first);
    free(executable);
    live_objects--;
    pthread_mutex_unlock(&lock);
    return answer_locked(cudaSuccess);
}

/* ---- the driver's functions behind the framework's own kernels ---- */

static const char *const kernel_names[] = {"gpubench_empty", "gpubench_sweep", "gpubench_discard",
                                           "gpubench_stamp", "gpubench_hold"};
enum { KERNELS = sizeof kernel_names / sizeof kernel_names[0] };
static char kernels[KERNELS]; /* their addresses stand for them */

static int load_module(void **module, const void *image)
{
    int i, found = 0;
    pthread_mutex_lock(&lock);
    *module = (void *)&live_objects;
    live_objects++;
    pthread_mutex_unlock(&lock);
    for (i = 0; i < KERNELS; i++)
        found += strstr((const char *)image, kernel_names[i]) != NULL;
    return found ? 0 : 218; /* invalid PTX */
}

static int get_function(void **function, void *module, const char *name)
{
    int i;
    *function = NULL;
    for (i = 0; i < KERNELS && module; i++)
        if (!strcmp(name, kernel_names[i]))
            *function = &kernels[i];
    return *function ? 0 : 500; /* not found */
}

static int unload_module(void *module)
{
    pthread_mutex_lock(&lock);
    live_objects -= module == (void *)&live_objects;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* The sweep reads 3 TB/s; the kernel that holds the device must fill it. */
static int launch_kernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, cudaStream_t stream, void **arguments, void **extra)
{
    operation op = {.kind = HOLD};
    uint64_t number = 0;
    if (!function || !grid_x || grid_y != 1 || grid_z != 1 || !block_x || block_y != 1 ||
        block_z != 1 || shared_bytes || extra)
        return cudaErrorInvalidValue;
    if (function == &kernels[0])
        return arguments ? cudaErrorInvalidValue
                         : (int)fake_launch(stream, FAKE_EMPTY_KERNEL_US, 0);
    memcpy(&op.memory, arguments[0], sizeof op.memory);
    op.kind = function == &kernels[3] ? STAMP : HOLD;
    if (op.kind == STAMP)
        return (int)enqueue(stream, &op);
    memcpy(&number, arguments[1], sizeof number);
    if (function == &kernels[1]) /* 16 bytes each */
        return (int)fake_launch(stream, 2 + (double)number * 16 / 3e6, 0);
    if (function == &kernels[2])
        return (int)fake_launch(stream, 2 + (double)number / 1e5, 0);
    if (grid_x * block_x != (current_device ? 108 : 132) * 2048)
        return cudaErrorInvalidConfiguration;
    op.us = (double)number / 1e3;
    return (int)enqueue(stream, &op);
}

/* A function pointer travels as void *, as the API has it. */
static void *as_pointer(const void *function_pointer)
{
    void *pointer;
    memcpy(&pointer, function_pointer, sizeof pointer);
    return pointer;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    int (*load)(void **, const void *) = load_module;
    int (*get)(void **, void *, const char *) = get_function;
    int (*unload)(void *) = unload_module;
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  cudaStream_t, void **, void **) = launch_kernel;
    *function = NULL;
    if (!fake_cuda.no_driver_functions && flags == cudaEnableDefault) {
        *function = !strcmp(symbol, "cuModuleLoadData")      ? as_pointer(&load)
                    : !strcmp(symbol, "cuModuleGetFunction") ? as_pointer(&get)
                    : !strcmp(symbol, "cuModuleUnload")      ? as_pointer(&unload)
                    : !strcmp(symbol, "cuLaunchKernel")      ? as_pointer(&launch)
                                                             : NULL;
    }
    *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return answer_locked(cudaSuccess);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    (void)version;
    return cudaGetDriverEntryPoint(symbol, function, flags, result);
}

/* ---- what only the tests use ---- */

cudaError_t fake_launch(cudaStream_t stream, double us, int real_ms)
{
    operation op = {.kind = KERNEL, .us = us};
    if (real_ms > 0) {
        clock_gettime(CLOCK_MONOTONIC, &op.until);
        op.until.tv_nsec += real_ms * 1000000L; /* below a second */
        op.until.tv_sec += op.until.tv_nsec / 1000000000L;
        op.until.tv_nsec %= 1000000000L;
    }
    return enqueue(stream, &op);
}

void fake_launch_error(cudaError_t code)
{
    answer_locked(code);
}

cudaError_t fake_launch_crash(cudaStream_t stream)
{
    operation op = {.kind = CRASH};
    return enqueue(stream, &op);
}

cudaError_t fake_launch_hang(cudaStream_t stream)
{
    operation op = {.kind = HANG};
    return enqueue(stream, &op);
}

/* 1 TB/s, and 2 us for starting. */
cudaError_t fake_launch_write(cudaStream_t stream, void *memory, int byte, size_t bytes)
{
    operation op = {.kind = WRITE, .memory = memory, .byte = byte, .bytes = bytes};
    op.us = 2 + (double)bytes / 1e6;
    return enqueue(stream, &op);
}

int fake_current_device(void)
{
    return current_device;
}

int fake_device_of(const void *memory)
{
    int device = HOST_MEMORY;
    const block *one;
    pthread_mutex_lock(&lock);
    for (one = blocks; one; one = one->is.next) {
        uintptr_t offset = (uintptr_t)memory - (uintptr_t)(one + 1);
        if (offset < one->is.bytes)
            device = one->is.device;
    }
    pthread_mutex_unlock(&lock);
    return device;
}

int fake_peer_accesses(void)
{
    int count = 0, device;
    for (device = 0; device < DEVICES; device++)
        count += has_access[device];
    return count;
}

size_t fake_used_bytes(void)
{
    size_t bytes;
    pthread_mutex_lock(&lock);
    bytes = used_bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}

double fake_executed_us(void)
{
    double us;
    pthread_mutex_lock(&lock);
    us = executed_us;
    pthread_mutex_unlock(&lock);
    return us;
}

uint64_t fake_release_threshold(void)
{
    return release_threshold;
}

int fake_live_objects(void)
{
    int count;
    pthread_mutex_lock(&lock);
    count = live_objects;
    pthread_mutex_unlock(&lock);
    return count;
}

void fake_start(void)
{
    pthread_mutex_lock(&lock);
    memset(&fake_cuda, 0, sizeof fake_cuda);
    last_error = context_error = cudaSuccess;
    memset(has_access, 0, sizeof has_access);
    current_device = 0;
    release_threshold = 0;
    pthread_mutex_unlock(&lock);
}
