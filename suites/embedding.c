/*
 * embedding.c - the embedding suite: looking up tokens and positions, and the
 * gradient of both tables, for tokens that are uniform or follow Zipf's law.
 */
#include "suite.h"

#include "../kernels/embedding/embedding.h"
#include "../kernels/common/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Batch 4, context 128, vocabulary 10,000 and batch 8, context 1024, vocabulary
 * 50,257 are added for the width of each model. These are what peers measured:
 * no positions, uniform tokens. */
static const embedding_shape peer_shapes[] = {
    {512, 10000, 768, 0}, {512, 10000, 2560, 0}, {8192, 10000, 768, 0}, {8192, 50257, 768, 0},
    {32768, 50257, 1600, 0},
};

static const embedding_shape cpu_shape = {512, 10000, 768, 128};
static const embedding_shape cpu_odd_shape = {2048, 5000, 129, 0};

/* The kernels' arguments, and how the tokens were made. The arguments stand
 * first, so that a pointer to the case is one to them. */
typedef struct forward_case {
    embedding_forward_args args;
    tokens_distribution distribution;
} forward_case;

typedef struct backward_case {
    embedding_backward_args args;
    tokens_distribution distribution;
} backward_case;

/* ---- tokens ----------------------------------------------------------------- */

/* The same for every variant and for verify. Freed by the caller; NULL where
 * memory does not suffice. */
static int32_t *make_tokens(const gpubench *bench, const embedding_shape *s,
                            tokens_distribution distribution)
{
    int32_t *tokens = malloc((size_t)s->rows * sizeof *tokens);
    if (tokens && tokens_fill(tokens, s->rows, s->vocabulary, distribution,
                              gpubench_seed(bench)) != KERNEL_OK) {
        free(tokens);
        return NULL;
    }
    return tokens;
}

/* Tokens, and a flag that is 0, where the variant wants them. */
static int build_tokens(gpubench *bench, const embedding_shape *s,
                        tokens_distribution distribution, const int32_t **tokens, int **error_flag)
{
    const int clear = 0;
    size_t bytes = (size_t)s->rows * sizeof **tokens;
    void *memory = gpubench_alloc(bench, bytes, GPUBENCH_DEVICE);
    int32_t *made = make_tokens(bench, s, distribution);
    int code = made ? 0 : KERNEL_ERROR_MEMORY;
    *error_flag = memory ? gpubench_alloc(bench, sizeof clear, GPUBENCH_DEVICE) : NULL;
    if (!*error_flag)
        code = GPUBENCH_OOM;
    if (code == 0)
        code = gpubench_copy(bench, memory, made, bytes);
    if (code == 0)
        code = gpubench_copy(bench, *error_flag, &clear, sizeof clear);
    free(made);
    *tokens = memory;
    return code;
}

static int check_error_flag(gpubench *bench, const int *error_flag)
{
    int flag = 0, code = gpubench_copy(bench, &flag, error_flag, sizeof flag);
    if (code == 0 && flag != 0)
        code = gpubench_fail(bench, GPUBENCH_MISMATCH, "reported a token outside the vocabulary");
    return code;
}

/* ---- forward ---------------------------------------------------------------- */

static int build_forward(suite_case *c, gpubench *bench)
{
    forward_case *f = c->args;
    embedding_forward_args *args = &f->args;
    const embedding_shape *s = &args->shape;
    void *token_table, *position_table = NULL;
    int code = build_tokens(bench, s, f->distribution, &args->tokens, &args->error_flag);
    if (code == 0)
        code = suite_input(bench, c->dtype, s->vocabulary * s->columns, 1, 0, &token_table);
    if (code == 0 && s->context > 0)
        code = suite_input(bench, c->dtype, s->context * s->columns, 1, 1, &position_table);
    if (code == 0)
        code = suite_output(bench, c->dtype, s->rows * s->columns, &args->out);
    if (code != 0)
        return code;
    args->token_table = token_table;
    args->position_table = position_table;
    return 0;
}

