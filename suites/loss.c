/*
 * loss.c - the loss suite: cross-entropy over a vocabulary, forward, backward,
 * and both at once.
 */
#include "once.h"
#include "suite.h"

#include "../kernels/loss/loss.h"
#include "../kernels/common/tokens.h"

#include <stdio.h>
#include <stdlib.h>

/* Batch 4, context 128, vocabulary 10,000; batch 8, context 1024, vocabulary
 * 50,257. The model sizes do not differ in their logits. */
static const loss_shape gpu_shapes[] = {{512, 10000}, {8192, 50257}};
static const loss_shape cpu_shapes[] = {{32, 10000}, {8, 50257}};

enum { SAMPLED_ROWS = 16 };

/* ---- building ------------------------------------------------------------------ */

static int64_t element_count(const loss_shape *s)
{
    int64_t factors[] = {s->rows, s->classes};
    return suite_product(factors, 2);
}

/* `count` host values in device memory, which is allocated here. */
static int upload(gpubench *bench, const int32_t *values, int64_t count, void **memory)
{
    size_t bytes = (size_t)count * sizeof *values;
    *memory = gpubench_alloc(bench, bytes, GPUBENCH_DEVICE);
    return *memory ? gpubench_copy(bench, *memory, values, bytes) : GPUBENCH_OOM;
}

static int build_targets(gpubench *bench, loss_args *a)
{
    int32_t *host = malloc((size_t)a->shape.rows * sizeof *host);
    void *memory = NULL;
    int code = host ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0)
        code = tokens_fill(host, a->shape.rows, a->shape.classes, TOKENS_UNIFORM,
                           gpubench_seed(bench));
    if (code == 0) code = upload(bench, host, a->shape.rows, &memory);
    a->targets = memory;
    free(host);
    return code;
}

/* What every pass reads, and the flag. */
static int build_inputs(suite_case *c, gpubench *bench)
{
    const int32_t no_error = 0;
    loss_args *a = c->args;
    void *logits = NULL, *flag = NULL;
    int code = suite_input(bench, c->dtype, element_count(&a->shape), 1, 0, &logits);
    if (code == 0) code = build_targets(bench, a);
    if (code == 0) code = upload(bench, &no_error, 1, &flag);
    a->logits = logits;
    a->error = flag;
    return code;
}

static int build_losses(suite_case *c, gpubench *bench)
{
    loss_args *a = c->args;
    void *loss = NULL, *lse = NULL;
    int code = suite_output(bench, KERNEL_F32, a->shape.rows, &loss);
    if (code == 0) code = suite_output(bench, KERNEL_F32, a->shape.rows, &lse);
    a->loss = loss;
    a->lse = lse;
    return code;
}

static int build_gradients(suite_case *c, gpubench *bench)
{
    loss_args *a = c->args;
    void *dloss = NULL;
    int code = suite_input(bench, KERNEL_F32, a->shape.rows, 1, 1, &dloss);
    a->dloss = dloss;
    return code ? code : suite_output(bench, c->dtype, element_count(&a->shape), &a->dlogits);
}

static int build_forward(suite_case *c, gpubench *bench)
{
    int code = build_inputs(c, bench);
    return code ? code : build_losses(c, bench);
}

static int build_forward_backward(suite_case *c, gpubench *bench)
{
    int code = build_forward(c, bench);
    return code ? code : build_gradients(c, bench);
}

/* lse is an input of the backward pass: one forward pass makes it. Its losses
 * are nobody's. What comes after it here, filling dloss, waits for it. */
static int build_backward(suite_case *c, gpubench *bench)
{
    loss_args *a = c->args, forward;
    size_t bytes = suite_bytes(a->shape.rows, KERNEL_F32);
    kernel_table table =
        gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(loss_forward_cuda) : loss_forward_cpu;
    int code = build_inputs(c, bench);
    if (code) return code;
    a->lse = gpubench_alloc(bench, bytes, GPUBENCH_DEVICE);
    forward = *a;
    forward.loss = gpubench_alloc(bench, bytes, GPUBENCH_DEVICE);
    if (!a->lse || !forward.loss) return GPUBENCH_OOM;
    code = suite_run_named(bench, &table, "fused", &forward);
    return code ? code : build_gradients(c, bench);
}

