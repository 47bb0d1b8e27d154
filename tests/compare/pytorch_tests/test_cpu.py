"""The CPU as an instrument, and the peers that only it has."""
import importlib
import os
import sys
import tempfile
import unittest
from contextlib import nullcontext
from unittest import mock

from pytorch import pressure
from pytorch.cases import cases_of
from pytorch.measure import Instrument, measure_case, measure_overhead
from pytorch.variants import CPU_VARIANTS, NUMPY_VARIANTS, SDPA_ON_CPU, all_variants
from pytorch.worker import identity_columns
from pytorch.workload import Workload

from .fixtures import HAS_NUMPY, HAS_TORCH, listed, make_case

# Where there is no PyTorch, a pretended one lets the module be read.
with nullcontext() if HAS_TORCH else mock.patch.dict(sys.modules, {"torch": mock.Mock()}):
    cpu_module = importlib.import_module("pytorch.cpu")


def put_cache(folder, processor, index, *texts):
    """As Linux shows it: level, type, size, and who shares it."""
    place = os.path.join(folder, f"cpu{processor}", "cache", f"index{index}")
    os.makedirs(place)
    for name, text in zip(("level", "type", "size", "shared_cpu_list"), texts, strict=True):
        with open(os.path.join(place, name), "w", encoding="ascii") as file:
            file.write(text + "\n")


class Caches(unittest.TestCase):
    def test_the_sweep_is_as_long_as_the_suites(self):
        mib, gib = 1 << 20, 1 << 30
        self.assertEqual([cpu_module.sweep_bytes(*arguments) for arguments in
                          ((32 * mib, mib, 2, 0), (210 * mib, 2 * mib, 2, 64 * gib),
                           (1152 * mib, mib, 2, 4 * gib), (0, 0, 1, 0), (1000, 0, 1, 0),
                           (32 * mib, 2 * mib, 32, 0))],
                         [64 * mib, 420 * mib, 512 * mib, 64 * mib, 1920, 128 * mib])

    def test_the_caches_of_the_allowed_processors_count(self):
        """Two processors of one last cache, one with its own, one that has only an L2."""
        shared = {0: "0-1", 1: "0-1", 2: "2", 3: "3"}
        with tempfile.TemporaryDirectory() as folder:
            for processor, last in shared.items():
                put_cache(folder, processor, 0, "1", "Data", "32K", str(processor))
                put_cache(folder, processor, 1, "1", "Instruction", "64K", str(processor))
                put_cache(folder, processor, 2, "2", "Unified", "1024K", str(processor))
                if processor < 3:
                    put_cache(folder, processor, 3, "3", "Unified", "32768K", last)
            kib = {allowed: tuple(size >> 10 for size in cpu_module.cache_bytes(folder, allowed))
                   for allowed in ((0,), (0, 1), (1,), (1, 2), (3,), (0, 3), (5,), ())}
        self.assertEqual(kib, {(0,): (32768, 1056), (0, 1): (32768, 1056), (1,): (32768, 1056),
                               (1, 2): (65536, 1056), (3,): (1024, 32), (0, 3): (33792, 1056),
                               (5,): (0, 0), (): (0, 0)})


class Instruments(unittest.TestCase):
    """Over a library that only keeps a record."""

    def setUp(self):
        self.torch = mock.Mock(__version__="pretended")
        self.torch.backends.cpu.get_cpu_capability.return_value = "AVX512"
        patches = (mock.patch.object(cpu_module, "torch", self.torch),
                   mock.patch.object(cpu_module, "cache_bytes", return_value=(4096, 0)))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.cpu = cpu_module.Cpu(3)

    def begin(self, data):
        self.cpu.begin(make_case("norm", "a.b", "torch-eager", "f32", "n=1", data, None, "cpu"))

    def test_as_many_threads_as_were_asked_for(self):
        self.torch.set_num_threads.assert_called_once_with(3)
        case = make_case("norm", "a.b", "torch-eager", "f32", "n=1", backend="cpu")
        self.assertEqual(self.cpu.runs_on(case), "avx512, 3 threads")
        case = make_case("norm", "a.b", "numpy", "f32", "n=1", backend="cpu")
        with mock.patch.object(cpu_module, "numpy_library", return_value="blas.so Zen"):
            self.assertEqual(self.cpu.runs_on(case), "blas.so Zen, 3 threads")

    def test_all_threads_sweep_in_front_of_each_sample(self):
        self.begin(1)
        for times in (1, 2, 3):
            self.cpu.time(lambda: None, 0)
            self.assertEqual(self.torch.frombuffer.return_value.sum.call_count, times)

    def test_mode_dirty_writes_the_whole_of_it(self):
        self.cpu.mode = "dirty"
        self.cpu.flush()
        self.assertEqual(set(self.cpu.swept), {1})
        self.cpu.flush()
        self.assertEqual((set(self.cpu.swept), len(self.cpu.swept)), ({2}, 8192))

    def test_a_sample_is_a_call_and_its_result(self):
        self.begin(1)
        us, hidden, outputs = self.cpu.time(lambda: "results", 1e9)
        self.assertTrue(us > 0 and hidden)
        self.assertEqual(outputs, "results")

    def test_only_tf32_may_be_rounded(self):
        for dtype, precision in (("f32", "highest"), ("tf32", "high"), ("bf16", "highest")):
            self.cpu.begin(make_case("norm", "a.b", "torch-eager", dtype, "n=1", backend="cpu"))
            self.torch.set_float32_matmul_precision.assert_called_with(precision)

    def test_memory_that_is_not_there_is_known_by_the_message(self):
        for error, wanted in ((MemoryError(), True), (RuntimeError("a shape"), False),
                              (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True)):
            self.assertEqual(self.cpu.is_oom(error), wanted)

    def test_a_row_names_no_gate_and_no_events(self):
        def build(_case):
            return Workload(lambda: (), lambda outputs: [(0.0, 1.0)], ungated=True)
        instrument = Instrument(self.cpu, build, 0.5, 3, 0.001)
        measure_overhead(instrument)
        columns, reason = measure_case(
            instrument, make_case("norm", "a.b", "torch-eager", "f32", "n=1", 1, None, "cpu"))
        self.assertEqual((columns["status"], reason), ("ok", ""))
        self.assertNotIn("ungated", columns["flags"])
        self.assertIsNone(columns["events_us"])
        self.assertGreater(columns["overhead_us"], 0)


