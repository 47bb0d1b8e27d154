/*
 * habit_mask.c - the habit `mask` on the host: the causal mask of naive attention as a matrix
 * of its own that is added to the scores, made in each step or once, or the same attention
 * that looks at no key behind its query.
 *
 * Bound by the scores' traffic: the mask is read once more for each head.
 */
#include "habits.h"

#include <math.h>
#include <stdlib.h>

#include "run.h"

typedef struct mask_state {
    void *step;
    float *mask;     /* NULL: none */
    model_args args; /* with it */
} mask_state;

static model_way_cpu naive_way(const part_way_cpu *parts)
{
    model_way_cpu way = model_best_way_cpu;
    way.parts = parts;
    return way;
}

static part_way_cpu naive_parts(void)
{
    part_way_cpu parts = part_best_cpu;
    parts.attention = "naive";
    return parts;
}

static size_t workspace_bytes(const void *args)
{
    part_way_cpu parts = naive_parts();
    model_way_cpu way = naive_way(&parts);
    return model_workspace_bytes_cpu(args, &way);
}

static void release(void *state)
{
    mask_state *s = state;
    if (s->step) model_release_cpu(s->step);
    free(s->mask);
    free(s);
}

static void make_mask(float *mask, int64_t tokens)
{
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t j = 0; j < tokens; j++) mask[i * tokens + j] = j <= i ? 0 : -INFINITY;
}

static int prepare(const void *args, void **state)
{
    mask_state *s = calloc(1, sizeof *s);
    int error = s ? KERNEL_OK : KERNEL_ERROR_MEMORY;
    if (s) s->args = *(const model_args *)args;
    if (!error) error = model_prepare_cpu(&s->args, &s->step);
    if (!error)
        *state = s;
    else if (s)
        release(s);
    return error;
}

static int prepare_mask(const void *args, void **state)
{
    model_args masked = *(const model_args *)args;
    int64_t t = masked.shape.tokens;
    float *mask = malloc((size_t)(t * t) * sizeof *mask);
    if (!mask) return KERNEL_ERROR_MEMORY;
    make_mask(mask, t);
    masked.mask = mask;
    int error = prepare(&masked, state);
    if (error)
        free(mask);
    else
        ((mask_state *)*state)->mask = mask;
    return error;
}

static int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    mask_state *s = state;
    part_way_cpu parts = naive_parts();
    model_way_cpu way = naive_way(&parts);
    (void)stream;
    s->args.settings = ((const model_args *)args)->settings;
    return model_run_cpu(&s->args, &way, workspace, s->step);
}

static int run_rebuilt(const void *args, void *workspace, void *state, kernel_stream stream)
{
    mask_state *s = state;
    make_mask(s->mask, s->args.shape.tokens);
    return run(args, workspace, state, stream);
}

#define ROW(NAME, NOTE, PREPARE, RUN)                                                   \
    {                                                                                   \
        .name = (NAME), .note = (NOTE), .dtypes = MODEL_HABIT_DTYPES_CPU,               \
        .workspace_bytes = workspace_bytes, .prepare = (PREPARE), .release = release,   \
        .run = (RUN)                                                                    \
    }

const kernel_variant model_mask_rows_cpu[3] = {
    ROW("rebuilt", "a mask in memory, made in each step", prepare_mask, run_rebuilt),
    ROW("cached", "a mask in memory, made once", prepare_mask, run),
    ROW("by_index", "no mask: no key behind the query is looked at", prepare, run),
};
