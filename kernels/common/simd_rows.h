/*
 * simd_rows.h - the loops of simd.h over rows that memory bounds, not arithmetic,
 * for simd_body.h, behind its helpers. The family has also defined store_around,
 * which writes aligned lanes without reading the line that they replace, and
 * settle, behind which others see what was so written.
 */

/* ---- other dtypes ------------------------------------------------------------------ */

typedef uint16_t half_lanes __attribute__((vector_size(SIMD_BYTES / 2)));

static inline lanes widened(half_lanes halves)
{
    return (lanes)(__builtin_convertvector(halves, uint_lanes) << 16);
}

/* convert.h's rounding: to nearest even, and a NaN stays one. */
static inline half_lanes narrowed(lanes x)
{
    uint_lanes bits = (uint_lanes)x, odd = bits >> 16 & 1u;
    uint_lanes is_nan = (uint_lanes)((int_lanes)(bits & 0x7fffffffu) > 0x7f800000);
    uint_lanes rounded = (bits + 0x7fffu + odd) >> 16, quiet = (bits | 0x00400000u) >> 16;
    return __builtin_convertvector((is_nan & quiet) | (~is_nan & rounded), half_lanes);
}

static void widen(int64_t count, const uint16_t *src, float *dst)
{
    half_lanes halves;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        memcpy(&halves, src + i, sizeof halves);
        store(dst + i, widened(halves));
    }
    if (i == count) return;
    memset(&halves, 0, sizeof halves);
    memcpy(&halves, src + i, (size_t)(count - i) * sizeof *src);
    store_some(dst + i, widened(halves), count - i);
}

static void narrow(int64_t count, const float *src, uint16_t *dst)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        half_lanes halves = narrowed(load(src + i));
        memcpy(dst + i, &halves, sizeof halves);
    }
    if (i == count) return;
    half_lanes halves = narrowed(load_some(src + i, count - i, 0));
    memcpy(dst + i, &halves, (size_t)(count - i) * sizeof *dst);
}

/* ---- sums ---------------------------------------------------------------------------- */

/* What is summed of x and y, elements of two rows, with a constant. */
typedef lanes term_function(lanes x, lanes y, lanes constant);

/* Four sums, so that an addition need not wait for the one before; inlined with a
 * known term. The rest of a row is filled with what adds 0: x with `rest`. */
static inline __attribute__((always_inline)) float
sum_terms(int64_t count, const float *x, const float *y, float constant, float rest,
          term_function *term)
{
    lanes sums[4] = {all_of(0), all_of(0), all_of(0), all_of(0)}, c = all_of(constant);
    int64_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int s = 0; s < 4; s++)
            sums[s] += term(load(x + i + s * LANES), load(y + i + s * LANES), c);
    for (; i + LANES <= count; i += LANES) sums[0] += term(load(x + i), load(y + i), c);
    if (i < count)
        sums[1] += term(load_some(x + i, count - i, rest), load_some(y + i, count - i, 0), c);
    return sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

static inline lanes itself(lanes x, lanes y, lanes constant)
{
    (void)y, (void)constant;
    return x;
}

static inline lanes square_of_difference(lanes x, lanes y, lanes constant)
{
    (void)y;
    return (x - constant) * (x - constant);
}

static float sum(int64_t count, const float *x)
{
    return sum_terms(count, x, x, 0, 0, itself);
}

static float sum_of_squares(int64_t count, const float *x, float mean)
{
    return sum_terms(count, x, x, mean, mean, square_of_difference);
}

static uint32_t sum_words(int64_t count, const uint32_t *x)
{
    uint_lanes sums[4], word;
    uint32_t total = 0;
    int64_t i = 0;
    memset(sums, 0, sizeof sums);
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int s = 0; s < 4; s++) {
            memcpy(&word, x + i + s * LANES, sizeof word);
            sums[s] += word;
        }
    for (; i < count; i++) total += x[i];
    for (int l = 0; l < LANES; l++) total += sums[0][l] + sums[1][l] + sums[2][l] + sums[3][l];
    return total;
}

/* ---- one row from others -------------------------------------------------------------- */

/* Rows that are read, and constants. */
typedef struct map_inputs {
    const float *x, *y, *z, *w; /* those that the function does not use may be NULL */
    lanes constants[4];
} map_inputs;

typedef lanes map_function(const lanes *in, const lanes *constants);

/* Of elements i to i + count, count at most LANES; inlined with known rows. */
static inline __attribute__((always_inline)) lanes map_some(const map_inputs *in, int rows,
                                                            int64_t i, int64_t count,
                                                            map_function *f)
{
    lanes values[4];
    if (rows > 0) values[0] = load_some(in->x + i, count, 0);
    if (rows > 1) values[1] = load_some(in->y + i, count, 0);
    if (rows > 2) values[2] = load_some(in->z + i, count, 0);
    if (rows > 3) values[3] = load_some(in->w + i, count, 0);
    return f(values, in->constants);
}

