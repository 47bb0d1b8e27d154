/*
 * test_suite_model.c - the model suite's checks see one wrong element in
 * anything that a step leaves behind, and one that was not written.
 */
#include "../../suites/parallel.c"
#include "../../suites/peaks.c"

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

#include "../../suites/model_check_scaling.c"

#include "../../suites/model_check_sums.c"

#include "../../suites/model_groups.c"

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

typedef int run_function(const void *args, void *workspace, void *state, kernel_stream stream);

/* Measures a step as a variant does it that is `best` but for run. */
static void expect_step(model_shape shape, kernel_dtype dtype, run_function *run,
                        const char *verdict)
{
    suite s = open_quick_suite();
    kernel_variant variant = *kernel_find(&model_cpu, "best");
    kernel_table only = {&variant, 1};
    suite_operation operation = {.name = "test", .cpu = &only,
                                 .args_bytes = sizeof(model_args), .build = model_build,
                                 .verify = model_verify};
    model_args args = model_args_of(&shape, dtype, MODEL_STEP);
    if (run) variant.run = run;
    wanted_dtypes = KERNEL_DTYPE_BIT(dtype);
    suite_queue(&s, &operation, dtype, "", &args, 1, 1);
    assert_verdict(&s, verdict);
}

static void expect_of(model_shape shape, run_function *run, const char *verdict)
{
    expect_step(shape, KERNEL_F32, run, verdict);
}

