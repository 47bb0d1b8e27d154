/*
 * test_memcpy.c - copying and setting host memory: byte by byte, at sizes and alignments
 * that leave a rest at each end, that several threads share, and that no cache holds.
 */
#include "kernel_test.h"

#include "../../kernels/common/cpu.h"
#include "../../kernels/common/pool.h"
#include "../../kernels/memcpy/memcpy.h"

/* Of two threads' ranges of 256 KiB each whole and broken ones. */
static const size_t sizes[] = {
    0, 1, 2, 3, 4, 5, 63, 64, 65, 4095, (1 << 18) - 1, 1 << 18, (1 << 19) + 1, 5 * (1 << 18) + 7};
enum { SIZES = sizeof sizes / sizeof *sizes, ROOM = 64, LAST_SEEN = 0xa5 };

/* Differs between neighbours, and between places that any vector is apart. */
static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 167 + (i >> 8) * 59 + (i >> 16) * 13);
}

static unsigned char *new_source(size_t bytes)
{
    unsigned char *memory = fresh(bytes);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = byte_at(i);
    return memory;
}

/* Memory with room at both ends, in which nothing may be written. */
static unsigned char *new_target(size_t bytes)
{
    unsigned char *memory = fresh(bytes + 2 * ROOM);
    return memset(memory, LAST_SEEN, bytes + 2 * ROOM);
}

static void assert_untouched(const unsigned char *target, size_t begin, size_t bytes, size_t end)
{
    for (size_t i = 0; i < begin; i++)
        assert_int_equal(target[i], LAST_SEEN);
    for (size_t i = begin + bytes; i < end; i++)
        assert_int_equal(target[i], LAST_SEEN);
}

/* Counted, since an assertion for each byte would take longer than the copy by far. */
static void assert_copied(const unsigned char *target, size_t first, size_t bytes)
{
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += target[i] != byte_at(first + i);
    assert_int_equal(wrong, 0);
}

static void assert_set(const unsigned char *target, unsigned char value, size_t bytes)
{
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += target[i] != value;
    assert_int_equal(wrong, 0);
}

static void check_copy(const kernel_variant *variant, size_t bytes, size_t to, size_t from)
{
    unsigned char *source = new_source(bytes + ROOM), *target = new_target(bytes);
    const memcpy_args args = {target + ROOM + to, source + from, bytes, 0};
    assert_int_equal(variant->run(&args, NULL, NULL, NULL), KERNEL_OK);
    assert_copied(target + ROOM + to, from, bytes);
    assert_untouched(target, ROOM + to, bytes, bytes + 2 * ROOM);
    assert_copied(source, 0, bytes + ROOM);
    free(source), free(target);
}

/* Only the last byte of value counts. */
static void check_set(const kernel_variant *variant, size_t bytes, size_t to)
{
    unsigned char *target = new_target(bytes);
    const memcpy_args args = {target + ROOM + to, NULL, bytes, 0x1234c3};
    assert_int_equal(variant->run(&args, NULL, NULL, NULL), KERNEL_OK);
    assert_set(target + ROOM + to, 0xc3, bytes);
    assert_untouched(target, ROOM + to, bytes, bytes + 2 * ROOM);
    free(target);
}

static void check_sizes(int threads)
{
    pool_set_threads(threads);
    for (size_t v = 0; v < memcpy_copy_cpu.count; v++)
        for (int s = 0; s < SIZES; s++)
            check_copy(&memcpy_copy_cpu.rows[v], sizes[s], 0, 0);
    for (size_t v = 0; v < memcpy_memset_cpu.count; v++)
        for (int s = 0; s < SIZES; s++)
            check_set(&memcpy_memset_cpu.rows[v], sizes[s], 0);
    pool_set_threads(cpu_threads());
}

static void test_on_one_thread(void **unused)
{
    (void)unused;
    check_sizes(1);
}

static void test_on_several_threads(void **unused)
{
    (void)unused;
    check_sizes(2);
    check_sizes(5);
}

/* A source and a target that are as far from a word, and others. */
static void test_alignments(void **unused)
{
    const size_t bytes[] = {2, 67, (1 << 18) + 9},
                 offsets[][2] = {{1, 1}, {3, 3}, {4, 4}, {16, 48},
                                 {0, 1}, {1, 0}, {2, 3}, {31, 30}};
    (void)unused;
    pool_set_threads(2);
    for (size_t v = 0; v < memcpy_copy_cpu.count; v++)
        for (size_t b = 0; b < 3; b++)
            for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++) {
                check_copy(&memcpy_copy_cpu.rows[v], bytes[b], offsets[o][0], offsets[o][1]);
                check_set(&memcpy_memset_cpu.rows[v], bytes[b], offsets[o][0]);
            }
    pool_set_threads(cpu_threads());
}

/* What goes around the caches; where these are huge it would take too much memory. */
static void test_larger_than_the_caches(void **unused)
{
    const uint64_t cache = cpu_cache_bytes(NULL), most = 64 << 20;
    (void)unused;
    if (cache > most)
        skip();
    for (size_t v = 0; v < memcpy_copy_cpu.count; v++) {
        check_copy(&memcpy_copy_cpu.rows[v], (size_t)cache + 77, 5, 5);
        check_set(&memcpy_memset_cpu.rows[v], (size_t)cache + 77, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_one_thread),
        cmocka_unit_test(test_on_several_threads),
        cmocka_unit_test(test_alignments),
        cmocka_unit_test(test_larger_than_the_caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