static inline int64_t unaligned_elements(const float *dst, int64_t count)
{
    int64_t missing = (int64_t)(-(uintptr_t)dst % SIMD_BYTES / sizeof *dst);
    return missing < count ? missing : count;
}

/* dst[i] = f of the inputs' elements i. around: not through the caches, for rows
 * that they will not hold until somebody reads them. */
static inline __attribute__((always_inline)) void map(int64_t count, const map_inputs *in,
                                                      int rows, float *dst, int around,
                                                      map_function *f)
{
    int64_t i = 0;
    if (around) {
        int64_t first = unaligned_elements(dst, count);
        if (first > 0) store_some(dst, map_some(in, rows, 0, first, f), first);
        for (i = first; i + LANES <= count; i += LANES)
            store_around(dst + i, map_some(in, rows, i, LANES, f));
    } else {
        for (; i + LANES <= count; i += LANES) store(dst + i, map_some(in, rows, i, LANES, f));
    }
    if (i < count) store_some(dst + i, map_some(in, rows, i, count - i, f), count - i);
}

static inline lanes copied(const lanes *in, const lanes *c)
{
    (void)c;
    return in[0];
}

static inline lanes constant(const lanes *in, const lanes *c)
{
    (void)in;
    return c[0];
}

static inline lanes scaled_sum(const lanes *in, const lanes *c)
{
    return multiply_add(c[0], in[1], in[0]);
}

static void copy(int64_t count, const float *x, float *dst, int around)
{
    map_inputs in = {.x = x};
    map(count, &in, 1, dst, around, copied);
}

static void fill(int64_t count, float value, float *dst, int around)
{
    map_inputs in = {.constants = {all_of(value)}};
    map(count, &in, 0, dst, around, constant);
}

static void add_scaled(int64_t count, const float *x, float factor, const float *y, float *dst,
                       int around)
{
    map_inputs in = {.x = x, .y = y, .constants = {all_of(factor)}};
    map(count, &in, 2, dst, around, scaled_sum);
}

/* ---- norms ------------------------------------------------------------------------------ */

static inline lanes normalized(const lanes *in, const lanes *c)
{
    return (in[0] - c[0]) * c[1] * in[1];
}

static inline lanes normalized_and_shifted(const lanes *in, const lanes *c)
{
    return multiply_add((in[0] - c[0]) * c[1], in[1], in[2]);
}

static void normalize(int64_t count, const float *x, float mean, float rstd, const float *weight,
                      const float *bias, float *y, int around)
{
    map_inputs in = {x, weight, bias, NULL, {all_of(mean), all_of(rstd)}};
    if (bias)
        map(count, &in, 3, y, around, normalized_and_shifted);
    else
        map(count, &in, 2, y, around, normalized);
}

/* A row's sums of g and g xhat. */
typedef struct norm_sums {
    lanes g, product;
} norm_sums;

/* Of up to LANES elements; inlined with LANES or the rest. */
static inline __attribute__((always_inline)) void
add_norm_gradients_of_some(int64_t count, float mean, float rstd, const float *x, const float *dy,
                           const float *weight, float *weight_sums, float *bias_sums,
                           norm_sums *sums)
{
    lanes d = load_some(dy, count, 0), g = d * load_some(weight, count, 0);
    lanes xhat = (load_some(x, count, mean) - mean) * rstd;
    sums->g += g;
    sums->product = multiply_add(g, xhat, sums->product);
    store_some(weight_sums, multiply_add(d, xhat, load_some(weight_sums, count, 0)), count);
    store_some(bias_sums, load_some(bias_sums, count, 0) + d, count);
}

static void add_norm_gradients(int64_t count, float mean, float rstd, const float *x,
                               const float *dy, const float *weight, float *weight_sums,
                               float *bias_sums, float *sums)
{
    norm_sums both = {all_of(0), all_of(0)};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        add_norm_gradients_of_some(LANES, mean, rstd, x + i, dy + i, weight + i, weight_sums + i,
                                   bias_sums + i, &both);
    if (i < count)
        add_norm_gradients_of_some(count - i, mean, rstd, x + i, dy + i, weight + i,
                                   weight_sums + i, bias_sums + i, &both);
    sums[0] = sum_of_lanes(both.g);
    sums[1] = sum_of_lanes(both.product);
}

/* in: x, dy, weight; constants: mean, rstd, mean of g, mean of g xhat. */
static inline lanes norm_gradient(const lanes *in, const lanes *c)
{
    lanes xhat = (in[0] - c[0]) * c[1];
    return c[1] * (in[1] * in[2] - c[2] - xhat * c[3]);
}

static inline lanes norm_gradient_and_sum(const lanes *in, const lanes *c)
{
    return norm_gradient(in, c) + in[3];
}

static void norm_input_gradient(int64_t count, const float *statistics, const float *x,
                                const float *dy, const float *weight, const float *dsum,
                                float *dx, int around)
{
    map_inputs in = {x, dy, weight, dsum,
                     {all_of(statistics[0]), all_of(statistics[1]), all_of(statistics[2]),
                      all_of(statistics[3])}};
    if (dsum)
        map(count, &in, 4, dx, around, norm_gradient_and_sum);
    else
        map(count, &in, 3, dx, around, norm_gradient);
}

