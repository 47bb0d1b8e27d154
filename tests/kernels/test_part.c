/*
 * test_part.c - the block's table of parts: each value is written once and
 * before it is read; and a model made of such parts, two blocks, a final norm
 * and a head, against the block's oracle and sums written down here.
 */
#include "kernel_test.h"

#include "../../kernels/block/block.h"
#include "../../kernels/part/run.h"
#include "../../kernels/common/random.h"

/* ---- the table ------------------------------------------------------------------- */

enum { HEADS = 1u << BLOCK_Q | 1u << BLOCK_K | 1u << BLOCK_V | 1u << BLOCK_ATTENTION };
enum { ALL = (1u << BLOCK_ACTIVATIONS) - 1 };

/* Adds a set to another that has none of it. */
static void add_new(unsigned *set, unsigned more)
{
    assert_int_equal(*set & more, 0);
    *set |= more;
}

static void test_forward_writes_each_value_once(void **state)
{
    (void)state;
    for (int in_place = 0; in_place < 2; in_place++) {
        unsigned activations = 0, y = 0;
        for (int i = 0; i < BLOCK_FORWARD_PARTS; i++) {
            block_outputs set = block_forward_outputs(i, in_place);
            if (in_place && part_moves_heads(block_forward_rows[i].kind)) continue;
            add_new(&activations, set.activations);
            add_new(&y, (unsigned)set.y);
        }
        assert_int_equal(activations, in_place ? ALL & ~(unsigned)HEADS : ALL);
        assert_int_equal(y, 1);
    }
}

static void test_backward_writes_each_gradient_once(void **state)
{
    const block_shape shape = {2, 3, 8, 2, 5};
    unsigned with_gradient = 0;
    (void)state;
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++)
        if (block_gradient_count(&shape, (block_activation)i) > 0) with_gradient |= 1u << i;
    for (int in_place = 0; in_place < 2; in_place++) {
        unsigned gradients = 0, parameters = 0, x = 0;
        for (int i = 0; i < BLOCK_BACKWARD_PARTS; i++) {
            block_outputs set = block_backward_outputs(i, in_place);
            if (in_place && part_moves_heads(block_backward_rows[i].kind)) continue;
            add_new(&gradients, set.gradients);
            add_new(&parameters, set.parameter_gradients);
            add_new(&x, (unsigned)set.x_gradient);
        }
        assert_int_equal(gradients, in_place ? with_gradient & ~(unsigned)HEADS : with_gradient);
        assert_int_equal(parameters, (1u << BLOCK_PARAMETERS) - 1);
        assert_int_equal(x, 1);
    }
}

static void test_values_are_read_after_they_are_written(void **state)
{
    unsigned there = 0;
    (void)state;
    for (int i = 0; i < BLOCK_FORWARD_PARTS; i++) {
        const block_forward_row *row = &block_forward_rows[i];
        if (row->input != BLOCK_X) assert_true(there >> row->input & 1);
        if (row->kind == PART_LINEAR && row->residual < BLOCK_ACTIVATIONS)
            assert_true(there >> row->residual & 1);
        there |= block_forward_outputs(i, 0).activations;
    }
}

/* ---- a model ----------------------------------------------------------------------- */

enum { LAYERS = 2, CLASSES = 11 };
static const block_shape shape = {2, 5, 8, 2, 12};

static float *numbers(int64_t count, double stddev, uint64_t seed)
{
    float *values = fresh((size_t)count * sizeof *values);
    assert_int_equal(random_normal_cpu(values, KERNEL_F32, count, 0, (float)stddev, seed), 0);
    return values;
}

static float *room(int64_t count)
{
    return fresh((size_t)count * sizeof(float));
}

/* What a model of blocks has; rows is batch * tokens. */
typedef struct model {
    int64_t rows, count; /* count: of rows of width */
    block_forward_args forward[LAYERS];
    block_backward_args backward[LAYERS];
    float *x[LAYERS + 1], *dx[LAYERS + 1]; /* of the blocks: x[LAYERS] is the last y */
    float *weight, *bias, *normed, *mean, *rstd, *head, *logits;
    float *dweight, *dbias, *dnormed, *dhead, *dlogits;
} model;

