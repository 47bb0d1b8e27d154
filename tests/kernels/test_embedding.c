/*
 * test_embedding.c - the embedding operation: its formulas against counts by
 * hand, the token generator against its distribution, the oracle against a
 * case by hand and against finite differences, and the CPU variants against
 * the oracle at odd shapes.
 */

#include "kernel_test.h"

#include "../../kernels/common/convert.h"
#include "../../kernels/embedding/embedding.h"
#include "../../kernels/common/random.h"
#include "../../kernels/common/tokens.h"

/* ---- formulas ---------------------------------------------------------- */

/* 4 distinct tokens, 2 positions, 6 rows of 3 columns, and 6 tokens. */
static void test_forward_bytes(void **unused)
{
    const embedding_shape s = {.rows = 6, .vocabulary = 5, .columns = 3, .context = 2};
    const embedding_shape no_positions = {6, 5, 3, 0}, long_context = {6, 5, 3, 100};
    (void)unused;
    assert_int_equal(embedding_forward_bytes(&s, KERNEL_F32, 4), (4 + 2 + 6) * 3 * 4 + 6 * 4);
    assert_int_equal(embedding_forward_bytes(&s, KERNEL_BF16, 4), (4 + 2 + 6) * 3 * 2 + 6 * 4);
    assert_int_equal(embedding_forward_bytes(&no_positions, KERNEL_F32, 1), (1 + 6) * 3 * 4 + 24);
    assert_int_equal(embedding_forward_bytes(&long_context, KERNEL_F32, 4), (4 + 6 + 6) * 12 + 24);
}

/* Every row of both tables counts, chosen or not. */
static void test_backward_bytes(void **unused)
{
    const embedding_shape s = {6, 5, 3, 2}, long_context = {6, 5, 3, 100};
    (void)unused;
    assert_int_equal(embedding_backward_bytes(&s, KERNEL_F32), (6 + 5 + 2) * 3 * 4 + 6 * 4);
    assert_int_equal(embedding_backward_bytes(&s, KERNEL_BF16), (6 + 5 + 2) * 3 * 2 + 6 * 4);
    assert_int_equal(embedding_backward_bytes(&long_context, KERNEL_F32), 111 * 12 + 24);
}

static void test_flops(void **unused)
{
    const embedding_shape s = {6, 5, 3, 2}, no_positions = {6, 5, 3, 0};
    (void)unused;
    assert_int_equal(embedding_forward_flops(&s), 18);
    assert_int_equal(embedding_forward_flops(&no_positions), 0);
    assert_int_equal(embedding_backward_flops(&s), 36);
    assert_int_equal(embedding_backward_flops(&no_positions), 18);
}

static void test_formulas_of_bad_shapes(void **unused)
{
    const embedding_shape bad[] = {{0, 5, 3, 2},  {6, 0, 3, 2}, {6, 5, 0, 2}, {6, 5, 3, -1},
                                   {INT64_MAX, 5, 3, 2}, {6, 5, INT64_MAX, 2}};
    const embedding_shape largest = {INT32_MAX, INT32_MAX, EMBEDDING_MAX_COLUMNS, INT64_MAX};
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(embedding_forward_bytes(&bad[i], KERNEL_F32, 1), 0);
        assert_int_equal(embedding_backward_bytes(&bad[i], KERNEL_F32), 0);
        assert_int_equal(embedding_forward_flops(&bad[i]), 0);
        assert_int_equal(embedding_backward_flops(&bad[i]), 0);
    }
    assert_true(embedding_backward_bytes(&largest, KERNEL_F32) == UINT64_MAX);
}

/* ---- tokens ------------------------------------------------------------ */

enum { SAMPLES = 100000, WORDS = 50 };

static void count_tokens(tokens_distribution distribution, uint64_t seed, int64_t counts[WORDS])
{
    int32_t *tokens = malloc(SAMPLES * sizeof *tokens);
    assert_non_null(tokens);
    assert_int_equal(tokens_fill(tokens, SAMPLES, WORDS, distribution, seed), KERNEL_OK);
    memset(counts, 0, WORDS * sizeof *counts);
    for (int i = 0; i < SAMPLES; i++) {
        assert_between(tokens[i], 0, WORDS - 1);
        counts[tokens[i]]++;
    }
    free(tokens);
}

/* Each count within five standard deviations of a binomial's. */
static void assert_counts(const int64_t counts[WORDS], const double probabilities[WORDS])
{
    for (int k = 0; k < WORDS; k++) {
        double mean = SAMPLES * probabilities[k];
        assert_true(fabs((double)counts[k] - mean) < 5 * sqrt(mean * (1 - probabilities[k])));
    }
}

