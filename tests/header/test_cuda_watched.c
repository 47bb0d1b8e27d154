/* The executions that --kernels and --trace watch, on the substitute runtime: as many as
 * there should be, of the mode that was timed, and one at a time. */
#define GPUBENCH_IMPLEMENTATION
#include "cuda_probe.h"

/* What a watcher saw. */
static struct seen {
    int begins, forgotten, kept, failed, closes;
    int refuses;         /* from the n-th begin on */
    double before_us;    /* of simulated time, at begin */
    double execution_us; /* of the last one */
    uint64_t runs_before, runs; /* in the last one */
    uint64_t runs_at_end, runs_in_front; /* between the last two */
    const probe *of;
    char told[256];
} seen;

static int watch_open(gpubench *bench)
{
    (void)bench;
    return 0;
}

static int watch_begin(gpubench *bench, const gpubench_case *one)
{
    (void)bench;
    (void)one;
    seen.begins++;
    if (seen.refuses && seen.begins >= seen.refuses)
        return 2;
    seen.before_us = fake_executed_us();
    seen.runs_before = seen.of ? seen.of->since_reset : 0;
    seen.runs_in_front = seen.runs_before - seen.runs_at_end;
    return 0;
}

static int watch_end(gpubench *bench, const gpubench_case *one, int code)
{
    (void)bench;
    (void)one;
    seen.execution_us = fake_executed_us() - seen.before_us;
    seen.runs_at_end = seen.of ? seen.of->since_reset : 0;
    seen.runs = seen.runs_at_end - seen.runs_before;
    seen.forgotten += code == GPUBENCH_SKIPPED;
    seen.kept += code == 0;
    seen.failed += code > 0;
    return 0;
}

static int watch_tell(gpubench *bench, const gpubench_case *one, const char *mode)
{
    size_t bytes = strlen(seen.told);
    (void)bench;
    snprintf(seen.told + bytes, sizeof seen.told - bytes, "%s %s;", one ? one->name : "-", mode);
    return 0;
}

static int watch_close(gpubench *bench)
{
    (void)bench;
    seen.closes++;
    return 0;
}

static void watch_range(const char *name)
{
    (void)name;
}

static const gpubench_watcher watcher = {watch_open, watch_begin, watch_end,
                                         watch_tell, watch_close, watch_range};

static gpubench *open_watched(const char *modes, const probe *of)
{
    gpubench *bench = OPEN(QUICK, "--mode", modes, "--kernels");
    memset(&seen, 0, sizeof seen);
    seen.of = of;
    gpubench_watch(bench, &watcher);
    return bench;
}

/* One run of a probe. */
static void expect_ten_us(void)
{
    if (seen.execution_us < 9.999 || seen.execution_us > 10.001)
        fail_msg("%.3f us were executed while it was watched, not 10", seen.execution_us);
}

/* Of each, first one to forget, then one to nine to keep; an empty kernel before all. */
static void every_case_is_executed_again(void **state)
{
    probe p = {.act = LAUNCH};
    gpubench *bench = open_watched("cold", &p);
    (void)state;
    measure(bench, "one", &p);
    measure(bench, "two", &p);
    assert_int_equal(gpubench_close(bench), 0);
    assert_string_equal(seen.told, "- cold;one cold;two cold;");
    assert_int_equal(seen.forgotten, 3);
    assert_between(seen.kept, 3, 3 * 9);
    assert_int_equal(seen.closes, 1);
    assert_true(seen.runs_in_front == 0);
    assert_true(seen.runs == 1);
    expect_ten_us();
}

/* The run in front, which fills the caches, is not watched. */
static void in_mode_hot_a_run_stands_in_front(void **state)
{
    probe p = {.act = LAUNCH};
    gpubench *bench = open_watched("hot", &p);
    (void)state;
    measure(bench, "one", &p);
    assert_int_equal(gpubench_close(bench), 0);
    assert_string_equal(seen.told, "- cold;one hot;");
    assert_true(seen.runs_in_front == 1);
    assert_true(seen.runs == 1);
    expect_ten_us();
}

