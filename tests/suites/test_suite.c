/*
 * test_suite.c - what the suites share: how memory comes to the host, the search
 * for elements that were not written, samples of indices, sizes that do not fit.
 */
#include "../../suites/parallel.c"
#include "../../suites/peaks.c"

#include "../../suites/gpubench.c"

#include "../../suites/suite.c"

#include "../kernels/kernel_test.h"

enum { COUNT = 1000 };

/* Ordinary numbers and infinities of either sign. */
static void fill(float *values)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i - COUNT / 2) * 1e3f;
    values[3] = INFINITY;
    values[4] = -INFINITY;
}

/* A NaN that was computed, and bytes that poison left, are found where they are. */
static void test_nans_are_found(void **state)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16};
    float values[COUNT];
    uint32_t raw[COUNT];
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        size_t element = kernel_dtype_bytes(dtypes[d]);
        fill(values);
        kernel_from_f32(values, dtypes[d], COUNT, raw);
        assert_int_equal(find_nan(raw, dtypes[d], COUNT), COUNT);
        for (int at = 0; at < COUNT; at += 37) {
            fill(values);
            values[at] = NAN;
            kernel_from_f32(values, dtypes[d], COUNT, raw);
            assert_int_equal(find_nan(raw, dtypes[d], COUNT), at);
            memset((char *)raw + (size_t)at * element, 0xff, element);
            assert_int_equal(find_nan(raw, dtypes[d], COUNT), at);
        }
    }
}

/* ---- memory of the host, and of a device that a copy reaches --------------------- */

static int copies;

static int allocate(size_t bytes, int kind, void **memory)
{
    assert_int_equal(kind, GPUBENCH_PINNED);
    *memory = malloc(bytes);
    return *memory ? 0 : GPUBENCH_OOM;
}

static int copy(void *destination, const void *source, size_t bytes)
{
    copies++;
    memcpy(destination, source, bytes);
    return 0;
}

static int copy_nothing(void *destination, const void *source, size_t bytes)
{
    (void)destination, (void)source, (void)bytes;
    return 700;
}

static int set_bytes(void *destination, int byte, size_t bytes, int kind)
{
    (void)kind;
    memset(destination, byte, bytes);
    return 0;
}

static const gpb_backend device = {
    .name = "cuda", .allocate = allocate, .copy = copy, .fill = set_bytes};
static const gpb_backend broken = {
    .name = "cuda", .allocate = allocate, .copy = copy_nothing, .fill = set_bytes};
static const gpb_backend *const backends[] = {&gpb_host_backend, &device};

/* More than what comes at a time, by a range that is not full. */
static const kernel_dtype widths[] = {KERNEL_F32, KERNEL_BF16, KERNEL_E4M3};

static int64_t many(kernel_dtype dtype)
{
    return 2 * STAGE_BYTES / (int64_t)kernel_dtype_bytes(dtype) + SUITE_RANGE + 5;
}

/* A bench that is in a case's verify. It is one for all, and what was allocated stays, as
 * the suites keep the memory that they copy through. */
static gpubench *bench_of(const gpb_backend *backend)
{
    static gpubench bench;
    static gpb_live live;
    gpb_allocation *kept = bench.allocations;
    memset(&bench, 0, sizeof bench);
    memset(&live, 0, sizeof live);
    bench.allocations = kept;
    bench.backend = backend;
    bench.current = &live;
    return &bench;
}

static void set_element(void *memory, kernel_dtype dtype, int64_t at, int byte)
{
    size_t element = kernel_dtype_bytes(dtype);
    memset((char *)memory + (size_t)at * element, byte, element);
}

