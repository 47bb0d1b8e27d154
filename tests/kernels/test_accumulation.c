/* Several small batches whose gradients are added up are one large batch. */
#include "model_test.h"

static const model_shape large = {8, 7, 24, 3, 40, 2, 29, 32, 1};

static model_args split_in(int64_t micro_batches, kernel_dtype dtype)
{
    model_args args;
    model_shape shape = large;
    shape.batch /= micro_batches;
    args = args_of(shape, dtype, MODEL_STEP);
    args.micro_batches = micro_batches;
    return args;
}

/* All 56 rows of a step, in the same order however it is split. */
static test_model open_split(int64_t micro_batches, kernel_dtype dtype, const char *variant)
{
    test_model m = open_model(split_in(micro_batches, dtype), variant);
    int64_t rows = model_step_rows(&m.args);
    assert_int_equal(rows, 56);
    assert_int_equal(tokens_fill(model_memory(&m.args, &m.plan, MODEL_TOKENS), rows, 29,
                                 TOKENS_UNIFORM, 2), 0);
    assert_int_equal(tokens_fill(model_memory(&m.args, &m.plan, MODEL_TARGETS), rows, 29,
                                 TOKENS_UNIFORM, 3), 0);
    return m;
}

/* The gradient of keys' biases is nothing but rounding, since a number that is added to
 * all scores of a row changes no softmax; and AdamW makes it as large as any other. */
static int is_noise(int64_t tensor)
{
    return tensor == model_layer_tensor(0) + BLOCK_QKV_BIAS ||
           tensor == model_layer_tensor(1) + BLOCK_QKV_BIAS;
}

static void expect_same(const test_model *m, const test_model *whole, model_buffer buffer,
                        double bound)
{
    for (int64_t i = 0; i < model_tensor_count(&large); i++) {
        if (buffer == MODEL_VALUES && is_noise(i)) continue;
        int64_t count = elements_at(&large, i);
        float *value = tensor_of(m, buffer, i), *wanted = tensor_of(whole, buffer, i);
        double *expected = fresh((size_t)count * sizeof *expected);
        for (int64_t k = 0; k < count; k++) expected[k] = (double)wanted[k];
        double error = relative_error(value, expected, count);
        if (!(error <= bound)) fail_msg("tensor %d: error %g", (int)i, error);
        free(value), free(wanted), free(expected);
    }
}

/* Had a batch's part been forgotten, or the division by their number, the norm would be
 * off by a factor; the loss curve of AdamW would hardly show it. */
static void compare(kernel_dtype dtype, const char *variant, double bound)
{
    for (int64_t micro_batches = 2; micro_batches <= 8; micro_batches *= 2) {
        test_model whole = open_split(1, dtype, variant);
        test_model m = open_split(micro_batches, dtype, variant);
        for (int step = 1; step <= 10; step++) {
            m.args.settings.step = whole.args.settings.step = step;
            run_model(&whole);
            run_model(&m);
            for (int i = 0; i < 2; i++) {
                int which = i ? MODEL_RESULT_NORM : MODEL_RESULT_LOSS;
                double expected = (double)model_result(&whole, which);
                assert_close((double)model_result(&m, which), expected, bound * expected);
            }
            if (step == 1) expect_same(&m, &whole, MODEL_GRADIENTS, bound);
        }
        expect_same(&m, &whole, MODEL_VALUES, bound);
        close_model(&m);
        close_model(&whole);
    }
}

static void test_f32(void **unused)
{
    (void)unused;
    compare(KERNEL_F32, "unfused", 1e-5);
    compare(KERNEL_F32, "threads", 1e-5);
}

static void test_halves(void **unused)
{
    (void)unused;
    compare(KERNEL_BF16, "best", 3e-2);
    compare(KERNEL_F16, "best", 1e-2);
}

/* Recomputed activations are the same: 4 batches of 2 sequences. */
static void test_recomputed(void **unused)
{
    test_model kept = open_split(4, KERNEL_F32, "best");
    model_args args = split_in(4, KERNEL_F32);
    (void)unused;
    args.recomputes = 1;
    test_model m = open_model(args, "recompute");
    for (model_buffer b = MODEL_TOKENS; b <= MODEL_TARGETS; b++)
        memcpy(model_memory(&m.args, &m.plan, b), model_memory(&kept.args, &kept.plan, b),
               (size_t)kept.plan.bytes[b]);
    run_model(&kept);
    run_model(&m);
    expect_same(&m, &kept, MODEL_GRADIENTS, 0);
    close_model(&m);
    close_model(&kept);
}

/* Sums of 4 bytes an element, and activations of a batch alone. */
static void test_memory(void **unused)
{
    model_args whole = split_in(1, KERNEL_BF16), args = split_in(4, KERNEL_BF16);
    model_plan one = model_plan_of(&whole), plan = model_plan_of(&args);
    int64_t elements = model_tensor_offset(&large, model_tensor_count(&large));
    (void)unused;
    assert_int_equal(one.bytes[MODEL_SUMS], 0);
    assert_int_equal(plan.bytes[MODEL_SUMS], 4 * elements);
    assert_int_equal(plan.bytes[MODEL_STREAM] * 4, one.bytes[MODEL_STREAM]);
    assert_int_equal(plan.bytes[MODEL_TOKENS], one.bytes[MODEL_TOKENS]);
    assert_int_equal(model_category_of(MODEL_SUMS), MODEL_OF_GRADIENTS);
}

/* One of several alone leaves its own gradients; a number that is none is refused. */
static void test_one_alone(void **unused)
{
    test_model m = open_split(2, KERNEL_F32, "best");
    model_args one = m.args;
    double *sum = calloc((size_t)elements_at(&large, 3), sizeof *sum);
    (void)unused;
    for (int i = 1; i <= 2; i++) {
        void *state = NULL;
        one.phases = MODEL_FORWARD | MODEL_LOSS | MODEL_BACKWARD;
        one.micro_one = i;
        assert_int_equal(m.variant->prepare(&one, &state), 0);
        assert_int_equal(m.variant->run(&one, m.workspace, state, NULL), 0);
        m.variant->release(state);
        float *gradient = tensor_of(&m, MODEL_GRADIENTS, 3);
        for (int64_t k = 0; k < elements_at(&large, 3); k++) sum[k] += (double)gradient[k];
        free(gradient);
    }
    m.args.settings.learning_rate = 0;
    run_model(&m);
    float *gradient = tensor_of(&m, MODEL_GRADIENTS, 3);
    assert_true(relative_error(gradient, sum, elements_at(&large, 3)) < 1e-6);
    free(gradient), free(sum);
    model_ops ops;
    one.micro_one = 3;
    assert_int_equal(model_ops_create(&one, &ops), KERNEL_ERROR_ARGUMENT);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),    cmocka_unit_test(test_halves),
        cmocka_unit_test(test_recomputed), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_one_alone),
    };
    return cmocka_run_group_tests_name("accumulation", tests, NULL, NULL);
}
