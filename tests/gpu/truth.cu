/*
 * truth.cu - is the number of mode cold the kernel's? 28 kernels, each with a name
 * of its own, so that a profiler's rows can be told apart: truth_copy<64> copies 64
 * KiB and is the case `copy` with the params `kib=64`. tests/gpu/truth.sh holds
 * what gpubench says of them against Nsight Compute, tests/gpu/ncu_agree.sh what
 * --kernels says.
 */
#define GPUBENCH_IMPLEMENTATION
#define GPUBENCH_TRACE_IMPLEMENTATION
#include "../../gpubench.h"
#include "../../gpubench_trace.h"

typedef struct work {
    size_t bytes; /* of source, and of destination where there is one */
    void *source, *destination;
    unsigned blocks;
} work;

enum { THREADS = 256, ARITHMETIC_THREADS = 1024, BLOCKS_PER_SM = 8 };

static const size_t KIB = 1024;
static const size_t CHAIN_BYTES = static_cast<size_t>(64) << 20; /* more than any L2 */

static __device__ size_t first_of_thread()
{
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __device__ size_t thread_count() { return static_cast<size_t>(gridDim.x) * blockDim.x; }

template <int> __global__ void truth_empty() {}

template <int kib> __global__ void truth_copy(float4 *destination, const float4 *source)
{
    const size_t count = kib * (KIB / sizeof(float4));
    for (size_t i = first_of_thread(); i < count; i += thread_count())
        destination[i] = source[i];
}

template <int kib> __global__ void truth_fill(float4 *destination)
{
    const size_t count = kib * (KIB / sizeof(float4));
    for (size_t i = first_of_thread(); i < count; i += thread_count())
        destination[i] = make_float4(1, 2, 3, 4);
}

/* Writes nothing: no sum of what setup wrote is negative. */
template <int kib> __global__ void truth_read(const float4 *source, float *result)
{
    const size_t count = kib * (KIB / sizeof(float4));
    float sum = 0;
    for (size_t i = first_of_thread(); i < count; i += thread_count()) {
        float4 four = source[i];
        sum += four.x + four.y + four.z + four.w;
    }
    if (sum < 0) *result = sum;
}

/* Each multiply-add waits for the one before; the result is stored so that they stay. */
template <int steps> __global__ void truth_arithmetic(float *destination)
{
    float value = static_cast<float>(threadIdx.x);
    for (int i = 0; i < steps; i++) value = fmaf(value, 0.999f, 1.0f);
    destination[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

/* Each address is what the load before it found. */
template <int steps> __global__ void truth_chain(const unsigned *source, unsigned *result)
{
    unsigned at = 0;
    for (int i = 0; i < steps; i++) at = source[at];
    *result = at;
}

static int allocate(work *w, gpubench *bench, size_t source_bytes, size_t destination_bytes)
{
    w->source = gpubench_alloc(bench, source_bytes, GPUBENCH_DEVICE);
    w->destination = gpubench_alloc(bench, destination_bytes, GPUBENCH_DEVICE);
    if (!w->source || !w->destination) return GPUBENCH_OOM;
    return cudaMemset(w->source, 0, source_bytes);
}

static int count_multiprocessors(unsigned *count)
{
    int device = 0, found = 0, code = cudaGetDevice(&device);
    if (code == 0) code = cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device);
    *count = static_cast<unsigned>(found);
    return code;
}

/* A wave of blocks, or as many as the elements need. */
static int setup_bytes(void *context, gpubench *bench)
{
    work *w = static_cast<work *>(context);
    size_t needed = (w->bytes / sizeof(float4) + THREADS - 1) / THREADS;
    int code = count_multiprocessors(&w->blocks);
    w->blocks *= BLOCKS_PER_SM;
    if (w->blocks > needed) w->blocks = static_cast<unsigned>(needed);
    return code ? code : allocate(w, bench, w->bytes, w->bytes);
}

static int setup_arithmetic(void *context, gpubench *bench)
{
    work *w = static_cast<work *>(context);
    int code = count_multiprocessors(&w->blocks);
    if (code != 0) return code;
    return allocate(w, bench, sizeof(float), w->blocks * ARITHMETIC_THREADS * sizeof(float));
}

/* Steps of some 8 MiB and a line, so that each load misses every cache and no
 * address comes twice. */
static int setup_chain(void *context, gpubench *bench)
{
    work *w = static_cast<work *>(context);
    const unsigned count = static_cast<unsigned>(CHAIN_BYTES / sizeof(unsigned));
    const unsigned stride = (8u << 20) / sizeof(unsigned) + 33;
    int code = allocate(w, bench, CHAIN_BYTES, sizeof(unsigned));
    unsigned *next = static_cast<unsigned *>(malloc(CHAIN_BYTES));
    if (!next) code = GPUBENCH_FAILED;
    for (unsigned i = 0; i < count && code == 0; i++) next[i] = (i + stride) % count;
    if (code == 0) code = gpubench_copy(bench, w->source, next, CHAIN_BYTES);
    free(next);
    return code;
}

template <int> static int run_empty(void *, gpubench_stream stream)
{
    truth_empty<0><<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

template <int kib> static int run_copy(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    truth_copy<kib><<<w->blocks, THREADS, 0, stream>>>(static_cast<float4 *>(w->destination),
                                                       static_cast<const float4 *>(w->source));
    return cudaGetLastError();
}

template <int kib> static int run_fill(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    truth_fill<kib><<<w->blocks, THREADS, 0, stream>>>(static_cast<float4 *>(w->destination));
    return cudaGetLastError();
}

template <int kib> static int run_read(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    truth_read<kib><<<w->blocks, THREADS, 0, stream>>>(static_cast<const float4 *>(w->source),
                                                       static_cast<float *>(w->destination));
    return cudaGetLastError();
}

template <int steps> static int run_arithmetic(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    truth_arithmetic<steps><<<w->blocks, ARITHMETIC_THREADS, 0, stream>>>(
        static_cast<float *>(w->destination));
    return cudaGetLastError();
}

template <int steps> static int run_chain(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    truth_chain<steps><<<1, 1, 0, stream>>>(static_cast<const unsigned *>(w->source),
                                            static_cast<unsigned *>(w->destination));
    return cudaGetLastError();
}

struct entry {
    const char *name, *params;
    int (*run)(void *, gpubench_stream);
    int (*setup)(void *, gpubench *);
    size_t kib;
};

#define OF_BYTES(name, kib) {#name, "kib=" #kib, run_##name<kib>, setup_bytes, kib}
#define OF_STEPS(name, steps) {#name, "steps=" #steps, run_##name<steps>, setup_##name, 0}

static const entry entries[] = {
    {"empty", "", run_empty<0>, nullptr, 0},
    OF_BYTES(copy, 4), OF_BYTES(copy, 64), OF_BYTES(copy, 1024), OF_BYTES(copy, 4096),
    OF_BYTES(copy, 16384), OF_BYTES(copy, 65536), OF_BYTES(copy, 262144), OF_BYTES(copy, 1048576),
    OF_BYTES(fill, 64), OF_BYTES(fill, 1024), OF_BYTES(fill, 4096), OF_BYTES(fill, 16384),
    OF_BYTES(fill, 65536), OF_BYTES(fill, 262144),
    OF_BYTES(read, 64), OF_BYTES(read, 1024), OF_BYTES(read, 4096), OF_BYTES(read, 16384),
    OF_BYTES(read, 32768), OF_BYTES(read, 65536), OF_BYTES(read, 262144),
    OF_STEPS(arithmetic, 2000), OF_STEPS(arithmetic, 16000), OF_STEPS(arithmetic, 256000),
    OF_STEPS(chain, 4), OF_STEPS(chain, 64), OF_STEPS(chain, 1024),
};

int main(int argc, char **argv)
{
    static work works[sizeof entries / sizeof *entries];
    gpubench *bench = gpubench_open("truth", argc, argv);
    gpubench_trace(bench);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const entry &e = entries[i];
        gpubench_case one = gpubench_case_init(e.name, e.run, &works[i]);
        works[i].bytes = e.kib * KIB;
        one.params = e.params;
        one.setup = e.setup;
        gpubench_measure(bench, &one);
    }
    return gpubench_close(bench);
}
