/*
 * suite.c - the suites' common half: see suite.h.
 */
#include "suite.h"

#include "peaks.h"

#include "../gpubench_trace.h"

#include "../kernels/common/convert.h"
#include "../kernels/common/cpu.h"
#include "../kernels/common/pool.h"
#include "../kernels/common/random.h"
#include "../kernels/common/simd.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const suite_model suite_models[SUITE_MODEL_COUNT] = {
    {"small", 768, 3072, 12, 12},  {"medium", 1024, 4096, 24, 16}, {"large", 1280, 5120, 36, 20},
    {"xl", 1600, 6400, 48, 25},    {"2.7B", 2560, 10240, 32, 32},
};

int suite_fills_gpu(const suite_model *model)
{
    return model == &suite_models[0] || model == &suite_models[3];
}

/* ---- command line ----------------------------------------------------------- */

static const char *shape_option; /* what --shape was given, NULL without */
static const char *dtype_option, *cpu_option, *threads_option;
static unsigned wanted_dtypes; /* set of KERNEL_DTYPE_BIT */

static void take_dtypes(gpubench *bench, const char *list)
{
    const char *at = list;
    for (wanted_dtypes = 0;; at++) {
        size_t length = strcspn(at, ",");
        int dtype = 0;
        while (dtype < KERNEL_DTYPE_COUNT &&
               (strlen(kernel_dtype_name((kernel_dtype)dtype)) != length ||
                strncmp(at, kernel_dtype_name((kernel_dtype)dtype), length)))
            dtype++;
        if (dtype == KERNEL_DTYPE_COUNT) {
            gpubench_usage_error(bench, "--dtype '%s': wants a list of f32,tf32,f16,bf16,e4m3,u8",
                                 list);
            return;
        }
        wanted_dtypes |= KERNEL_DTYPE_BIT(dtype);
        at += length;
        if (!*at)
            return;
    }
}

/* Rows of other vectors than those that were asked for would be believed to be of these. */
static void take_vectors(gpubench *bench)
{
    const char *refusal = simd_refusal();
    if (refusal) gpubench_usage_error(bench, "GPUBENCH_SIMD '%s': %s", getenv("GPUBENCH_SIMD"), refusal);
}

/* Which processors, then how many threads: more than those, or than the cgroup's quota
 * pays for, make one another wait. */
static void take_processors(gpubench *bench)
{
    const char *error = cpu_option ? cpu_pin(cpu_option) : NULL;
    uint64_t threads = 0;
    if (error) gpubench_usage_error(bench, "--cpu '%s': %s", cpu_option, error);
    if (!threads_option) return;
    if (gpubench_parse_count(threads_option, &threads) != 0 || threads < 1 || threads > 1024) {
        gpubench_usage_error(bench, "--threads '%s': wants a number from 1 to 1024",
                             threads_option);
        return;
    }
    if ((int)threads > cpu_threads())
        gpubench_note(bench, "--threads %d: this process has %d processors", (int)threads,
                      cpu_threads());
    pool_set_threads((int)threads);
}

suite suite_open(const char *name, const char *shape_help, int argc, char **argv)
{
    return suite_open_with(name, shape_help, NULL, 0, argc, argv);
}

suite suite_open_with(const char *name, const char *shape_help, const gpubench_option *own,
                      size_t own_count, int argc, char **argv)
{
    enum { COMMON = 4, OWN = 4 };
    gpubench_option options[COMMON + OWN] = {
        {"--shape", "LIST", shape_help, &shape_option},
        {"--dtype", "LIST", "of f32,tf32,f16,bf16,e4m3,u8 (default f32,bf16,u8)", &dtype_option},
        {"--cpu", "LIST", "processors to run on, as 0,2-3 (default: all it may)", &cpu_option},
        {"--threads", "N", "of the CPU's variants (default: one a processor)", &threads_option}};
    suite s = {NULL, NULL, 0};
    for (size_t i = 0; i < own_count && i < OWN; i++) options[COMMON + i] = own[i];
    s.bench = gpubench_open_with(name, options, COMMON + own_count, argc, argv);
    gpubench_trace(s.bench);
    gpubench_sweep_on(s.bench, pool_each);
    take_dtypes(s.bench, dtype_option ? dtype_option : "f32,bf16,u8");
    take_processors(s.bench);
    take_vectors(s.bench);
    suite_measure_peaks(s.bench);
    if (!gpubench_is_cuda(s.bench))
        gpubench_note(s.bench, "measuring the CPU (%s)",
                      GPUBENCH_CUDA ? "--device auto takes the GPU"
                                    : "the GPU needs nvcc: make BACKEND=cuda, NVCC names it");
    return s;
}

