/* Sweeps: the values of axes, their product, --axis, what setup sees; a setup for all
 * modes, and what is called once before all cases. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#define QUICK "--max-time", "0.02", "--min-samples", "3", "--warmup", "1"

/* ---- values ---- */

/* The axis's values with blanks between them, or what is wrong with the text. */
static const char *read_values(const char *text)
{
    static char joined[512];
    gpb_axis axis;
    const char *wrong;
    size_t i;
    memset(&axis, 0, sizeof axis);
    wrong = gpb_read_axis(&axis, text);
    joined[0] = '\0';
    for (i = 0; i < axis.count; i++) {
        snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", i ? " " : "",
                 axis.values[i]);
        free(axis.values[i]);
    }
    free(axis.values);
    gpb_index_free(&axis.known);
    return wrong ? wrong : joined;
}

static void values_ranges_and_powers_are_read(void **state)
{
    (void)state;
    assert_string_equal(read_values("1,2,4"), "1 2 4");
    assert_string_equal(read_values("64"), "64");
    assert_string_equal(read_values("f32,bf16"), "f32 bf16");
    assert_string_equal(read_values("0.5,0.25,-3"), "0.5 0.25 -3");
    assert_string_equal(read_values("1..4"), "1 2 3 4");
    assert_string_equal(read_values("7..7"), "7");
    assert_string_equal(read_values("8..30+8"), "8 16 24");
    assert_string_equal(read_values("1..4096*4"), "1 4 16 64 256 1024 4096");
    assert_string_equal(read_values("3..20*2"), "3 6 12");
    assert_string_equal(read_values("2^10"), "1024");
    assert_string_equal(read_values("2^10..2^13"), "1024 2048 4096 8192");
    assert_string_equal(read_values("10^0..10^3"), "1 10 100 1000");
    assert_string_equal(read_values("2^2..2^8*8"), "4 32 256");
    assert_string_equal(read_values("2^2..7"), "4 5 6 7");
    assert_string_equal(read_values("0,2^3..2^5,100"), "0 8 16 32 100");
    assert_string_equal(read_values("0..2"), "0 1 2");
}

static void numbers_at_the_edge_are_read(void **state)
{
    (void)state;
    assert_string_equal(read_values("18446744073709551614..18446744073709551615"),
                        "18446744073709551614 18446744073709551615");
    assert_string_equal(read_values("2^62..18446744073709551615*2"),
                        "4611686018427387904 9223372036854775808");
}

static void bad_values_are_named(void **state)
{
    static const char *const ranges[] = {"8..1", "1..", "1..x", "1..8+0", "1..8*1", "1..8*0",
                                         "0..8*2", "1..8+2x", "1..8++2", "1..2^64", NULL};
    size_t i;
    (void)state;
    for (i = 0; ranges[i]; i++)
        support_expect_text(read_values(ranges[i]), "wants a range");
    support_expect_text(read_values("a..b"), "wants numbers around '..'");
    support_expect_text(read_values("2^64..2^65"), "wants numbers around '..'");
    support_expect_text(read_values(""), "wants a value");
    support_expect_text(read_values("1,,2"), "wants a value");
    support_expect_text(read_values("1,2,"), "wants a value");
    support_expect_text(read_values("1 2"), "without blanks");
    support_expect_text(read_values("a=b"), "without blanks");
    support_expect_text(read_values("4,2^2"), "twice");
    support_expect_text(read_values("1..100001"), "more than 100000 values");
}

/* ---- a case that tells what it sees ---- */

static char seen[4096]; /* what happened, with a blank behind each */

static void see(const char *format, ...)
{
    size_t used = strlen(seen);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(seen + used, sizeof seen - used, format, arguments);
    va_end(arguments);
}

typedef struct watcher {
    int64_t n;
    const char *asks; /* for this axis instead of n */
    int wants_text, runs_to_fail;
    volatile char *memory;
} watcher;

