/*
 * simd.c - embedding with the vector instructions that the processor has.
 *
 * 5. simd     forward vectorized's rows, backward sorted's: a table row is summed
 *             where it stays in the first-level cache, and written once; what a row of dout
 *             gives its position is added while it is there. Large results go around the
 *             caches. One thread.
 * 6. threads  the same on all threads: rows of out, then columns of the tables, or their
 *             rows, are handed out. A sum does not depend on who takes it.
 *
 * Bound by memory that is read in no order: rows of 3 KiB came at 9 GB/s on a core that
 * reads 29 in order, at 24 where they are asked for ahead (../common/typed_rows.h).
 * Predicted from that for 32,768 rows of 768, 10,000 tokens and 1,024 positions: forward
 * 203 MB, what a copy moves in 5.2 ms; backward 101 MB read and 34 written in 5.5 ms. Seen
 * 5.7 and 10.2 ms, where they were 10.3 and 23: forward at 0.9 of a copy's speed; backward
 * adds twice, and positions' sums come from the last cache. With slices of so few columns
 * that those stayed in the second one it took 26 ms, as what processors fetch behind a
 * piece of a row is thrown away. `bytes` counts a token's row once, however often it is
 * read, which for these shapes is two thirds of what forward moves.
 * Of pages of 2 MiB (gpubench_alloc asks for them) forward took, on two cores of a virtual
 * machine on which ten other programs ran, 5.5 to 6.1 ms on one thread where it took 8.0 to
 * 9.4, and 3.8 to 4.3 where it took 4.2 to 4.4 on two. A copy, which gains less, moved 39 and
 * 77 GB/s in the same sitting: 0.6 and 0.46 of it by `bytes`, 0.9 and 0.7 by what is moved.
 * Where there are fewer rows than tokens most of backward is the table, written in slices.
 * Predicted: a third of the time on two threads of whole rows, for which positions read
 * dout by themselves. Seen 0.56 ms instead of 1.7 of 512 rows and 10,000 tokens, 3.1 instead
 * of 3.7 of 8,192 and 50,257; of 32,768 and 10,000 it would be 7.1 instead of 6.1.
 * The counting sort is one thread's, of 4 bytes a row and 8 a token.
 */
#include "simd.h"

#include <string.h>

#include "../common/pool.h"
#include "../common/saturating.h"
#include "../common/typed_rows.h"

enum { PIECE = 256 }; /* columns at a time: what comes later is asked for between them */

static int goes_around(kernel_dtype dtype, int64_t rows, int64_t columns)
{
    uint64_t elements = saturating_product((uint64_t)rows, (uint64_t)columns);
    return element_is_f32(dtype) && simd_goes_around(saturating_product(elements, sizeof(float)));
}

/* ---- forward --------------------------------------------------------------------- */

/* Elements of positions that stay in the second-level cache while all texts use them. */
enum { BLOCK_ELEMENTS = 1 << 15 };

typedef struct forward_job {
    const embedding_forward_args *args;
    int64_t length, texts; /* rows of a text, all of them without positions; texts */
    int64_t positions;     /* of a block */
    int around;
} forward_job;

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* Columns from the given one of a row; first: elements of the tables and of out. */
static void add_piece(const forward_job *j, int64_t token, int64_t position, int64_t out,
                      int64_t count)
{
    const embedding_forward_args *a = j->args;
    float room[PIECE], other[PIECE];
    const float *x = typed_row(a->token_table, a->dtype, token, count, room);
    const float *y = typed_row(a->position_table, a->dtype, position, count, other);
    float *sum = typed_row_to_fill(a->out, a->dtype, out, room);
    simd()->add_scaled(count, x, 1, y, sum, j->around);
    typed_row_done(sum, a->out, a->dtype, out, count);
}

static void copy_piece(const forward_job *j, int64_t token, int64_t out, int64_t count)
{
    const embedding_forward_args *a = j->args;
    const void *from = element_at(a->token_table, a->dtype, token);
    void *to = element_to(a->out, a->dtype, out);
    if (element_is_f32(a->dtype))
        simd()->copy(count, from, to, j->around);
    else
        memcpy(to, from, (size_t)count * kernel_dtype_bytes(a->dtype));
}

static void forward_row(const forward_job *j, int64_t row, int64_t later)
{
    const embedding_forward_args *a = j->args;
    const embedding_shape *s = &a->shape;
    int64_t token = a->tokens[row] * s->columns, next = a->tokens[later] * s->columns;
    for (int64_t c = 0; c < s->columns; c += PIECE) {
        int64_t count = at_most(PIECE, s->columns - c), out = row * s->columns + c;
        typed_row_prefetch(a->token_table, a->dtype, next + c, count);
        if (s->context == 0)
            copy_piece(j, token + c, out, count);
        else
            add_piece(j, token + c, row % s->context * s->columns + c, out, count);
    }
}

/* A block is some positions of one text, whose rows of out lie one behind the other; the
 * same positions of all texts come in turn. */
