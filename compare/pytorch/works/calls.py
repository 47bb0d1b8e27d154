"""The same function called in the ways that variants name."""
import torch

from ..variants import COMPILED, NUMPY, REDUCE_OVERHEAD


def in_numpy(case):
    """The case in numpy's words, as a function of tensors whose memory the arrays share."""
    from .arrays import array_function
    function = array_function(case)

    def call(*tensors):
        found = function(*(tensor.detach().numpy() for tensor in tensors))
        return tuple(map(torch.from_numpy, found)) if isinstance(found, tuple) \
            else torch.from_numpy(found)
    return call


def compiled(function, case):
    if case.variant == NUMPY:
        return in_numpy(case)
    if case.variant not in COMPILED:
        return function
    from torch._functorch import config
    if hasattr(config, "donated_buffer"):
        config.donated_buffer = False  # a backward pass is measured many times on one graph
    if case.variant != REDUCE_OVERHEAD:
        return torch.compile(function, fullgraph=True, dynamic=False)
    found = torch.compile(function, fullgraph=True, dynamic=False, mode="reduce-overhead")

    def begin_and_call(*arguments):  # the outputs before these may be overwritten
        torch.compiler.cudagraph_mark_step_begin()
        return found(*arguments)
    return begin_and_call


def autograd_run(outputs, leaves, gradients):
    return lambda: torch.autograd.grad(outputs, leaves, gradients, retain_graph=True)


def forward_run(function, leaves, keep):
    """keep: whether autograd records what a backward pass would read."""
    def run():
        with torch.set_grad_enabled(bool(keep)):
            return (function(*leaves),)
    return run
