/*
 * habits.h - what the files of habits on the host have of each other: rows of habits.c's
 * tables that have files of their own.
 */
#ifndef MODEL_HABITS_H
#define MODEL_HABITS_H

#include "../common/element.h"
#include "habit_why.h"
#include "model.h"

enum { MODEL_HABIT_DTYPES_CPU = ELEMENT_DTYPES };

/* habits.c: a step by the best of everything, model_habit's `best`. */
size_t model_habit_workspace_cpu(const void *args);
int model_habit_best_cpu(const void *args, void *workspace, void *state, kernel_stream stream);

/* habit_inputs.c; the idle time of either's state */
extern const kernel_variant model_inputs_rows_cpu[3], model_loader_rows_cpu[5];
double model_inputs_idle_cpu(const void *state);

/* habit_pauses.c */
extern const kernel_variant model_evaluation_rows_cpu[2], model_checkpoint_rows_cpu[3];

/* habit_mask.c */
extern const kernel_variant model_mask_rows_cpu[3];

/* habit_not_here.c */
extern const kernel_variant model_loss_rows_cpu[2], model_launches_rows_cpu[2],
    model_products_rows_cpu[2];

#endif
