/* The model: sizes that others state, both variants and recomputation against the
 * oracle, the oracle against finite differences, padding, phases. */
#include "model_test.h"

#include <stdio.h>

/* Heads of 8, two layers, odd sizes. */
static const model_shape untied = {2, 7, 24, 3, 40, 2, 29, 29, 0};
static const model_shape tied = {3, 5, 16, 2, 24, 3, 19, 24, 1};
static const model_shape gpt2 = {4, 1024, 768, 12, 3072, 12, 50257, 50304, 1};

/* ---- sizes ------------------------------------------------------------------------ */

/* GPT-2 124M: 124,439,808 parameters, of which 123,532,032 are weights of
 * products (the table as head, without positions, norms and biases); attention
 * has 12 layers * 1024 tokens * 768. */
static void test_work_of_gpt2(void **unused)
{
    uint64_t rows = 4096, a_row = 6 * UINT64_C(123532032) + 6 * UINT64_C(12) * 1024 * 768;
    (void)unused;
    assert_int_equal(model_parameters(&gpt2), 124439808);
    assert_int_equal(a_row, 797815296);
    assert_int_equal(model_flops(&gpt2, MODEL_STEP), rows * a_row);
    assert_int_equal(model_flops(&gpt2, MODEL_FORWARD) * 3, rows * a_row);
    assert_int_equal(model_flops(&gpt2, MODEL_BACKWARD) * 3, 2 * rows * a_row);
}

/* Backward: 4 for each of the 12 layers' 7,077,888 weights, for each of the head's
 * 50,257 * 768, and of attention what the step has of it by two thirds. */
static void test_work_of_components(void **unused)
{
    uint64_t rows = 4096;
    (void)unused;
    assert_int_equal(model_component_flops(&gpt2, MODEL_BACKWARD, MODEL_LINEAR),
                     rows * 4 * 12 * 7077888);
    assert_int_equal(model_component_flops(&gpt2, MODEL_BACKWARD, MODEL_HEAD),
                     rows * 4 * 50257 * 768);
    assert_int_equal(model_component_flops(&gpt2, MODEL_BACKWARD, MODEL_ATTENTION),
                     rows * 4 * 12 * 1024 * 768);
    assert_int_equal(model_component_flops(&gpt2, MODEL_FORWARD, MODEL_HEAD),
                     rows * 2 * 50257 * 768);
    assert_int_equal(model_component_flops(&gpt2, MODEL_UPDATE, MODEL_LINEAR), 0);
    assert_int_equal(model_component_flops(&gpt2, MODEL_FORWARD, MODEL_NORM), 0);
}

/* A head of its own is another 50,257 * 768 parameters and no more work. */
static void test_work_untied(void **unused)
{
    model_shape shape = gpt2;
    (void)unused;
    shape.tied = 0;
    assert_int_equal(model_parameters(&shape), 124439808 + 50257 * 768);
    assert_int_equal(model_flops(&shape, MODEL_STEP), model_flops(&gpt2, MODEL_STEP));
}

/* 2 + 2 + 3 * 4 bytes a parameter; logits and as much for their gradient. */
static void test_memory_of_gpt2(void **unused)
{
    model_args args = args_of(gpt2, KERNEL_BF16, MODEL_STEP);
    uint64_t sum = 0, pads = 47 * 768;
    model_plan plan = model_plan_of(&args);
    (void)unused;
    for (int i = 0; i < MODEL_CATEGORIES; i++) sum += plan.of[i];
    assert_int_equal(sum, plan.total);
    assert_int_equal(plan.of[MODEL_OF_PARAMETERS], 248879616 + 2 * pads);
    assert_int_equal(plan.of[MODEL_OF_GRADIENTS], 248879616 + 2 * pads);
    assert_int_equal(plan.of[MODEL_OF_OPTIMIZER], 3 * UINT64_C(497759232) + 12 * pads);
    assert_int_equal(plan.bytes[MODEL_LOGITS], 412090368);
    assert_int_equal(plan.bytes[MODEL_LOGIT_GRADIENTS], 412090368);
}

