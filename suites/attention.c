/*
 * attention.c - the attention suite: the forward and the backward pass, by
 * variants that write the scores to memory and by those that never do.
 */
#include "once.h"
#include "suite.h"

#include "../kernels/attention/attention.h"

#include <stdio.h>
#include <stdlib.h>

/* Batch 4, context 128 is added for the heads of each model size. */
static const attention_shape gpu_shapes[] = {
    {4, 12, 1024, 64, 0}, {16, 16, 1024, 128, 0}, {4, 16, 4096, 64, 0},
    {4, 16, 4096, 128, 0}, {2, 16, 8192, 64, 0}, {2, 16, 8192, 128, 0},
};

/* On the CPU each is as given, causal or full: all of the first look at the project
 * on a machine without a GPU should be over in less than half a minute. */
static const attention_shape cpu_shapes[] = {
    {1, 12, 128, 64, 1}, {1, 4, 512, 64, 0},
};

/* ---- forward -------------------------------------------------------------- */

static int build(suite_case *c, gpubench *bench)
{
    attention_forward_args *args = c->args;
    const attention_shape *s = &args->shape;
    int64_t factors[] = {s->batch, s->heads, s->tokens, s->head_dim};
    int64_t elements = suite_product(factors, 4);
    void *inputs[3], *lse;
    int code = 0;
    for (uint64_t i = 0; i < 3 && code == 0; i++)
        code = suite_input(bench, c->dtype, elements, 1, i, &inputs[i]);
    if (code == 0)
        code = suite_output(bench, kernel_result_dtype(c->dtype), elements, &args->out);
    if (code == 0)
        code = suite_output(bench, KERNEL_F32, elements / s->head_dim, &lse);
    if (code != 0)
        return code;
    args->q = inputs[0];
    args->k = inputs[1];
    args->v = inputs[2];
    args->lse = lse;
    return 0;
}

/* How many rows the oracle does at a time: so many that they take longer than
 * a thread takes to start. */
static int64_t rows_at_a_time(const attention_shape *s)
{
    return 1 + (1 << 16) / (s->tokens * s->head_dim);
}

/* Adds the row of a token. Of causal attention, the squares of a row of the
 * output, and of each gradient, fall as one over the number of keys that the
 * token sees. Times that number all rows count alike: else the first, thousands
 * of times the last, would hide that some of the last one's keys were left out. */
static void compare_row(const attention_shape *s, int64_t token, suite_error *error,
                        const float *out, const double *reference)
{
    suite_compare_weighted(error, out, reference, s->head_dim,
                           s->causal ? (double)(token + 1) : 1);
}

/* One head's inputs and chosen rows of its output, on the host. */
typedef struct head_check {
    const attention_shape *shape;
    float *q, *k, *v, *out, *lse;
    double *reference, *reference_lse;
    int64_t *rows;
    int64_t row_count;
} head_check;

static void expect_rows(void *context, int64_t begin, int64_t end)
{
    const head_check *h = context;
    attention_forward_reference(h->shape, h->q, h->k, h->v, h->rows + begin, end - begin,
                                h->reference + begin * h->shape->head_dim,
                                h->reference_lse + begin);
}

static int check_head(const suite_case *c, gpubench *bench, head_check *h, int64_t head,
                      suite_error *error, suite_error *lse_error)
{
    const attention_forward_args *args = c->args;
    const attention_shape *s = &args->shape;
    int64_t elements = s->tokens * s->head_dim, first = head * elements;
    int code = suite_fetch(bench, args->q, c->dtype, first, elements, h->q);
    if (code == 0)
        code = suite_fetch(bench, args->k, c->dtype, first, elements, h->k);
    if (code == 0)
        code = suite_fetch(bench, args->v, c->dtype, first, elements, h->v);
    if (code == 0)
        code = suite_fetch(bench, args->out, kernel_result_dtype(c->dtype), first, elements,
                           h->out);
    if (code == 0)
        code = suite_fetch(bench, args->lse, KERNEL_F32, head * s->tokens, s->tokens, h->lse);
    if (code != 0)
        return code;
    parallel_for(h->row_count, rows_at_a_time(s), expect_rows, h);
    for (int64_t i = 0; i < h->row_count; i++) {
        compare_row(s, h->rows[i], error, h->out + h->rows[i] * s->head_dim,
                    h->reference + i * s->head_dim);
        suite_compare(lse_error, h->lse + h->rows[i], h->reference_lse + i, 1);
    }
    return 0;
}

/* The oracle takes rows * tokens * head_dim * 4 operations: few rows of long
 * contexts, more of short ones, always the first and the last. */
static int64_t rows_to_check(const attention_shape *s)
{
    int64_t affordable = 4000000 / (s->tokens * s->head_dim);
    return affordable < 4 ? 4 : affordable > 256 ? 256 : affordable;
}

