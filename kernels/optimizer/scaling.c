/*
 * scaling.c - dynamic loss scaling on the host.
 *
 * 1. single  a dozen numbers, by one thread
 */
#include "scaling.h"

const optimizer_scaling optimizer_usual_scaling = {65536, 2, 0.5f, 2000};

static int run_unscale(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)workspace, (void)state, (void)stream;
    optimizer_unscale(args);
    return KERNEL_OK;
}

static int run_scale_loss(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const optimizer_scale_loss_args *a = args;
    (void)workspace, (void)state, (void)stream;
    a->scaler->used = a->scaler->scale;
    for (int64_t i = 0; i < a->count; i++)
        a->weights[i] = (float)((double)a->scaler->scale / (double)a->rows);
    return KERNEL_OK;
}

static const kernel_variant unscale_rows[] = {
    {.name = "single", .note = "one thread", .run = run_unscale},
};

static const kernel_variant scale_loss_rows[] = {
    {.name = "single", .note = "one thread", .run = run_scale_loss},
};

const kernel_table optimizer_unscale_cpu = {unscale_rows, 1};
const kernel_table optimizer_scale_loss_cpu = {scale_loss_rows, 1};
