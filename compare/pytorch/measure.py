"""One case measured: the columns of its row, whatever happens."""
import contextlib
import dataclasses
import math
import re

from .sampler import Sampler, soak, take_samples, wait_for_calm, warm_up, warm_up_window
from .statistics import describe, quantile
from .variants import COMPILED, GRAPHS
from .workload import Mismatch, Workload

MODES = ("cold", "dirty")


@dataclasses.dataclass
class Instrument:
    """A device in one mode, what builds a case's work on it, what measures the same on it
    for every case, and the wanted effort."""
    gpu: object
    build: object  # of a Case: the Workload
    precision: float
    min_samples: int
    max_time_s: float
    mode: str = MODES[0]
    events_us: float = 0.0
    overhead_us: float = 0.0
    clock_step_us: float = 0.0


def sample_known(instrument, call):
    """A hundred times of something that every process measures, in order."""
    gpu = instrument.gpu
    gpu.mode = instrument.mode
    with gpu.context():
        sampler = Sampler(gpu, Workload(call, None), as_graph=False)
        warm_up_window(sampler)
        return sorted(sampler.take() for _ in range(100))


def measure_overhead(instrument):
    """What two events and what an empty kernel cost by the same method, and the step of the
    clock."""
    if instrument.gpu.asynchronous:
        instrument.events_us = quantile(sample_known(instrument, lambda: None), 0.5)
    samples = sample_known(instrument, instrument.gpu.empty_launch)
    steps = [high - low for low, high in zip(samples, samples[1:]) if high - low > 0.0005]
    instrument.overhead_us = quantile(samples, 0.5)
    instrument.clock_step_us = min(steps, default=0.0)


def worst_check(checks):
    """The (error, tolerance) that comes closest to its tolerance. A NaN never passes."""
    for error, tolerance in checks:
        if not error <= tolerance:
            raise Mismatch(f"error {error:.3g} exceeds the tolerance {tolerance:.3g}")
    return max(checks, key=lambda check: check[0] / check[1] if check[1] else 0)


def verify(workload, outputs):
    for i, output in enumerate(outputs):
        if output.is_floating_point() and bool(output.isnan().any()):
            raise Mismatch(f"output {i} holds a NaN")
    error, tolerance = worst_check(workload.verify(outputs))
    return {"max_error": float(error), "tolerance": float(tolerance)}


def measured_columns(instrument, case):
    """Everything that an ok row says of a case; raises what went wrong."""
    gpu = instrument.gpu
    gpu.mode = instrument.mode
    free_before = gpu.free_bytes()
    gpu.begin(case)
    workload = instrument.build(case)
    for _ in range(3):  # the first runs load, tune, compile and allocate
        workload.once()
    gpu.wait()
    sampler = Sampler(gpu, workload, as_graph=case.variant in GRAPHS)
    device_bytes = max(free_before - gpu.free_bytes(), 0)
    wait_for_calm(gpu.nvml)
    warmup, flags, limited = warm_up(sampler, instrument)
    if limited:
        runs, more_flags = soak(sampler, instrument)
        warmup, flags = warmup + runs, sorted({*flags, *more_flags})
    refuse_work_elsewhere(sampler)
    samples, stop_flags = take_samples(sampler, instrument, limited)
    state, throttle = gpu.nvml.state(), gpu.nvml.throttle_flags()
    sampler.come_to_rest()
    checks = verify(workload, sampler.outputs)
    return dict(time_columns(instrument, samples), **work_columns(case, samples), **state,
                **checks, warmup=warmup, device_bytes=device_bytes,
                flags=flags + sampler.flags + stop_flags + throttle)


def refuse_work_elsewhere(sampler):
    """Events on one stream do not see what another one does. 50 us are the host's."""
    us = sampler.take()
    sampler.outputs = None
    trailing_us = min(sampler.trailing_us() for _ in range(3))
    if trailing_us > 50 + 0.2 * us:
        raise RuntimeError(f"works on another stream than the timed one: the device was busy for "
                           f"{trailing_us:.0f} us after the stop event")


