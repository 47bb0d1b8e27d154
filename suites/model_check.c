/*
 * model_check.c - verification of a model's case: each op that still stands as
 * it was left, on the inputs that it really had. Parts of blocks by part_check.h,
 * what is the model's own here, gradients of tables and the update in
 * model_check_update.c.
 */
#include "model_check.h"

#include "once.h"

#include <stdlib.h>
#include <string.h>

/* ---- which ops stand ------------------------------------------------------------------ */

/* Blocks' activations and streams of a pass that keeps nothing, and the only
 * activations of one that recomputes, are the last layer's that ran. */
static int forward_stands(const model_args *a, const model_op *op)
{
    int64_t last = a->shape.layers - 1;
    if (op->layer < 0) return op->kind != MODEL_OP_EMBEDDING || a->keeps || last == 0;
    if (a->keeps && !a->recomputes) return op->layer == 0 || op->layer == last;
    return op->layer == (a->phases & MODEL_BACKWARD ? 0 : last);
}

int model_op_stands(const model_args *a, const model_op *op)
{
    int64_t last = model_micro_batches(a) - 1;
    if (last > 0 && (op->micro < last || op->phase == MODEL_BACKWARD))
        return op->kind == MODEL_OP_SCALE_LOSS;
    if (op->phase == MODEL_FORWARD || op->again) return forward_stands(a, op);
    return op->layer <= 0;
}

/* ---- the model's own ops ----------------------------------------------------------------- */

static void check_embedding(part_checker *c, const embedding_forward_args *e)
{
    int64_t width = e->shape.columns;
    part_sample rows = part_sample_of(c, e->shape.rows);
    double *sum = part_check_doubles(c, width);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < rows.count && c->code == 0; i++) {
        int64_t row = rows.at[i], position = row % e->shape.context;
        int32_t token = 0;
        c->code = gpubench_copy(c->bench, &token, e->tokens + row, sizeof token);
        float *value = part_check_get(c, e->token_table, token * width, width);
        float *place = part_check_get(c, e->position_table, position * width, width);
        for (int64_t k = 0; k < width && c->code == 0; k++)
            sum[k] = (double)value[k] + (double)place[k];
        part_check_compare(c, e->out, row * width, width, sum, &error);
        free(value);
        free(place);
    }
    free(sum);
    part_check_judge(c, &error, 1);
    part_check_written(c, e->out, e->shape.rows * width);
}

/* A head with a mask: the classes' logits, and that the others are far below. */
static void check_masked_head(part_checker *c, const model_args *a, const part_linear *p)
{
    int64_t width = p->layer.in, all = p->layer.out, classes = a->shape.vocabulary;
    part_sample rows = part_sample_of(c, p->layer.rows);
    float *weight = part_check_get(c, p->weight, 0, width * classes);
    double *y = part_check_doubles(c, classes);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < rows.count && c->code == 0; i++) {
        float *x = part_check_get(c, p->x, rows.at[i] * width, width);
        float *pads = part_check_get(c, p->y, rows.at[i] * all + classes, all - classes);
        if (c->code == 0) part_check_row_times_weight(x, weight, width, classes, y);
        part_check_compare(c, p->y, rows.at[i] * all, classes, y, &error);
        for (int64_t k = 0; k < all - classes && c->code == 0; k++)
            if (!(pads[k] < MODEL_MASKED / 2))
                c->code = gpubench_fail(c->bench, GPUBENCH_MISMATCH, "a padding logit is %g",
                                        (double)pads[k]);
        free(x);
        free(pads);
    }
    free(weight);
    free(y);
    part_check_judge(c, &error, 1);
    part_check_written(c, p->y, p->layer.rows * all);
}

/* Sampled rows of the losses and, where they were asked for, of the gradients. */
static void check_loss(part_checker *c, const loss_args *l, int with_gradient)
{
    int64_t classes = l->shape.classes;
    loss_shape shape = {1, classes};
    part_sample rows = part_sample_of(c, l->shape.rows);
    double *gradient = part_check_doubles(c, classes), loss;
    suite_error error = {0, 0}, gradient_error = {0, 0};
    for (int64_t i = 0; i < rows.count && c->code == 0; i++) {
        int64_t row = rows.at[i];
        int32_t target = 0;
        c->code = gpubench_copy(c->bench, &target, l->targets + row, sizeof target);
        float *logits = part_check_get(c, l->logits, row * classes, classes);
        float *weight = part_check_get_f32(c, l->dloss, row, 1);
        if (c->code == 0) {
            loss_forward_reference(&shape, logits, &target, &loss, NULL);
            part_check_compare_f32(c, l->loss, row, 1, &loss, &error);
            loss_backward_reference(&shape, logits, &target, weight, gradient);
        }
        if (with_gradient)
            part_check_compare(c, l->dlogits, row * classes, classes, gradient, &gradient_error);
        free(logits);
        free(weight);
    }
    free(gradient);
    part_check_judge_f32(c, &error, 1);
    if (!with_gradient) return;
    part_check_judge(c, &gradient_error, 1);
    part_check_written(c, l->dlogits, l->shape.rows * classes);
}

