/*
 * backward.c - attention's backward pass on the host: its formulas,
 * the oracle, and two variants of one thread that any compiler can vectorize;
 * backward_simd.c and blas.c have the faster ones.
 *
 * 1. naive  one head at a time: the probabilities and their gradient as two
 *           matrices [tokens, tokens] in memory, five products over them.
 * 2. tiled  64 keys against 64 rows at a time, probabilities recomputed from
 *           lse and never leaving the cache (Dao et al., "FlashAttention",
 *           2022, algorithm 4), products in register blocks.
 *
 * Both are bound by arithmetic.
 */
#include "attention.h"

#include <math.h>
#include <string.h>

#include "../common/convert.h"
#include "simd.h"
#include "tile.h"
#include "../common/element.h"
#include "../linear/linear.h"

/* ---- formulas ---------------------------------------------------------- */

uint64_t attention_backward_flops(const attention_shape *shape)
{
    uint64_t products = saturating_product(element_count(shape), (uint64_t)shape->tokens);
    return saturating_product(products, shape->causal ? 5 : 10);
}

uint64_t attention_backward_bytes(const attention_shape *shape, kernel_dtype dtype)
{
    return saturating_product(element_count(shape), 8 * kernel_dtype_bytes(dtype));
}

/* ---- oracle ------------------------------------------------------------ */

/* The probability of `key` in row `row`, and its gradient in the scaled score;
 * delta is the row's. */
static double pair_gradient(const attention_shape *s, const attention_backward_head *h, int64_t row,
                            int64_t key, double delta, double *probability)
{
    int64_t d = s->head_dim;
    double score = score_in_double(s, h->q + row * d, h->k + key * d);
    *probability = exp(score - (double)h->lse[row]);
    return *probability * (oracle_dot(h->dout + row * d, h->v + key * d, d) - delta);
}

static double delta_of(const attention_shape *s, const attention_backward_head *h, int64_t row)
{
    return oracle_dot(h->dout + row * s->head_dim, h->out + row * s->head_dim, s->head_dim);
}

static void reference_dq_row(const attention_shape *s, const attention_backward_head *h,
                             int64_t row, double *dq)
{
    double delta = delta_of(s, h, row), probability, scale = 1 / sqrt((double)s->head_dim);
    for (int64_t c = 0; c < s->head_dim; c++) dq[c] = 0;
    for (int64_t key = 0; key < visible_keys(s, row); key++)
        oracle_add_scaled(s->head_dim, scale * pair_gradient(s, h, row, key, delta, &probability),
                          h->k + key * s->head_dim, dq);
}

/* What row `row` adds to dk and dv of `key`. */
static void add_key_gradients(const attention_shape *s, const attention_backward_head *h,
                              int64_t row, int64_t key, double delta, double *dk, double *dv)
{
    int64_t d = s->head_dim;
    double probability, gradient = pair_gradient(s, h, row, key, delta, &probability);
    oracle_add_scaled(d, gradient / sqrt((double)d), h->q + row * d, dk);
    oracle_add_scaled(d, probability, h->dout + row * d, dv);
}

void attention_backward_reference(const attention_shape *shape,
                                  const attention_backward_head *head, const int64_t *rows,
                                  int64_t count, double *dq, double *dk, double *dv)
{
    int64_t d = shape->head_dim;
    for (int64_t i = 0; i < count; i++) reference_dq_row(shape, head, rows[i], dq + i * d);
    for (int64_t i = 0; i < count * d; i++) dk[i] = dv[i] = 0;
    for (int64_t row = 0; row < shape->tokens; row++) {
        double delta = delta_of(shape, head, row);
        for (int64_t i = 0; i < count; i++)
            if (rows[i] < visible_keys(shape, row))
                add_key_gradients(shape, head, row, rows[i], delta, dk + i * d, dv + i * d);
    }
}

/* ---- what both variants share ------------------------------------------ */

/* One head's slices of the arguments. */
typedef struct head {
    const void *q, *k, *v, *out, *dout;
    const float *lse;
    void *dq, *dk, *dv;
    const attention_shape *shape;
    kernel_dtype dtype;
    float scale;
} head;

static head head_at(const attention_backward_args *a, int64_t index)
{
    const attention_shape *s = &a->shape;
    size_t offset = (size_t)(index * s->tokens * s->head_dim) * kernel_dtype_bytes(a->dtype);
    return (head){.q = (const char *)a->q + offset,
                  .k = (const char *)a->k + offset,
                  .v = (const char *)a->v + offset,
                  .out = (const char *)a->out + offset,
                  .dout = (const char *)a->dout + offset,
                  .lse = a->lse + index * s->tokens,
                  .dq = (char *)a->dq + offset,
                  .dk = (char *)a->dk + offset,
                  .dv = (char *)a->dv + offset,
                  .shape = s,
                  .dtype = a->dtype,
                  .scale = (float)(1.0 / sqrt((double)s->head_dim))};
}

