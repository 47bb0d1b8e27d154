/*
 * simd.h - the host's vectorized optimizer steps, for the tables, and what of
 * optimizer.c they use.
 */
#ifndef OPTIMIZER_SIMD_H
#define OPTIMIZER_SIMD_H

#include "optimizer.h"
#include "../common/simd.h"

/* 0, or why the list cannot be run. */
int optimizer_check(const optimizer_list *list, kernel_dtype dtype);

/* Of the step that settings say, or a loss scale's count. */
simd_adamw optimizer_adamw_factors(const optimizer_adamw_args *args);

size_t optimizer_adamw_simd_workspace(const void *args);
size_t optimizer_sgd_simd_workspace(const void *args);
size_t optimizer_clip_simd_workspace(const void *args);

#define OPTIMIZER_RUN(pass)                                                                     \
    int optimizer_##pass##_run_simd(const void *args, void *workspace, void *state,             \
                                    kernel_stream stream);                                      \
    int optimizer_##pass##_run_threads(const void *args, void *workspace, void *state,          \
                                       kernel_stream stream);
OPTIMIZER_RUN(adamw)
OPTIMIZER_RUN(sgd)
OPTIMIZER_RUN(clip_norm)
OPTIMIZER_RUN(clip_scale)
#undef OPTIMIZER_RUN

#endif
