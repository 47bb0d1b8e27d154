/*
 * simd.c - attention forward with the vector instructions that the processor has.
 *
 * 3. simd     tiled's online softmax. Keys are transposed once, not for each tile of
 *             rows again, and values padded where they need it; then tiles of 48 rows run
 *             over them, four in turn. One thread.
 * 4. threads  the same on all threads: whole heads, or if those do not come out even
 *             tiles of keys, then tiles of rows of any head, are handed out.
 *
 * Both are bound by arithmetic: 4 operations for each score and element of a head,
 * and some 13 vector instructions for the exponentials of 16 scores. On a core whose
 * products reach 115 GFLOP/s, which is what its multipliers do, a tile of 48 rows and
 * 64 keys of 64 elements takes 6.8 us of products and 0.7 us of softmax: at most 104
 * GFLOP/s; 95 were seen at 2048 tokens, 91 at 512.
 * A head's keys and values of 2048 tokens, or of 512 beside a neighbour on the host, are
 * not in the second-level cache any more when the next tile of rows wants them. Predicted:
 * what that costs, some 10 %, to a fourth by four tiles of rows in turn; and a fiftieth at
 * 512 tokens by values that are read where they lie. Seen on two threads, in turn with what
 * there was: 8 to 14 % shorter beside a neighbour, 1 to 2 % without; and 1.5 %. Of 4 heads
 * that is 0.81 to 0.85 of PyTorch 2.11's time at dimension 128, 0.69 to 0.81 at 64, causal
 * 0.42 to 0.75; two threads come to 183 to 198 GFLOP/s.
 */
#include "attention.h"

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/pool.h"
#include "../common/simd.h"
#include "simd.h"
#include "tile.h"

/* What all workers share. */
typedef struct job {
    const attention_forward_args *args;
    const simd_functions *vectors;
    int64_t dim, tiles;  /* of a row of values; of the keys of a head */
    float *keys;         /* [heads, tiles, head_dim, SIMD_TILE] */
    float *values;       /* [heads, tiles, SIMD_TILE, dim] */
    float *scratch;      /* of each worker */
    int64_t row_tiles;   /* of a head */
} job;

/* A worker's own, all f32; it stays in the second-level cache. */
typedef struct rows_scratch {
    float *q;      /* [chunks of SIMD_TILE of head_dim, SIMD_TILE_ROWS, SIMD_TILE], scaled */
    float *scores; /* [SIMD_TILE_ROWS, SIMD_TILE] */
    float *out;    /* [SIMD_TILE_ROWS, dim], not yet divided by sum */
    float *max, *sum;
} rows_scratch;

static uint64_t chunk_count(int64_t head_dim)
{
    return (uint64_t)simd_tiles(head_dim, SIMD_TILE);
}

/* Tiles of rows that take a tile of keys in turn, while it lies in the second-level cache. */
enum { GROUP = 4 };

/* The queries, the scores, the outputs, and two numbers of each row. */
static uint64_t tile_floats(int64_t head_dim)
{
    uint64_t row = saturating_product(chunk_count(head_dim) + 1, SIMD_TILE);
    row = saturating_sum(row, (uint64_t)simd_padded_dim(head_dim) + 2);
    return saturating_product(row, SIMD_TILE_ROWS);
}

static uint64_t packed_floats(const attention_shape *s, int64_t width)
{
    uint64_t heads = saturating_product((uint64_t)s->batch, (uint64_t)s->heads);
    uint64_t keys = saturating_product((uint64_t)simd_tiles(s->tokens, SIMD_TILE), SIMD_TILE);
    return saturating_product(saturating_product(heads, keys), (uint64_t)width);
}

static size_t workspace_for(const attention_shape *s, int threads)
{
    if (!is_valid(s)) return 0;
    uint64_t floats = saturating_sum(packed_floats(s, s->head_dim),
                                     packed_floats(s, simd_padded_dim(s->head_dim)));
    uint64_t own = saturating_product((uint64_t)threads * GROUP, tile_floats(s->head_dim));
    return workspace_of(saturating_sum(floats, own));
}

static job job_in(const attention_forward_args *a, float *workspace)
{
    const attention_shape *s = &a->shape;
    job j = {.args = a, .vectors = simd(), .dim = simd_padded_dim(s->head_dim), .keys = workspace};
    j.tiles = simd_tiles(s->tokens, SIMD_TILE);
    j.row_tiles = simd_tiles(s->tokens, SIMD_TILE_ROWS);
    j.values = j.keys + packed_floats(s, s->head_dim);
    j.scratch = j.values + packed_floats(s, j.dim);
    return j;
}