static int set_up(void *context, gpubench *bench)
{
    watcher *w = context;
    if (w->wants_text)
        see("%s ", gpubench_axis_text(bench, w->asks));
    else
        see("s%lld ", (long long)(w->n = gpubench_axis_number(bench, w->asks ? w->asks : "n")));
    gpubench_work(bench, (uint64_t)w->n, 2 * (uint64_t)w->n);
    w->memory = gpubench_alloc(bench, 64, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return w->memory ? 0 : GPUBENCH_OOM;
}

static int run(void *context, gpubench_stream stream)
{
    watcher *w = context;
    struct timespec pause = {0, 100000};
    (void)stream;
    nanosleep(&pause, NULL);
    w->memory[0] = 1;
    return w->runs_to_fail > 0 && --w->runs_to_fail == 0 ? ENOSPC : 0;
}

static int verify(void *context, gpubench *bench)
{
    watcher *w = context;
    see("v%lld ", (long long)w->n);
    return gpubench_check(bench, w->memory[0] != 1, 0);
}

static void tear_down(void *context)
{
    watcher *w = context;
    see("t%lld ", (long long)w->n);
}

static gpubench_case watching(const char *name, watcher *w)
{
    gpubench_case one = gpubench_case_init(name, run, w);
    one.setup = set_up;
    one.verify = verify;
    one.teardown = tear_down;
    return one;
}

static int forget(void **state)
{
    (void)state;
    seen[0] = '\0';
    return 0;
}

/* ---- combinations ---- */

static void expect_keys(const gpubench *bench, const char *const *keys)
{
    size_t i;
    for (i = 0; keys[i]; i++) {
        assert_true(i < bench->item_count);
        assert_string_equal(bench->items[i].key, keys[i]);
    }
    assert_int_equal(bench->item_count, i);
}

#define EXPECT_KEYS(bench, ...) expect_keys(bench, (const char *const[]){__VA_ARGS__, NULL})

static void a_sweep_is_the_product_of_its_axes(void **state)
{
    static const gpubench_axis axes[] = {{"b", "1,2"}, {"n", "8..512*8"}};
    gpubench *bench = OPEN("--list");
    watcher w[2] = {{0}, {0}};
    gpubench_case cases[] = {watching("sum", &w[0]), watching("sum", &w[1])};
    (void)state;
    cases[0].variant = "one";
    cases[1].variant = "two";
    cases[0].params = cases[1].params = "h=3";
    gpubench_sweep(bench, cases, 2, axes, 2);
    EXPECT_KEYS(bench, "sum one h=3 b=1 n=8", "sum two h=3 b=1 n=8", "sum one h=3 b=1 n=64",
                "sum two h=3 b=1 n=64", "sum one h=3 b=1 n=512", "sum two h=3 b=1 n=512",
                "sum one h=3 b=2 n=8", "sum two h=3 b=2 n=8", "sum one h=3 b=2 n=64",
                "sum two h=3 b=2 n=64", "sum one h=3 b=2 n=512", "sum two h=3 b=2 n=512");
    assert_int_equal(bench->items[0].group, bench->items[1].group); /* side by side */
    assert_int_not_equal(bench->items[1].group, bench->items[2].group);
    assert_int_equal(gpubench_close(bench), 0);
}

static void an_axis_called_dtype_fills_its_column(void **state)
{
    static const gpubench_axis axes[] = {{"dtype", "f32,f64"}, {"n", "4"}};
    gpubench *bench = OPEN(QUICK, "--filter", "f64");
    watcher w = {.asks = "dtype", .wants_text = 1};
    gpubench_case one = watching("sum", &w);
    (void)state;
    gpubench_sweep(bench, &one, 1, axes, 2);
    EXPECT_KEYS(bench, "sum f64 n=4");
    gpubench_run(bench);
    expect_cell(bench, 0, "dtype", "f64");
    expect_cell(bench, 0, "params", "n=4");
    assert_memory_equal(seen, "f64 ", 4);
    assert_int_equal(gpubench_close(bench), 0);
}

static void setup_sees_its_values_and_says_the_work(void **state)
{
    static const gpubench_axis axes[] = {{"n", "300,1000"}};
    gpubench *bench = OPEN(QUICK);
    watcher w = {0};
    gpubench_case one = watching("sum", &w);
    size_t row;
    (void)state;
    one.bytes = 7; /* which setup knows better */
    gpubench_sweep(bench, &one, 1, axes, 1);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 2);
    for (row = 0; row < 2; row++) {
        double n = strcmp(gpubench_value(bench, row, "params"), "n=300") ? 1000 : 300;
        expect_number(bench, row, "bytes", n);
        expect_number(bench, row, "flops", 2 * n);
        expect_number(bench, row, "gb_per_s", n / value_of(bench, row, "median_us") / 1e3);
    }
    assert_true(!strcmp(seen, "s300 v300 t300 s1000 v1000 t1000 ") ||
                !strcmp(seen, "s1000 v1000 t1000 s300 v300 t300 "));
    assert_int_equal(gpubench_close(bench), 0);
}

