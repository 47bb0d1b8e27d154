/*
 * ops.c - a training step as a list of ops, with the memory of each.
 */
#include "model.h"

#include <stdlib.h>

/* Places of tools behind the blocks' parts. */
enum {
    TOOL_BACKWARD_PARTS = BLOCK_FORWARD_PARTS,
    TOOL_EMBEDDING = TOOL_BACKWARD_PARTS + BLOCK_BACKWARD_PARTS,
    TOOL_EMBEDDING_GRADIENT,
    TOOL_NORM,
    TOOL_NORM_GRADIENT,
    TOOL_HEAD,
    TOOL_HEAD_INPUT,
    TOOL_HEAD_WEIGHT,
    TOOL_LOSS,
    TOOL_MEAN,
    TOOL_CLIP,
    TOOL_ADAMW,
    TOOL_SCALE_LOSS,
    TOOL_UNSCALE,
    TOOL_ACCUMULATE
};

typedef struct builder {
    const model_args *args;
    const model_shape *shape;
    kernel_dtype stored; /* of everything but products and attention */
    model_plan plan;
    model_ops *ops;
    int64_t micro; /* the batch whose ops are added */
} builder;

static void *memory(const builder *b, model_buffer buffer)
{
    return model_memory(b->args, &b->plan, buffer);
}

/* Of a buffer with a number of 4 bytes for each row, those of the micro-batch. */
static void *row_numbers(const builder *b, model_buffer buffer)
{
    char *first = memory(b, buffer);
    return first ? first + 4 * (size_t)(b->micro * model_rows(b->shape)) : NULL;
}

static void *value(const builder *b, int64_t tensor)
{
    return model_tensor_memory(b->args, &b->plan, MODEL_VALUES, tensor);
}

static void *gradient(const builder *b, int64_t tensor)
{
    return model_tensor_memory(b->args, &b->plan, MODEL_GRADIENTS, tensor);
}

/* The op, if its phase and component are wanted. There is room for all. */
static void add(const builder *b, model_op op)
{
    op.micro = b->micro;
    if (b->args->blocks_only && op.layer < 0) return;
    if ((b->args->phases & op.phase) && (b->args->components >> op.component & 1))
        b->ops->list[b->ops->count++] = op;
}

/* ---- parts of blocks ---------------------------------------------------------------- */

static model_component component_of(part_kind kind)
{
    switch (kind) {
    case PART_NORM:
    case PART_NORM_GRADIENT: return MODEL_NORM;
    case PART_LINEAR:
    case PART_INPUT_GRADIENT:
    case PART_WEIGHT_GRADIENT: return MODEL_LINEAR;
    case PART_ATTENTION:
    case PART_ATTENTION_GRADIENT: return MODEL_ATTENTION;
    case PART_SPLIT:
    case PART_MERGE: break;
    }
    return MODEL_COPY;
}

/* Only products and attention know tf32, which is stored as f32. */
static void store_as(part_args *part, kernel_dtype stored)
{
    switch (part->kind) {
    case PART_NORM: part->as.norm.dtype = part->dtype = stored; break;
    case PART_NORM_GRADIENT: part->as.norm_gradient.dtype = part->dtype = stored; break;
    case PART_SPLIT:
    case PART_MERGE: part->as.heads.dtype = part->dtype = stored; break;
    case PART_LINEAR:
    case PART_INPUT_GRADIENT:
    case PART_WEIGHT_GRADIENT:
    case PART_ATTENTION:
    case PART_ATTENTION_GRADIENT: break;
    }
}

static void add_part(const builder *b, part_args part, unsigned phase, int tool, int64_t layer,
                     int again)
{
    model_op op = {.kind = MODEL_OP_PART, .component = component_of(part.kind), .phase = phase,
                   .again = again, .layer = layer, .tool = tool};
    store_as(&part, b->stored);
    op.as.part = part;
    if (layer < 0 && op.component == MODEL_LINEAR) op.component = MODEL_HEAD;
    add(b, op);
}

static void *at_offset(void *base, uint64_t offset)
{
    return base && offset != UINT64_MAX ? (char *)base + offset : NULL;
}

/* x of a layer, or what the last one gives: layer == layers. */
static void *stream_at(const builder *b, int64_t layer)
{
    int64_t place = b->args->keeps ? layer : layer % 2;
    return at_offset(memory(b, MODEL_STREAM), (uint64_t)place * b->plan.row_bytes);
}

