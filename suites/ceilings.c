/*
 * ceilings.c - what the device can do at most: bandwidth of reading, writing,
 * copying and combining, and the rate of matrix products per dtype.
 */
#include "suite.h"

#include "../kernels/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t gpu_words[] = {1 << 28}; /* 1 GiB an array */
static const int64_t cpu_words[] = {1 << 22}; /* 16 MiB */
static const int64_t gpu_sizes[] = {4096, 8192};
static const int64_t cpu_sizes[] = {256};

enum { SAMPLED_ROWS = 4, WRITTEN = 0x3f9df3b6 /* a finite f32 */ };

/* ---- bandwidth ------------------------------------------------------------------- */

static int build_bandwidth(suite_case *c, gpubench *bench, int inputs, int has_output)
{
    ceilings_bandwidth_args *a = c->args;
    void *memory[2] = {NULL, NULL}, *out = NULL, *sum = NULL;
    int code = has_output ? 0 : suite_output(bench, KERNEL_F32, 1, &sum);
    for (int i = 0; i < inputs && code == 0; i++)
        code = suite_input(bench, KERNEL_F32, a->words, 1, (uint64_t)i, &memory[i]);
    if (code == 0 && has_output) code = suite_output(bench, KERNEL_F32, a->words, &out);
    a->a = out;
    a->b = memory[0];
    a->c = memory[1];
    a->sum = sum;
    a->value = WRITTEN;
    a->factor = 3;
    return code;
}

static int build_read(suite_case *c, gpubench *bench)
{
    return build_bandwidth(c, bench, 1, 0);
}

static int build_write(suite_case *c, gpubench *bench)
{
    return build_bandwidth(c, bench, 0, 1);
}

static int build_copy(suite_case *c, gpubench *bench)
{
    return build_bandwidth(c, bench, 1, 1);
}

static int build_triad(suite_case *c, gpubench *bench)
{
    return build_bandwidth(c, bench, 2, 1);
}

enum { PIECE = 1 << 22 }; /* words that are checked at a time */

/* A piece of each array on the host. */
typedef struct pieces {
    uint32_t *a, *b, *c;
} pieces;

/* Adds to *wrong how far a piece is from right; NaN stays. */
typedef void judge(const ceilings_bandwidth_args *args, const pieces *p, int64_t count,
                   double *wrong);

static int fetch_words(gpubench *bench, uint32_t *to, const uint32_t *from, int64_t at,
                       int64_t count)
{
    return from ? gpubench_copy(bench, to, from + at, (size_t)count * sizeof *to) : 0;
}

/* Every word of every array that the operation uses. */
static int verify_pieces(suite_case *c, gpubench *bench, judge *judge_piece, double *wrong)
{
    const ceilings_bandwidth_args *args = c->args;
    uint32_t *memory = malloc(3 * (size_t)PIECE * sizeof *memory);
    pieces p = {memory, memory + PIECE, memory + 2 * PIECE};
    int code = memory ? 0 : KERNEL_ERROR_MEMORY;
    *wrong = 0;
    for (int64_t at = 0; at < args->words && code == 0; at += PIECE) {
        int64_t count = args->words - at < PIECE ? args->words - at : PIECE;
        code = fetch_words(bench, p.a, args->a, at, count);
        if (code == 0) code = fetch_words(bench, p.b, args->b, at, count);
        if (code == 0) code = fetch_words(bench, p.c, args->c, at, count);
        if (code == 0) judge_piece(args, &p, count, wrong);
    }
    free(memory);
    return code;
}

/* Here *wrong is the sum itself, which a double holds for 2^21 pieces. */
static void judge_read(const ceilings_bandwidth_args *args, const pieces *p, int64_t count,
                       double *wrong)
{
    uint32_t sum = 0;
    (void)args;
    for (int64_t i = 0; i < count; i++) sum += p->b[i];
    *wrong += sum;
}

static void judge_write(const ceilings_bandwidth_args *args, const pieces *p, int64_t count,
                        double *wrong)
{
    for (int64_t i = 0; i < count; i++) *wrong += p->a[i] != args->value;
}

