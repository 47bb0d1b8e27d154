/*
 * block.cuh - what other operations on the GPU have of the block's.
 */
#ifndef BLOCK_CUH
#define BLOCK_CUH

#include "block.h"
#include "../part/part.h"

/* Moves rows of tokens to heads or back (heads.cu). */
int block_move_heads(const part_heads &move, kernel_stream stream);

/* How attention finds its heads (block.cu): adapted to what the tensor cores take,
 * or the block's own. */
block_layout block_layout_cuda(const block_shape &shape, kernel_dtype dtype, bool adapts);

#endif
