/* What becomes of the rows when a case, or somebody else, ends the program:
 * through tests/fixtures/rows.c, whose four cases are measured one after the
 * other and of which the third goes wrong. */
#define _GNU_SOURCE
#include "row_files.h"

/* Only the guilty case is lost. */
static void expect_survived_in(int variant, const char *program, const char *fault,
                               const char *stage, const char *timeout, const char *reason)
{
    const char *csv = csv_path(), *runs = variant & SEVERAL_RUNS ? "2" : "1";
    outcome result;
    if (variant & OLD_FILE)
        support_write(csv, old_text);
    result = RUN(program, "--fault", fault, "--stage", stage, "--runs", runs, "--csv", csv,
                 "--timeout", timeout, QUICK);
    support_expect_status(&result, 1);
    support_expect_text(result.out, " median ");
    support_expect_text(result.err, ": failed: ");
    expect_rows(csv, variant & SEVERAL_RUNS ? 2 * CASES : CASES, reason);
    expect_alone(csv);
    support_free_outcome(&result);
}

static void expect_survived(const char *program, const char *fault, const char *stage,
                            const char *reason)
{
    int variant;
    for (variant = 0; variant < VARIANTS; variant++)
        expect_survived_in(variant, program, fault, stage, "60", reason);
}

/* ---- cases that end the process ---- */

static void exit_costs_one_row(void **state)
{
    (void)state;
    expect_survived("rows", "exit-3", "setup", "reason=setup:_called_exit(3)");
    expect_survived("rows", "exit-3", "run", "reason=run:_called_exit(3)");
    expect_survived("rows", "exit-0", "verify", "reason=verify:_called_exit(0)");
    expect_survived("rows", "exit-0", "teardown", "reason=teardown:_called_exit(0)");
}

static void an_exception_costs_one_row(void **state)
{
    (void)state;
    expect_survived("rows_cpp", "throw", "setup", "reason=setup:_ended_by_signal_6_(Aborted)");
    expect_survived("rows_cpp", "throw", "run", "reason=run:_ended_by_signal_6_(Aborted)");
}

static void a_crash_costs_one_row(void **state)
{
    (void)state;
    expect_survived("rows", "segv", "run", "reason=run:_ended_by_signal_11_(Segmentation_fault)");
    expect_survived("rows", "segv", "teardown", "reason=teardown:_ended_by_signal_11");
    expect_survived("rows", "abort", "verify", "reason=verify:_ended_by_signal_6_(Aborted)");
    expect_survived("rows", "fpe", "setup", "reason=setup:_ended_by_signal_8");
    expect_survived("rows_cpp", "segv", "run", "reason=run:_ended_by_signal_11");
}

static void a_stack_overflow_costs_one_row(void **state)
{
    (void)state;
    expect_survived("rows", "overflow", "run", "reason=run:_ended_by_signal_11");
}

/* A healthy stage of a busy machine takes less than this, a test of it no more. */
static void a_hang_costs_one_row(void **state)
{
    static const char time_out[] = "1.5";
    (void)state;
    expect_survived_in(0, "rows", "hang", "setup", time_out,
                       "reason=setup:_not_finished_after_1.5_s_(--timeout)");
    expect_survived_in(OLD_FILE, "rows", "spin", "run", time_out,
                       "reason=run:_not_finished_after_1.5_s_(--timeout)");
    expect_survived_in(0, "rows", "hang", "verify", time_out, "reason=verify:_not_finished_after");
    expect_survived_in(0, "rows", "spin", "teardown", time_out, "reason=teardown:_not_finished");
    expect_survived_in(SEVERAL_RUNS, "rows", "hang", "run", time_out, "reason=run:_not_finished");
}

/* The others of a group are measured again. */
static void in_a_group_it_costs_one_row(void **state)
{
    static const char *const faults[] = {"exit-3", "segv"};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        const char *csv = csv_path();
        outcome result = RUN("rows", "grouped", "--fault", faults[i], "--at", "0", "--csv", csv,
                             QUICK);
        csv_table *table;
        size_t row, failed = 0;
        support_expect_status(&result, 1);
        table = support_read_csv(csv);
        assert_int_equal(table->row_count, 1 + CASES);
        for (row = 1; row <= CASES; row++)
            failed += strcmp(support_cell(table, row, "status"), "ok") != 0;
        assert_int_equal(failed, 1);
        support_free_csv(table);
        support_free_outcome(&result);
    }
}

