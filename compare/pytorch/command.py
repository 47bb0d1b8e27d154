"""The program: what is asked for, measured in fresh processes, written and printed."""
import sys

from .agree import agree
from .cases import all_cases
from .errors import STATUS_FAILED, STATUS_OK, STATUS_USAGE, UsageError, say
from .kernels import beside
from .options import SUITES, make_parser
from .processes import run_all
from .rows import is_failure, try_path, write_csv
from .table import print_table
from .worker import work


def finish(settings, rows, worst):
    """Writes and prints; the exit status."""
    if not rows:
        return max(worst, STATUS_USAGE)  # an empty file would replace a good one
    if not settings.quiet:
        print_table(rows, sys.stderr if settings.csv == "-" else sys.stdout)
    if settings.csv:
        try:
            write_csv(settings.csv, rows)
        except OSError as error:
            say(f"--csv '{settings.csv}': {error.strerror}")
            return STATUS_USAGE
    failed = worst != STATUS_OK or any(is_failure(row["status"]) for row in rows)
    return STATUS_FAILED if failed else STATUS_OK


def refuse_unknown_lines(settings, listed):
    """Whatever --suite leaves out, a line of --cases is a case of some suite."""
    others = [suite for suite in SUITES if suite not in settings.suite]
    unknown = settings.cases - {case.line for case in listed}
    if unknown:
        unknown -= {case.line for case in all_cases(settings.suites, others, settings.seed)}
    if unknown:
        raise UsageError(f"--cases: there is no case '{min(unknown)}'")


def refuse_another_backend(settings, cases):
    listed = cases[0].listed["backend"]
    if listed == "cpu" and settings.device != "cpu":
        raise UsageError(f"--suites '{settings.suites}': its cases are the CPU's: --device cpu "
                         "measures them, make BACKEND=cuda builds the GPU's")
    if listed != "cpu" and settings.device == "cpu":
        raise UsageError(f"--suites '{settings.suites}': its cases are a GPU's: make BACKEND=cpu "
                         "builds the CPU's")
    if settings.kernels and settings.device == "cpu":
        raise UsageError("--kernels are a GPU's: not with --device cpu")


def chosen_cases(settings):
    listed = all_cases(settings.suites, settings.suite, settings.seed)
    if settings.cases is not None:
        refuse_unknown_lines(settings, listed)
    cases = [case for case in listed
             if case.dtype in settings.dtype and case.variant not in settings.without
             and (settings.cases is None or case.line in settings.cases)]
    if not cases:
        raise UsageError("there is no case to measure")
    chosen = [case for case in cases if not settings.filter or settings.filter.search(case.key)]
    if not chosen:
        raise UsageError(f"--filter '{settings.filter.pattern}' matches none of the "
                         f"{len(cases)} cases")
    return chosen


def main(arguments):
    try:
        settings = make_parser().parse_args(arguments)
        cases = chosen_cases(settings)
        if settings.list:
            print("\n".join(case.key for case in cases))
            return STATUS_OK
        if settings.gradients:
            return agree(settings, cases)
        refuse_another_backend(settings, cases)
        if settings.kernels:
            return beside(settings, cases)
        if settings.worker_run:
            return work(settings, cases)
        if settings.csv is not None and settings.csv != "-":
            try_path(settings.csv)
    except UsageError as error:
        say(error)
        return STATUS_USAGE
    except KeyboardInterrupt:  # of a run: its parent got it too, and keeps the rows so far
        return STATUS_FAILED
    return finish(settings, *run_all(settings, arguments, cases[0].listed))
