/* The CUDA path of gpubench.h on the substitute runtime in fake_cuda/, whose
 * times are simulated: what is right is known to the nanosecond. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
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

static int set_up(void *context, gpubench *bench)
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
static int note_stream(probe *p, cudaStream_t stream)
{
    size_t i;
    for (i = 0; i < p->seen_count; i++)
        if (p->seen[i] == stream)
            return 0;
    p->seen[p->seen_count++] = stream;
    return 1;
}

static int reset(void *context, gpubench_stream stream)
{
    probe *p = (probe *)context;
    p->since_reset = 0;
    note_stream(p, stream);
    return p->reset_fails ? cudaErrorInvalidValue : (int)fake_launch(stream, 1000, 0);
}

static int fill(const probe *p, cudaStream_t stream)
{
    size_t before = p->act == FILL_BEFORE, behind = p->act == FILL_BEHIND;
    return (int)fake_launch_write(stream, p->output - before, 7, p->bytes + before + behind);
}

static int synchronize_once(probe *p, cudaStream_t stream)
{
    return note_stream(p, stream) ? (int)cudaStreamSynchronize(stream) : 0;
}

static int join_unforked(const probe *p, cudaStream_t stream)
{
    int code = (int)fake_launch(p->other, 5000, 0);
    if (code == 0)
        code = (int)cudaEventRecord(p->event, p->other);
    return code != 0 ? code : (int)cudaStreamWaitEvent(stream, p->event, 0);
}

static int return_number(int number)
{
    return number;
}

static const char *say_invalid(int status)
{
    return status == 7 ? "an invalid value" : NULL;
}

static const char *explain_number(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}

static int run(void *context, gpubench_stream stream)
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
    case HIDE: return (int)fake_launch(p->other, 10, 100);
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
    case LAUNCH: break;
    }
    return code != 0 ? code : (int)fake_launch(stream, 10, 0);
}

static int verify(void *context, gpubench *bench)
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

static void tear_down(void *context)
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

static void queue(gpubench *bench, const char *name, probe *p)
{
    gpubench_case one = gpubench_case_init(name, run, p);
    one.setup = set_up;
    one.verify = verify;
    one.teardown = tear_down;
    gpubench_measure(bench, &one);
}

/* Queues and measures one case; its row is the handle's last. */
static size_t measure(gpubench *bench, const char *name, probe *p)
{
    queue(bench, name, p);
    gpubench_run(bench);
    assert_true(gpubench_row_count(bench) > 0);
    return gpubench_row_count(bench) - 1;
}

/* The very case of ten microseconds and the events' cost, whatever came before. */
static void expect_next_is_measured(gpubench *bench)
{
    static probe healthy;
    size_t row;
    memset(&healthy, 0, sizeof healthy);
    row = measure(bench, "next", &healthy);
    expect_cell(bench, row, "case", "next");
    expect_cell(bench, row, "status", "ok");
    expect_double(bench, row, "median_us", 10 + FAKE_EVENT_US);
    expect_no_flag(bench, row, "ungated");
}

static void expect_row_failed(gpubench *bench, size_t row, const char *status, const char *flag)
{
    expect_cell(bench, row, "status", status);
    expect_cell(bench, row, "median_us", "");
    expect_cell(bench, row, "samples", "");
    expect_flag(bench, row, flag);
}

/* What a test that failed left open is not the next one's. */
static size_t bytes_before;
static int objects_before;

static int start(void **state)
{
    (void)state;
    fake_start();
    memset(&fake_nvml, 0, sizeof fake_nvml);
    bytes_before = fake_used_bytes();
    objects_before = fake_live_objects();
    return 0;
}

/* Every block, stream, event, graph and module went back. */
static int nothing_left(void **state)
{
    size_t bytes = fake_used_bytes() - bytes_before;
    int objects = fake_live_objects() - objects_before;
    (void)state;
    if (bytes == 0 && objects == 0)
        return 0;
    print_error("%zu bytes and %d objects are left\n", bytes, objects);
    return 1;
}

/* ---- what is healthy ---- */

static void a_kernel_is_timed_by_events(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_cell(bench, row, "backend", "cuda");
    expect_cell(bench, row, "mode", "cold");
    expect_double(bench, row, "min_us", 10 + FAKE_EVENT_US);
    expect_double(bench, row, "median_us", 10 + FAKE_EVENT_US);
    expect_double(bench, row, "max_us", 10 + FAKE_EVENT_US);
    expect_cell(bench, row, "stddev_us", "0");
    expect_double(bench, row, "overhead_us", FAKE_EMPTY_KERNEL_US + FAKE_EVENT_US);
    expect_no_flag(bench, row, "ungated");
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_device_is_described(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "device", "Fake GPU 0");
    expect_cell(bench, row, "uuid", UUID_0);
    expect_cell(bench, row, "compute_capability", "9.0");
    expect_cell(bench, row, "sm_count", "132");
    expect_cell(bench, row, "l2_bytes", "1048576");
    expect_cell(bench, row, "memory_bytes", "1073741824");
    expect_cell(bench, row, "cuda_runtime", "13.0");
    assert_true(*gpubench_value(bench, row, "cpu") != '\0');
    assert_int_equal(gpubench_is_cuda(bench), 1);
    assert_int_equal(gpubench_compute_capability(bench), 90);
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_method_is_described(void **state)
{
    gpubench *bench = OPEN("--max-time", "0.05", "--max-samples", "20", "--warmup", "1",
                           "--min-samples", "7", "--precision", "2.5");
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "schema", "2");
    expect_cell(bench, row, "pci", "0000:01:00.0");
    expect_cell(bench, row, "settings",
                "precision=2.5 max-time=0.05 min-samples=7 max-samples=20 warmup=1");
    expect_double(bench, row, "events_us", FAKE_EVENT_US);
    assert_int_equal(gpubench_close(bench), 0);
}

