/*
 * habit_inputs.c - the habits `inputs` and `loader` on the host: who makes a step's tokens
 * and targets, and how many do where a batch takes long. The host is the device here, so
 * it is idle while it waits for a batch, or makes one.
 *
 * Bound by the step, or by the milliseconds of a batch over the number of threads.
 */
#include "habits.h"

#include <stdlib.h>
#include <string.h>

#include "batches.h"
#include "run.h"

enum { SLOTS = 6 }; /* batches that are there before they are wanted, at most */

typedef struct inputs_state {
    void *step;
    model_batches batches;
    loader *loader; /* NULL: the inputs stay */
    void *slots[SLOTS];
    double idle_us;
} inputs_state;

static void release(void *state)
{
    inputs_state *s = state;
    loader_close(s->loader);
    for (int i = 0; i < SLOTS; i++) free(s->slots[i]);
    free(s->batches.text);
    if (s->step) model_release_cpu(s->step);
    free(s);
}

static void *buffer_of(const model_args *a, model_buffer buffer)
{
    model_plan plan = model_plan_of(a);
    return model_memory(a, &plan, buffer);
}

static int open_loader(inputs_state *s, const model_args *a, int threads)
{
    size_t half = (size_t)model_rows(&a->shape) * sizeof(int32_t);
    s->batches = (model_batches){malloc(2 * half), model_rows(&a->shape), a->shape.vocabulary,
                                 a->habit->batch_ms};
    if (!s->batches.text) return KERNEL_ERROR_MEMORY;
    memcpy(s->batches.text, buffer_of(a, MODEL_TOKENS), half);
    memcpy(s->batches.text + s->batches.rows, buffer_of(a, MODEL_TARGETS), half);
    for (int i = 0; i < SLOTS; i++)
        if (!(s->slots[i] = malloc(2 * half))) return KERNEL_ERROR_MEMORY;
    s->loader = loader_open(threads, SLOTS, s->slots, model_batch_make, &s->batches);
    return s->loader ? KERNEL_OK : KERNEL_ERROR_MEMORY;
}

/* threads < 0: no loader. */
static int prepare(const void *args, void **state, int threads)
{
    inputs_state *s = calloc(1, sizeof *s);
    int error = s ? model_prepare_cpu(args, &s->step) : KERNEL_ERROR_MEMORY;
    if (!error && threads >= 0) error = open_loader(s, args, threads);
    if (!error)
        *state = s;
    else if (s)
        release(s);
    return error;
}

static int load(inputs_state *s, const model_args *a)
{
    size_t half = (size_t)s->batches.rows * sizeof(int32_t);
    const int32_t *batch = loader_take(s->loader);
    if (!batch) return kernel_fail("%s", loader_reason(s->loader));
    memcpy(buffer_of(a, MODEL_TOKENS), batch, half);
    memcpy(buffer_of(a, MODEL_TARGETS), batch + s->batches.rows, half);
    loader_give_back(s->loader);
    return KERNEL_OK;
}

static int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args *a = args;
    inputs_state *s = state;
    int64_t waited = s->loader ? loader_waited_ns(s->loader) : 0;
    int error = KERNEL_OK;
    if (s->loader) loader_allow(s->loader, a->habit->steps);
    for (int i = 0; i < a->habit->steps && !error; i++) {
        if (s->loader) error = load(s, a);
        if (!error) error = model_habit_best_cpu(args, workspace, s->step, stream);
    }
    if (s->loader) waited = loader_waited_ns(s->loader) - waited;
    s->idle_us = (double)waited / 1e3 / a->habit->steps;
    return error;
}

double model_inputs_idle_cpu(const void *state)
{
    return ((const inputs_state *)state)->idle_us;
}

/* ---- rows ------------------------------------------------------------------------------ */

static int prepare_resident(const void *args, void **state)
{
    return prepare(args, state, -1);
}

static int prepare_0(const void *args, void **state)
{
    return prepare(args, state, 0);
}

static int prepare_1(const void *args, void **state)
{
    return prepare(args, state, 1);
}

static int prepare_2(const void *args, void **state)
{
    return prepare(args, state, 2);
}

static int prepare_4(const void *args, void **state)
{
    return prepare(args, state, 4);
}

#define ROW(NAME, NOTE, PREPARE, DTYPES)                                                      \
    {                                                                                         \
        .name = (NAME), .note = (NOTE), .dtypes = (DTYPES),                                   \
        .workspace_bytes = model_habit_workspace_cpu, .prepare = (PREPARE),                   \
        .release = release, .run = run                                                        \
    }

const kernel_variant model_inputs_rows_cpu[3] = {
    ROW("in_step", "each batch made in its step", prepare_0, MODEL_HABIT_DTYPES_CPU),
    ROW("prefetched", "made ahead by a thread", prepare_1, MODEL_HABIT_DTYPES_CPU),
    ROW("resident", "the inputs are there already", prepare_resident, MODEL_HABIT_DTYPES_CPU),
};

/* Seconds of waiting, which are the same for any dtype. */
enum { WAITING = KERNEL_DTYPE_BIT(KERNEL_F32) };

const kernel_variant model_loader_rows_cpu[5] = {
    ROW("0_threads", "each batch made in its step", prepare_0, WAITING),
    ROW("1_thread", "made ahead by one thread", prepare_1, WAITING),
    ROW("2_threads", "made ahead, two at a time", prepare_2, WAITING),
    ROW("4_threads", "made ahead, four at a time", prepare_4, WAITING),
    ROW("resident", "the inputs are there already", prepare_resident, WAITING),
};
