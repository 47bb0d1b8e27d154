/*
 * scaling_memory.c - what a rank has for a training step: the model's memory, the
 * optimizer's of its part, and the variants that work on them. See scaling_train.h.
 */
#include "scaling_train.h"

#include "../gpubench.h"
#include "../kernels/common/convert.h"
#include "../kernels/common/random.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 512 };

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- arguments ----------------------------------------------------------------------- */

#if GPUBENCH_CUDA
static int fill_device(void *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                       uint64_t seed)
{
    return random_normal_cuda(data, dtype, count, mean, stddev, seed, NULL);
}
#endif

model_fill_function *train_filler(int cuda)
{
#if GPUBENCH_CUDA
    if (cuda) return fill_device;
#endif
    (void)cuda;
    return random_normal_cpu;
}

/* The variant of a backend's table that has the name there; NULL if there is none. */
static const kernel_variant *variant_of(int cuda, const kernel_table *on_cpu,
                                    const kernel_table *on_cuda, const char *cpu_name,
                                    const char *cuda_name)
{
    return cuda && on_cuda ? kernel_find(on_cuda, cuda_name) : kernel_find(on_cpu, cpu_name);
}

const kernel_variant *train_model(int cuda)
{
    return variant_of(cuda, &model_cpu, SUITE_CUDA(model_cuda), "best", "best");
}

static block_layout layout_of(const train_order *order, const model_shape *shape)
{
#if GPUBENCH_CUDA
    if (order->cuda) return model_layout_cuda(shape, order->dtype, 1);
#endif
    return model_layout_cpu(shape, order->dtype, 1);
}

