/*
 * attention.c - attention on the host: the operation's formulas, the oracle,
 * and two variants of one thread that any compiler can vectorize; simd.c and blas.c
 * have the faster ones.
 *
 * 1. naive  one head at a time: the whole score matrix [tokens, tokens], then
 *           its softmax, then the second product. Teaches what materializing
 *           costs: every product reads and writes memory that no register
 *           holds, and the C library's expf is called once per score.
 * 2. tiled  64 rows against 64 keys at a time with the online softmax of
 *           Milakov and Gimelshein, "Online normalizer calculation for
 *           softmax", 2018: scores never leave the cache, products run in
 *           register blocks, exp is a polynomial that the compiler vectorizes.
 *
 * Both are bound by arithmetic.
 */
#include "attention.h"

#include <math.h>

#include "../common/convert.h"
#include "../linear/linear.h"
#include "simd.h"
#include "tile.h"
#include "../common/element.h"

/* ---- formulas ---------------------------------------------------------- */

uint64_t attention_forward_flops(const attention_shape *shape)
{
    uint64_t products = saturating_product(element_count(shape), (uint64_t)shape->tokens);
    return saturating_product(products, shape->causal ? 2 : 4);
}

uint64_t attention_forward_bytes(const attention_shape *shape, kernel_dtype dtype)
{
    return saturating_product(element_count(shape),
                              3 * kernel_dtype_bytes(dtype) +
                                  kernel_dtype_bytes(kernel_result_dtype(dtype)));
}

/* ---- strides ------------------------------------------------------------ */

static int is_strided(attention_strides s)
{
    return s.batch || s.head || s.token;
}

attention_strides attention_strides_of(const attention_shape *shape, attention_strides strides)
{
    int64_t head = shape->tokens * shape->head_dim;
    if (is_strided(strides)) return strides;
    return (attention_strides){shape->heads * head, head, shape->head_dim};
}

static const char *contiguous_only(attention_strides qkv, attention_strides out)
{
    return is_strided(qkv) || is_strided(out) ? "takes contiguous tensors only" : NULL;
}

const char *attention_forward_is_strided(const void *args)
{
    const attention_forward_args *a = args;
    return contiguous_only(a->qkv_strides, a->out_strides);
}

const char *attention_forward_is_masked(const void *args)
{
    return ((const attention_forward_args *)args)->mask ? "takes no mask" : NULL;
}

const char *attention_forward_is_special(const void *args)
{
    const char *strided = attention_forward_is_strided(args);
    return strided ? strided : attention_forward_is_masked(args);
}

const char *attention_backward_is_strided(const void *args)
{
    const attention_backward_args *a = args;
    return contiguous_only(a->qkv_strides, a->out_strides);
}

/* ---- oracle ------------------------------------------------------------ */

/* One row; returns its log-sum-exp. */
static double reference_row(const attention_shape *s, const float *q_row, const float *k,
                            const float *v, int64_t keys, double *out)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; j++)
        max = fmax(max, score_in_double(s, q_row, k + j * s->head_dim));
    for (int64_t c = 0; c < s->head_dim; c++) out[c] = 0;
    for (int64_t j = 0; j < keys; j++) {
        double weight = exp(score_in_double(s, q_row, k + j * s->head_dim) - max);
        sum += weight;
        oracle_add_scaled(s->head_dim, weight, v + j * s->head_dim, out);
    }
    for (int64_t c = 0; c < s->head_dim; c++) out[c] /= sum;
    return max + log(sum);
}

void attention_forward_reference(const attention_shape *shape, const float *q, const float *k,
                                 const float *v, const int64_t *rows, int64_t count, double *out,
                                 double *lse)
{
    for (int64_t i = 0; i < count; i++) {
        double row_lse = reference_row(shape, q + rows[i] * shape->head_dim, k, v,
                                       visible_keys(shape, rows[i]), out + i * shape->head_dim);
        if (lse) lse[i] = row_lse;
    }
}

/* ---- what both variants share ------------------------------------------ */

/* One head's slices of the arguments. */
typedef struct head {
    const void *q, *k, *v;
    void *out;
    float *lse; /* [tokens] or NULL */
    const float *mask; /* or NULL */
    const attention_shape *shape;
    kernel_dtype dtype;
    float scale;
} head;

