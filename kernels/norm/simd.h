/*
 * simd.h - the host's vectorized norms, for the tables.
 */
#ifndef NORM_SIMD_H
#define NORM_SIMD_H

#include "norm.h"

size_t norm_forward_simd_workspace(const void *args);
size_t norm_forward_threads_workspace(const void *args);
size_t norm_backward_simd_workspace(const void *args);
size_t norm_backward_threads_workspace(const void *args);
int norm_forward_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int norm_forward_run_threads(const void *args, void *workspace, void *state,
                             kernel_stream stream);
int norm_backward_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int norm_backward_run_threads(const void *args, void *workspace, void *state,
                              kernel_stream stream);

#endif
