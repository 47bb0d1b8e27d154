/*
 * parts.c - the transformer block as data: its parts, the sizes of what
 * they read and write, and the bytes and operations that follow.
 */
#include "block.h"

#include <math.h>

#include "../common/saturating.h"

/* ---- the parts -------------------------------------------------------------------- */

const block_forward_row block_forward_rows[BLOCK_FORWARD_PARTS] = {
    [BLOCK_FORWARD_NORM1] = {.name = "norm1", .kind = PART_NORM, .input = BLOCK_X,
                             .output = BLOCK_NORM1, .weight = BLOCK_NORM1_WEIGHT},
    [BLOCK_FORWARD_QKV] = {.name = "qkv", .kind = PART_LINEAR, .input = BLOCK_NORM1,
                           .output = BLOCK_QKV, .weight = BLOCK_QKV_WEIGHT,
                           .residual = BLOCK_NOTHING, .pre = BLOCK_NOTHING},
    [BLOCK_FORWARD_SPLIT] = {.name = "split", .kind = PART_SPLIT, .input = BLOCK_QKV,
                             .output = BLOCK_Q},
    [BLOCK_FORWARD_ATTENTION] = {.name = "attention", .kind = PART_ATTENTION, .input = BLOCK_Q,
                                 .output = BLOCK_ATTENTION},
    [BLOCK_FORWARD_MERGE] = {.name = "merge", .kind = PART_MERGE, .input = BLOCK_ATTENTION,
                             .output = BLOCK_MERGED},
    [BLOCK_FORWARD_PROJECTION] = {.name = "projection", .kind = PART_LINEAR,
                                  .input = BLOCK_MERGED, .output = BLOCK_MIDDLE,
                                  .weight = BLOCK_PROJECTION_WEIGHT, .residual = BLOCK_X,
                                  .pre = BLOCK_NOTHING},
    [BLOCK_FORWARD_NORM2] = {.name = "norm2", .kind = PART_NORM, .input = BLOCK_MIDDLE,
                             .output = BLOCK_NORM2, .weight = BLOCK_NORM2_WEIGHT},
    [BLOCK_FORWARD_UP] = {.name = "up", .kind = PART_LINEAR, .input = BLOCK_NORM2,
                          .output = BLOCK_HIDDEN, .weight = BLOCK_UP_WEIGHT,
                          .residual = BLOCK_NOTHING, .pre = BLOCK_PRE},
    [BLOCK_FORWARD_DOWN] = {.name = "down", .kind = PART_LINEAR, .input = BLOCK_HIDDEN,
                            .output = BLOCK_Y, .weight = BLOCK_DOWN_WEIGHT,
                            .residual = BLOCK_MIDDLE, .pre = BLOCK_NOTHING},
};

const block_backward_row block_backward_rows[BLOCK_BACKWARD_PARTS] = {
    [BLOCK_BACKWARD_DOWN_INPUT] = {"down_input", PART_INPUT_GRADIENT, BLOCK_FORWARD_DOWN},
    [BLOCK_BACKWARD_DOWN_WEIGHT] = {"down_weight", PART_WEIGHT_GRADIENT, BLOCK_FORWARD_DOWN},
    [BLOCK_BACKWARD_UP_INPUT] = {"up_input", PART_INPUT_GRADIENT, BLOCK_FORWARD_UP},
    [BLOCK_BACKWARD_UP_WEIGHT] = {"up_weight", PART_WEIGHT_GRADIENT, BLOCK_FORWARD_UP},
    [BLOCK_BACKWARD_NORM2] = {"norm2", PART_NORM_GRADIENT, BLOCK_FORWARD_NORM2},
    [BLOCK_BACKWARD_PROJECTION_INPUT] = {"projection_input", PART_INPUT_GRADIENT,
                                         BLOCK_FORWARD_PROJECTION},
    [BLOCK_BACKWARD_PROJECTION_WEIGHT] = {"projection_weight", PART_WEIGHT_GRADIENT,
                                          BLOCK_FORWARD_PROJECTION},
    [BLOCK_BACKWARD_SPLIT] = {"split", PART_SPLIT, BLOCK_FORWARD_MERGE},
    [BLOCK_BACKWARD_ATTENTION] = {"attention", PART_ATTENTION_GRADIENT, BLOCK_FORWARD_ATTENTION},
    [BLOCK_BACKWARD_MERGE] = {"merge", PART_MERGE, BLOCK_FORWARD_SPLIT},
    [BLOCK_BACKWARD_QKV_INPUT] = {"qkv_input", PART_INPUT_GRADIENT, BLOCK_FORWARD_QKV},
    [BLOCK_BACKWARD_QKV_WEIGHT] = {"qkv_weight", PART_WEIGHT_GRADIENT, BLOCK_FORWARD_QKV},
    [BLOCK_BACKWARD_NORM1] = {"norm1", PART_NORM_GRADIENT, BLOCK_FORWARD_NORM1},
};

