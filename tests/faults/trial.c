/* See trial.h. */
#define _GNU_SOURCE
#include "trial.h"

#include "fault.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char trial_earlier[] = "an earlier file\n";

void trial_complain(trial *one, const char *format, ...)
{
    va_list arguments;
    if (one->problem[0])
        return;
    va_start(arguments, format);
    vsnprintf(one->problem, sizeof one->problem, format, arguments);
    va_end(arguments);
}

/* ---- files ---- */

char *trial_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = 0, got;
    char *text;
    if (!file)
        return NULL;
    text = malloc(1);
    do {
        text = realloc(text, bytes + 65537);
        got = fread(text + bytes, 1, 65536, file);
        bytes += got;
    } while (got > 0);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

static void in_folder(const trial *one, const char *name, char *path, size_t capacity)
{
    snprintf(path, capacity, "%s/%s", one->folder, name);
}

/* The names in a folder but for those that are expected, as one text. */
static void list_others(const char *folder, const char *const *expected, char *text, size_t capacity)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    text[0] = '\0';
    while (directory && (entry = readdir(directory))) {
        const char *const *known = expected;
        while (*known && strcmp(*known, entry->d_name) != 0)
            known++;
        if (!*known && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            snprintf(text + strlen(text), capacity - strlen(text), " %s", entry->d_name);
    }
    if (directory)
        closedir(directory);
}

static void empty_folder(const char *folder)
{
    char names[4000], *name, *behind;
    static const char *const none[] = {NULL};
    mkdir(folder, 0700);
    list_others(folder, none, names, sizeof names);
    for (name = strtok_r(names, " ", &behind); name; name = strtok_r(NULL, " ", &behind)) {
        char path[4400];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        unlink(path);
    }
}

/* ---- rows ---- */

/* The next field of *at, without its quotes, into text; 0 if it has no end. */
static int take_field(const char **at, char *text, size_t capacity)
{
    const char *from = *at;
    int quoted = *from == '"';
    size_t used = 0;
    from += quoted;
    for (; quoted ? *from != '"' || from[1] == '"' : *from != ',' && *from != '\n'; from++) {
        if (!*from)
            return 0;
        from += quoted && *from == '"';
        if (used + 1 < capacity)
            text[used++] = *from;
    }
    text[used] = '\0';
    *at = from + quoted;
    return **at == ',' || **at == '\n';
}

/* A column's number, by the header; -1: there is none. */
static int find_column(const char *header, const char *name)
{
    char field[64];
    int number = 0;
    while (take_field(&header, field, sizeof field)) {
        if (!strcmp(field, name))
            return number;
        if (*header++ == '\n')
            return -1;
        number++;
    }
    return -1;
}

/* Appends the field to the row's key or to what else it belongs to. */
static void keep_field(const char *header, int column, const char *field, trial_row *row)
{
    static const char *const keys[] = {"case", "variant", "dtype", "params", "mode", "run"};
    size_t i, length;
    for (i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (column == find_column(header, keys[i])) {
            length = strlen(row->key);
            snprintf(row->key + length, sizeof row->key - length, "%.200s|", field);
        }
    if (column == find_column(header, "status"))
        snprintf(row->status, sizeof row->status, "%.15s", field);
    if (column == find_column(header, "mode"))
        snprintf(row->mode, sizeof row->mode, "%.7s", field);
    if (column == find_column(header, "flags"))
        snprintf(row->flags, sizeof row->flags, "%.599s", field);
    if (column == find_column(header, "median_us"))
        snprintf(row->median, sizeof row->median, "%.39s", field);
    if (column == find_column(header, "samples"))
        snprintf(row->samples, sizeof row->samples, "%.23s", field);
}

void trial_read_rows(const char *path, trial_rows *rows)
{
    char *text = trial_read(path), field[1200];
    const char *at = text;
    int columns = 0, column;
    memset(rows, 0, sizeof *rows);
    if (!text || strncmp(text, "schema,", 7) != 0) {
        snprintf(rows->problem, sizeof rows->problem, "%s", text ? "no header" : "no file");
        free(text);
        return;
    }
    for (; *at && !rows->problem[0]; at++) {
        trial_row row = {0};
        for (column = 0; take_field(&at, field, sizeof field); column++, at++) {
            keep_field(text, column, field, &row);
            if (*at == '\n')
                break;
        }
        if (*at != '\n' || (columns > 0 && column + 1 != columns))
            snprintf(rows->problem, sizeof rows->problem, "line %zu is no whole row",
                     rows->count + 2);
        else if (columns == 0)
            columns = column + 1;
        else if (rows->count < TRIAL_ROWS)
            rows->rows[rows->count++] = row;
        if (!*at)
            break;
    }
    free(text);
}

/* ---- executing ---- */

/* A file of zeros, in which the program counts its calls. */
static void make_uses(const trial *one)
{
    char path[200];
    in_folder(one, "uses", path, sizeof path);
    write_text(path, "");
    if (truncate(path, sizeof *one->uses) != 0)
        perror(path);
}

static void read_uses(const trial *one)
{
    char path[200];
    FILE *file;
    in_folder(one, "uses", path, sizeof path);
    file = fopen(path, "rb");
    if (!file || fread(one->uses, sizeof *one->uses, 1, file) != 1)
        memset(one->uses, 0, sizeof *one->uses);
    if (file)
        fclose(file);
}

static void become_program(const trial *one)
{
    char path[200];
    int file;
    in_folder(one, "tmp", path, sizeof path);
    setenv("TMPDIR", path, 1);
    in_folder(one, "fired", path, sizeof path);
    setenv("FAULT_MARK", path, 1);
    setenv("FAULT", one->fault ? one->fault : "", 1);
    in_folder(one, "uses", path, sizeof path);
    if (one->uses)
        setenv("FAULT_USES", path, 1);
    setenv("FAULT_FROM", one->from_cases ? "cases" : "start", 1);
    setenv("ASAN_OPTIONS", "exitcode=99:allocator_may_return_null=1", 1);
    in_folder(one, "stderr", path, sizeof path);
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, 2);
    in_folder(one, "stdout", path, sizeof path);
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, 1);
    file = open("/dev/null", O_RDONLY);
    dup2(file, 0);
    in_folder(one, "out", path, sizeof path);
    setpgid(0, 0);
    if (chdir(path) == 0)
        execv(one->arguments[0], (char *const *)(size_t)one->arguments);
    _exit(127);
}

