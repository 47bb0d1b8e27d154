/*
 * attention.h - scaled dot-product attention (Vaswani et al., "Attention is
 * all you need", 2017, equation 1):
 *
 *     out = softmax(q k^T / sqrt(head_dim)) v
 *
 * for each batch and head. Causal: the row of token i sees keys 0..i.
 *
 * Layout of q, k, v and out: contiguous [batch, heads, tokens, head_dim].
 */
#ifndef ATTENTION_H
#define ATTENTION_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attention_shape {
    int64_t batch, heads, tokens, head_dim; /* each at least 1 */
    int causal;                             /* 0: every row sees every key */
} attention_shape;

/* q, k, v and out hold elements of dtype, and device memory is aligned to 16
 * bytes, as any allocation is. lse is NULL or gets, as f32 [batch, heads,
 * tokens], the natural logarithm of the sum of exp(scaled score) of each row:
 * what a backward pass needs to recompute the probabilities. */
typedef struct attention_forward_args {
    attention_shape shape;
    kernel_dtype dtype;
    const void *q, *k, *v;
    void *out;
    float *lse;
} attention_forward_args;

/* Operations of the two products, 4 * batch * heads * tokens^2 * head_dim, and
 * half of that if causal: the convention of Dao, "FlashAttention-2", 2023,
 * section 4.1. Softmax is not counted. UINT64_MAX if the number does not fit,
 * 0 if a dimension is not positive. */
uint64_t attention_forward_flops(const attention_shape *shape);

/* Compulsory traffic: q, k and v read once and out written once; lse is not
 * counted. UINT64_MAX and 0 as above. */
uint64_t attention_forward_bytes(const attention_shape *shape, kernel_dtype dtype);

/* The oracle, in double precision, for chosen rows of one head.
 *
 * q, k, v: [tokens, head_dim] of that head, f32: exactly the values that the
 * variant under test got (kernel_to_f32). rows[count]: token indices, in any
 * order, each in 0..tokens-1. out: [count, head_dim]. lse: [count] or NULL.
 * shape->batch and shape->heads are not used.
 *
 * So a caller who checks a large GPU result copies one head at a time. Costs
 * count * tokens * head_dim * 4 operations and allocates nothing: two passes over
 * the keys find the maximum, then the sums. */
void attention_forward_reference(const attention_shape *shape, const float *q, const float *k,
                                 const float *v, const int64_t *rows, int64_t count, double *out,
                                 double *lse);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row
 * does not list, for a dimension that is not positive, and for a shape that
 * its `unsupported` names. Workspaces are aligned to 16 bytes. */
extern const kernel_table attention_forward_cpu;
extern const kernel_table attention_forward_cuda;

#ifdef __cplusplus
}
#endif
#endif
