/*
 * rope.h - rotary position embedding (Su et al., "RoFormer: Enhanced transformer
 * with rotary position embedding", 2021, equation 34). Each pair of elements i and
 * i + head_dim / 2 of a row is turned by an angle that grows with its token:
 *
 *     angle           = token * 10000^(-2 i / head_dim)       i < head_dim / 2
 *     out[i]          = in[i] * cos(angle) - in[i + half] * sin(angle)
 *     out[i + half]   = in[i] * sin(angle) + in[i + half] * cos(angle)
 *
 * The paper pairs neighbours instead: the same up to an order of the columns.
 * A rotation's gradient is the rotation back: backward turns by -angle.
 *
 * in and out are [batch, heads, tokens, head_dim], contiguous; they do not overlap.
 */
#ifndef ROPE_H
#define ROPE_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rope_shape {
    int64_t batch, heads, tokens, head_dim; /* each at least 1, head_dim even */
} rope_shape;

/* Elements of dtype. Forward: in is x, out its rotation. Backward: in is the
 * gradient in forward's out, out that in x. Angles are taken in double. */
typedef struct rope_args {
    rope_shape shape;
    kernel_dtype dtype;
    const void *in;
    void *out;
} rope_args;

/* Compulsory traffic of either pass: in read once, out written once. UINT64_MAX if
 * the number does not fit, 0 if the shape is not valid. */
uint64_t rope_bytes(const rope_shape *shape, kernel_dtype dtype);

/* Four products and two sums a pair: 3 operations an element; the angles are not
 * counted. UINT64_MAX and 0 as above. */
uint64_t rope_flops(const rope_shape *shape);

/* The oracle, in double precision, for one row of head_dim f32 elements: exactly
 * those that the variant under test got (kernel_to_f32), at position `token`. */
void rope_forward_reference(const rope_shape *shape, int64_t token, const float *x, double *out);
void rope_backward_reference(const rope_shape *shape, int64_t token, const float *dout,
                             double *dx);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row does not
 * list and for a shape that is not valid. Workspaces are aligned to 16 bytes. There
 * is none for CUDA. */
extern const kernel_table rope_forward_cpu;
extern const kernel_table rope_backward_cpu;

#ifdef __cplusplus
}
#endif
#endif
