/*
 * model_check_sums.c - the gradients of micro-batches that a step adds up.
 */
#include "model_check.h"

#include "once.h"

#include <stdlib.h>

enum { SUMMED = 2048 }; /* first elements of a tensor */

/* Of the sampled tensors what the step left, and the sums of what its batches leave. */
typedef struct sums {
    part_checker c;
    const model_args *args;
    model_plan plan;
    part_sample which;
    float *found[PART_CHECK_ROWS];
    double *sums[PART_CHECK_ROWS];
} sums;

static int64_t count_of(const sums *s, int64_t i)
{
    parameters_tensor t = model_tensor_at(&s->args->shape, s->which.at[i]);
    int64_t count = parameters_elements(&t);
    return count < SUMMED ? count : SUMMED;
}

static float *get_gradient(sums *s, int64_t i)
{
    const void *memory = model_tensor_memory(s->args, &s->plan, MODEL_GRADIENTS, s->which.at[i]);
    return part_check_get(&s->c, memory, 0, count_of(s, i));
}

static void open_sums(sums *s, gpubench *bench, const model_args *args)
{
    *s = (sums){.c = {.bench = bench, .dtype = model_storage(args->dtype)}, .args = args,
                .plan = model_plan_of(args)};
    s->which = part_sample_of(&s->c, model_tensor_count(&args->shape));
    for (int64_t i = 0; i < s->which.count; i++) {
        s->found[i] = get_gradient(s, i);
        s->sums[i] = part_check_doubles(&s->c, count_of(s, i));
    }
}

/* The passes of one micro-batch, from 1. */
static void add_one(sums *s, int64_t micro)
{
    kernel_table table = model_suite_table(s->c.bench);
    model_args one = *s->args;
    one.phases = MODEL_FORWARD | MODEL_LOSS | MODEL_BACKWARD;
    one.micro_one = micro;
    if (s->c.code == 0) s->c.code = suite_run_named(s->c.bench, &table, "best", &one);
    for (int64_t i = 0; i < s->which.count; i++) {
        float *gradient = get_gradient(s, i);
        for (int64_t k = 0; k < count_of(s, i) && s->c.code == 0; k++)
            s->sums[i][k] += (double)gradient[k];
        free(gradient);
    }
}

/* Twice the bound of a product: each gradient is rounded, and then their sum. */
static void judge(sums *s)
{
    suite_error error = {0, 0};
    for (int64_t i = 0; i < s->which.count && s->c.code == 0; i++)
        suite_compare(&error, s->found[i], s->sums[i], count_of(s, i));
    if (s->c.code == 0) s->c.code = suite_check(s->c.bench, &error, s->args->dtype, 2);
}

int model_check_sums(gpubench *bench, const suite_case *of)
{
    sums s;
    model_args still = *(const model_args *)of->args;
    still.settings.learning_rate = 0;
    still.phases = MODEL_FORWARD | MODEL_LOSS | MODEL_BACKWARD;
    int code = suite_run_once(bench, of->variant, &still); /* by the parameters as they are */
    if (code) return code;
    open_sums(&s, bench, &still);
    for (int64_t i = 1; i <= model_micro_batches(&still); i++) add_one(&s, i);
    judge(&s);
    for (int64_t i = 0; i < s.which.count; i++) free(s.found[i]), free(s.sums[i]);
    return s.c.code;
}
