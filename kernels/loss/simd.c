/*
 * simd.c - cross-entropy with the vector instructions that the processor has.
 *
 * 4. simd     fused's scheme, exponentials in vectors: a polynomial instead of a
 *             call for each logit, and the largest so far known before it is needed.
 *             Large gradients go around the caches. One thread.
 * 5. threads  the same on all threads, which are handed rows: no more than there
 *             are rows take part.
 *
 * Forward 4 bytes a logit of f32 against an exponential. A row was read twice, for its
 * largest and for the sum: as long as both readings together, because in the second one
 * nothing came from memory. Predicted: one reading, in which arithmetic and memory
 * overlap, at nearly the speed of reading alone. Seen with AVX-512 on one core that reads
 * 29 GB/s: 27 GB/s, where two readings and a longer exponential had 13. Backward and both
 * 8 bytes: bound by memory.
 *
 * Both is 0.60 to 0.69 of a copy's speed where backward is 0.88 to 0.99: a core first only
 * reads a row, then only writes it. Of 16 logits, on a core that copies them in 4.0 ns, 2.7
 * and 3.5 ns. Predicted: 5 with one exponential a logit, kept in the second-level cache for
 * the writing, which is then a multiplication. Seen 5.1 and 3.5: to keep them costs more
 * than the 2.1 that computing them again takes, most of which memory hides. Predicted: 4.5
 * with reading the next row and writing this one in turn, 128 to 16384 logits at a time.
 * Seen 8 to 10, and 6 at best with prefetches, of rows of 10,000.
 */
#include "simd.h"

#include <float.h>
#include <math.h>

#include "../common/pool.h"
#include "../common/saturating.h"
#include "../common/typed_rows.h"

enum { PIECE = 4096 }; /* logits that stay in the first-level cache */

typedef struct job {
    const loss_args *args;
    int around; /* the gradients go around the caches */
} job;

static int64_t length_of_piece(const loss_args *a, int64_t begin)
{
    int64_t left = a->shape.classes - begin;
    return left < PIECE ? left : PIECE;
}

/* -INFINITY, of which there may be nothing else, adds nothing. */
static float lse_of_row(const loss_args *a, int64_t row)
{
    float room[PIECE], max = -FLT_MAX, sum = 0;
    for (int64_t begin = 0; begin < a->shape.classes; begin += PIECE) {
        int64_t count = length_of_piece(a, begin), first = row * a->shape.classes + begin;
        simd()->add_exponentials(count, typed_row(a->logits, a->dtype, first, count, room), &max,
                                 &sum);
    }
    /* cppcheck-suppress invalidFunctionArg ; the largest of them adds 1 to the sum */
    return sum < 0.5f ? -INFINITY : max + logf(sum);
}

static void gradient_of_row(const job *j, int64_t row, float lse)
{
    const loss_args *a = j->args;
    float room[PIECE], scale = a->dloss[row];
    for (int64_t begin = 0; begin < a->shape.classes; begin += PIECE) {
        int64_t count = length_of_piece(a, begin), first = row * a->shape.classes + begin;
        int64_t target = a->targets[row] - begin;
        const float *x = typed_row(a->logits, a->dtype, first, count, room);
        float *gradient = typed_row_to_fill(a->dlogits, a->dtype, first, room);
        simd()->softmax_gradient(count, lse, scale, x, gradient, j->around);
        if (target >= 0 && target < count) gradient[target] -= scale;
        typed_row_done(gradient, a->dlogits, a->dtype, first, count);
    }
}

static float store_loss(const loss_args *a, int64_t row)
{
    float lse = lse_of_row(a, row);
    int64_t target = row * a->shape.classes + a->targets[row];
    a->loss[row] = lse - element_get(a->logits, a->dtype, target);
    if (a->lse) a->lse[row] = lse;
    return lse;
}

static void forward_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    (void)worker;
    for (int64_t row = begin; row < end; row++) (void)store_loss(j->args, row);
}

static void backward_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    (void)worker;
    for (int64_t row = begin; row < end; row++) gradient_of_row(j, row, j->args->lse[row]);
    simd()->settle();
}

static void both_of_rows(void *context, int worker, int64_t begin, int64_t end)
{
    const job *j = context;
    (void)worker;
    for (int64_t row = begin; row < end; row++) gradient_of_row(j, row, store_loss(j->args, row));
    simd()->settle();
}

static int run_on(int threads, const loss_args *a, pool_function *rows)
{
    job j = {.args = a};
    int error = loss_check(a);
    if (error) return error;
    uint64_t logits = saturating_product((uint64_t)a->shape.rows, (uint64_t)a->shape.classes);
    j.around = element_is_f32(a->dtype) &&
               simd_goes_around(saturating_product(logits, sizeof(float)));
    threads = typed_rows_threads(threads, a->shape.rows, a->shape.classes);
    pool_for(threads, a->shape.rows,
             typed_rows_range(threads, a->shape.rows, a->shape.classes), rows, &j);
    return KERNEL_OK;
}

#define RUN(pass, rows)                                                                         \
    int loss_##pass##_run_simd(const void *args, void *workspace, void *state,                  \
                               kernel_stream stream)                                            \
    {                                                                                           \
        (void)workspace, (void)state, (void)stream;                                             \
        return run_on(1, args, rows);                                                           \
    }                                                                                           \
    int loss_##pass##_run_threads(const void *args, void *workspace, void *state,               \
                                  kernel_stream stream)                                         \
    {                                                                                           \
        (void)workspace, (void)state, (void)stream;                                             \
        return run_on(pool_threads(), args, rows);                                              \
    }

RUN(forward, forward_rows)
RUN(backward, backward_rows)
RUN(both, both_of_rows)
