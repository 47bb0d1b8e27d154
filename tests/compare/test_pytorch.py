#!/usr/bin/env python3
"""compare/pytorch.py: everything but the GPU, as TAP lines.

What the C code computed (baselines/) is the second method for names, bytes,
operations, numbers as text and the order of cases. Where PyTorch is installed
the cases themselves run on the CPU, with tiny shapes.
"""
import collections
import contextlib
import csv
import glob
import importlib.util
import io
import itertools
import math
import os
import re
import statistics
import stat
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SCRIPT = os.path.join(ROOT, "compare", "pytorch.py")

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("pytorch_peers", SCRIPT)
peers = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = peers
spec.loader.exec_module(peers)

HAS_TORCH = True
try:
    peers.load_torch()
except peers.UsageError:
    HAS_TORCH = False

# What has no peer: a block's seams, and what only CUDA's own calls do.
WITHOUT_PEER = {"block.part", "memcpy.bidirectional", "memcpy.overlap", "memcpy.peer"}


def read_baselines():
    rows = []
    for path in sorted(glob.glob(os.path.join(ROOT, "baselines", "*", "*.csv"))):
        with open(path, newline="", encoding="utf-8") as file:
            rows += [row for row in csv.DictReader(file)
                     if row["backend"] == "cuda"]
    return rows


BASELINES = read_baselines()


def columns_of_the_header():
    """gpubench.h's, without the last, which it writes to no file."""
    with open(os.path.join(ROOT, "gpubench.h"), encoding="utf-8") as file:
        macro = re.search(r"#define \w+_COLUMNS\(X\)((?:.*\\\n)*.*)", file.read()).group(1)
    names = re.findall(r"X\((\w+)\)", macro)
    assert names.pop() == "share_of_peak"
    return names


def run_script(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True,
                          check=False)


class Statistics(unittest.TestCase):
    SAMPLES = [3.5, 1.25, 9.0, 4.0, 4.0, 2.0, 8.5, 7.0, 1.0, 6.5, 30.0]

    def test_quantiles_are_those_of_another_implementation_of_type_7(self):
        cuts = statistics.quantiles(self.SAMPLES, n=100, method="inclusive")
        found = peers.describe(self.SAMPLES)
        for percent in (5, 25, 75, 95, 99):
            self.assertAlmostEqual(found[f"p{percent}_us"], cuts[percent - 1], places=12)
        self.assertEqual(found["median_us"], statistics.median(self.SAMPLES))

    def test_known_quantiles(self):
        ordered = [1.0, 2.0, 3.0, 4.0, 10.0]
        self.assertEqual([peers.quantile(ordered, p) for p in (0, 0.25, 0.5, 0.875, 1)],
                         [1.0, 2.0, 3.0, 7.0, 10.0])

    def test_mean_and_deviation_divide_by_n_and_n_minus_1(self):
        found = peers.describe(self.SAMPLES)
        self.assertAlmostEqual(found["mean_us"], statistics.fmean(self.SAMPLES), places=12)
        self.assertAlmostEqual(found["stddev_us"], statistics.stdev(self.SAMPLES), places=12)

    def test_one_sample_and_equal_samples_have_no_spread(self):
        for samples in ([0.1], [0.1] * 7):
            found = peers.describe(samples)
            self.assertEqual(found.pop("stddev_us"), 0.0)
            self.assertEqual(set(found.values()), {0.1})

    def test_the_interval_covers_the_median_with_95_percent(self):
        for count in list(range(6, 65)):
            low, high = peers.median_ranks(count)
            outside = sum(math.comb(count, k) for k in range(low + 1)) / 2**count
            inside_by_one = sum(math.comb(count, k) for k in range(low + 2)) / 2**count
            self.assertEqual(high, count - 1 - low)
            self.assertLessEqual(outside, 0.025)
            self.assertGreater(inside_by_one, 0.025)

    def test_few_samples_have_their_extremes_for_an_interval(self):
        for count in range(1, 6):
            self.assertEqual(peers.median_ranks(count), (0, count - 1))

    def test_known_ranks_of_many_samples(self):
        self.assertEqual(peers.median_ranks(100), (39, 60))
        self.assertEqual(peers.median_ranks(1000), (468, 531))


