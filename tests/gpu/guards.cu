/*
 * guards.cu - cases that are wrong in every way that the framework promises to
 * notice, between healthy ones. tests/gpu/run.sh knows how each has to end.
 */
#define GPUBENCH_IMPLEMENTATION
#include "../../gpubench.h"

typedef struct work {
    size_t bytes;
    float *data;
    cudaStream_t other;
} work;

__global__ void fill_kernel(float *data, size_t count, float value)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) data[i] = value;
}

__global__ void slow_kernel(long long cycles)
{
    long long start = clock64();
    while (clock64() - start < cycles) {}
}

static const long long SHORT_WHILE = 500000; /* a quarter of a millisecond */

static int setup(void *context, gpubench *bench)
{
    work *w = static_cast<work *>(context);
    w->data = static_cast<float *>(gpubench_alloc(bench, w->bytes, GPUBENCH_DEVICE | GPUBENCH_OUTPUT));
    if (!w->data) return GPUBENCH_OOM;
    return cudaStreamCreateWithFlags(&w->other, cudaStreamNonBlocking);
}

static void teardown(void *context)
{
    work *w = static_cast<work *>(context);
    if (w->other) (void)cudaStreamDestroy(w->other);
    w->other = nullptr;
}

static int fill(const work *w, size_t count, gpubench_stream stream)
{
    fill_kernel<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(w->data, count, 1.5f);
    return cudaGetLastError();
}

static int run_healthy(void *context, gpubench_stream stream)
{
    const work *w = static_cast<const work *>(context);
    return fill(w, w->bytes / 4, stream);
}

static int run_nothing(void *, gpubench_stream) { return 0; }

static int run_too_many_threads(void *, gpubench_stream stream)
{
    slow_kernel<<<1, 2048, 0, stream>>>(SHORT_WHILE);
    return cudaGetLastError();
}

/* The case does not look; the framework does. */
static int run_unchecked_launch(void *, gpubench_stream stream)
{
    slow_kernel<<<1, 32, 1 << 20, stream>>>(SHORT_WHILE);
    return 0;
}

static int run_empty_grid(void *, gpubench_stream stream)
{
    slow_kernel<<<0, 32, 0, stream>>>(SHORT_WHILE);
    return cudaGetLastError();
}

static int run_synchronizing(void *context, gpubench_stream stream)
{
    int code = run_healthy(context, stream);
    if (code == 0) code = cudaStreamSynchronize(stream);
    return code ? code : run_healthy(context, stream);
}

static int run_elsewhere(void *context, gpubench_stream stream)
{
    const work *w = static_cast<const work *>(context);
    slow_kernel<<<1, 1, 0, w->other>>>(SHORT_WHILE);
    return run_healthy(context, stream);
}

/* 16 bytes beyond the buffer: inside the guard zone. */
static int run_beyond(void *context, gpubench_stream stream)
{
    const work *w = static_cast<const work *>(context);
    return fill(w, w->bytes / 4 + 4, stream);
}

static int run_through_null(void *, gpubench_stream stream)
{
    fill_kernel<<<1, 256, 0, stream>>>(nullptr, 256, 1.5f);
    return cudaGetLastError();
}

static int run_partly(void *context, gpubench_stream stream)
{
    const work *w = static_cast<const work *>(context);
    return fill(w, w->bytes / 4 - 1, stream);
}

/* More than a launch queue holds: the gate has to give way. */
static int run_many_launches(void *context, gpubench_stream stream)
{
    int code = 0;
    for (int i = 0; i < 3000 && code == 0; i++) code = run_healthy(context, stream);
    return code;
}

/* Longer than the --timeout that run.sh gives. */
static int run_too_long(void *, gpubench_stream stream)
{
    slow_kernel<<<1, 1, 0, stream>>>(8000000000);
    return cudaGetLastError();
}

static int verify(void *context, gpubench *bench)
{
    const work *w = static_cast<const work *>(context);
    size_t count = w->bytes / 4, wrong = 0;
    float *host = static_cast<float *>(malloc(w->bytes));
    int code = host ? gpubench_copy(bench, host, w->data, w->bytes) : GPUBENCH_FAILED;
    for (size_t i = 0; i < count && code == 0; i++) wrong += host[i] != 1.5f;
    free(host);
    return code ? code : gpubench_check(bench, static_cast<double>(wrong), 0);
}

static void queue(gpubench *bench, const char *name, int (*run)(void *, gpubench_stream),
                  size_t bytes)
{
    static work works[32];
    static int count;
    gpubench_case one = gpubench_case_init(name, run, &works[count]);
    works[count++].bytes = bytes;
    one.setup = setup;
    one.teardown = teardown;
    one.verify = run == run_nothing ? nullptr : verify; /* or verify would find it first */
    one.bytes = bytes;
    gpubench_measure(bench, &one);
}

int main(int argc, char **argv)
{
    const size_t mib = 1 << 20;
    gpubench *bench = gpubench_open("guards", argc, argv);
    queue(bench, "healthy.1", run_healthy, mib);
    queue(bench, "nothing", run_nothing, mib);
    queue(bench, "too_many_threads", run_too_many_threads, mib);
    queue(bench, "healthy.2", run_healthy, mib);
    queue(bench, "unchecked_launch", run_unchecked_launch, mib);
    queue(bench, "empty_grid", run_empty_grid, mib);
    queue(bench, "synchronizing", run_synchronizing, mib);
    queue(bench, "elsewhere", run_elsewhere, mib);
    queue(bench, "healthy.3", run_healthy, mib);
    queue(bench, "beyond", run_beyond, mib);
    queue(bench, "through_null", run_through_null, mib);
    queue(bench, "partly", run_partly, mib);
    queue(bench, "one_tib", run_healthy, mib << 20);
    queue(bench, "two_to_the_63", run_healthy, static_cast<size_t>(1) << 63);
    queue(bench, "many_launches", run_many_launches, mib);
    queue(bench, "too_long", run_too_long, mib);
    queue(bench, "healthy.4", run_healthy, mib);
    return gpubench_close(bench);
}
