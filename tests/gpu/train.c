/*
 * train.c - a GPT of the small size's width and depth trains on a GPU, in every dtype:
 * its first 10 losses and first gradients are those of the oracle, which trains in double
 * precision beside it, within what roundoff does to the oracle, and the loss falls; f16 also
 * from a captured graph, and from a loss scale that is too large at first. As TAP lines.
 *
 * --cpu: the host's variants instead, in the dtypes that they take. --layers N: fewer
 * than 12, since the oracle takes some seconds a step for each, five times over, on as many
 * threads. --width N, a multiple of 64: narrower than 768.
 */
#include "../kernels/train_bound.h"

#include "../../kernels/common/random.h"

#if GPUBENCH_CUDA
#include <cuda_runtime_api.h>
#endif

enum { TOKENS = 16 };

static int on_cpu, tests, failures;
static model_shape shape = {1, TOKENS, 768, 12, 3072, 12, TRAIN_LETTERS, 16, 1};
static int32_t text[TOKENS + 1];

/* At which the oracle's loss falls at every step, and clearly; a wider model needs less. */
static float learning_rate(void)
{
    return 0.006f / (float)shape.width;
}

/* ---- host or device ------------------------------------------------------------------- */

static int move(void *to, const void *from, size_t bytes)
{
#if GPUBENCH_CUDA
    if (!on_cpu) return cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
#endif
    memcpy(to, from, bytes);
    return 0;
}

static void *take(size_t bytes)
{
#if GPUBENCH_CUDA
    void *memory = NULL;
    if (!on_cpu) return cudaMalloc(&memory, bytes + 1) ? NULL : memory;
#endif
    return aligned_alloc(512, (bytes + 512) / 512 * 512);
}

static void give_back(void *memory)
{
#if GPUBENCH_CUDA
    if (!on_cpu) {
        cudaFree(memory);
        return;
    }
#endif
    free(memory);
}

#if GPUBENCH_CUDA
static int fill_device(void *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                       uint64_t seed)
{
    return random_normal_cuda(data, dtype, count, mean, stddev, seed, NULL);
}
#endif

/* ---- a model --------------------------------------------------------------------------- */

typedef struct trained {
    model_args args;
    model_plan plan;
    const kernel_variant *variant;
    void *workspace, *state;
} trained;

