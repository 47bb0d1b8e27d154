/*
 * model.cu - a GPT's training step on the GPU, of the other operations' variants.
 *
 * 1. unfused    What a first version does: the naive variant of everything, a
 *               launch for each bias, GELU, residual and optimizer's operation.
 * 2. best       The best of everything (block.cu's `best`), launch by launch: 12
 *               to 13 launches a block forward and about 20 backward.
 * 3. graph      best, captured once into a CUDA graph: at batch 4, context 128 a
 *               step's kernels take microseconds, and the host cannot launch
 *               that fast.
 * 4. recompute  best, for args that say that activations are recomputed: keeps a
 *               row of d_model a layer in place of about 16, for another forward
 *               pass of the blocks.
 *
 * Bound, in bf16 at thousands of tokens, by the products: 6 operations a weight
 * and token. At hundreds of tokens by memory: of each parameter a step moves 2
 * bytes forward, 4 backward and 28 in AdamW. GPT-2 124M at batch 4, context 1024:
 * 3.3e12 operations, 5 ms at 650 TFLOP/s, and 1.4 ms of AdamW at 2.5 TB/s.
 *
 * A step is a list of ops (ops.c); each kind of op has one tool, a plan or a
 * variant with its state, for all layers.
 */
#include <new>

#include "model.h"
#include "model.cuh"
#include "../block/block.cuh"
#include "../common/capture.cuh"
#include "../common/device.cuh"
#include "../part/part.cuh"

