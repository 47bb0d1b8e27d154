/*
 * ffn.h - a transformer's feed-forward network, forward and backward:
 *
 *     pre    = x w1^T + b1          [tokens, hidden]
 *     hidden = gelu(pre)
 *     y      = hidden w2^T + b2     [tokens, width]
 *
 * GELU in its tanh form (Hendrycks and Gimpel, "Gaussian error linear units",
 * 2016): gelu(x) = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
 *
 * Layout: row major and contiguous; weights are [out, in], as in PyTorch's
 * Linear: w1 [hidden, width], w2 [width, hidden].
 */
#ifndef FFN_H
#define FFN_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ffn_shape {
    int64_t tokens, width, hidden; /* each at least 1; hidden is 4 * width in GPT-2 */
} ffn_shape;

/* A factor alone in 16 bytes: cuBLASLt refuses one that does not start with them. */
typedef struct ffn_scale {
    float factor, unused[3];
} ffn_scale;

/* What an element of e4m3 stands for: itself times its tensor's factor. hidden is
 * multiplied by per_hidden, 1 / hidden, and rounded to e4m3 (to nearest even, what is
 * beyond 448 to 448). */
typedef struct ffn_scales {
    ffn_scale x, w1, hidden, per_hidden, w2;
} ffn_scales;

/* All of dtype; device memory is aligned to 16 bytes. pre and hidden are what a
 * backward pass needs: both NULL (inference: neither is kept) or both
 * [tokens, hidden], outputs.
 *
 * e4m3: x, w1, w2 and what the second product takes of hidden are e4m3; b1, b2 and y are
 * bf16. The factors, in the variants' memory, are known before the pass, as delayed scaling
 * knows them from the passes before: the largest of hidden is not looked for. Rounding
 * hidden belongs to the pass; x comes rounded, as a norm in front of it can write it. Nothing
 * is kept: pre and hidden are NULL. */
typedef struct ffn_forward_args {
    ffn_shape shape;
    kernel_dtype dtype;
    const void *x, *w1, *b1, *w2, *b2;
    void *y;
    void *pre, *hidden;
    const ffn_scales *scales; /* of e4m3, else NULL */
} ffn_forward_args;

/* pre and hidden as the forward pass left them; dy [tokens, width] is the
 * gradient of y. The gradients of x and of every parameter, of the shapes of
 * what they belong to, are overwritten, not added to. */
typedef struct ffn_backward_args {
    ffn_shape shape;
    kernel_dtype dtype;
    const void *x, *w1, *w2, *pre, *hidden, *dy;
    void *dx, *dw1, *db1, *dw2, *db2;
} ffn_backward_args;

/* Operations of the products: two of tokens * width * hidden multiplications
 * and as many additions forward, 4 * tokens * width * hidden (16 * tokens *
 * width^2 for hidden = 4 * width); each has two gradients, so backward is twice
 * that. Biases and GELU are not counted. UINT64_MAX if the number does not fit,
 * 0 if a dimension is not positive. */
uint64_t ffn_forward_flops(const ffn_shape *shape);
uint64_t ffn_backward_flops(const ffn_shape *shape);

/* Compulsory traffic, each operand once. Forward: x, the parameters and y, and
 * if `keeps`, pre and hidden, without e4m3's five scales. Backward: x, dy, pre,
 * hidden, the two weights and the five gradients. UINT64_MAX and 0 as above. */
uint64_t ffn_forward_bytes(const ffn_shape *shape, kernel_dtype dtype, int keeps);
uint64_t ffn_backward_bytes(const ffn_shape *shape, kernel_dtype dtype);

/* ---- the oracle, in double precision, for chosen rows and hidden units ---- */

/* f32 copies of exactly what the variant under test got. */
typedef struct ffn_parameters {
    const float *w1, *b1, *w2, *b2;
} ffn_parameters;

/* GELU and its derivative, as above. */
double ffn_gelu(double x);
double ffn_gelu_gradient(double x);

/* x: [rows, width], any rows of the input. y: [rows, width]; pre and hidden:
 * [rows, shape->hidden]. shape->tokens is not used. 4 * rows * width * hidden
 * operations; allocates nothing. */
void ffn_forward_reference(const ffn_shape *shape, const ffn_parameters *parameters,
                           const float *x, int64_t rows, double *y, double *pre, double *hidden);

/* The gradients of x and of pre for any rows: x and dy: [rows, width]; dx:
 * [rows, width]; dpre: [rows, shape->hidden]. pre is recomputed from x. 6 *
 * rows * width * hidden operations; allocates nothing. */
void ffn_backward_reference_rows(const ffn_shape *shape, const ffn_parameters *parameters,
                                 const float *x, const float *dy, int64_t rows, double *dx,
                                 double *dpre);

/* The gradients that belong to one hidden unit, from all tokens: x and dy are
 * [tokens, width]; dw1_row [width] is row `unit` of dw1, *db1 its bias's
 * gradient, dw2_column [width] column `unit` of dw2. 8 * tokens * width
 * operations; allocates nothing. */
void ffn_backward_reference_unit(const ffn_shape *shape, const ffn_parameters *parameters,
                                 const float *x, const float *dy, int64_t unit, double *dw1_row,
                                 double *db1, double *dw2_column);

/* db2 [width], from all tokens. */
void ffn_backward_reference_bias(const ffn_shape *shape, const float *dy, double *db2);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row
 * does not list, for a dimension that is not positive and for one of pre and
 * hidden without the other, or of e4m3 either or no scales. A CUDA variant's state belongs to the shape, the
 * dtype and the NULLs that it was prepared with. Workspaces are aligned to 16
 * bytes. */
extern const kernel_table ffn_forward_cpu;
extern const kernel_table ffn_forward_cuda;
extern const kernel_table ffn_backward_cpu;
extern const kernel_table ffn_backward_cuda;

#ifdef __cplusplus
}
#endif
#endif
