/*
 * layout.c - a model's parameters, the plan of its memory, and its work.
 */
#include "model.h"

#include "../common/saturating.h"

/* ---- shapes ----------------------------------------------------------------------- */

enum { TENSORS_BEFORE_LAYERS = 2 };

block_shape model_block_shape(const model_shape *s)
{
    return (block_shape){s->batch, s->tokens, s->width, s->heads, s->hidden};
}

int model_is_valid(const model_shape *s)
{
    block_shape block = model_block_shape(s);
    return block_is_valid(&block) && s->layers > 0 && s->vocabulary > 0 &&
           s->table_rows >= s->vocabulary && s->table_rows <= INT32_MAX &&
           model_rows(s) <= INT32_MAX && s->width <= EMBEDDING_MAX_COLUMNS;
}

int64_t model_rows(const model_shape *s)
{
    return s->batch * s->tokens;
}

static parameters_model tensors_of(const model_shape *s)
{
    return (parameters_model){.d_model = s->width, .d_ff = s->hidden, .layers = s->layers,
                              .vocabulary = s->table_rows, .context = s->tokens};
}

int64_t model_tensor_count(const model_shape *shape)
{
    parameters_model model = tensors_of(shape);
    return parameters_tensor_count(&model) - (shape->tied != 0);
}

parameters_tensor model_tensor_at(const model_shape *shape, int64_t index)
{
    parameters_model model = tensors_of(shape);
    return parameters_tensor_at(&model, index);
}

int64_t model_layer_tensor(int64_t layer)
{
    return TENSORS_BEFORE_LAYERS + layer * BLOCK_PARAMETERS;
}

int64_t model_norm_tensor(const model_shape *shape)
{
    return model_layer_tensor(shape->layers);
}

int64_t model_head_tensor(const model_shape *shape)
{
    return shape->tied ? 0 : model_norm_tensor(shape) + 2;
}

static uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return saturating_sum(value, multiple - 1) / multiple * multiple;
}

int64_t model_tensor_offset(const model_shape *shape, int64_t index)
{
    uint64_t offset = 0;
    for (int64_t i = 0; i < index; i++) {
        parameters_tensor t = model_tensor_at(shape, i);
        uint64_t elements = saturating_product((uint64_t)t.rows, (uint64_t)t.columns);
        offset = saturating_sum(offset, round_up(elements, MODEL_TENSOR_ALIGNMENT));
    }
    return offset > INT64_MAX ? INT64_MAX : (int64_t)offset;
}

int64_t model_parameters(const model_shape *shape)
{
    uint64_t total = 0, pads = (uint64_t)(shape->table_rows - shape->vocabulary);
    for (int64_t i = 0; i < model_tensor_count(shape); i++) {
        parameters_tensor t = model_tensor_at(shape, i);
        total = saturating_sum(total, saturating_product((uint64_t)t.rows, (uint64_t)t.columns));
    }
    total -= saturating_product(pads * (shape->tied ? 1 : 2), (uint64_t)shape->width);
    return total > INT64_MAX ? INT64_MAX : (int64_t)total;
}

kernel_dtype model_storage(kernel_dtype dtype)
{
    return dtype == KERNEL_TF32 ? KERNEL_F32 : dtype;
}

/* ---- names -------------------------------------------------------------------------- */

const char *model_phases_name(unsigned phases)
{
    switch (phases) {
    case MODEL_FORWARD: return "forward";
    case MODEL_LOSS: return "loss";
    case MODEL_UPDATE: return "update";
    case MODEL_FORWARD | MODEL_LOSS: return "forward_loss";
    case MODEL_BACKWARD: return "backward";
    case MODEL_STEP: return "step";
    default: return "phases";
    }
}

const char *model_component_name(int component)
{
    static const char *const names[MODEL_COMPONENTS] = {
        [MODEL_EMBEDDING] = "embedding", [MODEL_NORM] = "norm",
        [MODEL_ATTENTION] = "attention", [MODEL_LINEAR] = "linear",
        [MODEL_COPY] = "copy",           [MODEL_HEAD] = "head",
        [MODEL_CROSS_ENTROPY] = "loss",  [MODEL_CLIP] = "clip",
        [MODEL_ADAMW] = "adamw",
    };
    return component >= 0 && component < MODEL_COMPONENTS ? names[component] : "all";
}

const char *model_category_name(int category)
{
    static const char *const names[MODEL_CATEGORIES] = {
        [MODEL_OF_INPUTS] = "inputs",
        [MODEL_OF_PARAMETERS] = "parameters",
        [MODEL_OF_GRADIENTS] = "gradients",
        [MODEL_OF_OPTIMIZER] = "optimizer",
        [MODEL_OF_ACTIVATIONS] = "activations",
        [MODEL_OF_ACTIVATION_GRADIENTS] = "activation_gradients",
    };
    return category >= 0 && category < MODEL_CATEGORIES ? names[category] : "unknown";
}