namespace {

/* ---- how a variant does its ops ------------------------------------------------------ */

model_way_cuda unfused_ops()
{
    return {.parts = part_unfused_cuda,
            .embedding = {"naive"},
            .embedding_gradient = {"atomic"},
            .loss = {"naive"},
            .loss_gradient = {"naive"},
            .clip = {"per_tensor"},
            .adamw = {"per_tensor", "fused_per_tensor"}};
}

struct unfused_way {
    static model_way_cuda ops() { return unfused_ops(); }
};

struct best_way {
    static model_way_cuda ops() { return model_best_cuda(); }
};

/* The variant of another operation that does the op; NULL where none takes it, and
 * for parts and means. */
const kernel_variant *variant_of(const model_op &op, const model_way_cuda &way)
{
    auto find = [&](const kernel_table &table, const char *const *names, kernel_dtype dtype) {
        return part_find_variant(table, names, MODEL_MOST_NAMES, dtype, &op.as);
    };
    switch (op.kind) {
    case MODEL_OP_EMBEDDING:
        return find(embedding_forward_cuda, way.embedding, op.as.embedding.dtype);
    case MODEL_OP_EMBEDDING_GRADIENT:
        return find(embedding_backward_cuda, way.embedding_gradient,
                    op.as.embedding_gradient.dtype);
    case MODEL_OP_LOSS: return find(loss_forward_cuda, way.loss, op.as.loss.dtype);
    case MODEL_OP_LOSS_GRADIENT:
        return find(loss_forward_backward_cuda, way.loss_gradient, op.as.loss.dtype);
    case MODEL_OP_SCALE_LOSS: return &optimizer_scale_loss_cuda.rows[0];
    case MODEL_OP_UNSCALE: return &optimizer_unscale_cuda.rows[0];
    case MODEL_OP_CLIP: return find(optimizer_clip_norm_cuda, way.clip, op.as.clip.dtype);
    case MODEL_OP_ADAMW: return find(optimizer_adamw_cuda, way.adamw, op.as.adamw.dtype);
    case MODEL_OP_PART:
    case MODEL_OP_ACCUMULATE:
    case MODEL_OP_MEAN: break;
    }
    return nullptr;
}

/* ---- tools ----------------------------------------------------------------------------- */

/* A list of ops and what they are done with. */
struct model_state {
    cublasHandle_t handle;
    model_ops ops;
    part_tool tools[MODEL_TOOLS];
    bool is_made[MODEL_TOOLS];
};

/* A library that could not get memory: the shortage's own code. */
int memory_error(int code)
{
    return code == KERNEL_ERROR_CUBLAS + CUBLAS_STATUS_ALLOC_FAILED ? cudaErrorMemoryAllocation
                                                                    : code;
}

int make_tool(model_state *s, const model_op &op, const model_way_cuda &way)
{
    part_tool *tool = &s->tools[op.tool];
    if (s->is_made[op.tool]) return KERNEL_OK;
    s->is_made[op.tool] = true;
    if (op.kind == MODEL_OP_PART)
        return part_prepare_cuda(op.as.part, way.parts, s->handle, tool);
    if (op.kind == MODEL_OP_MEAN || op.kind == MODEL_OP_ACCUMULATE) return KERNEL_OK;
    tool->variant = variant_of(op, way);
    if (!tool->variant) return KERNEL_ERROR_ARGUMENT;
    return tool->variant->prepare ? tool->variant->prepare(&op.as, &tool->state) : KERNEL_OK;
}

int run_op(const model_state &s, const model_op &op, void *workspace, kernel_stream stream)
{
    const part_tool &tool = s.tools[op.tool];
    if (op.kind == MODEL_OP_PART)
        return part_run_cuda(op.as.part, tool, s.handle, workspace, stream);
    if (op.kind == MODEL_OP_MEAN) return model_mean_run(op.as.mean, stream);
    if (op.kind == MODEL_OP_ACCUMULATE) return model_accumulate_run(op.as.accumulate, stream);
    return tool.variant->run(&op.as, workspace, tool.state, stream);
}

size_t workspace_of(const model_op &op, const model_way_cuda &way)
{
    if (op.kind == MODEL_OP_PART) return part_workspace_bytes_cuda(op.as.part, way.parts);
    const kernel_variant *variant = variant_of(op, way);
    return variant && variant->workspace_bytes ? variant->workspace_bytes(&op.as) : 0;
}

/* ---- variants ---------------------------------------------------------------------------- */

template <typename Way>
size_t workspace_bytes(const void *args)
{
    return model_workspace_bytes_cuda(args, Way::ops());
}

template <typename Way>
int prepare(const void *args, void **state)
{
    return model_prepare_cuda(args, Way::ops(), state);
}

/* ---- the same in a graph --------------------------------------------------------------- */

/* The workspace is the state's own, because the graph holds its address. */
struct graph_state {
    void *ops; /* best's state: the graph's kernels use what it owns */
    void *workspace;
    cudaGraphExec_t graph;
    size_t launches;
};

void release_graph(void *state)
{
    graph_state *s = static_cast<graph_state *>(state);
    if (s->graph) cudaGraphExecDestroy(s->graph);
    if (s->workspace) cudaFree(s->workspace);
    if (s->ops) model_release_cuda(s->ops);
    delete s;
}

/* An AdamW of one element of its own, which loads the kernel and moves nothing of
 * the model's. */
int warm_up_adamw(const model_op &op, kernel_stream stream)
{
    optimizer_adamw_args args = op.as.adamw;
    optimizer_tensor tensor = {.count = 1};
    void *state = nullptr, *memory = nullptr;
    const kernel_variant *variant = variant_of(op, model_best_cuda());
    constexpr size_t BYTES = 5 * 16 + sizeof(optimizer_scaler);
    int error = cudaMalloc(&memory, BYTES);
    float *cells = static_cast<float *>(memory);
    if (!error) error = cudaMemsetAsync(memory, 0, BYTES, stream);
    tensor.parameter = cells, tensor.gradient = cells + 4;
    if (args.dtype != KERNEL_F32) tensor.master = cells + 8;
    tensor.first = cells + 12, tensor.second = cells + 16;
    args.list = {&tensor, 1};
    args.gradient_scale = nullptr;
    if (args.scaler) args.scaler = reinterpret_cast<optimizer_scaler *>(cells + 20);
    if (!error && variant->prepare) error = variant->prepare(&args, &state);
    if (!error) error = variant->run(&args, nullptr, state, stream);
    if (!error) error = cudaStreamSynchronize(stream);
    if (state) variant->release(state);
    cudaFree(memory);
    return error;
}

/* The same of a loss scale, which counts no step. */
int warm_up_unscale(const model_op &op, kernel_stream stream)
{
    optimizer_unscale_args args = op.as.unscale;
    void *memory = nullptr;
    int error = cudaMalloc(&memory, 16 + sizeof(optimizer_scaler));
    float *cells = static_cast<float *>(memory);
    if (!error) error = cudaMemsetAsync(memory, 0, 16 + sizeof(optimizer_scaler), stream);
    args.norm = cells, args.gradient_scale = cells + 1;
    args.scaler = reinterpret_cast<optimizer_scaler *>(cells + 4);
    if (!error) error = variant_of(op, model_best_cuda())->run(&args, nullptr, nullptr, stream);
    if (!error) error = cudaStreamSynchronize(stream);
    cudaFree(memory);
    return error;
}

/* All but the update, which would be a step that nobody asked for. */
int warm_up(const graph_state &g, kernel_stream stream)
{
    const model_state &s = *static_cast<const model_state *>(g.ops);
    int error = KERNEL_OK;
    for (int64_t i = 0; i < s.ops.count && !error; i++) {
        const model_op &op = s.ops.list[i];
        error = op.kind == MODEL_OP_ADAMW     ? warm_up_adamw(op, stream)
                : op.kind == MODEL_OP_UNSCALE ? warm_up_unscale(op, stream)
                                              : run_op(s, op, g.workspace, stream);
    }
    return error;
}

int prepare_graph(const void *args, void **state)
{
    graph_state *s = new (std::nothrow) graph_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    int error = prepare<best_way>(args, &s->ops);
    if (!error) error = cudaMalloc(&s->workspace, workspace_bytes<best_way>(args) + 1);
    if (!error)
        error = capture_graph([&](cudaStream_t stream) { return warm_up(*s, stream); },
                              [&](cudaStream_t stream) {
                                  return model_run_cuda(args, s->workspace, s->ops, stream);
                              },
                              &s->graph, &s->launches);
    if (error)
        release_graph(s);
    else
        *state = s;
    return error;
}

int run_graph(const void *args, void *, void *state, kernel_stream stream)
{
    const graph_state &s = *static_cast<const graph_state *>(state);
    auto enqueue = [&](kernel_stream on) { return model_run_cuda(args, s.workspace, s.ops, on); };
    return capture_launch(s.graph, enqueue, stream);
}

/* ---- the table ---------------------------------------------------------------------------- */

constexpr unsigned DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_TF32) |
                            KERNEL_DTYPE_BIT(KERNEL_F16) | KERNEL_DTYPE_BIT(KERNEL_BF16);

