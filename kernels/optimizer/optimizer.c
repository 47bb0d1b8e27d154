/*
 * optimizer.c - optimizer steps on the host: the operations' formulas, the
 * oracle, and the variants.
 *
 * 1. per_tensor  one pass over memory for each operation of the formula, as a
 *                framework's loop over tensors runs it: 80 bytes a parameter
 *                for AdamW. clip_norm: one chain of additions in double.
 * 2. fused       one pass with everything in registers: 28 bytes a parameter.
 *                clip_norm: sixteen chains of f32, added up in double every
 *                few thousand elements.
 *
 * All are bound by memory but for the chain, which is bound by the latency of
 * an addition. One thread. simd.c has the faster ones.
 */
#include "optimizer.h"

#include <math.h>
#include <string.h>

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/simd.h"
#include "simd.h"

/* ---- formulas ---------------------------------------------------------- */

static uint64_t per_element(int64_t elements, uint64_t factor)
{
    if (elements <= 0) return 0;
    return (uint64_t)elements > UINT64_MAX / factor ? UINT64_MAX : (uint64_t)elements * factor;
}

int64_t optimizer_elements(const optimizer_list *list)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < list->count; i++) {
        if (list->tensors[i].count > INT64_MAX - sum) return INT64_MAX;
        sum += list->tensors[i].count;
    }
    return sum;
}

/* Parameter and gradient as a step touches them: f32 8 + 4; a half the same 12:
 * the master's 8, a gradient and a parameter of 2. */
enum { STEP_BYTES = 12, MOMENT_BYTES = 8 };

uint64_t optimizer_adamw_bytes(int64_t elements, kernel_dtype dtype)
{
    (void)dtype;
    return per_element(elements, STEP_BYTES + 2 * MOMENT_BYTES);
}

uint64_t optimizer_sgd_bytes(int64_t elements, kernel_dtype dtype)
{
    (void)dtype;
    return per_element(elements, STEP_BYTES + MOMENT_BYTES);
}

uint64_t optimizer_clip_norm_bytes(int64_t elements, kernel_dtype dtype)
{
    return per_element(elements, kernel_dtype_bytes(dtype));
}

uint64_t optimizer_clip_scale_bytes(int64_t elements, kernel_dtype dtype)
{
    return per_element(elements, 2 * kernel_dtype_bytes(dtype));
}

uint64_t optimizer_adamw_flops(int64_t elements)
{
    return per_element(elements, 15);
}

uint64_t optimizer_sgd_flops(int64_t elements)
{
    return per_element(elements, 5);
}

uint64_t optimizer_clip_norm_flops(int64_t elements)
{
    return per_element(elements, 2);
}

uint64_t optimizer_clip_scale_flops(int64_t elements)
{
    return per_element(elements, 1);
}

/* ---- oracle ------------------------------------------------------------ */

void optimizer_adamw_reference(const optimizer_adamw *settings, double gradient_scale,
                               int64_t count, const float *gradient, double *parameter,
                               double *first, double *second)
{
    double rate = (double)settings->learning_rate, decay = (double)settings->weight_decay;
    double beta1 = (double)settings->beta1, beta2 = (double)settings->beta2;
    double correction1 = 1 - pow(beta1, (double)settings->step);
    double correction2 = 1 - pow(beta2, (double)settings->step);
    for (int64_t i = 0; i < count; i++) {
        double g = gradient_scale * (double)gradient[i];
        first[i] = beta1 * first[i] + (1 - beta1) * g;
        second[i] = beta2 * second[i] + (1 - beta2) * g * g;
        double root = sqrt(second[i] / correction2) + (double)settings->epsilon;
        parameter[i] = (1 - rate * decay) * parameter[i] - rate * (first[i] / correction1) / root;
    }
}

void optimizer_sgd_reference(const optimizer_sgd *settings, double gradient_scale, int64_t count,
                             const float *gradient, double *parameter, double *first)
{
    for (int64_t i = 0; i < count; i++) {
        first[i] = (double)settings->momentum * first[i] + gradient_scale * (double)gradient[i];
        parameter[i] -= (double)settings->learning_rate * first[i];
    }
}

double optimizer_clip_scale_reference(double norm, double max_norm)
{
    double scale = max_norm / (norm + 1e-6);
    return scale >= 1 ? 1 : scale;
}

