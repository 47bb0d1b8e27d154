/*
 * test_optimizer.c - the optimizer operations: byte and operation counts by
 * hand, the parameter lists against the models' known sizes, the steps of one
 * scalar against closed forms in long double, and the CPU variants against
 * the oracle on lists of odd tensors.
 */

#include "kernel_test.h"

#include "../../kernels/common/convert.h"
#include "../../kernels/common/cpu.h"
#include "../../kernels/common/pool.h"
#include "../../kernels/optimizer/optimizer.h"
#include "../../kernels/common/parameters.h"
#include "../../kernels/common/random.h"

/* ---- formulas ---------------------------------------------------------- */

/* 1000 parameters. AdamW f32: 3 arrays read and written, 1 read, 4 bytes each;
 * bf16: 3 of 4 bytes read and written, 2 bytes read, 2 written. */
static void test_bytes(void **unused)
{
    (void)unused;
    assert_int_equal(optimizer_adamw_bytes(1000, KERNEL_F32), 3 * 8000 + 4000);
    assert_int_equal(optimizer_adamw_bytes(1000, KERNEL_BF16), 3 * 8000 + 2000 + 2000);
    assert_int_equal(optimizer_sgd_bytes(1000, KERNEL_F32), 2 * 8000 + 4000);
    assert_int_equal(optimizer_sgd_bytes(1000, KERNEL_BF16), 2 * 8000 + 2000 + 2000);
    assert_int_equal(optimizer_clip_norm_bytes(1000, KERNEL_F32), 4000);
    assert_int_equal(optimizer_clip_norm_bytes(1000, KERNEL_BF16), 2000);
    assert_int_equal(optimizer_clip_scale_bytes(1000, KERNEL_F32), 8000);
    assert_int_equal(optimizer_clip_scale_bytes(1000, KERNEL_BF16), 4000);
    assert_int_equal(optimizer_adamw_bytes(0, KERNEL_F32), 0);
    assert_int_equal(optimizer_adamw_bytes(-1, KERNEL_F32), 0);
    assert_true(optimizer_adamw_bytes(INT64_MAX, KERNEL_F32) == UINT64_MAX);
}

static void test_flops(void **unused)
{
    (void)unused;
    assert_int_equal(optimizer_adamw_flops(1000), 15000);
    assert_int_equal(optimizer_sgd_flops(1000), 5000);
    assert_int_equal(optimizer_clip_norm_flops(1000), 2000);
    assert_int_equal(optimizer_clip_scale_flops(1000), 1000);
    assert_int_equal(optimizer_sgd_flops(0), 0);
}

static void test_elements(void **unused)
{
    const optimizer_tensor tensors[] = {{.count = 3}, {.count = 0}, {.count = 1025}};
    const optimizer_tensor huge[] = {{.count = INT64_MAX}, {.count = 1}};
    const optimizer_list list = {tensors, 3}, too_many = {huge, 2};
    (void)unused;
    assert_int_equal(optimizer_elements(&list), 1028);
    assert_true(optimizer_elements(&too_many) == INT64_MAX);
}

/* ---- parameter lists --------------------------------------------------- */

/* The counts that PyTorch gave for the same models: the names of the anchors. */
static void test_model_sizes(void **unused)
{
    const struct {
        parameters_model model;
        int64_t total;
    } models[] = {
        {{768, 3072, 12, 10000, 128}, 100514304},    {{1024, 4096, 24, 10000, 128}, 322922496},
        {{1280, 5120, 36, 10000, 128}, 734154240},   {{1600, 6400, 48, 10000, 128}, 1507766400},
        {{2560, 10240, 32, 10000, 128}, 2569180160},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        assert_int_equal(parameters_total(&models[i].model), models[i].total);
        assert_int_equal(parameters_tensor_count(&models[i].model),
                         12 * models[i].model.layers + 5);
    }
}

static void assert_tensor(const parameters_model *model, int64_t index, const char *name,
                          int64_t layer, int64_t rows, int64_t columns)
{
    parameters_tensor t = parameters_tensor_at(model, index);
    assert_string_equal(t.name, name);
    assert_int_equal(t.layer, layer);
    assert_int_equal(t.rows, rows);
    assert_int_equal(t.columns, columns);
    assert_int_equal(parameters_elements(&t), rows * columns);
}

