"""The GPU as an instrument, over libraries that only keep a record."""
import ctypes
import importlib
import struct
import sys
import types
import unittest
from contextlib import nullcontext
from unittest import mock

from pytorch import nvml
from pytorch.errors import UsageError

from .fixtures import BASELINES, HAS_TORCH

# Where there is no PyTorch, a pretended one lets the module be read.
with nullcontext() if HAS_TORCH else mock.patch.dict(sys.modules, {"torch": mock.Mock()}):
    gpu_module = importlib.import_module("pytorch.gpu")


class Device(unittest.TestCase):
    """The instrument itself, over a library that only keeps a record."""

    H100 = types.SimpleNamespace(name="H100", major=9, minor=0, multi_processor_count=132,
                                 clock_rate=1980000, memory_clock_rate=2619000,
                                 memory_bus_width=5120, total_memory=85017493504,
                                 L2_cache_size=52428800, uuid="5b47b1d5-d6f5")

    def setUp(self):
        self.record, self.reached = [], False
        events = mock.Mock()
        events.query.side_effect = lambda: self.reached
        events.elapsed_time.return_value = 0.25
        for name in ("record", "query", "synchronize"):
            getattr(events, name).side_effect = self.note(name, getattr(events, name).side_effect)
        cuda = mock.Mock()
        cuda._sleep.side_effect = self.note("sleep")
        cuda.Event.return_value = events
        cuda.device_count.return_value = 2
        cuda.get_device_properties.return_value = self.H100
        pretended = mock.Mock(cuda=cuda, __version__="pretended")
        pretended.version.cuda = "13.0"
        pretended.zeros.return_value.zero_.side_effect = self.note("write")
        pretended.sum.side_effect = self.note_read
        patches = (mock.patch.object(gpu_module, "torch", pretended),
                   mock.patch.object(nvml.ctypes, "CDLL", side_effect=OSError))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.zeros = pretended.zeros
        self.cuda = cuda

    def note(self, name, then=None):
        def called(*arguments):
            self.record.append(name if name != "sleep" else (name, *arguments))
            return then() if then else None
        return called

    def note_read(self, tensor, dim, *, out):
        """A sum of all: reads its operand, writes one number."""
        self.assertIs(tensor, self.zeros.return_value)
        self.assertEqual(dim, 0)
        self.record.append("read")

    def test_a_sample_is_sleep_flush_start_work_stop(self):
        gpu = gpu_module.Gpu("auto")
        for mode, flush in (("cold", "read"), ("dirty", "write")):
            self.record, gpu.mode = [], mode
            found = gpu.time(self.note("work"), 120)
            self.assertEqual(self.record, [("sleep", 240000), flush, "record", "work", "record",
                                           "query", "synchronize"])
            self.assertEqual(found, (250.0, True, None))

    def test_two_samples_in_flight_have_events_of_their_own(self):
        gpu = gpu_module.Gpu("auto")
        self.record = []
        (first, _), (second, _) = (gpu.enqueue(self.note("work"), sleep) for sleep in (120, 0))
        self.assertEqual(self.record, [("sleep", 240000), "read", "record", "work", "record", "query",
                                       "read", "record", "work", "record", "query"])
        self.assertEqual(gpu_module.torch.cuda.Event.call_count, 4)
        self.assertEqual([gpu.finish(ticket) for ticket in (first, second)], [(250.0, True)] * 2)
        gpu.enqueue(self.note("work"), 0)
        self.assertEqual(gpu_module.torch.cuda.Event.call_count, 4)

    def test_the_flush_is_twice_the_l2_and_its_result_one_number(self):
        gpu_module.Gpu("auto")
        (swept, _), (total, _) = self.zeros.call_args_list
        self.assertEqual((4 * swept[0], total[0]), (2 * 52428800, ()))

    def test_a_start_that_came_before_everything_was_enqueued_is_not_hidden(self):
        gpu = gpu_module.Gpu("1")
        self.reached = True
        self.assertFalse(gpu.time(self.note("work"), 0)[1])
        self.assertNotIn("sleep", self.record)

    def test_the_machine_as_the_suites_tell_it(self):
        gpu = gpu_module.Gpu("GPU-5b47b1d5-d6f5")
        row = next(row for row in BASELINES if row["device"] == "NVIDIA H100 80GB HBM3")
        machine = gpu.machine()
        for column in ("compute_capability", "sm_count", "l2_bytes", "memory_bytes"):
            self.assertEqual(str(machine[column]), row[column])
        self.assertEqual((machine["uuid"], machine["driver"]), ("GPU-5b47b1d5-d6f5", None))
        self.assertEqual(set(gpu.nvml.state().values()), {None})
        self.assertEqual(gpu.nvml.throttle_flags(), [])

    def test_what_measuring_asks_of_the_library(self):
        gpu, library = gpu_module.Gpu("auto"), gpu_module.torch
        library.OutOfMemoryError = MemoryError
        self.assertEqual((gpu.is_oom(MemoryError()), gpu.is_oom(RuntimeError())), (True, False))
        self.assertEqual(gpu.library_version(), "pretended")
        for allowed in (True, False):
            gpu.allow_tf32(allowed)
        asked = library.set_float32_matmul_precision.call_args_list
        self.assertEqual([call.args for call in asked], [("high",), ("highest",)])
        gpu.forget_compiled()
        library.compiler.reset.assert_called_once_with()

    def test_peaks_are_those_of_the_data_sheet(self):
        gpu = gpu_module.Gpu("auto")
        self.assertAlmostEqual(gpu.peak_gb_per_s(), 3352, delta=1)
        self.assertAlmostEqual(gpu.peak_tflop_per_s("bf16"), 1070, delta=1)
        self.assertEqual(gpu.peak_tflop_per_s("u8"), 0)

    def test_a_device_that_is_not_there_is_refused(self):
        for wanted in ("2", "GPU-other"):
            self.assertRaises(UsageError, gpu_module.Gpu, wanted)
        self.cuda.is_available.return_value = False
        self.assertRaises(UsageError, gpu_module.Gpu, "auto")