static void flush_and_reset_are_not_timed(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,graph,dirty");
    probe p = {.act = LAUNCH};
    gpubench_case one = gpubench_case_init("reset", run, &p);
    size_t row;
    (void)state;
    one.reset = reset; /* a millisecond */
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    for (row = 0; row < 3; row++)
        expect_double(bench, row, "max_us", 10 + FAKE_EVENT_US);
    expect_cell(bench, 2, "mode", "dirty");
    assert_int_equal(gpubench_close(bench), 0);
}

/* Without --mode, on a GPU: cold, however few the bytes, or what the case allows. */
static void a_case_can_have_one_mode_only(void **state)
{
    static const unsigned modes[] = {GPUBENCH_HOT, GPUBENCH_GRAPH, 0};
    static const char *const names[] = {"hot", "graph", "cold"};
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        gpubench *bench = OPEN(QUICK);
        probe p = {.act = LAUNCH};
        gpubench_case one = gpubench_case_init("ten", run, &p);
        one.modes = modes[i];
        one.bytes = 8;
        gpubench_measure(bench, &one);
        gpubench_run(bench);
        expect_cell(bench, 0, "status", "ok");
        expect_cell(bench, 0, "mode", names[i]);
        assert_int_equal(gpubench_close(bench), 0);
    }
}

/* What two events cost must stay under 0.1 % of a batch. */
static void hot_mode_divides_a_long_batch(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    double batch = value_of(bench, row, "batch");
    (void)state;
    assert_true(batch * 10 * 0.001 >= FAKE_EVENT_US);
    expect_double(bench, row, "median_us", (10 * batch + FAKE_EVENT_US) / batch);
    assert_int_equal(gpubench_close(bench), 0);
}

/* One run in front of the batch, so that the first timed one finds warm caches. */
static void hot_mode_runs_once_in_front_of_a_batch(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    probe p = {.act = LAUNCH};
    gpubench_case one = gpubench_case_init("reset", run, &p);
    double batch;
    (void)state;
    one.reset = reset;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    batch = value_of(bench, 0, "batch");
    assert_true((double)p.most_since_reset == batch + 1);
    expect_double(bench, 0, "median_us", (10 * batch + FAKE_EVENT_US) / batch);
    assert_int_equal(gpubench_close(bench), 0);
}

static void graph_mode_replays_what_was_captured(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "graph");
    probe p = {.act = FILL, .bytes = BUFFER_BYTES};
    size_t row = measure(bench, "fill", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok"); /* verified after replaying alone */
    expect_cell(bench, row, "mode", "graph");
    expect_double(bench, row, "median_us", 3.254); /* 2 + 0.004096 + 1.25, to the nanosecond */
    assert_int_equal(gpubench_close(bench), 0);
}

static void memory_of_every_kind_works(void **state)
{
    static const int kinds[] = {GPUBENCH_DEVICE, GPUBENCH_PINNED, GPUBENCH_PAGEABLE};
    static const char *const names[] = {"device", "pinned", "pageable"};
    gpubench *bench = OPEN(QUICK);
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        probe p = {.act = FILL, .bytes = BUFFER_BYTES, .kind = kinds[i]};
        size_t row = measure(bench, names[i], &p);
        expect_cell(bench, row, "status", "ok");
        assert_true(i == 0 ? value_of(bench, row, "device_bytes") >= BUFFER_BYTES
                           : value_of(bench, row, "device_bytes") == 0);
    }
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_cases_own_device_memory_is_counted(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH, .own_bytes = 1 << 20};
    size_t row = measure(bench, "own", &p);
    (void)state;
    assert_true(value_of(bench, row, "device_bytes") >= 1 << 20);
    assert_int_equal(gpubench_close(bench), 0);
}

