/*
 * habits.cuh - rows of habits.cu's tables that have files of their own.
 */
#ifndef MODEL_HABITS_CUH
#define MODEL_HABITS_CUH

#include "habit_why.h"
#include "model.h"

constexpr unsigned MODEL_HABIT_DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) |
                                        KERNEL_DTYPE_BIT(KERNEL_TF32) |
                                        KERNEL_DTYPE_BIT(KERNEL_F16) |
                                        KERNEL_DTYPE_BIT(KERNEL_BF16);

/* habit_norm.cu */
kernel_variant model_norm_to_host_row();

/* habit_inputs.cu; the idle time of either's state */
extern const kernel_variant model_inputs_rows[5], model_loader_rows[5];
double model_inputs_idle(const void *state);

#endif