static void test_tokens_uniform(void **unused)
{
    int64_t counts[WORDS];
    double probabilities[WORDS];
    (void)unused;
    for (int k = 0; k < WORDS; k++) probabilities[k] = 1.0 / WORDS;
    count_tokens(TOKENS_UNIFORM, 1, counts);
    assert_counts(counts, probabilities);
}

static void test_tokens_zipf(void **unused)
{
    int64_t counts[WORDS];
    double probabilities[WORDS], sum = 0;
    (void)unused;
    for (int k = 0; k < WORDS; k++) sum += 1.0 / (k + 1);
    for (int k = 0; k < WORDS; k++) probabilities[k] = 1.0 / (k + 1) / sum;
    count_tokens(TOKENS_ZIPF, 1, counts);
    assert_counts(counts, probabilities);
}

static void test_tokens_seed(void **unused)
{
    int32_t first[100], again[100], other[100];
    (void)unused;
    assert_int_equal(tokens_fill(first, 100, 50257, TOKENS_ZIPF, 7), KERNEL_OK);
    assert_int_equal(tokens_fill(again, 100, 50257, TOKENS_ZIPF, 7), KERNEL_OK);
    assert_int_equal(tokens_fill(other, 100, 50257, TOKENS_ZIPF, 8), KERNEL_OK);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
}

static void test_tokens_edges(void **unused)
{
    int32_t tokens[3] = {-7, -7, -7};
    const int32_t mixed[] = {3, 1, 3, -1, 5, 1, 0};
    (void)unused;
    assert_int_equal(tokens_fill(tokens, 2, 1, TOKENS_ZIPF, 1), KERNEL_OK);
    assert_int_equal(tokens[0], 0);
    assert_int_equal(tokens[1], 0);
    assert_int_equal(tokens[2], -7);
    assert_int_equal(tokens_fill(tokens, 0, 1, TOKENS_UNIFORM, 1), KERNEL_OK);
    assert_int_equal(tokens_fill(tokens, -1, 1, TOKENS_UNIFORM, 1), KERNEL_ERROR_ARGUMENT);
    assert_int_equal(tokens_fill(tokens, 1, 0, TOKENS_UNIFORM, 1), KERNEL_ERROR_ARGUMENT);
    assert_int_equal(tokens_fill(tokens, 1, INT64_C(1) << 31, TOKENS_UNIFORM, 1),
                     KERNEL_ERROR_ARGUMENT);
    assert_int_equal(tokens_fill(tokens, 1, 1, TOKENS_DISTRIBUTION_COUNT, 1),
                     KERNEL_ERROR_ARGUMENT);
    assert_int_equal(tokens_count_distinct(mixed, 7, 5), 3);
    assert_string_equal(tokens_distribution_name(TOKENS_UNIFORM), "uniform");
    assert_string_equal(tokens_distribution_name(TOKENS_ZIPF), "zipf");
}

/* ---- oracle ------------------------------------------------------------ */

/* Two columns, three words, two positions; the fifth row starts a third
 * sequence. */
static void test_forward_by_hand(void **unused)
{
    const embedding_shape s = {5, 3, 2, 2};
    const int32_t tokens[] = {2, 0, 2, 1, 0};
    const float token_table[] = {1, 2, 3, 4, 5, 6}, position_table[] = {10, 20, 30, 40};
    const int64_t rows[] = {4, 0, 3};
    const double expected[] = {11, 22, 15, 26, 33, 44};
    double out[6];
    (void)unused;
    embedding_forward_reference(&s, tokens, token_table, position_table, rows, 3, out);
    assert_memory_equal(out, expected, sizeof out);
}

