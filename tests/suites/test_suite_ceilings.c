/*
 * test_suite_ceilings.c - the ceilings' checks find one wrong word, the last
 * ones included, and a NaN among many numbers.
 */
#include "../../suites/parallel.c"
#include "../../suites/peaks.c"

#include "../../suites/gpubench.c"

#include "../../suites/suite.c"

#define main ceilings_main
#include "../../suites/ceilings.c"
#undef main

#include "suite_test.h"

/* A piece, a range, and a part of one. */
enum { WORDS = PIECE + SUITE_RANGE + 3 };

static int (*true_run)(const void *args, void *workspace, void *state, kernel_stream stream);
static int64_t spoiled_word;
static uint32_t spoiled_value;

static int run_and_spoil(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ceilings_bandwidth_args *a = args;
    int code = true_run(args, workspace, state, stream);
    if (a->a)
        a->a[spoiled_word] = spoiled_value;
    else
        *a->sum += 1;
    return code;
}

static void check(kernel_table table, suite_operation operation, int spoil)
{
    suite s = open_quick_suite();
    kernel_variant variant = table.rows[0];
    kernel_table only = {&variant, 1};
    ceilings_bandwidth_args args = {.words = WORDS};
    kernel_dtype dtype = variant.dtypes & KERNEL_DTYPE_BIT(KERNEL_U8) ? KERNEL_U8 : KERNEL_F32;
    true_run = variant.run;
    if (spoil)
        variant.run = run_and_spoil;
    operation.name = "test";
    operation.args_bytes = sizeof args;
    operation.cpu = &only;
    suite_queue(&s, &operation, dtype, "", &args, 1, 0);
    assert_verdict(&s, spoil ? "mismatch" : "ok");
}

static void check_every_place(kernel_table table, suite_operation operation, uint32_t value)
{
    static const int64_t places[] = {0, PIECE, WORDS - 1};
    check(table, operation, 0);
    spoiled_value = value;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        spoiled_word = places[i];
        check(table, operation, 1);
    }
}

static void test_read(void **state)
{
    const suite_operation operation = {.build = build_read, .verify = verify_read};
    (void)state;
    check(ceilings_read_cpu, operation, 0);
    check(ceilings_read_cpu, operation, 1);
}

static void test_write(void **state)
{
    const suite_operation operation = {.build = build_write, .verify = verify_write};
    (void)state;
    check_every_place(ceilings_write_cpu, operation, WRITTEN + 1);
}

static void test_copy(void **state)
{
    const suite_operation operation = {.build = build_copy, .verify = verify_copy};
    (void)state;
    check_every_place(ceilings_copy_cpu, operation, 0xffffffff);
}

/* Of numbers a wrong one is found; a NaN too, though numbers follow. */
static void test_triad(void **state)
{
    const suite_operation operation = {.build = build_triad, .verify = verify_triad};
    (void)state;
    check_every_place(ceilings_triad_cpu, operation, 0x42c80000 /* 100 */);
    check_every_place(ceilings_triad_cpu, operation, 0xffffffff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_triad),
    };
    return cmocka_run_group_tests_name("suite_ceilings", tests, NULL, NULL);
}
