/*
 * part.cuh - parts (part.h) on the GPU, by other operations' variants and by
 * linear.cuh's products. What a part needs beside its memory, a plan or a
 * variant's state, is made once (prepare) and does for every part of the same
 * kind, sizes, dtype and NULLs: one tool for all layers of a model.
 */
#ifndef KERNEL_PART_CUH
#define KERNEL_PART_CUH

#include "part.h"
#include "../linear/linear.cuh"

/* How parts are done: names of other operations' variants, of which the first
 * that takes the part counts, and the products' way. */
struct part_way_cuda {
    const char *norm[3];
    const char *attention_f32[4], *attention_half[6];
    linear_way linear;
};

extern const part_way_cuda part_unfused_cuda; /* naive parts, a kernel for each step */
extern const part_way_cuda part_best_cuda;    /* the fastest of each */

/* Whether one of part_best_cuda's attentions on tensor cores takes the arguments:
 * what heads are adapted to. */
bool part_attends_on_tensor_cores(const attention_forward_args &args);
bool part_attends_on_tensor_cores(const attention_backward_args &args);

/* The first of at most `most` names, up to a NULL, whose row of the table takes the
 * arguments on this device; NULL where none does. */
const kernel_variant *part_find_variant(const kernel_table &table, const char *const *names,
                                        int most, kernel_dtype dtype, const void *args);

/* Of a part: a plan, another operation's variant and its state, or nothing. */
struct part_tool {
    linear_plan plan;
    const kernel_variant *variant;
    void *state;
};

/* Parts that run one after the other share the largest's workspace. */
size_t part_workspace_bytes_cuda(const part_args &part, const part_way_cuda &way);

/* An all-zero tool becomes the part's; part_release_cuda undoes that, also after an
 * error and of one that is still all zeros. */
int part_prepare_cuda(const part_args &part, const part_way_cuda &way, cublasHandle_t handle,
                      part_tool *tool);
void part_release_cuda(part_tool *tool);

/* Enqueues the part. */
int part_run_cuda(const part_args &part, const part_tool &tool, cublasHandle_t handle,
                  void *workspace, kernel_stream stream);

#endif
