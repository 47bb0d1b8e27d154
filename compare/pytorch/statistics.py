"""Statistics of samples, as gpubench.h defines them."""
import math


def quantile(ordered, p):
    """Definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996."""
    position = (len(ordered) - 1) * p
    below = int(position)
    if below + 1 >= len(ordered):
        return ordered[-1]
    return ordered[below] + (position - below) * (ordered[below + 1] - ordered[below])


def median_ranks(count):
    """The order statistics between which the median lies with 95 %: exactly by the
    binomial up to 64 samples, by its normal approximation above."""
    outside = 0
    if count > 64:
        outside = int(count / 2 - 0.98 * math.sqrt(count) + 0.5)
    else:
        term = tail = 0.5**count
        k = 0
        while tail <= 0.025 and k < count:
            outside = k + 1
            term *= (count - k) / (k + 1)
            tail += term
            k += 1
    low = max(outside - 1, 0)
    return low, count - 1 - low


def describe(samples):
    """The statistics of the file's time columns, by their names."""
    ordered = sorted(samples)
    count = len(ordered)
    # Around the minimum, so that equal samples give exactly 0.
    mean = ordered[0] + sum(sample - ordered[0] for sample in ordered) / count
    squares = sum((sample - mean) ** 2 for sample in ordered)
    low, high = median_ranks(count)
    quantiles = {f"p{percent}_us": quantile(ordered, percent / 100)
                 for percent in (5, 25, 75, 95, 99)}
    return dict(quantiles, min_us=ordered[0], max_us=ordered[-1], mean_us=mean,
                median_us=quantile(ordered, 0.5),
                stddev_us=math.sqrt(squares / (count - 1)) if count > 1 else 0.0,
                ci95_low_us=ordered[low], ci95_high_us=ordered[high])
