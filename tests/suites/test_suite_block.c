/*
 * test_suite_block.c - the block suite's checks see one wrong element in
 * anything that a pass leaves behind, and one that was not written.
 */
#include "../../suites/parallel.c"
#include "../../suites/peaks.c"

#include "../../suites/gpubench.c"

#include "../../suites/suite.c"

#include "../../suites/once.c"

#include "../../suites/part_check.c"

#include "../../suites/part_check_heads.c"

#include "../../suites/block_build.c"

#define main block_main
#include "../../suites/block.c"
#undef main

#include "suite_test.h"

static const block_shape shape = {2, 33, 64, 2, 96};

/* Element `at` of one of a pass's results is set to `value` after the pass; the
 * first is of a sampled row. */
static struct {
    int (*run)(const void *args, void *workspace, void *state, kernel_stream stream);
    float *(*result)(const void *args);
    int index;
    int64_t at;
    float value;
} spoil;

static int run_and_spoil(const void *args, void *workspace, void *state, kernel_stream stream)
{
    int code = spoil.run(args, workspace, state, stream);
    spoil.result(args)[spoil.at] = spoil.value;
    return code;
}

static float *activation(const void *args)
{
    return ((const block_forward_args *)args)->activations[spoil.index];
}

static float *y(const void *args)
{
    return ((const block_forward_args *)args)->y;
}

static float *gradient(const void *args)
{
    return ((const block_backward_args *)args)->gradients[spoil.index];
}

static float *parameter_gradient(const void *args)
{
    return ((const block_backward_args *)args)->parameter_gradients[spoil.index];
}

static float *x_gradient(const void *args)
{
    return ((const block_backward_args *)args)->x_gradient;
}

/* The pass with `result` spoiled, or as it is if that is NULL. */
static void expect(int backward, float *(*result)(const void *), int index, int64_t at, float value,
                   const char *verdict)
{
    suite s = open_quick_suite();
    const kernel_table *table = backward ? &block_backward_cpu : &block_forward_cpu;
    kernel_variant variant = *kernel_find(table, "best");
    kernel_table only = {&variant, 1};
    suite_operation operation = {.name = "test", .cpu = &only};
    block_forward_args forward = {.shape = shape, .dtype = KERNEL_F32, .part = BLOCK_WHOLE};
    block_backward_args back = {.shape = shape, .dtype = KERNEL_F32, .part = BLOCK_WHOLE};
    operation.args_bytes = backward ? sizeof back : sizeof forward;
    operation.build = backward ? block_build_backward : block_build_forward_keeping;
    operation.verify = backward ? block_verify_backward : block_verify_forward;
    spoil.run = variant.run;
    spoil.result = result;
    spoil.index = index;
    spoil.at = at;
    spoil.value = value;
    variant.deterministic = 0;
    if (result) variant.run = run_and_spoil;
    suite_queue(&s, &operation, KERNEL_F32, "", backward ? (void *)&back : (void *)&forward, 1, 1);
    assert_verdict(&s, verdict);
}

static void test_forward(void **unused)
{
    (void)unused;
    expect(0, NULL, 0, 0, 0, "ok");
    expect(0, y, 0, 0, 7, "mismatch");
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) expect(0, activation, i, 0, 7, "mismatch");
}

static void test_backward(void **unused)
{
    (void)unused;
    expect(1, NULL, 0, 0, 0, "ok");
    expect(1, x_gradient, 0, 0, 7, "mismatch");
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++)
        if (block_gradient_count(&shape, (block_activation)i) > 0)
            expect(1, gradient, i, 0, 7, "mismatch");
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        expect(1, parameter_gradient, i, 0, 7, "mismatch");
}

/* An element between the sampled rows, of one result of each kind of part. */
static void test_not_written(void **unused)
{
    const float poison = (float)NAN;
    const int64_t between = shape.batch * shape.tokens * shape.width / 2 + 1;
    (void)unused;
    expect(0, y, 0, between, poison, "mismatch");
    expect(0, activation, BLOCK_NORM1, between, poison, "mismatch");
    expect(0, activation, BLOCK_K, between, poison, "mismatch");
    expect(0, activation, BLOCK_LSE, shape.tokens + 1, poison, "mismatch");
    expect(0, activation, BLOCK_MERGED, between, poison, "mismatch");
    expect(0, activation, BLOCK_PRE, between, poison, "mismatch");
    expect(1, gradient, BLOCK_V, between, poison, "mismatch");
    expect(1, gradient, BLOCK_QKV, between, poison, "mismatch");
    expect(1, gradient, BLOCK_MERGED, between, poison, "mismatch");
    expect(1, x_gradient, 0, between, poison, "mismatch");
    expect(1, parameter_gradient, BLOCK_UP_WEIGHT, between, poison, "mismatch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_not_written),
    };
    return cmocka_run_group_tests_name("suite_block", tests, NULL, NULL);
}
