/*
 * ffn.c - the feed-forward network's suite: forward, without and with keeping
 * what a backward pass needs, and backward.
 */
#include "once.h"
#include "suite.h"

#include "../kernels/ffn/ffn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const ffn_shape cpu_shapes[] = {{64, 256, 1024}};

enum { SAMPLED_ROWS = 4, SAMPLED_UNITS = 3, TOKEN_PARTS = 16 };

/* ---- building ------------------------------------------------------------------ */

/* Weights by their fan in, so that every activation is of order one. */
static float weight_stddev(int64_t in)
{
    return (float)(1 / sqrt((double)in));
}

/* Of e4m3 448, the largest, is 7 standard deviations of what is stored, as delayed scaling
 * would have it, and of hidden, whose GELU is as large as pre where it is large, too. The
 * factors are powers of two where weight_stddev is one. */
static const float e4m3_stddev = 64;

static ffn_scales scales_of(const ffn_shape *s)
{
    const float unit = 1 / e4m3_stddev;
    return (ffn_scales){.x.factor = unit,
                        .w1.factor = weight_stddev(s->width) * unit,
                        .hidden.factor = unit,
                        .per_hidden.factor = e4m3_stddev,
                        .w2.factor = weight_stddev(s->hidden) * unit};
}

static int fill(gpubench *bench, kernel_dtype dtype, int64_t count, float stddev, uint64_t id,
                const void **memory)
{
    void *filled = NULL;
    int code = suite_input(bench, dtype, count, stddev, id, &filled);
    *memory = filled;
    return code;
}

/* A product's operand. */
static int input(suite_case *c, gpubench *bench, int64_t count, float stddev, uint64_t id,
                 const void **memory)
{
    return fill(bench, c->dtype, count, c->dtype == KERNEL_E4M3 ? e4m3_stddev : stddev, id, memory);
}

static int build_scales(gpubench *bench, ffn_forward_args *a)
{
    const ffn_scales scales = scales_of(&a->shape);
    void *memory = gpubench_upload(bench, &scales, sizeof scales);
    a->scales = memory;
    (void)gpubench_category(bench, memory, sizeof scales, "inputs");
    return gpubench_allocated(bench);
}

static int build_forward_inputs(suite_case *c, gpubench *bench, ffn_forward_args *a)
{
    int64_t n = a->shape.tokens, w = a->shape.width, h = a->shape.hidden;
    kernel_dtype result = kernel_result_dtype(c->dtype);
    int code = input(c, bench, n * w, 1, 0, &a->x);
    if (code == 0) code = input(c, bench, h * w, weight_stddev(w), 1, &a->w1);
    if (code == 0) code = fill(bench, result, h, 0.1f, 2, &a->b1);
    if (code == 0) code = input(c, bench, w * h, weight_stddev(h), 3, &a->w2);
    if (code == 0) code = fill(bench, result, w, 0.1f, 4, &a->b2);
    if (code == 0 && c->dtype == KERNEL_E4M3) code = build_scales(bench, a);
    if (code == 0) code = suite_output(bench, result, n * w, &a->y);
    return code;
}

static int build_forward(suite_case *c, gpubench *bench)
{
    return build_forward_inputs(c, bench, c->args);
}

static int build_forward_keeping(suite_case *c, gpubench *bench)
{
    ffn_forward_args *a = c->args;
    int64_t count = a->shape.tokens * a->shape.hidden;
    int code = build_forward_inputs(c, bench, a);
    if (code == 0) code = suite_output(bench, c->dtype, count, &a->pre);
    return code ? code : suite_output(bench, c->dtype, count, &a->hidden);
}

/* One forward pass, for what it keeps: inputs of the backward pass, so not
 * poisoned as outputs are. */
