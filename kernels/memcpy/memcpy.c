/*
 * memcpy.c - copying and setting host memory, and what sizes and results the
 * other backends' rows are held against.
 *
 * 1. memcpy, memset  the C library's: wide vectors, and stores around the cache
 *                    for large sizes. Bound by memory bandwidth.
 * 2. loop            a plain loop over 8-byte words: what the compiler's code
 *                    reaches without those.
 * 3. simd, threads   simd.c: the processor's widest vectors, and all threads.
 */
#include "memcpy.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../common/saturating.h"
#include "../common/simd.h"
#include "simd.h"

enum { ANY_DTYPE = KERNEL_DTYPE_BIT(KERNEL_DTYPE_COUNT) - 1, WORD_BYTES = sizeof(uint64_t) };

uint64_t memcpy_copy_bytes(size_t bytes)
{
    return saturating_product(2, bytes);
}

uint64_t memcpy_transfer_bytes(size_t bytes)
{
    return bytes;
}

uint64_t memcpy_memset_bytes(size_t bytes)
{
    return bytes;
}

uint64_t memcpy_bidirectional_bytes(size_t h2d_bytes, size_t d2h_bytes)
{
    uint64_t sum = (uint64_t)h2d_bytes + d2h_bytes;
    return sum < h2d_bytes ? UINT64_MAX : sum;
}

size_t memcpy_registered_bytes(size_t bytes)
{
    size_t rest = bytes % MEMCPY_REGISTERED_ALIGNMENT;
    size_t missing = rest ? MEMCPY_REGISTERED_ALIGNMENT - rest : 0;
    return bytes > SIZE_MAX - missing ? SIZE_MAX : bytes + missing;
}

size_t memcpy_overlap_results(size_t bytes)
{
    return bytes / MEMCPY_OVERLAP_BYTES_PER_RESULT + (bytes % MEMCPY_OVERLAP_BYTES_PER_RESULT != 0);
}

float memcpy_overlap_result(size_t i)
{
    float x = MEMCPY_OVERLAP_START(i);
    for (int n = 0; n < MEMCPY_OVERLAP_CHAIN; n++)
        x = fmaf(x, MEMCPY_OVERLAP_DECAY, MEMCPY_OVERLAP_GAIN);
    return x;
}

static int run_memcpy(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const memcpy_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (a->bytes > 0) memcpy(a->dst, a->src, a->bytes);
    return KERNEL_OK;
}

static int run_memset(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const memcpy_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (a->bytes > 0) memset(a->dst, a->value, a->bytes);
    return KERNEL_OK;
}

/* The fence emits no instruction; it keeps the compiler from recognizing the
 * loop and calling memcpy or memset, which is what the row stands against. */
static void keep_loop(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

static int run_copy_loop(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const memcpy_args *a = args;
    char *dst = a->dst;
    const char *src = a->src;
    size_t i = 0;
    (void)workspace, (void)state, (void)stream;
    for (; i + WORD_BYTES <= a->bytes; i += WORD_BYTES) {
        memcpy(dst + i, src + i, WORD_BYTES); /* one load and one store of any alignment */
        keep_loop();
    }
    for (; i < a->bytes; i++) dst[i] = src[i];
    return KERNEL_OK;
}

static int run_set_loop(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const memcpy_args *a = args;
    char *dst = a->dst;
    uint64_t word = (uint8_t)a->value * UINT64_C(0x0101010101010101);
    size_t i = 0;
    (void)workspace, (void)state, (void)stream;
    for (; i + WORD_BYTES <= a->bytes; i += WORD_BYTES) {
        memcpy(dst + i, &word, WORD_BYTES);
        keep_loop();
    }
    for (; i < a->bytes; i++) dst[i] = (char)word;
    return KERNEL_OK;
}

static const kernel_variant copy_rows[] = {
    {.name = "memcpy", .note = "the C library's memcpy", .dtypes = ANY_DTYPE,
     .deterministic = 1, .run = run_memcpy},
    {.name = "loop", .note = "a loop over 8-byte words", .dtypes = ANY_DTYPE,
     .deterministic = 1, .run = run_copy_loop},
    {.name = "simd", .note = "this processor's vectors", .dtypes = ANY_DTYPE,
     .deterministic = 1, .run = memcpy_copy_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ANY_DTYPE, .deterministic = 1,
     .run = memcpy_copy_run_threads, .runs_on = simd_runs_on_threads},
};

static const kernel_variant memset_rows[] = {
    {.name = "memset", .note = "the C library's memset", .dtypes = ANY_DTYPE,
     .deterministic = 1, .run = run_memset},
    {.name = "loop", .note = "a loop over 8-byte words", .dtypes = ANY_DTYPE,
     .deterministic = 1, .run = run_set_loop},
    {.name = "simd", .note = "this processor's vectors", .dtypes = ANY_DTYPE,
     .deterministic = 1, .run = memcpy_set_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ANY_DTYPE, .deterministic = 1,
     .run = memcpy_set_run_threads, .runs_on = simd_runs_on_threads},
};

const kernel_table memcpy_copy_cpu = {copy_rows, sizeof copy_rows / sizeof *copy_rows};
const kernel_table memcpy_memset_cpu = {memset_rows, sizeof memset_rows / sizeof *memset_rows};
