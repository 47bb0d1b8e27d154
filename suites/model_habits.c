/*
 * model_habits.c - what habits cost a whole step, `model.habit`: those of
 * kernels/model/, one group each, so that their variants are measured in turn.
 */
#include "model_suite.h"

#include <stdio.h>

/* What the cases of a habit share. */
typedef struct habit_operation {
    suite_operation operation; /* first: a case points at it */
    int steps;
} habit_operation;

static int build(suite_case *c, gpubench *bench)
{
    const habit_operation *habit = (const habit_operation *)c->operation;
    const model_args *a = c->args;
    int code = model_build(c, bench);
    if (code == 0)
        gpubench_rate(bench, "tokens", (double)habit->steps * (double)model_rows(&a->shape));
    return code;
}

static int verify(suite_case *c, gpubench *bench)
{
    return model_verify_steps(c, bench, ((const habit_operation *)c->operation)->steps);
}

static void queue_habit(suite *s, const named_shape *n, kernel_dtype dtype,
                        const model_habit *habit, habit_operation *shared)
{
    model_args args = model_args_of(&n->shape, dtype, MODEL_STEP);
    uint64_t steps = (uint64_t)habit->steps;
    char params[256], shape[192];
    model_describe(shape, sizeof shape, n);
    snprintf(params, sizeof params, "habit=%s steps=%d %s", habit->name, habit->steps, shape);
    *shared = (habit_operation){{.name = "model.habit", .cpu = &habit->table,
                                 .cuda = &habit->table, .args_bytes = sizeof args,
                                 .build = build, .verify = verify},
                                habit->steps};
    suite_queue(s, &shared->operation, dtype, params, &args,
                steps * model_bytes(&n->shape, dtype, MODEL_STEP),
                steps * model_flops(&n->shape, MODEL_STEP));
}

void model_queue_habits(suite *s, const named_shape *n, kernel_dtype dtype)
{
    static habit_operation cpu[MODEL_HABITS_CPU];
#if GPUBENCH_CUDA
    static habit_operation cuda[MODEL_HABITS_CUDA];
    for (int i = 0; i < MODEL_HABITS_CUDA && gpubench_is_cuda(s->bench); i++)
        queue_habit(s, n, dtype, &model_habits_cuda[i], &cuda[i]);
#endif
    for (int i = 0; i < MODEL_HABITS_CPU && !gpubench_is_cuda(s->bench); i++)
        queue_habit(s, n, dtype, &model_habits_cpu[i], &cpu[i]);
}
