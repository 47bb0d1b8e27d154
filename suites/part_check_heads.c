/*
 * part_check_heads.c - checks of attention, and of moving rows to heads and back:
 * see part_check.h.
 */
#include "part_check.h"

#include <stdlib.h>

/* Heads: of each, a row of dim elements a token. */
typedef struct heads {
    const void *memory;
    int64_t count, tokens;             /* heads of a sequence, tokens of a head */
    int64_t first, batch, head, token; /* elements to the first row, and from one to the next */
    int64_t dim;
} heads;

static heads heads_of(const attention_shape *shape, attention_strides strides, const void *memory)
{
    attention_strides s = attention_strides_of(shape, strides);
    return (heads){memory, shape->heads, shape->tokens, 0, s.batch, s.head, s.token,
                   shape->head_dim};
}

/* Of a move, those by themselves and those in the rows. */
static heads heads_apart(const part_heads *m, int part)
{
    int64_t dim = m->padded_dim, head = m->tokens * dim;
    return (heads){m->heads_of[part], m->heads, m->tokens, 0, m->heads * head, head, dim, dim};
}

static heads heads_in_rows(const part_heads *m, int part)
{
    int64_t width = m->heads * m->head_dim, row = m->parts * width;
    return (heads){m->rows, m->heads, m->tokens, part * width, m->tokens * row, m->head_dim, row,
                   m->head_dim};
}

/* Where the row of a token of the index-th head (over all sequences) starts. */
static int64_t at_head(heads h, int64_t index, int64_t token)
{
    return h.first + index / h.count * h.batch + index % h.count * h.head + token * h.token;
}

/* All tokens of a head behind each other, to be freed. */
static float *get_head(part_checker *c, heads h, int64_t index)
{
    int64_t step = h.token == h.dim ? h.tokens : 1;
    float *values = part_check_room(c, h.tokens * h.dim, sizeof *values);
    for (int64_t t = 0; t < h.tokens && c->code == 0; t += step)
        c->code = suite_fetch(c->bench, h.memory, c->dtype, at_head(h, index, t), step * h.dim,
                              values + t * h.dim);
    return values;
}

/* ---- moves -------------------------------------------------------------------------------- */

/* Sampled tokens of `to`, which are those of `from` times factor, and zeros
 * where `to` is wider. */
static void check_moved(part_checker *c, const part_heads *m, heads from, heads to, double factor)
{
    part_sample rows = part_sample_of(c, m->batch * m->tokens);
    double *expected = part_check_doubles(c, to.dim);
    suite_error error = {0, 0};
    for (int64_t i = 0; i < rows.count * m->heads && c->code == 0; i++) {
        int64_t row = rows.at[i / m->heads], token = row % m->tokens;
        int64_t head = row / m->tokens * m->heads + i % m->heads;
        float *values = part_check_get(c, from.memory, at_head(from, head, token), m->head_dim);
        for (int64_t k = 0; k < m->head_dim && c->code == 0; k++)
            expected[k] = factor * (double)values[k];
        part_check_compare(c, to.memory, at_head(to, head, token), to.dim, expected, &error);
        free(values);
    }
    free(expected);
    part_check_judge(c, &error, 1);
}

void part_check_heads_moved(part_checker *c, const part_heads *m)
{
    int64_t tokens = m->batch * m->tokens;
    for (int part = 0; part < m->parts; part++) {
        heads apart = heads_apart(m, part), in_rows = heads_in_rows(m, part);
        double factor = part == 0 ? (double)m->first_factor : 1;
        check_moved(c, m, m->splits ? in_rows : apart, m->splits ? apart : in_rows, factor);
        if (m->splits) part_check_written(c, apart.memory, tokens * m->heads * m->padded_dim);
    }
    if (!m->splits) part_check_written(c, m->rows, tokens * m->parts * m->heads * m->head_dim);
}

/* ---- attention ---------------------------------------------------------------------------- */

/* The sampled heads, and sampled tokens of each. */
typedef struct head_sample {
    int64_t heads[PART_CHECK_HEADS], head_count;
    part_sample tokens;
} head_sample;

static head_sample sample_heads(const part_checker *c, const attention_shape *s)
{
    head_sample sample;
    sample.head_count = suite_sample_indices(gpubench_seed(c->bench), s->batch * s->heads,
                                             PART_CHECK_HEADS, sample.heads);
    sample.tokens = part_sample_of(c, s->tokens);
    return sample;
}

/* A token's row of attention's: weighted by the keys that it sees, which its
 * squares fall with, lest the first hide the errors of the last. */
