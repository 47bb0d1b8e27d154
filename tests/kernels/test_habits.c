/*
 * test_habits.c - every habit of the host leaves behind what plain steps leave, has its
 * inputs from where it says, and says why where it cannot go on.
 */
#include "model_test.h"

#include "../../kernels/model/batches.h"

static const model_shape tied = {2, 9, 24, 3, 40, 2, 29, 32, 1};

static test_model open_plain(kernel_dtype dtype)
{
    model_args args = args_of(tied, dtype, MODEL_STEP);
    args.settings.learning_rate = 0;
    return open_model(args, "best");
}

/* The same model, run by a row of a habit. */
static test_model open_habit(const model_habit *habit, const kernel_variant *row,
                             kernel_dtype dtype)
{
    test_model m = open_plain(dtype);
    m.variant->release(m.state);
    free(m.workspace);
    m.variant = row;
    m.args.habit = habit;
    m.workspace = fresh(row->workspace_bytes ? row->workspace_bytes(&m.args) : 1);
    assert_int_equal(row->prepare(&m.args, &m.state), 0);
    return m;
}

static void expect_close(const test_model *m, const test_model *plain, model_buffer buffer)
{
    for (int64_t i = 0; i < model_tensor_count(&tied); i++) {
        int64_t count = elements_at(&tied, i);
        float *value = tensor_of(m, buffer, i), *expected = tensor_of(plain, buffer, i);
        double *wide = fresh((size_t)count * sizeof *wide);
        for (int64_t k = 0; k < count; k++) wide[k] = (double)expected[k];
        assert_close(relative_error(value, wide, count), 0,
                     m->args.dtype == KERNEL_F32 ? 1e-5 : 6e-3);
        free(value), free(expected), free(wide);
    }
}

static void expect_as_plain(const model_habit *habit, const kernel_variant *row,
                            kernel_dtype dtype)
{
    test_model m = open_habit(habit, row, dtype), plain = open_plain(dtype);
    for (int run = 0; run < 2; run++) {
        assert_int_equal(row->run(&m.args, m.workspace, m.state, NULL), 0);
        for (int i = 0; i < habit->steps; i++) run_model(&plain);
    }
    assert_close((double)model_result(&m, MODEL_RESULT_LOSS),
                 (double)model_result(&plain, MODEL_RESULT_LOSS), 1e-3);
    expect_close(&m, &plain, MODEL_VALUES);
    expect_close(&m, &plain, MODEL_GRADIENTS);
    expect_close(&m, &plain, MODEL_FIRST);
    expect_close(&m, &plain, MODEL_SECOND);
    close_model(&m);
    close_model(&plain);
}

#define FOR_EACH_ROW(habit, row)                                                              \
    for (const model_habit *habit = model_habits_cpu;                                         \
         habit < model_habits_cpu + model_habits_cpu_count; habit++)                          \
        for (const kernel_variant *row = habit->table.rows;                                   \
             row < habit->table.rows + habit->table.count; row++)

/* Once of each slow loader is enough: the shortest. */
static void test_same_as_plain(void **unused)
{
    (void)unused;
    FOR_EACH_ROW(habit, row) {
        model_args args = args_of(tied, KERNEL_F32, MODEL_STEP);
        if (why_not(row, &args) || habit->batch_ms > 5) continue;
        expect_as_plain(habit, row, KERNEL_F32);
        if (row->dtypes & KERNEL_DTYPE_BIT(KERNEL_BF16)) expect_as_plain(habit, row, KERNEL_BF16);
    }
}

/* What a table prints, and a message where there is nothing to measure. */
static void test_described(void **unused)
{
    (void)unused;
    assert_between(model_habits_cpu_count, 1, MODEL_MOST_HABITS);
    FOR_EACH_ROW(habit, row) {
        assert_int_equal(habit->why[strlen(habit->why) - 1], '.');
        assert_true(strlen(row->note) > 5);
        assert_true(habit->steps > 0);
        assert_true(habit->table.count > 1);
    }
}