static head head_at(const attention_forward_args *a, int64_t index)
{
    const attention_shape *s = &a->shape;
    size_t elements = (size_t)(index * s->tokens * s->head_dim);
    size_t offset = elements * kernel_dtype_bytes(a->dtype);
    return (head){.q = (const char *)a->q + offset,
                  .k = (const char *)a->k + offset,
                  .v = (const char *)a->v + offset,
                  .out = (char *)a->out +
                         elements * kernel_dtype_bytes(kernel_result_dtype(a->dtype)),
                  .lse = a->lse ? a->lse + index * s->tokens : NULL,
                  .mask = a->mask,
                  .shape = s,
                  .dtype = a->dtype,
                  .scale = (float)(1.0 / sqrt((double)s->head_dim))};
}

/* `count` rows of a [tokens, head_dim] operand from row `begin`, as f32. */
static void load_rows(const head *h, const void *src, int64_t begin, int64_t count, float *dst)
{
    int64_t d = h->shape->head_dim;
    size_t offset = (size_t)(begin * d) * kernel_dtype_bytes(h->dtype);
    kernel_to_f32((const char *)src + offset, h->dtype, count * d, dst);
}

static void store_rows(const head *h, const float *src, int64_t begin, int64_t count)
{
    int64_t d = h->shape->head_dim;
    kernel_dtype result = kernel_result_dtype(h->dtype);
    size_t offset = (size_t)(begin * d) * kernel_dtype_bytes(result);
    kernel_from_f32(src, result, count * d, (char *)h->out + offset);
}

typedef void head_function(const head *h, float *workspace);

static int run_heads(const attention_forward_args *a, void *workspace, head_function *run_head)
{
    if (!is_valid(&a->shape) || attention_forward_is_strided(a)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype) && a->dtype != KERNEL_E4M3) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->shape.batch * a->shape.heads; i++) {
        head h = head_at(a, i);
        run_head(&h, workspace);
    }
    return KERNEL_OK;
}

/* ---- naive ------------------------------------------------------------- */

/* Workspace: q (and then out), k, k transposed and v as f32, and the scores. */
static size_t naive_workspace(const void *args)
{
    const attention_shape *s = &((const attention_forward_args *)args)->shape;
    uint64_t floats_per_token =
        saturating_product(4, (uint64_t)s->head_dim) + (uint64_t)s->tokens;
    return workspace_of(saturating_product(floats_per_token, (uint64_t)s->tokens));
}

static void naive_scores(const head *h, const float *q, const float *k_transposed, float *scores)
{
    int64_t t = h->shape->tokens, d = h->shape->head_dim;
    for (int64_t i = 0; i < t; i++) {
        float *row = scores + i * t;
        memset(row, 0, (size_t)t * sizeof *row);
        for (int64_t c = 0; c < d; c++)
            add_scaled(t, h->scale * q[i * d + c], k_transposed + c * t, row);
    }
}

/* Softmax of the first `keys` of a row of t; the others become 0. Returns the
 * row's log-sum-exp. */
static float softmax_row(float *row, int64_t keys, int64_t t)
{
    float max = row[0], sum = 0;
    for (int64_t j = 1; j < keys; j++) max = row[j] > max ? row[j] : max;
    for (int64_t j = 0; j < keys; j++) {
        row[j] = expf(row[j] - max);
        sum += row[j];
    }
    for (int64_t j = 0; j < keys; j++) row[j] /= sum;
    for (int64_t j = keys; j < t; j++) row[j] = 0;
    return max + logf(sum);
}

static void naive_head(const head *h, float *workspace)
{
    int64_t t = h->shape->tokens, d = h->shape->head_dim;
    float *q = workspace, *k = q + t * d, *k_transposed = k + t * d, *v = k_transposed + t * d;
    float *scores = v + t * d, *out = q;
    load_rows(h, h->q, 0, t, q);
    load_rows(h, h->k, 0, t, k);
    load_rows(h, h->v, 0, t, v);
    transpose(k, t, d, k_transposed, t);
    naive_scores(h, q, k_transposed, scores);
    for (int64_t i = 0; i < t; i++) {
        float *row = scores + i * t;
        for (int64_t j = 0; j < t && h->mask; j++) row[j] += h->mask[i * t + j];
        float lse = softmax_row(row, h->mask ? t : visible_keys(h->shape, i), t);
        if (h->lse) h->lse[i] = lse;
    }
    memset(out, 0, (size_t)(t * d) * sizeof *out);
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < t; j++) add_scaled(d, scores[i * t + j], v + j * d, out + i * d);
    store_rows(h, out, 0, t);
}

