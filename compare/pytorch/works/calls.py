"""The same function called in the ways that variants name."""
import torch

from ..variants import COMPILED


def compiled(function, case):
    if case.variant not in COMPILED:
        return function
    from torch._functorch import config
    if hasattr(config, "donated_buffer"):
        config.donated_buffer = False  # a backward pass is measured many times on one graph
    return torch.compile(function, fullgraph=True, dynamic=False)


def autograd_run(outputs, leaves, gradients):
    return lambda: torch.autograd.grad(outputs, leaves, gradients, retain_graph=True)


def forward_run(function, leaves, keep):
    """keep: whether autograd records what a backward pass would read."""
    def run():
        with torch.set_grad_enabled(bool(keep)):
            return (function(*leaves),)
    return run