static void *stream_gradient_at(const builder *b, int64_t layer)
{
    if (layer == b->shape->layers) return memory(b, MODEL_LAST_GRADIENT);
    return at_offset(memory(b, MODEL_STREAM_GRADIENTS),
                     (uint64_t)(layer % 2) * b->plan.row_bytes);
}

static void fill_activations(const builder *b, int64_t layer, void *activations[BLOCK_ACTIVATIONS])
{
    void *base = at_offset(memory(b, MODEL_BLOCKS), (uint64_t)layer * b->plan.layer_bytes);
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++)
        activations[i] = at_offset(base, b->plan.activation[i]);
}

static int leaves_out(const builder *b, part_kind kind)
{
    return b->args->layout.in_place && part_moves_heads(kind);
}

/* again: as part of a backward pass, up to what that reads. */
static void add_block(const builder *b, int64_t layer, int again)
{
    block_forward_args a = {.shape = model_block_shape(b->shape), .dtype = b->args->dtype,
                            .part = BLOCK_WHOLE, .x = stream_at(b, layer),
                            .y = stream_at(b, layer + 1)};
    fill_activations(b, layer, a.activations);
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        a.parameters[i] = value(b, model_layer_tensor(layer) + i);
    for (int i = 0; i < BLOCK_FORWARD_PARTS; i++) {
        if (leaves_out(b, block_forward_rows[i].kind)) continue;
        if (again && i == BLOCK_FORWARD_DOWN) continue;
        part_args part = block_forward_describe(&a, i, &b->args->layout);
        if (part.kind == PART_ATTENTION) part.as.attention.mask = b->args->mask;
        add_part(b, part, again ? MODEL_BACKWARD : MODEL_FORWARD, i, layer, again);
    }
}

static void add_block_gradient(const builder *b, int64_t layer)
{
    block_backward_args a = {.shape = model_block_shape(b->shape), .dtype = b->args->dtype,
                             .part = BLOCK_WHOLE, .x = stream_at(b, layer),
                             .y_gradient = stream_gradient_at(b, layer + 1),
                             .x_gradient = stream_gradient_at(b, layer)};
    fill_activations(b, layer, a.activations);
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++)
        a.gradients[i] = at_offset(memory(b, MODEL_BLOCK_GRADIENTS), b->plan.gradient[i]);
    for (int i = 0; i < BLOCK_PARAMETERS; i++) {
        a.parameters[i] = value(b, model_layer_tensor(layer) + i);
        a.parameter_gradients[i] = gradient(b, model_layer_tensor(layer) + i);
    }
    for (int i = 0; i < BLOCK_BACKWARD_PARTS; i++)
        if (!leaves_out(b, block_backward_rows[i].kind))
            add_part(b, block_backward_describe(&a, i, &b->args->layout), MODEL_BACKWARD,
                     TOOL_BACKWARD_PARTS + i, layer, 0);
}

/* ---- what stands around the blocks ----------------------------------------------------- */

static embedding_shape embedding_of(const model_shape *s)
{
    return (embedding_shape){model_rows(s), s->table_rows, s->width, s->tokens};
}

static void add_embedding(const builder *b)
{
    model_op op = {.kind = MODEL_OP_EMBEDDING, .component = MODEL_EMBEDDING,
                   .phase = MODEL_FORWARD, .layer = -1, .tool = TOOL_EMBEDDING};
    op.as.embedding = (embedding_forward_args){
        .shape = embedding_of(b->shape), .dtype = b->stored, .tokens = row_numbers(b, MODEL_TOKENS),
        .token_table = value(b, 0), .position_table = value(b, 1), .out = stream_at(b, 0)};
    add(b, op);
}

static void add_embedding_gradient(const builder *b)
{
    model_op op = {.kind = MODEL_OP_EMBEDDING_GRADIENT, .component = MODEL_EMBEDDING,
                   .phase = MODEL_BACKWARD, .layer = -1, .tool = TOOL_EMBEDDING_GRADIENT};
    op.as.embedding_gradient = (embedding_backward_args){
        .shape = embedding_of(b->shape), .dtype = b->stored, .tokens = row_numbers(b, MODEL_TOKENS),
        .dout = stream_gradient_at(b, 0), .dtoken_table = gradient(b, 0),
        .dposition_table = gradient(b, 1)};
    add(b, op);
}

static norm_shape norm_of(const model_shape *s)
{
    return (norm_shape){model_rows(s), s->width};
}