static void without_an_empty_kernel_there_is_no_overhead(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot,dirty");
    probe p = {.act = LAUNCH};
    size_t row;
    (void)state;
    fake_cuda.no_driver_functions = 1;
    measure(bench, "ten", &p);
    expect_row_failed(bench, 0, "unsupported", "--mode_dirty"); /* nothing can sweep */
    for (row = 1; row < 3; row++) {
        expect_cell(bench, row, "status", "ok");
        expect_cell(bench, row, "overhead_us", "");
    }
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_cpu_can_be_measured_too(void **state)
{
    gpubench *bench = OPEN(QUICK, "--device", "cpu");
    probe p = {.act = LAUNCH_NOTHING, .names_default = 1};
    size_t row;
    (void)state;
    fake_cuda.count_error = cudaErrorNoDevice;
    row = measure(bench, "nothing", &p);
    expect_cell(bench, row, "status", "ok");
    expect_cell(bench, row, "backend", "cpu");
    expect_no_flag(bench, row, "own-stream");
    assert_int_equal(gpubench_is_cuda(bench), 0);
    p.act = RETURN_7;
    row = measure(bench, "seven", &p);
    expect_row_failed(bench, row, "failed", "or_of_CUDA's_cudaErrorProfilerAlreadyStarted");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- guards ---- */

static void expect_failure(enum act act, const char *modes, const char *status, const char *flag)
{
    gpubench *bench = OPEN(QUICK, "--mode", modes);
    probe p = {.act = act, .bytes = BUFFER_BYTES};
    size_t row = measure(bench, "faulty", &p);
    expect_row_failed(bench, row, status, flag);
    assert_int_equal(gpubench_row_count(bench), 1);
    assert_int_equal(gpubench_close(bench), 1);
    bench = OPEN(QUICK);
    measure(bench, "faulty", &p);
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

static void launching_nothing_fails(void **state)
{
    (void)state;
    expect_failure(LAUNCH_NOTHING, "graph", "failed", "launched_nothing");
}

static void launching_nothing_fails_by_its_time(void **state)
{
    static const char *const modes[] = {"cold", "hot"};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench *bench = OPEN(QUICK, "--mode", modes[i]);
        probe p = {.act = LAUNCH_NOTHING};
        expect_row_failed(bench, measure(bench, "idle", &p), "failed", "launched_nothing");
        assert_int_equal(gpubench_close(bench), 1);
    }
}

static void a_launch_error_that_nobody_looked_at_fails(void **state)
{
    (void)state;
    expect_failure(LAUNCH_BADLY, "cold", "failed", "cudaErrorInvalidConfiguration");
    expect_failure(LAUNCH_BADLY, "hot", "failed", "cudaErrorInvalidConfiguration");
    expect_failure(LAUNCH_BADLY, "graph", "failed", "cudaErrorInvalidConfiguration");
}

static void an_error_code_fails(void **state)
{
    (void)state;
    expect_failure(RETURN_ERROR, "cold", "failed", "cudaErrorInvalidValue:_explained");
}

static void a_librarys_code_is_not_cudas(void **state)
{
    (void)state;
    expect_failure(TRY_7, "cold", "failed", "reason=return_number:_an_invalid_value_(7)");
    expect_failure(RETURN_7, "cold", "failed", ",_if_7_is_CUDA's;_GPUBENCH_TRY");
    expect_failure(RETURN_3003, "cold", "failed", "code_3003_is_none_of_CUDA's;_GPUBENCH_TRY");
}

/* Code and text are CUDA's. */
static void out_of_memory_in_run_is_oom(void **state)
{
    (void)state;
    expect_failure(TRY_OOM, "cold", "oom", "reason=return_number");
    expect_failure(RETURN_OOM, "cold", "oom", "reason=");
}

static void writing_out_of_bounds_fails(void **state)
{
    (void)state;
    expect_failure(FILL_BEFORE, "cold", "mismatch", "in_front_of");
    expect_failure(FILL_BEHIND, "cold", "mismatch", "behind");
    expect_failure(FILL_BEHIND, "hot", "mismatch", "behind");
    expect_failure(FILL_BEHIND, "graph", "mismatch", "behind");
}

static void an_output_that_was_not_written_fails(void **state)
{
    (void)state;
    expect_failure(LAUNCH, "cold", "mismatch", "4.1e+03_exceeds");
    expect_failure(LAUNCH, "graph", "mismatch", "4.1e+03_exceeds");
}

static void a_busy_host_is_no_work_on_another_stream(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = MEET_BUSY_HOST};
    size_t row;
    (void)state;
    row = measure(bench, "busy", &p);
    expect_cell(bench, row, "status", "ok");
    assert_int_equal(fake_cuda.late_synchronizations, 0);
    assert_int_equal(gpubench_close(bench), 0);
}

static void work_on_another_stream_fails(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = HIDE};
    (void)state;
    expect_row_failed(bench, measure(bench, "hidden", &p), "failed", "outside_the_stream");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

/* The other stream's kernel is over before the gate opens: 10 us of 100 would
 * be left. */
static void a_wait_for_another_stream_is_marked(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = WAIT_ELSEWHERE};
    size_t row = measure(bench, "waits", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_flag(bench, row, "ungated");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 0);
}

static void work_that_is_joined_but_was_not_forked_fails(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = JOIN_UNFORKED};
    (void)state;
    expect_row_failed(bench, measure(bench, "unforked", &p), "failed", "outside_the_stream");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

