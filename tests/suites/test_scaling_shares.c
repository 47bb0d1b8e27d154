/* Where a step's time goes, from steps that were made up: who waited for whom is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#include "suites/scaling_shares.c"

#include <cmocka.h>

static void assert_near(double found, double wanted)
{
    assert_true(found > wanted - 1e-9 && found < wanted + 1e-9);
}

/* Computing takes 90, 290, 90 and 90, and the sum over the ranks 3 from when all are there. */
static void one_rank_is_slow(void **state)
{
    const collective_stalls each[4] = {
        {293, {203}, 1}, {293, {3}, 1}, {293, {203}, 1}, {293, {203}, 1}};
    step_shares s = step_shares_of(each, 4);
    (void)state;
    assert_near(s.compute_us, 140);
    assert_near(s.exposed_us, 3);
    assert_near(s.wait_us, 150);
    assert_near(s.longest_us, 200);
    assert_int_equal(s.slowest, 1);
}

/* Each is late in turn: rank 0 waits 3 - 1 and 4 - 2, rank 1 3 - 1 and 2.5 - 2. By the sums,
 * 10 and 8.5, rank 0 would have waited 1.5 and rank 1 not at all. */
static void joins_are_taken_one_by_one(void **state)
{
    const collective_stalls each[2] = {{20, {3, 1, 2, 4}, 4}, {20, {1, 3, 2.5, 2}, 4}};
    step_shares s = step_shares_of(each, 2);
    (void)state;
    assert_near(s.exposed_us, 1 + 1 + 2 + 2);
    assert_near(s.wait_us, (4 + 2.5) / 2);
    assert_near(s.longest_us, 4);
    assert_int_equal(s.slowest, 1);
    assert_near(s.compute_us + s.exposed_us + s.wait_us, 20);
}

static void ranks_without_times_have_no_shares(void **state)
{
    const collective_stalls timeless[2] = {{20, {3}, 1}, {0, {0}, 0}};
    const collective_stalls unequal[2] = {{20, {3}, 1}, {20, {3, 4}, 2}};
    (void)state;
    assert_near(step_shares_of(timeless, 2).compute_us, 0);
    assert_near(step_shares_of(unequal, 2).exposed_us, 0);
}

static void add(step_history *h, double exposed_us, int slowest, int times)
{
    const step_shares one = {10, exposed_us, 0, 0, slowest};
    while (times-- > 0) step_history_add(h, &one);
}

static void medians_and_votes(void **state)
{
    static step_history h;
    (void)state;
    assert_near(step_history_median(&h).compute_us, 0);
    add(&h, 100, 0, 1);
    add(&h, 1, 3, 1);
    add(&h, 3, 3, 1);
    assert_near(step_history_median(&h).exposed_us, 3);
    assert_near(step_history_median(&h).compute_us, 10);
    assert_int_equal(step_history_median(&h).slowest, 3);
    add(&h, 1000, 2, 100); /* of which warming up leaves none */
    add(&h, 5, 1, STEPS_KEPT);
    assert_near(step_history_median(&h).exposed_us, 5);
    assert_int_equal(step_history_median(&h).slowest, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_is_slow),
        cmocka_unit_test(joins_are_taken_one_by_one),
        cmocka_unit_test(ranks_without_times_have_no_shares),
        cmocka_unit_test(medians_and_votes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
