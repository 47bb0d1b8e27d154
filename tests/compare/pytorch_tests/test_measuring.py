"""Samples, and the rows that become of them, on a stand-in for the GPU."""
import contextlib
import io
import itertools
import math
import os
import re
import tempfile
import types
import unittest
from unittest import mock

from pytorch import measure, sampler
from pytorch.errors import STATUS_LOST
from pytorch.measure import Instrument, measure_overhead
from pytorch.rows import read_rows, start_rows
from pytorch.sampler import Sampler
from pytorch.worker import measure_remaining, read_text, settings_text, started_path, write_text
from pytorch.workload import Mismatch, Workload

from .fake_gpu import FakeGpu
from .fixtures import COLUMNS, header_text, make_case


def nothing():
    return ()


class Settings(unittest.TestCase):
    def test_they_are_in_the_headers_words(self):
        function = re.search(r"void \w+_fill_settings(?:.*\n)*?}", header_text()).group(0)
        words = re.findall(r"([a-z-]+)=%", function)
        text = settings_text(Instrument(None, None, 0.5 / 100, 30, 1.0))
        # Only what differs from its default is said of the streams.
        self.assertEqual([word.split("=")[0] for word in text.split()] + ["streams"], words)
        self.assertEqual(text, "precision=0.5 max-time=1 min-samples=30 max-samples=100000 "
                               "warmup=5")


