"""The GPT in float64, a layer at a time: the largest model's doubles need not fit at once."""
import torch
from torch.nn import functional

from .block import transformer_block
from .checks import doubles
from .gpt import final_logits, head_parameters, layer_parameters, mean_loss


def streams(shape, parameters, tokens):
    """What enters each block, and what leaves the last."""
    block = transformer_block(shape["h"])
    table, positions = parameters[:2]
    with torch.no_grad():
        found = [functional.embedding(tokens, table).double() + positions.double()]
        for layer in range(shape["l"]):
            found.append(block(found[-1], *doubles(*layer_parameters(parameters, layer))))
    return found


def reference_logits(shape, parameters, tokens, mask):
    x = streams(shape, parameters, tokens)[-1]
    return final_logits(x, *doubles(*head_parameters(shape, parameters), mask))


def slopes(outputs, leaves, gradient=None):
    return torch.autograd.grad(outputs, leaves, gradient)


class ReferencePass:
    """The loss, and then the gradients one after the other, as (index, gradient)."""

    def __init__(self, shape, parameters, tokens, targets, mask):
        self.shape, self.parameters, self.tokens = shape, parameters, tokens
        self.streams = streams(shape, parameters, tokens)
        mask, = doubles(mask)
        self.leaves = doubles(self.streams[-1], *head_parameters(shape, parameters), grad=True)
        loss = mean_loss(final_logits(*self.leaves, mask), targets)
        self.loss = loss.detach()
        self.of_head = slopes(loss, self.leaves)

    def gradients(self):
        gradient, of_norm, of_bias, of_head = self.of_head
        last, tied = len(self.parameters), bool(self.shape["tied"])
        yield last - (2 if tied else 3), of_norm
        yield last - (1 if tied else 2), of_bias
        if not tied:
            yield last - 1, of_head
        block = transformer_block(self.shape["h"])
        for layer in reversed(range(self.shape["l"])):
            leaves = doubles(self.streams[layer], *layer_parameters(self.parameters, layer),
                             grad=True)
            gradient, *of_layer = slopes(block(*leaves), leaves, gradient)
            yield from ((2 + len(of_layer) * layer + i, each) for i, each in enumerate(of_layer))
        of_table = of_head if tied else torch.zeros_like(self.parameters[0], dtype=torch.float64)
        yield 0, of_table.index_add(0, self.tokens.flatten(), gradient.flatten(0, 1))
        yield 1, gradient.sum(0)
