/*
 * model_build.c - memory for the model's cases and what they start from.
 */
#include "model_suite.h"

#include "../kernels/common/random.h"
#include "once.h"

#include <stdlib.h>
#include <string.h>

/* ---- inputs -------------------------------------------------------------------------- */

#if GPUBENCH_CUDA
static int fill_device(void *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                       uint64_t seed)
{
    return random_normal_cuda(data, dtype, count, mean, stddev, seed, NULL);
}
#endif

static model_fill_function *filler_of(const gpubench *bench)
{
#if GPUBENCH_CUDA
    if (gpubench_is_cuda(bench)) return fill_device;
#endif
    (void)bench;
    return random_normal_cpu;
}

static int fill_tokens(gpubench *bench, const model_args *a, const model_plan *plan)
{
    int64_t n = model_step_rows(a);
    int32_t *rows = malloc(2 * (size_t)n * sizeof *rows);
    int code = rows ? model_fill_tokens(a, gpubench_seed(bench), rows) : KERNEL_ERROR_MEMORY;
    if (code == 0)
        code = gpubench_copy(bench, model_memory(a, plan, MODEL_TOKENS), rows,
                             (size_t)n * sizeof *rows);
    if (code == 0)
        code = gpubench_copy(bench, model_memory(a, plan, MODEL_TARGETS), rows + n,
                             (size_t)n * sizeof *rows);
    free(rows);
    return code;
}

/* ---- outputs --------------------------------------------------------------------------- */

/* Whether every sample of a case writes the buffer before it reads it. */
static int is_written(const model_args *a, model_buffer buffer)
{
    if (a->components != MODEL_ALL) return 0;
    if (buffer >= MODEL_STREAM && buffer <= MODEL_LOGITS) return (a->phases & MODEL_FORWARD) != 0;
    if (buffer == MODEL_LOSSES || buffer == MODEL_LOGIT_GRADIENTS)
        return (a->phases & MODEL_LOSS) != 0;
    if (buffer == MODEL_GRADIENTS || buffer > MODEL_LOGIT_GRADIENTS)
        return (a->phases & MODEL_BACKWARD) != 0;
    return 0;
}

static int name_outputs(gpubench *bench, const model_args *a, const model_plan *plan)
{
    int code = 0;
    for (int i = 0; i < MODEL_BUFFERS && code == 0; i++) {
        void *memory = model_memory(a, plan, (model_buffer)i);
        if (memory && is_written(a, (model_buffer)i))
            code = gpubench_output(bench, memory, (size_t)plan->bytes[i]);
    }
    return code;
}

/* ---- building -------------------------------------------------------------------------- */

kernel_table model_suite_table(const gpubench *bench)
{
    return gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(model_cuda) : model_cpu;
}

/* Attention that takes contiguous heads only: all of what the habit `mask` compares, too. */
static int adapts_to(const model_args *a, const char *variant)
{
    if (a->habit && !strcmp(a->habit->name, "mask")) return 0;
    return strcmp(variant, "unfused") && strcmp(variant, "naive") && strcmp(variant, "tiled");
}

block_layout model_suite_layout(const gpubench *bench, const model_args *a, const char *variant)
{
    int adapts = adapts_to(a, variant);
#if GPUBENCH_CUDA
    if (gpubench_is_cuda(bench)) return model_layout_cuda(&a->shape, a->dtype, adapts);
#endif
    (void)bench;
    return model_layout_cpu(&a->shape, a->dtype, adapts);
}

/* What a case starts from is made launch by launch. */
static const char *builder_of(const suite_case *c)
{
    return strcmp(c->variant->name, "graph") ? c->variant->name : "best";
}

static int settle(const suite_case *c, gpubench *bench)
{
    kernel_table table = model_suite_table(bench);
    const model_args *a = c->args;
    const kernel_variant *own = kernel_find(&table, builder_of(c));
    if (!model_scales_loss(a)) return 0;
    return model_settle_scale(bench, a, own ? own : kernel_find(&table, "best"));
}

/* Runs what the case finds done: all phases up to its last where it has some of
 * the components only, else those before its first. */
