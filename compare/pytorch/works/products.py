"""The matrix products of a case's linear layers alone, by numpy's BLAS: what is left of the
case's time when everything beside them is free."""
import torch

from ..workload import Workload
from .checks import compared, sampled_indices

# By the first word of a case: the (inputs, outputs) of its layers.
LAYERS = {"ffn": lambda s: [(s["d"], s["ff"]), (s["ff"], s["d"])],
          "block": lambda s: [(s["d"], 3 * s["d"]), (s["d"], s["d"]), (s["d"], s["ff"]),
                              (s["ff"], s["d"])]}


def operands_of(case, inputs):
    """A list of (left, right) tensors, transposed as the case's are: weights are [out, in]."""
    kind, direction = case.name.split(".")
    shape, pairs = case.shape, []
    tokens = shape["n"] if "n" in shape else shape["b"] * shape["t"]
    for i, (width, outputs) in enumerate(LAYERS[kind](shape)):
        x, weight, gradient = (inputs.normal(*size, dtype=case.dtype, stream=3 * i + j)
                               for j, size in enumerate([(tokens, width), (outputs, width),
                                                         (tokens, outputs)]))
        pairs += [(x, weight.T)] if direction == "forward" else \
            [(gradient, weight), (gradient.T, x)]
    return pairs


def build_products(case, inputs):
    import numpy
    pairs = operands_of(case, inputs)
    results = [torch.empty(left.shape[0], right.shape[1]) for left, right in pairs]
    arrays = [(left.numpy(), right.numpy(), result.numpy())
              for (left, right), result in zip(pairs, results)]

    def run():
        for left, right, result in arrays:
            numpy.matmul(left, right, out=result)
        return results

    def verify(outputs):
        references = []
        for (left, right), output in zip(pairs, outputs):
            rows = sampled_indices(len(output), 16, inputs.device)
            references.append((output[rows], left[rows].double() @ right.double()))
        return compared(case, *zip(*references))
    return Workload(run, verify)
