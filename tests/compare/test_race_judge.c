/* The statistics of a race against values worked out by hand, and on simulated pairs
 * whose first process is slower and whose card drifts. */
#include "../../compare/race_judge.h"

#include "cmocka_all.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void assert_near(double value, double expected, double most)
{
    if (!(fabs(value - expected) <= most))
        fail_msg("%.17g is not %.17g", value, expected);
}

static struct race_case pairs_of(size_t count, const double *log_ratios)
{
    struct race_case one = {.count = count};
    for (size_t i = 0; i < count; i++)
        one.pairs[i] = (struct race_pair){.log_ratio = log_ratios[i], .new_first = i % 2 == 1};
    return one;
}

static void judge_one(struct race_case *one, size_t look)
{
    struct rule rule = default_rule();
    assert_true(race_judge(one, 1, &rule, look));
}

/* Old first: 2, 4, 6 (mean 4, squares 8); new first: 1, 3 (mean 2, squares 2). The
 * change is 3, the place's share (2 - 4) / 2, the variance 10 / 3, and its share in
 * that of the change (1/3 + 1/2) / 4. Without the place the pairs are 1, 2, 3, 4, 5. */
static void the_mean_of_both_orders(void **state)
{
    (void)state;
    const double percent[] = {0.02, 0.01, 0.04, 0.03, 0.06};
    struct race_case one = pairs_of(5, percent);
    judge_one(&one, 0);
    assert_near(one.evidence.log_ratio, 0.03, 1e-12);
    assert_near(one.place_effect, -0.01, 1e-12);
    assert_near(one.evidence.median_log_ratio, 0.03, 1e-12);
    assert_near(one.evidence.run_variance.value, 10e-4 / 3.0, 1e-12);
    assert_near(one.evidence.run_variance.degrees, 3.0, 0.0);
    assert_near(one.evidence.run_factor, 5.0 / 24.0, 1e-12);
    assert_near(one.judgement.standard_error, sqrt(10e-4 / 3.0 * 5.0 / 24.0), 1e-12);
}

/* A place's penalty of 3 % and no change: a mean over five pairs would be off by 0.6 %,
 * and pairs with OLD always first by 3 %. */
static void the_place_cancels(void **state)
{
    (void)state;
    const double penalty[] = {-0.03, 0.03, -0.03, 0.03, -0.03};
    struct race_case one = pairs_of(5, penalty);
    judge_one(&one, 0);
    assert_near(one.evidence.log_ratio, 0.0, 1e-12);
    assert_near(one.place_effect, 0.03, 1e-12);
    assert_int_equal(one.judgement.verdict, VERDICT_SAME);
}

/* A drift of 1 % a process: whoever is second is 1 % slower. */
static void a_drift_cancels(void **state)
{
    (void)state;
    struct race_case one = {.count = 10};
    for (size_t pair = 0; pair < 10; pair++) {
        double first = 0.01 * (double)(2 * pair);
        double second = first + 0.01;
        bool new_first = pair % 2 == 1;
        one.pairs[pair] = (struct race_pair){
            .log_ratio = new_first ? first - second : second - first, .new_first = new_first};
    }
    judge_one(&one, 1);
    assert_near(one.evidence.log_ratio, 0.0, 1e-12);
}

/* 1/8, 1/8, 1/4 and 1/2 of 5 % and of 1 %: all of both, and no more. */
static void the_looks_share_the_budget(void **state)
{
    (void)state;
    const double shares[race_looks] = {0.125, 0.125, 0.25, 0.5};
    struct rule rule = default_rule();
    for (size_t look = 0; look < race_looks; look++) {
        assert_near(1.0 - race_rule(&rule, look).confidence, 0.05 * shares[look], 1e-12);
        assert_near(race_rule(&rule, look).false_alarms, 0.01 * shares[look], 1e-12);
        assert_near(race_rule(&rule, look).margin, rule.margin, 0.0);
    }
}

static void what_is_decided_stays(void **state)
{
    (void)state;
    const double slower[] = {0.10, 0.101, 0.099, 0.10, 0.10};
    const double faster[] = {-0.10, -0.101, -0.099, -0.10, -0.10};
    struct race_case one = pairs_of(5, slower);
    judge_one(&one, 0);
    assert_int_equal(one.judgement.verdict, VERDICT_SLOWER);
    assert_true(one.decided);
    for (size_t i = 0; i < 5; i++)
        one.pairs[i].log_ratio = faster[i];
    judge_one(&one, 1);
    assert_int_equal(one.judgement.verdict, VERDICT_SLOWER);
    assert_int_equal(one.look, 0);
}

/* Forty cases, of which 39 are decided as `others`, and one whose change of 9 % with
 * pairs that spread by 9 % is beyond Holm's bound among few cases, not among forty. */
static struct judgement judge_the_last(enum verdict others)
{
    static struct race_case cases[40];
    const double wide[] = {0.17, 0.17, 0.09, 0.01, 0.01};
    struct rule rule = default_rule();
    for (size_t i = 0; i < 39; i++) {
        cases[i] = (struct race_case){.decided = true, .judgement = {.verdict = others}};
        cases[i].evidence = (struct evidence){.log_ratio = 0.015,
                                              .median_log_ratio = 0.015,
                                              .baseline_runs = 5,
                                              .current_runs = 5,
                                              .run_variance = {1e-5, 3.0},
                                              .run_factor = 5.0 / 24.0};
    }
    cases[39] = pairs_of(5, wide);
    assert_true(race_judge(cases, 40, &rule, 0));
    return cases[39].judgement;
}

