/*
 * block.c - the transformer block on the host: the operation's formulas and two
 * variants. The oracle is in block_reference.c.
 *
 * 1. unfused  naive parts: norms and attention of that name, one dot product a
 *             result in the linear layers.
 * 2. best     the best parts of this machine: tiled attention, tiled products.
 *
 * Both are bound by the products' arithmetic. One thread.
 */
#include "../block.h"

#include <string.h>

#include "../attention.h"
#include "../norm.h"
#include "linear.h"
#include "saturating.h"

/* ---- counts ---------------------------------------------------------------------- */

static int is_valid(const block_shape *s)
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

int64_t block_parameter_count(const block_shape *shape, block_parameter which)
{
    int64_t w = shape->width, h = shape->hidden;
    if (!is_valid(shape)) return 0;
    switch ((int)which) {
    case BLOCK_QKV_WEIGHT: return count_of(count_of(3, w), w);
    case BLOCK_QKV_BIAS: return count_of(3, w);
    case BLOCK_PROJECTION_WEIGHT: return count_of(w, w);
    case BLOCK_UP_WEIGHT:
    case BLOCK_DOWN_WEIGHT: return count_of(h, w);
    case BLOCK_UP_BIAS: return h;
    default: return w;
    }
}

/* Room for a head_dim that is padded as block.h says. */
static int64_t head_room(const block_shape *s)
{
    int64_t dim = s->width / s->heads;
    return dim <= 64 ? 64 : dim <= 128 ? 128 : dim;
}

int64_t block_activation_count(const block_shape *shape, block_activation which)
{
    if (!is_valid(shape)) return 0;
    int64_t n = rows_of(shape);
    switch ((int)which) {
    case BLOCK_MEAN1:
    case BLOCK_RSTD1:
    case BLOCK_MEAN2:
    case BLOCK_RSTD2: return n;
    case BLOCK_LSE: return count_of(n, shape->heads);
    case BLOCK_QKV: return count_of(n, count_of(3, shape->width));
    case BLOCK_Q:
    case BLOCK_K:
    case BLOCK_V:
    case BLOCK_ATTENTION: return count_of(n, count_of(shape->heads, head_room(shape)));
    case BLOCK_PRE:
    case BLOCK_HIDDEN: return count_of(n, shape->hidden);
    default: return count_of(n, shape->width);
    }
}

static int is_statistic(block_activation which)
{
    return which == BLOCK_MEAN1 || which == BLOCK_RSTD1 || which == BLOCK_MEAN2 ||
           which == BLOCK_RSTD2 || which == BLOCK_LSE;
}

int64_t block_gradient_count(const block_shape *shape, block_activation which)
{
    int has_none = is_statistic(which) || which == BLOCK_HIDDEN;
    return has_none ? 0 : block_activation_count(shape, which);
}

kernel_dtype block_activation_dtype(block_activation which, kernel_dtype dtype)
{
    return is_statistic(which) ? KERNEL_F32 : dtype;
}

const char *block_forward_part_name(int part)
{
    static const char *const names[BLOCK_FORWARD_PARTS] = {
        "norm1", "qkv", "split", "attention", "merge", "projection", "norm2", "up", "down"};
    return part >= 0 && part < BLOCK_FORWARD_PARTS ? names[part] : "whole";
}

const char *block_backward_part_name(int part)
{
    static const char *const names[BLOCK_BACKWARD_PARTS] = {
        "down_input",       "down_weight", "up_input",  "up_weight", "norm2",
        "projection_input", "projection_weight", "split", "attention", "merge",
        "qkv_input",        "qkv_weight",  "norm1"};
    return part >= 0 && part < BLOCK_BACKWARD_PARTS ? names[part] : "whole";
}

/* ---- work ------------------------------------------------------------------------- */

static attention_shape attention_of(const block_shape *s)
{
    return (attention_shape){s->batch, s->heads, s->tokens, s->width / s->heads, 1};
}

static norm_shape norm_of(const block_shape *s)
{
    return (norm_shape){rows_of(s), s->width};
}

static uint64_t product_flops(const block_shape *s, int64_t in, int64_t out)
{
    uint64_t weights = saturating_product((uint64_t)in, (uint64_t)out);
    return saturating_product(saturating_product(2, weights), (uint64_t)rows_of(s));
}

