/*
 * model.c - a model's step on the host: variants that run the ops of ops.c one
 * after the other.
 *
 * 1. unfused    naive parts: those of block.c's variant of that name, and the
 *               simplest of the others
 * 2. best       tiled attention and products
 * 3. simd       best's, with the vector instructions that the processor has
 * 4. threads    the same on all threads
 * 5. recompute  best, for args that say that activations are recomputed: less
 *               memory for a third more products
 *
 * All are bound by the products' arithmetic.
 */
#include "run.h"

#include <stdlib.h>

#include "../common/element.h"
#include "../common/simd.h"

/* ---- how ops are done ------------------------------------------------------------------ */

static const model_way_cpu unfused_way = {&part_unfused_cpu, "naive", "scatter",   "naive",
                                      "naive",           "per_tensor", "per_tensor"};
const model_way_cpu model_best_way_cpu = {&part_best_cpu, "vectorized", "sorted", "fused",
                                          "fused_one_pass", "fused", "fused"};
static const model_way_cpu simd_way = {&part_simd_cpu, "simd", "simd", "simd", "simd", "simd",
                                       "simd"};
static const model_way_cpu threads_way = {&part_threads_cpu, "threads", "threads", "threads",
                                          "threads", "threads", "threads"};

block_layout model_layout_cpu(const model_shape *shape, kernel_dtype dtype, int adapts)
{
    block_shape block = model_block_shape(shape);
    (void)dtype, (void)adapts;
    return block_own_layout(&block);
}

/* The variant of another operation that does the op; NULL for what is done here. */
static const kernel_variant *variant_of(const model_op *op, const model_way_cpu *way)
{
    switch (op->kind) {
    case MODEL_OP_EMBEDDING: return kernel_find(&embedding_forward_cpu, way->embedding);
    case MODEL_OP_EMBEDDING_GRADIENT:
        return kernel_find(&embedding_backward_cpu, way->embedding_gradient);
    case MODEL_OP_LOSS: return kernel_find(&loss_forward_cpu, way->loss);
    case MODEL_OP_LOSS_GRADIENT:
        return kernel_find(&loss_forward_backward_cpu, way->loss_gradient);
    case MODEL_OP_SCALE_LOSS: return &optimizer_scale_loss_cpu.rows[0];
    case MODEL_OP_UNSCALE: return &optimizer_unscale_cpu.rows[0];
    case MODEL_OP_CLIP: return kernel_find(&optimizer_clip_norm_cpu, way->clip);
    case MODEL_OP_ADAMW: return kernel_find(&optimizer_adamw_cpu, way->adamw);
    case MODEL_OP_PART:
    case MODEL_OP_ACCUMULATE:
    case MODEL_OP_MEAN: break;
    }
    return NULL;
}

static void run_mean(const model_mean *m)
{
    double sum = 0;
    for (int64_t i = 0; i < m->count; i++) sum += (double)m->values[i];
    *m->mean = (float)(sum / (double)m->count);
}

static void run_accumulate(const model_accumulate *a)
{
    for (int64_t i = 0; i < a->count; i++) {
        float sum = element_get(a->gradients, a->dtype, i);
        if (!a->is_first) sum += a->sums[i];
        if (a->is_last)
            element_set(a->gradients, a->dtype, i, sum);
        else
            a->sums[i] = sum;
    }
}

static int run_op(const model_op *op, const model_way_cpu *way, void *workspace)
{
    const kernel_variant *variant = variant_of(op, way);
    if (op->kind == MODEL_OP_PART) return part_run_cpu(&op->as.part, way->parts, workspace);
    if (variant) return variant->run(&op->as, workspace, NULL, NULL);
    if (op->kind == MODEL_OP_ACCUMULATE)
        run_accumulate(&op->as.accumulate);
    else
        run_mean(&op->as.mean);
    return KERNEL_OK;
}

static size_t workspace_of(const model_op *op, const model_way_cpu *way)
{
    const kernel_variant *variant = variant_of(op, way);
    if (op->kind == MODEL_OP_PART) return part_workspace_bytes_cpu(&op->as.part, way->parts);
    return variant && variant->workspace_bytes ? variant->workspace_bytes(&op->as) : 0;
}

/* ---- variants ----------------------------------------------------------------------------- */

static int takes(const model_args *a)
{
    return element_takes(a->dtype) && !a->layout.in_place &&
           a->layout.head_dim * a->shape.heads == a->shape.width;
}

size_t model_workspace_bytes_cpu(const void *args, const model_way_cpu *way)
{
    model_ops ops;
    size_t most = 0;
    if (!takes(args) || model_ops_create(args, &ops)) return 0;
    for (int64_t i = 0; i < ops.count; i++) {
        size_t bytes = workspace_of(&ops.list[i], way);
        if (bytes > most) most = bytes;
    }
    model_ops_destroy(&ops);
    return most;
}

static size_t unfused_workspace(const void *args)
{
    return model_workspace_bytes_cpu(args, &unfused_way);
}

static size_t best_workspace(const void *args)
{
    return model_workspace_bytes_cpu(args, &model_best_way_cpu);
}

static size_t simd_workspace(const void *args)
{
    return model_workspace_bytes_cpu(args, &simd_way);
}

static size_t threads_workspace(const void *args)
{
    return model_workspace_bytes_cpu(args, &threads_way);
}

int model_prepare_cpu(const void *args, void **state)
{
    model_ops *ops = malloc(sizeof *ops);
    int error = !ops            ? KERNEL_ERROR_MEMORY
                : !takes(args) ? KERNEL_ERROR_ARGUMENT
                                : model_ops_create(args, ops);
    if (error)
        free(ops);
    else
        *state = ops;
    return error;
}

void model_release_cpu(void *state)
{
    model_ops_destroy(state);
    free(state);
}

/* The settings may have changed since the list was made. */
int model_run_cpu(const void *args, const model_way_cpu *way, void *workspace, void *state)
{
    const model_args *a = args;
    const model_ops *ops = state;
    int error = KERNEL_OK;
    for (int64_t i = 0; i < ops->count && !error; i++) {
        model_op op = ops->list[i];
        if (op.kind == MODEL_OP_ADAMW) op.as.adamw.settings = a->settings;
        model_watch_begin(a, ops, i);
        error = run_op(&op, way, workspace);
        model_watch_end(a, ops, i);
    }
    return error;
}

static int run_unfused(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)stream;
    return model_run_cpu(args, &unfused_way, workspace, state);
}

static int run_best(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)stream;
    return model_run_cpu(args, &model_best_way_cpu, workspace, state);
}

static int run_simd(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)stream;
    return model_run_cpu(args, &simd_way, workspace, state);
}

static int run_threads(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)stream;
    return model_run_cpu(args, &threads_way, workspace, state);
}

/* Not deterministic: a step changes what it starts from. */
static const kernel_variant rows[] = {
    {.name = "unfused", .note = "the simplest of every operation", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = unfused_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_unfused},
    {.name = "best", .note = "the best of every operation", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = best_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_best},
    {.name = "simd", .note = "best with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = simd_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES,
     .workspace_bytes = threads_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_threads,
     .runs_on = simd_runs_on_threads},
    {.name = "recompute", .note = "best, blocks run forward again in the backward pass",
     .dtypes = ELEMENT_DTYPES, .workspace_bytes = best_workspace, .prepare = model_prepare_cpu,
     .release = model_release_cpu, .run = run_best},
};

const kernel_table model_cpu = {rows, sizeof rows / sizeof *rows};
