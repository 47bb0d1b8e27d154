/* What the runs of a case say before cases are looked at together, against sums by hand. */
#define _XOPEN_SOURCE 700

#include "../../compare/evidence.h"
#include "../../compare/verdict.h"

#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

/* Runs in thousandths of a logarithm, so that no fence is in reach. */
static const double unit = 0.001;

struct runs {
    size_t count;
    double values[MOST];
    uint32_t campaigns[MOST];
};

/* In memory of exactly that size, so that the address sanitizer sees who reads behind it. */
static void *copied(const void *from, size_t bytes)
{
    void *copy = malloc(bytes);
    assert_non_null(copy);
    return memcpy(copy, from, bytes);
}

static struct evidence gathered(const struct runs *baseline, const struct runs *current,
                                bool in_common, size_t *outside)
{
    const struct runs *sides[] = {baseline, current};
    double *values[2];
    uint32_t *campaigns[2];
    struct side given[2];
    static const bool marks[MOST];
    for (int i = 0; i < 2; i++) {
        values[i] = copied(sides[i]->values, sides[i]->count * sizeof values[i][0]);
        campaigns[i] = copied(sides[i]->campaigns, sides[i]->count * sizeof campaigns[i][0]);
        for (size_t run = 0; run < sides[i]->count; run++)
            values[i][run] *= unit;
        given[i] = (struct side){values[i], campaigns[i], sides[i]->count};
    }
    struct rule rule = default_rule();
    rule.campaigns_in_common = in_common;
    bool *exact = copied(marks, baseline->count * sizeof exact[0]);
    struct evidence evidence;
    assert_true(gather_evidence(given[0], given[1], &rule, exact, &evidence));
    *outside = 0;
    for (size_t i = 0; i < baseline->count; i++)
        *outside += exact[i];
    for (int i = 0; i < 2; i++) {
        free(values[i]);
        free(campaigns[i]);
    }
    free(exact);
    return evidence;
}

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-12 * fabs(wanted) + 1e-20))
        fail_msg("%.17g is not %.17g", value, wanted);
}

static void assert_variance(struct variance variance, double value, double degrees)
{
    assert_near(variance.value, value * unit * unit);
    assert_near(variance.degrees, degrees);
}

/* Campaigns of 0 and 2, of 4 and 6, of 8: the mean is 4, the squares about it 40, within the
 * campaigns 2 + 2. The others, of 1 and 3, of 8: the mean is 4, the squares 26, within 2. */
static const struct runs three = {5, {4, 0, 8, 2, 6}, {2, 1, 3, 1, 2}};
static const struct runs two = {3, {1, 8, 3}, {7, 8, 7}};

static void campaigns_that_count(void **state)
{
    (void)state;
    size_t outside;
    struct evidence evidence = gathered(&three, &two, false, &outside);
    assert_int_equal(outside, 0);
    assert_near(evidence.log_ratio, 0.0);
    assert_near(evidence.median_log_ratio, (3 - 4) * unit);
    assert_int_equal(evidence.baseline_runs, 5);
    assert_int_equal(evidence.baseline_outside, 0);
    assert_int_equal(evidence.current_runs, 3);
    assert_int_equal(evidence.baseline_campaigns, 3);
    assert_int_equal(evidence.current_campaigns, 2);
    assert_false(evidence.paired);
    assert_true(evidence.campaigns_counted);
    assert_variance(evidence.run_variance, (4.0 + 2.0) / 3.0, 3.0);
    assert_near(evidence.run_factor, 1.0 / 5 + 1.0 / 3);
    assert_variance(evidence.between_square, (40.0 - 4.0 + 26.0 - 2.0) / 3.0, 3.0);
    /* (2 and 2 and 1 of 5) and (2 and 1 of 3) */
    assert_near(evidence.campaign_factor, 9.0 / 25 + 5.0 / 9);
    assert_near(evidence.runs_per_campaign, (5 * (1 - 9.0 / 25) + 3 * (1 - 5.0 / 9)) / 3.0);
    assert_near(evidence.uncounted_factor, 0.0);
}

/* Turned around the baseline has two campaigns, which tell nothing of campaigns. */
static void too_few_campaigns(void **state)
{
    (void)state;
    size_t outside;
    struct evidence evidence = gathered(&two, &three, false, &outside);
    assert_false(evidence.campaigns_counted);
    assert_near(evidence.median_log_ratio, (4 - 3) * unit);
    assert_variance(evidence.run_variance, (40.0 + 26.0) / 6.0, 6.0);
    assert_near(evidence.uncounted_factor, 9.0 / 25 + 5.0 / 9);
    assert_near(evidence.campaign_factor, 0.0);
}

