/*
 * cpu.h - how many threads this process may run at a time.
 */
#ifndef KERNEL_CPU_H
#define KERNEL_CPU_H

/* The processors of the affinity mask, at most what the cgroup's quota pays for
 * (rounded up), at least 1. Read once: it does not change while a program runs. */
int cpu_threads(void);

/* The quota alone, of the smallest that is set between the cgroup `path` ("/a/b",
 * or "/" for the root) and `root`, where the tree is mounted: the period's share
 * in processors, rounded up. 0: none is set, or the files cannot be read. Both
 * layouts are known, cpu.max and cpu.cfs_quota_us. */
int cpu_quota(const char *root, const char *path);

/* The processors that the process may run on, whatever the quota. */
int cpu_affinity(void);

#endif