static int run_forward_once(gpubench *bench, ffn_forward_args *a)
{
    size_t kept_bytes = suite_bytes(a->shape.tokens * a->shape.hidden, a->dtype);
    int is_cuda = gpubench_is_cuda(bench);
    kernel_table table = is_cuda ? SUITE_CUDA_TABLE(ffn_forward_cuda) : ffn_forward_cpu;
    a->pre = gpubench_alloc(bench, kept_bytes, GPUBENCH_DEVICE);
    a->hidden = gpubench_alloc(bench, kept_bytes, GPUBENCH_DEVICE);
    if (!a->pre || !a->hidden) return GPUBENCH_OOM;
    return suite_run_named(bench, &table, is_cuda ? "cublas" : "tiled", a);
}

/* What a backward variant gets, and what only the oracle needs behind it. */
typedef struct backward_case {
    ffn_backward_args args;
    const void *b1;
} backward_case;

static int build_backward(suite_case *c, gpubench *bench)
{
    backward_case *b = c->args;
    ffn_backward_args *a = &b->args;
    ffn_forward_args forward = {.shape = a->shape, .dtype = c->dtype};
    int64_t n = a->shape.tokens, w = a->shape.width, h = a->shape.hidden;
    int code = build_forward_inputs(c, bench, &forward);
    if (code == 0) code = run_forward_once(bench, &forward);
    if (code == 0) code = input(c, bench, n * w, 1, 5, &a->dy);
    if (code == 0) code = suite_output(bench, c->dtype, n * w, &a->dx);
    if (code == 0) code = suite_output(bench, c->dtype, h * w, &a->dw1);
    if (code == 0) code = suite_output(bench, c->dtype, h, &a->db1);
    if (code == 0) code = suite_output(bench, c->dtype, w * h, &a->dw2);
    if (code == 0) code = suite_output(bench, c->dtype, w, &a->db2);
    a->x = forward.x;
    a->w1 = forward.w1;
    b->b1 = forward.b1;
    a->w2 = forward.w2;
    a->pre = forward.pre;
    a->hidden = forward.hidden;
    return code;
}

/* ---- verifying ------------------------------------------------------------------ */

/* Host memory of a check: the parameters, some rows (or all) of x and dy, room
 * for a line of output, and for the oracle's lines. What the parameters'
 * gradients are sums of, which is over tokens, comes in parts: of each sampled
 * unit dw1's row, dw2's column and db1's element, then db2. */
typedef struct check {
    ffn_shape shape;
    float *w1, *b1, *w2, *b2, *x, *dy, *line;
    float *w2_columns; /* [SAMPLED_UNITS, width] */
    double *narrow, *wide, *wide2;
    double *parts; /* [TOKEN_PARTS, part_doubles] */
    int64_t part_doubles, part_tokens;
    int64_t rows[SAMPLED_ROWS], units[SAMPLED_UNITS];
    int64_t row_count, unit_count;
} check;

static void place_in_memory(check *k, int64_t x_rows)
{
    int64_t w = k->shape.width, h = k->shape.hidden;
    k->w2 = k->w1 + w * h;
    k->b1 = k->w2 + w * h;
    k->b2 = k->b1 + h;
    k->x = k->b2 + w;
    k->dy = k->x + x_rows * w;
    k->w2_columns = k->dy + x_rows * w;
    k->line = k->w2_columns + SAMPLED_UNITS * w;
    k->wide = k->narrow + SAMPLED_ROWS * w;
    k->wide2 = k->wide + SAMPLED_ROWS * h;
    k->parts = k->wide2 + SAMPLED_ROWS * h;
}

