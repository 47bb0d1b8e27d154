/*
 * scaling.h - the rule of dynamic loss scaling for one step, the same code on the host
 * and on a GPU: see optimizer.h.
 */
#ifndef OPTIMIZER_SCALING_H
#define OPTIMIZER_SCALING_H

#include <math.h>
#include <string.h>

#include "optimizer.h"

#ifdef __CUDACC__
#define OPTIMIZER_BOTH_SIDES __host__ __device__
#else
#define OPTIMIZER_BOTH_SIDES
#endif

/* By bits, which no compiler reasons away. */
static inline OPTIMIZER_BOTH_SIDES int optimizer_is_finite(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7f800000u) != 0x7f800000u;
}

/* The scale after a step that is moved by it, or not: doubled when as many were finite
 * as the rule says, and as long as the result is a number. */
static inline OPTIMIZER_BOTH_SIDES void optimizer_adapt_scale(const optimizer_scaling *rule,
                                                              optimizer_scaler *s)
{
    if (s->skips) {
        float less = s->scale * rule->backoff;
        s->scale = less > OPTIMIZER_LEAST_SCALE ? less : OPTIMIZER_LEAST_SCALE;
        s->good = 0;
        return;
    }
    s->good++;
    if (s->good < rule->interval) return;
    if (optimizer_is_finite(s->scale * rule->growth)) s->scale *= rule->growth;
    s->good = 0;
}

/* AdamW's corrections for the step that is taken. */
static inline OPTIMIZER_BOTH_SIDES void optimizer_count_step(const optimizer_unscale_args *a)
{
    optimizer_scaler *s = a->scaler;
    if (s->skips) {
        s->skipped++;
        s->skipped_in_row++;
        return;
    }
    s->taken++;
    s->skipped_in_row = 0;
    s->correction1 = (float)(1 / (1 - pow((double)a->beta1, (double)s->taken)));
    s->correction2 = (float)(1 / sqrt(1 - pow((double)a->beta2, (double)s->taken)));
}

static inline OPTIMIZER_BOTH_SIDES void optimizer_unscale(const optimizer_unscale_args *a)
{
    optimizer_scaler *s = a->scaler;
    double norm = (double)*a->norm / (double)s->used;
    double clip = (double)a->max_norm / (norm + 1e-6);
    s->skips = !optimizer_is_finite(*a->norm);
    *a->norm = (float)norm;
    *a->gradient_scale = s->skips ? 0 : (float)((clip >= 1 ? 1 : clip) / (double)s->used);
    optimizer_count_step(a);
    optimizer_adapt_scale(&a->rule, s);
}

#endif
