/*
 * four_cases.cu - how steady is the instrument? Four kernels of the kind that
 * other tools were measured with: an empty one, copies of 64 MiB and 1 MiB, and
 * arithmetic for about 100 us. Run it in several processes (--runs 5) and look
 * at the range of the medians.
 */
#define GPUBENCH_IMPLEMENTATION
#include "../../gpubench.h"

typedef struct work {
    size_t bytes;
    void *dst, *src;
} work;

__global__ void empty_kernel() {}

/* 16 bytes a thread and step, the whole array in one wave of blocks. */
__global__ void copy_kernel(float4 *dst, const float4 *src, size_t count)
{
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        dst[i] = src[i];
}

/* A chain of dependent multiply-adds; the result is stored so that it stays. */
__global__ void arithmetic_kernel(float *out, int steps)
{
    float value = static_cast<float>(threadIdx.x);
    for (int i = 0; i < steps; i++) value = value * 0.999f + 1.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

enum { ARITHMETIC_BLOCKS = 132, ARITHMETIC_THREADS = 1024, ARITHMETIC_STEPS = 20000 };

static int setup(void *context, gpubench *bench)
{
    work *w = static_cast<work *>(context);
    w->src = gpubench_alloc(bench, w->bytes, GPUBENCH_DEVICE);
    w->dst = gpubench_alloc(bench, w->bytes, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    if (!w->src || !w->dst) return GPUBENCH_OOM;
    return cudaMemset(w->src, 0x3f, w->bytes);
}

static int run_empty(void *, gpubench_stream stream)
{
    empty_kernel<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

static int run_copy(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    copy_kernel<<<1056, 256, 0, stream>>>(static_cast<float4 *>(w->dst),
                                          static_cast<const float4 *>(w->src), w->bytes / 16);
    return cudaGetLastError();
}

static int run_arithmetic(void *context, gpubench_stream stream)
{
    arithmetic_kernel<<<ARITHMETIC_BLOCKS, ARITHMETIC_THREADS, 0, stream>>>(
        static_cast<float *>(static_cast<work *>(context)->dst), ARITHMETIC_STEPS);
    return cudaGetLastError();
}

static void queue(gpubench *bench, const char *name, int (*run)(void *, gpubench_stream), work *w)
{
    gpubench_case one = gpubench_case_init(name, run, w);
    one.setup = w->bytes ? setup : nullptr;
    one.bytes = run == run_copy ? 2 * w->bytes : 0;
    gpubench_measure(bench, &one);
}

int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("four_cases", argc, argv);
    work none = {}, large = {}, small = {}, flops = {};
    large.bytes = 64 << 20;
    small.bytes = 1 << 20;
    flops.bytes = ARITHMETIC_BLOCKS * ARITHMETIC_THREADS * sizeof(float);
    queue(bench, "empty", run_empty, &none);
    queue(bench, "copy_64MiB", run_copy, &large);
    queue(bench, "copy_1MiB", run_copy, &small);
    queue(bench, "fma_100us", run_arithmetic, &flops);
    return gpubench_close(bench);
}
