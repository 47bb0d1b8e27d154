"""The same function called in the ways that variants name."""
import torch

from ..variants import AUTOTUNE, COMPILED, GRAPHS, NUMPY, REDUCE_OVERHEAD
from ..workload import Workload

MODES = {AUTOTUNE: "max-autotune-no-cudagraphs", REDUCE_OVERHEAD: "reduce-overhead"}


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
        config.donated_buffer = not is_repeated(case)
    found = torch.compile(function, fullgraph=True, dynamic=False, mode=MODES.get(case.variant))
    if case.variant != REDUCE_OVERHEAD:
        return found

    def begin_and_call(*arguments):  # the outputs before these may be overwritten
        torch.compiler.cudagraph_mark_step_begin()
        return found(*arguments)
    return begin_and_call


def is_repeated(case):
    """Whether a backward pass is run again and again from one forward pass. Compiled, it may
    write over what that kept (donated buffers), as in a training step; a graph's replay, and
    what is not compiled, find it as it was."""
    return case.variant not in COMPILED or case.variant in GRAPHS


def backward_work(case, forward, leaves, gradients, verify, **further):
    """Autograd's pass behind forward, which is not timed."""
    if is_repeated(case):
        outputs = forward()
        return Workload(lambda: torch.autograd.grad(outputs, leaves, gradients, retain_graph=True),
                        verify, **further)
    recorded = []

    def before():
        recorded[:] = [forward()]

    def run():
        return torch.autograd.grad(recorded.pop(), leaves, gradients)
    return Workload(run, verify, before=before, **further)


def forward_run(function, leaves, keep):
    """keep: whether autograd records what a backward pass would read."""
    def run():
        with torch.set_grad_enabled(bool(keep)):
            return (function(*leaves),)
    return run
