/*
 * e4m3.h - the feed-forward network's forward pass on the host with operands of e4m3.
 */
#ifndef FFN_E4M3_H
#define FFN_E4M3_H

#include "ffn.h"

/* UINT64_MAX if the number does not fit, 0 if a dimension is not positive. */
uint64_t ffn_e4m3_workspace_bytes(const ffn_shape *shape);

/* KERNEL_ERROR_ARGUMENT as ffn.h has it, also of another dtype. */
int ffn_e4m3_forward_naive(const ffn_forward_args *args, void *workspace);

#endif
