/*
 * habit_not_here.c - habits that are about a device's library, or about waiting for a device,
 * which a host does not have: their rows say so, once.
 */
#include "habits.h"

static const char *is_no_device(const void *args)
{
    (void)args;
    return "the host launches nothing on a device, and waits for none";
}

static const char *has_one_algorithm(const void *args)
{
    (void)args;
    return "products of the host have one algorithm to choose from";
}

static int never_run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)args, (void)workspace, (void)state, (void)stream;
    return KERNEL_ERROR_ARGUMENT;
}

#define ROW(NAME, NOTE, WHY)                                                                 \
    {                                                                                        \
        .name = (NAME), .note = (NOTE), .dtypes = KERNEL_DTYPE_BIT(KERNEL_F32),              \
        .unsupported = (WHY), .run = never_run                                               \
    }

const kernel_variant model_loss_rows_cpu[2] = {
    ROW("every_step", "read back after each step", is_no_device),
    ROW("every_100", "read back after the last of 100 steps", is_no_device),
};

const kernel_variant model_launches_rows_cpu[2] = {
    ROW("stream", "launch by launch", is_no_device),
    ROW("graph", "one launch of a graph a step", is_no_device),
};

const kernel_variant model_products_rows_cpu[2] = {
    ROW("first", "the library's first proposal for each product", has_one_algorithm),
    ROW("timed", "the proposal that was the fastest when timed", has_one_algorithm),
};