class AgainstTheSuites(unittest.TestCase):
    CASES = peers.all_cases(list(peers.SUITES), list(peers.DTYPE_BYTES))

    def test_there_are_baselines(self):
        self.assertGreater(len(BASELINES), 1000)

    def test_the_columns_are_the_suites(self):
        self.assertEqual(peers.COLUMNS, columns_of_the_header())
        self.assertEqual(len(peers.COLUMNS), 60)

    def test_columns_of_older_files_are_still_there(self):
        for path in glob.glob(os.path.join(ROOT, "baselines", "*", "*.csv")):
            with open(path, encoding="utf-8") as file:
                self.assertLessEqual(set(next(csv.reader(file))), set(peers.COLUMNS))

    def test_settings_are_in_the_headers_words(self):
        with open(os.path.join(ROOT, "gpubench.h"), encoding="utf-8") as file:
            function = re.search(r"void \w+_fill_settings(?:.*\n)*?}", file.read()).group(0)
        words = re.findall(r"([a-z-]+)=%", function)
        text = peers.settings_text(peers.Instrument(None, 0.5 / 100, 30, 1.0))
        # Only what differs from its default is said of the streams.
        self.assertEqual([word.split("=")[0] for word in text.split()] + ["streams"], words)
        self.assertEqual(text, "precision=0.5 max-time=1 min-samples=30 max-samples=100000 "
                               "warmup=5")

    def test_the_version_is_the_headers(self):
        with open(os.path.join(ROOT, "gpubench.h"), encoding="utf-8") as file:
            version = re.search('#define GPUBENCH_VERSION "(.*)"', file.read()).group(1)
        self.assertEqual(peers.GPUBENCH_VERSION, version)

    def test_every_listed_params_text_is_the_suites(self):
        known = collections.defaultdict(set)
        for row in BASELINES:
            known[row["suite"], row["case"]].add(row["params"])
        listed = run_script("--list").stdout.splitlines()
        self.assertEqual(len(listed), len(set(listed)))
        suites = {case.key: case.suite for case in self.CASES}
        for line in listed:
            name, _variant, _dtype, params = line.split(" ", 3)
            with self.subTest(line):
                operations = known[suites[line], name] or known["ceilings", "bandwidth.triad"]
                self.assertIn(params, operations)

    def test_no_operation_of_the_suites_is_missing(self):
        found = {(case.suite, case.name, case.dtype, case.params) for case in self.CASES}
        wanted = {(row["suite"], row["case"], row["dtype"], row["params"])
                  for row in BASELINES if row["case"] not in WITHOUT_PEER}
        self.assertEqual(wanted - found, set())

    def test_bytes_and_operations_are_those_that_the_suites_computed(self):
        works = {(row["case"], row["dtype"], row["params"], row["seed"]):
                 (int(row["bytes"] or 0), int(row["flops"] or 0))
                 for row in BASELINES if row["status"] == "ok" and row["case"] not in WITHOUT_PEER}
        cases = {(case.name, case.dtype, case.params): case for case in self.CASES}
        for (name, dtype, params, seed), work in works.items():
            with self.subTest(f"{name} {dtype} {params}"):
                self.assertEqual(cases[name, dtype, params].work(int(seed)), work)
        self.assertGreater(len(works), 400)

    def test_bytes_of_the_ceilings_that_no_baseline_has(self):
        factors = {case.name: case.work(1)[0] >> 30 for case in self.CASES
                   if case.name.startswith("bandwidth")}
        self.assertEqual(factors, {"bandwidth.read": 1, "bandwidth.write": 1, "bandwidth.copy": 2,
                                   "bandwidth.triad": 3})

    def test_every_case_can_be_built_and_has_work(self):
        for case in self.CASES:
            self.assertIn(case.name, peers.BUILDERS)
            self.assertGreater(case.work(1)[0], 0)
            self.assertTrue(case.variant.startswith("torch-"))

    def test_parameter_lists_have_the_suites_number_of_elements(self):
        for row in BASELINES:
            if row["suite"] == "optimizer":
                shape = peers.shape_of(row["params"])
                sizes = peers.parameter_shapes(shape)
                self.assertEqual(len(sizes), 12 * shape["l"] + 5)
                self.assertEqual(sum(map(math.prod, sizes)), shape["p"])

    def test_numbers_are_written_as_the_suites_write_them(self):
        for row in BASELINES[::7]:
            for column in ("median_us", "mean_us", "stddev_us", "gb_per_s", "max_error"):
                if row[column]:
                    self.assertEqual(peers.number_text(float(row[column])), row[column])

    def test_the_order_is_the_suites(self):
        """memcpy queues these groups a size; some are empty on a GPU or under a --filter."""
        everywhere = ("memcpy.h2d", "memcpy.d2h", "memcpy.d2d", "memcpy.h2h", "memcpy.memset")
        further = ("memcpy.bidirectional", "memcpy.overlap", "memcpy.peer", "memcpy.peer staged")
        sizes = dict.fromkeys(case.params for case in self.CASES if case.suite == "memcpy")
        groups = [(name, size) for size in sizes for name in everywhere +
                  (further if size in ("bytes=1048576", "bytes=67108864") else ())]
        runs = collections.defaultdict(list)
        for row in BASELINES:
            if row["suite"] == "memcpy":
                name = row["case"] + (" staged" if row["variant"] == "staged" else "")
                runs[row["campaign"], int(row["seed"]), int(row["run"])].append(
                    (int(row["order"]), name, row["params"]))
        for (_campaign, seed, run), rows in runs.items():
            measured = list(dict.fromkeys((name, params) for _, name, params in sorted(rows)))
            wanted = [group for group in peers.shuffled(groups, seed, run) if group in measured]
            self.assertEqual(measured, wanted)
        self.assertGreaterEqual(len(runs), 5)


