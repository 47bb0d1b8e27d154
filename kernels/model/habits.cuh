/*
 * habits.cuh - rows of habits.cu's tables that have files of their own.
 */
#ifndef MODEL_HABITS_CUH
#define MODEL_HABITS_CUH

#include "model.h"

constexpr unsigned MODEL_HABIT_DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) |
                                        KERNEL_DTYPE_BIT(KERNEL_TF32) |
                                        KERNEL_DTYPE_BIT(KERNEL_F16) |
                                        KERNEL_DTYPE_BIT(KERNEL_BF16);

/* habit_norm.cu */
kernel_variant model_norm_to_host_row();

/* habit_inputs.cu */
kernel_variant model_inputs_row(bool is_pinned);

#endif