/* ---- keys and values ------------------------------------------------------------ */

/* The first row of head and key of the tile. */
static int64_t first_row(const job *j, int64_t tile)
{
    return tile / j->tiles * j->args->shape.tokens + tile % j->tiles * SIMD_TILE;
}

static int64_t keys_of_tile(const job *j, int64_t tile)
{
    return at_most(j->args->shape.tokens - tile % j->tiles * SIMD_TILE, SIMD_TILE);
}

static float *packed_values(const job *j, int64_t tile)
{
    return j->values + tile * SIMD_TILE * j->dim;
}

/* Where they are, if they lie there as they are wanted. */
static const float *values_of(const job *j, int64_t tile)
{
    const attention_forward_args *a = j->args;
    int64_t d = a->shape.head_dim;
    if (element_is_f32(a->dtype) && d == j->dim && keys_of_tile(j, tile) == SIMD_TILE)
        return element_at(a->v, a->dtype, first_row(j, tile) * d);
    return packed_values(j, tile);
}

static void pack_keys(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    const attention_forward_args *a = j->args;
    int64_t d = a->shape.head_dim;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = first_row(j, i) * d, count = keys_of_tile(j, i);
        simd_load_transposed(a->k, a->dtype, first, count, d, j->keys + i * d * SIMD_TILE);
        if (values_of(j, i) == packed_values(j, i))
            simd_load_padded(a->v, a->dtype, first, count, d, SIMD_TILE, j->dim,
                             packed_values(j, i));
    }
}

/* ---- rows ------------------------------------------------------------------------ */

static rows_scratch scratch_of(const job *j, int worker, int64_t tile)
{
    int64_t d = j->args->shape.head_dim;
    rows_scratch w = {.q = j->scratch + (uint64_t)(worker * GROUP + tile) * tile_floats(d)};
    w.scores = w.q + chunk_count(d) * SIMD_TILE_ROWS * SIMD_TILE;
    w.out = w.scores + SIMD_TILE_ROWS * SIMD_TILE;
    w.max = w.out + SIMD_TILE_ROWS * j->dim;
    w.sum = w.max + SIMD_TILE_ROWS;
    return w;
}

/* Of `count` rows, times factor; the others become 0. */
static void load_queries(const job *j, const rows_scratch *w, int64_t first, int64_t count)
{
    const float log2_e = 1.44269504088896340736f;
    const attention_shape *s = &j->args->shape;
    float factor = log2_e * (float)(1.0 / sqrt((double)s->head_dim));
    simd_load_chunks(j->args->q, j->args->dtype, first * s->head_dim, count, s->head_dim,
                     SIMD_TILE_ROWS, factor, w->q);
}

/* Keys that a row must not see get weight 0. Every row sees the first key, so a
 * maximum is finite from the first tile on. */
static void mask_scores(const attention_shape *s, float *scores, int64_t row, int64_t rows,
                        int64_t key)
{
    if (visible_keys(s, row) >= key + SIMD_TILE) return;
    for (int64_t i = 0; i < rows; i++) {
        int64_t visible = visible_keys(s, row + i) - key;
        for (int64_t c = visible > 0 ? visible : 0; c < SIMD_TILE; c++)
            scores[i * SIMD_TILE + c] = -INFINITY;
    }
}

/* What the tile of keys gives the rows. */
static void attend(const job *j, const rows_scratch *w, int64_t tile, int64_t row, int64_t rows,
                   int64_t key)
{
    const attention_shape *s = &j->args->shape;
    int64_t d = s->head_dim;
    const float *keys = j->keys + tile * d * SIMD_TILE;
    simd_multiply_chunks(j->vectors, rows, SIMD_TILE, d, w->q, keys, SIMD_TILE, w->scores);
    mask_scores(s, w->scores, row, rows, key);
    j->vectors->online_softmax(rows, w->scores, w->max, w->sum, w->out, j->dim);
    j->vectors->multiply_tile(rows, j->dim, SIMD_TILE, w->scores, values_of(j, tile), j->dim,
                              w->out, j->dim, 1);
}

static void store_rows(const job *j, const rows_scratch *w, int64_t first, int64_t count)
{
    const float ln_2 = 0.69314718055994530942f;
    const attention_forward_args *a = j->args;
    int64_t d = a->shape.head_dim;
    for (int64_t i = 0; i < count; i++) {
        float *row = w->out + i * j->dim, inverse = 1.0f / w->sum[i];
        for (int64_t c = 0; c < d; c++) row[c] *= inverse;
        kernel_from_f32(row, a->dtype, d, element_to(a->out, a->dtype, (first + i) * d));
        if (a->lse) a->lse[first + i] = w->max[i] * ln_2 + logf(w->sum[i]);
    }
}

