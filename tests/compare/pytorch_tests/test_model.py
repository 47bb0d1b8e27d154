"""The GPT on PyTorch: shapes and names everywhere, its numbers where PyTorch is."""
import argparse
import importlib
import json
import math
import os
import struct
import subprocess
import tempfile
import unittest
from unittest import mock

from pytorch.agree import agree, compared_tensors
from pytorch.cases import shape_of
from pytorch.errors import UsageError
from pytorch.measure import verify
from pytorch.parameters import model_shapes, parameter_names, table_rows
from pytorch.workload import Mismatch

from . import ROOT
from .fixtures import HAS_TORCH, make_case

GPT2 = shape_of("b=4 t=1024 d=768 h=12 ff=3072 l=12 v=50257 tied=1")
TINY = "size=tiny b=2 t=6 d=16 h=2 ff=32 l=2 v=21 tied="


class Shapes(unittest.TestCase):
    def test_gpt2_has_124439808_parameters_and_47_rows_of_padding(self):
        self.assertEqual(table_rows(50257), 50304)
        self.assertEqual(sum(map(math.prod, model_shapes(GPT2))), 124439808 + 47 * 768)
        self.assertEqual(table_rows(10000), 10000)

    def test_each_tensor_has_a_name_of_its_own(self):
        for tied in (0, 1):
            shape = dict(GPT2, tied=tied)
            names = parameter_names(shape)
            self.assertEqual(len(set(names)), 12 * 12 + 5 - tied)
            self.assertEqual(len(names), len(model_shapes(shape)))
        at = dict(zip(parameter_names(GPT2), model_shapes(GPT2)))
        self.assertEqual((at["h.11.fc2.weight"], at["h.0.qkv.bias"]), ((768, 3072), (2304,)))


