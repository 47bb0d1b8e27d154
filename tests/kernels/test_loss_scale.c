/* Dynamic loss scaling: the rule by hand, what a skipped step leaves, and f16 models whose
 * gradients overflow. */
#include "model_test.h"

/* ---- the rule ------------------------------------------------------------------------ */

typedef struct scaled {
    optimizer_scaler scaler;
    float norm, gradient_scale;
    optimizer_unscale_args args;
} scaled;

static void open_scaled(scaled *s, float scale, int32_t interval)
{
    *s = (scaled){.scaler = {.scale = scale, .used = scale}};
    s->args = (optimizer_unscale_args){{scale, 2, 0.5f, interval}, 0.9f, 0.999f, 1, &s->norm,
                                       &s->gradient_scale, &s->scaler};
}

/* A step whose gradients, as they are, have that norm. */
static void take_step(scaled *s, float norm)
{
    float weight;
    optimizer_scale_loss_args apply = {&s->scaler, 1, 1, &weight};
    assert_int_equal(optimizer_scale_loss_cpu.rows[0].run(&apply, NULL, NULL, NULL), 0);
    s->norm = norm;
    assert_int_equal(optimizer_unscale_cpu.rows[0].run(&s->args, NULL, NULL, NULL), 0);
}

static void test_usual_rule(void **unused)
{
    (void)unused;
    assert_true(optimizer_usual_scaling.initial == 65536);
    assert_true(optimizer_usual_scaling.growth == 2);
    assert_true(optimizer_usual_scaling.backoff == 0.5f);
    assert_int_equal(optimizer_usual_scaling.interval, 2000);
}

/* Infinities and NaNs halve the scale, down to 1 and no further. */
static void test_falls(void **unused)
{
    scaled s;
    (void)unused;
    open_scaled(&s, 65536, 2000);
    take_step(&s, INFINITY);
    assert_true(s.scaler.scale == 32768 && s.scaler.used == 65536);
    assert_int_equal(s.scaler.skips, 1);
    assert_true(s.gradient_scale == 0);
    take_step(&s, NAN);
    assert_true(s.scaler.scale == 16384 && s.scaler.used == 32768);
    for (int i = 0; i < 166; i++) take_step(&s, INFINITY);
    assert_true(s.scaler.scale == 1);
    assert_int_equal(s.scaler.skipped, 168);
    assert_int_equal(s.scaler.skipped_in_row, 168);
    assert_int_equal(s.scaler.taken, 0);
    take_step(&s, 1);
    assert_int_equal(s.scaler.skips, 0);
    assert_int_equal(s.scaler.skipped_in_row, 0);
    assert_int_equal(s.scaler.skipped, 168);
}

/* Three finite steps in a row double it; one that is not starts the count anew. */
static void test_grows(void **unused)
{
    const float norms[] = {1, 1, INFINITY, 1, 1, 1, 1, 1, 1, 1};
    const float scales[] = {8, 8, 4, 4, 4, 8, 8, 8, 16, 16};
    scaled s;
    (void)unused;
    open_scaled(&s, 8, 3);
    for (int i = 0; i < 10; i++) {
        take_step(&s, norms[i]);
        if (s.scaler.scale != scales[i])
            fail_msg("after step %d the scale is %g, not %g", i, (double)s.scaler.scale,
                     (double)scales[i]);
    }
    assert_int_equal(s.scaler.taken, 9);
    open_scaled(&s, 0x1p127f, 1);
    take_step(&s, 1);
    assert_true(s.scaler.scale == 0x1p127f);
}

/* One overflow at the first step, an interval of 100: it is back after step 101. */
static void test_comes_back(void **unused)
{
    scaled s;
    (void)unused;
    open_scaled(&s, 65536, 100);
    take_step(&s, INFINITY);
    for (int i = 1; i < 100; i++) take_step(&s, 1);
    assert_true(s.scaler.scale == 32768);
    take_step(&s, 1);
    assert_true(s.scaler.scale == 65536);
}

