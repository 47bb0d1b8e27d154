/* What the tests of the compare program share: running it, and files to run it on. */
#ifndef GPUBENCH_TESTS_TOOL_H
#define GPUBENCH_TESTS_TOOL_H

#include "../../compare/csv.h"
#include "cmocka_all.h"
#include "schema_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *tool = "./gpubench-compare";
static char directory[] = "/tmp/gpubench-compare-test-XXXXXX";

/* What the last run of the tool left. */
static char output[1 << 16];
static char complaint[1 << 14];

static inline void path_in(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s", directory, name);
}

static inline void read_back(const char *name, char *out, size_t capacity)
{
    char path[256];
    path_in(path, name);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(out, 1, capacity - 1, file) : 0;
    out[size] = '\0';
    if (file)
        fclose(file);
}

static inline void write_text(const char *name, struct text *text)
{
    char path[256];
    path_in(path, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text->bytes, 1, text->size, file), text->size);
    assert_int_equal(fclose(file), 0);
    free_text(text);
}

/* Runs the tool in the directory of the files; environment is set before it. */
static inline int run_with(const char *environment, const char *arguments)
{
    char command[2048];
    snprintf(command, sizeof command, "cd '%s' && %s '%s' %s >out.txt 2>err.txt", directory, environment, tool,
             arguments);
    int status = system(command);
    read_back("out.txt", output, sizeof output);
    read_back("err.txt", complaint, sizeof complaint);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline int run(const char *arguments)
{
    return run_with("", arguments);
}

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not hold '%s'", text, part);
}

static inline void add_case(struct text *text, const char *name, const char *campaign, unsigned runs, double median_us)
{
    add_runs(text, (struct text_row){.name = name, .campaign = campaign}, runs, median_us, 0.002);
}

static inline void write_side(const char *name, const char *campaign, unsigned runs, double copy_us, double norm_us)
{
    struct text text = {0};
    add_header(&text);
    add_case(&text, "copy", campaign, runs, copy_us);
    add_case(&text, "\"norm|<f,4>\"", campaign, runs, norm_us);
    write_text(name, &text);
}

static inline int write_files(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    write_side("base.csv", "c1", 10, 100, 50);
    write_side("same.csv", "new", 3, 100, 50);
    write_side("slow.csv", "new", 3, 100, 75);
    write_side("fast.csv", "new", 3, 100, 40);
    struct text broken = {0};
    add_header(&broken);
    add_case(&broken, "copy", "new", 3, 150);
    add_text(&broken, "2,suite,norm\n");
    write_text("broken.csv", &broken);
    return 0;
}

static inline int remove_files(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", directory);
    return system(command);
}

#endif
