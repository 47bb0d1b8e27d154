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

/* c[m, n] = a[m, k] b[k, n]; c is contiguous. scratch: linear_scratch_floats
 * floats, aligned to 64 bytes or not. */
typedef void linear_product(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                            float *c, float *scratch);

/* For any way; UINT64_MAX if the number does not fit. Of a layer: for the three
 * products of its forward and backward pass. */
uint64_t linear_scratch_floats(int64_t m, int64_t n, int64_t k);
uint64_t linear_layer_scratch_floats(int64_t tokens, int64_t in, int64_t out);

enum {
    LINEAR_PANEL_ROWS = 64,
    LINEAR_PANEL_COLUMNS = 512,
    LINEAR_PANEL_DEPTH = 256,
    LINEAR_PANEL_FLOATS = (LINEAR_PANEL_ROWS + LINEAR_PANEL_COLUMNS) * LINEAR_PANEL_DEPTH +
                          LINEAR_PANEL_ROWS * LINEAR_PANEL_COLUMNS
};

/* How products are taken, and what is done to each element besides. */
typedef struct linear_way {
    linear_product *multiply;
    int (*threads)(void); /* NULL: one */
    int vectors;          /* GELU by simd.h's functions instead of the C library's */
} linear_way;

extern const linear_way linear_naive;   /* one dot product per result */
extern const linear_way linear_tiled;   /* packed panels, register blocks */
extern const linear_way linear_simd;    /* the same with this processor's vectors */
extern const linear_way linear_threads; /* the same on all threads of pool.h */
extern const linear_way linear_blas;    /* cblas_sgemm, on all threads of pool.h */
extern const linear_way linear_blas_alone; /* on the calling thread, within a loop of pool.h;
                                              for linear_blas_threads() callers at a time */

/* For `unsupported` of variants that need linear_blas: why it is not there, or
 * NULL; whether the way is that one and not there. And what its products run on,
 * for tables; NULL where it is not there. */
const char *linear_has_no_blas(void);
int linear_is_missing(const linear_way *way);
int linear_blas_threads(void); /* 1 where the library takes one caller at a time */
const char *linear_blas_runs_on(void);

/* Whether a product takes so little time that waking another thread for it costs more. */
int linear_is_small(int64_t m, int64_t n, int64_t k);

/* A row-major, contiguous [rows, columns] matrix, and the same transposed. */
linear_matrix linear_rows(const void *data, kernel_dtype dtype, int64_t columns);
linear_matrix linear_transposed(const void *data, kernel_dtype dtype, int64_t columns);

/* ---- linear layers: y = x weight^T + bias, weight [out, in] ------------------- */

/* scratch: linear_layer_scratch_floats. product: room for the largest of tokens *
 * in, tokens * out and out * in. Results may be nothing that goes into a product. */
typedef struct linear_layer {
    const linear_way *way;
    kernel_dtype dtype;
    int64_t tokens, in, out;
    float *scratch, *product;
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
void linear_gelu(const linear_way *way, const void *pre, kernel_dtype dtype, int64_t count,
                 void *hidden);

#endif