const char *block_forward_part_name(int part)
{
    return part >= 0 && part < BLOCK_FORWARD_PARTS ? block_forward_rows[part].name : "whole";
}

const char *block_backward_part_name(int part)
{
    return part >= 0 && part < BLOCK_BACKWARD_PARTS ? block_backward_rows[part].name : "whole";
}

/* ---- sizes ------------------------------------------------------------------------ */

/* How many elements something has, or a row of it. */
typedef enum extent { ONE, WIDTH, THREE_WIDTHS, HIDDEN, HEADS, PADDED_HEADS } extent;

static const struct {
    extent outputs, inputs;
} parameter_extents[BLOCK_PARAMETERS] = {
    [BLOCK_NORM1_WEIGHT] = {WIDTH, ONE},
    [BLOCK_NORM1_BIAS] = {WIDTH, ONE},
    [BLOCK_QKV_WEIGHT] = {THREE_WIDTHS, WIDTH},
    [BLOCK_QKV_BIAS] = {THREE_WIDTHS, ONE},
    [BLOCK_PROJECTION_WEIGHT] = {WIDTH, WIDTH},
    [BLOCK_PROJECTION_BIAS] = {WIDTH, ONE},
    [BLOCK_NORM2_WEIGHT] = {WIDTH, ONE},
    [BLOCK_NORM2_BIAS] = {WIDTH, ONE},
    [BLOCK_UP_WEIGHT] = {HIDDEN, WIDTH},
    [BLOCK_UP_BIAS] = {HIDDEN, ONE},
    [BLOCK_DOWN_WEIGHT] = {WIDTH, HIDDEN},
    [BLOCK_DOWN_BIAS] = {WIDTH, ONE},
};

/* Of values, a token's. Statistics are f32 and have no gradient; HIDDEN's goes
 * straight on to PRE. */
static const struct {
    extent row;
    int is_statistic, has_gradient;
} value_extents[BLOCK_NOTHING] = {
    [BLOCK_NORM1] = {WIDTH, 0, 1},
    [BLOCK_MEAN1] = {ONE, 1, 0},
    [BLOCK_RSTD1] = {ONE, 1, 0},
    [BLOCK_QKV] = {THREE_WIDTHS, 0, 1},
    [BLOCK_Q] = {PADDED_HEADS, 0, 1},
    [BLOCK_K] = {PADDED_HEADS, 0, 1},
    [BLOCK_V] = {PADDED_HEADS, 0, 1},
    [BLOCK_ATTENTION] = {PADDED_HEADS, 0, 1},
    [BLOCK_LSE] = {HEADS, 1, 0},
    [BLOCK_MERGED] = {WIDTH, 0, 1},
    [BLOCK_MIDDLE] = {WIDTH, 0, 1},
    [BLOCK_NORM2] = {WIDTH, 0, 1},
    [BLOCK_MEAN2] = {ONE, 1, 0},
    [BLOCK_RSTD2] = {ONE, 1, 0},
    [BLOCK_PRE] = {HIDDEN, 0, 1},
    [BLOCK_HIDDEN] = {HIDDEN, 0, 0},
    [BLOCK_X] = {WIDTH, 0, 1},
    [BLOCK_Y] = {WIDTH, 0, 1},
};

int block_is_valid(const block_shape *s)
{
    return s->batch > 0 && s->tokens > 0 && s->width > 0 && s->heads > 0 && s->hidden > 0 &&
           s->width % s->heads == 0 && s->batch <= INT64_MAX / s->tokens;
}

static int64_t rows_of(const block_shape *s)
{
    return s->batch * s->tokens;
}

static int64_t count_of(int64_t a, int64_t b)
{
    uint64_t product = saturating_product((uint64_t)a, (uint64_t)b);
    return product > INT64_MAX ? INT64_MAX : (int64_t)product;
}