class Agreement(unittest.TestCase):
    def test_what_gradients_need_is_said(self):
        steps = [make_case("model", "model.step", "torch-eager", dtype, TINY + "1")
                 for dtype in ("f32", "bf16")]
        settings = argparse.Namespace(weights=None, gradients="g", seed=1)
        with self.assertRaisesRegex(UsageError, "--gradients wants --weights"):
            agree(settings, steps[:1])
        settings.weights = "w"
        for cases in (steps, []):
            with self.assertRaisesRegex(UsageError, f"leave {len(cases)} of model.step"):
                agree(settings, cases)


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class OnTheCpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.torch = importlib.import_module("torch")
        cls.works = importlib.import_module("pytorch.works")
        cls.torch.set_num_threads(1)

    def case(self, name, tied=0, variant="torch-eager"):
        return make_case("model", f"model.{name}", variant, "f32", f"{TINY}{tied}", 1, 1)

    def model(self, tied):
        return self.works.model.Model(self.case("backward", tied), self.works.Inputs("cpu", 1),
                                      grad=True)

    def test_gradients_layer_by_layer_are_those_of_the_whole(self):
        """Both in float64, the whole by autograd over all layers at once."""
        for tied in (0, 1):
            model = self.model(tied)
            leaves = [p.detach().double().requires_grad_() for p in model.parameters]
            whole = self.works.gpt.gpt_loss(model.shape, self.works.block.causal_attention,
                                            model.mask.double())
            loss = whole(model.tokens, model.targets, *leaves)
            wanted = self.torch.autograd.grad(loss, leaves)
            reference = model.reference()
            found = dict(reference.gradients())
            self.assertEqual(sorted(found), list(range(len(leaves))))
            self.assertAlmostEqual(reference.loss.item(), loss.item(), places=12)
            for index, gradient in found.items():
                self.assertTrue(self.torch.allclose(gradient, wanted[index], atol=1e-12), index)

    def test_a_model_of_zeros_knows_nothing(self):
        model = self.model(0)
        loss = self.works.gpt.gpt_loss(model.shape, self.works.block.causal_attention, model.mask)
        zeros = [self.torch.zeros_like(parameter) for parameter in model.parameters]
        self.assertAlmostEqual(loss(model.tokens, model.targets, *zeros).item(), math.log(21),
                               places=5)

    def test_a_text_goes_on_in_its_targets(self):
        model = self.model(0)
        self.assertTrue(self.torch.equal(model.tokens[:, 1:], model.targets[:, :-1]))

    def test_loss_and_gradients_are_those_of_the_c_reference_on_the_same_weights(self):
        program = os.path.join(ROOT, "build", "tests", "model_weights")
        if not os.path.exists(program):
            self.skipTest("build/tests/model_weights is not built")
        for tied in (0, 1):
            with tempfile.TemporaryDirectory() as folder:
                printed = subprocess.run([program, folder, str(tied)], capture_output=True,
                                         check=True).stdout
                weights, slopes = (os.path.join(folder, name) for name in ("weights", "gradients"))
                inputs = self.works.Inputs("cpu", 1, weights)
                model = self.works.model.Model(self.case("backward", tied), inputs, grad=True)
                wanted = self.works.weights.read_parameters(slopes, model.shape, "cpu")
            known = json.loads(printed)
            model.tokens = self.torch.tensor(known["tokens"]).view(2, 6)
            model.targets = self.torch.tensor(known["targets"]).view(2, 6)
            loss = model.loss()
            self.assertAlmostEqual(loss.item(), known["loss"], places=5)
            for name, found, each in zip(parameter_names(model.shape),
                                         self.torch.autograd.grad(loss, model.parameters), wanted):
                self.assertLess((found - each).norm() / each.norm(), 1e-5, name)

    def test_a_step_with_another_rule_does_not_verify(self):
        work = self.works.model
        for wrong in ({"ADAMW": dict(work.ADAMW, betas=(0.8, 0.95))}, {"MAX_NORM": 0.01}):
            workload = self.works.BUILDERS["model.step"](self.case("step"),
                                                         self.works.Inputs("cpu", 1))
            outputs = workload.run()
            with mock.patch.multiple(work, **wrong):
                self.assertRaises(Mismatch, verify, workload, outputs)

    def write_outcome(self, path, model, times=1.0):
        """What the suite's --gradients writes, of PyTorch's; one tensor is `times` as long."""
        loss = model.loss()
        slopes = list(self.torch.autograd.grad(loss, model.parameters))
        names = parameter_names(model.shape)
        slopes[names.index("h.1.fc1.bias")] *= times
        entries = {name: slope[:21] if slope.shape[:1] == (128,) else slope
                   for name, slope in zip(names, slopes)}
        entries.update(tokens=model.tokens.int(), targets=model.targets.int(),
                       loss=loss.detach().view(1))
        header, data = {}, b""
        for name, entry in entries.items():
            code = "f" if entry.is_floating_point() else "i"
            begin = len(data)
            data += struct.pack(f"<{entry.numel()}{code}", *entry.flatten().tolist())
            header[name] = {"dtype": {"f": "F32", "i": "I32"}[code], "shape": list(entry.shape),
                            "data_offsets": [begin, len(data)]}
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)

    def test_gradients_that_are_not_those_of_the_weights_are_named(self):
        inputs = self.works.Inputs("cpu", 1)
        with tempfile.TemporaryDirectory() as folder:
            good, bad = (os.path.join(folder, name) for name in ("good", "bad"))
            model = self.works.model.Model(self.case("step", 1), inputs, grad=True)
            self.write_outcome(good, model)
            self.write_outcome(bad, model, times=1.001)
            for path, apart in ((good, []), (bad, ["h.1.fc1.bias"])):
                lines = list(compared_tensors(self.case("step", 1), inputs, path))
                self.assertEqual(len(lines), 29)
                self.assertEqual([line[0] for line in lines if line[1] > line[3]], apart)

    def write(self, path, shape, without=""):
        """By the documented layout; a tensor's elements are its index. Tables have no padding."""
        header, data = {}, b""
        for index, (name, size) in enumerate(zip(parameter_names(shape), model_shapes(shape))):
            if name == without:
                continue
            rows = shape["v"] if size[0] == table_rows(shape["v"]) else size[0]
            count = math.prod((rows, *size[1:]))
            begin = len(data)
            data += struct.pack(f"<{count}f", *[index] * count)
            header[name] = {"dtype": "F32", "shape": [rows, *size[1:]],
                            "data_offsets": [begin, len(data)]}
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)

    def test_weights_come_from_a_file(self):
        shape = shape_of(TINY + "0")
        with tempfile.TemporaryDirectory() as folder:
            good, bad, none = (os.path.join(folder, name) for name in ("good", "bad", "none"))
            self.write(good, shape)
            self.write(bad, shape, without="h.1.ln2.bias")
            with open(none, "w", encoding="utf-8") as file:
                file.write("no tensors at all")
            found = self.works.gpt.parameters_of(shape, self.works.Inputs("cpu", 1, good))
            for index, (tensor, size) in enumerate(zip(found, model_shapes(shape))):
                self.assertEqual(tuple(tensor.shape), size)
                self.assertEqual(tensor.flatten()[0].item(), index)
            self.assertEqual(found[-1][21:].abs().sum().item(), 0)
            for path, words in ((bad, "h.1.ln2.bias is missing"), (none, "no safetensors file")):
                with self.assertRaisesRegex(ValueError, words):
                    self.works.gpt.parameters_of(shape, self.works.Inputs("cpu", 1, path))
