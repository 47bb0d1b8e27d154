/*
 * launches.cu - every way to give work to a GPU that the framework promises to time
 * or to notice. A healthy kind stays healthy in each mode that is asked for: about
 * its true time, no flag that says the host was in the way. Work that escapes the
 * stream that the case was given fails, is flagged, or takes about its true time.
 * Prints TAP lines; tests/gpu/run.sh runs it with --mode all.
 *
 * Work is a kernel that watches the clock, so that its true time is known.
 */
#define GPUBENCH_IMPLEMENTATION
#include "../../gpubench.h"

/* Our switches name every value; a function in the library's header does not. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
#include <cublas_v2.h>
#pragma GCC diagnostic pop

#include <chrono>
#include <cooperative_groups.h>
#include <map>

namespace cg = cooperative_groups;

enum { SHORT_US = 5, WORK_US = 200, ESCAPED_US = 100, MOST_STREAMS = 8, PRODUCT_SIZE = 2048 };

static const size_t MIB = 1 << 20;
static const size_t COPIED_BYTES = 16 * MIB;

/* What a case has to end as. */
enum expectation {
    HEALTHY,    /* ok, and about its true time */
    HOST_BOUND, /* the same; that enqueueing takes longer than the work may be said */
    ESCAPES,    /* failed, flagged, or at least about its true time */
    NOTHING,    /* failed */
    UNHARMED    /* ok or failed: the case beside it is the one to look at */
};

struct work;

struct scenario {
    const char *name;
    int (*setup)(work *, gpubench *);
    int (*run)(work *, gpubench_stream);
    expectation expected;
    unsigned amount; /* of what run does: streams, MiB, us, ... */
    double true_us;  /* 0: unknown; AS_A_COPY: measured by the case's setup */
    double most_us;  /* 0: half as long again as the true time, and 100 us */
    bool with_reset;
};

struct work {
    const scenario *what;
    cudaStream_t streams[MOST_STREAMS];
    cudaEvent_t forked, joined[MOST_STREAMS];
    cudaGraphExec_t graph;
    cublasHandle_t blas;
    float *factors, *product;
    void *device, *host, *managed, *workspace;
    std::map<cudaStream_t, void *> seen;
    double copy_us;
    int home;
};

/* ==== kernels ============================================================= */

static __device__ unsigned long long now_ns()
{
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static __device__ void wait_us(unsigned us)
{
    unsigned long long start = now_ns();
    while (now_ns() - start < us * 1000ull) {}
}

__global__ void spin_kernel(unsigned us) { wait_us(us); }

__global__ void touch_kernel(char *memory, size_t bytes, unsigned us)
{
    const size_t stride = 65536; /* some bytes of every page */
    for (size_t i = threadIdx.x * stride; i < bytes; i += blockDim.x * stride) memory[i] = 1;
    wait_us(us);
}

/* Clusters and programmatic launches came with compute capability 9.0. */
__global__ void cluster_kernel(unsigned us)
{
#if __CUDA_ARCH__ >= 900
    cg::this_cluster().sync();
#endif
    wait_us(us);
}

__global__ void dependent_kernel(unsigned us)
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    wait_us(us);
}

__global__ void cooperative_kernel(unsigned us)
{
    cg::this_grid().sync();
    wait_us(us);
}

static int spin(cudaStream_t stream, unsigned us)
{
    spin_kernel<<<1, 32, 0, stream>>>(us);
    return cudaGetLastError();
}

/* ==== healthy launches ==================================================== */

static int setup_hopper(work *, gpubench *bench)
{
    return gpubench_compute_capability(bench) >= 90 ? GPUBENCH_OK : GPUBENCH_UNSUPPORTED;
}

static int launch_with(cudaLaunchAttribute *attribute, void (*kernel)(unsigned), unsigned blocks,
                       unsigned us, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, us);
}

static int run_clusters(work *, gpubench_stream stream)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    return launch_with(&attribute, cluster_kernel, 8, WORK_US, stream);
}

static int run_programmatic(work *, gpubench_stream stream)
{
    cudaLaunchAttribute attribute = {};
    int code = spin(stream, WORK_US / 2);
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    return code ? code : launch_with(&attribute, dependent_kernel, 1, WORK_US / 2, stream);
}