static void check_mean(part_checker *c, const model_mean *m)
{
    float *values = part_check_get_f32(c, m->values, 0, m->count);
    suite_error error = {0, 0};
    double mean = 0;
    for (int64_t i = 0; i < m->count && c->code == 0; i++) mean += (double)values[i];
    mean /= (double)m->count;
    part_check_compare_f32(c, m->mean, 0, 1, &mean, &error);
    free(values);
    part_check_judge_f32(c, &error, 1);
}

/* ---- any op -------------------------------------------------------------------------------- */

static void check_part(part_checker *c, const model_args *a, const model_op *op)
{
    const part_args *part = &op->as.part;
    if (c->code != 0) return;
    if (part->kind == PART_LINEAR && op->layer < 0 && part->with_bias)
        check_masked_head(c, a, &part->as.linear);
    else if (part->kind == PART_WEIGHT_GRADIENT && part->with_residual)
        return; /* with the embedding's, to which it is added; alone it adds at each run */
    else
        c->code = part_check(c->bench, part);
}

static void check_op(gpubench *bench, const suite_case *of, int steps, const model_op *op,
                     int *code)
{
    const model_args *a = of->args;
    part_checker c = {.bench = bench, .dtype = model_storage(a->dtype), .code = *code};
    switch (op->kind) {
    case MODEL_OP_PART:
        c.dtype = op->as.part.dtype;
        check_part(&c, a, op);
        break;
    case MODEL_OP_EMBEDDING: check_embedding(&c, &op->as.embedding); break;
    case MODEL_OP_EMBEDDING_GRADIENT:
        model_check_tables(&c, a, &op->as.embedding_gradient);
        break;
    case MODEL_OP_LOSS: check_loss(&c, &op->as.loss, 0); break;
    case MODEL_OP_LOSS_GRADIENT: check_loss(&c, &op->as.loss, 1); break;
    case MODEL_OP_MEAN: check_mean(&c, &op->as.mean); break;
    case MODEL_OP_SCALE_LOSS: model_check_scale_loss(&c, a, &op->as.scale_loss); break;
    case MODEL_OP_CLIP: model_check_clip(&c, a, &op->as.clip); break;
    case MODEL_OP_UNSCALE: break; /* by CLIP, whose results it changes, and by ADAMW */
    case MODEL_OP_ACCUMULATE: break; /* of all micro-batches, by model_check_sums */
    case MODEL_OP_ADAMW: model_check_adamw(&c, of, steps, &op->as.adamw); break;
    }
    *code = c.code;
}

/* How many launches a run is: a graph knows, and has those of `best`. */
static void tell_launches(const suite_case *c, gpubench *bench)
{
#if GPUBENCH_CUDA
    if (gpubench_is_cuda(bench) && c->state && !strcmp(c->variant->name, "graph"))
        gpubench_counter(bench, "launches", (double)model_launches_cuda(c->state));
#endif
    (void)c;
    (void)bench;
}

int model_verify(suite_case *c, gpubench *bench)
{
    tell_launches(c, bench);
    return model_verify_steps(c, bench, 1);
}

/* What a skipped step of f16 leaves are infinities: the last one was, once in thousands,
 * and the next is not. */
static int leave_finite(suite_case *c, gpubench *bench)
{
    const model_args *a = c->args;
    part_checker checker = {.bench = bench, .dtype = a->dtype};
    if (!model_scales_loss(a) || !(a->phases & MODEL_UPDATE)) return 0;
    optimizer_scaler scaler = model_scaler_of(&checker, a);
    gpubench_counter(bench, "skipped", scaler.skipped);
    if (checker.code == 0 && scaler.skips && (a->phases & MODEL_FORWARD))
        checker.code = suite_run_once(bench, c->variant, a);
    return checker.code;
}

int model_verify_steps(suite_case *c, gpubench *bench, int steps)
{
    const model_args *a = c->args;
    model_ops ops;
    int code = leave_finite(c, bench);
    if (code == 0) code = model_write_gradients(c, bench);
    if (code) return code;
    code = model_ops_create(a, &ops);
    for (int64_t i = 0; i < ops.count && code == 0; i++)
        if (model_op_stands(a, &ops.list[i])) {
            check_op(bench, c, steps, &ops.list[i], &code);
            if (code != 0) gpubench_flag(bench, model_op_name(&ops.list[i]));
        }
    model_ops_destroy(&ops);
    if (code == 0 && model_micro_batches(a) > 1) code = model_check_sums(bench, c);
    return code;
}
