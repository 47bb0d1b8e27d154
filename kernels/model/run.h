/*
 * run.h - a model's step on the host by any choice of the other operations' variants
 * (model.c), which what a habit costs is measured with (habits.c).
 */
#ifndef KERNEL_CPU_MODEL_RUN_H
#define KERNEL_CPU_MODEL_RUN_H

#include "../part/run.h"
#include "model.h"

/* Names of other operations' variants. */
typedef struct model_way_cpu {
    const part_way_cpu *parts;
    const char *embedding, *embedding_gradient, *loss, *loss_gradient, *clip, *adamw;
} model_way_cpu;

/* The best of this machine. */
extern const model_way_cpu model_best_way_cpu;

/* A variant's functions, for args of a way; model_run_cpu runs the list that prepare
 * made of args. */
size_t model_workspace_bytes_cpu(const void *args, const model_way_cpu *way);
int model_prepare_cpu(const void *args, void **state);
void model_release_cpu(void *state);
int model_run_cpu(const void *args, const model_way_cpu *way, void *workspace, void *state);

#endif