static void without_a_file_it_costs_one_row_too(void **state)
{
    outcome result = RUN("rows", "--fault", "exit-3", QUICK);
    (void)state;
    support_expect_status(&result, 1);
    support_expect_text(result.out, "reason=run:_called_exit(3)");
    support_expect_text(result.out, "\na ");
    support_expect_text(result.out, "\nc ");
    support_expect_text(result.out, "\nd ");
    support_free_outcome(&result);
}

/* Rows go to standard output as they come, each once, whatever process it is. */
static void standard_output_gets_each_row_once(void **state)
{
    static const char *const runs[] = {"1", "2"};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        outcome result = RUN("rows", "--fault", "segv", "--runs", runs[i], "--csv", "-", QUICK);
        const char *copy = support_path("copy.csv");
        support_expect_status(&result, 1);
        support_write(copy, result.out);
        expect_rows(copy, (i + 1) * CASES, "ended_by_signal_11");
        support_free_outcome(&result);
    }
}

/* A process that the case forks may end as it likes. */
static void a_forked_child_is_its_own(void **state)
{
    static const char *const faults[] = {"fork-exit", "fork-abort"};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        const char *csv = csv_path();
        outcome result = RUN("rows", "--fault", faults[i], "--csv", csv, QUICK, "--max-samples",
                             "3");
        support_expect_status(&result, 0);
        expect_rows(csv, CASES, NULL);
        support_free_outcome(&result);
    }
}

static void a_programs_own_handler_wins(void **state)
{
    const char *csv = csv_path();
    outcome result = RUN("rows", "--fault", "segv", "--handler", "1", "--csv", csv, QUICK);
    (void)state;
    support_expect_status(&result, 99);
    expect_rows(csv, GUILTY, NULL);
    support_free_outcome(&result);
}

/* Cases that are called otherwise in each process look new each time. */
static void starting_over_ends(void **state)
{
    const char *csv = csv_path();
    outcome result = RUN("rows", "--fault", "abort", "--at", "0", "--moody", "1", "--csv", csv,
                         QUICK);
    csv_table *table = support_read_csv(csv);
    (void)state;
    assert_true(result.status != 0 && result.status != 128 + SIGKILL);
    assert_true(table->row_count <= 2 + 2 * CASES);
    support_free_csv(table);
    support_free_outcome(&result);
}

/* ---- what no process can see coming ---- */

static void expect_left_behind(const char *fault, int status)
{
    const char *csv = csv_path();
    outcome result = RUN("rows", "--fault", fault, "--csv", csv, QUICK);
    support_expect_status(&result, status);
    expect_rows(csv, GUILTY, NULL); /* there was nothing to lose: straight to the file */
    support_free_outcome(&result);
    csv = csv_path();
    support_write(csv, old_text);
    result = RUN("rows", "--fault", fault, "--csv", csv, QUICK);
    support_expect_status(&result, status);
    expect_content(csv, old_text);
    expect_rows(partial_path(), GUILTY, NULL);
    support_free_outcome(&result);
}

static void rows_survive_what_nothing_can_catch(void **state)
{
    (void)state;
    expect_left_behind("killed", 128 + SIGKILL);
    expect_left_behind("_exit-0", 0);
}

/* Under --runs the parent sees it, and only the guilty case is lost. */
static void the_parent_survives_its_children(void **state)
{
    static const char *const faults[][2] = {
        {"killed", "reason=run:_ended_by_signal_9"},
        {"_exit-0", "reason=run:_ended_the_process_with_status_0"}};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        const char *csv = csv_path();
        outcome result = RUN("rows", "--fault", faults[i][0], "--runs", "2", "--csv", csv, QUICK);
        support_expect_status(&result, 1);
        expect_rows(csv, 2 * CASES, faults[i][1]);
        expect_alone(csv);
        support_free_outcome(&result);
    }
}

/* What a killed run left is neither in the way nor thrown away. */
static void what_a_killed_run_left_is_kept(void **state)
{
    const char *csv = csv_path();
    outcome result;
    (void)state;
    support_write(csv, old_text);
    support_write(partial_path(), "left\n");
    result = RUN("rows", "--csv", csv, QUICK);
    support_expect_status(&result, 0);
    support_expect_text(result.err, partial_path());
    expect_rows(csv, CASES, NULL);
    expect_content(partial_path(), "left\n");
    assert_false(support_exists(support_path("rows/out.csv.partial.2")));
    support_free_outcome(&result);
}

/* ---- signals from outside ---- */

