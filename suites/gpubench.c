/*
 * gpubench.c - the one file of a suite's program that contains the
 * implementations of gpubench.h and gpubench_trace.h. All others know their
 * declarations only.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* madvise: pages of 2 MiB */
#endif
#define GPUBENCH_IMPLEMENTATION
#define GPUBENCH_TRACE_IMPLEMENTATION
#include "../gpubench.h"

#include "../gpubench_trace.h"

#include "peaks.h"

void *suite_host_memory(size_t bytes)
{
    void *memory;
    return gpb_host_allocate(bytes, GPUBENCH_PAGEABLE, &memory) == 0 ? memory : NULL;
}
