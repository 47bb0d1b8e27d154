"""The parameters of a model."""


def parameter_shapes(shape):
    """The tensors of a pre-norm GPT, in kernels/common/parameters.h's order."""
    d, ff = shape["d"], shape["ff"]
    layer = [(d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (ff, d), (ff,), (d, ff),
             (d,)]
    return [(shape["v"], d), (shape["t"], d)] + layer * shape["l"] + [(d,), (d,), (shape["v"], d)]
