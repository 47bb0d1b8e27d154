/* The formulas against values from tables and from closed forms. */
#include "../../compare/statistics.h"

#include "cmocka_all.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.15g is not %.15g", value, expected);
}

/* Abramowitz and Stegun, table 26.10, and the closed forms for 1 and 2
 * degrees of freedom. */
static void quantiles_match_the_tables(void **state)
{
    (void)state;
    assert_near(student_quantile(0.05, 1), 6.313751514675, 1e-9);
    assert_near(student_quantile(0.05, 2), 2.919985580354, 1e-9);
    assert_near(student_quantile(0.025, 10), 2.228138851965, 1e-9);
    assert_near(student_quantile(0.05, 11), 1.795884818704, 1e-9);
    assert_near(student_quantile(0.0005, 30), 3.645958635, 1e-8);
    assert_near(student_quantile(0.025, INFINITY), 1.959963984540, 1e-9);
    assert_near(student_quantile(0.95, 11), -1.795884818704, 1e-9);
    assert_near(student_quantile(0.5, 3), 0.0, 1e-9);
}

static void tails_and_quantiles_are_inverse(void **state)
{
    (void)state;
    const double degrees[] = {0.7, 1, 2.5, 11, 40, 1e4, INFINITY};
    const double tails[] = {0.4, 0.05, 1e-3, 1e-6, 1e-12};
    for (size_t d = 0; d < 7; d++)
        for (size_t t = 0; t < 5; t++)
            assert_near(student_upper_tail(student_quantile(tails[t], degrees[d]), degrees[d]) / tails[t], 1.0, 1e-8);
}

static void tails_at_the_ends(void **state)
{
    (void)state;
    assert_near(student_upper_tail(INFINITY, 3), 0.0, 0.0);
    assert_near(student_upper_tail(-INFINITY, 3), 1.0, 0.0);
    assert_near(student_upper_tail(0.0, 3), 0.5, 1e-15);
    assert_near(student_upper_tail(1.0, 1), 0.25, 1e-14);
    assert_near(student_upper_tail(-1.0, 1), 0.75, 1e-14);
}

static void gamma_derivatives(void **state)
{
    (void)state;
    const double euler = 0.57721566490153286;
    const double pi = 3.14159265358979324;
    assert_near(digamma(1.0), -euler, 1e-12);
    assert_near(digamma(0.5), -euler - 2.0 * log(2.0), 1e-12);
    assert_near(trigamma(1.0), pi * pi / 6.0, 1e-12);
    assert_near(trigamma(0.5), pi * pi / 2.0, 1e-12);
    const double points[] = {1e-3, 0.3, 1.0, 7.0, 500.0};
    for (size_t i = 0; i < 5; i++)
        assert_near(trigamma_inverse(trigamma(points[i])) / points[i], 1.0, 1e-9);
}

static void means_and_squares(void **state)
{
    (void)state;
    const double equal[] = {0.1, 0.1, 0.1};
    const double two[] = {10.0, 14.0};
    assert_true(squares_about_mean(equal, 3) == 0.0);
    assert_near(mean_of(two, 2), 12.0, 0.0);
    assert_near(squares_about_mean(two, 2), 8.0, 0.0);
    assert_near(mean_of(two, 1), 10.0, 0.0);
}

static void quantiles_of_samples(void **state)
{
    (void)state;
    const double four[] = {1.0, 2.0, 3.0, 4.0};
    assert_near(sorted_quantile(four, 4, 0.5), 2.5, 0.0);
    assert_near(sorted_quantile(four, 4, 0.25), 1.75, 0.0);
    assert_near(sorted_quantile(four, 4, 1.0), 4.0, 0.0);
    assert_near(sorted_quantile(four, 1, 0.9), 1.0, 0.0);
}

static void the_fence_takes_only_far_values(void **state)
{
    (void)state;
    bool outside[8];
    const double one_far[] = {1.00, 1.01, 1.02, 1.03, 1.04, 2.0};
    assert_int_equal(tukey_far_fence(one_far, 6, 0.0, 1, outside), 1);
    assert_true(outside[5]);
    assert_false(outside[0]);
    const double few[] = {1.0, 1.0, 1.0, 9.0};
    assert_int_equal(tukey_far_fence(one_far, 6, 0.0, 0, outside), 0);
    assert_int_equal(tukey_far_fence(few, 4, 0.0, 1, outside), 0);
    /* One step of a clock beside equal values is no outlier. */
    const double step[] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.01};
    assert_int_equal(tukey_far_fence(step, 7, 0.02, 1, outside), 0);
    assert_int_equal(tukey_far_fence(step, 7, 0.0, 1, outside), 1);
}