class Load(unittest.TestCase):
    """The line of all processors in /proc/stat, by hand: user, nice, system, idle, iowait,
    irq, softirq, steal."""

    def test_what_is_neither_idle_nor_stolen_nor_this_process_is_others(self):
        self.assertEqual(pressure.parse_processors("cpu  50 1 9 100 10 2 3 25 7 0", 40),
                         (200, 25, 25))
        self.assertEqual(pressure.parse_processors("cpu0 1 2 3 4 5 6 7 8", 0), (0, 0, 0))
        self.assertEqual(pressure.parse_processors("", 0), (0, 0, 0))

    def test_flags_begin_where_the_suites_do(self):
        def words(total, stolen, others, held=0):
            return pressure.words_of(((1, 1, 1), 5), ((1 + total, 1 + stolen, 1 + others), 5 + held))
        self.assertEqual(words(100, 5, 10), [])
        self.assertEqual(words(100, 5, 11), ["busy"])
        self.assertEqual(words(100, 6, 10), ["steal"])
        self.assertEqual(words(19, 19, 19), [])  # too few ticks to tell
        self.assertEqual(words(0, 0, 0, 1), ["throttle=quota"])

    def test_the_number_behind_a_name(self):
        with tempfile.NamedTemporaryFile("w", suffix=".stat") as file:
            file.write("nr_throttled 3\nthrottled_usec 17\n")
            file.flush()
            self.assertEqual(pressure.number_behind(file.name, "throttled_usec"), 17)
            self.assertEqual(pressure.number_behind(file.name, "usec"), 0)
        self.assertEqual(pressure.number_behind("/no/such", "usec"), 0)


class Peers(unittest.TestCase):
    def test_rows_are_the_cpus(self):
        case = make_case("norm", "layernorm.forward", "numpy", "f32", "n=1 c=2", backend="cpu")
        columns = identity_columns(case, "cold")
        self.assertEqual((columns["backend"], columns["device"], columns["variant"]),
                         ("cpu", "A processor", "numpy"))

    def test_a_list_of_the_cpus_has_its_peers(self):
        rows = [listed("attention", "attention.forward", "naive", dtype, "t=1", backend="cpu")
                for dtype in ("f32", "bf16")]
        self.assertEqual([(case.variant, case.dtype) for case in cases_of("attention", rows)],
                         [(variant, "f32") for variant in (*SDPA_ON_CPU, "numpy")]
                         + [(variant, "bf16") for variant in SDPA_ON_CPU])

    def test_variants_can_be_left_out_by_name(self):
        self.assertLessEqual({*NUMPY_VARIANTS, *SDPA_ON_CPU}, set(all_variants()))

    def test_the_copies_on_the_host_are_there_and_those_to_a_device_are_not(self):
        self.assertEqual(set(CPU_VARIANTS["memcpy"]), {"memcpy.h2h", "memcpy.memset"})


@unittest.skipUnless(HAS_TORCH and HAS_NUMPY, "PyTorch or numpy is not installed")
class Products(unittest.TestCase):
    def test_they_are_those_of_the_layers_and_no_others(self):
        """Multiply-adds counted as two, by hand: tokens * inputs * outputs a layer, and twice
        that backward."""
        works = importlib.import_module("pytorch.works")
        for name, params, layers in (("ffn.forward", "n=5 d=8 ff=16", 2 * 8 * 16),
                                     ("ffn.backward", "n=5 d=8 ff=16", 4 * 8 * 16),
                                     ("block.forward", "b=1 t=5 d=8 h=2 ff=16", 4 * 64 + 256),
                                     ("block.backward", "b=1 t=5 d=8 h=2 ff=16",
                                      2 * (4 * 64 + 256))):
            case = make_case(name.split(".")[0], name, "numpy-products", "f32", params)
            pairs = works.products.operands_of(case, works.Inputs("cpu", 1))
            self.assertEqual(sum(left.shape[0] * left.shape[1] * right.shape[1]
                                 for left, right in pairs), 5 * layers)
