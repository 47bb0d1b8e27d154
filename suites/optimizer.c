/*
 * optimizer.c - the optimizer suite: AdamW and SGD steps over the parameter
 * lists of real models, the norm of all gradients, and their scaling in place.
 *
 * A step changes what it reads, so no two runs are the same. Two things make
 * it judgeable. A few windows of the state are set back before each sample, so
 * that they have seen exactly one step from known values. Everything else has
 * seen as many steps as were run from moments of zero, with equal gradients
 * each time and a fixed step number: every moment must be the same multiple of
 * its gradient, or of its square, whatever that number of runs is.
 */
#include "suite.h"

#include "../kernels/common/convert.h"
#include "../kernels/memcpy/memcpy.h"
#include "../kernels/optimizer/optimizer.h"
#include "../kernels/common/parameters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADAMW, SGD, CLIP_NORM, CLIP_SCALE };
enum { PARAMETER, GRADIENT, MASTER, FIRST, SECOND, ARRAYS };
enum { WINDOWS = 12, WINDOW_ELEMENTS = 256 };

/* Large enough for every term to show, small enough for thousands of steps. */
static const optimizer_adamw adamw_settings = {.learning_rate = 1e-3f, .beta1 = 0.9f,
                                               .beta2 = 0.99f, .epsilon = 1e-3f,
                                               .weight_decay = 0.1f, .step = 10};
static const optimizer_sgd sgd_settings = {.learning_rate = 1e-3f, .momentum = 0.9f};

/* The steps' gradient_scale; and what clip_scale multiplies by: a sign, so
 * that gradients keep their size however often it runs. */
static const float step_scale = 0.5f, flip = -1.0f;

/* The tensors of one array lie behind each other, so that element i of the
 * whole model is element i of each array. */
typedef struct state {
    parameters_model model;
    int64_t elements;
    void *arrays[ARRAYS]; /* NULL: the operation has none */
    void *saved[ARRAYS];  /* what the windows are set back to; NULL: never changes */
    int64_t windows[WINDOWS], window_count, window_elements;
    int is_cuda;
} state;

/* The arguments stand first, so that a pointer to the case is one to them. */
typedef struct optimizer_case {
    union {
        optimizer_adamw_args adamw;
        optimizer_sgd_args sgd;
        optimizer_clip_args clip;
    } args;
    int kind;
    state state;
} optimizer_case;

/* ---- building --------------------------------------------------------------- */

static kernel_dtype array_dtype(const suite_case *c, int array)
{
    return array == PARAMETER || array == GRADIENT ? c->dtype : KERNEL_F32;
}

static int has_array(const suite_case *c, int array)
{
    const optimizer_case *o = c->args;
    switch (array) {
    case GRADIENT: return 1;
    case MASTER: return o->kind <= SGD && c->dtype == KERNEL_BF16;
    case SECOND: return o->kind == ADAMW;
    default: return o->kind <= SGD;
    }
}

/* Whether a run changes the array. */
static int is_written(const suite_case *c, int array)
{
    const optimizer_case *o = c->args;
    return o->kind == CLIP_SCALE || (o->kind <= SGD && array != GRADIENT);
}

static void *element_at(void *memory, kernel_dtype dtype, int64_t index)
{
    return (char *)memory + suite_bytes(index, dtype);
}

/* Parameters as models start with, gradients of another stream, moments of 0
 * (no spread). A master starts as the parameter before rounding. */
static int build_arrays(const suite_case *c, gpubench *bench, state *s)
{
    static const float stddev[ARRAYS] = {0.02f, 1, 0.02f, 0, 0};
    int code = 0;
    for (int a = 0; a < ARRAYS && code == 0; a++)
        if (has_array(c, a))
            code = suite_input(bench, array_dtype(c, a), s->elements, stddev[a], a == GRADIENT,
                               &s->arrays[a]);
    return code;
}

/* Starts of windows: the first and the last elements, and others across the
 * boundaries of tensors. */