static void test_memory_by_phase(void **unused)
{
    model_args step = args_of(gpt2, KERNEL_F32, MODEL_STEP), forward = step, again = step;
    model_plan kept = model_plan_of(&step), recomputed, alone;
    (void)unused;
    forward.phases = MODEL_FORWARD;
    forward.keeps = 0;
    again.recomputes = 1;
    alone = model_plan_of(&forward);
    recomputed = model_plan_of(&again);
    assert_int_equal(kept.bytes[MODEL_MASTER], 0); /* f32 values are their own */
    assert_int_equal(alone.of[MODEL_OF_GRADIENTS], 0);
    assert_int_equal(alone.of[MODEL_OF_ACTIVATION_GRADIENTS], 0);
    assert_int_equal(alone.bytes[MODEL_STREAM], 2 * kept.row_bytes);
    assert_int_equal(kept.bytes[MODEL_STREAM], 13 * kept.row_bytes);
    assert_int_equal(kept.bytes[MODEL_BLOCKS], 12 * recomputed.bytes[MODEL_BLOCKS]);
}

/* The 2.7B model by hand:
 * 32 (12 width^2 + 13 width), two tables of 10,000, 128 positions, a norm. */
static void test_parameters_of_the_largest(void **unused)
{
    model_shape shape = {4, 128, 2560, 32, 10240, 32, 10000, 10000, 0};
    int64_t w = 2560;
    (void)unused;
    assert_int_equal(model_parameters(&shape),
                     32 * (12 * w * w + 13 * w) + 2 * 10000 * w + 128 * w + 2 * w);
}

static void test_invalid_shapes(void **unused)
{
    const model_shape wrong[] = {
        {0, 7, 24, 3, 40, 2, 29, 29, 0}, {2, 7, 24, 5, 40, 2, 29, 29, 0},
        {2, 7, 24, 3, 40, 0, 29, 29, 0}, {2, 7, 24, 3, 40, 2, 29, 28, 0},
        {2, 7, 24, 3, 40, 2, 0, 29, 0},  {INT64_MAX, 2, 24, 3, 40, 2, 29, 29, 0},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        model_args args = args_of(tied, KERNEL_F32, MODEL_STEP);
        model_ops ops;
        args.shape = wrong[i];
        assert_int_equal(model_is_valid(&wrong[i]), 0);
        assert_int_equal(model_flops(&wrong[i], MODEL_STEP), 0);
        assert_int_equal(model_ops_create(&args, &ops), KERNEL_ERROR_ARGUMENT);
    }
}

/* ---- against the oracle --------------------------------------------------------------- */

static void check_gradients(const test_model *m, const expected_model *e, double tolerance)
{
    assert_close((double)model_result(m, MODEL_RESULT_LOSS), e->loss, tolerance * e->loss);
    for (int64_t i = 0; i < e->count; i++) {
        float *gradient = tensor_of(m, MODEL_GRADIENTS, i);
        int64_t count = elements_at(&m->args.shape, i);
        double error = relative_error(gradient, e->gradients[i], count);
        if (!(error <= tolerance))
            fail_msg("tensor %d (%s): error %g", (int)i,
                     model_tensor_at(&m->args.shape, i).name, error);
        free(gradient);
    }
}

static void compare(model_shape shape, kernel_dtype dtype, const char *variant, int recomputes,
                    double tolerance)
{
    model_args args = args_of(shape, dtype, MODEL_FORWARD | MODEL_LOSS | MODEL_BACKWARD);
    args.recomputes = recomputes;
    test_model m = open_model(args, variant);
    expected_model e = expect_model(&m);
    run_model(&m);
    check_gradients(&m, &e, tolerance);
    forget_model(&e);
    close_model(&m);
}

static void test_gradients(void **unused)
{
    (void)unused;
    compare(untied, KERNEL_F32, "unfused", 0, 2e-5);
    compare(untied, KERNEL_F32, "best", 0, 2e-5);
    compare(untied, KERNEL_F32, "simd", 0, 2e-5);
    compare(tied, KERNEL_F32, "threads", 0, 2e-5);
    compare(untied, KERNEL_F32, "recompute", 1, 2e-5);
    compare(tied, KERNEL_F32, "unfused", 0, 2e-5);
    compare(tied, KERNEL_F32, "best", 0, 2e-5);
    compare(tied, KERNEL_F32, "recompute", 1, 2e-5);
}

/* Through a dozen roundings to 8 bits on each side. */
static void test_gradients_bf16(void **unused)
{
    (void)unused;
    compare(untied, KERNEL_BF16, "best", 0, 6e-2);
    compare(tied, KERNEL_BF16, "unfused", 0, 6e-2);
}

