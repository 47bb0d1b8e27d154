/*
 * test_parallel.c - loops over several threads: every index exactly once,
 * whatever their number and however many threads the system gives.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>

/* What the system says, in the hands of the tests. */
static int allowed_processors, allowed_threads, created, joined;

static int create_counted(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    if (created == allowed_threads)
        return EAGAIN;
    created++;
    return pthread_create(thread, attributes, start, argument);
}

static int join_counted(pthread_t thread, void **result)
{
    joined++;
    return pthread_join(thread, result);
}

#undef CPU_COUNT
#define CPU_COUNT(set) ((void)(set), allowed_processors)
#define pthread_create create_counted
#define pthread_join join_counted
#include "../../suites/parallel.c"
#undef pthread_create
#undef pthread_join

#include "../kernels/kernel_test.h"

enum { MOST = 1000 };

typedef struct visits {
    atomic_int of[MOST];
    atomic_int calls, uneven;
    int64_t count, range_length;
} visits;

static void visit(void *context, int64_t begin, int64_t end)
{
    visits *v = context;
    int64_t last = v->count < begin + v->range_length ? v->count : begin + v->range_length;
    if (begin % v->range_length != 0 || end != last)
        atomic_fetch_add(&v->uneven, 1);
    atomic_fetch_add(&v->calls, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&v->of[i], 1);
}

/* One loop on so many processors, of which the system grants so many helpers. */
static void check_loop(int64_t count, int64_t range_length, int processors_, int helpers)
{
    visits *v = calloc(1, sizeof *v);
    assert_non_null(v);
    v->count = count;
    v->range_length = range_length;
    allowed_processors = processors_;
    allowed_threads = helpers;
    created = joined = 0;
    parallel_for(count, range_length, visit, v);
    assert_int_equal(joined, created);
    assert_int_equal(v->calls, (count + range_length - 1) / range_length);
    assert_int_equal(v->calls, parallel_range_count(count, range_length));
    assert_int_equal(v->uneven, 0);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(v->of[i], i < count);
    free(v);
}

static void test_every_index_once(void **state)
{
    static const int64_t counts[] = {0, 1, 2, 3, 15, 16, 17, 999, MOST};
    static const int64_t lengths[] = {1, 2, 7, 999, MOST, 5000};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (int processors_ = 1; processors_ <= 64; processors_ *= 4)
                check_loop(counts[c], lengths[l], processors_, 64);
}

static pthread_barrier_t all_there;

static void meet(void *context, int64_t begin, int64_t end)
{
    (void)context, (void)begin, (void)end;
    pthread_barrier_wait(&all_there);
}

/* Ends only if so many threads take a range at the same time. */
static void check_meeting(int64_t ranges, int processors_, unsigned threads)
{
    allowed_processors = processors_;
    allowed_threads = 64;
    created = joined = 0;
    assert_int_equal(pthread_barrier_init(&all_there, NULL, threads), 0);
    parallel_for(ranges, 1, meet, NULL);
    assert_int_equal(created, threads - 1);
    assert_int_equal(joined, created);
    pthread_barrier_destroy(&all_there);
}

/* As many threads as processors, ranges and the limit allow; the caller is one. */
static void test_number_of_threads(void **state)
{
    (void)state;
    check_meeting(8, 4, 4);
    check_meeting(3, 16, 3);
    check_meeting(3 * PARALLEL_MOST_THREADS, 64, PARALLEL_MOST_THREADS);
    check_meeting(1, 16, 1);
    check_meeting(5, 1, 1);
}

static void test_threads_that_cannot_be_had(void **state)
{
    (void)state;
    check_loop(MOST, 1, 16, 0);
    assert_int_equal(created, 0);
    check_loop(MOST, 1, 16, 5);
    assert_between(created, 1, 5);
}

/* What is started ends with parallel_finish, also without any helper; a loop
 * of zeros, and one that has ended, have nothing to finish. */
static void test_two_steps(void **state)
{
    parallel_loop loop = {.count = 0};
    visits v = {.count = MOST, .range_length = 10};
    (void)state;
    allowed_processors = 16;
    parallel_finish(&loop);
    for (allowed_threads = 0; allowed_threads <= 64; allowed_threads += 64) {
        created = 0;
        v.calls = 0;
        parallel_start(&loop, MOST, 10, visit, &v);
        parallel_finish(&loop);
        assert_int_equal(v.calls, 100);
        parallel_finish(&loop);
        assert_int_equal(v.calls, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_once),
        cmocka_unit_test(test_number_of_threads),
        cmocka_unit_test(test_threads_that_cannot_be_had),
        cmocka_unit_test(test_two_steps),
    };
    return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
