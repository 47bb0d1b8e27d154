/*
 * model_files.c - --checkpoint and --gradients: what a step starts from and what it
 * leaves, written for other programs to be held against. Of the case model.step by
 * `best`, whose learning rate is 0: the parameters before and after it are the same.
 */
#include "model_suite.h"

#include "../kernels/model/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *model_checkpoint_path, *model_gradients_path;
static int written;

static int is_written_of(const suite_case *c)
{
    return !strcmp(c->operation->name, "model.step") && !strcmp(c->variant->name, "best");
}

/* A buffer on the host, to be freed; NULL and a code otherwise. */
static void *fetch(gpubench *bench, const model_args *a, model_buffer buffer, int *code)
{
    model_plan plan = model_plan_of(a);
    void *copy = *code ? NULL : malloc((size_t)plan.bytes[buffer]);
    if (*code == 0 && !copy) *code = KERNEL_ERROR_MEMORY;
    if (*code == 0)
        *code = gpubench_copy(bench, copy, model_memory(a, &plan, buffer),
                              (size_t)plan.bytes[buffer]);
    return copy;
}

int model_write_checkpoint(const suite_case *c, gpubench *bench)
{
    char reason[SAFETENSORS_REASON];
    const model_args *a = c->args;
    int code = 0;
    void *values;
    if (!model_checkpoint_path || !is_written_of(c)) return 0;
    values = fetch(bench, a, MODEL_VALUES, &code);
    if (code == 0 &&
        model_checkpoint_write(model_checkpoint_path, &a->shape, a->dtype, values, reason) != 0)
        code = gpubench_fail(bench, GPUBENCH_FAILED, "--checkpoint %s", reason);
    free(values);
    written |= code == 0;
    return code;
}

int model_write_gradients(const suite_case *c, gpubench *bench)
{
    char reason[SAFETENSORS_REASON];
    const model_args *a = c->args;
    int code = 0;
    void *tokens, *targets, *gradients;
    float *results;
    if (!model_gradients_path || !is_written_of(c)) return 0;
    tokens = fetch(bench, a, MODEL_TOKENS, &code);
    targets = fetch(bench, a, MODEL_TARGETS, &code);
    gradients = fetch(bench, a, MODEL_GRADIENTS, &code);
    results = fetch(bench, a, MODEL_RESULTS, &code);
    if (code == 0) {
        model_outcome outcome = {tokens, targets, results + MODEL_RESULT_LOSS, gradients};
        if (model_outcome_write(model_gradients_path, &a->shape, a->dtype, &outcome, reason))
            code = gpubench_fail(bench, GPUBENCH_FAILED, "--gradients %s", reason);
    }
    free(tokens), free(targets), free(gradients), free(results);
    written |= code == 0;
    return code;
}

void model_check_files(gpubench *bench, int64_t models)
{
    written = gpubench_given(bench, "--list") != NULL; /* that promises nothing */
    if (model_gradients_path && suite_wants(KERNEL_F16))
        gpubench_usage_error(bench, "--gradients: those of f16 are multiplied by a loss scale");
    if ((model_checkpoint_path || model_gradients_path) && models != 1)
        gpubench_usage_error(bench, "--checkpoint and --gradients want one model: one --shape "
                                    "and one --dtype");
}

int model_files_status(int status)
{
    if (status != 0 || written || (!model_checkpoint_path && !model_gradients_path)) return status;
    fputs("model: nothing was written: the case model.step by best was not run\n", stderr);
    return 2;
}
