/*
 * model_groups.c - groups of `model.habit` whose variants are one and the same step,
 * `best`, with other arguments:
 *
 * precision     of products, activations and gradients. All have f32 master weights, so
 *               their dtype is f32.
 * accumulation  16 sequences a step as 16, 4 or 1 batches, whose gradients are added up
 * activations   kept, or recomputed in the backward pass
 */
#include "model_suite.h"

#include <stdio.h>
#include <string.h>

enum { MOST_VARIANTS = 4, SEQUENCES = 16 };

typedef struct group {
    const char *name;
    int64_t sequences; /* of a step; 0: the size's own batch */
    void (*change)(model_args *args, const char *variant);
    const char *variants[MOST_VARIANTS], *notes[MOST_VARIANTS];
} group;

static void change_precision(model_args *args, const char *variant)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(kernel_dtype_name(dtypes[i]), variant)) args->dtype = dtypes[i];
}

static void change_batches(model_args *args, const char *variant)
{
    args->micro_batches = !strcmp(variant, "16") ? 16 : !strcmp(variant, "4") ? 4 : 1;
    args->shape.batch /= args->micro_batches;
}

/* Whoever builds the case asks for the variant's name. */
static void change_nothing(model_args *args, const char *variant)
{
    (void)args, (void)variant;
}

static const group groups[] = {
    {"precision", 0, change_precision, {"f32", "tf32", "f16", "bf16"},
     {"f32 all through", "products round to tf32", "f16 with a dynamic loss scale",
      "bf16 and f32 master weights"}},
    {"accumulation", SEQUENCES, change_batches, {"16", "4", "1", NULL},
     {"16 batches of one sequence", "4 batches of 4", "one batch of 16", NULL}},
    {"activations", 0, change_nothing, {"recompute", "kept", NULL, NULL},
     {"blocks run forward again", "all of them stay in memory", NULL, NULL}},
};

enum { GROUPS = sizeof groups / sizeof *groups };

/* What the cases of a group share. */
typedef struct group_operation {
    suite_operation operation; /* first: a case points at it */
    const group *group;
    kernel_variant rows[MOST_VARIANTS];
    kernel_table table;
} group_operation;

/* The variant's own dtype may be one that the device does not have. */
static int build_group(suite_case *c, gpubench *bench)
{
    model_args *a = c->args;
    const char *why = NULL;
    ((const group_operation *)c->operation)->group->change(a, c->variant->name);
    if (c->variant->unsupported) why = c->variant->unsupported(a);
    return why ? gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "%s", why) : model_build(c, bench);
}

/* Rows like `best`; tf32 is left out where that does not know it. */
static void fill_rows(group_operation *shared, const kernel_variant *best)
{
    const group *g = shared->group;
    size_t count = 0;
    for (int i = 0; i < MOST_VARIANTS && g->variants[i]; i++) {
        model_args args = {.dtype = KERNEL_F32};
        g->change(&args, g->variants[i]);
        if (!(best->dtypes & KERNEL_DTYPE_BIT(args.dtype))) continue;
        shared->rows[count] = *best;
        shared->rows[count].name = g->variants[i];
        shared->rows[count++].note = g->notes[i];
    }
    shared->table = (kernel_table){shared->rows, count};
}

static void queue_group(suite *s, const named_shape *n, kernel_dtype dtype,
                        group_operation *shared)
{
    kernel_table all = model_suite_table(s->bench);
    named_shape own = *n;
    char params[288], shape[192];
    model_args args;
    if (shared->group->sequences) own.shape.batch = shared->group->sequences;
    args = model_args_of(&own.shape, dtype, MODEL_STEP);
    fill_rows(shared, kernel_find(&all, "best"));
    shared->operation = (suite_operation){.name = "model.habit", .cpu = &shared->table,
                                          .cuda = &shared->table, .args_bytes = sizeof args,
                                          .build = build_group, .verify = model_verify};
    model_describe(shape, sizeof shape, &own);
    snprintf(params, sizeof params, "habit=%s steps=1 %s", shared->group->name, shape);
    suite_queue(s, &shared->operation, dtype, params, &args,
                model_bytes(&own.shape, dtype, MODEL_STEP), model_flops(&own.shape, MODEL_STEP));
}

void model_queue_groups(suite *s, const named_shape *n, kernel_dtype dtype)
{
    static group_operation shared[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        shared[i].group = &groups[i];
        if (groups[i].change != change_precision || dtype == KERNEL_F32)
            queue_group(s, n, dtype, &shared[i]);
    }
}