static void test_model_tensors(void **unused)
{
    const parameters_model model = {8, 24, 2, 50, 16}, no_layers = {8, 24, 0, 50, 16};
    (void)unused;
    assert_tensor(&model, 0, "token_embedding", -1, 50, 8);
    assert_tensor(&model, 1, "position_embedding", -1, 16, 8);
    assert_tensor(&model, 2, "ln1.weight", 0, 1, 8);
    assert_tensor(&model, 4, "qkv.weight", 0, 24, 8);
    assert_tensor(&model, 5, "qkv.bias", 0, 1, 24);
    assert_tensor(&model, 10, "fc1.weight", 0, 24, 8);
    assert_tensor(&model, 12, "fc2.weight", 0, 8, 24);
    assert_tensor(&model, 14, "ln1.weight", 1, 1, 8);
    assert_tensor(&model, 25, "fc2.bias", 1, 1, 8);
    assert_tensor(&model, 26, "ln.weight", -1, 1, 8);
    assert_tensor(&model, 28, "head.weight", -1, 50, 8);
    assert_tensor(&no_layers, 2, "ln.weight", -1, 1, 8);
}

/* ---- one scalar, in closed form ---------------------------------------- */

enum { STEPS = 4 };
static const float gradients[STEPS] = {0.5f, 1.0f, -0.25f, 3.0f};
static const float start = 1.5f;

/* Large, so that every choice of the formula shows in the first digits. */
static const optimizer_adamw large = {.learning_rate = 0.25f, .beta1 = 0.6f, .beta2 = 0.95f,
                                      .epsilon = 0.5f, .weight_decay = 0.4f, .step = 0};

/* What AdamW is not. */
typedef enum adam_kind { ADAMW, DECAY_IN_GRADIENT, EPSILON_IN_ROOT, NO_CORRECTION } adam_kind;

/* (1 - beta) * sum of beta^(last - i) g_i^power over steps 0..last. */
static long double moving_average(const long double *g, int last, long double beta, int power)
{
    long double sum = 0;
    for (int i = 0; i <= last; i++)
        sum += powl(beta, last - i) * (power == 2 ? g[i] * g[i] : g[i]);
    return (1 - beta) * sum;
}

/* The parameter after each step, from sums over the whole history rather than
 * from the recursion. */
static void adam_by_hand(adam_kind kind, long double scale, long double parameter[STEPS])
{
    const long double beta1 = large.beta1, beta2 = large.beta2, rate = large.learning_rate;
    const long double epsilon = large.epsilon, decay = large.weight_decay;
    long double g[STEPS], p = start;
    for (int t = 0; t < STEPS; t++) {
        g[t] = scale * gradients[t] + (kind == DECAY_IN_GRADIENT ? decay * p : 0);
        long double m = moving_average(g, t, beta1, 1), v = moving_average(g, t, beta2, 2);
        if (kind != NO_CORRECTION) m /= 1 - powl(beta1, t + 1), v /= 1 - powl(beta2, t + 1);
        long double divisor = kind == EPSILON_IN_ROOT ? sqrtl(v + epsilon) : sqrtl(v) + epsilon;
        p = p - (kind == DECAY_IN_GRADIENT ? 0 : rate * decay * p) - rate * m / divisor;
        parameter[t] = p;
    }
}

static void test_adamw_reference_of_a_scalar(void **unused)
{
    const double scales[] = {1, 0.25};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        long double expected[STEPS];
        double parameter = (double)start, first = 0, second = 0;
        optimizer_adamw settings = large;
        adam_by_hand(ADAMW, scales[i], expected);
        for (int t = 0; t < STEPS; t++) {
            settings.step = t + 1;
            optimizer_adamw_reference(&settings, scales[i], 1, &gradients[t], &parameter, &first,
                                      &second);
            assert_true(fabsl(parameter - expected[t]) < 1e-14L);
        }
    }
}

/* The other variants leave AdamW's path by far with these settings, so that
 * the checks of this file cannot take one for the other. */
static void test_settings_tell_adam_variants_apart(void **unused)
{
    const adam_kind others[] = {DECAY_IN_GRADIENT, EPSILON_IN_ROOT, NO_CORRECTION};
    long double adamw[STEPS], other[STEPS];
    (void)unused;
    adam_by_hand(ADAMW, 1, adamw);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        long double farthest = 0;
        adam_by_hand(others[i], 1, other);
        for (int t = 0; t < STEPS; t++) farthest = fmaxl(farthest, fabsl(adamw[t] - other[t]));
        assert_true(farthest > 1e-2L);
    }
}

