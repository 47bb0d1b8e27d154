/*
 * loss.h - cross-entropy of the softmax over logits against one target class
 * a row, the loss of a language model (Bishop, "Pattern recognition and
 * machine learning", 2006, equations 4.108 and 4.109):
 *
 *     lse  = log(sum(exp(logits)))
 *     loss = lse - logits[target]
 *     dlogits = (exp(logits - lse) - onehot(target)) * dloss
 *
 * for each row. The mean over the rows is the caller's: dloss = 1 / rows.
 *
 * Layout: logits and dlogits contiguous [rows, classes], so that rows of an
 * odd number of classes start at any element.
 */
#ifndef LOSS_H
#define LOSS_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loss_shape {
    int64_t rows, classes; /* each at least 1; classes at most INT32_MAX */
} loss_shape;

/* The arguments of all three passes. logits and dlogits hold elements of
 * dtype, do not overlap, and in device memory are aligned to 16 bytes.
 *
 *                       forward    backward   forward_backward
 *     logits, targets   in         in         in
 *     loss  f32 [rows]  out        -          out
 *     lse   f32 [rows]  out/NULL   in         out/NULL
 *     dloss f32 [rows]  -          in         in
 *     dlogits           -          out        out
 *
 * A target outside 0..classes-1 is an error and nothing is read through it.
 * CPU variants look at all targets first, write nothing and return
 * KERNEL_ERROR_INDEX. CUDA variants, whose run returns before the targets are
 * read, store KERNEL_ERROR_INDEX in *error (device memory, which the caller
 * zeroes first; NULL: not wanted) and make that row's loss and dlogits NaN, so
 * that a caller without the flag cannot take the row for a result either; the
 * other rows are right. CPU variants do not use error. */
typedef struct loss_args {
    loss_shape shape;
    kernel_dtype dtype;
    const void *logits;
    const int32_t *targets; /* [rows] */
    const float *dloss;
    float *loss, *lse;
    void *dlogits;
    int *error;
} loss_args;

/* Compulsory traffic, each input read once and each output written once, with
 * n = rows * classes and s bytes an element; an optional lse is not counted:
 *
 *     forward            n s + 8 rows (targets, loss)
 *     backward           2 n s + 12 rows (targets, lse, dloss)
 *     forward_backward   2 n s + 12 rows (targets, loss, dloss)
 *
 * UINT64_MAX if the number does not fit, 0 if a dimension is not positive. */
uint64_t loss_forward_bytes(const loss_shape *shape, kernel_dtype dtype);
uint64_t loss_backward_bytes(const loss_shape *shape, kernel_dtype dtype);
uint64_t loss_forward_backward_bytes(const loss_shape *shape, kernel_dtype dtype);

/* Operations of the formulas above, per logit, an exp counted as one:
 *
 *     forward            4: maximum, subtract, exp, sum
 *     backward           3: subtract, exp, scale
 *     forward_backward   5: maximum, subtract, exp, sum, scale
 *
 * UINT64_MAX and 0 as above. */
uint64_t loss_forward_flops(const loss_shape *shape);
uint64_t loss_backward_flops(const loss_shape *shape);
uint64_t loss_forward_backward_flops(const loss_shape *shape);

/* The oracles, in double precision, for any rows that the caller puts side by
 * side in f32 (exactly the values that the variant under test got): rows do
 * not depend on each other. Targets are in range. lse may be NULL. */
void loss_forward_reference(const loss_shape *shape, const float *logits, const int32_t *targets,
                            double *loss, double *lse);
void loss_backward_reference(const loss_shape *shape, const float *logits, const int32_t *targets,
                             const float *dloss, double *dlogits);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row
 * does not list, for a dimension that is not positive or too large, and for
 * more blocks than a grid holds. Workspaces are aligned to 16 bytes. */
extern const kernel_table loss_forward_cpu;
extern const kernel_table loss_backward_cpu;
extern const kernel_table loss_forward_backward_cpu;
extern const kernel_table loss_forward_cuda;
extern const kernel_table loss_backward_cuda;
extern const kernel_table loss_forward_backward_cuda;

#ifdef __cplusplus
}
#endif
#endif
