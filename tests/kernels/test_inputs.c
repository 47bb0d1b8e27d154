/*
 * test_inputs.c - the inputs and conversions that everything else is checked
 * with, and the small operations: random numbers, dtypes, memcpy.
 */

#include "kernel_test.h"

#include "../../kernels/common/convert.h"
#include "../../kernels/memcpy/memcpy.h"
#include "../../kernels/common/random.h"

/* Bit patterns from the formats' definitions. */
static void test_bf16_by_hand(void **state)
{
    (void)state;
    assert_int_equal(kernel_bf16_from_f32(1.0f), 0x3f80);
    assert_int_equal(kernel_bf16_from_f32(-2.0f), 0xc000);
    assert_int_equal(kernel_bf16_from_f32(1.0f + 1.0f / 256), 0x3f80); /* tie: to even, down */
    assert_int_equal(kernel_bf16_from_f32(1.0f + 3.0f / 256), 0x3f82); /* tie: to even, up */
    assert_int_equal(kernel_bf16_from_f32(INFINITY), 0x7f80);
    assert_true(isnan(kernel_bf16_to_f32(kernel_bf16_from_f32(NAN))));
    assert_int_equal(kernel_bf16_from_f32(3.4028235e38f), 0x7f80); /* rounds up to infinity */
}

static void test_f16_by_hand(void **state)
{
    (void)state;
    assert_int_equal(kernel_f16_from_f32(1.0f), 0x3c00);
    assert_int_equal(kernel_f16_from_f32(65504.0f), 0x7bff);
    assert_int_equal(kernel_f16_from_f32(65520.0f), 0x7c00);          /* tie: up to infinity */
    assert_int_equal(kernel_f16_from_f32(5.9604645e-8f), 0x0001);     /* smallest subnormal */
    assert_int_equal(kernel_f16_from_f32(2.9802322e-8f), 0x0000);     /* half of it: to even */
    assert_int_equal(kernel_f16_from_f32(1.0f + 1.0f / 2048), 0x3c00); /* tie: to even, down */
    assert_int_equal(kernel_f16_from_f32(-0.0f), 0x8000);
    assert_true(isnan(kernel_f16_to_f32(kernel_f16_from_f32(NAN))));
    assert_true(kernel_f16_to_f32(0x0001) == 5.9604644775390625e-8f);
}

/* Of 15 * 2^-1 numbers between 2^-9 and 448, the ones with names, and ties. */
static void test_e4m3_by_hand(void **state)
{
    (void)state;
    assert_int_equal(kernel_e4m3_from_f32(1.0f), 0x38);
    assert_int_equal(kernel_e4m3_from_f32(-1.75f), 0xbe);
    assert_int_equal(kernel_e4m3_from_f32(448.0f), 0x7e);
    assert_int_equal(kernel_e4m3_from_f32(432.0f), 0x7e); /* tie of 416 and 448: to even, up */
    assert_int_equal(kernel_e4m3_from_f32(1e30f), 0x7e);
    assert_int_equal(kernel_e4m3_from_f32(-INFINITY), 0xfe);
    assert_int_equal(kernel_e4m3_from_f32(NAN) & 0x7f, 0x7f);
    assert_int_equal(kernel_e4m3_from_f32(1.0625f), 0x38);      /* tie: to even, down */
    assert_int_equal(kernel_e4m3_from_f32(1.1875f), 0x3a);      /* tie: to even, up */
    assert_int_equal(kernel_e4m3_from_f32(1.96875f), 0x40);     /* up to the next power, 2 */
    assert_int_equal(kernel_e4m3_from_f32(0.015625f), 0x08);    /* 2^-6, the smallest normal */
    assert_int_equal(kernel_e4m3_from_f32(0.001953125f), 0x01); /* 2^-9, the smallest */
    assert_int_equal(kernel_e4m3_from_f32(0.0009765625f), 0x00); /* half of it: to even */
    assert_int_equal(kernel_e4m3_from_f32(-0.0f), 0x80);
    assert_true(kernel_e4m3_to_f32(0x7e) == 448);
    assert_true(kernel_e4m3_to_f32(0x83) == -3 * 0.001953125f);
    assert_true(isnan(kernel_e4m3_to_f32(0x7f)) && isnan(kernel_e4m3_to_f32(0xff)));
}

