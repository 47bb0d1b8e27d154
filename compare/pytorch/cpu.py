"""The CPU as an instrument: threads, flushes of its caches, the host's clock."""
import contextlib
import ctypes
import gc
import glob
import os
import re
import time

import torch

from .measure import MODES
from .pressure import Pressure
from .variants import NUMPY_VARIANTS

MOST_SWEEP_BYTES = 64 << 20
SMALL_BYTES = 4 << 20  # of a case that the suites flush out of every core, line by line


def last_cache_bytes(folder="/sys/devices/system/cpu/cpu0/cache"):
    """0 where nobody says."""
    sizes = [0]
    for path in glob.glob(os.path.join(folder, "index*", "size")):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            found = re.match("([0-9]+)K", file.read())
            sizes.append(int(found.group(1)) << 10 if found else 0)
    return max(sizes)


def sweep_bytes(cache_bytes):
    """gpubench.h's."""
    is_small = 0 < cache_bytes < MOST_SWEEP_BYTES // 2
    return 2 * cache_bytes if is_small else MOST_SWEEP_BYTES


def system_number(name):
    with contextlib.suppress(ValueError, OSError):
        return max(os.sysconf(name), 0)
    return 0


def numpy_library():
    """The file of numpy's BLAS and the processor's name there; "" where it is no OpenBLAS."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {line.split(maxsplit=5)[-1].strip() for line in file if "openblas" in line}
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename",
                     "openblas_get_corename64_", "openblas_get_corename"):
            if hasattr(library, name):
                ask = getattr(library, name)
                ask.restype = ctypes.c_char_p
                return f"{os.path.basename(path)} {ask().decode()}"
    return ""


class Cpu:
    """What the suites' host backend does, with PyTorch's threads. Nothing is enqueued: there
    is no gate, and a call that has returned has ended."""

    asynchronous = False

    def __init__(self, threads):
        torch.set_num_threads(threads)
        self.threads, self.device, self.mode = threads, torch.device("cpu"), MODES[0]
        self.l2_bytes = system_number("SC_LEVEL2_CACHE_SIZE")
        self.nvml = Pressure()
        self.is_small, self.turn = False, 0
        count = sweep_bytes(last_cache_bytes())
        self.swept = bytearray(b"\1") * count  # written, else all pages are one of zeros
        self.address = (ctypes.c_char * count).from_buffer(self.swept)
        self.words = torch.frombuffer(self.swept, dtype=torch.int32)

    def library_version(self):
        return torch.__version__

    def runs_on(self, case):
        if case.variant in NUMPY_VARIANTS:
            return f"{numpy_library() or 'numpy'}, {self.threads} threads"
        vectors = torch.backends.cpu.get_cpu_capability().lower()
        return f"{vectors}, {self.threads} threads"

    def machine(self):
        return {"l2_bytes": self.l2_bytes or None,
                "memory_bytes": system_number("SC_PHYS_PAGES") * system_number("SC_PAGESIZE")}

    def peak_gb_per_s(self):
        return 0

    def peak_tflop_per_s(self, dtype):
        return 0

    def context(self):
        return contextlib.nullcontext()

    def begin(self, case):
        self.is_small = (case.listed["bytes"] or SMALL_BYTES + 1) <= SMALL_BYTES
        torch.set_float32_matmul_precision("high" if case.dtype == "tf32" else "highest")
        self.nvml.watch()

    def flush(self):
        """As the suites': what is small leaves the caches of all cores, and the calling
        thread sweeps, by a search that fails or by writing."""
        self.turn += 1
        if self.mode == "dirty":
            ctypes.memset(self.address, self.turn & 0xff, len(self.swept))
            return
        if self.is_small:
            self.words.sum()
        self.swept.find(0)

    def time(self, call, _sleep_us):
        self.flush()
        start = time.perf_counter()
        outputs = call()
        return (time.perf_counter() - start) * 1e6, True, outputs

    def trailing_us(self, _call):
        return 0.0

    def enqueue_us(self, _call):
        return 0.0

    def empty_launch(self):
        return ()

    def wait(self):
        pass

    def alive(self):
        return True

    def free_bytes(self):
        return system_number("SC_AVPHYS_PAGES") * system_number("SC_PAGESIZE")

    def release_memory(self):
        gc.collect()

    def forget_compiled(self):
        torch.compiler.reset()

    def is_oom(self, error):
        return isinstance(error, MemoryError) or "not enough memory" in str(error) \
            or "can't allocate memory" in str(error)
