/*
 * block_build.c - memory for the block's cases, and their verification: part by
 * part (part_check.h), on the inputs that the block left in its buffers.
 */
#include "block_suite.h"

#include "once.h"
#include "part_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------- */

static void *device_memory(gpubench *bench, kernel_dtype dtype, int64_t count, int kind, int *code)
{
    void *memory = *code ? NULL : gpubench_alloc(bench, suite_bytes(count, dtype), kind);
    if (*code == 0 && !memory) *code = GPUBENCH_OOM;
    return memory;
}

static void *input(gpubench *bench, kernel_dtype dtype, int64_t count, double stddev, uint64_t id,
                   int *code)
{
    void *memory = NULL;
    if (*code == 0) *code = suite_input(bench, dtype, count, (float)stddev, id, &memory);
    return memory;
}

/* Weights by their fan in, so that every activation is of order one. */
static double stddev_of(const block_shape *s, block_parameter parameter)
{
    switch (parameter) {
    case BLOCK_QKV_WEIGHT:
    case BLOCK_PROJECTION_WEIGHT:
    case BLOCK_UP_WEIGHT: return 1 / sqrt((double)s->width);
    case BLOCK_DOWN_WEIGHT: return 1 / sqrt((double)s->hidden);
    case BLOCK_NORM1_WEIGHT:
    case BLOCK_NORM2_WEIGHT: return 1;
    case BLOCK_NORM1_BIAS:
    case BLOCK_QKV_BIAS:
    case BLOCK_PROJECTION_BIAS:
    case BLOCK_NORM2_BIAS:
    case BLOCK_UP_BIAS:
    case BLOCK_DOWN_BIAS:
    case BLOCK_PARAMETERS: break;
    }
    return 0.1;
}

/* What is computed by the case is an output, poisoned before the timed loop;
 * what it finds computed is not. */
static int kind_of(unsigned computed)
{
    return computed ? GPUBENCH_DEVICE | GPUBENCH_OUTPUT : GPUBENCH_DEVICE;
}

/* What the whole computes. */
static const block_outputs everything = {~0u, ~0u, ~0u, 1, 1}, nothing = {0, 0, 0, 0, 0};

/* used: which activations there are. */
static int build_forward_memory(gpubench *bench, block_forward_args *a, unsigned used,
                                block_outputs computed)
{
    const block_shape *s = &a->shape;
    int64_t count = s->batch * s->tokens * s->width;
    int code = 0;
    a->x = input(bench, a->dtype, count, 1, 0, &code);
    for (int i = 0; i < BLOCK_PARAMETERS; i++) {
        block_parameter which = (block_parameter)i;
        a->parameters[i] = input(bench, a->dtype, block_parameter_count(s, which),
                                 stddev_of(s, which), 10 + (uint64_t)i, &code);
    }
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        block_activation which = (block_activation)i;
        if (!(used >> i & 1)) continue;
        a->activations[i] = device_memory(bench, block_activation_dtype(which, a->dtype),
                                          block_activation_count(s, which),
                                          kind_of(computed.activations >> i & 1), &code);
    }
    a->y = device_memory(bench, a->dtype, count, kind_of((unsigned)computed.y), &code);
    return code;
}

static int build_backward_memory(gpubench *bench, block_backward_args *a, unsigned used,
                                 block_outputs computed)
{
    const block_shape *s = &a->shape;
    int64_t count = s->batch * s->tokens * s->width;
    int code = 0;
    a->y_gradient = input(bench, a->dtype, count, 1, 1, &code);
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        int64_t elements = block_gradient_count(s, (block_activation)i);
        if (elements > 0 && used >> i & 1)
            a->gradients[i] = device_memory(bench, a->dtype, elements,
                                            kind_of(computed.gradients >> i & 1), &code);
    }
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        a->parameter_gradients[i] =
            device_memory(bench, a->dtype, block_parameter_count(s, (block_parameter)i),
                          kind_of(computed.parameter_gradients >> i & 1), &code);
    a->x_gradient =
        device_memory(bench, a->dtype, count, kind_of((unsigned)computed.x_gradient), &code);
    return code;
}

/* ---- what a variant uses -------------------------------------------------------------- */

/* The variant that leaves behind what a case of `variant` finds: of the same
 * name, but `best` for `graph`, which is the same kernels. */
static const char *start_of(const kernel_variant *variant)
{
    return strcmp(variant->name, "graph") ? variant->name : "best";
}

int block_suite_has_part(const kernel_variant *variant, const void *args)
{
    return !(variant->unsupported && variant->unsupported(args));
}

/* Whether the variant's attention reads qkv and writes merged (block.h). */
static int attends_in_place(const suite_case *c, const gpubench *bench, const block_shape *shape)
{
    block_forward_args split = {.shape = *shape, .dtype = c->dtype, .part = BLOCK_FORWARD_SPLIT};
    kernel_table table = block_suite_forward(bench);
    const kernel_variant *variant = kernel_find(&table, start_of(c->variant));
    return variant && !block_suite_has_part(variant, &split);
}

enum { HEADS = 1u << BLOCK_Q | 1u << BLOCK_K | 1u << BLOCK_V | 1u << BLOCK_ATTENTION };

/* The activations that the variant uses, as a set of bits. */
static unsigned used_activations(int in_place)
{
    return in_place ? ~(unsigned)HEADS : ~0u;
}

/* ---- building --------------------------------------------------------------------- */