static void choose_windows(const gpubench *bench, state *s)
{
    int64_t tensors[WINDOWS - 1], ends[WINDOWS - 1], total = 0, next = 0;
    int64_t count = suite_sample_indices(gpubench_seed(bench), parameters_tensor_count(&s->model),
                                         WINDOWS - 1, tensors);
    s->window_elements = s->elements < WINDOW_ELEMENTS ? s->elements : WINDOW_ELEMENTS;
    for (int64_t i = 0; next < count; i++) {
        parameters_tensor tensor = parameters_tensor_at(&s->model, i);
        total += parameters_elements(&tensor);
        if (i == tensors[next])
            ends[next++] = total;
    }
    s->windows[0] = 0;
    s->window_count = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t last = s->elements - s->window_elements, begin = ends[i] - s->window_elements / 2;
        begin = begin > last ? last : begin;
        if (begin >= s->windows[s->window_count - 1] + s->window_elements)
            s->windows[s->window_count++] = begin;
    }
}

/* Random values for the windows of every array that a run changes; squares for
 * the second moment. The gradient's own values are kept. */
static int build_saved(const suite_case *c, gpubench *bench, state *s)
{
    float values[WINDOW_ELEMENTS * WINDOWS];
    int64_t count = s->window_count * s->window_elements;
    int code = 0;
    for (int a = 0; a < ARRAYS && code == 0; a++) {
        kernel_dtype dtype = array_dtype(c, a);
        if (!s->arrays[a] || !is_written(c, a))
            continue;
        code = suite_input(bench, dtype, count, a == FIRST ? 0.5f : 0.02f,
                           a == MASTER ? PARAMETER : (uint64_t)a, &s->saved[a]);
        if (code != 0 || a != SECOND)
            continue;
        code = suite_fetch(bench, s->saved[a], dtype, 0, count, values);
        for (int64_t i = 0; i < count; i++)
            values[i] *= 100 * values[i];
        if (code == 0)
            code = gpubench_copy(bench, s->saved[a], values, suite_bytes(count, dtype));
    }
    return code;
}

static int build_scalar(gpubench *bench, float value, float **scalar)
{
    *scalar = gpubench_alloc(bench, sizeof value, GPUBENCH_DEVICE);
    return *scalar ? gpubench_copy(bench, *scalar, &value, sizeof value) : GPUBENCH_OOM;
}

static int build_scalars(optimizer_case *o, gpubench *bench)
{
    float *scale = NULL;
    void *norm = NULL, *clip_scale = NULL;
    int code = 0;
    if (o->kind == CLIP_NORM) {
        code = suite_output(bench, KERNEL_F32, 1, &norm);
        if (code == 0)
            code = suite_output(bench, KERNEL_F32, 1, &clip_scale);
        o->args.clip.norm = norm;
        o->args.clip.scale = clip_scale;
        return code;
    }
    code = build_scalar(bench, o->kind == CLIP_SCALE ? flip : step_scale, &scale);
    if (o->kind == ADAMW)
        o->args.adamw.gradient_scale = scale;
    else if (o->kind == SGD)
        o->args.sgd.gradient_scale = scale;
    else
        o->args.clip.scale = scale;
    return code;
}

static optimizer_list *list_of(optimizer_case *o)
{
    return o->kind == ADAMW ? &o->args.adamw.list
         : o->kind == SGD   ? &o->args.sgd.list
                            : &o->args.clip.list;
}

static int build_list(const suite_case *c, gpubench *bench, optimizer_case *o)
{
    state *s = &o->state;
    int64_t count = parameters_tensor_count(&s->model), begin = 0;
    optimizer_tensor *tensors =
        gpubench_alloc(bench, (size_t)count * sizeof *tensors, GPUBENCH_PAGEABLE);
    if (!tensors)
        return GPUBENCH_OOM;
    for (int64_t i = 0; i < count; i++) {
        parameters_tensor shape = parameters_tensor_at(&s->model, i);
        void *at[ARRAYS] = {NULL};
        for (int a = 0; a < ARRAYS; a++)
            if (s->arrays[a])
                at[a] = element_at(s->arrays[a], array_dtype(c, a), begin);
        tensors[i] = (optimizer_tensor){parameters_elements(&shape), at[PARAMETER], at[GRADIENT],
                                        at[MASTER], at[FIRST], at[SECOND]};
        begin += tensors[i].count;
    }
    *list_of(o) = (optimizer_list){tensors, count};
    return 0;
}

