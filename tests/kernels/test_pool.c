/*
 * test_pool.c - every range is done once, whatever the numbers of threads and
 * ranges, and no two workers share a number at a time.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "kernel_test.h"

#include "../../kernels/common/cpu.h"
#include "../../kernels/common/pool.h"

enum { MOST = 1000, WORKERS = 8 };

typedef struct tally {
    int threads;
    atomic_int done[MOST], at_work[WORKERS], wrong;
} tally;

static void count_range(void *context, int worker, int64_t begin, int64_t end)
{
    tally *t = context;
    if (worker < 0 || worker >= t->threads || atomic_fetch_add(&t->at_work[worker], 1) != 0)
        atomic_fetch_add(&t->wrong, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&t->done[i], 1);
    atomic_fetch_sub(&t->at_work[worker], 1);
}

static void expect_each_once(int threads, int64_t count, int64_t range_length)
{
    static tally t;
    memset(&t, 0, sizeof t);
    t.threads = threads;
    pool_for(threads, count, range_length, count_range, &t);
    assert_int_equal(t.wrong, 0);
    for (int64_t i = 0; i < MOST; i++) assert_int_equal(t.done[i], i < count);
}

static void test_each_once(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 7, 3, 8, 1, 2};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        for (int again = 0; again < 20; again++) {
            expect_each_once(threads[i], MOST, 1);
            expect_each_once(threads[i], MOST - 1, 10);
            expect_each_once(threads[i], 3, 2);
            expect_each_once(threads[i], 1, 100);
            expect_each_once(threads[i], 0, 1);
        }
}

/* Plain memory that one loop wrote is there for the next, and for the caller. */
static void add_one(void *context, int worker, int64_t begin, int64_t end)
{
    int64_t *numbers = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++) numbers[(i * 7) % MOST] += 1;
}

static void test_loops_follow_each_other(void **state)
{
    (void)state;
    static int64_t numbers[MOST];
    for (int loop = 0; loop < 200; loop++) pool_for(4, MOST, 1 + loop % 5, add_one, numbers);
    for (int i = 0; i < MOST; i++) assert_int_equal(numbers[i], 200);
}

/* Threads of this process that do not sleep, this one left out; -1 without /proc. */
static int awake(void)
{
    int count = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300], text[256] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *file = task->d_name[0] != '.' ? fopen(path, "r") : NULL;
        if (!file) continue;
        if (!fgets(text, sizeof text, file)) text[0] = 0;
        fclose(file);
        const char *state = strrchr(text, ')');
        count += state && state[2] != 'S';
    }
    if (tasks) closedir(tasks);
    return count;
}

/* Between loops nobody looks for work. Waits for as long as it takes. */
static void test_sleeps(void **state)
{
    (void)state;
    struct timespec pause = {0, 1000000};
    expect_each_once(4, MOST, 1);
    while (awake() > 0) nanosleep(&pause, NULL);
}

/* On every thread once: a slow one does not lose its turn to the others. */
typedef struct roll {
    int threads;
    atomic_int calls[MOST];
    pthread_t who[MOST];
} roll;

static void answer(void *context, int thread, int threads)
{
    roll *r = context;
    assert_between(thread, 0, threads - 1);
    atomic_fetch_add(&r->calls[thread], 1);
    r->who[thread] = pthread_self();
    if (thread == 0) r->threads = threads;
}

static void test_each_thread(void **state)
{
    (void)state;
    static roll r;
    pool_set_threads(5);
    for (int again = 1; again <= 50; again++) {
        pool_each(answer, &r);
        assert_between(r.threads, 5, WORKERS);
        for (int i = 0; i < r.threads; i++) {
            assert_int_equal(r.calls[i], again);
            for (int j = 0; j < i; j++) assert_false(pthread_equal(r.who[i], r.who[j]));
        }
        assert_true(pthread_equal(r.who[0], pthread_self()));
        expect_each_once(3, MOST, 10); /* a loop afterwards is as before */
    }
    pool_set_threads(cpu_threads());
}

static void test_thread_count(void **state)
{
    (void)state;
    assert_int_equal(pool_threads(), cpu_threads());
    pool_set_threads(3);
    assert_int_equal(pool_threads(), 3);
    pool_set_threads(0);
    assert_int_equal(pool_threads(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once),
        cmocka_unit_test(test_loops_follow_each_other),
        cmocka_unit_test(test_sleeps),
        cmocka_unit_test(test_each_thread),
        cmocka_unit_test(test_thread_count),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