double optimizer_square_sum_reference(int64_t count, const float *gradient)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)gradient[i] * (double)gradient[i];
    return sum;
}

/* ---- what the steps share ---------------------------------------------- */

simd_adamw optimizer_adamw_factors(const optimizer_adamw_args *a)
{
    const optimizer_adamw *s = &a->settings;
    const optimizer_scaler *counts = a->scaler;
    double beta1 = (double)s->beta1, beta2 = (double)s->beta2, rate = (double)s->learning_rate;
    simd_adamw factors = {
        .beta1 = s->beta1,
        .beta2 = s->beta2,
        .rest1 = (float)(1 - beta1),
        .rest2 = (float)(1 - beta2),
        .decay = (float)(1 - rate * (double)s->weight_decay),
        .rate = (float)(rate / (1 - pow(beta1, (double)s->step))),
        .root = (float)(1 / sqrt(1 - pow(beta2, (double)s->step))),
        .epsilon = s->epsilon,
        .scale = a->gradient_scale ? *a->gradient_scale : 1,
    };
    if (counts) factors.rate = s->learning_rate * counts->correction1;
    if (counts) factors.root = counts->correction2;
    return factors;
}

int optimizer_check(const optimizer_list *list, kernel_dtype dtype)
{
    if (list->count <= 0) return KERNEL_ERROR_ARGUMENT;
    return element_takes(dtype) ? KERNEL_OK : KERNEL_ERROR_ARGUMENT;
}

/* Steps work in pieces that stay in the first-level cache, so that bf16
 * gradients are converted there. */
enum { PIECE = 2048 };

/* One piece of a tensor: f32 all through. */
typedef struct piece {
    int64_t count;
    const float *gradient; /* as stored, or converted */
    float *value;          /* parameter or master */
    float *first, *second;
} piece;

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* count elements from `begin` on as f32: as stored, or converted into that room. */
static const float *piece_of(const void *data, kernel_dtype dtype, int64_t begin, int64_t count,
                             float *converted)
{
    const void *at = element_at(data, dtype, begin);
    if (element_is_f32(dtype)) return at;
    kernel_to_f32(at, dtype, count, converted);
    return converted;
}

/* The piece from element `begin` on. converted: room for PIECE floats. */
static piece piece_at(const optimizer_tensor *t, kernel_dtype dtype, int64_t begin,
                      float *converted)
{
    piece p = {.count = at_most(t->count - begin, PIECE), .first = t->first + begin};
    if (t->second) p.second = t->second + begin;
    p.gradient = piece_of(t->gradient, dtype, begin, p.count, converted);
    if (element_is_f32(dtype)) {
        p.value = (float *)t->parameter + begin;
        return p;
    }
    p.value = t->master + begin;
    return p;
}

/* The parameter from its master, where there is one. */
static void narrow(const optimizer_tensor *t, kernel_dtype dtype, int64_t begin, int64_t count)
{
    if (!element_is_f32(dtype))
        kernel_from_f32(t->master + begin, dtype, count, element_to(t->parameter, dtype, begin));
}

typedef void step_function(const void *factors, float scale, const piece *p);

static void step_list(const optimizer_list *list, kernel_dtype dtype, const float *gradient_scale,
                      const void *factors, step_function *step)
{
    float converted[PIECE], scale = gradient_scale ? *gradient_scale : 1;
    for (int64_t i = 0; i < list->count; i++) {
        const optimizer_tensor *t = &list->tensors[i];
        for (int64_t begin = 0; begin < t->count; begin += PIECE) {
            piece p = piece_at(t, dtype, begin, converted);
            step(factors, scale, &p);
            narrow(t, dtype, begin, p.count);
        }
    }
}

/* ---- fused ------------------------------------------------------------- */

/* sqrt(x) as x / sqrt(x), to 4 units in the last place where x is normal; 0
 * stays 0, a NaN a NaN, infinity becomes one. 1 / sqrt(x) is guessed by halving
 * the exponent (Lomont, "Fast inverse square root", 2003: off by 0.2 % after
 * one step of Newton's method, which squares the error each time). Unlike
 * sqrtf, which may have to set errno, it lets loops vectorize. */
