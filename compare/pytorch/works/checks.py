"""Results held against the same operation in float64."""
import torch

# By ||out - reference|| / ||reference||: ten times what the suites demand, since it is to
# catch a wrong call (mask, scale, layout), not to grade a library's rounding.
TOLERANCE = {"f32": 1e-4, "tf32": 1e-2, "f16": 1e-2, "bf16": 6e-2}


def relative_error(output, reference):
    return ((output.detach().double() - reference).norm() / reference.norm()).item()


def compared(case, outputs, references):
    return [(relative_error(output, reference), TOLERANCE[case.dtype])
            for output, reference in zip(outputs, references)]


def equal(output, reference):
    return [(0.0 if torch.equal(output, reference) else 1.0, 0.0)]


def doubles(*tensors, grad=False):
    return [None if tensor is None else tensor.detach().double().requires_grad_(grad)
            for tensor in tensors]


def sampled_indices(count, wanted, device):
    """Evenly spread, the first and the last among them."""
    spread = torch.linspace(0, count - 1, min(count, wanted), dtype=torch.float64, device=device)
    return spread.round().long()


def reference_gradients(function, leaves, gradients, constants=()):
    """Gradients in float64 of function(*leaves, *constants)."""
    leaves, gradients = doubles(*leaves, grad=True), doubles(*gradients)
    outputs = function(*leaves, *doubles(*constants))
    return torch.autograd.grad(outputs, leaves, gradients)
