"""Samples of one workload: hidden behind a gate, warmed up, enough of them."""
import time

from .statistics import median_ranks, quantile
from .workload import nothing

WARMUP_RUNS = 5
MAX_SAMPLES = 100000
LONG_US = 1000  # of a run whose power a short warm-up does not show
SOAK_S, SOAK_AT_MOST_S, SOAK_WINDOW_S = 2.0, 6.0, 0.5
SWING_S = 2.5  # of the clock at the power cap
CALM_S = 1.0  # after which an idle device shows nothing of the load before


class Sampler:
    """Takes samples of one workload behind a sleep that is as long as it must be."""

    LONGEST_SLEEP_US = 50000
    MARGIN_US = 100
    MISSES = 3  # in a row: one is the host's hiccup, three are a gate that is too short

    def __init__(self, gpu, workload, as_graph):
        self.gpu, self.call, self.outputs = gpu, workload.run, None
        self.before, self.is_repeatable = workload.before, workload.before is nothing
        self.flags, self.misses, self.captured = [], 0, False
        self.keeps_busy, self.ticket = False, None  # of a sample that is in flight
        self.ungated = workload.ungated and gpu.asynchronous
        if as_graph:
            self.call, self.captured = gpu.capture(workload.run), True
        self.sleep_us = self.first_sleep_us()
        if self.ungated:
            self.give_up()

    def first_sleep_us(self):
        self.before()
        wanted = 2 * self.gpu.enqueue_us(self.call) + self.MARGIN_US
        return min(wanted, self.LONGEST_SLEEP_US)

    def give_up(self):
        self.ungated, self.sleep_us = True, 0
        self.flags.append("ungated")

    def lengthen_gate(self):
        self.misses = 0
        if self.sleep_us < self.LONGEST_SLEEP_US:
            self.sleep_us = min(2 * self.sleep_us, self.LONGEST_SLEEP_US)
        elif self.captured or not self.is_repeatable:
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
            us, hidden = self.take_from_queue() if self.keeps_busy else self.take_alone()
            if hidden or self.ungated:
                self.misses = 0
                return us
            self.misses += 1
            if self.misses == self.MISSES and self.keeps_busy:
                self.come_to_rest()  # a host slower than the device keeps it busy no more
                self.flags.append("rested")
            elif self.misses == self.MISSES:
                self.lengthen_gate()

    def take_alone(self):
        self.outputs = None  # lets the allocator hand out the same memory again
        self.before()
        us, hidden, self.outputs = self.gpu.time(self.call, self.sleep_us)
        return us, hidden

    def keep_busy(self):
        """From now on the next sample is enqueued before the last one is over, so that the
        device has no rest between them: behind a run that takes longer than the host needs, no
        gate is needed either."""
        self.keeps_busy = self.gpu.asynchronous and not self.ungated

    def come_to_rest(self):
        """The device is idle, and samples are taken alone again."""
        self.gpu.wait()
        self.keeps_busy, self.ticket, self.misses = False, None, 0

    def take_from_queue(self):
        ticket = self.ticket or self.enqueue(self.sleep_us)
        self.ticket = self.enqueue(0)
        return self.gpu.finish(ticket)

    def enqueue(self, sleep_us):
        self.outputs = None
        self.before()
        ticket, self.outputs = self.gpu.enqueue(self.call, sleep_us)
        return ticket

    def trailing_us(self):
        """How long the device goes on after the stop event: on other streams."""
        self.ticket = None
        self.before()
        return self.gpu.trailing_us(self.call)


def wait_for_calm(nvml):
    """What ran before leaves its power behind for a while, which is not this case's: until its
    sign is gone, at most CALM_S."""
    start = time.monotonic()
    while nvml.is_power_limited() and time.monotonic() - start < CALM_S:
        time.sleep(CALM_S / 20)


def warm_up_window(sampler):
    """At least 5 samples and 10 ms, unless that takes over 100 ms; 100 ms of long runs."""
    window, start = [], time.monotonic()
    elapsed, wanted = 0.0, 0.01
    while len(window) < 256 and elapsed < 0.1 and (len(window) < 5 or elapsed < wanted):
        window.append(sampler.take())
        wanted = 0.1 if window[0] > LONG_US else 0.01
        elapsed = time.monotonic() - start
    return window


def warm_up(sampler, instrument):
    """Until two windows agree within twice the precision and the SM clock within one step of
    15 MHz, or time is up. How many runs that took, the flags, and whether the power cap slows
    the load: two looks in a row must say so, as one may be a spike. Only of long runs, as in
    gpubench.h: to the sensor, which follows in tenths of a second, others are over too soon."""
    start, runs, before, clock_before = time.monotonic(), 0, None, 0
    nvml, hot_looks, limited = instrument.gpu.nvml, 0, False
    while True:
        window = warm_up_window(sampler)
        runs += len(window)
        median = quantile(sorted(window), 0.5)
        clock = nvml.sm_mhz() or 0  # a query takes milliseconds
        hot_looks = hot_looks + 1 if median > LONG_US and nvml.is_power_limited() else 0
        limited = limited or hot_looks >= 2
        enough = runs >= WARMUP_RUNS and before is not None and hot_looks != 1
        if (enough and abs(median - before) <= 2 * instrument.precision * median + 0.064
                and abs(clock - clock_before) <= 15):
            return runs, [], limited
        if enough and time.monotonic() - start > instrument.max_time_s:
            return runs, ["unsteady"], limited
        if before is None and median > LONG_US:
            sampler.keep_busy()
        before, clock_before = median, clock


def soak_window(sampler):
    """Half a second of runs: their mean and their number."""
    total, runs, start = 0.0, 0, time.monotonic()
    while time.monotonic() - start < SOAK_WINDOW_S:
        total += sampler.take()
        runs += 1
    return total / runs, runs


def soak(sampler, instrument):
    """A load near the power cap gets slower for seconds: it runs until two half seconds agree
    within the precision, for SOAK_S at least. How many runs, and the flags."""
    start, before, all_runs = time.monotonic(), 0.0, 0
    while True:
        mean, runs = soak_window(sampler)
        all_runs += runs
        moved, spent = abs(mean - before) / mean, time.monotonic() - start
        if spent >= SOAK_S and moved <= instrument.precision:
            return all_runs, []
        if spent >= SOAK_AT_MOST_S:
            return all_runs, ["unsteady"]
        before = mean


def is_precise(samples, precision):
    if len(samples) < 6:
        return False
    ordered = sorted(samples)
    low, high = median_ranks(len(ordered))
    return ordered[high] - ordered[low] <= precision * quantile(ordered, 0.5)


def take_samples(sampler, instrument, limited=False):
    """The samples, and the flags that say why there are no more. At the power cap they span a
    swing or two, whatever time was asked for."""
    samples, start, next_check = [], time.monotonic(), 0
    most_s = max(instrument.max_time_s, SWING_S) if limited else instrument.max_time_s
    least_s = most_s / (1.5 if limited else 10)
    while True:
        samples.append(sampler.take())
        count, spent = len(samples), time.monotonic() - start
        full, late = count >= MAX_SAMPLES, spent >= most_s
        settled = (count >= instrument.min_samples and count >= next_check
                   and spent >= least_s)
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
