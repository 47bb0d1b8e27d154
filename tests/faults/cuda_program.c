/* A program that uses what gpubench.h offers on a GPU, on the substitutes for the CUDA
 * runtime and NVML: memory of every kind, the helpers for inputs and results, a stream of
 * a case's own, a group, a sweep, counters. Each case is healthy by itself. */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#include "fake_nvml/nvml.h"
#include "faults/fault.h"

enum { COUNT = 256, BYTES = 4 * COUNT };

struct fake_nvml fake_nvml = {.present = 1, .watts = 500, .watts_now = 100};

typedef struct buffers {
    float *input, *output, *expected, *own;
    void *pinned, *pageable;
    cudaStream_t stream;
} buffers;

static void *shared;

/* ---- what cases share ---- */

static int before_all(void *context, gpubench *bench)
{
    (void)context;
    fault_count_cases();
    shared = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE);
    return gpubench_allocated(bench);
}

static int run_copy(void *context, gpubench_stream stream)
{
    const buffers *b = context;
    return (int)cudaMemcpyAsync(b->output, b->input, BYTES, cudaMemcpyDefault, stream);
}

static int verify_copy(void *context, gpubench *bench)
{
    const buffers *b = context;
    return gpubench_compare(bench, b->output, "f32", b->expected, "f32", COUNT, 0);
}

static int reset(void *context, gpubench_stream stream)
{
    (void)context;
    return (int)cudaMemsetAsync(shared, 0, BYTES, stream);
}

/* ---- a case whose inputs are random, on memory of every kind ---- */

static int set_up_random(void *context, gpubench *bench)
{
    buffers *b = context;
    b->input = gpubench_random(bench, "f32", COUNT);
    b->expected = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE);
    b->output = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    b->pinned = gpubench_alloc(bench, BYTES, GPUBENCH_PINNED);
    b->pageable = gpubench_alloc(bench, BYTES, GPUBENCH_PAGEABLE);
    if (gpubench_allocated(bench) != GPUBENCH_OK)
        return gpubench_allocated(bench);
    gpubench_counter(bench, "elements", COUNT);
    gpubench_rate(bench, "copied", COUNT);
    return gpubench_copy(bench, b->expected, b->input, BYTES);
}

/* ---- one on a stream and memory of its own ---- */

static int set_up_own(void *context, gpubench *bench)
{
    buffers *b = context;
    float seven[COUNT];
    size_t i;
    for (i = 0; i < COUNT; i++)
        seven[i] = 7;
    GPUBENCH_TRY(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking), cudaGetErrorString);
    GPUBENCH_TRY(cudaMalloc((void **)&b->own, BYTES), cudaGetErrorString);
    b->output = b->own;
    b->input = gpubench_upload(bench, seven, sizeof seven);
    b->expected = b->input;
    if (gpubench_output(bench, b->own, BYTES) != GPUBENCH_OK)
        return GPUBENCH_FAILED;
    if (gpubench_use_stream(bench, b->stream) != GPUBENCH_OK)
        return GPUBENCH_FAILED;
    return gpubench_allocated(bench);
}

static int run_own(void *context, gpubench_stream stream)
{
    (void)stream;
    return run_copy(context, ((buffers *)context)->stream);
}

static void tear_down_own(void *context)
{
    buffers *b = context;
    if (b->own)
        (void)cudaFree(b->own);
    if (b->stream)
        (void)cudaStreamDestroy(b->stream);
    b->own = NULL;
    b->stream = NULL;
}

/* ---- a sweep ---- */

static int set_up_swept(void *context, gpubench *bench)
{
    int64_t count = gpubench_axis_number(bench, "n");
    gpubench_work(bench, 2 * 4 * (uint64_t)count, (uint64_t)count);
    return set_up_random(context, bench);
}

static gpubench_case make_case(const char *name, buffers *b)
{
    gpubench_case one = gpubench_case_init(name, run_copy, b);
    one.setup = set_up_random;
    one.verify = verify_copy;
    one.dtype = "f32";
    one.bytes = 2 * BYTES;
    return one;
}

static void queue(gpubench *bench, buffers *b)
{
    static const gpubench_axis axes[] = {{"n", "128,256"}};
    gpubench_case first = make_case("first", &b[0]), own = make_case("own", &b[1]);
    gpubench_case pair[2] = {make_case("left", &b[2]), make_case("right", &b[3])};
    gpubench_case swept = make_case("swept", &b[4]), last = make_case("last", &b[5]);
    first.reset = reset;
    own.setup = set_up_own;
    own.run = run_own;
    own.teardown = tear_down_own;
    swept.setup = set_up_swept;
    gpubench_measure(bench, &first);
    gpubench_measure(bench, &own);
    gpubench_measure_group(bench, pair, 2);
    gpubench_sweep(bench, &swept, 1, axes, 1);
    gpubench_measure(bench, &last);
}

int main(int argc, char **argv)
{
    static buffers cases[6];
    gpubench *bench;
    int status;
    bench = gpubench_open("faulty", argc, argv);
    gpubench_before_all(bench, before_all, NULL);
    queue(bench, cases);
    status = gpubench_close(bench);
    if (fake_live_objects() != 0 && !fault_lasts())
        fprintf(stderr, "LEFT: %d objects of the device's\n", fake_live_objects());
    return status;
}
