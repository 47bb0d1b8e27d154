/* A dimension that is not positive: every variant refuses it before it looks at memory, and it
 * is no work. */
#define _XOPEN_SOURCE 700
#include "../../kernels/attention/attention.h"
#include "../../kernels/ceilings/ceilings.h"
#include "../../kernels/embedding/embedding.h"
#include "../../kernels/ffn/ffn.h"
#include "../../kernels/loss/loss.h"
#include "../../kernels/norm/norm.h"
#include "../../kernels/rope/rope.h"

#include "kernel_test.h"

/* Arguments begin with their shape, and a shape with its dimensions. */
typedef union arguments {
    int64_t dimensions[4];
    attention_forward_args attention_forward;
    attention_backward_args attention_backward;
    embedding_forward_args embedding_forward;
    embedding_backward_args embedding_backward;
    ffn_forward_args ffn_forward;
    ffn_backward_args ffn_backward;
    loss_args loss;
    norm_forward_args norm_forward;
    norm_backward_args norm_backward;
    rope_args rope;
} arguments;

typedef struct operation {
    const kernel_table *table;
    int dimensions;
    uint64_t (*bytes)(const arguments *a);
    uint64_t (*flops)(const arguments *a);
} operation;

#define BYTES(name, call)                                                                          \
    static uint64_t name(const arguments *a) { return call; }
BYTES(attention_bytes, attention_forward_bytes(&a->attention_forward.shape, KERNEL_F32))
BYTES(attention_flops, attention_forward_flops(&a->attention_forward.shape))
BYTES(attention_bytes_back, attention_backward_bytes(&a->attention_backward.shape, KERNEL_F32))
BYTES(attention_flops_back, attention_backward_flops(&a->attention_backward.shape))
BYTES(embedding_bytes, embedding_forward_bytes(&a->embedding_forward.shape, KERNEL_F32, 1))
BYTES(embedding_flops, embedding_backward_flops(&a->embedding_forward.shape))
BYTES(embedding_bytes_back, embedding_backward_bytes(&a->embedding_forward.shape, KERNEL_F32))
BYTES(ffn_bytes, ffn_forward_bytes(&a->ffn_forward.shape, KERNEL_F32, 0))
BYTES(ffn_flops, ffn_forward_flops(&a->ffn_forward.shape))
BYTES(ffn_bytes_back, ffn_backward_bytes(&a->ffn_backward.shape, KERNEL_F32))
BYTES(ffn_flops_back, ffn_backward_flops(&a->ffn_backward.shape))
BYTES(loss_bytes, loss_forward_bytes(&a->loss.shape, KERNEL_F32))
BYTES(loss_flops, loss_forward_flops(&a->loss.shape))
BYTES(norm_bytes, norm_forward_bytes(&a->norm_forward.shape, NORM_LAYER, KERNEL_F32, 0))
BYTES(norm_flops, norm_forward_flops(&a->norm_forward.shape, NORM_LAYER, 0))
BYTES(norm_bytes_back, norm_backward_bytes(&a->norm_backward.shape, NORM_LAYER, KERNEL_F32, 0))
BYTES(norm_flops_back, norm_backward_flops(&a->norm_backward.shape, NORM_LAYER, 0))
BYTES(rope_bytes_of, rope_bytes(&a->rope.shape, KERNEL_F32))
BYTES(rope_flops_of, rope_flops(&a->rope.shape))

static const operation operations[] = {
    {&attention_forward_cpu, 4, attention_bytes, attention_flops},
    {&attention_backward_cpu, 4, attention_bytes_back, attention_flops_back},
    {&embedding_forward_cpu, 3, embedding_bytes, embedding_flops},
    {&embedding_backward_cpu, 3, embedding_bytes_back, embedding_flops},
    {&ffn_forward_cpu, 3, ffn_bytes, ffn_flops},
    {&ffn_backward_cpu, 3, ffn_bytes_back, ffn_flops_back},
    {&loss_forward_cpu, 2, loss_bytes, loss_flops},
    {&loss_backward_cpu, 2, loss_bytes, loss_flops},
    {&loss_forward_backward_cpu, 2, loss_bytes, loss_flops},
    {&norm_forward_cpu, 2, norm_bytes, norm_flops},
    {&norm_backward_cpu, 2, norm_bytes_back, norm_flops_back},
    {&rope_forward_cpu, 4, rope_bytes_of, rope_flops_of},
    {&rope_backward_cpu, 4, rope_bytes_of, rope_flops_of},
};

/* Every dimension 2, which all of them take; no memory, and f32. */
static arguments small(int dimensions)
{
    arguments a;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < dimensions; i++) a.dimensions[i] = 2;
    return a;
}

