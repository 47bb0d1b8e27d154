/*
 * habits.cu - what habits cost a training step on the GPU: variants of `best` that differ
 * in one of them.
 *
 * optimizer   AdamW as an operation at a time and tensor, as one launch a tensor, or as
 *             one for all (optimizer.cu). Bound by launches: 8 or 1 for each of 148
 *             tensors of GPT-2 124M against 1.
 * norm        The gradients' norm: a tensor's copied to the host, which waits for each
 *             and adds them up; by launches for each tensor; or in one launch that also
 *             leaves the scale where AdamW reads it.
 * attention   Scores in memory (naive), never in memory (tiled), on tensor cores (best).
 * products    Each product by the first algorithm that the library proposes, or by the
 *             one that timing chose.
 *
 * Those with more to do than to choose a variant: habit_norm.cu, habit_loss.cu (loss,
 * launches), habit_zero.cu, habit_mask.cu, habit_pauses.cu (evaluation, checkpoint),
 * habit_inputs.cu (inputs, loader).
 */
#include "habits.cuh"
#include "model.cuh"

namespace {

/* ---- a step by another way ------------------------------- */

/* What a habit leaves as it is. */
struct as_best {
    static model_way_cuda way() { return model_best_cuda(); }
};

template <typename Habit>
size_t workspace_bytes(const void *args)
{
    return model_workspace_bytes_cuda(args, Habit::way());
}

template <typename Habit>
int prepare(const void *args, void **state)
{
    return model_prepare_cuda(args, Habit::way(), state);
}

template <typename Habit>
constexpr kernel_variant row(const char *name, const char *note,
                             unsigned dtypes = MODEL_HABIT_DTYPES)
{
    return {.name = name, .note = note, .dtypes = dtypes,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = workspace_bytes<Habit>, .prepare = prepare<Habit>,
            .release = model_release_cuda, .run = model_run_cuda};
}

struct adamw_per_tensor : as_best {
    static model_way_cuda way()
    {
        model_way_cuda way = model_best_cuda();
        way.adamw[0] = "per_tensor";
        return way;
    }
};

struct adamw_fused_per_tensor : as_best {
    static model_way_cuda way()
    {
        model_way_cuda way = model_best_cuda();
        way.adamw[0] = "fused_per_tensor";
        return way;
    }
};

struct norm_per_tensor : as_best {
    static model_way_cuda way()
    {
        model_way_cuda way = model_best_cuda();
        way.clip[0] = "per_tensor";
        return way;
    }
};

struct attention_naive : as_best {
    static model_way_cuda way()
    {
        model_way_cuda way = model_best_cuda();
        for (const char *&name : way.parts.attention_f32) name = nullptr;
        for (const char *&name : way.parts.attention_half) name = nullptr;
        way.parts.attention_f32[0] = way.parts.attention_half[0] = "naive_cublas";
        way.parts.attention_f32[1] = way.parts.attention_half[1] = "naive";
        return way;
    }
};

struct attention_tiled : as_best {
    static model_way_cuda way()
    {
        model_way_cuda way = model_best_cuda();
        for (const char *&name : way.parts.attention_f32) name = nullptr;
        for (const char *&name : way.parts.attention_half) name = nullptr;
        way.parts.attention_f32[0] = way.parts.attention_half[0] = "tiled";
        way.parts.attention_f32[1] = way.parts.attention_half[1] = "naive";
        return way;
    }
};

struct products_first : as_best {
    static model_way_cuda way()
    {
        model_way_cuda way = model_best_cuda();
        way.parts.linear = LINEAR_FIRST;
        return way;
    }
};

const kernel_variant OPTIMIZER[] = {
    row<adamw_per_tensor>("per_tensor", "eight launches a tensor"),
    row<adamw_fused_per_tensor>("fused_per_tensor", "one launch a tensor"),
    row<as_best>("multi_tensor", "one launch for all"),
};

const kernel_variant NORM[] = {
    model_norm_to_host_row(),
    row<norm_per_tensor>("per_tensor", "launches for each tensor, then one over them"),
    row<as_best>("multi_tensor", "one launch, nothing leaves the device"),
};

const kernel_variant PRODUCTS[] = {
    row<products_first>("first", "the library's first proposal for each product"),
    row<as_best>("timed", "the proposal that was the fastest when timed"),
};

const kernel_variant ATTENTION[] = {
    row<attention_naive>("naive", "scores in memory"),
    row<attention_tiled>("tiled", "online softmax on CUDA cores",
                         MODEL_HABIT_DTYPES & ~KERNEL_DTYPE_BIT(KERNEL_TF32)), /* tiled has no tf32 */
    row<as_best>("best", "online softmax on tensor cores"),
};

template <int N>
constexpr kernel_table table_of(const kernel_variant (&rows)[N])
{
    return {rows, N};
}

} // namespace

size_t model_habit_workspace(const void *args)
{
    return workspace_bytes<as_best>(args);
}

int model_habit_prepare(const void *args, void **state)
{
    return prepare<as_best>(args, state);
}

extern "C" {
const model_habit model_habits_cuda[] = {
    MODEL_HABIT(optimizer, 1, 0, table_of(OPTIMIZER), nullptr),
    MODEL_HABIT(norm, 1, 0, table_of(NORM), nullptr),
    MODEL_HABIT(loss, 100, 0, table_of(model_loss_rows), nullptr),
    MODEL_HABIT(graph_loss, 100, 0, table_of(model_graph_loss_rows), nullptr),
    MODEL_HABIT(launches, 20, 0, table_of(model_launches_rows), nullptr),
    MODEL_HABIT(zero, 10, 0, table_of(model_zero_rows), nullptr),
    MODEL_HABIT(mask, 1, 0, table_of(model_mask_rows), nullptr),
    MODEL_HABIT(products, 1, 0, table_of(PRODUCTS), nullptr),
    MODEL_HABIT(attention, 1, 0, table_of(ATTENTION), nullptr),
    MODEL_HABIT(evaluation, 50, 0, table_of(model_evaluation_rows), nullptr),
    MODEL_HABIT(checkpoint, 100, 0, table_of(model_checkpoint_rows), nullptr),
    MODEL_HABIT(inputs, 20, 0, table_of(model_inputs_rows), model_inputs_idle),
    MODEL_HABIT(loader, 8, 5, table_of(model_loader_rows), model_inputs_idle),
    MODEL_HABIT(loader, 8, 20, table_of(model_loader_rows), model_inputs_idle),
    MODEL_HABIT(loader, 8, 50, table_of(model_loader_rows), model_inputs_idle),
};

const int model_habits_cuda_count = sizeof model_habits_cuda / sizeof *model_habits_cuda;
}
