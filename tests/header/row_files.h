/* What the tests of rows that reach the disk share: the fixture program, and what its files
 * must hold. */
#ifndef GPUBENCH_TESTS_ROW_FILES_H
#define GPUBENCH_TESTS_ROW_FILES_H

#include "support.h"

#include <errno.h>
#include <poll.h>

#define QUICK "--max-time", "0.01", "--min-samples", "3", "--warmup", "1"
enum { CASES = 4, GUILTY = 2 /* rows before it */ };

static const char old_text[] = "precious\n";

/* An empty folder for the file and what may lie beside it. */
static inline const char *csv_path(void)
{
    static char path[256];
    char command[600];
    snprintf(path, sizeof path, "%s", support_path("rows"));
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", path, path);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s", support_path("rows/out.csv"));
    return path;
}

static inline const char *partial_path(void)
{
    return support_path("rows/out.csv.partial");
}

static inline void expect_alone(const char *csv)
{
    char command[300];
    snprintf(command, sizeof command, "test \"$(ls -A '%s')\" = out.csv", support_path("rows"));
    if (system(command) != 0)
        fail_msg("something lies beside %s", csv);
}

static inline void expect_content(const char *path, const char *wanted)
{
    char *text = support_read(path);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

/* The first rows of a campaign: in the order of measuring, each case once in
 * each run; the guilty ones failed for the reason, all others measured. */
static inline void expect_rows(const char *path, size_t count, const char *reason)
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

/* ---- signals from outside ---- */

typedef struct running {
    pid_t pid;
    int output;        /* its standard output; ends when no process has it */
    int fifo;          /* where a case says that the moment has come */
    char path[256];    /* of the fifo */
} running;

static inline void wait_readable(int file, const char *what)
{
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    if (poll(&wanted, 1, SUPPORT_PATIENCE_S * 1000) != 1)
        fail_msg("waited in vain for %s", what);
}

static const int polite[] = {SIGINT, SIGTERM, SIGHUP};

/* Starts a fixture; its third case tells when it is executing. */
static inline running start(const char *const *arguments)
{
    running started = {0, -1, -1, ""};
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
        if (freopen("/dev/null", "w", stderr))
            execv(file, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    return started;
}

#define START(...) start((const char *const[]){__VA_ARGS__, NULL})

static inline void wait_for_the_moment(const running *started)
{
    char text[32];
    wait_readable(started->fifo, "the case");
    assert_true(read(started->fifo, text, sizeof text) > 0);
}

/* Its status, once no process of it is left. */
static inline int end(running *started)
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

/* ---- how a program was started ---- */

/* Runs the shell's words; $D is the fixtures' folder. */
static inline outcome shell(const char *words)
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

#endif