static int is_loaded(const model_habit *habit, const kernel_variant *row)
{
    int is_of_loader = !strcmp(habit->name, "inputs") || !strcmp(habit->name, "loader");
    return is_of_loader && strcmp(row->name, "resident") != 0;
}

/* Tokens that were there when a row was prepared come back with each batch. */
static void test_inputs_are_loaded(void **unused)
{
    (void)unused;
    FOR_EACH_ROW(habit, row) {
        if (!is_loaded(habit, row) || habit->batch_ms > 5) continue;
        test_model m = open_habit(habit, row, KERNEL_F32);
        size_t bytes = m.plan.bytes[MODEL_TOKENS];
        void *tokens = model_memory(&m.args, &m.plan, MODEL_TOKENS);
        void *targets = model_memory(&m.args, &m.plan, MODEL_TARGETS);
        void *before[] = {fresh(bytes), fresh(bytes)};
        memcpy(before[0], tokens, bytes), memset(tokens, 0, bytes);
        memcpy(before[1], targets, bytes), memset(targets, 0, bytes);
        assert_int_equal(row->run(&m.args, m.workspace, m.state, NULL), 0);
        assert_memory_equal(tokens, before[0], bytes);
        assert_memory_equal(targets, before[1], bytes);
        free(before[0]), free(before[1]);
        close_model(&m);
    }
}

/* Token 29 of a vocabulary of 29 is in the batch that a loader was given. */
static void test_a_batch_that_cannot_be_made(void **unused)
{
    (void)unused;
    FOR_EACH_ROW(habit, row) {
        if (!is_loaded(habit, row) || habit->batch_ms > 5) continue;
        test_model m = open_habit(habit, row, KERNEL_F32);
        int32_t *tokens = model_memory(&m.args, &m.plan, MODEL_TOKENS);
        row->release(m.state);
        tokens[7] = 29;
        assert_int_equal(row->prepare(&m.args, &m.state), 0);
        assert_int_equal(row->run(&m.args, m.workspace, m.state, NULL), KERNEL_ERROR_SAID);
        assert_string_equal(kernel_error_string(KERNEL_ERROR_SAID),
                            "batch 0: token 29 is not one of the vocabulary's 29");
        close_model(&m);
    }
}

/* A folder that is not there: said, by a thread as in the loop. */
static void test_a_file_that_cannot_be_written(void **unused)
{
    int tried = 0;
    (void)unused;
    setenv("TMPDIR", "/nowhere", 1);
    FOR_EACH_ROW(habit, row) {
        if (strcmp(habit->name, "checkpoint") || !strcmp(row->name, "none")) continue;
        test_model m = open_habit(habit, row, KERNEL_F32);
        assert_int_equal(row->run(&m.args, m.workspace, m.state, NULL), KERNEL_ERROR_SAID);
        assert_string_equal(kernel_error_string(KERNEL_ERROR_SAID),
                            "a file in '/nowhere': No such file or directory");
        close_model(&m);
        tried++;
    }
    unsetenv("TMPDIR");
    assert_int_equal(tried, 2);
}

/* Nothing is waited for where the inputs are there, and something where they are not. */
static void test_idle(void **unused)
{
    (void)unused;
    FOR_EACH_ROW(habit, row) {
        if (!habit->idle_us || habit->batch_ms > 5) continue;
        test_model m = open_habit(habit, row, KERNEL_F32);
        assert_int_equal(row->run(&m.args, m.workspace, m.state, NULL), 0);
        if (is_loaded(habit, row))
            assert_true(habit->idle_us(m.state) > 0);
        else
            assert_close(habit->idle_us(m.state), 0, 0);
        close_model(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_plain),
        cmocka_unit_test(test_described),
        cmocka_unit_test(test_inputs_are_loaded),
        cmocka_unit_test(test_a_batch_that_cannot_be_made),
        cmocka_unit_test(test_a_file_that_cannot_be_written),
        cmocka_unit_test(test_idle),
    };
    return cmocka_run_group_tests_name("habits", tests, NULL, NULL);
}