static void compare_token(part_checker *c, heads result, int64_t head, int64_t token,
                          const double *reference, suite_error *error)
{
    float *values = part_check_get(c, result.memory, at_head(result, head, token), result.dim);
    if (c->code == 0)
        suite_compare_weighted(error, values, reference, result.dim, (double)(token + 1));
    free(values);
}

void part_check_attention(part_checker *c, const attention_forward_args *a)
{
    const attention_shape *s = &a->shape;
    head_sample k = sample_heads(c, s);
    heads result = heads_of(s, a->out_strides, a->out);
    double *out = part_check_doubles(c, PART_CHECK_ROWS * s->head_dim), lse[PART_CHECK_ROWS];
    suite_error error = {0, 0}, lse_error = {0, 0};
    for (int64_t i = 0; i < k.head_count && c->code == 0; i++) {
        int64_t head = k.heads[i];
        float *query = get_head(c, heads_of(s, a->qkv_strides, a->q), head);
        float *key = get_head(c, heads_of(s, a->qkv_strides, a->k), head);
        float *value = get_head(c, heads_of(s, a->qkv_strides, a->v), head);
        if (c->code == 0)
            attention_forward_reference(s, query, key, value, k.tokens.at, k.tokens.count, out,
                                        lse);
        for (int64_t t = 0; t < k.tokens.count; t++) {
            int64_t token = k.tokens.at[t];
            compare_token(c, result, head, token, out + t * s->head_dim, &error);
            part_check_compare_f32(c, a->lse, head * s->tokens + token, 1, lse + t, &lse_error);
        }
        free(query);
        free(key);
        free(value);
    }
    free(out);
    part_check_judge(c, &error, 1);
    part_check_judge(c, &lse_error, 1);
    part_check_written_f32(c, a->lse, s->batch * s->heads * s->tokens);
    part_check_written(c, a->out, s->batch * s->heads * s->tokens * s->head_dim);
}

/* One head: gradients has PART_CHECK_ROWS rows each of dq, dk and dv. */
static void check_head_gradient(part_checker *c, const attention_backward_args *a, int64_t head,
                                const part_sample *tokens, double *gradients, suite_error *error)
{
    const attention_shape *s = &a->shape;
    const void *results[] = {a->dq, a->dk, a->dv};
    int64_t part = PART_CHECK_ROWS * s->head_dim;
    float *query = get_head(c, heads_of(s, a->qkv_strides, a->q), head);
    float *key = get_head(c, heads_of(s, a->qkv_strides, a->k), head);
    float *value = get_head(c, heads_of(s, a->qkv_strides, a->v), head);
    float *out = get_head(c, heads_of(s, a->out_strides, a->out), head);
    float *dout = get_head(c, heads_of(s, a->out_strides, a->dout), head);
    float *lse = part_check_get_f32(c, a->lse, head * s->tokens, s->tokens);
    attention_backward_head inputs = {query, key, value, out, dout, lse};
    if (c->code == 0)
        attention_backward_reference(s, &inputs, tokens->at, tokens->count, gradients,
                                     gradients + part, gradients + 2 * part);
    for (int64_t i = 0; i < 3 * tokens->count; i++) {
        int64_t t = i / 3, which = i % 3;
        compare_token(c, heads_of(s, a->qkv_strides, results[which]), head, tokens->at[t],
                      gradients + which * part + t * s->head_dim, &error[which]);
    }
    free(query);
    free(key);
    free(value);
    free(out);
    free(dout);
    free(lse);
}

/* Strided, they lie between each other from dq on: together they fill the rows. */
static void check_gradients_written(part_checker *c, const attention_backward_args *a)
{
    const attention_shape *s = &a->shape;
    int64_t each = s->batch * s->heads * s->tokens * s->head_dim;
    if (attention_backward_is_strided(a)) {
        part_check_written(c, a->dq, 3 * each);
        return;
    }
    part_check_written(c, a->dq, each);
    part_check_written(c, a->dk, each);
    part_check_written(c, a->dv, each);
}

void part_check_attention_gradient(part_checker *c, const attention_backward_args *a)
{
    head_sample k = sample_heads(c, &a->shape);
    double *gradients = part_check_doubles(c, 3 * PART_CHECK_ROWS * a->shape.head_dim);
    suite_error error[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (int64_t i = 0; i < k.head_count && c->code == 0; i++)
        check_head_gradient(c, a, k.heads[i], &k.tokens, gradients, error);
    free(gradients);
    if (a->shape.tokens == 1) /* dq and dk of a single token are 0: held against dv */
        error[0].reference2 = error[1].reference2 = error[2].reference2;
    for (int i = 0; i < 3; i++) part_check_judge(c, &error[i], 3);
    check_gradients_written(c, a);
}
