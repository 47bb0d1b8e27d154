/*
 * embedding.h - the input layer of a transformer (Radford et al., "Improving
 * language understanding by generative pre-training", 2018, equation 2):
 *
 *     out[i, :] = token_table[tokens[i], :] + position_table[i % context, :]
 *
 * for rows that are whole sequences one after the other, and its gradient
 *
 *     dtoken_table[v, :]    = sum of dout[i, :] over all i with tokens[i] == v
 *     dposition_table[p, :] = sum of dout[i, :] over all i with i % context == p
 *
 * Layouts: tokens [rows], tables [vocabulary, columns] and [context, columns],
 * out and dout [rows, columns], all contiguous.
 */
#ifndef EMBEDDING_H
#define EMBEDDING_H

#include "../common/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMBEDDING_MAX_COLUMNS (1 << 30)

typedef struct embedding_shape {
    int64_t rows;       /* tokens to look up, 1 to INT32_MAX; no multiple of context needed */
    int64_t vocabulary; /* 1 to INT32_MAX */
    int64_t columns;    /* 1 to EMBEDDING_MAX_COLUMNS */
    int64_t context;    /* positions; 0: no position table, whose pointers are not used then */
} embedding_shape;

/* Tables, out and dout hold elements of dtype, and device memory is aligned to
 * 16 bytes, as any allocation is.
 *
 * A token outside of 0..vocabulary-1 is an error. The CPU variants return
 * KERNEL_ERROR_INDEX and write nothing. A GPU variant cannot tell when it is
 * launched: it takes that token's row as zeros (backward: drops its gradient
 * from dtoken_table) and sets *error_flag to 1; it never clears it. error_flag
 * is device memory, or NULL: not wanted. The CPU does not use it. */
typedef struct embedding_forward_args {
    embedding_shape shape;
    kernel_dtype dtype;
    const int32_t *tokens;
    const void *token_table, *position_table;
    void *out;
    int *error_flag;
} embedding_forward_args;

/* Both gradients are overwritten, not added to: every row of the tables is
 * written, those that no token chose with zeros. Sums are f32. */
typedef struct embedding_backward_args {
    embedding_shape shape;
    kernel_dtype dtype;
    const int32_t *tokens;
    const void *dout;
    void *dtoken_table, *dposition_table;
    int *error_flag;
} embedding_backward_args;

/* Compulsory traffic of the forward pass: each table row that is needed read
 * once, out written once, 4 bytes a token. Needed are the rows of the distinct
 * tokens (tokens_count_distinct) and the first min(context, rows) positions.
 * UINT64_MAX if the number does not fit, 0 if the shape is not valid. */
uint64_t embedding_forward_bytes(const embedding_shape *shape, kernel_dtype dtype,
                                 int64_t distinct_tokens);

/* Compulsory traffic of the backward pass: dout read once, both tables written
 * once and whole, 4 bytes a token. Whatever the tokens are. */
uint64_t embedding_backward_bytes(const embedding_shape *shape, kernel_dtype dtype);

/* Additions: forward rows * columns if there are positions, else 0; backward
 * rows * columns for each table. */
uint64_t embedding_forward_flops(const embedding_shape *shape);
uint64_t embedding_backward_flops(const embedding_shape *shape);

/* The oracle, in double precision, for chosen rows. Tables and dout are f32:
 * exactly the values that the variant under test got (kernel_to_f32).
 *
 * forward: rows[count] are indices into out; out: [count, columns].
 * backward_tokens: rows[count] are token ids; dtable: [count, columns]; costs
 *     shape->rows comparisons a chosen row.
 * backward_positions: rows[count] are positions; dtable: [count, columns].
 *
 * Tokens are taken to be valid. */
void embedding_forward_reference(const embedding_shape *shape, const int32_t *tokens,
                                 const float *token_table, const float *position_table,
                                 const int64_t *rows, int64_t count, double *out);
void embedding_backward_tokens_reference(const embedding_shape *shape, const int32_t *tokens,
                                         const float *dout, const int64_t *rows, int64_t count,
                                         double *dtable);
void embedding_backward_positions_reference(const embedding_shape *shape, const float *dout,
                                            const int64_t *rows, int64_t count, double *dtable);

/* The variants. run returns KERNEL_ERROR_ARGUMENT for a dtype that its row
 * does not list and for a shape that is not valid. Workspaces are aligned to
 * 256 bytes on the GPU, 16 on the CPU. */
extern const kernel_table embedding_forward_cpu;
extern const kernel_table embedding_forward_cuda;
extern const kernel_table embedding_backward_cpu;
extern const kernel_table embedding_backward_cuda;

#ifdef __cplusplus
}
#endif
#endif
