/*
 * suite.h - what the suites share: shapes from the command line, one case per
 * variant of an operation, inputs, and comparison with a reference.
 *
 * A suite declares its arguments' struct (from kernels/), a suite_operation of
 * functions over it, and loops over shapes and dtypes calling suite_queue. It
 * holds no kernel code and no CUDA.
 */
#ifndef SUITE_H
#define SUITE_H

#include "../gpubench.h"
#include "../kernels/common/kernel.h"
#include "parallel.h"

/* The five model sizes of the GPT-2 family that every suite takes its small
 * shapes from, at batch 4, context 128. */
typedef struct suite_model {
    const char *name;
    int64_t d_model, d_ff, layers, heads;
} suite_model;

#define SUITE_MODEL_COUNT 5
extern const suite_model suite_models[SUITE_MODEL_COUNT];

/* Whether the model's size is also measured at batch 8, context 1024, which
 * fills a GPU: small and xl. All five would make a suite take minutes. */
int suite_fills_gpu(const suite_model *model);

/* A variant at work on one shape: the context of a gpubench_case. */
typedef struct suite_case {
    const struct suite_operation *operation;
    const kernel_variant *variant;
    kernel_variant own_variant;
    kernel_dtype dtype;
    void *args; /* the operation's argument struct, args_bytes long */
    void *workspace, *state;
} suite_case;

/* What a suite tells of an operation. The functions get the case's own copy of
 * the argument struct through suite_case.args. */
typedef struct suite_operation {
    const char *name; /* of the CSV's case column: "attention.forward" */
    const kernel_table *cpu, *cuda; /* NULL: none there */
    size_t args_bytes;
    int (*build)(suite_case *c, gpubench *bench); /* allocates and fills, as gpubench's setup */
    int (*verify)(suite_case *c, gpubench *bench);
    int (*reset)(suite_case *c, gpubench_stream stream); /* NULL: each run leaves the same behind */
    double peak_gb_per_s; /* as in gpubench_case: 0 the device's memory, negative nothing */
    /* Of a shape's bytes those that a variant moves which does a part of the
     * operation only; NULL: each does the whole. */
    uint64_t (*variant_bytes)(const kernel_variant *variant, uint64_t bytes);
    /* Whether the variant is one to queue for these arguments; NULL: each is. */
    int (*takes)(const kernel_variant *variant, const void *args);
} suite_operation;

/* The table of the CUDA backend where it was built; elsewhere an empty one, and for an
 * operation NULL. */
#if GPUBENCH_CUDA
#define SUITE_CUDA_TABLE(table) (table)
#define SUITE_CUDA(table) (&(table))
#else
#define SUITE_CUDA_TABLE(table) ((kernel_table){NULL, 0})
#define SUITE_CUDA(table) NULL
#endif

/* Cases live until the program ends its measuring; suite_close frees them. */
typedef struct suite {
    gpubench *bench;
    suite_case **cases;
    size_t case_count;
} suite;

/* Opens the suite with --shape, a list of shapes separated by ';', each
 * "key=value" pairs separated by blanks or commas, and --dtype, a list of
 * dtypes (default: f32,bf16,u8). */
suite suite_open(const char *name, const char *shape_help, int argc, char **argv);

/* The same with up to 4 options of the suite's own. */
suite suite_open_with(const char *name, const char *shape_help, const gpubench_option *own,
                      size_t own_count, int argc, char **argv);

/* Whether --dtype, or its default, has the dtype. */
int suite_wants(kernel_dtype dtype);

/* Measures, reports, frees; gpubench_close's exit status. */
int suite_close(suite *s);

/* Calls use once for every shape of --shape with the values of keys (in that
 * order, each key named exactly once, whole numbers), or does nothing and
 * returns 0 if the option was not given. */
int suite_for_each_shape(suite *s, const char *const *keys, size_t key_count,
                         void (*use)(suite *s, const int64_t *values));

/* Queues, as one interleaved group, every variant of operation that takes
 * dtype on the backend that is measured, unless --dtype leaves dtype out.
 * params, bytes and flops describe the shape; args is copied for each. */
