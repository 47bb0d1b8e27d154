/*
 * train.c - a GPT of the small size's width and depth trains on a GPU, in every dtype:
 * its first 10 losses are those of the oracle, which trains in double precision beside
 * it, and the loss falls; f16 also from a captured graph, and from a loss scale that is
 * too large at first. As TAP lines.
 *
 * --cpu: the host's variants instead, in the dtypes that they take. --layers N: fewer
 * than 12, since the oracle takes some seconds a step for each.
 */
#include "../kernels/train_oracle.h"

#include "../../kernels/common/random.h"

#if GPUBENCH_CUDA
#include <cuda_runtime_api.h>
#endif

enum { STEPS = 10, TOKENS = 16 };

static int on_cpu, tests, failures;
static model_shape shape = {1, TOKENS, 768, 12, 3072, 12, TRAIN_LETTERS, 16, 1};

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
    args.settings = (optimizer_adamw){3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
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

/* One step on the step-th batch of the text; the loss before it, NaN after an error. */
static double step_trained(trained *m, const int32_t *text, int step)
{
    const float *results = model_memory(&m->args, &m->plan, MODEL_RESULTS);
    const int32_t *batch = text + step * TOKENS;
    float loss = NAN;
    int error = move(model_memory(&m->args, &m->plan, MODEL_TOKENS), batch, 4 * TOKENS);
    if (!error) error = move(model_memory(&m->args, &m->plan, MODEL_TARGETS), batch + 1, 4 * TOKENS);
    m->args.settings.step = step + 1;
    if (!error) error = m->variant->run(&m->args, m->workspace, m->state, NULL);
    if (!error) error = move(&loss, results + MODEL_RESULT_LOSS, sizeof loss);
    if (error) printf("# step %d: error %d\n", step, error);
    return error ? NAN : (double)loss;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void check(int holds, const char *name, const char *dtype, const char *variant)
{
    failures += !holds;
    printf("%sok %d - %s %s: %s\n", holds ? "" : "not ", ++tests, dtype, variant, name);
    fflush(stdout);
}

/* expected: the oracle's losses. bound: relative to them. */
static void test_losses(kernel_dtype dtype, const char *variant, double bound,
                        const int32_t *text, const double *expected)
{
    trained m;
    double loss[STEPS] = {0}, worst = 0;
    const char *name = kernel_dtype_name(dtype);
    int error = open_trained(&m, dtype, variant, 1024); /* at which no step is skipped */
    for (int step = 0; step < STEPS && !error; step++) {
        double off = fabs((loss[step] = step_trained(&m, text, step)) - expected[step]);
        if (!(off / expected[step] <= worst)) worst = off / expected[step];
        printf("# step %d: loss %.6f, the oracle's %.6f\n", step + 1, loss[step], expected[step]);
    }
    printf("# %s %s: at most %.2g off, where %.2g is allowed\n", name, variant, worst, bound);
    check(!error && worst <= bound, "the first 10 losses are the oracle's", name, variant);
    check(!error && loss[STEPS - 1] < loss[0] - 0.5, "the loss falls", name, variant);
    close_trained(&m);
}

/* A scale of 2^30: steps are skipped, each halving it, until one is taken. */
static void test_overflow(const char *variant, const int32_t *text)
{
    enum { ALL = 24 };
    trained m;
    optimizer_scaler s = {0};
    int error = open_trained(&m, KERNEL_F16, variant, 1073741824);
    for (int step = 0; step < ALL && !error; step++)
        error = isnan(step_trained(&m, text, step % STEPS));
    if (!error)
        error = move(&s, model_memory(&m.args, &m.plan, MODEL_SCALER), sizeof s);
    printf("# %d steps taken, %d skipped, scale %g\n", s.taken, s.skipped, (double)s.scale);
    check(!error && s.taken + s.skipped == ALL, "every step is taken or skipped", "f16", variant);
    check(!error && s.skipped > 0 && s.taken > 0 && s.scale == ldexpf(1, 30 - s.skipped),
          "a loss scale that is too large is halved by each step that is skipped", "f16", variant);
    close_trained(&m);
}

/* The losses of the oracle, which starts from the f32 model's parameters. */
static int train_the_oracle(const int32_t *text, double *losses)
{
    trained start;
    int error = open_trained(&start, KERNEL_F32, "best", 1);
    optimizer_adamw settings = start.args.settings;
    float *values = train_room((int64_t)start.plan.bytes[MODEL_VALUES], 1);
    if (!error)
        error = move(values, model_memory(&start.args, &start.plan, MODEL_VALUES),
                     (size_t)start.plan.bytes[MODEL_VALUES]);
    close_trained(&start);
    train_oracle oracle = train_open(&shape, values);
    free(values);
    for (int step = 0; step < STEPS && !error; step++) {
        settings.step = step + 1;
        losses[step] = train_step(&oracle, &settings, 1, text + step * TOKENS,
                                  text + step * TOKENS + 1);
    }
    train_close(&oracle);
    return error;
}

int main(int argc, char **argv)
{
    int32_t text[STEPS * TOKENS + 1];
    double losses[STEPS];
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--cpu")) on_cpu = 1;
        if (!strcmp(argv[i], "--layers") && i + 1 < argc) shape.layers = atoi(argv[i + 1]);
    }
#if !GPUBENCH_CUDA
    on_cpu = 1;
#endif
    train_write_text(text, STEPS * TOKENS + 1);
    if (!model_is_valid(&shape) || train_the_oracle(text, losses) != 0) {
        fputs("train: no device, no memory, or a number of layers that is none\n", stderr);
        return 2;
    }
    test_losses(KERNEL_F32, "best", 1e-3, text, losses);
    if (!on_cpu) test_losses(KERNEL_TF32, "best", 1e-2, text, losses);
    test_losses(KERNEL_F16, "best", 1e-2, text, losses);
    if (!on_cpu) test_losses(KERNEL_F16, "graph", 1e-2, text, losses);
    test_losses(KERNEL_BF16, "best", 4e-2, text, losses);
    test_overflow("best", text);
    if (!on_cpu) test_overflow("graph", text);
    printf("1..%d\n", tests);
    return failures > 0;
}
