"""Cross-entropy of each token."""
import torch
from torch.nn import functional

from ..workload import Workload
from .calls import backward_work, compiled, forward_run
from .checks import compared, doubles, sampled_indices


def token_losses(logits, targets):
    return functional.cross_entropy(logits, targets, reduction="none")


def build_loss(case, inputs):
    which = case.name.split(".")[1]
    s, losses_of = case.shape, compiled(token_losses, case)
    logits = inputs.normal(s["n"], s["v"], dtype=case.dtype, stream=0, grad=which != "forward")
    targets = inputs.tokens(s, torch.int64)
    gradient = inputs.normal(s["n"], dtype=case.dtype, stream=1)
    rows = sampled_indices(s["n"], 16, inputs.device)

    def forward_backward():
        losses = losses_of(logits, targets)
        return losses, *torch.autograd.grad(losses, logits, gradient)

    def verify(outputs):
        sample, = doubles(logits[rows], grad=True)
        losses = token_losses(sample, targets[rows])
        slopes, = torch.autograd.grad(losses, sample, gradient[rows].double())
        references = {"forward": [losses], "backward": [slopes]}.get(which, [losses, slopes])
        return compared(case, [output[rows] for output in outputs],
                        [reference.detach() for reference in references])

    if which == "forward":
        return Workload(forward_run(lambda x: losses_of(x, targets), [logits], keep=False), verify)
    if which == "backward":
        return backward_work(case, lambda: losses_of(logits, targets), logits, gradient, verify)
    return Workload(forward_backward, verify)


BUILDERS = {f"cross_entropy.{which}": build_loss
            for which in ("forward", "backward", "forward_backward")}