static int check_begin(check *k, gpubench *bench, const ffn_shape *s, int64_t x_rows)
{
    int64_t w = s->width, h = s->hidden, longest = w > h ? w : h;
    size_t floats = (size_t)(2 * w * h + h + w + 2 * x_rows * w + SAMPLED_UNITS * w + longest);
    size_t doubles;
    *k = (check){.shape = *s, .part_tokens = parallel_range_count(s->tokens, TOKEN_PARTS)};
    k->row_count = suite_sample_indices(gpubench_seed(bench), s->tokens, SAMPLED_ROWS, k->rows);
    k->unit_count = suite_sample_indices(gpubench_seed(bench), h, SAMPLED_UNITS, k->units);
    k->part_doubles = k->unit_count * (2 * w + 1) + w;
    doubles = (size_t)(SAMPLED_ROWS * (w + 2 * h) + TOKEN_PARTS * k->part_doubles);
    k->w1 = malloc(floats * sizeof *k->w1);
    k->narrow = malloc(doubles * sizeof *k->narrow);
    if (!k->w1 || !k->narrow) return KERNEL_ERROR_MEMORY;
    place_in_memory(k, x_rows);
    return 0;
}

static void check_end(check *k)
{
    free(k->w1);
    free(k->narrow);
}

static ffn_parameters parameters_of(const check *k)
{
    return (ffn_parameters){k->w1, k->b1, k->w2, k->b2};
}

/* Compares `count` elements from `first` of an output with the oracle's. */
static int compare_line(gpubench *bench, check *k, const void *output, kernel_dtype dtype,
                        int64_t first, int64_t count, const double *reference, suite_error *error)
{
    int code = suite_fetch(bench, output, kernel_result_dtype(dtype), first, count, k->line);
    if (code == 0) suite_compare(error, k->line, reference, count);
    return code;
}

/* The sampled rows of an output, each `width` long. */
static int compare_rows(gpubench *bench, check *k, const void *output, kernel_dtype dtype,
                        int64_t width, const double *reference, double factor)
{
    suite_error error = {0, 0};
    int code = 0;
    for (int64_t i = 0; i < k->row_count && code == 0; i++)
        code = compare_line(bench, k, output, dtype, k->rows[i] * width, width,
                            reference + i * width, &error);
    return code ? code : suite_check(bench, &error, dtype, factor);
}

static int fetch_parameters(gpubench *bench, check *k, const ffn_shape *s, kernel_dtype dtype,
                            const void *w1, const void *b1, const void *w2)
{
    int code = suite_fetch(bench, w1, dtype, 0, s->width * s->hidden, k->w1);
    if (code == 0) code = suite_fetch(bench, b1, kernel_result_dtype(dtype), 0, s->hidden, k->b1);
    return code ? code : suite_fetch(bench, w2, dtype, 0, s->width * s->hidden, k->w2);
}

static void expect_rows(void *context, int64_t begin, int64_t end)
{
    const check *k = context;
    const ffn_parameters parameters = parameters_of(k);
    int64_t narrow = begin * k->shape.width, wide = begin * k->shape.hidden;
    ffn_forward_reference(&k->shape, &parameters, k->x + narrow, end - begin, k->narrow + narrow,
                          k->wide + wide, k->wide2 + wide);
}

static void multiply(float *values, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) values[i] *= factor;
}

/* What was fetched of e4m3 as what it stands for. */
static void apply_scales(check *k)
{
    const ffn_scales scales = scales_of(&k->shape);
    int64_t weights = k->shape.width * k->shape.hidden;
    multiply(k->x, k->row_count * k->shape.width, scales.x.factor);
    multiply(k->w1, weights, scales.w1.factor);
    multiply(k->w2, weights, scales.w2.factor);
}

/* The oracle takes hidden as it is: rounding it to e4m3 is the one error that e4m3's
 * bound is of (suite.h), and y's to bf16 does not show beside it. In the other dtypes
 * both products' results round. */