static int build(suite_case *c, gpubench *bench)
{
    optimizer_case *o = c->args;
    state *s = &o->state;
    int code = build_arrays(c, bench, s);
    s->is_cuda = gpubench_is_cuda(bench);
    choose_windows(bench, s);
    if (code == 0)
        code = build_saved(c, bench, s);
    if (code == 0)
        code = build_scalars(o, bench);
    return code ? code : build_list(c, bench, o);
}

/* ---- before each sample ----------------------------------------------------- */

static int reset(suite_case *c, gpubench_stream stream)
{
    const state *s = &((const optimizer_case *)c->args)->state;
    kernel_table table = s->is_cuda ? SUITE_CUDA_TABLE(memcpy_d2d_cuda) : memcpy_copy_cpu;
    const kernel_variant *memcpy_variant = kernel_find(&table, "memcpy");
    if (!memcpy_variant)
        return KERNEL_ERROR_ARGUMENT;
    for (int a = 0; a < ARRAYS; a++)
        for (int64_t w = 0; s->saved[a] && w < s->window_count; w++) {
            kernel_dtype dtype = array_dtype(c, a);
            memcpy_args copy = {element_at(s->arrays[a], dtype, s->windows[w]),
                                element_at(s->saved[a], dtype, w * s->window_elements),
                                suite_bytes(s->window_elements, dtype), 0};
            int code = memcpy_variant->run(&copy, NULL, NULL, stream);
            if (code != 0)
                return code;
        }
    return 0;
}

/* ---- the windows: one run from known values ---------------------------------- */

/* One window: in as it was set back, out as the run left it. */
typedef struct window {
    float in[ARRAYS][WINDOW_ELEMENTS], out[ARRAYS][WINDOW_ELEMENTS];
    double expected[ARRAYS][WINDOW_ELEMENTS];
} window;

static int fetch_window(const suite_case *c, gpubench *bench, int64_t index, window *w)
{
    const state *s = &((const optimizer_case *)c->args)->state;
    int code = 0;
    for (int a = 0; a < ARRAYS && code == 0; a++) {
        kernel_dtype dtype = array_dtype(c, a);
        if (!s->arrays[a])
            continue;
        code = suite_fetch(bench, s->arrays[a], dtype, s->windows[index], s->window_elements,
                           w->out[a]);
        if (code == 0 && s->saved[a])
            code = suite_fetch(bench, s->saved[a], dtype, index * s->window_elements,
                               s->window_elements, w->in[a]);
    }
    return code;
}

/* A bf16 parameter is its master's rounding. */
static void expect_window(const suite_case *c, window *w)
{
    const optimizer_case *o = c->args;
    int64_t count = o->state.window_elements;
    int value = o->state.arrays[MASTER] ? MASTER : PARAMETER;
    for (int a = 0; a < ARRAYS; a++)
        for (int64_t i = 0; i < count; i++)
            w->expected[a][i] = (double)w->in[a][i];
    if (o->kind == ADAMW)
        optimizer_adamw_reference(&o->args.adamw.settings, (double)step_scale, count,
                                  w->out[GRADIENT], w->expected[value], w->expected[FIRST],
                                  w->expected[SECOND]);
    else if (o->kind == SGD)
        optimizer_sgd_reference(&o->args.sgd.settings, (double)step_scale, count,
                                w->out[GRADIENT], w->expected[value], w->expected[FIRST]);
    else
        for (int64_t i = 0; i < count; i++)
            w->expected[GRADIENT][i] *= (double)flip;
    for (int64_t i = 0; value == MASTER && i < count; i++)
        w->expected[PARAMETER][i] = w->expected[MASTER][i];
}

