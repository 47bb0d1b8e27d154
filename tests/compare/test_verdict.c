/* The rule on small, hand-made sides. */
#include "../../compare/verdict.h"

#include "cmocka_all.h"

#include <math.h>
#include <string.h>

enum { most_runs = 128 };

struct made_side {
    double costs[most_runs];
    uint32_t campaigns[most_runs];
    size_t runs;
};

static void add_run(struct made_side *side, double microseconds, uint32_t campaign)
{
    side->costs[side->runs] = log(microseconds);
    side->campaigns[side->runs++] = campaign;
}

/* An even number of runs with exactly that mean and standard deviation. */
static struct made_side spread_side(double mean, double deviation, size_t runs)
{
    struct made_side side = {.runs = 0};
    double step = deviation * sqrt((double)(runs - 1) / (double)runs);
    for (size_t i = 0; i < runs; i++)
        add_run(&side, i % 2 ? mean + step : mean - step, 0);
    return side;
}

static struct made_side equal_side(double value, size_t runs)
{
    return spread_side(value, 0.0, runs);
}

static struct evidence evidence_of(const struct made_side *baseline, const struct made_side *current,
                                   const struct rule *rule)
{
    bool outside[most_runs];
    struct evidence evidence;
    assert_true(gather_evidence((struct side){baseline->costs, baseline->campaigns, baseline->runs},
                                (struct side){current->costs, current->campaigns, current->runs}, rule, outside,
                                &evidence));
    return evidence;
}

static struct judgement judge(struct made_side baseline, struct made_side current, const struct rule *rule)
{
    struct evidence evidence = evidence_of(&baseline, &current, rule);
    struct judgement judgement;
    assert_true(judge_family(&evidence, 1, rule, &judgement));
    return judgement;
}

/* As between the halves of one sitting: nothing but the runs makes a spread. */
static struct rule rule_of_runs(void)
{
    struct rule rule = default_rule();
    rule.campaign_spread = 0.0;
    return rule;
}

/* O04: a change must be large against the margin and against the noise. */
static void noise_is_no_regression(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    rule.margin = 0.05;
    assert_int_not_equal(judge(spread_side(50, 2, 20), spread_side(51, 2, 20), &rule).verdict, VERDICT_SLOWER);
    assert_int_not_equal(judge(spread_side(2.5, 0.4, 10), spread_side(2.7, 0.4, 10), &rule).verdict, VERDICT_SLOWER);
    struct judgement clear = judge(spread_side(50, 0.5, 100), spread_side(54, 0.5, 100), &rule);
    assert_int_equal(clear.verdict, VERDICT_SLOWER);
    assert_int_equal(clear.reason, REASON_BEYOND_MARGIN);
    assert_int_equal(judge(spread_side(54, 0.5, 100), spread_side(50, 0.5, 100), &rule).verdict, VERDICT_FASTER);
}

