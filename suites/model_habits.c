/*
 * model_habits.c - what habits cost a whole step, `model.habit`: those of
 * kernels/model/, one group each, so that their variants are measured in turn.
 */
#include "model_suite.h"

#include <stdio.h>

/* What the cases of a habit share. */
typedef struct habit_operation {
    suite_operation operation; /* first: a case points at it */
    const model_habit *habit;
} habit_operation;

static const model_habit *habit_of(const suite_case *c)
{
    return ((const habit_operation *)c->operation)->habit;
}

static int build(suite_case *c, gpubench *bench)
{
    const model_args *a = c->args;
    int code = model_build(c, bench);
    if (code == 0)
        gpubench_rate(bench, "tokens",
                      (double)habit_of(c)->steps * (double)model_rows(&a->shape));
    return code;
}

static int verify(suite_case *c, gpubench *bench)
{
    const model_habit *habit = habit_of(c);
    if (habit->idle_us && c->state) gpubench_counter(bench, "idle_us", habit->idle_us(c->state));
    return model_verify_steps(c, bench, habit->steps);
}

static void queue_habit(suite *s, const named_shape *n, kernel_dtype dtype,
                        const model_habit *habit, habit_operation *shared)
{
    model_args args = model_args_of(&n->shape, dtype, MODEL_STEP);
    uint64_t steps = (uint64_t)habit->steps;
    char params[288], shape[192], batch[32] = "";
    model_describe(shape, sizeof shape, n);
    if (habit->batch_ms) snprintf(batch, sizeof batch, "batch_ms=%d ", habit->batch_ms);
    snprintf(params, sizeof params, "habit=%s %ssteps=%d %s", habit->name, batch, habit->steps,
             shape);
    args.habit = habit;
    *shared = (habit_operation){{.name = "model.habit", .cpu = &habit->table,
                                 .cuda = &habit->table, .args_bytes = sizeof args,
                                 .build = build, .verify = verify},
                                habit};
    suite_queue(s, &shared->operation, dtype, params, &args,
                steps * model_bytes(&n->shape, dtype, MODEL_STEP),
                steps * model_flops(&n->shape, MODEL_STEP));
}

void model_queue_habits(suite *s, const named_shape *n, kernel_dtype dtype)
{
    static habit_operation shared[MODEL_MOST_HABITS];
    const model_habit *habits = model_habits_cpu;
    int count = model_habits_cpu_count;
#if GPUBENCH_CUDA
    if (gpubench_is_cuda(s->bench)) {
        habits = model_habits_cuda;
        count = model_habits_cuda_count;
    }
#endif
    for (int i = 0; i < count; i++) queue_habit(s, n, dtype, &habits[i], &shared[i]);
}
