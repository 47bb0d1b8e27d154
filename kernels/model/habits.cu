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
 * loss        The loss read back after every step, which waits until the device has
 *             nothing to do, or after every hundredth; launch by launch and from a graph.
 * zero        Gradients set to zero before the step, or just overwritten: one more pass
 *             over their memory.
 * attention   Scores in memory (naive), never in memory (tiled), on tensor cores (best).
 * inputs, loader   habit_inputs.cu
 */
#include "habits.cuh"
#include "model.cuh"

namespace {

/* ---- a step by another way, or with something before it -------------------------------- */

/* What a habit leaves as it is. */
struct as_best {
    static model_way_cuda way() { return model_best_cuda(); }
    static int before(const model_args &, kernel_stream) { return KERNEL_OK; }
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
int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    int error = Habit::before(*static_cast<const model_args *>(args), stream);
    return error ? error : model_run_cuda(args, workspace, state, stream);
}

template <typename Habit>
constexpr kernel_variant row(const char *name, const char *note)
{
    return {.name = name, .note = note, .dtypes = MODEL_HABIT_DTYPES,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = workspace_bytes<Habit>, .prepare = prepare<Habit>,
            .release = model_release_cuda, .run = run<Habit>};
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

struct gradients_zeroed : as_best {
    static int before(const model_args &a, kernel_stream stream)
    {
        model_plan plan = model_plan_of(&a);
        return cudaMemsetAsync(model_memory(&a, &plan, MODEL_GRADIENTS), 0,
                               plan.bytes[MODEL_GRADIENTS], stream);
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

const kernel_variant ZERO[] = {
    row<gradients_zeroed>("memset", "gradients set to zero before each step"),
    row<as_best>("overwritten", "gradients written by the products that make them"),
};

const kernel_variant ATTENTION[] = {
    row<attention_naive>("naive", "scores in memory"),
    row<attention_tiled>("tiled", "online softmax on CUDA cores"),
    row<as_best>("best", "online softmax on tensor cores"),
};

/* ---- steps in a row, and when the host looks ------------------------------------------- */

constexpr int STEPS = 100;

const kernel_variant &of_model(bool in_graph)
{
    return *kernel_find(&model_cuda, in_graph ? "graph" : "best");
}

template <bool IN_GRAPH>
size_t steps_workspace_bytes(const void *args)
{
    const kernel_variant &inner = of_model(IN_GRAPH);
    return inner.workspace_bytes ? inner.workspace_bytes(args) : 0;
}

template <bool IN_GRAPH>
int prepare_steps(const void *args, void **state)
{
    return of_model(IN_GRAPH).prepare(args, state);
}

template <bool IN_GRAPH>
void release_steps(void *state)
{
    of_model(IN_GRAPH).release(state);
}

/* As a framework's `.item()`: a copy to ordinary memory, and waiting for it. */
int read_loss(const model_args &a, kernel_stream stream)
{
    model_plan plan = model_plan_of(&a);
    const float *results = static_cast<float *>(model_memory(&a, &plan, MODEL_RESULTS));
    float loss;
    int error = cudaMemcpyAsync(&loss, results + MODEL_RESULT_LOSS, sizeof loss,
                                cudaMemcpyDeviceToHost, stream);
    return error ? error : cudaStreamSynchronize(stream);
}

template <bool IN_GRAPH, int EVERY>
int run_steps(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const kernel_variant &inner = of_model(IN_GRAPH);
    int error = KERNEL_OK;
    for (int step = 1; step <= STEPS && !error; step++) {
        error = inner.run(args, workspace, state, stream);
        if (!error && step % EVERY == 0)
            error = read_loss(*static_cast<const model_args *>(args), stream);
    }
    return error;
}

template <bool IN_GRAPH, int EVERY>
constexpr kernel_variant steps_row(const char *name, const char *note)
{
    return {.name = name, .note = note, .dtypes = MODEL_HABIT_DTYPES,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = steps_workspace_bytes<IN_GRAPH>,
            .prepare = prepare_steps<IN_GRAPH>, .release = release_steps<IN_GRAPH>,
            .run = run_steps<IN_GRAPH, EVERY>};
}

const kernel_variant LOSS[] = {
    steps_row<false, 1>("every_step", "read back after each step"),
    steps_row<false, STEPS>("every_100", "read back after the last of 100 steps"),
    steps_row<true, 1>("graph_every_step", "from a graph, read back after each step"),
    steps_row<true, STEPS>("graph_every_100", "from a graph, after the last of 100 steps"),
};

template <int N>
constexpr kernel_table table_of(const kernel_variant (&rows)[N])
{
    return {rows, N};
}

} // namespace

extern "C" {
const model_habit model_habits_cuda[] = {
    MODEL_HABIT(optimizer, 1, 0, table_of(OPTIMIZER), nullptr),
    MODEL_HABIT(norm, 1, 0, table_of(NORM), nullptr),
    MODEL_HABIT(loss, STEPS, 0, table_of(LOSS), nullptr),
    MODEL_HABIT(zero, 1, 0, table_of(ZERO), nullptr),
    MODEL_HABIT(attention, 1, 0, table_of(ATTENTION), nullptr),
    MODEL_HABIT(inputs, 20, 0, table_of(model_inputs_rows), model_inputs_idle),
    MODEL_HABIT(loader, 8, 5, table_of(model_loader_rows), model_inputs_idle),
    MODEL_HABIT(loader, 8, 20, table_of(model_loader_rows), model_inputs_idle),
    MODEL_HABIT(loader, 8, 50, table_of(model_loader_rows), model_inputs_idle),
};

const int model_habits_cuda_count = sizeof model_habits_cuda / sizeof *model_habits_cuda;
}
