/*
 * backward_simd.c - attention backward with the vector instructions that the
 * processor has.
 *
 * 3. simd     tiled's recomputed probabilities, 64 keys against 48 rows. Every
 *             operand is packed once, in the layouts that its products want. One
 *             thread.
 * 4. threads  the same on all threads. A head's keys fall into groups, each with
 *             its own sum of dq; how many is the shape's to say and not the
 *             threads', so that results do not depend on those.
 *
 * Both are bound by arithmetic: five products, one exponential for each score.
 */
#include "attention.h"

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/pool.h"
#include "../common/simd.h"
#include "simd.h"
#include "tile.h"

/* Rows of a product with a tile of keys on its left, which every family's
 * block_rows can round up to. */
enum { KEY_ROWS = SIMD_TILE + SIMD_MOST_ROWS, ENOUGH_GROUPS = 32 };

/* What all workers share. Rows and keys of a head are padded to whole tiles, a
 * row's elements to whole chunks of SIMD_TILE. */
typedef struct job {
    const attention_backward_args *args;
    const simd_functions *vectors;
    int64_t heads, chunks, row_tiles, key_tiles, groups; /* of a head but heads */
    int64_t rows_floats, keys_floats;     /* of a tile */
    float *q, *dout;                      /* [heads, row tiles, chunks, SIMD_TILE_ROWS, SIMD_TILE] */
    float *lse, *delta;                   /* [heads, row tiles, SIMD_TILE_ROWS] */
    float *k;                             /* [heads, key tiles, chunks, SIMD_TILE, SIMD_TILE] */
    float *k_transposed, *v_transposed;   /* [heads, key tiles, head_dim, SIMD_TILE] */
    float *dq;                            /* [heads, groups] of q's layout */
    float *scratch;                       /* of each worker */
} job;

/* A worker's own. */
typedef struct pair_scratch {
    float *scores, *products;         /* [SIMD_TILE_ROWS, SIMD_TILE] */
    float *scores_turned, *gradients; /* [KEY_ROWS, SIMD_TILE]: rows are the columns */
    float *dk, *dv;                   /* [chunks, KEY_ROWS, SIMD_TILE] */
} pair_scratch;

static uint64_t worker_floats(int64_t chunks)
{
    return (2 * SIMD_TILE_ROWS + 2 * KEY_ROWS) * SIMD_TILE +
           saturating_product((uint64_t)chunks, 2 * KEY_ROWS * SIMD_TILE);
}

static int64_t group_count(int threads, int64_t heads, int64_t key_tiles)
{
    int64_t wanted = threads == 1 || heads >= ENOUGH_GROUPS ? 1 : ENOUGH_GROUPS / heads;
    return at_most(wanted, key_tiles);
}

static job job_of(int threads, const attention_backward_args *a)
{
    const attention_shape *s = &a->shape;
    job j = {.args = a, .vectors = simd(), .heads = s->batch * s->heads};
    j.chunks = simd_tiles(s->head_dim, SIMD_TILE);
    j.row_tiles = simd_tiles(s->tokens, SIMD_TILE_ROWS);
    j.key_tiles = simd_tiles(s->tokens, SIMD_TILE);
    j.groups = group_count(threads, j.heads, j.key_tiles);
    j.rows_floats = j.chunks * SIMD_TILE_ROWS * SIMD_TILE;
    j.keys_floats = j.chunks * SIMD_TILE * SIMD_TILE;
    return j;
}

/* Hands out memory, or only counts it where there is none yet. */
static float *take(float **from, uint64_t *floats, uint64_t count)
{
    float *taken = *from;
    if (taken) *from += count;
    *floats = saturating_sum(*floats, count);
    return taken;
}