/* b_t = sum of momentum^(t - i) g_i */
static void test_sgd_reference_of_a_scalar(void **unused)
{
    const optimizer_sgd settings = {.learning_rate = 0.1f, .momentum = 0.6f};
    long double expected = start;
    double parameter = (double)start, first = 0;
    (void)unused;
    for (int t = 0; t < STEPS; t++) {
        long double momentum = 0;
        for (int i = 0; i <= t; i++)
            momentum += powl(settings.momentum, t - i) * 0.5L * gradients[i];
        expected -= settings.learning_rate * momentum;
        optimizer_sgd_reference(&settings, 0.5, 1, &gradients[t], &parameter, &first);
        assert_true(fabsl(parameter - expected) < 1e-14L);
        assert_true(fabsl(first - momentum) < 1e-14L);
    }
}

static void test_clip_reference(void **unused)
{
    const float gradient[] = {2, -3, 6};
    (void)unused;
    assert_true(optimizer_square_sum_reference(3, gradient) == 49);
    assert_true(fabs(optimizer_clip_scale_reference(7, 3.5) - 0.5) < 1e-7);
    assert_true(optimizer_clip_scale_reference(7, 3.5) < 0.5);
    assert_true(optimizer_clip_scale_reference(7, 8) == 1);
    assert_true(optimizer_clip_scale_reference(0, 1) == 1);
    assert_true(isnan(optimizer_clip_scale_reference((double)NAN, 1)));
}

/* ---- a list of odd tensors ---------------------------------------------- */

enum { TENSORS = 7 };
static const int64_t odd_counts[TENSORS] = {1, 31, 0, 33, 1025, 4096, 2049};
/* Long enough for several threads, with a rest behind the last whole piece of each. */
static const int64_t shared_counts[TENSORS] = {3, 150001, 0, 70003, 4097, 1, 9001};
static const int64_t *counts = odd_counts;

/* One allocation an array: tensors follow each other without a gap, so that
 * most start unaligned; a guard element stands before and behind. */
typedef struct flat {
    int64_t count;
    kernel_dtype dtype;
    void *parameter, *gradient;
    float *master, *first, *second;
    optimizer_tensor tensors[TENSORS];
    optimizer_list list;
} flat;

static const float guard = 12345.0f; /* exact in bf16: 12352 */

static void set_guards(void *memory, kernel_dtype dtype, int64_t count)
{
    size_t behind = (size_t)(count + 1) * kernel_dtype_bytes(dtype);
    kernel_from_f32(&guard, dtype, 1, memory);
    kernel_from_f32(&guard, dtype, 1, (char *)memory + behind);
}

static void assert_guards(const void *memory, kernel_dtype dtype, int64_t count)
{
    size_t bytes = kernel_dtype_bytes(dtype);
    unsigned char expected[sizeof(float)];
    kernel_from_f32(&guard, dtype, 1, expected);
    assert_memory_equal(memory, expected, bytes);
    assert_memory_equal((const char *)memory + (size_t)(count + 1) * bytes, expected, bytes);
}

static void *new_array(kernel_dtype dtype, int64_t count, float stddev, uint64_t seed)
{
    char *memory = malloc((size_t)(count + 2) * kernel_dtype_bytes(dtype));
    assert_non_null(memory);
    random_normal_cpu(memory + kernel_dtype_bytes(dtype), dtype, count, 0, stddev, seed);
    set_guards(memory, dtype, count);
    return memory;
}

/* An array's element `index`, counted without the guard. */
static void *at(void *memory, kernel_dtype dtype, int64_t index)
{
    return (char *)memory + (size_t)(index + 1) * kernel_dtype_bytes(dtype);
}

static void open_flat(flat *f, kernel_dtype dtype)
{
    int64_t begin = 0;
    *f = (flat){.dtype = dtype, .list = {f->tensors, TENSORS}};
    for (int i = 0; i < TENSORS; i++) f->count += counts[i];
    f->parameter = new_array(dtype, f->count, 1, 1);
    f->gradient = new_array(dtype, f->count, 2, 2);
    f->first = new_array(KERNEL_F32, f->count, 1, 3);
    f->second = new_array(KERNEL_F32, f->count, 1, 4);
    for (int64_t i = 1; i <= f->count; i++) f->second[i] *= f->second[i];
    if (dtype != KERNEL_F32) f->master = new_array(KERNEL_F32, f->count, 1, 1);
    for (int i = 0; i < TENSORS; i++, begin += counts[i - 1])
        f->tensors[i] = (optimizer_tensor){
            counts[i], at(f->parameter, dtype, begin), at(f->gradient, dtype, begin),
            f->master ? f->master + 1 + begin : NULL, f->first + 1 + begin, f->second + 1 + begin};
}