/* Room for a head_dim that is padded as block.h says. */
static int64_t head_room(const block_shape *s)
{
    int64_t dim = s->width / s->heads;
    return dim <= 64 ? 64 : dim <= 128 ? 128 : dim;
}

static int64_t elements_of(const block_shape *s, extent which)
{
    switch (which) {
    case ONE: return 1;
    case WIDTH: return s->width;
    case THREE_WIDTHS: return count_of(3, s->width);
    case HIDDEN: return s->hidden;
    case HEADS: return s->heads;
    case PADDED_HEADS: return count_of(s->heads, head_room(s));
    }
    return 0;
}

int64_t block_parameter_count(const block_shape *shape, block_parameter which)
{
    if (!block_is_valid(shape)) return 0;
    return count_of(elements_of(shape, parameter_extents[which].outputs),
                    elements_of(shape, parameter_extents[which].inputs));
}

int64_t block_activation_count(const block_shape *shape, block_activation which)
{
    if (!block_is_valid(shape)) return 0;
    return count_of(rows_of(shape), elements_of(shape, value_extents[which].row));
}

int64_t block_gradient_count(const block_shape *shape, block_activation which)
{
    return value_extents[which].has_gradient ? block_activation_count(shape, which) : 0;
}

kernel_dtype block_activation_dtype(block_activation which, kernel_dtype dtype)
{
    return value_extents[which].is_statistic ? KERNEL_F32 : dtype;
}

block_layout block_own_layout(const block_shape *shape)
{
    return (block_layout){0, shape->width / shape->heads};
}

/* ---- parts with their memory -------------------------------------------------------- */

static part_layer layer_of(const block_shape *s, const block_forward_row *row)
{
    return (part_layer){rows_of(s), elements_of(s, value_extents[row->input].row),
                        elements_of(s, value_extents[row->output].row)};
}

static norm_shape norm_of(const block_shape *s)
{
    return (norm_shape){rows_of(s), s->width};
}

static attention_shape attention_of(const block_shape *s, const block_layout *l)
{
    return (attention_shape){s->batch, s->heads, s->tokens, l->head_dim, 1};
}

/* Of heads in rows [batch, tokens, parts, heads, head_dim]; all 0 by themselves. */
static attention_strides strides_of(const block_shape *s, const block_layout *l, int parts)
{
    int64_t row = parts * s->width;
    if (!l->in_place) return (attention_strides){0, 0, 0};
    return (attention_strides){s->tokens * row, s->width / s->heads, row};
}

/* What attention reads and writes among the activations, or their gradients. */
typedef struct attention_memory {
    void *q, *k, *v, *out;
} attention_memory;

static attention_memory attention_in(void *const *memory, const block_shape *s,
                                     kernel_dtype dtype, const block_layout *l)
{
    char *qkv = memory[BLOCK_QKV];
    size_t bytes = (size_t)s->width * kernel_dtype_bytes(dtype);
    if (!l->in_place)
        return (attention_memory){memory[BLOCK_Q], memory[BLOCK_K], memory[BLOCK_V],
                                  memory[BLOCK_ATTENTION]};
    if (!qkv) return (attention_memory){NULL, NULL, NULL, memory[BLOCK_MERGED]};
    return (attention_memory){qkv, qkv + bytes, qkv + 2 * bytes, memory[BLOCK_MERGED]};
}

/* Three parts are q, k and v, of which q makes up for attention's division by
 * the root of a padded head_dim; one is attention's result. */
static part_heads heads_of(const block_shape *s, kernel_dtype dtype, const block_layout *l,
                           void *const *memory, part_kind kind, int parts)
{
    int64_t own = s->width / s->heads;
    part_heads h = {.dtype = dtype, .batch = s->batch, .tokens = s->tokens, .heads = s->heads,
                    .head_dim = own, .padded_dim = l->head_dim, .parts = parts, .first_factor = 1,
                    .splits = kind == PART_SPLIT};
    if (parts == 1) {
        h.rows = memory[BLOCK_MERGED];
        h.heads_of[0] = memory[BLOCK_ATTENTION];
        return h;
    }
    h.first_factor = (float)sqrt((double)l->head_dim / (double)own);
    h.rows = memory[BLOCK_QKV];
    for (int i = 0; i < parts; i++) h.heads_of[i] = memory[BLOCK_Q + i];
    return h;
}

static const void *forward_read(const block_forward_args *a, block_value value)
{
    if (value == BLOCK_NOTHING) return NULL;
    return value == BLOCK_X ? a->x : a->activations[value];
}

