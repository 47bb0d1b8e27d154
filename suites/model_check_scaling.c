/*
 * model_check_scaling.c - f16's loss scale in a model's case: it settles before anything
 * is timed, and is checked by the rule that optimizer.h states.
 */
#include "model_check.h"

#include "once.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

optimizer_scaler model_scaler_of(part_checker *c, const model_args *a)
{
    optimizer_scaler scaler = {.scale = 1, .used = 1};
    model_plan plan = model_plan_of(a);
    const void *memory = model_memory(a, &plan, MODEL_SCALER);
    if (memory && c->code == 0) c->code = gpubench_copy(c->bench, &scaler, memory, sizeof scaler);
    return scaler;
}

/* ---- settling ---------------------------------------------------------------------------- */

/* From the first scale to the least in halves, and one more. */
enum { MOST_SKIPS = 40 };

int model_settle_scale(gpubench *bench, const model_args *a, const kernel_variant *variant)
{
    part_checker c = {.bench = bench, .dtype = a->dtype};
    optimizer_scaler scaler = {.skips = 1};
    model_args step = *a;
    step.phases = MODEL_STEP;
    step.components = MODEL_ALL;
    for (int i = 0; i < MOST_SKIPS && scaler.skips && c.code == 0; i++) {
        c.code = suite_run_once(bench, variant, &step);
        scaler = model_scaler_of(&c, a);
    }
    if (c.code == 0 && scaler.skips)
        c.code = gpubench_fail(bench, GPUBENCH_FAILED,
                               "gradients are infinite or NaN at a loss scale of %g: it is not "
                               "the scale", (double)scaler.used);
    return c.code;
}

/* ---- checking ---------------------------------------------------------------------------- */

static void want(part_checker *c, const char *what, double value, double expected)
{
    if (c->code == 0 && !(fabs(value - expected) <= 1e-6 * fabs(expected)))
        c->code = gpubench_fail(c->bench, GPUBENCH_MISMATCH, "loss scale: %s is %g, not %g", what,
                                value, expected);
}

void model_check_scale_loss(part_checker *c, const model_args *a,
                            const optimizer_scale_loss_args *s)
{
    optimizer_scaler scaler = model_scaler_of(c, a);
    float *weights = part_check_get_f32(c, s->weights, 0, s->count);
    for (int64_t i = 0; i < s->count && c->code == 0; i++)
        want(c, "a row's weight", (double)weights[i], (double)scaler.used / (double)s->rows);
    free(weights);
}

void model_check_scaler(part_checker *c, const model_args *a, const optimizer_scaler *before)
{
    optimizer_scaler after = model_scaler_of(c, a);
    double scale = (double)before->scale;
    int grows = !after.skips && before->good + 1 >= a->scaling.interval;
    if (after.skips) scale = fmax(scale * (double)a->scaling.backoff, OPTIMIZER_LEAST_SCALE);
    if (grows) scale *= (double)a->scaling.growth;
    want(c, "the scale", (double)after.scale, scale);
    want(c, "the scale that was used", (double)after.used, (double)before->scale);
    want(c, "steps since it changed", after.good, after.skips || grows ? 0 : before->good + 1);
    want(c, "steps taken", after.taken, before->taken + !after.skips);
    want(c, "steps skipped", after.skipped, before->skipped + after.skips);
}