static void close_flat(flat *f)
{
    assert_guards(f->parameter, f->dtype, f->count);
    assert_guards(f->gradient, f->dtype, f->count);
    assert_guards(f->first, KERNEL_F32, f->count);
    assert_guards(f->second, KERNEL_F32, f->count);
    if (f->master) assert_guards(f->master, KERNEL_F32, f->count);
    free(f->parameter), free(f->gradient), free(f->master), free(f->first), free(f->second);
}

/* The state in double, for the oracle. */
typedef struct oracle {
    float *gradient;
    double *parameter, *first, *second;
} oracle;

static float *floats_of(const void *memory, kernel_dtype dtype, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    kernel_to_f32((const char *)memory + kernel_dtype_bytes(dtype), dtype, count, values);
    return values;
}

static double *doubles_of(const void *memory, kernel_dtype dtype, int64_t count)
{
    float *values = floats_of(memory, dtype, count);
    double *wide = malloc((size_t)count * sizeof *wide);
    assert_non_null(wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)values[i];
    free(values);
    return wide;
}

static oracle open_oracle(const flat *f)
{
    return (oracle){floats_of(f->gradient, f->dtype, f->count),
                    f->master ? doubles_of(f->master, KERNEL_F32, f->count)
                              : doubles_of(f->parameter, f->dtype, f->count),
                    doubles_of(f->first, KERNEL_F32, f->count),
                    doubles_of(f->second, KERNEL_F32, f->count)};
}

static void close_oracle(oracle *o)
{
    free(o->gradient), free(o->parameter), free(o->first), free(o->second);
}

static void assert_array(const void *memory, kernel_dtype dtype, int64_t count,
                         const double *expected, double tolerance)
{
    float *values = floats_of(memory, dtype, count);
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)values[i] - expected[i];
        difference += d * d;
        norm += expected[i] * expected[i];
    }
    free(values);
    assert_true(sqrt(difference / norm) < tolerance);
}

static void assert_state(const flat *f, const oracle *o, int has_second)
{
    const double f32 = 1e-6, bf16 = 4e-3;
    assert_array(f->first, KERNEL_F32, f->count, o->first, f32);
    if (has_second) assert_array(f->second, KERNEL_F32, f->count, o->second, f32);
    if (f->master) assert_array(f->master, KERNEL_F32, f->count, o->parameter, f32);
    assert_array(f->parameter, f->dtype, f->count, o->parameter, f->master ? bf16 : f32);
}

static int run_variant(const kernel_variant *variant, const void *args)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    void *workspace = bytes ? malloc(bytes) : NULL;
    if (workspace) memset(workspace, 0xff, bytes);
    int error = variant->run(args, workspace, NULL, NULL);
    free(workspace);
    return error;
}

static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16, KERNEL_F16};
enum { DTYPES = 3, LIST_STEPS = 3 };

static void check_adamw(const kernel_variant *variant, kernel_dtype dtype, const float *scale)
{
    flat f;
    open_flat(&f, dtype);
    oracle o = open_oracle(&f);
    optimizer_adamw_args args = {f.list, dtype, large, scale, NULL};
    for (int t = 1; t <= LIST_STEPS; t++) {
        args.settings.step = t;
        assert_int_equal(run_variant(variant, &args), KERNEL_OK);
        optimizer_adamw_reference(&args.settings, scale ? (double)*scale : 1, f.count, o.gradient,
                                  o.parameter, o.first, o.second);
        assert_state(&f, &o, 1);
    }
    close_oracle(&o);
    close_flat(&f);
}

static void check_sgd(const kernel_variant *variant, kernel_dtype dtype, const float *scale)
{
    flat f;
    open_flat(&f, dtype);
    oracle o = open_oracle(&f);
    optimizer_sgd_args args = {f.list, dtype, {0.1f, 0.6f}, scale};
    for (int t = 1; t <= LIST_STEPS; t++) {
        assert_int_equal(run_variant(variant, &args), KERNEL_OK);
        optimizer_sgd_reference(&args.settings, scale ? (double)*scale : 1, f.count, o.gradient,
                                o.parameter, o.first);
        assert_state(&f, &o, 0);
    }
    close_oracle(&o);
    close_flat(&f);
}

typedef void check_function(const kernel_variant *, kernel_dtype, const float *);