static int run_cooperative(work *, gpubench_stream stream)
{
    unsigned us = WORK_US;
    void *arguments[] = {&us};
    return cudaLaunchCooperativeKernel(reinterpret_cast<void *>(cooperative_kernel), dim3(8),
                                       dim3(32), arguments, 0, stream);
}

static void CUDART_CB do_nothing(void *) {}

static int run_host_function(work *, gpubench_stream stream)
{
    int code = spin(stream, WORK_US / 2);
    if (code == 0) code = cudaLaunchHostFunc(stream, do_nothing, nullptr);
    return code ? code : spin(stream, WORK_US / 2);
}

static int open_streams(work *w, unsigned count, unsigned flags)
{
    int code = cudaEventCreateWithFlags(&w->forked, cudaEventDisableTiming);
    for (unsigned i = 0; i < count && code == 0; i++) {
        code = cudaStreamCreateWithFlags(&w->streams[i], flags);
        if (code == 0) code = cudaEventCreateWithFlags(&w->joined[i], cudaEventDisableTiming);
    }
    return code;
}

static int setup_stream(work *w, gpubench *) { return open_streams(w, 1, cudaStreamNonBlocking); }

static int setup_blocking_stream(work *w, gpubench *)
{
    return open_streams(w, 1, cudaStreamDefault);
}

static int setup_streams(work *w, gpubench *)
{
    return open_streams(w, w->what->amount, cudaStreamNonBlocking);
}

/* Two kernels, captured on a stream of the case's own. */
static int capture(work *w)
{
    cudaGraph_t graph = nullptr;
    int code = cudaStreamBeginCapture(w->streams[0], cudaStreamCaptureModeThreadLocal), ended;
    if (code != 0) return code;
    code = spin(w->streams[0], WORK_US / 2);
    if (code == 0) code = spin(w->streams[0], WORK_US / 2);
    ended = cudaStreamEndCapture(w->streams[0], &graph);
    if (code == 0) code = ended;
    if (code == 0) code = cudaGraphInstantiateWithFlags(&w->graph, graph, 0);
    if (graph) (void)cudaGraphDestroy(graph);
    return code;
}

static int drop_graph(work *w)
{
    cudaGraphExec_t graph = w->graph;
    w->graph = nullptr;
    return graph ? cudaGraphExecDestroy(graph) : cudaSuccess;
}

static int setup_own_graph(work *w, gpubench *bench)
{
    int code = setup_stream(w, bench);
    return code ? code : capture(w);
}

static int run_own_graph(work *w, gpubench_stream stream)
{
    return cudaGraphLaunch(w->graph, stream);
}

static int run_own_capture(work *w, gpubench_stream stream)
{
    int code = capture(w), dropped;
    if (code == 0) code = cudaGraphLaunch(w->graph, stream);
    dropped = drop_graph(w);
    return code ? code : dropped;
}

static int setup_managed(work *w, gpubench *) { return cudaMallocManaged(&w->managed, MIB); }

static int run_managed(work *w, gpubench_stream stream)
{
    touch_kernel<<<1, 256, 0, stream>>>(static_cast<char *>(w->managed), MIB, WORK_US);
    return cudaGetLastError();
}

static int run_fork_join(work *w, gpubench_stream stream)
{
    int code = cudaEventRecord(w->forked, stream);
    for (unsigned i = 0; i < w->what->amount && code == 0; i++) {
        code = cudaStreamWaitEvent(w->streams[i], w->forked, 0);
        if (code == 0) code = spin(w->streams[i], WORK_US);
        if (code == 0) code = cudaEventRecord(w->joined[i], w->streams[i]);
    }
    for (unsigned i = 0; i < w->what->amount && code == 0; i++)
        code = cudaStreamWaitEvent(stream, w->joined[i], 0);
    return code;
}

