/*
 * block.c - the transformer block's suite: forward (without and with keeping
 * what a backward pass needs), backward, and every part of both on its own.
 */
#include "block_suite.h"

#include <stdio.h>
#include <string.h>

static const block_shape cpu_shapes[] = {{1, 64, 128, 2, 512}};

kernel_table block_suite_forward(const gpubench *bench)
{
    return gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(block_forward_cuda) : block_forward_cpu;
}

kernel_table block_suite_backward(const gpubench *bench)
{
    return gpubench_is_cuda(bench) ? SUITE_CUDA_TABLE(block_backward_cuda) : block_backward_cpu;
}

/* ---- queueing ------------------------------------------------------------------- */

static void queue_forward(suite *s, const block_shape *shape, kernel_dtype dtype,
                          const char *dimensions, int keeps)
{
    static const suite_operation forward = {.name = "block.forward",
                                            .cpu = &block_forward_cpu,
                                            .cuda = SUITE_CUDA(block_forward_cuda),
                                            .args_bytes = sizeof(block_forward_args),
                                            .build = block_build_forward,
                                            .verify = block_verify_forward};
    static const suite_operation keeping = {.name = "block.forward",
                                            .cpu = &block_forward_cpu,
                                            .cuda = SUITE_CUDA(block_forward_cuda),
                                            .args_bytes = sizeof(block_forward_args),
                                            .build = block_build_forward_keeping,
                                            .verify = block_verify_forward};
    block_forward_args args = {.shape = *shape, .dtype = dtype, .part = BLOCK_WHOLE};
    char params[192];
    snprintf(params, sizeof params, "%s keep=%d", dimensions, keeps);
    suite_queue(s, keeps ? &keeping : &forward, dtype, params, &args,
                block_forward_bytes(shape, dtype, BLOCK_WHOLE),
                block_forward_flops(shape, BLOCK_WHOLE));
}

static void queue_backward(suite *s, const block_shape *shape, kernel_dtype dtype,
                           const char *dimensions)
{
    static const suite_operation backward = {.name = "block.backward",
                                             .cpu = &block_backward_cpu,
                                             .cuda = SUITE_CUDA(block_backward_cuda),
                                             .args_bytes = sizeof(block_backward_args),
                                             .build = block_build_backward,
                                             .verify = block_verify_backward};
    block_backward_args args = {.shape = *shape, .dtype = dtype, .part = BLOCK_WHOLE};
    suite_queue(s, &backward, dtype, dimensions, &args,
                block_backward_bytes(shape, dtype, BLOCK_WHOLE),
                block_backward_flops(shape, BLOCK_WHOLE));
}

/* Parts are measured of the variant `best` alone, as far as it has them. */
static int is_best_with_part(const kernel_variant *variant, const void *args)
{
    return !strcmp(variant->name, "best") && block_suite_has_part(variant, args);
}

static void queue_forward_parts(suite *s, const block_shape *shape, kernel_dtype dtype,
                                const char *dimensions)
{
    static const suite_operation operation = {.name = "block.part",
                                              .cpu = &block_forward_cpu,
                                              .cuda = SUITE_CUDA(block_forward_cuda),
                                              .args_bytes = sizeof(block_forward_args),
                                              .build = block_build_forward_part,
                                              .verify = block_verify_forward,
                                              .takes = is_best_with_part};
    for (int part = 0; part < BLOCK_FORWARD_PARTS; part++) {
        block_forward_args args = {.shape = *shape, .dtype = dtype, .part = part};
        char params[192];
        snprintf(params, sizeof params, "pass=forward part=%s %s", block_forward_part_name(part),
                 dimensions);
        suite_queue(s, &operation, dtype, params, &args, block_forward_bytes(shape, dtype, part),
                    block_forward_flops(shape, part));
    }
}

static void queue_backward_parts(suite *s, const block_shape *shape, kernel_dtype dtype,
                                 const char *dimensions)
{
    static const suite_operation operation = {.name = "block.part",
                                              .cpu = &block_backward_cpu,
                                              .cuda = SUITE_CUDA(block_backward_cuda),
                                              .args_bytes = sizeof(block_backward_args),
                                              .build = block_build_backward_part,
                                              .verify = block_verify_backward,
                                              .takes = is_best_with_part};
    for (int part = 0; part < BLOCK_BACKWARD_PARTS; part++) {
        block_backward_args args = {.shape = *shape, .dtype = dtype, .part = part};
        char params[192];
        snprintf(params, sizeof params, "pass=backward part=%s %s", block_backward_part_name(part),
                 dimensions);
        suite_queue(s, &operation, dtype, params, &args, block_backward_bytes(shape, dtype, part),
                    block_backward_flops(shape, part));
    }
}

static void queue_dtype(suite *s, const block_shape *shape, kernel_dtype dtype, int with_parts)
{
    char dimensions[128];
    snprintf(dimensions, sizeof dimensions, "b=%lld t=%lld d=%lld h=%lld ff=%lld",
             (long long)shape->batch, (long long)shape->tokens, (long long)shape->width,
             (long long)shape->heads, (long long)shape->hidden);
    queue_forward(s, shape, dtype, dimensions, 0);
    queue_backward(s, shape, dtype, dimensions);
    if (!with_parts) return;
    queue_forward(s, shape, dtype, dimensions, 1); /* what the parts add up to */
    queue_forward_parts(s, shape, dtype, dimensions);
    queue_backward_parts(s, shape, dtype, dimensions);
}

static void queue_shape(suite *s, const block_shape *shape)
{
    queue_dtype(s, shape, KERNEL_F32, 1);
    queue_dtype(s, shape, KERNEL_BF16, 1);
}

/* Batch 4, context 128 of every model; the parts, up to 22 cases a dtype, of the
 * smallest and the largest. Batch 8, context 1024 of these two, f32 of the
 * smallest only: the tuner of the products would take minutes. */
static void queue_defaults(suite *s)
{
    if (!gpubench_is_cuda(s->bench)) {
        for (size_t i = 0; i < sizeof cpu_shapes / sizeof *cpu_shapes; i++)
            queue_shape(s, &cpu_shapes[i]);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        const suite_model *m = &suite_models[i];
        int end = i == 0 || i == SUITE_MODEL_COUNT - 1;
        block_shape context = {4, 128, m->d_model, m->heads, m->d_ff};
        block_shape filling = {8, 1024, m->d_model, m->heads, m->d_ff};
        queue_dtype(s, &context, KERNEL_F32, i == 0);
        queue_dtype(s, &context, KERNEL_BF16, end);
        if (i == 0)
            queue_dtype(s, &filling, KERNEL_F32, 0);
        if (end)
            queue_dtype(s, &filling, KERNEL_BF16, 1);
    }
}

static void queue_given(suite *s, const int64_t *values)
{
    block_shape shape = {values[0], values[1], values[2], values[3], values[4]};
    if (block_forward_flops(&shape, BLOCK_WHOLE) == 0)
        gpubench_usage_error(s->bench, "--shape: b, t, d, h and ff must be at least 1, and h must "
                                       "divide d");
    else
        queue_shape(s, &shape);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"b", "t", "d", "h", "ff"};
    suite s = suite_open("block", "'b=4 t=128 d=768 h=12 ff=3072; ...' instead of the defaults",
                         argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
