/*
 * simd.c - copying and setting host memory with the vector instructions that the
 * processor has.
 *
 * 3. simd     whole vectors, around the caches where they cannot hold the result. One
 *             thread: the C library's memcpy and memset do the same.
 * 4. threads  the same on all threads, which are handed ranges: what one core's
 *             misses in flight do not reach of the memory's bandwidth.
 */
#include "simd.h"

#include <string.h>

#include "../common/pool.h"
#include "../common/simd.h"

enum { WORD = sizeof(float), RANGE_WORDS = 1 << 16 };

typedef struct job {
    char *dst;
    const char *src; /* NULL: set */
    float value;     /* the word to set, as the f32 of the same bits */
    int around;
} job;

/* Both are at multiples of a word. */
static void move_words(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    float *dst = (float *)(void *)j->dst + begin;
    (void)worker;
    if (j->src)
        simd()->copy(end - begin, (const float *)(const void *)j->src + begin, dst, j->around);
    else
        simd()->fill(end - begin, j->value, dst, j->around);
    simd()->settle();
}

/* Neither need be. */
static void move_bytes(const job *j, size_t begin, size_t count)
{
    if (count == 0) return;
    if (j->src)
        memcpy(j->dst + begin, j->src + begin, count);
    else
        memset(j->dst + begin, *(const unsigned char *)&j->value, count);
}

static void copy_range(void *context, int worker, int64_t begin, int64_t end)
{
    (void)worker;
    move_bytes(context, (size_t)begin * WORD, (size_t)(end - begin) * WORD);
}

/* The bytes in front of the first whole word of dst, words, the bytes behind. Of a
 * source that is aligned otherwise, the C library copies the words. */
static int run_on(int threads, job j, size_t bytes)
{
    size_t before = (size_t)(-(uintptr_t)j.dst % WORD);
    before = before < bytes ? before : bytes;
    size_t words = (bytes - before) / WORD;
    j.around = simd_goes_around(bytes);
    move_bytes(&j, 0, before);
    move_bytes(&j, before + words * WORD, bytes - before - words * WORD);
    j.dst += before;
    if (j.src) j.src += before;
    int aligned = (uintptr_t)j.src % WORD == 0;
    pool_for(threads, (int64_t)words, RANGE_WORDS, aligned ? move_words : copy_range, &j);
    return KERNEL_OK;
}

static int copy_on(int threads, const memcpy_args *a)
{
    return a->bytes > 0 ? run_on(threads, (job){.dst = a->dst, .src = a->src}, a->bytes) : 0;
}

static int set_on(int threads, const memcpy_args *a)
{
    job j = {.dst = a->dst};
    memset(&j.value, a->value, sizeof j.value);
    return a->bytes > 0 ? run_on(threads, j, a->bytes) : 0;
}

#define RUN(operation)                                                                          \
    int memcpy_##operation##_run_simd(const void *args, void *workspace, void *state,           \
                                      kernel_stream stream)                                     \
    {                                                                                           \
        (void)workspace, (void)state, (void)stream;                                             \
        return operation##_on(1, args);                                                         \
    }                                                                                           \
    int memcpy_##operation##_run_threads(const void *args, void *workspace, void *state,        \
                                         kernel_stream stream)                                  \
    {                                                                                           \
        (void)workspace, (void)state, (void)stream;                                             \
        return operation##_on(pool_threads(), args);                                            \
    }

RUN(copy)
RUN(set)