static int setup_blas(work *w, gpubench *bench)
{
    const size_t bytes = sizeof(float) * PRODUCT_SIZE * PRODUCT_SIZE;
    w->factors = static_cast<float *>(gpubench_alloc(bench, bytes, GPUBENCH_DEVICE));
    w->product = static_cast<float *>(gpubench_alloc(bench, bytes, GPUBENCH_DEVICE));
    if (!w->factors || !w->product) return GPUBENCH_OOM;
    if (w->what->amount) {
        w->workspace = gpubench_alloc(bench, w->what->amount * MIB, GPUBENCH_DEVICE);
        if (!w->workspace) return GPUBENCH_OOM;
    }
    if (cublasCreate(&w->blas) != CUBLAS_STATUS_SUCCESS)
        return gpubench_fail(bench, GPUBENCH_FAILED, "cublasCreate");
    return cudaMemset(w->factors, 0x3c, bytes);
}

/* Setting the stream takes a workspace away, so that it is set each time. */
static int run_blas(work *w, gpubench_stream stream)
{
    const float one = 1, zero = 0;
    const int n = PRODUCT_SIZE;
    cublasStatus_t code = cublasSetStream(w->blas, stream);
    if (code == CUBLAS_STATUS_SUCCESS && w->workspace)
        code = cublasSetWorkspace(w->blas, w->workspace, w->what->amount * MIB);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = cublasSgemm(w->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, w->factors, n,
                           w->factors, n, &zero, w->product, n);
    return code == CUBLAS_STATUS_SUCCESS ? GPUBENCH_OK : GPUBENCH_FAILED;
}

static int run_many(work *w, gpubench_stream stream)
{
    int code = 0;
    for (unsigned i = 0; i < w->what->amount && code == 0; i++) code = spin(stream, SHORT_US);
    return code;
}

static int setup_pool(work *, gpubench *)
{
    int device = 0, has_pools = 0, code = cudaGetDevice(&device);
    if (code == 0)
        code = cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, device);
    return code == 0 && !has_pools ? GPUBENCH_UNSUPPORTED : code;
}

static int run_pool(work *w, gpubench_stream stream)
{
    const size_t bytes = w->what->amount * MIB;
    void *memory = nullptr;
    int code = cudaMallocAsync(&memory, bytes, stream);
    if (code != 0) return code;
    touch_kernel<<<1, 256, 0, stream>>>(static_cast<char *>(memory), bytes, WORK_US);
    code = cudaGetLastError();
    return code ? code : cudaFreeAsync(memory, stream);
}

/* What libraries do that keep something for each stream that they have met. */
enum { ALLOCATE, ALLOCATE_PINNED, SYNCHRONIZE };

static int run_once_per_stream(work *w, gpubench_stream stream)
{
    if (!w->seen.count(stream)) {
        void *memory = nullptr;
        int code = w->what->amount == ALLOCATE          ? cudaMalloc(&memory, 32 * MIB)
                   : w->what->amount == ALLOCATE_PINNED ? cudaHostAlloc(&memory, MIB, 0)
                                                        : cudaStreamSynchronize(stream);
        if (code != 0) return code;
        w->seen[stream] = memory;
    }
    return spin(stream, WORK_US);
}

static int setup_named_default(work *, gpubench *bench)
{
    return gpubench_use_stream(bench, nullptr);
}

static int setup_named_stream(work *w, gpubench *bench)
{
    int code = setup_stream(w, bench);
    return code ? code : gpubench_use_stream(bench, w->streams[0]);
}

static int setup_named_blocking_stream(work *w, gpubench *bench)
{
    int code = setup_blocking_stream(w, bench);
    return code ? code : gpubench_use_stream(bench, w->streams[0]);
}

/* As launches stand in code that knows of no stream. */
static int run_on_default_stream(work *, gpubench_stream)
{
    spin_kernel<<<1, 32>>>(WORK_US);
    return cudaGetLastError();
}

static int run_on_own_stream(work *w, gpubench_stream) { return spin(w->streams[0], WORK_US); }

/* ==== work that escapes =================================================== */

/* What one copy takes, as the host sees it: the least of a few. */
static int time_copy(work *w)
{
    int code = 0;
    for (int i = 0; i < 5 && code == 0; i++) {
        const auto start = std::chrono::steady_clock::now();
        double us;
        code = cudaMemcpy(w->device, w->host, COPIED_BYTES, cudaMemcpyHostToDevice);
        us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                 .count();
        w->copy_us = i == 0 || us < w->copy_us ? us : w->copy_us;
    }
    return code;
}