static void make_layer(model *m, int layer)
{
    block_forward_args *f = &m->forward[layer];
    block_backward_args *b = &m->backward[layer];
    *f = (block_forward_args){.shape = shape, .dtype = KERNEL_F32, .part = BLOCK_WHOLE,
                              .x = m->x[layer], .y = m->x[layer + 1]};
    *b = (block_backward_args){.shape = shape, .dtype = KERNEL_F32, .part = BLOCK_WHOLE,
                               .x = m->x[layer], .y_gradient = m->dx[layer + 1],
                               .x_gradient = m->dx[layer]};
    for (int i = 0; i < BLOCK_PARAMETERS; i++) {
        int64_t count = block_parameter_count(&shape, (block_parameter)i);
        f->parameters[i] = b->parameters[i] =
            numbers(count, 0.3, (uint64_t)(100 * layer + 10 + i));
        b->parameter_gradients[i] = room(count);
    }
    for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
        f->activations[i] = b->activations[i] =
            room(block_activation_count(&shape, (block_activation)i));
        b->gradients[i] = room(block_gradient_count(&shape, (block_activation)i));
    }
}

static void make_model(model *m)
{
    m->rows = shape.batch * shape.tokens;
    m->count = m->rows * shape.width;
    for (int i = 0; i <= LAYERS; i++) m->dx[i] = room(m->count);
    m->x[0] = numbers(m->count, 1, 1);
    for (int i = 1; i <= LAYERS; i++) m->x[i] = room(m->count);
    for (int i = 0; i < LAYERS; i++) make_layer(m, i);
    m->weight = numbers(shape.width, 1, 2);
    m->bias = numbers(shape.width, 1, 3);
    m->head = numbers(CLASSES * shape.width, 0.3, 4);
    m->dlogits = numbers(m->rows * CLASSES, 1, 5);
    m->normed = room(m->count);
    m->dnormed = room(m->count);
    m->mean = room(m->rows);
    m->rstd = room(m->rows);
    m->logits = room(m->rows * CLASSES);
    m->dweight = room(shape.width);
    m->dbias = room(shape.width);
    m->dhead = room(CLASSES * shape.width);
}

static void free_model(model *m)
{
    float *own[] = {m->weight, m->bias,    m->head,  m->dlogits, m->normed, m->dnormed,
                    m->mean,   m->rstd,    m->logits, m->dweight, m->dbias, m->dhead};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) free(own[i]);
    for (int i = 0; i <= LAYERS; i++) free(m->x[i]), free(m->dx[i]);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < BLOCK_PARAMETERS; i++) {
            free((void *)m->forward[layer].parameters[i]);
            free(m->backward[layer].parameter_gradients[i]);
        }
        for (int i = 0; i < BLOCK_ACTIVATIONS; i++) {
            free(m->forward[layer].activations[i]);
            free(m->backward[layer].gradients[i]);
        }
    }
}

static void run_part(const part_args *part)
{
    void *workspace = fresh(part_workspace_bytes_cpu(part, &part_best_cpu));
    assert_int_equal(part_run_cpu(part, &part_best_cpu, workspace), KERNEL_OK);
    free(workspace);
}

/* The blocks' parts, then the model's own: the same functions run them. */
static void run_forward(const model *m)
{
    block_layout layout = block_own_layout(&shape);
    part_layer sizes = {m->rows, shape.width, CLASSES};
    part_args norm = {.kind = PART_NORM}, head = {.kind = PART_LINEAR};
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < BLOCK_FORWARD_PARTS; i++) {
            part_args part = block_forward_describe(&m->forward[layer], i, &layout);
            run_part(&part);
        }
    norm.as.norm = (norm_forward_args){.shape = {m->rows, shape.width}, .kind = NORM_LAYER,
                                       .x = m->x[LAYERS], .weight = m->weight, .bias = m->bias,
                                       .y = m->normed, .mean = m->mean, .rstd = m->rstd};
    head.as.linear = (part_linear){.layer = sizes, .x = m->normed, .weight = m->head,
                                   .y = m->logits};
    run_part(&norm);
    run_part(&head);
}