/* The others were SAME, which is why this one is left: it is still one of forty,
 * however surely theirs are changes of 1.5 %. */
static void those_that_are_same_are_still_counted(void **state)
{
    (void)state;
    struct judgement last = judge_the_last(VERDICT_SAME);
    assert_int_equal(last.verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(last.reason, REASON_ONE_AMONG_MANY);
}

/* Holm's procedure: those that were found are counted no more. */
static void those_that_were_found_are_not(void **state)
{
    (void)state;
    assert_int_equal(judge_the_last(VERDICT_SLOWER).verdict, VERDICT_SLOWER);
}

static void one_far_pair_is_left_out(void **state)
{
    (void)state;
    const double far[] = {0.001, -0.001, 1.1, -0.001, 0.001};
    struct race_case one = pairs_of(5, far);
    judge_one(&one, 0);
    assert_int_equal(one.evidence.baseline_outside, 1);
    assert_near(one.evidence.log_ratio, 0.0, 1e-3);
    assert_int_equal(one.judgement.verdict, VERDICT_SAME);
}

static void too_few_pairs_stay_open(void **state)
{
    (void)state;
    const double slower[] = {0.1, 0.1, 0.1};
    for (size_t count = 0; count < 3; count++) {
        struct race_case one = pairs_of(count, slower);
        judge_one(&one, 0);
        assert_int_equal(one.judgement.verdict, VERDICT_INCONCLUSIVE);
        assert_true(isnan(one.judgement.low));
        assert_near(one.judgement.log_ratio, count > 0 ? 0.1 : 0.0, 1e-12);
    }
    struct race_case one_order = pairs_of(3, slower);
    one_order.pairs[1].new_first = false;
    judge_one(&one_order, 0);
    assert_int_equal(one_order.judgement.verdict, VERDICT_INCONCLUSIVE);
    struct race_case no_spread = pairs_of(3, slower);
    judge_one(&no_spread, 0);
    assert_int_equal(no_spread.judgement.verdict, VERDICT_SLOWER);
}

enum { families = 2000, cases_of_family = 20 };

/* Whether any case came out SLOWER beside the last, and whether the last did. */
struct found {
    bool alarm, last;
};

/* Runs a race to its end in which the last case has changed by `change`. */
static struct found simulate(double spread, double place, double drift, double change,
                             uint64_t *random)
{
    static struct race_case cases[cases_of_family];
    struct rule rule = default_rule();
    struct found found = {false, false};
    memset(cases, 0, sizeof cases);
    for (size_t look = 0, pair = 0; look < race_looks; look++) {
        for (; pair < race_pairs_at[look]; pair++) {
            for (size_t i = 0; i < cases_of_family; i++) {
                bool new_first = pair % 2 == 1;
                double order = new_first ? place - drift : drift - place;
                double value = order + spread * random_normal(random) +
                               (i + 1 == cases_of_family ? change : 0.0);
                if (!cases[i].decided)
                    cases[i].pairs[cases[i].count++] =
                        (struct race_pair){.log_ratio = value, .new_first = new_first};
            }
        }
        assert_true(race_judge(cases, cases_of_family, &rule, look));
    }
    for (size_t i = 0; i + 1 < cases_of_family; i++)
        found.alarm |= cases[i].judgement.verdict == VERDICT_SLOWER;
    found.last = cases[cases_of_family - 1].judgement.verdict == VERDICT_SLOWER;
    return found;
}

static void simulated_races(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        double spread, place, drift;
    } worlds[] = {{"pairs spread by 1 %", 0.01, 0.0, 0.0},
                  {"by 4 %", 0.04, 0.0, 0.0},
                  {"by 1 %, the first of a pair 5 % slower", 0.01, 0.05, 0.0},
                  {"by 1 %, each process 0.5 % slower", 0.01, 0.0, 0.005},
                  {"by 10 %", 0.10, 0.0, 0.0}};
    static const double least_found[] = {99.0, 90.0, 99.0, 99.0, 0.0};
    uint64_t random = 20261129;
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        size_t alarms = 0;
        size_t last = 0;
        for (size_t family = 0; family < families; family++) {
            struct found found =
                simulate(worlds[w].spread, worlds[w].place, worlds[w].drift, log(1.05), &random);
            alarms += found.alarm;
            last += found.last;
        }
        printf("  %-40s %5.2f %% of %d families alarmed, +5 %% found in %5.1f %%\n", worlds[w].what,
               100.0 * (double)alarms / families, families, 100.0 * (double)last / families);
        assert_true(alarms * 100 <= families);
        assert_true(100.0 * (double)last / families >= least_found[w]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_of_both_orders),
        cmocka_unit_test(the_place_cancels),
        cmocka_unit_test(a_drift_cancels),
        cmocka_unit_test(the_looks_share_the_budget),
        cmocka_unit_test(what_is_decided_stays),
        cmocka_unit_test(those_that_are_same_are_still_counted),
        cmocka_unit_test(those_that_were_found_are_not),
        cmocka_unit_test(one_far_pair_is_left_out),
        cmocka_unit_test(too_few_pairs_stay_open),
        cmocka_unit_test(simulated_races),
    };
    return cmocka_run_group_tests_name("compare: the statistics of a race", tests, NULL, NULL);
}