class PeerBaselines(unittest.TestCase):
    """baselines/<device>/torch/, where PyTorch's own rows are."""

    def test_they_hold_peers_of_the_suite_that_names_them_and_of_the_device(self):
        for path in glob.glob(os.path.join(ROOT, "baselines", "*", "torch", "*.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.assertGreater(len(rows), 0)
            for row in rows:
                self.assertEqual(f"{row['suite']}.csv", os.path.basename(path))
                self.assertTrue(row["variant"].startswith("torch-"))
                device = re.sub("[^a-z0-9]+", "-", row["device"].lower()).rstrip("-")
                self.assertEqual(device, path.split(os.sep)[-3])

    def test_the_suites_files_hold_none(self):
        for path in glob.glob(os.path.join(ROOT, "baselines", "*", "*.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                self.assertFalse([row for row in csv.DictReader(file)
                                  if row["variant"].startswith("torch-")])


class Files(unittest.TestCase):
    ROW = {"schema": 2, "case": 'a,"b"', "flags": "x\ny", "median_us": 0.1, "p5_us": math.nan,
           "samples": 30, "bytes": None}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "rows.csv")

    def test_a_row_reads_back(self):
        peers.write_csv(self.path, [self.ROW])
        with open(self.path, newline="", encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("schema,suite,case"))
        self.assertNotIn("\r", text)
        header, row = peers.read_rows(self.path)
        self.assertEqual(list(header.values()), peers.COLUMNS)
        self.assertEqual((row["case"], row["flags"], row["median_us"], row["p5_us"],
                          row["samples"], row["bytes"]), ('a,"b"', "x\ny", "0.1", "", "30", ""))

    def test_a_file_keeps_its_old_rows_when_writing_fails(self):
        peers.write_csv(self.path, [self.ROW])
        with open(self.path, encoding="utf-8") as file:
            before = file.read()
        with mock.patch.object(os, "replace", side_effect=OSError(28, "No space left")):
            self.assertRaises(OSError, peers.write_csv, self.path, [])
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.listdir(self.folder), ["rows.csv"])

    def test_a_link_stays_a_link(self):
        link = os.path.join(self.folder, "link.csv")
        os.symlink(self.path, link)
        peers.write_csv(link, [self.ROW])
        self.assertTrue(os.path.islink(link))
        self.assertEqual(len(peers.read_rows(self.path)), 2)

    def test_a_device_is_written_to_and_not_replaced(self):
        peers.try_path("/dev/null")
        peers.write_csv("/dev/null", [self.ROW])
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_paths_that_cannot_be_written_are_refused_before_measuring(self):
        for path in (self.folder, os.path.join(self.folder, "none", "x.csv"), ""):
            self.assertRaises(peers.UsageError, peers.try_path, path)

    def test_numbers_as_text(self):
        texts = [peers.number_text(value) for value in (704.0, 0.1, 1e-5, 1 / 3, -0.0, math.inf)]
        self.assertEqual(texts, ["704", "0.1", "1e-05", "0.3333333333333333", "-0", ""])


class CommandLine(unittest.TestCase):
    def refused(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            status = peers.main(list(arguments))
        self.assertEqual(status, 2, arguments)
        self.assertTrue(errors.getvalue().startswith("pytorch: "))
        return errors.getvalue()

    def test_bad_values_are_refused_by_name(self):
        for option, value in (("--runs", "0"), ("--runs", "x"), ("--runs", "1001"),
                              ("--max-time", "0"), ("--max-time", "nan"), ("--seed", "-1"),
                              ("--suite", "attention,none"), ("--dtype", "f8"),
                              ("--filter", "("), ("--device", "cpu"), ("--campaign", ""),
                              ("--precision", "101"), ("--without", "torch-none"),
                              ("--min-samples", "1.5"), ("--mode", "hot"),
                              ("--mode", "cold,graph")):
            self.assertIn(option, self.refused(f"{option}={value}", "--list"))

    def test_unknown_options_are_refused(self):
        self.assertIn("--frobnicate", self.refused("--frobnicate"))
        self.assertIn("--run", self.refused("--run", "3"))

    def test_a_filter_that_matches_nothing_is_refused(self):
        self.assertIn("matches none of the", self.refused("--filter", "no such case"))
        self.assertIn("no case", self.refused("--suite", "norm", "--dtype", "u8"))

    def test_list_obeys_suite_dtype_and_filter(self):
        result = run_script("--suite", "attention,norm", "--dtype", "f32", "--filter",
                            "backward.*(t=1024|c=768)", "--list")
        lines = result.stdout.splitlines()
        self.assertEqual(result.returncode, 0)
        self.assertIn("attention.backward torch-sdpa-math f32 b=4 h=12 t=1024 d=64 causal=1", lines)
        self.assertIn("rmsnorm_residual.backward torch-compile f32 n=512 c=768", lines)
        self.assertTrue(all(" f32 " in line and "backward" in line for line in lines))

    def test_list_obeys_a_file_of_cases_and_leaves_variants_out(self):
        cases = os.path.join(ROOT, "scripts", "speed_of_light.txt")
        with open(cases, encoding="utf-8") as file:
            wanted = {line.strip() for line in file if not line.startswith("#")}
        lines = run_script("--cases", cases, "--list").stdout.splitlines()
        parts = [line.split(" ", 2) for line in lines]
        self.assertEqual({f"{name} {rest}" for name, _variant, rest in parts}, wanted)
        fewer = run_script("--cases", cases, "--without", "torch-compile,torch-sdpa-math",
                           "--list").stdout.splitlines()
        self.assertEqual(fewer, [line for line in lines
                                 if not re.search("torch-compile|torch-sdpa-math", line)])

    def test_a_file_of_cases_that_is_not_one_is_refused(self):
        self.assertIn("No such file", self.refused("--cases", "/no/such", "--list"))
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("# none\nnorm.forward f32 n=1\n")
            file.flush()
            self.assertIn("'norm.forward f32 n=1'", self.refused("--cases", file.name, "--list"))

    def test_help_names_every_option(self):
        text = run_script("--help").stdout
        for option in ("--suite", "--filter", "--runs", "--csv", "--max-time", "--list",
                       "--device", "--seed"):
            self.assertIn(option, text)
        self.assertNotIn("worker", text)

    def test_without_a_gpu_nothing_is_written(self):
        if HAS_TORCH and peers.torch.cuda.is_available():
            self.skipTest("there is a GPU")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.csv")
            result = run_script("--suite", "memcpy", "--csv", path)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, "pytorch: .*(PyTorch|GPU)")
            self.assertEqual(os.listdir(folder), [])