static int check_heads(const suite_case *c, gpubench *bench, head_check *h, void *rows)
{
    const attention_forward_args *args = c->args;
    const attention_shape *s = &args->shape;
    suite_error error = {0, 0}, lse_error = {0, 0};
    int64_t heads[4], head_count;
    uint64_t seed = gpubench_seed(bench);
    int code = 0;
    head_count = suite_sample_indices(seed, s->batch * s->heads, 4, heads);
    for (int64_t i = 0; i < head_count && code == 0; i++) {
        h->rows = rows;
        h->row_count =
            suite_sample_indices(seed + (uint64_t)i, s->tokens, rows_to_check(s), h->rows);
        code = check_head(c, bench, h, heads[i], &error, &lse_error);
    }
    if (code == 0)
        code = suite_check(bench, &lse_error, kernel_result_dtype(c->dtype), 1);
    return code ? code : suite_check(bench, &error, c->dtype, 1);
}

static int verify(suite_case *c, gpubench *bench)
{
    const attention_forward_args *args = c->args;
    const attention_shape *s = &args->shape;
    size_t elements = (size_t)(s->tokens * s->head_dim), rows = (size_t)rows_to_check(s);
    int64_t all = s->batch * s->heads * s->tokens;
    float *floats = malloc((4 * elements + (size_t)s->tokens) * sizeof *floats);
    double *doubles = malloc(rows * (size_t)(s->head_dim + 1) * sizeof *doubles);
    int64_t *indices = malloc(rows * sizeof *indices);
    int code = floats && doubles && indices ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0) {
        head_check h = {s, floats, floats + elements, floats + 2 * elements, floats + 3 * elements,
                        floats + 4 * elements, doubles, doubles + rows * (size_t)s->head_dim,
                        NULL, 0};
        code = check_heads(c, bench, &h, indices);
    }
    free(floats);
    free(doubles);
    free(indices);
    if (code == 0)
        code = suite_check_written(bench, args->lse, KERNEL_F32, all);
    return code ? code : suite_check_written(bench, args->out, kernel_result_dtype(c->dtype),
                                             all * s->head_dim);
}

/* ---- backward ------------------------------------------------------------- */

/* The forward variant whose results backward starts from: the first of these
 * that takes the dtype and the shape. Without those that only some GPUs have, so
 * that backward starts from the same numbers on all GPUs with mma. */
static const char *const starts[] = {"mma_short", "mma", "tiled", "naive_cublas", "naive"};

static const kernel_variant *forward_for(gpubench *bench, const attention_forward_args *args)
{
    kernel_table table = gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(attention_forward_cuda)
                                                 : attention_forward_cpu;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const kernel_variant *variant = kernel_find(&table, starts[i]);
        if (variant && (variant->dtypes & KERNEL_DTYPE_BIT(args->dtype)) &&
            variant->min_compute_capability <= gpubench_compute_capability(bench) &&
            !(variant->unsupported && variant->unsupported(args)))
            return variant;
    }
    return NULL;
}

static int run_forward(gpubench *bench, const attention_forward_args *args)
{
    const kernel_variant *variant = forward_for(bench, args);
    if (!variant)
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "no forward variant takes this shape");
    return suite_run_once(bench, variant, args);
}

/* q, k, v and, from them, out and lse. tf32 is stored as f32 and may start from
 * f32's forward, which needs no matrices of scores. */
static int build_forward(suite_case *c, gpubench *bench, int64_t elements, void **inputs)
{
    const attention_backward_args *args = c->args;
    int64_t rows = elements / args->shape.head_dim;
    attention_forward_args forward = {.shape = args->shape, .dtype = c->dtype};
    int code = 0;
    if (forward.dtype == KERNEL_TF32)
        forward.dtype = KERNEL_F32;
    for (uint64_t i = 0; i < 3 && code == 0; i++)
        code = suite_input(bench, c->dtype, elements, 1, i, &inputs[i]);
    if (code != 0)
        return code;
    inputs[3] = gpubench_alloc(bench, suite_bytes(elements, c->dtype), GPUBENCH_DEVICE);
    inputs[4] = gpubench_alloc(bench, suite_bytes(rows, KERNEL_F32), GPUBENCH_DEVICE);
    if (!inputs[3] || !inputs[4])
        return GPUBENCH_OOM;
    forward.q = inputs[0];
    forward.k = inputs[1];
    forward.v = inputs[2];
    forward.out = inputs[3];
    forward.lse = inputs[4];
    return run_forward(bench, &forward);
}