/* Of the first campaign 2/5 and 2/3, of the second 2/5 and 1/3 are in both means. */
static void campaigns_on_both_sides(void **state)
{
    (void)state;
    size_t outside;
    struct runs shared = two;
    shared.campaigns[0] = shared.campaigns[2] = 1;
    shared.campaigns[1] = 2;
    double common = 2.0 / 5 * 2.0 / 3 + 2.0 / 5 * 1.0 / 3;
    struct evidence evidence = gathered(&three, &shared, true, &outside);
    assert_near(evidence.campaign_factor, 9.0 / 25 + 5.0 / 9 - 2.0 * common);
    assert_near(gathered(&three, &shared, false, &outside).campaign_factor, 9.0 / 25 + 5.0 / 9);
    /* The last and one that the baseline has not. */
    shared.campaigns[0] = shared.campaigns[2] = 3;
    shared.campaigns[1] = 9;
    evidence = gathered(&three, &shared, true, &outside);
    assert_near(evidence.campaign_factor, 9.0 / 25 + 5.0 / 9 - 2.0 * (1.0 / 5 * 2.0 / 3));
}

/* Half of either side each: what campaigns do is in both means alike. */
static void campaigns_that_cancel(void **state)
{
    (void)state;
    size_t outside;
    const struct runs halves = {4, {0, 10, 2, 14}, {1, 2, 1, 2}};
    const struct runs others = {2, {3, 9}, {1, 2}};
    struct evidence evidence = gathered(&halves, &others, true, &outside);
    assert_false(evidence.campaigns_counted);
    assert_variance(evidence.run_variance, (2.0 + 8.0) / 2.0, 2.0);
    assert_near(evidence.campaign_factor, 0.0);
    assert_near(evidence.uncounted_factor, 0.0);
    /* One run of each on either side has no spread within campaigns: the sides' counts. */
    evidence = gathered(&others, &others, true, &outside);
    assert_variance(evidence.run_variance, (18.0 + 18.0) / 2.0, 2.0);
    assert_near(evidence.run_factor, 1.0);
}

/* Runs and campaigns cannot be told apart then. */
static void one_run_a_campaign(void **state)
{
    (void)state;
    size_t outside;
    const struct runs singles = {4, {0, 2, 4, 6}, {4, 3, 2, 1}};
    const struct runs others = {2, {3, 5}, {8, 9}};
    struct evidence evidence = gathered(&singles, &others, false, &outside);
    assert_false(evidence.campaigns_counted);
    assert_variance(evidence.run_variance, (20.0 + 2.0) / 4.0, 4.0);
    assert_near(evidence.run_factor, 1.0 / 4 + 1.0 / 2);
    assert_near(evidence.campaign_factor, 0.0);
    assert_near(evidence.uncounted_factor, 0.0);
}

/* A single run on each side: no spread, and nothing that is no number. */
static void one_run_a_side(void **state)
{
    (void)state;
    size_t outside;
    const struct runs one = {1, {2}, {1}}, other = {1, {5}, {2}};
    struct evidence evidence = gathered(&one, &other, false, &outside);
    assert_near(evidence.log_ratio, 3 * unit);
    assert_variance(evidence.run_variance, 0.0, 0.0);
}

/* A run that is far away is left out; not where it is all that there is of a campaign. */
static void a_far_run_goes_and_a_campaign_stays(void **state)
{
    (void)state;
    size_t outside;
    struct runs far = {11, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2000}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    struct evidence evidence = gathered(&far, &two, false, &outside);
    assert_int_equal(outside, 1);
    assert_int_equal(evidence.baseline_outside, 1);
    assert_int_equal(evidence.baseline_runs, 10);
    assert_near(evidence.log_ratio, (4 - 0.9) * unit);
    far.campaigns[10] = 2;
    evidence = gathered(&far, &two, false, &outside);
    assert_int_equal(outside, 0);
    assert_int_equal(evidence.baseline_outside, 0);
    assert_int_equal(evidence.baseline_runs, 11);
    assert_int_equal(evidence.baseline_campaigns, 2);
    /* Nor where it stands in front. */
    const struct runs front = {11, {2000, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0}, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    evidence = gathered(&front, &two, false, &outside);
    assert_int_equal(outside, 0);
    assert_int_equal(evidence.baseline_campaigns, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(campaigns_that_count),
        cmocka_unit_test(too_few_campaigns),
        cmocka_unit_test(campaigns_on_both_sides),
        cmocka_unit_test(campaigns_that_cancel),
        cmocka_unit_test(one_run_a_campaign),
        cmocka_unit_test(one_run_a_side),
        cmocka_unit_test(a_far_run_goes_and_a_campaign_stays),
    };
    return cmocka_run_group_tests_name("compare: evidence", tests, NULL, NULL);
}