static inline float fast_square_root(float x)
{
    uint32_t bits;
    float y;
    memcpy(&bits, &x, sizeof bits);
    bits = 0x5f375a86u - (bits >> 1);
    memcpy(&y, &bits, sizeof y);
    y *= 1.5f - 0.5f * x * y * y;
    y *= 1.5f - 0.5f * x * y * y;
    y *= 1.5f - 0.5f * x * y * y;
    return x * y;
}

static void adamw_elements(simd_adamw f, int64_t count,
                           const float *restrict gradient, float *restrict value,
                           float *restrict first, float *restrict second)
{
    for (int64_t i = 0; i < count; i++) {
        float g = f.scale * gradient[i];
        float m = f.beta1 * first[i] + f.rest1 * g;
        float v = f.beta2 * second[i] + f.rest2 * g * g;
        first[i] = m;
        second[i] = v;
        value[i] = f.decay * value[i] - f.rate * m / (fast_square_root(v) * f.root + f.epsilon);
    }
}

static void adamw_fused(const void *factors, float scale, const piece *p)
{
    (void)scale;
    adamw_elements(*(const simd_adamw *)factors, p->count, p->gradient, p->value,
                   p->first, p->second);
}

static void sgd_elements(optimizer_sgd s, float scale, int64_t count,
                         const float *restrict gradient, float *restrict value,
                         float *restrict first)
{
    for (int64_t i = 0; i < count; i++) {
        float b = s.momentum * first[i] + scale * gradient[i];
        first[i] = b;
        value[i] -= s.learning_rate * b;
    }
}

static void sgd_fused(const void *factors, float scale, const piece *p)
{
    sgd_elements(*(const optimizer_sgd *)factors, scale, p->count, p->gradient, p->value, p->first);
}

static int run_adamw_fused(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const optimizer_adamw_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (optimizer_check(&a->list, a->dtype) || a->settings.step < 1) return KERNEL_ERROR_ARGUMENT;
    if (a->scaler && a->scaler->skips) return KERNEL_OK;
    simd_adamw factors = optimizer_adamw_factors(a);
    step_list(&a->list, a->dtype, a->gradient_scale, &factors, adamw_fused);
    return KERNEL_OK;
}

