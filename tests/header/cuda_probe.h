/* What the tests of the CUDA path share: a case that does as it is told, on the substitute
 * runtime in fake_cuda/, and what its row must say. */
#ifndef GPUBENCH_TESTS_CUDA_PROBE_H
#define GPUBENCH_TESTS_CUDA_PROBE_H

#include "gpubench.h"
#include "fake_nvml/nvml.h"
#include "support.h"

struct fake_nvml fake_nvml;

#define QUICK "--max-time", "0.05", "--max-samples", "20", "--warmup", "1"
#define UUID_0 "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
#define UUID_1 "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"

enum { BUFFER_BYTES = 4096 };

/* What a case does in run. */
enum act {
    LAUNCH,         /* a kernel of ten microseconds */
    LAUNCH_LONG,    /* one of two milliseconds, which takes the host one */
    LAUNCH_NOTHING,
    LAUNCH_BADLY,   /* and not look at the error */
    RETURN_ERROR,
    RETURN_OOM,
    RETURN_7,       /* of cuBLAS an invalid value, of CUDA a profiler */
    RETURN_3003,    /* of cuDNN */
    TRY_7,
    TRY_OOM,        /* of CUDA's */
    SYNCHRONIZE,
    SYNCHRONIZE_ONCE, /* at the first run on each stream, as a library may */
    WAIT_ELSEWHERE, /* for a kernel on another stream, beside one on its own */
    USE_DEFAULT,    /* the default stream, in place of its own */
    USE_OTHER,      /* a stream of the case's */
    JOIN_UNFORKED,  /* a kernel of 5 ms on another stream that its own waits for */
    RECORD_ONLY,    /* an event, and launch nothing */
    KEEP_HOST_BUSY, /* for a millisecond, beside a kernel */
    LEAVE_DEVICE,   /* another one current */
    HIDE,           /* the work on another stream */
    MEET_BUSY_HOST, /* five times late to see that the device is done */
    FILL,           /* the output, as it should */
    FILL_BEFORE,    /* and a byte in front of it */
    FILL_BEHIND
};

typedef struct probe {
    enum act act;
    size_t bytes; /* what setup allocates; 0: nothing */
    int kind;
    cudaError_t malloc_error;    /* while setup allocates */
    size_t own_bytes;            /* setup takes by itself */
    int verify_leaves_error, teardown_leaves_error, reset_fails;
    int names_default, names_other; /* as what it works on */
    uint64_t since_reset, most_since_reset; /* runs */
    unsigned char *output, *own;
    cudaStream_t other, seen[64];
    cudaEvent_t event;
    size_t seen_count;
} probe;

static inline int set_up(void *context, gpubench *bench)
{
    probe *p = (probe *)context;
    cudaError_t code = cudaSuccess;
    if (p->act == HIDE || p->act == WAIT_ELSEWHERE || p->act == JOIN_UNFORKED ||
        p->act == USE_OTHER)
        code = cudaStreamCreateWithFlags(&p->other, cudaStreamNonBlocking);
    if (code == cudaSuccess && (p->act == JOIN_UNFORKED || p->act == RECORD_ONLY))
        code = cudaEventCreate(&p->event);
    if (code == cudaSuccess && (p->names_default || p->names_other))
        code = (cudaError_t)gpubench_use_stream(bench, p->names_other ? p->other : NULL);
    if (p->own_bytes > 0 && code == cudaSuccess)
        code = cudaMalloc((void **)&p->own, p->own_bytes);
    if (code != cudaSuccess || p->bytes == 0)
        return (int)code;
    fake_cuda.malloc_error = p->malloc_error;
    p->output = (unsigned char *)gpubench_alloc(bench, p->bytes, p->kind | GPUBENCH_OUTPUT);
    fake_cuda.malloc_error = cudaSuccess;
    return p->output ? GPUBENCH_OK : GPUBENCH_OOM;
}

/* 1 if run or reset was not given this stream before. */
static inline int note_stream(probe *p, cudaStream_t stream)
{
    size_t i;
    for (i = 0; i < p->seen_count; i++)
        if (p->seen[i] == stream)
            return 0;
    p->seen[p->seen_count++] = stream;
    return 1;
}

static inline int reset(void *context, gpubench_stream stream)
{
    probe *p = (probe *)context;
    p->since_reset = 0;
    note_stream(p, stream);
    return p->reset_fails ? cudaErrorInvalidValue : (int)fake_launch(stream, 1000, 0);
}

static inline int fill(const probe *p, cudaStream_t stream)
{
    size_t before = p->act == FILL_BEFORE, behind = p->act == FILL_BEHIND;
    return (int)fake_launch_write(stream, p->output - before, 7, p->bytes + before + behind);
}

static inline int synchronize_once(probe *p, cudaStream_t stream)
{
    return note_stream(p, stream) ? (int)cudaStreamSynchronize(stream) : 0;
}

static inline int join_unforked(const probe *p, cudaStream_t stream)
{
    int code = (int)fake_launch(p->other, 5000, 0);
    if (code == 0)
        code = (int)cudaEventRecord(p->event, p->other);
    return code != 0 ? code : (int)cudaStreamWaitEvent(stream, p->event, 0);
}

static inline int return_number(int number)
{
    return number;
}

static inline const char *say_invalid(int status)
{
    return status == 7 ? "an invalid value" : NULL;
}

static inline const char *explain_number(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}