/* The default stream is in order with the one that the case was given. */
static void work_on_the_default_stream_is_timed(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = USE_DEFAULT};
    size_t row = measure(bench, "default", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_double(bench, row, "median_us", 10 + FAKE_EVENT_US);
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_default_stream_can_be_named(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot,dirty,graph");
    probe p = {.act = USE_DEFAULT, .names_default = 1};
    double batch;
    size_t row;
    (void)state;
    measure(bench, "default", &p);
    for (row = 0; row < 3; row++) {
        size_t at = row < 2 ? row : 3; /* graph stands in front of dirty */
        expect_cell(bench, at, "status", "ok");
        expect_flag(bench, at, "own-stream");
        expect_no_flag(bench, at, "ungated");
    }
    expect_double(bench, 0, "median_us", 10 + FAKE_EVENT_US);
    expect_double(bench, 3, "median_us", 10 + FAKE_EVENT_US);
    batch = value_of(bench, 1, "batch");
    expect_double(bench, 1, "median_us", (10 * batch + FAKE_EVENT_US) / batch);
    expect_row_failed(bench, 2, "unsupported", "no_graph_holds_what_is_on_the_default_stream");
    assert_int_equal(gpubench_close(bench), 0);
}

/* And run and reset are given no other; graphs are replayed there too. */
static void a_stream_of_the_cases_own_can_be_named(void **state)
{
    gpubench *bench;
    probe p = {.act = USE_OTHER, .names_other = 1};
    gpubench_case one = gpubench_case_init("own", run, &p);
    size_t row;
    (void)state;
    fake_nvml.present = 1;
    fake_nvml.watts = 500;
    bench = OPEN(QUICK, "--mode", "cold,graph", "--energy");
    one.setup = set_up;
    one.reset = reset;
    one.teardown = tear_down;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    for (row = 0; row < 2; row++) {
        expect_cell(bench, row, "status", "ok");
        expect_flag(bench, row, "own-stream");
        expect_no_flag(bench, row, "ungated");
        expect_double(bench, row, "median_us", 10 + FAKE_EVENT_US);
    }
    assert_true(p.seen_count > 0);
    for (row = 0; row < p.seen_count; row++) /* another one for each setup */
        assert_true(p.seen[row] != ((gpb_cuda *)bench->device_state)->streams[0]);
    assert_true(p.seen_count <= 2);
    assert_int_equal(gpubench_close(bench), 0);
}

static void work_that_is_not_on_the_named_stream_fails(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = HIDE, .names_default = 1};
    size_t row = measure(bench, "elsewhere", &p);
    (void)state;
    expect_row_failed(bench, row, "failed", "outside_the_stream_that_it_named");
    expect_no_flag(bench, row, "gpubench_use_stream");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

static void a_case_on_another_stream_is_told_how_to_name_it(void **state)
{
    (void)state;
    expect_failure(HIDE, "cold", "failed", "gpubench_use_stream(bench,_stream)");
    expect_failure(LAUNCH_NOTHING, "cold", "failed", "gpubench_use_stream(bench,_stream)");
    expect_failure(LAUNCH_NOTHING, "graph", "failed", "gpubench_use_stream(bench,_stream)");
}

static void a_capture_that_meets_the_default_stream_says_so(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "graph");
    probe p = {.act = USE_DEFAULT};
    (void)state;
    expect_row_failed(bench, measure(bench, "default", &p), "unsupported",
                      "cudaErrorStreamCaptureImplicit,_it_launches_on_the_default_stream");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_stream_is_named_in_setup_only(void **state)
{
    gpubench *bench = OPEN(QUICK);
    (void)state;
    assert_int_equal(gpubench_use_stream(bench, NULL), GPUBENCH_FAILED);
    assert_int_equal(gpubench_close(bench), 2);
}

static void what_happens_once_on_a_stream_leaves_the_gate(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = SYNCHRONIZE_ONCE};
    size_t row = measure(bench, "once", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_no_flag(bench, row, "ungated");
    expect_double(bench, row, "median_us", 10 + FAKE_EVENT_US);
    assert_true(p.seen_count > 8);
    assert_int_equal(gpubench_close(bench), 0);
}

/* On how many streams a case ran, in all modes; its row's settings tell. */
static size_t count_streams(const char *option, const char *value, const char *settings)
{
    gpubench *bench = OPEN(QUICK, "--mode", "all", "--min-samples", "20", option, value);
    probe p = {.act = SYNCHRONIZE_ONCE};
    size_t row = measure(bench, "turns", &p);
    expect_cell(bench, 0, "status", "ok");
    expect_double(bench, 0, "median_us", 10 + FAKE_EVENT_US);
    expect_cell(bench, row, "settings", settings);
    (void)gpubench_close(bench);
    return p.seen_count;
}

static void samples_take_turns_on_as_many_streams_as_told(void **state)
{
#define SETTINGS "precision=0.5 max-time=0.05 min-samples=20 max-samples=20 warmup=1"
    (void)state;
    assert_int_equal(count_streams("--streams", "1", SETTINGS " streams=1"), 1);
    assert_int_equal(count_streams("--streams", "2", SETTINGS " streams=2"), 2);
    assert_true(count_streams("--streams", "28", SETTINGS) > 8); /* all, given time */
    assert_true(count_streams("--seed", "1", SETTINGS) > 8);
#undef SETTINGS
}

static void recording_an_event_is_launching_nothing(void **state)
{
    (void)state;
    expect_failure(RECORD_ONLY, "cold", "failed", "launched_nothing");
    expect_failure(RECORD_ONLY, "hot", "failed", "launched_nothing");
    expect_failure(RECORD_ONLY, "graph", "failed", "launched_nothing");
}

static void a_launch_that_takes_the_host_long_is_marked(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe busy = {.act = KEEP_HOST_BUSY}, idle = {.act = LAUNCH};
    size_t row = measure(bench, "busy", &busy);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_flag(bench, row, "host-bound");
    assert_true(value_of(bench, row, "host_us") >= 1000);
    row = measure(bench, "idle", &idle);
    assert_true(value_of(bench, row, "host_us") > 0);
    assert_int_equal(gpubench_close(bench), 0);
}

/* The next case's memory comes from the device that is measured. */
static void another_device_left_current_is_not_the_next_cases(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe leaves = {.act = LEAVE_DEVICE}, next = {.act = FILL, .bytes = BUFFER_BYTES};
    size_t row;
    (void)state;
    measure(bench, "leaves", &leaves);
    row = measure(bench, "next", &next);
    expect_cell(bench, row, "status", "ok");
    assert_int_equal(fake_current_device(), 0);
    assert_int_equal(gpubench_close(bench), 0);
}

/* A memory pool keeps what it has while a search waits for the device; then it
 * is as before. */
static void a_memory_pool_is_as_it_was(void **state)
{
    uint64_t before = 4096;
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH};
    cudaMemPool_t pool;
    (void)state;
    assert_int_equal(cudaDeviceGetMemPool(&pool, 0), cudaSuccess);
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &before);
    measure(bench, "ten", &p);
    assert_true(fake_release_threshold() == 4096);
    assert_int_equal(gpubench_close(bench), 0);
}

