/* What several test programs need: running a fixture, reading files, reading CSV. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <ctype.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "between.h"

extern char **environ;

/* A program that hangs is ended after this long, so that a test never hangs. */
enum { SUPPORT_PATIENCE_S = 30 };

static char support_program[1024]; /* this test program's own path */
static char support_folder[64];    /* an empty folder of this test program's */

static inline void support_start(const char *program)
{
    snprintf(support_program, sizeof support_program, "%s", program);
    snprintf(support_folder, sizeof support_folder, "/tmp/gpubench-test.XXXXXX");
    if (!mkdtemp(support_folder)) {
        perror(support_folder);
        exit(2);
    }
}

static inline int support_stop(int failures)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", support_folder);
    return system(command) != 0 || failures != 0;
}

/* The path of a file in this program's folder. The next call overwrites every
 * fourth answer. */
static inline const char *support_path(const char *name)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", support_folder, name);
    return path;
}

static inline int support_exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* The whole file as a string to free; NULL if it cannot be read. */
static inline char *support_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t length = 0, got;
    char *text = malloc(1);
    char chunk[4096];
    if (!file) {
        free(text);
        return NULL;
    }
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        text = realloc(text, length + got + 1);
        memcpy(text + length, chunk, got);
        length += got;
    }
    fclose(file);
    text[length] = '\0';
    return text;
}

static inline void support_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* What others' parsers check is skipped without them; before anything is allocated, since the
 * test ends here. */
static inline void support_skip_without_python(void)
{
    if (system("python3 -c pass 2>/dev/null") != 0)
        skip();
}

/* ---- running a fixture ---- */

typedef struct outcome {
    int status; /* exit status; 128 + the signal that ended it */
    char *out, *err;
} outcome;

