/*
 * norm.h - layer normalization (Ba, Kiros and Hinton, "Layer normalization",
 * 2016) and root mean square normalization (Zhang and Sennrich, "Root mean
 * square layer normalization", 2019), with or without the residual addition
 * in front of them fused in. For each row x of `width` elements:
 *
 *     layernorm   y = (x - mean) * rstd * weight + bias
 *                 mean = sum(x) / width
 *                 rstd = 1 / sqrt(sum((x - mean)^2) / width + NORM_EPSILON)
 *     rmsnorm     the same with mean = 0 and no bias
 *
 * Fused with a residual: sum = x + residual is normalized, and stored too,
 * because it is the next residual. Rows are contiguous: [rows, width].
 */
#ifndef NORM_H
#define NORM_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NORM_EPSILON 1e-5f

typedef enum norm_kind { NORM_LAYER, NORM_RMS } norm_kind;

typedef struct norm_shape {
    int64_t rows, width; /* each at least 1 */
} norm_shape;

/* Elements of dtype everywhere except mean and rstd. Device memory is aligned
 * to 16 bytes, as any allocation is; rows are wherever width puts them.
 *
 * residual: [rows, width], or NULL: not fused. With it, sum [rows, width] gets
 * x + residual rounded to dtype, and that rounded sum is what is normalized:
 * the same bits as an addition followed by a norm, and what backward reads.
 * bias: [width]; mean: f32 [rows]; both NULL for NORM_RMS, which uses neither.
 * rstd: f32 [rows]. mean and rstd are outputs, for backward. */
typedef struct norm_forward_args {
    norm_shape shape;
    norm_kind kind;
    kernel_dtype dtype;
    const void *x, *residual, *weight, *bias;
    void *y, *sum;
    float *mean, *rstd;
} norm_forward_args;

/* x is what forward normalized: its x, or its sum where the residual was
 * fused. mean (NULL for NORM_RMS) and rstd are forward's.
 *
 * With xhat = (x - mean) * rstd and g = dy * weight, for each row:
 *
 *     dx = rstd * (g - sum(g) / width - xhat * sum(g * xhat) / width)
 *
 * without the sum(g) term for NORM_RMS (the derivative of the formulas above;
 * epsilon is constant). dweight = sum over the rows of dy * xhat and dbias
 * (NULL for NORM_RMS) = sum over the rows of dy, both [width].
 *
 * dsum: NULL, or [rows, width]: the gradient that reaches forward's sum by the
 * residual path. It is added to dx, which is then the gradient of both x and
 * residual. */
typedef struct norm_backward_args {
    norm_shape shape;
    norm_kind kind;
    kernel_dtype dtype;
    const void *x, *weight, *dy, *dsum;
    const float *mean, *rstd;
    void *dx, *dweight, *dbias;
} norm_backward_args;

/* Compulsory traffic, each input read once and each output written once, with
 * n = rows * width, s bytes an element and 4 bytes for mean and for rstd:
 *
 *     forward    2 n s (x, y), fused 4 n s (residual, sum)
 *                + layernorm: 2 width s + 8 rows; rmsnorm: width s + 4 rows
 *     backward   3 n s (x, dy, dx), fused 4 n s (dsum)
 *                + layernorm: 3 width s + 8 rows; rmsnorm: 2 width s + 4 rows
 *
 * fused: 0 or 1. UINT64_MAX if the number does not fit, 0 if a dimension is
 * not positive. */
uint64_t norm_forward_bytes(const norm_shape *shape, norm_kind kind, kernel_dtype dtype, int fused);
uint64_t norm_backward_bytes(const norm_shape *shape, norm_kind kind, kernel_dtype dtype,
                             int fused);

/* Additions and multiplications of the formulas above, per element; what is
 * done once a row is not counted:
 *
 *     forward    layernorm 7: sum 1, x - mean 1, square and sum 2, scale 3
 *                rmsnorm 4: square and sum 2, scale 2
 *     backward   layernorm 13: xhat 2, g 1, sums 3, dx 4, dweight 2, dbias 1
 *                rmsnorm 9: xhat 1, g 1, sum 2, dx 3, dweight 2
 *     fused      1 more
 *
 * UINT64_MAX and 0 as above. */
uint64_t norm_forward_flops(const norm_shape *shape, norm_kind kind, int fused);
uint64_t norm_backward_flops(const norm_shape *shape, norm_kind kind, int fused);

/* The oracles, in double precision, for any rows that the caller puts side by
 * side in f32 (exactly the values that the variant under test got): rows do
 * not depend on each other. Pointers that do not apply are NULL as above, and
 * so may be each output that is not wanted. */
void norm_forward_reference(const norm_shape *shape, norm_kind kind, const float *x,
                            const float *residual, const float *weight, const float *bias,
                            double *y, double *sum, double *mean, double *rstd);

/* dweight and dbias are added to, so that a caller can feed a large matrix
 * piece by piece; the caller zeroes them first. */
void norm_backward_reference(const norm_shape *shape, norm_kind kind, const float *x,
                             const float *weight, const float *mean, const float *rstd,
                             const float *dy, const float *dsum, double *dx, double *dweight,
                             double *dbias);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row
 * does not list, for a dimension that is not positive and for more rows than
 * a grid holds. Workspaces are aligned to 16 bytes. */
extern const kernel_table norm_forward_cpu;
extern const kernel_table norm_backward_cpu;
extern const kernel_table norm_forward_cuda;
extern const kernel_table norm_backward_cuda;

#ifdef __cplusplus
}
#endif
#endif
