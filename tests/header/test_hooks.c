/* What a program that verifies more than the header does can ask for: the outputs of
 * a case, waiting, memory that outlives cases, and notes. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#define QUICK "--max-time", "0.01", "--min-samples", "6", "--max-samples", "8", "--warmup", "1"

static int run_something(void *context, gpubench_stream stream)
{
    struct timespec pause = {0, 20000};
    (void)context;
    (void)stream;
    nanosleep(&pause, NULL);
    return 0;
}

/* ---- the outputs of a case ---- */

enum { OUTPUTS = 3 };

/* Two outputs of so many bytes, an input that is none, and memory of its own. */
typedef struct writer {
    size_t bytes;
    void *expected[OUTPUTS]; /* in the order that is promised */
    unsigned char own[16];
    size_t seen;
} writer;

static int writer_setup(void *context, gpubench *bench)
{
    writer *w = (writer *)context;
    w->expected[1] = gpubench_alloc(bench, w->bytes, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    (void)gpubench_alloc(bench, w->bytes, GPUBENCH_DEVICE);
    w->expected[0] = gpubench_alloc(bench, w->bytes + 1, GPUBENCH_PAGEABLE | GPUBENCH_OUTPUT);
    w->expected[2] = w->own;
    (void)gpubench_output(bench, w->own, sizeof w->own);
    return gpubench_allocated(bench);
}

static int see_output(void *context, void *memory, size_t bytes)
{
    writer *w = (writer *)context;
    const size_t sizes[OUTPUTS] = {w->bytes + 1, w->bytes, sizeof w->own};
    assert_true(w->seen < OUTPUTS);
    assert_ptr_equal(memory, w->expected[w->seen]);
    assert_int_equal(bytes, sizes[w->seen]);
    w->seen++;
    return 0;
}

static int stop_at_once(void *context, void *memory, size_t bytes)
{
    int *calls = (int *)context;
    (void)memory;
    (void)bytes;
    ++*calls;
    return 77;
}

static int writer_verify(void *context, gpubench *bench)
{
    writer *w = (writer *)context;
    int calls = 0;
    w->seen = 0;
    assert_int_equal(gpubench_for_each_output(bench, see_output, w), 0);
    assert_int_equal(w->seen, OUTPUTS);
    assert_int_equal(gpubench_for_each_output(bench, stop_at_once, &calls), 77);
    assert_int_equal(calls, 1);
    return gpubench_finish(bench);
}

/* Each sees its own only, though the other's are there too. */
static void outputs_are_the_cases_own(void **state)
{
    gpubench *bench = OPEN(QUICK);
    writer writers[2];
    gpubench_case cases[2];
    (void)state;
    memset(writers, 0, sizeof writers);
    for (size_t i = 0; i < 2; i++) {
        writers[i].bytes = 64 + 64 * i;
        cases[i] = gpubench_case_init(i ? "second" : "first", run_something, &writers[i]);
        cases[i].setup = writer_setup;
        cases[i].verify = writer_verify;
    }
    gpubench_measure_group(bench, cases, 2);
    assert_int_equal(gpubench_close(bench), 0);
    assert_int_equal(writers[0].seen, OUTPUTS);
    assert_int_equal(writers[1].seen, OUTPUTS);
}

/* ---- memory that outlives the case that took it ---- */

enum { SHARED_BYTES = 100 };
static unsigned char *shared;
static int finds;

static int share(void *context, gpubench *bench)
{
    (void)context;
    if (!shared) {
        shared = (unsigned char *)gpubench_alloc_until_close(bench, SHARED_BYTES,
                                                             GPUBENCH_PINNED | GPUBENCH_OUTPUT);
        memset(shared, 0x5a, SHARED_BYTES);
    } else {
        finds++;
    }
    return shared ? GPUBENCH_OK : GPUBENCH_OOM;
}

/* Still there and never poisoned, and no output of anybody's. */
static int find_shared(void *context, gpubench *bench)
{
    int calls = 0;
    (void)context;
    for (size_t i = 0; i < SHARED_BYTES; i++)
        assert_int_equal(shared[i], 0x5a);
    assert_int_equal(gpubench_for_each_output(bench, stop_at_once, &calls), 0);
    assert_int_equal(calls, 0);
    return 0;
}

static void memory_until_close(void **state)
{
    gpubench *bench = OPEN(QUICK);
    const char *const names[] = {"one", "two", "three"};
    gpubench_case cases[3];
    (void)state;
    shared = NULL;
    finds = 0;
    for (size_t i = 0; i < 3; i++) {
        cases[i] = gpubench_case_init(names[i], run_something, NULL);
        cases[i].setup = share;
        cases[i].verify = find_shared;
    }
    gpubench_measure_group(bench, cases, 2); /* of which all outputs are poisoned at once */
    gpubench_measure(bench, &cases[2]);
    assert_int_equal(gpubench_close(bench), 0); /* frees it, as the sanitizer would tell */
    assert_int_equal(finds, 2);
}

static void no_memory_outside_a_case(void **state)
{
    gpubench *bench = OPEN(QUICK);
    (void)state;
    assert_null(gpubench_alloc_until_close(bench, 1, GPUBENCH_DEVICE));
    assert_int_equal(gpubench_close(bench), 2);
}

static int share_too_much(void *context, gpubench *bench)
{
    (void)context;
    assert_null(gpubench_alloc_until_close(bench, SIZE_MAX / 4, GPUBENCH_DEVICE));
    return gpubench_allocated(bench);
}

static void memory_until_close_that_is_not_there(void **state)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("greedy", run_something, NULL);
    (void)state;
    one.setup = share_too_much;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "oom");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- notes ---- */

