/* COUNT cases, each of which takes SECONDS of a clock that this program moves, give or take
 * 1 %: what is measured is known, however long the suite seems to take. */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

static double seconds, moved_s;

/* The linker's --wrap puts it in the place of clock_gettime. A look at the clock takes 100 ns,
 * so that what waits for it to move does not wait for ever; nothing else moves it but samples. */
int __wrap_clock_gettime(clockid_t which, struct timespec *now);
int __wrap_clock_gettime(clockid_t which, struct timespec *now)
{
    static long long looks;
    double whole_s = (double)(long long)moved_s;
    long long ns = (long long)((moved_s - whole_s) * 1e9) + 100 * ++looks;
    (void)which;
    now->tv_sec = (time_t)(1000 + (long long)whole_s + ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

static int run(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

/* From 0.99 to 1.01 of SECONDS, evenly spread by multiples of the golden ratio. */
static int sample(void *context, unsigned mode, uint64_t count, double *us)
{
    static double spread;
    double took_s = seconds * (double)count * (0.99 + 0.02 * spread);
    (void)context;
    (void)mode;
    spread += spread < 0.381966011250105 ? 0.618033988749895 : -0.381966011250105;
    moved_s += took_s;
    *us = took_s * 1e6;
    return 0;
}

int main(int argc, char **argv)
{
    const char *count = NULL, *takes = NULL;
    const gpubench_option own[] = {{"COUNT", NULL, "of cases", &count},
                                   {"SECONDS", NULL, "that each takes", &takes}};
    gpubench *bench = gpubench_open_with("load", own, 2, argc, argv);
    uint64_t cases = 0, i;
    int status;
    if (gpubench_parse_count(count, &cases) != 0 || gpubench_parse_number(takes, &seconds) != 0)
        gpubench_usage_error(bench, "COUNT '%s', SECONDS '%s': wants numbers", count, takes);
    for (i = 0; i < cases; i++) {
        char params[32];
        gpubench_case one = gpubench_case_init("load.case", run, NULL);
        snprintf(params, sizeof params, "n=%llu", (unsigned long long)(i / 2));
        one.params = params;
        one.variant = i % 2 == 0 ? "first" : "second";
        one.sample = sample;
        gpubench_measure(bench, &one);
    }
    status = gpubench_close(bench);
    fprintf(stderr, "%.1f hours\n", moved_s / 3600);
    return status;
}