static void test_backward_by_hand(void **unused)
{
    const embedding_shape s = {5, 3, 2, 2};
    const int32_t tokens[] = {2, 0, 2, 2, 0};
    const float dout[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const int64_t words[] = {2, 1}, positions[] = {1, 0};
    const double words_expected[] = {13, 16, 0, 0}, positions_expected[] = {10, 12, 15, 18};
    double sums[4];
    (void)unused;
    embedding_backward_tokens_reference(&s, tokens, dout, words, 2, sums);
    assert_memory_equal(sums, words_expected, sizeof sums);
    embedding_backward_positions_reference(&s, dout, positions, 2, sums);
    assert_memory_equal(sums, positions_expected, sizeof sums);
}

enum { FD_ROWS = 7, FD_WORDS = 4, FD_COLUMNS = 3, FD_CONTEXT = 3 };

/* sum of dout * out, whose gradient the backward pass is. */
static double weighted_sum(const embedding_shape *s, const int32_t *tokens, const float *words,
                           const float *positions, const float *dout)
{
    const int64_t rows[FD_ROWS] = {0, 1, 2, 3, 4, 5, 6};
    double out[FD_ROWS * FD_COLUMNS], sum = 0;
    embedding_forward_reference(s, tokens, words, positions, rows, FD_ROWS, out);
    for (int i = 0; i < FD_ROWS * FD_COLUMNS; i++) sum += (double)dout[i] * out[i];
    return sum;
}

/* Central difference in table[index]; the table's values and the step have few
 * bits, so that f32 holds both ends exactly. */
static double finite_difference(const embedding_shape *s, const int32_t *tokens,
                                const float *words, const float *positions, const float *dout,
                                float *table, int index)
{
    const float step = 0x1p-6f;
    float middle = table[index];
    table[index] = middle + step;
    double above = weighted_sum(s, tokens, words, positions, dout);
    table[index] = middle - step;
    double below = weighted_sum(s, tokens, words, positions, dout);
    table[index] = middle;
    return (above - below) / (2 * (double)step);
}

static void test_backward_by_finite_differences(void **unused)
{
    const embedding_shape s = {FD_ROWS, FD_WORDS, FD_COLUMNS, FD_CONTEXT};
    const int32_t tokens[FD_ROWS] = {1, 3, 1, 0, 1, 3, 3};
    const int64_t rows[FD_WORDS] = {0, 1, 2, 3};
    float words[FD_WORDS * FD_COLUMNS], positions[FD_CONTEXT * FD_COLUMNS];
    float dout[FD_ROWS * FD_COLUMNS];
    double dwords[FD_WORDS * FD_COLUMNS], dpositions[FD_CONTEXT * FD_COLUMNS];
    (void)unused;
    for (int i = 0; i < FD_WORDS * FD_COLUMNS; i++) words[i] = 0.5f * (float)(i - 4);
    for (int i = 0; i < FD_CONTEXT * FD_COLUMNS; i++) positions[i] = 0.25f * (float)(i - 2);
    random_normal_cpu(dout, KERNEL_F32, FD_ROWS * FD_COLUMNS, 0, 1, 3);
    embedding_backward_tokens_reference(&s, tokens, dout, rows, FD_WORDS, dwords);
    embedding_backward_positions_reference(&s, dout, rows, FD_CONTEXT, dpositions);
    for (int i = 0; i < FD_WORDS * FD_COLUMNS; i++)
        assert_true(fabs(finite_difference(&s, tokens, words, positions, dout, words, i) -
                         dwords[i]) < 1e-11);
    for (int i = 0; i < FD_CONTEXT * FD_COLUMNS; i++)
        assert_true(fabs(finite_difference(&s, tokens, words, positions, dout, positions, i) -
                         dpositions[i]) < 1e-11);
}

/* ---- variants ---------------------------------------------------------- */

enum { GUARD = 64 };
static const unsigned char guard_byte = 0xff; /* NaNs in f32 and in bf16 */

/* An array of dtype with guards on both sides, all of it poisoned. */
typedef struct array {
    unsigned char *memory;
    void *data;
    kernel_dtype dtype;
    int64_t count;
} array;

static array new_array(kernel_dtype dtype, int64_t count)
{
    size_t bytes = (size_t)count * kernel_dtype_bytes(dtype);
    array a = {malloc(bytes + 2 * GUARD), NULL, dtype, count};
    assert_non_null(a.memory);
    memset(a.memory, guard_byte, bytes + 2 * GUARD);
    a.data = a.memory + GUARD;
    return a;
}

static array new_input(kernel_dtype dtype, int64_t count, uint64_t seed)
{
    array a = new_array(dtype, count);
    assert_int_equal(random_normal_cpu(a.data, dtype, count, 0, 1, seed), KERNEL_OK);
    return a;
}

static float *as_f32(const array *a)
{
    float *values = malloc(((size_t)a->count + 1) * sizeof *values);
    assert_non_null(values);
    kernel_to_f32(a->data, a->dtype, a->count, values);
    return values;
}

static void assert_guards(const array *a)
{
    size_t bytes = (size_t)a->count * kernel_dtype_bytes(a->dtype);
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(a->memory[i], guard_byte);
        assert_int_equal(a->memory[GUARD + bytes + i], guard_byte);
    }
}

/* norm(out - reference) / norm(reference), a NaN if out holds one. */
static double relative_error(const array *out, const double *reference)
{
    float *values = as_f32(out);
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < out->count; i++) {
        double d = (double)values[i] - reference[i];
        difference += d * d;
        norm += reference[i] * reference[i];
    }
    free(values);
    return norm == 0 ? sqrt(difference) : sqrt(difference / norm);
}