/* The passes of one rank: its micro-batch alone, whose rows' weights are those of all. */
model_args train_args(const train_order *order, int ranks)
{
    model_args a = {.shape = order->shape, .dtype = order->dtype,
                    .phases = MODEL_FORWARD | MODEL_LOSS | MODEL_BACKWARD,
                    .components = MODEL_ALL, .keeps = 1, .max_norm = 1, .no_state = 1,
                    .micro_batches = ranks, .micro_one = 1};
    a.settings = (optimizer_adamw){0, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    a.scaling = optimizer_usual_scaling;
    a.layout = layout_of(order, &a.shape);
    return a;
}

static int is_sharded(const train_order *order)
{
    return order->work == TRAIN_STEP_SHARDED;
}

static int is_step(const train_order *order)
{
    return order->work <= TRAIN_STEP_SHARDED;
}

/* ---- how much of it ------------------------------------------------------------------- */

/* Parts begin where a vector may, whatever the dtype. */
static int64_t shard_of(const train_order *order, int64_t elements, int ranks)
{
    if (!is_sharded(order)) return elements;
    return elements / ranks / MODEL_TENSOR_ALIGNMENT * MODEL_TENSOR_ALIGNMENT;
}

int64_t train_elements(const train_order *order)
{
    return model_tensor_offset(&order->shape, model_tensor_count(&order->shape));
}

train_range train_summed(const train_order *order)
{
    const model_shape *s = &order->shape;
    if (!order->blocks_only) return (train_range){0, train_elements(order)};
    return (train_range){model_tensor_offset(s, model_layer_tensor(0)),
                         model_tensor_offset(s, model_norm_tensor(s))};
}

/* Of the optimizer: moments and, of narrow parameters, the master weights. */
static int64_t states_of(const train_order *order)
{
    return model_storage(order->dtype) == KERNEL_F32 ? 2 : 3;
}

/* Elements that a rank updates. */
static int64_t owned_of(const train_order *order, int ranks)
{
    int64_t elements = train_elements(order), shard = shard_of(order, elements, ranks);
    return is_sharded(order) ? shard + elements - shard * ranks : elements;
}

/* Norms of each part, of the rest and of all, two scales, one of which is of no use. */
static int64_t numbers_of(int ranks)
{
    return ranks + 4;
}

static uint64_t own_bytes(const train_order *order, int ranks)
{
    uint64_t numbers = round_up((uint64_t)numbers_of(ranks) * sizeof(float));
    if (!is_step(order)) /* where sums go that must not become inputs again */
        return numbers + (uint64_t)train_elements(order) *
                             kernel_dtype_bytes(model_storage(order->dtype));
    return numbers + (uint64_t)(states_of(order) * owned_of(order, ranks)) * sizeof(float);
}

uint64_t train_bytes(const train_order *order, int ranks)
{
    model_args a = train_args(order, ranks);
    return model_plan_of(&a).total + own_bytes(order, ranks);
}

/* ---- the parts that a rank updates ----------------------------------------------------- */

static optimizer_tensor part_of(const train_rank *r, int64_t begin, int64_t count, float *state)
{
    int64_t owned = owned_of(&r->order, r->ranks);
    size_t at = (size_t)begin * kernel_dtype_bytes(r->stored);
    optimizer_tensor t = {.count = count, .parameter = (char *)r->values + at,
                          .gradient = (char *)r->gradients + at, .first = state,
                          .second = state + owned};
    if (r->stored != KERNEL_F32) t.master = state + 2 * owned;
    return t;
}

static void place_parts(train_rank *r)
{
    float *state = r->scratch;
    int64_t rest = r->elements - r->shard * r->ranks;
    r->part_count = 1;
    if (!is_sharded(&r->order)) {
        r->parts[0] = part_of(r, 0, r->elements, state);
        return;
    }
    r->parts[0] = part_of(r, r->rank * r->shard, r->shard, state);
    r->parts[1] = part_of(r, r->elements - rest, rest, state + r->shard);
    r->part_count = rest > 0 ? 2 : 1;
}

/* The norm of all is that of the parts' norms, which is one tensor more to clip. */
static void describe_update(train_rank *r)
{
    float *unused = r->scale + 1;
    for (int64_t i = 0; i < r->part_count; i++)
        r->clip_part_args[i] =
            (optimizer_clip_args){{&r->parts[i], 1}, r->stored, 1,
                                  r->norms + (i == 0 ? r->rank : r->ranks), unused};
    r->norms_tensor = (optimizer_tensor){.count = r->ranks + 1, .gradient = r->norms};
    r->clip_args = (optimizer_clip_args){{r->parts, r->part_count}, r->stored, 1, r->norm,
                                         r->scale};
    if (is_sharded(&r->order)) {
        r->clip_args.list = (optimizer_list){&r->norms_tensor, 1};
        r->clip_args.dtype = KERNEL_F32;
    }
    r->adamw_args = (optimizer_adamw_args){.list = {r->parts, r->part_count}, .dtype = r->stored,
                                           .settings = r->whole.args.settings,
                                           .gradient_scale = r->scale};
}

/* ---- tools ------------------------------------------------------------------------------ */

static int make_tool(train_tool *tool, const kernel_variant *variant, const void *args,
                     size_t *workspace)
{
    size_t bytes;
    *tool = (train_tool){variant, args, NULL};
    if (!variant) return KERNEL_ERROR_ARGUMENT;
    bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    *workspace = bytes > *workspace ? bytes : *workspace;
    return variant->prepare ? variant->prepare(args, &tool->state) : 0;
}

static void drop_tool(train_tool *tool)
{
    if (tool->variant && tool->variant->release && tool->state)
        tool->variant->release(tool->state);
    tool->state = NULL;
}

/* Of the parameters of a layer the first one from which on all gradients are there once op i
 * is done: those that its later ops write are not. */
static int first_written(const model_ops *ops, int64_t i)
{
    const int64_t layer = ops->list[i].layer;
    unsigned missing = 0;
    int first = BLOCK_PARAMETERS;
    for (i++; i < ops->count && ops->list[i].layer == layer; i++) {
        int part = model_op_backward_part(&ops->list[i]);
        if (part >= 0) missing |= block_backward_outputs(part, 0).parameter_gradients;
    }
    while (first > 0 && !(missing >> (first - 1) & 1)) first--;
    return first;
}

/* Layers are done from the last to the first, and each one's parameters nearly so; behind
 * them what the embeddings and a tied head share, with the last op of all. */
static int64_t first_ready(const train_rank *r, const model_ops *ops, int64_t i, int64_t before)
{
    const model_op *op = &ops->list[i];
    const model_shape *s = &r->order.shape;
    if (op->phase != MODEL_BACKWARD) return before;
    if (i + 1 == ops->count) return 0;
    if (op->layer >= 0)
        return model_tensor_offset(s, model_layer_tensor(op->layer) + first_written(ops, i));
    if (op->kind == MODEL_OP_PART && op->as.part.kind == PART_NORM_GRADIENT)
        return model_tensor_offset(s, model_norm_tensor(s));
    return before;
}

static int prepare_pass(train_rank *r, train_pass *pass, unsigned phases, size_t *workspace)
{
    model_ops ops;
    int code;
    pass->args = train_args(&r->order, r->ranks);
    pass->args.phases = phases;
    pass->args.blocks_only = phases == MODEL_BACKWARD && r->order.blocks_only;
    pass->args.micro_one = r->rank + 1;
    pass->args.memory = r->memory;
    code = model_ops_create(&pass->args, &ops);
    pass->ready = code ? NULL : malloc((size_t)ops.count * sizeof *pass->ready);
    if (code == 0 && !pass->ready) code = KERNEL_ERROR_MEMORY;
    for (int64_t i = 0; i < ops.count && code == 0; i++)
        pass->ready[i] = first_ready(r, &ops, i, i ? pass->ready[i - 1] : r->elements);
    model_ops_destroy(&ops);
    if (code != 0) return code;
    return make_tool(&pass->tool,
                     train_model(r->order.cuda), &pass->args, workspace);
}

static int prepare_update(train_rank *r, size_t *workspace)
{
    const int cuda = r->order.cuda;
    const kernel_variant *clip =
        variant_of(cuda, &optimizer_clip_norm_cpu, SUITE_CUDA(optimizer_clip_norm_cuda),
                      "fused", "multi_tensor");
    int code = make_tool(&r->adamw,
                         variant_of(cuda, &optimizer_adamw_cpu,
                                       SUITE_CUDA(optimizer_adamw_cuda), "fused", "multi_tensor"),
                         &r->adamw_args, workspace);
    if (code == 0) code = make_tool(&r->clip, clip, &r->clip_args, workspace);
    for (int64_t i = 0; i < r->part_count && code == 0 && is_sharded(&r->order); i++)
        code = make_tool(&r->clip_part[i], clip, &r->clip_part_args[i], workspace);
    return code;
}

int train_take(const train_rank *r, size_t bytes, void **memory)
{
    char message[COLLECTIVE_MESSAGE];
    return r->library->allocate(r->library_state, r->rank, round_up(bytes), memory, message)
               ? GPUBENCH_OOM
               : 0;
}

int train_prepare(train_rank *r)
{
    model_args a = train_args(&r->order, r->ranks);
    size_t workspace = ALIGNMENT;
    int code;
    r->stored = model_storage(r->order.dtype);
    r->elements = train_elements(&r->order);
    r->summed = train_summed(&r->order);
    r->shard = shard_of(&r->order, r->elements, r->ranks);
    r->plan = model_plan_of(&a);
    code = train_take(r, (size_t)r->plan.total, &r->memory);
    if (code == 0) code = train_take(r, (size_t)own_bytes(&r->order, r->ranks), &r->own);
    if (code != 0) return code;
    a.memory = r->memory;
    r->values = model_memory(&a, &r->plan, MODEL_VALUES);
    r->gradients = model_memory(&a, &r->plan, MODEL_GRADIENTS);
    r->norms = r->own;
    r->scratch = r->norms + round_up((uint64_t)numbers_of(r->ranks) * sizeof(float)) /
                                sizeof(float);
    r->norm = r->norms + r->ranks + 1;
    r->scale = r->norm + 1;
    code = prepare_pass(r, &r->whole, a.phases, &workspace);
    if (code == 0) code = prepare_pass(r, &r->backward, MODEL_BACKWARD, &workspace);
    if (code == 0 && is_step(&r->order)) {
        place_parts(r);
        describe_update(r);
        code = prepare_update(r, &workspace);
    }
    return code ? code : train_take(r, workspace, &r->workspace);
}

void train_free(train_rank *r)
{
    void **memories[] = {&r->memory, &r->own, &r->workspace};
    drop_tool(&r->whole.tool);
    drop_tool(&r->backward.tool);
    drop_tool(&r->clip);
    drop_tool(&r->adamw);
    for (int i = 0; i < TRAIN_PARTS; i++) drop_tool(&r->clip_part[i]);
    free(r->whole.ready);
    free(r->backward.ready);
    r->whole.ready = r->backward.ready = NULL;
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
        if (*memories[i]) r->library->release(r->library_state, r->rank, *memories[i]);
        *memories[i] = NULL;
    }
}