model_category model_category_of(model_buffer buffer)
{
    if (buffer <= MODEL_ROW_WEIGHTS) return MODEL_OF_INPUTS;
    if (buffer == MODEL_VALUES) return MODEL_OF_PARAMETERS;
    if (buffer == MODEL_GRADIENTS || buffer == MODEL_SUMS) return MODEL_OF_GRADIENTS;
    if (buffer <= MODEL_SCALER) return MODEL_OF_OPTIMIZER;
    return buffer <= MODEL_RESULTS ? MODEL_OF_ACTIVATIONS : MODEL_OF_ACTIVATION_GRADIENTS;
}

/* ---- memory ------------------------------------------------------------------------- */

enum { BUFFER_ALIGNMENT = 512 };

/* Whether a layout's attention has heads of their own among the activations. */
static int uses(const block_layout *layout, int activation)
{
    int heads = activation == BLOCK_Q || activation == BLOCK_K || activation == BLOCK_V ||
                activation == BLOCK_ATTENTION;
    return !(layout->in_place && heads);
}

/* Places one layer's activations (or their gradients) and returns their bytes. */
static uint64_t place_layer(const model_args *a, int gradients, uint64_t at[BLOCK_ACTIVATIONS])
{
    block_shape shape = model_block_shape(&a->shape);
    uint64_t end = 0;
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        block_activation which = (block_activation)i;
        int64_t count = gradients ? block_gradient_count(&shape, which)
                                  : block_activation_count(&shape, which);
        kernel_dtype dtype = block_activation_dtype(which, model_storage(a->dtype));
        at[i] = UINT64_MAX;
        if (count == 0 || !uses(&a->layout, i)) continue;
        if (which == BLOCK_PRE && !a->keeps) continue;
        at[i] = end;
        end = saturating_sum(end, saturating_product((uint64_t)count, kernel_dtype_bytes(dtype)));
        end = round_up(end, BUFFER_ALIGNMENT);
    }
    return end;
}

static int has_backward(const model_args *a)
{
    return a->keeps || (a->phases & (MODEL_BACKWARD | MODEL_UPDATE));
}

int model_scales_loss(const model_args *a)
{
    return a->dtype == KERNEL_F16 && has_backward(a);
}

/* Of a whole kept pass, `all`; else what is used in turn. */
static uint64_t turns(const model_args *a, int64_t all, int64_t in_turn)
{
    return (uint64_t)(a->keeps ? all : in_turn);
}

int64_t model_micro_batches(const model_args *a)
{
    return a->micro_batches > 1 ? a->micro_batches : 1;
}

int64_t model_step_rows(const model_args *a)
{
    return model_rows(&a->shape) * model_micro_batches(a);
}

static void size_buffers(const model_args *a, model_plan *p)
{
    const model_shape *s = &a->shape;
    uint64_t n = (uint64_t)model_rows(s), element = kernel_dtype_bytes(model_storage(a->dtype));
    uint64_t classes = saturating_product((uint64_t)s->table_rows, element);
    uint64_t elements = (uint64_t)model_tensor_offset(s, model_tensor_count(s));
    uint64_t floats = saturating_product(elements, sizeof(float));
    uint64_t *bytes = p->bytes, row = saturating_product(n * element, (uint64_t)s->width);
    int trains = has_backward(a), updates = trains && !a->no_state;
    p->row_bytes = row;
    bytes[MODEL_TOKENS] = bytes[MODEL_TARGETS] = 4 * (uint64_t)model_step_rows(a);
    bytes[MODEL_ROW_WEIGHTS] = 4 * n;
    bytes[MODEL_MASK] = s->table_rows > s->vocabulary ? classes : 0;
    bytes[MODEL_VALUES] = saturating_product(elements, element);
    bytes[MODEL_GRADIENTS] = trains ? bytes[MODEL_VALUES] : 0;
    bytes[MODEL_SUMS] = updates && model_micro_batches(a) > 1 ? floats : 0;
    bytes[MODEL_MASTER] = updates && element < sizeof(float) ? floats : 0;
    bytes[MODEL_FIRST] = bytes[MODEL_SECOND] = updates ? floats : 0;
    bytes[MODEL_SCALER] = model_scales_loss(a) ? sizeof(optimizer_scaler) : 0;
    bytes[MODEL_STREAM] = saturating_product(row, turns(a, s->layers + 1, 2));
    bytes[MODEL_FINAL] = row;
    bytes[MODEL_FINAL_MEAN] = bytes[MODEL_FINAL_RSTD] = 4 * n;
    bytes[MODEL_LOSSES] = 4 * (uint64_t)model_step_rows(a);
    bytes[MODEL_RESULTS] = MODEL_RESULT_COUNT * sizeof(float);
    bytes[MODEL_LOGITS] = saturating_product(n, classes);
    if (!trains) return;
    bytes[MODEL_LOGIT_GRADIENTS] = bytes[MODEL_LOGITS];
    bytes[MODEL_FINAL_GRADIENT] = bytes[MODEL_LAST_GRADIENT] = row;
    bytes[MODEL_STREAM_GRADIENTS] = saturating_product(row, 2);
}

