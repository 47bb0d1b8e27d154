#include "precise.h"

#include "statistics.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Lentz's method needs a stand-in for a zero denominator. */
static const double tiny = 1e-300;
static const double pi = 3.14159265358979323846;

/* The degrees beyond which Student's and the normal distribution agree to
 * more digits than the continued fraction delivers. */
static const double normal_degrees = 1e7;

static double nonzero(double x)
{
    return fabs(x) < tiny ? tiny : x;
}

/* The continued fraction of the incomplete beta function, DLMF 8.17.22, by
 * Lentz's method. Converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1.0;
    double d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    double result = d;
    for (int step = 1; step < 500; step++) {
        double m = step;
        double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / nonzero(1.0 + even * d);
        c = nonzero(1.0 + even / c);
        result *= c * d;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / nonzero(1.0 + odd * d);
        c = nonzero(1.0 + odd / c);
        result *= c * d;
        if (fabs(c * d - 1.0) < 1e-15)
            break;
    }
    return result;
}

/* The regularized incomplete beta function I_x(a, b); 1 - x comes as an
 * argument of its own because the caller knows it without cancellation. */
static double incomplete_beta(double a, double b, double x, double one_minus_x)
{
    if (x <= 0.0)
        return 0.0;
    if (one_minus_x <= 0.0)
        return 1.0;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(one_minus_x));
    if (x < (a + 1.0) / (a + b + 2.0))
        return front * beta_fraction(a, b, x) / a;
    return 1.0 - front * beta_fraction(b, a, one_minus_x) / b;
}

double student_upper_tail(double t, double degrees)
{
    if (isinf(t))
        return t > 0.0 ? 0.0 : 1.0;
    if (degrees >= normal_degrees)
        return 0.5 * erfc(t / sqrt(2.0));
    double denominator = degrees + t * t;
    double both_tails = incomplete_beta(degrees / 2.0, 0.5, degrees / denominator, t * t / denominator);
    return t >= 0.0 ? both_tails / 2.0 : 1.0 - both_tails / 2.0;
}

static double student_density(double t, double degrees)
{
    if (degrees >= normal_degrees)
        return exp(-t * t / 2.0) / sqrt(2.0 * pi);
    double log_scale = lgamma((degrees + 1.0) / 2.0) - lgamma(degrees / 2.0) - 0.5 * log(degrees * pi);
    return exp(log_scale - (degrees + 1.0) / 2.0 * log1p(t * t / degrees));
}

/* Newton's method inside a bracket that shrinks with every step; on the
 * logarithm of the tail, which is nearly straight where the tail is small. */
double student_quantile(double tail, double degrees)
{
    if (tail > 0.5)
        return -student_quantile(1.0 - tail, degrees);
    double low = 0.0;
    double high = 2.0;
    while (student_upper_tail(high, degrees) > tail && high < 1e150) {
        low = high;
        high *= 2.0;
    }
    double t = (low + high) / 2.0;
    for (int step = 0; step < 200; step++) {
        double reached = student_upper_tail(t, degrees);
        if (reached > tail)
            low = t;
        else
            high = t;
        double next = t + log(reached / tail) * reached / student_density(t, degrees);
        if (!(next > low && next < high))
            next = (low + high) / 2.0;
        if (fabs(next - t) <= 1e-12 * fabs(t))
            return next;
        t = next;
    }
    return t;
}

double digamma(double x)
{
    double shift = 0.0;
    for (; x < 10.0; x += 1.0)
        shift -= 1.0 / x;
    double r = 1.0 / (x * x);
    return shift + log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r / 240)));
}

double trigamma(double x)
{
    double shift = 0.0;
    for (; x < 10.0; x += 1.0)
        shift += 1.0 / (x * x);
    double r = 1.0 / (x * x);
    return shift + 1.0 / x + r / 2.0 + r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r / 30)));
}

/* The derivative of trigamma, Abramowitz and Stegun 6.4.13. */
static double tetragamma(double x)
{
    double shift = 0.0;
    for (; x < 10.0; x += 1.0)
        shift -= 2.0 / (x * x * x);
    double r = 1.0 / (x * x);
    return shift - r - r / x - r * r * (1.0 / 2 - r * (1.0 / 6 - r * (1.0 / 6 - r * 3.0 / 10)));
}

double trigamma_inverse(double y)
{
    /* Outside these bounds trigamma is 1/x^2 and 1/x to double precision. */
    if (y > 1e7)
        return 1.0 / sqrt(y);
    if (y < 1e-6)
        return 1.0 / y;
    double x = 0.5 + 1.0 / y;
    for (int step = 0; step < 50; step++) {
        double value = trigamma(x);
        double change = value * (1.0 - value / y) / tetragamma(x);
        x += change;
        if (-change / x < 1e-12)
            break;
    }
    return x;
}

