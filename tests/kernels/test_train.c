/* A tiny model trains: its first losses are those of the oracle, which trains in
 * double precision beside it, and the loss falls; and what is wrong with a model shows. */
#include "model_test.h"
#include "train_bound.h"

static const model_shape shape = {2, 8, 16, 2, 32, 2, TRAIN_LETTERS, 16, 1};
enum { ROWS = 16 };

typedef struct course_of {
    double loss[TRAIN_STEPS], length;
} course_of;

/* What the oracle does at a rate. */
typedef struct setting {
    int32_t text[ROWS + 1];
    train_task task;
    train_truth truth;
} setting;

static setting usual, slow; /* slow: a step is less than a weight's last bit in bf16 */

static void find_truth_at(setting *s, float rate)
{
    model_args args = args_of(shape, KERNEL_F32, MODEL_STEP);
    args.settings.learning_rate = rate;
    test_model start = open_model(args, "best");
    train_write_text(s->text, ROWS + 1);
    s->task = (train_task){shape, model_memory(&start.args, &start.plan, MODEL_VALUES),
                           args.settings, args.max_norm, s->text};
    s->truth = train_find(&s->task);
    close_model(&start);
}

static int find_truth(void **unused)
{
    (void)unused;
    find_truth_at(&usual, 5e-3f);
    find_truth_at(&slow, 5e-5f);
    return 0;
}

static int forget_truth(void **unused)
{
    (void)unused;
    train_forget_course(&usual.truth.course);
    train_forget_course(&slow.truth.course);
    return 0;
}

/* ---- training ----------------------------------------------------------------------------- */

/* after: NULL, or what goes wrong after each step. counts: 0 if the optimizer believes that
 * it has long begun, so that it corrects no bias. */
static course_of train(const setting *s, kernel_dtype dtype, const char *variant,
                       void (*after)(test_model *m), int counts)
{
    model_args args = args_of(shape, dtype, MODEL_STEP);
    course_of course;
    args.settings = s->task.settings;
    args.recomputes = !strcmp(variant, "recompute");
    test_model m = open_model(args, variant);
    const optimizer_scaler *scaler = model_memory(&m.args, &m.plan, MODEL_SCALER);
    memcpy(model_memory(&m.args, &m.plan, MODEL_TOKENS), s->text, ROWS * sizeof *s->text);
    memcpy(model_memory(&m.args, &m.plan, MODEL_TARGETS), s->text + 1, ROWS * sizeof *s->text);
    for (int step = 0; step < TRAIN_STEPS; step++) {
        m.args.settings.step = counts ? step + 1 : 10000;
        run_model(&m);
        course.loss[step] = (double)model_result(&m, MODEL_RESULT_LOSS);
        if (step == 0)
            course.length = train_worst_length(&s->truth, &s->task, dtype,
                                               model_memory(&m.args, &m.plan, MODEL_GRADIENTS),
                                               scaler ? (double)scaler->used : 1);
        if (after) after(&m);
    }
    close_model(&m);
    return course;
}

/* The first step whose loss is off by more than may be; TRAIN_STEPS if none is. */
static int first_wrong(const setting *s, const course_of *course, kernel_dtype dtype)
{
    int step = 0;
    while (step < TRAIN_STEPS && fabs(course->loss[step] / s->truth.course.loss[step] - 1) <=
                                     train_loss_bound(&s->truth, &s->task, dtype, step))
        step++;
    return step;
}

static void check(const setting *s, kernel_dtype dtype, const char *variant)
{
    course_of course = train(s, dtype, variant, NULL, 1);
    int step = first_wrong(s, &course, dtype);
    double length = train_length_bound(&s->truth, &s->task, dtype);
    if (step < TRAIN_STEPS)
        fail_msg("step %d: loss %.9g, the oracle's %.9g, %.2g of it allowed", step + 1,
                 course.loss[step], s->truth.course.loss[step],
                 train_loss_bound(&s->truth, &s->task, dtype, step));
    if (!(course.length <= length))
        fail_msg("a gradient is too long or short by %.2g of it, %.2g allowed", course.length,
                 length);
}

static void test_oracle(void **unused)
{
    const double *loss = usual.truth.course.loss;
    (void)unused;
    assert_close(loss[0], log(11), 0.05); /* before it knows anything */
    assert_true(train_always_falls(&usual.truth.course));
    assert_true(loss[TRAIN_STEPS - 1] < loss[0] - 0.5);
}

static void test_f32(void **unused)
{
    (void)unused;
    check(&usual, KERNEL_F32, "unfused");
    check(&usual, KERNEL_F32, "best");
    check(&usual, KERNEL_F32, "recompute");
}

static void test_bf16(void **unused)
{
    (void)unused;
    check(&usual, KERNEL_BF16, "best");
    check(&usual, KERNEL_BF16, "unfused");
}

/* With a loss scale that a first step may find too large. */
static void test_f16(void **unused)
{
    (void)unused;
    check(&usual, KERNEL_F16, "best");
    check(&usual, KERNEL_F16, "unfused");
}

/* ---- what is wrong ------------------------------------------------------------------------ */

/* Weights that are no more than bf16 between steps. */
static void lose_masters(test_model *m)
{
    for (int64_t i = 0; i < model_tensor_count(&shape); i++)
        kernel_to_f32(model_tensor_memory(&m->args, &m->plan, MODEL_VALUES, i), KERNEL_BF16,
                      elements_at(&shape, i),
                      model_tensor_memory(&m->args, &m->plan, MODEL_MASTER, i));
}

/* The optimizer begins anew at each step. */
static void lose_moments(test_model *m)
{
    memset(model_memory(&m->args, &m->plan, MODEL_FIRST), 0, m->plan.bytes[MODEL_FIRST]);
    memset(model_memory(&m->args, &m->plan, MODEL_SECOND), 0, m->plan.bytes[MODEL_SECOND]);
}

static void test_faults_show(void **unused)
{
    course_of uncorrected = train(&usual, KERNEL_BF16, "best", NULL, 0);
    course_of forgetful = train(&usual, KERNEL_BF16, "best", lose_moments, 1);
    course_of narrow = train(&slow, KERNEL_BF16, "best", lose_masters, 1);
    (void)unused;
    assert_int_equal(first_wrong(&usual, &uncorrected, KERNEL_BF16), 1); /* the first update */
    assert_true(first_wrong(&usual, &forgetful, KERNEL_BF16) < TRAIN_STEPS);
    check(&slow, KERNEL_BF16, "best");
    assert_true(first_wrong(&slow, &narrow, KERNEL_BF16) < TRAIN_STEPS);
}

/* A gradient that is 5 % too long, of any one tensor, in the coarsest dtype and where
 * roundoff makes up for as much of it as it can. */
static void test_long_gradient_shows(void **unused)
{
    course_of course = train(&usual, KERNEL_BF16, "best", NULL, 1);
    (void)unused;
    assert_true(0.05 - 1.05 * course.length >
                train_length_bound(&usual.truth, &usual.task, KERNEL_BF16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),      cmocka_unit_test(test_f32),
        cmocka_unit_test(test_bf16),        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_faults_show), cmocka_unit_test(test_long_gradient_shows)};
    return cmocka_run_group_tests_name("train", tests, find_truth, forget_truth);
}
