"""The command line, from outside."""
import contextlib
import io
import json
import os
import re
import tempfile
import unittest

from pytorch.command import main
from pytorch.options import make_parser

from . import ROOT
from .fixtures import HAS_TORCH, LISTS, listed, run_program


def has_gpu():
    import torch
    return torch.cuda.is_available()


class CommandLine(unittest.TestCase):
    def refused(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            status = main(["--suites", LISTS, *arguments])
        self.assertEqual(status, 2, arguments)
        self.assertTrue(errors.getvalue().startswith("pytorch: "))
        return errors.getvalue()

    def test_bad_values_are_refused_by_name(self):
        for option, value in (("--runs", "0"), ("--runs", "x"), ("--runs", "1001"),
                              ("--max-time", "0"), ("--max-time", "nan"), ("--seed", "-1"),
                              ("--suite", "attention,none"), ("--dtype", "f8"),
                              ("--filter", "("), ("--device", "gpu"), ("--campaign", ""),
                              ("--threads", "0"), ("--threads", "2"),
                              ("--precision", "101"), ("--without", "torch-none"),
                              ("--min-samples", "1.5"), ("--mode", "hot"),
                              ("--mode", "cold,graph"), ("--weights", "/no/such")):
            self.assertIn(option, self.refused(f"{option}={value}", "--list"))

    def test_unknown_options_are_refused(self):
        self.assertIn("--frobnicate", self.refused("--frobnicate"))
        self.assertIn("--run", self.refused("--run", "3"))

    def test_a_filter_that_matches_nothing_is_refused(self):
        self.assertIn("matches none of the", self.refused("--filter", "no such case"))
        self.assertIn("no case", self.refused("--suite", "norm", "--dtype", "u8"))

    def test_list_obeys_suite_dtype_and_filter(self):
        result = run_program("--suite", "attention,norm", "--dtype", "f32", "--filter",
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
        lines = run_program("--cases", cases, "--list").stdout.splitlines()
        parts = [line.split(" ", 2) for line in lines]
        self.assertEqual({f"{name} {rest}" for name, _variant, rest in parts}, wanted)
        fewer = run_program("--cases", cases, "--without", "torch-compile,torch-sdpa-math",
                            "--list").stdout.splitlines()
        self.assertEqual(fewer, [line for line in lines
                                 if not re.search("torch-compile |torch-sdpa-math ", line)])

    def test_a_file_of_cases_that_is_not_one_is_refused(self):
        self.assertIn("No such file", self.refused("--cases", "/no/such", "--list"))
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("# none\nnorm.forward f32 n=1\n")
            file.flush()
            self.assertIn("'norm.forward f32 n=1'", self.refused("--cases", file.name, "--list"))

    def test_lines_of_other_suites_are_no_mistake(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("memcpy.d2d u8 bytes=4096\nlayernorm.forward f32 n=512 c=768\n")
            file.flush()
            lines = run_program("--suite", "memcpy", "--cases", file.name, "--list").stdout
        self.assertEqual(lines, "memcpy.d2d torch-eager u8 bytes=4096\n")

    def test_cases_of_the_cpu_are_not_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            row = listed("norm", "layernorm.forward", "naive", "f32", "n=1 c=8", backend="cpu")
            with open(os.path.join(folder, "norm.json"), "w", encoding="utf-8") as file:
                json.dump([row], file)
            self.assertIn("are the CPU's", self.refused("--suites", folder, "--suite", "norm"))

    def test_cases_of_a_gpu_are_not_measured_on_the_cpu(self):
        self.assertIn("are a GPU's", self.refused("--device", "cpu"))

    def test_where_the_cases_are_listed_follows_from_the_device(self):
        for device, folder in (("auto", "cuda"), ("1", "cuda"), ("cpu", "cpu")):
            settings = make_parser().parse_args(["--device", device])
            self.assertEqual(settings.suites, os.path.join(ROOT, "build", folder))
        self.assertEqual(make_parser().parse_args(["--device", "cpu"]).threads,
                         len(os.sched_getaffinity(0)))

    def test_help_names_every_option(self):
        text = run_program("--help").stdout
        for option in ("--suite", "--filter", "--runs", "--csv", "--max-time", "--list",
                       "--device", "--seed", "--suites"):
            self.assertIn(option, text)
        self.assertNotIn("worker", text)

    def test_without_a_gpu_nothing_is_written(self):
        if HAS_TORCH and has_gpu():
            self.skipTest("there is a GPU")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.csv")
            result = run_program("--suite", "memcpy", "--csv", path)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, "pytorch: .*(PyTorch|GPU)")
            self.assertEqual(os.listdir(folder), [])