static int build_backward(suite_case *c, gpubench *bench)
{
    attention_backward_args *args = c->args;
    const attention_shape *s = &args->shape;
    int64_t factors[] = {s->batch, s->heads, s->tokens, s->head_dim};
    int64_t elements = suite_product(factors, 4);
    void *inputs[5], *dout, **gradients[] = {&args->dq, &args->dk, &args->dv};
    int code = build_forward(c, bench, elements, inputs);
    if (code == 0)
        code = suite_input(bench, c->dtype, elements, 1, 3, &dout);
    for (size_t i = 0; i < 3 && code == 0; i++)
        code = suite_output(bench, c->dtype, elements, gradients[i]);
    if (code != 0)
        return code;
    args->q = inputs[0];
    args->k = inputs[1];
    args->v = inputs[2];
    args->out = inputs[3];
    args->lse = inputs[4];
    args->dout = dout;
    return 0;
}

/* One head on the host: what backward got, what it gave, and the oracle's
 * gradients of chosen rows. */
typedef struct gradient_check {
    const attention_shape *shape;
    float *inputs[5], *lse, *gradients[3]; /* q, k, v, out, dout; dq, dk, dv */
    double *reference[3];
    int64_t *rows;
    int64_t row_count;
} gradient_check;

static int fetch_head(const suite_case *c, gpubench *bench, const gradient_check *g, int64_t head)
{
    const attention_backward_args *args = c->args;
    const attention_shape *s = &args->shape;
    int64_t elements = s->tokens * s->head_dim, first = head * elements;
    const void *inputs[] = {args->q, args->k, args->v, args->out, args->dout};
    const void *gradients[] = {args->dq, args->dk, args->dv};
    int code = suite_fetch(bench, args->lse, KERNEL_F32, head * s->tokens, s->tokens, g->lse);
    for (size_t i = 0; i < 5 && code == 0; i++)
        code = suite_fetch(bench, inputs[i], c->dtype, first, elements, g->inputs[i]);
    for (size_t i = 0; i < 3 && code == 0; i++)
        code = suite_fetch(bench, gradients[i], c->dtype, first, elements, g->gradients[i]);
    return code;
}

static void expect_gradients(void *context, int64_t begin, int64_t end)
{
    const gradient_check *g = context;
    const attention_backward_head on_host = {g->inputs[0], g->inputs[1], g->inputs[2],
                                             g->inputs[3], g->inputs[4], g->lse};
    int64_t first = begin * g->shape->head_dim;
    attention_backward_reference(g->shape, &on_host, g->rows + begin, end - begin,
                                 g->reference[0] + first, g->reference[1] + first,
                                 g->reference[2] + first);
}

static int check_gradients_of_head(const suite_case *c, gpubench *bench, gradient_check *g,
                                   int64_t head, suite_error *errors)
{
    const attention_backward_args *args = c->args;
    const attention_shape *s = &args->shape;
    int code = fetch_head(c, bench, g, head);
    if (code != 0)
        return code;
    parallel_for(g->row_count, rows_at_a_time(s), expect_gradients, g);
    for (size_t i = 0; i < 3; i++)
        for (int64_t row = 0; row < g->row_count; row++)
            compare_row(s, g->rows[row], &errors[i],
                        g->gradients[i] + g->rows[row] * s->head_dim,
                        g->reference[i] + row * s->head_dim);
    return 0;
}

/* Of a single token, whatever its score, dq and dk are 0: what is not is
 * measured against dv. tf32 rounds in two products in a row. */
static int check_errors(const suite_case *c, gpubench *bench, suite_error *errors)
{
    const attention_backward_args *args = c->args;
    int code = 0;
    if (args->shape.tokens == 1)
        errors[0].reference2 = errors[1].reference2 = errors[2].reference2;
    for (size_t i = 0; i < 3 && code == 0; i++)
        code = suite_check(bench, &errors[i], c->dtype, c->dtype == KERNEL_TF32 ? 2 : 1);
    return code;
}

/* The oracle takes rows * tokens * head_dim * 14 operations. */
static int64_t gradient_rows_to_check(const attention_shape *s)
{
    int64_t affordable = 1000000 / (s->tokens * s->head_dim);
    return affordable < 8 ? 8 : affordable > 256 ? 256 : affordable;
}

static int check_gradients(const suite_case *c, gpubench *bench, gradient_check *g)
{
    const attention_backward_args *args = c->args;
    const attention_shape *s = &args->shape;
    suite_error errors[3] = {{0, 0}, {0, 0}, {0, 0}};
    int64_t heads[4], head_count;
    uint64_t seed = gpubench_seed(bench);
    int code = 0;
    head_count = suite_sample_indices(seed, s->batch * s->heads, 4, heads);
    for (int64_t i = 0; i < head_count && code == 0; i++) {
        g->row_count = suite_sample_indices(seed + (uint64_t)i, s->tokens,
                                            gradient_rows_to_check(s), g->rows);
        code = check_gradients_of_head(c, bench, g, heads[i], errors);
    }
    return code ? code : check_errors(c, bench, errors);
}