/* Spoiled where at is not negative. */
static void expect(model_shape shape, model_buffer buffer, int64_t at, float value,
                   const char *verdict)
{
    spoil.run = kernel_find(&model_cpu, "best")->run;
    spoil.buffer = buffer;
    spoil.at = at;
    spoil.value = value;
    expect_of(shape, at >= 0 ? run_and_spoil : NULL, verdict);
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
    model_args args = model_args_of(&tied, KERNEL_F32, MODEL_STEP);
    model_plan plan = model_plan_of(&args);
    for (int i = MODEL_VALUES; i < MODEL_BUFFERS; i++)
        if (plan.bytes[i] > 0) expect(tied, (model_buffer)i, 0, 7, "mismatch");
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

/* Each run weighs the rows' losses as no other does, so that its gradients are its own,
 * as those are whose sums are added up in any order. */
static int run_with_own_gradients(const void *args, void *workspace, void *state,
                                  kernel_stream stream)
{
    static int runs;
    const model_args *a = args;
    model_plan plan = model_plan_of(a);
    float *weights = model_memory(a, &plan, MODEL_ROW_WEIGHTS);
    runs++;
    for (int64_t i = 0; i < model_rows(&a->shape); i++)
        weights[i] = (1 + 0.01f * (float)(runs * (i + 1) % 7)) / (float)model_rows(&a->shape);
    return kernel_find(&model_cpu, "best")->run(args, workspace, state, stream);
}

static void test_gradients_differ_between_runs(void **unused)
{
    (void)unused;
    expect_of(untied, run_with_own_gradients, "ok");
    expect_of(tied, run_with_own_gradients, "ok");
}

/* All but AdamW. */
static int run_without_adamw(const void *args, void *workspace, void *state,
                             kernel_stream stream)
{
    const kernel_variant *best = kernel_find(&model_cpu, "best");
    model_args a = *(const model_args *)args;
    void *own = NULL;
    (void)state;
    a.components &= ~(1u << MODEL_ADAMW);
    int code = best->prepare(&a, &own);
    if (code == 0) code = best->run(&a, workspace, own, stream);
    best->release(own);
    return code;
}

static void test_update_left_out(void **unused)
{
    (void)unused;
    expect_of(untied, run_without_adamw, "mismatch");
}

/* Moments that a run of several steps left: only what holds of any gradients. */
static void test_moments_of_no_gradients(void **unused)
{
    const optimizer_adamw settings = {0, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    double bad[3] = {0, 1.2, 1}, negative[3] = {0, 0, -1e-3}, good[3] = {0, 1.16, 1};
    suite s = open_quick_suite();
    part_checker c = {.bench = s.bench, .dtype = KERNEL_F32};
    (void)unused;
    check_moments(&c, &settings, &(tensor_look){1, good, good + 1, good + 2});
    assert_int_equal(c.code, 0);
    check_moments(&c, &settings, &(tensor_look){1, negative, negative + 1, negative + 2});
    assert_int_equal(c.code, GPUBENCH_MISMATCH);
    c.code = 0;
    check_moments(&c, &settings, &(tensor_look){1, bad, bad + 1, bad + 2});
    assert_int_equal(c.code, GPUBENCH_MISMATCH);
    suite_close(&s);
}

/* ---- f16 --------------------------------------------------------------------------------- */

static optimizer_scaler *scaler_of(const void *args)
{
    model_plan plan = model_plan_of(args);
    return model_memory(args, &plan, MODEL_SCALER);
}

static int run_best(const void *args, void *workspace, void *state, kernel_stream stream)
{
    return kernel_find(&model_cpu, "best")->run(args, workspace, state, stream);
}

static int run_and_count_twice(const void *args, void *workspace, void *state,
                               kernel_stream stream)
{
    int code = run_best(args, workspace, state, stream);
    scaler_of(args)->taken++;
    return code;
}

static int run_and_grow(const void *args, void *workspace, void *state, kernel_stream stream)
{
    int code = run_best(args, workspace, state, stream);
    scaler_of(args)->scale *= 2;
    return code;
}

static int run_and_weigh(const void *args, void *workspace, void *state, kernel_stream stream)
{
    int code = run_best(args, workspace, state, stream);
    model_plan plan = model_plan_of(args);
    ((float *)model_memory(args, &plan, MODEL_ROW_WEIGHTS))[3] *= 2;
    return code;
}

static void test_loss_scale(void **unused)
{
    (void)unused;
    expect_step(tied, KERNEL_F16, NULL, "ok");
    expect_step(untied, KERNEL_F16, NULL, "ok");
    expect_step(untied, KERNEL_F16, run_and_count_twice, "mismatch");
    expect_step(untied, KERNEL_F16, run_and_grow, "mismatch");
    expect_step(untied, KERNEL_F16, run_and_weigh, "mismatch");
}

/* Infinite weights are no matter of the scale: the case fails, in a bounded time. */
static int build_with_infinities(suite_case *c, gpubench *bench)
{
    const model_args *a = c->args;
    int code = model_build(c, bench);
    model_plan plan = model_plan_of(a);
    uint16_t *values = model_memory(a, &plan, MODEL_VALUES);
    values[model_tensor_offset(&a->shape, model_norm_tensor(&a->shape))] = 0x7c00;
    code = code ? code : model_settle_scale(bench, a, c->variant);
    assert_true(scaler_of(a)->scale == 1);
    return code;
}

static void test_infinite_weights(void **unused)
{
    suite s = open_quick_suite();
    suite_operation operation = {.name = "test", .cpu = &model_cpu,
                                 .args_bytes = sizeof(model_args),
                                 .build = build_with_infinities, .verify = model_verify};
    model_args args = model_args_of(&untied, KERNEL_F16, MODEL_STEP);
    kernel_table only = {&model_cpu.rows[0], 1};
    (void)unused;
    wanted_dtypes = KERNEL_DTYPE_BIT(KERNEL_F16);
    operation.cpu = &only;
    suite_queue(&s, &operation, KERNEL_F16, "", &args, 1, 1);
    assert_verdict(&s, "failed");
}

/* A row of a habit as a case of its own. */
static void expect_of_habit(const char *name, const char *row, const char *verdict)
{
    suite s = open_quick_suite();
    habit_operation shared = {.operation = {.name = "test", .args_bytes = sizeof(model_args),
                                            .build = build, .verify = verify}};
    model_args args = model_args_of(&untied, KERNEL_F32, MODEL_STEP);
    kernel_table only = {NULL, 1};
    for (int i = 0; i < model_habits_cpu_count; i++)
        if (!strcmp(model_habits_cpu[i].name, name)) shared.habit = &model_habits_cpu[i];
    only.rows = kernel_find(&shared.habit->table, row);
    shared.operation.cpu = &only;
    args.habit = shared.habit;
    suite_queue(&s, &shared.operation, KERNEL_F32, "", &args, 1, 1);
    assert_verdict(&s, verdict);
}

/* What a loader's thread cannot do ends the case. */
static void test_habits_that_fail(void **unused)
{
    (void)unused;
    expect_of_habit("checkpoint", "by_thread", "ok");
    expect_of_habit("inputs", "prefetched", "ok");
    setenv("TMPDIR", "/nowhere", 1);
    expect_of_habit("checkpoint", "by_thread", "failed");
    expect_of_habit("checkpoint", "in_loop", "failed");
    unsetenv("TMPDIR");
    expect_of_habit("products", "first", "unsupported");
}

/* ---- memory ------------------------------------------------------------------------------ */

/* A size that fits into no address space: its row has the bytes that it needs, those of
 * its plan, and those that are free, and the size behind it is measured. */
static void test_no_room(void **unused)
{
    suite s = open_quick_suite();
    const model_shape vast = {1 << 10, 1 << 10, 24, 3, 40, 2, 1 << 30, 1 << 30, 1};
    kernel_table only = {kernel_find(&model_cpu, "best"), 1};
    suite_operation operation = {.name = "test", .cpu = &only,
                                 .args_bytes = sizeof(model_args), .build = model_build,
                                 .verify = model_verify};
    model_args large = model_args_of(&vast, KERNEL_F32, MODEL_STEP);
    model_args small = model_args_of(&tied, KERNEL_F32, MODEL_STEP);
    char needed[64];
    (void)unused;
    wanted_dtypes = KERNEL_DTYPE_BIT(KERNEL_F32);
    large.layout = model_layout_cpu(&vast, KERNEL_F32, 1);
    snprintf(needed, sizeof needed, "needed_bytes=%llu free_bytes=", (unsigned long long)model_plan_of(&large).total);
    suite_queue(&s, &operation, KERNEL_F32, "n=1", &large, 1, 1);
    suite_queue(&s, &operation, KERNEL_F32, "n=2", &small, 1, 1);
    gpubench_run(s.bench);
    assert_int_equal(gpubench_row_count(s.bench), 2);
    size_t first = !strcmp(gpubench_value(s.bench, 0, "params"), "n=1") ? 0 : 1;
    assert_string_equal(gpubench_value(s.bench, first, "status"), "oom");
    const char *flags = strstr(gpubench_value(s.bench, first, "flags"), needed);
    assert_non_null(flags);
    assert_true(strtod(flags + strlen(needed), NULL) > 0);
    assert_string_equal(gpubench_value(s.bench, 1 - first, "status"), "ok");
    suite_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untouched),      cmocka_unit_test(test_every_buffer),
        cmocka_unit_test(test_every_result),   cmocka_unit_test(test_every_gradient),
        cmocka_unit_test(test_padding_logit),  cmocka_unit_test(test_not_written),
        cmocka_unit_test(test_gradients_differ_between_runs),
        cmocka_unit_test(test_update_left_out),
        cmocka_unit_test(test_loss_scale),
        cmocka_unit_test(test_infinite_weights),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_moments_of_no_gradients),
        cmocka_unit_test(test_habits_that_fail),
    };
    return cmocka_run_group_tests_name("suite_model", tests, NULL, NULL);
}