typedef void head_function(const head *h, float *workspace);

static int run_heads(const attention_backward_args *a, void *workspace, head_function *run_head)
{
    if (!is_valid(&a->shape) || attention_backward_is_strided(a)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->shape.batch * a->shape.heads; i++) {
        head h = head_at(a, i);
        run_head(&h, workspace);
    }
    return KERNEL_OK;
}

static float dot(int64_t n, const float *a, const float *b)
{
    float sum = 0;
    for (int64_t c = 0; c < n; c++) sum += a[c] * b[c];
    return sum;
}

/* ---- naive ------------------------------------------------------------- */

/* A head's f32 copies, [tokens, head_dim] each, and its two matrices. */
typedef struct naive_head_memory {
    float *q, *k, *v, *out, *dout, *dq, *dk, *dv;
    float *transposed;                /* k, then v: [head_dim, tokens] */
    float *probabilities, *gradients; /* [tokens, tokens]; gradients of the scaled scores */
} naive_head_memory;

static size_t naive_workspace(const void *args)
{
    const attention_shape *s = &((const attention_backward_args *)args)->shape;
    uint64_t floats_per_token = saturating_product(9, (uint64_t)s->head_dim) +
                                saturating_product(2, (uint64_t)s->tokens);
    return workspace_of(saturating_product(floats_per_token, (uint64_t)s->tokens));
}

static naive_head_memory naive_memory_in(float *workspace, const attention_shape *s)
{
    int64_t operand = s->tokens * s->head_dim;
    naive_head_memory m = {.q = workspace};
    float **next[] = {&m.k, &m.v, &m.out, &m.dout, &m.dq, &m.dk, &m.dv, &m.transposed,
                      &m.probabilities};
    for (int64_t i = 0; i < 9; i++) *next[i] = workspace + (i + 1) * operand;
    m.gradients = m.probabilities + s->tokens * s->tokens;
    return m;
}

/* c[t, t] = factor * a[t, d] (b[t, d])^T */
static void naive_product(const attention_shape *s, float factor, const float *a, const float *b,
                          float *transposed, float *c)
{
    int64_t t = s->tokens, d = s->head_dim;
    transpose(b, t, d, transposed, t);
    memset(c, 0, (size_t)(t * t) * sizeof *c);
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < d; j++)
            add_scaled(t, factor * a[i * d + j], transposed + j * t, c + i * t);
}

/* Scores become probabilities, products dout v^T their scores' gradients. */
static void naive_gradients(const head *h, const naive_head_memory *m)
{
    int64_t t = h->shape->tokens, d = h->shape->head_dim;
    for (int64_t i = 0; i < t; i++) {
        float *p = m->probabilities + i * t, *ds = m->gradients + i * t;
        float delta = dot(d, m->dout + i * d, m->out + i * d);
        int64_t keys = visible_keys(h->shape, i);
        for (int64_t j = 0; j < keys; j++) {
            p[j] = expf(p[j] - h->lse[i]);
            ds[j] = p[j] * (ds[j] - delta);
        }
        for (int64_t j = keys; j < t; j++) p[j] = ds[j] = 0;
    }
}

static void naive_head(const head *h, float *workspace)
{
    int64_t t = h->shape->tokens, d = h->shape->head_dim;
    naive_head_memory m = naive_memory_in(workspace, h->shape);
    const void *inputs[] = {h->q, h->k, h->v, h->out, h->dout};
    float *copies[] = {m.q, m.k, m.v, m.out, m.dout};
    for (int i = 0; i < 5; i++) kernel_to_f32(inputs[i], h->dtype, t * d, copies[i]);
    naive_product(h->shape, h->scale, m.q, m.k, m.transposed, m.probabilities);
    naive_product(h->shape, 1, m.dout, m.v, m.transposed, m.gradients);
    naive_gradients(h, &m);
    memset(m.dq, 0, (size_t)(3 * t * d) * sizeof *m.dq); /* dk and dv lie behind it */
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < t; j++) {
            float p = m.probabilities[i * t + j], ds = h->scale * m.gradients[i * t + j];
            add_scaled(d, p, m.dout + i * d, m.dv + j * d);
            add_scaled(d, ds, m.q + i * d, m.dk + j * d);
            add_scaled(d, ds, m.k + j * d, m.dq + i * d);
        }
    kernel_from_f32(m.dq, h->dtype, t * d, h->dq);
    kernel_from_f32(m.dk, h->dtype, t * d, h->dk);
    kernel_from_f32(m.dv, h->dtype, t * d, h->dv);
}

static int run_naive(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_heads(args, workspace, naive_head);
}

/* ---- tiled ------------------------------------------------------------- */