static uint64_t place(job *j, int threads, float *memory)
{
    uint64_t floats = 0, heads = (uint64_t)j->heads;
    uint64_t tiles = saturating_product(heads, (uint64_t)j->row_tiles);
    uint64_t rows = saturating_product(tiles, (uint64_t)j->rows_floats);
    uint64_t keys = saturating_product(saturating_product(heads, (uint64_t)j->key_tiles),
                                       (uint64_t)j->keys_floats);
    j->q = take(&memory, &floats, rows);
    j->dout = take(&memory, &floats, rows);
    j->lse = take(&memory, &floats, saturating_product(tiles, SIMD_TILE_ROWS));
    j->delta = take(&memory, &floats, saturating_product(tiles, SIMD_TILE_ROWS));
    j->k = take(&memory, &floats, keys);
    j->k_transposed = take(&memory, &floats, keys);
    j->v_transposed = take(&memory, &floats, keys);
    j->dq = take(&memory, &floats, saturating_product(rows, (uint64_t)j->groups));
    j->scratch = take(&memory, &floats,
                      saturating_product(worker_floats(j->chunks), (uint64_t)threads));
    return floats;
}

/* ---- packing ------------------------------------------------------------------- */

static float dot(const job *j, int64_t first)
{
    enum { PIECE = 64 };
    const attention_backward_args *a = j->args;
    int64_t d = a->shape.head_dim;
    float out[PIECE], dout[PIECE], sum = 0;
    for (int64_t c = 0; c < d; c += PIECE) {
        int64_t now = at_most(d - c, PIECE);
        kernel_to_f32(element_at(a->out, a->dtype, first + c), a->dtype, now, out);
        kernel_to_f32(element_at(a->dout, a->dtype, first + c), a->dtype, now, dout);
        for (int64_t i = 0; i < now; i++) sum += out[i] * dout[i];
    }
    return sum;
}

static void pack_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const float log2_e = 1.44269504088896340736f;
    const job *j = context;
    const attention_backward_args *a = j->args;
    int64_t t = a->shape.tokens, d = a->shape.head_dim;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i % j->row_tiles * SIMD_TILE_ROWS, first = i / j->row_tiles * t + row;
        int64_t count = at_most(t - row, SIMD_TILE_ROWS);
        simd_load_chunks(a->q, a->dtype, first * d, count, d, SIMD_TILE_ROWS, 1,
                         j->q + i * j->rows_floats);
        simd_load_chunks(a->dout, a->dtype, first * d, count, d, SIMD_TILE_ROWS, 1,
                         j->dout + i * j->rows_floats);
        for (int64_t r = 0; r < SIMD_TILE_ROWS; r++) {
            j->lse[i * SIMD_TILE_ROWS + r] = r < count ? log2_e * a->lse[first + r] : 0;
            j->delta[i * SIMD_TILE_ROWS + r] = r < count ? dot(j, (first + r) * d) : 0;
        }
    }
}

static void pack_keys(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    const attention_backward_args *a = j->args;
    int64_t t = a->shape.tokens, d = a->shape.head_dim;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t key = i % j->key_tiles * SIMD_TILE, first = (i / j->key_tiles * t + key) * d;
        int64_t count = at_most(t - key, SIMD_TILE), at = i * j->keys_floats;
        simd_load_chunks(a->k, a->dtype, first, count, d, SIMD_TILE, 1, j->k + at);
        simd_load_transposed(a->k, a->dtype, first, count, d, j->k_transposed + at);
        simd_load_transposed(a->v, a->dtype, first, count, d, j->v_transposed + at);
    }
}

/* ---- pairs of tiles --------------------------------------------------------------- */

static pair_scratch scratch_of(const job *j, int worker)
{
    pair_scratch w = {.scores = j->scratch + (uint64_t)worker * worker_floats(j->chunks)};
    w.products = w.scores + SIMD_TILE_ROWS * SIMD_TILE;
    w.scores_turned = w.products + SIMD_TILE_ROWS * SIMD_TILE;
    w.gradients = w.scores_turned + KEY_ROWS * SIMD_TILE;
    w.dk = w.gradients + KEY_ROWS * SIMD_TILE;
    w.dv = w.dk + j->chunks * KEY_ROWS * SIMD_TILE;
    return w;
}