static void judge_copy(const ceilings_bandwidth_args *args, const pieces *p, int64_t count,
                       double *wrong)
{
    (void)args;
    *wrong += memcmp(p->a, p->b, (size_t)count * sizeof *p->a) != 0;
}

static float as_float(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static void judge_triad(const ceilings_bandwidth_args *args, const pieces *p, int64_t count,
                        double *wrong)
{
    for (int64_t i = 0; i < count; i++) {
        double right = (double)as_float(p->b[i]) + (double)args->factor * (double)as_float(p->c[i]);
        double difference = fabs((double)as_float(p->a[i]) - right);
        if (!(difference <= *wrong)) *wrong = difference;
    }
}

static int verify_read(suite_case *c, gpubench *bench)
{
    const ceilings_bandwidth_args *args = c->args;
    double total;
    uint32_t found = 0;
    int code = verify_pieces(c, bench, judge_read, &total);
    if (code == 0) code = gpubench_copy(bench, &found, args->sum, sizeof found);
    return code ? code : gpubench_check(bench, found != (uint32_t)fmod(total, 0x1p32), 0);
}

static int verify_write(suite_case *c, gpubench *bench)
{
    double wrong;
    int code = verify_pieces(c, bench, judge_write, &wrong);
    return code ? code : gpubench_check(bench, wrong, 0);
}

static int verify_copy(suite_case *c, gpubench *bench)
{
    double wrong;
    int code = verify_pieces(c, bench, judge_copy, &wrong);
    return code ? code : gpubench_check(bench, wrong, 0);
}

/* Values stay below 32, where f32 is 2e-6 apart. */
static int verify_triad(suite_case *c, gpubench *bench)
{
    double wrong;
    int code = verify_pieces(c, bench, judge_triad, &wrong);
    return code ? code : gpubench_check(bench, wrong, 4e-6);
}

static void queue_bandwidth(suite *s, suite_operation *operation, kernel_table cpu,
                            kernel_table cuda, kernel_dtype dtype, int64_t words, uint64_t bytes)
{
    ceilings_bandwidth_args args = {.words = words};
    char params[48];
    operation->cpu = cpu;
    operation->cuda = cuda;
    operation->args_bytes = sizeof args;
    snprintf(params, sizeof params, "bytes=%lld", (long long)words * 4);
    suite_queue(s, operation, dtype, params, &args, bytes, 0);
}

static void queue_words(suite *s, int64_t words)
{
    static suite_operation read = {
        .name = "bandwidth.read", .build = build_read, .verify = verify_read};
    static suite_operation write = {
        .name = "bandwidth.write", .build = build_write, .verify = verify_write};
    static suite_operation copy = {
        .name = "bandwidth.copy", .build = build_copy, .verify = verify_copy};
    static suite_operation triad = {
        .name = "bandwidth.triad", .build = build_triad, .verify = verify_triad};
    queue_bandwidth(s, &read, ceilings_read_cpu, SUITE_CUDA_TABLE(ceilings_read_cuda), KERNEL_U8,
                    words, ceilings_read_bytes(words));
    queue_bandwidth(s, &write, ceilings_write_cpu, SUITE_CUDA_TABLE(ceilings_write_cuda),
                    KERNEL_U8, words, ceilings_write_bytes(words));
    queue_bandwidth(s, &copy, ceilings_copy_cpu, SUITE_CUDA_TABLE(ceilings_copy_cuda), KERNEL_U8,
                    words, ceilings_copy_bytes(words));
    queue_bandwidth(s, &triad, ceilings_triad_cpu, SUITE_CUDA_TABLE(ceilings_triad_cuda),
                    KERNEL_F32, words, ceilings_triad_bytes(words));
}

/* ---- products ---------------------------------------------------------------------- */

static int build_gemm(suite_case *c, gpubench *bench)
{
    ceilings_gemm_args *args = c->args;
    void *a = NULL, *b = NULL;
    int code = suite_input(bench, c->dtype, args->m * args->k, 1, 0, &a);
    if (code == 0) code = suite_input(bench, c->dtype, args->k * args->n, 1, 1, &b);
    if (code == 0) code = suite_output(bench, c->dtype, args->m * args->n, &args->c);
    args->a = a;
    args->b = b;
    return code;
}

static int check_gemm(const ceilings_gemm_args *args, gpubench *bench, float *a, float *b,
                      double *reference)
{
    int64_t rows[SAMPLED_ROWS], m = args->m, n = args->n, k = args->k;
    int64_t count = suite_sample_indices(gpubench_seed(bench), m, SAMPLED_ROWS, rows);
    suite_error error = {0, 0};
    int code = suite_fetch(bench, args->b, args->dtype, 0, k * n, b);
    for (int64_t i = 0; i < count && code == 0; i++)
        code = suite_fetch(bench, args->a, args->dtype, rows[i] * k, k, a + i * k);
    if (code == 0) ceilings_gemm_reference(count, n, k, a, b, reference);
    for (int64_t i = 0; i < count && code == 0; i++) {
        code = suite_fetch(bench, args->c, args->dtype, rows[i] * n, n, b);
        if (code == 0) suite_compare(&error, b, reference + i * n, n);
    }
    return code ? code : suite_check(bench, &error, args->dtype, 1);
}

static int verify_gemm(suite_case *c, gpubench *bench)
{
    const ceilings_gemm_args *args = c->args;
    float *a = malloc((size_t)(SAMPLED_ROWS * args->k) * sizeof *a);
    float *b = malloc((size_t)(args->k * args->n) * sizeof *b);
    double *reference = malloc((size_t)(SAMPLED_ROWS * args->n) * sizeof *reference);
    int code = a && b && reference ? check_gemm(args, bench, a, b, reference) : KERNEL_ERROR_MEMORY;
    free(a);
    free(b);
    free(reference);
    return code ? code : suite_check_written(bench, args->c, c->dtype, args->m * args->n);
}

static void queue_gemm(suite *s, int64_t m, int64_t n, int64_t k)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    static suite_operation gemm = {.name = "gemm.nn",
                                   .args_bytes = sizeof(ceilings_gemm_args),
                                   .build = build_gemm,
                                   .verify = verify_gemm};
    char params[96];
    gemm.cpu = ceilings_gemm_cpu;
    gemm.cuda = SUITE_CUDA_TABLE(ceilings_gemm_cuda);
    snprintf(params, sizeof params, "m=%lld n=%lld k=%lld", (long long)m, (long long)n,
             (long long)k);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        ceilings_gemm_args args = {.m = m, .n = n, .k = k, .dtype = dtypes[i]};
        suite_queue(s, &gemm, dtypes[i], params, &args, ceilings_gemm_bytes(m, n, k, dtypes[i]),
                    ceilings_gemm_flops(m, n, k));
    }
}

