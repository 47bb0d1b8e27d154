"""The GPU as an instrument: a stream, a gate, a flush, two events."""
import gc
import time

import torch

from .errors import UsageError
from .measure import MODES
from .nvml import Nvml


def choose_device(wanted):
    """The ordinal that --device names."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise UsageError(f"--device {wanted}: no usable GPU: PyTorch {torch.__version__} sees none")
    if wanted == "auto":
        return 0
    if wanted.isdigit() and int(wanted) < count:
        return int(wanted)
    for ordinal in range(count):
        if wanted == device_uuid(torch.cuda.get_device_properties(ordinal)):
            return ordinal
    raise UsageError(f"--device {wanted}: no such GPU; {count} visible, numbered from 0")


def device_uuid(properties):
    uuid = str(getattr(properties, "uuid", ""))
    return uuid if not uuid or uuid.startswith("GPU-") else f"GPU-{uuid}"


# Multiply-adds counted as two, per clock and SM: NVIDIA's architecture white papers.
FLOPS_PER_CLOCK = {80: {"f16": 2048, "bf16": 2048, "tf32": 1024, "f32": 128},
                   86: {"f16": 1024, "bf16": 1024, "tf32": 512, "f32": 256},
                   89: {"f16": 1024, "bf16": 1024, "tf32": 512, "f32": 256},
                   90: {"f16": 4096, "bf16": 4096, "tf32": 2048, "f32": 256},
                   100: {"f16": 8192, "bf16": 8192, "tf32": 4096, "f32": 256}}


class Gpu:
    """The device, the one stream that everything runs on, and the instrument: a sleep kernel
    for a gate, a buffer for the flush, two events."""

    asynchronous = True
    CYCLES_PER_US = 2000  # of the sleep kernel: at a lower clock it sleeps longer, which is fine
    UNKNOWN_L2_BYTES = 128 << 20  # more than any device's, where PyTorch does not tell

    def __init__(self, wanted):
        ordinal = choose_device(wanted)
        torch.cuda.set_device(ordinal)
        self.device = torch.device("cuda", ordinal)
        self.properties = torch.cuda.get_device_properties(ordinal)
        self.l2_bytes = getattr(self.properties, "L2_cache_size", 0)
        self.nvml = Nvml(device_uuid(self.properties))
        # Autograd runs a backward pass on the stream of the forward pass, and a capture must
        # not leave its stream: so building, timing and capturing share one.
        self.stream = torch.cuda.Stream()
        self.mode = MODES[0]
        self.swept = torch.zeros(2 * (self.l2_bytes or self.UNKNOWN_L2_BYTES) // 4,
                                 dtype=torch.float32, device=self.device)
        self.swept_sum = torch.zeros((), dtype=torch.float32, device=self.device)
        self.spare_events = []  # pairs that no sample uses

    def library_version(self):
        return torch.__version__

    def machine(self):
        p = self.properties
        return {"device": p.name, "uuid": device_uuid(p),
                "compute_capability": f"{p.major}.{p.minor}", "sm_count": p.multi_processor_count,
                "l2_bytes": self.l2_bytes or None, "memory_bytes": p.total_memory,
                "power_limit_w": self.nvml.watts("nvmlDeviceGetEnforcedPowerLimit"),
                "driver": self.nvml.driver(), "cuda_runtime": torch.version.cuda}

    def peak_gb_per_s(self):
        """Two transfers per clock on every memory that GPUs use; 0: unknown."""
        width = getattr(self.properties, "memory_bus_width", 0)
        return 2 * getattr(self.properties, "memory_clock_rate", 0) * width / 8 / 1e6

    def peak_tflop_per_s(self, dtype):
        p = self.properties
        per_clock = FLOPS_PER_CLOCK.get(10 * p.major + p.minor, {}).get(dtype, 0)
        return per_clock * p.multi_processor_count * getattr(p, "clock_rate", 0) / 1e9

    def context(self):
        return torch.cuda.stream(self.stream)

    def begin(self, case):
        self.allow_tf32(case.dtype == "tf32")

    def runs_on(self, _case):
        return None  # the device's columns say it

    def flush(self):
        """Twice the L2 of something else than the case's: read, which leaves no dirty line,
        or written."""
        if self.mode == "dirty":
            self.swept.zero_()
        else:
            torch.sum(self.swept, 0, out=self.swept_sum)

    def enqueue(self, call, sleep_us):
        """A sample of one call that the device has yet to reach: its ticket, and what the call
        returned."""
        start, stop = (self.spare_events.pop() if self.spare_events else
                       [torch.cuda.Event(enable_timing=True) for _ in range(2)])
        if sleep_us > 0:
            torch.cuda._sleep(int(sleep_us * self.CYCLES_PER_US))
        self.flush()
        start.record()
        outputs = call()
        stop.record()
        return (start, stop, not start.query()), outputs

    def finish(self, ticket):
        """Microseconds of the sample, and whether its launches were hidden."""
        start, stop, hidden = ticket
        stop.synchronize()
        self.spare_events.append((start, stop))
        return start.elapsed_time(stop) * 1e3, hidden

    def time(self, call, sleep_us):
        """Microseconds of one call, whether its launches were hidden, and what it returned."""
        ticket, outputs = self.enqueue(call, sleep_us)
        return *self.finish(ticket), outputs

    def trailing_us(self, call):
        """How long the device goes on after the stop event of one call: on other streams."""
        self.time(call, 0)
        start = time.perf_counter()
        self.wait()
        return (time.perf_counter() - start) * 1e6

    def enqueue_us(self, call):
        """How long the host takes to enqueue one call."""
        self.wait()
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        self.wait()
        return elapsed * 1e6

    def capture(self, call):
        """A function that replays call, with the same outputs each time."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            outputs = call()

        def replay():
            graph.replay()
            return outputs
        return replay

    def empty_launch(self):
        torch.cuda._sleep(0)

    def wait(self):
        torch.cuda.synchronize()

    def alive(self):
        try:
            self.wait()
        except RuntimeError:
            return False
        return True

    def free_bytes(self):
        return torch.cuda.mem_get_info()[0]

    def release_memory(self):
        gc.collect()
        torch.cuda.empty_cache()

    def forget_compiled(self):
        torch.compiler.reset()  # or the next shape is compiled for any shape

    def allow_tf32(self, allowed):
        torch.set_float32_matmul_precision("high" if allowed else "highest")

    def is_oom(self, error):
        return isinstance(error, torch.OutOfMemoryError)
