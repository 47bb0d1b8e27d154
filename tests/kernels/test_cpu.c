/*
 * test_cpu.c - how many threads a cgroup's quota pays for, in trees made here.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel_test.h"

#include "../../kernels/common/cpu.h"

static char root[] = "/tmp/gpubench_cpu_XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void remove_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    remove(path);
}

static void make_folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void expect_quota(const char *text, int threads)
{
    write_file("a/cpu.max", text);
    assert_int_equal(cpu_quota(root, "/a"), threads);
}

static void test_version_2(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota(root, "/a"), 0); /* no file */
    expect_quota("max 100000\n", 0);
    expect_quota("200000 100000\n", 2);
    expect_quota("150000 100000\n", 2); /* rounded up */
    expect_quota("50000 100000\n", 1);
    expect_quota("", 0);
    expect_quota("abc\n", 0);
    expect_quota("200000\n", 0); /* no period */
    expect_quota("200000 0\n", 0);
    expect_quota("-1 100000\n", 0);
}

/* The smallest on the way to the root counts. */
static void test_parents(void **state)
{
    (void)state;
    write_file("a/cpu.max", "300000 100000\n");
    write_file("a/b/cpu.max", "max 100000\n");
    assert_int_equal(cpu_quota(root, "/a/b"), 3);
    write_file("cpu.max", "100000 100000\n");
    assert_int_equal(cpu_quota(root, "/a/b"), 1);
    assert_int_equal(cpu_quota(root, "/"), 1);
    remove_file("cpu.max");
    remove_file("a/cpu.max");
    remove_file("a/b/cpu.max");
}

static void test_version_1(void **state)
{
    (void)state;
    write_file("a/cpu.cfs_period_us", "100000\n");
    write_file("a/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(cpu_quota(root, "/a"), 0);
    write_file("a/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(cpu_quota(root, "/a"), 3);
    remove_file("a/cpu.cfs_quota_us");
    remove_file("a/cpu.cfs_period_us");
}

/* The largest of a tree made here; a machine's own is some. */
static void test_caches(void **state)
{
    (void)state;
    make_folder("cache");
    make_folder("cache/index0");
    make_folder("cache/index3");
    write_file("cache/index0/size", "48K\n");
    write_file("cache/index3/size", "32768K\n");
    assert_int_equal(cpu_cache_bytes(root), 32 << 20);
    remove_file("cache/index3/size");
    assert_int_equal(cpu_cache_bytes(root), 48 << 10);
    remove_file("cache/index0/size");
    assert_true(cpu_cache_bytes(root) >= 1 << 14);
    assert_true(cpu_cache_bytes(NULL) >= 1 << 14);
    remove_file("cache/index0");
    remove_file("cache/index3");
    remove_file("cache");
}

static void test_own(void **state)
{
    (void)state;
    assert_true(cpu_affinity() >= 1);
    assert_between(cpu_threads(), 1, cpu_affinity());
}

/* The mask's first processor alone, after which the others are refused. It comes last:
 * the mask stays so. */
static void test_pin(void **state)
{
    static const char *const bad[] = {"", "a", "0,", "-1", "0-", "3-1", "0 1", "0x1"};
    char one[16], other[64];
    int first = 0, allowed = cpu_affinity();
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_string_equal(cpu_pin(bad[i]), "wants a list as 0,2-3");
    assert_string_equal(cpu_pin("99999999"), "this process may not run on all of them");
    assert_int_equal(cpu_affinity(), allowed);
    for (snprintf(one, sizeof one, "0"); cpu_pin(one) != NULL; first++)
        snprintf(one, sizeof one, "%d", first + 1);
    assert_int_equal(cpu_affinity(), 1);
    snprintf(other, sizeof other, "%s,%d", one, first + 1);
    assert_string_equal(cpu_pin(other), "this process may not run on all of them");
    assert_null(cpu_pin(one));
    assert_int_equal(cpu_affinity(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_parents),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_caches), cmocka_unit_test(test_own),
        cmocka_unit_test(test_pin),
    };
    if (!mkdtemp(root)) return 1;
    make_folder("a");
    make_folder("a/b");
    int failed = cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
    remove_file("a/b");
    remove_file("a");
    rmdir(root);
    return failed;
}
