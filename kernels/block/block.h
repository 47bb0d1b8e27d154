/*
 * block.h - one transformer block as in GPT-2 (Radford et al., "Language
 * models are unsupervised multitask learners", 2019: layer normalization moved
 * in front), forward and backward:
 *
 *     middle = x + projection(attention(qkv(norm1(x))))
 *     y      = middle + down(gelu(up(norm2(middle))))
 *
 * Attention is causal; qkv, projection, up and down are linear layers with
 * bias; norm1 and norm2 are layer normalizations; GELU is ffn.h's.
 *
 * Layout: tokens are rows, [batch * tokens, width], row major; weights are
 * [out, in]. A row of qkv is q, k and v behind each other, and each of them its
 * heads behind each other, [3, heads, head_dim].
 */
#ifndef BLOCK_H
#define BLOCK_H

#include "../common/kernel.h"
#include "../part/part.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct block_shape {
    int64_t batch, tokens, width, heads, hidden; /* each at least 1; heads divides width */
} block_shape;

typedef enum block_parameter {
    BLOCK_NORM1_WEIGHT, /* [width] */
    BLOCK_NORM1_BIAS,
    BLOCK_QKV_WEIGHT, /* [3 width, width] */
    BLOCK_QKV_BIAS,
    BLOCK_PROJECTION_WEIGHT, /* [width, width] */
    BLOCK_PROJECTION_BIAS,
    BLOCK_NORM2_WEIGHT, /* [width] */
    BLOCK_NORM2_BIAS,
    BLOCK_UP_WEIGHT, /* [hidden, width] */
    BLOCK_UP_BIAS,
    BLOCK_DOWN_WEIGHT, /* [width, hidden] */
    BLOCK_DOWN_BIAS,
    BLOCK_PARAMETERS
} block_parameter;

/* What lies between x and y, in the order of its coming about. Rows are tokens
 * but for Q, K, V and ATTENTION, [batch, heads, tokens, head_dim], where a
 * variant may pad head_dim with zeros up to the next of 64 and 128; and for
 * LSE, [batch, heads, tokens]. MEAN1, RSTD1, MEAN2, RSTD2 (one a token) and LSE
 * are f32, the others are of the block's dtype. */
typedef enum block_activation {
    BLOCK_NORM1,
    BLOCK_MEAN1,
    BLOCK_RSTD1,
    BLOCK_QKV,
    BLOCK_Q,
    BLOCK_K,
    BLOCK_V,
    BLOCK_ATTENTION,
    BLOCK_LSE,
    BLOCK_MERGED, /* attention's result as rows */
    BLOCK_MIDDLE,
    BLOCK_NORM2,
    BLOCK_MEAN2,
    BLOCK_RSTD2,
    BLOCK_PRE, /* GELU's input, [batch * tokens, hidden] */
    BLOCK_HIDDEN,
    BLOCK_ACTIVATIONS
} block_activation;

/* The parts of a pass, in their order. Variant `best` does each with as few
 * launches as it can; run one by one, the parts launch what the whole does.
 *
 * A variant may do without SPLIT and MERGE for a shape and dtype: attention then
 * reads q, k and v out of QKV and writes MERGED, backward reads MERGED's gradient
 * and writes QKV's. Its `unsupported` says so of these parts, and BLOCK_WHOLE
 * has Q, K, V and ATTENTION neither read nor written, activations and gradients:
 * they may be NULL. */
typedef enum block_forward_part {
    BLOCK_FORWARD_NORM1,
    BLOCK_FORWARD_QKV,
    BLOCK_FORWARD_SPLIT, /* qkv to q, k, v by heads */
    BLOCK_FORWARD_ATTENTION,
    BLOCK_FORWARD_MERGE,      /* heads to rows */
    BLOCK_FORWARD_PROJECTION, /* with the residual */
    BLOCK_FORWARD_NORM2,
    BLOCK_FORWARD_UP,   /* with GELU */
    BLOCK_FORWARD_DOWN, /* with the residual */
    BLOCK_FORWARD_PARTS
} block_forward_part;