static void add_norm(const builder *b)
{
    int64_t tensor = model_norm_tensor(b->shape);
    part_args part = {.kind = PART_NORM, .dtype = b->stored};
    part.as.norm = (norm_forward_args){
        .shape = norm_of(b->shape), .kind = NORM_LAYER, .dtype = b->stored,
        .x = stream_at(b, b->shape->layers), .weight = value(b, tensor),
        .bias = value(b, tensor + 1), .y = memory(b, MODEL_FINAL),
        .mean = memory(b, MODEL_FINAL_MEAN), .rstd = memory(b, MODEL_FINAL_RSTD)};
    add_part(b, part, MODEL_FORWARD, TOOL_NORM, -1, 0);
}

static void add_norm_gradient(const builder *b)
{
    int64_t tensor = model_norm_tensor(b->shape);
    part_args part = {.kind = PART_NORM_GRADIENT, .dtype = b->stored};
    part.as.norm_gradient = (norm_backward_args){
        .shape = norm_of(b->shape), .kind = NORM_LAYER, .dtype = b->stored,
        .x = stream_at(b, b->shape->layers), .weight = value(b, tensor),
        .dy = memory(b, MODEL_FINAL_GRADIENT), .mean = memory(b, MODEL_FINAL_MEAN),
        .rstd = memory(b, MODEL_FINAL_RSTD), .dx = stream_gradient_at(b, b->shape->layers),
        .dweight = gradient(b, tensor), .dbias = gradient(b, tensor + 1)};
    add_part(b, part, MODEL_BACKWARD, TOOL_NORM_GRADIENT, -1, 0);
}

static part_layer head_of(const model_shape *s)
{
    return (part_layer){model_rows(s), s->width, s->table_rows};
}

/* The mask comes as a bias, which costs the product nothing. */
static void add_head(const builder *b)
{
    part_args part = {.kind = PART_LINEAR, .dtype = b->args->dtype};
    part.with_bias = b->shape->table_rows > b->shape->vocabulary;
    part.as.linear = (part_linear){.layer = head_of(b->shape), .x = memory(b, MODEL_FINAL),
                                   .weight = value(b, model_head_tensor(b->shape)),
                                   .bias = memory(b, MODEL_MASK), .y = memory(b, MODEL_LOGITS)};
    add_part(b, part, MODEL_FORWARD, TOOL_HEAD, -1, 0);
}

static void add_head_input_gradient(const builder *b)
{
    part_args part = {.kind = PART_INPUT_GRADIENT, .dtype = b->args->dtype};
    part.as.input_gradient = (part_input_gradient){
        .layer = head_of(b->shape), .y_gradient = memory(b, MODEL_LOGIT_GRADIENTS),
        .weight = value(b, model_head_tensor(b->shape)),
        .x_gradient = memory(b, MODEL_FINAL_GRADIENT)};
    add_part(b, part, MODEL_BACKWARD, TOOL_HEAD_INPUT, -1, 0);
}

/* Of a tied head: added to what the embedding has put there. */
static void add_head_weight_gradient(const builder *b)
{
    void *result = gradient(b, model_head_tensor(b->shape));
    part_args part = {.kind = PART_WEIGHT_GRADIENT, .dtype = b->args->dtype};
    part.with_residual = b->shape->tied != 0;
    part.as.weight_gradient = (part_weight_gradient){
        .layer = head_of(b->shape), .x = memory(b, MODEL_FINAL),
        .y_gradient = memory(b, MODEL_LOGIT_GRADIENTS), .weight_gradient = result,
        .residual = part.with_residual ? result : NULL};
    add_part(b, part, MODEL_BACKWARD, TOOL_HEAD_WEIGHT, -1, 0);
}

/* The scale may have changed since the step before. */
static void add_scale_loss(const builder *b)
{
    model_op op = {.kind = MODEL_OP_SCALE_LOSS, .component = MODEL_CROSS_ENTROPY,
                   .phase = MODEL_LOSS, .layer = -1, .tool = TOOL_SCALE_LOSS};
    op.as.scale_loss = (optimizer_scale_loss_args){.scaler = memory(b, MODEL_SCALER),
                                                   .count = model_rows(b->shape),
                                                   .rows = model_step_rows(b->args),
                                                   .weights = memory(b, MODEL_ROW_WEIGHTS)};
    if (model_scales_loss(b->args)) add(b, op);
}

