/* Where levels change, on simulated histories with a fixed seed. */
#include "../../compare/trend.h"
#include "../../compare/verdict.h"

#include "cmocka_all.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { cases = 30, most_campaigns = 12 };

struct world {
    size_t campaigns;
    size_t runs;
    double run_spread;
    double campaign_spread; /* each case has its own effect of a campaign */
    double step;            /* of case 0, from campaign `at` on */
    size_t at;
    unsigned histories;
};

struct rates {
    double alarmed; /* histories with a change where none is, in per cent */
    double found;   /* with the step, at its place and nowhere else in its case */
};

static void draw_case(const struct world *world, struct trend_point *points, double step,
                      uint64_t *random)
{
    double values[10];
    for (size_t c = 0; c < world->campaigns; c++) {
        double level = world->campaign_spread * random_normal(random) + (c >= world->at ? step : 0);
        for (size_t run = 0; run < world->runs; run++)
            values[run] = level + world->run_spread * random_normal(random);
        double squares = squares_about_mean(values, world->runs);
        double median = median_by_sorting(values, world->runs);
        points[c] = (struct trend_point){world->runs, median, squares};
    }
}

static struct rates simulate(struct world world)
{
    static struct trend_point points[cases][most_campaigns];
    static size_t starts[cases][most_campaigns];
    static bool lone[cases][most_campaigns];
    struct trend trends[cases];
    struct rule rule = default_rule();
    uint64_t random = 20261128;
    unsigned alarmed = 0, found = 0;
    for (unsigned history = 0; history < world.histories; history++) {
        for (size_t i = 0; i < cases; i++) {
            draw_case(&world, points[i], i == 0 ? log1p(world.step) : 0.0, &random);
            trends[i] =
                (struct trend){.points = points[i], .count = world.campaigns, .starts = starts[i],
                                       .lone = lone[i]};
        }
        assert_true(find_changes(trends, cases, &rule));
        bool alarm = false;
        for (size_t i = world.step > 0.0; i < cases; i++)
            alarm = alarm || trends[i].level_count > 1;
        alarmed += alarm;
        found += trends[0].level_count == 2 && starts[0][1] == world.at;
    }
    struct rates rates = {100.0 * alarmed / world.histories, 100.0 * found / world.histories};
    printf(
        "  %2zu campaigns of %2zu runs, spreads %.1f/%.1f %%, +%g %% from %zu on: alarmed %.2f %%, "
        "found %.1f %%\n",
        world.campaigns, world.runs, 100.0 * world.campaign_spread, 100.0 * world.run_spread,
        100.0 * world.step, world.at, rates.alarmed, rates.found);
    return rates;
}

static void steady_histories_do_not_change(void **state)
{
    (void)state;
    static const size_t campaigns[] = {2, 5, 8, 12};
    for (int i = 0; i < 4; i++)
        for (size_t runs = 1; runs <= 10; runs += runs == 1 ? 2 : 7)
            for (double own = 0.0; own < 0.02; own += 0.01) {
                struct world world = {campaigns[i], runs, 0.01, own, 0.0, 0, 500};
                /* The sittings' own effects are not known from so few of them. */
                if (own > 0.0 && campaigns[i] < least_steady_campaigns)
                    continue;
                assert_true(simulate(world).alarmed <= 1.0);
            }
}

static void a_step_is_found_where_it_is(void **state)
{
    (void)state;
    assert_true(simulate((struct world){12, 3, 0.005, 0.0, 0.05, 6, 300}).found >= 95.0);
    assert_true(simulate((struct world){12, 3, 0.005, 0.005, 0.05, 6, 300}).found >= 95.0);
    assert_true(simulate((struct world){12, 3, 0.005, 0.005, 0.05, 11, 300}).found >= 90.0);
    assert_true(simulate((struct world){2, 10, 0.005, 0.0, 0.05, 1, 300}).found >= 95.0);
}