double mean_of(const double *values, size_t count)
{
    /* Around the first value, so that equal values have exactly their mean. */
    double sum = 0.0;
    for (size_t i = 1; i < count; i++)
        sum += values[i] - values[0];
    return values[0] + sum / (double)count;
}

double squares_about_mean(const double *values, size_t count)
{
    double mean = mean_of(values, count);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sum;
}

double sorted_quantile(const double *sorted, size_t count, double fraction)
{
    double position = fraction * (double)(count - 1);
    size_t below = (size_t)position;
    if (below + 1 >= count)
        return sorted[count - 1];
    double step = sorted[below + 1] - sorted[below];
    return sorted[below] + (position - (double)below) * step;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

void sort_values(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], ascending);
}

size_t tukey_far_fence(const double *values, size_t count, double least_reach, size_t most,
                       bool *outside)
{
    memset(outside, 0, count * sizeof outside[0]);
    if (count < 5)
        return 0;
    double *sorted = malloc(count * sizeof sorted[0]);
    if (!sorted)
        return SIZE_MAX;
    memcpy(sorted, values, count * sizeof sorted[0]);
    sort_values(sorted, count);
    double first = sorted_quantile(sorted, count, 0.25);
    double third = sorted_quantile(sorted, count, 0.75);
    free(sorted);

    double reach = fmax(3.0 * (third - first), least_reach);
    size_t marked = 0;
    for (size_t i = 0; i < count; i++) {
        outside[i] = values[i] < first - reach || values[i] > third + reach;
        marked += outside[i];
    }
    if (marked <= most)
        return marked;
    memset(outside, 0, count * sizeof outside[0]);
    return 0;
}

struct ranked {
    double p_value;
    size_t index;
};

static int by_p_value(const void *left, const void *right)
{
    return ascending(&((const struct ranked *)left)->p_value, &((const struct ranked *)right)->p_value);
}

bool holm_adjust(double *p_values, size_t count)
{
    struct ranked *order = malloc((count ? count : 1) * sizeof order[0]);
    if (!order)
        return false;
    for (size_t i = 0; i < count; i++)
        order[i] = (struct ranked){p_values[i], i};
    qsort(order, count, sizeof order[0], by_p_value);
    double largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        double adjusted = fmin(1.0, (double)(count - i) * order[i].p_value);
        largest = fmax(largest, adjusted);
        p_values[order[i].index] = largest;
    }
    free(order);
    return true;
}

double median_by_sorting(double *values, size_t count)
{
    sort_values(values, count);
    return sorted_quantile(values, count, 0.5);
}

/* Rosner's critical value with `left` values left, of which one is tested, as a
 * multiple of their deviation. */
static double extreme_limit(size_t left, double rate, bool both_sides)
{
    double n = (double)left;
    double t = student_quantile(rate / n / (both_sides ? 2.0 : 1.0), n - 2.0);
    return (n - 1.0) * t / sqrt((n - 2.0 + t * t) * n);
}

/* A stretch of sorted values, whose moments follow as its ends are taken off: computed
 * anew, those of thousands of values would take a second. */
struct stretch {
    const double *sorted;
    size_t from, to;
    double mean;
    double squares; /* about the mean */
};

/* How far the value at the end that is farther out is, in deviations of the stretch;
 * *upper says which end. */
static double farthest(const struct stretch *left, bool both_sides, double least_deviation, bool *upper)
{
    double deviation = sqrt(fmax(left->squares, 0.0) / (double)(left->to - left->from - 1));
    double above = left->sorted[left->to - 1] - left->mean;
    double below = left->mean - left->sorted[left->from];
    *upper = !both_sides || above >= below;
    return (*upper ? above : below) / fmax(deviation, least_deviation);
}

/* Welford (1962), "Note on a method for calculating corrected sums of squares and
 * products", backwards. */
static void take_end(struct stretch *left, bool upper)
{
    double value = upper ? left->sorted[--left->to] : left->sorted[left->from++];
    double mean = left->mean - (value - left->mean) / (double)(left->to - left->from);
    left->squares -= (value - left->mean) * (value - mean);
    left->mean = mean;
}