class FakeNvml:
    def sm_mhz(self):
        return 1980

    def state(self):
        return {"sm_mhz": 1980, "mem_mhz": 2619, "temperature_c": 40, "power_w": 300.0}

    def throttle_flags(self):
        return ["throttle=power-cap"]


class FakeGpu:
    """Takes calls on the host. A call is hidden behind a sleep of at least `needs_us`."""

    l2_bytes = 50 << 20
    elsewhere_us = 0.0

    def __init__(self, needs_us=0, capturable=True, hiccups=0):
        self.needs_us, self.capturable, self.hiccups = needs_us, capturable, hiccups
        self.nvml, self.device, self.lost, self.sleeps = FakeNvml(), "cpu", False, []
        self.mode, self.modes = None, []  # which a sample was taken in

    def machine(self):
        return {"device": "Fake GPU", "uuid": "GPU-0", "sm_count": 1, "l2_bytes": self.l2_bytes}

    def context(self):
        return contextlib.nullcontext()

    def time(self, call, sleep_us):
        self.sleeps.append(sleep_us)
        self.modes.append(self.mode)
        hidden = sleep_us >= self.needs_us and self.hiccups == 0
        self.hiccups = max(self.hiccups - 1, 0)
        start = time.perf_counter()
        outputs = call()
        return (time.perf_counter() - start) * 1e6, hidden, outputs

    def trailing_us(self, call):
        call()
        return self.elsewhere_us

    def peak_gb_per_s(self):
        return 3352.0

    def peak_tflop_per_s(self, dtype):
        return 989.0

    def enqueue_us(self, call):
        call()
        return 10.0

    def capture(self, call):
        if not self.capturable:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.needs_us = 0
        return call

    def empty_launch(self):
        return ()

    def wait(self):
        pass

    def alive(self):
        return not self.lost

    def free_bytes(self):
        return 1 << 30

    def release_memory(self):
        pass


def nothing():
    return ()


@contextlib.contextmanager
def pretended_torch():
    """What the measuring itself needs of PyTorch, for a machine that has none."""
    pretended = types.SimpleNamespace(
        __version__="pretended", OutOfMemoryError=MemoryError,
        set_float32_matmul_precision=lambda _: None,
        compiler=types.SimpleNamespace(reset=lambda: None))
    with mock.patch.object(peers, "torch", pretended):
        yield


class Gate(unittest.TestCase):
    def sampler(self, gpu, as_graph=False, synchronizes=False):
        with pretended_torch():
            sampler = peers.Sampler(gpu, peers.Workload(nothing, None, synchronizes), as_graph)
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

    def test_a_case_that_synchronizes_is_not_gated(self):
        gpu = FakeGpu(needs_us=1e9)
        self.assertEqual(self.sampler(gpu, synchronizes=True).flags, ["ungated"])
        self.assertEqual(gpu.sleeps, [0])


