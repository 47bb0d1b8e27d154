"""The parent, with children that a function stands for."""
import contextlib
import io
import sys
import types
import unittest
from unittest import mock

from pytorch import processes
from pytorch.errors import STATUS_LOST
from pytorch.options import make_parser
from pytorch.rows import append_row
from pytorch.worker import started_path, write_text

from .fixtures import COLUMNS, PROGRAM


class Processes(unittest.TestCase):
    """The parent, with children that a function stands for."""

    def run_all(self, child, *arguments):
        self.commands = []

        def run(command, check, env):
            self.assertFalse(check)
            self.commands.append(command)
            self.environment = env
            settings = make_parser().parse_args(command[2:])
            return types.SimpleNamespace(returncode=child(settings))
        settings = make_parser().parse_args(list(arguments))
        with mock.patch.object(processes.subprocess, "run", run), \
                contextlib.redirect_stderr(io.StringIO()):
            return processes.run_all(settings, list(arguments), COLUMNS)

    @staticmethod
    def leave_row(settings):
        append_row(settings.worker_rows, {"run": settings.worker_run, "status": "ok",
                                          "campaign": settings.campaign})

    def test_three_fresh_processes_by_default_of_one_campaign(self):
        def child(settings):
            self.leave_row(settings)
            return 0
        rows, worst = self.run_all(child, "--suite", "norm")
        self.assertEqual(([row["run"] for row in rows], worst), (["1", "2", "3"], 0))
        self.assertEqual(len({row["campaign"] for row in rows}), 1)
        self.assertTrue(all(command[:2] == [sys.executable, PROGRAM] for command in self.commands))

    def test_on_the_cpu_each_library_is_told_the_threads_before_it_starts_any(self):
        self.run_all(lambda settings: 2, "--device", "cpu", "--threads", "3")
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            self.assertEqual(self.environment[name], "3")
        self.assertEqual(self.environment["MALLOC_MMAP_MAX_"], "0")
        self.run_all(lambda settings: 2)
        self.assertIsNone(self.environment)

    def test_a_run_goes_on_after_a_lost_context(self):
        statuses = iter([STATUS_LOST, 1, 0])

        def child(settings):
            self.leave_row(settings)
            return next(statuses)
        rows, worst = self.run_all(child, "--runs", "2")
        self.assertEqual(([row["run"] for row in rows], worst), (["1", "1", "2"], 1))

    def test_starting_over_ends_where_it_does_not_help(self):
        _rows, worst = self.run_all(lambda settings: STATUS_LOST, "--runs", "1")
        self.assertEqual((worst, len(self.commands)), (1, 1))

    def test_no_way_to_measure_ends_all_runs(self):
        _rows, worst = self.run_all(lambda settings: 2)
        self.assertEqual((worst, len(self.commands)), (2, 1))

    def test_a_child_that_crashed_in_a_case_is_followed_by_another(self):
        statuses = iter([-11, 1])

        def child(settings):
            write_text(started_path(settings.worker_rows), "1 a case")
            return next(statuses)
        _rows, worst = self.run_all(child, "--runs", "1")
        self.assertEqual((worst, len(self.commands)), (1, 2))

    def test_a_child_that_crashes_before_any_case_is_a_failure(self):
        _rows, worst = self.run_all(lambda settings: -11, "--runs", "2")
        self.assertEqual((worst, len(self.commands)), (1, 2))