enum { CHECKED_ROWS = 256 };

/* Room for the rows that a check looks at, [CHECKED_ROWS, columns] each. */
typedef struct row_check {
    float *token_rows, *position_rows, *out_rows;
    double *reference;
    int32_t *tokens;
} row_check;

static int fetch_row(gpubench *bench, const embedding_shape *s, const void *table,
                     kernel_dtype dtype, int64_t row, float *values)
{
    return suite_fetch(bench, table, dtype, row * s->columns, s->columns, values);
}

/* The chosen rows of out against the oracle, which gets the table rows that
 * they need as a small problem of its own: row i has token i and position i. */
static int check_rows(const suite_case *c, gpubench *bench, const row_check *r)
{
    const embedding_forward_args *args = &((const forward_case *)c->args)->args;
    const embedding_shape *s = &args->shape;
    int64_t rows[CHECKED_ROWS], identity[CHECKED_ROWS];
    int32_t small_tokens[CHECKED_ROWS];
    int64_t count = suite_sample_indices(gpubench_seed(bench), s->rows, CHECKED_ROWS, rows);
    suite_error error = {0, 0};
    int code = 0;
    for (int64_t i = 0; i < count && code == 0; i++) {
        int64_t offset = i * s->columns;
        identity[i] = i;
        small_tokens[i] = (int32_t)i;
        code = fetch_row(bench, s, args->token_table, c->dtype, r->tokens[rows[i]],
                         r->token_rows + offset);
        if (code == 0 && s->context > 0)
            code = fetch_row(bench, s, args->position_table, c->dtype, rows[i] % s->context,
                             r->position_rows + offset);
        if (code == 0)
            code = fetch_row(bench, s, args->out, c->dtype, rows[i], r->out_rows + offset);
    }
    if (code != 0)
        return code;
    embedding_shape small = {count, count, s->columns, s->context > 0 ? count : 0};
    embedding_forward_reference(&small, small_tokens, r->token_rows, r->position_rows, identity,
                                count, r->reference);
    suite_compare(&error, r->out_rows, r->reference, count * s->columns);
    return suite_check(bench, &error, c->dtype, 1);
}

static int verify_forward(suite_case *c, gpubench *bench)
{
    const forward_case *f = c->args;
    const embedding_shape *s = &f->args.shape;
    size_t elements = (size_t)s->columns * CHECKED_ROWS;
    float *floats = malloc(3 * elements * sizeof *floats);
    double *reference = malloc(elements * sizeof *reference);
    int32_t *tokens = make_tokens(bench, s, f->distribution);
    int code = floats && reference && tokens ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0) {
        row_check r = {floats, floats + elements, floats + 2 * elements, reference, tokens};
        code = check_rows(c, bench, &r);
    }
    free(floats);
    free(reference);
    free(tokens);
    if (code == 0)
        code = check_error_flag(bench, f->args.error_flag);
    return code ? code : suite_check_written(bench, f->args.out, c->dtype, s->rows * s->columns);
}

/* ---- backward --------------------------------------------------------------- */

static int build_backward(suite_case *c, gpubench *bench)
{
    backward_case *b = c->args;
    embedding_backward_args *args = &b->args;
    const embedding_shape *s = &args->shape;
    void *dout;
    int code = build_tokens(bench, s, b->distribution, &args->tokens, &args->error_flag);
    if (code == 0)
        code = suite_input(bench, c->dtype, s->rows * s->columns, 1, 2, &dout);
    if (code == 0)
        code = suite_output(bench, c->dtype, s->vocabulary * s->columns, &args->dtoken_table);
    if (code == 0 && s->context > 0)
        code = suite_output(bench, c->dtype, s->context * s->columns, &args->dposition_table);
    if (code == 0)
        args->dout = dout;
    return code;
}

enum { CHECKED_LINES = 128 };

/* Lines of a gradient: what they are sums of, their numbers, what the oracle
 * says, what came out. */
