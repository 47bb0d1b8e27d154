"""A stand-in for the GPU as an instrument."""
import contextlib
import time


class FakeNvml:
    def __init__(self):
        self.looks, self.limited = 0, lambda look: False

    def is_power_limited(self):
        self.looks += 1
        return self.limited(self.looks)

    def sm_mhz(self):
        return 1980

    def state(self):
        return {"sm_mhz": 1980, "mem_mhz": 2619, "temperature_c": 40, "power_w": 300.0}

    def throttle_flags(self):
        return ["throttle=power-cap"]


class FakeGpu:
    """Takes calls on the host. A call is hidden behind a sleep of at least `needs_us`."""

    asynchronous = True
    l2_bytes = 50 << 20
    elsewhere_us = 0.0

    def __init__(self, needs_us=0, capturable=True, hiccups=0):
        self.needs_us, self.capturable, self.hiccups = needs_us, capturable, hiccups
        self.nvml, self.device, self.lost, self.sleeps = FakeNvml(), "cpu", False, []
        self.mode, self.modes = None, []  # which a sample was taken in
        self.in_flight, self.most_in_flight, self.host_is_slow = 0, 0, False

    def begin(self, case):
        self.begun = case

    def runs_on(self, case):
        return None

    def machine(self):
        return {"device": "Fake GPU", "uuid": "GPU-0", "sm_count": 1, "l2_bytes": self.l2_bytes}

    def context(self):
        return contextlib.nullcontext()

    def time(self, call, sleep_us):
        self.sleeps.append(sleep_us)
        self.modes.append(self.mode)
        hidden = sleep_us >= self.needs_us and self.hiccups == 0
        self.hiccups = max(self.hiccups - 1, 0)
        start = time.perf_counter()
        outputs = call()
        return (time.perf_counter() - start) * 1e6, hidden, outputs

    def enqueue(self, call, sleep_us):
        """As behind the sample that is in flight: hidden, whatever the sleep."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        us, _, outputs = self.time(call, sleep_us)
        return (us, not self.host_is_slow), outputs

    def finish(self, ticket):
        self.in_flight -= 1
        return ticket

    def trailing_us(self, call):
        call()
        self.wait()
        return self.elsewhere_us

    def peak_gb_per_s(self):
        return 3352.0

    def peak_tflop_per_s(self, dtype):
        return 989.0

    def enqueue_us(self, call):
        call()
        return 10.0

    def capture(self, call):
        if not self.capturable:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.needs_us = 0
        return call

    def empty_launch(self):
        return ()

    def wait(self):
        self.in_flight = 0

    def library_version(self):
        return "pretended"

    def allow_tf32(self, allowed):
        pass

    def forget_compiled(self):
        pass

    def is_oom(self, error):
        return isinstance(error, MemoryError)

    def alive(self):
        return not self.lost

    def free_bytes(self):
        return 1 << 30

    def release_memory(self):
        pass