int suite_wants(kernel_dtype dtype)
{
    return (wanted_dtypes & KERNEL_DTYPE_BIT(dtype)) != 0;
}

/* One "key=value" of length bytes into values. 0, or -1 after a message. */
static int parse_pair(suite *s, const char *pair, size_t length, const char *const *keys,
                      size_t key_count, int64_t *values)
{
    size_t name_length = strcspn(pair, "="), i;
    char number[32] = "";
    uint64_t value = 0;
    for (i = 0; i < key_count; i++)
        if (name_length < length && strlen(keys[i]) == name_length &&
            !strncmp(pair, keys[i], name_length))
            break;
    if (i == key_count || length - name_length > sizeof number) {
        gpubench_usage_error(s->bench, "--shape: '%.*s' is no key=value that this suite knows",
                             (int)length, pair);
        return -1;
    }
    memcpy(number, pair + name_length + 1, length - name_length - 1);
    if (gpubench_parse_count(number, &value) != 0 || value > INT64_MAX) {
        gpubench_usage_error(s->bench, "--shape: '%.*s' wants a whole number", (int)length, pair);
        return -1;
    }
    if (values[i] >= 0) {
        gpubench_usage_error(s->bench, "--shape: %s is given twice", keys[i]);
        return -1;
    }
    values[i] = (int64_t)value;
    return 0;
}

static int parse_shape(suite *s, const char *text, size_t length, const char *const *keys,
                       size_t key_count, int64_t *values)
{
    const char *at = text, *end = text + length;
    size_t i;
    for (i = 0; i < key_count; i++)
        values[i] = -1;
    while (at < end) {
        size_t pair = strcspn(at, " ,;\n");
        if (pair > 0 && parse_pair(s, at, pair, keys, key_count, values) != 0)
            return -1;
        at += pair + (at + pair < end);
    }
    for (i = 0; i < key_count; i++)
        if (values[i] < 0) {
            gpubench_usage_error(s->bench, "--shape '%.*s': %s is missing", (int)length, text,
                                 keys[i]);
            return -1;
        }
    return 0;
}

int suite_for_each_shape(suite *s, const char *const *keys, size_t key_count,
                         void (*use)(suite *s, const int64_t *values))
{
    int64_t values[16];
    const char *at = shape_option;
    while (at && *at) {
        size_t length = strcspn(at, ";");
        if (parse_shape(s, at, length, keys, key_count, values) != 0)
            return 1;
        use(s, values);
        at += length + (at[length] == ';');
    }
    return shape_option != NULL;
}

/* ---- the host's view of device memory ---------------------------------------- */

/* Two pieces of page-locked memory through which everything comes to the host,
 * as copies to ordinary memory are several times slower. Taken at the first use
 * and kept until gpubench_close, because locking pages takes longer than most
 * checks do. */
enum { STAGE_BYTES = 32 << 20 };
static unsigned char *stage[2];

static int open_stage(gpubench *bench)
{
    if (stage[0])
        return 0;
    stage[0] = gpubench_alloc_until_close(bench, 2 * STAGE_BYTES, GPUBENCH_PINNED);
    stage[1] = stage[0] ? stage[0] + STAGE_BYTES : NULL;
    return stage[0] ? 0 : GPUBENCH_OOM;
}

