"""Attention through scaled_dot_product_attention, held to one backend."""
import math

import torch
from torch.nn import functional

from ..variants import NUMPY, SDPA_BACKENDS
from ..workload import Workload
from .calls import backward_work, in_numpy
from .checks import compared, doubles, reference_gradients


def attention_of_head(causal):
    """softmax(q k^T / sqrt(d)) v of one head, [tokens, head_dim] each, spelled out."""
    def attend(q, k, v):
        scores = q @ k.T / math.sqrt(q.shape[1])
        if causal:
            future = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, -math.inf)
        return scores.softmax(1) @ v
    return attend


def sdpa_attention(case):
    if case.variant == NUMPY:
        return in_numpy(case)
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend, causal = getattr(SDPBackend, SDPA_BACKENDS[case.variant]), bool(case.shape["causal"])

    def attend(q, k, v):
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return attend


def attention_inputs(case, inputs, count, grad=False):
    s = case.shape
    return [inputs.normal(s["b"], s["h"], s["t"], s["d"], dtype=case.dtype, stream=stream,
                          grad=grad and stream < 3) for stream in range(count)]


CHECKED_HEADS = ((0, 0), (-1, -1))  # of batch and heads


def build_attention_forward(case, inputs):
    attend, reference = sdpa_attention(case), attention_of_head(case.shape["causal"])
    operands = attention_inputs(case, inputs, 3)

    def verify(outputs):
        return [pair for at in CHECKED_HEADS
                for pair in compared(case, [outputs[0][at]],
                                     [reference(*doubles(*(x[at] for x in operands)))])]
    return Workload(lambda: (attend(*operands),), verify)


def build_attention_backward(case, inputs):
    attend, reference = sdpa_attention(case), attention_of_head(case.shape["causal"])
    *leaves, gradient = attention_inputs(case, inputs, 4, grad=True)

    def verify(outputs):
        return [pair for at in CHECKED_HEADS
                for pair in compared(case, [output[at] for output in outputs],
                                     reference_gradients(reference, [x[at] for x in leaves],
                                                         [gradient[at]]))]
    return backward_work(case, lambda: attend(*leaves), leaves, gradient, verify)


BUILDERS = {"attention.forward": build_attention_forward,
            "attention.backward": build_attention_backward}
