/* See cuda_runtime_api.h: errors, streams and events, and what executes. */
#define _GNU_SOURCE
#include "faulty.h"
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STREAMS = 256 };

struct fake_cuda fake_cuda;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct CUstream_st fake_default_stream;
int fake_device, fake_objects;
static pthread_cond_t executed = PTHREAD_COND_INITIALIZER;
static struct CUstream_st *streams[MOST_STREAMS];
static uint64_t operations; /* that streams were given */
static cudaError_t last_error, context_error;
static int held; /* by a kernel that fills the device: no other one starts */
static double executed_us;

/* ---- errors ---- */

/* A destroyed context answers everything; anything else is remembered once. */
cudaError_t fake_answer(cudaError_t code)
{
    if (context_error != cudaSuccess)
        code = context_error;
    if (code != cudaSuccess && code != cudaErrorNotReady)
        last_error = code;
    return code;
}

cudaError_t fake_answer_locked(cudaError_t code)
{
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(code);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

/* The answer to a call that takes something, unless code says more. With the lock held. */
cudaError_t fake_answer_take(cudaError_t code)
{
    int fails = fake_cuda.failing_take > 0 && --fake_cuda.failing_take == 0;
    return fake_answer(code == cudaSuccess && fails ? cudaErrorMemoryAllocation : code);
}

cudaError_t fake_lose_context(void)
{
    pthread_mutex_lock(&fake_lock);
    context_error = cudaErrorIllegalAddress;
    pthread_mutex_unlock(&fake_lock);
    return cudaErrorIllegalAddress;
}

void fake_forget_errors(void)
{
    last_error = context_error = cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    code = context_error != cudaSuccess ? context_error : last_error;
    last_error = cudaSuccess;
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaPeekAtLastError(void)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    code = context_error != cudaSuccess ? context_error : last_error;
    pthread_mutex_unlock(&fake_lock);
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
    double latest = fake_default_stream.now_us;
    int i;
    for (i = 0; i < MOST_STREAMS; i++)
        if (streams[i] && streams[i]->now_us > latest)
            latest = streams[i]->now_us;
    return latest;
}

/* Of the stream's thread that executes a host function: where its clock is, and where the function
 * says that it ends; below 0: nowhere. */
static _Thread_local double host_began_us, host_ends_us;

double fake_host_began_us(void)
{
    return host_began_us;
}

void fake_host_ends(double us)
{
    host_ends_us = us;
}

/* As after a moment at which all of them wait. With the lock held. */
static void align_streams(void)
{
    double latest = latest_us();
    int i;
    for (i = 0; i < MOST_STREAMS; i++)
        if (streams[i])
            streams[i]->now_us = latest;
    fake_default_stream.now_us = latest;
}

/* What the kernel that holds the device shares with the host: whether the host
 * has released it, whether it is there, whether its time ran out. On a GPU these are volatile
 * words of pinned memory, of which the thread sanitizer would tell between two threads. */
__attribute__((noinline, no_sanitize("thread"))) static void hold(const operation *op)
{
    volatile unsigned *shared = op->memory;
    static const struct timespec pause = {0, 50000};
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    held = 1;
    shared[1] = 1;
    while (!shared[0] && !shared[2]) {
        pthread_mutex_unlock(&fake_lock);
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        shared[2] = (double)(now.tv_sec - start.tv_sec) * 1e6 +
                        (double)(now.tv_nsec - start.tv_nsec) / 1e3 > op->us;
        pthread_mutex_lock(&fake_lock);
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
        pthread_cond_wait(&stream->filled, &fake_lock);
    while (is_kernel(op) && held)
        pthread_cond_wait(&executed, &fake_lock);
    if (op->kind == HOLD) {
        hold(op);
        return;
    }
    while (op->kind == WAIT && op->event->recorded < op->records)
        pthread_cond_wait(&executed, &fake_lock);
    if (op->kind == WAIT && stream->now_us < op->event->us)
        stream->now_us = op->event->us;
    if (context_error == cudaSuccess) {
        host_began_us = stream->now_us;
        host_ends_us = -1;
        pthread_mutex_unlock(&fake_lock);
        perform(op);
        pthread_mutex_lock(&fake_lock);
        if (op->kind == HOST)
            stream->now_us = host_ends_us < 0 ? latest_us() : host_ends_us;
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
    while (stream->blocking && stands_before(&fake_default_stream, op))
        pthread_cond_wait(&executed, &fake_lock);
    for (i = 0; i < MOST_STREAMS && stream == &fake_default_stream; i++)
        while (streams[i] && streams[i]->blocking && stands_before(streams[i], op))
            pthread_cond_wait(&executed, &fake_lock);
}

/* Whose clock is behind waits for the other. With the lock held. */
static void meet_blocking_streams(int before)
{
    int i;
    for (i = 0; i < MOST_STREAMS; i++) {
        if (!streams[i] || !streams[i]->blocking)
            continue;
        if (before && streams[i]->now_us > fake_default_stream.now_us)
            fake_default_stream.now_us = streams[i]->now_us;
        if (!before && fake_default_stream.now_us > streams[i]->now_us)
            streams[i]->now_us = fake_default_stream.now_us;
    }
}

static void *work(void *argument)
{
    cudaStream_t stream = (cudaStream_t)argument;
    pthread_mutex_lock(&fake_lock);
    while (!stream->ended || stream->first) {
        operation *op = stream->first;
        if (!op) {
            pthread_cond_wait(&stream->filled, &fake_lock);
            continue;
        }
        wait_for_turn(stream, op);
        if (stream == &fake_default_stream)
            meet_blocking_streams(1);
        execute(stream, op);
        if (stream == &fake_default_stream)
            meet_blocking_streams(0);
        stream->first = op->next;
        stream->count--;
        if (!stream->first)
            stream->last = &stream->first;
        if (op->event && --op->event->users == 0 && op->event->dropped)
            free(op->event);
        free(op);
        pthread_cond_broadcast(&executed);
    }
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

void fake_append(operation ***last, const operation *op)
{
    operation *copy = malloc(sizeof *copy);
    *copy = *op;
    copy->next = NULL;
    copy->number = ++operations;
    **last = copy;
    *last = &copy->next;
}

/* FAKE_QUEUE: how many operations a stream's queue holds, for which calls wait. */
static void wait_for_room(const struct CUstream_st *stream)
{
    const char *most = getenv("FAKE_QUEUE");
    while (most && stream->count >= atoi(most))
        pthread_cond_wait(&executed, &fake_lock);
}

/* With the lock held. */
void fake_queue(cudaStream_t stream, const operation *op)
{
    if (stream->capture && op->kind == WAIT) {
        stream->capture_spoilt = 1; /* for what the captured stream did not start */
        return;
    }
    if (stream->capture && op->kind == RECORD)
        return; /* no node */
    if (stream->capture) {
        fake_append(&stream->capture->last, op);
        stream->capture->count++;
        return;
    }
    wait_for_room(stream);
    if (op->kind == RECORD)
        op->event->pending++;
    if (op->event)
        op->event->users++;
    stream->count++;
    fake_append(&stream->last, op);
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
    if (!fake_default_stream.last)
        start_stream(&fake_default_stream);
    return code;
}

cudaError_t fake_enqueue(cudaStream_t stream, const operation *op)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(stream ? cudaSuccess : use_default_stream());
    if (code == cudaSuccess)
        fake_queue(stream ? stream : &fake_default_stream, op);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

/* With the lock held. */
void fake_wait_idle(void)
{
    int i;
    for (i = 0; i < MOST_STREAMS; i++)
        while (streams[i] && streams[i]->first)
            pthread_cond_wait(&executed, &fake_lock);
    while (fake_default_stream.first)
        pthread_cond_wait(&executed, &fake_lock);
}

cudaError_t cudaDeviceSynchronize(void)
{
    static const struct timespec late = {0, 5000000};
    cudaError_t code;
    if (fake_cuda.late_synchronizations > 0) {
        fake_cuda.late_synchronizations--;
        nanosleep(&late, NULL);
    }
    pthread_mutex_lock(&fake_lock);
    fake_wait_idle();
    align_streams();
    code = fake_answer(cudaSuccess);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaStream_t made = calloc(1, sizeof *made);
    cudaError_t code;
    int i = 0;
    pthread_mutex_lock(&fake_lock);
    while (i < MOST_STREAMS && streams[i])
        i++;
    code = fake_answer_take((flags != cudaStreamNonBlocking && flags != cudaStreamDefault) ||
                               i == MOST_STREAMS
                           ? cudaErrorInvalidValue
                           : fake_cuda.stream_error);
    if (code == cudaSuccess) {
        made->blocking = flags == cudaStreamDefault;
        start_stream(made);
        streams[i] = made;
        fake_objects++;
        *stream = made;
    }
    pthread_mutex_unlock(&fake_lock);
    if (code != cudaSuccess)
        free(made);
    return code;
}

/* Joins the thread, which the real one need not, so that no test leaves any behind. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    int i;
    pthread_mutex_lock(&fake_lock);
    stream->ended = 1;
    pthread_cond_signal(&stream->filled);
    pthread_mutex_unlock(&fake_lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&fake_lock);
    for (i = 0; i < MOST_STREAMS; i++)
        if (streams[i] == stream)
            streams[i] = NULL;
    fake_objects--;
    pthread_mutex_unlock(&fake_lock);
    pthread_cond_destroy(&stream->filled);
    free(stream);
    return fake_answer_locked(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    stream = stream ? stream : &fake_default_stream;
    pthread_mutex_lock(&fake_lock);
    if (stream->capture) {
        stream->capture_spoilt = 1;
        code = cudaErrorStreamCaptureUnsupported;
    }
    while (stream->first)
        pthread_cond_wait(&executed, &fake_lock);
    code = fake_answer(code);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    operation op = {.kind = WAIT, .event = event};
    pthread_mutex_lock(&fake_lock);
    op.records = event->recorded + (uint64_t)event->pending;
    pthread_mutex_unlock(&fake_lock);
    return flags ? fake_answer_locked(cudaErrorInvalidValue) : fake_enqueue(stream, &op);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    operation op = {.kind = HOST, .function = function, .memory = argument};
    return fake_enqueue(stream, &op);
}

/* ---- events ---- */

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer_take(flags & ~(unsigned)cudaEventDisableTiming ? cudaErrorInvalidValue
                                                                 : cudaSuccess);
    if (code == cudaSuccess) {
        *event = calloc(1, sizeof **event);
        fake_objects++;
    }
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    int is_used;
    pthread_mutex_lock(&fake_lock);
    fake_objects--;
    is_used = event->dropped = event->users > 0;
    pthread_mutex_unlock(&fake_lock);
    if (!is_used)
        free(event);
    return fake_answer_locked(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    operation op = {.kind = RECORD, .event = event, .us = FAKE_EVENT_US};
    return fake_enqueue(stream, &op);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(event->pending > 0 ? cudaErrorNotReady : cudaSuccess);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    while (event->pending > 0)
        pthread_cond_wait(&executed, &fake_lock);
    code = fake_answer(cudaSuccess);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(start->pending > 0 || stop->pending > 0 ? cudaErrorNotReady : cudaSuccess);
    *ms = (float)((stop->us - start->us) / 1e3);
    pthread_mutex_unlock(&fake_lock);
    return code;
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
    return fake_enqueue(stream, &op);
}

void fake_launch_error(cudaError_t code)
{
    fake_answer_locked(code);
}

cudaError_t fake_launch_crash(cudaStream_t stream)
{
    operation op = {.kind = CRASH};
    return fake_enqueue(stream, &op);
}

cudaError_t fake_launch_hang(cudaStream_t stream)
{
    operation op = {.kind = HANG};
    return fake_enqueue(stream, &op);
}

/* 1 TB/s, and 2 us for starting. */
cudaError_t fake_launch_write(cudaStream_t stream, void *memory, int byte, size_t bytes)
{
    operation op = {.kind = WRITE, .memory = memory, .byte = byte, .bytes = bytes};
    op.us = 2 + (double)bytes / 1e6;
    return fake_enqueue(stream, &op);
}

double fake_executed_us(void)
{
    double us;
    pthread_mutex_lock(&fake_lock);
    us = executed_us;
    pthread_mutex_unlock(&fake_lock);
    return us;
}
