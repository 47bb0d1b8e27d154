"""The work on PyTorch: for each case of the suites a function (case, inputs) -> Workload."""
from . import (attention, block, ceilings, copies, embedding, ffn, loss, model, norm,
               optimizer)
from .inputs import Inputs

BUILDERS = {name: build
            for module in (attention, block, ceilings, copies, embedding, ffn, loss, model, norm,
                           optimizer)
            for name, build in module.BUILDERS.items()}


def builder(device, seed, weights=None):
    """A function Case -> Workload."""
    inputs = Inputs(device, seed, weights)
    return lambda case: BUILDERS[case.name](case, inputs)