/* Consecutive elements on the host, of which the first is element `at`. */
typedef struct host_piece {
    suite_look *look;
    void *context;
    const unsigned char *raw;
    size_t element_bytes;
    int64_t at;
} host_piece;

static void look_at_range(void *context, int64_t begin, int64_t end)
{
    const host_piece *p = context;
    p->look(p->context, p->raw + (size_t)begin * p->element_bytes, p->at + begin, end - begin);
}

/* One piece is looked at while the next is copied. */
static int look_at_copies(gpubench *bench, const host_piece *all, int64_t count)
{
    int64_t most = STAGE_BYTES / (int64_t)all->element_bytes;
    host_piece pieces[2] = {*all, *all};
    parallel_loop loop = {.count = 0};
    int code = open_stage(bench), half = 0;
    for (int64_t at = 0; at < count && code == 0; at += most, half = !half) {
        int64_t now = count - at < most ? count - at : most;
        code = gpubench_copy(bench, stage[half], all->raw + (size_t)at * all->element_bytes,
                             (size_t)now * all->element_bytes);
        parallel_finish(&loop);
        pieces[half].raw = stage[half];
        pieces[half].at = at;
        if (code == 0)
            parallel_start(&loop, now, SUITE_RANGE, look_at_range, &pieces[half]);
    }
    parallel_finish(&loop);
    return code;
}

int suite_look_at(gpubench *bench, const void *memory, kernel_dtype dtype, int64_t first,
                  int64_t count, suite_look *look, void *context)
{
    size_t element_bytes = kernel_dtype_bytes(dtype);
    const unsigned char *raw = (const unsigned char *)memory + (size_t)first * element_bytes;
    host_piece all = {look, context, raw, element_bytes, 0};
    if (gpubench_is_cuda(bench))
        return look_at_copies(bench, &all, count);
    parallel_for(count, SUITE_RANGE, look_at_range, &all);
    return 0;
}

/* ---- cases ----------------------------------------------------------------- */

static int case_setup(void *context, gpubench *bench)
{
    suite_case *c = context;
    const kernel_variant *variant = c->variant;
    const char *reason = NULL;
    size_t workspace_bytes;
    int code;
    if (gpubench_is_cuda(bench) &&
        gpubench_compute_capability(bench) < variant->min_compute_capability)
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "needs compute capability %d.%d",
                             variant->min_compute_capability / 10,
                             variant->min_compute_capability % 10);
    if (variant->unsupported)
        reason = variant->unsupported(c->args);
    if (reason)
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "%s", reason);
    code = c->operation->build(c, bench);
    if (code != 0)
        return code;
    workspace_bytes = variant->workspace_bytes ? variant->workspace_bytes(c->args) : 0;
    if (workspace_bytes > 0 &&
        !(c->workspace = gpubench_alloc(bench, workspace_bytes, GPUBENCH_DEVICE)))
        return GPUBENCH_OOM;
    (void)gpubench_category(bench, c->workspace, workspace_bytes, "workspace");
    return variant->prepare ? variant->prepare(c->args, &c->state) : 0;
}

static int case_run(void *context, gpubench_stream stream)
{
    const suite_case *c = context;
    return c->variant->run(c->args, c->workspace, c->state, stream);
}

static int case_reset(void *context, gpubench_stream stream)
{
    suite_case *c = context;
    return c->operation->reset(c, stream);
}

/* ---- two runs of a deterministic variant give the same bits */

/* Above this the copies would take longer than the measurement. Both fit the
 * stage. */
enum { COMPARED_OUTPUT_BYTES = STAGE_BYTES / 2 };

static int add_bytes(void *context, void *memory, size_t bytes)
{
    size_t *sum = context;
    (void)memory;
    *sum += bytes;
    return 0;
}

static size_t output_bytes(gpubench *bench)
{
    size_t bytes = 0;
    (void)gpubench_for_each_output(bench, add_bytes, &bytes);
    return bytes;
}

typedef struct output_copy {
    gpubench *bench;
    unsigned char *at;
} output_copy;

