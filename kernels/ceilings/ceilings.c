/*
 * ceilings.c - what one thread of the host can do at most: the operations'
 * formulas, the product's oracle, and the variants.
 *
 * 1. loop           read, write, copy, triad: plain loops that the compiler
 *                   turns into vectors. Bound by memory (or by the cache, for
 *                   arrays that fit it); a write also reads what it overwrites,
 *                   which is not counted.
 * 2. naive, tiled   the product, by linear.h: bound by arithmetic.
 */
#include "ceilings.h"

#include <string.h>

#include "../common/convert.h"
#include "../common/element.h"
#include "../linear/linear.h"
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

static int run_read(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ceilings_bandwidth_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (a->words < 1) return KERNEL_ERROR_ARGUMENT;
    uint32_t sum = 0;
    for (int64_t i = 0; i < a->words; i++) sum += a->b[i];
    *a->sum = sum;
    return KERNEL_OK;
}

static int run_write(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ceilings_bandwidth_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (a->words < 1) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->words; i++) a->a[i] = a->value;
    return KERNEL_OK;
}

static int run_copy(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ceilings_bandwidth_args *a = args;
    uint32_t *restrict to = a->a;
    const uint32_t *restrict from = a->b;
    (void)workspace, (void)state, (void)stream;
    if (a->words < 1) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->words; i++) to[i] = from[i];
    return KERNEL_OK;
}

static int run_triad(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ceilings_bandwidth_args *a = args;
    float *restrict sum = (float *)a->a;
    const float *restrict b = (const float *)a->b, *restrict c = (const float *)a->c;
    (void)workspace, (void)state, (void)stream;
    if (a->words < 1) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->words; i++) sum[i] = b[i] + a->factor * c[i];
    return KERNEL_OK;
}

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
    if (!element_takes(a->dtype)) return KERNEL_ERROR_ARGUMENT;
    float *scratch = workspace, *product = scratch + linear_scratch_floats(a->m, a->n, a->k);
    way->multiply(a->m, a->n, a->k, linear_rows(a->a, a->dtype, a->k),
                  linear_rows(a->b, a->dtype, a->n), product, scratch);
    kernel_from_f32(product, a->dtype, a->m * a->n, a->c);
    return KERNEL_OK;
}

static int run_gemm_naive(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_gemm(args, workspace, &linear_naive);
}

static int run_gemm_tiled(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_gemm(args, workspace, &linear_tiled);
}

/* ---- tables ------------------------------------------------------------------------ */

enum {
    BYTES = KERNEL_DTYPE_BIT(KERNEL_U8),
    WORDS = KERNEL_DTYPE_BIT(KERNEL_F32),
    PRODUCTS = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_BF16)
};

static const char loop_note[] = "a loop that the compiler vectorizes";

static const kernel_variant read_rows[] = {{.name = "loop", .note = loop_note, .dtypes = BYTES,
                                            .deterministic = 1, .run = run_read}};
static const kernel_variant write_rows[] = {{.name = "loop", .note = loop_note, .dtypes = BYTES,
                                             .deterministic = 1, .run = run_write}};
static const kernel_variant copy_rows[] = {{.name = "loop", .note = loop_note, .dtypes = BYTES,
                                            .deterministic = 1, .run = run_copy}};
static const kernel_variant triad_rows[] = {{.name = "loop", .note = loop_note, .dtypes = WORDS,
                                             .deterministic = 1, .run = run_triad}};
static const kernel_variant gemm_rows[] = {
    {.name = "naive", .note = "one dot product per result", .dtypes = PRODUCTS,
     .deterministic = 1, .workspace_bytes = gemm_workspace_bytes, .run = run_gemm_naive},
    {.name = "tiled", .note = "packed panels, register blocks", .dtypes = PRODUCTS,
     .deterministic = 1, .workspace_bytes = gemm_workspace_bytes, .run = run_gemm_tiled},
};

const kernel_table ceilings_read_cpu = {read_rows, 1};
const kernel_table ceilings_write_cpu = {write_rows, 1};
const kernel_table ceilings_copy_cpu = {copy_rows, 1};
const kernel_table ceilings_triad_cpu = {triad_rows, 1};
const kernel_table ceilings_gemm_cpu = {gemm_rows, sizeof gemm_rows / sizeof *gemm_rows};