static void forward_block(const forward_job *j, int64_t first, int64_t last)
{
    enum { AHEAD = 2 };
    for (int64_t row = first; row < last; row++)
        forward_row(j, row, at_most(row + AHEAD, last - 1));
}

static void forward_blocks(void *context, int worker, int64_t begin, int64_t end)
{
    const forward_job *j = context;
    const embedding_shape *s = &j->args->shape;
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        int64_t position = block / j->texts * j->positions, text = block % j->texts * j->length;
        int64_t first = text + position, last = first + at_most(j->positions, j->length - position);
        if (first < s->rows) forward_block(j, first, at_most(last, s->rows));
    }
    simd()->settle();
}

static int forward_on(int threads, const embedding_forward_args *a)
{
    const embedding_shape *s = &a->shape;
    int error = embedding_check(s, a->dtype, a->tokens);
    if (error) return error;
    forward_job j = {.args = a, .around = goes_around(a->dtype, s->rows, s->columns)};
    j.length = s->context > 0 ? at_most(s->context, s->rows) : s->rows;
    j.positions = at_most(1 + (BLOCK_ELEMENTS - 1) / s->columns, j.length);
    j.texts = (s->rows + j.length - 1) / j.length;
    threads = typed_rows_threads(threads, s->rows, s->columns);
    pool_for(threads, (j.length + j.positions - 1) / j.positions * j.texts, 1, forward_blocks, &j);
    return KERNEL_OK;
}

int embedding_forward_run_simd(const void *args, void *workspace, void *state,
                               kernel_stream stream)
{
    (void)workspace, (void)state, (void)stream;
    return forward_on(1, args);
}

int embedding_forward_run_threads(const void *args, void *workspace, void *state,
                                  kernel_stream stream)
{
    (void)workspace, (void)state, (void)stream;
    return forward_on(pool_threads(), args);
}

/* ---- backward --------------------------------------------------------------------- */

/* Workspace: the order, then of each worker rows of sums and one of dout as f32, then
 * the sums of all positions. */
enum { POSITIONS = 4, OWN_ROWS = POSITIONS + 1 }; /* sums that stay in the first-level cache */

/* A slice is some columns of everything, for one thread; which columns it has makes no
 * difference to an element's sum. */
enum { LEAST_COLUMNS = 64 };

typedef struct backward_job {
    const embedding_backward_args *args;
    embedding_order order;
    float *own, *positions; /* [slices, context, columns of a slice]; NULL: not with tokens */
    int64_t slice_columns;
    int around; /* of the token table */
} backward_job;

/* What a thread does: columns, and its own memory. */
typedef struct slice {
    int64_t from, columns;
    float *sums, *room, *positions; /* the last NULL: there are none */
} slice;

static slice slice_of(const backward_job *j, int worker, int64_t number)
{
    const embedding_shape *s = &j->args->shape;
    slice c = {.from = number * j->slice_columns};
    c.columns = at_most(j->slice_columns, s->columns - c.from);
    c.sums = j->own + worker * OWN_ROWS * s->columns;
    c.room = c.sums + POSITIONS * s->columns;
    if (j->positions) c.positions = j->positions + c.from * s->context;
    return c;
}

/* Row `row` of dout to the sums of its token and its position; inits: = of the token's.
 * What comes later is asked for piece by piece, between sums, as it can be fetched. */
static void add_row(const embedding_backward_args *a, const slice *c, int64_t row, int inits,
                    int64_t later)
{
    float *position = c->positions;
    if (position) position += row % a->shape.context * c->columns;
    for (int64_t i = 0; i < c->columns; i += PIECE) {
        int64_t count = at_most(PIECE, c->columns - i);
        int64_t first = row * a->shape.columns + c->from + i;
        typed_row_prefetch(a->dout, a->dtype, later * a->shape.columns + c->from + i, count);
        const float *x = typed_row(a->dout, a->dtype, first, count, c->room);
        if (inits)
            simd()->copy(count, x, c->sums + i, 0);
        else
            simd()->add_scaled(count, c->sums + i, 1, x, c->sums + i, 0);
        if (position) simd()->add_scaled(count, position + i, 1, x, position + i, 0);
    }
}

/* Columns of a row of a table; zeros are of no bits. */
static void store_row(const embedding_backward_args *a, const slice *c, const float *sums,
                      int64_t row, int around, void *table)
{
    int64_t first = row * a->shape.columns + c->from;
    void *to = element_to(table, a->dtype, first);
    if (sums && element_is_f32(a->dtype))
        simd()->copy(c->columns, sums, to, around);
    else if (sums)
        typed_row_done(sums, table, a->dtype, first, c->columns);
    else if (element_is_f32(a->dtype))
        simd()->fill(c->columns, 0, to, around);
    else
        memset(to, 0, (size_t)c->columns * kernel_dtype_bytes(a->dtype));
}