static int check_forward(const ffn_forward_args *a, gpubench *bench, check *k)
{
    const ffn_shape *s = &a->shape;
    int code = fetch_parameters(bench, k, s, a->dtype, a->w1, a->b1, a->w2);
    if (code == 0)
        code = suite_fetch(bench, a->b2, kernel_result_dtype(a->dtype), 0, s->width, k->b2);
    for (int64_t i = 0; i < k->row_count && code == 0; i++)
        code = suite_fetch(bench, a->x, a->dtype, k->rows[i] * s->width, s->width,
                           k->x + i * s->width);
    if (code != 0) return code;
    if (a->dtype == KERNEL_E4M3) apply_scales(k);
    parallel_for(k->row_count, 1, expect_rows, k);
    code = compare_rows(bench, k, a->y, a->dtype, s->width, k->narrow,
                        a->dtype == KERNEL_E4M3 ? 1 : 2);
    if (code == 0 && a->pre)
        code = compare_rows(bench, k, a->pre, a->dtype, s->hidden, k->wide, 1);
    if (code == 0 && a->hidden) /* twice rounded: as pre, then as itself */
        code = compare_rows(bench, k, a->hidden, a->dtype, s->hidden, k->wide2, 2);
    return code;
}

static int verify_forward(suite_case *c, gpubench *bench)
{
    const ffn_forward_args *a = c->args;
    int64_t narrow = a->shape.tokens * a->shape.width, wide = a->shape.tokens * a->shape.hidden;
    check k;
    int code = check_begin(&k, bench, &a->shape, SAMPLED_ROWS);
    if (code == 0) code = check_forward(a, bench, &k);
    check_end(&k);
    if (code == 0)
        code = suite_check_written(bench, a->y, kernel_result_dtype(c->dtype), narrow);
    if (code == 0 && a->pre) code = suite_check_written(bench, a->pre, c->dtype, wide);
    if (code == 0 && a->hidden) code = suite_check_written(bench, a->hidden, c->dtype, wide);
    return code;
}

static void expect_dx(void *context, int64_t begin, int64_t end)
{
    const check *k = context;
    const ffn_parameters parameters = parameters_of(k);
    int64_t w = k->shape.width;
    for (int64_t i = begin; i < end; i++)
        ffn_backward_reference_rows(&k->shape, &parameters, k->x + k->rows[i] * w,
                                    k->dy + k->rows[i] * w, 1, k->narrow + i * w,
                                    k->wide + i * k->shape.hidden);
}

static int check_dx(const ffn_backward_args *a, gpubench *bench, check *k)
{
    parallel_for(k->row_count, 1, expect_dx, k);
    return compare_rows(bench, k, a->dx, a->dtype, a->shape.width, k->narrow, 3);
}

/* A part's share of the gradients of the unit that is the i-th of the sampled:
 * dw1's row, then dw2's column, then db1's element. */
static double *unit_gradients(const check *k, int64_t part, int64_t i)
{
    return k->parts + part * k->part_doubles + i * (2 * k->shape.width + 1);
}

static double *db2_gradient(const check *k, int64_t part)
{
    return unit_gradients(k, part, k->unit_count);
}

/* The unit is to the oracle a network of one unit, so that its column of w2
 * lies in one piece. */
static void expect_part(void *context, int64_t begin, int64_t end)
{
    const check *k = context;
    int64_t w = k->shape.width, part = begin / k->part_tokens;
    const ffn_shape one_unit = {end - begin, w, 1};
    const float *x = k->x + begin * w, *dy = k->dy + begin * w;
    for (int64_t i = 0; i < k->unit_count; i++) {
        const ffn_parameters unit = {k->w1 + k->units[i] * w, k->b1 + k->units[i],
                                     k->w2_columns + i * w, k->b2};
        double *dw1 = unit_gradients(k, part, i);
        ffn_backward_reference_unit(&one_unit, &unit, x, dy, 0, dw1, dw1 + 2 * w, dw1 + w);
    }
    ffn_backward_reference_bias(&one_unit, dy, db2_gradient(k, part));
}