/* A single element that was not written, wherever it is; of two, the first. */
static void check_every_place(void *memory, kernel_dtype dtype, const gpb_backend *backend)
{
    int64_t count = many(dtype), stage_count = STAGE_BYTES / (int64_t)kernel_dtype_bytes(dtype);
    int64_t places[] = {0, SUITE_RANGE - 1, SUITE_RANGE, stage_count - 1, stage_count,
                        2 * stage_count, count - 2, count - 1};
    assert_int_equal(suite_check_written(bench_of(backend), memory, dtype, count), 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char index[32];
        snprintf(index, sizeof index, "element %lld of", (long long)places[i]);
        set_element(memory, dtype, places[i], 0xff);
        set_element(memory, dtype, count - 1, 0xff);
        gpubench *bench = bench_of(backend);
        assert_int_equal(suite_check_written(bench, memory, dtype, count), GPUBENCH_MISMATCH);
        assert_non_null(strstr(bench->current->reason, index));
        set_element(memory, dtype, places[i], 0x11);
        set_element(memory, dtype, count - 1, 0x11);
    }
    assert_int_equal(suite_check_written(bench_of(backend), memory, dtype, count), 0);
    set_element(memory, dtype, count, 0xff); /* behind the end */
    assert_int_equal(suite_check_written(bench_of(backend), memory, dtype, count), 0);
    set_element(memory, dtype, count, 0x11);
}

static void test_an_unwritten_element_is_found(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof widths / sizeof *widths; d++) {
        size_t bytes = suite_bytes(many(widths[d]) + 1, widths[d]);
        void *memory = memset(fresh(bytes), 0x11, bytes);
        for (size_t b = 0; b < sizeof backends / sizeof *backends; b++)
            check_every_place(memory, widths[d], backends[b]);
        free(memory);
    }
    assert_true(copies > 0);
}

/* Every value where it belongs, none beside it. */
static void check_fetch(const uint16_t *memory, int64_t first, int64_t count,
                        const gpb_backend *backend)
{
    float *values = fresh((size_t)(count + 1) * sizeof *values);
    int wrong = 0;
    assert_int_equal(
        suite_fetch(bench_of(backend), memory, KERNEL_BF16, first, count, values), 0);
    for (int64_t i = 0; i < count; i++)
        wrong += values[i] != kernel_bf16_to_f32(memory[first + i]);
    assert_int_equal(wrong, 0);
    assert_true(isnan(values[count]));
    free(values);
}

static void test_fetching(void **state)
{
    int64_t all = many(KERNEL_BF16), counts[] = {0, 1, SUITE_RANGE, SUITE_RANGE + 1, all - 3};
    uint16_t *memory = fresh((size_t)all * sizeof *memory);
    (void)state;
    for (int64_t i = 0; i < all; i++)
        memory[i] = (uint16_t)(i % 0x7f01);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t b = 0; b < sizeof backends / sizeof *backends; b++)
            check_fetch(memory, c % 2 ? 3 : 0, counts[c], backends[b]);
    free(memory);
}

static void test_a_copy_that_fails(void **state)
{
    float value = 1;
    (void)state;
    assert_int_equal(suite_fetch(bench_of(&broken), &value, KERNEL_F32, 0, 1, &value), 700);
    assert_int_equal(suite_check_written(bench_of(&broken), &value, KERNEL_F32, 1), 700);
}

static void test_bytes_show_nothing(void **state)
{
    unsigned char bytes[4] = {0};
    (void)state;
    assert_int_equal(suite_check_written(bench_of(&gpb_host_backend), bytes, KERNEL_U8, 4),
                     GPUBENCH_FAILED);
}

/* ---- errors ---------------------------------------------------------------------- */

static int check_one(float out, double reference, kernel_dtype dtype)
{
    suite_error error = {0, 0};
    suite_compare(&error, &out, &reference, 1);
    return suite_check(bench_of(&gpb_host_backend), &error, dtype, 1);
}

/* What is no number, anywhere, is a mismatch; so is anything where 0 belongs. */
static void test_errors_that_are_no_numbers(void **state)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    (void)state;
    assert_int_equal(check_one(1, 1, KERNEL_F32), 0);
    assert_int_equal(check_one(0, 0, KERNEL_F32), 0);
    assert_int_equal(check_one(1.001f, 1, KERNEL_BF16), 0);
    assert_int_equal(check_one(1.001f, 1, KERNEL_F32), GPUBENCH_MISMATCH);
    assert_int_equal(check_one(1e-30f, 0, KERNEL_F32), GPUBENCH_MISMATCH);
    assert_int_equal(check_one(1, 1, KERNEL_U8), 0);
    assert_int_equal(check_one(2, 1, KERNEL_U8), GPUBENCH_MISMATCH);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(check_one(bad[i], 1, KERNEL_F32), GPUBENCH_MISMATCH);
        assert_int_equal(check_one(bad[i], 0, KERNEL_F32), GPUBENCH_MISMATCH);
        assert_int_equal(check_one(bad[i], (double)bad[i], KERNEL_F32), GPUBENCH_MISMATCH);
        assert_int_equal(check_one(1, (double)bad[i], KERNEL_F32), GPUBENCH_MISMATCH);
    }
}

