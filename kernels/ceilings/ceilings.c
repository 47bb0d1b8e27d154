/*
 * ceilings.c - what the host can do at most, with one thread and with all: the
 * operations' formulas, the product's oracle, and the variants.
 *
 * 1. loop           read, write, copy, triad: plain loops that the compiler
 *                   turns into vectors. Bound by memory (or by the cache, for
 *                   arrays that fit it); a write also reads what it overwrites,
 *                   which is not counted.
 * 2. simd           the processor's widest vectors; what is written goes around
 *                   the caches where they cannot hold it, and is not read first.
 * 3. threads        simd on all threads.
 * 4. naive, tiled, simd, threads, blas
 *                   the product, by linear.h: bound by arithmetic.
 */
#include "ceilings.h"

#include <stdatomic.h>
#include <string.h>

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/simd.h"
#include "../linear/linear.h"
#include "../common/pool.h"
#include "../common/saturating.h"

/* ---- formulas ------------------------------------------------------------------- */

static uint64_t word_bytes(int64_t words, uint64_t arrays)
{
    return words > 0 ? saturating_product((uint64_t)words, arrays * sizeof(uint32_t)) : 0;
}

uint64_t ceilings_read_bytes(int64_t words)
{
    return word_bytes(words, 1);
}

uint64_t ceilings_write_bytes(int64_t words)
{
    return word_bytes(words, 1);
}

uint64_t ceilings_copy_bytes(int64_t words)
{
    return word_bytes(words, 2);
}

uint64_t ceilings_triad_bytes(int64_t words)
{
    return word_bytes(words, 3);
}

static int is_valid(int64_t m, int64_t n, int64_t k)
{
    return m > 0 && n > 0 && k > 0;
}

static uint64_t area(int64_t rows, int64_t columns)
{
    return saturating_product((uint64_t)rows, (uint64_t)columns);
}

uint64_t ceilings_gemm_flops(int64_t m, int64_t n, int64_t k)
{
    if (!is_valid(m, n, k)) return 0;
    return saturating_product(saturating_product(area(m, n), (uint64_t)k), 2);
}

uint64_t ceilings_gemm_bytes(int64_t m, int64_t n, int64_t k, kernel_dtype dtype)
{
    if (!is_valid(m, n, k)) return 0;
    uint64_t elements = saturating_sum(saturating_sum(area(m, k), area(k, n)), area(m, n));
    return saturating_product(elements, kernel_dtype_bytes(dtype));
}

/* ---- oracle --------------------------------------------------------------------- */

void ceilings_gemm_reference(int64_t rows, int64_t n, int64_t k, const float *a, const float *b,
                             double *c)
{
    memset(c, 0, (size_t)(rows * n) * sizeof *c);
    for (int64_t p = 0; p < k; p++) /* outermost: each row of b is read once */
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += (double)a[i * k + p] * (double)b[p * n + j];
}

/* ---- bandwidth ------------------------------------------------------------------- */

/* Words of a thread at a time: 1 MiB, so that threads end together and a range's
 * start costs nothing beside it. */
enum { RANGE_WORDS = 1 << 18 };

/* The arguments, and where the workers' sums meet. */
typedef struct bandwidth_job {
    const ceilings_bandwidth_args *args;
    atomic_uint sum; /* modulo 2^32, so the order does not matter */
    int around;      /* what is written goes around the caches */
} bandwidth_job;

static void read_loop(void *context, int worker, int64_t begin, int64_t end)
{
    bandwidth_job *j = context;
    uint32_t sum = 0;
    (void)worker;
    for (int64_t i = begin; i < end; i++) sum += j->args->b[i];
    atomic_fetch_add(&j->sum, sum);
}

static void write_loop(void *context, int worker, int64_t begin, int64_t end)
{
    const ceilings_bandwidth_args *a = ((bandwidth_job *)context)->args;
    (void)worker;
    for (int64_t i = begin; i < end; i++) a->a[i] = a->value;
}

static void copy_loop(void *context, int worker, int64_t begin, int64_t end)
{
    const ceilings_bandwidth_args *a = ((bandwidth_job *)context)->args;
    uint32_t *restrict to = a->a;
    const uint32_t *restrict from = a->b;
    (void)worker;
    for (int64_t i = begin; i < end; i++) to[i] = from[i];
}

static void triad_loop(void *context, int worker, int64_t begin, int64_t end)
{
    const ceilings_bandwidth_args *a = ((bandwidth_job *)context)->args;
    float *restrict sum = (float *)a->a;
    const float *restrict b = (const float *)a->b, *restrict c = (const float *)a->c;
    (void)worker;
    for (int64_t i = begin; i < end; i++) sum[i] = b[i] + a->factor * c[i];
}

static void read_range(void *context, int worker, int64_t begin, int64_t end)
{
    bandwidth_job *j = context;
    (void)worker;
    atomic_fetch_add(&j->sum, simd()->sum_words(end - begin, j->args->b + begin));
}

/* Words as the f32 of the same bits, which nothing computes with. */
static void write_range(void *context, int worker, int64_t begin, int64_t end)
{
    const bandwidth_job *j = context;
    float value;
    (void)worker;
    memcpy(&value, &j->args->value, sizeof value);
    simd()->fill(end - begin, value, (float *)j->args->a + begin, j->around);
    simd()->settle();
}

static void copy_range(void *context, int worker, int64_t begin, int64_t end)
{
    const bandwidth_job *j = context;
    (void)worker;
    simd()->copy(end - begin, (const float *)j->args->b + begin, (float *)j->args->a + begin,
                 j->around);
    simd()->settle();
}

