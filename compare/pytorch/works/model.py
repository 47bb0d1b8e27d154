"""A training step of a GPT: forward, with loss, backward, and the whole of it."""
import math

import torch

from ..variants import GRAPHS
from ..workload import Workload
from .calls import backward_work, compiled
from .checks import TOLERANCE, relative_error
from .gpt import (chosen_attention, drawn_text, gpt, gpt_loss, held_to_backend,
                  parameters_of, vocabulary_mask)
from .gpt_reference import ReferencePass, reference_logits
from .inputs import torch_dtype
from .optimizer import checked_tensors, first_elements

# suites/model.c's. Its measured steps do not move: each does the same work on the same numbers.
ADAMW = dict(betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
MAX_NORM = 1.0
CHECKED_RATE = 1e-3


def tolerance_of(case):
    """Errors of layers add up like a random walk."""
    return TOLERANCE[case.dtype] * math.sqrt(case.shape["l"])


class Model:
    """A case's model: its parameters, a text, and the variant's way to call it."""

    def __init__(self, case, inputs, grad):
        self.case, self.shape = case, case.shape
        self.parameters = [tensor.to(torch_dtype(case.dtype))
                           for tensor in parameters_of(self.shape, inputs)]
        for parameter in self.parameters:
            parameter.requires_grad_(grad)
        self.tokens, self.targets = drawn_text(self.shape, inputs)
        self.mask = vocabulary_mask(self.shape, case.dtype, inputs.device)
        attend = chosen_attention(case, inputs.device)
        self.call_logits = compiled(gpt(self.shape, attend, self.mask), case)
        self.call_loss = compiled(gpt_loss(self.shape, attend, self.mask), case)

    def logits(self):
        with held_to_backend(self.case.variant):
            return self.call_logits(self.tokens, *self.parameters)

    def loss(self):
        with held_to_backend(self.case.variant):
            return self.call_loss(self.tokens, self.targets, *self.parameters)

    def reference(self):
        return ReferencePass(self.shape, self.parameters, self.tokens, self.targets, self.mask)

    def check_loss(self, loss, reference):
        return [(relative_error(loss, reference.loss), tolerance_of(self.case))]

    def check_gradients(self, found, reference, max_norm=math.inf):
        """Of gradients that were scaled down to max_norm. Each is needed but once: its squares
        and the product with what was found say how far the two are apart, whatever the scale."""
        sums = []
        for index, wanted in reference.gradients():
            each = found[index].detach().double()
            sums.append([float(x) for x in (each.square().sum(), (each * wanted).sum(),
                                            wanted.square().sum())])
        norm = math.sqrt(sum(squares for _, _, squares in sums))
        scale = min(1.0, max_norm / (norm + 1e-6))
        return [(math.sqrt(max(own - 2 * scale * product + scale**2 * squares, 0))
                 / (scale * math.sqrt(squares)), tolerance_of(self.case))
                for own, product, squares in sums]

    def is_ungated(self):
        """Launch by launch the host's share is part of what a model costs."""
        return self.case.variant not in GRAPHS

    def workload(self, run, verify):
        return Workload(run, verify, ungated=self.is_ungated())


def build_forward(case, inputs):
    model = Model(case, inputs, grad=False)

    def verify(outputs):  # a sequence does not depend on the others of its batch
        wanted = reference_logits(model.shape, model.parameters, model.tokens[-1:], model.mask)
        classes = slice(0, model.shape["v"])
        error = relative_error(outputs[0][-1:, :, classes], wanted[:, :, classes])
        return [(error, tolerance_of(case))]
    return model.workload(torch.no_grad()(lambda: (model.logits(),)), verify)


def build_forward_loss(case, inputs):
    model = Model(case, inputs, grad=False)
    return model.workload(torch.no_grad()(lambda: (model.loss(),)),
                          lambda outputs: model.check_loss(outputs[0], model.reference()))


def build_backward(case, inputs):
    model = Model(case, inputs, grad=True)
    return backward_work(case, model.loss, model.parameters, None,
                         lambda outputs: model.check_gradients(outputs, model.reference()),
                         ungated=model.is_ungated())


class Step:
    """Forward, backward, clipping and AdamW, of bf16 parameters on f32 masters."""

    def __init__(self, case, inputs):
        self.model = Model(case, inputs, grad=True)
        self.parameters = self.model.parameters
        self.has_masters = case.dtype == "bf16"
        self.masters = self.parameters
        if self.has_masters:
            self.masters = parameters_of(case.shape, inputs)
            for master in self.masters:
                master.grad = torch.empty_like(master)
        on_gpu = self.parameters[0].is_cuda
        self.rate = torch.zeros((), device=inputs.device)
        self.optimizer = torch.optim.AdamW(self.masters, lr=self.rate, **ADAMW, fused=True,
                                           capturable=on_gpu)

    def run(self):
        for parameter in self.parameters:
            parameter.grad = None
        loss = self.model.loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, MAX_NORM)
        if self.has_masters:
            torch._foreach_copy_([master.grad for master in self.masters],
                                 [parameter.grad for parameter in self.parameters])
        self.optimizer.step()
        if self.has_masters:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.masters)
        return (loss.detach(),)

    def verify(self, outputs):
        reference = self.model.reference()
        checks = self.model.check_loss(outputs[0], reference)
        gradients = [parameter.grad for parameter in self.parameters]
        return (checks + self.model.check_gradients(gradients, reference, MAX_NORM)
                + self.check_update())

    def check_update(self):
        """By how much a step that moves changes the checked elements."""
        checked = [self.masters[i] for i in checked_tensors(self.masters)]
        before = [first_elements(master) for master in checked]
        states = [{name: first_elements(value) for name, value in
                   self.optimizer.state[master].items()} for master in checked]
        self.rate.fill_(CHECKED_RATE)
        self.run()
        self.rate.zero_()
        return [(relative_error(first_elements(master) - old,
                                adamw_change(old, first_elements(master.grad), state)), 1e-3)
                for master, old, state in zip(checked, before, states)]


def adamw_change(value, gradient, state):
    (beta1, beta2), step = ADAMW["betas"], float(state["step"]) + 1
    first = beta1 * state["exp_avg"] + (1 - beta1) * gradient
    second = beta2 * state["exp_avg_sq"] + (1 - beta2) * gradient**2
    root = (second / (1 - beta2**step)).sqrt() + ADAMW["eps"]
    return -CHECKED_RATE * (ADAMW["weight_decay"] * value + first / (1 - beta1**step) / root)


def build_step(case, inputs):
    step = Step(case, inputs)
    return step.model.workload(step.run, step.verify)


BUILDERS = {"model.forward": build_forward, "model.forward_loss": build_forward_loss,
            "model.backward": build_backward, "model.step": build_step}