/* ---- verifying ------------------------------------------------------------------ */

/* Sampled rows on the host, and what the oracle says of them. */
typedef struct check {
    gpubench *bench;
    const loss_args *args;
    int64_t rows[SAMPLED_ROWS], count;
    int32_t targets[SAMPLED_ROWS];
    float *logits, *dlogits; /* [SAMPLED_ROWS, classes] */
    float loss[SAMPLED_ROWS], lse[SAMPLED_ROWS], dloss[SAMPLED_ROWS];
    double expected_loss[SAMPLED_ROWS], expected_lse[SAMPLED_ROWS];
    double *expected_dlogits; /* [SAMPLED_ROWS, classes] */
} check;

static int fetch_row(check *k, int64_t i)
{
    const loss_args *a = k->args;
    int64_t classes = a->shape.classes, row = k->rows[i];
    int code = suite_fetch(k->bench, a->logits, a->dtype, row * classes, classes,
                           k->logits + i * classes);
    if (code == 0)
        code = gpubench_copy(k->bench, &k->targets[i], a->targets + row, sizeof *k->targets);
    if (code == 0 && a->loss)
        code = suite_fetch(k->bench, a->loss, KERNEL_F32, row, 1, &k->loss[i]);
    if (code == 0 && a->loss) code = suite_fetch(k->bench, a->lse, KERNEL_F32, row, 1, &k->lse[i]);
    if (code || !a->dlogits) return code;
    code = suite_fetch(k->bench, a->dloss, KERNEL_F32, row, 1, &k->dloss[i]);
    return code ? code
                : suite_fetch(k->bench, a->dlogits, a->dtype, row * classes, classes,
                              k->dlogits + i * classes);
}

static void expect_rows(void *context, int64_t begin, int64_t end)
{
    check *k = context;
    int64_t first = begin * k->args->shape.classes;
    const loss_shape some = {end - begin, k->args->shape.classes};
    if (k->args->loss)
        loss_forward_reference(&some, k->logits + first, k->targets + begin,
                               k->expected_loss + begin, k->expected_lse + begin);
    if (k->args->dlogits)
        loss_backward_reference(&some, k->logits + first, k->targets + begin, k->dloss + begin,
                                k->expected_dlogits + first);
}

/* Losses are f32 whatever the logits are: those the oracle gets exactly. */
static int compare_rows(const check *k)
{
    suite_error losses = {0, 0}, lses = {0, 0}, gradients = {0, 0};
    int code = 0;
    if (k->args->loss) {
        suite_compare(&losses, k->loss, k->expected_loss, k->count);
        suite_compare(&lses, k->lse, k->expected_lse, k->count);
        code = suite_check(k->bench, &losses, KERNEL_F32, 1);
        if (code == 0) code = suite_check(k->bench, &lses, KERNEL_F32, 1);
    }
    if (code || !k->args->dlogits) return code;
    suite_compare(&gradients, k->dlogits, k->expected_dlogits,
                  k->count * k->args->shape.classes);
    return suite_check(k->bench, &gradients, k->args->dtype, 1);
}

static int check_rows(gpubench *bench, const loss_args *a)
{
    size_t elements = SAMPLED_ROWS * (size_t)a->shape.classes;
    check k = {.bench = bench, .args = a};
    int code;
    k.logits = malloc(2 * elements * sizeof *k.logits);
    k.expected_dlogits = malloc(elements * sizeof *k.expected_dlogits);
    code = k.logits && k.expected_dlogits ? 0 : KERNEL_ERROR_MEMORY;
    k.count = suite_sample_indices(gpubench_seed(bench), a->shape.rows, SAMPLED_ROWS, k.rows);
    if (code == 0) k.dlogits = k.logits + elements;
    for (int64_t i = 0; i < k.count && code == 0; i++) code = fetch_row(&k, i);
    if (code == 0) parallel_for(k.count, 1, expect_rows, &k);
    if (code == 0) code = compare_rows(&k);
    free(k.logits);
    free(k.expected_dlogits);
    return code;
}