static int copy_output(void *context, void *memory, size_t bytes)
{
    output_copy *copy = context;
    int code = gpubench_copy(copy->bench, copy->at, memory, bytes);
    copy->at += bytes;
    return code;
}

/* Copies all outputs of the case, one behind the other. */
static int copy_outputs(gpubench *bench, unsigned char *to)
{
    output_copy copy = {bench, to};
    return gpubench_for_each_output(bench, copy_output, &copy);
}

static int run_again(suite_case *c, gpubench *bench)
{
    int code = c->operation->reset ? c->operation->reset(c, NULL) : 0;
    if (code == 0)
        code = c->variant->run(c->args, c->workspace, c->state, NULL);
    return code ? code : gpubench_finish(bench);
}

static int verify_determinism(suite_case *c, gpubench *bench)
{
    size_t bytes = output_bytes(bench);
    int code = open_stage(bench);
    if (code == 0)
        code = copy_outputs(bench, stage[0]);
    if (code == 0)
        code = run_again(c, bench);
    if (code == 0)
        code = copy_outputs(bench, stage[1]);
    if (code == 0 && memcmp(stage[0], stage[1], bytes) != 0)
        code = gpubench_fail(bench, GPUBENCH_MISMATCH,
                             "two runs of a deterministic variant differ");
    return code;
}

static int case_verify(void *context, gpubench *bench)
{
    suite_case *c = context;
    int code = c->operation->verify(c, bench);
    if (code == 0 && c->variant->deterministic && output_bytes(bench) <= COMPARED_OUTPUT_BYTES)
        code = verify_determinism(c, bench);
    return code;
}

/* The memory is gpubench's to free. */
static void case_teardown(void *context)
{
    suite_case *c = context;
    if (c->state && c->variant->release)
        c->variant->release(c->state);
    c->state = c->workspace = NULL;
}

static suite_case *new_case(suite *s, const suite_operation *operation,
                            const kernel_variant *variant, kernel_dtype dtype, const void *args)
{
    suite_case *c = calloc(1, sizeof *c);
    suite_case **grown = realloc(s->cases, (s->case_count + 1) * sizeof *grown);
    void *copy = malloc(operation->args_bytes);
    if (!c || !grown || !copy) {
        fputs("suite: out of host memory\n", stderr);
        exit(2);
    }
    memcpy(copy, args, operation->args_bytes);
    c->operation = operation;
    c->own_variant = *variant; /* its row may be another's by the time it is measured */
    c->variant = &c->own_variant;
    c->dtype = dtype;
    c->args = copy;
    s->cases = grown;
    s->cases[s->case_count++] = c;
    return c;
}

void suite_queue(suite *s, const suite_operation *operation, kernel_dtype dtype, const char *params,
                 const void *args, uint64_t bytes, uint64_t flops)
{
    const kernel_table *table = gpubench_is_cuda(s->bench) ? operation->cuda : operation->cpu;
    gpubench_case group[16];
    size_t count = 0, i;
    for (i = 0; table && i < table->count && count < sizeof group / sizeof *group; i++) {
        const kernel_variant *variant = &table->rows[i];
        gpubench_case *one = &group[count];
        if (!(variant->dtypes & wanted_dtypes & KERNEL_DTYPE_BIT(dtype)) ||
            (operation->takes && !operation->takes(variant, args)))
            continue;
        *one = gpubench_case_init(operation->name, case_run,
                                  new_case(s, operation, variant, dtype, args));
        one->variant = variant->name;
        one->dtype = kernel_dtype_name(dtype);
        one->params = params;
        one->runs_on = variant->runs_on ? variant->runs_on() : NULL;
        one->setup = case_setup;
        one->reset = operation->reset ? case_reset : NULL;
        one->verify = case_verify;
        one->teardown = case_teardown;
        one->error_string = kernel_error_string;
        one->bytes =
            operation->variant_bytes ? operation->variant_bytes(variant, bytes) : bytes;
        one->flops = flops;
        one->peak_gb_per_s = operation->peak_gb_per_s;
        count++;
    }
    gpubench_measure_group(s->bench, group, count);
}