/* Every part, and their sum in the place of the first. */
static void expect_parameter_gradients(check *k)
{
    int64_t w = k->shape.width, h = k->shape.hidden, tokens = k->shape.tokens;
    int64_t parts = parallel_range_count(tokens, k->part_tokens);
    for (int64_t i = 0; i < k->unit_count; i++)
        for (int64_t c = 0; c < w; c++)
            k->w2_columns[i * w + c] = k->w2[c * h + k->units[i]];
    parallel_for(tokens, k->part_tokens, expect_part, k);
    for (int64_t part = 1; part < parts; part++)
        for (int64_t i = 0; i < k->part_doubles; i++)
            k->parts[i] += k->parts[part * k->part_doubles + i];
}

/* All of dw2 comes to the host, in the place of w2, which is done with: one
 * copy of everything instead of one for each of a column's elements. */
static int compare_columns(gpubench *bench, check *k, const ffn_backward_args *a,
                           suite_error *error)
{
    int64_t w = k->shape.width, h = k->shape.hidden;
    int code = suite_fetch(bench, a->dw2, a->dtype, 0, w * h, k->w2);
    for (int64_t i = 0; i < k->unit_count && code == 0; i++)
        for (int64_t c = 0; c < w; c++)
            suite_compare(error, k->w2 + c * h + k->units[i], unit_gradients(k, 0, i) + w + c, 1);
    return code;
}

static int check_parameter_gradients(const ffn_backward_args *a, gpubench *bench, check *k)
{
    int64_t w = k->shape.width;
    suite_error dw1 = {0, 0}, db1 = {0, 0}, dw2 = {0, 0}, db2 = {0, 0};
    int code = 0;
    expect_parameter_gradients(k);
    for (int64_t i = 0; i < k->unit_count && code == 0; i++) {
        const double *expected = unit_gradients(k, 0, i);
        code = compare_line(bench, k, a->dw1, a->dtype, k->units[i] * w, w, expected, &dw1);
        if (code == 0)
            code = compare_line(bench, k, a->db1, a->dtype, k->units[i], 1, expected + 2 * w, &db1);
    }
    if (code == 0) code = compare_columns(bench, k, a, &dw2);
    if (code == 0)
        code = compare_line(bench, k, a->db2, a->dtype, 0, w, db2_gradient(k, 0), &db2);
    if (code == 0) code = suite_check(bench, &dw1, a->dtype, 3);
    if (code == 0) code = suite_check(bench, &db1, a->dtype, 3);
    if (code == 0) code = suite_check(bench, &dw2, a->dtype, 2);
    return code ? code : suite_check(bench, &db2, a->dtype, 1);
}

static int check_backward(const backward_case *b, gpubench *bench, check *k)
{
    const ffn_backward_args *a = &b->args;
    const ffn_shape *s = &a->shape;
    int code = fetch_parameters(bench, k, s, a->dtype, a->w1, b->b1, a->w2);
    if (code == 0) code = suite_fetch(bench, a->x, a->dtype, 0, s->tokens * s->width, k->x);
    if (code == 0) code = suite_fetch(bench, a->dy, a->dtype, 0, s->tokens * s->width, k->dy);
    if (code == 0) code = check_dx(a, bench, k);
    return code ? code : check_parameter_gradients(a, bench, k);
}

static int verify_backward(suite_case *c, gpubench *bench)
{
    const backward_case *b = c->args;
    const ffn_backward_args *a = &b->args;
    int64_t n = a->shape.tokens, w = a->shape.width, h = a->shape.hidden;
    check k;
    int code = check_begin(&k, bench, &a->shape, n);
    if (code == 0) code = check_backward(b, bench, &k);
    check_end(&k);
    if (code == 0) code = suite_check_written(bench, a->dx, c->dtype, n * w);
    if (code == 0) code = suite_check_written(bench, a->dw1, c->dtype, h * w);
    if (code == 0) code = suite_check_written(bench, a->db1, c->dtype, h);
    if (code == 0) code = suite_check_written(bench, a->dw2, c->dtype, w * h);
    return code ? code : suite_check_written(bench, a->db2, c->dtype, w);
}