/* ---- what it starts from ------------------------------------------------------------------ */

int train_copy(const train_rank *r, void *to, const void *from, size_t bytes)
{
    char message[COLLECTIVE_MESSAGE];
    return r->library->copy(r->library_state, r->rank, to, from, bytes, message);
}

size_t train_array_bytes(const train_rank *r)
{
    return (size_t)r->elements * kernel_dtype_bytes(r->stored);
}

int train_fill_tokens(const train_rank *r, const model_args *a, const model_plan *plan)
{
    size_t n = (size_t)model_step_rows(a), bytes = n * sizeof(int32_t);
    int32_t *rows = malloc(2 * bytes);
    int code = rows ? model_fill_tokens(a, r->order.seed, rows) : KERNEL_ERROR_MEMORY;
    if (code == 0) code = train_copy(r, model_memory(a, plan, MODEL_TOKENS), rows, bytes);
    if (code == 0) code = train_copy(r, model_memory(a, plan, MODEL_TARGETS), rows + n, bytes);
    free(rows);
    return code;
}

/* Master weights are the narrow ones widened. */
static int fill_master(const train_rank *r, const optimizer_tensor *t)
{
    const size_t count = (size_t)t->count, bytes = kernel_dtype_bytes(r->stored);
    void *narrow = malloc(count * bytes);
    float *wide = malloc(count * sizeof *wide);
    int code = narrow && wide ? train_copy(r, narrow, t->parameter, count * bytes)
                              : KERNEL_ERROR_MEMORY;
    if (code == 0) {
        kernel_to_f32(narrow, r->stored, t->count, wide);
        code = train_copy(r, t->master, wide, count * sizeof *wide);
    }
    free(narrow);
    free(wide);
    return code;
}

/* What lies between tensors, too, becomes 0: it is summed and updated with them. */
static int clear(const train_rank *r, void *memory, uint64_t bytes)
{
    return train_filler(r->order.cuda)(memory, KERNEL_F32, (int64_t)(bytes / sizeof(float)), 0, 0,
                                       0);
}

int train_fill(train_rank *r, kernel_stream stream)
{
    const model_args *a = &r->whole.args;
    int code = clear(r, r->memory, r->plan.total);
    if (code == 0) code = clear(r, r->own, own_bytes(&r->order, r->ranks));
    if (code == 0) code = model_fill(a, train_filler(r->order.cuda), r->order.seed);
    if (code == 0) code = train_fill_tokens(r, a, &r->plan);
    for (int64_t i = 0; i < r->part_count && code == 0 && r->stored != KERNEL_F32; i++)
        code = fill_master(r, &r->parts[i]);
    if (code == 0 && !is_step(&r->order))
        code = r->whole.tool.variant->run(r->whole.tool.args, r->workspace, r->whole.tool.state,
                                          stream);
    return code;
}
