/*
 * simd.c - embedding with the vector instructions that the processor has.
 *
 * 5. simd     forward vectorized's rows, backward sorted's: a table row is summed
 *             where it stays in the first-level cache, and written once. Large
 *             results go around the caches. One thread.
 * 6. threads  the same on all threads: rows of out, then rows of the tables, are
 *             handed out. A row's sum does not depend on who takes it.
 *
 * Bound by memory; backward, by writing the zeros of the rows that no token chose.
 * The counting sort is one thread's, of 4 bytes a row and 8 a token.
 */
#include "simd.h"

#include <string.h>

#include "../common/pool.h"
#include "../common/saturating.h"
#include "../common/typed_rows.h"

enum { PIECE = 2048 }; /* columns that are converted at a time */

static int goes_around(kernel_dtype dtype, int64_t rows, int64_t columns)
{
    uint64_t elements = saturating_product((uint64_t)rows, (uint64_t)columns);
    return element_is_f32(dtype) && simd_goes_around(saturating_product(elements, sizeof(float)));
}

/* ---- forward --------------------------------------------------------------------- */

typedef struct forward_job {
    const embedding_forward_args *args;
    int around;
} forward_job;

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

static void copy_row(const forward_job *j, int64_t token, int64_t out)
{
    const embedding_forward_args *a = j->args;
    const void *from = element_at(a->token_table, a->dtype, token);
    void *to = element_to(a->out, a->dtype, out);
    if (element_is_f32(a->dtype))
        simd()->copy(a->shape.columns, from, to, j->around);
    else
        memcpy(to, from, (size_t)a->shape.columns * kernel_dtype_bytes(a->dtype));
}

static void forward_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const forward_job *j = context;
    const embedding_shape *s = &j->args->shape;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t token = j->args->tokens[i] * s->columns, out = i * s->columns;
        if (i + 1 < end)
            typed_row_prefetch(j->args->token_table, j->args->dtype,
                               j->args->tokens[i + 1] * s->columns, s->columns);
        if (s->context == 0) copy_row(j, token, out);
        for (int64_t c = 0; c < s->columns && s->context > 0; c += PIECE)
            add_piece(j, token + c, i % s->context * s->columns + c, out + c,
                      s->columns - c < PIECE ? s->columns - c : PIECE);
    }
    simd()->settle();
}

static int forward_on(int threads, const embedding_forward_args *a)
{
    const embedding_shape *s = &a->shape;
    int error = embedding_check(s, a->dtype, a->tokens);
    if (error) return error;
    forward_job j = {a, goes_around(a->dtype, s->rows, s->columns)};
    threads = typed_rows_threads(threads, s->rows, s->columns);
    pool_for(threads, s->rows, typed_rows_at_a_time(s->columns), forward_rows, &j);
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

/* Workspace: the order, then of each worker a row of sums and one of dout as f32. */
enum { OWN_ROWS = 2 };

typedef struct backward_job {
    const embedding_backward_args *args;
    embedding_order order;
    float *own;
    int around; /* of the token table */
} backward_job;

/* sums [columns] += row `row` of dout; inits: = instead. */
static void add_row(const embedding_backward_args *a, int64_t row, int inits, float *sums,
                    float *room)
{
    int64_t columns = a->shape.columns;
    const float *x = typed_row(a->dout, a->dtype, row * columns, columns, room);
    if (inits)
        simd()->copy(columns, x, sums, 0);
    else
        simd()->add_scaled(columns, sums, 1, x, sums, 0);
}

static void prefetch_row(const embedding_backward_args *a, int64_t row)
{
    typed_row_prefetch(a->dout, a->dtype, row * a->shape.columns, a->shape.columns);
}

/* A row of zeros is one of no bits. */
static void store_row(const embedding_backward_args *a, const float *sums, int64_t row,
                      int around, void *table)
{
    int64_t columns = a->shape.columns, first = row * columns;
    void *to = element_to(table, a->dtype, first);
    if (sums && element_is_f32(a->dtype))
        simd()->copy(columns, sums, to, around);
    else if (sums)
        typed_row_done(sums, table, a->dtype, first, columns);
    else if (element_is_f32(a->dtype))
        simd()->fill(columns, 0, to, around);
    else
        memset(to, 0, (size_t)columns * kernel_dtype_bytes(a->dtype));
}

static void token_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const backward_job *j = context;
    const embedding_order *o = &j->order;
    float *sums = j->own + worker * OWN_ROWS * j->args->shape.columns;
    float *room = sums + j->args->shape.columns;
    int64_t all = o->begin[end];
    for (int64_t v = begin; v < end; v++) {
        int64_t first = o->begin[v], last = o->begin[v + 1];
        for (int64_t i = first; i < last; i++) {
            if (i + 1 < all) prefetch_row(j->args, o->order[i + 1]);
            add_row(j->args, o->order[i], i == first, sums, room);
        }
        store_row(j->args, last > first ? sums : NULL, v, j->around, j->args->dtoken_table);
    }
    simd()->settle();
}

static void position_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const backward_job *j = context;
    const embedding_shape *s = &j->args->shape;
    float *sums = j->own + worker * OWN_ROWS * s->columns, *room = sums + s->columns;
    for (int64_t p = begin; p < end; p++) {
        for (int64_t i = p; i < s->rows; i += s->context) {
            if (i + s->context < s->rows) prefetch_row(j->args, i + s->context);
            add_row(j->args, i, i == p, sums, room);
        }
        store_row(j->args, p < s->rows ? sums : NULL, p, 0, j->args->dposition_table);
    }
}

static size_t backward_workspace(const embedding_backward_args *a, int threads)
{
    uint64_t own = saturating_product((uint64_t)a->shape.columns, OWN_ROWS * sizeof(float));
    if (a->shape.rows < 1 || a->shape.vocabulary < 1 || a->shape.columns < 1) return 0;
    uint64_t bytes = saturating_sum(embedding_order_bytes(&a->shape),
                                    saturating_product(own, (uint64_t)threads));
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

static int backward_on(int threads, const embedding_backward_args *a, void *workspace)
{
    const embedding_shape *s = &a->shape;
    int error = embedding_check(s, a->dtype, a->tokens);
    if (error) return error;
    backward_job j = {.args = a, .order = embedding_order_rows(s, a->tokens, workspace)};
    j.own = (float *)((char *)workspace + embedding_order_bytes(s));
    j.around = goes_around(a->dtype, s->vocabulary, s->columns);
    threads = typed_rows_threads(threads, s->vocabulary, s->columns);
    pool_for(threads, s->vocabulary, typed_rows_at_a_time(s->columns), token_rows, &j);
    if (s->context > 0)
        pool_for(threads, s->context, typed_rows_at_a_time(s->columns), position_rows, &j);
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
