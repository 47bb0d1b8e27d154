/*
 * rope.c - the rope suite: rotary position embedding, forward and backward. On the
 * CPU only: there is no CUDA variant.
 */
#include "suite.h"

#include "../kernels/rope/rope.h"

#include <stdio.h>
#include <stdlib.h>

static const rope_shape cpu_shapes[] = {{4, 12, 128, 64}, {1, 16, 1024, 128}};

enum { SAMPLED_ROWS = 64 };

static int64_t row_count(const rope_shape *s)
{
    int64_t factors[] = {s->batch, s->heads, s->tokens};
    return suite_product(factors, 3);
}

static int64_t element_count(const rope_shape *s)
{
    int64_t factors[] = {row_count(s), s->head_dim};
    return suite_product(factors, 2);
}

static int build(suite_case *c, gpubench *bench)
{
    rope_args *a = c->args;
    void *in = NULL;
    int code = suite_input(bench, c->dtype, element_count(&a->shape), 1, 0, &in);
    a->in = in;
    return code ? code : suite_output(bench, c->dtype, element_count(&a->shape), &a->out);
}

typedef void row_reference(const rope_shape *shape, int64_t token, const float *in, double *out);

/* Sampled rows against the oracle. values: [2, head_dim]. */
static int check_rows(const suite_case *c, gpubench *bench, row_reference *reference,
                      float *values, double *expected)
{
    const rope_args *a = c->args;
    int64_t rows[SAMPLED_ROWS], dim = a->shape.head_dim;
    int64_t count =
        suite_sample_indices(gpubench_seed(bench), row_count(&a->shape), SAMPLED_ROWS, rows);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        int code = suite_fetch(bench, a->in, c->dtype, rows[i] * dim, dim, values);
        if (code == 0)
            code = suite_fetch(bench, a->out, c->dtype, rows[i] * dim, dim, values + dim);
        if (code != 0)
            return code;
        reference(&a->shape, rows[i] % a->shape.tokens, values, expected);
        suite_compare(&error, values + dim, expected, dim);
    }
    return suite_check(bench, &error, c->dtype, 1);
}

static int verify_against(const suite_case *c, gpubench *bench, row_reference *reference)
{
    const rope_args *a = c->args;
    size_t dim = (size_t)a->shape.head_dim;
    float *values = malloc(2 * dim * sizeof *values);
    double *expected = malloc(dim * sizeof *expected);
    int code = values && expected ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0)
        code = check_rows(c, bench, reference, values, expected);
    free(values);
    free(expected);
    return code ? code : suite_check_written(bench, a->out, c->dtype, element_count(&a->shape));
}

static int verify_forward(suite_case *c, gpubench *bench)
{
    return verify_against(c, bench, rope_forward_reference);
}

static int verify_backward(suite_case *c, gpubench *bench)
{
    return verify_against(c, bench, rope_backward_reference);
}

static void queue_shape(suite *s, const rope_shape *shape)
{
    static const suite_operation forward = {.name = "rope.forward",
                                            .cpu = &rope_forward_cpu,
                                            .args_bytes = sizeof(rope_args),
                                            .build = build,
                                            .verify = verify_forward};
    static const suite_operation backward = {.name = "rope.backward",
                                             .cpu = &rope_backward_cpu,
                                             .args_bytes = sizeof(rope_args),
                                             .build = build,
                                             .verify = verify_backward};
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};
    char params[128];
    snprintf(params, sizeof params, "b=%lld h=%lld t=%lld d=%lld", (long long)shape->batch,
             (long long)shape->heads, (long long)shape->tokens, (long long)shape->head_dim);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        rope_args args = {.shape = *shape, .dtype = dtypes[i]};
        uint64_t bytes = rope_bytes(shape, dtypes[i]), flops = rope_flops(shape);
        suite_queue(s, &forward, dtypes[i], params, &args, bytes, flops);
        suite_queue(s, &backward, dtypes[i], params, &args, bytes, flops);
    }
}

static void queue_given(suite *s, const int64_t *values)
{
    rope_shape shape = {values[0], values[1], values[2], values[3]};
    if (rope_flops(&shape) == 0)
        gpubench_usage_error(s->bench, "--shape: b, h, t and d must be at least 1, d even");
    else
        queue_shape(s, &shape);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"b", "h", "t", "d"};
    suite s = suite_open("rope", "'b=4 h=12 t=128 d=64; ...' instead of the defaults", argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        for (size_t i = 0; i < sizeof cpu_shapes / sizeof *cpu_shapes; i++)
            queue_shape(&s, &cpu_shapes[i]);
    return suite_close(&s);
}