static int check_windows(const suite_case *c, gpubench *bench)
{
    const state *s = &((const optimizer_case *)c->args)->state;
    suite_error errors[ARRAYS] = {{0, 0}};
    window *w = calloc(1, sizeof *w);
    int code = w ? 0 : KERNEL_ERROR_MEMORY;
    for (int64_t i = 0; i < s->window_count && code == 0; i++) {
        code = fetch_window(c, bench, i, w);
        if (code != 0)
            break;
        expect_window(c, w);
        for (int a = 0; a < ARRAYS; a++)
            if (s->saved[a])
                suite_compare(&errors[a], w->out[a], w->expected[a], s->window_elements);
    }
    for (int a = 0; a < ARRAYS && code == 0; a++)
        if (s->saved[a])
            code = suite_check(bench, &errors[a], array_dtype(c, a), 1);
    free(w);
    return code;
}

/* ---- everything else: equally many runs -------------------------------------- */

enum { PIECE = 1 << 20, PIECES = 32, SURVEYS = PIECE / SUITE_RANGE };

/* How far y is from being a multiple of x. */
typedef struct proportion {
    double xx, xy, yy;
} proportion;

static void add_pair(proportion *p, double x, double y)
{
    p->xx += x * x;
    p->xy += x * y;
    p->yy += y * y;
}

static void add_proportion(proportion *p, const proportion *other)
{
    p->xx += other->xx;
    p->xy += other->xy;
    p->yy += other->yy;
}

/* The multiple must be at least that of one run, and fit every element. */
static int check_proportion(gpubench *bench, const proportion *p, double least)
{
    double residual2;
    if (!gpubench_is_finite(p->xx) || !gpubench_is_finite(p->xy) || !gpubench_is_finite(p->yy))
        return gpubench_fail(bench, GPUBENCH_MISMATCH, "some moment is no finite number");
    if (p->xx == 0 && p->yy == 0)
        return 0; /* the windows cover everything */
    if (p->xy <= 0.999 * least * p->xx)
        return gpubench_fail(bench, GPUBENCH_MISMATCH, "some tensor was never updated");
    residual2 = (p->yy - p->xy / p->xx * p->xy) / p->yy;
    return gpubench_check(bench, sqrt(residual2 < 0 ? 0 : residual2), 1e-4);
}

/* Sets the elements that lie in windows to 0 in all arrays: those are checked
 * apart, and 0 fits every proportion. */
static void blank_windows(const state *s, int64_t first, int64_t count, float *values[ARRAYS])
{
    for (int64_t w = 0; w < s->window_count; w++)
        for (int64_t i = 0; i < s->window_elements; i++) {
            int64_t at = s->windows[w] + i - first;
            for (int a = 0; a < ARRAYS && at >= 0 && at < count; a++)
                values[a][at] = 0;
        }
}

/* The moments' proportions, and whether the value of each element is a number. */
typedef struct survey {
    proportion first, second;
    int64_t numbers;
} survey;

static void add_survey(survey *sum, const survey *other)
{
    add_proportion(&sum->first, &other->first);
    add_proportion(&sum->second, &other->second);
    sum->numbers += other->numbers;
}

/* A piece on the host, from element `first` of the model on, and what is found
 * in each SUITE_RANGE of it. */
typedef struct state_piece {
    const state *state;
    int64_t first;
    float *values[ARRAYS];
    survey found[SURVEYS];
} state_piece;

static int is_number(const float *value)
{
    uint32_t word;
    memcpy(&word, value, sizeof word);
    return suite_is_finite_word(word);
}

