/*
 * habits.c - what habits cost a training step on the host: variants of `best` that differ
 * in one of them.
 *
 * 1. optimizer   AdamW as an operation at a time and tensor, or as one pass
 * 2. norm        the gradients' norm by one chain of additions, or by several
 * 3. zero        gradients' memory taken anew, set to zero before the step, or just
 *                overwritten
 * 4. attention   a head's scores in memory, or in tiles
 *
 * Those that have files of their own: habit_mask.c, habit_inputs.c (inputs, loader), habit_pauses.c
 * (evaluation, checkpoint); loss, launches and products have nothing to measure here
 * (habit_not_here.c).
 *
 * Bound by the products, as the step is; what differs is bound by memory.
 */
#include "habits.h"

#include <stdlib.h>
#include <string.h>

#include "run.h"

/* ---- ways ------------------------------------------------------------------------------ */

static model_way_cpu adamw_per_tensor(void)
{
    model_way_cpu way = model_best_way_cpu;
    way.adamw = "per_tensor";
    return way;
}

static model_way_cpu norm_per_tensor(void)
{
    model_way_cpu way = model_best_way_cpu;
    way.clip = "per_tensor";
    return way;
}

static part_way_cpu naive_attention_parts(void)
{
    part_way_cpu parts = part_best_cpu;
    parts.attention = "naive";
    return parts;
}

/* ---- variants' functions ------------------------------------------------------------------ */

size_t model_habit_workspace_cpu(const void *args)
{
    return model_workspace_bytes_cpu(args, &model_best_way_cpu);
}

int model_habit_best_cpu(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)stream;
    return model_run_cpu(args, &model_best_way_cpu, workspace, state);
}

static size_t per_tensor_workspace(const void *args)
{
    model_way_cpu way = adamw_per_tensor();
    return model_workspace_bytes_cpu(args, &way);
}

static int run_per_tensor(const void *args, void *workspace, void *state, kernel_stream stream)
{
    model_way_cpu way = adamw_per_tensor();
    (void)stream;
    return model_run_cpu(args, &way, workspace, state);
}

static size_t norm_workspace(const void *args)
{
    model_way_cpu way = norm_per_tensor();
    return model_workspace_bytes_cpu(args, &way);
}

static int run_norm(const void *args, void *workspace, void *state, kernel_stream stream)
{
    model_way_cpu way = norm_per_tensor();
    (void)stream;
    return model_run_cpu(args, &way, workspace, state);
}

static size_t naive_workspace(const void *args)
{
    part_way_cpu parts = naive_attention_parts();
    model_way_cpu way = model_best_way_cpu;
    way.parts = &parts;
    return model_workspace_bytes_cpu(args, &way);
}

static int run_naive(const void *args, void *workspace, void *state, kernel_stream stream)
{
    part_way_cpu parts = naive_attention_parts();
    model_way_cpu way = model_best_way_cpu;
    (void)stream;
    way.parts = &parts;
    return model_run_cpu(args, &way, workspace, state);
}

static int run_zeroed(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args *a = args;
    model_plan plan = model_plan_of(a);
    memset(model_memory(a, &plan, MODEL_GRADIENTS), 0,
           (size_t)plan.bytes[MODEL_GRADIENTS]);
    return model_habit_best_cpu(args, workspace, state, stream);
}

/* Memory of each gradient's size, taken anew and touched, and given back: the step's own
 * gradients stay where they are. */
static int run_renewed(const void *args, void *workspace, void *state, kernel_stream stream)
{
    enum { PAGE = 4096 };
    const model_args *a = args;
    for (int64_t i = 0; i < model_tensor_count(&a->shape); i++) {
        parameters_tensor t = model_tensor_at(&a->shape, i);
        size_t bytes = (size_t)parameters_elements(&t) *
                       kernel_dtype_bytes(model_storage(a->dtype));
        volatile char *gradient = malloc(bytes);
        if (!gradient) return KERNEL_ERROR_MEMORY;
        for (size_t at = 0; at < bytes; at += PAGE) gradient[at] = 0;
        free((void *)gradient);
    }
    return model_habit_best_cpu(args, workspace, state, stream);
}

/* ---- tables -------------------------------------------------------------------------------- */