/* Sums of parts for BLOCK_WHOLE. */
typedef uint64_t part_flops(const block_shape *s, int part);

static uint64_t flops_of(const block_shape *s, int part, int parts, part_flops *of_part)
{
    uint64_t sum = 0;
    if (!is_valid(s)) return 0;
    if (part != BLOCK_WHOLE) return of_part(s, part);
    for (int i = 0; i < parts; i++) sum = saturating_sum(sum, of_part(s, i));
    return sum;
}

static uint64_t forward_part_flops(const block_shape *s, int part)
{
    attention_shape attention = attention_of(s);
    int64_t w = s->width, h = s->hidden;
    switch (part) {
    case BLOCK_FORWARD_QKV: return product_flops(s, w, count_of(3, w));
    case BLOCK_FORWARD_ATTENTION: return attention_forward_flops(&attention);
    case BLOCK_FORWARD_PROJECTION: return product_flops(s, w, w);
    case BLOCK_FORWARD_UP:
    case BLOCK_FORWARD_DOWN: return product_flops(s, w, h);
    default: return 0;
    }
}

static uint64_t backward_part_flops(const block_shape *s, int part)
{
    attention_shape attention = attention_of(s);
    int64_t w = s->width, h = s->hidden;
    switch (part) {
    case BLOCK_BACKWARD_DOWN_INPUT:
    case BLOCK_BACKWARD_DOWN_WEIGHT:
    case BLOCK_BACKWARD_UP_INPUT:
    case BLOCK_BACKWARD_UP_WEIGHT: return product_flops(s, w, h);
    case BLOCK_BACKWARD_PROJECTION_INPUT:
    case BLOCK_BACKWARD_PROJECTION_WEIGHT: return product_flops(s, w, w);
    case BLOCK_BACKWARD_ATTENTION: return attention_backward_flops(&attention);
    case BLOCK_BACKWARD_QKV_INPUT:
    case BLOCK_BACKWARD_QKV_WEIGHT: return product_flops(s, w, count_of(3, w));
    default: return 0;
    }
}

uint64_t block_forward_flops(const block_shape *shape, int part)
{
    return flops_of(shape, part, BLOCK_FORWARD_PARTS, forward_part_flops);
}

uint64_t block_backward_flops(const block_shape *shape, int part)
{
    return flops_of(shape, part, BLOCK_BACKWARD_PARTS, backward_part_flops);
}

/* rows * row_elements + elements, in bytes. */
static uint64_t traffic(const block_shape *s, kernel_dtype dtype, uint64_t row_elements,
                        uint64_t elements)
{
    uint64_t of_rows = saturating_product((uint64_t)rows_of(s), row_elements);
    return saturating_product(saturating_sum(of_rows, elements), kernel_dtype_bytes(dtype));
}

/* Rows of a layer's input and output, and its weight; `more` elements a row and
 * `vectors` besides: biases, a residual. */
static uint64_t layer_traffic(const block_shape *s, kernel_dtype dtype, int64_t in, int64_t out,
                              int64_t more, int64_t vectors)
{
    uint64_t weight = saturating_product((uint64_t)in, (uint64_t)out);
    return traffic(s, dtype, (uint64_t)(in + out + more),
                   saturating_sum(weight, (uint64_t)vectors));
}

static uint64_t all_parameters(const block_shape *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        sum = saturating_sum(sum, (uint64_t)block_parameter_count(s, (block_parameter)i));
    return sum;
}

uint64_t block_forward_bytes(const block_shape *shape, kernel_dtype dtype, int part)
{
    if (!is_valid(shape)) return 0;
    attention_shape attention = attention_of(shape);
    norm_shape norm = norm_of(shape);
    int64_t w = shape->width, h = shape->hidden;
    switch (part) {
    case BLOCK_FORWARD_NORM1:
    case BLOCK_FORWARD_NORM2: return norm_forward_bytes(&norm, NORM_LAYER, dtype, 0);
    case BLOCK_FORWARD_QKV: return layer_traffic(shape, dtype, w, 3 * w, 0, 3 * w);
    case BLOCK_FORWARD_SPLIT: return traffic(shape, dtype, (uint64_t)(6 * w), 0);
    case BLOCK_FORWARD_ATTENTION: return attention_forward_bytes(&attention, dtype);
    case BLOCK_FORWARD_MERGE: return traffic(shape, dtype, (uint64_t)(2 * w), 0);
    case BLOCK_FORWARD_PROJECTION: return layer_traffic(shape, dtype, w, w, w, w);
    case BLOCK_FORWARD_UP: return layer_traffic(shape, dtype, w, h, 0, h);
    case BLOCK_FORWARD_DOWN: return layer_traffic(shape, dtype, h, w, w, w);
    default: return traffic(shape, dtype, (uint64_t)(2 * w), all_parameters(shape));
    }
}