/* The working set of 64 keys against 64 rows, f32. dim is padded_dim; columns
 * beyond head_dim and rows beyond the last token are 0. */
typedef struct tile {
    float *k, *v, *dk, *dv;           /* [TILE_KEYS, dim] */
    float *k_transposed;              /* [dim, TILE_KEYS]: keys are vector lanes */
    float *v_transposed;              /* [dim, TILE_KEYS] */
    float *q, *dout, *out;            /* [TILE_ROWS, dim] */
    float *probabilities, *gradients; /* [TILE_ROWS, TILE_KEYS] */
    float *transposed;                /* [TILE_KEYS, TILE_ROWS] */
    float *rows;                      /* as loaded: [64, head_dim] */
    float *dq;                        /* of the whole head: [tokens rounded up, dim] */
} tile;

enum { TILE_OPERANDS = 10, TILE_MATRICES = 3 };

static int64_t padded_tokens(const attention_shape *s)
{
    return s->tokens / TILE_ROWS * TILE_ROWS + (s->tokens % TILE_ROWS ? TILE_ROWS : 0);
}

static size_t tiled_workspace(const void *args)
{
    const attention_shape *s = &((const attention_backward_args *)args)->shape;
    uint64_t rows = (uint64_t)padded_tokens(s) + TILE_OPERANDS * TILE_ROWS;
    uint64_t operands = saturating_product(rows, (uint64_t)padded_dim(s->head_dim));
    return workspace_of(operands + TILE_MATRICES * TILE_ROWS * TILE_KEYS);
}

static tile tile_in(float *workspace, int64_t dim)
{
    int64_t operand = TILE_ROWS * dim, matrix = TILE_ROWS * TILE_KEYS;
    tile w = {.k = workspace};
    float **operands[] = {&w.v, &w.dk, &w.dv, &w.k_transposed, &w.v_transposed, &w.q, &w.dout,
                          &w.out, &w.rows, &w.probabilities};
    for (int64_t i = 0; i < TILE_OPERANDS; i++) *operands[i] = workspace + (i + 1) * operand;
    w.gradients = w.probabilities + matrix;
    w.transposed = w.gradients + matrix;
    w.dq = w.transposed + matrix;
    return w;
}

/* `count` rows of a [tokens, head_dim] operand from row `begin`, padded. */
static void load_tile(const head *h, const tile *w, const void *src, int64_t begin, int64_t count,
                      float *dst)
{
    int64_t d = h->shape->head_dim, dim = padded_dim(d);
    size_t offset = (size_t)(begin * d) * kernel_dtype_bytes(h->dtype);
    kernel_to_f32((const char *)src + offset, h->dtype, count * d, w->rows);
    memset(dst, 0, (size_t)(TILE_ROWS * dim) * sizeof *dst);
    for (int64_t i = 0; i < count; i++)
        memcpy(dst + i * dim, w->rows + i * d, (size_t)d * sizeof *dst);
}

static void store_tile(const head *h, const tile *w, const float *src, float factor, int64_t begin,
                       int64_t count, void *dst)
{
    int64_t d = h->shape->head_dim, dim = padded_dim(d);
    size_t offset = (size_t)(begin * d) * kernel_dtype_bytes(h->dtype);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < d; c++) w->rows[i * d + c] = factor * src[i * dim + c];
    kernel_from_f32(w->rows, h->dtype, count * d, (char *)dst + offset);
}

/* The first `visible` elements of a row of scores and of dout v^T become
 * probabilities and gradients, the others 0. */
static void row_gradients(float *p, float *ds, int64_t visible, float log2_scale, float lse,
                          float delta)
{
    const float log2_e = 1.44269504088896340736f;
    for (int64_t j = 0; j < TILE_KEYS; j++)
        p[j] = exp2_nonpositive(p[j] * log2_scale - lse * log2_e);
    for (int64_t j = visible; j < TILE_KEYS; j++) p[j] = 0;
    for (int64_t j = 0; j < TILE_KEYS; j++) ds[j] = p[j] * (ds[j] - delta);
}

static void tile_gradients(const head *h, const tile *w, int64_t row, int64_t rows, int64_t key)
{
    const float log2_e = 1.44269504088896340736f;
    const attention_shape *s = h->shape;
    int64_t dim = padded_dim(s->head_dim);
    for (int64_t i = 0; i < rows; i++) {
        int64_t visible = at_most(visible_keys(s, row + i) - key, TILE_KEYS);
        row_gradients(w->probabilities + i * TILE_KEYS, w->gradients + i * TILE_KEYS,
                      visible > 0 ? visible : 0, h->scale * log2_e, h->lse[row + i],
                      dot(s->head_dim, w->dout + i * dim, w->out + i * dim));
    }
    size_t rest = (size_t)((TILE_ROWS - rows) * TILE_KEYS) * sizeof *w->gradients;
    memset(w->probabilities + rows * TILE_KEYS, 0, rest);
    memset(w->gradients + rows * TILE_KEYS, 0, rest);
}

