"""A transformer block as kernels/block/block.h has it."""
import functools

from torch.nn import functional

from ..workload import Workload
from .calls import backward_work, compiled, forward_run
from .checks import compared, doubles, reference_gradients
from .ffn import ffn


causal_attention = functools.partial(functional.scaled_dot_product_attention, is_causal=True)


def transformer_block(heads, attend=causal_attention):
    """kernels/block/block.h's, over x and its twelve parameters in that header's order."""
    def block(x, norm1, norm1_bias, qkv, qkv_bias, projection, projection_bias,
              norm2, norm2_bias, up, up_bias, down, down_bias):
        batch, tokens, width = x.shape
        rows = functional.linear(functional.layer_norm(x, (width,), norm1, norm1_bias), qkv,
                                 qkv_bias)
        q, k, v = [part.view(batch, tokens, heads, -1).transpose(1, 2)
                   for part in rows.split(width, dim=2)]
        heard = attend(q, k, v)
        merged = heard.transpose(1, 2).reshape(batch, tokens, width)
        middle = x + functional.linear(merged, projection, projection_bias)
        normed = functional.layer_norm(middle, (width,), norm2, norm2_bias)
        return middle + ffn(normed, up, up_bias, down, down_bias)
    return block


def block_leaves(case, inputs, grad):
    s = case.shape
    d, ff = s["d"], s["ff"]
    normal = functools.partial(inputs.normal, dtype=case.dtype)
    sizes = [(d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (ff, d), (ff,), (d, ff),
             (d,)]
    leaves = [normal(s["b"], s["t"], d, stream=0)]
    for stream, size in enumerate(sizes, 1):
        is_matrix = len(size) == 2
        leaves.append(normal(*size, stream=stream, stddev=size[1]**-0.5 if is_matrix else 0.1))
    for norm_weight in (leaves[1], leaves[7]):
        norm_weight.add_(1)
    return [leaf.requires_grad_(grad) for leaf in leaves]


def build_block_forward(case, inputs):
    keep, block = case.shape["keep"], transformer_block(case.shape["h"])
    x, *parameters = block_leaves(case, inputs, grad=bool(keep))

    def verify(outputs):  # a sequence does not depend on the others of its batch
        return compared(case, [outputs[0][-1:]], [block(*doubles(x[-1:], *parameters))])
    return Workload(forward_run(compiled(block, case), [x, *parameters], keep), verify)


def build_block_backward(case, inputs):
    block = transformer_block(case.shape["h"])
    forward, leaves = compiled(block, case), block_leaves(case, inputs, grad=True)
    gradient = inputs.normal(*leaves[0].shape, dtype=case.dtype, stream=len(leaves))

    def verify(outputs):
        return compared(case, outputs, reference_gradients(block, leaves, [gradient]))
    return backward_work(case, lambda: forward(*leaves), leaves, gradient, verify)


BUILDERS = {"block.forward": build_block_forward, "block.backward": build_block_backward}