/* ---- AdamW behind it ----------------------------------------------------------------- */

/* Gradients (3, 4) times the scale, in f16, and a norm of at most 1. */
static void take_two(float scale, float first[2], float second[2], float values[2])
{
    uint16_t narrow[2] = {0}, gradients[2] = {kernel_f16_from_f32(3 * scale),
                                              kernel_f16_from_f32(4 * scale)};
    optimizer_tensor tensor = {2, narrow, gradients, values, first, second};
    scaled s;
    open_scaled(&s, scale, 2000);
    optimizer_clip_args clip = {{&tensor, 1}, KERNEL_F16, 1, &s.norm, &s.gradient_scale};
    optimizer_adamw_args adamw = {{&tensor, 1}, KERNEL_F16, {0.5f, 0.9f, 0.999f, 0, 0, 1},
                                  &s.gradient_scale, &s.scaler};
    for (size_t i = 0; i < optimizer_adamw_cpu.count; i++) {
        const kernel_variant *variant = &optimizer_adamw_cpu.rows[i];
        float workspace[16];
        s.scaler = (optimizer_scaler){.scale = scale, .used = scale};
        for (int k = 0; k < 2; k++) first[k] = second[k] = 0, values[k] = 1;
        assert_int_equal(optimizer_clip_norm_cpu.rows[0].run(&clip, NULL, NULL, NULL), 0);
        take_step(&s, s.norm);
        assert_int_equal(variant->run(&adamw, workspace, NULL, NULL), 0);
        assert_close((double)s.norm, 5, 1e-5);
        assert_close((double)first[0], 0.06, 1e-6);
        assert_close((double)first[1], 0.08, 1e-6);
        assert_close((double)second[0], 0.00036, 1e-8);
        assert_close((double)second[1], 0.00064, 1e-8);
        assert_close((double)values[0], 0.5, 1e-5);
        assert_true(kernel_f16_to_f32(narrow[0]) > 0.499f);
    }
}

/* The norm is of the gradients without the scale, else clipping would hang on it. */
static void test_unscales_before_clipping(void **unused)
{
    float first[2], second[2], values[2];
    (void)unused;
    take_two(1, first, second, values);
    take_two(1024, first, second, values);
    take_two(8192, first, second, values);
}

/* Whatever the settings say of t. An infinity: nothing moves, and the next step is AdamW's first: it moves by the whole
 * learning rate, where a counted skip would make it 0.744 of it. */
static void test_skips(void **unused)
{
    float first = 0, second = 0, value = 1, workspace[16];
    uint16_t narrow = kernel_f16_from_f32(1), gradient = 0x7c00;
    optimizer_tensor tensor = {1, &narrow, &gradient, &value, &first, &second};
    scaled s;
    (void)unused;
    open_scaled(&s, 4, 2000);
    optimizer_clip_args clip = {{&tensor, 1}, KERNEL_F16, 1e9f, &s.norm, &s.gradient_scale};
    optimizer_adamw_args adamw = {{&tensor, 1}, KERNEL_F16, {0.5f, 0.9f, 0.999f, 0, 0.1f, 9},
                                  &s.gradient_scale, &s.scaler};
    for (size_t i = 0; i < optimizer_adamw_cpu.count; i++) {
        const kernel_variant *variant = &optimizer_adamw_cpu.rows[i];
        s.scaler = (optimizer_scaler){.scale = 4, .used = 4};
        first = second = 0, value = 1, gradient = 0x7c00;
        assert_int_equal(optimizer_clip_norm_cpu.rows[0].run(&clip, NULL, NULL, NULL), 0);
        take_step(&s, s.norm);
        assert_int_equal(variant->run(&adamw, workspace, NULL, NULL), 0);
        assert_true(first == 0 && second == 0 && value == 1);
        assert_int_equal(narrow, kernel_f16_from_f32(1));
        adamw.settings.weight_decay = 0;
        gradient = kernel_f16_from_f32(2);
        assert_int_equal(optimizer_clip_norm_cpu.rows[0].run(&clip, NULL, NULL, NULL), 0);
        take_step(&s, s.norm);
        assert_int_equal(variant->run(&adamw, workspace, NULL, NULL), 0);
        assert_close((double)value, 0.5, 1e-5);
        adamw.settings.weight_decay = 0.1f;
        narrow = kernel_f16_from_f32(1);
    }
}

