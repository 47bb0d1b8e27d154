"""Fresh processes, one after the other: what they measured, whatever became of them."""
import os
import signal
import subprocess
import sys
import tempfile

from .errors import STATUS_FAILED, STATUS_LOST, STATUS_OK, STATUS_USAGE, say
from .rows import read_rows, start_rows
from .worker import read_text, started_path

FOLDER = os.path.dirname(os.path.abspath(__file__))


def environment(settings):
    """Libraries on the CPU take their number of threads from here before they start any. And
    malloc keeps its memory: a result that is allocated in each run would else be paid for in
    page faults, which the suites' variants, whose results are there before, have none of."""
    if settings.device != "cpu":
        return None
    threads = {f"{name}_NUM_THREADS": str(settings.threads)
               for name in ("OMP", "MKL", "OPENBLAS")}
    return dict(os.environ, MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 40), **threads)


def run_once(settings, arguments, run, rows_path):
    """The exit status of one run, which takes more than one process if the context is lost."""
    command = [sys.executable, FOLDER, *arguments,
               f"--campaign={settings.campaign}", f"--worker-run={run}",
               f"--worker-rows={rows_path}"]
    while True:
        before = progress(rows_path)
        status = subprocess.run(command, check=False, env=environment(settings)).returncode
        if 0 <= status < STATUS_LOST:
            return status
        say(f"run {run}: ended by {signal.Signals(-status).name}" if status < 0
            else "the CUDA context is lost")
        if progress(rows_path) == before:  # starting over would never end
            say("the GPU does not recover: the other cases are not measured")
            return STATUS_FAILED
        say("going on in a fresh process")


def progress(rows_path):
    return os.path.getsize(rows_path), read_text(started_path(rows_path))


def run_all(settings, arguments, columns):
    """The rows of all runs, and the worst status. What some runs measured is kept though
    others could not, or were interrupted."""
    worst = STATUS_OK
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        rows_path = os.path.join(folder, "rows.csv")
        start_rows(rows_path, columns)
        try:
            for run in range(1, settings.runs + 1):
                worst = max(worst, run_once(settings, arguments, run, rows_path))
                if worst >= STATUS_USAGE:
                    break
        except KeyboardInterrupt:
            worst = STATUS_FAILED
        return read_rows(rows_path), worst