/* The example of Holm's steps: 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.04 * 1, each
 * at least the one before it. */
static void holm_steps_down(void **state)
{
    (void)state;
    double p[] = {0.04, 0.01, 0.03, 0.02};
    assert_true(holm_adjust(p, 4));
    assert_near(p[1], 0.04, 1e-15);
    assert_near(p[3], 0.06, 1e-15);
    assert_near(p[2], 0.06, 1e-15);
    assert_near(p[0], 0.06, 1e-15);
    double large[] = {0.9, 0.8};
    assert_true(holm_adjust(large, 2));
    assert_near(large[0], 1.0, 0.0);
    assert_true(holm_adjust(NULL, 0));
}

static void priors_of_variances(void **state)
{
    (void)state;
    /* Equal variances have all in common. */
    struct variance equal[5];
    for (int i = 0; i < 5; i++)
        equal[i] = (struct variance){4.0, 10.0};
    struct variance prior = variance_prior(equal, 5);
    assert_true(isinf(prior.degrees));
    assert_near(moderated_variance((struct variance){9.0, 10.0}, prior).value, prior.value, 0.0);

    /* A hundredfold apart they have nearly nothing. */
    struct variance apart[] = {{1e-8, 10}, {1e-6, 10}, {1e-4, 10}, {1e-2, 10}, {1.0, 10}};
    prior = variance_prior(apart, 5);
    assert_true(prior.degrees > 0.0 && prior.degrees < 1.0);

    /* Two cases and variances of 0 say nothing about the others. */
    assert_near(variance_prior(equal, 2).degrees, 0.0, 0.0);
    struct variance zeros[5] = {{0.0, 10.0}, {0.0, 10.0}, {0.0, 10.0}, {1.0, 10.0}, {2.0, 10.0}};
    prior = variance_prior(zeros, 5);
    assert_near(prior.degrees, 0.0, 0.0);
    struct variance own = moderated_variance((struct variance){3.0, 7.0}, prior);
    assert_near(own.value, 3.0, 0.0);
    assert_near(own.degrees, 7.0, 0.0);
    struct variance mixed = moderated_variance((struct variance){3.0, 10.0}, (struct variance){1.0, 30.0});
    assert_near(mixed.value, 1.5, 1e-15);
    assert_near(mixed.degrees, 40.0, 0.0);
}

/* Variances of e^-d, 1 and e^d with 2 degrees each: of their logarithms' mean square d^2,
 * trigamma(1) = pi^2 / 6 is chance. With d^2 twice that as much is left, whose inverse is 1:
 * a prior of 1 with 2 degrees, for what digamma(1) adds to the one it takes from the other. */
static void a_prior_has_the_degrees_that_the_spread_leaves(void **state)
{
    (void)state;
    const double d = acos(-1.0) / sqrt(3.0);
    const struct variance variances[] = {{exp(-d), 2.0}, {1.0, 2.0}, {exp(d), 2.0}};
    struct variance prior = variance_prior(variances, 3);
    assert_near(prior.degrees, 2.0, 1e-9);
    assert_near(prior.value, 1.0, 1e-9);
}

/* A prior of 2 degrees beside a case of 8: it may add to a spread, by
 * (8 * 1 + 2 * 11) / 10 = 3, but take nothing away from one. */
static void weak_priors_only_add(void **state)
{
    (void)state;
    struct variance quiet = moderated_variance((struct variance){1.0, 8.0}, (struct variance){11.0, 2.0});
    assert_near(quiet.value, 3.0, 1e-15);
    assert_near(quiet.degrees, 10.0, 0.0);
    struct variance noisy = moderated_variance((struct variance){11.0, 8.0}, (struct variance){1.0, 2.0});
    assert_near(noisy.value, 11.0, 0.0);
    assert_near(noisy.degrees, 8.0, 0.0);
}

/* Rosner's data and result, as in the NIST/SEMATECH handbook, 1.3.5.17.3: at 5 %
 * the third step is the last beyond its limit (3.179 against 3.144), while the
 * first two are not (3.119 against 3.159): they hide each other. */