static void add_tokens(const backward_job *j, const slice *c, int64_t begin, int64_t end)
{
    enum { AHEAD = 2 };
    const embedding_backward_args *a = j->args;
    const embedding_order *o = &j->order;
    for (int64_t v = begin; v < end; v++) {
        for (int64_t i = o->begin[v]; i < o->begin[v + 1]; i++) {
            int64_t later = at_most(i + AHEAD, o->begin[end] - 1);
            add_row(a, c, o->order[i], i == o->begin[v], o->order[later]);
        }
        store_row(a, c, o->begin[v + 1] > o->begin[v] ? c->sums : NULL, v, j->around,
                  a->dtoken_table);
    }
    simd()->settle();
}

static void token_rows(void *context, int worker, int64_t begin, int64_t end)
{
    slice whole = slice_of(context, worker, 0);
    add_tokens(context, &whole, begin, end);
}

static void token_and_position_slices(void *context, int worker, int64_t begin, int64_t end)
{
    const backward_job *j = context;
    const embedding_shape *s = &j->args->shape;
    for (int64_t number = begin; number < end; number++) {
        slice c = slice_of(j, worker, number);
        /* With positions alone this runs. NOLINTNEXTLINE(*-core.NonNullParamChecker) */
        memset(c.positions, 0, (size_t)(s->context * c.columns) * sizeof *c.positions);
        add_tokens(j, &c, 0, s->vocabulary);
        for (int64_t p = 0; p < s->context; p++)
            store_row(j->args, &c, c.positions + p * c.columns, p, 0, j->args->dposition_table);
    }
}

/* Some positions, by themselves: all texts' rows of them are read in turn. */
static void position_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const backward_job *j = context;
    const embedding_shape *s = &j->args->shape;
    slice c = slice_of(j, worker, 0);
    float *sums = c.sums;
    for (int64_t text = 0; text < s->rows; text += s->context)
        for (int64_t p = begin; p < end && text + p < s->rows; p++) {
            c.sums = sums + (p - begin) * s->columns;
            add_row(j->args, &c, text + p, text == 0, at_most(text + p + s->context, s->rows - 1));
        }
    for (int64_t p = begin; p < end; p++)
        store_row(j->args, &c, p < s->rows ? sums + (p - begin) * s->columns : NULL, p, 0,
                  j->args->dposition_table);
}

/* Reading dout once, for both tables, makes slices of columns of whoever has several
 * threads: that pays where there are more rows than tokens, whose table is then written in
 * pieces. */
static int takes_both_at_once(const embedding_shape *s)
{
    return s->context > 0 && s->rows > s->vocabulary;
}

static size_t backward_workspace(const embedding_backward_args *a, int threads)
{
    const embedding_shape *s = &a->shape;
    if (s->rows < 1 || s->vocabulary < 1 || s->columns < 1) return 0;
    uint64_t rows = saturating_product(OWN_ROWS, (uint64_t)threads);
    if (takes_both_at_once(s)) rows = saturating_sum(rows, (uint64_t)s->context);
    uint64_t floats = saturating_product(rows, (uint64_t)s->columns);
    uint64_t bytes = saturating_sum(embedding_order_bytes(s),
                                    saturating_product(floats, sizeof(float)));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

static int64_t columns_of_slice(const embedding_shape *s, int threads)
{
    int64_t columns = (s->columns + threads - 1) / threads;
    columns = (columns + LEAST_COLUMNS - 1) / LEAST_COLUMNS * LEAST_COLUMNS;
    return at_most(columns, s->columns);
}

static int backward_on(int threads, const embedding_backward_args *a, void *workspace)
{
    const embedding_shape *s = &a->shape;
    int error = embedding_check(s, a->dtype, a->tokens);
    if (error) return error;
    backward_job j = {.args = a, .order = embedding_order_rows(s, a->tokens, workspace)};
    j.own = (float *)((char *)workspace + embedding_order_bytes(s));
    if (takes_both_at_once(s)) j.positions = j.own + threads * OWN_ROWS * s->columns;
    j.around = goes_around(a->dtype, s->rows + s->vocabulary, s->columns);
    threads = typed_rows_threads(threads, s->vocabulary, s->columns);
    j.slice_columns = j.positions ? columns_of_slice(s, threads) : s->columns;
    if (j.positions) {
        /* embedding_check saw a column. NOLINTNEXTLINE(*-core.DivideZero) */
        pool_for(threads, (s->columns + j.slice_columns - 1) / j.slice_columns, 1,
                 token_and_position_slices, &j);
        return KERNEL_OK;
    }
    pool_for(threads, s->context, POSITIONS, position_rows, &j);
    pool_for(threads, s->vocabulary, typed_rows_range(threads, s->vocabulary, s->columns),
             token_rows, &j);
    return KERNEL_OK;
}

size_t embedding_backward_simd_workspace(const void *args)
{
    return backward_workspace(args, 1);
}

size_t embedding_backward_threads_workspace(const void *args)
{
    return backward_workspace(args, pool_threads());
}

int embedding_backward_run_simd(const void *args, void *workspace, void *state,
                                kernel_stream stream)
{
    (void)state, (void)stream;
    return backward_on(1, args, workspace);
}

int embedding_backward_run_threads(const void *args, void *workspace, void *state,
                                   kernel_stream stream)
{
    (void)state, (void)stream;
    return backward_on(pool_threads(), args, workspace);
}