static void *forward_written(const block_forward_args *a, block_value value)
{
    if (value == BLOCK_NOTHING) return NULL;
    return value == BLOCK_Y ? a->y : a->activations[value];
}

static norm_forward_args forward_norm(const block_forward_args *a, const block_forward_row *row)
{
    return (norm_forward_args){.shape = norm_of(&a->shape), .kind = NORM_LAYER, .dtype = a->dtype,
                               .x = forward_read(a, row->input),
                               .weight = a->parameters[row->weight],
                               .bias = a->parameters[row->weight + 1],
                               .y = a->activations[row->output],
                               .mean = a->activations[row->output + 1],
                               .rstd = a->activations[row->output + 2]};
}

static part_linear forward_linear(const block_forward_args *a, const block_forward_row *row)
{
    return (part_linear){.layer = layer_of(&a->shape, row),
                         .x = forward_read(a, row->input),
                         .weight = a->parameters[row->weight],
                         .bias = a->parameters[row->weight + 1],
                         .residual = forward_read(a, row->residual),
                         .y = forward_written(a, row->output),
                         .pre = forward_written(a, row->pre)};
}

static attention_forward_args forward_attention(const block_forward_args *a,
                                                const block_layout *l)
{
    attention_memory memory = attention_in(a->activations, &a->shape, a->dtype, l);
    return (attention_forward_args){.shape = attention_of(&a->shape, l), .dtype = a->dtype,
                                    .q = memory.q, .k = memory.k, .v = memory.v,
                                    .out = memory.out, .lse = a->activations[BLOCK_LSE],
                                    .qkv_strides = strides_of(&a->shape, l, 3),
                                    .out_strides = strides_of(&a->shape, l, 1)};
}

part_args block_forward_describe(const block_forward_args *a, int index, const block_layout *l)
{
    const block_forward_row *row = &block_forward_rows[index];
    part_args part = {.kind = row->kind, .dtype = a->dtype};
    if (row->kind == PART_NORM)
        part.as.norm = forward_norm(a, row);
    else if (row->kind == PART_ATTENTION)
        part.as.attention = forward_attention(a, l);
    else if (part_moves_heads(row->kind))
        part.as.heads = heads_of(&a->shape, a->dtype, l, a->activations, row->kind,
                                 row->kind == PART_SPLIT ? 3 : 1);
    else {
        part.as.linear = forward_linear(a, row);
        part.with_bias = 1;
        part.with_gelu = row->pre != BLOCK_NOTHING;
        part.with_residual = row->residual != BLOCK_NOTHING;
    }
    return part;
}

/* ---- backward ----------------------------------------------------------------------- */

/* The layer whose GELU gave the value; NULL where none did. */
static const block_forward_row *gelu_before(block_value value)
{
    for (int i = 0; i < BLOCK_FORWARD_PARTS; i++) {
        const block_forward_row *row = &block_forward_rows[i];
        if (row->kind == PART_LINEAR && row->output == value && row->pre != BLOCK_NOTHING)
            return row;
    }
    return NULL;
}

/* What the value is added to as a residual; BLOCK_NOTHING if to none. */
static block_value sum_with(block_value value)
{
    for (int i = 0; i < BLOCK_FORWARD_PARTS; i++) {
        const block_forward_row *row = &block_forward_rows[i];
        if (row->kind == PART_LINEAR && row->residual == value) return row->output;
    }
    return BLOCK_NOTHING;
}

/* Where the gradient of a layer's product is: of GELU's input, if there is one. */
static block_value product_of(const block_forward_row *row)
{
    return row->pre == BLOCK_NOTHING ? row->output : row->pre;
}

static const void *backward_read(const block_backward_args *a, block_value value)
{
    return value == BLOCK_X ? a->x : a->activations[value];
}

static const void *gradient_read(const block_backward_args *a, block_value value)
{
    if (value == BLOCK_NOTHING) return NULL;
    return value == BLOCK_Y ? a->y_gradient : a->gradients[value];
}

static void *gradient_written(const block_backward_args *a, block_value value)
{
    return value == BLOCK_X ? a->x_gradient : a->gradients[value];
}

static part_input_gradient input_gradient(const block_backward_args *a,
                                          const block_forward_row *row)
{
    const block_forward_row *gelu = gelu_before(row->input);
    part_input_gradient p = {.layer = layer_of(&a->shape, row),
                             .y_gradient = gradient_read(a, product_of(row)),
                             .weight = a->parameters[row->weight]};
    p.x_gradient = gradient_written(a, gelu ? gelu->pre : row->input);
    if (gelu) {
        p.pre = a->activations[gelu->pre];
        p.pre_bias_gradient = a->parameter_gradients[gelu->weight + 1];
    }
    return p;
}