/* The stretch [*first, *last) of the sorted values that belong together. */
static void find_inner(const double *sorted, size_t count, double rate, bool both_sides, double least_deviation,
                       size_t *first, size_t *last)
{
    struct stretch left = {sorted, 0, count, mean_of(sorted, count), squares_about_mean(sorted, count)};
    size_t most = count < 8 ? 1 : count / 4;
    *first = 0;
    *last = count;
    for (size_t taken = 0; taken < most && left.to - left.from >= 3; taken++) {
        bool upper = false;
        double distance = farthest(&left, both_sides, least_deviation, &upper);
        double limit = extreme_limit(left.to - left.from, rate, both_sides);
        take_end(&left, upper);
        if (distance > limit) {
            *first = left.from;
            *last = left.to;
        }
    }
}

/* A new value x is too far where its distance from the mean is beyond Student's
 * quantile times the error of that distance. */
static double reach_of(const double *sorted, size_t count, double rate, bool both_sides, double least_deviation)
{
    if (count < 3)
        return INFINITY;
    double n = (double)count;
    double deviation = sqrt(squares_about_mean(sorted, count) / (n - 1.0));
    double t = student_quantile(rate / n / (both_sides ? 2.0 : 1.0), n - 1.0);
    return t * fmax(deviation, least_deviation) * sqrt(1.0 + 1.0 / n);
}

bool mark_extremes(const double *values, size_t count, double rate, bool both_sides, double least_deviation,
                   bool *extreme, double *reach)
{
    double *sorted = malloc((count + 1) * sizeof sorted[0]);
    if (!sorted)
        return false;
    size_t first = 0, last = count;
    if (count > 0) {
        memcpy(sorted, values, count * sizeof sorted[0]);
        sort_values(sorted, count);
        find_inner(sorted, count, rate, both_sides, least_deviation, &first, &last);
    }
    for (size_t i = 0; i < count; i++)
        extreme[i] = values[i] < sorted[first] || values[i] > sorted[last - 1];
    *reach = reach_of(sorted + first, last - first, rate, both_sides, least_deviation);
    free(sorted);
    return true;
}

/* Replaces the values by their distances from the middle, of both sides or of the
 * upper half; returns how many there are. */
static size_t take_distances(double *sorted, size_t count, bool both_sides, double middle)
{
    size_t first = both_sides ? 0 : count / 2;
    for (size_t i = first; i < count; i++)
        sorted[i - first] = fabs(sorted[i] - middle);
    sort_values(sorted, count - first);
    return count - first;
}

double tail_reach(const double *values, double *scratch, size_t count, double rate, bool both_sides,
                  double least_deviation, double *middle)
{
    static const double near_part = 0.25;
    static const double far_part = 0.02;
    memcpy(scratch, values, count * sizeof scratch[0]);
    *middle = median_by_sorting(scratch, count);
    size_t distances = take_distances(scratch, count, both_sides, *middle);
    double near = sorted_quantile(scratch, distances, 1.0 - near_part);
    double far = sorted_quantile(scratch, distances, 1.0 - far_part);
    near = fmax(near, least_deviation);
    far = fmax(far, near);
    double power = log(far / near) / log(log(far_part) / log(near_part));
    /* The chance of each distance that counts. */
    double chance = rate / (double)distances;
    return far * pow(log(chance) / log(far_part), power);
}

static bool takes_part(struct variance v)
{
    return v.degrees > 0.0 && v.value > 0.0;
}

/* The logarithm of a variance, freed of the bias that few degrees give it. */
static double unbiased_log(struct variance v)
{
    return log(v.value) - digamma(v.degrees / 2.0) + log(v.degrees / 2.0);
}

struct variance variance_prior(const struct variance *variances, size_t count)
{
    double sum = 0.0;
    double expected = 0.0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!takes_part(variances[i]))
            continue;
        sum += unbiased_log(variances[i]);
        expected += trigamma(variances[i].degrees / 2.0);
        used++;
    }
    if (used < 3)
        return (struct variance){0.0, 0.0};

    double mean = sum / (double)used;
    double squares = 0.0;
    for (size_t i = 0; i < count; i++)
        if (takes_part(variances[i]))
            squares += (unbiased_log(variances[i]) - mean) * (unbiased_log(variances[i]) - mean);
    double excess = squares / (double)(used - 1) - expected / (double)used;
    if (excess <= 0.0)
        return (struct variance){exp(mean), INFINITY};
    double half = trigamma_inverse(excess);
    return (struct variance){exp(mean + digamma(half) - log(half)), 2.0 * half};
}

struct variance moderated_variance(struct variance own, struct variance prior)
{
    if (prior.degrees <= 0.0)
        return own;
    if (isinf(prior.degrees))
        return prior;
    if (own.value > prior.value && own.degrees > prior.degrees)
        return own;
    double degrees = own.degrees + prior.degrees;
    double value = (own.degrees * own.value + prior.degrees * prior.value) / degrees;
    return (struct variance){value, degrees};
}