int suite_close(suite *s)
{
    int status = gpubench_close(s->bench);
    size_t i;
    for (i = 0; i < s->case_count; i++) {
        free(s->cases[i]->args);
        free(s->cases[i]);
    }
    free(s->cases);
    stage[0] = stage[1] = NULL; /* freed by gpubench_close */
    return status;
}

/* ---- memory and inputs ------------------------------------------------------- */

int64_t suite_product(const int64_t *factors, size_t count)
{
    int64_t product = 1;
    size_t i;
    for (i = 0; i < count; i++)
        if (__builtin_mul_overflow(product, factors[i], &product))
            return INT64_MAX;
    return product;
}

size_t suite_bytes(int64_t count, kernel_dtype dtype)
{
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, kernel_dtype_bytes(dtype), &bytes))
        return SIZE_MAX;
    return bytes;
}

int suite_input(gpubench *bench, kernel_dtype dtype, int64_t count, float stddev,
                uint64_t stream_id, void **memory)
{
    uint64_t seed = gpubench_seed(bench) * 1000 + stream_id;
    *memory = gpubench_alloc(bench, suite_bytes(count, dtype), GPUBENCH_DEVICE);
    if (!*memory)
        return GPUBENCH_OOM;
    (void)gpubench_category(bench, *memory, suite_bytes(count, dtype), "inputs");
#if GPUBENCH_CUDA
    if (gpubench_is_cuda(bench))
        return random_normal_cuda(*memory, dtype, count, 0, stddev, seed, NULL);
#endif
    return random_normal_cpu(*memory, dtype, count, 0, stddev, seed);
}

int suite_output(gpubench *bench, kernel_dtype dtype, int64_t count, void **memory)
{
    *memory = gpubench_alloc(bench, suite_bytes(count, dtype), GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return *memory ? 0 : GPUBENCH_OOM;
}

/* ---- comparison with a reference --------------------------------------------- */

typedef struct conversion {
    kernel_dtype dtype;
    float *values;
} conversion;

static void convert(void *context, const void *raw, int64_t at, int64_t count)
{
    const conversion *to = context;
    kernel_to_f32(raw, to->dtype, count, to->values + at);
}

int suite_fetch(gpubench *bench, const void *memory, kernel_dtype dtype, int64_t first,
                int64_t count, float *values)
{
    conversion to = {dtype, values};
    return suite_look_at(bench, memory, dtype, first, count, convert, &to);
}

void suite_compare(suite_error *error, const float *out, const double *reference, int64_t count)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        double difference = (double)out[i] - reference[i];
        uint32_t word;
        memcpy(&word, &out[i], sizeof word);
        wrong += !suite_is_finite_word(word);
        error->difference2 += difference * difference;
        error->reference2 += reference[i] * reference[i];
    }
    if (wrong > 0)
        error->difference2 = DBL_MAX;
}

void suite_compare_weighted(suite_error *error, const float *out, const double *reference,
                            int64_t count, double weight)
{
    suite_error added = {0, 0};
    suite_compare(&added, out, reference, count);
    error->difference2 += weight * added.difference2;
    error->reference2 += weight * added.reference2;
}

static double tolerance_of(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32: return 1e-5;
    case KERNEL_TF32: return 1e-3;
    case KERNEL_F16: return 1e-3;
    case KERNEL_BF16: return 6e-3;
    case KERNEL_E4M3: return 0.0361; /* 2^-3 / sqrt(12): suite.h */
    case KERNEL_U8: break; /* bytes are exact */
    }
    return 0;
}

/* Where the reference is 0 all through, so must be what was computed. */
int suite_check(gpubench *bench, const suite_error *error, kernel_dtype dtype, double factor)
{
    double difference2 = error->difference2, squared = difference2;
    if (gpubench_is_finite(difference2) && difference2 > 0)
        squared = error->reference2 > 0 ? difference2 / error->reference2 : DBL_MAX;
    if (!gpubench_is_finite(error->reference2))
        squared = error->reference2;
    return gpubench_check(bench, gpubench_sqrt(squared), factor * tolerance_of(dtype));
}

