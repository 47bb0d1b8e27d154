/* What a program that is built on gpubench.h reads of its environment, a variable a line: its
 * number among those below, then its value. Refused with a message, or taken. */
#ifndef GPUBENCH_TESTS_FUZZ_HEADER_ENVIRONMENT_H
#define GPUBENCH_TESTS_FUZZ_HEADER_ENVIRONMENT_H

#include "fuzz.h"

static const char *const variables[] = {GPB_ENV_RUN,    GPB_ENV_ROWS, GPB_ENV_JOURNAL, GPB_ENV_CAMPAIGN,
                                        GPB_ENV_DEVICE, "TMPDIR",     "PATH",          "COLUMNS"};
enum { variable_count = sizeof variables / sizeof variables[0] };

static void unset_variables(void)
{
    for (int i = 0; i < variable_count; i++)
        unsetenv(variables[i]);
}

static void set_variables(const struct command_line *line)
{
    unset_variables();
    for (int i = 1; i < line->count; i++)
        if (line->words[i][0])
            setenv(variables[(unsigned char)line->words[i][0] % variable_count], line->words[i] + 1, 1);
}

static void fuzz_environment(const uint8_t *data, size_t size)
{
    static char name[] = "fuzz", *no_words[] = {name, NULL};
    struct command_line line = command_line_split(data, size);
    gpubench *bench = gpb_must(calloc(1, sizeof *bench));
    set_variables(&line);
    bench->suite = gpb_duplicate("fuzz");
    bench->argv = no_words;
    gpb_prepare_handle(bench);
    gpb_default_settings(&bench->settings);
    gpb_take_devices(bench, "cpu");
    gpb_join_processes(bench);
    require(bench->refused || bench->run >= 1);
    require(gpb_find_backend(bench->settings.device) != NULL);
    require(strlen(bench->campaign) < sizeof bench->campaign);
    bench->rows_file = bench->journal.file = bench->journal.old = -1; /* not this program's */
    gpb_free(bench);
    unset_variables();
    free(line.bytes);
}

#endif
