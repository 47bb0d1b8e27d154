/*
 * model_check_update.c - checks of the tables' gradients, of the norm and of
 * AdamW: see model_check.h.
 */
#include "model_check.h"

#include "once.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tables' gradients --------------------------------------------------------------- */

enum { GRADIENT_ROWS = 64 };

static int32_t *get_tokens(part_checker *c, const int32_t *tokens, int64_t count)
{
    int32_t *copy = part_check_room(c, count, sizeof *copy);
    if (c->code == 0)
        c->code = gpubench_copy(c->bench, copy, tokens, (size_t)count * sizeof *copy);
    return copy;
}

/* Adds the head's share: logits' gradient^T final, of the sampled rows. */
static void add_head(part_checker *c, const model_args *a, const part_sample *rows, double *sums)
{
    model_plan plan = model_plan_of(a);
    const void *gradients = model_memory(a, &plan, MODEL_LOGIT_GRADIENTS);
    const void *final = model_memory(a, &plan, MODEL_FINAL);
    int64_t n = model_rows(&a->shape), w = a->shape.width, classes = a->shape.table_rows;
    for (int64_t row = 0; row < n && c->code == 0; row += GRADIENT_ROWS) {
        int64_t count = n - row < GRADIENT_ROWS ? n - row : GRADIENT_ROWS;
        float *dy = part_check_get(c, gradients, row * classes, count * classes);
        float *x = part_check_get(c, final, row * w, count * w);
        for (int64_t i = 0; i < count * rows->count && c->code == 0; i++) {
            int64_t line = i / rows->count, which = i % rows->count;
            oracle_add_scaled(w, (double)dy[line * classes + rows->at[which]], x + line * w,
                              sums + which * w);
        }
        free(dy);
        free(x);
    }
}

/* product: what the head's product rounds its inputs to, KERNEL_TF32 in a tied table
 * of a tf32 model, whose gradients are stored as f32 but hold that product. */
static void compare_rows(part_checker *c, const void *table, const part_sample *rows,
                         int64_t width, const double *sums, int64_t table_rows,
                         kernel_dtype product)
{
    suite_error error = {0, 0};
    for (int64_t i = 0; i < rows->count; i++)
        part_check_compare(c, table, rows->at[i] * width, width, sums + i * width, &error);
    if (c->code == 0) /* twice: a shared table is rounded twice */
        c->code = suite_check(c->bench, &error, product, 2);
    part_check_written(c, table, table_rows * width);
}

void model_check_tables(part_checker *c, const model_args *a, const embedding_backward_args *e)
{
    int64_t n = e->shape.rows, w = e->shape.columns;
    int has_head = a->shape.tied && (a->components >> MODEL_HEAD & 1);
    part_sample rows = part_sample_of(c, a->shape.vocabulary);
    part_sample places = part_sample_of(c, e->shape.context);
    int32_t *tokens = get_tokens(c, e->tokens, n);
    float *dout = part_check_get(c, e->dout, 0, n * w);
    double *sums = part_check_doubles(c, PART_CHECK_ROWS * w);
    double *place_sums = part_check_doubles(c, PART_CHECK_ROWS * w);
    if (c->code == 0) rows.at[rows.count - 1] = tokens[0]; /* one that has a gradient */
    if (c->code == 0) {
        embedding_backward_tokens_reference(&e->shape, tokens, dout, rows.at, rows.count, sums);
        embedding_backward_positions_reference(&e->shape, dout, places.at, places.count,
                                               place_sums);
    }
    if (has_head) add_head(c, a, &rows, sums);
    compare_rows(c, e->dtoken_table, &rows, w, sums, a->shape.table_rows,
                 has_head ? a->dtype : c->dtype);
    compare_rows(c, e->dposition_table, &places, w, place_sums, e->shape.context, c->dtype);
    free(tokens);
    free(dout);
    free(sums);
    free(place_sums);
}

/* ---- clipping ---------------------------------------------------------------------------- */

/* The sum of squares, over ranges that are looked at on several threads. */
typedef struct square_sum {
    kernel_dtype dtype;
    pthread_mutex_t lock;
    double sum;
} square_sum;

static void add_squares(void *context, const void *raw, int64_t at, int64_t count)
{
    enum { PIECE = 1024 };
    square_sum *total = context;
    float piece[PIECE];
    double sum = 0;
    (void)at;
    for (int64_t i = 0; i < count; i += PIECE) {
        int64_t now = count - i < PIECE ? count - i : PIECE;
        kernel_to_f32((const char *)raw + (size_t)i * kernel_dtype_bytes(total->dtype),
                      total->dtype, now, piece);
        sum += optimizer_square_sum_reference(now, piece);
    }
    pthread_mutex_lock(&total->lock);
    total->sum += sum;
    pthread_mutex_unlock(&total->lock);
}

void model_check_clip(part_checker *c, const model_args *a, const optimizer_clip_args *clip)
{
    optimizer_scaler scaler = model_scaler_of(c, a);
    square_sum total = {clip->dtype, PTHREAD_MUTEX_INITIALIZER, 0};
    suite_error norm_error = {0, 0}, scale_error = {0, 0};
    double norm, scale;
    for (int64_t i = 0; i < clip->list.count && c->code == 0; i++)
        c->code = suite_look_at(c->bench, clip->list.tensors[i].gradient, clip->dtype, 0,
                                clip->list.tensors[i].count, add_squares, &total);
    norm = sqrt(total.sum) / (double)scaler.used;
    scale = optimizer_clip_scale_reference(norm, (double)clip->max_norm) / (double)scaler.used;
    part_check_compare_f32(c, clip->norm, 0, 1, &norm, &norm_error);
    part_check_compare_f32(c, clip->scale, 0, 1, &scale, &scale_error);
    part_check_judge_f32(c, &norm_error, 1);
    part_check_judge_f32(c, &scale_error, 1);
}

