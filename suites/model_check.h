/*
 * model_check.h - what model_check.c has of model_check_update.c and
 * model_check_scaling.c. Like the
 * checks of part_check.h, these do nothing once c->code is set.
 */
#ifndef MODEL_CHECK_H
#define MODEL_CHECK_H

#include "../kernels/common/oracle.h"
#include "model_suite.h"
#include "part_check.h"

#include "../kernels/common/convert.h"

/* Sampled rows of both tables' gradients; the token table's includes the head's
 * where they are one. */
void model_check_tables(part_checker *c, const model_args *a, const embedding_backward_args *e);

/* The norm of all gradients without a loss scale, and the scale that follows. */
void model_check_clip(part_checker *c, const model_args *a, const optimizer_clip_args *clip);

/* The moments, by what holds of any gradients; then one more step, now with a learning
 * rate, on the very gradients that it had: gradients of two runs may differ, as atomic
 * additions come in any order, so nothing is concluded from one run for another. */
void model_check_adamw(part_checker *c, const suite_case *of, int steps,
                       const optimizer_adamw_args *step);

/* Gradients of a step of several micro-batches against those that each of them leaves
 * alone, added up in double: after all other checks, whose memory it uses
 * (model_check_sums.c). 0 or a code. */
int model_check_sums(gpubench *bench, const suite_case *of);

/* ---- of f16 (model_check_scaling.c) ---------------------------------------------------- */

/* The loss scale's state; of another dtype a scale of 1. */
optimizer_scaler model_scaler_of(part_checker *c, const model_args *a);

/* The rows' weights by the scale that was used. */
void model_check_scale_loss(part_checker *c, const model_args *a,
                            const optimizer_scale_loss_args *s);

/* The state after one whole step from `before`. */
void model_check_scaler(part_checker *c, const model_args *a, const optimizer_scaler *before);

#endif
