"""--gradients: a model's loss and gradients, as the suite wrote them, beside PyTorch's."""
from .errors import STATUS_FAILED, STATUS_OK, UsageError
from .variants import EAGER

# How far a tensor may be from float64: the suites' tolerance, a tenth of what PyTorch's rows
# are verified with, or where that is more this many times PyTorch's own distance, since how
# much of a sum cancels is the model's business.
TIMES_TORCH = 2


def chosen_model(cases):
    """The one case whose loss and gradients the suite's --gradients are."""
    steps = [case for case in cases if (case.name, case.variant) == ("model.step", EAGER)]
    if len(steps) != 1:
        raise UsageError(f"--gradients wants one model: --filter and --dtype leave {len(steps)} "
                         f"of model.step {EAGER}")
    return steps[0]


def distance(found, wanted):
    return ((found.double() - wanted).norm() / wanted.norm()).item()


def compared_tensors(case, inputs, path):
    """A (name, the suite's error, PyTorch's, bound) for the loss and each gradient, by the
    distance from float64."""
    import torch
    from .parameters import parameter_names
    from .works.model import Model, tolerance_of
    from .works.weights import read_parameters, read_tensors
    model = Model(case, inputs, grad=True)
    written = read_tensors(path)
    suites = read_parameters(path, model.shape, inputs.device)
    model.tokens, model.targets = (written[name].long().to(inputs.device)
                                   for name in ("tokens", "targets"))
    loss = model.loss()
    torches = torch.autograd.grad(loss, model.parameters)
    reference, names = model.reference(), parameter_names(model.shape)

    def line(name, own, other, wanted):
        errors = distance(own, wanted), distance(other.detach(), wanted)
        return name, *errors, max(tolerance_of(case) / 10, TIMES_TORCH * errors[1])
    yield line("loss", written["loss"].to(inputs.device)[0], loss, reference.loss)
    for index, wanted in reference.gradients():
        yield line(names[index], suites[index], torches[index], wanted)


def agree(settings, cases):
    """Prints the farthest tensors; the exit status."""
    if not settings.weights:
        raise UsageError("--gradients wants --weights: the parameters that they are of")
    case = chosen_model(cases)
    try:
        import torch
    except ImportError as error:
        raise UsageError(f"cannot compare without PyTorch (pip install torch): {error}") from error
    from .works.inputs import Inputs
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high" if case.dtype == "tf32" else "highest")
    try:
        lines = list(compared_tensors(case, Inputs(device, settings.seed, settings.weights),
                                      settings.gradients))
    except (ValueError, KeyError) as error:
        raise UsageError(f"--gradients '{settings.gradients}': {error}") from error
    apart = [line for line in lines if not line[1] <= line[3]]
    print_lines(case, lines, apart, device)
    return STATUS_FAILED if apart else STATUS_OK


def print_lines(case, lines, apart, device):
    print(f"{case.line}: {len(lines)} tensors on {device}, distances from float64 on the same "
          "weights")
    print(f"{'':24} {'gpubench':>10} {'PyTorch':>10} {'bound':>10}")
    farthest = sorted(lines[1:], key=lambda line: -line[1] / line[3])[:5]
    for name, own, other, bound in lines[:1] + farthest:
        print(f"{name:24} {own:10.2e} {other:10.2e} {bound:10.2e}")
    print(f"{len(apart)} of {len(lines)} are farther than the bound"
          + "".join(f"\n  {name}: {own:.2e}" for name, own, _, _ in apart))