class Measuring(unittest.TestCase):
    CASES = [peers.Case("norm", f"test.{name}", "torch-eager", "f32", "n=1")
             for name in ("fine", "big", "broken", "wrong", "absent")]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rows_path = os.path.join(folder.name, "rows.csv")
        open(self.rows_path, "w", encoding="utf-8").close()
        self.gpu = FakeGpu()
        self.settings = types.SimpleNamespace(worker_run=1, seed=1, campaign="sitting", quiet=True)

    def build(self, case, _inputs):
        what = case.name.split(".")[1]
        if what == "big":
            raise MemoryError("Tried to allocate 80.00 GiB")
        if what == "broken":
            self.gpu.lost = True
            raise RuntimeError("an illegal access in /home/someone/file.cu\nand more")
        if what == "absent":
            raise RuntimeError("No available kernel. Aborting execution.")
        error = 1.0 if what == "wrong" else 1e-7
        return peers.Workload(nothing, lambda outputs: [(0.0, 0.0), (error, 1e-5)])

    def measure(self, cases, modes=("cold",)):
        instruments = [peers.Instrument(self.gpu, 0.005, 30, 0.02, mode) for mode in modes]
        names = {case.name for case in self.CASES}
        with pretended_torch(), contextlib.redirect_stderr(io.StringIO()) as errors, \
                mock.patch.dict(peers.BUILDERS, {name: self.build for name in names}), \
                mock.patch.dict(peers.WORK, {name: lambda *_: (1024, 0) for name in names}):
            for instrument in instruments:
                peers.measure_overhead(instrument)
            status = peers.measure_remaining(instruments, cases, self.settings, self.rows_path)
        self.said = errors.getvalue()
        return status, {row["case"].split(".")[1]: row for row in peers.read_rows(self.rows_path)}

    def test_a_fine_row_holds_every_number(self):
        status, rows = self.measure(self.CASES[:1])
        row = rows["fine"]
        self.assertEqual(status, 0)
        for column in peers.COLUMNS:
            if column not in ("flops", "tflop_per_s", "energy_mj", "compute_capability",
                              "memory_bytes", "power_limit_w", "driver", "cuda_runtime", "cpu",
                              "git", "host_us", "pci"):
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
        with mock.patch.object(peers, "sample_known", known):
            status, _ = self.measure(self.CASES[:1], ("cold", "dirty"))
        rows = peers.read_rows(self.rows_path)
        self.assertEqual((status, [(row["mode"], row["events_us"], row["overhead_us"],
                                    row["order"]) for row in rows]),
                         (0, [("cold", "1", "3", "1"), ("dirty", "2", "5", "2")]))
        taken = [(mode, len(list(group))) for mode, group in itertools.groupby(self.gpu.modes)]
        self.assertEqual([mode for mode, _ in taken], ["cold", "dirty"])
        for row, (_, samples) in zip(rows, taken):
            self.assertGreaterEqual(samples, int(row["samples"]) + int(row["warmup"]))
        self.measure(self.CASES[:1], ("cold", "dirty"))
        self.assertEqual(len(peers.read_rows(self.rows_path)), 2)  # nothing was left to do

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
        cases, status, processes = self.CASES, peers.STATUS_LOST, 0
        while status == peers.STATUS_LOST and processes < 5:
            self.gpu.lost = False
            status, rows = self.measure(cases)
            processes += 1
        self.assertEqual((status, processes, len(rows)), (1, 2, 5))
        self.assertEqual(sorted(int(row["order"]) for row in rows.values()), [1, 2, 3, 4, 5])
        self.assertEqual(rows["broken"]["status"], "failed")
        self.assertNotIn("someone", rows["broken"]["flags"])  # nobody's name gets committed

    def test_a_case_that_crashed_is_a_row_of_the_next_process(self):
        peers.write_text(peers.started_path(self.rows_path), f"1 {self.CASES[2].key} cold")
        status, rows = self.measure(self.CASES[:1] + self.CASES[2:3])
        self.assertEqual((status, rows["broken"]["status"], rows["fine"]["status"]),
                         (1, "failed", "ok"))
        self.assertIn("ended_the_process", rows["broken"]["flags"])
        self.assertEqual(peers.read_text(peers.started_path(self.rows_path)), "")

    def test_the_crash_of_one_run_is_not_the_next_runs(self):
        peers.write_text(peers.started_path(self.rows_path), f"2 {self.CASES[0].key} cold")
        status, rows = self.measure(self.CASES[:1])
        self.assertEqual((status, rows["fine"]["status"]), (0, "ok"))

    def test_an_error_after_the_measuring_is_a_row_too(self):
        with mock.patch.object(peers, "warnings_of", side_effect=ZeroDivisionError("by zero")):
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
            flags = peers.warnings_of(peers.Instrument(self.gpu, 0.5, 30, 1), case, columns)
            self.assertEqual("above-peak" in flags, bool(above))
        link = peers.Case("memcpy", "memcpy.h2d", "torch-pinned", "u8", "bytes=4096")
        self.assertEqual(peers.share_of_peak(self.gpu, link, columns), 0)

    def test_a_nan_never_passes(self):
        self.assertRaises(peers.Mismatch, peers.worst_check, [(math.nan, 1.0)])

    def test_the_worst_check_is_the_one_nearest_to_its_tolerance(self):
        self.assertEqual(peers.worst_check([(0.0, 0.0), (1e-6, 1e-5), (1e-4, 1e-2)]), (1e-6, 1e-5))


