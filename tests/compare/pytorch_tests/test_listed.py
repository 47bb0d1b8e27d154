"""Which cases are taken from the suites' lists, and what the baselines say of them."""
import collections
import csv
import glob
import math
import os
import re
import stat
import tempfile
import unittest

from pytorch.cases import all_cases, cases_of, listed_rows, shape_of
from pytorch.errors import UsageError
from pytorch.options import SUITES
from pytorch.order import shuffled
from pytorch.parameters import parameter_shapes
from pytorch.rows import number_text
from pytorch.variants import VARIANTS

from . import ROOT
from .fixtures import BASELINES, COLUMNS, LISTS, WITHOUT_PEER, listed


class Listed(unittest.TestCase):
    def folder(self, program):
        """One in which the suite "norm" is this shell script."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "norm")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + program + "\n")
        os.chmod(path, stat.S_IRWXU)
        return folder.name

    def test_a_program_is_asked_for_every_dtype_and_the_seed(self):
        folder = self.folder("printf '[{\"case\": \"%s\", \"seed\": 7}]' \"$*\"")
        self.assertEqual(listed_rows(folder, "norm", 7), [
            {"case": "--list --json - --quiet --dtype f32,tf32,f16,bf16,u8 --seed 7", "seed": 7}])

    def test_what_is_no_list_is_refused_by_name(self):
        for program, words in (("exit 2", "norm --list"), ("echo no", "not what --list --json"),
                               ("echo '[{}]'", "not what --list --json"),
                               ("echo '[{\"seed\": 2}]'", "--seed 1: .*norm.* seed 2")):
            with self.assertRaisesRegex(UsageError, words):
                listed_rows(self.folder(program), "norm", 1)
        with self.assertRaisesRegex(UsageError, "--suites .*no program of the suite ffn"):
            listed_rows(self.folder("exit 0"), "ffn", 1)

    def test_a_real_program_lists_what_is_taken(self):
        """Layer norm reads x, weight and bias and writes y, mean and rstd."""
        folders = [os.path.join(ROOT, "build", backend) for backend in ("cpu", "cuda")]
        folder = next((f for f in folders if os.path.exists(os.path.join(f, "norm"))), None)
        if folder is None:
            self.skipTest("no suite is built")
        cases = [case for case in all_cases(folder, ["norm"], 1)
                 if case.name == "layernorm.forward" and case.dtype == "f32"]
        self.assertGreater(len(cases), 0)
        for case in cases:
            n, c = case.shape["n"], case.shape["c"]
            self.assertEqual(case.listed["bytes"], 4 * (2 * n * c + 2 * c) + 8 * n)
            self.assertEqual(list(case.listed), COLUMNS)

    def test_each_case_stands_once_in_each_variant_of_its_peers(self):
        rows = [listed("norm", "layernorm.forward", variant, "f32", "n=1 c=2", data)
                for variant, data in (("half", 10), ("naive", 20), ("best", 20))]
        rows.append(listed("norm", "no.peer", "naive", "f32", "n=1 c=2"))
        cases = cases_of("norm", rows)
        self.assertEqual([case.key for case in cases],
                         ["layernorm.forward torch-eager f32 n=1 c=2",
                          "layernorm.forward torch-compile f32 n=1 c=2",
                          "layernorm.forward torch-max-autotune f32 n=1 c=2"])
        self.assertEqual({case.listed["bytes"] for case in cases}, {20})

    def test_a_whole_model_has_cudnn_in_halves_only(self):
        params = "size=small b=4 t=128 d=768 h=12 ff=3072 l=12 v=10000 tied=0"
        # Nor is there reduce-overhead for a backward pass that is run again and again.
        for name, counts in (("step", (6, 6, 9)), ("backward", (5, 5, 8))):
            rows = [listed("model", f"model.{name}", "best", dtype, params)
                    for dtype in ("f32", "tf32", "f16", "bf16")]
            found = collections.Counter(case.dtype for case in cases_of("model", rows))
            self.assertEqual(found, dict(zip(("f32", "tf32", "bf16"), counts)))

    def test_attention_in_f32_has_no_backends_for_halves(self):
        rows = [listed("attention", "attention.forward", "naive", dtype, "t=1")
                for dtype in ("f32", "tf32", "f16")]
        self.assertEqual(collections.Counter(case.dtype for case in cases_of("attention", rows)),
                         {"f32": 2, "tf32": 1, "f16": 4})


class AgainstTheBaselines(unittest.TestCase):
    CASES = all_cases(LISTS, SUITES, 1)

    def test_there_are_baselines(self):
        self.assertGreater(len(BASELINES), 1000)

    def test_columns_of_older_files_are_still_there(self):
        for path in glob.glob(os.path.join(ROOT, "baselines", "*", "*.csv")):
            with open(path, encoding="utf-8") as file:
                self.assertLessEqual(set(next(csv.reader(file))), set(COLUMNS))

    def test_every_case_with_a_peer_is_a_suites(self):
        known = {(row["suite"], row["case"]) for row in BASELINES}
        measured = {suite for suite, _ in known}
        peers = {(suite, name) for suite in VARIANTS if suite in measured
                 for name in VARIANTS[suite]}
        self.assertEqual(peers - known, set())

    def test_no_operation_of_the_suites_is_missing(self):
        found = {(case.suite, case.name, case.dtype, case.params) for case in self.CASES}
        wanted = {(row["suite"], row["case"], row["dtype"], row["params"])
                  for row in BASELINES
                  if row["suite"] in SUITES and row["case"] not in WITHOUT_PEER}
        self.assertEqual(wanted, found)

    def test_parameter_lists_have_the_suites_number_of_elements(self):
        for row in BASELINES:
            if row["suite"] == "optimizer":
                shape = shape_of(row["params"])
                sizes = parameter_shapes(shape)
                self.assertEqual(len(sizes), 12 * shape["l"] + 5)
                self.assertEqual(sum(map(math.prod, sizes)), shape["p"])

    def test_numbers_are_written_as_the_suites_write_them(self):
        for row in BASELINES[::7]:
            for column in ("median_us", "mean_us", "stddev_us", "gb_per_s", "max_error"):
                if row[column]:
                    self.assertEqual(number_text(float(row[column])), row[column])

    def test_the_order_is_the_suites(self):
        """memcpy queues these groups a size; some are empty on a GPU or under a --filter."""
        everywhere = ("memcpy.h2d", "memcpy.d2h", "memcpy.d2d", "memcpy.h2h", "memcpy.memset")
        further = ("memcpy.bidirectional", "memcpy.overlap", "memcpy.peer", "memcpy.peer staged")
        sizes = sorted({case.params for case in self.CASES if case.suite == "memcpy"},
                       key=lambda params: shape_of(params)["bytes"])
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
            wanted = [group for group in shuffled(groups, seed, run) if group in measured]
            self.assertEqual(measured, wanted)
        self.assertGreaterEqual(len(runs), 5)


class PeerBaselines(unittest.TestCase):
    """baselines/<device>/torch/, where PyTorch's rows are, and the suites' beside them."""

    def test_they_are_of_the_suite_that_names_them_and_of_the_device(self):
        for path in glob.glob(os.path.join(ROOT, "baselines", "*", "torch", "*.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.assertGreater(len(rows), 0)
            for row in rows:
                self.assertEqual(f"{row['suite']}.csv", os.path.basename(path))
                device = re.sub("[^a-z0-9]+", "-", row["device"].lower()).rstrip("-")
                self.assertEqual(device, path.split(os.sep)[-3])

    def test_a_suites_row_stands_beside_one_of_pytorch_in_its_sitting(self):
        for path in glob.glob(os.path.join(ROOT, "baselines", "*", "torch", "*.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            for_each = {True: set(), False: set()}
            for row in rows:
                for_each[row["variant"].startswith("torch-")].add(
                    tuple(row[name] for name in ("case", "dtype", "params", "campaign", "uuid")))
            self.assertFalse(for_each[False] - for_each[True])

    def test_the_suites_files_hold_none_of_pytorch(self):
        for path in glob.glob(os.path.join(ROOT, "baselines", "*", "*.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                self.assertFalse([row for row in csv.DictReader(file)
                                  if row["variant"].startswith("torch-")])
