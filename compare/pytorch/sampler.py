"""Samples of one workload: hidden behind a gate, warmed up, enough of them."""
import time

from .statistics import median_ranks, quantile

WARMUP_RUNS = 5
MAX_SAMPLES = 100000


class Sampler:
    """Takes samples of one workload behind a sleep that is as long as it must be."""

    LONGEST_SLEEP_US = 50000
    MARGIN_US = 100
    MISSES = 3  # in a row: one is the host's hiccup, three are a gate that is too short

    def __init__(self, gpu, workload, as_graph):
        self.gpu, self.call, self.outputs = gpu, workload.run, None
        self.flags, self.misses, self.captured = [], 0, False
        self.ungated = workload.ungated and gpu.asynchronous
        if as_graph:
            self.call, self.captured = gpu.capture(workload.run), True
        self.sleep_us = self.first_sleep_us()
        if self.ungated:
            self.give_up()

    def first_sleep_us(self):
        wanted = 2 * self.gpu.enqueue_us(self.call) + self.MARGIN_US
        return min(wanted, self.LONGEST_SLEEP_US)

    def give_up(self):
        self.ungated, self.sleep_us = True, 0
        self.flags.append("ungated")

    def lengthen_gate(self):
        self.misses = 0
        if self.sleep_us < self.LONGEST_SLEEP_US:
            self.sleep_us = min(2 * self.sleep_us, self.LONGEST_SLEEP_US)
        elif self.captured:
            self.give_up()
        else:
            self.try_capture()

    def try_capture(self):
        self.outputs = None
        try:
            self.call = self.gpu.capture(self.call)
        except RuntimeError as error:  # a case that synchronizes, copies from pageable memory, ...
            if self.gpu.is_oom(error):
                raise
            self.give_up()
            return
        self.captured = True
        self.flags.append("captured")
        self.sleep_us = self.first_sleep_us()

    def take(self):
        """Microseconds of one run."""
        while True:
            self.outputs = None  # lets the allocator hand out the same memory again
            us, hidden, self.outputs = self.gpu.time(self.call, self.sleep_us)
            if hidden or self.ungated:
                self.misses = 0
                return us
            self.misses += 1
            if self.misses == self.MISSES:
                self.lengthen_gate()


def warm_up_window(sampler):
    """At least 5 samples and 10 ms, unless that takes over 100 ms."""
    window, start = [], time.monotonic()
    elapsed = 0.0
    while len(window) < 256 and elapsed < 0.1 and (len(window) < 5 or elapsed < 0.01):
        window.append(sampler.take())
        elapsed = time.monotonic() - start
    return window


def warm_up(sampler, instrument):
    """Until two windows agree within twice the precision and the SM clock within one step of
    15 MHz, or time is up: how many runs that took, and the flags."""
    start, runs, before, clock_before = time.monotonic(), 0, None, 0
    while True:
        window = warm_up_window(sampler)
        runs += len(window)
        median = quantile(sorted(window), 0.5)
        clock = instrument.gpu.nvml.sm_mhz() or 0  # a query takes milliseconds
        steady = (before is not None
                  and abs(median - before) <= 2 * instrument.precision * median + 0.064
                  and abs(clock - clock_before) <= 15)
        if runs >= WARMUP_RUNS and steady:
            return runs, []
        if runs >= WARMUP_RUNS and time.monotonic() - start > instrument.max_time_s:
            return runs, ["unsteady"]
        before, clock_before = median, clock


def is_precise(samples, precision):
    if len(samples) < 6:
        return False
    ordered = sorted(samples)
    low, high = median_ranks(len(ordered))
    return ordered[high] - ordered[low] <= precision * quantile(ordered, 0.5)


def take_samples(sampler, instrument):
    """The samples, and the flags that say why there are no more."""
    samples, start, next_check = [], time.monotonic(), 0
    while True:
        samples.append(sampler.take())
        count, spent = len(samples), time.monotonic() - start
        full, late = count >= MAX_SAMPLES, spent >= instrument.max_time_s
        settled = (count >= instrument.min_samples and count >= next_check
                   and spent >= instrument.max_time_s / 10)
        if not (full or late or settled):
            continue
        precise = is_precise(samples, instrument.precision)
        next_check = count + count // 8  # looking sorts a copy
        if precise and settled:
            return samples, ["stop=precision"]
        if full or late:
            flags = ["stop=max-samples" if full else "stop=max-time"]
            flags += [] if precise else ["imprecise"]
            flags += ["few-samples"] if count < instrument.min_samples else []
            return samples, flags