class Device(unittest.TestCase):
    """The instrument itself, over a library that only keeps a record."""

    H100 = types.SimpleNamespace(name="H100", major=9, minor=0, multi_processor_count=132,
                                 clock_rate=1980000, memory_clock_rate=2619000,
                                 memory_bus_width=5120, total_memory=85017493504,
                                 L2_cache_size=52428800, uuid="5b47b1d5-d6f5")

    def setUp(self):
        self.record, self.reached = [], False
        events = mock.Mock()
        events.query.side_effect = lambda: self.reached
        events.elapsed_time.return_value = 0.25
        for name in ("record", "query", "synchronize"):
            getattr(events, name).side_effect = self.note(name, getattr(events, name).side_effect)
        cuda = mock.Mock()
        cuda._sleep.side_effect = self.note("sleep")
        cuda.Event.return_value = events
        cuda.device_count.return_value = 2
        cuda.get_device_properties.return_value = self.H100
        pretended = mock.Mock(cuda=cuda, __version__="pretended")
        pretended.version.cuda = "13.0"
        pretended.zeros.return_value.zero_.side_effect = self.note("write")
        pretended.sum.side_effect = self.note_read
        patches = (mock.patch.object(peers, "torch", pretended),
                   mock.patch.object(peers.ctypes, "CDLL", side_effect=OSError))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.zeros = pretended.zeros
        self.cuda = cuda

    def note(self, name, then=None):
        def called(*arguments):
            self.record.append(name if name != "sleep" else (name, *arguments))
            return then() if then else None
        return called

    def note_read(self, tensor, dim, *, out):
        """A sum of all: reads its operand, writes one number."""
        self.assertIs(tensor, self.zeros.return_value)
        self.assertEqual(dim, 0)
        self.record.append("read")

    def test_a_sample_is_sleep_flush_start_work_stop(self):
        gpu = peers.Gpu("auto")
        for mode, flush in (("cold", "read"), ("dirty", "write")):
            self.record, gpu.mode = [], mode
            found = gpu.time(self.note("work"), 120)
            self.assertEqual(self.record, [("sleep", 240000), flush, "record", "work", "record",
                                           "query", "synchronize"])
            self.assertEqual(found, (250.0, True, None))

    def test_the_flush_is_twice_the_l2_and_its_result_one_number(self):
        peers.Gpu("auto")
        (swept, _), (total, _) = self.zeros.call_args_list
        self.assertEqual((4 * swept[0], total[0]), (2 * 52428800, ()))

    def test_a_start_that_came_before_everything_was_enqueued_is_not_hidden(self):
        gpu = peers.Gpu("1")
        self.reached = True
        self.assertFalse(gpu.time(self.note("work"), 0)[1])
        self.assertNotIn("sleep", self.record)

    def test_the_machine_as_the_suites_tell_it(self):
        gpu = peers.Gpu("GPU-5b47b1d5-d6f5")
        row = next(row for row in BASELINES if row["device"] == "NVIDIA H100 80GB HBM3")
        machine = gpu.machine()
        for column in ("compute_capability", "sm_count", "l2_bytes", "memory_bytes"):
            self.assertEqual(str(machine[column]), row[column])
        self.assertEqual((machine["uuid"], machine["driver"]), ("GPU-5b47b1d5-d6f5", None))
        self.assertEqual(set(gpu.nvml.state().values()), {None})
        self.assertEqual(gpu.nvml.throttle_flags(), [])

    def test_peaks_are_those_of_the_data_sheet(self):
        gpu = peers.Gpu("auto")
        self.assertAlmostEqual(gpu.peak_gb_per_s(), 3352, delta=1)
        self.assertAlmostEqual(gpu.peak_tflop_per_s("bf16"), 1070, delta=1)
        self.assertEqual(gpu.peak_tflop_per_s("u8"), 0)

    def test_a_device_that_is_not_there_is_refused(self):
        for wanted in ("2", "GPU-other"):
            self.assertRaises(peers.UsageError, peers.Gpu, wanted)
        self.cuda.is_available.return_value = False
        self.assertRaises(peers.UsageError, peers.Gpu, "auto")


class NvmlLibrary(unittest.TestCase):
    def open(self, **answers):
        library = types.SimpleNamespace(nvmlInit_v2=lambda: 0)
        library.nvmlDeviceGetHandleByUUID = lambda uuid, device: 0 if self.known(device) else 1
        library.nvmlSystemGetDriverVersion = self.driver
        for name, value in answers.items():
            setattr(library, name, self.answer(value))
        with mock.patch.object(peers.ctypes, "CDLL", return_value=library):
            return peers.Nvml("GPU-0")

    @staticmethod
    def known(device):
        device._obj.value = 1
        return True

    @staticmethod
    def driver(text, _length):
        text.value = b"580.159.04"
        return 0

    @staticmethod
    def answer(value):
        def function(_device, *arguments):
            if value is None:
                return 3  # not supported
            arguments[-1]._obj.value = value
            return 0
        return function

    def test_what_it_tells(self):
        nvml = self.open(nvmlDeviceGetClockInfo=1980, nvmlDeviceGetTemperature=40,
                         nvmlDeviceGetPowerUsage=137057, nvmlDeviceGetEnforcedPowerLimit=700000,
                         nvmlDeviceGetCurrentClocksThrottleReasons=0x44)
        self.assertEqual(nvml.state(), {"sm_mhz": 1980, "mem_mhz": 1980, "temperature_c": 40,
                                        "power_w": 137.057})
        self.assertEqual(nvml.watts("nvmlDeviceGetEnforcedPowerLimit"), 700.0)
        self.assertEqual(nvml.driver(), "580.159.04")
        self.assertEqual(nvml.throttle_flags(), ["throttle=power-cap", "throttle=hw-thermal"])

    def test_what_it_does_not_tell_is_none(self):
        nvml = self.open(nvmlDeviceGetClockInfo=None)
        self.assertEqual(set(nvml.state().values()), {None})
        self.assertEqual(nvml.throttle_flags(), [])


