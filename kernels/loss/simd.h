/*
 * simd.h - the host's vectorized cross-entropy, for the tables.
 */
#ifndef LOSS_SIMD_H
#define LOSS_SIMD_H

#include "loss.h"

/* 0, or why the arguments cannot be run. */
int loss_check(const loss_args *args);

int loss_forward_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int loss_forward_run_threads(const void *args, void *workspace, void *state,
                             kernel_stream stream);
int loss_backward_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int loss_backward_run_threads(const void *args, void *workspace, void *state,
                              kernel_stream stream);
int loss_both_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int loss_both_run_threads(const void *args, void *workspace, void *state, kernel_stream stream);

#endif