/* Whether the bias's gradient is left to the weight's part: GELU's own has it. */
static int has_own_bias(const block_forward_row *row)
{
    return row->pre == BLOCK_NOTHING;
}

static part_weight_gradient weight_gradient(const block_backward_args *a,
                                            const block_forward_row *row)
{
    void *bias = has_own_bias(row) ? a->parameter_gradients[row->weight + 1] : NULL;
    return (part_weight_gradient){.layer = layer_of(&a->shape, row),
                                  .x = backward_read(a, row->input),
                                  .y_gradient = gradient_read(a, product_of(row)),
                                  .weight_gradient = a->parameter_gradients[row->weight],
                                  .bias_gradient = bias};
}

static norm_backward_args norm_gradient(const block_backward_args *a,
                                        const block_forward_row *row)
{
    return (norm_backward_args){.shape = norm_of(&a->shape), .kind = NORM_LAYER, .dtype = a->dtype,
                                .x = backward_read(a, row->input),
                                .weight = a->parameters[row->weight],
                                .dy = a->gradients[row->output],
                                .dsum = gradient_read(a, sum_with(row->input)),
                                .mean = a->activations[row->output + 1],
                                .rstd = a->activations[row->output + 2],
                                .dx = gradient_written(a, row->input),
                                .dweight = a->parameter_gradients[row->weight],
                                .dbias = a->parameter_gradients[row->weight + 1]};
}

static attention_backward_args attention_gradient(const block_backward_args *a,
                                                  const block_layout *l)
{
    attention_memory act = attention_in(a->activations, &a->shape, a->dtype, l);
    attention_memory grad = attention_in(a->gradients, &a->shape, a->dtype, l);
    return (attention_backward_args){.shape = attention_of(&a->shape, l), .dtype = a->dtype,
                                     .q = act.q, .k = act.k, .v = act.v, .out = act.out,
                                     .dout = grad.out, .lse = a->activations[BLOCK_LSE],
                                     .dq = grad.q, .dk = grad.k, .dv = grad.v,
                                     .qkv_strides = strides_of(&a->shape, l, 3),
                                     .out_strides = strides_of(&a->shape, l, 1)};
}

part_args block_backward_describe(const block_backward_args *a, int index, const block_layout *l)
{
    const block_backward_row *row = &block_backward_rows[index];
    const block_forward_row *of = &block_forward_rows[row->of];
    part_args part = {.kind = row->kind, .dtype = a->dtype};
    if (row->kind == PART_INPUT_GRADIENT) {
        part.as.input_gradient = input_gradient(a, of);
        part.with_gelu = gelu_before(of->input) != NULL;
    } else if (row->kind == PART_WEIGHT_GRADIENT) {
        part.as.weight_gradient = weight_gradient(a, of);
        part.with_bias = has_own_bias(of);
    } else if (row->kind == PART_NORM_GRADIENT) {
        part.as.norm_gradient = norm_gradient(a, of);
        part.with_residual = sum_with(of->input) != BLOCK_NOTHING;
    } else if (row->kind == PART_ATTENTION_GRADIENT)
        part.as.attention_gradient = attention_gradient(a, l);
    else
        part.as.heads = heads_of(&a->shape, a->dtype, l, a->gradients, row->kind,
                                 row->kind == PART_MERGE ? 3 : 1);
    return part;
}

/* ---- what parts write ------------------------------------------------------------- */

enum { Q_K_V = 1u << BLOCK_Q | 1u << BLOCK_K | 1u << BLOCK_V };

/* A value's bit, where it is an activation. */
static unsigned bit_of(block_value value)
{
    return value < BLOCK_ACTIVATIONS ? 1u << value : 0;
}

block_outputs block_forward_outputs(int part, int in_place)
{
    const block_forward_row *row = &block_forward_rows[part];
    block_outputs set = {.activations = bit_of(row->output), .y = row->output == BLOCK_Y};
    if (row->kind == PART_NORM)
        set.activations |= 1u << (row->output + 1) | 1u << (row->output + 2);
    else if (row->kind == PART_LINEAR)
        set.activations |= bit_of(row->pre);
    else if (row->kind == PART_SPLIT)
        set.activations = Q_K_V;
    else if (row->kind == PART_ATTENTION)
        set.activations = 1u << (in_place ? BLOCK_MERGED : BLOCK_ATTENTION) | 1u << BLOCK_LSE;
    return set;
}