static const kernel_variant optimizer_rows[] = {
    {.name = "per_tensor", .note = "an operation and a tensor at a time",
     .dtypes = MODEL_HABIT_DTYPES_CPU, .workspace_bytes = per_tensor_workspace,
     .prepare = model_prepare_cpu, .release = model_release_cpu, .run = run_per_tensor},
    {.name = "fused", .note = "one pass", .dtypes = MODEL_HABIT_DTYPES_CPU,
     .workspace_bytes = model_habit_workspace_cpu, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = model_habit_best_cpu},
};

static const kernel_variant norm_rows[] = {
    {.name = "per_tensor", .note = "one chain of additions in double",
     .dtypes = MODEL_HABIT_DTYPES_CPU, .workspace_bytes = norm_workspace,
     .prepare = model_prepare_cpu, .release = model_release_cpu, .run = run_norm},
    {.name = "fused", .note = "sixteen chains of additions", .dtypes = MODEL_HABIT_DTYPES_CPU,
     .workspace_bytes = model_habit_workspace_cpu, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = model_habit_best_cpu},
};

static const kernel_variant zero_rows[] = {
    {.name = "renewed", .note = "each gradient's memory taken anew and given back",
     .dtypes = MODEL_HABIT_DTYPES_CPU, .workspace_bytes = model_habit_workspace_cpu,
     .prepare = model_prepare_cpu, .release = model_release_cpu, .run = run_renewed},
    {.name = "memset", .note = "gradients set to zero before each step",
     .dtypes = MODEL_HABIT_DTYPES_CPU, .workspace_bytes = model_habit_workspace_cpu,
     .prepare = model_prepare_cpu, .release = model_release_cpu, .run = run_zeroed},
    {.name = "overwritten", .note = "gradients written by what makes them",
     .dtypes = MODEL_HABIT_DTYPES_CPU, .workspace_bytes = model_habit_workspace_cpu,
     .prepare = model_prepare_cpu, .release = model_release_cpu, .run = model_habit_best_cpu},
};

static const kernel_variant attention_rows[] = {
    {.name = "naive", .note = "a head's scores in memory", .dtypes = MODEL_HABIT_DTYPES_CPU,
     .workspace_bytes = naive_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_naive},
    {.name = "tiled", .note = "online softmax over tiles", .dtypes = MODEL_HABIT_DTYPES_CPU,
     .workspace_bytes = model_habit_workspace_cpu, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = model_habit_best_cpu},
};

#define TABLE(rows) {(rows), sizeof(rows) / sizeof *(rows)}

const model_habit model_habits_cpu[] = {
    MODEL_HABIT(optimizer, 1, 0, TABLE(optimizer_rows), NULL),
    MODEL_HABIT(norm, 1, 0, TABLE(norm_rows), NULL),
    MODEL_HABIT(loss, 100, 0, TABLE(model_loss_rows_cpu), NULL),
    MODEL_HABIT(launches, 20, 0, TABLE(model_launches_rows_cpu), NULL),
    MODEL_HABIT(zero, 1, 0, TABLE(zero_rows), NULL),
    MODEL_HABIT(attention, 1, 0, TABLE(attention_rows), NULL),
    MODEL_HABIT(mask, 1, 0, TABLE(model_mask_rows_cpu), NULL),
    MODEL_HABIT(products, 1, 0, TABLE(model_products_rows_cpu), NULL),
    MODEL_HABIT(evaluation, 10, 0, TABLE(model_evaluation_rows_cpu), NULL),
    MODEL_HABIT(checkpoint, 10, 0, TABLE(model_checkpoint_rows_cpu), NULL),
    MODEL_HABIT(inputs, 10, 0, TABLE(model_inputs_rows_cpu), model_inputs_idle_cpu),
    MODEL_HABIT(loader, 4, 5, TABLE(model_loader_rows_cpu), model_inputs_idle_cpu),
    MODEL_HABIT(loader, 4, 20, TABLE(model_loader_rows_cpu), model_inputs_idle_cpu),
    MODEL_HABIT(loader, 4, 50, TABLE(model_loader_rows_cpu), model_inputs_idle_cpu),
};

const int model_habits_cpu_count = sizeof model_habits_cpu / sizeof *model_habits_cpu;
