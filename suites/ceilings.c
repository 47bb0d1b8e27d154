/*
 * ceilings.c - what the device can do at most: bandwidth of reading, writing,
 * copying and combining, and the rate of matrix products per dtype.
 */
#include "suite.h"

#include "../kernels/ceilings/ceilings.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t gpu_words[] = {1 << 28}; /* 1 GiB an array */
static const int64_t cpu_words[] = {1 << 22, 1 << 25}; /* 16 and 128 MiB */
static const int64_t gpu_sizes[] = {4096, 8192};
static const int64_t cpu_sizes[] = {256, 768};

enum { SAMPLED_ROWS = 4, K_PARTS = 16, WRITTEN = 0x3f9df3b6 /* a finite f32 */ };

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

/* Words that are fetched at a time, and into how many ranges they fall. */
enum { PIECE = 1 << 22, RANGES = PIECE / SUITE_RANGE };

/* Words of each array that the operation uses, on the host. */
typedef struct triple {
    const uint32_t *a, *b, *c;
} triple;

/* What count words say, and what two such findings say together. */
typedef double judge(const ceilings_bandwidth_args *args, const triple *w, int64_t count);
typedef double combine(double one, double other);

/* A piece of each array, and what is found in each SUITE_RANGE of it. */
typedef struct piece {
    const ceilings_bandwidth_args *args;
    judge *judge_words;
    uint32_t *a, *b, *c;
    double found[RANGES];
} piece;

static void judge_range(void *context, int64_t begin, int64_t end)
{
    piece *p = context;
    triple w = {p->a + begin, p->b + begin, p->c + begin};
    p->found[begin / SUITE_RANGE] = p->judge_words(p->args, &w, end - begin);
}

/* As bits: suite_fetch leaves an f32 as it is. */
static int fetch_words(gpubench *bench, uint32_t *to, const uint32_t *from, int64_t at,
                       int64_t count)
{
    return from ? suite_fetch(bench, from, KERNEL_F32, at, count, (float *)(void *)to) : 0;
}

static int fetch_piece(gpubench *bench, const piece *p, int64_t at, int64_t count)
{
    int code = fetch_words(bench, p->a, p->args->a, at, count);
    if (code == 0) code = fetch_words(bench, p->b, p->args->b, at, count);
    return code ? code : fetch_words(bench, p->c, p->args->c, at, count);
}

/* Every word of every array that the operation uses. */
static int verify_pieces(suite_case *c, gpubench *bench, judge *judge_words,
                         combine *combine_findings, double *found)
{
    const ceilings_bandwidth_args *args = c->args;
    uint32_t *memory = malloc(3 * (size_t)PIECE * sizeof *memory);
    piece p = {.args = args, .judge_words = judge_words, .a = memory};
    int code = memory ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0) p.b = memory + PIECE;
    if (code == 0) p.c = memory + 2 * PIECE;
    *found = 0;
    for (int64_t at = 0; at < args->words && code == 0; at += PIECE) {
        int64_t count = args->words - at < PIECE ? args->words - at : PIECE;
        code = fetch_piece(bench, &p, at, count);
        if (code != 0) break;
        parallel_for(count, SUITE_RANGE, judge_range, &p);
        for (int64_t i = 0; i < parallel_range_count(count, SUITE_RANGE); i++)
            *found = combine_findings(*found, p.found[i]);
    }
    free(memory);
    return code;
}

static double sum_of(double one, double other)
{
    return one + other;
}

static double worse_of(double one, double other)
{
    return other > one ? other : one;
}

/* The sum itself, which a double holds for 2^21 ranges. */
static double judge_read(const ceilings_bandwidth_args *args, const triple *w, int64_t count)
{
    uint32_t sum = 0;
    (void)args;
    for (int64_t i = 0; i < count; i++) sum += w->b[i];
    return sum;
}

static double judge_write(const ceilings_bandwidth_args *args, const triple *w, int64_t count)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) wrong += w->a[i] != args->value;
    return (double)wrong;
}

static double judge_copy(const ceilings_bandwidth_args *args, const triple *w, int64_t count)
{
    (void)args;
    return memcmp(w->a, w->b, (size_t)count * sizeof *w->a) != 0;
}

static float as_float(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* What is no number is counted, because no comparison keeps a NaN, and is worse
 * than any. */
static double judge_triad(const ceilings_bandwidth_args *args, const triple *w, int64_t count)
{
    double worst = 0, factor = (double)args->factor;
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        double right = (double)as_float(w->b[i]) + factor * (double)as_float(w->c[i]);
        double difference = fabs((double)as_float(w->a[i]) - right);
        worst = difference > worst ? difference : worst;
        wrong += !suite_is_finite_word(w->a[i]);
    }
    return wrong > 0 ? DBL_MAX : worst;
}

static int verify_read(suite_case *c, gpubench *bench)
{
    const ceilings_bandwidth_args *args = c->args;
    double total;
    uint32_t found = 0;
    int code = verify_pieces(c, bench, judge_read, sum_of, &total);
    if (code == 0) code = gpubench_copy(bench, &found, args->sum, sizeof found);
    return code ? code : gpubench_check(bench, found != (uint32_t)fmod(total, 0x1p32), 0);
}

static int verify_write(suite_case *c, gpubench *bench)
{
    double wrong;
    int code = verify_pieces(c, bench, judge_write, sum_of, &wrong);
    return code ? code : gpubench_check(bench, wrong, 0);
}

static int verify_copy(suite_case *c, gpubench *bench)
{
    double wrong;
    int code = verify_pieces(c, bench, judge_copy, sum_of, &wrong);
    return code ? code : gpubench_check(bench, wrong, 0);
}