/* What of "3 apples" standard error gets, with or without --quiet. */
static char *noted(gpubench *bench)
{
    const char *path = support_path("noted");
    int before = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    gpubench_note(bench, "%d apples", 3);
    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
    gpubench_close(bench);
    return support_read(path);
}

/* ---- a case that times itself ---- */

typedef struct stopwatch {
    uint64_t executions, longest;
    unsigned modes;
    int runs;
} stopwatch;

static int stopwatch_run(void *context, gpubench_stream stream)
{
    (void)stream;
    ((stopwatch *)context)->runs++;
    return 0;
}

/* 3 us for each execution. */
static int stopwatch_sample(void *context, unsigned mode, uint64_t count, double *us)
{
    stopwatch *w = (stopwatch *)context;
    w->modes |= mode;
    w->executions += count;
    w->longest = count > w->longest ? count : w->longest;
    *us = 3 * (double)count;
    return 0;
}

/* Half a millisecond is what the host's batches are, and the warm-up has more than one. */
static void a_case_times_itself(void **state)
{
    stopwatch w = {0, 0, 0, 0};
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    gpubench_case c = gpubench_case_init("stopwatch", stopwatch_run, &w);
    (void)state;
    c.sample = stopwatch_sample;
    c.bytes = 300000000; /* 100 TB/s: no claim that is held against a core's */
    c.peak_gb_per_s = -1;
    gpubench_measure(bench, &c);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_number(bench, 0, "median_us", 3);
    assert_int_equal(w.modes, GPUBENCH_HOT);
    assert_between(w.longest, 100, 300);
    assert_true(w.executions > 6 * w.longest);
    assert_int_equal(w.runs, 0);
    gpubench_close(bench);
}

static int failing_sample(void *context, unsigned mode, uint64_t count, double *us)
{
    (void)context;
    (void)mode;
    (void)count;
    (void)us;
    return gpubench_fail(NULL, GPUBENCH_UNSUPPORTED, "no watch");
}

static void what_a_sample_says_is_the_rows(void **state)
{
    stopwatch w = {0, 0, 0, 0};
    gpubench *bench = OPEN(QUICK);
    gpubench_case c = gpubench_case_init("stopwatch", stopwatch_run, &w);
    (void)state;
    c.sample = failing_sample;
    gpubench_measure(bench, &c);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "unsupported");
    expect_flag(bench, 0, "reason=no_watch");
    gpubench_close(bench);
}

static int uncounted_sample(void *context, unsigned mode, uint64_t count, double *us)
{
    (void)mode;
    (void)count;
    *us = *(const double *)context;
    return 0;
}

static void expect_refused_sample(double us, const char *mode, const char *reason)
{
    gpubench *bench = OPEN(QUICK, "--mode", mode);
    gpubench_case c = gpubench_case_init("stopwatch", stopwatch_run, &us);
    c.sample = uncounted_sample;
    gpubench_measure(bench, &c);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, reason);
    gpubench_close(bench);
}

