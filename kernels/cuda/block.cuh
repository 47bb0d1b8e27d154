/*
 * block.cuh - what the files of the CUDA block share: moving rows of tokens to
 * heads and back (block_heads.cu).
 */
#ifndef BLOCK_CUH
#define BLOCK_CUH

#include <cuda_runtime.h>

#include "../block.h"

/* Rows [batch * tokens, parts, heads, head_dim], contiguous, and for each part
 * [batch, heads, tokens, padded_dim], padded_dim >= head_dim. Splitting fills
 * the padding with zeros. Either way the first part is multiplied by
 * first_factor. */
struct block_heads {
    kernel_dtype dtype; /* f32 or bf16 */
    int64_t batch, tokens, heads, head_dim, padded_dim;
    int parts; /* 1 or 3 */
    float first_factor;
    void *rows;
    void *heads_of[3]; /* by part */
    bool splits;       /* rows to heads, else heads to rows */
};

int block_move_heads(const block_heads &move, kernel_stream stream);

#endif
