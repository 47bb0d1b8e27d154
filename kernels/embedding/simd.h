/*
 * simd.h - the host's vectorized embedding, for the tables, and what of embedding.c
 * it uses.
 */
#ifndef EMBEDDING_SIMD_H
#define EMBEDDING_SIMD_H

#include "embedding.h"

/* 0, or why the arguments cannot be run. */
int embedding_check(const embedding_shape *shape, kernel_dtype dtype, const int32_t *tokens);

/* The rows of dout by token: those of token v are order[begin[v]] to
 * order[begin[v + 1] - 1], in ascending order. */
typedef struct embedding_order {
    int64_t *begin; /* [vocabulary + 1] */
    int32_t *order; /* [rows] */
} embedding_order;

/* In a workspace of so many bytes; UINT64_MAX if the number does not fit. */
uint64_t embedding_order_bytes(const embedding_shape *shape);
embedding_order embedding_order_rows(const embedding_shape *shape, const int32_t *tokens,
                                     void *workspace);

size_t embedding_backward_simd_workspace(const void *args);
size_t embedding_backward_threads_workspace(const void *args);
int embedding_forward_run_simd(const void *args, void *workspace, void *state,
                               kernel_stream stream);
int embedding_forward_run_threads(const void *args, void *workspace, void *state,
                                  kernel_stream stream);
int embedding_backward_run_simd(const void *args, void *workspace, void *state,
                                kernel_stream stream);
int embedding_backward_run_threads(const void *args, void *workspace, void *state,
                                   kernel_stream stream);

#endif