/* Targets here are in range: the flag must have stayed 0. */
static int check_flag(gpubench *bench, const loss_args *a)
{
    int flag;
    int code = gpubench_copy(bench, &flag, a->error, sizeof flag);
    return code ? code : flag;
}

static int verify(suite_case *c, gpubench *bench)
{
    const loss_args *a = c->args;
    int64_t rows = a->shape.rows;
    int code = check_flag(bench, a);
    if (code == 0) code = check_rows(bench, a);
    if (code == 0 && a->loss) code = suite_check_written(bench, a->loss, KERNEL_F32, rows);
    if (code == 0 && a->loss) code = suite_check_written(bench, a->lse, KERNEL_F32, rows);
    if (code == 0 && a->dlogits)
        code = suite_check_written(bench, a->dlogits, c->dtype, element_count(&a->shape));
    return code;
}

/* ---- queueing ------------------------------------------------------------------- */

static void queue_shape(suite *s, const loss_shape *shape)
{
    static const suite_operation forward = {.name = "cross_entropy.forward",
                                            .cpu = &loss_forward_cpu,
                                            .cuda = SUITE_CUDA(loss_forward_cuda),
                                            .args_bytes = sizeof(loss_args),
                                            .build = build_forward,
                                            .verify = verify};
    static const suite_operation backward = {.name = "cross_entropy.backward",
                                             .cpu = &loss_backward_cpu,
                                             .cuda = SUITE_CUDA(loss_backward_cuda),
                                             .args_bytes = sizeof(loss_args),
                                             .build = build_backward,
                                             .verify = verify};
    static const suite_operation both = {.name = "cross_entropy.forward_backward",
                                         .cpu = &loss_forward_backward_cpu,
                                         .cuda = SUITE_CUDA(loss_forward_backward_cuda),
                                         .args_bytes = sizeof(loss_args),
                                         .build = build_forward_backward,
                                         .verify = verify};
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};
    char params[64];
    snprintf(params, sizeof params, "n=%lld v=%lld", (long long)shape->rows,
             (long long)shape->classes);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        loss_args args = {.shape = *shape, .dtype = dtypes[i]};
        suite_queue(s, &forward, dtypes[i], params, &args, loss_forward_bytes(shape, dtypes[i]),
                    loss_forward_flops(shape));
        suite_queue(s, &backward, dtypes[i], params, &args, loss_backward_bytes(shape, dtypes[i]),
                    loss_backward_flops(shape));
        suite_queue(s, &both, dtypes[i], params, &args,
                    loss_forward_backward_bytes(shape, dtypes[i]),
                    loss_forward_backward_flops(shape));
    }
}

static void queue_defaults(suite *s)
{
    int cuda = gpubench_is_cuda(s->bench);
    const loss_shape *shapes = cuda ? gpu_shapes : cpu_shapes;
    size_t count = cuda ? sizeof gpu_shapes / sizeof *gpu_shapes
                        : sizeof cpu_shapes / sizeof *cpu_shapes;
    for (size_t i = 0; i < count; i++) queue_shape(s, &shapes[i]);
}

static void queue_given(suite *s, const int64_t *values)
{
    loss_shape shape = {values[0], values[1]};
    if (loss_forward_flops(&shape) == 0 || shape.classes > INT32_MAX)
        gpubench_usage_error(s->bench, "--shape: n and v must be at least 1, v below 2^31");
    else
        queue_shape(s, &shape);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"n", "v"};
    suite s = suite_open("loss", "'n=512 v=10000; ...' (rows, classes) instead of the defaults",
                         argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
