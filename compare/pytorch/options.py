"""The command line."""
import argparse
import os
import re
import time

from .cases import DTYPES
from .errors import PROGRAM, UsageError
from .measure import MODES
from .order import MASK64
from .sampler import MAX_SAMPLES
from .variants import VARIANTS, all_variants

SUITES = list(VARIANTS)
ALL_VARIANTS = all_variants()
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(message)

    def parse_args(self, *arguments):
        """With what one option says of another's default."""
        settings = super().parse_args(*arguments)
        on_cpu = settings.device == "cpu"
        if settings.threads is not None and not on_cpu:
            self.error("--threads is the CPU's: --device cpu")
        settings.threads = settings.threads or processors()
        settings.suites = settings.suites or os.path.join(ROOT, "build",
                                                          "cpu" if on_cpu else "cuda")
        return settings


def whole_number(least, most):
    def parse(text):
        if not re.fullmatch("[0-9]+", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"'{text}': wants a whole number from {least} to {most}")
        return int(text)
    return parse


def positive_number(most):
    def parse(text):
        try:
            value = float(text)
        except ValueError:
            value = 0
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"'{text}': wants a number above 0 and up to {most:g}")
        return value
    return parse


def list_of(words):
    def parse(text):
        chosen = text.split(",")
        if not set(chosen) <= set(words):
            raise argparse.ArgumentTypeError(f"'{text}': wants a list of {','.join(words)}")
        return [word for word in words if word in chosen]
    return parse


def case_list(path):
    """The lines of a file, which may have comments behind a # and empty lines."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = {line.split("#")[0].strip() for line in file} - {""}
    except OSError as error:
        raise argparse.ArgumentTypeError(f"'{path}': {error.strerror}")
    return lines


def readable_file(path):
    try:
        with open(path, "rb"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(f"'{path}': {error.strerror}")


def regular_expression(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}")


def device_name(text):
    if (text not in ("auto", "cpu") and not text.startswith("GPU-")
            and not re.fullmatch("[0-9]+", text)):
        raise argparse.ArgumentTypeError(f"'{text}': wants auto, cpu, a number or a GPU's UUID")
    return text


def processors():
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def campaign_name(text):
    if not 1 <= len(text) <= 63:
        raise argparse.ArgumentTypeError(f"'{text}': wants 1 to 63 characters")
    return text


def add_effort(add):
    add("--precision", metavar="PERCENT", type=positive_number(100), default=0.5,
        help="wanted width of the median's 95 %% interval (default 0.5)")
    add("--min-samples", metavar="N", type=whole_number(1, MAX_SAMPLES), default=30,
        help="samples of a case at least (default 30)")
    add("--max-time", metavar="SECONDS", type=positive_number(86400), default=1.0,
        help="time of a case's samples at most (default 1)")
    add("--runs", metavar="N", type=whole_number(1, 1000), default=3,
        help="repeat in N fresh processes (default 3)")
    add("--seed", metavar="N", type=whole_number(0, MASK64), default=1,
        help="for the inputs and the order of the cases (default 1)")


def make_parser():
    parser = Parser(prog=PROGRAM, allow_abbrev=False,
                    description="Measures the suites' cases on PyTorch, on the CPU on numpy too.",
                    epilog="exit status: 0 no case failed, 1 some case did, 2 bad "
                           "usage or no way to measure")
    add = parser.add_argument
    add("--suite", metavar="LIST", type=list_of(SUITES), default=SUITES,
        help="of " + ",".join(SUITES) + " (default all)")
    add("--suites", metavar="FOLDER",
        help="where the suites' programs are, which list the cases, or files SUITE.json of what "
             "they printed with --list --json - (default build/cuda or, with --device cpu, "
             "build/cpu beside compare/)")
    add("--dtype", metavar="LIST", type=list_of(DTYPES), default=["f32", "bf16", "u8"],
        help="of f32,tf32,f16,bf16,u8 (default f32,bf16,u8)")
    add("--list", action="store_true", help="print the cases and exit")
    add("--cases", metavar="FILE", type=case_list,
        help="only those of the file's lines, each a case, a dtype and params")
    add("--without", metavar="LIST", type=list_of(ALL_VARIANTS), default=[],
        help="variants to leave out: of " + ",".join(ALL_VARIANTS))
    add("--filter", metavar="REGEX", type=regular_expression,
        help="only cases whose --list line matches (Python's syntax)")
    add("--weights", metavar="FILE", type=readable_file,
        help="a safetensors file with the parameters of the model that is measured")
    add("--gradients", metavar="FILE", type=readable_file,
        help="what the model suite wrote of the --weights: held against PyTorch's, not measured")
    add("--kernels", metavar="FILE", type=readable_file,
        help="a suite's --kernels-csv: prints it beside what PyTorch's profiler sees")
    add("--device", metavar="auto|N|UUID|cpu", type=device_name, default="auto",
        help="what to measure (auto: the first GPU)")
    add("--threads", metavar="N", type=whole_number(1, 1024),
        help="of --device cpu (default: one a processor)")
    add("--mode", metavar="LIST", type=list_of(MODES), default=[MODES[0]],
        help="of " + ",".join(MODES) + ": what the L2 flush in front of a sample does, read or "
             "write (default cold)")
    add_effort(add)
    add("--campaign", metavar="NAME", type=campaign_name,
        default=time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        help="what the CSV calls this sitting (default: its start)")
    add("--csv", metavar="FILE|-", help="write the rows there; - is standard output")
    add("--quiet", action="store_true", help="no table, no progress")
    add("--worker-run", type=int, help=argparse.SUPPRESS)
    add("--worker-rows", help=argparse.SUPPRESS)
    return parser