/* Up by 0.1 at the third point and back at the fifth, with three equal runs each. */
static void levels_follow_each_other(void **state)
{
    (void)state;
    static const double levels[] = {1.0, 1.001, 1.1, 1.101, 1.0, 1.001, 0.999};
    struct trend_point points[7];
    size_t starts[7];
    bool lone[7];
    for (int i = 0; i < 7; i++)
        points[i] = (struct trend_point){3, levels[i], 2e-6};
    struct trend trend = {.points = points, .count = 7, .starts = starts, .lone = lone};
    struct rule rule = default_rule();
    assert_true(find_changes(&trend, 1, &rule));
    assert_int_equal(trend.level_count, 3);
    assert_int_equal(starts[1], 2);
    assert_int_equal(starts[2], 4);
    assert_true(fabs(level_of(&trend, 0) - 1.0005) < 1e-12);
    assert_true(fabs(level_of(&trend, 1) - 1.1005) < 1e-12);
    assert_true(fabs(level_of(&trend, 2) - 1.0) < 1e-12);
}

/* Runs that are equal to the step of the clock spread by something, too. */
static void equal_runs_change_once(void **state)
{
    (void)state;
    static const double levels[] = {1.0, 1.0, 1.1, 1.1, 1.1};
    struct trend_point points[5];
    size_t starts[5];
    bool lone[5];
    for (int i = 0; i < 5; i++)
        points[i] = (struct trend_point){3, levels[i], 0.0};
    struct trend trend = {.points = points, .count = 5, .starts = starts, .lone = lone};
    struct rule rule = default_rule();
    assert_true(find_changes(&trend, 1, &rule));
    assert_int_equal(trend.level_count, 2);
    assert_int_equal(starts[1], 2);
}

/* With one run in each of two campaigns there is no spread to judge by. */
static void without_a_spread_nothing_changes(void **state)
{
    (void)state;
    struct trend_point points[2] = {{1, 1.0, 0.0}, {1, 2.0, 0.0}};
    size_t starts[2];
    bool lone[2];
    struct trend trend = {.points = points, .count = 2, .starts = starts, .lone = lone};
    struct rule rule = default_rule();
    assert_true(find_changes(&trend, 1, &rule));
    assert_int_equal(trend.level_count, 1);
}

/* Levels in the way of 100, 100, 150, 100: three runs of each campaign, spread by
 * `spread`. */
struct told {
    size_t level_count;
    size_t starts[32];
    size_t lone; /* the last lone point, counted from 1; 0 for none */
    size_t lone_count;
    double change; /* of the last level */
};

static struct told tell(const double *levels, size_t count, double spread)
{
    static const double sides[] = {0.4, -1.1, 0.9, -0.3, 1.3, -0.8, 0.1}; /* deviation 0.9 */
    struct trend_point points[32];
    bool lone[32];
    struct told told = {0};
    for (size_t i = 0; i < count; i++)
        points[i] = (struct trend_point){3, log(levels[i]) + spread * sides[i % 7],
                                         2.0 * spread * spread};
    struct trend trend = {.points = points, .count = count, .starts = told.starts, .lone = lone};
    struct rule rule = default_rule();
    assert_true(find_changes(&trend, 1, &rule));
    told.level_count = trend.level_count;
    for (size_t i = 0; i < count; i++) {
        told.lone_count += lone[i];
        told.lone = lone[i] ? i + 1 : told.lone;
    }
    if (trend.level_count > 1)
        told.change = exp(level_of(&trend, trend.level_count - 1) -
                          level_of(&trend, trend.level_count - 2));
    return told;
}

