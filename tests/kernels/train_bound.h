/*
 * train_bound.h - how far roundoff may take a model that trains from the oracle. It is
 * measured, not typed. The oracle trains again with what roundoff does to it: each weight
 * that a forward pass reads is a unit of roundoff too large or too small by chance, and each
 * gradient by a unit of its tensor's size (products round what they sum up, however small an
 * element of theirs comes out). Per unit, what the loss was off by so far at most, in any of
 * TRAIN_DRAWS such runs, is its sensitivity; a dtype may be off by its unit times that times
 * TRAIN_MARGIN. The units are bf16's and f16's in turn, since per unit the finer is off by more
 * where a rate is high: AdamW's first step goes by the signs of gradients.
 *
 * The margin: a block has four matrices, and in both directions together 26 roundings of what
 * it reads, keeps and hands on, where the nudged oracle has two for each matrix, 8. A rounding
 * is at most a unit, and 0.42 of one in the root of the mean square, where nudges are whole
 * units. So a model is off by sqrt(26 / 8) * 0.42 = 0.76 times as much. What is left of 4, a
 * factor of 5, is chance: a model is one draw and the sensitivity the largest of four.
 *
 * Losses alone do not see a gradient that is too long, since AdamW divides by its size; so of
 * the first step each tensor's gradient is held against the oracle's too, along that, where
 * roundoff averages out. Their sensitivity is the largest of all tensors in all four runs, so
 * that chance needs less: TRAIN_LENGTH_MARGIN.
 */
#ifndef TRAIN_BOUND_H
#define TRAIN_BOUND_H

#include "../../kernels/common/convert.h"
#include "../../kernels/common/pool.h"
#include "train_oracle.h"

enum { TRAIN_STEPS = 10, TRAIN_DRAWS = 4, TRAIN_MARGIN = 4, TRAIN_LENGTH_MARGIN = 2 };

/* What is trained: values, f32, are what all begin with; text is the batch, of which every step
 * takes the same, so that the loss falls at each, and one letter more. */
typedef struct train_task {
    model_shape shape;
    const float *values;
    optimizer_adamw settings;
    float max_norm;
    const int32_t *text;
} train_task;

/* The losses before each step, and the first step's gradients. */
typedef struct train_course {
    double loss[TRAIN_STEPS];
    double **gradient;
    int64_t count;
} train_course;

/* The oracle's course, and how far roundoff moves it: of a loss the part of it, of a gradient
 * the part of its length, both per unit. */
typedef struct train_truth {
    train_course course;
    double loss[TRAIN_STEPS], length;
} train_truth;

/* The largest error of a rounding, as a part of what is rounded. To nearest, but that a
 * product in tf32 drops bits. A rounding to f32 is less than what sums of `longest` numbers in
 * f32 gather, which grows as its root. */
static inline double train_unit(kernel_dtype dtype, int64_t longest)
{
    if (dtype == KERNEL_BF16) return ldexp(1, -8);
    if (dtype == KERNEL_F16) return ldexp(1, -11);
    if (dtype == KERNEL_TF32) return ldexp(1, -10);
    return ldexp(sqrt((double)longest), -24);
}

static inline void train_forget_course(train_course *course)
{
    for (int64_t i = 0; i < course->count; i++) free(course->gradient[i]);
    free(course->gradient);
}

/* The oracle's way, each number nudged by a unit, which may be 0. */
static inline train_course train_along(const train_task *task, double unit, uint64_t chance)
{
    train_oracle o = train_open(&task->shape, task->values);
    train_course course = {.gradient = train_doubles(&o), .count = o.count};
    optimizer_adamw settings = task->settings;
    o.unit = unit, o.chance = chance;
    for (int step = 0; step < TRAIN_STEPS; step++) {
        settings.step = step + 1;
        course.loss[step] = train_step(&o, &settings, task->max_norm, task->text, task->text + 1);
        for (int64_t i = 0; i < o.count && step == 0; i++)
            memcpy(course.gradient[i], o.gradient[i],
                   (size_t)train_elements(&o, i) * sizeof **o.gradient);
    }
    train_close(&o);
    return course;
}