/* A forward pass that keeps nothing gives the same logits and loss. */
static void test_forward_alone(void **unused)
{
    model_args args = args_of(untied, KERNEL_F32, MODEL_FORWARD | MODEL_LOSS);
    test_model m = open_model(args, "best");
    expected_model e = expect_model(&m);
    (void)unused;
    run_model(&m);
    assert_close((double)model_result(&m, MODEL_RESULT_LOSS), e.loss, 1e-6 * e.loss);
    forget_model(&e);
    close_model(&m);
}

/* ---- the oracle itself ------------------------------------------------------------------ */

static double loss_with(const test_model *m, int64_t tensor, int64_t element, double change)
{
    float *value = (float *)model_tensor_memory(&m->args, &m->plan, MODEL_VALUES, tensor) + element;
    float before = *value;
    *value = (float)((double)before + change);
    expected_model e = expect_model(m);
    double loss = e.loss;
    *value = before;
    forget_model(&e);
    return loss;
}

/* Central differences at an element in the middle of every tensor. What is
 * rounded to f32 on the way leaves about 1e-7 / change of noise. */
static void test_oracle_by_differences(void **unused)
{
    const double change = 1.0 / 256;
    test_model m = open_model(args_of(tied, KERNEL_F32, MODEL_STEP), "best");
    expected_model e = expect_model(&m);
    (void)unused;
    for (int64_t i = 0; i < e.count; i++) {
        int64_t at = elements_at(&tied, i) / 2;
        double slope = (loss_with(&m, i, at, change) - loss_with(&m, i, at, -change)) / 2 / change;
        assert_close(slope, e.gradients[i][at], 3e-5 + 0.01 * fabs(slope));
    }
    forget_model(&e);
    close_model(&m);
}

/* A row of the shared table as input only, as target only, and as neither. */
static void test_shared_table_by_differences(void **unused)
{
    const double change = 1.0 / 256;
    test_model m = open_model(args_of(tied, KERNEL_F32, MODEL_STEP), "best");
    int32_t *tokens = model_memory(&m.args, &m.plan, MODEL_TOKENS);
    int32_t *targets = model_memory(&m.args, &m.plan, MODEL_TARGETS);
    (void)unused;
    for (int64_t i = 0; i < model_rows(&tied); i++) tokens[i] = 1, targets[i] = 2;
    expected_model e = expect_model(&m);
    for (int64_t row = 1; row <= 3; row++) {
        int64_t at = row * tied.width + 5;
        double slope = (loss_with(&m, 0, at, change) - loss_with(&m, 0, at, -change)) / 2 / change;
        assert_close(slope, e.gradients[0][at], 3e-5 + 0.01 * fabs(slope));
    }
    forget_model(&e);
    close_model(&m);
}

/* ---- properties ------------------------------------------------------------------------ */

static void run_steps(test_model *m, int count)
{
    for (int i = 0; i < count; i++) {
        run_model(m);
        m->args.settings.step++;
    }
}

/* The same kernels on the same numbers: equal bit by bit, after steps too. */
static void test_recomputing_changes_nothing(void **unused)
{
    model_args args = args_of(tied, KERNEL_BF16, MODEL_STEP), again = args;
    again.recomputes = 1;
    test_model kept = open_model(args, "best"), recomputed = open_model(again, "recompute");
    const model_buffer buffers[] = {MODEL_VALUES, MODEL_GRADIENTS, MODEL_MASTER, MODEL_FIRST,
                                    MODEL_SECOND};
    (void)unused;
    run_steps(&kept, 5);
    run_steps(&recomputed, 5);
    for (int i = 0; i < 5; i++) {
        model_buffer buffer = buffers[i];
        for (int64_t t = 0; t < model_tensor_count(&tied); t++) {
            float *a = tensor_of(&kept, buffer, t), *b = tensor_of(&recomputed, buffer, t);
            assert_memory_equal(a, b, (size_t)elements_at(&tied, t) * sizeof *a);
            free(a), free(b);
        }
    }
    close_model(&kept);
    close_model(&recomputed);
}

/* Rows behind the vocabulary: no gradient, no drift. */
static void test_padding_stays_zero(void **unused)
{
    test_model m = open_model(args_of(tied, KERNEL_F32, MODEL_STEP), "best");
    const model_buffer buffers[] = {MODEL_VALUES, MODEL_GRADIENTS, MODEL_FIRST, MODEL_SECOND};
    (void)unused;
    run_steps(&m, 3);
    for (int i = 0; i < 4; i++) {
        float *table = tensor_of(&m, buffers[i], 0);
        assert_true(table[0] != 0);
        for (int64_t at = tied.vocabulary * tied.width; at < tied.table_rows * tied.width; at++)
            assert_true(table[at] == 0);
        free(table);
    }
    close_model(&m);
}

