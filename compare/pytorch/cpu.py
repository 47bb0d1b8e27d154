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

PROCESSORS = "/sys/devices/system/cpu"
TOLD_CACHE_BYTES = 32 << 20  # where nobody says


def read_text(*path):
    with contextlib.suppress(OSError), open(os.path.join(*path), encoding="ascii") as file:
        return file.read().strip()
    return ""


def processors_of(text):
    """Of a list as "0-3,8"."""
    ends = [part.split("-") for part in text.split(",") if part]
    return {number for pair in ends for number in range(int(pair[0]), int(pair[-1]) + 1)}


def caches_of(folder, processor):
    """(level, bytes, who shares it) of those that hold data, the last one last."""
    caches = []
    for cache in glob.glob(os.path.join(folder, f"cpu{processor}", "cache", "index*")):
        size = re.match("([0-9]+)K", read_text(cache, "size"))
        if size and read_text(cache, "type") != "Instruction":
            caches.append((int(read_text(cache, "level")), int(size.group(1)) << 10,
                           read_text(cache, "shared_cpu_list")))
    return sorted(caches)


def cache_bytes(folder, allowed):
    """Of the last caches that the processors have together, a shared one once, and those
    in front of it that one processor has; 0 where nobody says."""
    total = nearer = 0
    for processor in sorted(allowed):
        caches = caches_of(folder, processor)
        if not caches:
            continue
        nearer = max(nearer, sum(size for _, size, _ in caches[:-1]))
        sharing = processors_of(caches[-1][2]) & set(allowed)
        if processor == min(sharing, default=processor):
            total += caches[-1][1]
    return total, nearer


def sweep_bytes(last, nearer, threads, memory):
    """Twice the last caches, as gpubench.h sweeps, and enough for each of the threads that
    cut it among themselves to sweep its own processor's; at most an eighth of the memory."""
    wanted = max(2 * (last or TOLD_CACHE_BYTES), 2 * nearer * threads)
    return min(wanted, memory // 8 if memory else wanted) // 128 * 128


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
        self.turn = 0
        memory = system_number("SC_PHYS_PAGES") * system_number("SC_PAGESIZE")
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        count = sweep_bytes(*cache_bytes(PROCESSORS, allowed), threads, memory)
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
        torch.set_float32_matmul_precision("high" if case.dtype == "tf32" else "highest")
        self.nvml.watch()

    def flush(self):
        """As the suites': all threads sweep, each a share, by a sum, or one by writing."""
        self.turn += 1
        if self.mode == "dirty":
            ctypes.memset(self.address, self.turn & 0xff, len(self.swept))
            return
        self.words.sum()

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