static void check_table(kernel_table table, check_function *check)
{
    const float quarter = 0.25f;
    assert_true(table.count > 0);
    for (size_t i = 0; i < table.count; i++)
        for (int d = 0; d < DTYPES; d++) {
            check(&table.rows[i], dtypes[d], NULL);
            check(&table.rows[i], dtypes[d], &quarter);
        }
}

static void test_adamw_variants(void **unused)
{
    (void)unused;
    check_table(optimizer_adamw_cpu, check_adamw);
}

static void test_sgd_variants(void **unused)
{
    (void)unused;
    check_table(optimizer_sgd_cpu, check_sgd);
}

/* The scalar's steps by the variants themselves: not only the oracle's word. */
static void test_adamw_variants_of_a_scalar(void **unused)
{
    long double expected[STEPS];
    (void)unused;
    adam_by_hand(ADAMW, 1, expected);
    for (size_t i = 0; i < optimizer_adamw_cpu.count; i++) {
        float parameter = start, gradient, first = 0, second = 0;
        const optimizer_tensor tensor = {1, &parameter, &gradient, NULL, &first, &second};
        optimizer_adamw_args args = {{&tensor, 1}, KERNEL_F32, large, NULL, NULL};
        for (int t = 0; t < STEPS; t++) {
            gradient = gradients[t];
            args.settings.step = t + 1;
            assert_int_equal(run_variant(&optimizer_adamw_cpu.rows[i], &args), KERNEL_OK);
            assert_true(fabsl(parameter - expected[t]) < 1e-6L);
        }
    }
}

/* ---- clipping ---------------------------------------------------------- */

static void check_clip_norm(const kernel_variant *variant, kernel_dtype dtype, float max_norm)
{
    flat f;
    float norm = -1, scale = -1;
    open_flat(&f, dtype);
    oracle o = open_oracle(&f);
    optimizer_clip_args args = {f.list, dtype, max_norm, &norm, &scale};
    double expected = sqrt(optimizer_square_sum_reference(f.count, o.gradient));
    assert_int_equal(run_variant(variant, &args), KERNEL_OK);
    assert_true(fabs((double)norm / expected - 1) < 1e-6);
    double expected_scale = optimizer_clip_scale_reference(expected, (double)max_norm);
    assert_true(fabs((double)scale / expected_scale - 1) < 1e-6);
    close_oracle(&o);
    close_flat(&f);
}

static void test_clip_norm_variants(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < optimizer_clip_norm_cpu.count; i++)
        for (int d = 0; d < DTYPES; d++) {
            check_clip_norm(&optimizer_clip_norm_cpu.rows[i], dtypes[d], 1.0f);
            check_clip_norm(&optimizer_clip_norm_cpu.rows[i], dtypes[d], 1e6f);
        }
}

static void test_clip_norm_shows_a_nan(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < optimizer_clip_norm_cpu.count; i++) {
        float gradient[33] = {0}, norm = 0, scale = 0;
        const optimizer_tensor tensor = {.count = 33, .gradient = gradient};
        optimizer_clip_args args = {{&tensor, 1}, KERNEL_F32, 1, &norm, &scale};
        gradient[20] = NAN;
        assert_int_equal(run_variant(&optimizer_clip_norm_cpu.rows[i], &args), KERNEL_OK);
        assert_true(isnan(norm) && isnan(scale));
    }
}

static void check_clip_scale(const kernel_variant *variant, kernel_dtype dtype)
{
    flat f;
    float norm = 0, scale = -0.3f;
    open_flat(&f, dtype);
    double *expected = doubles_of(f.gradient, dtype, f.count);
    optimizer_clip_args args = {f.list, dtype, 1, &norm, &scale};
    for (int64_t j = 0; j < f.count; j++) expected[j] *= (double)scale;
    assert_int_equal(run_variant(variant, &args), KERNEL_OK);
    assert_array(f.gradient, dtype, f.count, expected, dtype == KERNEL_F32 ? 1e-7 : 4e-3);
    free(expected);
    close_flat(&f);
}

static void test_clip_scale_variants(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < optimizer_clip_scale_cpu.count; i++)
        for (int d = 0; d < DTYPES; d++)
            check_clip_scale(&optimizer_clip_scale_cpu.rows[i], dtypes[d]);
}

/* ---- what several threads share ------------------------------------------ */

static const kernel_variant *threads_of(kernel_table table)
{
    const kernel_variant *last = &table.rows[table.count - 1];
    assert_string_equal(last->name, "threads");
    return last;
}

