"""Optimizer steps and gradient clipping over a model's parameters."""
import torch

from ..parameters import parameter_shapes
from ..variants import EAGER, FOREACH, FUSED, NUMPY
from ..workload import Workload
from .checks import compared
from .inputs import torch_dtype

ADAMW = dict(lr=1e-3, betas=(0.9, 0.99), eps=1e-3, weight_decay=0.1)
SGD = dict(lr=1e-3, momentum=0.9)
CHECKED_ELEMENTS = 4096  # of a tensor


class ArrayAdamW:
    """In numpy's words, with a state as PyTorch's has it."""

    def __init__(self, parameters):
        self.state = {parameter: {"step": torch.zeros(()), "exp_avg": torch.zeros_like(parameter),
                                  "exp_avg_sq": torch.zeros_like(parameter)}
                      for parameter in parameters}

    def step(self):
        from .arrays import adamw
        for parameter, state in self.state.items():
            state["step"] += 1
            operands = parameter, parameter.grad, state["exp_avg"], state["exp_avg_sq"]
            adamw(*(x.detach().numpy() for x in operands), float(state["step"]), **ADAMW)


def make_optimizer(case, parameters):
    if case.variant == NUMPY:
        return ArrayAdamW(parameters)
    implementation = {"foreach": case.variant == FOREACH,
                      "fused": case.variant == FUSED}
    if case.name == "optimizer.sgd":
        return torch.optim.SGD(parameters, **SGD, **implementation)
    if case.variant == EAGER:
        implementation["capturable"] = parameters[0].is_cuda
    return torch.optim.AdamW(parameters, **ADAMW, **implementation)


def copy_all(destinations, sources, case):
    if case.variant == EAGER:
        for destination, source in zip(destinations, sources):
            destination.copy_(source)
    else:
        torch._foreach_copy_(destinations, sources)


def model_gradients(case, inputs):
    return [inputs.normal(*size, dtype=case.dtype, stream=2 * i + 1)
            for i, size in enumerate(parameter_shapes(case.shape))]


def adamw_reference(parameter, gradient, state):
    beta1, beta2 = ADAMW["betas"]
    step = float(state["step"]) + 1
    first = beta1 * state["exp_avg"] + (1 - beta1) * gradient
    second = beta2 * state["exp_avg_sq"] + (1 - beta2) * gradient**2
    direction = (first / (1 - beta1**step)) / ((second / (1 - beta2**step)).sqrt() + ADAMW["eps"])
    return (1 - ADAMW["lr"] * ADAMW["weight_decay"]) * parameter - ADAMW["lr"] * direction


def sgd_reference(parameter, gradient, state):
    return parameter - SGD["lr"] * (SGD["momentum"] * state["momentum_buffer"] + gradient)


def first_elements(tensor):
    return tensor.detach().flatten()[:CHECKED_ELEMENTS].double()


def checked_tensors(tensors):
    """The first, one from the middle and the last, of different sizes in every model."""
    return [0, len(tensors) // 2, len(tensors) - 1]


def step_references(case, optimizer, parameters, gradients):
    """What the next step makes of the checked elements."""
    reference = adamw_reference if case.name == "optimizer.adamw" else sgd_reference
    results = []
    for i in checked_tensors(parameters):
        state = {name: first_elements(value)
                 for name, value in optimizer.state[parameters[i]].items()}
        results.append(reference(first_elements(parameters[i]), first_elements(gradients[i]),
                                 state))
    return results


def build_step(case, inputs):
    sizes = parameter_shapes(case.shape)
    masters = [inputs.normal(*size, dtype="f32", stream=2 * i, stddev=0.02)
               for i, size in enumerate(sizes)]
    gradients = model_gradients(case, inputs)
    halves = case.dtype == "bf16"
    parameters = [master.bfloat16() for master in masters] if halves else masters
    for master, gradient in zip(masters, gradients):
        master.grad = torch.empty_like(master) if halves else gradient
    optimizer = make_optimizer(case, masters)
    master_gradients = [master.grad for master in masters]

    def run():
        if halves:
            copy_all(master_gradients, gradients, case)
        optimizer.step()
        if halves:
            copy_all(parameters, masters, case)
        return parameters[-1:]

    def verify(_outputs):
        references = step_references(case, optimizer, masters, gradients)
        run()
        checked = [first_elements(parameters[i]) for i in checked_tensors(parameters)]
        return compared(case, checked, references)
    return Workload(run, verify)


def build_clip_norm(case, inputs):
    gradients = model_gradients(case, inputs)

    def run():
        if case.variant == EAGER:
            norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
        else:
            norms = torch._foreach_norm(gradients, 2)
        norm = torch.linalg.vector_norm(torch.stack(norms))
        return norm, torch.clamp(1.0 / (norm + 1e-6), max=1.0)

    def verify(outputs):
        norms = [torch.linalg.vector_norm(g, dtype=torch.float64) for g in gradients]
        norm = torch.linalg.vector_norm(torch.stack(norms))
        return compared(case, outputs, [norm, torch.clamp(1.0 / (norm + 1e-6), max=1.0)])
    return Workload(run, verify)


def build_clip_scale(case, inputs):
    gradients = model_gradients(case, inputs)
    # A sign, as in the suite: gradients keep their size however often it runs.
    scale = torch.tensor(-1.0, dtype=torch_dtype(case.dtype), device=inputs.device)

    def run():
        if case.variant == EAGER:
            for gradient in gradients:
                gradient.mul_(scale)
        else:
            torch._foreach_mul_(gradients, scale)
        return gradients[-1:]

    def verify(_outputs):
        checked = checked_tensors(gradients)
        references = [-first_elements(gradients[i]) for i in checked]
        run()
        return compared(case, [first_elements(gradients[i]) for i in checked], references)
    return Workload(run, verify)


BUILDERS = {"optimizer.adamw": build_step, "optimizer.sgd": build_step,
            "optimizer.clip_norm": build_clip_norm, "optimizer.clip_scale": build_clip_scale}