static int setup_copies_of(work *w, gpubench *bench, int host_memory)
{
    w->device = gpubench_alloc(bench, COPIED_BYTES, GPUBENCH_DEVICE);
    w->host = gpubench_alloc(bench, COPIED_BYTES, host_memory);
    if (!w->device || !w->host) return GPUBENCH_OOM;
    memset(w->host, 1, COPIED_BYTES);
    return time_copy(w);
}

static int setup_copies(work *w, gpubench *bench)
{
    return setup_copies_of(w, bench, GPUBENCH_PAGEABLE);
}

static int setup_stream_and_copies(work *w, gpubench *bench)
{
    int code = setup_stream(w, bench);
    return code ? code : setup_copies_of(w, bench, GPUBENCH_PINNED);
}

static int run_copy_then_kernel(work *w, gpubench_stream stream)
{
    int code = cudaMemcpy(w->device, w->host, COPIED_BYTES, cudaMemcpyHostToDevice);
    return code ? code : spin(stream, SHORT_US);
}

static int run_kernel_then_copy(work *w, gpubench_stream stream)
{
    int code = spin(stream, SHORT_US);
    return code ? code : cudaMemcpy(w->host, w->device, COPIED_BYTES, cudaMemcpyDeviceToHost);
}

static int run_default_stream(work *, gpubench_stream stream)
{
    int code = spin(cudaStreamLegacy, ESCAPED_US);
    return code ? code : spin(stream, SHORT_US);
}

static int run_default_stream_waited(work *, gpubench_stream stream)
{
    int code = spin(cudaStreamLegacy, ESCAPED_US);
    if (code == 0) code = cudaStreamSynchronize(cudaStreamLegacy);
    return code ? code : spin(stream, SHORT_US);
}

static int run_own_stream_waited(work *w, gpubench_stream stream)
{
    int code = spin(w->streams[0], ESCAPED_US);
    if (code == 0) code = cudaStreamSynchronize(w->streams[0]);
    return code ? code : spin(stream, SHORT_US);
}

/* By the copy engine, which goes on where no kernel can start. */
static int run_own_copy_waited(work *w, gpubench_stream stream)
{
    int code = cudaMemcpyAsync(w->device, w->host, COPIED_BYTES, cudaMemcpyHostToDevice,
                               w->streams[0]);
    if (code == 0) code = cudaStreamSynchronize(w->streams[0]);
    return code ? code : spin(stream, SHORT_US);
}

static int run_copy_joined_not_forked(work *w, gpubench_stream stream)
{
    int code = cudaMemcpyAsync(w->device, w->host, COPIED_BYTES, cudaMemcpyHostToDevice,
                               w->streams[0]);
    if (code == 0) code = cudaEventRecord(w->joined[0], w->streams[0]);
    if (code == 0) code = cudaStreamWaitEvent(stream, w->joined[0], 0);
    return code ? code : spin(stream, SHORT_US);
}

static int run_joined_not_forked(work *w, gpubench_stream stream)
{
    int code = spin(w->streams[0], w->what->amount);
    if (code == 0) code = cudaEventRecord(w->joined[0], w->streams[0]);
    if (code == 0) code = cudaStreamWaitEvent(stream, w->joined[0], 0);
    return code ? code : spin(stream, 0);
}

static int run_never_joined(work *w, gpubench_stream stream)
{
    int code = spin(w->streams[0], w->what->amount);
    return code ? code : spin(stream, 0);
}

static int reset_nothing(void *, gpubench_stream) { return 0; }

static int run_event_record(work *w, gpubench_stream stream)
{
    return cudaEventRecord(w->forked, stream);
}

/* Of two devices, the other one. */
static int setup_two_devices(work *w, gpubench *)
{
    int count = 0, code = cudaGetDeviceCount(&count);
    if (code == 0) code = cudaGetDevice(&w->home);
    return code == 0 && count < 2 ? GPUBENCH_SKIPPED : code;
}

