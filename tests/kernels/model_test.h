/* What the model's tests share: a model in host memory, with a variant of the CPU
 * prepared for it, and its parameters and gradients as the oracle takes them. */
#ifndef MODEL_TEST_H
#define MODEL_TEST_H

#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"
#include "../../kernels/common/tokens.h"
#include "../../kernels/model/model.h"

#include "kernel_test.h"

typedef struct test_model {
    model_args args;
    model_plan plan;
    const kernel_variant *variant;
    void *workspace, *state;
} test_model;

static inline model_args args_of(model_shape shape, kernel_dtype dtype, unsigned phases)
{
    model_args args = {.shape = shape, .dtype = dtype, .phases = phases, .components = MODEL_ALL,
                       .keeps = (phases & MODEL_BACKWARD) != 0, .max_norm = 1};
    args.settings = (optimizer_adamw){1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    args.scaling = optimizer_usual_scaling;
    args.layout = model_layout_cpu(&shape, dtype, 1);
    return args;
}

/* Tokens and targets are random; the poison shows what a pass forgets. */
static inline test_model open_model(model_args args, const char *variant)
{
    test_model m = {.args = args, .variant = kernel_find(&model_cpu, variant)};
    int64_t n = model_rows(&args.shape);
    assert_non_null(m.variant);
    m.plan = model_plan_of(&args);
    m.args.memory = fresh(m.plan.total);
    m.workspace = fresh(m.variant->workspace_bytes(&m.args));
    assert_int_equal(model_fill(&m.args, random_normal_cpu, 1), 0);
    assert_int_equal(tokens_fill(model_memory(&m.args, &m.plan, MODEL_TOKENS), n,
                                 args.shape.vocabulary, TOKENS_UNIFORM, 2), 0);
    assert_int_equal(tokens_fill(model_memory(&m.args, &m.plan, MODEL_TARGETS), n,
                                 args.shape.vocabulary, TOKENS_UNIFORM, 3), 0);
    assert_int_equal(m.variant->prepare(&m.args, &m.state), 0);
    return m;
}

static inline void run_model(test_model *m)
{
    assert_int_equal(m->variant->run(&m->args, m->workspace, m->state, NULL), 0);
}

static inline void close_model(test_model *m)
{
    m->variant->release(m->state);
    free(m->args.memory);
    free(m->workspace);
}

static inline float model_result(const test_model *m, int which)
{
    return ((float *)model_memory(&m->args, &m->plan, MODEL_RESULTS))[which];
}

static inline int64_t elements_at(const model_shape *shape, int64_t index)
{
    parameters_tensor tensor = model_tensor_at(shape, index);
    return parameters_elements(&tensor);
}

/* A tensor's values, gradient or state in f32, to be freed. */
static inline float *tensor_of(const test_model *m, model_buffer buffer, int64_t index)
{
    int64_t count = elements_at(&m->args.shape, index);
    int narrow = buffer == MODEL_VALUES || buffer == MODEL_GRADIENTS;
    float *values = fresh((size_t)count * sizeof *values);
    kernel_to_f32(model_tensor_memory(&m->args, &m->plan, buffer, index),
                  narrow ? model_storage(m->args.dtype) : KERNEL_F32, count, values);
    return values;
}

/* The oracle's answer for a model as it stands. */
typedef struct expected_model {
    double loss, **gradients;
    int64_t count;
} expected_model;

static inline expected_model expect_model(const test_model *m)
{
    const model_shape *s = &m->args.shape;
    expected_model e = {.count = model_tensor_count(s)};
    float **values = fresh((size_t)e.count * sizeof *values);
    e.gradients = fresh((size_t)e.count * sizeof *e.gradients);
    for (int64_t i = 0; i < e.count; i++) {
        values[i] = tensor_of(m, MODEL_VALUES, i);
        e.gradients[i] = fresh((size_t)elements_at(s, i) * sizeof(double));
    }
    assert_int_equal(model_reference(s, (const float *const *)values,
                                     model_memory(&m->args, &m->plan, MODEL_TOKENS),
                                     model_memory(&m->args, &m->plan, MODEL_TARGETS), &e.loss,
                                     e.gradients), 0);
    for (int64_t i = 0; i < e.count; i++) free(values[i]);
    free(values);
    return e;
}

static inline void forget_model(expected_model *e)
{
    for (int64_t i = 0; i < e->count; i++) free(e->gradients[i]);
    free(e->gradients);
}

/* norm(value - expected) / norm(expected), or norm(value) if nothing is expected. */
static inline double relative_error(const float *value, const double *expected, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += pow((double)value[i] - expected[i], 2);
        size += expected[i] * expected[i];
    }
    return sqrt(size > 0 ? difference / size : difference);
}

#endif