static void synchronizing_inside_is_marked_and_measured(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot");
    probe p = {.act = SYNCHRONIZE};
    size_t row;
    (void)state;
    measure(bench, "inside", &p);
    assert_int_equal(gpubench_row_count(bench), 2);
    for (row = 0; row < 2; row++) {
        expect_cell(bench, row, "status", "ok");
        expect_flag(bench, row, "ungated");
    }
    expect_double(bench, 0, "median_us", 10 + FAKE_EVENT_US);
    assert_int_equal(gpubench_close(bench), 0);
}

static void what_cannot_be_captured_is_unsupported(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "graph");
    probe inside = {.act = SYNCHRONIZE}, fine = {.act = LAUNCH};
    size_t row;
    (void)state;
    row = measure(bench, "inside", &inside);
    expect_row_failed(bench, row, "unsupported", "cudaErrorStreamCapture");
    fake_cuda.capture_error = cudaErrorInvalidValue;
    row = measure(bench, "refused", &fine);
    expect_row_failed(bench, row, "unsupported", "cudaErrorInvalidValue");
    fake_cuda.capture_error = cudaSuccess;
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 0);
}

static void an_error_in_reset_fails(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = LAUNCH, .reset_fails = 1};
    gpubench_case one = gpubench_case_init("reset", run, &p);
    (void)state;
    one.reset = reset;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_row_failed(bench, 0, "failed", "cudaErrorInvalidValue");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

/* An error that a case leaves behind is not the next one's. */
static void errors_left_behind_do_not_reach_the_next_case(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe verifying = {.act = LAUNCH, .verify_leaves_error = 1};
    probe leaving = {.act = LAUNCH, .teardown_leaves_error = 1};
    (void)state;
    measure(bench, "leaves", &leaving);
    expect_next_is_measured(bench);
    gpubench_close(bench);
    bench = OPEN(QUICK);
    measure(bench, "verifies", &verifying);
    expect_next_is_measured(bench);
    gpubench_close(bench);
}

/* ---- power ---- */

/* Ten microseconds at 500 W are 5 mJ; the reset's millisecond is not the run's.
 * The counter steps by a tenth of a second of two. */
static void energy_is_that_of_the_runs(void **state)
{
    gpubench *bench;
    probe p = {.act = LAUNCH};
    gpubench_case one = gpubench_case_init("energetic", run, &p);
    (void)state;
    fake_nvml.present = 1;
    fake_nvml.watts = 500;
    bench = OPEN(QUICK, "--energy");
    one.reset = reset;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    assert_true(value_of(bench, 0, "energy_mj") > 4.75);
    assert_true(value_of(bench, 0, "energy_mj") < 5.25);
    assert_int_equal(gpubench_close(bench), 0);
}

static void without_an_energy_counter_that_is_said(void **state)
{
    gpubench *bench = OPEN(QUICK, "--energy");
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    (void)state;
    expect_cell(bench, row, "status", "ok");
    expect_cell(bench, row, "energy_mj", "");
    expect_flag(bench, row, "no-energy-counter");
    assert_int_equal(gpubench_close(bench), 0);
}

/* A case near the power cap runs for two seconds before it is sampled, one far
 * from it does not. */
static void a_load_at_the_power_cap_is_warmed_up_for_seconds(void **state)
{
    static const unsigned watts[] = {300, 690};
    double warmup[2];
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench *bench;
        probe p = {.act = LAUNCH};
        size_t row;
        fake_nvml.present = 1;
        fake_nvml.watts_now = watts[i];
        bench = OPEN(QUICK);
        row = measure(bench, "ten", &p);
        expect_cell(bench, row, "status", "ok");
        expect_double(bench, row, "power_w", watts[i]);
        expect_double(bench, row, "power_limit_w", 700);
        warmup[i] = value_of(bench, row, "warmup");
        assert_int_equal(gpubench_close(bench), 0);
    }
    assert_true(warmup[1] > 10 * warmup[0]);
}

/* ---- memory ---- */

static void too_much_memory_is_oom(void **state)
{
    static const size_t sizes[] = {(size_t)1 << 40, SIZE_MAX, SIZE_MAX - 1024, (size_t)1 << 63};
    static const char *const flags[] = {"needed_bytes=1099511627776 free_bytes=",
                                        "needed_bytes=18446744073709551615 free_bytes=",
                                        "needed_bytes=18446744073709550591 free_bytes=",
                                        "needed_bytes=9223372036854775808 free_bytes="};
    size_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        gpubench *bench = OPEN(QUICK);
        probe p = {.act = FILL, .bytes = sizes[i]};
        expect_row_failed(bench, measure(bench, "huge", &p), "oom", flags[i]);
        expect_next_is_measured(bench);
        assert_int_equal(gpubench_close(bench), 1);
    }
}

