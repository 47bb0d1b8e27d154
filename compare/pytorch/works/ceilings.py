"""What the device can do at most: memory passes and products of large matrices."""
import torch

from ..variants import NUMPY
from ..workload import Workload
from .checks import compared, equal, sampled_indices
from .copies import SET_VALUE, copy_workload


def build_read(case, inputs):
    words = inputs.words(case.shape["bytes"] // 4, stream=0)
    return Workload(lambda: (words.sum(),),
                    lambda outputs: equal(outputs[0], words[::2].sum() + words[1::2].sum()))


def build_write(case, inputs):
    words = torch.empty(case.shape["bytes"] // 4, dtype=torch.int32, device=inputs.device)
    return Workload(lambda: (words.fill_(SET_VALUE),),
                    lambda outputs: equal(outputs[0].amin(), outputs[0].amax())
                    + equal(outputs[0][0].cpu(), torch.tensor(SET_VALUE, dtype=torch.int32)))


def build_copy(case, inputs):
    source = inputs.words(case.shape["bytes"] // 4, stream=0)
    return copy_workload(torch.empty_like(source), source)


def build_triad(case, inputs):
    count, factor = case.shape["bytes"] // 4, 3.0
    b, c = (inputs.normal(count, dtype="f32", stream=stream) for stream in (0, 1))
    a = torch.empty_like(b)
    at = sampled_indices(count, 1 << 20, inputs.device)
    return Workload(lambda: (torch.add(b, c, alpha=factor, out=a),),
                    lambda outputs: compared(case, [outputs[0][at]],
                                             [b[at].double() + factor * c[at].double()]))


def by_numpy_into(a, b, out):
    import numpy
    numpy.matmul(a.numpy(), b.numpy(), out=out.numpy())
    return out


def build_gemm(case, inputs):
    m, n, k = (case.shape[name] for name in ("m", "n", "k"))
    a = inputs.normal(m, k, dtype=case.dtype, stream=0)
    b = inputs.normal(k, n, dtype=case.dtype, stream=1)
    c = torch.empty(m, n, dtype=a.dtype, device=inputs.device)
    rows = sampled_indices(m, 16, inputs.device)
    multiply = by_numpy_into if case.variant == NUMPY else torch.mm
    return Workload(lambda: (multiply(a, b, out=c),),
                    lambda outputs: compared(case, [outputs[0][rows]],
                                             [a[rows].double() @ b.double()]))


BUILDERS = {"bandwidth.read": build_read, "bandwidth.write": build_write,
            "bandwidth.copy": build_copy, "bandwidth.triad": build_triad, "gemm.nn": build_gemm}
