"""The calls into PyTorch, on the CPU, measured by the stand-in for a GPU."""
import importlib
import math
import unittest
from unittest import mock

from pytorch.cases import DTYPES
from pytorch.measure import Instrument, measure_case, verify
from pytorch.variants import NUMPY_VARIANTS, PEERS, variants_of
from pytorch.workload import Mismatch

from .fake_gpu import FakeGpu
from .fixtures import HAS_NUMPY, HAS_TORCH, make_case


TINY = {
    "attention.forward": "b=2 h=3 t=24 d=16 causal={0}",
    "attention.backward": "b=2 h=3 t=24 d=16 causal={0}",
    "block.forward": "b=2 t=12 d=32 h=2 ff=128 keep={0}",
    "block.backward": "b=2 t=12 d=32 h=2 ff=128",
    "bandwidth": "bytes=4096", "gemm.nn": "m=33 n=20 k=48",
    "embedding.forward": "n=48 v=100 c=24 t=12 tokens=zipf",
    "embedding.backward": "n=48 v=100 c=24 t=12 tokens=uniform",
    "ffn.forward": "n=40 d=32 ff=96 keep={0}", "ffn.backward": "n=40 d=32 ff=96",
    "cross_entropy": "n=24 v=101", "memcpy": "bytes=4096", "norm": "n=70 c=48",
    "model": "size=tiny b=2 t=6 d=16 h=2 ff=32 l=2 v=21 tied={0}",
    "optimizer": "d=16 ff=64 l=2 v=50 t=8 p=7392",
}
# What a CPU does not have; and compiling, which takes minutes.
NOT_HERE = ("torch-sdpa-cudnn", "torch-sdpa-efficient", "torch-pinned", "torch-compile",
            "torch-max-autotune", "torch-compile-graph", "torch-compile-graph-cudnn", "torch-graph-cudnn",
            "torch-reduce-overhead")


def dtypes_of(suite, name):
    if suite == "memcpy" or name in ("bandwidth.read", "bandwidth.write", "bandwidth.copy"):
        return ("u8",)
    if name == "bandwidth.triad":
        return ("f32",)
    return DTYPES[:4] if suite in ("attention", "ceilings", "ffn") else ("f32", "bf16")


def tiny_cases():
    for suite, name, dtype, variant in dict.fromkeys(
            (suite, name, dtype, variant) for backend, suites in PEERS.items()
            for suite, names in suites.items() for name in names
            for dtype in dtypes_of(suite, name)
            for variant in variants_of(suite, name, dtype, backend)):
        params = TINY.get(name) or TINY.get(name.split(".")[0]) or TINY[suite]
        for flag in (0, 1) if "{0}" in params else (0,):
            yield make_case(suite, name, variant, dtype, params.format(flag), 1, 1)


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class OnTheCpu(unittest.TestCase):
    """The calls into PyTorch, measured by the stand-in for a GPU."""

    CASES = [case for case in tiny_cases()
             if case.variant not in (NOT_HERE if HAS_NUMPY else NOT_HERE + NUMPY_VARIANTS)]

    @classmethod
    def setUpClass(cls):
        cls.works = importlib.import_module("pytorch.works")
        cls.torch = importlib.import_module("torch")
        cls.torch.set_num_threads(1)  # tiny work only waits for the others
        cls.inputs = cls.works.Inputs("cpu", 1)

    def build(self, case):
        return self.works.build(case, self.inputs)

    def test_every_case_runs_and_verifies(self):
        for case in self.CASES:
            with self.subTest(case.key):
                columns, reason = measure_case(
                    Instrument(FakeGpu(), self.build, 0.5, 3, 0.001), case)
                self.assertEqual((columns["status"], reason), ("ok", ""))
                self.assertLessEqual(columns["max_error"], columns["tolerance"])

    def test_every_case_that_has_variants_can_be_built(self):
        self.assertEqual({name for suites in PEERS.values() for names in suites.values()
                          for name in names}, set(self.works.BUILDERS))

    def test_a_wrong_result_does_not_verify(self):
        in_place = ("optimizer.adamw", "optimizer.sgd", "optimizer.clip_scale")
        for case in self.CASES:
            if case.name in in_place:  # judged by what the next step makes of the tensors
                continue
            with self.subTest(case.key):
                workload = self.build(case)
                outputs = [output.detach().clone() for output in workload.run()]
                for output in outputs:
                    output.add_(1)
                self.assertRaises(Mismatch, verify, workload, outputs)

    def test_a_step_that_does_something_else_does_not_verify(self):
        for name, settings in (("optimizer.adamw", "ADAMW"), ("optimizer.sgd", "SGD")):
            case = next(case for case in self.CASES if case.name == name)
            workload = self.build(case)
            outputs = workload.run()
            other = dict(getattr(self.works.optimizer, settings), lr=1.1e-3)
            with mock.patch.object(self.works.optimizer, settings, other):
                self.assertRaises(Mismatch, verify, workload, outputs)

    def test_attention_is_causal_where_it_says_so(self):
        for causal in (0, 1):
            case = make_case("attention", "attention.forward", "torch-sdpa-math", "f32",
                             f"b=1 h=1 t=6 d=8 causal={causal}")
            q, k, v = self.works.attention.attention_inputs(case, self.inputs, 3)
            attend = self.works.attention.sdpa_attention(case)
            before = attend(q, k, v)
            v[..., -1, :] += 1
            changed = (attend(q, k, v) != before).any(dim=-1).flatten().tolist()
            self.assertEqual(changed, [not causal] * 5 + [True])

    def test_a_block_is_the_formula_spelled_out(self):
        """Sequence by sequence and head by head, against kernels/block/block.h."""
        case = make_case("block", "block.forward", "torch-eager", "f32", "b=2 t=5 d=8 h=2 ff=16")
        x, *p = (leaf.double() for leaf in self.works.block.block_leaves(case, self.inputs, False))
        attend = self.works.attention.attention_of_head(True)

        def normed(rows, weight, bias):
            centred = rows - rows.mean(1, keepdim=True)
            return centred / (centred.pow(2).mean(1, keepdim=True) + 1e-5).sqrt() * weight + bias

        for sequence, found in zip(x, self.works.block.transformer_block(2)(x, *p)):
            qkv = normed(sequence, p[0], p[1]) @ p[2].T + p[3]
            heads = [attend(*(qkv[:, 8 * which + 4 * head:][:, :4] for which in range(3)))
                     for head in range(2)]
            middle = sequence + self.torch.cat(heads, 1) @ p[4].T + p[5]
            pre = normed(middle, p[6], p[7]) @ p[8].T + p[9]
            gelu = 0.5 * pre * (1 + self.torch.tanh(math.sqrt(2 / math.pi)
                                                    * (pre + 0.044715 * pre**3)))
            self.assertTrue(self.torch.allclose(found, middle + gelu @ p[10].T + p[11], atol=1e-12))

    def test_keep_decides_what_autograd_records(self):
        for keep in (0, 1):
            case = make_case("ffn", "ffn.forward", "torch-eager", "f32",
                             f"n=4 d=8 ff=16 keep={keep}")
            self.assertEqual(self.build(case).run()[0].requires_grad, bool(keep))

    def test_inputs_are_seeded_and_differ_by_stream(self):
        def draw(seed, stream):
            return self.works.Inputs("cpu", seed).normal(8, dtype="f32", stream=stream)
        self.assertTrue(self.torch.equal(draw(1, 0), draw(1, 0)))
        self.assertFalse(self.torch.equal(draw(1, 0), draw(1, 1)))
        self.assertFalse(self.torch.equal(draw(1, 0), draw(2, 0)))