static void expect_misuse(const char *asks, const char *values, const char *reason)
{
    const gpubench_axis axis = {"n", values};
    gpubench *bench = OPEN(QUICK);
    watcher w = {.asks = asks};
    gpubench_case one = watching("sum", &w);
    gpubench_sweep(bench, &one, 1, &axis, 1);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, reason);
    assert_int_equal(gpubench_close(bench), 1);
}

static void what_an_axis_has_not_fails_the_case(void **state)
{
    (void)state;
    expect_misuse("m", "1", "reason=has_no_axis_'m'");
    expect_misuse("n", "0.5", "reason=axis_'n'_is_'0.5',_and_wants_a_whole_number");
    expect_misuse("n", "9223372036854775808", "is_'9223372036854775808'");
}

static void negative_numbers_are_numbers(void **state)
{
    static const gpubench_axis axis = {"n", "-3"};
    gpubench *bench = OPEN(QUICK);
    watcher w = {0};
    gpubench_case one = watching("shift", &w);
    (void)state;
    gpubench_sweep(bench, &one, 1, &axis, 1);
    assert_int_equal(gpubench_close(bench), 0);
    assert_int_equal(w.n, -3);
}

/* ---- the command line ---- */

static void the_command_line_takes_an_axis_over(void **state)
{
    static const gpubench_axis axes[] = {{"b", "1,2"}, {"n", "8..512*8"}};
    gpubench *bench = OPEN("--list", "--axis", "n=2^4..2^5", "--axis=b=3");
    watcher w = {0};
    gpubench_case one = watching("sum", &w);
    (void)state;
    gpubench_sweep(bench, &one, 1, axes, 2);
    EXPECT_KEYS(bench, "sum b=3 n=16", "sum b=3 n=32");
    assert_int_equal(gpubench_close(bench), 0);
}

static void bad_axes_of_the_command_line_are_refused(void **state)
{
    static const struct {
        const char *const arguments[6];
        const char *message;
    } bad[] = {
        {{"sweep", "--axis", "n", NULL}, "--axis 'n': wants NAME=VALUES"},
        {{"sweep", "--axis", "=1", NULL}, "--axis '=1': wants NAME=VALUES"},
        {{"sweep", "--axis", "n=", NULL}, "--axis 'n=': wants NAME=VALUES"},
        {{"sweep", "--axis", NULL}, "--axis: wants a value"},
        {{"sweep", "--axis", "n=1", "--axis=n=2", NULL}, "--axis 'n=2': n is given twice"},
        {{"sweep", "--axis", "m=1", NULL},
         "--axis 'm=1': there is no such axis; there are stride n"},
        {{"sweep", "--axis", "nn=1", "--list", NULL}, "--axis 'nn=1': there is no such axis"},
        {{"sweep", "--axis", "n=8..1", NULL}, "--axis 'n=8..1': wants a range as 1..8"},
        {{"sweep", "--axis", "n=1,1", NULL}, "--axis 'n=1,1': has a value twice"},
        {{"host", "--axis", "n=1", NULL}, "--axis 'n=1': there is no such axis\n"}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        outcome result = support_run(bad[i].arguments);
        support_expect_status(&result, 2);
        support_expect_text(result.err, bad[i].message);
        assert_string_equal(result.out, "");
        support_free_outcome(&result);
    }
}

