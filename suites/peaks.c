/*
 * peaks.c - the host's ceilings in short: see peaks.h. `make suite-ceilings` measures
 * them as rows.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "peaks.h"

#include <stdlib.h>
#include <time.h>

#include "../kernels/ceilings/ceilings.h"

enum { PEAK_WORDS = 1 << 24, PEAK_SIDE = 512 }; /* 64 MiB an array; matrices of 1 MiB */

static double peak_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The shortest of several executions of a row's: what disturbs makes them longer only. */
static double best_s(const kernel_table *table, const char *name, const void *args, void *workspace)
{
    const kernel_variant *variant = kernel_find(table, name);
    double start = peak_now_s(), best = 1e9;
    for (int i = 0; i < 5 || peak_now_s() - start < 0.02; i++) {
        double before = peak_now_s(), took;
        if (!variant || variant->run(args, workspace, NULL, NULL) != 0)
            return 1e9;
        took = peak_now_s() - before;
        best = took > 0 && took < best ? took : best;
    }
    return best;
}

static double best_gb_per_s(uint32_t *memory)
{
    uint32_t sum;
    ceilings_bandwidth_args args = {
        .words = PEAK_WORDS, .a = memory, .b = memory + PEAK_WORDS, .sum = &sum};
    double read = (double)ceilings_read_bytes(PEAK_WORDS) /
                  best_s(&ceilings_read_cpu, "threads", &args, NULL);
    double copy = (double)ceilings_copy_bytes(PEAK_WORDS) /
                  best_s(&ceilings_copy_cpu, "threads", &args, NULL);
    return (read > copy ? read : copy) * 1e-9;
}

static double best_tflop_per_s(float *memory)
{
    enum { ELEMENTS = PEAK_SIDE * PEAK_SIDE };
    ceilings_gemm_args args = {PEAK_SIDE,
                               PEAK_SIDE,
                               PEAK_SIDE,
                               KERNEL_F32,
                               memory,
                               memory + ELEMENTS,
                               memory + 2 * ELEMENTS};
    const kernel_variant *threads = kernel_find(&ceilings_gemm_cpu, "threads");
    void *workspace = threads ? malloc(threads->workspace_bytes(&args)) : NULL;
    double seconds = workspace ? best_s(&ceilings_gemm_cpu, "threads", &args, workspace) : 1e9;
    free(workspace);
    return (double)ceilings_gemm_flops(PEAK_SIDE, PEAK_SIDE, PEAK_SIDE) / seconds * 1e-12;
}

/* Once in a process, however many suites it opens: a host's ceilings stay what they are. */
static int measure_peaks(void *context, gpubench *bench)
{
    static double gb_per_s, tflop_per_s;
    (void)context;
    if (gb_per_s == 0) {
        uint32_t *memory = suite_host_memory(2 * (size_t)PEAK_WORDS * sizeof *memory);
        if (!memory)
            return 0; /* the column stays empty */
        gb_per_s = best_gb_per_s(memory);
        tflop_per_s = best_tflop_per_s((float *)memory);
        free(memory);
    }
    gpubench_measured_peaks(bench, gb_per_s, tflop_per_s);
    return 0;
}

void suite_measure_peaks(gpubench *bench)
{
    if (!gpubench_is_cuda(bench))
        gpubench_before_all(bench, measure_peaks, NULL);
}