/* ---- shapes -------------------------------------------------------------------------- */

static void queue_defaults(suite *s)
{
    int cuda = gpubench_is_cuda(s->bench);
    const int64_t *words = cuda ? gpu_words : cpu_words, *sizes = cuda ? gpu_sizes : cpu_sizes;
    size_t word_count = cuda ? sizeof gpu_words / sizeof *words : sizeof cpu_words / sizeof *words;
    size_t size_count = cuda ? sizeof gpu_sizes / sizeof *sizes : sizeof cpu_sizes / sizeof *sizes;
    for (size_t i = 0; i < word_count; i++) queue_words(s, words[i]);
    for (size_t i = 0; i < size_count; i++) queue_gemm(s, sizes[i], sizes[i], sizes[i]);
}

/* 0 leaves the bandwidths or the product out. */
static void queue_given(suite *s, const int64_t *values)
{
    if (values[0] > INT64_MAX / 4)
        gpubench_usage_error(s->bench, "--shape: words is too large");
    else if (values[0] > 0)
        queue_words(s, values[0]);
    if (ceilings_gemm_flops(values[1], values[2], values[3]) > 0)
        queue_gemm(s, values[1], values[2], values[3]);
    else if (values[0] == 0)
        gpubench_usage_error(s->bench, "--shape: wants words, or m, n and k, of at least 1");
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"words", "m", "n", "k"};
    suite s = suite_open("ceilings", "'words=268435456 m=4096 n=4096 k=4096; ...' (0 leaves one "
                                     "out) instead of the defaults", argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