uint64_t block_backward_bytes(const block_shape *shape, kernel_dtype dtype, int part)
{
    if (!is_valid(shape)) return 0;
    attention_shape attention = attention_of(shape);
    norm_shape norm = norm_of(shape);
    int64_t w = shape->width, h = shape->hidden;
    switch (part) {
    case BLOCK_BACKWARD_DOWN_INPUT: return layer_traffic(shape, dtype, w, h, h, h);
    case BLOCK_BACKWARD_DOWN_WEIGHT: return layer_traffic(shape, dtype, h, w, 0, w);
    case BLOCK_BACKWARD_UP_INPUT:
    case BLOCK_BACKWARD_UP_WEIGHT: return layer_traffic(shape, dtype, w, h, 0, 0);
    case BLOCK_BACKWARD_NORM1:
    case BLOCK_BACKWARD_NORM2: return norm_backward_bytes(&norm, NORM_LAYER, dtype, 1);
    case BLOCK_BACKWARD_PROJECTION_INPUT: return layer_traffic(shape, dtype, w, w, 0, 0);
    case BLOCK_BACKWARD_PROJECTION_WEIGHT: return layer_traffic(shape, dtype, w, w, 0, w);
    case BLOCK_BACKWARD_SPLIT: return traffic(shape, dtype, (uint64_t)(2 * w), 0);
    case BLOCK_BACKWARD_ATTENTION: return attention_backward_bytes(&attention, dtype);
    case BLOCK_BACKWARD_MERGE: return traffic(shape, dtype, (uint64_t)(6 * w), 0);
    case BLOCK_BACKWARD_QKV_INPUT: return layer_traffic(shape, dtype, w, 3 * w, 0, 0);
    case BLOCK_BACKWARD_QKV_WEIGHT: return layer_traffic(shape, dtype, w, 3 * w, 0, 3 * w);
    default:
        return traffic(shape, dtype, (uint64_t)(3 * w),
                       saturating_product(2, all_parameters(shape)));
    }
}

/* ---- variants ----------------------------------------------------------------------- */

/* Which variant of the other operations, and which product. */
typedef struct parts_choice {
    const char *name;
    linear_product *multiply;
} parts_choice;

static const parts_choice unfused_parts = {"naive", linear_naive};
static const parts_choice best_parts = {"tiled", linear_tiled};

/* The row of that name, else the table's last, its best. */
static const kernel_variant *choose(kernel_table table, const parts_choice *parts)
{
    for (size_t i = 0; i < table.count; i++)
        if (!strcmp(table.rows[i].name, parts->name)) return &table.rows[i];
    return &table.rows[table.count - 1];
}