static int verify_backward(suite_case *c, gpubench *bench)
{
    const attention_backward_args *args = c->args;
    const attention_shape *s = &args->shape;
    size_t elements = (size_t)(s->tokens * s->head_dim);
    size_t rows = (size_t)gradient_rows_to_check(s), sampled = rows * (size_t)s->head_dim;
    const void *outputs[] = {args->dq, args->dk, args->dv};
    float *floats = malloc((8 * elements + (size_t)s->tokens) * sizeof *floats);
    double *doubles = malloc(3 * sampled * sizeof *doubles);
    int64_t *indices = malloc(rows * sizeof *indices);
    int code = floats && doubles && indices ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0) {
        gradient_check g = {.shape = s, .lse = floats + 8 * elements, .rows = indices};
        for (size_t i = 0; i < 5; i++)
            g.inputs[i] = floats + i * elements;
        for (size_t i = 0; i < 3; i++) {
            g.gradients[i] = floats + (5 + i) * elements;
            g.reference[i] = doubles + i * sampled;
        }
        code = check_gradients(c, bench, &g);
    }
    free(floats);
    free(doubles);
    free(indices);
    for (size_t i = 0; i < 3 && code == 0; i++)
        code = suite_check_written(bench, outputs[i], c->dtype,
                                   s->batch * s->heads * s->tokens * s->head_dim);
    return code;
}

/* ---- shapes ---------------------------------------------------------------- */

static void queue_forward(suite *s, const attention_shape *shape, kernel_dtype dtype,
                          const char *params)
{
    static const suite_operation forward = {.name = "attention.forward",
                                            .cpu = &attention_forward_cpu,
                                            .cuda = SUITE_CUDA(attention_forward_cuda),
                                            .args_bytes = sizeof(attention_forward_args),
                                            .build = build,
                                            .verify = verify};
    attention_forward_args args = {.shape = *shape, .dtype = dtype};
    suite_queue(s, &forward, dtype, params, &args, attention_forward_bytes(shape, dtype),
                attention_forward_flops(shape));
}

static void queue_backward(suite *s, const attention_shape *shape, kernel_dtype dtype,
                           const char *params)
{
    static const suite_operation backward = {.name = "attention.backward",
                                             .cpu = &attention_backward_cpu,
                                             .cuda = SUITE_CUDA(attention_backward_cuda),
                                             .args_bytes = sizeof(attention_backward_args),
                                             .build = build_backward,
                                             .verify = verify_backward};
    attention_backward_args args = {.shape = *shape, .dtype = dtype};
    suite_queue(s, &backward, dtype, params, &args, attention_backward_bytes(shape, dtype),
                attention_backward_flops(shape));
}

static void queue_passes(suite *s, const attention_shape *shape, int with_backward)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16,
                                          KERNEL_E4M3};
    char params[160];
    snprintf(params, sizeof params, "b=%lld h=%lld t=%lld d=%lld causal=%d",
             (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens,
             (long long)shape->head_dim, shape->causal);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        queue_forward(s, shape, dtypes[i], params);
    for (size_t i = 0; with_backward && i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i] != KERNEL_E4M3) queue_backward(s, shape, dtypes[i], params);
}

/* Causal and full. The backward pass is left out at 4096 tokens: its naive
 * variants take a tenth of a second, and 1024 and 8192 show the same. */
static void queue_both(suite *s, attention_shape shape)
{
    for (shape.causal = 0; shape.causal <= 1; shape.causal++)
        queue_passes(s, &shape, shape.tokens != 4096);
}

static void queue_defaults(suite *s)
{
    if (!gpubench_is_cuda(s->bench)) {
        for (size_t i = 0; i < sizeof cpu_shapes / sizeof *cpu_shapes; i++)
            queue_passes(s, &cpu_shapes[i], 1);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        const suite_model *m = &suite_models[i];
        queue_both(s, (attention_shape){4, m->heads, 128, m->d_model / m->heads, 0});
    }
    for (size_t i = 0; i < sizeof gpu_shapes / sizeof *gpu_shapes; i++)
        queue_both(s, gpu_shapes[i]);
}

static void queue_given(suite *s, const int64_t *values)
{
    attention_shape shape = {values[0], values[1], values[2], values[3], values[4] != 0};
    if (attention_forward_flops(&shape) == 0 || values[4] > 1)
        gpubench_usage_error(s->bench,
                             "--shape: b, h, t and d must be at least 1, causal 0 or 1");
    else
        queue_passes(s, &shape, 1);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"b", "h", "t", "d", "causal"};
    suite s = suite_open("attention", "'b=4 h=12 t=128 d=64 causal=1; ...' instead of the defaults",
                         argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
