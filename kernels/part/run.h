/*
 * run.h - parts (part.h) on the host, by other operations' variants.
 */
#ifndef KERNEL_CPU_PART_RUN_H
#define KERNEL_CPU_PART_RUN_H

#include "part.h"
#include "../linear/linear.h"

/* Which variants of the other operations, by name, and which products. */
typedef struct part_way_cpu {
    const char *norm, *attention;
    const linear_way *products;
} part_way_cpu;

extern const part_way_cpu part_unfused_cpu; /* naive norms, attention and products */
extern const part_way_cpu part_best_cpu;    /* the best of each that any compiler makes */
extern const part_way_cpu part_simd_cpu;    /* with this processor's vectors */
extern const part_way_cpu part_threads_cpu; /* and on all threads */
extern const part_way_cpu part_blas_cpu;    /* with a library's products */

/* Parts that run one after the other share the largest's workspace. */
size_t part_workspace_bytes_cpu(const part_args *part, const part_way_cpu *way);

/* KERNEL_OK, KERNEL_ERROR_ARGUMENT or what the variant returned. Heads are not
 * padded here: with other heads it is KERNEL_ERROR_ARGUMENT. */
int part_run_cpu(const part_args *part, const part_way_cpu *way, void *workspace);

#endif