class Gate(unittest.TestCase):
    def sampler(self, gpu, as_graph=False, ungated=False):
        sampler = Sampler(gpu, Workload(nothing, None, ungated), as_graph)
        sampler.take()
        return sampler

    def test_a_gate_that_holds_stays_as_it_is(self):
        gpu = FakeGpu(needs_us=100)
        self.assertEqual(self.sampler(gpu).flags, [])
        self.assertEqual(gpu.sleeps, [120.0])

    def test_a_hiccup_is_taken_again_behind_the_same_gate(self):
        gpu = FakeGpu(hiccups=2)
        self.assertEqual(self.sampler(gpu).flags, [])
        self.assertEqual(gpu.sleeps, [120.0] * 3)

    def test_a_gate_that_is_too_short_is_lengthened(self):
        gpu = FakeGpu(needs_us=5000)
        self.assertEqual(self.sampler(gpu).flags, [])
        self.assertGreaterEqual(gpu.sleeps[-1], 5000)

    def test_what_no_gate_hides_is_captured_and_says_so(self):
        self.assertEqual(self.sampler(FakeGpu(needs_us=1e9)).flags, ["captured"])

    def test_what_can_be_neither_says_so(self):
        gpu = FakeGpu(needs_us=1e9, capturable=False)
        self.assertEqual(self.sampler(gpu).flags, ["ungated"])
        self.assertEqual(gpu.sleeps[-1], 0)

    def test_a_graph_is_no_flag_where_it_was_asked_for(self):
        self.assertEqual(self.sampler(FakeGpu(), as_graph=True).flags, [])

    def test_what_comes_before_a_run_is_not_timed_and_cannot_be_captured(self):
        order, gpu = [], FakeGpu(needs_us=1e9)

        def timed(call, sleep_us):
            order.append("time")
            call()
            return 1.0, False, None
        gpu.time = timed
        work = Workload(lambda: order.append("run"), None, before=lambda: order.append("before"))
        found = Sampler(gpu, work, as_graph=False)
        found.take()
        found.trailing_us()
        self.assertEqual(found.flags, ["ungated"])
        self.assertEqual(order[:2], ["before", "run"])  # how long it takes to enqueue
        self.assertEqual(order[2:], ["before", "time", "run"] * (len(order) // 3 - 1)
                         + ["before", "run"])

    def test_a_case_that_wants_no_gate_has_none(self):
        gpu = FakeGpu(needs_us=1e9)
        self.assertEqual(self.sampler(gpu, ungated=True).flags, ["ungated"])
        self.assertEqual(gpu.sleeps, [0])


class PowerCap(unittest.TestCase):
    """On a clock that only runs advance; 3 ms each, and slower as `drift` says of the time."""

    def measure(self, limited, max_time_s=0.05, drift=lambda now: 0.0, run_us=3000, slow=False):
        clock, gpu = types.SimpleNamespace(now=0.0), FakeGpu()
        gpu.nvml.limited, gpu.host_is_slow, self.gpu = limited, slow, gpu

        def timed(call, sleep_us):
            us = run_us * (1 + drift(clock.now))
            gpu.sleeps.append(sleep_us)
            clock.now += us / 1e6
            return us, True, call()
        gpu.time = timed
        instrument = Instrument(gpu, lambda case: Workload(nothing, lambda outputs: [(0.0, 0.0)]),
                                0.005, 10, max_time_s)

        def sleep(seconds):
            clock.now += seconds
        ticks = types.SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep)
        with mock.patch.object(sampler, "time", ticks):
            row = measure.measured_columns(instrument, make_case("norm", "test.fine", "torch-eager",
                                                                 "f32", "n=1", 1024))
        return row["warmup"] * run_us / 1e6, row["samples"] * run_us / 1e6, row["flags"]

    def test_a_load_that_is_not_near_it_is_measured_as_long_as_was_asked(self):
        before, sampled, _ = self.measure(lambda look: False)
        self.assertLess(before, 0.3)
        self.assertLess(sampled, 0.06)

    def test_one_look_may_be_what_ran_before(self):
        self.assertLess(self.measure(lambda look: look == 2)[0], 0.3)

    def test_what_ran_before_is_waited_out(self):
        before, sampled, _ = self.measure(lambda look: look <= 10)
        self.assertLess(before, 0.3)
        self.assertLess(sampled, 0.06)

    def test_a_look_that_no_other_follows_yet_is_not_the_last(self):
        self.assertGreater(self.measure(lambda look: look > 2)[0], 2)

    def test_short_runs_are_over_before_a_look_could_tell(self):
        self.assertLess(self.measure(lambda look: True, run_us=900)[0], 0.3)

    def test_long_runs_leave_the_device_no_rest(self):
        self.measure(lambda look: False)
        self.assertEqual(self.gpu.most_in_flight, 2)
        first = self.gpu.sleeps.index(0)  # behind one window alone and the queue's first
        self.assertLess(first * 0.003, 0.2)
        self.assertEqual([sleep for sleep in self.gpu.sleeps[first:] if sleep > 0],
                         [self.gpu.sleeps[0]])  # of the queue that begins behind the trailing check
        self.assertEqual(self.gpu.in_flight, 0)
        self.measure(lambda look: False, run_us=900)
        self.assertEqual(self.gpu.most_in_flight, 0)

    def test_a_host_that_cannot_keep_up_gets_its_gate_again(self):
        _, sampled, flags = self.measure(lambda look: False, slow=True)
        self.assertGreater(sampled, 0)
        self.assertGreater(self.gpu.sleeps[-1], 0)
        self.assertIn("rested", flags)
        self.assertNotIn("ungated", flags)

    def test_near_it_two_seconds_come_before_samples_of_a_swing(self):
        before, sampled, flags = self.measure(lambda look: True)
        self.assertTrue(2.2 <= before < 2.4, before)  # two windows of 0.1 s, four of 0.5 s
        self.assertTrue(2.5 / 1.5 - 0.003 <= sampled < 1.9, sampled)  # one more is in flight
        self.assertNotIn("unsteady", flags)
        self.assertGreater(self.measure(lambda look: True, max_time_s=6)[1], 3.99)

    def test_what_goes_on_getting_slower_is_marked_after_six_seconds(self):
        before, _, flags = self.measure(lambda look: True, drift=lambda now: now * 0.05)
        self.assertGreater(before, 4)
        self.assertIn("unsteady", flags)


