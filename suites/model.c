/*
 * model.c - the training step's suite: a GPT's forward pass, forward with loss,
 * backward and whole step, at the five sizes and at GPT-2's own shape.
 *
 * The learning rate of a measured step is 0: each sample then does the same work
 * on the same numbers, AdamW's included, and what the last one left is what the
 * oracle expects of the first. Updates that move are checked apart.
 */
#include "model_suite.h"

#include <stdio.h>
#include <string.h>

/* Tables of a vocabulary that is no multiple of 8 are padded to one of 128, as
 * the products like it: GPT-2's 50,257 to 50,304. */
static int64_t padded(int64_t vocabulary)
{
    return vocabulary % 8 ? (vocabulary + 127) / 128 * 128 : vocabulary;
}

static model_shape shape_of(const suite_model *m, int64_t batch, int64_t tokens,
                            int64_t vocabulary, int tied)
{
    return (model_shape){batch, tokens, m->d_model, m->heads, m->d_ff, m->layers, vocabulary,
                         padded(vocabulary), tied};
}

/* ---- queueing ------------------------------------------------------------------------- */

void model_describe(char *params, size_t room, const named_shape *n)
{
    const model_shape *s = &n->shape;
    snprintf(params, room, "size=%s b=%lld t=%lld d=%lld h=%lld ff=%lld l=%lld v=%lld tied=%d",
             n->name, (long long)s->batch, (long long)s->tokens, (long long)s->width,
             (long long)s->heads, (long long)s->hidden, (long long)s->layers,
             (long long)s->vocabulary, s->tied);
}

/* Ops are ranges of what --kernels and --trace watch. */
static const model_watch ranges = {gpubench_range_begin, gpubench_range_end};

model_args model_args_of(const model_shape *shape, kernel_dtype dtype, unsigned phases)
{
    model_args args = {.shape = *shape, .dtype = dtype, .phases = phases,
                       .components = MODEL_ALL, .max_norm = 1, .watch = &ranges};
    args.keeps = (phases & (MODEL_BACKWARD | MODEL_UPDATE)) != 0;
    args.settings = (optimizer_adamw){0, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    args.scaling = optimizer_usual_scaling;
    return args;
}

enum { MOST_ROWS = 8 };

/* A table's rows; of a pass that keeps nothing, which has nothing to run again,
 * without `recompute`. */
static kernel_table rows_for(kernel_table table, const named_shape *n, int keeps,
                             kernel_variant room[MOST_ROWS])
{
    size_t count = 0;
    for (size_t i = 0; i < table.count && count < MOST_ROWS; i++) {
        const char *name = table.rows[i].name;
        int is_left_out = (!keeps && !strcmp(name, "recompute")) ||
                          (!n->with_unfused && !strcmp(name, "unfused"));
        if (!is_left_out) room[count++] = table.rows[i];
    }
    return (kernel_table){room, count};
}

/* What the cases of a pass share. */
typedef struct pass {
    unsigned phases;
    suite_operation operation;
    kernel_table cpu, cuda;
    kernel_variant cpu_rows[MOST_ROWS], cuda_rows[MOST_ROWS];
} pass;

#define PASSES_OF_ONE_TABLE                                                                   \
    {                                                                                         \
        {.phases = MODEL_FORWARD, .operation.name = "model.forward"},                         \
        {.phases = MODEL_FORWARD | MODEL_LOSS, .operation.name = "model.forward_loss"},       \
        {.phases = MODEL_BACKWARD, .operation.name = "model.backward"},                       \
        {.phases = MODEL_STEP, .operation.name = "model.step"},                               \
    }

enum { PASSES = 4 };

/* Cases point at the rows of their pass until the end, so that sizes without `unfused`
 * must not share those of the sizes with it. */
static pass passes[2][PASSES] = {PASSES_OF_ONE_TABLE, PASSES_OF_ONE_TABLE};

static void queue_pass(suite *s, const named_shape *n, kernel_dtype dtype, pass *p)
{
    model_args args = model_args_of(&n->shape, dtype, p->phases);
    suite_operation *operation = &p->operation;
    char params[192];
    p->cpu = rows_for(model_cpu, n, args.keeps, p->cpu_rows);
    p->cuda = rows_for(SUITE_CUDA_TABLE(model_cuda), n, args.keeps, p->cuda_rows);
    operation->cpu = &p->cpu;
    operation->cuda = &p->cuda;
    operation->args_bytes = sizeof args;
    operation->build = model_build;
    operation->verify = model_verify;
    model_describe(params, sizeof params, n);
    suite_queue(s, operation, dtype, params, &args, model_bytes(&n->shape, dtype, p->phases),
                model_flops(&n->shape, p->phases));
}

static int64_t models; /* sizes by dtypes that are queued */

static void queue_size(suite *s, const named_shape *n)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        models += suite_wants(dtypes[i]);
        for (int p = 0; p < PASSES; p++) queue_pass(s, n, dtypes[i], &passes[n->with_unfused][p]);
        if (!n->with_parts) continue;
        model_queue_parts(s, n, dtypes[i]);
        model_queue_habits(s, n, dtypes[i]);
        model_queue_groups(s, n, dtypes[i]);
    }
}