static void expect_bad_sweep(const char *first, const char *second, const char *params)
{
    const gpubench_axis axes[] = {{first, "1"}, {second, "1..400"}, {"c", "1..400"}};
    gpubench *bench = OPEN(QUICK);
    watcher w = {0};
    gpubench_case one = watching("sum", &w);
    one.params = params;
    gpubench_sweep(bench, &one, 1, axes, 3);
    assert_int_equal(gpubench_close(bench), 2);
    assert_string_equal(seen, "");
}

static void sweeps_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    expect_bad_sweep("n", "n", "");
    expect_bad_sweep("", "n", "");
    expect_bad_sweep("two words", "n", "");
    expect_bad_sweep("h", "n", "b=1 h=2");
    expect_bad_sweep("a", "b", ""); /* 160000 cases */
}

static void sizes_are_in_the_order_of_numbers(void **state)
{
    static const gpubench_axis axes[] = {{"n", "4096,8,512,64"}};
    static const char *const order[] = {"n=8 ", "n=64 ", "n=512 ", "n=4096 "};
    gpubench *bench = OPEN(QUICK);
    watcher w = {0};
    gpubench_case one = watching("sum", &w);
    char *text = NULL, *at;
    size_t bytes = 0, i;
    FILE *file = open_memstream(&text, &bytes);
    (void)state;
    gpubench_sweep(bench, &one, 1, axes, 1);
    gpubench_run(bench);
    gpb_print_table(bench, file);
    fclose(file);
    for (at = text, i = 0; i < 4; i++) {
        at = strstr(at, order[i]);
        assert_non_null(at);
    }
    free(text);
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- one setup for all modes ---- */

static void one_setup_serves_all_modes(void **state)
{
    static const gpubench_axis axis = {"n", "5"};
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot,dirty");
    watcher w = {0};
    gpubench_case one = watching("sum", &w);
    size_t row;
    (void)state;
    gpubench_sweep(bench, &one, 1, &axis, 1);
    gpubench_run(bench);
    assert_string_equal(seen, "s5 v5 v5 v5 t5 ");
    assert_int_equal(gpubench_row_count(bench), 3);
    for (row = 0; row < 3; row++) {
        expect_number(bench, row, "bytes", 5);
        expect_number(bench, row, "device_bytes", 64);
    }
    assert_int_equal(gpubench_close(bench), 0);
}

/* The first execution of cold fails; nothing of it is left for hot. */
static void after_a_failure_the_next_mode_is_set_up_anew(void **state)
{
    static const gpubench_axis axis = {"n", "5"};
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot");
    watcher w = {.runs_to_fail = 1};
    gpubench_case one = watching("sum", &w);
    (void)state;
    gpubench_sweep(bench, &one, 1, &axis, 1);
    gpubench_run(bench);
    assert_string_equal(seen, "s5 t5 s5 v5 t5 ");
    expect_cell(bench, 0, "status", "failed");
    expect_cell(bench, 1, "status", "ok");
    assert_int_equal(gpubench_close(bench), 1);
}

/* One that is measured in one mode only leaves the group: what it took may be the
 * others' too, so these begin anew. */
static void a_group_that_changes_is_set_up_anew(void **state)
{
    static const gpubench_axis axis = {"n", "5"};
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot,dirty");
    watcher w[2] = {{0}, {0}};
    gpubench_case cases[] = {watching("a", &w[0]), watching("b", &w[1])};
    (void)state;
    cases[0].modes = GPUBENCH_COLD;
    gpubench_sweep(bench, cases, 2, &axis, 1);
    gpubench_run(bench);
    assert_string_equal(seen, "s5 s5 v5 v5 t5 t5 s5 v5 v5 t5 ");
    assert_int_equal(gpubench_row_count(bench), 4);
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- before all ---- */

static unsigned char *shared;

static int before_all(void *context, gpubench *bench)
{
    see("b ");
    shared = gpubench_alloc(bench, 32, GPUBENCH_DEVICE);
    if (shared)
        memset(shared, 9, 32);
    return shared ? *(int *)context : GPUBENCH_OOM;
}

static int run_shared(void *context, gpubench_stream stream)
{
    (void)stream;
    shared[*(int *)context]++; /* 32 is behind its end */
    return 0;
}

static void before_all_is_called_once(void **state)
{
    static const gpubench_axis axis = {"n", "5,6"};
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot");
    watcher w = {0};
    gpubench_case one = watching("sum", &w);
    int code = 0;
    (void)state;
    gpubench_before_all(bench, before_all, &code);
    gpubench_sweep(bench, &one, 1, &axis, 1);
    assert_string_equal(seen, "");
    gpubench_run(bench);
    one.name = "later";
    gpubench_sweep(bench, &one, 1, &axis, 1);
    assert_int_equal(gpubench_close(bench), 0); /* measures the later ones */
    assert_memory_equal(seen, "b s", 3);
    assert_null(strchr(seen + 1, 'b'));
}

static void before_all_is_not_called_for_a_list(void **state)
{
    gpubench *bench = OPEN("--list");
    gpubench_case one = gpubench_case_init("sum", run_shared, NULL);
    int code = 0;
    (void)state;
    gpubench_before_all(bench, before_all, &code);
    gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 0);
    assert_string_equal(seen, "");
}

static void without_what_comes_before_nothing_is_measured(void **state)
{
    static const gpubench_axis axis = {"n", "5"};
    gpubench *bench = OPEN(QUICK);
    watcher w = {0};
    gpubench_case one = watching("sum", &w);
    int code = ENOENT;
    (void)state;
    gpubench_before_all(bench, before_all, &code);
    gpubench_sweep(bench, &one, 1, &axis, 1);
    assert_int_equal(gpubench_close(bench), 2);
    assert_string_equal(seen, "b ");
}

static void what_is_written_behind_shared_memory_is_found(void **state)
{
    gpubench *bench = OPEN(QUICK);
    int code = 0, at = 32;
    gpubench_case one = gpubench_case_init("sum", run_shared, &at);
    (void)state;
    gpubench_before_all(bench, before_all, &code);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "mismatch");
    expect_flag(bench, 0, "behind_a_buffer_of_32_bytes");
    assert_int_equal(gpubench_close(bench), 1);
}

