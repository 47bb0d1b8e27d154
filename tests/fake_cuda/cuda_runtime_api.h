/* A substitute for the CUDA runtime, of our own making: the part that
 * gpubench.h uses, so that its CUDA path runs, and fails, on a machine without
 * a GPU. Declarations follow the runtime's documented C API; values that
 * callers see (error numbers) are the documented ones.
 *
 * Device time is simulated: each stream has a clock that its operations
 * advance, and events record it. Real threads execute the streams, so gates,
 * synchronization and hangs are real. */
#ifndef FAKE_CUDA_RUNTIME_API_H
#define FAKE_CUDA_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CUDART_VERSION
#define CUDART_VERSION 13000
#endif
#define CUDART_CB

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorProfilerAlreadyStarted = 7,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorPeerAccessNotEnabled = 705,
    cudaErrorIllegalAddress = 700,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureImplicit = 906
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef void(CUDART_CB *cudaHostFn_t)(void *argument);

typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor;
};

enum cudaDeviceAttr {
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDefault = 4
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess = 0,
    cudaDriverEntryPointSymbolNotFound = 1
};
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaHostAllocDefault 0x00
#define cudaEventDisableTiming 0x02
#define cudaEnableDefault 0x0

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t code);
const char *cudaGetErrorString(cudaError_t code);

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaMemcpy(void *destination, const void *source, size_t bytes,
                       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source,
                                int source_device, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemset(void *memory, int byte, size_t bytes);
cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result);

/* ---- what the host's half of a compiled kernel calls: see launches.c ---- */

typedef struct CUkern_st *cudaKernel_t;
typedef struct dim3 {
    unsigned x, y, z;
} dim3;

cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                 int threads, size_t shared_bytes,
                                                                 unsigned flags);
cudaError_t cudaMemcpyFromSymbol(void *destination, const void *symbol, size_t bytes, size_t offset,
                                 int kind);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void **arguments,
                               size_t shared_bytes, cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const void *configuration, const void *function, void **arguments);
unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, size_t shared_bytes,
                                     cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *blocks, dim3 *threads, size_t *shared_bytes,
                                       void *stream);
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *name, int most_threads, void *thread, void *block,
                            dim3 *threads, dim3 *blocks, int *warp_size);
void __cudaRegisterVar(void **handle, char *host_variable, char *device_address, const char *name,
                       int is_external, size_t bytes, int is_constant, int is_global);

/* ---- what only the tests use ---- */

/* Simulated costs in us: what two events cost, and an empty kernel on top. */
#define FAKE_EVENT_US 1.25
#define FAKE_EMPTY_KERNEL_US 1.85

/* What goes wrong. All zero: nothing; two devices of 1 GiB. */
struct fake_cuda {
    cudaError_t count_error;       /* of cudaGetDeviceCount */
    cudaError_t properties_error;  /* of cudaGetDeviceProperties */
    cudaError_t stream_error;      /* of cudaStreamCreateWithFlags */
    cudaError_t malloc_error;      /* of cudaMalloc, instead of memory */
    cudaError_t capture_error;     /* of cudaStreamBeginCapture */
    int no_devices;                /* the count is 0, without an error */
    int no_driver_functions;       /* no entry point is found */
    int one_device;                /* the count is 1 */
    int three_devices;             /* the count is 3; else it is 2 */
    int first_device;              /* which one of its machine's device 0 is */
    int late_synchronizations;     /* so many cudaDeviceSynchronize return 5 ms late */
    int no_peer_access;            /* cudaDeviceCanAccessPeer says no */
    int no_access_of_ends;         /* it does of the first of three devices and the last */
    int failing_take;              /* the n-th call from now that takes memory, a stream, an
                                      event or peer access: cudaErrorMemoryAllocation */
};
extern struct fake_cuda fake_cuda;

/* Launches a kernel that takes us of simulated time, and in real time does not
 * end before real_ms (below 1000) after its launch. The default stream (NULL) is in
 * order with all blocking streams, as the real one is. */
cudaError_t fake_launch(cudaStream_t stream, double us, int real_ms);

/* For a host function that waits for other streams' work: where its stream's clock is; and where it
 * is when the function returns, which else is later than all streams'. */
double fake_host_began_us(void);
void fake_host_ends(double us);

/* A launch that is refused: cudaGetLastError will tell, nothing else. */
void fake_launch_error(cudaError_t code);

/* Launches a kernel that destroys the context. */
cudaError_t fake_launch_crash(cudaStream_t stream);

/* Launches a kernel that never ends. */
cudaError_t fake_launch_hang(cudaStream_t stream);

/* Launches a kernel that writes bytes times byte to memory. */
cudaError_t fake_launch_write(cudaStream_t stream, void *memory, int byte, size_t bytes);

int fake_current_device(void);
int fake_device_of(const void *memory); /* that it was taken from; -1: the host */
int fake_peer_accesses(void);           /* that are enabled now: 2 is both ways */
size_t fake_used_bytes(void);   /* device memory in use */
int fake_live_objects(void);    /* streams, events, graphs, modules, blocks of memory */
double fake_executed_us(void);  /* simulated time of all that was executed */
uint64_t fake_release_threshold(void); /* of the memory pool; 0 at the start */

/* As after the start of a process: no error, device 0, nothing scripted. */
void fake_start(void);

#ifdef __cplusplus
}
#endif
#endif
