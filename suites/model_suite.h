/*
 * model_suite.h - what the files of the model's suite share: model.c queues the
 * cases, model_build.c gives them memory, model_check.c verifies what they left.
 */
#ifndef MODEL_SUITE_H
#define MODEL_SUITE_H

#include "../kernels/model/model.h"
#include "suite.h"

/* Of the backend that is measured. */
kernel_table model_suite_table(const gpubench *bench);

/* suite_operation's functions. Phases that are not the case's own were run once
 * before it, and so were the components that it leaves out. */
int model_build(suite_case *c, gpubench *bench);
int model_verify(suite_case *c, gpubench *bench);

/* Whether what the op read and wrote is as it left it when all of args' phases
 * are done: what layers take turns in belongs to the last of them. */
int model_op_stands(const model_args *args, const model_op *op);

#endif