/* An allocation may fail for another reason, and that reason has a name. */
static void a_failed_allocation_is_not_always_oom(void **state)
{
    gpubench *bench = OPEN(QUICK);
    probe p = {.act = FILL, .bytes = BUFFER_BYTES, .malloc_error = cudaErrorInvalidValue};
    (void)state;
    expect_row_failed(bench, measure(bench, "refused", &p), "failed", "cudaErrorInvalidValue");
    expect_next_is_measured(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- which device ---- */

static void expect_device(const char *wanted, int ordinal)
{
    gpubench *bench = OPEN(QUICK, "--device", wanted);
    probe p = {.act = LAUNCH};
    size_t row = measure(bench, "ten", &p);
    expect_cell(bench, row, "device", ordinal ? "Fake GPU 1" : "Fake GPU 0");
    expect_cell(bench, row, "uuid", ordinal ? UUID_1 : UUID_0);
    expect_cell(bench, row, "compute_capability", ordinal ? "8.0" : "9.0");
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_device_is_chosen_by_number_or_uuid(void **state)
{
    (void)state;
    expect_device("auto", 0);
    expect_device("0", 0);
    expect_device("1", 1);
    expect_device(UUID_0, 0);
    expect_device(UUID_1, 1);
    expect_device("GPU-a0a1a2a3", 1);
    expect_device("GPU-1011", 0);
    expect_device("GPU-A0A1A2A3", 1);
    expect_device("MIG-a0a1a2a3", 1);
}

static void the_chosen_device_is_the_current_one(void **state)
{
    gpubench *bench = OPEN(QUICK, "--device", "1");
    probe p = {.act = LAUNCH};
    (void)state;
    assert_int_equal(fake_current_device(), 1); /* before anything is measured */
    assert_int_equal(gpubench_compute_capability(bench), 80);
    measure(bench, "ten", &p);
    assert_int_equal(fake_current_device(), 1);
    assert_int_equal(gpubench_close(bench), 0);
}

static void an_unknown_device_is_refused(void **state)
{
    static const char *const unknown[] = {"2", "99", "18446744073709551615", "GPU-ffffffff",
                                          UUID_0 "0", "GPU-a0a1a2a4"};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        gpubench *bench = OPEN(QUICK, "--device", unknown[i]);
        probe p = {.act = LAUNCH};
        queue(bench, "ten", &p);
        assert_int_equal(gpubench_close(bench), 2);
    }
}

static void a_device_that_cannot_be_prepared_is_refused(void **state)
{
    int step;
    (void)state;
    for (step = 0; step < 3; step++) {
        gpubench *bench;
        probe p = {.act = LAUNCH};
        fake_cuda.properties_error = step == 0 ? cudaErrorInvalidValue : cudaSuccess;
        bench = OPEN(QUICK);
        fake_cuda.stream_error = step == 1 ? cudaErrorMemoryAllocation : cudaSuccess;
        fake_cuda.malloc_error = step == 2 ? cudaErrorMemoryAllocation : cudaSuccess;
        queue(bench, "ten", &p);
        assert_int_equal(gpubench_close(bench), 2);
        fake_start();
    }
}

/* ---- through a program: no driver, lost contexts ---- */

static void expect_no_gpu(const char *driver, const char *name, const char *explanation)
{
    const char *csv = support_path("no-gpu.csv");
    outcome result = RUN("cuda", "--driver", driver, "--csv", csv, QUICK);
    support_expect_status(&result, 2);
    support_expect_text(result.err, name);
    support_expect_text(result.err, explanation);
    support_expect_text(result.err, "--device");
    assert_false(support_exists(csv));
    support_free_outcome(&result);
}

static void without_a_gpu_cudas_reason_is_told(void **state)
{
    (void)state;
    expect_no_gpu("none", "cudaErrorNoDevice", "there is no device (fake)");
    expect_no_gpu("empty", "cudaErrorNoDevice", "there is no device (fake)");
    expect_no_gpu("old", "cudaErrorInsufficientDriver", "the driver is too old (fake)");
}

static void looking_needs_no_gpu(void **state)
{
    outcome result = RUN("cuda", "--driver", "none", "--list", "--set", "crash");
    (void)state;
    support_expect_status(&result, 0);
    assert_string_equal(result.out, "healthy-1\nfaulty\nhealthy-2\nhealthy-3\n");
    support_free_outcome(&result);
    result = RUN("cuda", "--driver", "none", "--help");
    support_expect_status(&result, 0);
    support_free_outcome(&result);
}

static void an_unknown_device_leaves_the_file_alone(void **state)
{
    const char *csv = support_path("kept.csv");
    outcome result;
    char *text;
    (void)state;
    support_write(csv, "precious\n");
    result = RUN("cuda", "--device", "7", "--csv", csv, QUICK);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--device 7");
    text = support_read(csv);
    assert_string_equal(text, "precious\n");
    free(text);
    support_free_outcome(&result);
}

/* One faulty case that costs the context, three healthy ones around it: all
 * are measured, in whatever order the seed has them. */
static void expect_survived(const char *set, const char *seed, const char *grouped,
                            const char *reason)
{
    static const char *const healthy[] = {"healthy-1", "healthy-2", "healthy-3"};
    const char *csv = support_path("lost.csv");
    outcome result = RUN("cuda", "--set", set, "--csv", csv, "--timeout", "0.3", "--seed", seed,
                         QUICK, grouped ? "--grouped" : NULL, grouped);
    csv_table *table;
    size_t i;
    support_expect_status(&result, 1);
    table = support_read_csv(csv);
    for (i = 0; i < 3; i++)
        support_expect_measured(table, healthy[i]);
    support_expect_failed(table, "faulty", strcmp(set, "crash_verify") ? "failed" : "mismatch",
                          reason);
    support_expect_text(result.out, "faulty"); /* the table has the rows of all processes */
    support_expect_text(result.out, "healthy-2");
    for (i = 2; i < table->row_count; i++)
        assert_string_equal(support_cell(table, i, "campaign"), support_cell(table, 1, "campaign"));
    unlink(csv);
    support_free_csv(table);
    support_free_outcome(&result);
}

static void a_lost_context_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash", "1", NULL, "cudaErrorIllegalAddress");
    expect_survived("crash", "2", NULL, "cudaErrorIllegalAddress");
    expect_survived("crash", "3", NULL, "cudaErrorIllegalAddress");
}

static void a_context_lost_in_reset_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash_reset", "1", NULL, "cudaErrorIllegalAddress");
}

