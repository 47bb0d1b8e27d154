/*
 * simd.c - optimizer steps with the vector instructions that the processor has.
 *
 * 3. simd     fused's single pass, with the processor's square root. One thread.
 * 4. threads  the same on all threads: the tensors fall into pieces, which are
 *             handed out. clip_norm adds the pieces' sums up in order: equal bits for
 *             any number of threads.
 *
 * Bound by memory: AdamW reads and writes 28 bytes a parameter against a root and a
 * quotient in vectors. It updates in place, so that nothing can go around the caches.
 */
#include "simd.h"

#include <math.h>

#include "../common/pool.h"
#include "../common/typed_rows.h"

enum { PIECE = 4096 }; /* f32 that stay in the first-level cache */

static int64_t pieces_of(const optimizer_tensor *t)
{
    return t->count / PIECE + (t->count % PIECE > 0);
}

static int64_t piece_count(const optimizer_list *list)
{
    int64_t pieces = 0;
    for (int64_t i = 0; i < list->count; i++) pieces += pieces_of(&list->tensors[i]);
    return pieces;
}

/* What is done to a piece: element `begin` of tensor t and count - 1 behind it. */
typedef struct job job;
typedef void piece_function(const job *j, const optimizer_tensor *t, int64_t begin, int64_t count,
                            int64_t piece);

struct job {
    const optimizer_list *list;
    kernel_dtype dtype;
    piece_function *function;
    int64_t *first; /* [list->count] the number of each tensor's first piece */
    double *sums;   /* [pieces] of clip_norm */
    simd_adamw adamw;
    optimizer_sgd sgd;
    float scale;
};

/* The last tensor whose first piece is none after it: of several, the one that has
 * pieces at all. */
