/* The statistics that a verdict needs, as pure functions.
 *
 * Nothing here knows of files, cases or verdicts. Every formula names its
 * source. Variances are of logarithms throughout the tool, so 0.01 as a
 * standard deviation means a spread of about 1 %. */
#ifndef GPUBENCH_COMPARE_STATISTICS_H
#define GPUBENCH_COMPARE_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/* A variance and the degrees of freedom it was estimated with. Zero degrees
 * mean that nothing is known about it; infinity means it is taken as exact. */
struct variance {
    double value;
    double degrees;
};

/* The upper tail P(T > t) of Student's distribution. degrees > 0, may be
 * infinite (the normal distribution). NIST DLMF 8.17 gives the incomplete
 * beta function behind it. */
double student_upper_tail(double t, double degrees);

/* The t with P(T > t) = tail, for 0 < tail < 1 and degrees > 0. */
double student_quantile(double tail, double degrees);

/* Derivatives of log gamma, for x > 0. Abramowitz and Stegun, 6.3.18 and
 * 6.4.12, after shifting x upwards by the recurrences 6.3.5 and 6.4.6. */
double digamma(double x);
double trigamma(double x);

/* The x > 0 with trigamma(x) = y, for y > 0: Newton's method on 1/trigamma,
 * Smyth (2004), appendix. */
double trigamma_inverse(double y);

/* The mean; count > 0. */
double mean_of(const double *values, size_t count);

/* The sum of squared distances from the mean (two passes, so that equal
 * values give exactly 0); count > 0. */
double squares_about_mean(const double *values, size_t count);

/* The quantile of sorted values by linear interpolation, definition 7 of
 * Hyndman and Fan (1996), "Sample quantiles in statistical packages". */
double sorted_quantile(const double *sorted, size_t count, double fraction);

/* Sorts in place, ascending. */
void sort_values(double *values, size_t count);

/* Tukey's far fence: marks the values more than three interquartile ranges
 * outside the quartiles (Tukey 1977, "Exploratory Data Analysis", 2D), and at
 * least least_reach: where most values are equal the range is 0, and the next
 * step of the clock would be an outlier. Fewer than five values have none:
 * with so few, the quartiles are the suspects themselves. Where more than most
 * are outside, none is marked: so many are no accidents but another mode.
 * Returns how many were marked, or SIZE_MAX when memory ran out. */
size_t tukey_far_fence(const double *values, size_t count, double least_reach, size_t most,
                       bool *outside);

/* The middle of the values, which are sorted in place; count > 0. */
double median_by_sorting(double *values, size_t count);

/* Marks the values too far from the rest to be of one normal sample, on both
 * sides or on the upper one only: the generalized extreme studentized deviate,
 * Rosner (1983), "Percentage points for a generalized ESD many-outlier procedure".
 * The farthest value is compared with the mean and the deviation of the values
 * that are left, taken out, and so on for up to a quarter of them; all up to the
 * last one that is too far are marked, so that several do not hide each other.
 * rate is the chance that any is marked where all are of one sample. Deviations
 * below least_deviation are taken for it. *reach is how far from the mean of the
 * unmarked values one more would have to be; infinite below three values. False
 * when memory ran out. */
bool mark_extremes(const double *values, size_t count, double rate, bool both_sides,
                   double least_deviation, bool *extreme, double *reach);

/* How far from the middle of the values one of them would have to be for that to happen
 * among all of them at the given rate, when it is their own tail that says so: a Weibull
 * tail, whose quantiles are a power of the logarithm of the probability (Girard 2004, "A
 * Hill type estimator of the Weibull tail-coefficient"; Gardes and Girard 2005,
 * "Estimating extreme quantiles of Weibull tail distributions"). The normal, the
 * exponential and the lognormal are of that kind or near it. The power comes from two
 * quantiles, beyond which a quarter and a fiftieth of the values are, and not from the
 * farthest values, which are what is to be judged. One side counts only what is above
 * the middle. Sorts a copy into scratch, of `count` values too. Distances below
 * least_deviation's are taken for those. *middle is set to the median. */
double tail_reach(const double *values, double *scratch, size_t count, double rate, bool both_sides,
                  double least_deviation, double *middle);

/* Holm (1979), "A simple sequentially rejective multiple test procedure":
 * replaces each p-value by its adjusted one, so that comparing it with alpha
 * keeps the chance of any false rejection among all of them below alpha.
 * Returns false when memory ran out. */
bool holm_adjust(double *p_values, size_t count);

/* What many variances have in common: a scaled inverse chi-square prior,
 * fitted by the moments of their logarithms. Smyth (2004), "Linear models and
 * empirical Bayes methods for assessing differential expression in microarray
 * experiments", section 6.2. Variances of 0 and those without degrees of
 * freedom do not take part. Fewer than three leave degrees = 0: no prior. */
struct variance variance_prior(const struct variance *variances, size_t count);

/* The posterior of one variance under that prior, Smyth (2004), section 3;
 * but a variance above the prior's stays as it is where it has more degrees of
 * freedom: where spreads differ that much from case to case, a case that
 * spreads widely does so by nature, and what others spread is no excuse to
 * believe it quieter. (Phipson, Lee, Majewski, Alexander and Smyth 2016,
 * "Robust hyperparameter estimation protects against hypervariable genes and
 * improves power to detect differential expression", do more: they fit the
 * prior robustly and give it fewer degrees for each outlier.) */
struct variance moderated_variance(struct variance own, struct variance prior);

#endif