static void survey_range(void *context, int64_t begin, int64_t end)
{
    state_piece *p = context;
    survey found = {{0, 0, 0}, {0, 0, 0}, 0};
    float *values[ARRAYS];
    for (int a = 0; a < ARRAYS; a++)
        values[a] = p->values[a] + begin;
    for (int64_t i = 0; i < end - begin; i++)
        found.numbers += is_number(&values[PARAMETER][i]) && is_number(&values[MASTER][i]);
    blank_windows(p->state, p->first + begin, end - begin, values);
    for (int64_t i = 0; i < end - begin; i++) {
        double g = (double)values[GRADIENT][i] * (double)step_scale;
        add_pair(&found.first, g, (double)values[FIRST][i]);
        add_pair(&found.second, g * g, (double)values[SECOND][i]);
    }
    p->found[begin / SUITE_RANGE] = found;
}

static int survey_piece(const suite_case *c, gpubench *bench, int64_t count, state_piece *p,
                        survey *found)
{
    int code = 0;
    for (int a = 0; a < ARRAYS && code == 0; a++)
        if (p->state->arrays[a])
            code = suite_fetch(bench, p->state->arrays[a], array_dtype(c, a), p->first, count,
                               p->values[a]);
    if (code != 0)
        return code;
    parallel_for(count, SUITE_RANGE, survey_range, p);
    for (int64_t i = 0; i < parallel_range_count(count, SUITE_RANGE); i++)
        add_survey(found, &p->found[i]);
    return 0;
}

/* All pieces of a model, or a sample of a large one's. */
static int survey_state(const suite_case *c, gpubench *bench, state_piece *p, survey *found,
                        int64_t *looked_at)
{
    int64_t pieces[PIECES], all = parallel_range_count(p->state->elements, PIECE);
    int64_t count = suite_sample_indices(gpubench_seed(bench), all, PIECES, pieces);
    int code = 0;
    for (int64_t i = 0; i < count && code == 0; i++) {
        int64_t left = p->state->elements - pieces[i] * PIECE, now = left < PIECE ? left : PIECE;
        p->first = pieces[i] * PIECE;
        *looked_at += now;
        code = survey_piece(c, bench, now, p, found);
    }
    return code;
}

static int judge_survey(const optimizer_case *o, gpubench *bench, const survey *found,
                        int64_t looked_at)
{
    int code;
    if (found->numbers != looked_at)
        return gpubench_fail(bench, GPUBENCH_MISMATCH, "%lld of %lld parameters are no numbers",
                             (long long)(looked_at - found->numbers), (long long)looked_at);
    if (o->kind == SGD)
        return check_proportion(bench, &found->first, 1);
    code = check_proportion(bench, &found->first, 1 - (double)adamw_settings.beta1);
    return code ? code
                : check_proportion(bench, &found->second, 1 - (double)adamw_settings.beta2);
}

static int check_rest(const suite_case *c, gpubench *bench)
{
    const optimizer_case *o = c->args;
    float *memory = calloc((size_t)ARRAYS * PIECE, sizeof *memory);
    state_piece piece = {.state = &o->state};
    survey found = {{0, 0, 0}, {0, 0, 0}, 0};
    int64_t looked_at = 0;
    int code = memory ? 0 : KERNEL_ERROR_MEMORY;
    for (int a = 0; a < ARRAYS && code == 0; a++)
        piece.values[a] = memory + (size_t)a * PIECE;
    if (code == 0)
        code = survey_state(c, bench, &piece, &found, &looked_at);
    free(memory);
    return code ? code : judge_survey(o, bench, &found, looked_at);
}

/* ---- the norm ---------------------------------------------------------------- */

/* The squares' sums of a gradient, of each SUITE_RANGE its own. */
typedef struct square_sums {
    kernel_dtype dtype;
    double *of_range;
} square_sums;

static void sum_squares(void *context, const void *raw, int64_t at, int64_t count)
{
    enum { AT_A_TIME = 4096 };
    const square_sums *sums = context;
    float values[AT_A_TIME];
    double sum = 0;
    for (int64_t i = 0; i < count; i += AT_A_TIME) {
        int64_t now = count - i < AT_A_TIME ? count - i : AT_A_TIME;
        kernel_to_f32((const char *)raw + suite_bytes(i, sums->dtype), sums->dtype, now, values);
        sum += optimizer_square_sum_reference(now, values);
    }
    sums->of_range[at / SUITE_RANGE] = sum;
}

