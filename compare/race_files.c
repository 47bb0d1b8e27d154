#define _XOPEN_SOURCE 700

#include "precise.h"

#include "race_files.h"

#include "csv.h"
#include "report_parts.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const side_files[2] = {"old.csv", "new.csv"};

static bool fail(char *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, race_error_capacity, format, arguments);
    va_end(arguments);
    return false;
}

void race_path(char out[race_path_capacity], const char *folder, const char *name)
{
    int length = snprintf(out, race_path_capacity, "%s/%s", folder, name);
    if (length < 0 || length >= race_path_capacity)
        out[0] = '\0'; /* no such file, rather than another one */
}

static bool make_kept(struct race_files *files, char *error)
{
    files->kept_is_new = mkdir(files->kept, 0777) == 0;
    if (!files->kept_is_new && errno != EEXIST)
        return fail(error, "--output: '%.300s': %s", files->kept, strerror(errno));
    struct stat found;
    if (stat(files->kept, &found) != 0 || !S_ISDIR(found.st_mode))
        return fail(error,
                    "--output: '%.300s' is no folder; a race keeps old.csv and new.csv in one",
                    files->kept);
    for (int side = 0; side < 2; side++)
        if (lstat(files->rows[side], &found) == 0)
            return fail(error, "--output: '%.300s' is there already", files->rows[side]);
    if (access(files->kept, W_OK | X_OK) != 0)
        return fail(error, "--output: '%.300s': %s", files->kept, strerror(errno));
    return true;
}

bool race_files_make(struct race_files *files, const char *keep, char error[race_error_capacity])
{
    const char *parent = getenv("TMPDIR");
    char programs[race_path_capacity];
    *files = (struct race_files){.kept = keep};
    race_path(files->folder, parent && *parent ? parent : "/tmp", "gpubench-race.XXXXXX");
    if (!mkdtemp(files->folder)) {
        fail(error, "cannot make a temporary folder in '%.300s': %s",
             parent && *parent ? parent : "/tmp", strerror(errno));
        files->folder[0] = '\0';
        return false;
    }
    race_path(programs, files->folder, "tmp");
    if (mkdir(programs, 0700) != 0)
        return fail(error, "'%.300s': %s", programs, strerror(errno));
    for (int side = 0; side < 2; side++)
        race_path(files->rows[side], keep ? keep : files->folder, side_files[side]);
    return !keep || make_kept(files, error);
}

static int remove_entry(const char *path, const struct stat *found, int type, struct FTW *place)
{
    (void)found, (void)type, (void)place;
    remove(path);
    return 0;
}

void race_files_remove(struct race_files *files)
{
    if (*files->folder)
        nftw(files->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (files->kept_is_new)
        rmdir(files->kept); /* where no row came into it */
    files->folder[0] = '\0';
}

static struct race_flag *find_flag(struct race_flags *flags, const char *name, size_t size)
{
    if (size >= race_flag_capacity)
        size = race_flag_capacity - 1;
    for (size_t i = 0; i < flags->count; i++)
        if (strlen(flags->items[i].name) == size && strncmp(flags->items[i].name, name, size) == 0)
            return &flags->items[i];
    if (flags->count == race_most_flags)
        return NULL;
    struct race_flag *flag = &flags->items[flags->count++];
    memcpy(flag->name, name, size);
    return flag;
}

/* Why sampling ended is no matter of one side. */
static bool is_of_interest(const char *word)
{
    return strncmp(word, "stop=", 5) != 0;
}

static void count_flags(struct race_flags *flags, int side, const char *text, const char *case_name)
{
    while (*(text += strspn(text, " "))) {
        size_t size = strcspn(text, " ");
        struct race_flag *flag = is_of_interest(text) ? find_flag(flags, text, size) : NULL;
        if (flag && flag->rows[0] + flag->rows[1] == 0)
            snprintf(flag->first_case, sizeof flag->first_case, "%s", case_name);
        if (flag)
            flag->rows[side]++;
        text += size;
    }
}

static void write_record(FILE *out, char **fields, size_t count, int run_column, unsigned pair)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            putc(',', out);
        if ((int)i == run_column)
            fprintf(out, "%u", pair);
        else
            print_csv_field(out, fields[i]);
    }
    putc('\n', out);
}

static bool copy_rows(struct csv_reader *reader, FILE *out, bool first, int side, unsigned pair,
                      struct race_flags *flags, char *error)
{
    int run_column = csv_column(reader, "run");
    int case_column = csv_column(reader, "case");
    int status_column = csv_column(reader, "status");
    int flags_column = csv_column(reader, "flags");
    size_t rows = 0;
    if (run_column < 0 || case_column < 0 || status_column < 0)
        return fail(error, "what it wrote with --csv has no column '%s'",
                    run_column < 0    ? "run"
                    : case_column < 0 ? "case"
                                      : "status");
    enum csv_outcome outcome;
    for (; (outcome = csv_next(reader)) == CSV_RECORD; rows++) {
        if (pair == 0 && strcmp(reader->fields[status_column], "ok") == 0)
            continue;
        if (first)
            write_record(out, reader->names, reader->column_count, -1, pair);
        first = false;
        write_record(out, reader->fields, reader->column_count, run_column, pair);
        if (pair > 0 && flags_column >= 0)
            count_flags(flags, side, reader->fields[flags_column], reader->fields[case_column]);
    }
    if (outcome == CSV_ERROR)
        return fail(error, "%s", reader->error);
    return rows > 0 || fail(error, "it wrote no row");
}

static bool has_content(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && found.st_size > 0;
}

bool race_append_rows(const char *from, const struct race_files *files, int side, unsigned pair,
                      struct race_flags *flags, char error[race_error_capacity])
{
    struct csv_reader reader;
    char *bytes = NULL;
    size_t size = 0;
    bool first = !has_content(files->rows[side]);
    FILE *memory = open_memstream(&bytes, &size);
    if (!memory)
        return fail(error, "not enough memory");
    bool complete =
        csv_open(&reader, from)
            ? copy_rows(&reader, memory, first, side, pair, flags, error)
            : fail(error, "%s", access(from, F_OK) != 0 ? "it wrote no rows" : reader.error);
    csv_close(&reader);
    complete = (fclose(memory) == 0 || fail(error, "not enough memory")) && complete;
    bool has_rows = complete && size > 0;
    FILE *rows = has_rows ? fopen(files->rows[side], "a") : NULL;
    if (has_rows && (!rows || fwrite(bytes, 1, size, rows) != size))
        complete = fail(error, "cannot write '%.300s': %s", files->rows[side], strerror(errno));
    if (rows && fclose(rows) != 0)
        complete = fail(error, "cannot write '%.300s': %s", files->rows[side], strerror(errno));
    free(bytes);
    return complete;
}
