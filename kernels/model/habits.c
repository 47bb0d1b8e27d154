/*
 * habits.c - what habits cost a training step on the host: variants of `best` that differ
 * in one of them. Those that are about waiting for a device are habits.cu's alone.
 *
 * 1. optimizer   AdamW as an operation at a time and tensor, or as one pass
 * 2. zero        gradients set to zero before the step, or just overwritten
 * 3. attention   a head's scores in memory, or in tiles
 *
 * Bound by the products, as the step is; what differs is bound by memory.
 */
#include "run.h"

#include <string.h>

#include "../common/element.h"

/* ---- ways ------------------------------------------------------------------------------ */

static model_way_cpu adamw_per_tensor(void)
{
    model_way_cpu way = model_best_way_cpu;
    way.adamw = "per_tensor";
    return way;
}

static part_way_cpu naive_attention_parts(void)
{
    part_way_cpu parts = part_best_cpu;
    parts.attention = "naive";
    return parts;
}

/* ---- variants' functions ------------------------------------------------------------------ */

static size_t best_workspace(const void *args)
{
    return model_workspace_bytes_cpu(args, &model_best_way_cpu);
}

static int run_best(const void *args, void *workspace, void *state, kernel_stream stream)
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
    return run_best(args, workspace, state, stream);
}

/* ---- tables -------------------------------------------------------------------------------- */

static const kernel_variant optimizer_rows[] = {
    {.name = "per_tensor", .note = "an operation and a tensor at a time", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = per_tensor_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_per_tensor},
    {.name = "fused", .note = "one pass", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = best_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_best},
};

static const kernel_variant zero_rows[] = {
    {.name = "memset", .note = "gradients set to zero before each step", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = best_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_zeroed},
    {.name = "overwritten", .note = "gradients written by what makes them",
     .dtypes = ELEMENT_DTYPES, .workspace_bytes = best_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_best},
};

static const kernel_variant attention_rows[] = {
    {.name = "naive", .note = "a head's scores in memory", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = naive_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_naive},
    {.name = "tiled", .note = "online softmax over tiles", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = best_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_best},
};

#define TABLE(rows) {rows, sizeof rows / sizeof *rows}

const model_habit model_habits_cpu[MODEL_HABITS_CPU] = {
    {"optimizer", 1, TABLE(optimizer_rows)},
    {"zero", 1, TABLE(zero_rows)},
    {"attention", 1, TABLE(attention_rows)},
};