static void expect_refused(const operation *o, const arguments *a)
{
    assert_int_equal(o->bytes(a), 0);
    assert_int_equal(o->flops(a), 0);
    for (size_t row = 0; row < o->table->count; row++) {
        const kernel_variant *v = &o->table->rows[row];
        assert_int_equal(v->run(a, NULL, NULL, NULL), KERNEL_ERROR_ARGUMENT);
        assert_between(v->deterministic, 0, 1); /* 1 or none, as kernel.h says */
    }
}

static void no_dimension_is_0_or_less(void **state)
{
    static const int64_t wrong[] = {0, -1, -2, INT64_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        const operation *o = &operations[i];
        arguments a = small(o->dimensions);
        assert_true(o->bytes(&a) > 0);
        assert_true(o->flops(&a) > 0);
        for (int dimension = 0; dimension < o->dimensions; dimension++)
            for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
                a = small(o->dimensions);
                a.dimensions[dimension] = wrong[k];
                expect_refused(o, &a);
            }
        for (int two = 1; two < o->dimensions; two++) { /* two below 0 make no product */
            a = small(o->dimensions);
            a.dimensions[0] = a.dimensions[two] = -2;
            expect_refused(o, &a);
        }
    }
}

static void limits_of_single_operations(void **state)
{
    arguments a = small(4);
    (void)state;
    a.rope.shape.head_dim = 3; /* halves turn against each other */
    expect_refused(&operations[11], &a);
    a = small(4);
    a.embedding_forward.shape.context = -1;
    expect_refused(&operations[2], &a);
    a.embedding_forward.shape.context = 0; /* no table of positions */
    assert_true(embedding_bytes(&a) > 0);
    assert_int_equal(embedding_forward_flops(&a.embedding_forward.shape), 0);
    a.embedding_forward.shape.columns = EMBEDDING_MAX_COLUMNS;
    assert_true(embedding_bytes(&a) > 0);
    a.embedding_forward.shape.columns++;
    expect_refused(&operations[2], &a);
    a = small(4);
    a.embedding_forward.shape.rows = a.embedding_forward.shape.vocabulary = INT32_MAX;
    assert_true(embedding_bytes(&a) > 0);
    a.embedding_forward.shape.rows++;
    expect_refused(&operations[2], &a);
    a.embedding_forward.shape.rows = 1;
    a.embedding_forward.shape.vocabulary++;
    expect_refused(&operations[2], &a);
    a = small(3); /* what is no work needs no memory */
    a.embedding_backward.dtype = KERNEL_BF16;
    a.embedding_backward.shape.vocabulary = 0;
    for (size_t row = 0; row < embedding_backward_cpu.count; row++)
        if (embedding_backward_cpu.rows[row].workspace_bytes)
            assert_int_equal(embedding_backward_cpu.rows[row].workspace_bytes(&a), 0);
    a = small(2);
    a.norm_forward.shape.width = 0;
    for (size_t row = 0; row < norm_forward_cpu.count; row++)
        if (norm_forward_cpu.rows[row].workspace_bytes)
            assert_int_equal(norm_forward_cpu.rows[row].workspace_bytes(&a), 0);
    a = small(2);
    a.loss.shape.classes = (int64_t)INT32_MAX + 1;
    for (size_t row = 0; row < loss_forward_cpu.count; row++)
        assert_int_equal(loss_forward_cpu.rows[row].run(&a, NULL, NULL, NULL), KERNEL_ERROR_ARGUMENT);
}

static void products_have_three_dimensions(void **state)
{
    static const int64_t wrong[] = {0, -1, -2};
    (void)state;
    assert_int_equal(ceilings_gemm_flops(2, 3, 4), 48);
    assert_int_equal(ceilings_gemm_bytes(2, 3, 4, KERNEL_BF16), 2 * (2 * 4 + 4 * 3 + 2 * 3));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ceilings_gemm_flops(wrong[i], 3, 4), 0);
        assert_int_equal(ceilings_gemm_flops(2, wrong[i], 4), 0);
        assert_int_equal(ceilings_gemm_flops(2, 3, wrong[i]), 0);
        assert_int_equal(ceilings_gemm_bytes(wrong[i], 3, 4, KERNEL_F32), 0);
        assert_int_equal(ceilings_gemm_bytes(2, wrong[i], 4, KERNEL_F32), 0);
        assert_int_equal(ceilings_gemm_bytes(2, 3, wrong[i], KERNEL_F32), 0);
    }
    assert_int_equal(ceilings_gemm_flops(-2, -3, 4), 0);
    assert_int_equal(ceilings_gemm_flops(INT64_MAX, INT64_MAX, 4), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_dimension_is_0_or_less),
        cmocka_unit_test(limits_of_single_operations),
        cmocka_unit_test(products_have_three_dimensions),
    };
    return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