static int wait_for(pid_t child)
{
    static const struct timespec pause = {0, 1000000};
    time_t end = time(NULL) + TRIAL_HANGS_S;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) != child) {
        if (time(NULL) > end) {
            kill(-child, SIGKILL);
            waitpid(child, &status, 0);
            return 1000;
        }
        nanosleep(&pause, NULL);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Is what is left named on standard error, as what could not take its place? */
static int is_told(const trial *one, const char *names)
{
    char name[300];
    int length;
    for (; sscanf(names, " %299s%n", name, &length) == 1; names += length)
        if (!one->err || !strstr(one->err, name))
            return 0;
    return 1;
}

/* What no execution may leave. */
static void look_at_folders(trial *one)
{
    static const char *const none[] = {NULL};
    /* The first is what a trace that a signal ends keeps of itself. */
    static const char *const results[] = {"trace.json.partial", "rows.csv", "rows.json", "trace.json",
                                            "samples.csv", "kernels.csv", NULL};
    char path[200], names[1000];
    in_folder(one, "tmp", path, sizeof path);
    list_others(path, none, names, sizeof names);
    if (*names && !is_told(one, names))
        trial_complain(one, "left in the temporary folder:%s", names);
    in_folder(one, "out", path, sizeof path);
    list_others(path, results + !trial_was_ended(one), names, sizeof names);
    if (*names && !is_told(one, names))
        trial_complain(one, "left beside the rows:%s", names);
}

static void look_at_end(trial *one)
{
    static const char *const signs[] = {"AddressSanitizer", "LeakSanitizer", "runtime error", "LEFT:"};
    size_t i;
    if (one->status == 1000)
        trial_complain(one, "hangs");
    for (i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (one->err && strstr(one->err, signs[i]))
            trial_complain(one, "%s", signs[i]);
    if (one->status > 2 && !trial_was_ended(one))
        trial_complain(one, "exit status %d", one->status);
    if (one->status != 0 && !trial_was_ended(one) && one->err && !*one->err)
        trial_complain(one, "exit status %d without a word", one->status);
}

int trial_was_ended(const trial *one)
{
    if (!one->is_signal)
        return 0;
    return one->status == 128 + SIGTERM ||
           (one->status == 1 && one->err && strstr(one->err, ": ended by signal 15"));
}

int trial_kept_earlier(const trial *one)
{
    return one->file && !strcmp(one->file, trial_earlier);
}

void trial_run(trial *one)
{
    char path[200];
    pid_t child;
    mkdir(one->folder, 0700);
    in_folder(one, "tmp", path, sizeof path);
    empty_folder(path);
    in_folder(one, "out", path, sizeof path);
    empty_folder(path);
    in_folder(one, "fired", path, sizeof path);
    unlink(path);
    in_folder(one, "out/rows.csv", path, sizeof path);
    write_text(path, trial_earlier);
    one->problem[0] = '\0';
    if (one->uses)
        make_uses(one);
    child = fork();
    if (child == 0)
        become_program(one);
    one->status = wait_for(child);
    in_folder(one, "fired", path, sizeof path);
    one->fired = access(path, F_OK) == 0;
    in_folder(one, "stderr", path, sizeof path);
    one->err = trial_read(path);
    in_folder(one, "stdout", path, sizeof path);
    one->out = trial_read(path);
    in_folder(one, "out/rows.csv", path, sizeof path);
    one->file = trial_read(path);
    trial_read_rows(path, &one->rows);
    if (one->uses)
        read_uses(one);
    look_at_end(one);
    look_at_folders(one);
}

void trial_free(trial *one)
{
    free(one->out);
    free(one->err);
    free(one->file);
    one->out = one->err = one->file = NULL;
}