/* "input": the gradient of what a layer reads. "weight": of its weight and of
 * its bias, where the input's part has not done that. */
typedef enum block_backward_part {
    BLOCK_BACKWARD_DOWN_INPUT, /* with GELU's gradient and the bias of up */
    BLOCK_BACKWARD_DOWN_WEIGHT,
    BLOCK_BACKWARD_UP_INPUT,
    BLOCK_BACKWARD_UP_WEIGHT,
    BLOCK_BACKWARD_NORM2, /* with the residual's gradient */
    BLOCK_BACKWARD_PROJECTION_INPUT,
    BLOCK_BACKWARD_PROJECTION_WEIGHT,
    BLOCK_BACKWARD_SPLIT,
    BLOCK_BACKWARD_ATTENTION,
    BLOCK_BACKWARD_MERGE,
    BLOCK_BACKWARD_QKV_INPUT,
    BLOCK_BACKWARD_QKV_WEIGHT,
    BLOCK_BACKWARD_NORM1, /* with the residual's gradient */
    BLOCK_BACKWARD_PARTS
} block_backward_part;

enum { BLOCK_WHOLE = -1 }; /* as a part: all of them */

/* ---- the block as data --------------------------------------------------------- */

/* What a part reads or writes: a block_activation, or one of these. */
typedef int block_value;
enum { BLOCK_X = BLOCK_ACTIVATIONS, BLOCK_Y, BLOCK_NOTHING };

/* A forward part: output = part of (input). Its sizes are those of the values.
 * Of a PART_NORM, mean and rstd follow the output. A PART_SPLIT's output is the
 * first of three. */
typedef struct block_forward_row {
    const char *name; /* as in the CSV */
    part_kind kind;
    block_value input, output;
    block_parameter weight; /* of norms and layers; its bias follows */
    block_value residual;   /* of layers: added to the output, or BLOCK_NOTHING */
    block_value pre;        /* of layers: what GELU gets, BLOCK_NOTHING without GELU */
} block_forward_row;

/* A backward part: which of the gradients of which forward part. All else
 * follows from that part: gradients have their values' places, a norm's includes
 * the one that came past it by the residual, a layer behind GELU hands its
 * gradient to GELU's input and to the bias in that. */
typedef struct block_backward_row {
    const char *name;
    part_kind kind;
    block_forward_part of;
} block_backward_row;

extern const block_forward_row block_forward_rows[BLOCK_FORWARD_PARTS];
extern const block_backward_row block_backward_rows[BLOCK_BACKWARD_PARTS];

/* How attention finds its heads. in_place: in the rows of QKV, and its results
 * go to those of MERGED; there are no parts that split and merge. Else by
 * themselves, head_dim wide: the block's own or padded. */
typedef struct block_layout {
    int in_place;
    int64_t head_dim;
} block_layout;

/* By themselves, at the block's own width. */
block_layout block_own_layout(const block_shape *shape);

/* Memory of the counts below, device memory aligned to 16 bytes. activations
 * are written, and are what a backward pass by the variant of the same name
 * reads; activations[BLOCK_PRE] is NULL where none will follow, and then not
 * kept. part: BLOCK_WHOLE or a block_forward_part, whose inputs are there. */
typedef struct block_forward_args {
    block_shape shape;
    kernel_dtype dtype;
    int part;
    const void *x;
    const void *parameters[BLOCK_PARAMETERS];
    void *activations[BLOCK_ACTIVATIONS];
    void *y;
} block_forward_args;

/* gradients: of the activation of the same index, written; NULL for BLOCK_HIDDEN
 * and for the f32 ones, which have none. x_gradient and parameter_gradients
 * have the shapes of x and the parameters and are overwritten. */