static double tolerance(kernel_dtype dtype)
{
    return dtype == KERNEL_F32 ? 1e-6 : 4e-3;
}

static double *all_rows(int64_t rows, int64_t columns, int64_t **indices)
{
    double *reference = malloc((size_t)(rows * columns + 1) * sizeof *reference);
    *indices = malloc((size_t)(rows + 1) * sizeof **indices);
    assert_non_null(reference);
    assert_non_null(*indices);
    for (int64_t i = 0; i < rows; i++) (*indices)[i] = i;
    return reference;
}

static int run_variant(const kernel_variant *variant, const void *args)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    void *workspace = bytes ? malloc(bytes) : NULL;
    if (workspace) memset(workspace, guard_byte, bytes);
    int error = variant->run(args, workspace, NULL, NULL);
    free(workspace);
    return error;
}

static void check_forward(const kernel_variant *variant, const embedding_shape *s,
                          kernel_dtype dtype, const int32_t *tokens)
{
    array words = new_input(dtype, s->vocabulary * s->columns, 1);
    array positions = new_input(dtype, s->context * s->columns, 2);
    array out = new_array(dtype, s->rows * s->columns);
    embedding_forward_args args = {*s, dtype, tokens, words.data, positions.data, out.data, NULL};
    int64_t *rows;
    double *reference = all_rows(s->rows, s->columns, &rows);
    float *words_f32 = as_f32(&words), *positions_f32 = as_f32(&positions);
    assert_int_equal(run_variant(variant, &args), KERNEL_OK);
    embedding_forward_reference(s, tokens, words_f32, positions_f32, rows, s->rows, reference);
    assert_true(relative_error(&out, reference) < tolerance(dtype));
    assert_guards(&out);
    free(words_f32), free(positions_f32), free(reference), free(rows);
    free(words.memory), free(positions.memory), free(out.memory);
}

static void check_backward(const kernel_variant *variant, const embedding_shape *s,
                           kernel_dtype dtype, const int32_t *tokens)
{
    array dout = new_input(dtype, s->rows * s->columns, 3);
    array words = new_array(dtype, s->vocabulary * s->columns);
    array positions = new_array(dtype, s->context * s->columns);
    embedding_backward_args args = {*s, dtype, tokens, dout.data, words.data, positions.data, NULL};
    int64_t most = s->vocabulary > s->context ? s->vocabulary : s->context, *rows;
    double *reference = all_rows(most, s->columns, &rows);
    float *dout_f32 = as_f32(&dout);
    assert_int_equal(run_variant(variant, &args), KERNEL_OK);
    embedding_backward_tokens_reference(s, tokens, dout_f32, rows, s->vocabulary, reference);
    assert_true(relative_error(&words, reference) < tolerance(dtype));
    embedding_backward_positions_reference(s, dout_f32, rows, s->context, reference);
    assert_true(relative_error(&positions, reference) < tolerance(dtype));
    assert_guards(&words);
    assert_guards(&positions);
    free(dout_f32), free(reference), free(rows);
    free(dout.memory), free(words.memory), free(positions.memory);
}

typedef void check_function(const kernel_variant *, const embedding_shape *, kernel_dtype,
                            const int32_t *);

static void check_table(kernel_table table, check_function *check, const embedding_shape *s,
                        const int32_t *tokens)
{
    for (size_t i = 0; i < table.count; i++) {
        check(&table.rows[i], s, KERNEL_F32, tokens);
        check(&table.rows[i], s, KERNEL_BF16, tokens);
        check(&table.rows[i], s, KERNEL_F16, tokens);
    }
}

static const embedding_shape odd_shapes[] = {
    {1, 1, 1, 0},      {1, 7, 33, 1},   {127, 31, 31, 16},   {129, 1, 5, 128}, {129, 300, 33, 0},
    {33, 10, 1025, 7}, {7, 50, 8, 100}, {1025, 97, 20, 128}, {31, 31, 1, 31},
    {1025, 1030, 257, 600}, {1100, 1030, 257, 600}, /* several threads' */
};

static void check_odd_shapes(kernel_table table, check_function *check)
{
    for (size_t i = 0; i < sizeof odd_shapes / sizeof *odd_shapes; i++)
        for (int d = 0; d < TOKENS_DISTRIBUTION_COUNT; d++) {
            const embedding_shape *s = &odd_shapes[i];
            int32_t tokens[1100];
            assert_int_equal(
                tokens_fill(tokens, s->rows, s->vocabulary, (tokens_distribution)d, i), KERNEL_OK);
            check_table(table, check, s, tokens);
        }
}

