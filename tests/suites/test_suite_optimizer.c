/*
 * test_suite_optimizer.c - the optimizer suite's checks find one wrong element
 * of a million, the last ones included.
 */
#include "../../suites/parallel.c"
#include "../../suites/peaks.c"

#include "../../suites/gpubench.c"

#include "../../suites/suite.c"

#define main optimizer_main
#include "../../suites/optimizer.c"
#undef main

#include "suite_test.h"

/* A little more than one piece of what check_rest looks at. */
static const parameters_model model = {128, 512, 4, 2100, 128};

/* What a spoiled variant does wrong after or in the place of the true one. */
typedef struct spoiling {
    int (*run)(const void *args, void *workspace, void *state, kernel_stream stream);
    int array;       /* of which one element is set to `value` */
    int64_t element; /* counted from the end */
    uint32_t word;   /* the value: where -ffast-math knows of no NaN, a float may lose it */
} spoiling;

static spoiling spoil;

enum { A_NAN = 0x7fc00000, INFINITE = 0x7f800000 };

static uint32_t word_of(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static void set_spoiled_element(const optimizer_case *o, uint32_t word)
{
    float *all = o->state.arrays[spoil.array];
    memcpy(all + o->state.elements - spoil.element, &word, sizeof word);
}

static int run_and_spoil(const void *args, void *workspace, void *where, kernel_stream stream)
{
    int code = spoil.run(args, workspace, where, stream);
    set_spoiled_element(args, spoil.word);
    return code;
}

/* The element has the value, but not while the variant looks. */
static int run_without_seeing(const void *args, void *workspace, void *where, kernel_stream stream)
{
    int code;
    set_spoiled_element(args, 0);
    code = spoil.run(args, workspace, where, stream);
    set_spoiled_element(args, spoil.word);
    return code;
}

static int run_nothing(const void *args, void *workspace, void *where, kernel_stream stream)
{
    (void)args, (void)workspace, (void)where, (void)stream;
    return KERNEL_OK;
}

/* The first f32 variant of `table`, with `run` instead of its own. */
static void check(int kind, kernel_table table, int (*run)(const void *, void *, void *,
                                                           kernel_stream), const char *verdict)
{
    suite s = open_quick_suite();
    kernel_variant variant = table.rows[0];
    kernel_table only = {&variant, 1};
    suite_operation operation = {.name = "test", .cpu = &only,
                                 .args_bytes = sizeof(optimizer_case), .build = build,
                                 .verify = verify, .reset = kind == CLIP_NORM ? NULL : reset};
    optimizer_case o = {.kind = kind,
                        .state = {.model = model, .elements = parameters_total(&model)}};
    assert_true(o.state.elements > PIECE);
    spoil.run = variant.run;
    if (run)
        variant.run = run;
    if (kind == ADAMW)
        o.args.adamw = (optimizer_adamw_args){.dtype = KERNEL_F32, .settings = adamw_settings};
    else
        o.args.clip = (optimizer_clip_args){.dtype = KERNEL_F32, .max_norm = 1};
    suite_queue(&s, &operation, KERNEL_F32, "", &o, 1, 1);
    assert_verdict(&s, verdict);
}

static void test_scaled_gradients(void **unused)
{
    (void)unused;
    check(CLIP_SCALE, optimizer_clip_scale_cpu, NULL, "ok");
    spoil = (spoiling){.array = GRADIENT, .word = A_NAN};
    for (spoil.element = 1; spoil.element < 1000000; spoil.element *= 50)
        check(CLIP_SCALE, optimizer_clip_scale_cpu, run_and_spoil, "mismatch");
}

/* First, because the sum of squares is kept. */
static void test_norm_without_the_last_element(void **unused)
{
    (void)unused;
    spoil = (spoiling){.array = GRADIENT, .element = 1, .word = word_of(100)};
    check(CLIP_NORM, optimizer_clip_norm_cpu, run_without_seeing, "mismatch");
    check(CLIP_NORM, optimizer_clip_norm_cpu, run_and_spoil, "ok");
}

/* What it leaves of its outputs is what they were poisoned with, NaNs. */
static void test_norm_that_writes_nothing(void **unused)
{
    (void)unused;
    check(CLIP_NORM, optimizer_clip_norm_cpu, run_nothing, "mismatch");
}

static void test_steps(void **unused)
{
    static const int arrays[] = {PARAMETER, FIRST, SECOND};
    (void)unused;
    check(ADAMW, optimizer_adamw_cpu, NULL, "ok");
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        spoil = (spoiling){.array = arrays[i], .element = 1, .word = word_of(7)}; /* in a window */
        check(ADAMW, optimizer_adamw_cpu, run_and_spoil, "mismatch");
        spoil.element = 1000; /* in none */
        spoil.word = arrays[i] == PARAMETER ? A_NAN : word_of(7);
        check(ADAMW, optimizer_adamw_cpu, run_and_spoil, "mismatch");
        spoil.word = INFINITE;
        check(ADAMW, optimizer_adamw_cpu, run_and_spoil, "mismatch");
    }
    check(ADAMW, optimizer_adamw_cpu, run_nothing, "mismatch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_without_the_last_element),
        cmocka_unit_test(test_norm_that_writes_nothing),
        cmocka_unit_test(test_scaled_gradients),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests_name("suite_optimizer", tests, NULL, NULL);
}