/* Not deterministic: a step changes what it starts from. */
const kernel_variant ROWS[] = {
    {.name = "unfused", .note = "the simplest of every operation", .dtypes = DTYPES,
     .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
     .workspace_bytes = workspace_bytes<unfused_way>, .prepare = prepare<unfused_way>,
     .release = model_release_cuda, .run = model_run_cuda},
    {.name = "best", .note = "the best of every operation, launch by launch", .dtypes = DTYPES,
     .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
     .workspace_bytes = workspace_bytes<best_way>, .prepare = prepare<best_way>,
     .release = model_release_cuda, .run = model_run_cuda},
    {.name = "graph", .note = "best, captured once into a CUDA graph", .dtypes = DTYPES,
     .min_compute_capability = 75, .unsupported = model_unsupported_cuda, .prepare = prepare_graph,
     .release = release_graph, .run = run_graph},
    {.name = "recompute", .note = "best, blocks run forward again in the backward pass",
     .dtypes = DTYPES, .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
     .workspace_bytes = workspace_bytes<best_way>, .prepare = prepare<best_way>,
     .release = model_release_cuda, .run = model_run_cuda},
};

} // namespace

/* ---- of any way: see model.cuh ------------------------------------------------------------- */

model_way_cuda model_best_cuda()
{
    return {.parts = part_best_cuda,
            .embedding = {"vectorized", "naive"},
            .embedding_gradient = {"sorted", "atomic"},
            .loss = {"fused", "naive"},
            .loss_gradient = {"fused_one_pass", "naive"},
            .clip = {"multi_tensor"},
            .adamw = {"multi_tensor"}};
}

const char *model_unsupported_cuda(const void *args)
{
    return device_products_unsupported<model_args>(args);
}

/* Ops run one after the other, so they share the largest's workspace. */
size_t model_workspace_bytes_cuda(const void *args, const model_way_cuda &way)
{
    model_ops ops;
    size_t most = 0;
    if (model_ops_create(static_cast<const model_args *>(args), &ops)) return 0;
    for (int64_t i = 0; i < ops.count; i++) {
        size_t bytes = workspace_of(ops.list[i], way);
        if (bytes > most) most = bytes;
    }
    model_ops_destroy(&ops);
    return most;
}

void model_release_cuda(void *state)
{
    model_state *s = static_cast<model_state *>(state);
    for (part_tool &tool : s->tools) part_release_cuda(&tool);
    if (s->handle) cublasDestroy(s->handle);
    model_ops_destroy(&s->ops);
    delete s;
}

int model_prepare_cuda(const void *args, const model_way_cuda &way, void **state)
{
    if (model_unsupported_cuda(args)) return KERNEL_ERROR_ARGUMENT;
    model_state *s = new (std::nothrow) model_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    int error = model_ops_create(static_cast<const model_args *>(args), &s->ops);
    if (!error) error = cublas_error(cublasCreate(&s->handle));
    for (int64_t i = 0; i < s->ops.count && !error; i++) error = make_tool(s, s->ops.list[i], way);
    if (error)
        model_release_cuda(s);
    else
        *state = s;
    return memory_error(error);
}

/* The settings may have changed since the list was made. */
int model_run_cuda(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args &a = *static_cast<const model_args *>(args);
    const model_state &s = *static_cast<const model_state *>(state);
    int error = KERNEL_OK;
    for (int64_t i = 0; i < s.ops.count && !error; i++) {
        if (s.ops.list[i].kind == MODEL_OP_ADAMW) s.ops.list[i].as.adamw.settings = a.settings;
        model_watch_begin(&a, &s.ops, i);
        error = run_op(s, s.ops.list[i], workspace, stream);
        model_watch_end(&a, &s.ops, i);
    }
    return error;
}

extern "C" {
block_layout model_layout_cuda(const model_shape *shape, kernel_dtype dtype, int adapts)
{
    return block_layout_cuda(model_block_shape(shape), dtype, adapts != 0);
}

uint64_t model_launches_cuda(const void *state)
{
    return static_cast<const graph_state *>(state)->launches;
}

const kernel_table model_cuda = {ROWS, sizeof ROWS / sizeof *ROWS};
}
