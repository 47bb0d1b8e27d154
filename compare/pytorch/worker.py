"""What one of the fresh processes does: rows, one after the other, into a file."""
import contextlib
import gc
import itertools
import sys
import time

from .errors import STATUS_FAILED, STATUS_LOST, STATUS_OK, UsageError, say
from .measure import Instrument, measure_case, measure_overhead, reason_of, with_reason
from .order import shuffled
from .rows import append_row, is_failure, key_of, number_text, read_rows
from .sampler import MAX_SAMPLES, WARMUP_RUNS

# What a row takes from the suite's list as it is.
LISTED = ("schema", "suite", "case", "dtype", "params", "cpu", "gpubench_version", "git", "seed")


def identity_columns(case, mode):
    backend = case.listed["backend"]
    device = {"device": case.listed["cpu"]} if backend == "cpu" else {}
    return dict({column: case.listed[column] for column in LISTED}, variant=case.variant,
                backend=backend, mode=mode, **device)


def compiler_text(version):
    python = ".".join(map(str, sys.version_info[:3]))
    return f"PyTorch {version} with Python {python}"


def settings_text(instrument):
    """What decides how long a case is measured, in the suites' words."""
    return (f"precision={number_text(100 * instrument.precision)} "
            f"max-time={number_text(instrument.max_time_s)} "
            f"min-samples={instrument.min_samples} max-samples={MAX_SAMPLES} warmup={WARMUP_RUNS}")


def timestamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def measure_remaining(instruments, cases, settings, rows_path):
    """Appends a row for each case and mode that this run has none of. STATUS_LOST if the
    context went."""
    run, seed, gpu = settings.worker_run, settings.seed, instruments[0].gpu
    done = {key_of(row): row for row in read_rows(rows_path) if row["run"] == str(run)}
    failed = any(is_failure(row["status"]) for row in done.values())
    fixed = dict(gpu.machine(), compiler=compiler_text(gpu.library_version()),
                 campaign=settings.campaign, run=run)
    crashed = read_text(started_path(rows_path))  # or "": the process before ended in no case
    for case, instrument in itertools.product(shuffled(cases, seed, run), instruments):
        identity = identity_columns(case, instrument.mode)
        key = key_of(identity)
        if key in done:
            continue
        if crashed == f"{run} {key}":
            reason = "ended_the_process_that_measured_it"
            columns = with_reason({"status": "failed", "flags": []}, reason)
        else:
            write_text(started_path(rows_path), f"{run} {key}")
            columns, reason = measure_case(instrument, case)
        done[key] = row = dict(fixed, **identity, **columns, order=len(done) + 1,
                               runs_on=gpu.runs_on(case),
                               settings=settings_text(instrument), timestamp=timestamp())
        append_row(rows_path, row)
        write_text(started_path(rows_path), "")
        report_progress(settings, row, reason)
        failed = failed or is_failure(row["status"])
        if reason and not gpu.alive():
            return STATUS_LOST
    return STATUS_FAILED if failed else STATUS_OK


def started_path(rows_path):
    """Where a process notes which case it has begun, for the one that comes after a crash."""
    return rows_path + ".started"


def read_text(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def report_progress(settings, row, reason):
    if reason:
        say(f"{key_of(row)}: {row['status']}: {reason}")
    elif not settings.quiet:
        say(f"run {row['run']}: {key_of(row)}: {row['median_us']:.3f} us")


def open_device(settings):
    if settings.device == "cpu":
        from .cpu import Cpu
        return Cpu(settings.threads)
    from .gpu import Gpu
    return Gpu(settings.device)


def work(settings, cases):
    """The exit status. Only here, in a process that measures, is PyTorch loaded."""
    try:
        from .works import builder
    except (ImportError, OSError) as error:  # not there, or not one of its libraries
        raise UsageError(f"cannot measure without PyTorch (pip install torch): {error}") from error
    try:
        gpu = open_device(settings)
        build = builder(gpu.device, settings.seed, settings.weights)
        instruments = [Instrument(gpu, build, settings.precision / 100, settings.min_samples,
                                  settings.max_time, mode) for mode in settings.mode]
        for instrument in instruments:
            measure_overhead(instrument)
    except RuntimeError as error:  # CUDA's
        raise UsageError(f"--device {settings.device}: {reason_of(error)}") from error
    gc.freeze()  # collecting between cases need not look at all of PyTorch again
    return measure_remaining(instruments, cases, settings, settings.worker_rows)