class Processes(unittest.TestCase):
    """The parent, with children that a function stands for."""

    def run_all(self, child, *arguments):
        self.commands = []

        def run(command, check):
            self.assertFalse(check)
            self.commands.append(command)
            settings = peers.make_parser().parse_args(command[2:])
            return types.SimpleNamespace(returncode=child(settings))
        settings = peers.make_parser().parse_args(list(arguments))
        with mock.patch.object(peers.subprocess, "run", run), \
                contextlib.redirect_stderr(io.StringIO()):
            return peers.run_all(settings, list(arguments))

    @staticmethod
    def leave_row(settings):
        with open(settings.worker_rows, "a", encoding="utf-8") as file:
            peers.write_rows(file, [{"run": settings.worker_run, "campaign": settings.campaign,
                                     "status": "ok"}], with_header=False)

    def test_three_fresh_processes_by_default_of_one_campaign(self):
        def child(settings):
            self.leave_row(settings)
            return 0
        rows, worst = self.run_all(child, "--suite", "norm")
        self.assertEqual(([row["run"] for row in rows], worst), (["1", "2", "3"], 0))
        self.assertEqual(len({row["campaign"] for row in rows}), 1)
        self.assertTrue(all(command[:2] == [sys.executable, SCRIPT] for command in self.commands))

    def test_a_run_goes_on_after_a_lost_context(self):
        statuses = iter([peers.STATUS_LOST, 1, 0])

        def child(settings):
            self.leave_row(settings)
            return next(statuses)
        rows, worst = self.run_all(child, "--runs", "2")
        self.assertEqual(([row["run"] for row in rows], worst), (["1", "1", "2"], 1))

    def test_starting_over_ends_where_it_does_not_help(self):
        _rows, worst = self.run_all(lambda settings: peers.STATUS_LOST, "--runs", "1")
        self.assertEqual((worst, len(self.commands)), (1, 1))

    def test_no_way_to_measure_ends_all_runs(self):
        _rows, worst = self.run_all(lambda settings: 2)
        self.assertEqual((worst, len(self.commands)), (2, 1))

    def test_a_child_that_crashed_in_a_case_is_followed_by_another(self):
        statuses = iter([-11, 1])

        def child(settings):
            peers.write_text(peers.started_path(settings.worker_rows), "1 a case")
            return next(statuses)
        _rows, worst = self.run_all(child, "--runs", "1")
        self.assertEqual((worst, len(self.commands)), (1, 2))

    def test_a_child_that_crashes_before_any_case_is_a_failure(self):
        _rows, worst = self.run_all(lambda settings: -11, "--runs", "2")
        self.assertEqual((worst, len(self.commands)), (1, 2))


TINY = {
    "attention.forward": "b=2 h=3 t=24 d=16 causal={0}",
    "attention.backward": "b=2 h=3 t=24 d=16 causal={0}",
    "block.forward": "b=2 t=12 d=32 h=2 ff=128 keep={0}",
    "block.backward": "b=2 t=12 d=32 h=2 ff=128",
    "bandwidth": "bytes=4096", "gemm.nn": "m=33 n=20 k=48",
    "embedding.forward": "n=48 v=100 c=24 t=12 tokens=zipf",
    "embedding.backward": "n=48 v=100 c=24 t=12 tokens=uniform",
    "ffn.forward": "n=40 d=32 ff=96 keep={0}", "ffn.backward": "n=40 d=32 ff=96",
    "cross_entropy": "n=24 v=101", "memcpy": "bytes=4096", "norm": "n=70 c=48",
    "optimizer": "d=16 ff=64 l=2 v=50 t=8 p=7392",
}
# What a CPU does not have; and compiling, which takes minutes.
NOT_HERE = ("torch-sdpa-cudnn", "torch-sdpa-efficient", "torch-pinned", "torch-compile")


