"""Statistics of samples, against other implementations."""
import math
import statistics
import unittest

from pytorch.statistics import describe, median_ranks, quantile


class Statistics(unittest.TestCase):
    SAMPLES = [3.5, 1.25, 9.0, 4.0, 4.0, 2.0, 8.5, 7.0, 1.0, 6.5, 30.0]

    def test_quantiles_are_those_of_another_implementation_of_type_7(self):
        cuts = statistics.quantiles(self.SAMPLES, n=100, method="inclusive")
        found = describe(self.SAMPLES)
        for percent in (5, 25, 75, 95, 99):
            self.assertAlmostEqual(found[f"p{percent}_us"], cuts[percent - 1], places=12)
        self.assertEqual(found["median_us"], statistics.median(self.SAMPLES))

    def test_known_quantiles(self):
        ordered = [1.0, 2.0, 3.0, 4.0, 10.0]
        self.assertEqual([quantile(ordered, p) for p in (0, 0.25, 0.5, 0.875, 1)],
                         [1.0, 2.0, 3.0, 7.0, 10.0])

    def test_mean_and_deviation_divide_by_n_and_n_minus_1(self):
        found = describe(self.SAMPLES)
        self.assertAlmostEqual(found["mean_us"], statistics.fmean(self.SAMPLES), places=12)
        self.assertAlmostEqual(found["stddev_us"], statistics.stdev(self.SAMPLES), places=12)

    def test_one_sample_and_equal_samples_have_no_spread(self):
        for samples in ([0.1], [0.1] * 7):
            found = describe(samples)
            self.assertEqual(found.pop("stddev_us"), 0.0)
            self.assertEqual(set(found.values()), {0.1})

    def test_the_interval_covers_the_median_with_95_percent(self):
        for count in list(range(6, 65)):
            low, high = median_ranks(count)
            outside = sum(math.comb(count, k) for k in range(low + 1)) / 2**count
            inside_by_one = sum(math.comb(count, k) for k in range(low + 2)) / 2**count
            self.assertEqual(high, count - 1 - low)
            self.assertLessEqual(outside, 0.025)
            self.assertGreater(inside_by_one, 0.025)

    def test_few_samples_have_their_extremes_for_an_interval(self):
        for count in range(1, 6):
            self.assertEqual(median_ranks(count), (0, count - 1))

    def test_known_ranks_of_many_samples(self):
        self.assertEqual(median_ranks(100), (39, 60))
        self.assertEqual(median_ranks(1000), (468, 531))