#define SWEEP_TEST(name) cmocka_unit_test_setup(name, forget)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_ranges_and_powers_are_read),
        cmocka_unit_test(numbers_at_the_edge_are_read),
        cmocka_unit_test(bad_values_are_named),
        SWEEP_TEST(a_sweep_is_the_product_of_its_axes),
        SWEEP_TEST(an_axis_called_dtype_fills_its_column),
        SWEEP_TEST(setup_sees_its_values_and_says_the_work),
        SWEEP_TEST(what_an_axis_has_not_fails_the_case),
        SWEEP_TEST(negative_numbers_are_numbers),
        SWEEP_TEST(the_command_line_takes_an_axis_over),
        SWEEP_TEST(bad_axes_of_the_command_line_are_refused),
        SWEEP_TEST(sweeps_that_make_no_sense_are_refused),
        SWEEP_TEST(sizes_are_in_the_order_of_numbers),
        SWEEP_TEST(one_setup_serves_all_modes),
        SWEEP_TEST(after_a_failure_the_next_mode_is_set_up_anew),
        SWEEP_TEST(a_group_that_changes_is_set_up_anew),
        SWEEP_TEST(before_all_is_called_once),
        SWEEP_TEST(before_all_is_not_called_for_a_list),
        SWEEP_TEST(without_what_comes_before_nothing_is_measured),
        SWEEP_TEST(what_is_written_behind_shared_memory_is_found),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("sweep", tests, NULL, NULL));
}