static void a_context_lost_in_setup_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash_setup", "1", NULL, "filling_failed");
    expect_survived("crash_setup", "2", NULL, "filling_failed");
}

static void a_context_lost_in_verify_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash_verify", "1", NULL, "cannot_read");
    expect_survived("crash_verify", "2", NULL, "cannot_read");
}

static void a_context_lost_in_a_group_costs_one_case(void **state)
{
    (void)state;
    expect_survived("crash", "1", "yes", "cudaErrorIllegalAddress");
}

static void two_lost_contexts_cost_two_cases(void **state)
{
    (void)state;
    expect_survived("crash_twice", "1", NULL, "cudaErrorIllegalAddress");
    expect_survived("crash_twice", "1", "yes", "cudaErrorIllegalAddress");
}

static void a_hung_kernel_costs_one_case(void **state)
{
    (void)state;
    expect_survived("hang", "1", NULL, "not_finished_after_0.3_s");
    expect_survived("hang", "2", NULL, "not_finished_after_0.3_s");
}

/* Every process added its samples: three healthy cases in two runs begin. */
static void expect_all_samples(const char *path)
{
    csv_table *table = support_read_csv(path);
    size_t row, begun = 0;
    for (row = 1; row < table->row_count; row++)
        begun += !strcmp(support_cell(table, row, "sample"), "1");
    assert_int_equal(begun, 6);
    support_free_csv(table);
}

static void lost_contexts_and_several_runs_go_together(void **state)
{
    const char *csv = support_path("runs.csv"), *samples = support_path("samples.csv");
    char folder[128];
    outcome result;
    csv_table *table;
    size_t row, failed = 0;
    (void)state;
    snprintf(folder, sizeof folder, "%s", support_path("rows"));
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("TMPDIR", folder, 1);
    result = RUN("cuda", "--set", "crash", "--csv", csv, "--runs", "2", "--samples", samples,
                 QUICK);
    unsetenv("TMPDIR");
    support_expect_status(&result, 1);
    table = support_read_csv(csv);
    assert_int_equal(table->row_count, 1 + 2 * 4);
    for (row = 1; row < table->row_count; row++) {
        char order[16];
        snprintf(order, sizeof order, "%u", (unsigned)(row - 1) % 4 + 1);
        assert_string_equal(support_cell(table, row, "order"), order);
        assert_string_equal(support_cell(table, row, "run"), row <= 4 ? "1" : "2");
        failed += strcmp(support_cell(table, row, "status"), "ok") != 0;
    }
    assert_int_equal(failed, 2);
    expect_all_samples(samples);
    assert_int_equal(rmdir(folder), 0); /* the rows' file is gone */
    support_free_csv(table);
    support_free_outcome(&result);
}

#define CUDA_TEST(name) cmocka_unit_test_setup_teardown(name, start, nothing_left)

/* ---- outputs that cases share, or that the framework did not allocate ---- */

static probe *lender;

static int borrow(void *context, gpubench *bench)
{
    probe *p = (probe *)context;
    (void)bench;
    p->bytes = lender->bytes;
    p->output = lender->output;
    return GPUBENCH_OK;
}

static int register_own(void *context, gpubench *bench)
{
    probe *p = (probe *)context;
    int code = (int)cudaMalloc((void **)&p->own, BUFFER_BYTES);
    p->bytes = BUFFER_BYTES;
    p->output = p->own;
    if (code == 0) /* what an earlier run may have left */
        code = (int)cudaMemset(p->own, 7, BUFFER_BYTES);
    return code ? code : gpubench_output(bench, p->own, BUFFER_BYTES);
}

/* The group's idle case, in each place, must not pass by what the other wrote. */
static void a_case_does_not_pass_by_anothers_output(void **state)
{
    static const char *const modes[] = {"cold", "hot", "graph"};
    size_t idle, mode, i;
    (void)state;
    for (mode = 0; mode < 3; mode++)
        for (idle = 0; idle < 2; idle++) {
            gpubench *bench = OPEN(QUICK, "--mode", modes[mode]);
            probe probes[2] = {{.act = FILL, .bytes = BUFFER_BYTES}, {.act = FILL}};
            gpubench_case cases[2];
            probes[idle].act = LAUNCH;
            lender = &probes[0];
            for (i = 0; i < 2; i++) {
                cases[i] = gpubench_case_init(i ? "borrower" : "lender", run, &probes[i]);
                cases[i].setup = i ? borrow : set_up;
                cases[i].verify = verify;
            }
            gpubench_measure_group(bench, cases, 2);
            gpubench_run(bench);
            expect_cell(bench, idle, "status", "mismatch");
            expect_cell(bench, 1 - idle, "status", "ok");
            assert_int_equal(gpubench_close(bench), 1);
        }
}