/* ---- queueing --------------------------------------------------------------------- */

static void queue_forward(suite *s, const ffn_shape *shape, kernel_dtype dtype,
                          const char *dimensions, int keeps)
{
    static const suite_operation forward = {.name = "ffn.forward",
                                            .cpu = &ffn_forward_cpu,
                                            .cuda = SUITE_CUDA(ffn_forward_cuda),
                                            .args_bytes = sizeof(ffn_forward_args),
                                            .build = build_forward,
                                            .verify = verify_forward};
    static const suite_operation keeping = {.name = "ffn.forward",
                                            .cpu = &ffn_forward_cpu,
                                            .cuda = SUITE_CUDA(ffn_forward_cuda),
                                            .args_bytes = sizeof(ffn_forward_args),
                                            .build = build_forward_keeping,
                                            .verify = verify_forward};
    ffn_forward_args args = {.shape = *shape, .dtype = dtype};
    char params[160];
    snprintf(params, sizeof params, "%s keep=%d", dimensions, keeps);
    suite_queue(s, keeps ? &keeping : &forward, dtype, params, &args,
                ffn_forward_bytes(shape, dtype, keeps), ffn_forward_flops(shape));
}

static void queue_backward(suite *s, const ffn_shape *shape, kernel_dtype dtype,
                           const char *dimensions)
{
    static const suite_operation backward = {.name = "ffn.backward",
                                             .cpu = &ffn_backward_cpu,
                                             .cuda = SUITE_CUDA(ffn_backward_cuda),
                                             .args_bytes = sizeof(backward_case),
                                             .build = build_backward,
                                             .verify = verify_backward};
    backward_case args = {.args = {.shape = *shape, .dtype = dtype}};
    suite_queue(s, &backward, dtype, dimensions, &args, ffn_backward_bytes(shape, dtype),
                ffn_backward_flops(shape));
}

/* halves_only leaves out f32 and tf32, whose tuner would take a minute. */
static void queue_shape(suite *s, const ffn_shape *shape, int halves_only)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    char dimensions[128];
    snprintf(dimensions, sizeof dimensions, "n=%lld d=%lld ff=%lld", (long long)shape->tokens,
             (long long)shape->width, (long long)shape->hidden);
    for (size_t i = halves_only ? 2 : 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        queue_forward(s, shape, dtypes[i], dimensions, 0);
        queue_forward(s, shape, dtypes[i], dimensions, 1);
        queue_backward(s, shape, dtypes[i], dimensions);
    }
    queue_forward(s, shape, KERNEL_E4M3, dimensions, 0);
}

/* 512 tokens (batch 4, context 128) for every model size, 8192 (batch 8,
 * context 1024) for some and for a width of 4096. */
static void queue_defaults(suite *s)
{
    if (!gpubench_is_cuda(s->bench)) {
        for (size_t i = 0; i < sizeof cpu_shapes / sizeof *cpu_shapes; i++)
            queue_shape(s, &cpu_shapes[i], 0);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        const suite_model *m = &suite_models[i];
        queue_shape(s, &(ffn_shape){512, m->d_model, m->d_ff}, 0);
        if (suite_fills_gpu(m))
            queue_shape(s, &(ffn_shape){8192, m->d_model, m->d_ff}, 0);
    }
    queue_shape(s, &(ffn_shape){8192, 4096, 16384}, 1);
}

static void queue_given(suite *s, const int64_t *values)
{
    ffn_shape shape = {values[0], values[1], values[2]};
    if (ffn_forward_flops(&shape) == 0)
        gpubench_usage_error(s->bench, "--shape: n, d and ff must be at least 1");
    else
        queue_shape(s, &shape, 0);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"n", "d", "ff"};
    suite s = suite_open("ffn", "'n=512 d=768 ff=3072; ...' instead of the defaults", argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
