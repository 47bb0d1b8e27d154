/* A tiny model trains: its first losses are those of the oracle, which trains in
 * double precision beside it, and the loss falls. */
#include "model_test.h"

static const model_shape shape = {2, 8, 16, 2, 32, 2, 11, 16, 1};
enum { STEPS = 10 };

/* A text in which the next letter nearly follows from the last: each is the one
 * before plus 3, and now and then any other. */
static void write_text(int32_t *text, int64_t count)
{
    uint64_t state = 12345;
    text[0] = 1;
    for (int64_t i = 1; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        text[i] = state >> 60 == 0 ? (int32_t)(state >> 33) % 11 : (text[i - 1] + 3) % 11;
        text[i] = text[i] < 0 ? -text[i] : text[i];
    }
}

/* The step-th batch of the text, one row after the other. */
static void take_batch(test_model *m, const int32_t *text, int step)
{
    int64_t n = model_rows(&shape);
    int32_t *tokens = model_memory(&m->args, &m->plan, MODEL_TOKENS);
    int32_t *targets = model_memory(&m->args, &m->plan, MODEL_TARGETS);
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = text[step * n + i];
        targets[i] = text[step * n + i + 1];
    }
}

/* ---- the oracle's training ------------------------------------------------------------ */

/* Of every tensor the parameter and the moments in double. */
typedef struct oracle {
    int64_t count;
    double **value, **first, **second;
} oracle;

static double **doubles_of(const test_model *m, model_buffer buffer)
{
    int64_t count = model_tensor_count(&shape);
    double **all = fresh((size_t)count * sizeof *all);
    for (int64_t i = 0; i < count; i++) {
        float *values = tensor_of(m, buffer, i);
        all[i] = fresh((size_t)elements_at(&shape, i) * sizeof **all);
        for (int64_t at = 0; at < elements_at(&shape, i); at++) all[i][at] = (double)values[at];
        free(values);
    }
    return all;
}

static oracle open_oracle(const test_model *m)
{
    return (oracle){model_tensor_count(&shape), doubles_of(m, MODEL_VALUES),
                    doubles_of(m, MODEL_FIRST), doubles_of(m, MODEL_SECOND)};
}

static void close_oracle(oracle *o)
{
    for (int64_t i = 0; i < o->count; i++) free(o->value[i]), free(o->first[i]), free(o->second[i]);
    free(o->value), free(o->first), free(o->second);
}

static double clip_scale(const expected_model *e, double max_norm)
{
    double squares = 0;
    for (int64_t i = 0; i < e->count; i++)
        for (int64_t at = 0; at < elements_at(&shape, i); at++)
            squares += e->gradients[i][at] * e->gradients[i][at];
    return optimizer_clip_scale_reference(sqrt(squares), max_norm);
}

/* One step of the oracle on the model's batch; the loss before it. */
static double step_oracle(oracle *o, const test_model *m)
{
    float **values = fresh((size_t)o->count * sizeof *values);
    expected_model e = {.count = o->count};
    e.gradients = fresh((size_t)e.count * sizeof *e.gradients);
    for (int64_t i = 0; i < o->count; i++) {
        int64_t elements = elements_at(&shape, i);
        values[i] = fresh((size_t)elements * sizeof **values);
        e.gradients[i] = fresh((size_t)elements * sizeof **e.gradients);
        for (int64_t at = 0; at < elements; at++) values[i][at] = (float)o->value[i][at];
    }
    assert_int_equal(model_reference(&shape, (const float *const *)values,
                                     model_memory(&m->args, &m->plan, MODEL_TOKENS),
                                     model_memory(&m->args, &m->plan, MODEL_TARGETS), &e.loss,
                                     e.gradients), 0);
    double scale = clip_scale(&e, (double)m->args.max_norm);
    for (int64_t i = 0; i < o->count; i++) {
        int64_t elements = elements_at(&shape, i);
        for (int64_t at = 0; at < elements; at++) values[i][at] = (float)e.gradients[i][at];
        optimizer_adamw_reference(&m->args.settings, scale, elements, values[i], o->value[i],
                                  o->first[i], o->second[i]);
        free(values[i]);
    }
    free(values);
    forget_model(&e);
    return e.loss;
}

/* ---- training ----------------------------------------------------------------------------- */

/* Ten steps; the bound is relative to the loss. */
static void train(kernel_dtype dtype, const char *variant, double bound)
{
    model_args args = args_of(shape, dtype, MODEL_STEP);
    int32_t text[STEPS * 16 + 1];
    double first = 0, last = 0;
    args.settings.learning_rate = 0.02f;
    args.recomputes = !strcmp(variant, "recompute");
    test_model m = open_model(args, variant);
    oracle o = open_oracle(&m);
    write_text(text, STEPS * 16 + 1);
    for (int step = 0; step < STEPS; step++) {
        take_batch(&m, text, step);
        m.args.settings.step = step + 1;
        double expected = step_oracle(&o, &m);
        run_model(&m);
        last = (double)model_result(&m, MODEL_RESULT_LOSS);
        if (step == 0) first = last;
        if (!(fabs(last - expected) <= bound * expected))
            fail_msg("step %d: loss %.9g, the oracle's %.9g", step, last, expected);
    }
    assert_close(first, log(11), 0.05); /* before it knows anything */
    assert_true(last < first - 0.7);
    close_oracle(&o);
    close_model(&m);
}

static void test_f32(void **unused)
{
    (void)unused;
    train(KERNEL_F32, "unfused", 1e-4);
    train(KERNEL_F32, "best", 1e-4);
    train(KERNEL_F32, "recompute", 1e-4);
}

/* The bf16 model's weights, activations and gradients have 8 bits each. */
static void test_bf16(void **unused)
{
    (void)unused;
    train(KERNEL_BF16, "best", 3e-2);
}

/* 11 bits, and a loss scale that a first step may find too large. */
static void test_f16(void **unused)
{
    (void)unused;
    train(KERNEL_F16, "best", 4e-3);
    train(KERNEL_F16, "unfused", 4e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_f16)};
    return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}
