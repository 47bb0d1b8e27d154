/*
 * block.c - the transformer block on the host: variants that walk the parts of
 * parts.c. The oracle is in reference.c.
 *
 * 1. unfused  naive parts: norms and attention of that name, one dot product a
 *             result in the linear layers.
 * 2. best     tiled attention, tiled products.
 * 3. simd     the same with the vector instructions that the processor has.
 * 4. threads  the same on all threads.
 * 5. blas     a library's products in the linear layers.
 *
 * All are bound by the products' arithmetic.
 */
#include "block.h"

#include "../common/element.h"
#include "../common/simd.h"
#include "../part/run.h"

static int takes(const block_shape *s, kernel_dtype dtype, int part, int parts)
{
    return block_is_valid(s) && part >= BLOCK_WHOLE && part < parts &&
           element_takes(dtype);
}

/* ---- passes ----------------------------------------------------------------------- */

/* The parts that a pass's arguments name, as a list. */
typedef struct part_list {
    part_args parts[BLOCK_BACKWARD_PARTS];
    int count; /* 0 for arguments that are not valid */
} part_list;

static part_list forward_parts(const block_forward_args *a)
{
    part_list list = {.count = 0};
    if (!takes(&a->shape, a->dtype, a->part, BLOCK_FORWARD_PARTS)) return list;
    block_layout layout = block_own_layout(&a->shape);
    for (int i = 0; i < BLOCK_FORWARD_PARTS; i++)
        if (a->part == BLOCK_WHOLE || a->part == i)
            list.parts[list.count++] = block_forward_describe(a, i, &layout);
    return list;
}

static part_list backward_parts(const block_backward_args *a)
{
    part_list list = {.count = 0};
    if (!takes(&a->shape, a->dtype, a->part, BLOCK_BACKWARD_PARTS)) return list;
    block_layout layout = block_own_layout(&a->shape);
    for (int i = 0; i < BLOCK_BACKWARD_PARTS; i++)
        if (a->part == BLOCK_WHOLE || a->part == i)
            list.parts[list.count++] = block_backward_describe(a, i, &layout);
    return list;
}

/* Parts run one after the other, so they share the largest's workspace. */
static size_t workspace_bytes(const part_list *list, const part_way_cpu *way)
{
    size_t most = 0;
    for (int i = 0; i < list->count; i++) {
        size_t bytes = part_workspace_bytes_cpu(&list->parts[i], way);
        if (bytes > most) most = bytes;
    }
    return most;
}

static int run(const part_list *list, const part_way_cpu *way, void *workspace)
{
    int valid = list->count > 0 && !linear_is_missing(way->products);
    int error = valid ? KERNEL_OK : KERNEL_ERROR_ARGUMENT;
    for (int i = 0; i < list->count && !error; i++)
        error = part_run_cpu(&list->parts[i], way, workspace);
    return error;
}

/* ---- tables ---------------------------------------------------------------------------- */

/* The four functions of a way, which the rows of both tables name. */
#define BLOCK_WAY(way)                                                                          \
    static size_t way##_forward_workspace(const void *args)                                     \
    {                                                                                           \
        part_list list = forward_parts(args);                                                   \
        return workspace_bytes(&list, &part_##way##_cpu);                                       \
    }                                                                                           \
    static size_t way##_backward_workspace(const void *args)                                    \
    {                                                                                           \
        part_list list = backward_parts(args);                                                  \
        return workspace_bytes(&list, &part_##way##_cpu);                                       \
    }                                                                                           \
    static int run_##way##_forward(const void *args, void *workspace, void *state,              \
                                   kernel_stream stream)                                        \
    {                                                                                           \
        part_list list = forward_parts(args);                                                   \
        (void)state, (void)stream;                                                              \
        return run(&list, &part_##way##_cpu, workspace);                                        \
    }                                                                                           \
    static int run_##way##_backward(const void *args, void *workspace, void *state,             \
                                    kernel_stream stream)                                       \
    {                                                                                           \
        part_list list = backward_parts(args);                                                  \
        (void)state, (void)stream;                                                              \
        return run(&list, &part_##way##_cpu, workspace);                                        \
    }

BLOCK_WAY(unfused)
BLOCK_WAY(best)
BLOCK_WAY(simd)
BLOCK_WAY(threads)
BLOCK_WAY(blas)

static const char *has_no_blas(const void *args)
{
    (void)args;
    return linear_has_no_blas();
}

static const char unfused_note[] = "naive norms, attention and products";
static const char best_note[] = "tiled attention and products";
static const char simd_note[] = "the same with this processor's vectors";
static const char threads_note[] = "simd on all threads";
static const char blas_note[] = "cblas_sgemm, the rest as threads";

static const kernel_variant forward_rows[] = {
    {.name = "unfused", .note = unfused_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = unfused_forward_workspace, .run = run_unfused_forward},
    {.name = "best", .note = best_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = best_forward_workspace, .run = run_best_forward},
    {.name = "simd", .note = simd_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = simd_forward_workspace, .run = run_simd_forward,
     .runs_on = simd_runs_on},
    {.name = "threads", .note = threads_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = threads_forward_workspace, .run = run_threads_forward,
     .runs_on = simd_runs_on_threads},
    {.name = "blas", .note = blas_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .unsupported = has_no_blas, .workspace_bytes = blas_forward_workspace, .run = run_blas_forward,
     .runs_on = linear_blas_runs_on},
};

static const kernel_variant backward_rows[] = {
    {.name = "unfused", .note = unfused_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = unfused_backward_workspace, .run = run_unfused_backward},
    {.name = "best", .note = best_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = best_backward_workspace, .run = run_best_backward},
    {.name = "simd", .note = simd_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = simd_backward_workspace, .run = run_simd_backward,
     .runs_on = simd_runs_on},
    {.name = "threads", .note = threads_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = threads_backward_workspace, .run = run_threads_backward,
     .runs_on = simd_runs_on_threads},
    {.name = "blas", .note = blas_note, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .unsupported = has_no_blas, .workspace_bytes = blas_backward_workspace, .run = run_blas_backward,
     .runs_on = linear_blas_runs_on},
};

const kernel_table block_forward_cpu = {forward_rows, sizeof forward_rows / sizeof *forward_rows};
const kernel_table block_backward_cpu = {backward_rows,
                                         sizeof backward_rows / sizeof *backward_rows};
