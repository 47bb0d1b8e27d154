/*
 * part.c - a part's bytes and operations, and parts on the host.
 */
#include "part.h"

#include <string.h>

#include "run.h"
#include "../common/saturating.h"

/* ---- sizes ------------------------------------------------------------------------ */

const part_layer *part_layer_of(const part_args *part)
{
    switch (part->kind) {
    case PART_LINEAR: return &part->as.linear.layer;
    case PART_INPUT_GRADIENT: return &part->as.input_gradient.layer;
    case PART_WEIGHT_GRADIENT: return &part->as.weight_gradient.layer;
    case PART_NORM:
    case PART_NORM_GRADIENT:
    case PART_ATTENTION:
    case PART_ATTENTION_GRADIENT:
    case PART_SPLIT:
    case PART_MERGE: break;
    }
    return NULL;
}

int part_moves_heads(part_kind kind)
{
    return kind == PART_SPLIT || kind == PART_MERGE;
}

static uint64_t product_flops(const part_layer *l)
{
    uint64_t weights = saturating_product((uint64_t)l->in, (uint64_t)l->out);
    return saturating_product(saturating_product(2, weights), (uint64_t)l->rows);
}

uint64_t part_flops(const part_args *part)
{
    switch (part->kind) {
    case PART_LINEAR:
    case PART_INPUT_GRADIENT:
    case PART_WEIGHT_GRADIENT: return product_flops(part_layer_of(part));
    case PART_ATTENTION: return attention_forward_flops(&part->as.attention.shape);
    case PART_ATTENTION_GRADIENT:
        return attention_backward_flops(&part->as.attention_gradient.shape);
    case PART_NORM:
    case PART_NORM_GRADIENT:
    case PART_SPLIT:
    case PART_MERGE: break;
    }
    return 0;
}

/* rows * row_elements + elements, in bytes. */
static uint64_t traffic(kernel_dtype dtype, int64_t rows, uint64_t row_elements, uint64_t elements)
{
    uint64_t of_rows = saturating_product((uint64_t)rows, row_elements);
    return saturating_product(saturating_sum(of_rows, elements), kernel_dtype_bytes(dtype));
}

/* Rows of a layer's input and output, and its weight; `more` elements a row and
 * `vector` besides: a residual, a bias. */
static uint64_t layer_bytes(const part_args *part, int64_t more, int64_t vector)
{
    const part_layer *l = part_layer_of(part);
    uint64_t in = (uint64_t)l->in, out = (uint64_t)l->out;
    return traffic(part->dtype, l->rows, saturating_sum(saturating_sum(in, out), (uint64_t)more),
                   saturating_sum(saturating_product(in, out), (uint64_t)vector));
}

static uint64_t weight_gradient_bytes(const part_args *part)
{
    const part_layer *l = part_layer_of(part);
    uint64_t residual = part->with_residual ? traffic(part->dtype, l->out, (uint64_t)l->in, 0) : 0;
    return saturating_sum(layer_bytes(part, 0, part->with_bias ? l->out : 0), residual);
}

static uint64_t heads_bytes(const part_heads *h)
{
    uint64_t row = saturating_product((uint64_t)h->heads, (uint64_t)h->head_dim);
    return traffic(h->dtype, h->batch * h->tokens,
                   saturating_product(2 * (uint64_t)h->parts, row), 0);
}

uint64_t part_bytes(const part_args *part)
{
    const part_layer *l = part_layer_of(part);
    switch (part->kind) {
    case PART_NORM: return norm_forward_bytes(&part->as.norm.shape, NORM_LAYER, part->dtype, 0);
    case PART_NORM_GRADIENT:
        return norm_backward_bytes(&part->as.norm_gradient.shape, NORM_LAYER, part->dtype,
                                   part->with_residual);
    case PART_LINEAR:
        return layer_bytes(part, part->with_residual ? l->out : 0, part->with_bias ? l->out : 0);
    case PART_INPUT_GRADIENT:
        return layer_bytes(part, part->with_gelu ? l->in : 0, part->with_gelu ? l->in : 0);
    case PART_WEIGHT_GRADIENT: return weight_gradient_bytes(part);
    case PART_ATTENTION: return attention_forward_bytes(&part->as.attention.shape, part->dtype);
    case PART_ATTENTION_GRADIENT:
        return attention_backward_bytes(&part->as.attention_gradient.shape, part->dtype);
    case PART_SPLIT:
    case PART_MERGE: return heads_bytes(&part->as.heads);
    }
    return 0;
}

/* ---- running ---------------------------------------------------------------------- */

const part_way_cpu part_unfused_cpu = {"naive", "naive", &linear_naive};
const part_way_cpu part_best_cpu = {"vectorized", "tiled", &linear_tiled};
const part_way_cpu part_simd_cpu = {"simd", "simd", &linear_simd};
const part_way_cpu part_threads_cpu = {"threads", "threads", &linear_threads};
const part_way_cpu part_blas_cpu = {"threads", "threads", &linear_blas};