/* What the tile's keys and the rows from `row` on give each other. */
static void tiled_pair(const head *h, const tile *w, int64_t row, int64_t key)
{
    const attention_shape *s = h->shape;
    int64_t dim = padded_dim(s->head_dim), rows = at_most(s->tokens - row, TILE_ROWS);
    load_tile(h, w, h->q, row, rows, w->q);
    load_tile(h, w, h->dout, row, rows, w->dout);
    load_tile(h, w, h->out, row, rows, w->out);
    memset(w->probabilities, 0, 2 * TILE_ROWS * TILE_KEYS * sizeof *w->probabilities);
    multiply_tile(TILE_ROWS, TILE_KEYS, dim, w->q, w->k_transposed, w->probabilities);
    multiply_tile(TILE_ROWS, TILE_KEYS, dim, w->dout, w->v_transposed, w->gradients);
    tile_gradients(h, w, row, rows, key);
    transpose(w->probabilities, TILE_ROWS, TILE_KEYS, w->transposed, TILE_ROWS);
    multiply_tile(TILE_KEYS, dim, TILE_ROWS, w->transposed, w->dout, w->dv);
    transpose(w->gradients, TILE_ROWS, TILE_KEYS, w->transposed, TILE_ROWS);
    multiply_tile(TILE_KEYS, dim, TILE_ROWS, w->transposed, w->q, w->dk);
    multiply_tile(TILE_ROWS, dim, TILE_KEYS, w->gradients, w->k, w->dq + row * dim);
}

/* TILE_KEYS keys from `key` against every row that sees one of them. */
static void tiled_keys(const head *h, const tile *w, int64_t key)
{
    const attention_shape *s = h->shape;
    int64_t dim = padded_dim(s->head_dim), keys = at_most(s->tokens - key, TILE_KEYS);
    load_tile(h, w, h->k, key, keys, w->k);
    load_tile(h, w, h->v, key, keys, w->v);
    transpose(w->k, TILE_KEYS, dim, w->k_transposed, TILE_KEYS);
    transpose(w->v, TILE_KEYS, dim, w->v_transposed, TILE_KEYS);
    memset(w->dk, 0, (size_t)(2 * TILE_KEYS * dim) * sizeof *w->dk); /* dv lies behind it */
    for (int64_t row = s->causal ? key : 0; row < s->tokens; row += TILE_ROWS)
        tiled_pair(h, w, row, key);
    store_tile(h, w, w->dk, h->scale, key, keys, h->dk);
    store_tile(h, w, w->dv, 1, key, keys, h->dv);
}

static void tiled_head(const head *h, float *workspace)
{
    const attention_shape *s = h->shape;
    int64_t dim = padded_dim(s->head_dim);
    tile w = tile_in(workspace, dim);
    memset(w.dq, 0, (size_t)(padded_tokens(s) * dim) * sizeof *w.dq);
    for (int64_t key = 0; key < s->tokens; key += TILE_KEYS) tiled_keys(h, &w, key);
    for (int64_t row = 0; row < s->tokens; row += TILE_ROWS)
        store_tile(h, &w, w.dq + row * dim, h->scale, row, at_most(s->tokens - row, TILE_ROWS),
                   h->dq);
}

static int run_tiled(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_heads(args, workspace, tiled_head);
}

/* ---- table ------------------------------------------------------------- */

static const kernel_variant backward_rows[] = {
    {.name = "naive", .note = "two matrices of a head in memory, expf", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .unsupported = attention_backward_is_strided,
     .workspace_bytes = naive_workspace, .run = run_naive},
    {.name = "tiled", .note = "probabilities recomputed in 64 x 64 tiles", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .unsupported = attention_backward_is_strided,
     .workspace_bytes = tiled_workspace, .run = run_tiled},
    {.name = "simd", .note = "the same with this processor's vectors, operands packed once",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .unsupported = attention_backward_is_strided,
     .workspace_bytes = attention_backward_simd_workspace, .run = attention_backward_run_simd,
     .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .unsupported = attention_backward_is_strided,
     .workspace_bytes = attention_backward_threads_workspace,
     .run = attention_backward_run_threads,
     .runs_on = simd_runs_on_threads},
    {.name = "blas", .note = "cblas_sgemm, two matrices of a head in memory",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .unsupported = attention_backward_blas_unsupported,
     .workspace_bytes = attention_backward_blas_workspace, .run = attention_backward_run_blas,
     .runs_on = linear_blas_runs_on},
};

const kernel_table attention_backward_cpu = {backward_rows,
                                             sizeof backward_rows / sizeof *backward_rows};