static void wide_intervals_are_inconclusive(void **state)
{
    (void)state;
    struct rule rule = rule_of_runs();
    struct judgement wide = judge(spread_side(100, 5, 10), spread_side(102, 5, 4), &rule);
    assert_int_equal(wide.verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(wide.reason, REASON_ACROSS_MARGIN);
    assert_true(smallest_change(&wide, &rule) > 0.05);
    struct judgement narrow = judge(spread_side(100, 0.1, 10), spread_side(100.5, 0.1, 4), &rule);
    assert_int_equal(narrow.verdict, VERDICT_SAME);
    assert_true(smallest_change(&narrow, &rule) < 0.03);
}

/* O12: with one baseline run only the plain threshold rules. */
static void one_baseline_run(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct judgement small = judge(equal_side(100, 1), equal_side(101, 1), &rule);
    assert_int_equal(small.verdict, VERDICT_SAME);
    assert_int_equal(small.reason, REASON_WITHIN_THRESHOLD);
    assert_true(isnan(small.low) && isnan(small.high));
    struct judgement large = judge(equal_side(100, 1), equal_side(150, 1), &rule);
    assert_int_equal(large.verdict, VERDICT_SLOWER);
    assert_int_equal(large.reason, REASON_BEYOND_THRESHOLD);
    assert_int_equal(judge(equal_side(150, 1), equal_side(100, 1), &rule).verdict, VERDICT_FASTER);
    assert_true(fabs(smallest_change(&large, &rule) - rule.threshold) < 1e-12);
}

/* One current run is judged by the spread of the baseline. */
static void one_current_run(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side baseline = spread_side(100, 1, 10);
    struct judgement found = judge(baseline, equal_side(110, 1), &rule);
    assert_int_equal(found.verdict, VERDICT_SLOWER);
    assert_true(fabs(found.degrees - 9.0) < 1e-12);
    assert_true(fabs(found.standard_error - 0.01 * sqrt(1.1)) < 1e-4);
    assert_int_equal(judge(baseline, equal_side(103, 1), &rule).verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(judge(spread_side(100, 6, 10), equal_side(110, 1), &rule).verdict, VERDICT_INCONCLUSIVE);
}

/* O13: without any spread the margin is in charge. */
static void zero_spread(void **state)
{
    (void)state;
    struct rule rule = rule_of_runs();
    const struct {
        double current;
        enum verdict verdict;
    } cases[] = {{78.8, VERDICT_FASTER}, {115.0, VERDICT_SAME}, {115.1, VERDICT_SAME}, {150.0, VERDICT_SLOWER}};
    for (size_t i = 0; i < 4; i++) {
        struct judgement judgement = judge(equal_side(115, 4), equal_side(cases[i].current, 4), &rule);
        assert_int_equal(judgement.verdict, cases[i].verdict);
        assert_true(fabs(judgement.low - log(cases[i].current / 115.0)) < 1e-12);
        assert_true(judgement.run_spread == 0.0);
        assert_true(fabs(smallest_change(&judgement, &rule) - rule.margin) < 1e-12);
    }
}

/* Of the baseline a gross outlier is left out; of the current runs it is not,
 * and widens the interval. */
static void outliers(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side baseline = spread_side(9.3, 0.05, 10);
    add_run(&baseline, 97.0, 0);
    struct made_side current = equal_side(9.3, 2);
    struct evidence evidence = evidence_of(&baseline, &current, &rule);
    assert_int_equal(evidence.baseline_outside, 1);
    assert_int_equal(evidence.baseline_runs, 10);
    assert_int_equal(judge(baseline, current, &rule).verdict, VERDICT_SAME);
    add_run(&current, 97.0, 0);
    struct judgement wide = judge(baseline, current, &rule);
    assert_int_equal(wide.verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(wide.reason, REASON_FEW_RUNS);
    assert_true(wide.log_ratio > 0.5);
}

/* What is a mode of the runs, or a campaign, stays: three of twelve runs that take
 * 12 % longer, one of ten that takes 8 %, a campaign of one run that takes 30 %. */
static void modes_are_no_outliers(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side current = equal_side(100, 3);
    struct made_side modes = spread_side(100, 0.1, 9);
    struct made_side mild = modes, card = spread_side(100, 0.1, 10), few = spread_side(100, 0.1, 5);
    for (int i = 0; i < 3; i++)
        add_run(&modes, 112.0, 0);
    add_run(&mild, 108.0, 0);
    add_run(&card, 130.0, 1);
    assert_int_equal(evidence_of(&modes, &current, &rule).baseline_outside, 0);
    assert_int_equal(evidence_of(&mild, &current, &rule).baseline_outside, 0);
    assert_int_equal(evidence_of(&card, &current, &rule).baseline_outside, 0);
    card.campaigns[10] = 0;
    assert_int_equal(evidence_of(&card, &current, &rule).baseline_outside, 1);
    add_run(&few, 130.0, 0);
    assert_int_equal(evidence_of(&few, &current, &rule).baseline_outside, 0);
    few.costs[5] = log(160.0);
    assert_int_equal(evidence_of(&few, &current, &rule).baseline_outside, 1);
}

/* Three campaigns 2 % apart, each steady within 0.05 %. */
static struct made_side campaign_side(uint32_t first)
{
    struct made_side side = {.runs = 0};
    const double means[] = {98.0, 100.0, 102.0};
    for (uint32_t campaign = 0; campaign < 3; campaign++)
        for (int run = 0; run < 4; run++)
            add_run(&side, means[campaign] * (run % 2 ? 1.0005 : 0.9995), first + campaign);
    return side;
}

static void campaigns_are_counted_from_three(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side current = spread_side(104, 0.05, 4);
    for (size_t i = 0; i < current.runs; i++)
        current.campaigns[i] = 9;
    struct made_side baseline = campaign_side(0);
    struct judgement counted = judge(baseline, current, &rule);
    /* The spread of 98, 100 and 102, counted once for the new campaign and a
     * third for the baseline's. */
    assert_true(fabs(counted.campaign_spread - 0.02) < 2e-4);
    assert_true(fabs(counted.standard_error - 0.02 * sqrt(1.0 + 1.0 / 3.0)) < 4e-4);
    assert_true(fabs(counted.degrees - 2.0) < 0.01);
    assert_int_equal(counted.verdict, VERDICT_INCONCLUSIVE);

    /* As one campaign the same runs look surer than they are. */
    memset(baseline.campaigns, 0, sizeof baseline.campaigns);
    struct judgement pooled = judge(baseline, current, &rule);
    assert_true(pooled.campaign_spread == 0.0);
    assert_true(pooled.standard_error < counted.standard_error / 2.0);
}

/* Five campaigns of four runs against 2 to 12 runs of a new one, whose spread is
 * like theirs, at the tail that a hundred cases leave to one: no run more makes the
 * tool blinder. */
static void more_runs_never_blind(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side baseline = {.runs = 0};
    rule.false_alarms = 1e-4;
    rule.confidence = 1.0 - 5e-4;
    for (uint32_t campaign = 0; campaign < 5; campaign++)
        for (size_t run = 0; run < 4; run++)
            add_run(&baseline, 100.0 + 0.6 * (campaign % 3) + (run % 2 ? 0.35 : -0.35), campaign);
    double before = 1.0;
    for (size_t runs = 2; runs <= 12; runs += 2) {
        struct made_side current = {.runs = 0};
        double step = 0.4 * sqrt((double)(runs - 1) / (double)runs);
        for (size_t run = 0; run < runs; run++)
            add_run(&current, 100.5 + (run % 2 ? step : -step), 9);
        struct judgement judgement = judge(baseline, current, &rule);
        double findable = smallest_change(&judgement, &rule);
        assert_true(judgement.campaign_spread > 0.0);
        assert_true(findable <= before * 1.001);
        before = findable;
    }
}

/* Two current campaigns of 101 and 107 say more of how campaigns spread than
 * three of the baseline's that agree by chance. Both sides have 4 runs a campaign
 * and the spread of a run is nothing beside theirs: the mean square of 2 + 1
 * degrees is 8 (ln(107 / 101) / 2)^2 / 3. */
static void current_campaigns_count_too(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side baseline = {.runs = 0}, current = {.runs = 0};
    for (uint32_t campaign = 0; campaign < 3; campaign++)
        for (size_t run = 0; run < 4; run++)
            add_run(&baseline, run % 2 ? 100.01 : 99.99, campaign);
    for (uint32_t campaign = 3; campaign < 5; campaign++)
        for (size_t run = 0; run < 4; run++)
            add_run(&current, (campaign == 3 ? 101.0 : 107.0) * (run % 2 ? 1.0001 : 0.9999), campaign);
    struct evidence evidence = evidence_of(&baseline, &current, &rule);
    double step = log(107.0 / 101.0) / 2.0;
    assert_true(fabs(evidence.between_square.value - 8.0 * step * step / 3.0) < 1e-6);
    assert_true(fabs(evidence.between_square.degrees - 3.0) < 1e-12);
    assert_true(fabs(evidence.runs_per_campaign - 4.0) < 1e-12);
    assert_int_not_equal(judge(baseline, current, &rule).verdict, VERDICT_SLOWER);
}

/* Variants measured in the same campaigns share their effects. */
static void campaigns_in_common_cancel(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side first = campaign_side(0);
    struct made_side second = campaign_side(0);
    for (size_t i = 0; i < second.runs; i++)
        second.costs[i] += log(1.04);
    rule.campaigns_in_common = true;
    struct judgement judgement = judge(first, second, &rule);
    assert_int_equal(judgement.verdict, VERDICT_SLOWER);
    assert_true(judgement.run_spread < 0.001);
    rule.campaigns_in_common = false;
    assert_int_equal(judge(first, second, &rule).verdict, VERDICT_INCONCLUSIVE);
}

/* Where each campaign is one run, a new campaign's three runs are one. */
static void campaigns_of_one_run(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side baseline = {.runs = 0};
    for (uint32_t campaign = 0; campaign < 4; campaign++)
        add_run(&baseline, campaign % 2 ? 101.0 : 99.0, campaign);
    struct judgement judgement = judge(baseline, equal_side(100, 1), &rule);
    assert_true(fabs(judgement.standard_error / judgement.run_spread - sqrt(1.25)) < 1e-9);
}

/* Without any spread in the runs, what is claimed needs the margin and a bound of the
 * spread between campaigns: 1.6973 (Student's 95 % of 30 degrees) times 1 % times the
 * square root of 1 / campaigns + 1. That is 4.48 % slower for one campaign, 4.15 % for
 * two; three tell by themselves that campaigns do not differ. As the new side, three
 * do not: the baseline is what a verdict rests on. */
static void few_campaigns(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    const struct {
        uint32_t campaigns;
        double open, slower;
    } cases[] = {{1, 104.47, 104.49}, {2, 104.13, 104.16}, {3, 102.0, 102.01}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made_side baseline = {.runs = 0};
        struct made_side open = {.runs = 0}, slower = {.runs = 0};
        for (uint32_t run = 0; run < 6; run++) {
            add_run(&baseline, 100, run % cases[i].campaigns);
            add_run(&open, cases[i].open, 9);
            add_run(&slower, cases[i].slower, 9);
        }
        struct judgement below = judge(baseline, open, &rule);
        struct judgement above = judge(baseline, slower, &rule);
        bool few = cases[i].campaigns < 3;
        assert_int_equal(below.verdict, few ? VERDICT_INCONCLUSIVE : VERDICT_SAME);
        assert_int_equal(below.reason, few ? REASON_FEW_CAMPAIGNS : REASON_WITHIN_MARGIN);
        assert_int_equal(above.verdict, VERDICT_SLOWER);
        assert_int_equal(judge(slower, baseline, &rule).verdict,
                         few ? VERDICT_FASTER : VERDICT_INCONCLUSIVE);
        assert_int_equal(judge(baseline, baseline, &rule).verdict, VERDICT_SAME);
        assert_true(fabs(above.low - log(cases[i].slower / 100.0)) < 1e-12);
    }
}

/* Among a hundred cases a weak sign is not enough, a clear one is. */
static void families(void **state)
{
    (void)state;
    enum { cases = 100 };
    struct rule rule = rule_of_runs();
    struct evidence evidence[cases];
    struct judgement judgements[cases];
    struct made_side baseline = spread_side(100, 2, 10);
    struct made_side same = spread_side(100, 2, 4);
    struct made_side weak = spread_side(104.6, 2, 4);
    struct made_side clear = spread_side(108, 2, 4);
    assert_int_equal(judge(baseline, weak, &rule).verdict, VERDICT_SLOWER);
    for (size_t i = 0; i < cases; i++)
        evidence[i] = evidence_of(&baseline, &same, &rule);
    evidence[7] = evidence_of(&baseline, &clear, &rule);
    evidence[8] = evidence_of(&baseline, &weak, &rule);
    assert_true(judge_family(evidence, cases, &rule, judgements));
    assert_int_equal(judgements[7].verdict, VERDICT_SLOWER);
    assert_int_equal(judgements[7].family, cases);
    assert_int_equal(judgements[8].verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(judgements[8].reason, REASON_ONE_AMONG_MANY);
    assert_int_not_equal(judgements[0].verdict, VERDICT_SLOWER);
}

/* A case without a spread of its own is left to the threshold, and the others
 * are judged as if it were not there. */
static void families_of_both_kinds(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct made_side baseline = spread_side(100, 1, 10);
    struct made_side current = spread_side(108, 1, 4);
    struct made_side single = equal_side(100, 1);
    struct evidence evidence[] = {evidence_of(&single, &current, &rule), evidence_of(&baseline, &current, &rule)};
    struct judgement judgements[2];
    assert_true(judge_family(evidence, 2, &rule, judgements));
    assert_int_equal(judgements[0].reason, REASON_BEYOND_THRESHOLD);
    assert_int_equal(judgements[1].reason, REASON_BEYOND_MARGIN);
    assert_int_equal(judgements[1].family, 1);
}

/* A change whose variance is 2 of the campaigns, known with 2 degrees, and 0.5 of the runs,
 * known exactly. At 1 %, Student's quantile of 2 degrees is 0.98 / sqrt(0.02 * 0.99) and the
 * normal one 2.32634787; Graybill and Wang's bound adds both reaches in squares, and no
 * degrees between 2 and infinity can be further from it than interpolation is. By hand the
 * degrees are 2 log(6.9645567 / 2.3263479) / log(6.3155696 / 2.3263479). */
static void two_parts_reach_as_far_as_their_squares(void **state)
{
    (void)state;
    struct rule rule = default_rule();
    struct evidence evidence = {.baseline_runs = 6,
                                .run_variance = {1.0, INFINITY},
                                .run_factor = 1.0,
                                .campaigns_counted = true,
                                .between_square = {4.0, 2.0},
                                .campaign_factor = 0.5,
                                .runs_per_campaign = 1.0};
    struct judgement judgement;
    assert_true(judge_family(&evidence, 1, &rule, &judgement));
    const double wide = 0.98 / sqrt(0.02 * 0.99), narrow = 2.3263478740408408;
    const double reach = sqrt(2.0 * wide * wide + 0.5 * narrow * narrow);
    assert_true(fabs(judgement.standard_error - sqrt(2.5)) < 1e-12);
    assert_true(fabs(judgement.campaign_spread - sqrt(3.0)) < 1e-12);
    assert_true(fabs(judgement.degrees - 2.195883083532567) < 1e-6);
    assert_true(fabs(judgement.standard_error * student_quantile(0.01, judgement.degrees) / reach - 1.0) < 0.03);
    assert_true(fabs(judgement.claim_degrees - judgement.degrees) < 1e-12);

    /* The spread that is assumed is known with 30 degrees (quantile 2.457261542): 1 of it
     * beside 3 that is known exactly. */
    evidence.campaigns_counted = false;
    evidence.run_variance.value = 3.0;
    evidence.uncounted_factor = 4.0;
    rule.campaign_spread = 0.5;
    assert_true(judge_family(&evidence, 1, &rule, &judgement));
    assert_true(fabs(judgement.claim_error - 2.0) < 1e-12);
    assert_true(fabs(judgement.claim_degrees - 115.18474897) < 1e-3);
}

/* Four cases alike but for how their campaigns spread, in units of a run's variance: what all
 * say together, known from twelve campaigns at most, moves each. Four runs a campaign. */
static void cases_lend_each_other_how_campaigns_spread(void **state)
{
    (void)state;
    static const double ratios[] = {2, 3, 5, 40};
    const double run = 1e-6;
    struct rule rule = default_rule();
    struct evidence evidence[4];
    struct judgement judgements[4];
    struct variance own[4];
    for (size_t i = 0; i < 4; i++) {
        evidence[i] = (struct evidence){.baseline_runs = 12, .current_runs = 8, .baseline_campaigns = 3,
                                        .current_campaigns = 2, .run_variance = {run, 15}, .run_factor = 5.0 / 24,
                                        .campaigns_counted = true, .between_square = {ratios[i] * run, 3},
                                        .campaign_factor = 5.0 / 6, .runs_per_campaign = 4};
    }
    assert_true(judge_family(evidence, 4, &rule, judgements));
    /* Of equal spreads of runs each case has the same again. */
    double run_variance = judgements[0].run_spread * judgements[0].run_spread;
    for (size_t i = 0; i < 4; i++)
        own[i] = (struct variance){ratios[i] * run / run_variance, 3};
    struct variance prior = variance_prior(own, 4);
    prior.degrees = fmin(prior.degrees, 12.0);
    for (size_t i = 0; i < 4; i++) {
        struct variance ratio = moderated_variance(own[i], prior);
        double wanted = sqrt((ratio.value - 1) * run_variance / 4);
        assert_true(judgements[i].run_spread == judgements[0].run_spread);
        assert_true(fabs(judgements[i].campaign_spread - wanted) <= 1e-9 * wanted);
        assert_true(fabs(ratio.value - own[i].value) > 0.1 || i == 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_lend_each_other_how_campaigns_spread),
        cmocka_unit_test(noise_is_no_regression),
        cmocka_unit_test(wide_intervals_are_inconclusive),
        cmocka_unit_test(one_baseline_run),
        cmocka_unit_test(one_current_run),
        cmocka_unit_test(zero_spread),
        cmocka_unit_test(outliers),
        cmocka_unit_test(modes_are_no_outliers),
        cmocka_unit_test(campaigns_are_counted_from_three),
        cmocka_unit_test(more_runs_never_blind),
        cmocka_unit_test(current_campaigns_count_too),
        cmocka_unit_test(campaigns_in_common_cancel),
        cmocka_unit_test(campaigns_of_one_run),
        cmocka_unit_test(few_campaigns),
        cmocka_unit_test(families),
        cmocka_unit_test(families_of_both_kinds),
        cmocka_unit_test(two_parts_reach_as_far_as_their_squares),
    };
    return cmocka_run_group_tests_name("compare: verdict", tests, NULL, NULL);
}