void suite_queue(suite *s, const suite_operation *operation, kernel_dtype dtype, const char *params,
                 const void *args, uint64_t bytes, uint64_t flops);

/* count * bytes of dtype, SIZE_MAX if that does not fit: gpubench_alloc then
 * reports out of memory. */
size_t suite_bytes(int64_t count, kernel_dtype dtype);

/* The product of count factors, INT64_MAX if it does not fit. */
int64_t suite_product(const int64_t *factors, size_t count);

/* Device memory for count elements of dtype: normally distributed by the
 * bench's seed and `stream_id` (so that two inputs differ), or poisoned as an
 * output. 0 or a code for setup to return. */
int suite_input(gpubench *bench, kernel_dtype dtype, int64_t count, float stddev,
                uint64_t stream_id, void **memory);
int suite_output(gpubench *bench, kernel_dtype dtype, int64_t count, void **memory);

/* How many elements a look gets at most. */
enum { SUITE_RANGE = 1 << 17 };

/* Looks at count elements on the host. The first of them is element `at` of
 * those that are looked at, a multiple of SUITE_RANGE. */
typedef void suite_look(void *context, const void *raw, int64_t at, int64_t count);

/* Calls look for every range of SUITE_RANGE of the count elements from `first`
 * on (the last is shorter where it must be), in any order and on several
 * threads at a time. On the CPU it sees the very memory, of a GPU's a copy. */
int suite_look_at(gpubench *bench, const void *memory, kernel_dtype dtype, int64_t first,
                  int64_t count, suite_look *look, void *context);

/* Copies count elements from `first` on to the host and converts to f32. */
int suite_fetch(gpubench *bench, const void *memory, kernel_dtype dtype, int64_t first,
                int64_t count, float *values);

/* Neither infinite nor NaN, by bits as gpubench_is_finite tells it. */
static inline int suite_is_finite_word(uint32_t f32)
{
    return (f32 & 0x7f800000u) != 0x7f800000u;
}

/* The error of what was computed, norm(out - reference) / norm(reference). */
typedef struct suite_error {
    double difference2, reference2;
} suite_error;

/* Adds count elements. One of out that is infinite or NaN makes the error larger
 * than any tolerance. */
void suite_compare(suite_error *error, const float *out, const double *reference, int64_t count);

/* The same with their squares times weight: of rows whose sizes are known to
 * differ, lest the large ones hide the errors of the small. */
void suite_compare_weighted(suite_error *error, const float *out, const double *reference,
                            int64_t count, double weight);

/* gpubench_check of the error against the bound for dtype: 1e-5 for f32, 1e-3
 * tf32, 1e-3 f16, 6e-3 bf16, times factor (1 for a single product).
 *
 * e4m3: 2^-3 / sqrt(12), for one rounding of a product's operand to e4m3. Its numbers
 * between 2^e and 2^(e+1) are 2^(e-3) apart. An error that is uniform over such an
 * interval has a root mean square of 2^(e-3) / sqrt(12), so that norm(error) / norm(operand)
 * is at most 2^-3 / sqrt(12) = 0.0361, whatever the operand's distribution, and 0.0245 for
 * logarithms that are uniform (mean square of the fraction 3 / (2 ln 2)). Multiplied by
 * weights that know nothing of the error, norm(error) / norm(product) is the same. What
 * else rounds adds its square: bf16's results 6e-3, which makes 0.0253 of 0.0245. */
int suite_check(gpubench *bench, const suite_error *error, kernel_dtype dtype, double factor);

/* Looks at every one of count elements: a NaN is one that was not written
 * (outputs are poisoned with NaNs) or is wrong. GPUBENCH_OK or _MISMATCH. Not for
 * u8, which has no NaN. */
int suite_check_written(gpubench *bench, const void *memory, kernel_dtype dtype, int64_t count);

/* What a sample of indices is drawn with: the first, the last and random ones
 * of 0..limit-1, ascending, without repeats. Returns how many (at most wanted). */
int64_t suite_sample_indices(uint64_t seed, int64_t limit, int64_t wanted, int64_t *indices);

#endif
