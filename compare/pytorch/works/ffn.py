"""The feed-forward network: linear, GELU, linear."""
import functools

from torch.nn import functional

from ..workload import Workload
from .calls import backward_work, compiled, forward_run
from .checks import compared, doubles, reference_gradients, sampled_indices


def ffn(x, w1, b1, w2, b2):
    hidden = functional.gelu(functional.linear(x, w1, b1), approximate="tanh")
    return functional.linear(hidden, w2, b2)


def ffn_leaves(case, inputs, grad):
    n, d, ff = (case.shape[name] for name in ("n", "d", "ff"))
    normal = functools.partial(inputs.normal, dtype=case.dtype, grad=grad)
    return [normal(n, d, stream=0), normal(ff, d, stream=1, stddev=d**-0.5),
            normal(ff, stream=2, stddev=0.1), normal(d, ff, stream=3, stddev=ff**-0.5),
            normal(d, stream=4, stddev=0.1)]


def build_ffn_forward(case, inputs):
    keep = case.shape["keep"]
    x, *parameters = ffn_leaves(case, inputs, grad=bool(keep))
    rows = sampled_indices(case.shape["n"], 16, inputs.device)

    def verify(outputs):
        return compared(case, [outputs[0][rows]], [ffn(*doubles(x[rows], *parameters))])
    return Workload(forward_run(compiled(ffn, case), [x, *parameters], keep), verify)


def build_ffn_backward(case, inputs):
    forward, leaves = compiled(ffn, case), ffn_leaves(case, inputs, grad=True)
    x, w1, b1, w2, b2 = leaves
    gradient = inputs.normal(*x.shape, dtype=case.dtype, stream=5)
    rows = sampled_indices(case.shape["n"], 16, inputs.device)
    units = sampled_indices(case.shape["ff"], 16, inputs.device)

    def verify(outputs):
        dx, dw1, db1, dw2, db2 = outputs
        # Rows do not depend on each other, and hidden units only through dy, which is given.
        of_rows = reference_gradients(ffn, [x[rows], w1, b1, w2, b2], [gradient[rows]])
        of_units = reference_gradients(ffn, [x, w1[units], b1[units], w2[:, units], b2],
                                       [gradient])
        return compared(case, [dx[rows], dw1[units], db1[units], dw2[:, units], db2],
                        [of_rows[0], *of_units[1:]])
    return backward_work(case, lambda: forward(*leaves), leaves, gradient, verify)


BUILDERS = {"ffn.forward": build_ffn_forward, "ffn.backward": build_ffn_backward}