static void triad_range(void *context, int worker, int64_t begin, int64_t end)
{
    const bandwidth_job *j = context;
    const ceilings_bandwidth_args *a = j->args;
    (void)worker;
    simd()->add_scaled(end - begin, (const float *)a->b + begin, a->factor,
                       (const float *)a->c + begin, (float *)a->a + begin, j->around);
    simd()->settle();
}

static int run_on(int threads, const ceilings_bandwidth_args *a, pool_function *function)
{
    if (a->words < 1) return KERNEL_ERROR_ARGUMENT;
    bandwidth_job j = {.args = a, .around = simd_goes_around(ceilings_write_bytes(a->words))};
    pool_for(threads, a->words, RANGE_WORDS, function, &j);
    if (function == read_range || function == read_loop) *a->sum = atomic_load(&j.sum);
    return KERNEL_OK;
}

/* The functions of an operation, which its rows name. */
#define BANDWIDTH_RUN(name, threads, function)                                                  \
    static int run_##name(const void *args, void *workspace, void *state, kernel_stream stream) \
    {                                                                                           \
        (void)workspace, (void)state, (void)stream;                                             \
        return run_on(threads, args, function);                                                 \
    }
#define BANDWIDTH(operation)                                                                    \
    BANDWIDTH_RUN(operation##_loop, 1, operation##_loop)                                        \
    BANDWIDTH_RUN(operation##_simd, 1, operation##_range)                                       \
    BANDWIDTH_RUN(operation##_threads, pool_threads(), operation##_range)

BANDWIDTH(read)
BANDWIDTH(write)
BANDWIDTH(copy)
BANDWIDTH(triad)

/* ---- product ---------------------------------------------------------------------- */

static size_t gemm_workspace_bytes(const void *args)
{
    const ceilings_gemm_args *a = args;
    if (!is_valid(a->m, a->n, a->k)) return 0;
    uint64_t floats = saturating_sum(area(a->m, a->n), linear_scratch_floats(a->m, a->n, a->k));
    uint64_t bytes = saturating_product(floats, sizeof(float));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

static int run_gemm(const ceilings_gemm_args *a, float *workspace, const linear_way *way)
{
    if (!is_valid(a->m, a->n, a->k)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype) || linear_is_missing(way)) return KERNEL_ERROR_ARGUMENT;
    float *scratch = workspace, *product = scratch + linear_scratch_floats(a->m, a->n, a->k);
    if (element_is_f32(a->dtype)) product = a->c;
    way->multiply(a->m, a->n, a->k, linear_rows(a->a, a->dtype, a->k),
                  linear_rows(a->b, a->dtype, a->n), product, scratch);
    if (product != a->c) kernel_from_f32(product, a->dtype, a->m * a->n, a->c);
    return KERNEL_OK;
}

#define GEMM(way)                                                                               \
    static int run_gemm_##way(const void *args, void *workspace, void *state,                   \
                              kernel_stream stream)                                             \
    {                                                                                           \
        (void)state, (void)stream;                                                              \
        return run_gemm(args, workspace, &linear_##way);                                        \
    }

GEMM(naive)
GEMM(tiled)
GEMM(simd)
GEMM(threads)
GEMM(blas)

static const char *has_no_blas(const void *args)
{
    (void)args;
    return linear_has_no_blas();
}

/* ---- tables ------------------------------------------------------------------------ */

enum {
    BYTES = KERNEL_DTYPE_BIT(KERNEL_U8),
    WORDS = KERNEL_DTYPE_BIT(KERNEL_F32)
};

#define BANDWIDTH_ROWS(operation, takes)                                                        \
    {.name = "loop", .note = "a loop that the compiler vectorizes", .dtypes = (takes),          \
     .deterministic = 1, .run = run_##operation##_loop},                                        \
    {.name = "simd", .note = "this processor's vectors", .dtypes = (takes),                     \
     .deterministic = 1, .run = run_##operation##_simd, .runs_on = simd_runs_on},               \
    {.name = "threads", .note = "simd on all threads", .dtypes = (takes),                       \
     .deterministic = 1, .run = run_##operation##_threads, .runs_on = simd_runs_on_threads}

static const kernel_variant read_rows[] = {BANDWIDTH_ROWS(read, BYTES)};
static const kernel_variant write_rows[] = {BANDWIDTH_ROWS(write, BYTES)};
static const kernel_variant copy_rows[] = {BANDWIDTH_ROWS(copy, BYTES)};
static const kernel_variant triad_rows[] = {BANDWIDTH_ROWS(triad, WORDS)};
static const kernel_variant gemm_rows[] = {
    {.name = "naive", .note = "one dot product per result", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = gemm_workspace_bytes, .run = run_gemm_naive},
    {.name = "tiled", .note = "packed panels, register blocks", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = gemm_workspace_bytes, .run = run_gemm_tiled},
    {.name = "simd", .note = "the same with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = gemm_workspace_bytes, .run = run_gemm_simd,
     .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = gemm_workspace_bytes, .run = run_gemm_threads,
     .runs_on = simd_runs_on_threads},
    {.name = "blas", .note = "cblas_sgemm", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .unsupported = has_no_blas, .workspace_bytes = gemm_workspace_bytes, .run = run_gemm_blas,
     .runs_on = linear_blas_runs_on},
};

const kernel_table ceilings_read_cpu = {read_rows, sizeof read_rows / sizeof *read_rows};
const kernel_table ceilings_write_cpu = {write_rows, sizeof write_rows / sizeof *write_rows};
const kernel_table ceilings_copy_cpu = {copy_rows, sizeof copy_rows / sizeof *copy_rows};
const kernel_table ceilings_triad_cpu = {triad_rows, sizeof triad_rows / sizeof *triad_rows};
const kernel_table ceilings_gemm_cpu = {gemm_rows, sizeof gemm_rows / sizeof *gemm_rows};