/* Phase by phase and component by component, the ops are those of the whole. */
static void test_ops_add_up(void **unused)
{
    model_args args = args_of(untied, KERNEL_F32, MODEL_STEP);
    model_ops whole, some;
    int64_t by_phase = 0, by_component = 0;
    (void)unused;
    assert_int_equal(model_ops_create(&args, &whole), 0);
    /* embedding, 2 layers of 9, norm, head; loss, mean; 2 of the head, norm, 2
     * layers of 13, embedding; clip, adamw */
    assert_int_equal(whole.count, 1 + 18 + 2 + 2 + 3 + 26 + 1 + 2);
    for (unsigned phase = MODEL_FORWARD; phase <= MODEL_UPDATE; phase *= 2) {
        args.phases = phase;
        assert_int_equal(model_ops_create(&args, &some), 0);
        by_phase += some.count;
        model_ops_destroy(&some);
    }
    args.phases = MODEL_STEP;
    for (int i = 0; i < MODEL_COMPONENTS; i++) {
        args.components = 1u << i;
        assert_int_equal(model_ops_create(&args, &some), 0);
        by_component += some.count;
        model_ops_destroy(&some);
    }
    assert_int_equal(by_phase, whole.count);
    assert_int_equal(by_component, whole.count);
    model_ops_destroy(&whole);
}

/* What a watched step tells: names of ranges, and how deep they are. */
static struct {
    int64_t begun, ended, deepest;
    char first[16], second[16], last[16];
} watched;

static void watch_begin(const char *name)
{
    int64_t depth = ++watched.begun - watched.ended;
    if (depth > watched.deepest) watched.deepest = depth;
    if (watched.begun == 1) snprintf(watched.first, sizeof watched.first, "%s", name);
    if (watched.begun == 2) snprintf(watched.second, sizeof watched.second, "%s", name);
    snprintf(watched.last, sizeof watched.last, "%s", name);
}

static void watch_end(void)
{
    watched.ended++;
}

/* Four phases, and within them the 55 ops that test_ops_add_up counts. */
static void test_watching(void **unused)
{
    const model_watch watch = {watch_begin, watch_end};
    test_model m;
    model_args args = args_of(untied, KERNEL_F32, MODEL_STEP);
    (void)unused;
    args.watch = &watch;
    m = open_model(args, "best");
    run_model(&m);
    close_model(&m);
    assert_int_equal(watched.begun, 4 + 55);
    assert_int_equal(watched.ended, watched.begun);
    assert_int_equal(watched.deepest, 2);
    assert_string_equal(watched.first, "forward");
    assert_string_equal(watched.second, "embedding");
    assert_string_equal(watched.last, "adamw");
}

/* What is printed as the norm is the gradients' own, and the shared table is in
 * it once. */
static void test_norm_counts_each_tensor_once(void **unused)
{
    test_model m = open_model(args_of(tied, KERNEL_F32, MODEL_STEP), "best");
    expected_model e = expect_model(&m);
    double squares = 0;
    (void)unused;
    run_model(&m);
    for (int64_t i = 0; i < e.count; i++)
        for (int64_t at = 0; at < elements_at(&tied, i); at++)
            squares += e.gradients[i][at] * e.gradients[i][at];
    assert_close((double)model_result(&m, MODEL_RESULT_NORM), sqrt(squares), 1e-5 * sqrt(squares));
    forget_model(&e);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_of_gpt2),
        cmocka_unit_test(test_work_of_components),
        cmocka_unit_test(test_work_untied),
        cmocka_unit_test(test_memory_of_gpt2),
        cmocka_unit_test(test_memory_by_phase),
        cmocka_unit_test(test_parameters_of_the_largest),
        cmocka_unit_test(test_invalid_shapes),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_gradients_bf16),
        cmocka_unit_test(test_forward_alone),
        cmocka_unit_test(test_oracle_by_differences),
        cmocka_unit_test(test_shared_table_by_differences),
        cmocka_unit_test(test_recomputing_changes_nothing),
        cmocka_unit_test(test_padding_stays_zero),
        cmocka_unit_test(test_ops_add_up),
        cmocka_unit_test(test_watching),
        cmocka_unit_test(test_norm_counts_each_tensor_once),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