static void run_head_backward(const model *m)
{
    part_layer sizes = {m->rows, shape.width, CLASSES};
    part_args input = {.kind = PART_INPUT_GRADIENT}, weight = {.kind = PART_WEIGHT_GRADIENT};
    part_args norm = {.kind = PART_NORM_GRADIENT};
    input.as.input_gradient = (part_input_gradient){.layer = sizes, .y_gradient = m->dlogits,
                                                    .weight = m->head, .x_gradient = m->dnormed};
    weight.as.weight_gradient = (part_weight_gradient){.layer = sizes, .x = m->normed,
                                                       .y_gradient = m->dlogits,
                                                       .weight_gradient = m->dhead};
    norm.as.norm_gradient = (norm_backward_args){
        .shape = {m->rows, shape.width}, .kind = NORM_LAYER, .x = m->x[LAYERS],
        .weight = m->weight, .dy = m->dnormed, .mean = m->mean, .rstd = m->rstd,
        .dx = m->dx[LAYERS], .dweight = m->dweight, .dbias = m->dbias};
    run_part(&input);
    run_part(&weight);
    run_part(&norm);
}

static void run_backward(const model *m)
{
    block_layout layout = block_own_layout(&shape);
    run_head_backward(m);
    for (int layer = LAYERS; layer-- > 0;)
        for (int i = 0; i < BLOCK_BACKWARD_PARTS; i++) {
            part_args part = block_backward_describe(&m->backward[layer], i, &layout);
            run_part(&part);
        }
}

static void expect_near(const char *what, const float *values, const double *expected,
                        int64_t count)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += pow((double)values[i] - expected[i], 2);
        norm += expected[i] * expected[i];
    }
    if (!(sqrt(difference / norm) < 1e-5))
        fail_msg("%s is off by %g", what, sqrt(difference / norm));
}

/* Sums of products: out[i][j] = sum over p of a[i, p] b[p, j], by strides. */
static void multiply(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t a_row,
                     int64_t a_step, const float *b, int64_t b_step, int64_t b_column, double *out)
{
    for (int64_t i = 0; i < rows * columns; i++) {
        const float *row = a + i / columns * a_row, *column = b + i % columns * b_column;
        out[i] = 0;
        for (int64_t p = 0; p < depth; p++)
            out[i] += (double)row[p * a_step] * (double)column[p * b_step];
    }
}

static void check_forward(const model *m, double *expected)
{
    norm_shape norm = {m->rows, shape.width};
    for (int layer = 0; layer < LAYERS; layer++) {
        block_forward_reference(&shape, (const float *const *)m->forward[layer].parameters,
                                m->x[layer], expected);
        expect_near("a block's y", m->x[layer + 1], expected, m->count);
    }
    norm_forward_reference(&norm, NORM_LAYER, m->x[LAYERS], NULL, m->weight, m->bias, expected,
                           NULL, NULL, NULL);
    expect_near("the final norm", m->normed, expected, m->count);
    multiply(m->rows, CLASSES, shape.width, m->normed, shape.width, 1, m->head, 1, shape.width,
             expected);
    expect_near("the logits", m->logits, expected, m->rows * CLASSES);
}

