/* Samples in the order of measuring: in the handle, in the file of --samples,
 * as a drift that a row tells. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- a backend whose samples are given ---- */

static double (*sample_of)(size_t i);
static gpb_backend scripted;

static int scripted_sample(gpubench *bench, gpb_live *live, double *us)
{
    (void)bench;
    *us = sample_of(live->count) * (double)live->batch;
    return 0;
}

static int scripted_begin(gpubench *bench, gpb_live *live)
{
    (void)bench;
    (void)live;
    return 0;
}

static gpubench *open_scripted(double (*samples)(size_t i), const char *const *options)
{
    gpubench *bench = open_bench(options);
    sample_of = samples;
    scripted = gpb_host_backend;
    scripted.begin = scripted_begin;
    scripted.sample = scripted_sample;
    bench->backend = &scripted;
    return bench;
}

/* However busy the machine is, the samples are as many as a test says. */
#define OPEN_SCRIPTED(samples, ...) \
    open_scripted(samples, (const char *const[]){"--max-time", "60", __VA_ARGS__, NULL})

static int run_nothing(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

static void queue(gpubench *bench, const char *name)
{
    gpubench_case one = gpubench_case_init(name, run_nothing, NULL);
    gpubench_measure(bench, &one);
}

/* Neither sorted nor a palindrome. */
static double zigzag(size_t i)
{
    return 10 + (double)(i * 7 % 10) / 4;
}

static double rising(size_t i)
{
    return 100 + 0.031 * (double)i;
}

static double zero(size_t i)
{
    (void)i;
    return 0;
}

/* Stops this process until a child that it leaves behind continues it. */
static void be_suspended(void)
{
    static const struct timespec pause = {0, 50000000};
    pid_t self = getpid(), child = fork();
    if (child == 0)
        for (;;) {
            nanosleep(&pause, NULL);
            if (kill(self, SIGCONT) != 0)
                _exit(0);
        }
    assert_true(child > 0);
    raise(SIGSTOP);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static int may_suspend;

/* The case's fourth sample meets it, and is what a clock says that was not stopped. */
static double suspended_once(size_t i)
{
    if (i != 3 || !may_suspend)
        return zigzag(i);
    may_suspend = 0;
    be_suspended();
    return 1e6;
}

static int let_suspend(void *context, gpubench *bench)
{
    (void)context;
    (void)bench;
    may_suspend = 1;
    return 0;
}

static double no_number(size_t i)
{
    return i == 3 ? NAN : 10;
}

/* Ten long waves: the samples of a half are on one side of the median. */
static double wave(size_t i)
{
    return 100 + (i / 50 % 2 ? 1 : -1) * (1 + (double)(i * 13 % 50) / 100);
}

/* ---- rows ---- */

static void a_drift_is_told(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(rising, "--max-samples", "100", "--min-samples", "100");
    (void)state;
    queue(bench, "rising");
    gpubench_run(bench);
    /* medians of the first and the last twenty: 100.2945, 102.7745 */
    expect_flag(bench, 0, "drift=+2.5%");
    assert_int_equal(gpubench_close(bench), 0);
}

static void without_a_drift_none_is_told(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(zigzag, "--max-samples", "100", "--min-samples", "100");
    (void)state;
    queue(bench, "steady");
    gpubench_run(bench);
    expect_no_flag(bench, 0, "drift");
    assert_int_equal(gpubench_close(bench), 0);
}

/* 1000 samples in waves: as if independent the interval would be 469 to 532 of
 * one side's edge; here it reaches over both. */
static void waves_widen_the_interval(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(wave, "--max-samples", "1000", "--min-samples", "1000",
                                    "--precision", "2.2");
    double samples[1000];
    gpubench_statistics s;
    size_t i;
    (void)state;
    for (i = 0; i < 1000; i++)
        samples[i] = wave(i);
    assert_true(gpubench_dependence(samples, 1000) > 4);
    gpubench_describe(samples, 1000, &s);
    assert_true(s.ci95_high - s.ci95_low <= 0.022 * s.median); /* would be precise */
    queue(bench, "wave");
    gpubench_run(bench);
    assert_true(value_of(bench, 0, "ci95_low_us") < s.ci95_low - 0.1);
    assert_true(value_of(bench, 0, "ci95_high_us") > s.ci95_high + 0.1);
    expect_flag(bench, 0, "imprecise");
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_sample_that_is_no_number_fails_its_case(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(no_number, "--max-samples", "10");
    (void)state;
    queue(bench, "odd");
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, "a_sample_is_no_finite_number");
    assert_int_equal(gpubench_close(bench), 1);
}

/* It is below the clock's step, and no time. */
static void a_suspended_sample_is_not_believed(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(suspended_once, "--max-samples", "10", "--min-samples", "10");
    gpubench_case one = gpubench_case_init("suspended", run_nothing, NULL);
    struct sigaction action;
    (void)state;
    one.setup = let_suspend;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_false(may_suspend);
    assert_int_equal(value_of(bench, 0, "samples"), 10);
    assert_true(value_of(bench, 0, "max_us") == zigzag(7)); /* 10 + 9 / 4 */
    assert_int_equal(gpubench_close(bench), 0);
    assert_int_equal(sigaction(SIGCONT, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
}

static void a_median_of_0_fails(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(zero, "--max-samples", "6");
    (void)state;
    queue(bench, "zero");
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "failed");
    expect_cell(bench, 0, "ci95_low_us", "");
    gpubench_close(bench);
}

/* ---- the file of --samples ---- */

static const char header[] =
    "suite,case,variant,backend,dtype,params,mode,campaign,run,sample,us\n";

static void samples_are_written_in_order(void **state)
{
    const char *path = support_path("samples.csv");
    gpubench *bench = OPEN_SCRIPTED(zigzag, "--max-samples", "12", "--samples", path,
                                    "--campaign", "c");
    char *text, line[128];
    size_t i, used = strlen(header);
    (void)state;
    queue(bench, "zig,zag");
    gpubench_run(bench);
    assert_false(support_exists(path)); /* only a finished file has the name */
    assert_int_equal(gpubench_close(bench), 0);
    text = support_read(path);
    assert_memory_equal(text, header, used);
    for (i = 0; i < 12; i++) {
        snprintf(line, sizeof line, "test,\"zig,zag\",,cpu,,,cold,c,1,%zu,%g\n", i + 1, zigzag(i));
        assert_memory_equal(text + used, line, strlen(line));
        used += strlen(line);
    }
    assert_int_equal(strlen(text), used);
    free(text);
    unlink(path);
}

/* Of two runs, each case and sample once; the table is apart, the old file gone. */
static void samples_of_several_processes(void **state)
{
    const char *path = support_path("samples.csv");
    outcome result;
    csv_table *table;
    size_t row;
    int runs[3] = {0, 0, 0};
    (void)state;
    support_write(path, "old\n");
    result = RUN("host", "--set", "several", "--runs", "2", "--max-samples", "6", "--max-time",
                 "60", "--samples", path);
    support_expect_status(&result, 0);
    support_expect_no_text(result.out, ",cold,");
    table = support_read_csv(path);
    assert_string_equal(table->fields[0][0], "suite");
    for (row = 1; row < table->row_count; row++) {
        int run = atoi(support_cell(table, row, "run"));
        assert_between(run, 1, 2);
        runs[run]++;
        assert_int_equal(atoi(support_cell(table, row, "sample")), (int)((row - 1) % 6) + 1);
        assert_true(strtod(support_cell(table, row, "us"), NULL) > 0);
    }
    assert_true(runs[1] > 0 && runs[1] % 6 == 0 && runs[1] == runs[2]);
    support_free_csv(table);
    support_free_outcome(&result);
    unlink(path);
}

/* What did not measure leaves the old file as it was, and no other beside it. */
static void nothing_measured_keeps_the_old_file(void **state)
{
    const char *path = support_path("samples.csv");
    outcome result;
    char *text;
    (void)state;
    support_write(path, "old\n");
    result = RUN("host", "--filter", "no-such-case", "--samples", path);
    support_expect_status(&result, 2);
    text = support_read(path);
    assert_string_equal(text, "old\n");
    free(text);
    support_free_outcome(&result);
    unlink(path);
    assert_int_equal(rmdir(support_folder), 0);
    assert_int_equal(mkdir(support_folder, 0700), 0);
}

static void expect_refused(const char *path, const char *message)
{
    outcome result = RUN("host", "--samples", path);
    support_expect_status(&result, 2);
    support_expect_text(result.err, message);
    support_free_outcome(&result);
}

static void what_is_no_file_is_refused(void **state)
{
    const char *csv = support_path("both.csv");
    outcome result;
    (void)state;
    expect_refused("-", "--samples '-': wants a file");
    expect_refused("", "--samples '': wants a file");
    expect_refused("/dev/null", "--samples '/dev/null': wants a file");
    expect_refused(support_folder, "wants a file");
    expect_refused("/no/such/folder/x.csv", "--samples '/no/such/folder/x.csv': ");
    result = RUN("host", "--samples", csv, "--csv", csv);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv writes there");
    assert_false(support_exists(csv));
    support_free_outcome(&result);
}

static void a_link_is_followed(void **state)
{
    const char *file = support_path("there.csv"), *link = support_path("here.csv");
    outcome result;
    char *text;
    struct stat about;
    (void)state;
    support_write(file, "old\n");
    assert_int_equal(symlink(file, link), 0);
    result = RUN("host", "--max-samples", "6", "--samples", link);
    support_expect_status(&result, 0);
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    text = support_read(file);
    assert_memory_equal(text, header, strlen(header));
    free(text);
    support_free_outcome(&result);
    unlink(link);
    unlink(file);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drift_is_told),
        cmocka_unit_test(without_a_drift_none_is_told),
        cmocka_unit_test(waves_widen_the_interval),
        cmocka_unit_test(a_sample_that_is_no_number_fails_its_case),
        cmocka_unit_test(a_suspended_sample_is_not_believed),
        cmocka_unit_test(a_median_of_0_fails),
        cmocka_unit_test(samples_are_written_in_order),
        cmocka_unit_test(samples_of_several_processes),
        cmocka_unit_test(nothing_measured_keeps_the_old_file),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(a_link_is_followed),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("samples", tests, NULL, NULL));
}
