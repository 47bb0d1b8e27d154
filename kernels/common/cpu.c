/*
 * cpu.c - the affinity mask and the cgroup's quota: see cpu.h.
 *
 * A container's limit on processor time shows in neither the mask nor sysconf.
 * More threads than it pays for make one another wait for the next period.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
/* A set that is too small is refused, so it grows. */
static int count_affinity(void)
{
    for (int most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        size_t bytes = CPU_ALLOC_SIZE((size_t)most);
        int count = 0;
        if (set && sched_getaffinity(0, bytes, set) == 0) count = CPU_COUNT_S(bytes, set);
        if (set) CPU_FREE(set);
        if (count > 0) return count;
    }
    return 0;
}
#else
static int count_affinity(void)
{
    return 0;
}
#endif

#ifdef __linux__
enum { MOST_PROCESSORS = 1 << 16 };

/* One number or range of a list, and where it ends: at a comma or at the list's end; NULL
 * where it is neither. */
static const char *read_range(const char *at, long *first, long *last)
{
    char *end;
    if (*at < '0' || *at > '9') return NULL;
    *first = *last = strtol(at, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') *last = strtol(end + 1, &end, 10);
    return (*end == ',' || *end == 0) && *last >= *first ? end : NULL;
}

/* The processors of the list into set. What is no list is told before what is not allowed. */
static const char *take_list(const char *list, size_t bytes, const cpu_set_t *allowed,
                             cpu_set_t *set)
{
    const char *error = NULL;
    for (const char *at = list;; at++) {
        long first, last;
        at = read_range(at, &first, &last);
        if (!at) return "wants a list as 0,2-3";
        if (last >= MOST_PROCESSORS) error = "this process may not run on all of them";
        for (long i = first; i <= last && !error; i++) {
            if (!CPU_ISSET_S((size_t)i, bytes, allowed))
                error = "this process may not run on all of them";
            CPU_SET_S((size_t)i, bytes, set);
        }
        if (*at == 0) return error;
    }
}

const char *cpu_pin(const char *list)
{
    size_t bytes = CPU_ALLOC_SIZE(MOST_PROCESSORS);
    cpu_set_t *allowed = CPU_ALLOC(MOST_PROCESSORS), *set = CPU_ALLOC(MOST_PROCESSORS);
    const char *error = allowed && set ? NULL : "no memory";
    if (!error) {
        CPU_ZERO_S(bytes, allowed);
        CPU_ZERO_S(bytes, set);
        if (sched_getaffinity(0, bytes, allowed) != 0) error = "this system cannot";
    }
    if (!error) error = take_list(list, bytes, allowed, set);
    if (!error && sched_setaffinity(0, bytes, set) != 0) error = "this system cannot";
    if (allowed) CPU_FREE(allowed);
    if (set) CPU_FREE(set);
    return error;
}
#else
const char *cpu_pin(const char *list)
{
    (void)list;
    return "this system cannot";
}
#endif

/* Linux's own list comes first: sysconf multiplies, and in a virtual machine told of 320
 * MiB where there were 32. */
uint64_t cpu_cache_bytes(const char *folder)
{
    unsigned long long most = 0, kib;
    for (int i = 0; i < 8; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%.4000s/cache/index%d/size",
                 folder ? folder : "/sys/devices/system/cpu/cpu0", i);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fscanf(file, "%10lluK", &kib) == 1 && kib > most) most = kib;
        fclose(file);
    }
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return most > 0 ? most << 10 : bytes > 0 ? (uint64_t)bytes : UINT64_C(8) << 20;
}

int cpu_affinity(void)
{
    int count = count_affinity();
    if (count < 1) count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count;
}

/* The first `count` numbers of a file; what is no number ("max") is -1. */
static int read_numbers(const char *folder, const char *name, double *numbers, int count)
{
    char path[4096], text[128] = "", *at = text;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "r") : NULL;
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    for (int i = 0; i < count; i++) {
        char *end, *word = at + strspn(at, " \n");
        if (!*word) return 0;
        numbers[i] = strtod(word, &end);
        if (end == word) numbers[i] = -1;
        at = word + strcspn(word, " \n");
    }
    return 1;
}

/* Of one folder; 0: none. */
static int folder_quota(const char *folder)
{
    double both[2] = {0, 0};
    if (!read_numbers(folder, "cpu.max", both, 2)) {
        if (!read_numbers(folder, "cpu.cfs_quota_us", &both[0], 1)) return 0;
        if (!read_numbers(folder, "cpu.cfs_period_us", &both[1], 1)) return 0;
    }
    if (!(both[0] > 0 && both[1] > 0)) return 0;
    double processors = both[0] / both[1];
    if (processors > 1 << 20) return 0;
    int whole = (int)processors;
    return whole + (processors > whole);
}

int cpu_quota(const char *root, const char *path)
{
    char folder[4096];
    int least = 0;
    int length = snprintf(folder, sizeof folder, "%s%s", root, path);
    if (length < 0 || (size_t)length >= sizeof folder) return 0;
    size_t root_length = strlen(root);
    for (;;) {
        int quota = folder_quota(folder);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root_length) return least;
        *slash = 0;
    }
}

/* The path of /proc/self/cgroup's line of version 2 ("0::/a") or of the cpu
 * controller ("4:cpu,cpuacct:/a"). */
static int own_quota(void)
{
    char line[4096];
    int quota = 0;
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (!file) return 0;
    while (quota == 0 && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if (!strcmp(names, ":")) quota = cpu_quota("/sys/fs/cgroup", path);
        if (strstr(names, "cpu")) quota = cpu_quota("/sys/fs/cgroup/cpu", path);
    }
    fclose(file);
    return quota;
}

static int threads;

static void count_threads(void)
{
    int allowed = cpu_affinity(), quota = own_quota();
    threads = quota > 0 && quota < allowed ? quota : allowed;
}

int cpu_threads(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_threads);
    return threads;
}