/* By how much of its length a gradient is too long or short, along what it should be. */
static inline double train_length_error(const double *gradient, const double *exact, int64_t count)
{
    double along = 0, squares = 0;
    for (int64_t k = 0; k < count; k++) along += gradient[k] * exact[k];
    for (int64_t k = 0; k < count; k++) squares += exact[k] * exact[k];
    return fabs(along / squares - 1);
}

static inline double train_larger(double a, double b)
{
    return a >= b || isnan(a) ? a : b; /* NaN if either is */
}

/* By how much the draw-th of the runs is nudged, from 0, the oracle as it is. */
static inline double train_unit_of(int64_t draw)
{
    return draw == 0 ? 0 : train_unit(draw % 2 ? KERNEL_BF16 : KERNEL_F16, 1);
}

/* Adds what a nudged course shows. */
static inline void train_learn(train_truth *truth, const train_task *task,
                               const train_course *nudged, double unit)
{
    double most = 0;
    for (int step = 0; step < TRAIN_STEPS; step++) {
        most = train_larger(most, fabs(nudged->loss[step] / truth->course.loss[step] - 1) / unit);
        truth->loss[step] = train_larger(truth->loss[step], most);
    }
    for (int64_t i = 0; i < nudged->count; i++) {
        parameters_tensor tensor = model_tensor_at(&task->shape, i);
        double off = train_length_error(nudged->gradient[i], truth->course.gradient[i],
                                        parameters_elements(&tensor));
        truth->length = train_larger(truth->length, off / unit);
    }
}

typedef struct train_runs {
    const train_task *task;
    train_course course[1 + TRAIN_DRAWS];
} train_runs;

static inline void train_runs_range(void *context, int worker, int64_t begin, int64_t end)
{
    train_runs *runs = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        runs->course[i] = train_along(runs->task, train_unit_of(i), (uint64_t)i);
}

/* Its course is to be forgotten. */
static inline train_truth train_find(const train_task *task)
{
    train_runs runs = {.task = task};
    pool_for(pool_threads(), 1 + TRAIN_DRAWS, 1, train_runs_range, &runs);
    train_truth truth = {.course = runs.course[0]};
    for (int i = 1; i <= TRAIN_DRAWS; i++) {
        train_learn(&truth, task, &runs.course[i], train_unit_of(i));
        train_forget_course(&runs.course[i]);
    }
    return truth;
}

/* What may be off at a step, as a part of the loss: at least the roundoff of f32, in which
 * the loss itself is summed in every dtype. */
static inline double train_loss_bound(const train_truth *truth, const train_task *task,
                                      kernel_dtype dtype, int step)
{
    double unit = train_unit(dtype, task->shape.hidden);
    double least = train_unit(KERNEL_F32, task->shape.hidden);
    return TRAIN_MARGIN * train_larger(unit * truth->loss[step], least);
}

static inline double train_length_bound(const train_truth *truth, const train_task *task,
                                        kernel_dtype dtype)
{
    return TRAIN_LENGTH_MARGIN * train_unit(dtype, task->shape.hidden) * truth->length;
}

/* A rate is low enough if this holds: roundoff grows where the loss jumps. */
static inline int train_always_falls(const train_course *course)
{
    for (int step = 1; step < TRAIN_STEPS; step++)
        if (!(course->loss[step] < course->loss[step - 1])) return 0;
    return 1;
}

/* The most that a tensor's gradient of the first step is too long or too short. memory: the
 * model's MODEL_GRADIENTS, loss_scale times the gradients. */
static inline double train_worst_length(const train_truth *truth, const train_task *task,
                                        kernel_dtype dtype, const void *memory, double loss_scale)
{
    double worst = 0;
    for (int64_t i = 0; i < truth->course.count; i++) {
        parameters_tensor tensor = model_tensor_at(&task->shape, i);
        int64_t count = parameters_elements(&tensor);
        float *narrow = train_room(count, sizeof *narrow);
        double *gradient = train_room(count, sizeof *gradient);
        kernel_to_f32((const char *)memory + (size_t)model_tensor_offset(&task->shape, i) *
                                                 kernel_dtype_bytes(model_storage(dtype)),
                      model_storage(dtype), count, narrow);
        for (int64_t k = 0; k < count; k++) gradient[k] = (double)narrow[k] / loss_scale;
        worst = train_larger(worst, train_length_error(gradient, truth->course.gradient[i], count));
        free(narrow), free(gradient);
    }
    return worst;
}

#endif
