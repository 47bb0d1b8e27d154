/* A model's checkpoint: names, shapes and bytes, and that a file that is not the
 * model's is refused with the tensor's name. */
#include "../../kernels/model/checkpoint.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "model_test.h"

static const model_shape tied = {1, 4, 8, 2, 16, 1, 11, 16, 1};
static char folder[] = "/tmp/checkpoint.XXXXXX", path[64];

static int make_folder(void **unused)
{
    (void)unused;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **unused)
{
    (void)unused;
    remove(path);
    return rmdir(folder);
}

static void write_model(model_shape shape, kernel_dtype dtype)
{
    char reason[SAFETENSORS_REASON] = "";
    test_model m = open_model(args_of(shape, dtype, MODEL_STEP), "best");
    void *values = model_memory(&m.args, &m.plan, MODEL_VALUES);
    assert_int_equal(model_checkpoint_write(path, &shape, dtype, values, reason), 0);
    close_model(&m);
}

/* The 16 tensors that test_what_is_in_the_file counts, and the three they are of. */
static void test_outcome(void **unused)
{
    const int32_t tokens[4] = {1, 2, 3, 4}, targets[4] = {2, 3, 4, 5};
    const float loss = 2.5f;
    char reason[SAFETENSORS_REASON] = "";
    safetensors_file file;
    test_model m = open_model(args_of(tied, KERNEL_F32, MODEL_STEP), "best");
    float *gradients = model_memory(&m.args, &m.plan, MODEL_GRADIENTS);
    model_outcome outcome = {tokens, targets, &loss, gradients};
    const safetensors_tensor *found;
    (void)unused;
    gradients[model_tensor_offset(&tied, 1) + 5] = 7;
    assert_int_equal(model_outcome_write(path, &tied, KERNEL_F32, &outcome, reason), 0);
    assert_int_equal(safetensors_read(path, &file, reason), 0);
    assert_int_equal(file.count, 16 + 3);
    found = safetensors_find(&file, "targets");
    assert_non_null(found);
    assert_int_equal(found->shape[0], 1);
    assert_int_equal(found->shape[1], 4);
    assert_memory_equal(found->data, targets, sizeof targets);
    assert_memory_equal(safetensors_find(&file, "loss")->data, &loss, sizeof loss);
    found = safetensors_find(&file, "position_embedding");
    assert_memory_equal(found->data, gradients + model_tensor_offset(&tied, 1), 4 * 8 * 4);
    safetensors_close(&file);
    close_model(&m);
}

/* 2 tables, 12 of the layer, 2 of the norm; the table without its padding. */
static void test_what_is_in_the_file(void **unused)
{
    char reason[SAFETENSORS_REASON] = "";
    safetensors_file file;
    const safetensors_tensor *t;
    (void)unused;
    write_model(tied, KERNEL_BF16);
    assert_int_equal(safetensors_read(path, &file, reason), 0);
    assert_int_equal(file.count, 16);
    t = safetensors_find(&file, "token_embedding");
    assert_non_null(t);
    assert_string_equal(t->dtype, "BF16");
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[0], 11);
    assert_int_equal(t->shape[1], 8);
    t = safetensors_find(&file, "h.0.fc1.weight");
    assert_non_null(t);
    assert_int_equal(t->shape[0], 16);
    t = safetensors_find(&file, "ln.bias");
    assert_non_null(t);
    assert_int_equal(t->rank, 1);
    assert_int_equal(t->shape[0], 8);
    assert_null(safetensors_find(&file, "head.weight"));
    safetensors_close(&file);
}