class Measuring(unittest.TestCase):
    CASES = [make_case("norm", f"test.{name}", "torch-eager", "f32", "n=1", 1024)
             for name in ("fine", "big", "broken", "wrong", "absent")]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rows_path = os.path.join(folder.name, "rows.csv")
        start_rows(self.rows_path, COLUMNS)
        self.gpu = FakeGpu()
        self.settings = types.SimpleNamespace(worker_run=1, seed=1, campaign="sitting", quiet=True)

    def build(self, case):
        what = case.name.split(".")[1]
        if what == "big":
            raise MemoryError("Tried to allocate 80.00 GiB")
        if what == "broken":
            self.gpu.lost = True
            raise RuntimeError("an illegal access in /home/someone/file.cu\nand more")
        if what == "absent":
            raise RuntimeError("No available kernel. Aborting execution.")
        error = 1.0 if what == "wrong" else 1e-7
        return Workload(nothing, lambda outputs: [(0.0, 0.0), (error, 1e-5)])

    def measure(self, cases, modes=("cold",)):
        instruments = [Instrument(self.gpu, self.build, 0.005, 30, 0.02, mode) for mode in modes]
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            for instrument in instruments:
                measure_overhead(instrument)
            status = measure_remaining(instruments, cases, self.settings, self.rows_path)
        self.said = errors.getvalue()
        return status, {row["case"].split(".")[1]: row for row in read_rows(self.rows_path)}

    def test_a_fine_row_holds_every_number(self):
        status, rows = self.measure(self.CASES[:1])
        row = rows["fine"]
        self.assertEqual(status, 0)
        for column in COLUMNS:
            if column not in ("flops", "tflop_per_s", "energy_mj", "compute_capability",
                              "memory_bytes", "power_limit_w", "driver", "cuda_runtime",
                              "host_us", "pci", "counters", "runs_on"):
                self.assertNotEqual(row[column], "", column)
        self.assertEqual((row["schema"], row["status"], row["run"], row["order"],
                          row["campaign"], row["backend"], row["mode"], row["batch"]),
                         ("2", "ok", "1", "1", "sitting", "cuda", "cold", "1"))
        times = [float(row[name]) for name in ("min_us", "p5_us", "p25_us", "median_us", "p75_us",
                                               "p95_us", "p99_us", "max_us")]
        self.assertEqual(times, sorted(times))
        self.assertIn("stop=", row["flags"])
        self.assertIn("fits-l2", row["flags"].split())
        self.assertIn("throttle=power-cap", row["flags"].split())
        self.assertAlmostEqual(float(row["gb_per_s"]), 1.024 / float(row["median_us"]), places=9)
        self.assertEqual((row["max_error"], row["tolerance"]), ("1e-07", "1e-05"))
        self.assertFalse([text for text in row.values() if "," in text])  # scripts/ split there

    def test_each_mode_is_a_row_with_samples_and_an_overhead_of_its_own(self):
        first = {"cold": (1.0, 3.0), "dirty": (2.0, 5.0)}

        def known(instrument, call):
            what = first[instrument.mode]
            return [what[0 if call() is None else 1]]
        with mock.patch.object(measure, "sample_known", known):
            status, _ = self.measure(self.CASES[:1], ("cold", "dirty"))
        rows = read_rows(self.rows_path)
        self.assertEqual((status, [(row["mode"], row["events_us"], row["overhead_us"],
                                    row["order"]) for row in rows]),
                         (0, [("cold", "1", "3", "1"), ("dirty", "2", "5", "2")]))
        taken = [(mode, len(list(group))) for mode, group in itertools.groupby(self.gpu.modes)]
        self.assertEqual([mode for mode, _ in taken], ["cold", "dirty"])
        for row, (_, samples) in zip(rows, taken):
            self.assertGreaterEqual(samples, int(row["samples"]) + int(row["warmup"]))
        self.measure(self.CASES[:1], ("cold", "dirty"))
        self.assertEqual(len(read_rows(self.rows_path)), 2)  # nothing was left to do

    def test_out_of_memory_is_a_row_and_the_rest_goes_on(self):
        status, rows = self.measure(self.CASES[:2])
        self.assertEqual((status, rows["big"]["status"], rows["fine"]["status"]), (1, "oom", "ok"))
        self.assertIn("free_bytes=1073741824 reason=MemoryError:_Tried", rows["big"]["flags"])
        self.assertEqual(rows["big"]["median_us"], "")

    def test_a_wrong_result_is_a_row_without_numbers(self):
        status, rows = self.measure([self.CASES[3]])
        self.assertEqual((status, rows["wrong"]["status"]), (1, "mismatch"))
        self.assertEqual((rows["wrong"]["median_us"], rows["wrong"]["max_error"]), ("", ""))
        self.assertIn("mismatch", self.said)

    def test_what_the_library_cannot_do_is_no_failure(self):
        status, rows = self.measure([self.CASES[4]])
        self.assertEqual((status, rows["absent"]["status"]), (0, "unsupported"))

    def test_a_lost_context_ends_the_process_and_the_next_one_measures_the_rest(self):
        cases, status, processes = self.CASES, STATUS_LOST, 0
        while status == STATUS_LOST and processes < 5:
            self.gpu.lost = False
            status, rows = self.measure(cases)
            processes += 1
        self.assertEqual((status, processes, len(rows)), (1, 2, 5))
        self.assertEqual(sorted(int(row["order"]) for row in rows.values()), [1, 2, 3, 4, 5])
        self.assertEqual(rows["broken"]["status"], "failed")
        self.assertNotIn("someone", rows["broken"]["flags"])  # nobody's name gets committed

    def test_a_case_that_crashed_is_a_row_of_the_next_process(self):
        write_text(started_path(self.rows_path), f"1 {self.CASES[2].key} cold")
        status, rows = self.measure(self.CASES[:1] + self.CASES[2:3])
        self.assertEqual((status, rows["broken"]["status"], rows["fine"]["status"]),
                         (1, "failed", "ok"))
        self.assertIn("ended_the_process", rows["broken"]["flags"])
        self.assertEqual(read_text(started_path(self.rows_path)), "")

    def test_the_crash_of_one_run_is_not_the_next_runs(self):
        write_text(started_path(self.rows_path), f"2 {self.CASES[0].key} cold")
        status, rows = self.measure(self.CASES[:1])
        self.assertEqual((status, rows["fine"]["status"]), (0, "ok"))

    def test_an_error_after_the_measuring_is_a_row_too(self):
        with mock.patch.object(measure, "warnings_of", side_effect=ZeroDivisionError("by zero")):
            status, rows = self.measure(self.CASES[:1])
        self.assertEqual((status, rows["fine"]["status"]), (1, "failed"))
        self.assertIn("reason=ZeroDivisionError:_by_zero", rows["fine"]["flags"])
        self.assertIn("by zero", self.said)

    def test_work_on_another_stream_is_a_failure(self):
        self.gpu.elsewhere_us = 5000.0
        status, rows = self.measure(self.CASES[:1])
        self.assertEqual((status, rows["fine"]["status"]), (1, "failed"))
        self.assertIn("another_stream", rows["fine"]["flags"])

    def test_more_than_the_device_can_do_is_flagged(self):
        case = self.CASES[0]
        for rates, above in (((3000, None, None), 0), ((3400, None, None), 1),
                             ((100, 1, 900), 0), ((100, 1, 1000), 1)):
            columns = dict(zip(("gb_per_s", "flops", "tflop_per_s"), rates), bytes=None,
                           median_us=1.0)
            flags = measure.warnings_of(Instrument(self.gpu, None, 0.5, 30, 1), case, columns)
            self.assertEqual("above-peak" in flags, bool(above))
        link = make_case("memcpy", "memcpy.h2d", "torch-pinned", "u8", "bytes=4096")
        self.assertEqual(measure.share_of_peak(self.gpu, link, columns), 0)

    def test_a_nan_never_passes(self):
        self.assertRaises(Mismatch, measure.worst_check, [(math.nan, 1.0)])

    def test_the_worst_check_is_the_one_nearest_to_its_tolerance(self):
        checks = [(0.0, 0.0), (1e-6, 1e-5), (1e-4, 1e-2)]
        self.assertEqual(measure.worst_check(checks), (1e-6, 1e-5))
