/* What a case on CUDA may not do, and what it is told: on the substitute runtime. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "cuda_probe.h"

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
    expect_number(bench, row, "median_us", 10 + FAKE_EVENT_US);
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
    expect_number(bench, 0, "median_us", 10 + FAKE_EVENT_US);
    expect_number(bench, 3, "median_us", 10 + FAKE_EVENT_US);
    batch = value_of(bench, 1, "batch");
    expect_number(bench, 1, "median_us", (10 * batch + FAKE_EVENT_US) / batch);
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
        expect_number(bench, row, "median_us", 10 + FAKE_EVENT_US);
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
    expect_number(bench, row, "median_us", 10 + FAKE_EVENT_US);
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
    expect_number(bench, 0, "median_us", 10 + FAKE_EVENT_US);
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
    expect_number(bench, 0, "median_us", 10 + FAKE_EVENT_US);
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

/* The stream comes to the gate when what the gate belonged to is long given back. */
static void keep_busy(void *argument)
{
    pthread_mutex_lock(argument);
    pthread_mutex_unlock(argument);
}

static void the_gate_outlives_whom_it_belongs_to(void **state)
{
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    gpb_gate *gate = gpb_gate_make();
    cudaStream_t stream = NULL;
    (void)state;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    pthread_mutex_lock(&held);
    assert_int_equal(cudaLaunchHostFunc(stream, keep_busy, &held), cudaSuccess);
    assert_int_equal(gpb_gate_enqueue(gate, stream), 0);
    gpb_gate_open(gate);
    pthread_mutex_lock(&gate->mutex);
    gpb_gate_drop(gate);
    assert_int_equal(gate->users, 1);
    pthread_mutex_unlock(&held);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
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
        CUDA_TEST(the_gate_outlives_whom_it_belongs_to),
        CUDA_TEST(errors_left_behind_do_not_reach_the_next_case),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("CUDA guards", tests, NULL, NULL));
}
