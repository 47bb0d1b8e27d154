/*
 * blas.c - attention forward by a library's products.
 *
 * 5. blas  naive's matrix of scores of one head at a time; the softmax between the
 *          two products has the processor's vectors and all threads. What three
 *          lines of an array language do.
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
    const char *strided = attention_forward_is_strided(args);
    return strided ? strided : linear_has_no_blas();
}

static uint64_t scratch_floats(const attention_shape *s)
{
    uint64_t scores = linear_scratch_floats(s->tokens, s->tokens, s->head_dim);
    uint64_t out = linear_scratch_floats(s->tokens, s->head_dim, s->tokens);
    return scores > out ? scores : out;
}

/* The products' scratch, the scores and a head's output as f32. */
size_t attention_blas_workspace(const void *args)
{
    const attention_shape *s = &((const attention_forward_args *)args)->shape;
    if (!is_valid(s)) return 0;
    uint64_t row = saturating_sum((uint64_t)s->tokens, (uint64_t)s->head_dim);
    return workspace_of(saturating_sum(scratch_floats(s),
                                       saturating_product(row, (uint64_t)s->tokens)));
}

/* A head at work. */
typedef struct head {
    const attention_shape *shape;
    float *scores, *lse; /* of the head; NULL: not wanted */
    float scale;
} head;

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
        if (h->lse) h->lse[i] = h->scale * max + logf(sum);
    }
}

static void run_head(const attention_forward_args *a, int64_t index, float *workspace)
{
    const attention_shape *s = &a->shape;
    int64_t t = s->tokens, d = s->head_dim, first = index * t * d;
    float *scratch = workspace, *scores = scratch + scratch_floats(s), *out = scores + t * t;
    head h = {s, scores, a->lse ? a->lse + index * t : NULL, (float)(1.0 / sqrt((double)d))};
    linear_blas.multiply(t, t, d, linear_rows(element_at(a->q, a->dtype, first), a->dtype, d),
                         linear_transposed(element_at(a->k, a->dtype, first), a->dtype, d), scores,
                         scratch);
    pool_for(pool_threads(), t, 1 + 16384 / t, softmax_rows, &h);
    linear_blas.multiply(t, d, t, linear_rows(scores, KERNEL_F32, t),
                         linear_rows(element_at(a->v, a->dtype, first), a->dtype, d), out,
                         scratch);
    kernel_from_f32(out, a->dtype, t * d, element_to(a->out, a->dtype, first));
}

int attention_run_blas(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const attention_forward_args *a = args;
    (void)state, (void)stream;
    if (!is_valid(&a->shape) || attention_blas_unsupported(a)) return KERNEL_ERROR_ARGUMENT;
    if (!element_takes(a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->shape.batch * a->shape.heads; i++) run_head(a, i, workspace);
    return KERNEL_OK;
}