def tiny_cases():
    cases = dict.fromkeys((case.suite, case.name, case.variant, case.dtype)
                          for case in AgainstTheSuites.CASES)
    for suite, name, variant, dtype in cases:
        params = TINY.get(name) or TINY.get(name.split(".")[0]) or TINY[suite]
        for flag in (0, 1) if "{0}" in params else (0,):
            yield peers.Case(suite, name, variant, dtype, params.format(flag))


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class OnTheCpu(unittest.TestCase):
    """The calls into PyTorch, measured by the stand-in for a GPU."""

    CASES = [case for case in tiny_cases() if case.variant not in NOT_HERE]
    INPUTS = peers.Inputs("cpu", 1)

    @classmethod
    def setUpClass(cls):
        peers.torch.set_num_threads(1)  # tiny work only waits for the others

    def build(self, case):
        return peers.BUILDERS[case.name](case, self.INPUTS)

    def test_every_case_runs_and_verifies(self):
        for case in self.CASES:
            with self.subTest(case.key):
                columns, reason = peers.measure_case(
                    peers.Instrument(FakeGpu(), 0.5, 3, 0.001), case, 1)
                self.assertEqual((columns["status"], reason), ("ok", ""))
                self.assertLessEqual(columns["max_error"], columns["tolerance"])

    def test_a_wrong_result_does_not_verify(self):
        in_place = ("optimizer.adamw", "optimizer.sgd", "optimizer.clip_scale")
        for case in self.CASES:
            if case.name in in_place:  # judged by what the next step makes of the tensors
                continue
            with self.subTest(case.key):
                workload = self.build(case)
                outputs = [output.detach().clone() for output in workload.run()]
                for output in outputs:
                    output.add_(1)
                self.assertRaises(peers.Mismatch, peers.verify, workload, outputs)

    def test_a_step_that_does_something_else_does_not_verify(self):
        for name, settings in (("optimizer.adamw", "ADAMW"), ("optimizer.sgd", "SGD")):
            case = next(case for case in self.CASES if case.name == name)
            workload = self.build(case)
            outputs = workload.run()
            other = dict(getattr(peers, settings), lr=1.1e-3)
            with mock.patch.object(peers, settings, other):
                self.assertRaises(peers.Mismatch, peers.verify, workload, outputs)

    def test_attention_is_causal_where_it_says_so(self):
        for causal in (0, 1):
            case = peers.Case("attention", "attention.forward", "torch-sdpa-math", "f32",
                              f"b=1 h=1 t=6 d=8 causal={causal}")
            q, k, v = peers.attention_inputs(case, self.INPUTS, 3)
            attend = peers.sdpa_attention(case)
            before = attend(q, k, v)
            v[..., -1, :] += 1
            changed = (attend(q, k, v) != before).any(dim=-1).flatten().tolist()
            self.assertEqual(changed, [not causal] * 5 + [True])

    def test_a_block_is_the_formula_spelled_out(self):
        """Sequence by sequence and head by head, against kernels/block.h."""
        torch = peers.torch
        case = peers.Case("block", "block.forward", "torch-eager", "f32", "b=2 t=5 d=8 h=2 ff=16")
        x, *p = (leaf.double() for leaf in peers.block_leaves(case, self.INPUTS, False))
        attend = peers.attention_of_head(True)

        def normed(rows, weight, bias):
            centred = rows - rows.mean(1, keepdim=True)
            return centred / (centred.pow(2).mean(1, keepdim=True) + 1e-5).sqrt() * weight + bias

        for sequence, found in zip(x, peers.transformer_block(2)(x, *p)):
            qkv = normed(sequence, p[0], p[1]) @ p[2].T + p[3]
            heads = [attend(*(qkv[:, 8 * which + 4 * head:][:, :4] for which in range(3)))
                     for head in range(2)]
            middle = sequence + torch.cat(heads, 1) @ p[4].T + p[5]
            pre = normed(middle, p[6], p[7]) @ p[8].T + p[9]
            gelu = 0.5 * pre * (1 + torch.tanh(math.sqrt(2 / math.pi)
                                               * (pre + 0.044715 * pre**3)))
            self.assertTrue(torch.allclose(found, middle + gelu @ p[10].T + p[11], atol=1e-12))

    def test_keep_decides_what_autograd_records(self):
        for keep in (0, 1):
            case = peers.Case("ffn", "ffn.forward", "torch-eager", "f32",
                              f"n=4 d=8 ff=16 keep={keep}")
            self.assertEqual(self.build(case).run()[0].requires_grad, bool(keep))

    def test_inputs_are_seeded_and_differ_by_stream(self):
        draw = lambda seed, stream: peers.Inputs("cpu", seed).normal(8, dtype="f32", stream=stream)
        self.assertTrue(peers.torch.equal(draw(1, 0), draw(1, 0)))
        self.assertFalse(peers.torch.equal(draw(1, 0), draw(1, 1)))
        self.assertFalse(peers.torch.equal(draw(1, 0), draw(2, 0)))


class Tap(unittest.TestResult):
    """Results as TAP lines; what went wrong stands behind them as comments."""

    def __init__(self):
        super().__init__()
        self.bad = []

    def startTest(self, test):
        super().startTest(test)
        self.bad = []

    def note(self, test, error):
        self.bad.append(f"{test}\n{self._exc_info_to_string(error, test)}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.note(subtest, err)

    def stopTest(self, test):
        skipped = [reason for skipped, reason in self.skipped if skipped is test]
        name = test.id().split(".", 1)[1].replace("test_", "", 1)
        if skipped:
            print(f"ok {self.testsRun} # SKIP {name}: {skipped[0]}")
        else:
            print(f"{'not ' if self.bad else ''}ok {self.testsRun} - {name}")
        for text in self.bad:
            print("\n".join(f"# {line}" for line in text.splitlines()))
        super().stopTest(test)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    print(f"1..{suite.countTestCases()}")
    result = Tap()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