/* Read into a model that trained on: it is the first again, padding included. */
static void round_trip(model_shape shape, kernel_dtype dtype)
{
    char reason[SAFETENSORS_REASON] = "";
    test_model first = open_model(args_of(shape, dtype, MODEL_STEP), "best"), second;
    void *read;
    write_model(shape, dtype);
    second = open_model(args_of(shape, dtype, MODEL_STEP), "best");
    run_model(&second);
    read = model_memory(&second.args, &second.plan, MODEL_VALUES);
    if (model_checkpoint_read(path, &shape, dtype, read, reason) != 0) fail_msg("%s", reason);
    for (int64_t i = 0; i < model_tensor_count(&shape); i++) {
        float *a = tensor_of(&first, MODEL_VALUES, i), *b = tensor_of(&second, MODEL_VALUES, i);
        assert_memory_equal(a, b, (size_t)elements_at(&shape, i) * sizeof *a);
        free(a), free(b);
    }
    close_model(&first);
    close_model(&second);
}

static void test_round_trip(void **unused)
{
    model_shape untied = tied;
    (void)unused;
    untied.tied = 0;
    round_trip(tied, KERNEL_F32);
    round_trip(tied, KERNEL_BF16);
    round_trip(untied, KERNEL_F32);
}

static void expect_refused(model_shape shape, kernel_dtype dtype, const char *word)
{
    char reason[SAFETENSORS_REASON] = "";
    size_t bytes = (size_t)model_tensor_offset(&shape, model_tensor_count(&shape)) * sizeof(float);
    void *values = fresh(bytes);
    assert_int_equal(model_checkpoint_read(path, &shape, dtype, values, reason), -1);
    if (!strstr(reason, path) || !strstr(reason, word)) fail_msg("says: %s", reason);
    free(values);
}

static void test_other_models_are_refused(void **unused)
{
    model_shape deeper = tied, wider = tied, untied = tied, fewer = tied;
    (void)unused;
    write_model(tied, KERNEL_F32);
    deeper.layers = 2, untied.tied = 0, wider.hidden = 32, fewer.vocabulary = 10;
    expect_refused(deeper, KERNEL_F32, "h.1.ln1.weight is missing");
    expect_refused(untied, KERNEL_F32, "head.weight is missing");
    expect_refused(wider, KERNEL_F32, "h.0.fc1.weight has another shape");
    expect_refused(fewer, KERNEL_F32, "token_embedding has another shape");
    expect_refused(tied, KERNEL_BF16, "token_embedding has another dtype");
    write_model(deeper, KERNEL_F32);
    expect_refused(tied, KERNEL_F32, "more tensors");
}

/* A file with a head of its own, for a model whose head is the table. */
static void test_a_head_that_is_another(void **unused)
{
    model_shape untied = tied;
    (void)unused;
    untied.tied = 0;
    write_model(untied, KERNEL_F32);
    expect_refused(tied, KERNEL_F32, "head.weight is not the token table");
}

static int write_scratch(char reason[SAFETENSORS_REASON])
{
    test_model m = open_model(args_of(tied, KERNEL_F32, MODEL_STEP), "best");
    void *values = model_memory(&m.args, &m.plan, MODEL_VALUES);
    int code = model_checkpoint_write_scratch(&tied, KERNEL_F32, values, reason);
    close_model(&m);
    return code;
}

static void expect_empty_folder(void)
{
    int entries = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    while (readdir(open)) entries++;
    closedir(open);
    assert_int_equal(entries, 2); /* . and .. */
}

/* Neither one that was written whole nor one that the disk had no room for, which a limit
 * of 1 KB stands for: the tables' 120 elements and a layer's 600 are more. */
static void test_scratch_leaves_nothing(void **unused)
{
    char reason[SAFETENSORS_REASON] = "";
    struct rlimit limit, before;
    (void)unused;
    remove(path);
    setenv("TMPDIR", folder, 1);
    assert_int_equal(write_scratch(reason), 0);
    expect_empty_folder();
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 1024;
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(write_scratch(reason), -1);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_non_null(strstr(reason, folder));
    assert_non_null(strstr(reason, "too large"));
    expect_empty_folder();
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(write_scratch(reason), -1);
    assert_non_null(strstr(reason, "/nowhere"));
    unsetenv("TMPDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcome),
        cmocka_unit_test(test_what_is_in_the_file),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_other_models_are_refused),
        cmocka_unit_test(test_a_head_that_is_another),
        cmocka_unit_test(test_scratch_leaves_nothing),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, make_folder, remove_folder);
}
