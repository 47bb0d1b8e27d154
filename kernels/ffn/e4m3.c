/*
 * e4m3.c - the forward pass with operands of e4m3, on the host.
 *
 * 1. naive  one dot product per result, of operands converted to f32: what a GPU's
 *           products of e4m3 are held against where there is none. Its products are
 *           exact in f32, whose sums round as others do; the factors of a product's
 *           operands are applied to its sum.
 *
 * Bound by the latency of its additions.
 */
#include "e4m3.h"

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/saturating.h"
#include "../linear/linear.h"

static int is_valid(const ffn_shape *s)
{
    return s->tokens > 0 && s->width > 0 && s->hidden > 0;
}

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* x and hidden, and what is longer, as f32, and one row of a weight. */
uint64_t ffn_e4m3_workspace_bytes(const ffn_shape *s)
{
    uint64_t both, floats;
    if (!is_valid(s)) return 0;
    both = saturating_sum((uint64_t)s->width, (uint64_t)s->hidden);
    floats = saturating_sum(saturating_product((uint64_t)s->tokens, both),
                            (uint64_t)longer(s->width, s->hidden));
    return saturating_product(floats, sizeof(float));
}

static float dot(const float *a, const float *b, int64_t count)
{
    float sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* One layer: in, as f32, is [tokens, depth], weight [columns, depth]. */
typedef struct layer {
    int64_t tokens, depth, columns;
    const float *in;
    const void *weight, *bias;
    float factor; /* of a sum: of both operands */
    float *row;   /* for one of the weight */
} layer;

/* The result of a column for every token, columns apart. */
static void run_column(const layer *l, int64_t column, float *out)
{
    float bias = element_get(l->bias, KERNEL_BF16, column);
    kernel_to_f32((const uint8_t *)l->weight + column * l->depth, KERNEL_E4M3, l->depth, l->row);
    for (int64_t i = 0; i < l->tokens; i++)
        out[i * l->columns + column] =
            l->factor * dot(l->in + i * l->depth, l->row, l->depth) + bias;
}

static void run_layer(const layer *l, float *out)
{
    for (int64_t column = 0; column < l->columns; column++) run_column(l, column, out);
}

/* What the second product takes of hidden, back as f32. */
static void round_elements(float *hidden, int64_t count, float per_hidden)
{
    for (int64_t i = 0; i < count; i++)
        hidden[i] = kernel_e4m3_to_f32(kernel_e4m3_from_f32(hidden[i] * per_hidden));
}

int ffn_e4m3_forward_naive(const ffn_forward_args *a, void *workspace)
{
    const ffn_shape *s = &a->shape;
    float *x = workspace, *hidden, *row;
    if (!is_valid(s) || a->dtype != KERNEL_E4M3 || !a->scales || a->pre || a->hidden)
        return KERNEL_ERROR_ARGUMENT;
    hidden = x + s->tokens * s->width;
    row = hidden + s->tokens * s->hidden;
    layer up = {s->tokens,
                s->width,
                s->hidden,
                x,
                a->w1,
                a->b1,
                a->scales->x.factor * a->scales->w1.factor,
                row};
    layer down = {s->tokens,
                  s->hidden,
                  s->width,
                  hidden,
                  a->w2,
                  a->b2,
                  a->scales->hidden.factor * a->scales->w2.factor,
                  row};
    kernel_to_f32(a->x, KERNEL_E4M3, s->tokens * s->width, x);
    run_layer(&up, hidden);
    linear_gelu(&linear_naive, hidden, KERNEL_F32, s->tokens * s->hidden, hidden);
    round_elements(hidden, s->tokens * s->hidden, a->scales->per_hidden.factor);
    run_layer(&down, x); /* which is done with */
    kernel_from_f32(x, KERNEL_BF16, s->tokens * s->width, a->y);
    return KERNEL_OK;
}