int block_build_forward(suite_case *c, gpubench *bench)
{
    block_forward_args *a = c->args;
    unsigned used = used_activations(attends_in_place(c, bench, &a->shape));
    return build_forward_memory(bench, a, used & ~(1u << BLOCK_PRE), everything);
}

int block_build_forward_keeping(suite_case *c, gpubench *bench)
{
    block_forward_args *a = c->args;
    unsigned used = used_activations(attends_in_place(c, bench, &a->shape));
    return build_forward_memory(bench, a, used, everything);
}

int block_build_forward_part(suite_case *c, gpubench *bench)
{
    block_forward_args *a = c->args, whole;
    kernel_table table = block_suite_forward(bench);
    int in_place = attends_in_place(c, bench, &a->shape);
    int code = build_forward_memory(bench, a, used_activations(in_place),
                                    block_forward_outputs(a->part, in_place));
    whole = *a;
    whole.part = BLOCK_WHOLE;
    return code ? code : suite_run_named(bench, &table, start_of(c->variant), &whole);
}

/* Runs a forward pass for what the backward one reads. */
static int build_activations(suite_case *c, gpubench *bench, block_backward_args *a, unsigned used)
{
    block_forward_args forward = {.shape = a->shape, .dtype = a->dtype, .part = BLOCK_WHOLE};
    kernel_table table = block_suite_forward(bench);
    int code = build_forward_memory(bench, &forward, used, nothing);
    a->x = forward.x;
    memcpy(a->parameters, forward.parameters, sizeof a->parameters);
    memcpy(a->activations, forward.activations, sizeof a->activations);
    return code ? code : suite_run_named(bench, &table, start_of(c->variant), &forward);
}

int block_build_backward(suite_case *c, gpubench *bench)
{
    block_backward_args *a = c->args;
    unsigned used = used_activations(attends_in_place(c, bench, &a->shape));
    int code = build_activations(c, bench, a, used);
    return code ? code : build_backward_memory(bench, a, used, everything);
}

int block_build_backward_part(suite_case *c, gpubench *bench)
{
    block_backward_args *a = c->args, whole;
    kernel_table table = block_suite_backward(bench);
    int in_place = attends_in_place(c, bench, &a->shape);
    unsigned used = used_activations(in_place);
    int code = build_activations(c, bench, a, used);
    if (code == 0)
        code = build_backward_memory(bench, a, used, block_backward_outputs(a->part, in_place));
    whole = *a;
    whole.part = BLOCK_WHOLE;
    return code ? code : suite_run_named(bench, &table, start_of(c->variant), &whole);
}

/* ---- verifying -------------------------------------------------------------------- */

/* Of the last token's last head, the elements of k where the qkv layer wrote
 * them and where the variant put them if heads are dim wide. 1: they agree. */
static int stands_at(gpubench *bench, const block_shape *s, kernel_dtype dtype,
                     void *const *activations, int64_t dim, int *code)
{
    int64_t own = s->width / s->heads, n = s->batch * s->tokens;
    float *values = *code ? NULL : malloc(2 * (size_t)own * sizeof *values);
    int agree = 0;
    if (*code == 0 && !values) *code = KERNEL_ERROR_MEMORY;
    if (*code == 0)
        *code = suite_fetch(bench, activations[BLOCK_QKV], dtype,
                            (n - 1) * 3 * s->width + 2 * s->width - own, own, values);
    if (*code == 0)
        *code = suite_fetch(bench, activations[BLOCK_K], dtype, (n * s->heads - 1) * dim, own,
                            values + own);
    if (*code == 0) agree = !memcmp(values, values + own, (size_t)own * sizeof *values);
    free(values);
    return agree;
}

/* How wide the variant made the heads: the least width at which k stands where
 * that width puts it. */
static block_layout layout_of(const suite_case *c, gpubench *bench, const block_shape *s,
                              void *const *activations, int *code)
{
    const int64_t widths[] = {s->width / s->heads, 64, 128};
    int64_t room = block_activation_count(s, BLOCK_K), rows = s->batch * s->tokens * s->heads;
    block_layout layout = block_own_layout(s);
    layout.in_place = attends_in_place(c, bench, s);
    for (int i = 0; i < 3 && !layout.in_place; i++) {
        if (widths[i] < widths[0] || rows * widths[i] > room) continue;
        layout.head_dim = widths[i];
        if (stands_at(bench, s, c->dtype, activations, widths[i], code) || *code) return layout;
    }
    layout.head_dim = widths[0];
    return layout;
}

int block_verify_forward(suite_case *c, gpubench *bench)
{
    const block_forward_args *a = c->args;
    int code = 0;
    block_layout layout = layout_of(c, bench, &a->shape, a->activations, &code);
    for (int i = 0; i < BLOCK_FORWARD_PARTS && code == 0; i++) {
        part_args part = block_forward_describe(a, i, &layout);
        if (a->part != BLOCK_WHOLE && a->part != i) continue;
        if (layout.in_place && part_moves_heads(part.kind)) continue;
        code = part_check(bench, &part);
    }
    return code;
}

int block_verify_backward(suite_case *c, gpubench *bench)
{
    const block_backward_args *a = c->args;
    int code = 0;
    block_layout layout = layout_of(c, bench, &a->shape, a->activations, &code);
    for (int i = 0; i < BLOCK_BACKWARD_PARTS && code == 0; i++) {
        part_args part = block_backward_describe(a, i, &layout);
        if (a->part != BLOCK_WHOLE && a->part != i) continue;
        if (layout.in_place && part_moves_heads(part.kind)) continue;
        code = part_check(bench, &part);
    }
    return code;
}