static void check_backward(const model *m, double *expected)
{
    double *gradients[BLOCK_PARAMETERS];
    norm_shape norm = {m->rows, shape.width};
    int64_t w = shape.width;
    multiply(m->rows, w, CLASSES, m->dlogits, CLASSES, 1, m->head, w, 1, expected);
    expect_near("the head's input gradient", m->dnormed, expected, m->count);
    multiply(CLASSES, w, m->rows, m->dlogits, 1, CLASSES, m->normed, w, 1, expected);
    expect_near("the head's gradient", m->dhead, expected, CLASSES * w);
    memset(expected + m->count, 0, 2 * (size_t)w * sizeof *expected);
    norm_backward_reference(&norm, NORM_LAYER, m->x[LAYERS], m->weight, m->mean, m->rstd,
                            m->dnormed, NULL, expected, expected + m->count,
                            expected + m->count + w);
    expect_near("the final norm's gradient", m->dx[LAYERS], expected, m->count);
    expect_near("the final norm's weight's gradient", m->dweight, expected + m->count, w);
    expect_near("the final norm's bias's gradient", m->dbias, expected + m->count + w, w);
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        gradients[i] = fresh((size_t)block_parameter_count(&shape, (block_parameter)i) *
                             sizeof(double));
    for (int layer = LAYERS; layer-- > 0;) {
        block_backward_reference(&shape, (const float *const *)m->forward[layer].parameters,
                                 m->x[layer], m->dx[layer + 1], expected, gradients);
        expect_near("a block's gradient", m->dx[layer], expected, m->count);
        for (int i = 0; i < BLOCK_PARAMETERS; i++)
            expect_near("a parameter's gradient", m->backward[layer].parameter_gradients[i],
                        gradients[i], block_parameter_count(&shape, (block_parameter)i));
    }
    for (int i = 0; i < BLOCK_PARAMETERS; i++) free(gradients[i]);
}

static void test_model(void **state)
{
    model m;
    double *expected = fresh(1000 * sizeof *expected);
    (void)state;
    make_model(&m);
    run_forward(&m);
    check_forward(&m, expected);
    run_backward(&m);
    check_backward(&m, expected);
    free_model(&m);
    free(expected);
}

/* ---- refusals and sizes --------------------------------------------------------------- */

static void test_bytes_and_flops(void **state)
{
    /* A head of 5 rows, 8 to 11, without bias: 40 + 88 + 55 elements. */
    part_args head = {.kind = PART_LINEAR, .dtype = KERNEL_BF16};
    (void)state;
    head.as.linear.layer = (part_layer){5, 8, 11};
    assert_int_equal(part_flops(&head), 2 * 5 * 8 * 11);
    assert_int_equal(part_bytes(&head), 2 * (5 * 8 + 8 * 11 + 5 * 11));
    /* A bias of 11; a residual of 55. */
    head.with_bias = head.with_residual = 1;
    assert_int_equal(part_bytes(&head), 2 * (5 * 8 + 8 * 11 + 2 * 5 * 11 + 11));
}

/* Of 1 times 1 GELU is half of 1 + erf(1 / sqrt(2)), 0.8413, or by the tanh formula 0.8412;
 * the value before it is kept where there is room for it, and only if GELU follows. */
static void test_gelu_keeps_what_was_before_it(void **state)
{
    float one = 1, y = 0, pre = 0;
    part_args part = {.kind = PART_LINEAR, .with_gelu = 1};
    (void)state;
    part.as.linear = (part_linear){.layer = {1, 1, 1}, .x = &one, .weight = &one, .y = &y};
    run_part(&part);
    assert_true(fabs((double)y - 0.84125) < 2e-4);
    part.as.linear.pre = &pre;
    y = 0;
    run_part(&part);
    assert_true(fabs((double)y - 0.84125) < 2e-4 && fabs((double)pre - 1) < 1e-6);
    part.with_gelu = 0;
    y = pre = 0;
    run_part(&part);
    assert_true(fabs((double)y - 1) < 1e-6 && pre == 0);
}

static void test_padded_heads_are_refused(void **state)
{
    part_args split = {.kind = PART_SPLIT, .dtype = KERNEL_F32};
    (void)state;
    split.as.heads = (part_heads){.batch = 1, .tokens = 1, .heads = 1, .head_dim = 80,
                                  .padded_dim = 128, .parts = 1, .splits = 1};
    assert_int_equal(part_run_cpu(&split, &part_best_cpu, NULL), KERNEL_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_writes_each_value_once),
        cmocka_unit_test(test_backward_writes_each_gradient_once),
        cmocka_unit_test(test_values_are_read_after_they_are_written),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_bytes_and_flops),
        cmocka_unit_test(test_gelu_keeps_what_was_before_it),
        cmocka_unit_test(test_padded_heads_are_refused),
    };
    return cmocka_run_group_tests_name("part", tests, NULL, NULL);
}
