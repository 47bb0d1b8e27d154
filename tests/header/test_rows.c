/* What becomes of the rows when a case, or somebody else, ends the program:
 * through tests/fixtures/rows.c, whose four cases are measured one after the
 * other and of which the third goes wrong. */
#define _GNU_SOURCE
#include "support.h"

#include <errno.h>
#include <poll.h>

#define QUICK "--max-time", "0.01", "--min-samples", "3", "--warmup", "1"
enum { CASES = 4, GUILTY = 2 /* rows before it */ };

static const char old_text[] = "precious\n";

/* An empty folder for the file and what may lie beside it. */
static const char *csv_path(void)
{
    static char path[256];
    char command[600];
    snprintf(path, sizeof path, "%s", support_path("rows"));
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", path, path);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s", support_path("rows/out.csv"));
    return path;
}

static const char *partial_path(void)
{
    return support_path("rows/out.csv.partial");
}

static void expect_alone(const char *csv)
{
    char command[300];
    snprintf(command, sizeof command, "test \"$(ls -A '%s')\" = out.csv", support_path("rows"));
    if (system(command) != 0)
        fail_msg("something lies beside %s", csv);
}

static void expect_content(const char *path, const char *wanted)
{
    char *text = support_read(path);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

/* The first rows of a campaign: in the order of measuring, each case once in
 * each run; the guilty ones failed for the reason, all others measured. */
static void expect_rows(const char *path, size_t count, const char *reason)
{
    csv_table *table = support_read_csv(path);
    size_t row, other;
    assert_int_equal(table->row_count, 1 + count);
    for (row = 1; row <= count; row++) {
        size_t order = (row - 1) % CASES + 1, run = (row - 1) / CASES + 1;
        const char *status = support_cell(table, row, "status");
        assert_int_equal(strtoul(support_cell(table, row, "order"), NULL, 10), order);
        assert_int_equal(strtoul(support_cell(table, row, "run"), NULL, 10), run);
        assert_int_equal(table->lengths[row], table->lengths[0]);
        assert_string_equal(support_cell(table, row, "campaign"),
                            support_cell(table, 1, "campaign"));
        for (other = (run - 1) * CASES + 1; other < row; other++)
            assert_string_not_equal(support_cell(table, row, "case"),
                                    support_cell(table, other, "case"));
        if (order != GUILTY + 1 || !reason) {
            assert_string_equal(status, "ok");
            continue;
        }
        assert_string_equal(status, "failed");
        support_expect_text(support_cell(table, row, "flags"), reason);
        support_expect_no_numbers(table, row);
        assert_true(*support_cell(table, row, "device") != '\0');
    }
    support_free_csv(table);
}

/* What a test is repeated for: with and without an old file, in one process
 * and in several. */
enum { SEVERAL_RUNS = 1, OLD_FILE = 2, VARIANTS = 4 };

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

typedef struct program {
    pid_t pid;
    int output;        /* its standard output; ends when no process has it */
    int fifo;          /* where a case says that the moment has come */
    char path[256];    /* of the fifo */
} program;

static void wait_readable(int file, const char *what)
{
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    if (poll(&wanted, 1, SUPPORT_PATIENCE_S * 1000) != 1)
        fail_msg("waited in vain for %s", what);
}

static const int polite[] = {SIGINT, SIGTERM, SIGHUP};

/* Starts a fixture; its third case tells when it is executing. */
static program start(const char *const *arguments)
{
    program started = {0, -1, -1, ""};
    const char *argv[32] = {NULL};
    char file[1200];
    const char *slash = strrchr(support_program, '/');
    int ends[2];
    size_t i;
    snprintf(started.path, sizeof started.path, "%s", support_path("fifo"));
    unlink(started.path);
    assert_int_equal(mkfifo(started.path, 0600), 0);
    started.fifo = open(started.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    started.output = ends[0];
    snprintf(file, sizeof file, "%.*s/%s", slash ? (int)(slash - support_program) : 1,
             slash ? support_program : ".", arguments[0]);
    argv[0] = file;
    for (i = 1; arguments[i]; i++)
        argv[i] = arguments[i];
    argv[i++] = "--fifo";
    argv[i++] = started.path;
    started.pid = fork();
    if (started.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        freopen("/dev/null", "w", stderr);
        execv(file, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    return started;
}

#define START(...) start((const char *const[]){__VA_ARGS__, NULL})

static void wait_for_the_moment(const program *started)
{
    char text[32];
    wait_readable(started->fifo, "the case");
    assert_true(read(started->fifo, text, sizeof text) > 0);
}

/* Its status, once no process of it is left. */
static int end(program *started)
{
    char text[4096];
    int status = support_wait(started->pid);
    ssize_t got = 1;
    while (got > 0) {
        wait_readable(started->output, "the end of all its processes");
        got = read(started->output, text, sizeof text);
    }
    close(started->output);
    close(started->fifo);
    return status;
}

static void rows_so_far_are_put_in_place(void **state)
{
    size_t i;
    int variant;
    (void)state;
    for (i = 0; i < 3; i++)
        for (variant = 0; variant < VARIANTS; variant++) {
            const char *csv = csv_path();
            program started;
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
        program started;
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
        program started;
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
    program started = START("rows", "--fault", "stubborn", "--runs", "2", "--csv", csv, QUICK);
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
    program started;
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
        program started;
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

/* Runs the shell's words; $D is the fixtures' folder. */
static outcome shell(const char *words)
{
    static const char *const none[] = {"PATH=/usr/bin:/bin", NULL};
    const char *slash = strrchr(support_program, '/');
    char text[2048], *const argv[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", text, NULL};
    const char *out = support_path("shell.out"), *err = support_path("shell.err");
    outcome result = {0, NULL, NULL};
    posix_spawn_file_actions_t actions;
    char folder[1024];
    pid_t child;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - support_program) : 1,
             slash ? support_program : ".");
    snprintf(text, sizeof text,
             "D='%s'; O='%s'; Q='--max-time 0.01 --min-samples 3 --warmup 1'; %s", folder,
             support_path("rows"), words);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(posix_spawn(&child, "/bin/sh", &actions, NULL, argv,
                                 (char *const *)(uintptr_t)none), 0);
    posix_spawn_file_actions_destroy(&actions);
    result.status = support_wait(child);
    result.out = support_read(out);
    result.err = support_read(err);
    return result;
}

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

/* ---- --json beside --csv ---- */

static const char *json_path(void)
{
    return support_path("rows/out.json");
}

/* Is there a file that has not got its name? */
static int left_beside_json(void)
{
    char command[300];
    snprintf(command, sizeof command, "ls '%s'.* >/dev/null 2>&1", json_path());
    return system(command) == 0;
}

/* By python3's parsers: both files hold the same rows. */
static void expect_same_rows(const char *csv)
{
    char command[700];
    snprintf(command, sizeof command, "python3 tests/header/same_rows.py '%s' '%s'", json_path(), csv);
    assert_int_equal(system(command), 0);
}

static void skip_without_python(void)
{
    if (system("python3 -c pass 2>/dev/null") != 0)
        skip();
}

/* Neither what ends a process nor what runs in several loses, or adds, an object. */
static void json_has_the_same_rows_whatever_ends(void **state)
{
    static const struct { const char *fault, *runs; int rows; } cases[] = {
        {"none", "1", CASES},   {"exit-3", "1", CASES},     {"segv", "1", CASES},
        {"none", "3", 3 * CASES}, {"segv", "2", 2 * CASES}, {"killed", "2", 2 * CASES}};
    size_t i;
    (void)state;
    skip_without_python();
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *csv = csv_path();
        outcome result;
        support_write(json_path(), old_text);
        result = RUN("rows", "--fault", cases[i].fault, "--runs", cases[i].runs, "--csv", csv,
                     "--json", json_path(), QUICK);
        support_expect_status(&result, strcmp(cases[i].fault, "none") != 0);
        expect_rows(csv, (size_t)cases[i].rows,
                    strcmp(cases[i].fault, "none") ? "reason=" : NULL);
        expect_same_rows(csv);
        assert_false(left_beside_json());
        support_free_outcome(&result);
    }
}

/* A signal ends it: the rows so far are there; none: the old file is. */
static void json_so_far_is_put_in_place(void **state)
{
    static const char *const runs[] = {"1", "3"};
    size_t i;
    (void)state;
    skip_without_python();
    for (i = 0; i < 2; i++) {
        const char *csv = csv_path();
        program started;
        support_write(json_path(), old_text);
        started = START("rows", "--fault", "wait", "--csv", csv, "--json", json_path(), "--runs",
                        runs[i], QUICK);
        wait_for_the_moment(&started);
        kill(started.pid, SIGINT);
        assert_int_equal(end(&started), 128 + SIGINT);
        expect_rows(csv, GUILTY, NULL);
        expect_same_rows(csv);
        assert_false(left_beside_json());
        csv = csv_path();
        support_write(json_path(), old_text);
        started = START("rows", "--fault", "wait", "--at", "0", "--csv", csv, "--json",
                        json_path(), "--runs", runs[i], QUICK);
        wait_for_the_moment(&started);
        kill(started.pid, SIGTERM);
        assert_int_equal(end(&started), 128 + SIGTERM);
        expect_content(json_path(), old_text);
    }
}

/* What nothing can catch leaves whole JSON beside the old file. */
static void json_survives_what_nothing_can_catch(void **state)
{
    const char *csv = csv_path();
    outcome result;
    char command[300];
    (void)state;
    skip_without_python();
    support_write(json_path(), old_text);
    result = RUN("rows", "--fault", "killed", "--csv", csv, "--json", json_path(), QUICK);
    support_expect_status(&result, 128 + SIGKILL);
    expect_content(json_path(), old_text);
    snprintf(command, sizeof command, "mv '%s'.*.json.tmp '%s'", json_path(), json_path());
    assert_int_equal(system(command), 0);
    expect_rows(csv, GUILTY, NULL);
    expect_same_rows(csv);
    support_free_outcome(&result);
}

static void json_on_standard_output_is_alone(void **state)
{
    const char *csv = csv_path();
    outcome result = RUN("rows", "--fault", "segv", "--csv", csv, "--json", "-", QUICK);
    (void)state;
    skip_without_python();
    support_expect_status(&result, 1);
    support_expect_text(result.err, " median ");
    support_write(json_path(), result.out);
    expect_same_rows(csv);
    support_free_outcome(&result);
}

/* ---- where the rows cannot go ---- */

/* A file that may not grow (beyond 1536 bytes, which hold a row or two) stands
 * for a full disk; what a pipe takes has no such limit. */
#define ON_A_FULL_DISK(arguments)                                              \
    "trap '' XFSZ; { (ulimit -f 3; $D/rows " arguments " $Q 2>&1 >&3; echo status=$?)" \
    " | cat >&2; } 3>&1"

static void a_full_disk_loses_nothing(void **state)
{
    enum { QUIET = 1 };
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        const char *csv = csv_path(), *copy = support_path("copy.csv");
        outcome result;
        char *rows;
        if (variant & OLD_FILE)
            support_write(csv, old_text);
        result = shell(variant & QUIET ? ON_A_FULL_DISK("--quiet --csv $O/out.csv")
                                       : ON_A_FULL_DISK("--csv $O/out.csv"));
        support_expect_text(result.err, "status=2\n");
        support_expect_text(result.err, csv);
        support_expect_text(result.err, strerror(EFBIG));
        if (variant & OLD_FILE)
            expect_content(csv, old_text);
        if (!(variant & QUIET))
            support_expect_text(result.out, " median ");
        rows = strstr(result.err, "schema,suite,"); /* all of them, for whoever needs them */
        assert_non_null(rows);
        *strstr(rows, "status=2") = '\0';
        support_write(copy, rows);
        expect_rows(copy, CASES, NULL);
        support_free_csv(support_read_csv(variant & OLD_FILE ? partial_path() : csv)); /* whole */
        support_free_outcome(&result);
    }
}

/* The message and the status are those of --csv; nothing is lost that was there. */
static void json_on_a_full_disk_is_told(void **state)
{
    outcome result;
    char *rows, command[400];
    (void)state;
    (void)csv_path();
    support_write(json_path(), old_text);
    result = shell(ON_A_FULL_DISK("--json $O/out.json"));
    support_expect_text(result.err, "status=2\n");
    support_expect_text(result.err, json_path());
    support_expect_text(result.err, strerror(EFBIG));
    support_expect_text(result.out, " median ");
    expect_content(json_path(), old_text);
    rows = strstr(result.err, "schema,suite,"); /* all of them, for whoever needs them */
    assert_non_null(rows);
    *strstr(rows, "status=2") = '\0';
    support_write(support_path("copy.csv"), rows);
    expect_rows(support_path("copy.csv"), CASES, NULL);
    support_expect_text(result.err, "the rows before are in ");
    skip_without_python();
    snprintf(command, sizeof command,
             "cat '%s'.*.json.tmp | "
             "python3 -c 'import json, sys; sys.exit(len(json.load(sys.stdin)) != 1)'",
             json_path());
    assert_int_equal(system(command), 0); /* whole lines only, and an array again */
    support_free_outcome(&result);
}

static void a_closed_output_is_told(void **state)
{
    const char *csv = csv_path();
    outcome result = shell("exec $D/rows --csv - $Q >&-");
    (void)state;
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv '-'");
    support_free_outcome(&result);
    result = shell("exec $D/rows --csv $O/out.csv $Q >&-");
    support_expect_status(&result, 2);
    support_expect_text(result.err, "the table: ");
    expect_rows(csv, CASES, NULL);
    support_free_outcome(&result);
    result = shell("exec $D/rows --csv /dev/fd/7 $Q 7>&-");
    support_expect_status(&result, 2);
    support_expect_text(result.err, "/dev/fd/7");
    support_free_outcome(&result);
}

/* Whoever reads may stop: the file loses no row. */
static void a_reader_may_stop(void **state)
{
    const char *csv = csv_path();
    outcome result = shell("$D/rows --csv $O/out.csv $Q | true");
    (void)state;
    expect_rows(csv, CASES, NULL);
    support_free_outcome(&result);
    result = shell("{ $D/rows --csv - --fault hang --timeout 60 $Q; echo $? >&2; } | head -1");
    support_expect_text(result.out, "schema,suite,");
    support_free_outcome(&result);
}

/* ---- descriptors that have a path ---- */

static void expect_appended(const char *words)
{
    const char *csv = csv_path();
    outcome result;
    char *text;
    support_write(csv, old_text);
    result = shell(words);
    support_expect_status(&result, 0);
    text = support_read(csv);
    assert_non_null(text);
    assert_memory_equal(text, old_text, strlen(old_text));
    support_write(support_path("copy.csv"), text + strlen(old_text));
    expect_rows(support_path("copy.csv"), CASES, NULL); /* and no table between the rows */
    expect_alone(csv);
    free(text);
    support_free_outcome(&result);
}

static void a_log_is_appended_to(void **state)
{
    (void)state;
    expect_appended("exec $D/rows --csv /dev/stdout $Q >> $O/out.csv");
    expect_appended("exec $D/rows --csv - $Q >> $O/out.csv");
    expect_appended("exec $D/rows --csv /dev/fd/1 $Q >> $O/out.csv");
    expect_appended("exec $D/rows --csv /dev/fd/3 $Q 3>> $O/out.csv");
    expect_appended("exec $D/rows --csv /proc/self/fd/3 $Q 3>> $O/out.csv");
    expect_appended("exec $D/rows --csv $O/out.csv $Q >> $O/out.csv");
    expect_appended("$D/rows --csv /dev/fd/3 $Q 3>&1 | cat >> $O/out.csv");
    expect_appended("$D/rows --csv /dev/stdout $Q | cat >> $O/out.csv");
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
        cmocka_unit_test(json_has_the_same_rows_whatever_ends),
        cmocka_unit_test(json_so_far_is_put_in_place),
        cmocka_unit_test(json_survives_what_nothing_can_catch),
        cmocka_unit_test(json_on_standard_output_is_alone),
        cmocka_unit_test(json_on_a_full_disk_is_told),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(a_closed_output_is_told),
        cmocka_unit_test(a_reader_may_stop),
        cmocka_unit_test(a_log_is_appended_to),
    };
    size_t i;
    for (i = 0; i < sizeof polite / sizeof polite[0]; i++)
        signal(polite[i], SIG_DFL); /* a shell's background job ignores them */
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("rows", tests, NULL, NULL));
}
