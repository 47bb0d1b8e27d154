"""--kernels: what PyTorch's own profiler sees of a case, beside the suite's --kernels-csv."""
import csv
import json
import os
import tempfile

from .errors import STATUS_OK, UsageError, say
from .variants import GRAPHS

TOP = 5
NEEDED = ("kernels_schema", "case", "variant", "dtype", "params", "kind", "name", "launches",
          "total_us")
# What the trace of PyTorch's profiler calls them.
KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}


class Seen:
    """What one execution launched: by kind how often, by kernel its microseconds."""

    def __init__(self):
        self.launches = dict.fromkeys(("kernel", "copy", "memset"), 0)
        self.us = {}

    def add(self, kind, name, launches, us):
        self.launches[kind] += launches
        if kind == "kernel":
            self.us[name] = self.us.get(name, 0) + us

    def total_us(self):
        return sum(self.us.values())

    def top(self):
        """(share, name) of the kernels that took longest."""
        longest = sorted(self.us.items(), key=lambda item: -item[1])[:TOP]
        return [(us / self.total_us(), name) for name, us in longest]


def read_suite(path):
    """{(the case's line, variant): Seen} of a --kernels-csv file."""
    seen = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = set(NEEDED) - set(reader.fieldnames or ())
            if missing:
                raise UsageError(f"--kernels '{path}': no column '{min(missing)}': is it a file of "
                                 "--kernels-csv?")
            for row in reader:
                if row["kind"] in KINDS.values():
                    line = f"{row['case']} {row['dtype']} {row['params']}"
                    case = seen.setdefault((line, row["variant"]), Seen())
                    case.add(row["kind"], row["name"], int(row["launches"]), float(row["total_us"]))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--kernels '{path}': {error}") from error
    if not seen:
        raise UsageError(f"--kernels '{path}': no kernel there")
    return seen


def read_trace(events):
    """Seen, of the events that torch.profiler exports."""
    seen = Seen()
    for event in events:
        kind = KINDS.get(event.get("cat"))
        if kind and event.get("ph") == "X":
            seen.add(kind, event["name"], 1, float(event["dur"]))
    return seen


def profiled(gpu, call, before):
    """One call of many alike, when all that happens once has happened."""
    from torch.profiler import ProfilerActivity, profile
    for _ in range(3):
        before()
        call()
    before()
    gpu.wait()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
        gpu.wait()
    file, path = tempfile.mkstemp(suffix=".json")
    os.close(file)
    try:
        seen.export_chrome_trace(path)
        with open(path, encoding="utf-8") as trace:
            return read_trace(json.load(trace)["traceEvents"])
    finally:
        os.unlink(path)


def look(gpu, build, case):
    gpu.allow_tf32(case.dtype == "tf32")
    with gpu.context():
        workload = build(case)
        workload.once()
        call = workload.run
        if case.variant in GRAPHS:
            for _ in range(2):
                workload.once()
            gpu.wait()
            call = gpu.capture(workload.run)
        return profiled(gpu, call, workload.before)


def lines_of(variant, seen):
    counts = seen.launches
    yield (f"  {variant}: {counts['kernel']} kernels, {counts['copy']} copies, "
           f"{counts['memset']} memsets; {seen.total_us():.1f} us of kernels")
    for share, name in seen.top():
        yield f"    {100 * share:5.1f} %  {name[:90]}"


def print_beside(line, suites, torches):
    """The suite's variants of a case, then PyTorch's."""
    print(line)
    for variant, seen in suites + torches:
        print("\n".join(lines_of(variant, seen)))
    eager = [seen.launches["kernel"] for variant, seen in torches if variant == "torch-eager"]
    graph = [seen.launches["kernel"] for variant, seen in torches if variant == "torch-graph"]
    if eager and graph:
        print(f"  torch-graph replays {graph[0]} kernels, torch-eager launches {eager[0]}")


def beside(settings, cases):
    """Prints them case by case; the exit status."""
    suites = read_suite(settings.kernels)
    lines = {line for line, _ in suites}
    cases = [case for case in cases if case.line in lines]
    if not cases:
        raise UsageError(f"--kernels '{settings.kernels}': none of its cases was chosen")
    try:
        from .gpu import Gpu
        from .works import builder
    except (ImportError, OSError) as error:
        raise UsageError(f"cannot look without PyTorch (pip install torch): {error}") from error
    gpu = Gpu(settings.device)
    build = builder(gpu.device, settings.seed, settings.weights)
    torches = {}
    for case in cases:
        try:
            torches.setdefault(case.line, []).append((case.variant, look(gpu, build, case)))
        except RuntimeError as error:  # one variant less
            say(f"{case.key}: {str(error).splitlines()[0]}")
    for line, seen in torches.items():
        print_beside(line, [(variant, suites[key, variant]) for key, variant in suites
                            if key == line], seen)
    return STATUS_OK
