"""The same work in numpy's words: what a user without PyTorch would write."""
import functools
import math

import numpy

from .norm import NORM_EPSILON


def attention(q, k, v, causal):
    scores = q @ k.swapaxes(-1, -2) * numpy.float32(1 / math.sqrt(q.shape[-1]))
    if causal:
        scores[..., ~numpy.tri(q.shape[-2], dtype=bool)] = -math.inf
    return softmax(scores) @ v


def softmax(scores):
    scores -= scores.max(-1, keepdims=True)
    numpy.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    spread = numpy.sqrt(numpy.square(centred).mean(-1, keepdims=True) + NORM_EPSILON)
    return centred / spread * weight + bias


def rms_norm(x, weight):
    return x / numpy.sqrt(numpy.square(x).mean(-1, keepdims=True) + NORM_EPSILON) * weight


def norm(x, *rest, is_layer, has_residual):
    """As works/norm.py's function, over its operands."""
    parameters = rest[:2] if is_layer else rest[:1]
    total = x + rest[-1] if has_residual else x
    normed = (layer_norm if is_layer else rms_norm)(total, *parameters)
    return (normed, total) if has_residual else (normed,)


def gelu(x):
    return 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def ffn(x, w1, b1, w2, b2):
    return gelu(x @ w1.T + b1) @ w2.T + b2


def block(x, norm1, norm1_bias, qkv, qkv_bias, projection, projection_bias,
          norm2, norm2_bias, up, up_bias, down, down_bias, heads):
    batch, tokens, width = x.shape
    rows = layer_norm(x, norm1, norm1_bias) @ qkv.T + qkv_bias
    q, k, v = (part.reshape(batch, tokens, heads, -1).swapaxes(1, 2)
               for part in numpy.split(rows, 3, axis=2))
    merged = attention(q, k, v, True).swapaxes(1, 2).reshape(batch, tokens, width)
    middle = x + merged @ projection.T + projection_bias
    return middle + ffn(layer_norm(middle, norm2, norm2_bias), up, up_bias, down, down_bias)


def token_losses(logits, targets):
    largest = logits.max(1)
    sums = numpy.exp(logits - largest[:, None]).sum(1)
    return numpy.log(sums) + largest - logits[numpy.arange(len(targets)), targets]


def embed(tokens, token_table, position_table=None):
    rows = token_table[tokens]
    if position_table is not None:
        rows.reshape(-1, *position_table.shape)[...] += position_table
    return rows


def adamw(value, gradient, first, second, step, *, lr, betas, eps, weight_decay):
    """In place, at step 1, 2, ..."""
    (beta1, beta2), rate = betas, lr / (1 - betas[0]**step)
    first *= beta1
    first += (1 - beta1) * gradient
    second *= beta2
    second += (1 - beta2) * gradient * gradient
    value *= 1 - lr * weight_decay
    value -= rate * first / (numpy.sqrt(second / (1 - beta2**step)) + eps)


def array_function(case):
    """Of the case's operands as arrays."""
    kind, shape = case.name.split(".")[0], case.shape
    if "norm" in kind:
        return functools.partial(norm, is_layer=kind.startswith("layernorm"),
                                 has_residual=kind.endswith("_residual"))
    return {"attention": functools.partial(attention, causal=shape.get("causal")),
            "block": functools.partial(block, heads=shape.get("h")),
            "cross_entropy": token_losses, "embedding": embed, "ffn": ffn}[kind]
