/* A tiny model trains: its first losses are those of the oracle, which trains in
 * double precision beside it, and the loss falls. */
#include "model_test.h"
#include "train_oracle.h"

static const model_shape shape = {2, 8, 16, 2, 32, 2, 11, 16, 1};
enum { STEPS = 10 };

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

static train_oracle open_oracle(const test_model *m)
{
    float *values = fresh((size_t)model_tensor_offset(&shape, model_tensor_count(&shape)) *
                          sizeof *values);
    for (int64_t i = 0; i < model_tensor_count(&shape); i++) {
        float *tensor = tensor_of(m, MODEL_VALUES, i);
        memcpy(values + model_tensor_offset(&shape, i), tensor,
               (size_t)elements_at(&shape, i) * sizeof *tensor);
        free(tensor);
    }
    train_oracle o = train_open(&shape, values);
    free(values);
    return o;
}

static double step_oracle(train_oracle *o, const test_model *m)
{
    return train_step(o, &m->args.settings, m->args.max_norm,
                      model_memory(&m->args, &m->plan, MODEL_TOKENS),
                      model_memory(&m->args, &m->plan, MODEL_TARGETS));
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
    train_oracle o = open_oracle(&m);
    train_write_text(text, STEPS * 16 + 1);
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
    train_close(&o);
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
