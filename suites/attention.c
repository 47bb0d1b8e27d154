/*
 * attention.c - the attention suite: the forward pass, naive (the scores are
 * written to memory) against tiled (they never are).
 */
#include "suite.h"

#include "../kernels/attention.h"

#include <stdio.h>
#include <stdlib.h>

/* Batch 4, context 128 is added for the heads of each model size. */
static const attention_shape gpu_shapes[] = {
    {4, 12, 1024, 64, 0}, {16, 16, 1024, 128, 0}, {4, 16, 4096, 64, 0},
    {4, 16, 4096, 128, 0}, {2, 16, 8192, 64, 0}, {2, 16, 8192, 128, 0},
};

static const attention_shape cpu_shapes[] = {
    {1, 12, 128, 64, 0}, {1, 4, 512, 64, 0}, {1, 2, 512, 128, 0},
};

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
        code = suite_output(bench, c->dtype, elements, &args->out);
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

/* One head's inputs and chosen rows of its output, on the host. */
typedef struct head_check {
    float *q, *k, *v, *out, *lse;
    double *reference, *reference_lse;
    int64_t *rows;
    int64_t row_count;
} head_check;

static int check_head(const suite_case *c, gpubench *bench, const head_check *h, int64_t head,
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
        code = suite_fetch(bench, args->out, c->dtype, first, elements, h->out);
    if (code == 0)
        code = suite_fetch(bench, args->lse, KERNEL_F32, head * s->tokens, s->tokens, h->lse);
    if (code != 0)
        return code;
    attention_forward_reference(s, h->q, h->k, h->v, h->rows, h->row_count, h->reference,
                                h->reference_lse);
    for (int64_t i = 0; i < h->row_count; i++) {
        suite_compare(error, h->out + h->rows[i] * s->head_dim, h->reference + i * s->head_dim,
                      s->head_dim);
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
        code = suite_check(bench, &lse_error, c->dtype, 1);
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
        head_check h = {floats, floats + elements, floats + 2 * elements, floats + 3 * elements,
                        floats + 4 * elements, doubles, doubles + rows * (size_t)s->head_dim,
                        NULL, 0};
        code = check_heads(c, bench, &h, indices);
    }
    free(floats);
    free(doubles);
    free(indices);
    if (code == 0)
        code = suite_check_written(bench, args->lse, KERNEL_F32, all);
    return code ? code : suite_check_written(bench, args->out, c->dtype, all * s->head_dim);
}

static void queue_shape(suite *s, const attention_shape *shape)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    static suite_operation forward = {.name = "attention.forward",
                                      .args_bytes = sizeof(attention_forward_args),
                                      .build = build,
                                      .verify = verify};
    char params[160];
    forward.cpu = attention_forward_cpu;
    forward.cuda = SUITE_CUDA_TABLE(attention_forward_cuda);
    snprintf(params, sizeof params, "b=%lld h=%lld t=%lld d=%lld causal=%d",
             (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens,
             (long long)shape->head_dim, shape->causal);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        attention_forward_args args = {.shape = *shape, .dtype = dtypes[i]};
        suite_queue(s, &forward, dtypes[i], params, &args,
                    attention_forward_bytes(shape, dtypes[i]), attention_forward_flops(shape));
    }
}

static void queue_both(suite *s, attention_shape shape)
{
    for (shape.causal = 0; shape.causal <= 1; shape.causal++)
        queue_shape(s, &shape);
}

static void queue_defaults(suite *s)
{
    if (!gpubench_is_cuda(s->bench)) {
        for (size_t i = 0; i < sizeof cpu_shapes / sizeof *cpu_shapes; i++)
            queue_both(s, cpu_shapes[i]);
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
        queue_shape(s, &shape);
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