/* Of a batch it says what one run took, whatever the batch; no time; or less than none. */
static void samples_that_cannot_be(void **state)
{
    (void)state;
    expect_refused_sample(12.5, "hot", "reason=run:_12.5_us_for_100_runs_and_for_a_tenth_of_them:_"
                                       "does_sample_count_them?");
    expect_refused_sample(0, "hot", "reason=run:_0_us_for_1e+16_runs_and_for_a_tenth_of_them:_"
                                    "does_sample_count_them?");
    expect_refused_sample(-12.5, "hot", "reason=run:_a_sample_of_-12.5_us_is_no_time");
    expect_refused_sample(-12.5, "cold", "reason=run:_a_sample_of_-12.5_us_is_no_time");
}

static void a_mode_that_is_none(void **state)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case good = gpubench_case_init("good", run_something, NULL), bad = good;
    (void)state;
    bad.name = "bad";
    bad.modes = 2 * GPUBENCH_DIRTY;
    gpubench_measure(bench, &good);
    gpubench_measure(bench, &bad);
    assert_int_equal(gpubench_close(bench), 2);
}

/* A program that must stay what it is does not begin anew after a crash. */
static int crash(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    exit(9);
}

static void a_process_stays(void **state)
{
    char path[1200];
    pid_t child;
    csv_table *rows;
    int status = 0;
    (void)state;
    snprintf(path, sizeof path, "%s", support_path("stays.csv"));
    fflush(NULL);
    child = fork();
    if (child == 0) {
        gpubench *bench = OPEN(QUICK, "--csv", path);
        gpubench_case first = gpubench_case_init("first", run_something, NULL);
        gpubench_case bad = gpubench_case_init("bad", crash, NULL);
        bench->restart.why_not = NULL; /* as of a program's first handle */
        gpubench_stay(bench, "it is a rank");
        gpubench_measure(bench, &first);
        gpubench_run(bench);
        gpubench_measure(bench, &bad);
        _exit(gpubench_close(bench));
    }
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 9);
    rows = support_read_csv(path);
    support_expect_measured(rows, "first");
    support_expect_failed(rows, "bad", "failed", "run:_called_exit(9)");
    support_free_csv(rows);
}

/* Of a program's second handle a fresh process would measure the first one's cases again. A name
 * gives a CI's log no order, and is not where the reason belongs. */
static void a_second_handle_crashes(void **state)
{
    static const char name[] = "bad reason=\001\n::error::x\033[31m";
    char path[1200], said[1200], *text;
    pid_t child;
    csv_table *rows;
    int status = 0;
    (void)state;
    snprintf(path, sizeof path, "%s", support_path("second.csv"));
    snprintf(said, sizeof said, "%s", support_path("second.err"));
    fflush(NULL);
    child = fork();
    if (child == 0) {
        gpubench *first = OPEN(QUICK), *second = OPEN(QUICK, "--csv", path);
        gpubench_case bad = gpubench_case_init(name, crash, NULL);
        if (!freopen(said, "w", stderr) || gpubench_close(first) != 2) _exit(7);
        gpubench_measure(second, &bad);
        _exit(gpubench_close(second));
    }
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 9);
    rows = support_read_csv(path);
    support_expect_failed(rows, name, "failed", "run:_called_exit(9)");
    support_free_csv(rows);
    text = support_read(said);
    support_expect_text(text, ": bad reason=??::error::x?[31m: failed: run: called exit(9)\n");
    free(text);
}

static gpubench *open_loudly(void)
{
    static char name[] = "test", device[] = "--device", cpu[] = "cpu";
    static char *arguments[] = {name, device, cpu, NULL};
    return gpubench_open("fruit", 3, arguments);
}

static void notes_are_said_unless_quiet(void **state)
{
    char *loud = noted(open_loudly()), *quiet = noted(OPEN(QUICK));
    (void)state;
    assert_string_equal(loud, "fruit: 3 apples\n");
    assert_string_equal(quiet, "");
    free(loud);
    free(quiet);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_the_cases_own),
        cmocka_unit_test(memory_until_close),
        cmocka_unit_test(no_memory_outside_a_case),
        cmocka_unit_test(memory_until_close_that_is_not_there),
        cmocka_unit_test(notes_are_said_unless_quiet),
        cmocka_unit_test(a_case_times_itself),
        cmocka_unit_test(what_a_sample_says_is_the_rows),
        cmocka_unit_test(samples_that_cannot_be),
        cmocka_unit_test(a_mode_that_is_none),
        cmocka_unit_test(a_process_stays),
        cmocka_unit_test(a_second_handle_crashes),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("hooks", tests, NULL, NULL));
}
