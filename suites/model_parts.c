/*
 * model_parts.c - a step's components as cases of their own: `model.part`, one for
 * each component of each phase. They run one after the other what the step has of
 * theirs, in all layers, on what a whole step left; so what they take should add up
 * to the step's, but for what neighbours share in the caches.
 */
#include "model_suite.h"

#include <stdio.h>
#include <string.h>

/* `best` and `graph`: by launches, as a trace shows them, and without what launches
 * cost. */
static int takes(const kernel_variant *variant, const void *args)
{
    (void)args;
    return !strcmp(variant->name, "best") || !strcmp(variant->name, "graph");
}

/* Ops that the component has in the phase; negative: no memory to tell. */
static int64_t ops_of(const gpubench *bench, const model_args *args)
{
    model_args a = *args;
    model_ops ops;
    int64_t count;
    a.layout = model_suite_layout(bench, &a, "best");
    if (model_ops_create(&a, &ops)) return -1;
    count = ops.count;
    model_ops_destroy(&ops);
    return count;
}

static void queue_part(suite *s, const suite_operation *operation, const named_shape *n,
                       kernel_dtype dtype, unsigned phase, model_component component)
{
    model_args args = model_args_of(&n->shape, dtype, phase);
    char params[256], shape[192];
    args.components = 1u << component;
    args.keeps = 1;
    if (ops_of(s->bench, &args) == 0) return;
    model_describe(shape, sizeof shape, n);
    snprintf(params, sizeof params, "pass=%s part=%s %s", model_phases_name(phase),
             model_component_name((int)component), shape);
    suite_queue(s, operation, dtype, params, &args, 0,
                model_component_flops(&n->shape, phase, component));
}

void model_queue_parts(suite *s, const named_shape *n, kernel_dtype dtype)
{
    static const suite_operation operation = {.name = "model.part",
                                              .cpu = &model_cpu,
                                              .cuda = SUITE_CUDA(model_cuda),
                                              .args_bytes = sizeof(model_args),
                                              .build = model_build,
                                              .verify = model_verify,
                                              .takes = takes};
    for (unsigned phase = MODEL_FORWARD; phase <= MODEL_UPDATE; phase *= 2)
        for (int i = 0; i < MODEL_COMPONENTS; i++)
            queue_part(s, &operation, n, dtype, phase, (model_component)i);
}
