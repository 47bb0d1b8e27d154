/* What a program that is built on gpubench.h reads: behind the byte 1 the rows that another
 * process left, behind 2 the environment, else the command line, a word a line, up to where files
 * would be opened: options of the header, options and arguments of the program's own, and the
 * axes of a sweep. Refused with a message, or every setting is in its range. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "fuzz.h"
#include "header_environment.h"
#include "header_rows.h"

static const char *shape, *sorted, *seconds, *file, *more;
static const gpubench_option own[] = {{"--shape", "LIST", "sizes to measure", &shape},
                                      {"-s", NULL, "sort first", &sorted},
                                      {"--max-time", NULL, NULL, &seconds},
                                      {"FILE", NULL, "what to read", &file},
                                      {"MORE...", NULL, "other files", &more}};
enum { own_count = sizeof own / sizeof own[0] };

static int run(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

static void check_settings(const gpb_settings *settings)
{
    require(settings->precision > 0 && settings->precision <= 1);
    require(settings->max_time_s > 0 && settings->max_time_s <= 86400);
    require(settings->timeout_s >= 0 && settings->timeout_s <= 86400);
    require(settings->min_samples >= 1 && settings->min_samples <= settings->max_samples);
    require(settings->runs >= 1 && settings->runs <= 1000);
}

static void sweep(gpubench *bench)
{
    const gpubench_axis axes[] = {{"n", "1,2,4"}, {"block", "2^5..2^8"}};
    gpubench_case one = gpubench_case_init("case", run, NULL);
    gpubench_sweep(bench, &one, 1, axes, 2);
    require(bench->refused || bench->group_count > 0);
}

static void fuzz_options(const uint8_t *data, size_t size)
{
    struct command_line line = command_line_split(data, size);
    gpubench *bench = gpb_must(calloc(1, sizeof *bench));
    const char **given = gpb_must(calloc(own_count + GPB_COUNT_OF(gpb_builtin), sizeof *given));
    shape = sorted = seconds = file = NULL;
    more = "none";
    bench->suite = gpb_duplicate("fuzz");
    bench->argv = line.words;
    gpb_prepare_handle(bench);
    bench->given = given;
    bench->given_standard = given + own_count;
    gpb_default_settings(&bench->settings);
    gpb_read_arguments(bench, line.count, own, own_count, given);
    if (!bench->refused)
        gpb_give_values(bench, own, own_count, given);
    if (!bench->refused)
        gpb_take_settings(bench, bench->given_standard);
    bench->backend = gpb_find_backend(bench->settings.device);
    if (!bench->refused) {
        check_settings(&bench->settings);
        sweep(bench);
    }
    gpb_free(bench);
    free(line.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 1)
        fuzz_rows(data + 1, size - 1);
    else if (size > 0 && data[0] == 2)
        fuzz_environment(data + 1, size - 1);
    else
        fuzz_options(data, size);
    return 0;
}