/* Steps of the smallest size at other batches: tokens per second and memory. */
static void queue_batches(suite *s)
{
    static const int64_t batches[] = {1, 2, 8, 16, 32};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        named_shape one = {"batch", shape_of(&suite_models[0], batches[i], 128, 10000, 0), 0, 0};
        queue_pass(s, &one, KERNEL_F32, &passes[0][PASSES - 1]);
        queue_pass(s, &one, KERNEL_BF16, &passes[0][PASSES - 1]);
    }
}

static void queue_defaults(suite *s)
{
    static const named_shape tiny = {"tiny", {2, 32, 64, 2, 256, 2, 256, 256, 0}, 1, 1};
    named_shape gpt2 = {"gpt2", shape_of(&suite_models[0], 4, 1024, 50257, 1), 1, 1};
    if (!gpubench_is_cuda(s->bench)) {
        queue_size(s, &tiny);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        const suite_model *m = &suite_models[i];
        named_shape one = {m->name, shape_of(m, 4, 128, 10000, 0), i == 0, i == 0};
        queue_size(s, &one);
    }
    queue_size(s, &gpt2);
    gpt2.shape.tokens = 128;
    queue_size(s, &gpt2);
    queue_batches(s);
}

static void queue_given(suite *s, const int64_t *values)
{
    named_shape given = {"given",
                         {values[0], values[1], values[2], values[3], values[4], values[5],
                          values[6], padded(values[6]), values[7] != 0},
                         1, 1};
    if (!model_is_valid(&given.shape) || values[7] > 1)
        gpubench_usage_error(s->bench, "--shape: b, t, d, h, ff, l and v must be at least 1, h "
                                       "must divide d, and tied is 0 or 1");
    else
        queue_size(s, &given);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"b", "t", "d", "h", "ff", "l", "v", "tied"};
    const gpubench_option own[] = {
        {"--checkpoint", "FILE", "write the one model's parameters there (safetensors)",
         &model_checkpoint_path},
        {"--gradients", "FILE", "write tokens, targets, loss and gradients there",
         &model_gradients_path},
        {"--first-steps", "FILE", "append the first ten steps' times there (make study-warmup)",
         &model_first_steps_path},
        {"--steps-before", "N", "untimed steps before those (default 0)", &model_steps_before}};
    suite s = suite_open_with("model",
                              "'b=4 t=128 d=768 h=12 ff=3072 l=12 v=10000 tied=0; ...' instead of "
                              "the defaults",
                              own, sizeof own / sizeof *own, argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    model_check_files(s.bench, models);
    model_check_study(s.bench);
    return model_files_status(suite_close(&s));
}
