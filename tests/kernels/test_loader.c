/*
 * test_loader.c - batches come in order, each once, never more than were allowed or than
 * there are slots; a batch that cannot be made ends the taking at its number; closing
 * ends whatever the threads wait for.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kernel_test.h"

#include "../../kernels/model/batches.h"
#include "../../kernels/model/loader.h"

enum { BATCH = 64, MOST = 1000 };

/* A source that counts, and fails from a number on; slots that show who else is there. */
typedef struct source {
    atomic_int made[MOST], at_work[LOADER_MOST_SLOTS], wrong;
    int64_t fails_from, naps_to; /* numbers */
    int slots;
    int64_t memory[LOADER_MOST_SLOTS][BATCH];
} source;

static void nap(void)
{
    const struct timespec some = {0, 200000};
    nanosleep(&some, NULL);
}

/* Batch n is BATCH times n. */
static int make(void *context, int64_t number, void *memory, char reason[LOADER_REASON])
{
    source *s = context;
    int64_t *batch = memory;
    int slot = (int)(number % s->slots);
    if (memory != s->memory[slot] || atomic_fetch_add(&s->at_work[slot], 1) != 0)
        atomic_fetch_add(&s->wrong, 1);
    if (number < MOST) atomic_fetch_add(&s->made[number], 1);
    if (number <= s->naps_to) nap();
    for (int i = 0; i < BATCH; i++) batch[i] = number;
    atomic_fetch_sub(&s->at_work[slot], 1);
    if (number < s->fails_from) return 0;
    snprintf(reason, LOADER_REASON, "batch %lld: no more", (long long)number);
    return -1;
}

static loader *open_source(source *s, int threads, int slots)
{
    void *memory[LOADER_MOST_SLOTS];
    memset(s, 0, sizeof *s);
    s->slots = slots;
    s->fails_from = INT64_MAX;
    s->naps_to = -1;
    for (int i = 0; i < slots; i++) memory[i] = s->memory[i];
    return loader_open(threads, slots, memory, make, s);
}

static void expect_batch(loader *l, int64_t number)
{
    const int64_t *batch = loader_take(l);
    assert_non_null(batch);
    for (int i = 0; i < BATCH; i++) assert_int_equal(batch[i], number);
}

static const int thread_counts[] = {0, 1, 2, 4, 8};
#define FOR_EACH_THREADS(i) for (size_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++)

static void test_in_order_and_once(void **unused)
{
    static source s;
    (void)unused;
    FOR_EACH_THREADS(i)
        for (int slots = 1; slots <= LOADER_MOST_SLOTS; slots += 3) {
            loader *l = open_source(&s, thread_counts[i], slots);
            loader_allow(l, MOST);
            for (int64_t n = 0; n < MOST; n++) {
                expect_batch(l, n);
                loader_give_back(l);
            }
            loader_close(l);
            assert_int_equal(s.wrong, 0);
            for (int n = 0; n < MOST; n++) assert_int_equal(s.made[n], 1);
        }
}

/* A batch in the caller's hands stays as it is while others are made behind it. */
static void test_slots_in_hand(void **unused)
{
    static source s;
    (void)unused;
    FOR_EACH_THREADS(i) {
        loader *l = open_source(&s, thread_counts[i], 3);
        loader_allow(l, 100);
        const int64_t *held = loader_take(l);
        for (int64_t n = 1; n < 100; n++) {
            expect_batch(l, n);
            nap();
            assert_int_equal(held[BATCH - 1], n - 1);
            held = s.memory[n % 3];
            loader_give_back(l);
        }
        loader_close(l);
        assert_int_equal(s.wrong, 0);
    }
}

/* 5 are allowed, then 2 more: nobody makes the 6th before, however long it takes. */
static void test_allowance(void **unused)
{
    static source s;
    (void)unused;
    FOR_EACH_THREADS(i) {
        loader *l = open_source(&s, thread_counts[i], LOADER_MOST_SLOTS);
        loader_allow(l, 5);
        for (int64_t n = 0; n < 5; n++) expect_batch(l, n);
        for (int n = 0; n < 5; n++) loader_give_back(l);
        nap(), nap();
        assert_int_equal(s.made[5], 0);
        loader_allow(l, 2);
        expect_batch(l, 5);
        expect_batch(l, 6);
        loader_close(l);
        assert_int_equal(s.made[7], 0);
    }
}

/* Batches 0 to 6 are good, and 7 is told, although 8 is quicker to fail than any of them. */
static void test_failure(void **unused)
{
    static source s;
    (void)unused;
    FOR_EACH_THREADS(i) {
        loader *l = open_source(&s, thread_counts[i], LOADER_MOST_SLOTS);
        s.fails_from = s.naps_to = 7;
        loader_allow(l, MOST);
        for (int64_t n = 0; n < 7; n++) {
            expect_batch(l, n);
            loader_give_back(l);
        }
        assert_null(loader_take(l));
        assert_string_equal(loader_reason(l), "batch 7: no more");
        assert_null(loader_take(l)); /* again, and it does not wait */
        loader_close(l);
    }
}

/* Closed while threads make, wait for a slot, or have nothing to do. */
static void test_closing(void **unused)
{
    static source s;
    (void)unused;
    for (int again = 0; again < 200; again++) {
        loader *l = open_source(&s, again % 9, 1 + again % LOADER_MOST_SLOTS);
        s.naps_to = again % 2 ? MOST : -1;
        s.fails_from = again % 5 ? INT64_MAX : 2;
        if (again % 3) loader_allow(l, again % 7 ? MOST : 1);
        if (again % 3 == 2) (void)loader_take(l);
        loader_close(l);
    }
    loader_close(NULL);
}

/* Tokens 0 to 28 are a vocabulary of 29; targets lie behind the tokens. */
static void test_batches(void **unused)
{
    int32_t text[6] = {0, 28, 3, 28, 3, 1}, memory[6];
    char reason[LOADER_REASON] = "";
    model_batches b = {text, 3, 29, 0};
    (void)unused;
    assert_int_equal(model_batch_bytes(&b), 24);
    assert_int_equal(model_batch_make(&b, 4, memory, reason), 0);
    assert_memory_equal(memory, text, sizeof text);
    text[4] = 29;
    assert_int_equal(model_batch_make(&b, 4, memory, reason), -1);
    assert_string_equal(reason, "batch 4: token 29 is not one of the vocabulary's 29");
    text[4] = -1;
    assert_int_equal(model_batch_make(&b, 4, memory, reason), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order_and_once), cmocka_unit_test(test_slots_in_hand),
        cmocka_unit_test(test_allowance),         cmocka_unit_test(test_failure),
        cmocka_unit_test(test_closing),           cmocka_unit_test(test_batches),
    };
    alarm(100); /* one that does not end is a failure of its own */
    return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