/* ---- AdamW -------------------------------------------------------------------------------- */

enum { LOOKED_AT = 2048 }; /* elements of a tensor */

/* The first elements of a tensor before a step: copies, the state in double for the
 * oracle to move on. */
typedef struct tensor_look {
    int64_t count;
    double *value, *first, *second;
} tensor_look;

static const void *master_of(const optimizer_tensor *t)
{
    return t->master ? t->master : t->parameter;
}

static void get_doubles(part_checker *c, const void *memory, int64_t count, double *to)
{
    float *values = part_check_get_f32(c, memory, 0, count);
    for (int64_t i = 0; i < count && c->code == 0; i++) to[i] = (double)values[i];
    free(values);
}

static tensor_look look_at(part_checker *c, const optimizer_tensor *t)
{
    tensor_look look = {.count = t->count < LOOKED_AT ? t->count : LOOKED_AT};
    look.value = part_check_doubles(c, 3 * look.count);
    if (c->code != 0) return look;
    look.first = look.value + look.count;
    look.second = look.first + look.count;
    get_doubles(c, master_of(t), look.count, look.value);
    get_doubles(c, t->first, look.count, look.first);
    get_doubles(c, t->second, look.count, look.second);
    return look;
}

/* Whatever the gradients of the steps were: the moments are sums of theirs by the weights
 * a_k = (1 - beta1) beta1^k and b_k = (1 - beta2) beta2^k, so m^2 is at most v times the
 * sum of a_k^2 / b_k (Cauchy and Schwarz), a geometric series. */
static void check_moments(part_checker *c, const optimizer_adamw *settings,
                          const tensor_look *look)
{
    double beta1 = (double)settings->beta1, beta2 = (double)settings->beta2;
    double most = (1 - beta1) * (1 - beta1) / (1 - beta2) / (1 - beta1 * beta1 / beta2);
    double underflow = 1e-37; /* squares below f32's normal numbers have lost digits */
    for (int64_t i = 0; i < look->count && c->code == 0; i++) {
        double m = look->first[i], v = look->second[i];
        if (!(v >= 0 && m * m <= most * (v * 1.001 + underflow)))
            c->code = gpubench_fail(c->bench, GPUBENCH_MISMATCH,
                                    "moments %g and %g are of no gradients", m, v);
    }
}

/* The look before a step, moved on by the oracle, against the tensor after it. */
static void check_step(part_checker *c, const optimizer_adamw *settings, double scale,
                       const tensor_look *look, const optimizer_tensor *t)
{
    float *gradient = part_check_get(c, t->gradient, 0, look->count);
    suite_error errors[3] = {{0, 0}, {0, 0}, {0, 0}};
    if (c->code == 0)
        optimizer_adamw_reference(settings, scale, look->count, gradient, look->value,
                                  look->first, look->second);
    part_check_compare_f32(c, master_of(t), 0, look->count, look->value, &errors[0]);
    part_check_compare_f32(c, t->first, 0, look->count, look->first, &errors[1]);
    part_check_compare_f32(c, t->second, 0, look->count, look->second, &errors[2]);
    if (t->master) {
        suite_error rounded = {0, 0};
        part_check_compare(c, t->parameter, 0, look->count, look->value, &rounded);
        part_check_judge(c, &rounded, 1);
    }
    free(gradient);
    for (int i = 0; i < 3; i++) part_check_judge_f32(c, &errors[i], 1);
}

/* One step that moves the parameters: as the case does it, or where a run of it is
 * several, clipping and AdamW alone by the table's `best`. */
static int run_step(gpubench *bench, const suite_case *of, int steps, model_args *moving)
{
    kernel_table table = model_suite_table(bench);
    moving->settings.learning_rate = 1e-3f;
    if (steps == 1) return suite_run_once(bench, of->variant, moving);
    moving->phases = MODEL_UPDATE;
    return suite_run_named(bench, &table, "best", moving);
}

void model_check_adamw(part_checker *c, const suite_case *of, int steps,
                       const optimizer_adamw_args *step)
{
    part_sample which = part_sample_of(c, step->list.count);
    tensor_look looks[PART_CHECK_ROWS];
    model_args moving = *(const model_args *)of->args;
    optimizer_scaler before = model_scaler_of(c, &moving), after;
    float *scale;
    for (int64_t i = 0; i < which.count; i++) {
        looks[i] = look_at(c, &step->list.tensors[which.at[i]]);
        check_moments(c, &step->settings, &looks[i]);
    }
    if (c->code == 0) c->code = run_step(c->bench, of, steps, &moving);
    scale = part_check_get_f32(c, step->gradient_scale, 0, 1);
    after = model_scaler_of(c, &moving);
    if (model_scales_loss(&moving)) moving.settings.step = after.taken;
    if (model_scales_loss(&moving) && moving.phases == MODEL_STEP)
        model_check_scaler(c, &moving, &before);
    for (int64_t i = 0; i < which.count; i++) {
        if (c->code == 0 && !after.skips)
            check_step(c, &moving.settings, (double)*scale, &looks[i],
                       &step->list.tensors[which.at[i]]);
        free(looks[i].value);
    }
    free(scale);
}