static inline int support_wait(pid_t child)
{
    struct timespec pause = {0, 2000000};
    int status = 0, turns;
    for (turns = 0; turns < SUPPORT_PATIENCE_S * 500; turns++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        nanosleep(&pause, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 128 + SIGKILL;
}

/* Runs the fixture arguments[0], which was built beside this program, with the
 * other arguments, up to a NULL. output: where its standard
 * output goes, or NULL to capture it. */
static inline outcome support_run_into(const char *const *arguments, const char *output)
{
    char program[1200], out[128], err[128];
    const char *argv[32] = {program};
    const char *slash = strrchr(support_program, '/');
    posix_spawn_file_actions_t actions;
    outcome result = {0, NULL, NULL};
    size_t i;
    pid_t child;
    snprintf(program, sizeof program, "%.*s/%s",
             slash ? (int)(slash - support_program) : 1, slash ? support_program : ".",
             arguments[0]);
    for (i = 1; arguments[i]; i++) {
        assert_true(i + 1 < sizeof argv / sizeof argv[0]);
        argv[i] = arguments[i];
    }
    snprintf(out, sizeof out, "%s/stdout", support_folder);
    snprintf(err, sizeof err, "%s/stderr", support_folder);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, output ? output : out,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (posix_spawn(&child, program, &actions, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
        fail_msg("cannot start %s", program);
    posix_spawn_file_actions_destroy(&actions);
    result.status = support_wait(child);
    result.out = support_read(output ? "/dev/null" : out);
    result.err = support_read(err);
    unlink(out);
    unlink(err);
    return result;
}

static inline outcome support_run(const char *const *arguments)
{
    return support_run_into(arguments, NULL);
}

#define RUN(...) support_run((const char *const[]){__VA_ARGS__, NULL})

static inline void support_free_outcome(outcome *result)
{
    free(result->out);
    free(result->err);
}

/* Fails the test with what the fixture said. */
static inline void support_expect_status(const outcome *result, int status)
{
    if (result->status != status)
        fail_msg("exit status %d instead of %d\nstdout: %s\nstderr: %s", result->status, status,
                 result->out, result->err);
}

static inline void support_expect_text(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("'%s' is missing in: %s", wanted, text);
}

static inline void support_expect_no_text(const char *text, const char *unwanted)
{
    if (strstr(text, unwanted))
        fail_msg("'%s' stands in: %s", unwanted, text);
}

/* ---- a strict reader of RFC 4180 with LF line ends ---- */

enum { SUPPORT_MAX_ROWS = 128, SUPPORT_MAX_FIELDS = 80 };

typedef struct csv_table {
    char *text; /* the file, cut into fields in place */
    char *fields[SUPPORT_MAX_ROWS][SUPPORT_MAX_FIELDS];
    size_t lengths[SUPPORT_MAX_ROWS]; /* fields of each row */
    size_t row_count;                 /* the header is row 0 */
} csv_table;

/* Cuts out one field; *at ends on the byte behind it. */
static inline char *support_take_field(char **at)
{
    char *from = *at, *to = from, *field = from;
    if (*from != '"') {
        from += strcspn(from, ",\n");
        if (memchr(field, '"', (size_t)(from - field)) ||
            memchr(field, '\r', (size_t)(from - field)))
            fail_msg("a quote or CR in a field without quotes: %.60s", field);
        *at = from;
        return field;
    }
    for (from++; *from != '"' || from[1] == '"'; from++) {
        if (*from == '\0')
            fail_msg("a quoted field without an end");
        from += *from == '"';
        *to++ = *from;
    }
    from++;
    *to = '\0';
    *at = from;
    return field;
}

/* Parses text, which it takes over. Every line must end in LF. */
static inline csv_table *support_parse_csv(char *text)
{
    csv_table *table = calloc(1, sizeof *table);
    char *at = text;
    assert_non_null(text);
    table->text = text;
    while (*at) {
        size_t row = table->row_count++, column = 0;
        char end = ',';
        assert_true(row < SUPPORT_MAX_ROWS);
        while (end == ',') {
            assert_true(column < SUPPORT_MAX_FIELDS);
            table->fields[row][column++] = support_take_field(&at);
            end = *at;
            if (end != ',' && end != '\n')
                fail_msg("row %zu ends without LF", row);
            *at++ = '\0';
        }
        table->lengths[row] = column;
    }
    return table;
}

static inline csv_table *support_read_csv(const char *path)
{
    return support_parse_csv(support_read(path));
}

static inline void support_free_csv(csv_table *table)
{
    free(table->text);
    free(table);
}

static inline const char *support_cell(const csv_table *table, size_t row, const char *column)
{
    size_t i;
    for (i = 0; i < table->lengths[0]; i++)
        if (!strcmp(table->fields[0][i], column))
            return table->fields[row][i];
    fail_msg("no column %s", column);
    return "";
}

/* The first row of the case; 0 (the header) if there is none. */
static inline size_t support_find_case(const csv_table *table, const char *name)
{
    size_t row;
    for (row = 1; row < table->row_count; row++)
        if (!strcmp(support_cell(table, row, "case"), name))
            return row;
    return 0;
}

/* A row of something that went wrong tells what, and holds no result. */
static inline void support_expect_no_numbers(const csv_table *table, size_t row)
{
    static const char *const columns[] = {
        "samples", "batch", "warmup", "min_us", "p5_us", "p25_us", "median_us", "p75_us", "p95_us",
        "p99_us", "max_us", "mean_us", "stddev_us", "ci95_low_us", "ci95_high_us", "overhead_us",
        "bytes", "flops", "gb_per_s", "tflop_per_s", "max_error", "tolerance", "device_bytes",
        "sm_mhz", "mem_mhz", "temperature_c", "power_w", "energy_mj"};
    size_t i;
    for (i = 0; i < sizeof columns / sizeof columns[0]; i++)
        assert_string_equal(support_cell(table, row, columns[i]), "");
}

static inline void support_expect_measured(const csv_table *table, const char *name)
{
    size_t row = support_find_case(table, name);
    if (row == 0)
        fail_msg("no row of the case '%s'", name);
    assert_string_equal(support_cell(table, row, "status"), "ok");
    assert_true(strtod(support_cell(table, row, "median_us"), NULL) > 0);
}

static inline void support_expect_failed(const csv_table *table, const char *name,
                                         const char *status, const char *flag)
{
    size_t row = support_find_case(table, name);
    if (row == 0)
        fail_msg("no row of the case '%s'", name);
    assert_string_equal(support_cell(table, row, "status"), status);
    support_expect_text(support_cell(table, row, "flags"), flag);
    support_expect_no_numbers(table, row);
}

/* ---- handles and rows in this process: where gpubench.h was included before ---- */

#ifdef GPUBENCH_H
#include <math.h>

#ifdef GPUBENCH_IMPLEMENTATION
#include "small_sweep.h"
#endif

enum { MOST_ARGUMENTS = 24 };

static inline gpubench *open_bench(const char *const *options)
{
    static char *argv[MOST_ARGUMENTS]; /* the handle keeps it */
    int argc = 2;
    gpubench *bench;
    argv[0] = (char *)(uintptr_t)"test";
    argv[1] = (char *)(uintptr_t)"--quiet";
    for (; *options; options++)
        argv[argc++] = (char *)(uintptr_t)*options;
    argv[argc] = NULL;
    bench = gpubench_open("test", argc, argv);
#ifdef GPUBENCH_IMPLEMENTATION
    small_sweep(bench);
#endif
    return bench;
}

#define OPEN(...) open_bench((const char *const[]){__VA_ARGS__, NULL})

static inline double value_of(const gpubench *bench, size_t row, const char *column)
{
    const char *text = gpubench_value(bench, row, column);
    double value = NAN;
    if (!text || gpubench_parse_number(text, &value) != 0)
        fail_msg("%s of row %zu is '%s'", column, row, text ? text : "(null)");
    return value;
}

static inline void expect_number(const gpubench *bench, size_t row, const char *column,
                                 double wanted)
{
    double value = value_of(bench, row, column);
    if (!(fabs(value - wanted) <= 1e-12 * fabs(wanted)))
        fail_msg("%s of row %zu is %.17g instead of %.17g", column, row, value, wanted);
}

static inline void expect_cell(const gpubench *bench, size_t row, const char *column,
                               const char *wanted)
{
    const char *text = gpubench_value(bench, row, column);
    assert_non_null(text);
    assert_string_equal(text, wanted);
}

static inline void expect_flag(const gpubench *bench, size_t row, const char *flag)
{
    support_expect_text(gpubench_value(bench, row, "flags"), flag);
}

static inline void expect_no_flag(const gpubench *bench, size_t row, const char *flag)
{
    support_expect_no_text(gpubench_value(bench, row, "flags"), flag);
}
#endif /* GPUBENCH_H */

#endif