static void rows_so_far_are_put_in_place(void **state)
{
    size_t i;
    int variant;
    (void)state;
    for (i = 0; i < 3; i++)
        for (variant = 0; variant < VARIANTS; variant++) {
            const char *csv = csv_path();
            running started;
            if (variant & OLD_FILE)
                support_write(csv, old_text);
            started = START("rows", "--fault", "wait", "--csv", csv, "--runs",
                            variant & SEVERAL_RUNS ? "3" : "1", QUICK);
            wait_for_the_moment(&started);
            kill(started.pid, polite[i]);
            assert_int_equal(end(&started), 128 + polite[i]);
            expect_rows(csv, GUILTY, NULL);
            expect_alone(csv);
        }
}

static void without_rows_an_old_file_stays(void **state)
{
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        const char *csv = csv_path();
        running started;
        if (variant & OLD_FILE)
            support_write(csv, old_text);
        started = START("rows", "--fault", "wait", "--at", "0", "--csv", csv, "--runs",
                        variant & SEVERAL_RUNS ? "3" : "1", QUICK);
        wait_for_the_moment(&started);
        kill(started.pid, SIGTERM);
        assert_int_equal(end(&started), 128 + SIGTERM);
        if (variant & OLD_FILE) {
            expect_content(csv, old_text);
            expect_alone(csv);
        } else {
            assert_false(support_exists(csv));
        }
    }
}

/* With --runs, too: no orphan goes on, and what was measured lies there. */
static void after_sigkill_the_rows_lie_beside_the_old_file(void **state)
{
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        const char *csv = csv_path();
        running started;
        if (variant & OLD_FILE)
            support_write(csv, old_text);
        started = START("rows", "--fault", "wait", "--csv", csv, "--runs",
                        variant & SEVERAL_RUNS ? "3" : "1", QUICK);
        wait_for_the_moment(&started);
        expect_rows(variant & OLD_FILE ? partial_path() : csv, GUILTY, NULL); /* as it measures */
        kill(started.pid, SIGKILL);
        assert_int_equal(end(&started), 128 + SIGKILL);
        if (variant & OLD_FILE)
            expect_content(csv, old_text);
        expect_rows(variant & OLD_FILE ? partial_path() : csv, GUILTY, NULL);
    }
}

static void a_second_signal_does_not_wait(void **state)
{
    const char *csv = csv_path();
    running started = START("rows", "--fault", "stubborn", "--runs", "2", "--csv", csv, QUICK);
    (void)state;
    wait_for_the_moment(&started);
    kill(started.pid, SIGTERM);
    wait_for_the_moment(&started); /* the child was asked, and stays */
    kill(started.pid, SIGTERM);
    assert_int_equal(end(&started), 128 + SIGTERM);
    expect_rows(csv, GUILTY, NULL);
}

static void an_ignored_signal_stays_ignored(void **state)
{
    const char *csv = csv_path();
    running started;
    (void)state;
    signal(SIGHUP, SIG_IGN); /* as nohup does */
    started = START("rows", "--fault", "wait", "--runs", "2", "--csv", csv, QUICK);
    signal(SIGHUP, SIG_DFL);
    wait_for_the_moment(&started);
    kill(started.pid, SIGHUP);
    kill(started.pid, SIGTERM);
    assert_int_equal(end(&started), 128 + SIGTERM);
}

/* ---- two at a time ---- */

static void two_processes_do_not_share_a_file(void **state)
{
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        const char *csv = csv_path();
        running started;
        outcome result;
        if (variant & OLD_FILE)
            support_write(csv, old_text);
        started = START("rows", "--fault", "wait", "--csv", csv, "--runs",
                        variant & SEVERAL_RUNS ? "3" : "1", QUICK);
        wait_for_the_moment(&started);
        result = RUN("rows", "--csv", csv, QUICK);
        support_expect_status(&result, 2);
        support_expect_text(result.err, csv);
        support_expect_text(result.err, "another process");
        support_free_outcome(&result);
        kill(started.pid, SIGTERM);
        assert_int_equal(end(&started), 128 + SIGTERM);
        expect_rows(csv, GUILTY, NULL);
        expect_alone(csv);
    }
}

/* ---- how a program was started ---- */

static void expect_shell(const char *words, int status, size_t rows, const char *reason)
{
    const char *csv = csv_path();
    outcome result = shell(words);
    support_expect_status(&result, status);
    expect_rows(csv, rows, reason);
    expect_alone(csv);
    support_free_outcome(&result);
}