class NvmlLibrary(unittest.TestCase):
    def open(self, **answers):
        library = types.SimpleNamespace(nvmlInit_v2=lambda: 0)
        library.nvmlDeviceGetHandleByUUID = lambda uuid, device: 0 if self.known(device) else 1
        library.nvmlSystemGetDriverVersion = self.driver
        for name, value in answers.items():
            setattr(library, name, self.answer(value))
        with mock.patch.object(nvml.ctypes, "CDLL", return_value=library):
            return nvml.Nvml("GPU-0")

    @staticmethod
    def known(device):
        device._obj.value = 1
        return True

    @staticmethod
    def driver(text, _length):
        text.value = b"580.159.04"
        return 0

    @staticmethod
    def answer(value):
        def function(_device, *arguments):
            if value is None:
                return 3  # not supported
            arguments[-1]._obj.value = value
            return 0
        return function

    def test_what_it_tells(self):
        nvml = self.open(nvmlDeviceGetClockInfo=1980, nvmlDeviceGetTemperature=40,
                         nvmlDeviceGetPowerUsage=137057, nvmlDeviceGetEnforcedPowerLimit=700000,
                         nvmlDeviceGetCurrentClocksThrottleReasons=0x44)
        self.assertEqual(nvml.state(), {"sm_mhz": 1980, "mem_mhz": 1980, "temperature_c": 40,
                                        "power_w": 137.057})
        self.assertEqual(nvml.watts("nvmlDeviceGetEnforcedPowerLimit"), 700.0)
        self.assertEqual(nvml.driver(), "580.159.04")
        self.assertEqual(nvml.throttle_flags(), ["throttle=power-cap", "throttle=hw-thermal"])

    def open_drawing(self, watts, **answers):
        """With a limit of 700 W, and what is drawn now as nvml.h's field 186 tells it: the id
        at byte 0, a code at 28, the value at 32 of 40."""
        library = self.open(nvmlDeviceGetEnforcedPowerLimit=700000, **answers)

        def fields(_device, count, values):
            raw = ctypes.cast(values, ctypes.POINTER(ctypes.c_ubyte * 40)).contents
            field, = struct.unpack_from("I", raw, 0)
            struct.pack_into("iiI", raw, 24, 1, 0 if (count, field) == (1, 186) else 3,
                             int(watts * 1000))
            return 0
        library.library.nvmlDeviceGetFieldValues = fields
        return library

    def test_near_the_power_cap(self):
        for watts, reasons, limited in ((631, 0, True), (629, 0, False), (100, 0x4, True),
                                        (100, 0x40, False)):
            nvml = self.open_drawing(watts, nvmlDeviceGetPowerUsage=1000,
                                     nvmlDeviceGetCurrentClocksThrottleReasons=reasons)
            self.assertEqual(nvml.is_power_limited(), limited, (watts, reasons))
            self.assertEqual(nvml.state()["power_w"], watts)
        self.assertFalse(self.open(nvmlDeviceGetPowerUsage=690000).is_power_limited())

    def test_what_it_does_not_tell_is_none(self):
        nvml = self.open(nvmlDeviceGetClockInfo=None)
        self.assertEqual(set(nvml.state().values()), {None})
        self.assertEqual(nvml.throttle_flags(), [])