typedef struct block_backward_args {
    block_shape shape;
    kernel_dtype dtype;
    int part;
    const void *x, *y_gradient;
    const void *parameters[BLOCK_PARAMETERS];
    void *activations[BLOCK_ACTIVATIONS]; /* read */
    void *gradients[BLOCK_ACTIVATIONS];
    void *parameter_gradients[BLOCK_PARAMETERS];
    void *x_gradient;
} block_backward_args;

/* A part, 0 <= index, with the memory that args name, any of it NULL: bytes and
 * operations do not depend on it. The shape is valid. */
part_args block_forward_describe(const block_forward_args *args, int index,
                                 const block_layout *layout);
part_args block_backward_describe(const block_backward_args *args, int index,
                                  const block_layout *layout);

/* What a part writes, as sets of bits by index. */
typedef struct block_outputs {
    unsigned activations, gradients, parameter_gradients;
    int y, x_gradient; /* flags */
} block_outputs;

block_outputs block_forward_outputs(int part, int in_place);
block_outputs block_backward_outputs(int part, int in_place);

/* Each dimension at least 1, heads divide width, and rows can be counted. */
int block_is_valid(const block_shape *shape);

/* Elements; 0 for a shape that is not valid. block_gradient_count is 0 where
 * there is no gradient. */
int64_t block_parameter_count(const block_shape *shape, block_parameter which);
int64_t block_activation_count(const block_shape *shape, block_activation which);
int64_t block_gradient_count(const block_shape *shape, block_activation which);
kernel_dtype block_activation_dtype(block_activation which, kernel_dtype dtype);

/* "qkv", "up_weight": as in the CSV. "whole" for BLOCK_WHOLE. */
const char *block_forward_part_name(int part);
const char *block_backward_part_name(int part);

/* Operations of a part's products, as linear layers' and attention.h's:
 * 2 * tokens * in * out a product, 4 * tokens^2 * width / 2 a sequence for
 * causal attention forward, 2.5 times that backward; 0 for norms, splits and
 * merges. The whole: the sum, forward 2 n (4 width^2 + 2 width hidden) + 2 n
 * tokens width with n = batch * tokens, backward twice the products and 2.5
 * times the attention. UINT64_MAX if the number does not fit, 0 for a shape
 * that is not valid. */
uint64_t block_forward_flops(const block_shape *shape, int part);
uint64_t block_backward_flops(const block_shape *shape, int part);

/* Compulsory traffic, each operand once. Of a part: everything it reads and
 * writes. Of the whole: forward x, y and the parameters; backward x,
 * y_gradient, x_gradient, the parameters and their gradients: what lies between
 * need not leave the chip. UINT64_MAX and 0 as above. */
uint64_t block_forward_bytes(const block_shape *shape, kernel_dtype dtype, int part);
uint64_t block_backward_bytes(const block_shape *shape, kernel_dtype dtype, int part);

/* The oracle: the parts' references (norm.h, attention.h, ffn.h) composed, for
 * everything; what one hands to the next is rounded to f32, which is all that
 * they take. For small shapes: it costs a block's operations in double, some
 * 1e9 a second. x [batch * tokens, width] and the parameters are f32 copies of
 * what the variant got. KERNEL_OK or KERNEL_ERROR_MEMORY. */
int block_forward_reference(const block_shape *shape, const float *const *parameters,
                            const float *x, double *y);
int block_backward_reference(const block_shape *shape, const float *const *parameters,
                             const float *x, const float *y_gradient, double *x_gradient,
                             double *const *parameter_gradients);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row does
 * not list and for a shape or part that is not valid. A CUDA variant's state
 * belongs to the shape, dtype, part and NULLs that it was prepared with, and
 * that of `graph` to every pointer in them. Workspaces are aligned to 16
 * bytes. */
extern const kernel_table block_forward_cpu;
extern const kernel_table block_forward_cuda;
extern const kernel_table block_backward_cpu;
extern const kernel_table block_backward_cuda;

#ifdef __cplusplus
}
#endif
#endif
