/*
 * attention.h - scaled dot-product attention (Vaswani et al., "Attention is
 * all you need", 2017, equation 1):
 *
 *     out = softmax(q k^T / sqrt(head_dim)) v
 *
 * for each batch and head. Causal: the row of token i sees keys 0..i.
 *
 * q, k, v and out are [batch, heads, tokens, head_dim]: contiguous, unless
 * strides say otherwise.
 */
#ifndef ATTENTION_H
#define ATTENTION_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attention_shape {
    int64_t batch, heads, tokens, head_dim; /* each at least 1 */
    int causal;                             /* 0: every row sees every key */
} attention_shape;

/* Elements from one batch, head and token to the next; the head_dim elements of
 * a row lie behind each other. All 0: contiguous. Else positive multiples of 8
 * (of e4m3: q's, k's and v's of 16) that keep rows apart. So heads can be read
 * where a linear layer wrote them, [batch, tokens, 3, heads, head_dim], without a
 * copy that transposes. Variants that take contiguous tensors only say so in
 * `unsupported`. */
typedef struct attention_strides {
    int64_t batch, head, token;
} attention_strides;

/* `strides`, or those of a contiguous tensor where it is all 0. */
attention_strides attention_strides_of(const attention_shape *shape, attention_strides strides);

/* For `unsupported` of variants that take contiguous tensors only: the reason
 * if the args, of a forward and of a backward pass, have strides, else NULL. */
const char *attention_forward_is_strided(const void *args);
const char *attention_backward_is_strided(const void *args);

/* The same of a forward pass whose args have a mask, and of one that has either. */
const char *attention_forward_is_masked(const void *args);
const char *attention_forward_is_special(const void *args);

/* q, k, v and out hold elements of dtype (of e4m3: out of bf16; q, k and v stand
 * for themselves, and a variant may round probabilities to e4m3 as well), and device
 * memory is aligned to 16 bytes, as any allocation is. lse is NULL or gets, as f32 [batch, heads,
 * tokens], the natural logarithm of the sum of exp(scaled score) of each row:
 * what a backward pass needs to recompute the probabilities. */
typedef struct attention_forward_args {
    attention_shape shape;
    kernel_dtype dtype;
    const void *q, *k, *v;
    void *out;
    float *lse; /* contiguous */
    attention_strides qkv_strides, out_strides;
    const float *mask; /* NULL, or [tokens, tokens], added to the scaled scores of each head in
                          place of what causal says: which every row then sees. The naive
                          variants take one. */
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

/* The gradients of a scalar loss, given dout, its gradient in out:
 *
 *     p  = exp(scale q k^T - lse)       the forward's probabilities, again
 *     dv = p^T dout
 *     ds = p * (dout v^T - delta)       delta = the row sums of dout * out
 *     dq = scale ds k
 *     dk = scale ds^T q
 *
 * with scale = 1 / sqrt(head_dim) (Dao et al., "FlashAttention", 2022, section
 * B.2). q, k, v, out and lse are what the forward pass got and gave; all but
 * lse have the forward's layout and dtype. dq, dk and dv are overwritten. */
typedef struct attention_backward_args {
    attention_shape shape;
    kernel_dtype dtype;
    const void *q, *k, *v, *out, *dout;
    const float *lse; /* [batch, heads, tokens] */
    void *dq, *dk, *dv;
    attention_strides qkv_strides; /* q, k, v, dq, dk, dv */
    attention_strides out_strides; /* out, dout */
} attention_backward_args;

/* Operations: 2.5 times the forward's, for five products instead of two (Dao,
 * "FlashAttention-2", 2023, section 4.1). UINT64_MAX and 0 as above. */
uint64_t attention_backward_flops(const attention_shape *shape);

/* Compulsory traffic: q, k, v, out and dout read once, dq, dk and dv written
 * once; lse is not counted. UINT64_MAX and 0 as above. */
uint64_t attention_backward_bytes(const attention_shape *shape, kernel_dtype dtype);

/* One head of a backward pass, f32: exactly the values that the variant under
 * test got, out and lse (of whatever forward) included. All [tokens, head_dim]
 * but lse, [tokens]. */
typedef struct attention_backward_head {
    const float *q, *k, *v, *out, *dout, *lse;
} attention_backward_head;

/* The oracle, in double precision, for chosen tokens of one head: row i of dq,
 * dk and dv, each [count, head_dim], is the gradient at token rows[i].
 *
 * It takes lse and delta from the head's lse, out and dout instead of from a
 * forward pass of its own, so one row costs O(tokens * head_dim) and not
 * O(tokens^2 * head_dim): count * tokens * head_dim * 14 operations, half of it
 * if causal, and it allocates nothing. shape->batch and shape->heads are not
 * used. */
void attention_backward_reference(const attention_shape *shape,
                                  const attention_backward_head *head, const int64_t *rows,
                                  int64_t count, double *dq, double *dk, double *dv);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row
 * does not list, for a dimension that is not positive, and for a shape that
 * its `unsupported` names. A CUDA variant's state belongs to the shape and the
 * device that it was prepared with, not to the pointers. Workspaces are aligned
 * to 16 bytes. */
extern const kernel_table attention_forward_cpu;
extern const kernel_table attention_forward_cuda;
extern const kernel_table attention_backward_cpu;
extern const kernel_table attention_backward_cuda;

#ifdef __cplusplus
}
#endif
#endif
