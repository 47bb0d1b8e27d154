"""Layer and RMS normalization, with and without the residual in front."""
import functools

from torch.nn import functional

from ..workload import Workload
from .calls import backward_work, compiled
from .checks import compared, doubles, reference_gradients, sampled_indices

NORM_EPSILON = 1e-5


def norm_function(case):
    """Of x, weight, bias (layer norm only) and the residual (if fused, in front of the norm):
    the result, and the sum that is the next residual."""
    is_layer, has_residual = case.name.startswith("layernorm"), "_residual" in case.name

    def norm(x, weight, *rest):
        bias = rest[0] if is_layer else None
        total = x + rest[-1] if has_residual else x
        width = (x.shape[1],)
        if is_layer:
            normed = functional.layer_norm(total, width, weight, bias, NORM_EPSILON)
        else:
            normed = functional.rms_norm(total, width, weight, NORM_EPSILON)
        return (normed, total) if has_residual else (normed,)
    return norm


def norm_operands(case, inputs, grad):
    """What norm_function takes: those with a gradient of their own, and the residual, whose
    gradient is x's, as a list of one or none."""
    n, c = case.shape["n"], case.shape["c"]
    normal = functools.partial(inputs.normal, dtype=case.dtype)
    leaves = [normal(n, c, stream=0, grad=grad), normal(c, stream=1, grad=grad)]
    if case.name.startswith("layernorm"):
        leaves.append(normal(c, stream=2, grad=grad))
    return leaves, [normal(n, c, stream=3)] if "_residual" in case.name else []


def build_norm_forward(case, inputs):
    norm = norm_function(case)
    (x, *parameters), residual = norm_operands(case, inputs, grad=False)
    rows = sampled_indices(case.shape["n"], 64, inputs.device)
    run = compiled(norm, case)

    def verify(outputs):
        taken = [matrix[rows] for matrix in residual]
        return compared(case, [output[rows] for output in outputs],
                        norm(*doubles(x[rows], *parameters, *taken)))
    return Workload(lambda: run(x, *parameters, *residual), verify)


def build_norm_backward(case, inputs):
    norm = norm_function(case)
    leaves, residual = norm_operands(case, inputs, grad=True)
    forward = compiled(norm, case)
    gradients = [inputs.normal(*output.shape, dtype=case.dtype, stream=4 + i)
                 for i, output in enumerate(norm(*leaves, *residual))]

    def verify(found):
        return compared(case, found, reference_gradients(norm, leaves, gradients, residual))
    return backward_work(case, lambda: forward(*leaves, *residual), leaves, gradients, verify)


BUILDERS = {f"{kind}.{direction}": build
            for kind in ("layernorm", "layernorm_residual", "rmsnorm", "rmsnorm_residual")
            for direction, build in (("forward", build_norm_forward),
                                     ("backward", build_norm_backward))}