static void begin_rows(const job *j, const rows_scratch *w, int64_t first, int64_t rows)
{
    load_queries(j, w, first, rows);
    memset(w->out, 0, (size_t)(SIMD_TILE_ROWS * j->dim) * sizeof *w->out);
    for (int r = 0; r < SIMD_TILE_ROWS; r++) w->max[r] = -INFINITY, w->sum[r] = 0;
}

/* Tiles of rows `row` to end - 1 of a head. */
static void run_group(const job *j, int worker, int64_t head, int64_t row, int64_t end)
{
    const attention_shape *s = &j->args->shape;
    int64_t keys = visible_keys(s, end - 1);
    rows_scratch w[GROUP];
    for (int64_t i = row, g = 0; i < end; i += SIMD_TILE_ROWS, g++) {
        w[g] = scratch_of(j, worker, g);
        begin_rows(j, &w[g], head * s->tokens + i, at_most(end - i, SIMD_TILE_ROWS));
    }
    for (int64_t key = 0; key < keys; key += SIMD_TILE)
        for (int64_t i = row, g = 0; i < end; i += SIMD_TILE_ROWS, g++) {
            int64_t rows = at_most(end - i, SIMD_TILE_ROWS);
            if (key < visible_keys(s, i + rows - 1))
                attend(j, &w[g], head * j->tiles + key / SIMD_TILE, i, rows, key);
        }
    for (int64_t i = row, g = 0; i < end; i += SIMD_TILE_ROWS, g++)
        store_rows(j, &w[g], head * s->tokens + i, at_most(end - i, SIMD_TILE_ROWS));
}

static void run_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    for (int64_t i = begin, next; i < end; i = next) {
        int64_t head = i / j->row_tiles, row = i % j->row_tiles;
        next = at_most(at_most(i + GROUP, (head + 1) * j->row_tiles), end);
        run_group(j, worker, head, row * SIMD_TILE_ROWS,
                  at_most((row + next - i) * SIMD_TILE_ROWS, j->args->shape.tokens));
    }
}

/* What a thread packed lies in its own caches. Predicted: twice one thread's speed, as no
 * line is written that the other thread holds. Seen on two, 4 heads of 64: 512 tokens in
 * 1.4 ms instead of 1.9 (one thread: 2.8), 2048 in 21.6 instead of 24.5 (44.6). */
static void run_heads(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    pack_keys(context, worker, begin * j->tiles, end * j->tiles);
    run_rows(context, worker, begin * j->row_tiles, end * j->row_tiles);
}

/* Whether threads that take whole heads end together. */
static int shares_by_heads(int64_t heads, int threads)
{
    enum { HEADS_OF_THREAD = 8 };
    return heads % threads == 0 || heads / threads >= HEADS_OF_THREAD;
}

/* So many that threads end together where there are enough of them. */
static int64_t tiles_at_a_time(int64_t tiles, int threads)
{
    enum { RANGES_OF_THREAD = 4 };
    int64_t share = tiles / ((int64_t)threads * RANGES_OF_THREAD);
    return share < 1 ? 1 : at_most(share, GROUP);
}

/* ---- variants -------------------------------------------------------------------- */

static int takes(const attention_forward_args *a)
{
    return is_valid(&a->shape) && !attention_forward_is_special(a) && element_takes(a->dtype);
}

static int run_on(int threads, const attention_forward_args *a, float *workspace)
{
    if (!takes(a)) return KERNEL_ERROR_ARGUMENT;
    job j = job_in(a, workspace);
    int64_t heads = a->shape.batch * a->shape.heads;
    threads = simd_threads_for(attention_forward_flops(&a->shape), threads);
    if (shares_by_heads(heads, threads)) {
        pool_for(threads, heads, 1, run_heads, &j);
        return KERNEL_OK;
    }
    pool_for(threads, heads * j.tiles, 1, pack_keys, &j);
    pool_for(threads, heads * j.row_tiles, tiles_at_a_time(heads * j.row_tiles, threads), run_rows,
             &j);
    return KERNEL_OK;
}

size_t attention_simd_workspace(const void *args)
{
    return workspace_for(&((const attention_forward_args *)args)->shape, 1);
}

int attention_run_simd(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_on(1, args, workspace);
}

size_t attention_threads_workspace(const void *args)
{
    return workspace_for(&((const attention_forward_args *)args)->shape, pool_threads());
}

int attention_run_threads(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)state, (void)stream;
    return run_on(pool_threads(), args, workspace);
}
