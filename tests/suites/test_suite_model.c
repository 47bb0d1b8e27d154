/*
 * test_suite_model.c - the model suite's checks see one wrong element in
 * anything that a step leaves behind, and one that was not written.
 */
#include "../../suites/parallel.c"

#include "../../suites/gpubench.c"

#include "../../suites/suite.c"

#include "../../suites/once.c"

#include "../../suites/part_check.c"

#include "../../suites/part_check_heads.c"

#include "../../suites/model_build.c"

#include "../../suites/model_parts.c"

#include "../../suites/model_habits.c"

#include "../../suites/model_study.c"

#include "../../suites/model_files.c"

#include "../../suites/model_check.c"

#include "../../suites/model_check_update.c"

#define main model_main
#include "../../suites/model.c"
#undef main

#include "suite_test.h"

static const model_shape untied = {2, 9, 24, 3, 40, 2, 29, 29, 0};
static const model_shape tied = {2, 9, 24, 3, 40, 2, 29, 32, 1};

/* After the pass, float `at` of a buffer is set to `value`. */
static struct {
    int (*run)(const void *args, void *workspace, void *state, kernel_stream stream);
    model_buffer buffer;
    int64_t at;
    float value;
} spoil;

static int run_and_spoil(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args *a = args;
    model_plan plan = model_plan_of(a);
    int code = spoil.run(args, workspace, state, stream);
    ((float *)model_memory(a, &plan, spoil.buffer))[spoil.at] = spoil.value;
    return code;
}

/* A step of f32, spoiled where at is not negative. */
static void expect(model_shape shape, model_buffer buffer, int64_t at, float value,
                   const char *verdict)
{
    suite s = open_quick_suite();
    kernel_variant variant = *kernel_find(&model_cpu, "best");
    kernel_table only = {&variant, 1};
    suite_operation operation = {.name = "test", .cpu = &only,
                                 .args_bytes = sizeof(model_args), .build = model_build,
                                 .verify = model_verify};
    model_args args = model_args_of(&shape, KERNEL_F32, MODEL_STEP);
    spoil.run = variant.run;
    spoil.buffer = buffer;
    spoil.at = at;
    spoil.value = value;
    if (at >= 0) variant.run = run_and_spoil;
    suite_queue(&s, &operation, KERNEL_F32, "", &args, 1, 1);
    assert_verdict(&s, verdict);
}

static void test_untouched(void **unused)
{
    (void)unused;
    expect(untied, MODEL_LOGITS, -1, 0, "ok");
    expect(tied, MODEL_LOGITS, -1, 0, "ok");
}

/* The first element of every buffer that a step writes or starts from. */
static void test_every_buffer(void **unused)
{
    (void)unused;
    for (int i = MODEL_VALUES; i < MODEL_BUFFERS; i++)
        if (i != MODEL_MASTER) expect(tied, (model_buffer)i, 0, 7, "mismatch");
}

static void test_every_result(void **unused)
{
    (void)unused;
    for (int i = 0; i < MODEL_RESULT_COUNT; i++)
        expect(untied, MODEL_RESULTS, i, 7, "mismatch");
}

/* Each tensor's gradient: where the layers' own were overwritten, by the norm. */
static void test_every_gradient(void **unused)
{
    (void)unused;
    for (int64_t i = 0; i < model_tensor_count(&untied); i++)
        expect(untied, MODEL_GRADIENTS, model_tensor_offset(&untied, i), 7, "mismatch");
}

/* A logit of a padding row that would take part in the softmax. */
static void test_padding_logit(void **unused)
{
    (void)unused;
    expect(tied, MODEL_LOGITS, 30, 0, "mismatch");
}

static void test_not_written(void **unused)
{
    const float poison = (float)NAN;
    (void)unused;
    expect(untied, MODEL_LOGITS, 29 * 8 + 3, poison, "mismatch");
    expect(untied, MODEL_LOGIT_GRADIENTS, 29 * 8 + 3, poison, "mismatch");
    expect(untied, MODEL_GRADIENTS, 24 * 13 + 1, poison, "mismatch");
    expect(untied, MODEL_LAST_GRADIENT, 24 * 8 + 5, poison, "mismatch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untouched),      cmocka_unit_test(test_every_buffer),
        cmocka_unit_test(test_every_result),   cmocka_unit_test(test_every_gradient),
        cmocka_unit_test(test_padding_logit),  cmocka_unit_test(test_not_written),
    };
    return cmocka_run_group_tests_name("suite_model", tests, NULL, NULL);
}