static int run_before(suite_case *c, gpubench *bench)
{
    model_args before = *(const model_args *)c->args;
    kernel_table table = model_suite_table(bench);
    const char *name = builder_of(c);
    unsigned first = before.phases & (~before.phases + 1);
    before.phases = before.components != MODEL_ALL ? before.phases | (first - 1) : first - 1;
    before.components = MODEL_ALL;
    return before.phases ? suite_run_named(bench, &table, name, &before) : 0;
}

/* What a case plans to take for itself, which is not what a driver rounds it to; without
 * the libraries' own. A graph's workspace is as large as that of what it captured. */
static void tell_bytes(gpubench *bench, const suite_case *c, uint64_t planned)
{
    kernel_table table = model_suite_table(bench);
    const kernel_variant *own = c->variant, *best = kernel_find(&table, "best");
    if (!own->workspace_bytes && best) own = best;
    if (own->workspace_bytes) planned += own->workspace_bytes(c->args);
    gpubench_counter(bench, "peak_bytes", (double)planned);
}

/* The rows of tokens that a whole pass handles; how many ops a component has. */
static int tell_counts(gpubench *bench, const model_args *a)
{
    model_ops ops;
    if (a->components == MODEL_ALL) {
        gpubench_rate(bench, "tokens", (double)model_step_rows(a));
        return 0;
    }
    if (model_ops_create(a, &ops)) return KERNEL_ERROR_MEMORY;
    gpubench_counter(bench, "ops", (double)ops.count);
    model_ops_destroy(&ops);
    return 0;
}

/* ---- memory by category ----------------------------------------------------------------- */

static void name_categories(gpubench *bench, const model_args *a, const model_plan *plan)
{
    for (int i = 0; i < MODEL_BUFFERS; i++)
        (void)gpubench_category(bench, model_memory(a, plan, (model_buffer)i), plan->bytes[i],
                                model_category_name((int)model_category_of((model_buffer)i)));
}

/* What the plan would be of another shape, and the variant's workspace. */
static void tell_change(gpubench *bench, const suite_case *c, const char *change, model_args a)
{
    a.layout = model_suite_layout(bench, &a, c->variant->name);
    model_plan plan = model_plan_of(&a);
    for (int i = 0; i < MODEL_BUFFERS && plan.total != UINT64_MAX; i++)
        (void)gpubench_category_if(bench, change, plan.bytes[i],
                                   model_category_name((int)model_category_of((model_buffer)i)));
    if (c->variant->workspace_bytes)
        (void)gpubench_category_if(bench, change, c->variant->workspace_bytes(&a), "workspace");
}

static void tell_changes(gpubench *bench, const suite_case *c)
{
    model_args a = *(const model_args *)c->args;
    a.shape.batch *= 2;
    tell_change(bench, c, "batch x2", a);
    a = *(const model_args *)c->args;
    a.shape.tokens *= 2;
    tell_change(bench, c, "context x2", a);
}

/* One allocation, so that the bytes of one that does not fit are those of all. */
int model_build(suite_case *c, gpubench *bench)
{
    model_args *a = c->args;
    model_plan plan;
    int code;
    a->recomputes = a->keeps && !strcmp(c->variant->name, "recompute");
    a->layout = model_suite_layout(bench, a, c->variant->name);
    plan = model_plan_of(a);
    a->memory = plan.total > SIZE_MAX
                    ? NULL
                    : gpubench_alloc(bench, (size_t)plan.total, GPUBENCH_DEVICE);
    if (!a->memory) return GPUBENCH_OOM;
    name_categories(bench, a, &plan);
    tell_changes(bench, c);
    code = model_fill(a, filler_of(bench), gpubench_seed(bench));
    if (code == 0) code = fill_tokens(bench, a, &plan);
    if (code == 0) code = settle(c, bench);
    if (code == 0) code = run_before(c, bench);
    if (code == 0) code = tell_counts(bench, a);
    if (code == 0 && a->components == MODEL_ALL) tell_bytes(bench, c, plan.total);
    if (code == 0) code = model_write_checkpoint(c, bench);
    if (code == 0) code = model_time_first_steps(c, bench);
    return code ? code : name_outputs(bench, a, &plan);
}