static model_args args_of(kernel_dtype dtype, float loss_scale)
{
    model_args args = {.shape = shape, .dtype = dtype, .phases = MODEL_STEP,
                       .components = MODEL_ALL, .keeps = 1, .max_norm = 1};
    args.settings = (optimizer_adamw){learning_rate(), 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    args.scaling = optimizer_usual_scaling;
    args.scaling.initial = loss_scale;
    args.layout = model_layout_cpu(&shape, dtype, 1);
#if GPUBENCH_CUDA
    if (!on_cpu) args.layout = model_layout_cuda(&shape, dtype, 1);
#endif
    return args;
}

static int open_trained(trained *m, kernel_dtype dtype, const char *name, float loss_scale)
{
    model_fill_function *fill = random_normal_cpu;
    const kernel_table *table = &model_cpu;
#if GPUBENCH_CUDA
    if (!on_cpu) fill = fill_device, table = &model_cuda;
#endif
    *m = (trained){.args = args_of(dtype, loss_scale), .variant = kernel_find(table, name)};
    m->plan = model_plan_of(&m->args);
    m->args.memory = take((size_t)m->plan.total);
    if (!m->args.memory || model_fill(&m->args, fill, 1) != 0) return -1;
    if (m->variant->workspace_bytes) m->workspace = take(m->variant->workspace_bytes(&m->args));
    return m->variant->prepare(&m->args, &m->state);
}

static void close_trained(trained *m)
{
    if (m->state) m->variant->release(m->state);
    give_back(m->workspace);
    give_back(m->args.memory);
}

static int give_text(trained *m)
{
    int error = move(model_memory(&m->args, &m->plan, MODEL_TOKENS), text, 4 * TOKENS);
    return error ? error
                 : move(model_memory(&m->args, &m->plan, MODEL_TARGETS), text + 1, 4 * TOKENS);
}

/* The loss before the step, NaN after an error. */
static double step_trained(trained *m, int step)
{
    const float *results = model_memory(&m->args, &m->plan, MODEL_RESULTS);
    float loss = NAN;
    m->args.settings.step = step + 1;
    int error = m->variant->run(&m->args, m->workspace, m->state, NULL);
    if (!error) error = move(&loss, results + MODEL_RESULT_LOSS, sizeof loss);
    if (error) printf("# step %d: error %d\n", step, error);
    return error ? NAN : (double)loss;
}

/* By how much of itself a gradient is too long or too short at most; NaN after an error. */
static double worst_length(const trained *m, const train_truth *truth, const train_task *task)
{
    optimizer_scaler scaler = {.used = 1};
    const void *there = model_memory(&m->args, &m->plan, MODEL_SCALER);
    size_t bytes = (size_t)m->plan.bytes[MODEL_GRADIENTS];
    double worst = NAN;
    void *gradients = train_room((int64_t)bytes, 1);
    int error = move(gradients, model_memory(&m->args, &m->plan, MODEL_GRADIENTS), bytes);
    if (!error && there) error = move(&scaler, there, sizeof scaler);
    if (!error)
        worst = train_worst_length(truth, task, m->args.dtype, gradients, (double)scaler.used);
    free(gradients);
    return worst;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void check(int holds, const char *name, const char *dtype, const char *variant)
{
    failures += !holds;
    printf("%sok %d - %s %s: %s\n", holds ? "" : "not ", ++tests, dtype, variant, name);
    fflush(stdout);
}

static void test_training(kernel_dtype dtype, const char *variant, const train_truth *truth,
                          const train_task *task)
{
    trained m;
    double loss[TRAIN_STEPS] = {0}, length = NAN, allowed = train_length_bound(truth, task, dtype);
    const char *name = kernel_dtype_name(dtype);
    int follows = 1, error = open_trained(&m, dtype, variant, 1024); /* which skips no step */
    if (!error) error = give_text(&m);
    for (int step = 0; step < TRAIN_STEPS && !error; step++) {
        double expected = truth->course.loss[step];
        double bound = train_loss_bound(truth, task, dtype, step);
        loss[step] = step_trained(&m, step);
        double off = fabs(loss[step] / expected - 1);
        follows = follows && off <= bound;
        printf("# %s %s, step %d: loss %.7f, the oracle's %.7f, off by %.2g of %.2g allowed\n",
               name, variant, step + 1, loss[step], expected, off, bound);
        if (step == 0) length = worst_length(&m, truth, task);
    }
    printf("# %s %s: gradients' lengths off by at most %.2g of %.2g allowed\n", name, variant,
           length, allowed);
    check(!error && follows, "the first 10 losses are the oracle's", name, variant);
    check(!error && length <= allowed, "each first gradient is as long as the oracle's", name,
          variant);
    check(!error && loss[TRAIN_STEPS - 1] < loss[0] - 0.5, "the loss falls", name, variant);
    close_trained(&m);
}

/* A scale of 2^30: steps are skipped, each halving it, until one is taken. */
static void test_overflow(const char *variant)
{
    enum { ALL = 24 };
    trained m;
    optimizer_scaler s = {0};
    int error = open_trained(&m, KERNEL_F16, variant, 1073741824);
    if (!error) error = give_text(&m);
    for (int step = 0; step < ALL && !error; step++) error = isnan(step_trained(&m, step));
    if (!error) error = move(&s, model_memory(&m.args, &m.plan, MODEL_SCALER), sizeof s);
    printf("# %d steps taken, %d skipped, scale %g\n", s.taken, s.skipped, (double)s.scale);
    check(!error && s.taken + s.skipped == ALL, "every step is taken or skipped", "f16", variant);
    check(!error && s.skipped > 0 && s.taken > 0 && s.scale == ldexpf(1, 30 - s.skipped),
          "a loss scale that is too large is halved by each step that is skipped", "f16", variant);
    close_trained(&m);
}

/* The parameters that the f32 model begins with, to be freed; NULL after an error. */
static float *first_values(void)
{
    trained start;
    int error = open_trained(&start, KERNEL_F32, "best", 1);
    size_t bytes = (size_t)start.plan.bytes[MODEL_VALUES];
    float *values = error ? NULL : train_room((int64_t)bytes, 1);
    if (values && move(values, model_memory(&start.args, &start.plan, MODEL_VALUES), bytes)) {
        free(values);
        values = NULL;
    }
    close_trained(&start);
    return values;
}

static void test_all(const train_truth *truth, const train_task *task)
{
    check(train_always_falls(&truth->course), "the loss falls at every step", "f64", "oracle");
    test_training(KERNEL_F32, "best", truth, task);
    if (!on_cpu) test_training(KERNEL_TF32, "best", truth, task);
    test_training(KERNEL_F16, "best", truth, task);
    if (!on_cpu) test_training(KERNEL_F16, "graph", truth, task);
    test_training(KERNEL_BF16, "best", truth, task);
    test_overflow("best");
    if (!on_cpu) test_overflow("graph");
}

static void read_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--cpu")) on_cpu = 1;
        if (!strcmp(argv[i], "--layers") && i + 1 < argc) shape.layers = atoi(argv[i + 1]);
        if (!strcmp(argv[i], "--width") && i + 1 < argc) shape.width = atoi(argv[i + 1]);
    }
    shape.hidden = 4 * shape.width;
    shape.heads = shape.width / 64;
#if !GPUBENCH_CUDA
    on_cpu = 1;
#endif
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    train_write_text(text, TOKENS + 1);
    float *values = model_is_valid(&shape) ? first_values() : NULL;
    if (!values) {
        fputs("train: no device, no memory, or a number of layers or a width that is none\n",
              stderr);
        return 2;
    }
    train_task task = {shape, values, args_of(KERNEL_F32, 1).settings, 1, text};
    train_truth truth = train_find(&task);
    free(values);
    test_all(&truth, &task);
    train_forget_course(&truth.course);
    printf("1..%d\n", tests);
    return failures > 0;
}