/* Every half-precision number survives the way to f32 and back, and every e4m3. */
/* To the nearest whole number, of two the even one; NaN and what is below are 0. */
static void test_u8_by_hand(void **state)
{
    const float values[] = {-1, NAN, 0, 0.25f, 0.5f, 0.75f, 1.5f, 2.5f, 99.75f, 254.5f, 254.75f, 255, 1e9f};
    const uint8_t bytes[] = {0, 0, 0, 0, 0, 1, 2, 2, 100, 254, 255, 255, 255};
    uint8_t out[sizeof bytes];
    (void)state;
    kernel_from_f32(values, KERNEL_U8, sizeof bytes, out);
    assert_memory_equal(out, bytes, sizeof bytes);
}

/* What is f32 already is copied whole, and not beyond its end. */
static void test_f32_is_copied(void **state)
{
    const float values[] = {1, -2.5f, 3e-20f, 4, 5};
    float out[] = {0, 0, 0, 0, 77};
    (void)state;
    kernel_to_f32(values, KERNEL_F32, 4, out);
    assert_memory_equal(out, values, 4 * sizeof *out);
    assert_true(out[4] == 77);
}

static void test_round_trips(void **state)
{
    (void)state;
    for (uint32_t byte = 0; byte < 256; byte++) {
        float value = kernel_e4m3_to_f32((uint8_t)byte);
        assert_true(isnan(value) || kernel_e4m3_from_f32(value) == byte);
    }
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        float f16 = kernel_f16_to_f32(half), bf16 = kernel_bf16_to_f32(half);
        if (!isnan(f16)) assert_int_equal(kernel_f16_from_f32(f16), half);
        if (!isnan(bf16)) assert_int_equal(kernel_bf16_from_f32(bf16), half);
    }
}

static void test_dtypes(void **state)
{
    (void)state;
    assert_int_equal(kernel_dtype_bytes(KERNEL_F32), 4);
    assert_int_equal(kernel_dtype_bytes(KERNEL_TF32), 4);
    assert_int_equal(kernel_dtype_bytes(KERNEL_BF16), 2);
    assert_int_equal(kernel_dtype_bytes(KERNEL_F16), 2);
    assert_int_equal(kernel_dtype_bytes(KERNEL_U8), 1);
    assert_int_equal(kernel_dtype_bytes(KERNEL_E4M3), 1);
    assert_int_equal(kernel_result_dtype(KERNEL_E4M3), KERNEL_BF16);
    assert_int_equal(kernel_result_dtype(KERNEL_F16), KERNEL_F16);
    assert_string_equal(kernel_dtype_name(KERNEL_BF16), "bf16");
    assert_string_equal(kernel_error_string(KERNEL_ERROR_CUBLAS + 13), "cuBLAS status 13");
    assert_null(kernel_error_string(2)); /* CUDA's to explain */
}

/* Moments of 2^20 normal numbers: within 5 standard errors of the true ones. */
static void test_normal_moments(void **state)
{
    enum { COUNT = 1 << 20 };
    float *values = malloc(COUNT * sizeof *values);
    double sum = 0, squares = 0, cubes = 0, fourths = 0;
    (void)state;
    assert_int_equal(random_normal_cpu(values, KERNEL_F32, COUNT, 2, 3, 42), 0);
    for (int i = 0; i < COUNT; i++) {
        double z = ((double)values[i] - 2) / 3;
        sum += z;
        squares += z * z;
        cubes += z * z * z;
        fourths += z * z * z * z;
    }
    assert_true(fabs(sum / COUNT) < 5 / 1024.0);
    assert_true(fabs(squares / COUNT - 1) < 5 * sqrt(2) / 1024);
    assert_true(fabs(cubes / COUNT) < 5 * sqrt(15) / 1024);
    assert_true(fabs(fourths / COUNT - 3) < 5 * sqrt(96) / 1024);
    free(values);
}

static void test_random_is_seeded(void **state)
{
    float first[1001], again[1001], other[1001];
    unsigned char bytes[4096];
    int seen[256] = {0};
    (void)state;
    random_normal_cpu(first, KERNEL_F32, 1001, 0, 1, 7);
    random_normal_cpu(again, KERNEL_F32, 1000, 0, 1, 7);
    random_normal_cpu(other, KERNEL_F32, 1001, 0, 1, 8);
    assert_memory_equal(first, again, 1000 * sizeof *first);
    assert_memory_not_equal(first, other, sizeof first);
    random_normal_cpu(other, KERNEL_F32, 1001, 0, 1, 7 + ((uint64_t)1 << 32)); /* each bit counts */
    assert_memory_not_equal(first, other, sizeof first);
    random_normal_cpu(bytes, KERNEL_U8, sizeof bytes, 0, 1, 7);
    for (size_t i = 0; i < sizeof bytes; i++)
        seen[bytes[i]]++;
    for (int i = 0; i < 256; i++)
        assert_between(seen[i], 1, 48); /* 16 expected each */
    assert_int_equal(random_normal_cpu(first, KERNEL_F32, -1, 0, 1, 7), KERNEL_ERROR_ARGUMENT);
}