static void extremes_do_not_hide_each_other(void **state)
{
    (void)state;
    static const double values[] = {
        -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65, 1.69, 1.70,
        1.76,  1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37, 2.40,
        2.47,  2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42, 6.01};
    enum { count = sizeof values / sizeof values[0] };
    bool extreme[count];
    double reach = 0.0;
    assert_true(mark_extremes(values, count, 0.05, true, 0.0, extreme, &reach));
    for (int i = 0; i < count; i++)
        assert_int_equal(extreme[i], i >= count - 3);
    /* Half of the rate on the upper side alone is the same; the other end, which
     * is none of Rosner's outliers, is left either way. */
    assert_true(mark_extremes(values, count, 0.025, false, 0.0, extreme, &reach));
    for (int i = 0; i < count; i++)
        assert_int_equal(extreme[i], i >= count - 3);
    assert_true(mark_extremes(values, count, 0.05, true, 1.2, extreme, &reach));
    assert_false(extreme[count - 1]);
    assert_true(mark_extremes(values, 2, 0.05, true, 0.0, extreme, &reach));
    assert_true(isinf(reach) && !extreme[0] && !extreme[1]);
}

/* Of -1, 0 and 1 the mean is 0 and the deviation 1, so that the reach is Student's quantile of
 * 2 degrees, (1 - 2p) / sqrt(2p (1 - p)), times sqrt(1 + 1/3): p is a third of the rate, and
 * half of that where both sides count. */
static void one_side_reaches_less_far(void **state)
{
    (void)state;
    const double values[] = {-1.0, 0.0, 1.0};
    bool extreme[3];
    double reach = 0.0;
    assert_true(mark_extremes(values, 3, 0.06, false, 0.0, extreme, &reach));
    assert_near(reach, 0.96 / sqrt(0.04 * 0.98) * sqrt(4.0 / 3.0), 1e-9);
    assert_true(mark_extremes(values, 3, 0.06, true, 0.0, extreme, &reach));
    assert_near(reach, 0.98 / sqrt(0.02 * 0.99) * sqrt(4.0 / 3.0), 1e-9);
    assert_true(mark_extremes(values, 3, 0.06, true, 2.0, extreme, &reach));
    assert_near(reach, 2.0 * 0.98 / sqrt(0.02 * 0.99) * sqrt(4.0 / 3.0), 1e-9);
    assert_false(extreme[0] || extreme[1] || extreme[2]);
}

/* Distances of the exponential distribution, at the middles of n equal parts: a tail of
 * power 1, of which a part p is beyond -log(p). Both sides, or the upper one of n values
 * with the rate halved, for half as many values are there. */
static void a_tail_says_how_far_it_reaches(void **state)
{
    (void)state;
    enum { n = 4000 };
    static double values[2 * n];
    static double scratch[2 * n];
    double middle = 1.0;
    for (int i = 0; i < n; i++) {
        values[i] = -log((i + 0.5) / n);
        values[n + i] = -values[i];
    }
    double expected = -log(0.01 / (2 * n));
    assert_near(tail_reach(values, scratch, 2 * n, 0.01, true, 0.0, &middle), expected, 0.02 * expected);
    assert_near(middle, 0.0, 1e-3);
    assert_near(tail_reach(values, scratch, 2 * n, 0.005, false, 0.0, &middle), expected, 0.02 * expected);
    for (int i = 0; i < n; i++)
        values[i] = values[n + i] = 3.0;
    assert_near(tail_reach(values, scratch, 2 * n, 0.01, true, 0.25, &middle), 0.25, 1e-15);
    assert_near(middle, 3.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_match_the_tables), cmocka_unit_test(tails_and_quantiles_are_inverse),
        cmocka_unit_test(tails_at_the_ends),          cmocka_unit_test(gamma_derivatives),
        cmocka_unit_test(means_and_squares),          cmocka_unit_test(quantiles_of_samples),
        cmocka_unit_test(the_fence_takes_only_far_values), cmocka_unit_test(holm_steps_down),
        cmocka_unit_test(priors_of_variances),
        cmocka_unit_test(a_prior_has_the_degrees_that_the_spread_leaves),
        cmocka_unit_test(weak_priors_only_add),
        cmocka_unit_test(extremes_do_not_hide_each_other),
        cmocka_unit_test(one_side_reaches_less_far),
        cmocka_unit_test(a_tail_says_how_far_it_reaches),
    };
    return cmocka_run_group_tests_name("compare: statistics", tests, NULL, NULL);
}