/* R07: one spike is no two changes, and hides none. */
static void one_bad_sitting_is_no_change(void **state)
{
    (void)state;
    for (double spread = 0.0; spread < 0.006; spread += 0.005) {
        double levels[32];
        for (size_t i = 0; i < 32; i++)
            levels[i] = i == 10 ? 150 : 100;
        struct told told = tell(levels, 20, spread);
        assert_int_equal(told.level_count, 1);
        assert_int_equal(told.lone, 11);
        assert_int_equal(told.lone_count, 1);
        for (size_t i = 0; i < 32; i++)
            levels[i] = i < 10 ? 100 : i == 10 ? 1000 : 103;
        told = tell(levels, 21, spread);
        assert_int_equal(told.level_count, 2);
        assert_int_equal(told.starts[1], 11);
        assert_int_equal(told.lone, 11);
        assert_true(fabs(told.change - 1.03) < 0.004);
        for (size_t i = 0; i < 32; i++)
            levels[i] = i < 10 ? 100 : 103;
        told = tell(levels, 20, spread);
        assert_int_equal(told.level_count, 2);
        assert_int_equal(told.starts[1], 10);
        assert_int_equal(told.lone_count, 0);
        for (size_t i = 0; i < 32; i++)
            levels[i] = i < 20 ? 100 : 130;
        for (size_t count = 21; count <= 23; count += 2) {
            told = tell(levels, count, spread);
            assert_int_equal(told.level_count, 2);
            assert_int_equal(told.starts[1], 20);
        }
    }
    /* With noise, seven campaigns tell too little of how much there is. */
    struct told told = tell((double[]){100, 100, 130, 130, 150, 150, 150}, 7, 0.0);
    assert_int_equal(told.level_count, 3);
    assert_int_equal(told.starts[2], 4);
    for (size_t count = 1; count <= 3; count++)
        assert_int_equal(tell((double[]){100, 100, 100}, count, 0.0).level_count, 1);
}

/* Each case's spreads become what its own and those of all say together; below five campaigns
 * nothing is known of the points'. */
static void cases_lend_each_other_their_spreads(void **state)
{
    (void)state;
    enum { of_five = 4, all = 5, most = 5 };
    struct trend_point points[all][most];
    struct trend trends[all];
    size_t starts[all][most];
    bool lone[all][most];
    struct variance runs[all], steps[all];
    for (size_t i = 0; i < all; i++) {
        size_t count = i < of_five ? most : 2;
        double spread = 0.001 * (double)(1 + i * i);
        for (size_t c = 0; c < count; c++)
            points[i][c] = (struct trend_point){3, c % 2 ? spread : -spread, 2 * spread * spread};
        trends[i] = (struct trend){.points = points[i], .count = count, .starts = starts[i], .lone = lone[i]};
        /* Two degrees a campaign; the median step is 2 spread, whose share of a normal's
         * deviation and whose efficiency are trend.c's. */
        double deviation = 2 * spread / 0.6745;
        runs[i] = (struct variance){spread * spread, 2.0 * (double)count};
        steps[i] = (struct variance){deviation * deviation / 2, 0.37 * (double)(count - 1)};
    }
    steps[of_five] = (struct variance){0.0, 0.0};
    struct rule rule = default_rule();
    assert_true(find_changes(trends, all, &rule));
    struct variance of_runs = variance_prior(runs, all), of_steps = variance_prior(steps, all);
    for (size_t i = 0; i < all; i++) {
        struct variance run = moderated_variance(runs[i], of_runs);
        struct variance step = i < of_five ? moderated_variance(steps[i], of_steps) : steps[i];
        assert_true(fabs(trends[i].run_spread.value - run.value) <= 1e-9 * run.value);
        assert_true(fabs(trends[i].run_spread.degrees - run.degrees) <= 1e-9 * run.degrees);
        assert_true(fabs(trends[i].point_spread.value - step.value) <= 1e-9 * step.value);
        assert_true(fabs(trends[i].point_spread.degrees - step.degrees) <= 1e-9 * step.degrees);
    }
    assert_true(trends[0].run_spread.value > runs[0].value * 1.01);
    assert_true(trends[0].point_spread.value > steps[0].value * 1.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_lend_each_other_their_spreads),
        cmocka_unit_test(steady_histories_do_not_change),
        cmocka_unit_test(a_step_is_found_where_it_is),
        cmocka_unit_test(levels_follow_each_other),
        cmocka_unit_test(equal_runs_change_once),
        cmocka_unit_test(without_a_spread_nothing_changes),
        cmocka_unit_test(one_bad_sitting_is_no_change),
    };
    return cmocka_run_group_tests_name("compare: history", tests, NULL, NULL);
}
