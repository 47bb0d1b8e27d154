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

/* habits.cu: a step by the best of everything. */
size_t model_habit_workspace(const void *args);
int model_habit_prepare(const void *args, void **state);

/* habit_norm.cu */
kernel_variant model_norm_to_host_row();

/* habit_loss.cu */
extern const kernel_variant model_loss_rows[3], model_graph_loss_rows[3], model_launches_rows[2];

/* habit_zero.cu */
extern const kernel_variant model_zero_rows[4];

/* habit_mask.cu */
extern const kernel_variant model_mask_rows[3];

/* habit_pauses.cu */
extern const kernel_variant model_evaluation_rows[2], model_checkpoint_rows[3];

/* habit_inputs.cu; the idle time of either's state */
extern const kernel_variant model_inputs_rows[5], model_loader_rows[5];
double model_inputs_idle(const void *state);

#endif