static int run_leaving_another_device(work *w, gpubench_stream stream)
{
    int code = cudaSetDevice(w->home);
    if (code == 0) code = spin(stream, WORK_US);
    return code ? code : cudaSetDevice(w->home == 0);
}

static int run_beside_another_device(work *w, gpubench_stream stream)
{
    int device = 0, code = cudaGetDevice(&device);
    if (code == 0 && device != w->home) code = GPUBENCH_FAILED;
    return code ? code : spin(stream, WORK_US);
}

/* ==== what is expected ==================================================== */

static const double AS_A_COPY = -1;

#define NEVER_JOINED(us, reset)                                                                 \
    {reset ? "never_joined_" #us "_us_reset" : "never_joined_" #us "_us", setup_stream,         \
     run_never_joined, ESCAPES, us, us, 0, reset}

static const scenario scenarios[] = {
    {"clusters", setup_hopper, run_clusters, HEALTHY, 0, WORK_US, 0, false},
    {"cooperative", nullptr, run_cooperative, HEALTHY, 0, WORK_US, 0, false},
    {"programmatic_dependent", setup_hopper, run_programmatic, HEALTHY, 0, WORK_US, 0, false},
    {"host_function", nullptr, run_host_function, HEALTHY, 0, WORK_US, 0, false},
    {"own_graph", setup_own_graph, run_own_graph, HEALTHY, 0, WORK_US, 0, false},
    {"own_capture", setup_stream, run_own_capture, HOST_BOUND, 0, WORK_US, 0, false},
    {"managed_memory", setup_managed, run_managed, HEALTHY, 0, WORK_US, 0, false},
    /* Streams may share a hardware channel, and then wait for each other. */
    {"fork_join_1", setup_streams, run_fork_join, HEALTHY, 1, WORK_US, 0, false},
    {"fork_join_2", setup_streams, run_fork_join, HEALTHY, 2, WORK_US, 2.5 * WORK_US, false},
    {"fork_join_4", setup_streams, run_fork_join, HEALTHY, 4, WORK_US, 4.5 * WORK_US, false},
    {"fork_join_8", setup_streams, run_fork_join, HEALTHY, 8, WORK_US, 8.5 * WORK_US, false},
    {"cublas", setup_blas, run_blas, HEALTHY, 0, 0, 0, false},
    {"cublas_with_workspace", setup_blas, run_blas, HEALTHY, 32, 0, 0, false},
    {"launches_1000", nullptr, run_many, HEALTHY, 1000, 1000.0 * SHORT_US, 0, false},
    /* Growing a pool that was trimmed takes the host longer than the work. */
    {"malloc_async_1_MiB", setup_pool, run_pool, HOST_BOUND, 1, WORK_US, 0, false},
    {"malloc_async_64_MiB", setup_pool, run_pool, HOST_BOUND, 64, WORK_US, 0, false},
    {"malloc_async_512_MiB", setup_pool, run_pool, HOST_BOUND, 512, WORK_US, 0, false},
    {"once_cudaMalloc", nullptr, run_once_per_stream, HEALTHY, ALLOCATE, WORK_US, 0, false},
    {"once_cudaHostAlloc", nullptr, run_once_per_stream, HEALTHY, ALLOCATE_PINNED, WORK_US, 0,
     false},
    {"once_synchronize", nullptr, run_once_per_stream, HEALTHY, SYNCHRONIZE, WORK_US, 0, false},
    {"named_default_stream", setup_named_default, run_on_default_stream, HEALTHY, 0, WORK_US, 0,
     false},
    {"named_own_stream", setup_named_stream, run_on_own_stream, HEALTHY, 0, WORK_US, 0, false},
    {"named_blocking_stream", setup_named_blocking_stream, run_on_own_stream, HEALTHY, 0, WORK_US,
     0, false},

    {"blocking_copy_to_device", setup_copies, run_copy_then_kernel, ESCAPES, 0, AS_A_COPY, 0,
     false},
    {"blocking_copy_to_host", setup_copies, run_kernel_then_copy, ESCAPES, 0, AS_A_COPY, 0, false},
    {"own_stream_copy_waited", setup_stream_and_copies, run_own_copy_waited, ESCAPES, 0, AS_A_COPY,
     0, false},
    {"copy_joined_not_forked", setup_stream_and_copies, run_copy_joined_not_forked, ESCAPES, 0,
     AS_A_COPY, 0, false},
    {"default_stream", nullptr, run_default_stream, ESCAPES, 0, ESCAPED_US, 0, false},
    {"default_stream_waited", nullptr, run_default_stream_waited, ESCAPES, 0, ESCAPED_US, 0, false},
    {"own_stream_waited", setup_blocking_stream, run_own_stream_waited, ESCAPES, 0, ESCAPED_US, 0,
     false},
    {"own_nonblocking_stream_waited", setup_stream, run_own_stream_waited, ESCAPES, 0, ESCAPED_US,
     0, false},
    {"own_stream_unnamed", setup_stream, run_on_own_stream, ESCAPES, 0, WORK_US, 0, false},
    {"own_stream_waited_named", setup_named_stream, run_own_stream_waited, ESCAPES, 0, ESCAPED_US,
     0, false},
    {"joined_not_forked", setup_stream, run_joined_not_forked, ESCAPES, ESCAPED_US, ESCAPED_US, 0,
     false},
    NEVER_JOINED(2, false), NEVER_JOINED(8, false), NEVER_JOINED(40, false),
    NEVER_JOINED(100, false),
    NEVER_JOINED(2, true), NEVER_JOINED(8, true), NEVER_JOINED(40, true), NEVER_JOINED(100, true),
    {"event_record", setup_stream, run_event_record, NOTHING, 0, 0, 0, false},

    /* The last two are a group, so that their samples take turns. */
    {"leaves_another_device", setup_two_devices, run_leaving_another_device, UNHARMED, 0, 0, 0,
     false},
    {"beside_another_device", setup_two_devices, run_beside_another_device, HEALTHY, 0, WORK_US, 0,
     false},
};

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0], IN_LAST_GROUP = 2 };