static void a_registered_output_is_poisoned(void **state)
{
    static const enum act acts[] = {FILL, LAUNCH};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench *bench = OPEN(QUICK);
        probe p = {.act = acts[i]};
        gpubench_case one = gpubench_case_init("own", run, &p);
        one.setup = register_own;
        one.verify = verify;
        one.teardown = tear_down;
        gpubench_measure(bench, &one);
        gpubench_run(bench);
        expect_cell(bench, 0, "status", i ? "mismatch" : "ok");
        assert_int_equal(gpubench_close(bench), i != 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(a_kernel_is_timed_by_events),
        CUDA_TEST(the_device_is_described),
        CUDA_TEST(the_method_is_described),
        CUDA_TEST(flush_and_reset_are_not_timed),
        CUDA_TEST(a_case_can_have_one_mode_only),
        CUDA_TEST(hot_mode_divides_a_long_batch),
        CUDA_TEST(hot_mode_runs_once_in_front_of_a_batch),
        CUDA_TEST(graph_mode_replays_what_was_captured),
        CUDA_TEST(memory_of_every_kind_works),
        CUDA_TEST(a_cases_own_device_memory_is_counted),
        CUDA_TEST(a_case_does_not_pass_by_anothers_output),
        CUDA_TEST(a_registered_output_is_poisoned),
        CUDA_TEST(without_an_empty_kernel_there_is_no_overhead),
        CUDA_TEST(the_cpu_can_be_measured_too),
        CUDA_TEST(launching_nothing_fails),
        CUDA_TEST(launching_nothing_fails_by_its_time),
        CUDA_TEST(a_launch_error_that_nobody_looked_at_fails),
        CUDA_TEST(an_error_code_fails),
        CUDA_TEST(a_librarys_code_is_not_cudas),
        CUDA_TEST(out_of_memory_in_run_is_oom),
        CUDA_TEST(writing_out_of_bounds_fails),
        CUDA_TEST(an_output_that_was_not_written_fails),
        CUDA_TEST(a_busy_host_is_no_work_on_another_stream),
        CUDA_TEST(work_on_another_stream_fails),
        CUDA_TEST(a_wait_for_another_stream_is_marked),
        CUDA_TEST(work_that_is_joined_but_was_not_forked_fails),
        CUDA_TEST(work_on_the_default_stream_is_timed),
        CUDA_TEST(the_default_stream_can_be_named),
        CUDA_TEST(a_stream_of_the_cases_own_can_be_named),
        CUDA_TEST(work_that_is_not_on_the_named_stream_fails),
        CUDA_TEST(a_case_on_another_stream_is_told_how_to_name_it),
        CUDA_TEST(a_capture_that_meets_the_default_stream_says_so),
        CUDA_TEST(a_stream_is_named_in_setup_only),
        CUDA_TEST(what_happens_once_on_a_stream_leaves_the_gate),
        CUDA_TEST(samples_take_turns_on_as_many_streams_as_told),
        CUDA_TEST(recording_an_event_is_launching_nothing),
        CUDA_TEST(a_launch_that_takes_the_host_long_is_marked),
        CUDA_TEST(another_device_left_current_is_not_the_next_cases),
        CUDA_TEST(a_memory_pool_is_as_it_was),
        CUDA_TEST(synchronizing_inside_is_marked_and_measured),
        CUDA_TEST(what_cannot_be_captured_is_unsupported),
        CUDA_TEST(an_error_in_reset_fails),
        CUDA_TEST(errors_left_behind_do_not_reach_the_next_case),
        CUDA_TEST(energy_is_that_of_the_runs),
        CUDA_TEST(without_an_energy_counter_that_is_said),
        CUDA_TEST(a_load_at_the_power_cap_is_warmed_up_for_seconds),
        CUDA_TEST(too_much_memory_is_oom),
        CUDA_TEST(a_failed_allocation_is_not_always_oom),
        CUDA_TEST(a_device_is_chosen_by_number_or_uuid),
        CUDA_TEST(the_chosen_device_is_the_current_one),
        CUDA_TEST(an_unknown_device_is_refused),
        CUDA_TEST(a_device_that_cannot_be_prepared_is_refused),
        cmocka_unit_test(without_a_gpu_cudas_reason_is_told),
        cmocka_unit_test(looking_needs_no_gpu),
        cmocka_unit_test(an_unknown_device_leaves_the_file_alone),
        cmocka_unit_test(a_lost_context_costs_one_case),
        cmocka_unit_test(a_context_lost_in_reset_costs_one_case),
        cmocka_unit_test(a_context_lost_in_setup_costs_one_case),
        cmocka_unit_test(a_context_lost_in_verify_costs_one_case),
        cmocka_unit_test(a_context_lost_in_a_group_costs_one_case),
        cmocka_unit_test(two_lost_contexts_cost_two_cases),
        cmocka_unit_test(a_hung_kernel_costs_one_case),
        cmocka_unit_test(lost_contexts_and_several_runs_go_together),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("CUDA path", tests, NULL, NULL));
}