typedef struct line_check {
    const embedding_shape *shape;
    int32_t *tokens;
    float *dout;
    int64_t lines[CHECKED_LINES];
    int64_t count;
    double *reference;
    float *out;
} line_check;

static void expect_tokens(void *context, int64_t begin, int64_t end)
{
    const line_check *k = context;
    embedding_backward_tokens_reference(k->shape, k->tokens, k->dout, k->lines + begin,
                                        end - begin, k->reference + begin * k->shape->columns);
}

static void expect_positions(void *context, int64_t begin, int64_t end)
{
    const line_check *k = context;
    embedding_backward_positions_reference(k->shape, k->dout, k->lines + begin, end - begin,
                                           k->reference + begin * k->shape->columns);
}

static int compare_lines(const suite_case *c, gpubench *bench, const line_check *k,
                         const void *table, int64_t columns)
{
    suite_error error = {0, 0};
    for (int64_t i = 0; i < k->count; i++) {
        int code = suite_fetch(bench, table, c->dtype, k->lines[i] * columns, columns, k->out);
        if (code != 0)
            return code;
        suite_compare(&error, k->out, k->reference + i * columns, columns);
    }
    return suite_check(bench, &error, c->dtype, 1);
}

/* Half of the lines are the tokens of some rows, frequent ones among them, the
 * other half any of the table, most of them zeros. */
static void choose_tokens(const gpubench *bench, line_check *k)
{
    uint64_t seed = gpubench_seed(bench);
    int64_t used = suite_sample_indices(seed, k->shape->rows, CHECKED_LINES / 2, k->lines);
    for (int64_t i = 0; i < used; i++)
        k->lines[i] = k->tokens[k->lines[i]];
    k->count = used + suite_sample_indices(seed, k->shape->vocabulary, CHECKED_LINES / 2,
                                           k->lines + used);
}

static int check_lines(const suite_case *c, gpubench *bench, line_check *k)
{
    const embedding_backward_args *args = &((const backward_case *)c->args)->args;
    const embedding_shape *s = &args->shape;
    int code;
    choose_tokens(bench, k);
    parallel_for(k->count, 1, expect_tokens, k);
    code = compare_lines(c, bench, k, args->dtoken_table, s->columns);
    if (code != 0 || s->context == 0)
        return code;
    k->count = suite_sample_indices(gpubench_seed(bench), s->context, CHECKED_LINES, k->lines);
    parallel_for(k->count, 1, expect_positions, k);
    return compare_lines(c, bench, k, args->dposition_table, s->columns);
}

static int verify_lines(const suite_case *c, gpubench *bench)
{
    const backward_case *b = c->args;
    const embedding_shape *s = &b->args.shape;
    int64_t elements = s->rows * s->columns;
    line_check k = {.shape = s, .tokens = make_tokens(bench, s, b->distribution)};
    k.dout = malloc((size_t)elements * sizeof *k.dout);
    k.out = malloc((size_t)s->columns * sizeof *k.out);
    k.reference = malloc((size_t)s->columns * CHECKED_LINES * sizeof *k.reference);
    int code = k.dout && k.out && k.reference && k.tokens ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0)
        code = suite_fetch(bench, b->args.dout, c->dtype, 0, elements, k.dout);
    if (code == 0)
        code = check_lines(c, bench, &k);
    free(k.dout);
    free(k.out);
    free(k.reference);
    free(k.tokens);
    return code;
}

static int verify_backward(suite_case *c, gpubench *bench)
{
    const embedding_backward_args *args = &((const backward_case *)c->args)->args;
    const embedding_shape *s = &args->shape;
    int code = verify_lines(c, bench);
    if (code == 0)
        code = check_error_flag(bench, args->error_flag);
    if (code == 0)
        code = suite_check_written(bench, args->dtoken_table, c->dtype,
                                   s->vocabulary * s->columns);
    if (code == 0 && s->context > 0)
        code = suite_check_written(bench, args->dposition_table, c->dtype,
                                   s->context * s->columns);
    return code;
}

/* ---- shapes ----------------------------------------------------------------- */