static work works[SCENARIOS];

static double true_us_of(const scenario &what)
{
    return what.true_us == AS_A_COPY ? works[&what - scenarios].copy_us : what.true_us;
}

/* ==== a case's life ======================================================= */

static int setup(void *context, gpubench *bench)
{
    work *w = static_cast<work *>(context);
    return w->what->setup ? w->what->setup(w, bench) : 0;
}

static int run(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    return w->what->run(w, stream);
}

static void free_seen(work *w)
{
    for (const auto &each : w->seen) {
        if (w->what->amount == ALLOCATE_PINNED) (void)cudaFreeHost(each.second);
        else (void)cudaFree(each.second);
    }
    w->seen.clear();
}

static void teardown(void *context)
{
    work *w = static_cast<work *>(context);
    work kept = {};
    kept.what = w->what;
    kept.copy_us = w->copy_us;
    (void)drop_graph(w);
    free_seen(w);
    if (w->blas) (void)cublasDestroy(w->blas);
    if (w->managed) (void)cudaFree(w->managed);
    if (w->forked) (void)cudaEventDestroy(w->forked);
    for (unsigned i = 0; i < MOST_STREAMS; i++) {
        if (w->joined[i]) (void)cudaEventDestroy(w->joined[i]);
        if (w->streams[i]) (void)cudaStreamDestroy(w->streams[i]);
    }
    *w = kept;
}

static gpubench_case case_of(const scenario *what)
{
    work *w = &works[what - scenarios];
    gpubench_case one = gpubench_case_init(what->name, run, w);
    w->what = what;
    one.setup = setup;
    one.teardown = teardown;
    one.reset = what->with_reset ? reset_nothing : nullptr;
    return one;
}

/* ==== verdicts ============================================================ */

struct outcome {
    const char *status, *flags;
    double median_us;
};

static bool has_flag(const outcome &found, const char *word)
{
    const size_t length = strlen(word);
    const char *at = strstr(found.flags, word);
    while (at && !((at == found.flags || at[-1] == ' ') && (at[length] == ' ' || !at[length])))
        at = strstr(at + length, word);
    return at != nullptr;
}

static bool is(const outcome &found, const char *status) { return !strcmp(found.status, status); }