def time_columns(instrument, samples):
    columns = describe(samples)
    half_step = instrument.clock_step_us / 2  # a time is known no better
    columns["ci95_low_us"] -= half_step
    columns["ci95_high_us"] += half_step
    return dict(columns, samples=len(samples), batch=1,
                overhead_us=instrument.overhead_us or None, events_us=instrument.events_us or None)


def work_columns(case, samples):
    data, flops = case.listed["bytes"], case.listed["flops"]
    median = quantile(sorted(samples), 0.5)
    return {"bytes": data or None, "gb_per_s": data / median / 1e3 if data else None,
            "flops": flops or None, "tflop_per_s": flops / median / 1e6 if flops else None}


def share_of_peak(gpu, case, columns):
    """Of what the device's memory or arithmetic can do at most; 0: unknown."""
    if case.name in ("memcpy.h2d", "memcpy.d2h"):  # the link's business
        return 0
    tflop_peak, gb_peak = gpu.peak_tflop_per_s(case.dtype), gpu.peak_gb_per_s()
    if columns["flops"] and not tflop_peak:
        return 0  # memory may not be what bounds it
    return max((columns[rate] or 0) / peak if peak else 0
               for rate, peak in (("gb_per_s", gb_peak), ("tflop_per_s", tflop_peak)))


def warnings_of(instrument, case, columns):
    """What a reader has to know before believing the number."""
    median = columns["median_us"]
    found = {"near-overhead": median < 2 * instrument.overhead_us,
             "coarse-clock": instrument.clock_step_us > instrument.precision * median,
             "fits-l2": (columns["bytes"] or math.inf) <= instrument.gpu.l2_bytes,
             "above-peak": share_of_peak(instrument.gpu, case, columns) > 1}
    return [word for word, holds in found.items() if holds]


UNSUPPORTED = ("No available kernel", "No viable backend", "working triton installation",
               "TritonMissing", "No module named 'numpy'")


def status_of(gpu, error):
    if gpu.is_oom(error):
        return "oom"
    if isinstance(error, Mismatch):
        return "mismatch"
    return "unsupported" if any(text in str(error) for text in UNSUPPORTED) else "failed"


def reason_of(error):
    """One line; without paths, which name users and machines."""
    first_line = next(iter(str(error).splitlines()), "")
    named = f"{type(error).__name__}: {first_line}"
    return re.sub(r"(?<!\w)(?:/[\w.+-]+){2,}", "PATH", named)[:250]


def attempt(instrument, case):
    """The columns of a row, whatever happens, and a reason that is empty if all went well."""
    try:
        with instrument.gpu.context():
            columns = measured_columns(instrument, case)
        columns["flags"] += warnings_of(instrument, case, columns)
    except Exception as error:  # a library's; the next case must be measured all the same
        return {"status": status_of(instrument.gpu, error), "flags": []}, reason_of(error)
    return dict(columns, status="ok"), ""


def measure_case(instrument, case):
    """The columns of a row, and the reason. Whether it failed or not, the case's memory is
    free afterwards: here its exception, whose traceback held the tensors, is gone."""
    columns, reason = attempt(instrument, case)
    with contextlib.suppress(RuntimeError):  # of a context that is lost
        if columns["status"] == "oom":
            columns["flags"].append(f"free_bytes={instrument.gpu.free_bytes()}")
        if case.variant in COMPILED:
            instrument.gpu.forget_compiled()
        instrument.gpu.release_memory()
    return with_reason(columns, reason), reason


def with_reason(columns, reason):
    """Flags as the file has them."""
    words = columns["flags"] + (["reason=" + re.sub(r"\s", "_", reason)] if reason else [])
    return dict(columns, flags=" ".join(words))