/* One among many, also where the others' weight is much larger. */
static void test_one_nan_among_many(void **state)
{
    enum { MANY = 4096 };
    static float out[MANY];
    static double reference[MANY];
    (void)state;
    for (int at = 0; at < MANY; at += 511) {
        suite_error error = {0, 0};
        for (int i = 0; i < MANY; i++)
            reference[i] = out[i] = 1e4f;
        out[at] = NAN;
        suite_compare_weighted(&error, out, reference, MANY, 1e-3);
        assert_int_equal(suite_check(bench_of(&gpb_host_backend), &error, KERNEL_F32, 1),
                         GPUBENCH_MISMATCH);
    }
}

/* ---- indices and sizes ------------------------------------------------------------ */

/* The first, the last, ascending, no repeats, all of them where few are there. */
static void test_samples_of_indices(void **state)
{
    int64_t indices[64], all = suite_sample_indices(1, 5, 64, indices);
    (void)state;
    assert_int_equal(all, 5);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(indices[i], i);
    for (uint64_t seed = 0; seed < 100; seed++) {
        int64_t count = suite_sample_indices(seed, 1000, 64, indices);
        assert_between(count, 50, 64);
        assert_int_equal(indices[0], 0);
        assert_int_equal(indices[count - 1], 999);
        for (int64_t i = 1; i < count; i++)
            assert_true(indices[i] > indices[i - 1]);
    }
}

static void test_sizes_that_do_not_fit(void **state)
{
    int64_t fits[] = {3, 5, 7}, huge[] = {INT64_MAX, 2};
    (void)state;
    assert_int_equal(suite_product(fits, 3), 105);
    assert_true(suite_product(huge, 2) == INT64_MAX);
    assert_int_equal(suite_bytes(3, KERNEL_BF16), 6);
    assert_true(suite_bytes(INT64_MAX, KERNEL_F32) == SIZE_MAX);
    assert_true(suite_bytes(-1, KERNEL_F32) == SIZE_MAX);
}

static int run_first(const void *args, void *workspace, void *state, kernel_stream stream)
{
    (void)args;
    (void)workspace;
    (void)state;
    (void)stream;
    return 0;
}

/* A table that is filled anew for the next size: cases of the one before keep theirs. */
static void test_a_case_keeps_its_variant(void **state)
{
    static const suite_operation operation = {.name = "op", .args_bytes = sizeof(int)};
    kernel_variant row = {.name = "first", .run = run_first};
    suite s = {0};
    int args = 7;
    suite_case *c = new_case(&s, &operation, &row, KERNEL_F32, &args);
    (void)state;
    row = (kernel_variant){.name = "second"};
    args = 8;
    assert_string_equal(c->variant->name, "first");
    assert_ptr_equal(c->variant->run, run_first);
    assert_int_equal(*(int *)c->args, 7);
    free(c->args);
    free(c);
    free(s.cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_case_keeps_its_variant),
        cmocka_unit_test(test_nans_are_found),
        cmocka_unit_test(test_an_unwritten_element_is_found),
        cmocka_unit_test(test_fetching),
        cmocka_unit_test(test_a_copy_that_fails),
        cmocka_unit_test(test_bytes_show_nothing),
        cmocka_unit_test(test_errors_that_are_no_numbers),
        cmocka_unit_test(test_one_nan_among_many),
        cmocka_unit_test(test_samples_of_indices),
        cmocka_unit_test(test_sizes_that_do_not_fit),
    };
    return cmocka_run_group_tests_name("suite", tests, NULL, NULL);
}