/* ---- models ---------------------------------------------------------------------------- */

static const model_shape shape = {2, 7, 24, 3, 40, 2, 29, 32, 1};

static optimizer_scaler *scaler_of(const test_model *m)
{
    return model_memory(&m->args, &m->plan, MODEL_SCALER);
}

/* A copy of all that a skipped step must leave as it is. */
static void *copy_state(const test_model *m, size_t *bytes)
{
    size_t begin = (size_t)m->plan.begin[MODEL_MASTER];
    *bytes = (size_t)m->plan.begin[MODEL_SCALER] - begin;
    void *copy = fresh(*bytes);
    memcpy(copy, (char *)m->args.memory + begin, *bytes);
    return copy;
}

static void assert_state(const test_model *m, const void *copy, size_t bytes, int same)
{
    const char *now = (const char *)m->args.memory + m->plan.begin[MODEL_MASTER];
    assert_int_equal(memcmp(now, copy, bytes) == 0, same);
}

/* A scale that is too large at first: each step is skipped, without a trace but the
 * counts, or taken. */
static void test_first_steps_overflow(void **unused)
{
    enum { ALL = 40 };
    model_args args = args_of(shape, KERNEL_F16, MODEL_STEP);
    (void)unused;
    args.scaling.initial = 0x1p30f;
    test_model m = open_model(args, "best");
    for (int step = 1; step <= ALL; step++) {
        size_t bytes;
        float scale = scaler_of(&m)->scale;
        void *before = copy_state(&m, &bytes);
        run_model(&m);
        assert_state(&m, before, bytes, scaler_of(&m)->skips);
        assert_true(scaler_of(&m)->scale == (scaler_of(&m)->skips ? scale / 2 : scale));
        assert_int_equal(scaler_of(&m)->taken + scaler_of(&m)->skipped, step);
        free(before);
    }
    assert_true(scaler_of(&m)->skipped > 5 && scaler_of(&m)->taken > 5);
    close_model(&m);
}

/* A planted infinity in any tensor's gradient. */
static void test_planted_overflow(void **unused)
{
    (void)unused;
    for (int64_t tensor = 0; tensor < model_tensor_count(&shape); tensor++) {
        test_model m = open_model(args_of(shape, KERNEL_F16, MODEL_STEP), "best");
        size_t bytes;
        void *update = NULL, *before;
        run_model(&m);
        model_args only = m.args;
        only.phases = MODEL_UPDATE;
        assert_int_equal(m.variant->prepare(&only, &update), 0);
        uint16_t *gradient = model_tensor_memory(&m.args, &m.plan, MODEL_GRADIENTS, tensor);
        gradient[elements_at(&shape, tensor) / 2] = 0xfc00;
        before = copy_state(&m, &bytes);
        assert_int_equal(m.variant->run(&only, m.workspace, update, NULL), 0);
        assert_state(&m, before, bytes, 1);
        assert_true(scaler_of(&m)->scale == 32768);
        assert_int_equal(scaler_of(&m)->taken, 1);
        run_model(&m);
        assert_state(&m, before, bytes, 0);
        free(before);
        m.variant->release(update);
        close_model(&m);
    }
}