static size_t workspace_of(kernel_table table, const parts_choice *parts, const void *args)
{
    const kernel_variant *variant = choose(table, parts);
    return variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int takes(const block_shape *s, kernel_dtype dtype, int part, int parts)
{
    return is_valid(s) && part >= BLOCK_WHOLE && part < parts &&
           (dtype == KERNEL_F32 || dtype == KERNEL_BF16);
}

/* The panels, and the largest result of a layer. */
static size_t layer_workspace_bytes(const block_shape *s)
{
    int64_t widest = s->hidden > 3 * s->width ? s->hidden : 3 * s->width;
    int64_t lines = rows_of(s) > s->width ? rows_of(s) : s->width;
    uint64_t floats = saturating_product((uint64_t)lines, (uint64_t)widest);
    uint64_t bytes = saturating_product(saturating_sum(floats, LINEAR_PANEL_FLOATS), sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

static linear_layer layer_of(const block_shape *s, kernel_dtype dtype, linear_product *multiply,
                             int64_t in, int64_t out, void *workspace)
{
    float *panels = workspace;
    return (linear_layer){multiply, dtype, rows_of(s), in, out, panels,
                          panels + LINEAR_PANEL_FLOATS};
}

/* Rows [.., parts, heads, head_dim] to (or from) the heads of one part. */
static void move_part(const block_shape *s, kernel_dtype dtype, int part, int parts, void *rows,
                      void *heads, int to_rows)
{
    size_t bytes = (size_t)(s->width / s->heads) * kernel_dtype_bytes(dtype);
    char *by_head = heads, *by_row = rows;
    for (int64_t i = 0; i < s->batch * s->heads; i++)
        for (int64_t t = 0; t < s->tokens; t++) {
            int64_t token = i / s->heads * s->tokens + t;
            int64_t line = (token * parts + part) * s->heads + i % s->heads;
            char *in_row = by_row + (size_t)line * bytes;
            char *in_head = by_head + (size_t)(i * s->tokens + t) * bytes;
            memcpy(to_rows ? in_row : in_head, to_rows ? in_head : in_row, bytes);
        }
}

static norm_forward_args norm_args(const block_forward_args *a, const void *x,
                                   block_parameter weight, block_activation y)
{
    return (norm_forward_args){.shape = norm_of(&a->shape), .kind = NORM_LAYER, .dtype = a->dtype,
                               .x = x, .weight = a->parameters[weight],
                               .bias = a->parameters[weight + 1], .y = a->activations[y],
                               .mean = a->activations[y + 1], .rstd = a->activations[y + 2]};
}

static attention_forward_args attention_args(const block_forward_args *a)
{
    void *const *act = a->activations;
    return (attention_forward_args){.shape = attention_of(&a->shape),
                                    .dtype = a->dtype,
                                    .q = act[BLOCK_Q],
                                    .k = act[BLOCK_K],
                                    .v = act[BLOCK_V],
                                    .out = act[BLOCK_ATTENTION],
                                    .lse = act[BLOCK_LSE]};
}

static int run_norm(const block_forward_args *a, const parts_choice *parts, void *workspace,
                    const void *x, block_parameter weight, block_activation y)
{
    norm_forward_args args = norm_args(a, x, weight, y);
    return choose(norm_forward_cpu, parts)->run(&args, workspace, NULL, NULL);
}

static int run_attention(const block_forward_args *a, const parts_choice *parts, void *workspace)
{
    attention_forward_args args = attention_args(a);
    return choose(attention_forward_cpu, parts)->run(&args, workspace, NULL, NULL);
}

static int run_up(const block_forward_args *a, const linear_layer *l)
{
    void *const *act = a->activations;
    void *pre = act[BLOCK_PRE] ? act[BLOCK_PRE] : act[BLOCK_HIDDEN];
    linear_layer_forward(l, act[BLOCK_NORM2], a->parameters[BLOCK_UP_WEIGHT],
                         a->parameters[BLOCK_UP_BIAS], NULL, pre);
    linear_gelu(pre, a->dtype, l->tokens * l->out, act[BLOCK_HIDDEN]);
    return KERNEL_OK;
}

static int run_forward_part(const block_forward_args *a, int part, const parts_choice *parts,
                            void *workspace)
{
    const block_shape *s = &a->shape;
    void *const *act = a->activations;
    const void *const *p = a->parameters;
    int64_t w = s->width, h = s->hidden;
    linear_layer qkv = layer_of(s, a->dtype, parts->multiply, w, 3 * w, workspace);
    linear_layer projection = layer_of(s, a->dtype, parts->multiply, w, w, workspace);
    linear_layer up = layer_of(s, a->dtype, parts->multiply, w, h, workspace);
    linear_layer down = layer_of(s, a->dtype, parts->multiply, h, w, workspace);
    switch (part) {
    case BLOCK_FORWARD_NORM1:
        return run_norm(a, parts, workspace, a->x, BLOCK_NORM1_WEIGHT, BLOCK_NORM1);
    case BLOCK_FORWARD_QKV:
        linear_layer_forward(&qkv, act[BLOCK_NORM1], p[BLOCK_QKV_WEIGHT], p[BLOCK_QKV_BIAS], NULL,
                             act[BLOCK_QKV]);
        break;
    case BLOCK_FORWARD_SPLIT:
        for (int i = 0; i < 3; i++)
            move_part(s, a->dtype, i, 3, act[BLOCK_QKV], act[BLOCK_Q + i], 0);
        break;
    case BLOCK_FORWARD_ATTENTION: return run_attention(a, parts, workspace);
    case BLOCK_FORWARD_MERGE:
        move_part(s, a->dtype, 0, 1, act[BLOCK_MERGED], act[BLOCK_ATTENTION], 1);
        break;
    case BLOCK_FORWARD_PROJECTION:
        linear_layer_forward(&projection, act[BLOCK_MERGED], p[BLOCK_PROJECTION_WEIGHT],
                             p[BLOCK_PROJECTION_BIAS], a->x, act[BLOCK_MIDDLE]);
        break;
    case BLOCK_FORWARD_NORM2:
        return run_norm(a, parts, workspace, act[BLOCK_MIDDLE], BLOCK_NORM2_WEIGHT, BLOCK_NORM2);
    case BLOCK_FORWARD_UP: return run_up(a, &up);
    default:
        linear_layer_forward(&down, act[BLOCK_HIDDEN], p[BLOCK_DOWN_WEIGHT], p[BLOCK_DOWN_BIAS],
                             act[BLOCK_MIDDLE], a->y);
        break;
    }
    return KERNEL_OK;
}

static size_t forward_workspace_bytes(const block_forward_args *a, const parts_choice *parts)
{
    if (!takes(&a->shape, a->dtype, a->part, BLOCK_FORWARD_PARTS)) return 0;
    norm_forward_args norm = norm_args(a, a->x, BLOCK_NORM1_WEIGHT, BLOCK_NORM1);
    attention_forward_args attention = attention_args(a);
    return larger(layer_workspace_bytes(&a->shape),
                  larger(workspace_of(norm_forward_cpu, parts, &norm),
                         workspace_of(attention_forward_cpu, parts, &attention)));
}

static int run_forward(const block_forward_args *a, const parts_choice *parts, void *workspace)
{
    if (!takes(&a->shape, a->dtype, a->part, BLOCK_FORWARD_PARTS)) return KERNEL_ERROR_ARGUMENT;
    int error = KERNEL_OK;
    for (int i = 0; i < BLOCK_FORWARD_PARTS && !error; i++)
        if (a->part == BLOCK_WHOLE || a->part == i)
            error = run_forward_part(a, i, parts, workspace);
    return error;
}

/* ---- backward ------------------------------------------------------------------------ */

static norm_backward_args norm_backward(const block_backward_args *a, const void *x,
                                        block_parameter weight, block_activation y,
                                        const void *sum_gradient, void *x_gradient)
{
    return (norm_backward_args){.shape = norm_of(&a->shape), .kind = NORM_LAYER, .dtype = a->dtype,
                                .x = x, .weight = a->parameters[weight], .dy = a->gradients[y],
                                .dsum = sum_gradient, .mean = a->activations[y + 1],
                                .rstd = a->activations[y + 2], .dx = x_gradient,
                                .dweight = a->parameter_gradients[weight],
                                .dbias = a->parameter_gradients[weight + 1]};
}

static attention_backward_args attention_backward(const block_backward_args *a)
{
    void *const *act = a->activations, *const *grad = a->gradients;
    return (attention_backward_args){.shape = attention_of(&a->shape),
                                     .dtype = a->dtype,
                                     .q = act[BLOCK_Q],
                                     .k = act[BLOCK_K],
                                     .v = act[BLOCK_V],
                                     .out = act[BLOCK_ATTENTION],
                                     .dout = grad[BLOCK_ATTENTION],
                                     .lse = act[BLOCK_LSE],
                                     .dq = grad[BLOCK_Q],
                                     .dk = grad[BLOCK_K],
                                     .dv = grad[BLOCK_V]};
}

static int run_norm_backward(const norm_backward_args *args, const parts_choice *parts,
                             void *workspace)
{
    return choose(norm_backward_cpu, parts)->run(args, workspace, NULL, NULL);
}

static int run_attention_backward(const block_backward_args *a, const parts_choice *parts,
                                  void *workspace)
{
    attention_backward_args args = attention_backward(a);
    return choose(attention_backward_cpu, parts)->run(&args, workspace, NULL, NULL);
}

/* Weight and bias, which follows it. */
static int run_weight_gradient(const block_backward_args *a, const linear_layer *l, const void *x,
                               const void *y_gradient, block_parameter weight)
{
    linear_layer_weight_gradient(l, x, y_gradient, a->parameter_gradients[weight]);
    linear_layer_bias_gradient(l, y_gradient, a->parameter_gradients[weight + 1]);
    return KERNEL_OK;
}

static int run_input_gradient(const block_backward_args *a, const linear_layer *l,
                              const void *y_gradient, block_parameter weight, const void *pre,
                              void *x_gradient)
{
    linear_layer_input_gradient(l, y_gradient, a->parameters[weight], pre, x_gradient);
    return KERNEL_OK;
}

static int run_down_input(const block_backward_args *a, const linear_layer *down,
                          const linear_layer *up)
{
    void *pre_gradient = a->gradients[BLOCK_PRE];
    run_input_gradient(a, down, a->y_gradient, BLOCK_DOWN_WEIGHT, a->activations[BLOCK_PRE],
                       pre_gradient);
    linear_layer_bias_gradient(up, pre_gradient, a->parameter_gradients[BLOCK_UP_BIAS]);
    return KERNEL_OK;
}

static int run_feed_forward_part(const block_backward_args *a, int part, const parts_choice *parts,
                                 void *workspace)
{
    const block_shape *s = &a->shape;
    void *const *act = a->activations, *const *grad = a->gradients;
    linear_layer up = layer_of(s, a->dtype, parts->multiply, s->width, s->hidden, workspace);
    linear_layer down = layer_of(s, a->dtype, parts->multiply, s->hidden, s->width, workspace);
    norm_backward_args norm2 = norm_backward(a, act[BLOCK_MIDDLE], BLOCK_NORM2_WEIGHT, BLOCK_NORM2,
                                             a->y_gradient, grad[BLOCK_MIDDLE]);
    switch (part) {
    case BLOCK_BACKWARD_DOWN_INPUT: return run_down_input(a, &down, &up);
    case BLOCK_BACKWARD_DOWN_WEIGHT:
        return run_weight_gradient(a, &down, act[BLOCK_HIDDEN], a->y_gradient, BLOCK_DOWN_WEIGHT);
    case BLOCK_BACKWARD_UP_INPUT:
        return run_input_gradient(a, &up, grad[BLOCK_PRE], BLOCK_UP_WEIGHT, NULL,
                                  grad[BLOCK_NORM2]);
    case BLOCK_BACKWARD_UP_WEIGHT:
        linear_layer_weight_gradient(&up, act[BLOCK_NORM2], grad[BLOCK_PRE],
                                     a->parameter_gradients[BLOCK_UP_WEIGHT]);
        return KERNEL_OK;
    default: return run_norm_backward(&norm2, parts, workspace);
    }
}

static int run_backward_part(const block_backward_args *a, int part, const parts_choice *parts,
                             void *workspace)
{
    const block_shape *s = &a->shape;
    void *const *act = a->activations, *const *grad = a->gradients;
    int64_t w = s->width;
    linear_layer qkv = layer_of(s, a->dtype, parts->multiply, w, 3 * w, workspace);
    linear_layer projection = layer_of(s, a->dtype, parts->multiply, w, w, workspace);
    norm_backward_args norm1 = norm_backward(a, a->x, BLOCK_NORM1_WEIGHT, BLOCK_NORM1,
                                             grad[BLOCK_MIDDLE], a->x_gradient);
    switch (part) {
    case BLOCK_BACKWARD_PROJECTION_INPUT:
        return run_input_gradient(a, &projection, grad[BLOCK_MIDDLE], BLOCK_PROJECTION_WEIGHT,
                                  NULL, grad[BLOCK_MERGED]);
    case BLOCK_BACKWARD_PROJECTION_WEIGHT:
        return run_weight_gradient(a, &projection, act[BLOCK_MERGED], grad[BLOCK_MIDDLE],
                                   BLOCK_PROJECTION_WEIGHT);
    case BLOCK_BACKWARD_SPLIT:
        move_part(s, a->dtype, 0, 1, grad[BLOCK_MERGED], grad[BLOCK_ATTENTION], 0);
        return KERNEL_OK;
    case BLOCK_BACKWARD_ATTENTION: return run_attention_backward(a, parts, workspace);
    case BLOCK_BACKWARD_MERGE:
        for (int i = 0; i < 3; i++)
            move_part(s, a->dtype, i, 3, grad[BLOCK_QKV], grad[BLOCK_Q + i], 1);
        return KERNEL_OK;
    case BLOCK_BACKWARD_QKV_INPUT:
        return run_input_gradient(a, &qkv, grad[BLOCK_QKV], BLOCK_QKV_WEIGHT, NULL,
                                  grad[BLOCK_NORM1]);
    case BLOCK_BACKWARD_QKV_WEIGHT:
        return run_weight_gradient(a, &qkv, act[BLOCK_NORM1], grad[BLOCK_QKV], BLOCK_QKV_WEIGHT);
    case BLOCK_BACKWARD_NORM1: return run_norm_backward(&norm1, parts, workspace);
    default: return run_feed_forward_part(a, part, parts, workspace);
    }
}

static size_t backward_workspace_bytes(const block_backward_args *a, const parts_choice *parts)
{
    if (!takes(&a->shape, a->dtype, a->part, BLOCK_BACKWARD_PARTS)) return 0;
    norm_backward_args norm = norm_backward(a, a->x, BLOCK_NORM1_WEIGHT, BLOCK_NORM1, a->x,
                                            a->x_gradient);
    attention_backward_args attention = attention_backward(a);
    return larger(layer_workspace_bytes(&a->shape),
                  larger(workspace_of(norm_backward_cpu, parts, &norm),
                         workspace_of(attention_backward_cpu, parts, &attention)));
}

static int run_backward(const block_backward_args *a, const parts_choice *parts, void *workspace)
{
    if (!takes(&a->shape, a->dtype, a->part, BLOCK_BACKWARD_PARTS)) return KERNEL_ERROR_ARGUMENT;
    int error = KERNEL_OK;
    for (int i = 0; i < BLOCK_BACKWARD_PARTS && !error; i++)
        if (a->part == BLOCK_WHOLE || a->part == i)
            error = run_backward_part(a, i, parts, workspace);
    return error;
}

/* ---- tables ---------------------------------------------------------------------------- */

static size_t unfused_forward_workspace(const void *args)
{
    return forward_workspace_bytes(args, &unfused_parts);
}

static size_t best_forward_workspace(const void *args)
{
    return forward_workspace_bytes(args, &best_parts);
}

static size_t unfused_backward_workspace(const void *args)
{
    return backward_workspace_bytes(args, &unfused_parts);
}

static size_t best_backward_workspace(const void *args)
{
    return backward_workspace_bytes(args, &best_parts);
}

static int run_unfused_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_forward(args, &unfused_parts, workspace);
}

static int run_best_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_forward(args, &best_parts, workspace);
}

static int run_unfused_backward(const void *args, void *workspace, void *state,
                                kernel_stream stream)
{
    (void)state, (void)stream;
    return run_backward(args, &unfused_parts, workspace);
}

static int run_best_backward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_backward(args, &best_parts, workspace);
}

enum { CPU_DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_BF16) };

static const char unfused_note[] = "naive norms, attention and products";
static const char best_note[] = "tiled attention and products";

static const kernel_variant forward_rows[] = {
    {.name = "unfused", .note = unfused_note, .dtypes = CPU_DTYPES, .deterministic = 1,
     .workspace_bytes = unfused_forward_workspace, .run = run_unfused_forward},
    {.name = "best", .note = best_note, .dtypes = CPU_DTYPES, .deterministic = 1,
     .workspace_bytes = best_forward_workspace, .run = run_best_forward},
};

static const kernel_variant backward_rows[] = {
    {.name = "unfused", .note = unfused_note, .dtypes = CPU_DTYPES, .deterministic = 1,
     .workspace_bytes = unfused_backward_workspace, .run = run_unfused_backward},
    {.name = "best", .note = best_note, .dtypes = CPU_DTYPES, .deterministic = 1,
     .workspace_bytes = best_backward_workspace, .run = run_best_backward},
};

const kernel_table block_forward_cpu = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table block_backward_cpu = {backward_rows,
                                         sizeof backward_rows / sizeof *backward_rows};
