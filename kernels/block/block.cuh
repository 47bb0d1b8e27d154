/*
 * block.cuh - moving rows of tokens to heads and back (heads.cu).
 */
#ifndef BLOCK_CUH
#define BLOCK_CUH

#include "../part/part.h"

int block_move_heads(const part_heads &move, kernel_stream stream);

#endif