/* Values stay below 32, where f32 is 2e-6 apart. */
static int verify_triad(suite_case *c, gpubench *bench)
{
    double wrong;
    int code = verify_pieces(c, bench, judge_triad, worse_of, &wrong);
    return code ? code : gpubench_check(bench, wrong, 4e-6);
}

static void queue_bandwidth(suite *s, const suite_operation *operation, kernel_dtype dtype,
                            int64_t words, uint64_t bytes)
{
    ceilings_bandwidth_args args = {.words = words};
    char params[48];
    snprintf(params, sizeof params, "bytes=%lld", (long long)words * 4);
    suite_queue(s, operation, dtype, params, &args, bytes, 0);
}

#define BANDWIDTH(NAME)                                                                   \
    {                                                                                     \
        .name = "bandwidth." #NAME, .cpu = &ceilings_##NAME##_cpu,                        \
        .cuda = SUITE_CUDA(ceilings_##NAME##_cuda),                                       \
        .args_bytes = sizeof(ceilings_bandwidth_args), .build = build_##NAME,             \
        .verify = verify_##NAME                                                           \
    }

static void queue_words(suite *s, int64_t words)
{
    static const suite_operation read = BANDWIDTH(read), write = BANDWIDTH(write);
    static const suite_operation copy = BANDWIDTH(copy), triad = BANDWIDTH(triad);
    queue_bandwidth(s, &read, KERNEL_U8, words, ceilings_read_bytes(words));
    queue_bandwidth(s, &write, KERNEL_U8, words, ceilings_write_bytes(words));
    queue_bandwidth(s, &copy, KERNEL_U8, words, ceilings_copy_bytes(words));
    queue_bandwidth(s, &triad, KERNEL_F32, words, ceilings_triad_bytes(words));
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

/* Sampled rows of a product on the host, in parts: the oracle sums over ranges
 * of k, each apart, as there are too few rows for the threads. */
typedef struct product {
    const ceilings_gemm_args *args;
    int64_t rows[SAMPLED_ROWS], row_count, part_length;
    float *a, *b;    /* a: [K_PARTS, row_count, part_length], the last part shorter */
    double *of_part; /* [K_PARTS, row_count, n] */
} product;

static int fetch_factors(gpubench *bench, const product *p)
{
    const ceilings_gemm_args *args = p->args;
    float *a = p->a;
    int code = suite_fetch(bench, args->b, args->dtype, 0, args->k * args->n, p->b);
    for (int64_t first = 0; first < args->k; first += p->part_length) {
        int64_t left = args->k - first, now = left < p->part_length ? left : p->part_length;
        for (int64_t i = 0; i < p->row_count && code == 0; i++, a += now)
            code = suite_fetch(bench, args->a, args->dtype, p->rows[i] * args->k + first, now, a);
    }
    return code;
}

static void multiply_part(void *context, int64_t begin, int64_t end)
{
    const product *p = context;
    int64_t n = p->args->n;
    ceilings_gemm_reference(p->row_count, n, end - begin, p->a + begin * p->row_count,
                            p->b + begin * n,
                            p->of_part + begin / p->part_length * p->row_count * n);
}

/* The oracle's rows, in the place of the first part. */
static void multiply(product *p)
{
    int64_t count = p->row_count * p->args->n;
    int64_t parts = parallel_range_count(p->args->k, p->part_length);
    parallel_for(p->args->k, p->part_length, multiply_part, p);
    for (int64_t part = 1; part < parts; part++)
        for (int64_t i = 0; i < count; i++) p->of_part[i] += p->of_part[part * count + i];
}

static int check_gemm(gpubench *bench, product *p)
{
    const ceilings_gemm_args *args = p->args;
    suite_error error = {0, 0};
    int code = fetch_factors(bench, p);
    if (code == 0) multiply(p);
    for (int64_t i = 0; i < p->row_count && code == 0; i++) {
        code = suite_fetch(bench, args->c, args->dtype, p->rows[i] * args->n, args->n, p->b);
        if (code == 0) suite_compare(&error, p->b, p->of_part + i * args->n, args->n);
    }
    return code ? code : suite_check(bench, &error, args->dtype, 1);
}

static int verify_gemm(suite_case *c, gpubench *bench)
{
    const ceilings_gemm_args *args = c->args;
    product p = {.args = args,
                 .part_length = parallel_range_count(args->k, K_PARTS),
                 .a = malloc((size_t)(SAMPLED_ROWS * args->k) * sizeof *p.a),
                 .b = malloc((size_t)(args->k * args->n) * sizeof *p.b),
                 .of_part = malloc((size_t)(SAMPLED_ROWS * K_PARTS * args->n) * sizeof(double))};
    p.row_count = suite_sample_indices(gpubench_seed(bench), args->m, SAMPLED_ROWS, p.rows);
    int code = p.a && p.b && p.of_part ? check_gemm(bench, &p) : KERNEL_ERROR_MEMORY;
    free(p.a);
    free(p.b);
    free(p.of_part);
    return code ? code : suite_check_written(bench, args->c, c->dtype, args->m * args->n);
}

static void queue_gemm(suite *s, int64_t m, int64_t n, int64_t k)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    static const suite_operation gemm = {.name = "gemm.nn",
                                         .cpu = &ceilings_gemm_cpu,
                                         .cuda = SUITE_CUDA(ceilings_gemm_cuda),
                                         .args_bytes = sizeof(ceilings_gemm_args),
                                         .build = build_gemm,
                                         .verify = verify_gemm};
    char params[96];
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