/* c[chunks, c_rows, SIMD_TILE] += a[rows, depth] b[chunks, depth, SIMD_TILE] */
static void multiply_into_chunks(const job *j, int64_t rows, int64_t depth, const float *a,
                                 const float *b, int64_t b_rows, float *c, int64_t c_rows)
{
    for (int64_t i = 0; i < j->chunks; i++)
        j->vectors->multiply_tile(rows, SIMD_TILE, depth, a, b + i * b_rows * SIMD_TILE, SIMD_TILE,
                                  c + i * c_rows * SIMD_TILE, SIMD_TILE, 1);
}

/* Pairs of which the row must not see the key get probability 0, nearly. */
static void mask(const job *j, float *scores, int64_t row, int64_t key)
{
    const attention_shape *s = &j->args->shape;
    for (int64_t i = 0; i < SIMD_TILE_ROWS && row + i < s->tokens; i++) {
        int64_t visible = visible_keys(s, row + i) - key;
        for (int64_t c = visible > 0 ? visible : 0; c < SIMD_TILE; c++)
            scores[i * SIMD_TILE + c] = -INFINITY;
    }
}

/* What a tile of rows and a tile of keys give each other. */
static void pair(const job *j, const pair_scratch *w, int64_t rows, int64_t keys, float *dq)
{
    const float log2_e = 1.44269504088896340736f;
    const simd_functions *v = j->vectors;
    int64_t d = j->args->shape.head_dim;
    const float *q = j->q + rows * j->rows_floats, *dout = j->dout + rows * j->rows_floats;
    simd_multiply_chunks(v, SIMD_TILE_ROWS, SIMD_TILE, d, q, j->k_transposed + keys * j->keys_floats,
                         SIMD_TILE, w->scores);
    simd_multiply_chunks(v, SIMD_TILE_ROWS, SIMD_TILE, d, dout,
                         j->v_transposed + keys * j->keys_floats, SIMD_TILE, w->products);
    mask(j, w->scores, rows % j->row_tiles * SIMD_TILE_ROWS, keys % j->key_tiles * SIMD_TILE);
    v->probabilities(SIMD_TILE_ROWS, log2_e / sqrtf((float)d), j->lse + rows * SIMD_TILE_ROWS,
                     j->delta + rows * SIMD_TILE_ROWS, w->scores, w->products);
    v->transpose(SIMD_TILE_ROWS, SIMD_TILE, w->scores, SIMD_TILE, w->scores_turned, SIMD_TILE);
    v->transpose(SIMD_TILE_ROWS, SIMD_TILE, w->products, SIMD_TILE, w->gradients, SIMD_TILE);
    multiply_into_chunks(j, SIMD_TILE, SIMD_TILE_ROWS, w->scores_turned, dout, SIMD_TILE_ROWS,
                         w->dv, KEY_ROWS);
    multiply_into_chunks(j, SIMD_TILE, SIMD_TILE_ROWS, w->gradients, q, SIMD_TILE_ROWS, w->dk,
                         KEY_ROWS);
    multiply_into_chunks(j, SIMD_TILE_ROWS, SIMD_TILE, w->products, j->k + keys * j->keys_floats,
                         SIMD_TILE, dq, SIMD_TILE_ROWS);
}

/* Rows in chunks, times factor, to [.., head_dim] from row `first` on. */
static void store_chunks(const job *j, const float *src, int64_t src_rows, int64_t first,
                         int64_t count, float factor, void *dst)
{
    kernel_dtype dtype = j->args->dtype;
    int64_t d = j->args->shape.head_dim;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < d; c += SIMD_TILE) {
            float piece[SIMD_TILE];
            const float *row = src + (c * src_rows + i * SIMD_TILE);
            int64_t now = at_most(d - c, SIMD_TILE);
            for (int64_t e = 0; e < now; e++) piece[e] = factor * row[e];
            kernel_from_f32(piece, dtype, now, element_to(dst, dtype, (first + i) * d + c));
        }
}