static int run_sgd_fused(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const optimizer_sgd_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (optimizer_check(&a->list, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    step_list(&a->list, a->dtype, a->gradient_scale, &a->settings, sgd_fused);
    return KERNEL_OK;
}

/* ---- per tensor: one pass over the tensor for each operation ------------ */

static void multiply(int64_t n, float factor, float *x)
{
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

static void add_constant(int64_t n, float constant, float *x)
{
    for (int64_t i = 0; i < n; i++) x[i] += constant;
}

/* x += factor * y */
static void add_scaled(int64_t n, float factor, const float *restrict y, float *restrict x)
{
    for (int64_t i = 0; i < n; i++) x[i] += factor * y[i];
}

/* x += weight * (y - x) */
static void mix(int64_t n, float weight, float scale, const float *restrict y, float *restrict x)
{
    for (int64_t i = 0; i < n; i++) x[i] += weight * (scale * y[i] - x[i]);
}

/* x += factor * y^2 */
static void add_square(int64_t n, float factor, const float *restrict y, float *restrict x)
{
    for (int64_t i = 0; i < n; i++) x[i] += factor * y[i] * y[i];
}

static void square_root(int64_t n, const float *restrict y, float *restrict x)
{
    for (int64_t i = 0; i < n; i++) x[i] = sqrtf(y[i]);
}

/* x += factor * y / z */
static void add_quotient(int64_t n, float factor, const float *restrict y, const float *restrict z,
                         float *restrict x)
{
    for (int64_t i = 0; i < n; i++) x[i] += factor * y[i] / z[i];
}

static int64_t largest_tensor(const optimizer_list *list)
{
    int64_t largest = 0;
    for (int64_t i = 0; i < list->count; i++)
        if (list->tensors[i].count > largest) largest = list->tensors[i].count;
    return largest;
}

/* Floats for the largest tensor: AdamW's root, and a bf16 gradient as f32. */
static size_t floats_workspace(const optimizer_list *list, size_t arrays)
{
    return (size_t)largest_tensor(list) * arrays * sizeof(float);
}

static size_t adamw_workspace(const void *args)
{
    const optimizer_adamw_args *a = args;
    return floats_workspace(&a->list, element_is_f32(a->dtype) ? 1 : 2);
}

static size_t sgd_workspace(const void *args)
{
    const optimizer_sgd_args *a = args;
    return floats_workspace(&a->list, element_is_f32(a->dtype) ? 0 : 1);
}

static const float *gradient_of(const optimizer_tensor *t, kernel_dtype dtype, float *converted)
{
    return piece_of(t->gradient, dtype, 0, t->count, converted);
}

static void adamw_tensor(const optimizer_adamw_args *a, const optimizer_tensor *t,
                         const simd_adamw *f, float *workspace)
{
    float *root = workspace;
    const float *gradient = gradient_of(t, a->dtype, workspace + t->count);
    float *value = element_is_f32(a->dtype) ? t->parameter : t->master;
    multiply(t->count, f->decay, value);
    mix(t->count, f->rest1, f->scale, gradient, t->first);
    multiply(t->count, f->beta2, t->second);
    add_square(t->count, f->rest2 * f->scale * f->scale, gradient, t->second);
    square_root(t->count, t->second, root);
    multiply(t->count, f->root, root);
    add_constant(t->count, f->epsilon, root);
    add_quotient(t->count, -f->rate, t->first, root, value);
    narrow(t, a->dtype, 0, t->count);
}

static int run_adamw_per_tensor(const void *args, void *workspace, void *state,
                                kernel_stream stream)
{
    const optimizer_adamw_args *a = args;
    (void)state, (void)stream;
    if (optimizer_check(&a->list, a->dtype) || a->settings.step < 1) return KERNEL_ERROR_ARGUMENT;
    if (a->scaler && a->scaler->skips) return KERNEL_OK;
    simd_adamw factors = optimizer_adamw_factors(a);
    for (int64_t i = 0; i < a->list.count; i++)
        adamw_tensor(a, &a->list.tensors[i], &factors, workspace);
    return KERNEL_OK;
}

static int run_sgd_per_tensor(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const optimizer_sgd_args *a = args;
    float scale = a->gradient_scale ? *a->gradient_scale : 1;
    (void)state, (void)stream;
    if (optimizer_check(&a->list, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->list.count; i++) {
        const optimizer_tensor *t = &a->list.tensors[i];
        float *value = element_is_f32(a->dtype) ? t->parameter : t->master;
        multiply(t->count, a->settings.momentum, t->first);
        add_scaled(t->count, scale, gradient_of(t, a->dtype, workspace), t->first);
        add_scaled(t->count, -a->settings.learning_rate, t->first, value);
        narrow(t, a->dtype, 0, t->count);
    }
    return KERNEL_OK;
}

/* ---- clipping ---------------------------------------------------------- */

enum { CHAINS = 16 };

/* Sixteen sums, which the compiler keeps in vector registers. */
static double square_sum_chains(const float *x, int64_t count)
{
    float sums[CHAINS] = {0};
    double total = 0;
    int64_t i = 0;
    for (; i + CHAINS <= count; i += CHAINS)
        for (int c = 0; c < CHAINS; c++) sums[c] += x[i + c] * x[i + c];
    for (; i < count; i++) total += (double)x[i] * (double)x[i];
    for (int c = 0; c < CHAINS; c++) total += (double)sums[c];
    return total;
}

typedef double square_sum_function(const float *x, int64_t count);

static double square_sum_one_by_one(const float *x, int64_t count)
{
    return optimizer_square_sum_reference(count, x);
}

static double tensor_square_sum(const optimizer_tensor *t, kernel_dtype dtype,
                                square_sum_function *square_sum)
{
    float converted[PIECE];
    double sum = 0;
    for (int64_t begin = 0; begin < t->count; begin += PIECE) {
        int64_t count = at_most(t->count - begin, PIECE);
        sum += square_sum(piece_of(t->gradient, dtype, begin, count, converted), count);
    }
    return sum;
}

static int run_clip_norm(const optimizer_clip_args *a, square_sum_function *square_sum)
{
    double sum = 0;
    if (optimizer_check(&a->list, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->list.count; i++)
        sum += tensor_square_sum(&a->list.tensors[i], a->dtype, square_sum);
    *a->norm = (float)sqrt(sum);
    *a->scale = (float)optimizer_clip_scale_reference(sqrt(sum), (double)a->max_norm);
    return KERNEL_OK;
}

static int run_clip_norm_per_tensor(const void *args, void *workspace, void *state,
                                    kernel_stream stream)
{
    (void)workspace, (void)state, (void)stream;
    return run_clip_norm(args, square_sum_one_by_one);
}

static int run_clip_norm_fused(const void *args, void *workspace, void *state,
                               kernel_stream stream)
{
    (void)workspace, (void)state, (void)stream;
    return run_clip_norm(args, square_sum_chains);
}

static void scale_gradient(const optimizer_clip_args *a, const optimizer_tensor *t)
{
    for (int64_t j = 0; j < t->count; j++)
        element_set(t->gradient, a->dtype, j, *a->scale * element_get(t->gradient, a->dtype, j));
}

static int run_clip_scale(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const optimizer_clip_args *a = args;
    (void)workspace, (void)state, (void)stream;
    if (optimizer_check(&a->list, a->dtype)) return KERNEL_ERROR_ARGUMENT;
    for (int64_t i = 0; i < a->list.count; i++) scale_gradient(a, &a->list.tensors[i]);
    return KERNEL_OK;
}

/* ---- tables ------------------------------------------------------------ */

static const char one_pass_an_operation[] = "one pass over the tensor for each operation";
static const char one_pass[] = "one pass, everything in registers";

static const kernel_variant adamw_rows[] = {
    {.name = "per_tensor", .note = one_pass_an_operation, .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = adamw_workspace, .run = run_adamw_per_tensor},
    {.name = "fused", .note = one_pass, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .run = run_adamw_fused},
    {.name = "simd", .note = "one pass with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = optimizer_adamw_simd_workspace,
     .run = optimizer_adamw_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = optimizer_adamw_simd_workspace, .run = optimizer_adamw_run_threads,
     .runs_on = simd_runs_on_threads},
};

static const kernel_variant sgd_rows[] = {
    {.name = "per_tensor", .note = one_pass_an_operation, .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = sgd_workspace, .run = run_sgd_per_tensor},
    {.name = "fused", .note = one_pass, .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .run = run_sgd_fused},
    {.name = "simd", .note = "one pass with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = optimizer_sgd_simd_workspace,
     .run = optimizer_sgd_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = optimizer_sgd_simd_workspace, .run = optimizer_sgd_run_threads,
     .runs_on = simd_runs_on_threads},
};

static const kernel_variant clip_norm_rows[] = {
    {.name = "per_tensor", .note = "one chain of additions in double", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_clip_norm_per_tensor},
    {.name = "fused", .note = "sixteen chains of additions", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_clip_norm_fused},
    {.name = "simd", .note = "sums with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = optimizer_clip_simd_workspace,
     .run = optimizer_clip_norm_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = optimizer_clip_simd_workspace, .run = optimizer_clip_norm_run_threads,
     .runs_on = simd_runs_on_threads},
};

static const kernel_variant clip_scale_rows[] = {
    {.name = "per_tensor", .note = "a multiplication in place", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .run = run_clip_scale},
    {.name = "simd", .note = "the same with this processor's vectors", .dtypes = ELEMENT_DTYPES,
     .deterministic = 1, .workspace_bytes = optimizer_clip_simd_workspace,
     .run = optimizer_clip_scale_run_simd, .runs_on = simd_runs_on},
    {.name = "threads", .note = "simd on all threads", .dtypes = ELEMENT_DTYPES, .deterministic = 1,
     .workspace_bytes = optimizer_clip_simd_workspace, .run = optimizer_clip_scale_run_threads,
     .runs_on = simd_runs_on_threads},
};

const kernel_table optimizer_adamw_cpu = {adamw_rows, sizeof adamw_rows / sizeof *adamw_rows};
const kernel_table optimizer_sgd_cpu = {sgd_rows, sizeof sgd_rows / sizeof *sgd_rows};
const kernel_table optimizer_clip_norm_cpu = {clip_norm_rows,
                                              sizeof clip_norm_rows / sizeof *clip_norm_rows};
const kernel_table optimizer_clip_scale_cpu = {clip_scale_rows,
                                               sizeof clip_scale_rows / sizeof *clip_scale_rows};
