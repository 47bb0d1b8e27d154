/*
 * linear.h - matrix products on the host, for the operations made of them.
 *
 * Operands have any dtype of convert.h's f32 and bf16 and any strides, so that
 * a transposed operand is one with its strides exchanged; results are f32.
 */
#ifndef KERNEL_CPU_LINEAR_H
#define KERNEL_CPU_LINEAR_H

#include "../common/kernel.h"

/* Element (i, j) is at data + i * row_stride + j * column_stride, in elements. */
typedef struct linear_matrix {
    const void *data;
    kernel_dtype dtype; /* f32 or bf16 */
    int64_t row_stride, column_stride;
} linear_matrix;

/* c[m, n] = a[m, k] b[k, n]; c is contiguous. panels: LINEAR_PANEL_FLOATS
 * floats of scratch, aligned to 64 bytes or not. */
typedef void linear_product(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                            float *c, float *panels);

enum {
    LINEAR_PANEL_ROWS = 64,
    LINEAR_PANEL_COLUMNS = 512,
    LINEAR_PANEL_DEPTH = 256,
    LINEAR_PANEL_FLOATS = (LINEAR_PANEL_ROWS + LINEAR_PANEL_COLUMNS) * LINEAR_PANEL_DEPTH +
                          LINEAR_PANEL_ROWS * LINEAR_PANEL_COLUMNS
};

/* One dot product per result: element by element along both operands. */
linear_product linear_naive;

/* Panels of both operands packed as f32, results in register blocks. */
linear_product linear_tiled;

/* A row-major, contiguous [rows, columns] matrix, and the same transposed. */
linear_matrix linear_rows(const void *data, kernel_dtype dtype, int64_t columns);
linear_matrix linear_transposed(const void *data, kernel_dtype dtype, int64_t columns);

/* ---- linear layers: y = x weight^T + bias, weight [out, in] ------------------- */

/* product: room for the largest of tokens * in, tokens * out and out * in. */
typedef struct linear_layer {
    linear_product *multiply;
    kernel_dtype dtype;
    int64_t tokens, in, out;
    float *panels, *product;
} linear_layer;

/* bias [out] and residual [tokens, out] are added; NULL: none. */
void linear_layer_forward(const linear_layer *l, const void *x, const void *weight,
                          const void *bias, const void *residual, void *y);

/* The gradient of x; times gelu'(pre), if pre [tokens, in] is not NULL: then it
 * is that of the GELU's input that x came out of. */
void linear_layer_input_gradient(const linear_layer *l, const void *y_gradient, const void *weight,
                                 const void *pre, void *x_gradient);

/* residual [out, in] is added and may be weight_gradient; NULL: none. */
void linear_layer_weight_gradient(const linear_layer *l, const void *x, const void *y_gradient,
                                  const void *residual, void *weight_gradient);

/* y_gradient summed over the tokens. */
void linear_layer_bias_gradient(const linear_layer *l, const void *y_gradient,
                                void *bias_gradient);

/* hidden = gelu(pre), count elements of dtype; they may be the same memory.
 * GELU's formula is ffn.h's. */
void linear_gelu(const void *pre, kernel_dtype dtype, int64_t count, void *hidden);

#endif
