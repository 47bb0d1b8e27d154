/*
 * habit_pauses.c - the habits `evaluation` and `checkpoint` on the host: what a loop does
 * beside its steps.
 *
 * evaluation   Forward and loss of MODEL_EVALUATED batches in front of a row of steps, or
 *              none. An evaluation every N steps costs steps / N of what it costs here.
 * checkpoint   The parameters written to a file (which has no name, and is gone afterwards)
 *              in front of the steps; by a thread while the steps run on, which is waited
 *              for behind them; or not at all. The thread writes a copy: the steps move
 *              the parameters.
 *
 * Bound by the forward passes, and by the disk.
 */
#include "habits.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "loader.h"
#include "run.h"

_Static_assert((int)LOADER_REASON <= (int)SAFETENSORS_REASON, "a reason fits");

typedef struct pauses_state {
    void *step, *evaluation; /* NULL: none */
    model_args args;         /* what a file or an evaluation is of */
    loader *writer;          /* NULL: no file */
    void *copy;
    int waits_first; /* for the file, before the steps go on */
} pauses_state;

static void release(void *state)
{
    pauses_state *s = state;
    loader_close(s->writer);
    free(s->copy);
    if (s->evaluation) model_release_cpu(s->evaluation);
    if (s->step) model_release_cpu(s->step);
    free(s);
}

static int prepare(const void *args, void **state)
{
    pauses_state *s = calloc(1, sizeof *s);
    int error = s ? model_prepare_cpu(args, &s->step) : KERNEL_ERROR_MEMORY;
    if (!error) {
        s->args = *(const model_args *)args;
        *state = s;
    } else
        free(s);
    return error;
}

static int prepare_evaluation(const void *args, void **state)
{
    int error = prepare(args, state);
    if (error) return error;
    pauses_state *s = *state;
    s->args.phases = MODEL_FORWARD | MODEL_LOSS;
    error = model_prepare_cpu(&s->args, &s->evaluation);
    if (error) release(s);
    return error;
}

static int write_copy(void *context, int64_t number, void *memory, char reason[LOADER_REASON])
{
    const pauses_state *s = context;
    char why[SAFETENSORS_REASON];
    int code = model_checkpoint_write_scratch(&s->args.shape, s->args.dtype, memory, why);
    (void)number;
    if (code != 0) memcpy(reason, why, LOADER_REASON);
    reason[LOADER_REASON - 1] = 0;
    return code;
}

static int prepare_writer(const void *args, void **state, int threads)
{
    int error = prepare(args, state);
    if (error) return error;
    pauses_state *s = *state;
    model_plan plan = model_plan_of(&s->args);
    s->waits_first = threads == 0;
    s->copy = malloc((size_t)plan.bytes[MODEL_VALUES]);
    if (s->copy) s->writer = loader_open(threads, 1, &s->copy, write_copy, s);
    if (s->writer) return KERNEL_OK;
    release(s);
    return KERNEL_ERROR_MEMORY;
}

static int prepare_in_loop(const void *args, void **state)
{
    return prepare_writer(args, state, 0);
}

static int prepare_by_thread(const void *args, void **state)
{
    return prepare_writer(args, state, 1);
}

static int await_file(pauses_state *s)
{
    if (!loader_take(s->writer)) return kernel_fail("%s", loader_reason(s->writer));
    loader_give_back(s->writer);
    return KERNEL_OK;
}

static int begin_file(pauses_state *s)
{
    model_plan plan = model_plan_of(&s->args);
    memcpy(s->copy, model_memory(&s->args, &plan, MODEL_VALUES),
           (size_t)plan.bytes[MODEL_VALUES]);
    loader_allow(s->writer, 1);
    return s->waits_first ? await_file(s) : KERNEL_OK;
}

static int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    pauses_state *s = state;
    int error = s->writer ? begin_file(s) : KERNEL_OK;
    for (int i = 0; s->evaluation && i < MODEL_EVALUATED && !error; i++)
        error = model_habit_best_cpu(&s->args, workspace, s->evaluation, stream);
    for (int i = 0; i < s->args.habit->steps && !error; i++)
        error = model_habit_best_cpu(args, workspace, s->step, stream);
    return !error && s->writer && !s->waits_first ? await_file(s) : error;
}

#define ROW(NAME, NOTE, PREPARE)                                                              \
    {                                                                                         \
        .name = (NAME), .note = (NOTE), .dtypes = MODEL_HABIT_DTYPES_CPU,                     \
        .workspace_bytes = model_habit_workspace_cpu, .prepare = (PREPARE),                   \
        .release = release, .run = run                                                        \
    }

const kernel_variant model_evaluation_rows_cpu[2] = {
    ROW("10_batches", "an evaluation in front of the steps", prepare_evaluation),
    ROW("none", "steps only", prepare),
};

const kernel_variant model_checkpoint_rows_cpu[3] = {
    ROW("in_loop", "the parameters written in front of the steps", prepare_in_loop),
    ROW("by_thread", "a copy of them written while the steps run", prepare_by_thread),
    ROW("none", "steps only", prepare),
};