static void a_program_may_take_arguments_first(void **state)
{
    (void)state;
    expect_shell("$D/rows first --runs 2 --csv $O/out.csv $Q", 0, 2 * CASES, NULL);
    expect_shell("$D/rows first --fault exit-3 --csv $O/out.csv $Q", 1, CASES, "called_exit(3)");
}

static void an_empty_environment_is_enough(void **state)
{
    (void)state;
    expect_shell("exec env -i $D/rows --fault segv --runs 2 --csv $O/out.csv $Q", 1, 2 * CASES,
                 "ended_by_signal_11");
}

static void the_dynamic_linker_may_start_it(void **state)
{
    (void)state;
    if (access("/lib64/ld-linux-x86-64.so.2", X_OK) != 0)
        skip();
    expect_shell("/lib64/ld-linux-x86-64.so.2 $D/rows --fault segv --runs 2 --csv $O/out.csv $Q", 1,
                 2 * CASES, "ended_by_signal_11");
}

static void a_system_without_proc_is_enough(void **state)
{
    (void)state;
    expect_shell("$D/rows_no_proc --fault segv --runs 2 --csv $O/out.csv $Q", 1, 2 * CASES,
                 "ended_by_signal_11");
    expect_shell("cd $D && ./rows_no_proc --fault segv --csv $O/out.csv $Q", 1, CASES,
                 "ended_by_signal_11");
}

/* ---- a program's own end ---- */

static void expect_late(const char *late, int status, const char *words)
{
    int variant;
    for (variant = 0; variant < 2; variant++) {
        const char *csv = csv_path();
        outcome result;
        if (variant)
            support_write(csv, old_text);
        result = RUN("rows", "--late", late, "--csv", csv, QUICK);
        support_expect_status(&result, status);
        support_expect_text(result.err, words);
        expect_rows(csv, CASES, NULL);
        expect_alone(csv);
        support_free_outcome(&result);
    }
}

static void a_late_usage_error_keeps_the_rows(void **state)
{
    const char *csv;
    outcome result;
    (void)state;
    expect_late("usage", 2, "--shape 'x'");
    expect_late("queue", 2, "needs a name");
    csv = csv_path();
    result = RUN("rows", "--late", "usage", "--runs", "2", "--csv", csv, QUICK);
    support_expect_status(&result, 2);
    expect_rows(csv, CASES, NULL); /* the second run would be refused as well */
    support_expect_text(result.out, " median ");
    support_free_outcome(&result);
}

static void a_program_may_end_without_closing(void **state)
{
    (void)state;
    expect_late("return", 5, "");
    expect_late("exit", 6, "");
    expect_late("abort", 128 + SIGABRT, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_costs_one_row),
        cmocka_unit_test(an_exception_costs_one_row),
        cmocka_unit_test(a_crash_costs_one_row),
        cmocka_unit_test(a_stack_overflow_costs_one_row),
        cmocka_unit_test(a_hang_costs_one_row),
        cmocka_unit_test(in_a_group_it_costs_one_row),
        cmocka_unit_test(without_a_file_it_costs_one_row_too),
        cmocka_unit_test(standard_output_gets_each_row_once),
        cmocka_unit_test(a_forked_child_is_its_own),
        cmocka_unit_test(a_programs_own_handler_wins),
        cmocka_unit_test(starting_over_ends),
        cmocka_unit_test(rows_survive_what_nothing_can_catch),
        cmocka_unit_test(the_parent_survives_its_children),
        cmocka_unit_test(what_a_killed_run_left_is_kept),
        cmocka_unit_test(rows_so_far_are_put_in_place),
        cmocka_unit_test(without_rows_an_old_file_stays),
        cmocka_unit_test(after_sigkill_the_rows_lie_beside_the_old_file),
        cmocka_unit_test(a_second_signal_does_not_wait),
        cmocka_unit_test(an_ignored_signal_stays_ignored),
        cmocka_unit_test(two_processes_do_not_share_a_file),
        cmocka_unit_test(a_program_may_take_arguments_first),
        cmocka_unit_test(an_empty_environment_is_enough),
        cmocka_unit_test(the_dynamic_linker_may_start_it),
        cmocka_unit_test(a_system_without_proc_is_enough),
        cmocka_unit_test(a_late_usage_error_keeps_the_rows),
        cmocka_unit_test(a_program_may_end_without_closing),
    };
    size_t i;
    for (i = 0; i < sizeof polite / sizeof polite[0]; i++)
        signal(polite[i], SIG_DFL); /* a shell's background job ignores them */
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("rows", tests, NULL, NULL));
}