static int run_naive(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_heads(args, workspace, naive_head);
}

/* ---- tiled ------------------------------------------------------------- */

static inline float_lanes max_lanes(float_lanes a, float_lanes b)
{
    int_lanes greater = a > b;
    return (float_lanes)((greater & (int_lanes)a) | (~greater & (int_lanes)b));
}

/* A tile's working set, all f32: it stays in the second-level cache. Columns
 * beyond head_dim of v and out are 0. */
typedef struct tile {
    float *q;      /* [TILE_ROWS, head_dim], times scale * log2(e) */
    float *k;      /* [head_dim, TILE_KEYS]: transposed, so that keys are vector lanes */
    float *v;      /* [TILE_KEYS, padded_dim] */
    float *out;    /* [TILE_ROWS, padded_dim], not yet divided by sum */
    float *scores; /* [TILE_ROWS, TILE_KEYS] */
    float *rows;   /* as loaded: [TILE_ROWS or TILE_KEYS, head_dim] */
    float *max;    /* [TILE_ROWS], in units of log2 */
    float *sum;    /* [TILE_ROWS] */
} tile;

static size_t tiled_workspace(const void *args)
{
    const attention_shape *s = &((const attention_forward_args *)args)->shape;
    uint64_t floats_per_row = saturating_product(5, (uint64_t)padded_dim(s->head_dim));
    return workspace_of(saturating_product(floats_per_row + TILE_KEYS + 2, TILE_ROWS));
}

static tile tile_in(float *workspace, int64_t head_dim)
{
    int64_t operand = TILE_ROWS * padded_dim(head_dim);
    tile w;
    w.q = workspace;
    w.k = w.q + operand;
    w.v = w.k + operand;
    w.out = w.v + operand;
    w.rows = w.out + operand;
    w.scores = w.rows + operand;
    w.max = w.scores + TILE_ROWS * TILE_KEYS;
    w.sum = w.max + TILE_ROWS;
    return w;
}

/* Lane-wise, because the order of a float maximum or sum is not the compiler's
 * to change. */
static float row_max(const float *row)
{
    float_lanes lanes = load_lanes(row);
    for (int j = LANES; j < TILE_KEYS; j += LANES) lanes = max_lanes(load_lanes(row + j), lanes);
    float max = lanes[0];
    for (int l = 1; l < LANES; l++) max = lanes[l] > max ? lanes[l] : max;
    return max;
}

/* row[j] = 2^(row[j] - max); returns their sum. */
static float exponentiate_row(float *row, float max)
{
    for (int j = 0; j < TILE_KEYS; j++) row[j] = exp2_nonpositive(row[j] - max);
    float_lanes lanes = load_lanes(row);
    for (int j = LANES; j < TILE_KEYS; j += LANES) lanes += load_lanes(row + j);
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

/* The online softmax step: scores become weights relative to the new maximum,
 * and what was summed relative to the old one is rescaled. */
static void update_rows(const tile *w, int64_t count, int64_t dim)
{
    for (int64_t i = 0; i < count; i++) {
        float tile_max = row_max(w->scores + i * TILE_KEYS);
        float max = tile_max > w->max[i] ? tile_max : w->max[i];
        float correction = exp2_nonpositive(w->max[i] - max);
        w->max[i] = max;
        w->sum[i] = w->sum[i] * correction + exponentiate_row(w->scores + i * TILE_KEYS, max);
        for (int64_t c = 0; c < dim; c++) w->out[i * dim + c] *= correction;
    }
}

/* Keys that a row must not see get weight 0. Every row sees the first key, so
 * a maximum is finite from the first tile on. */
static void mask_scores(const tile *w, const attention_shape *s, int64_t row, int64_t rows,
                        int64_t key)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t visible = visible_keys(s, row + i) - key;
        for (int64_t j = visible > 0 ? visible : 0; j < TILE_KEYS; j++)
            w->scores[i * TILE_KEYS + j] = -INFINITY;
    }
}

static void load_queries(const head *h, const tile *w, int64_t row, int64_t count)
{
    const float log2_e = 1.44269504088896340736f;
    int64_t d = h->shape->head_dim;
    memset(w->q, 0, (size_t)(TILE_ROWS * d) * sizeof *w->q);
    load_rows(h, h->q, row, count, w->q);
    for (int64_t i = 0; i < count * d; i++) w->q[i] *= h->scale * log2_e;
}