static int sum_gradient_squares(const suite_case *c, gpubench *bench, double *sum)
{
    const state *s = &((const optimizer_case *)c->args)->state;
    int64_t count = parallel_range_count(s->elements, SUITE_RANGE);
    square_sums sums = {c->dtype, malloc((size_t)count * sizeof *sums.of_range)};
    int code = sums.of_range ? 0 : KERNEL_ERROR_MEMORY;
    if (code == 0)
        code = suite_look_at(bench, s->arrays[GRADIENT], c->dtype, 0, s->elements, sum_squares,
                             &sums);
    *sum = 0;
    for (int64_t i = 0; i < count && code == 0; i++)
        *sum += sums.of_range[i];
    free(sums.of_range);
    return code;
}

/* The squares' sum of the whole gradient, which is the same for every variant
 * and mode: the last ones are kept. */
static int square_sum(const suite_case *c, gpubench *bench, double *sum)
{
    static struct {
        int64_t elements;
        kernel_dtype dtype;
        double sum;
    } known[16];
    static size_t next;
    int64_t elements = ((const optimizer_case *)c->args)->state.elements;
    int code;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].elements == elements && known[i].dtype == c->dtype) {
            *sum = known[i].sum;
            return 0;
        }
    code = sum_gradient_squares(c, bench, sum);
    known[next].elements = code ? 0 : elements;
    known[next].dtype = c->dtype;
    known[next].sum = *sum;
    next = (next + 1) % (sizeof known / sizeof *known);
    return code;
}

static int check_norm(const suite_case *c, gpubench *bench)
{
    const optimizer_clip_args *args = &((const optimizer_case *)c->args)->args.clip;
    double expected[2] = {0, 0};
    float found[2];
    suite_error errors[2] = {{0, 0}, {0, 0}};
    int code = square_sum(c, bench, &expected[0]);
    if (code == 0)
        code = gpubench_copy(bench, &found[0], args->norm, sizeof found[0]);
    if (code == 0)
        code = gpubench_copy(bench, &found[1], args->scale, sizeof found[1]);
    expected[0] = sqrt(expected[0]);
    expected[1] = optimizer_clip_scale_reference(expected[0], (double)args->max_norm);
    for (int i = 0; i < 2 && code == 0; i++) {
        suite_compare(&errors[i], &found[i], &expected[i], 1);
        code = suite_check(bench, &errors[i], KERNEL_F32, 1);
    }
    return code;
}

static int verify(suite_case *c, gpubench *bench)
{
    const optimizer_case *o = c->args;
    int code;
    if (o->kind == CLIP_NORM)
        return check_norm(c, bench);
    code = check_windows(c, bench);
    if (o->kind != CLIP_SCALE)
        return code ? code : check_rest(c, bench);
    return code ? code
                : suite_check_written(bench, o->state.arrays[GRADIENT], c->dtype,
                                      o->state.elements);
}

/* ---- shapes ------------------------------------------------------------------ */

static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void queue_steps(suite *s, const char *params, optimizer_case o, kernel_dtype dtype)
{
    static const suite_operation adamw = {.name = "optimizer.adamw",
                                          .cpu = &optimizer_adamw_cpu,
                                          .cuda = SUITE_CUDA(optimizer_adamw_cuda),
                                          .args_bytes = sizeof o,
                                          .build = build,
                                          .verify = verify,
                                          .reset = reset};
    static const suite_operation sgd = {.name = "optimizer.sgd",
                                        .cpu = &optimizer_sgd_cpu,
                                        .cuda = SUITE_CUDA(optimizer_sgd_cuda),
                                        .args_bytes = sizeof o,
                                        .build = build,
                                        .verify = verify,
                                        .reset = reset};
    int64_t n = o.state.elements;
    o.kind = ADAMW;
    o.args.adamw = (optimizer_adamw_args){.dtype = dtype, .settings = adamw_settings};
    suite_queue(s, &adamw, dtype, params, &o, optimizer_adamw_bytes(n, dtype),
                optimizer_adamw_flops(n));
    o.kind = SGD;
    o.args.sgd = (optimizer_sgd_args){.dtype = dtype, .settings = sgd_settings};
    suite_queue(s, &sgd, dtype, params, &o, optimizer_sgd_bytes(n, dtype), optimizer_sgd_flops(n));
}