static void queue_forward(suite *s, const embedding_shape *shape, kernel_dtype dtype,
                          tokens_distribution distribution, const char *params, int64_t distinct)
{
    static const suite_operation forward = {.name = "embedding.forward",
                                            .cpu = &embedding_forward_cpu,
                                            .cuda = SUITE_CUDA(embedding_forward_cuda),
                                            .args_bytes = sizeof(forward_case),
                                            .build = build_forward,
                                            .verify = verify_forward};
    forward_case f = {.args = {.shape = *shape, .dtype = dtype}, .distribution = distribution};
    suite_queue(s, &forward, dtype, params, &f, embedding_forward_bytes(shape, dtype, distinct),
                embedding_forward_flops(shape));
}

static void queue_backward(suite *s, const embedding_shape *shape, kernel_dtype dtype,
                           tokens_distribution distribution, const char *params)
{
    static const suite_operation backward = {.name = "embedding.backward",
                                             .cpu = &embedding_backward_cpu,
                                             .cuda = SUITE_CUDA(embedding_backward_cuda),
                                             .args_bytes = sizeof(backward_case),
                                             .build = build_backward,
                                             .verify = verify_backward};
    backward_case b = {.args = {.shape = *shape, .dtype = dtype}, .distribution = distribution};
    suite_queue(s, &backward, dtype, params, &b, embedding_backward_bytes(shape, dtype),
                embedding_backward_flops(shape));
}

static void queue_shape(suite *s, const embedding_shape *shape, tokens_distribution distribution)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};
    int32_t *tokens = make_tokens(s->bench, shape, distribution);
    int64_t distinct = tokens ? tokens_count_distinct(tokens, shape->rows, shape->vocabulary) : -1;
    char params[160];
    free(tokens);
    if (distinct < 0) {
        gpubench_usage_error(s->bench, "--shape: no memory for the tokens");
        return;
    }
    snprintf(params, sizeof params, "n=%lld v=%lld c=%lld t=%lld tokens=%s",
             (long long)shape->rows, (long long)shape->vocabulary, (long long)shape->columns,
             (long long)shape->context, tokens_distribution_name(distribution));
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        queue_forward(s, shape, dtypes[i], distribution, params, distinct);
        queue_backward(s, shape, dtypes[i], distribution, params);
    }
}

static void queue_both(suite *s, embedding_shape shape)
{
    queue_shape(s, &shape, TOKENS_UNIFORM);
    queue_shape(s, &shape, TOKENS_ZIPF);
}

static void queue_defaults(suite *s)
{
    if (!gpubench_is_cuda(s->bench)) {
        queue_both(s, cpu_shape);
        queue_shape(s, &cpu_odd_shape, TOKENS_UNIFORM);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        queue_both(s, (embedding_shape){4 * 128, 10000, suite_models[i].d_model, 128});
        if (suite_fills_gpu(&suite_models[i]))
            queue_both(s, (embedding_shape){8 * 1024, 50257, suite_models[i].d_model, 1024});
    }
    for (size_t i = 0; i < sizeof peer_shapes / sizeof *peer_shapes; i++)
        queue_shape(s, &peer_shapes[i], TOKENS_UNIFORM);
}

static void queue_given(suite *s, const int64_t *values)
{
    embedding_shape shape = {values[0], values[1], values[2], values[3]};
    if (embedding_backward_flops(&shape) == 0 || values[4] >= TOKENS_DISTRIBUTION_COUNT)
        gpubench_usage_error(s->bench, "--shape: n, v and c must be at least 1, n and v below "
                                       "2^31, c at most 2^30, zipf 0 or 1");
    else
        queue_shape(s, &shape, values[4] ? TOKENS_ZIPF : TOKENS_UNIFORM);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"n", "v", "c", "t", "zipf"};
    suite s = suite_open("embedding",
                         "'n=512 v=10000 c=768 t=128 zipf=0; ...' instead of the defaults: "
                         "t=0 is no positions, zipf=1 Zipf's law",
                         argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