/* The variant of another operation that does the part; NULL where none does. */
static const kernel_variant *variant_of(const part_args *part, const part_way_cpu *way)
{
    switch (part->kind) {
    case PART_NORM: return kernel_find(&norm_forward_cpu, way->norm);
    case PART_NORM_GRADIENT: return kernel_find(&norm_backward_cpu, way->norm);
    case PART_ATTENTION: return kernel_find(&attention_forward_cpu, way->attention);
    case PART_ATTENTION_GRADIENT: return kernel_find(&attention_backward_cpu, way->attention);
    case PART_LINEAR:
    case PART_INPUT_GRADIENT:
    case PART_WEIGHT_GRADIENT:
    case PART_SPLIT:
    case PART_MERGE: break;
    }
    return NULL;
}

static uint64_t scratch_floats(const part_layer *l)
{
    return linear_layer_scratch_floats(l->rows, l->in, l->out);
}

/* The scratch, and the largest of a layer's results and of its operands' sizes. */
static size_t layer_workspace_bytes(const part_layer *l)
{
    uint64_t rows = (uint64_t)l->rows, in = (uint64_t)l->in, out = (uint64_t)l->out;
    uint64_t wide = in > out ? in : out, narrow = in > out ? out : in;
    uint64_t floats = saturating_product(rows > narrow ? rows : narrow, wide);
    uint64_t bytes = saturating_product(saturating_sum(floats, scratch_floats(l)), sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

size_t part_workspace_bytes_cpu(const part_args *part, const part_way_cpu *way)
{
    const kernel_variant *variant = variant_of(part, way);
    const part_layer *layer = part_layer_of(part);
    if (layer) return layer_workspace_bytes(layer);
    return variant && variant->workspace_bytes ? variant->workspace_bytes(&part->as) : 0;
}

static linear_layer layer_in(const part_args *part, const part_way_cpu *way, void *workspace)
{
    const part_layer *l = part_layer_of(part);
    float *scratch = workspace;
    return (linear_layer){way->products, part->dtype, l->rows, l->in, l->out, scratch,
                          scratch + scratch_floats(l)};
}

static int run_linear(const part_args *part, const part_way_cpu *way, void *workspace)
{
    const part_linear *p = &part->as.linear;
    linear_layer l = layer_in(part, way, workspace);
    void *product = part->with_gelu && p->pre ? p->pre : p->y;
    linear_layer_forward(&l, p->x, p->weight, p->bias, p->residual, product);
    if (part->with_gelu) linear_gelu(way->products, product, part->dtype, l.tokens * l.out, p->y);
    return KERNEL_OK;
}

static int run_input_gradient(const part_args *part, const part_way_cpu *way, void *workspace)
{
    const part_input_gradient *p = &part->as.input_gradient;
    linear_layer l = layer_in(part, way, workspace);
    linear_layer before = l; /* whose output is this layer's input */
    before.out = l.in;
    linear_layer_input_gradient(&l, p->y_gradient, p->weight, p->pre, p->x_gradient);
    if (part->with_gelu) linear_layer_bias_gradient(&before, p->x_gradient, p->pre_bias_gradient);
    return KERNEL_OK;
}

static int run_weight_gradient(const part_args *part, const part_way_cpu *way, void *workspace)
{
    const part_weight_gradient *p = &part->as.weight_gradient;
    linear_layer l = layer_in(part, way, workspace);
    linear_layer_weight_gradient(&l, p->x, p->y_gradient, p->residual, p->weight_gradient);
    if (part->with_bias) linear_layer_bias_gradient(&l, p->y_gradient, p->bias_gradient);
    return KERNEL_OK;
}

/* Rows [.., parts, heads, head_dim] to (or from) the heads of one part. */
static void move_heads_of(const part_heads *h, int part)
{
    size_t bytes = (size_t)h->head_dim * kernel_dtype_bytes(h->dtype);
    char *by_head = h->heads_of[part], *by_row = h->rows;
    for (int64_t i = 0; i < h->batch * h->heads; i++)
        for (int64_t t = 0; t < h->tokens; t++) {
            int64_t token = i / h->heads * h->tokens + t;
            int64_t line = (token * h->parts + part) * h->heads + i % h->heads;
            char *in_row = by_row + (size_t)line * bytes;
            char *in_head = by_head + (size_t)(i * h->tokens + t) * bytes;
            memcpy(h->splits ? in_head : in_row, h->splits ? in_row : in_head, bytes);
        }
}

static int move_heads(const part_heads *h)
{
    if (h->padded_dim != h->head_dim) return KERNEL_ERROR_ARGUMENT;
    for (int part = 0; part < h->parts; part++) move_heads_of(h, part);
    return KERNEL_OK;
}

static int run_variant(const kernel_variant *variant, const void *args, void *workspace)
{
    return variant ? variant->run(args, workspace, NULL, NULL) : KERNEL_ERROR_ARGUMENT;
}

int part_run_cpu(const part_args *part, const part_way_cpu *way, void *workspace)
{
    switch (part->kind) {
    case PART_LINEAR: return run_linear(part, way, workspace);
    case PART_INPUT_GRADIENT: return run_input_gradient(part, way, workspace);
    case PART_WEIGHT_GRADIENT: return run_weight_gradient(part, way, workspace);
    case PART_SPLIT:
    case PART_MERGE: return move_heads(&part->as.heads);
    case PART_NORM:
    case PART_NORM_GRADIENT:
    case PART_ATTENTION:
    case PART_ATTENTION_GRADIENT:
        return run_variant(variant_of(part, way), &part->as, workspace);
    }
    return KERNEL_ERROR_ARGUMENT;
}