static void test_forward_variants(void **unused)
{
    (void)unused;
    check_odd_shapes(embedding_forward_cpu, check_forward);
}

static void test_backward_variants(void **unused)
{
    (void)unused;
    check_odd_shapes(embedding_backward_cpu, check_backward);
}

/* Every row of dout meets in one row of the table: its first, its last. */
static void test_one_token_repeated(void **unused)
{
    const embedding_shape s = {1000, 12, 17, 128};
    const int32_t words[] = {0, 5, 11};
    (void)unused;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        int32_t tokens[1000];
        for (int row = 0; row < 1000; row++) tokens[row] = words[i];
        check_table(embedding_forward_cpu, check_forward, &s, tokens);
        check_table(embedding_backward_cpu, check_backward, &s, tokens);
    }
}

/* ---- errors ------------------------------------------------------------ */

static void assert_untouched(const array *a)
{
    const unsigned char *bytes = a->data;
    for (size_t i = 0; i < (size_t)a->count * kernel_dtype_bytes(a->dtype); i++)
        assert_int_equal(bytes[i], guard_byte);
}

static void test_token_outside_vocabulary(void **unused)
{
    const int32_t bad[] = {-1, 4, INT32_MAX, INT32_MIN};
    int32_t tokens[] = {0, 3, 0};
    array table = new_input(KERNEL_F32, 4 * 2, 1), positions = new_array(KERNEL_F32, 3 * 2);
    array out = new_array(KERNEL_F32, 4 * 2);
    embedding_forward_args forward = {{3, 4, 2, 0}, KERNEL_F32, tokens, table.data, NULL,
                                      out.data, NULL};
    embedding_backward_args backward = {{3, 4, 2, 3}, KERNEL_F32, tokens, table.data, out.data,
                                        positions.data, NULL};
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tokens[2] = bad[i];
        for (size_t v = 0; v < embedding_forward_cpu.count; v++)
            assert_int_equal(run_variant(&embedding_forward_cpu.rows[v], &forward),
                             KERNEL_ERROR_INDEX);
        for (size_t v = 0; v < embedding_backward_cpu.count; v++)
            assert_int_equal(run_variant(&embedding_backward_cpu.rows[v], &backward),
                             KERNEL_ERROR_INDEX);
    }
    assert_untouched(&out);
    assert_untouched(&positions);
    free(table.memory), free(positions.memory), free(out.memory);
}

static void test_bad_arguments(void **unused)
{
    const embedding_shape bad[] = {{0, 4, 2, 0}, {3, 0, 2, 0}, {3, 4, 0, 0}, {3, 4, 2, -1}};
    const int32_t tokens[] = {0, 1, 2};
    float table[8] = {0}, out[8];
    embedding_forward_args args = {{3, 4, 2, 0}, KERNEL_U8, tokens, table, NULL, out, NULL};
    embedding_backward_args backward = {{3, 4, 2, 0}, KERNEL_U8, tokens, table, out, NULL, NULL};
    (void)unused;
    for (size_t v = 0; v < embedding_forward_cpu.count; v++) {
        const kernel_variant *forward_row = &embedding_forward_cpu.rows[v];
        const kernel_variant *backward_row = &embedding_backward_cpu.rows[v];
        args.dtype = backward.dtype = KERNEL_U8;
        assert_int_equal(run_variant(forward_row, &args), KERNEL_ERROR_ARGUMENT);
        assert_int_equal(run_variant(backward_row, &backward), KERNEL_ERROR_ARGUMENT);
        args.dtype = backward.dtype = KERNEL_F32;
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            args.shape = backward.shape = bad[i];
            assert_int_equal(run_variant(forward_row, &args), KERNEL_ERROR_ARGUMENT);
            assert_int_equal(run_variant(backward_row, &backward), KERNEL_ERROR_ARGUMENT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_bytes),
        cmocka_unit_test(test_backward_bytes),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_formulas_of_bad_shapes),
        cmocka_unit_test(test_tokens_uniform),
        cmocka_unit_test(test_tokens_zipf),
        cmocka_unit_test(test_tokens_seed),
        cmocka_unit_test(test_tokens_edges),
        cmocka_unit_test(test_forward_by_hand),
        cmocka_unit_test(test_backward_by_hand),
        cmocka_unit_test(test_backward_by_finite_differences),
        cmocka_unit_test(test_forward_variants),
        cmocka_unit_test(test_backward_variants),
        cmocka_unit_test(test_one_token_repeated),
        cmocka_unit_test(test_token_outside_vocabulary),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