static inline int run(void *context, gpubench_stream stream)
{
    static const struct timespec millisecond = {0, 1000000};
    probe *p = (probe *)context;
    int code = 0;
    p->since_reset++;
    if (p->since_reset > p->most_since_reset)
        p->most_since_reset = p->since_reset;
    switch (p->act) {
    case LAUNCH_NOTHING: return 0;
    case LAUNCH_BADLY: fake_launch_error(cudaErrorInvalidConfiguration); return 0;
    case RETURN_ERROR: return cudaErrorInvalidValue;
    case RETURN_OOM: return cudaErrorMemoryAllocation;
    case RETURN_7: return 7;
    case RETURN_3003: return 3003;
    case TRY_7: GPUBENCH_TRY(return_number(7), say_invalid); break;
    case TRY_OOM: GPUBENCH_TRY(return_number(2), explain_number); break;
    case HIDE: return (int)fake_launch(p->other, 10, 200); /* a busy host looks late */
    case SYNCHRONIZE_ONCE: code = synchronize_once(p, stream); break;
    case WAIT_ELSEWHERE:
        code = (int)fake_launch(p->other, 100, 0);
        code = code != 0 ? code : (int)cudaStreamSynchronize(p->other);
        break;
    case USE_DEFAULT: return (int)fake_launch(NULL, 10, 0);
    case USE_OTHER: note_stream(p, stream); return (int)fake_launch(p->other, 10, 0);
    case JOIN_UNFORKED: code = join_unforked(p, stream); break;
    case RECORD_ONLY: return (int)cudaEventRecord(p->event, stream);
    case KEEP_HOST_BUSY: nanosleep(&millisecond, NULL); break;
    case LEAVE_DEVICE: code = (int)cudaSetDevice(1); break;
    case MEET_BUSY_HOST:
        if (p->since_reset == 3) /* the first of those that hidden work is looked for in */
            fake_cuda.late_synchronizations = 5;
        break;
    case FILL: case FILL_BEFORE: case FILL_BEHIND: return fill(p, stream);
    case SYNCHRONIZE:
        code = (int)fake_launch(stream, 10, 0);
        return code != 0 ? code : (int)cudaStreamSynchronize(stream);
    case LAUNCH_LONG: return (int)fake_launch(stream, 2000, 1);
    case LAUNCH: break;
    }
    return code != 0 ? code : (int)fake_launch(stream, 10, 0);
}

static inline int verify(void *context, gpubench *bench)
{
    const probe *p = (const probe *)context;
    unsigned char back[BUFFER_BYTES];
    size_t i, wrong = 0;
    if (p->verify_leaves_error)
        fake_launch_error(cudaErrorInvalidConfiguration);
    if (!p->output)
        return GPUBENCH_OK;
    if (gpubench_copy(bench, back, p->output, p->bytes) != 0)
        return GPUBENCH_FAILED;
    for (i = 0; i < p->bytes; i++)
        wrong += back[i] != 7;
    return gpubench_check(bench, (double)wrong, 0);
}

static inline void tear_down(void *context)
{
    const probe *p = (const probe *)context;
    if (p->own)
        (void)cudaFree(p->own);
    if (p->other)
        (void)cudaStreamDestroy(p->other);
    if (p->event)
        (void)cudaEventDestroy(p->event);
    if (p->teardown_leaves_error)
        fake_launch_error(cudaErrorInvalidValue);
}

static inline void queue(gpubench *bench, const char *name, probe *p)
{
    gpubench_case one = gpubench_case_init(name, run, p);
    one.setup = set_up;
    one.verify = verify;
    one.teardown = tear_down;
    gpubench_measure(bench, &one);
}

/* Queues and measures one case; its row is the handle's last. */
static inline size_t measure(gpubench *bench, const char *name, probe *p)
{
    queue(bench, name, p);
    gpubench_run(bench);
    assert_true(gpubench_row_count(bench) > 0);
    return gpubench_row_count(bench) - 1;
}

/* The very case of ten microseconds and the events' cost, whatever came before. */
static inline void expect_next_is_measured(gpubench *bench)
{
    static probe healthy;
    size_t row;
    memset(&healthy, 0, sizeof healthy);
    row = measure(bench, "next", &healthy);
    expect_cell(bench, row, "case", "next");
    expect_cell(bench, row, "status", "ok");
    expect_number(bench, row, "median_us", 10 + FAKE_EVENT_US);
    expect_no_flag(bench, row, "ungated");
}

static inline void expect_row_failed(gpubench *bench, size_t row, const char *status, const char *flag)
{
    expect_cell(bench, row, "status", status);
    expect_cell(bench, row, "median_us", "");
    expect_cell(bench, row, "samples", "");
    expect_flag(bench, row, flag);
}

/* What a test that failed left open is not the next one's. */
static size_t bytes_before;
static int objects_before;

static inline int start(void **state)
{
    (void)state;
    fake_start();
    memset(&fake_nvml, 0, sizeof fake_nvml);
    bytes_before = fake_used_bytes();
    objects_before = fake_live_objects();
    return 0;
}

/* Every block, stream, event, graph and module went back. */
static inline int nothing_left(void **state)
{
    size_t bytes = fake_used_bytes() - bytes_before;
    int objects = fake_live_objects() - objects_before;
    (void)state;
    if (bytes == 0 && objects == 0)
        return 0;
    print_error("%zu bytes and %d objects are left\n", bytes, objects);
    return 1;
}

/* ---- through a program: no driver, lost contexts ---- */

#define CUDA_TEST(name) cmocka_unit_test_setup_teardown(name, start, nothing_left)

#endif