/* One tile of keys against every tile of rows that sees one of them. */
static void run_keys(const job *j, const pair_scratch *w, int64_t head, int64_t tile, float *dq)
{
    const attention_backward_args *a = j->args;
    const attention_shape *s = &a->shape;
    int64_t key = tile * SIMD_TILE, first = head * s->tokens + key;
    int64_t count = at_most(s->tokens - key, SIMD_TILE);
    memset(w->dk, 0, (size_t)(2 * j->chunks * KEY_ROWS * SIMD_TILE) * sizeof *w->dk); /* and dv */
    for (int64_t i = s->causal ? key / SIMD_TILE_ROWS : 0; i < j->row_tiles; i++)
        pair(j, w, head * j->row_tiles + i, head * j->key_tiles + tile, dq + i * j->rows_floats);
    store_chunks(j, w->dk, KEY_ROWS, first, count, 1 / sqrtf((float)s->head_dim), a->dk);
    store_chunks(j, w->dv, KEY_ROWS, first, count, 1, a->dv);
}

/* A group's tiles lie groups apart, so that causal ones have equal work. */
static void run_groups(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    pair_scratch w = scratch_of(j, worker);
    int64_t floats = j->row_tiles * j->rows_floats;
    memset(w.scores_turned, 0, 2 * KEY_ROWS * SIMD_TILE * sizeof *w.scores_turned);
    for (int64_t i = begin; i < end; i++) {
        float *dq = j->dq + i * floats;
        memset(dq, 0, (size_t)floats * sizeof *dq);
        for (int64_t tile = i % j->groups; tile < j->key_tiles; tile += j->groups)
            run_keys(j, &w, i / j->groups, tile, dq);
    }
}

/* dq is the sum of the groups'. */
static void finish_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    const attention_shape *s = &j->args->shape;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t head = i / j->row_tiles, tile = i % j->row_tiles, row = tile * SIMD_TILE_ROWS;
        float *sum = j->dq + (head * j->groups * j->row_tiles + tile) * j->rows_floats;
        for (int64_t group = 1; group < j->groups; group++) {
            const float *other = sum + group * j->row_tiles * j->rows_floats;
            for (int64_t e = 0; e < j->rows_floats; e++) sum[e] += other[e];
        }
        store_chunks(j, sum, SIMD_TILE_ROWS, head * s->tokens + row,
                     at_most(s->tokens - row, SIMD_TILE_ROWS), 1 / sqrtf((float)s->head_dim),
                     j->args->dq);
    }
}

/* ---- variants ---------------------------------------------------------------------- */

static size_t workspace_for(int threads, const attention_backward_args *a)
{
    if (!is_valid(&a->shape)) return 0;
    job j = job_of(threads, a);
    return workspace_of(place(&j, threads, NULL));
}

static int run_on(int threads, const attention_backward_args *a, float *workspace)
{
    if (!is_valid(&a->shape) || attention_backward_is_strided(a)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype)) return KERNEL_ERROR_ARGUMENT;
    job j = job_of(threads, a);
    place(&j, threads, workspace);
    threads = simd_threads_for(attention_backward_flops(&a->shape), threads);
    pool_for(threads, j.heads * j.row_tiles, 1, pack_rows, &j);
    pool_for(threads, j.heads * j.key_tiles, 1, pack_keys, &j);
    pool_for(threads, j.heads * j.groups, 1, run_groups, &j);
    pool_for(threads, j.heads * j.row_tiles, 1, finish_rows, &j);
    return KERNEL_OK;
}

size_t attention_backward_simd_workspace(const void *args)
{
    return workspace_for(1, args);
}

int attention_backward_run_simd(const void *args, void *workspace, void *state,
                                kernel_stream stream)
{
    (void)state, (void)stream;
    return run_on(1, args, workspace);
}

size_t attention_backward_threads_workspace(const void *args)
{
    return workspace_for(pool_threads(), args);
}

int attention_backward_run_threads(const void *args, void *workspace, void *state,
                                   kernel_stream stream)
{
    (void)state, (void)stream;
    return run_on(pool_threads(), args, workspace);
}
