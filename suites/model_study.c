/*
 * model_study.c - --first-steps: the first steps of a process by the host's clock, each
 * waited for, as one who measures without a tool sees them. The engine's own samples
 * cannot show that, because it warms up until times are steady.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include "model_suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *model_first_steps_path, *model_steps_before;

enum { TIMED_STEPS = 10 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* How many steps before: what --steps-before says. */
static int64_t steps_before(void)
{
    uint64_t count = 0;
    if (model_steps_before) (void)gpubench_parse_count(model_steps_before, &count);
    return (int64_t)count;
}

static int run_steps(const suite_case *c, gpubench *bench, void *workspace, void *state,
                     double us[TIMED_STEPS])
{
    int64_t before = steps_before();
    int code = 0;
    for (int64_t i = 0; i < before + TIMED_STEPS && code == 0; i++) {
        double begin = now_us();
        code = c->variant->run(c->args, workspace, state, NULL);
        if (code == 0) code = gpubench_finish(bench);
        if (i >= before) us[i - before] = now_us() - begin;
    }
    return code;
}

/* Appended as rows "steps before, step, us". */
static int append(gpubench *bench, const double us[TIMED_STEPS])
{
    FILE *file = fopen(model_first_steps_path, "a");
    int failed = !file;
    for (int i = 0; i < TIMED_STEPS && file; i++)
        failed |= fprintf(file, "%lld,%d,%.3f\n", (long long)steps_before(), i + 1, us[i]) < 0;
    if (file) failed |= fclose(file) != 0;
    return failed ? gpubench_fail(bench, GPUBENCH_FAILED, "--first-steps '%s': %s",
                                  model_first_steps_path, strerror(errno))
                  : 0;
}

int model_time_first_steps(const suite_case *c, gpubench *bench)
{
    const kernel_variant *variant = c->variant;
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(c->args) : 0;
    void *workspace = NULL, *state = NULL;
    double us[TIMED_STEPS] = {0};
    int code = 0;
    if (!model_first_steps_path || strcmp(c->operation->name, "model.step")) return 0;
    if (bytes > 0 && !(workspace = gpubench_alloc(bench, bytes, GPUBENCH_DEVICE)))
        return GPUBENCH_OOM;
    if (variant->prepare) code = variant->prepare(c->args, &state);
    if (code == 0) code = run_steps(c, bench, workspace, state, us);
    if (state && variant->release) variant->release(state);
    return code ? code : append(bench, us);
}

void model_check_study(gpubench *bench)
{
    uint64_t count;
    if (model_steps_before &&
        (gpubench_parse_count(model_steps_before, &count) != 0 || count > INT32_MAX))
        gpubench_usage_error(bench, "--steps-before '%s': wants a whole number",
                             model_steps_before);
}
