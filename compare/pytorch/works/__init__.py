"""The work on PyTorch: for each case of the suites a function (case, inputs) -> Workload."""
from ..variants import PRODUCTS
from . import (attention, block, ceilings, copies, embedding, ffn, loss, model, norm,
               optimizer, products)
from .inputs import Inputs

BUILDERS = {name: build
            for module in (attention, block, ceilings, copies, embedding, ffn, loss, model, norm,
                           optimizer)
            for name, build in module.BUILDERS.items()}


def builder(device, seed, weights=None):
    """A function Case -> Workload."""
    inputs = Inputs(device, seed, weights)
    return lambda case: build(case, inputs)


def build(case, inputs):
    if case.variant == PRODUCTS:
        return products.build_products(case, inputs)
    return BUILDERS[case.name](case, inputs)
