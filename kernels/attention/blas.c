/*
 * blas.c - attention, forward and backward, by a library's products.
 *
 * 5. blas  naive's matrix of scores of one head at a time; the softmax between the
 *          two products has the processor's vectors. What three lines of an array
 *          language do. Each thread takes heads of its own, or, where there are fewer
 *          heads than threads, all share each head's products.
 *
 * Bound by arithmetic while the scores fit the cache, then by writing and reading
 * them.
 */
#include "attention.h"

#include "../common/element.h"
#include "../common/pool.h"
#include "../common/simd.h"
#include "../linear/linear.h"
#include "simd.h"
#include "tile.h"

const char *attention_blas_unsupported(const void *args)
{
    const char *special = attention_forward_is_special(args);
    return special ? special : linear_has_no_blas();
}

const char *attention_backward_blas_unsupported(const void *args)
{
    const char *strided = attention_backward_is_strided(args);
    return strided ? strided : linear_has_no_blas();
}

/* A head at work: which part of the arguments, and in whose workspace. threads: of the
 * head; 1 where others have theirs. */
typedef struct head {
    const attention_shape *shape;
    const linear_way *way;
    int64_t first; /* of its elements */
    float *scratch, *scores, *products, *out;
    const float *lse, *delta;
    float *lse_out;
    float scale;
    int threads;
} head;

/* ---- workspace --------------------------------------------------------------------- */

/* Of any product that is taken of a head. */
static uint64_t scratch_floats(const attention_shape *s)
{
    uint64_t scores = linear_scratch_floats(s->tokens, s->tokens, s->head_dim);
    uint64_t out = linear_scratch_floats(s->tokens, s->head_dim, s->tokens);
    return scores > out ? scores : out;
}

/* The products' scratch, `squares` times scores, a head's output as f32 and a number
 * for each row. */
static uint64_t head_floats(const attention_shape *s, uint64_t squares)
{
    uint64_t row = saturating_product((uint64_t)s->tokens, squares);
    row = saturating_sum(row, (uint64_t)s->head_dim + 1);
    return saturating_sum(scratch_floats(s), saturating_product(row, (uint64_t)s->tokens));
}

/* Heads that are worked on at a time. */
static int heads_at_a_time(const attention_shape *s)
{
    int64_t heads = s->batch * s->heads;
    int threads = linear_blas_threads();
    return heads >= threads ? threads : 1;
}

static size_t workspace_for(const attention_shape *s, uint64_t squares)
{
    if (!is_valid(s)) return 0;
    return workspace_of(saturating_product(head_floats(s, squares),
                                           (uint64_t)heads_at_a_time(s)));
}

static head head_in(const attention_shape *s, int64_t index, int at_a_time, float *workspace,
                    uint64_t squares)
{
    int64_t t = s->tokens;
    head h = {.shape = s, .first = index * t * s->head_dim, .scratch = workspace};
    h.way = at_a_time > 1 ? &linear_blas_alone : &linear_blas;
    h.threads = at_a_time > 1 ? 1 : pool_threads();
    h.scores = h.scratch + scratch_floats(s);
    h.products = h.scores + t * t; /* where there are two squares */
    h.out = h.scores + (int64_t)squares * t * t;
    h.scale = (float)(1.0 / sqrt((double)s->head_dim));
    return h;
}

/* Rows of a head, on the threads that are its own. */
static void for_rows(const head *h, pool_function *function)
{
    head copy = *h;
    int64_t t = h->shape->tokens;
    if (h->threads == 1)
        function(&copy, 0, 0, t);
    else
        pool_for(h->threads, t, 1 + 16384 / t, function, &copy);
}

typedef struct job {
    const void *args;
    float *workspace;
    int at_a_time;
} job;

/* Heads one after the other where each has all threads, which a loop within a loop
 * could not give it. */
static void run_heads(job *j, int64_t heads, pool_function *function)
{
    if (j->at_a_time > 1)
        pool_for(j->at_a_time, heads, 1, function, j);
    else
        function(j, 0, 0, heads);
}

/* ---- forward ------------------------------------------------------------------------- */

static void softmax_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const float log2_e = 1.44269504088896340736f;
    const head *h = context;
    int64_t t = h->shape->tokens;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        float *row = h->scores + i * t;
        int64_t keys = visible_keys(h->shape, i);
        float max = simd()->row_max(keys, row);
        float sum = simd()->exponentiate(keys, h->scale * log2_e, max, row);
        simd()->scale(keys, 1.0f / sum, row);
        memset(row + keys, 0, (size_t)(t - keys) * sizeof *row);
        if (h->lse_out) h->lse_out[i] = h->scale * max + logf(sum);
    }
}

static linear_matrix rows_of(const head *h, const void *data, kernel_dtype dtype)
{
    return linear_rows(element_at(data, dtype, h->first), dtype, h->shape->head_dim);
}

static linear_matrix columns_of(const head *h, const void *data, kernel_dtype dtype)
{
    return linear_transposed(element_at(data, dtype, h->first), dtype, h->shape->head_dim);
}