/* Gradients are the oracle's times the scale. */
static void compare(const char *variant)
{
    test_model m = open_model(args_of(shape, KERNEL_F16, MODEL_STEP), variant);
    expected_model e = expect_model(&m);
    run_model(&m);
    for (int64_t i = 0; i < e.count; i++) {
        float *gradient = tensor_of(&m, MODEL_GRADIENTS, i);
        for (int64_t k = 0; k < elements_at(&shape, i); k++) gradient[k] /= 65536;
        double error = relative_error(gradient, e.gradients[i], elements_at(&shape, i));
        if (!(error < 1e-2)) fail_msg("%s: tensor %d: error %g", variant, (int)i, error);
        free(gradient);
    }
    forget_model(&e);
    close_model(&m);
}

static void test_gradients(void **unused)
{
    (void)unused;
    compare("unfused");
    compare("best");
    compare("simd");
    compare("threads");
}

/* The masters move as the oracle moves them by the gradients, the scale taken out. */
static void test_update_is_the_unscaled_one(void **unused)
{
    test_model m = open_model(args_of(shape, KERNEL_F16, MODEL_STEP), "best");
    int64_t count = model_tensor_count(&shape);
    double squares = 0;
    (void)unused;
    double **expected = fresh((size_t)count * sizeof *expected);
    for (int64_t i = 0; i < count; i++) {
        float *master = tensor_of(&m, MODEL_MASTER, i);
        expected[i] = fresh((size_t)elements_at(&shape, i) * sizeof **expected);
        for (int64_t k = 0; k < elements_at(&shape, i); k++) expected[i][k] = (double)master[k];
        free(master);
    }
    run_model(&m);
    assert_int_equal(scaler_of(&m)->taken, 1);
    for (int pass = 0; pass < 2; pass++) {
        double scale = optimizer_clip_scale_reference(sqrt(squares), (double)m.args.max_norm);
        for (int64_t i = 0; i < count; i++) {
            float *gradient = tensor_of(&m, MODEL_GRADIENTS, i);
            float *master = tensor_of(&m, MODEL_MASTER, i);
            int64_t elements = elements_at(&shape, i);
            double *moments = calloc((size_t)(2 * elements), sizeof *moments);
            for (int64_t k = 0; k < elements; k++) gradient[k] /= 65536;
            if (pass == 0) squares += optimizer_square_sum_reference(elements, gradient);
            else optimizer_adamw_reference(&m.args.settings, scale, elements, gradient,
                                           expected[i], moments, moments + elements);
            if (pass == 1) assert_true(relative_error(master, expected[i], elements) < 1e-6);
            if (pass == 1) free(expected[i]);
            free(moments), free(gradient), free(master);
        }
    }
    assert_close((double)model_result(&m, MODEL_RESULT_NORM), sqrt(squares),
                 1e-5 * sqrt(squares));
    free(expected);
    close_model(&m);
}

/* The norms by different scales agree as f16 lets them. */
static void test_norm_does_not_hang_on_the_scale(void **unused)
{
    const float scales[] = {1024, 8192, 65536};
    double first = 0;
    (void)unused;
    for (int i = 0; i < 3; i++) {
        model_args args = args_of(shape, KERNEL_F16, MODEL_STEP);
        args.scaling.initial = scales[i];
        test_model m = open_model(args, "unfused");
        expected_model e = expect_model(&m);
        run_model(&m);
        double norm = (double)model_result(&m, MODEL_RESULT_NORM);
        if (i == 0) first = norm;
        assert_close(norm, first, 2e-3 * first);
        assert_close((double)model_result(&m, MODEL_RESULT_LOSS), e.loss, 1e-2);
        forget_model(&e);
        close_model(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_rule),
        cmocka_unit_test(test_falls),
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_unscales_before_clipping),
        cmocka_unit_test(test_skips),
        cmocka_unit_test(test_first_steps_overflow),
        cmocka_unit_test(test_planted_overflow),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_update_is_the_unscaled_one),
        cmocka_unit_test(test_norm_does_not_hang_on_the_scale),
    };
    return cmocka_run_group_tests_name("loss_scale", tests, NULL, NULL);
}