/* A twentieth less than the true time is the difference between two clocks. */
static bool is_healthy(const scenario &what, const outcome &found)
{
    const double true_us = true_us_of(what);
    const double most_us = what.most_us > 0 ? what.most_us : 1.5 * true_us + 100;
    return is(found, "ok") && !has_flag(found, "ungated") &&
           (what.expected == HOST_BOUND || !has_flag(found, "host-bound")) &&
           found.median_us >= 0.95 * true_us && (true_us <= 0 || found.median_us <= most_us);
}

static bool is_noticed(const scenario &what, const outcome &found)
{
    return is(found, "failed") || (is(found, "ok") && (has_flag(found, "ungated") ||
                                                       has_flag(found, "host-bound") ||
                                                       found.median_us >= 0.8 * true_us_of(what)));
}

static bool is_as_expected(const scenario &what, const outcome &found, bool in_graph)
{
    /* Not everything can be captured; a capture of nothing is a failure, though. */
    if (in_graph && is(found, "unsupported") && what.expected != NOTHING) return true;
    switch (what.expected) {
    case HEALTHY:
    case HOST_BOUND: return is_healthy(what, found);
    case ESCAPES: return is_noticed(what, found);
    case NOTHING: return is(found, "failed");
    case UNHARMED: break;
    }
    return is(found, "ok") || is(found, "failed");
}

/* Not every device has what these launch with. */
static bool may_lack(const scenario &what)
{
    return what.setup == setup_hopper || what.setup == setup_pool;
}

/* The row of a case in a mode; of name NULL, the first of any case. -1: none. */
static long find_row(const gpubench *bench, const char *name, const char *mode)
{
    for (size_t i = 0; i < gpubench_row_count(bench); i++)
        if ((!name || !strcmp(gpubench_value(bench, i, "case"), name)) &&
            !strcmp(gpubench_value(bench, i, "mode"), mode))
            return static_cast<long>(i);
    return -1;
}

/* One TAP line; true if it is a good one. */
static bool report(const gpubench *bench, const scenario &what, const char *mode, int number)
{
    static const char *const words[] = {"healthy", "healthy", "noticed", "failed", "over"};
    const long row = find_row(bench, what.name, mode);
    outcome found = {"missing", "", 0};
    if (row >= 0) {
        const size_t i = static_cast<size_t>(row);
        found.status = gpubench_value(bench, i, "status");
        found.flags = gpubench_value(bench, i, "flags");
        found.median_us = atof(gpubench_value(bench, i, "median_us"));
    }
    const bool in_graph = !strcmp(mode, "graph");
    const bool skipped = (is(found, "skipped") && what.setup == setup_two_devices) ||
                         (is(found, "unsupported") && !in_graph && may_lack(what));
    const bool good = skipped || is_as_expected(what, found, in_graph);
    if (skipped) printf("ok %d # SKIP %s, %s: %s here\n", number, what.name, mode, found.status);
    else printf("%sok %d - %s, %s, is %s\n", good ? "" : "not ", number, what.name, mode,
                words[what.expected]);
    printf("# %s %s, true %g us: %s %.3f us [%s]\n", what.name, mode, true_us_of(what),
           found.status, found.median_us, found.flags);
    return good;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"cold", "hot", "graph", "dirty"};
    gpubench *bench = gpubench_open("launches", argc, argv);
    gpubench_case last[IN_LAST_GROUP];
    int number = 0;
    int status, bad = 0;
    for (int i = 0; i < SCENARIOS - IN_LAST_GROUP; i++) {
        gpubench_case one = case_of(&scenarios[i]);
        gpubench_measure(bench, &one);
    }
    for (int i = 0; i < IN_LAST_GROUP; i++)
        last[i] = case_of(&scenarios[SCENARIOS - IN_LAST_GROUP + i]);
    gpubench_measure_group(bench, last, IN_LAST_GROUP);
    gpubench_run(bench);
    for (const char *mode : modes)
        for (int i = 0; i < SCENARIOS && find_row(bench, nullptr, mode) >= 0; i++)
            bad |= !report(bench, scenarios[i], mode, ++number);
    printf("1..%d\n", number);
    status = gpubench_close(bench); /* 1 is right: cases had to fail */
    return status == 2 ? 2 : bad;
}