static void load_keys(const head *h, const tile *w, int64_t key, int64_t count)
{
    int64_t d = h->shape->head_dim, dim = padded_dim(d);
    memset(w->k, 0, (size_t)(TILE_KEYS * d) * sizeof *w->k);
    memset(w->v, 0, (size_t)(TILE_KEYS * dim) * sizeof *w->v);
    load_rows(h, h->k, key, count, w->rows);
    transpose(w->rows, count, d, w->k, TILE_KEYS);
    load_rows(h, h->v, key, count, w->rows);
    for (int64_t j = 0; j < count; j++)
        memcpy(w->v + j * dim, w->rows + j * d, (size_t)d * sizeof *w->v);
}

static void finish_rows(const head *h, const tile *w, int64_t row, int64_t count)
{
    const float ln_2 = 0.69314718055994530942f;
    int64_t d = h->shape->head_dim, dim = padded_dim(d);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t c = 0; c < d; c++) w->rows[i * d + c] = w->out[i * dim + c] / w->sum[i];
        if (h->lse) h->lse[row + i] = w->max[i] * ln_2 + logf(w->sum[i]);
    }
    store_rows(h, w->rows, row, count);
}

/* TILE_ROWS rows from `row` against every key tile that one of them sees. */
static void tiled_rows(const head *h, const tile *w, int64_t row)
{
    const attention_shape *s = h->shape;
    int64_t d = s->head_dim, dim = padded_dim(d);
    int64_t rows = at_most(s->tokens - row, TILE_ROWS);
    int64_t keys = visible_keys(s, row + rows - 1);
    load_queries(h, w, row, rows);
    memset(w->out, 0, (size_t)(TILE_ROWS * dim) * sizeof *w->out);
    for (int i = 0; i < TILE_ROWS; i++) w->max[i] = -INFINITY, w->sum[i] = 0;
    for (int64_t key = 0; key < keys; key += TILE_KEYS) {
        load_keys(h, w, key, at_most(s->tokens - key, TILE_KEYS));
        memset(w->scores, 0, TILE_ROWS * TILE_KEYS * sizeof *w->scores);
        multiply_tile(rows, TILE_KEYS, d, w->q, w->k, w->scores);
        mask_scores(w, s, row, rows, key);
        update_rows(w, rows, dim);
        multiply_tile(rows, dim, TILE_KEYS, w->scores, w->v, w->out);
    }
    finish_rows(h, w, row, rows);
}

static void tiled_head(const head *h, float *workspace)
{
    tile w = tile_in(workspace, h->shape->head_dim);
    for (int64_t row = 0; row < h->shape->tokens; row += TILE_ROWS) tiled_rows(h, &w, row);
}

static int run_tiled(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    if (attention_forward_is_masked(args)) return KERNEL_ERROR_ARGUMENT;
    return run_heads(args, workspace, tiled_head);
}

/* ---- table ------------------------------------------------------------- */

static const kernel_variant forward_rows[] = {
    {.name = "naive", .note = "score matrix of a head in memory, expf",
     .dtypes = ELEMENT_DTYPES | KERNEL_DTYPE_BIT(KERNEL_E4M3), .deterministic = 1,
     .unsupported = attention_forward_is_strided, .workspace_bytes = naive_workspace, .run = run_naive},
    {.name = "tiled", .note = "online softmax over 64 x 64 tiles",
     .dtypes = ELEMENT_DTYPES | KERNEL_DTYPE_BIT(KERNEL_E4M3), .deterministic = 1,
     .unsupported = attention_forward_is_special, .workspace_bytes = tiled_workspace, .run = run_tiled},
    {.name = "simd", .note = "the same with this processor's vectors, keys packed once",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .unsupported = attention_forward_is_special,
     .workspace_bytes = attention_simd_workspace, .run = attention_run_simd,
     .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .unsupported = attention_forward_is_special, .workspace_bytes = attention_threads_workspace,
     .run = attention_run_threads,
     .runs_on = simd_runs_on_threads},
    {.name = "blas", .note = "cblas_sgemm, the score matrix of a head in memory",
     .dtypes = ELEMENT_DTYPES, .deterministic = 1, .unsupported = attention_blas_unsupported,
     .workspace_bytes = attention_blas_workspace, .run = attention_run_blas,
     .runs_on = linear_blas_runs_on},
};

const kernel_table attention_forward_cpu = {forward_rows,
                                            sizeof forward_rows / sizeof *forward_rows};