static void add_loss(const builder *b)
{
    int keeps = b->args->keeps;
    model_op op = {.kind = keeps ? MODEL_OP_LOSS_GRADIENT : MODEL_OP_LOSS,
                   .component = MODEL_CROSS_ENTROPY, .phase = MODEL_LOSS, .layer = -1,
                   .tool = TOOL_LOSS};
    op.as.loss = (loss_args){.shape = {model_rows(b->shape), b->shape->table_rows},
                             .dtype = b->stored, .logits = memory(b, MODEL_LOGITS),
                             .targets = row_numbers(b, MODEL_TARGETS),
                             .dloss = memory(b, MODEL_ROW_WEIGHTS),
                             .loss = row_numbers(b, MODEL_LOSSES),
                             .dlogits = memory(b, MODEL_LOGIT_GRADIENTS)};
    add(b, op);
}

/* Over the rows of all micro-batches, so that each row counts the same. */
static void add_mean(const builder *b)
{
    float *results = memory(b, MODEL_RESULTS);
    model_op op = {.kind = MODEL_OP_MEAN, .component = MODEL_CROSS_ENTROPY, .phase = MODEL_LOSS,
                   .layer = -1, .tool = TOOL_MEAN};
    op.as.mean = (model_mean){memory(b, MODEL_LOSSES), model_step_rows(b->args),
                              results ? results + MODEL_RESULT_LOSS : NULL};
    add(b, op);
}

/* All tensors' gradients at once: what lies between them is added, too, and nobody's. */
static void add_accumulate(const builder *b)
{
    int64_t last = model_micro_batches(b->args) - 1;
    model_op op = {.kind = MODEL_OP_ACCUMULATE, .component = MODEL_COPY, .phase = MODEL_BACKWARD,
                   .layer = -1, .tool = TOOL_ACCUMULATE};
    op.as.accumulate = (model_accumulate){
        .dtype = b->stored, .count = model_tensor_offset(b->shape, model_tensor_count(b->shape)),
        .gradients = memory(b, MODEL_GRADIENTS), .sums = memory(b, MODEL_SUMS),
        .is_first = b->micro == 0, .is_last = b->micro == last};
    if (last > 0 && !b->args->micro_one) add(b, op);
}

/* ---- the update ----------------------------------------------------------------------- */

static optimizer_tensor tensor_at(const builder *b, int64_t index)
{
    parameters_tensor tensor = model_tensor_at(b->shape, index);
    return (optimizer_tensor){
        .count = parameters_elements(&tensor), .parameter = value(b, index),
        .gradient = gradient(b, index),
        .master = model_tensor_memory(b->args, &b->plan, MODEL_MASTER, index),
        .first = model_tensor_memory(b->args, &b->plan, MODEL_FIRST, index),
        .second = model_tensor_memory(b->args, &b->plan, MODEL_SECOND, index)};
}

static void add_unscale(const builder *b, float *norm, float *scale)
{
    model_op op = {.kind = MODEL_OP_UNSCALE, .component = MODEL_CLIP, .phase = MODEL_UPDATE,
                   .layer = -1, .tool = TOOL_UNSCALE};
    op.as.unscale = (optimizer_unscale_args){.rule = b->args->scaling,
                                             .beta1 = b->args->settings.beta1,
                                             .beta2 = b->args->settings.beta2,
                                             .max_norm = b->args->max_norm,
                                             .norm = norm,
                                             .gradient_scale = scale,
                                             .scaler = memory(b, MODEL_SCALER)};
    if (model_scales_loss(b->args)) add(b, op);
}

static void add_update(const builder *b)
{
    optimizer_list list = {b->ops->tensors, model_tensor_count(b->shape)};
    float *results = memory(b, MODEL_RESULTS);
    float *scale = results ? results + MODEL_RESULT_SCALE : NULL;
    float *norm = results ? results + MODEL_RESULT_NORM : NULL;
    model_op clip = {.kind = MODEL_OP_CLIP, .component = MODEL_CLIP, .phase = MODEL_UPDATE,
                     .layer = -1, .tool = TOOL_CLIP};
    model_op adamw = {.kind = MODEL_OP_ADAMW, .component = MODEL_ADAMW, .phase = MODEL_UPDATE,
                      .layer = -1, .tool = TOOL_ADAMW};
    for (int64_t i = 0; i < list.count; i++) b->ops->tensors[i] = tensor_at(b, i);
    clip.as.clip = (optimizer_clip_args){.list = list, .dtype = b->stored,
                                         .max_norm = b->args->max_norm,
                                         .norm = norm, .scale = scale};
    adamw.as.adamw = (optimizer_adamw_args){.list = list, .dtype = b->stored,
                                            .settings = b->args->settings,
                                            .gradient_scale = scale,
                                            .scaler = memory(b, MODEL_SCALER)};
    add(b, clip);
    add_unscale(b, norm, scale);
    add(b, adamw);
}