block_outputs block_backward_outputs(int part, int in_place)
{
    const block_backward_row *row = &block_backward_rows[part];
    const block_forward_row *of = &block_forward_rows[row->of], *gelu = gelu_before(of->input);
    unsigned weight = 1u << of->weight, bias = weight << 1;
    block_outputs set = {0, 0, 0, 0, 0};
    if (row->kind == PART_INPUT_GRADIENT) {
        set.gradients = bit_of(gelu ? gelu->pre : of->input);
        set.parameter_gradients = gelu ? 2u << gelu->weight : 0;
    } else if (row->kind == PART_WEIGHT_GRADIENT)
        set.parameter_gradients = has_own_bias(of) ? weight | bias : weight;
    else if (row->kind == PART_NORM_GRADIENT) {
        set.gradients = bit_of(of->input);
        set.parameter_gradients = weight | bias;
        set.x_gradient = of->input == BLOCK_X;
    } else if (row->kind == PART_ATTENTION_GRADIENT)
        set.gradients = in_place ? 1u << BLOCK_QKV : Q_K_V;
    else
        set.gradients = bit_of(of->input); /* SPLIT gives ATTENTION's, MERGE QKV's */
    return set;
}

/* ---- work ------------------------------------------------------------------------- */

static uint64_t all_parameters(const block_shape *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        sum = saturating_sum(sum, (uint64_t)block_parameter_count(s, (block_parameter)i));
    return sum;
}

static part_args forward_part_of(const block_shape *shape, kernel_dtype dtype, int part)
{
    block_forward_args args = {.shape = *shape, .dtype = dtype, .part = part};
    block_layout layout = block_own_layout(shape);
    return block_forward_describe(&args, part, &layout);
}

static part_args backward_part_of(const block_shape *shape, kernel_dtype dtype, int part)
{
    block_backward_args args = {.shape = *shape, .dtype = dtype, .part = part};
    block_layout layout = block_own_layout(shape);
    return block_backward_describe(&args, part, &layout);
}

typedef part_args part_of_shape(const block_shape *shape, kernel_dtype dtype, int part);

/* A part's, or all of them. */
static uint64_t flops_of(const block_shape *shape, int part, int parts, part_of_shape *part_of)
{
    uint64_t sum = 0;
    if (!block_is_valid(shape)) return 0;
    for (int i = 0; i < parts; i++)
        if (part == BLOCK_WHOLE || part == i) {
            part_args one = part_of(shape, KERNEL_F32, i);
            sum = saturating_sum(sum, part_flops(&one));
        }
    return sum;
}

uint64_t block_forward_flops(const block_shape *shape, int part)
{
    return flops_of(shape, part, BLOCK_FORWARD_PARTS, forward_part_of);
}

uint64_t block_backward_flops(const block_shape *shape, int part)
{
    return flops_of(shape, part, BLOCK_BACKWARD_PARTS, backward_part_of);
}

/* So many rows of a token's width, and the parameters so many times. */
static uint64_t whole_bytes(const block_shape *s, kernel_dtype dtype, uint64_t rows,
                            uint64_t parameters)
{
    uint64_t widths = saturating_product(rows, (uint64_t)s->width);
    uint64_t sum = saturating_sum(saturating_product((uint64_t)rows_of(s), widths),
                                  saturating_product(parameters, all_parameters(s)));
    return saturating_product(sum, kernel_dtype_bytes(dtype));
}

uint64_t block_forward_bytes(const block_shape *shape, kernel_dtype dtype, int part)
{
    if (!block_is_valid(shape) || part >= BLOCK_FORWARD_PARTS) return 0;
    if (part == BLOCK_WHOLE) return whole_bytes(shape, dtype, 2, 1);
    part_args one = forward_part_of(shape, dtype, part);
    return part_bytes(&one);
}

uint64_t block_backward_bytes(const block_shape *shape, kernel_dtype dtype, int part)
{
    if (!block_is_valid(shape) || part >= BLOCK_BACKWARD_PARTS) return 0;
    if (part == BLOCK_WHOLE) return whole_bytes(shape, dtype, 3, 2);
    part_args one = backward_part_of(shape, dtype, part);
    return part_bytes(&one);
}