/* ---- softmax ------------------------------------------------------------------------------ */

static inline lanes exponential(lanes x, lanes max)
{
    return exp2_nonpositive_lanes((x - max) * 1.44269504088896340736f);
}

/* A row's sum so far, in parts, relative to the largest element so far. */
enum { SUM_PARTS = 4, SUM_GROUP = BLOCK_ROWS < 12 ? 4 : 8 }; /* with as many registers */
typedef struct exponential_sum {
    lanes parts[SUM_PARTS], max;
} exponential_sum;

/* Only where there is something larger: of a row of n elements in any order that is
 * expected log(n) times. */
static void raise_max(exponential_sum *s, float max)
{
    lanes factor = exponential(s->max, all_of(max));
    for (int p = 0; p < SUM_PARTS; p++) s->parts[p] *= factor;
    s->max = all_of(max);
}

/* A group of vectors is read once, and stays in registers while its largest is found;
 * inlined with a known number of them. */
static inline __attribute__((always_inline)) void add_group(exponential_sum *s, const lanes *x,
                                                            int vectors)
{
    lanes top[SUM_GROUP];
    for (int v = 0; v < vectors; v++) top[v] = x[v];
    for (int half = vectors / 2; half > 0; half /= 2)
        for (int v = 0; v < half; v++) top[v] = larger(top[v], top[v + half]);
    if (any_greater(top[0], s->max)) raise_max(s, largest_lane(top[0]));
    for (int v = 0; v < vectors; v++) s->parts[v % SUM_PARTS] += exponential(x[v], s->max);
}

/* What is beyond the row adds 2^-126 a lane: nothing, beside the largest's 1. */
static void add_exponentials(int64_t count, const float *x, float *max, float *sum)
{
    exponential_sum s = {.max = all_of(*max)};
    lanes some[SUM_GROUP];
    int64_t i = 0;
    s.parts[0][0] = *sum;
    for (; i + SUM_GROUP * LANES <= count; i += SUM_GROUP * LANES) {
        for (int v = 0; v < SUM_GROUP; v++) some[v] = load(x + i + v * LANES);
        add_group(&s, some, SUM_GROUP);
    }
    for (; i < count; i += LANES) {
        some[0] = i + LANES <= count ? load(x + i) : load_some(x + i, count - i, -INFINITY);
        add_group(&s, some, 1);
    }
    *max = s.max[0];
    *sum = sum_of_lanes((s.parts[0] + s.parts[1]) + (s.parts[2] + s.parts[3]));
}

static inline lanes scaled_exponential(const lanes *in, const lanes *c)
{
    return exponential(in[0], c[0]) * c[1];
}

static void softmax_gradient(int64_t count, float lse, float scale, const float *x, float *dst,
                             int around)
{
    map_inputs in = {.x = x, .constants = {all_of(lse), all_of(scale)}};
    map(count, &in, 1, dst, around, scaled_exponential);
}

/* ---- optimizer steps ------------------------------------------------------------------------ */

/* Of up to LANES elements; inlined with LANES or the rest. */
static inline __attribute__((always_inline)) void
adamw_some(int64_t count, const simd_adamw *f, const float *gradient, float *value, float *first,
           float *second)
{
    lanes g = load_some(gradient, count, 0) * f->scale;
    lanes m = multiply_add(all_of(f->beta1), load_some(first, count, 0), g * f->rest1);
    lanes v = multiply_add(all_of(f->beta2), load_some(second, count, 0), g * g * f->rest2);
    lanes step = m * f->rate / multiply_add(square_root(v), all_of(f->root), all_of(f->epsilon));
    store_some(first, m, count);
    store_some(second, v, count);
    store_some(value, load_some(value, count, 0) * f->decay - step, count);
}

static void adamw(int64_t count, const simd_adamw *f, const float *gradient, float *value,
                  float *first, float *second)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        adamw_some(LANES, f, gradient + i, value + i, first + i, second + i);
    if (i < count) adamw_some(count - i, f, gradient + i, value + i, first + i, second + i);
}

static inline __attribute__((always_inline)) void sgd_some(int64_t count, float rate,
                                                           float momentum, float scale,
                                                           const float *gradient, float *value,
                                                           float *first)
{
    lanes b = multiply_add(load_some(first, count, 0), all_of(momentum),
                           load_some(gradient, count, 0) * scale);
    store_some(first, b, count);
    store_some(value, load_some(value, count, 0) - b * rate, count);
}

static void sgd(int64_t count, float rate, float momentum, float scale, const float *gradient,
                float *value, float *first)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        sgd_some(LANES, rate, momentum, scale, gradient + i, value + i, first + i);
    if (i < count) sgd_some(count - i, rate, momentum, scale, gradient + i, value + i, first + i);
}