/* What was captured is replayed: run itself is not called again. */
static void in_mode_graph_a_graph_is_watched(void **state)
{
    probe p = {.act = LAUNCH};
    gpubench *bench = open_watched("graph", &p);
    (void)state;
    measure(bench, "one", &p);
    assert_int_equal(gpubench_close(bench), 0);
    assert_string_equal(seen.told, "- cold;one graph;");
    assert_true(seen.runs == 0);
    expect_ten_us();
}

static void of_several_modes_cold_is_watched(void **state)
{
    probe p = {.act = LAUNCH};
    gpubench *bench = open_watched("hot,cold,graph", &p);
    (void)state;
    measure(bench, "one", &p);
    assert_int_equal(gpubench_close(bench), 0);
    assert_string_equal(seen.told, "- cold;one cold;");
}

/* A gate would stay closed until it gives up. */
static void what_synchronizes_inside_meets_no_gate(void **state)
{
    probe p = {.act = SYNCHRONIZE};
    gpubench *bench = open_watched("cold", &p);
    size_t row = measure(bench, "one", &p);
    (void)state;
    expect_flag(bench, row, "ungated");
    gpb_cuda_of(bench)->gate->timed_out = 0;
    assert_int_equal(gpb_trace_all(bench), 0);
    assert_int_equal(gpb_cuda_of(bench)->gate->timed_out, 0);
    assert_string_equal(seen.told, "- cold;one cold;");
    bench->watcher = NULL;
    bench->settings.kernels = 0;
    assert_int_equal(gpubench_close(bench), 0);
}

static int run_and_crash_when_watched(void *context, gpubench_stream stream)
{
    static int watched;
    (void)context;
    watched += gpb_traced != NULL;
    return (int)(watched == 3 ? fake_launch_crash(stream) : fake_launch(stream, 10, 0));
}

/* How many of what should be so is not. */
static int lose_context_while_watched(void)
{
    probe p = {.act = LAUNCH};
    gpubench *bench = open_watched("cold", NULL);
    gpubench_case crashing = gpubench_case_init("crashing", run_and_crash_when_watched, NULL);
    int row, wrong = 0;
    measure(bench, "fine", &p);
    gpubench_measure(bench, &crashing);
    queue(bench, "behind", &p);
    gpubench_run(bench);
    for (row = 0; row < 3; row++)
        wrong += strcmp(gpubench_value(bench, (size_t)row, "status"), "ok") != 0;
    wrong += gpubench_close(bench) != 1;
    wrong += strcmp(seen.told, "- cold;fine cold;") != 0;
    return wrong + (seen.failed != 1) + (seen.closes != 1);
}

/* The rows stand, the case in front was told of, and nothing is tried on the lost context.
 * In a process of its own, which that context is lost to. */
static void a_context_lost_while_watched_costs_no_row(void **state)
{
    pid_t child = fork();
    (void)state;
    if (child == 0)
        _exit(lose_context_while_watched());
    assert_int_equal(support_wait(child), 0);
}

/* What cannot watch is asked once. */
static void a_refusal_ends_the_watching(void **state)
{
    probe p = {.act = LAUNCH};
    gpubench *bench = open_watched("cold", &p);
    (void)state;
    seen.refuses = 1;
    measure(bench, "one", &p);
    measure(bench, "two", &p);
    assert_int_equal(gpubench_close(bench), 2);
    assert_int_equal(seen.begins, 1);
    assert_string_equal(seen.told, "");
    assert_int_equal(seen.closes, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(every_case_is_executed_again),
        CUDA_TEST(in_mode_hot_a_run_stands_in_front),
        CUDA_TEST(in_mode_graph_a_graph_is_watched),
        CUDA_TEST(of_several_modes_cold_is_watched),
        CUDA_TEST(what_synchronizes_inside_meets_no_gate),
        CUDA_TEST(a_context_lost_while_watched_costs_no_row),
        CUDA_TEST(a_refusal_ends_the_watching),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("watched on CUDA", tests, NULL, NULL));
}