/* ---- the list -------------------------------------------------------------------------- */

static void add_forward(const builder *b)
{
    add_embedding(b);
    for (int64_t layer = 0; layer < b->shape->layers; layer++) add_block(b, layer, 0);
    add_norm(b);
    add_head(b);
}

static void add_backward(const builder *b)
{
    add_head_input_gradient(b);
    if (!b->shape->tied) add_head_weight_gradient(b);
    add_norm_gradient(b);
    for (int64_t layer = b->shape->layers - 1; layer >= 0; layer--) {
        if (b->args->recomputes) add_block(b, layer, 1);
        add_block_gradient(b, layer);
    }
    add_embedding_gradient(b);
    if (b->shape->tied) add_head_weight_gradient(b);
}

static void add_passes(builder *b)
{
    int64_t one = b->args->micro_one, last = model_micro_batches(b->args) - 1;
    for (int64_t micro = 0; micro <= last; micro++) {
        if (one && micro != one - 1) continue;
        b->micro = micro;
        add_forward(b);
        if (micro == 0 || one) add_scale_loss(b);
        add_loss(b);
        if (micro == last || one) add_mean(b);
        add_backward(b);
        add_accumulate(b);
    }
}

int model_ops_create(const model_args *args, model_ops *ops)
{
    enum { EACH_LAYER = 2 * BLOCK_FORWARD_PARTS + BLOCK_BACKWARD_PARTS };
    builder b = {args, &args->shape, model_storage(args->dtype), {0}, ops, 0};
    int64_t micro_batches = model_micro_batches(args);
    *ops = (model_ops){NULL, 0, 0, NULL};
    if (!model_is_valid(&args->shape)) return KERNEL_ERROR_ARGUMENT;
    if ((args->phases & (MODEL_BACKWARD | MODEL_UPDATE)) && !args->keeps)
        return KERNEL_ERROR_ARGUMENT;
    if (args->micro_one < 0 || args->micro_one > micro_batches) return KERNEL_ERROR_ARGUMENT;
    ops->room = (args->shape.layers * EACH_LAYER + MODEL_TOOLS) * micro_batches;
    ops->list = calloc((size_t)ops->room, sizeof *ops->list);
    ops->tensors = calloc((size_t)model_tensor_count(b.shape), sizeof *ops->tensors);
    if (!ops->list || !ops->tensors) {
        model_ops_destroy(ops);
        return KERNEL_ERROR_MEMORY;
    }
    b.plan = model_plan_of(args);
    add_passes(&b);
    add_update(&b);
    return KERNEL_OK;
}

void model_ops_destroy(model_ops *ops)
{
    free(ops->list);
    free(ops->tensors);
    *ops = (model_ops){NULL, 0, 0, NULL};
}

/* ---- watching -------------------------------------------------------------------------- */

/* Whether the neighbour at index + step is of another phase, or not there. */
static int ends_phase(const model_ops *ops, int64_t index, int64_t step)
{
    int64_t next = index + step;
    return next < 0 || next == ops->count || ops->list[next].phase != ops->list[index].phase;
}

void model_watch_begin(const model_args *args, const model_ops *ops, int64_t index)
{
    if (!args->watch) return;
    if (ends_phase(ops, index, -1)) args->watch->begin(model_phases_name(ops->list[index].phase));
    args->watch->begin(model_op_name(&ops->list[index]));
}

void model_watch_end(const model_args *args, const model_ops *ops, int64_t index)
{
    if (!args->watch) return;
    args->watch->end();
    if (ends_phase(ops, index, 1)) args->watch->end();
}

/* ---- names ------------------------------------------------------------------------------ */

int model_op_backward_part(const model_op *op)
{
    int part = op->tool - TOOL_BACKWARD_PARTS;
    return part >= 0 && part < BLOCK_BACKWARD_PARTS ? part : -1;
}

const char *model_op_name(const model_op *op)
{
    static const char *const names[] = {"embedding", "embedding_gradient", "final_norm",
                                        "final_norm_gradient", "head", "head_input",
                                        "head_weight", "loss", "mean", "clip", "adamw",
                                        "scale_loss", "unscale", "accumulate"};
    if (op->tool < BLOCK_FORWARD_PARTS) return block_forward_part_name(op->tool);
    if (op->tool < TOOL_EMBEDDING) return block_backward_part_name(op->tool - TOOL_BACKWARD_PARTS);
    return names[op->tool - TOOL_EMBEDDING];
}
