/* See cuda_runtime_api.h: graphs, and the driver's functions behind the framework's own
 * kernels. */
#define _GNU_SOURCE
#include "faulty.h"
#include "inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- graphs ---- */

static _Thread_local int captures; /* of this thread, that have begun and not ended */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaError_t code = stream ? fake_cuda.capture_error : cudaErrorStreamCaptureUnsupported;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(mode != cudaStreamCaptureModeThreadLocal ? cudaErrorInvalidValue : code);
    if (code == cudaSuccess) {
        stream->capture = calloc(1, sizeof *stream->capture);
        stream->capture->last = &stream->capture->first;
        stream->capture_spoilt = 0;
        captures++;
        fake_objects++;
    }
    pthread_mutex_unlock(&fake_lock);
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
    fake_objects--;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t code;
    *graph = NULL;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(!stream->capture          ? cudaErrorInvalidValue
                  : stream->capture_spoilt ? cudaErrorStreamCaptureInvalidated
                                           : cudaSuccess);
    if (code == cudaSuccess)
        *graph = stream->capture;
    else if (stream->capture)
        drop_graph(stream->capture);
    captures -= stream->capture != NULL;
    stream->capture = NULL;
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    *count = graph->count;
    return fake_answer_locked(nodes ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags)
{
    cudaError_t code;
    const operation *op;
    operation **last;
    *executable = NULL;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(captures > 0 ? cudaErrorStreamCaptureUnsupported
                       : flags      ? cudaErrorInvalidValue
                                    : cudaSuccess);
    if (code == cudaSuccess) {
        *executable = calloc(1, sizeof **executable);
        last = &(*executable)->first;
        for (op = graph->first; op; op = op->next)
            fake_append(&last, op);
        fake_objects++;
    }
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

/* 0 none, 1 active, 2 invalidated, as the runtime numbers them. */
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
    pthread_mutex_lock(&fake_lock);
    *status = !stream || !stream->capture ? 0 : stream->capture_spoilt ? 2 : 1;
    pthread_mutex_unlock(&fake_lock);
    return fake_answer_locked(cudaSuccess);
}

/* FAKE_GRAPHS: how many graphs a stream's queue holds. Behind a host function, which may wait for
 * the host that enqueues, CUDA would wait for room for ever; here the launch fails. With the lock
 * held. */
static int is_full(cudaStream_t stream)
{
    const char *most = getenv("FAKE_GRAPHS");
    int graphs = 0;
    const operation *op;
    for (op = stream->first; op; op = op->next)
        graphs += op->ends_graph;
    return most && stream->first && stream->first->kind == HOST && graphs >= atoi(most);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    cudaError_t code;
    const operation *op;
    if (!stream)
        stream = &fake_default_stream;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(is_full(stream) ? cudaErrorNotReady : cudaSuccess);
    for (op = executable->first; op && code == cudaSuccess; op = op->next) {
        operation last = *op;
        last.ends_graph = !op->next;
        fake_queue(stream, &last);
    }
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    pthread_mutex_lock(&fake_lock);
    drop_graph(graph);
    pthread_mutex_unlock(&fake_lock);
    return fake_answer_locked(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    pthread_mutex_lock(&fake_lock);
    fake_wait_idle();
    free_operations(executable->first);
    free(executable);
    fake_objects--;
    pthread_mutex_unlock(&fake_lock);
    return fake_answer_locked(cudaSuccess);
}

/* ---- the driver's functions behind the framework's own kernels ---- */

static const char *const kernel_names[] = {"gpubench_empty", "gpubench_sweep", "gpubench_discard",
                                           "gpubench_stamp", "gpubench_hold"};
enum { KERNELS = sizeof kernel_names / sizeof kernel_names[0] };
static char kernels[KERNELS]; /* their addresses stand for them */

static int fails(const char *call)
{
    return faulty_call ? faulty_call(call) : 0;
}

static int load_module(void **module, const void *image)
{
    int i, found = 0, code = fails("cuModuleLoadData");
    if (code != 0)
        return code;
    pthread_mutex_lock(&fake_lock);
    *module = (void *)&fake_objects;
    fake_objects++;
    pthread_mutex_unlock(&fake_lock);
    for (i = 0; i < KERNELS; i++)
        found += strstr((const char *)image, kernel_names[i]) != NULL;
    return found ? 0 : 218; /* invalid PTX */
}

static int get_function(void **function, void *module, const char *name)
{
    int i, code = fails("cuModuleGetFunction");
    *function = NULL;
    if (code != 0)
        return code;
    for (i = 0; i < KERNELS && module; i++)
        if (!strcmp(name, kernel_names[i]))
            *function = &kernels[i];
    return *function ? 0 : 500; /* not found */
}

static int unload_module(void *module)
{
    pthread_mutex_lock(&fake_lock);
    fake_objects -= module == (void *)&fake_objects;
    pthread_mutex_unlock(&fake_lock);
    return fails("cuModuleUnload");
}

/* The sweep reads 3 TB/s; the kernel that holds the device must fill it. */
static int launch_kernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, cudaStream_t stream, void **arguments, void **extra)
{
    operation op = {.kind = HOLD};
    uint64_t number = 0;
    int code = fails("cuLaunchKernel");
    if (code != 0)
        return code;
    if (!function || !grid_x || grid_y != 1 || grid_z != 1 || !block_x || block_y != 1 ||
        block_z != 1 || shared_bytes || extra)
        return cudaErrorInvalidValue;
    if (function == &kernels[0])
        return arguments ? cudaErrorInvalidValue
                         : (int)fake_launch(stream, FAKE_EMPTY_KERNEL_US, 0);
    memcpy(&op.memory, arguments[0], sizeof op.memory);
    op.kind = function == &kernels[3] ? STAMP : HOLD;
    if (op.kind == STAMP)
        return (int)fake_enqueue(stream, &op);
    memcpy(&number, arguments[1], sizeof number);
    if (function == &kernels[1]) /* 16 bytes each */
        return (int)fake_launch(stream, 2 + (double)number * 16 / 3e6, 0);
    if (function == &kernels[2])
        return (int)fake_launch(stream, 2 + (double)number / 1e5, 0);
    if (grid_x * block_x != (fake_device ? 108 : 132) * 2048)
        return cudaErrorInvalidConfiguration;
    op.us = (double)number / 1e3;
    return (int)fake_enqueue(stream, &op);
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
    return fake_answer_locked(cudaSuccess);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    (void)version;
    return cudaGetDriverEntryPoint(symbol, function, flags, result);
}
