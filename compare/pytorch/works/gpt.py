"""The GPT of kernels/model/model.h: what it computes, and what it starts from."""
import contextlib
import math

import torch
from torch.nn import functional

from ..parameters import model_shapes, table_rows
from ..variants import GRAPH_BACKENDS, PLAIN
from .block import causal_attention, transformer_block
from .inputs import torch_dtype
from .weights import read_parameters

BLOCK_PARAMETERS = 12
MASKED = -30000.0  # a logit that has no share in any softmax, in every dtype


def plain_attention(future):
    """Spelled out over all heads at once; future masks what is not to be seen."""
    def attend(q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return scores.masked_fill(future, -math.inf).softmax(-1) @ v
    return attend


def chosen_attention(case, device):
    if case.variant != PLAIN:
        return causal_attention
    tokens = case.shape["t"]
    return plain_attention(torch.ones(tokens, tokens, dtype=torch.bool, device=device).triu(1))


def held_to_backend(variant):
    """The context in which a forward pass takes the variant's attention."""
    if variant not in GRAPH_BACKENDS:
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel(getattr(SDPBackend, GRAPH_BACKENDS[variant]))


def vocabulary_mask(shape, dtype, device):
    """A bias of the head that keeps padding rows out of the softmax; None: there are none."""
    rows = table_rows(shape["v"])
    if rows == shape["v"]:
        return None
    mask = torch.zeros(rows, dtype=torch_dtype(dtype), device=device)
    mask[shape["v"]:] = MASKED
    return mask


def layer_parameters(parameters, layer):
    first = 2 + BLOCK_PARAMETERS * layer
    return parameters[first:first + BLOCK_PARAMETERS]


def head_parameters(shape, parameters):
    """Of the final norm, its weight and bias, and the head, which may be the token table."""
    norm, bias, *head = parameters[2 + BLOCK_PARAMETERS * shape["l"]:]
    return norm, bias, head[0] if head else parameters[0]


def final_logits(x, norm, bias, head, mask):
    return functional.linear(functional.layer_norm(x, x.shape[-1:], norm, bias), head, mask)


def mean_loss(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def gpt(shape, attend, mask):
    """The logits, a function of the tokens and the parameters in their order."""
    block = transformer_block(shape["h"], attend)

    def logits(tokens, *parameters):
        x = functional.embedding(tokens, parameters[0]) + parameters[1]
        for layer in range(shape["l"]):
            x = block(x, *layer_parameters(parameters, layer))
        return final_logits(x, *head_parameters(shape, parameters), mask)
    return logits


def gpt_loss(shape, attend, mask):
    logits = gpt(shape, attend, mask)
    return lambda tokens, targets, *parameters: mean_loss(logits(tokens, *parameters), targets)


def spread_of(shape, index):
    """Mean and standard deviation of a tensor at the start: GPT-2's, biases too."""
    in_block = (index - 2) % BLOCK_PARAMETERS if index >= 2 else None
    if index >= 2 + BLOCK_PARAMETERS * shape["l"]:
        return (1, 0.02) if index == 2 + BLOCK_PARAMETERS * shape["l"] else (0, 0.02)
    if in_block in (0, 6):  # weights of norms
        return 1, 0.02
    if in_block in (4, 10):  # products that end a residual branch
        return 0, 0.02 / math.sqrt(2 * shape["l"])
    return 0, 0.02


def parameters_of(shape, inputs):
    """In f32, from the file that --weights names, or drawn."""
    if inputs.weights:
        return read_parameters(inputs.weights, shape, inputs.device)
    parameters = []
    for index, size in enumerate(model_shapes(shape)):
        mean, stddev = spread_of(shape, index)
        tensor = inputs.normal(*size, dtype="f32", stream=index, stddev=stddev).add_(mean)
        if size[0] == table_rows(shape["v"]) and len(size) == 2:
            tensor[shape["v"]:] = 0
        parameters.append(tensor)
    return parameters


def drawn_text(shape, inputs):
    """Tokens and, one further on, targets: [batch, tokens] each."""
    count = shape["b"] * (shape["t"] + 1)
    text = inputs.tokens({"n": count, "v": shape["v"], "tokens": "zipf"}, torch.int64)
    text = text.view(shape["b"], -1)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()