/* Whether a bit pattern is a NaN's: exponent all ones, fraction not 0. */
static uint32_t is_nan32(uint32_t bits)
{
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

static uint16_t is_nan16(uint16_t bits, uint16_t infinity)
{
    return (uint16_t)(bits & 0x7fffu) > infinity;
}

/* Index of the first NaN among count elements, or count. Looks whether there
 * is any first, without a branch and in the elements' width, so that the
 * compiler makes vectors of the loop: outputs of many GB are looked at here. */
static int64_t find_nan32(const uint32_t *words, int64_t count)
{
    uint32_t any = 0;
    int64_t i;
    for (i = 0; i < count; i++)
        any |= is_nan32(words[i]);
    for (i = any ? 0 : count; i < count && !is_nan32(words[i]); i++)
        continue;
    return i;
}

static int64_t find_nan16(const uint16_t *halves, uint16_t infinity, int64_t count)
{
    uint16_t any = 0;
    int64_t i;
    for (i = 0; i < count; i++)
        any = any | is_nan16(halves[i], infinity);
    for (i = any ? 0 : count; i < count && !is_nan16(halves[i], infinity); i++)
        continue;
    return i;
}

static int64_t find_nan8(const uint8_t *bytes, int64_t count)
{
    int64_t i = 0;
    while (i < count && (bytes[i] & 0x7f) != 0x7f)
        i++;
    return i;
}

static int64_t find_nan(const void *raw, kernel_dtype dtype, int64_t count)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return find_nan32(raw, count);
    case KERNEL_F16: return find_nan16(raw, 0x7c00, count);
    case KERNEL_BF16: return find_nan16(raw, 0x7f80, count);
    case KERNEL_E4M3: return find_nan8(raw, count);
    case KERNEL_U8: break; /* suite_check_written refuses it */
    }
    return 0;
}

typedef struct nan_search {
    kernel_dtype dtype;
    atomic_int_fast64_t first; /* of the NaNs that were found; the count where there is none */
} nan_search;

static void look_for_nan(void *context, const void *raw, int64_t at, int64_t count)
{
    nan_search *search = context;
    int64_t found = find_nan(raw, search->dtype, count);
    int_fast64_t first = atomic_load(&search->first);
    while (found < count && at + found < first &&
           !atomic_compare_exchange_weak(&search->first, &first, at + found))
        continue;
}

int suite_check_written(gpubench *bench, const void *memory, kernel_dtype dtype, int64_t count)
{
    nan_search search = {dtype, count};
    int code = dtype != KERNEL_U8 ? 0 : GPUBENCH_FAILED;
    if (code != 0)
        return gpubench_fail(bench, code, "bytes do not show whether they were written");
    code = suite_look_at(bench, memory, dtype, 0, count, look_for_nan, &search);
    if (code == 0 && search.first < count)
        code = gpubench_fail(bench, GPUBENCH_MISMATCH,
                             "output element %lld of %lld is NaN or was not written",
                             (long long)search.first, (long long)count);
    return code;
}

static int compare_indices(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int64_t suite_sample_indices(uint64_t seed, int64_t limit, int64_t wanted, int64_t *indices)
{
    int64_t count = limit < wanted ? limit : wanted, kept = 0, i;
    for (i = 0; i < count; i++)
        indices[i] = limit <= wanted ? i
                     : i == 0        ? 0
                     : i == 1        ? limit - 1
                                     : (int64_t)(gpubench_random_word(&seed) % (uint64_t)limit);
    qsort(indices, (size_t)count, sizeof *indices, compare_indices);
    for (i = 0; i < count; i++)
        if (kept == 0 || indices[i] != indices[kept - 1])
            indices[kept++] = indices[i];
    return kept;
}