model_plan model_plan_of(const model_args *a)
{
    model_plan p = {.total = 0};
    uint64_t layer = place_layer(a, 0, p.activation), gradients = place_layer(a, 1, p.gradient);
    size_buffers(a, &p);
    p.layer_bytes = a->keeps && !a->recomputes ? layer : 0;
    p.bytes[MODEL_BLOCKS] =
        saturating_product(layer, p.layer_bytes ? (uint64_t)a->shape.layers : 1);
    p.bytes[MODEL_BLOCK_GRADIENTS] = has_backward(a) ? gradients : 0;
    for (int i = 0; i < MODEL_BUFFERS; i++) {
        uint64_t bytes = round_up(p.bytes[i], BUFFER_ALIGNMENT);
        uint64_t *of = &p.of[model_category_of((model_buffer)i)];
        p.begin[i] = p.total;
        p.total = saturating_sum(p.total, bytes);
        *of = saturating_sum(*of, bytes);
    }
    return p;
}

void *model_memory(const model_args *a, const model_plan *plan, model_buffer buffer)
{
    if (!a->memory || plan->bytes[buffer] == 0) return NULL;
    return (char *)a->memory + plan->begin[buffer];
}

void *model_tensor_memory(const model_args *a, const model_plan *plan, model_buffer buffer,
                          int64_t index)
{
    char *first = model_memory(a, plan, buffer);
    size_t element = buffer == MODEL_VALUES || buffer == MODEL_GRADIENTS
                         ? kernel_dtype_bytes(model_storage(a->dtype))
                         : sizeof(float);
    return first ? first + (size_t)model_tensor_offset(&a->shape, index) * element : NULL;
}

/* ---- work --------------------------------------------------------------------------- */

/* Of a forward pass: the products' and attention's. */
static uint64_t forward_flops(const model_shape *s)
{
    block_shape block = model_block_shape(s);
    uint64_t blocks = saturating_product(block_forward_flops(&block, BLOCK_WHOLE),
                                         (uint64_t)s->layers);
    uint64_t head = saturating_product((uint64_t)s->vocabulary, (uint64_t)s->width);
    return saturating_sum(blocks, saturating_product(head, 2 * (uint64_t)model_rows(s)));
}

uint64_t model_flops(const model_shape *shape, unsigned phases)
{
    uint64_t times = 0;
    if (!model_is_valid(shape)) return 0;
    if (phases & MODEL_FORWARD) times += 1;
    if (phases & MODEL_BACKWARD) times += 2;
    return saturating_product(forward_flops(shape), times);
}

uint64_t model_component_flops(const model_shape *s, unsigned phase, model_component component)
{
    block_shape block = model_block_shape(s);
    uint64_t layers = (uint64_t)s->layers, all = model_flops(s, phase), attention, head;
    uint64_t times = phase == MODEL_BACKWARD ? 2 : 1;
    if (all == 0) return 0;
    attention = saturating_product(block_forward_flops(&block, BLOCK_FORWARD_ATTENTION),
                                   layers * times);
    head = saturating_product(saturating_product((uint64_t)s->vocabulary, (uint64_t)s->width),
                              2 * times * (uint64_t)model_rows(s));
    if (component == MODEL_ATTENTION) return attention;
    if (component == MODEL_HEAD) return head;
    return component == MODEL_LINEAR && all != UINT64_MAX ? all - attention - head : 0;
}

uint64_t model_bytes(const model_shape *s, kernel_dtype dtype, unsigned phases)
{
    uint64_t sum = 0, element = kernel_dtype_bytes(dtype), rows, values, logits;
    if (!model_is_valid(s)) return 0;
    rows = (uint64_t)model_rows(s);
    values = saturating_product((uint64_t)model_parameters(s), element);
    logits = saturating_product(saturating_product(rows, (uint64_t)s->vocabulary), element);
    if (phases & MODEL_FORWARD) sum = saturating_sum(saturating_sum(sum, values), 4 * rows);
    if (phases & MODEL_LOSS) sum = saturating_sum(sum, 4 * rows);
    else sum = saturating_sum(sum, logits); /* handed on, or gradients taken over */
    if (phases & MODEL_BACKWARD) sum = saturating_sum(sum, saturating_product(values, 2));
    if (phases & MODEL_UPDATE)
        sum = saturating_sum(sum, optimizer_adamw_bytes(model_parameters(s), model_storage(dtype)));
    return sum;
}
