/*
 * simd.c - which family of vector instructions is taken: see simd.h.
 */
#include "simd.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "pool.h"
#include "simd_families.h"

#if defined(__x86_64__)
static int has(int index)
{
    __builtin_cpu_init();
    switch (index) {
    case 1: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case 2: return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    default: return 1;
    }
}

static const simd_functions *const families[SIMD_FAMILIES] = {&simd_base, &simd_avx2,
                                                              &simd_avx512};
#else
static int has(int index)
{
    (void)index;
    return 1;
}

static const simd_functions *const families[SIMD_FAMILIES] = {&simd_base, NULL, NULL};
#endif

const simd_functions *simd_family(int index)
{
    return families[index] && has(index) ? families[index] : NULL;
}

static const simd_functions *chosen;

static void choose(void)
{
    const char *wanted = getenv("GPUBENCH_SIMD");
    for (int i = 0; i < SIMD_FAMILIES; i++) {
        const simd_functions *family = simd_family(i);
        if (family) chosen = family;
        if (family && wanted && !strcmp(family->name, wanted)) return;
    }
}

const simd_functions *simd(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen;
}

/* The families that are there, as "sse2, avx2". */
static void list_families(char *text, size_t capacity)
{
    size_t used = 0;
    for (int i = 0; i < SIMD_FAMILIES && used < capacity; i++) {
        const simd_functions *family = simd_family(i);
        if (family)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", family->name);
    }
}

const char *simd_refusal(void)
{
    static char text[80];
    char names[40] = "";
    const char *wanted = getenv("GPUBENCH_SIMD");
    if (!wanted || !*wanted || !strcmp(wanted, simd()->name)) return NULL;
    list_families(names, sizeof names);
    snprintf(text, sizeof text, "wants one of %s, which this processor has", names);
    return text;
}

static uint64_t most_cached;

static void ask_for_cache(void)
{
    most_cached = cpu_cache_bytes(NULL);
}

int simd_goes_around(uint64_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_for_cache);
    return bytes > most_cached;
}

const char *simd_runs_on(void)
{
    return simd()->name;
}

/* The text lives until the thread asks again. */
const char *simd_runs_on_threads(void)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "%s, %d threads", simd()->name, pool_threads());
    return text;
}