static void queue_clips(suite *s, const char *params, optimizer_case o, kernel_dtype dtype)
{
    static const suite_operation norm = {.name = "optimizer.clip_norm",
                                         .cpu = &optimizer_clip_norm_cpu,
                                         .cuda = SUITE_CUDA(optimizer_clip_norm_cuda),
                                         .args_bytes = sizeof o,
                                         .build = build,
                                         .verify = verify};
    static const suite_operation scale = {.name = "optimizer.clip_scale",
                                          .cpu = &optimizer_clip_scale_cpu,
                                          .cuda = SUITE_CUDA(optimizer_clip_scale_cuda),
                                          .args_bytes = sizeof o,
                                          .build = build,
                                          .verify = verify,
                                          .reset = reset};
    int64_t n = o.state.elements;
    o.args.clip = (optimizer_clip_args){.dtype = dtype, .max_norm = 1};
    o.kind = CLIP_NORM;
    suite_queue(s, &norm, dtype, params, &o, optimizer_clip_norm_bytes(n, dtype),
                optimizer_clip_norm_flops(n));
    o.kind = CLIP_SCALE;
    suite_queue(s, &scale, dtype, params, &o, optimizer_clip_scale_bytes(n, dtype),
                optimizer_clip_scale_flops(n));
}

static void queue_model(suite *s, const parameters_model *model)
{
    optimizer_case o = {.state = {.model = *model, .elements = parameters_total(model)}};
    char params[160];
    snprintf(params, sizeof params, "d=%lld ff=%lld l=%lld v=%lld t=%lld p=%lld",
             (long long)model->d_model, (long long)model->d_ff, (long long)model->layers,
             (long long)model->vocabulary, (long long)model->context, (long long)o.state.elements);
    for (int i = 0; i < DTYPES; i++) {
        queue_steps(s, params, o, dtypes[i]);
        queue_clips(s, params, o, dtypes[i]);
    }
}

/* A width of 33 leaves most tensors unaligned. */
static void queue_defaults(suite *s)
{
    static const parameters_model cpu_models[] = {{128, 512, 4, 2000, 128}, {33, 129, 2, 101, 7}};
    if (!gpubench_is_cuda(s->bench)) {
        queue_model(s, &cpu_models[0]);
        queue_model(s, &cpu_models[1]);
        return;
    }
    for (size_t i = 0; i < SUITE_MODEL_COUNT; i++) {
        const suite_model *m = &suite_models[i];
        queue_model(s, &(parameters_model){m->d_model, m->d_ff, m->layers, 10000, 128});
    }
}

static void queue_given(suite *s, const int64_t *values)
{
    const int64_t most = 1 << 20; /* far above any model, far below overflow */
    parameters_model model = {values[0], values[1], values[2], values[3], values[4]};
    int fits = values[2] >= 0 && values[2] <= 1 << 12;
    for (int i = 0; i < 5; i++)
        fits = fits && (i == 2 || (values[i] >= 1 && values[i] <= most));
    if (fits)
        queue_model(s, &model);
    else
        gpubench_usage_error(s->bench,
                             "--shape: d, ff, v and t must be 1 to 2^20, l at most 2^12");
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"d", "ff", "l", "v", "t"};
    suite s = suite_open("optimizer",
                         "models: 'd=768 ff=3072 l=12 v=10000 t=128; ...' instead of the defaults",
                         argc, argv);
    if (!suite_for_each_shape(&s, keys, sizeof keys / sizeof *keys, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
