/*
 * model_suite.h - what the files of the model's suite share: model.c queues the
 * cases, model_parts.c those of a step's components, model_habits.c those of habits;
 * model_build.c gives them memory, model_check.c verifies what they left.
 */
#ifndef MODEL_SUITE_H
#define MODEL_SUITE_H

#include "../kernels/model/model.h"
#include "suite.h"

/* A size by name, as it is written in params. The larger ones leave out `unfused`:
 * it would take most of the suite's time and teach nothing new; most do without parts and
 * habits. */
typedef struct named_shape {
    const char *name;
    model_shape shape;
    int with_unfused, with_parts; /* and habits */
} named_shape;

/* "size=small b=4 t=128 ...". */
void model_describe(char *params, size_t room, const named_shape *n);

/* Of phases and all components, with what a measured step has for settings. */
model_args model_args_of(const model_shape *shape, kernel_dtype dtype, unsigned phases);

/* Each component of each phase of a step as a case of its own (model_parts.c). */
void model_queue_parts(suite *s, const named_shape *n, kernel_dtype dtype);

/* Each habit, with what it is measured against (model_habits.c). */
void model_queue_habits(suite *s, const named_shape *n, kernel_dtype dtype);

/* And the steps that differ in their arguments (model_groups.c). */
void model_queue_groups(suite *s, const named_shape *n, kernel_dtype dtype);

/* As the variant will have it. */
block_layout model_suite_layout(const gpubench *bench, const model_args *a, const char *variant);

/* Of the backend that is measured. */
kernel_table model_suite_table(const gpubench *bench);

/* suite_operation's functions. Phases that are not the case's own were run once
 * before it, and so were the components that it leaves out. */
int model_build(suite_case *c, gpubench *bench);
int model_verify(suite_case *c, gpubench *bench);

/* The same of a case whose run is so many steps. */
int model_verify_steps(suite_case *c, gpubench *bench, int steps);

/* Runs whole steps of f16 by the variant until one is taken: from then on cases measure
 * what training does. 0 or a code (model_check_scaling.c). */
int model_settle_scale(gpubench *bench, const model_args *a, const kernel_variant *variant);

/* ---- --checkpoint and --gradients (model_files.c) ---------------------------------- */

extern const char *model_checkpoint_path, *model_gradients_path; /* NULL: not wanted */

/* After build, and before anything of verify moves what is written. 0 or a code. */
int model_write_checkpoint(const suite_case *c, gpubench *bench);
int model_write_gradients(const suite_case *c, gpubench *bench);

/* Refuses a command line of which another number of models follows than one. */
void model_check_files(gpubench *bench, int64_t models);

/* The exit status of one that is `status`: 2, with a message, where 0 would hide that
 * nothing was written. */
int model_files_status(int status);

/* ---- --first-steps and --steps-before (model_study.c) -------------------------------- */

extern const char *model_first_steps_path, *model_steps_before;

/* After build, of model.step: times its first steps, if that is wanted. 0 or a code. */
int model_time_first_steps(const suite_case *c, gpubench *bench);

/* Refuses a --steps-before that is no number. */
void model_check_study(gpubench *bench);

/* Whether what the op read and wrote is as it left it when all of args' phases
 * are done: what layers take turns in belongs to the last of them. */
int model_op_stands(const model_args *args, const model_op *op);

#endif