static int64_t tensor_of(const job *j, int64_t piece)
{
    int64_t low = 0, high = j->list->count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (j->first[middle] <= piece)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void do_pieces(void *context, int worker, int64_t from, int64_t to)
{
    const job *j = context;
    int64_t tensor = tensor_of(j, from);
    (void)worker;
    for (int64_t piece = from; piece < to; piece++) {
        const optimizer_tensor *t = &j->list->tensors[tensor];
        while (piece - j->first[tensor] >= pieces_of(t)) t = &j->list->tensors[++tensor];
        int64_t begin = (piece - j->first[tensor]) * PIECE, left = t->count - begin;
        j->function(j, t, begin, left < PIECE ? left : PIECE, piece);
    }
}

/* workspace: the tensors' first pieces. */
static void run_on(int threads, job *j, void *workspace)
{
    int64_t pieces = 0;
    j->first = workspace;
    for (int64_t i = 0; i < j->list->count; i++) {
        j->first[i] = pieces;
        pieces += pieces_of(&j->list->tensors[i]);
    }
    pool_for(threads, pieces, typed_rows_range(threads, pieces, PIECE), do_pieces, j);
}

static size_t first_pieces_bytes(const optimizer_list *list)
{
    return list->count > 0 ? (size_t)list->count * sizeof(int64_t) : 0;
}

size_t optimizer_adamw_simd_workspace(const void *args)
{
    return first_pieces_bytes(&((const optimizer_adamw_args *)args)->list);
}

size_t optimizer_sgd_simd_workspace(const void *args)
{
    return first_pieces_bytes(&((const optimizer_sgd_args *)args)->list);
}

size_t optimizer_clip_simd_workspace(const void *args)
{
    const optimizer_clip_args *a = args;
    return first_pieces_bytes(&a->list) + (size_t)piece_count(&a->list) * sizeof(double);
}

/* ---- steps -------------------------------------------------------------------- */

static float *value_of(const job *j, const optimizer_tensor *t, int64_t begin)
{
    return (element_is_f32(j->dtype) ? (float *)t->parameter : t->master) + begin;
}

static void adamw_piece(const job *j, const optimizer_tensor *t, int64_t begin, int64_t count,
                        int64_t piece)
{
    float room[PIECE], *value = value_of(j, t, begin);
    (void)piece;
    simd()->adamw(count, &j->adamw, typed_row(t->gradient, j->dtype, begin, count, room), value,
                  t->first + begin, t->second + begin);
    typed_row_done(value, t->parameter, j->dtype, begin, count);
}

static void sgd_piece(const job *j, const optimizer_tensor *t, int64_t begin, int64_t count,
                      int64_t piece)
{
    float room[PIECE], *value = value_of(j, t, begin);
    (void)piece;
    simd()->sgd(count, j->sgd.learning_rate, j->sgd.momentum, j->scale,
                typed_row(t->gradient, j->dtype, begin, count, room), value, t->first + begin);
    typed_row_done(value, t->parameter, j->dtype, begin, count);
}

static int adamw_on(int threads, const optimizer_adamw_args *a, void *workspace)
{
    job j = {.list = &a->list, .dtype = a->dtype, .function = adamw_piece};
    if (optimizer_check(&a->list, a->dtype) || a->settings.step < 1) return KERNEL_ERROR_ARGUMENT;
    if (a->scaler && a->scaler->skips) return KERNEL_OK;
    j.adamw = optimizer_adamw_factors(a);
    run_on(threads, &j, workspace);
    return KERNEL_OK;
}

static int sgd_on(int threads, const optimizer_sgd_args *a, void *workspace)
{
    job j = {.list = &a->list, .dtype = a->dtype, .function = sgd_piece, .sgd = a->settings};
    if (optimizer_check(&a->list, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    j.scale = a->gradient_scale ? *a->gradient_scale : 1;
    run_on(threads, &j, workspace);
    return KERNEL_OK;
}

/* ---- clipping ------------------------------------------------------------------- */

static void square_piece(const job *j, const optimizer_tensor *t, int64_t begin, int64_t count,
                         int64_t piece)
{
    float room[PIECE];
    const float *gradient = typed_row(t->gradient, j->dtype, begin, count, room);
    j->sums[piece] = (double)simd()->sum_of_squares(count, gradient, 0);
}

static void scale_piece(const job *j, const optimizer_tensor *t, int64_t begin, int64_t count,
                        int64_t piece)
{
    float room[PIECE], *filled = typed_row_to_fill(t->gradient, j->dtype, begin, room);
    (void)piece;
    (void)typed_row(t->gradient, j->dtype, begin, count, room);
    simd()->scale(count, j->scale, filled);
    typed_row_done(filled, t->gradient, j->dtype, begin, count);
}

static int clip_norm_on(int threads, const optimizer_clip_args *a, void *workspace)
{
    job j = {.list = &a->list, .dtype = a->dtype, .function = square_piece};
    double sum = 0;
    if (optimizer_check(&a->list, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    j.sums = (double *)((int64_t *)workspace + a->list.count);
    run_on(threads, &j, workspace);
    for (int64_t piece = 0; piece < piece_count(&a->list); piece++) sum += j.sums[piece];
    *a->norm = (float)sqrt(sum);
    *a->scale = (float)optimizer_clip_scale_reference(sqrt(sum), (double)a->max_norm);
    return KERNEL_OK;
}

static int clip_scale_on(int threads, const optimizer_clip_args *a, void *workspace)
{
    job j = {.list = &a->list, .dtype = a->dtype, .function = scale_piece};
    if (optimizer_check(&a->list, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    j.scale = *a->scale;
    run_on(threads, &j, workspace);
    return KERNEL_OK;
}

#define RUN(pass)                                                                               \
    int optimizer_##pass##_run_simd(const void *args, void *workspace, void *state,             \
                                    kernel_stream stream)                                       \
    {                                                                                           \
        (void)state, (void)stream;                                                              \
        return pass##_on(1, args, workspace);                                                   \
    }                                                                                           \
    int optimizer_##pass##_run_threads(const void *args, void *workspace, void *state,          \
                                       kernel_stream stream)                                    \
    {                                                                                           \
        (void)state, (void)stream;                                                              \
        return pass##_on(pool_threads(), args, workspace);                                      \
    }

RUN(adamw)
RUN(sgd)
RUN(clip_norm)
RUN(clip_scale)
