/*
 * part.h - one part of a model's pass as data: which operation, on which sizes
 * and which memory. A transformer block (block.h) is a list of parts, and so is
 * what stands on blocks; variants of both backends run them one by one, and
 * their bytes, their operations and the suites' checks come from them.
 *
 * A new kind of part is a member of part_kind and of part_args.as: the switches
 * over kinds have no default, so the compiler names what has to know it.
 */
#ifndef KERNEL_PART_H
#define KERNEL_PART_H

#include "../attention/attention.h"
#include "../common/kernel.h"
#include "../norm/norm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum part_kind {
    PART_NORM,               /* layer normalization: norm.h's forward */
    PART_NORM_GRADIENT,      /* its backward */
    PART_LINEAR,             /* y = x weight^T + bias + residual, or GELU of x weight^T + bias */
    PART_INPUT_GRADIENT,     /* of a linear layer: of what it reads */
    PART_WEIGHT_GRADIENT,    /* of a linear layer: of its weight and its bias */
    PART_ATTENTION,          /* attention.h's forward */
    PART_ATTENTION_GRADIENT, /* its backward */
    PART_SPLIT,              /* rows of tokens to heads */
    PART_MERGE               /* heads to rows of tokens */
} part_kind;

/* Rows of `in` elements to rows of `out`; weights are [out, in]. */
typedef struct part_layer {
    int64_t rows, in, out;
} part_layer;

/* bias, residual and pre may be NULL: none, none, and GELU's input not kept. */
typedef struct part_linear {
    part_layer layer;
    const void *x, *weight, *bias, *residual;
    void *y, *pre;
} part_linear;

/* x_gradient = y_gradient weight; with GELU times gelu'(pre), which makes it the
 * gradient of pre, and its sum over the rows that of the bias in pre. */
typedef struct part_input_gradient {
    part_layer layer;
    const void *y_gradient, *weight, *pre;
    void *x_gradient, *pre_bias_gradient;
} part_input_gradient;

/* residual, [out, in], is added to weight_gradient and may be it; NULL: none. */
typedef struct part_weight_gradient {
    part_layer layer;
    const void *x, *y_gradient, *residual;
    void *weight_gradient, *bias_gradient; /* the latter NULL where not wanted */
} part_weight_gradient;

/* Rows [batch * tokens, parts, heads, head_dim], contiguous, and for each part
 * [batch, heads, tokens, padded_dim], padded_dim >= head_dim. Splitting fills
 * the padding with zeros. Either way the first part is multiplied by
 * first_factor. */
typedef struct part_heads {
    kernel_dtype dtype; /* f32, f16 or bf16 */
    int64_t batch, tokens, heads, head_dim, padded_dim;
    int parts; /* 1 or 3 */
    float first_factor;
    void *rows;
    void *heads_of[3]; /* by part */
    int splits;        /* rows to heads, else heads to rows */
} part_heads;

/* What is said by with_bias, with_gelu and with_residual does not depend on
 * pointers: bytes and operations are asked for before there is memory. */
typedef struct part_args {
    part_kind kind;
    kernel_dtype dtype;
    int with_bias;     /* of PART_LINEAR, and of PART_WEIGHT_GRADIENT its gradient */
    int with_gelu;     /* PART_LINEAR: y is GELU of it; PART_INPUT_GRADIENT: x was */
    int with_residual; /* added to y, in PART_NORM_GRADIENT to dx, or to weight_gradient */
    union {
        norm_forward_args norm;
        norm_backward_args norm_gradient;
        part_linear linear;
        part_input_gradient input_gradient;
        part_weight_gradient weight_gradient;
        attention_forward_args attention;
        attention_backward_args attention_gradient;
        part_heads heads; /* of PART_SPLIT and PART_MERGE */
    } as;
} part_args;

/* The sizes of one of the three kinds of a linear layer; NULL for another kind. */
const part_layer *part_layer_of(const part_args *part);

/* 1 for PART_SPLIT and PART_MERGE. */
int part_moves_heads(part_kind kind);

/* Operations of the products, 2 * rows * in * out a product and attention.h's;
 * 0 for norms, splits and merges. UINT64_MAX if the number does not fit. */
uint64_t part_flops(const part_args *part);

/* Everything that the part reads and writes, each operand once; attention's lse
 * is not counted. UINT64_MAX as above. */
uint64_t part_bytes(const part_args *part);

#ifdef __cplusplus
}
#endif
#endif