static void test_memcpy_counts(void **state)
{
    (void)state;
    assert_int_equal(memcpy_copy_bytes(1 << 20), 2097152); /* read and written */
    assert_int_equal(memcpy_transfer_bytes(1 << 20), 1048576);
    assert_int_equal(memcpy_memset_bytes(1 << 20), 1048576);
    assert_true(memcpy_copy_bytes(SIZE_MAX) == UINT64_MAX);
    assert_int_equal(memcpy_bidirectional_bytes(1 << 20, 5), 1048581); /* both directions */
    assert_true(memcpy_bidirectional_bytes(SIZE_MAX, 2) == UINT64_MAX);
}

static void test_memcpy_registered_sizes(void **state)
{
    (void)state;
    assert_int_equal(memcpy_registered_bytes(1), 512);
    assert_int_equal(memcpy_registered_bytes(512), 512);
    assert_int_equal(memcpy_registered_bytes(4097), 4608);
    assert_true(memcpy_registered_bytes(SIZE_MAX - 1) == SIZE_MAX);
}

/* One result for each eight bytes that are begun. */
static void test_memcpy_overlap_sizes(void **state)
{
    (void)state;
    assert_int_equal(memcpy_overlap_results(1), 1);
    assert_int_equal(memcpy_overlap_results(8), 1);
    assert_int_equal(memcpy_overlap_results(9), 2);
    assert_true(memcpy_overlap_results(SIZE_MAX) == SIZE_MAX / 8 + 1);
}

/* The chain's closed form, from which a step more or less, or the start of a
 * neighbour, is farther away than rounding leads. */
static void test_memcpy_overlap_values(void **state)
{
    const double shrunk = pow(MEMCPY_OVERLAP_DECAY, MEMCPY_OVERLAP_CHAIN);
    (void)state;
    for (size_t i = 0; i < MEMCPY_OVERLAP_STARTS; i++)
        assert_close(memcpy_overlap_result(i), 1 + (1 + (double)i) * shrunk,
                     2e-5 * (1 + (double)i));
    assert_true(memcpy_overlap_result(7) == memcpy_overlap_result(7 + MEMCPY_OVERLAP_STARTS));
}

/* Sizes around the word's, at every alignment; the neighbours stay. */
static void test_memcpy_variants(void **state)
{
    unsigned char from[96], to[96], expected[96];
    (void)state;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 37 + 1);
    for (size_t row = 0; row < memcpy_copy_cpu.count; row++)
        for (size_t bytes = 0; bytes < 40; bytes++)
            for (size_t shift = 0; shift < 9; shift++) {
                memcpy_args args = {to + shift, from + 2 * shift, bytes, 0};
                memset(to, 0xee, sizeof to);
                memset(expected, 0xee, sizeof expected);
                memcpy(expected + shift, from + 2 * shift, bytes);
                assert_int_equal(memcpy_copy_cpu.rows[row].run(&args, NULL, NULL, NULL), 0);
                assert_memory_equal(to, expected, sizeof to);
            }
}

static void test_memset_variants(void **state)
{
    unsigned char to[96], expected[96];
    (void)state;
    for (size_t row = 0; row < memcpy_memset_cpu.count; row++)
        for (size_t bytes = 0; bytes < 40; bytes++)
            for (size_t shift = 0; shift < 9; shift++) {
                memcpy_args args = {to + shift, NULL, bytes, 0x15a}; /* its low byte counts */
                memset(to, 0xee, sizeof to);
                memset(expected, 0xee, sizeof expected);
                memset(expected + shift, 0x5a, bytes);
                assert_int_equal(memcpy_memset_cpu.rows[row].run(&args, NULL, NULL, NULL), 0);
                assert_memory_equal(to, expected, sizeof to);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_by_hand),    cmocka_unit_test(test_f16_by_hand),
        cmocka_unit_test(test_e4m3_by_hand),    cmocka_unit_test(test_u8_by_hand),
        cmocka_unit_test(test_f32_is_copied),
        cmocka_unit_test(test_round_trips),     cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_normal_moments),  cmocka_unit_test(test_random_is_seeded),
        cmocka_unit_test(test_memcpy_counts),   cmocka_unit_test(test_memcpy_variants),
        cmocka_unit_test(test_memset_variants), cmocka_unit_test(test_memcpy_registered_sizes),
        cmocka_unit_test(test_memcpy_overlap_sizes), cmocka_unit_test(test_memcpy_overlap_values),
    };
    return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}
