/*
 * cpu.h - how many threads this process may run at a time, and what caches there are.
 */
#ifndef KERNEL_CPU_H
#define KERNEL_CPU_H

#include <stdint.h>

/* The processors of the affinity mask, at most what the cgroup's quota pays for
 * (rounded up), at least 1. Read once: it does not change while a program runs. */
int cpu_threads(void);

/* The quota alone, of the smallest that is set between the cgroup `path` ("/a/b",
 * or "/" for the root) and `root`, where the tree is mounted: the period's share
 * in processors, rounded up. 0: none is set, or the files cannot be read. Both
 * layouts are known, cpu.max and cpu.cfs_quota_us. */
int cpu_quota(const char *root, const char *path);

/* Leaves the process those of the processors of its mask that the list names, as "0" or
 * "0,2-3". To be called before other threads are started, which inherit it, and before
 * cpu_threads. NULL, or what is wrong: a list that is none, a processor that the mask
 * has not (asking for it alone would leave the mask), a system that cannot. */
const char *cpu_pin(const char *list);

/* The processors that the process may run on, whatever the quota. */
int cpu_affinity(void);

/* Bytes of the largest cache of a processor whose folder is given, NULL: the system's
 * first; where nobody says, 8 MiB, which most have. */
uint64_t cpu_cache_bytes(const char *folder);

#endif
