/*
 * block_suite.h - what the files of the block's suite share: block.c queues the
 * cases, block_build.c gives them memory and verifies them.
 */
#ifndef BLOCK_SUITE_H
#define BLOCK_SUITE_H

#include "../kernels/block/block.h"
#include "suite.h"

/* Of the backend that is measured. */
kernel_table block_suite_forward(const gpubench *bench);
kernel_table block_suite_backward(const gpubench *bench);

/* Whether the variant has the part that args name, for their shape and dtype. */
int block_suite_has_part(const kernel_variant *variant, const void *args);

/* suite_operation's functions. A part finds what the whole left behind. */
int block_build_forward(suite_case *c, gpubench *bench);         /* keeps nothing for backward */
int block_build_forward_keeping(suite_case *c, gpubench *bench); /* keeps GELU's input */
int block_build_forward_part(suite_case *c, gpubench *bench);
int block_build_backward(suite_case *c, gpubench *bench);
int block_build_backward_part(suite_case *c, gpubench *bench);
int block_verify_forward(suite_case *c, gpubench *bench);
int block_verify_backward(suite_case *c, gpubench *bench);

#endif