static void forward_head(const attention_forward_args *a, const head *h)
{
    int64_t t = a->shape.tokens, d = a->shape.head_dim;
    h->way->multiply(t, t, d, rows_of(h, a->q, a->dtype), columns_of(h, a->k, a->dtype), h->scores,
                     h->scratch);
    for_rows(h, softmax_rows);
    h->way->multiply(t, d, t, linear_rows(h->scores, KERNEL_F32, t), rows_of(h, a->v, a->dtype),
                     h->out, h->scratch);
    kernel_from_f32(h->out, a->dtype, t * d, element_to(a->out, a->dtype, h->first));
}

static void forward_heads(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    const attention_forward_args *a = j->args;
    float *own = j->workspace + (uint64_t)worker * head_floats(&a->shape, 1);
    for (int64_t i = begin; i < end; i++) {
        head h = head_in(&a->shape, i, j->at_a_time, own, 1);
        h.lse_out = a->lse ? a->lse + i * a->shape.tokens : NULL;
        forward_head(a, &h);
    }
}

size_t attention_blas_workspace(const void *args)
{
    return workspace_for(&((const attention_forward_args *)args)->shape, 1);
}

int attention_run_blas(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const attention_forward_args *a = args;
    (void)state, (void)stream;
    if (!is_valid(&a->shape) || attention_blas_unsupported(a)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype)) return KERNEL_ERROR_ARGUMENT;
    job j = {a, workspace, heads_at_a_time(&a->shape)};
    run_heads(&j, a->shape.batch * a->shape.heads, forward_heads);
    return KERNEL_OK;
}

/* ---- backward -------------------------------------------------------------------------- */

/* Scores become probabilities, and products with dout the scores' gradients. */
static void gradient_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const float log2_e = 1.44269504088896340736f;
    const head *h = context;
    int64_t t = h->shape->tokens;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        float *row = h->scores + i * t, *product = h->products + i * t;
        int64_t keys = visible_keys(h->shape, i);
        (void)simd()->exponentiate(keys, h->scale * log2_e, h->lse[i] / h->scale, row);
        for (int64_t key = 0; key < keys; key++)
            product[key] = row[key] * (product[key] - h->delta[i]) * h->scale;
        memset(row + keys, 0, (size_t)(t - keys) * sizeof *row);
        memset(product + keys, 0, (size_t)(t - keys) * sizeof *product);
    }
}

/* The row sums of dout * out. */
static void find_delta(const attention_backward_args *a, const head *h, float *delta)
{
    int64_t d = a->shape.head_dim;
    for (int64_t i = 0; i < a->shape.tokens; i++) {
        float sum = 0;
        for (int64_t c = h->first + i * d; c < h->first + (i + 1) * d; c++)
            sum += element_get(a->dout, a->dtype, c) * element_get(a->out, a->dtype, c);
        delta[i] = sum;
    }
}

/* dst [tokens, head_dim] = a [tokens, tokens] b [tokens, head_dim]. */
static void multiply_into(const head *h, linear_matrix a, linear_matrix b, kernel_dtype dtype,
                          void *dst)
{
    int64_t t = h->shape->tokens, d = h->shape->head_dim;
    h->way->multiply(t, d, t, a, b, h->out, h->scratch);
    kernel_from_f32(h->out, dtype, t * d, element_to(dst, dtype, h->first));
}

static void backward_head(const attention_backward_args *a, const head *h)
{
    int64_t t = a->shape.tokens, d = a->shape.head_dim;
    linear_matrix q = rows_of(h, a->q, a->dtype), dout = rows_of(h, a->dout, a->dtype);
    h->way->multiply(t, t, d, q, columns_of(h, a->k, a->dtype), h->scores, h->scratch);
    h->way->multiply(t, t, d, dout, columns_of(h, a->v, a->dtype), h->products, h->scratch);
    for_rows(h, gradient_rows);
    multiply_into(h, linear_transposed(h->scores, KERNEL_F32, t), dout, a->dtype, a->dv);
    multiply_into(h, linear_rows(h->products, KERNEL_F32, t), rows_of(h, a->k, a->dtype), a->dtype,
                  a->dq);
    multiply_into(h, linear_transposed(h->products, KERNEL_F32, t), q, a->dtype, a->dk);
}

static void backward_heads(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    const attention_backward_args *a = j->args;
    float *own = j->workspace + (uint64_t)worker * head_floats(&a->shape, 2);
    for (int64_t i = begin; i < end; i++) {
        head h = head_in(&a->shape, i, j->at_a_time, own, 2);
        float *delta = h.out + a->shape.tokens * a->shape.head_dim;
        find_delta(a, &h, delta);
        h.delta = delta;
        h.lse = a->lse + i * a->shape.tokens;
        backward_head(a, &h);
    }
}

size_t attention_backward_blas_workspace(const void *args)
{
    return workspace_for(&((const attention_backward_args *)args)->shape, 2);
}

int attention_backward_run_blas(const void *args, void *workspace, void *state,
                                kernel_stream stream)
{
    const attention_backward_args *a = args;
    (void)state, (void)stream;
    if (!is_valid(&a->shape) || attention_backward_blas_unsupported(a))
        return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype)) return KERNEL_ERROR_ARGUMENT;
    job j = {a, workspace, heads_at_a_time(&a->shape)};
    run_heads(&j, a->shape.batch * a->shape.heads, backward_heads);
    return KERNEL_OK;
}
