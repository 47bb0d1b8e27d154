/* Every call that gpubench.h and kernels/ make of the CUDA runtime, the driver and NVML, between
 * the program and the substitutes for them, so that fault.h can make any of them fail. The
 * program is linked with --wrap for each of the calls here. */
#include "cuda_runtime_api.h"
#include "fake_cuda/faulty.h"
#include "faults/fault.h"

/* What a call that fails does: the error is remembered as the runtime does, or the
 * context is gone. What gives something back, or waits, does so all the same. */
static cudaError_t fail_with(cudaError_t code)
{
    if (fault_is_loss())
        return fake_lose_context();
    fake_launch_error(code);
    return code;
}

#define CALL(name, code, parameters, arguments)                                            \
    cudaError_t __real_##name parameters;                                                  \
    cudaError_t __wrap_##name parameters;                                                  \
    cudaError_t __wrap_##name parameters                                                   \
    {                                                                                      \
        return fault_now(#name) ? fail_with(code) : __real_##name arguments;               \
    }

#define DONE_CALL(name, code, parameters, arguments)                                       \
    cudaError_t __real_##name parameters;                                                  \
    cudaError_t __wrap_##name parameters;                                                  \
    cudaError_t __wrap_##name parameters                                                   \
    {                                                                                      \
        int fails = fault_now(#name);                                                      \
        cudaError_t done = __real_##name arguments;                                        \
        return fails ? fail_with(code) : done;                                             \
    }

#define STARVED cudaErrorMemoryAllocation
#define WRONG cudaErrorInvalidValue

CALL(cudaGetDeviceCount, cudaErrorNoDevice, (int *count), (count))
CALL(cudaSetDevice, cudaErrorInvalidDevice, (int device), (device))
CALL(cudaGetDevice, WRONG, (int *device), (device))
CALL(cudaGetDeviceProperties, WRONG, (struct cudaDeviceProp *properties, int device),
     (properties, device))
CALL(cudaDeviceGetAttribute, WRONG, (int *value, enum cudaDeviceAttr attribute, int device),
     (value, attribute, device))
CALL(cudaDeviceGetPCIBusId, WRONG, (char *text, int bytes, int device), (text, bytes, device))
CALL(cudaDeviceGetMemPool, WRONG, (cudaMemPool_t *pool, int device), (pool, device))
CALL(cudaMemPoolGetAttribute, WRONG,
     (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value), (pool, attribute, value))
CALL(cudaMemPoolSetAttribute, WRONG,
     (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value), (pool, attribute, value))
CALL(cudaDeviceCanAccessPeer, WRONG, (int *can, int device, int peer), (can, device, peer))
CALL(cudaDeviceEnablePeerAccess, STARVED, (int peer, unsigned flags), (peer, flags))
DONE_CALL(cudaDeviceDisablePeerAccess, WRONG, (int peer), (peer))
CALL(cudaRuntimeGetVersion, WRONG, (int *version), (version))
DONE_CALL(cudaDeviceSynchronize, WRONG, (void), ())
CALL(cudaMalloc, STARVED, (void **memory, size_t bytes), (memory, bytes))
DONE_CALL(cudaFree, WRONG, (void *memory), (memory))
CALL(cudaHostAlloc, STARVED, (void **memory, size_t bytes, unsigned flags),
     (memory, bytes, flags))
DONE_CALL(cudaFreeHost, WRONG, (void *memory), (memory))
CALL(cudaMemGetInfo, WRONG, (size_t *available, size_t *total), (available, total))
CALL(cudaMemcpy, WRONG,
     (void *destination, const void *source, size_t bytes, enum cudaMemcpyKind kind),
     (destination, source, bytes, kind))
CALL(cudaMemcpyAsync, WRONG,
     (void *destination, const void *source, size_t bytes, enum cudaMemcpyKind kind,
      cudaStream_t stream), (destination, source, bytes, kind, stream))
CALL(cudaMemcpyPeerAsync, WRONG,
     (void *destination, int to, const void *source, int from, size_t bytes, cudaStream_t stream),
     (destination, to, source, from, bytes, stream))
CALL(cudaMemset, WRONG, (void *memory, int byte, size_t bytes), (memory, byte, bytes))
CALL(cudaMemsetAsync, WRONG, (void *memory, int byte, size_t bytes, cudaStream_t stream),
     (memory, byte, bytes, stream))
CALL(cudaStreamCreateWithFlags, STARVED, (cudaStream_t *stream, unsigned flags), (stream, flags))
DONE_CALL(cudaStreamDestroy, WRONG, (cudaStream_t stream), (stream))
DONE_CALL(cudaStreamSynchronize, WRONG, (cudaStream_t stream), (stream))
CALL(cudaStreamWaitEvent, WRONG, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
     (stream, event, flags))
CALL(cudaLaunchHostFunc, WRONG, (cudaStream_t stream, cudaHostFn_t function, void *argument),
     (stream, function, argument))
CALL(cudaEventCreate, STARVED, (cudaEvent_t *event), (event))
CALL(cudaEventCreateWithFlags, STARVED, (cudaEvent_t *event, unsigned flags), (event, flags))
DONE_CALL(cudaEventDestroy, WRONG, (cudaEvent_t event), (event))
CALL(cudaEventRecord, WRONG, (cudaEvent_t event, cudaStream_t stream), (event, stream))
CALL(cudaEventQuery, WRONG, (cudaEvent_t event), (event))
DONE_CALL(cudaEventSynchronize, WRONG, (cudaEvent_t event), (event))
CALL(cudaEventElapsedTime, WRONG, (float *ms, cudaEvent_t start, cudaEvent_t stop),
     (ms, start, stop))
CALL(cudaStreamBeginCapture, WRONG, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
     (stream, mode))
CALL(cudaGraphGetNodes, WRONG, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
     (graph, nodes, count))
CALL(cudaGraphInstantiateWithFlags, STARVED,
     (cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags),
     (executable, graph, flags))
CALL(cudaGraphLaunch, WRONG, (cudaGraphExec_t executable, cudaStream_t stream),
     (executable, stream))
DONE_CALL(cudaGraphDestroy, WRONG, (cudaGraph_t graph), (graph))
DONE_CALL(cudaGraphExecDestroy, WRONG, (cudaGraphExec_t executable), (executable))
CALL(cudaGetDriverEntryPointByVersion, WRONG,
     (const char *symbol, void **function, unsigned version, unsigned long long flags,
      enum cudaDriverEntryPointQueryResult *result), (symbol, function, version, flags, result))

CALL(cudaFuncSetAttribute, WRONG, (const void *function, int attribute, int value),
     (function, attribute, value))
CALL(__cudaLaunchKernel, cudaErrorInvalidConfiguration,
     (cudaKernel_t kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared_bytes,
      cudaStream_t stream), (kernel, blocks, threads, arguments, shared_bytes, stream))
CALL(cudaLaunchKernelExC, cudaErrorInvalidConfiguration,
     (const void *configuration, const void *function, void **arguments),
     (configuration, function, arguments))

/* The capture ends, but gives no graph. */
cudaError_t __real_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    int fails = fault_now("cudaStreamEndCapture");
    cudaError_t done = __real_cudaStreamEndCapture(stream, graph);
    if (fails && *graph)
        (void)__real_cudaGraphDestroy(*graph);
    if (fails)
        *graph = NULL;
    return fails ? fail_with(cudaErrorStreamCaptureInvalidated) : done;
}

/* The driver's functions are found at run time, as NVML's are: these ask. */
int faulty_call(const char *call)
{
    if (!fault_now(call))
        return 0;
    return fault_is_loss() ? (int)fake_lose_context() : 999; /* an unknown error, of both */
}

/* What a lost context held cannot be given back; what is left otherwise the program says.
 * What NCCL's substitute was asked for it keeps, since a graph may hold it, and what that is
 * of. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:cudaEventCreate\nleak:take_block\nleak:gpb_gate_make\nleak:cudaStreamCreate\n"
           "leak:cudaGraphInstantiate\nleak:cudaStreamBeginCapture\nleak:fake_append\nleak:add_call\n"
           "leak:ncclCommInit\n";
}