static void test_shared_by_threads(void **unused)
{
    const float quarter = 0.25f;
    const int threads[] = {1, 2, 3, 5};
    (void)unused;
    counts = shared_counts;
    for (int i = 0; i < 4; i++) {
        kernel_dtype dtype = dtypes[i % DTYPES];
        pool_set_threads(threads[i]);
        check_adamw(threads_of(optimizer_adamw_cpu), dtype, &quarter);
        check_sgd(threads_of(optimizer_sgd_cpu), dtype, &quarter);
        check_clip_norm(threads_of(optimizer_clip_norm_cpu), dtype, 1);
        check_clip_scale(threads_of(optimizer_clip_scale_cpu), dtype);
    }
    counts = odd_counts;
    pool_set_threads(cpu_threads());
}

/* The sum of squares too, whose terms an order of their own would round otherwise. */
static void test_threads_have_no_say_in_the_bits(void **unused)
{
    float norms[4], scale;
    flat f;
    (void)unused;
    counts = shared_counts;
    open_flat(&f, KERNEL_F32);
    for (int threads = 1; threads <= 4; threads++) {
        optimizer_clip_args args = {f.list, KERNEL_F32, 1, &norms[threads - 1], &scale};
        pool_set_threads(threads);
        assert_int_equal(run_variant(threads_of(optimizer_clip_norm_cpu), &args), KERNEL_OK);
        assert_memory_equal(&norms[threads - 1], &norms[0], sizeof norms[0]);
    }
    close_flat(&f);
    counts = odd_counts;
    pool_set_threads(cpu_threads());
}

/* ---- errors ------------------------------------------------------------ */

static void test_bad_arguments(void **unused)
{
    float x = 1, norm, scale = 1;
    const optimizer_tensor tensor = {1, &x, &x, &x, &x, &x};
    const optimizer_list list = {&tensor, 1}, none = {&tensor, 0};
    optimizer_adamw first_step = large;
    (void)unused;
    first_step.step = 1;
    const optimizer_adamw_args adamw[] = {{list, KERNEL_U8, first_step, NULL, NULL},
                                          {none, KERNEL_F32, first_step, NULL, NULL},
                                          {list, KERNEL_F32, large, NULL, NULL}};
    for (size_t v = 0; v < optimizer_adamw_cpu.count; v++)
        for (int i = 0; i < 3; i++)
            assert_int_equal(optimizer_adamw_cpu.rows[v].run(&adamw[i], NULL, NULL, NULL),
                             KERNEL_ERROR_ARGUMENT);
    const optimizer_sgd_args sgd[] = {{list, KERNEL_U8, {1, 1}, NULL},
                                      {none, KERNEL_F32, {1, 1}, NULL}};
    const optimizer_clip_args clip[] = {{list, KERNEL_U8, 1, &norm, &scale},
                                        {none, KERNEL_F32, 1, &norm, &scale}};
    for (int i = 0; i < 2; i++) {
        for (size_t v = 0; v < optimizer_sgd_cpu.count; v++)
            assert_int_equal(optimizer_sgd_cpu.rows[v].run(&sgd[i], NULL, NULL, NULL),
                             KERNEL_ERROR_ARGUMENT);
        for (size_t v = 0; v < optimizer_clip_norm_cpu.count; v++)
            assert_int_equal(optimizer_clip_norm_cpu.rows[v].run(&clip[i], NULL, NULL, NULL),
                             KERNEL_ERROR_ARGUMENT);
        for (size_t v = 0; v < optimizer_clip_scale_cpu.count; v++)
            assert_int_equal(optimizer_clip_scale_cpu.rows[v].run(&clip[i], NULL, NULL, NULL),
                             KERNEL_ERROR_ARGUMENT);
    }
    assert_true(x == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_model_sizes),
        cmocka_unit_test(test_model_tensors),
        cmocka_unit_test(test_adamw_reference_of_a_scalar),
        cmocka_unit_test(test_settings_tell_adam_variants_apart),
        cmocka_unit_test(test_sgd_reference_of_a_scalar),
        cmocka_unit_test(test_clip_reference),
        cmocka_unit_test(test_adamw_variants),
        cmocka_unit_test(test_sgd_variants),
        cmocka_unit_test(test_adamw_variants_of_a_scalar),
        cmocka_unit_test(test_clip_norm_variants),
        cmocka_unit_test(test_clip_norm_shows_a_nan),
        cmocka_unit_test(test_clip_scale_variants),
        cmocka_unit_test(test_shared_by_threads),
        cmocka_unit_test(test_threads_have_no_say_in_the_bits),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
