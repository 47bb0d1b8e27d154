"""The parameters of a model, by their shapes."""


def parameter_shapes(shape):
    """The tensors of a pre-norm GPT, in kernels/common/parameters.h's order."""
    d, ff = shape["d"], shape["ff"]
    layer = [(d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (ff, d), (ff,), (d, ff),
             (d,)]
    return [(shape["v"], d), (shape["t"], d)] + layer * shape["l"] + [(d,), (d,), (shape["v"], d)]


def table_rows(vocabulary):
    """Tables of a vocabulary that is no multiple of 8 are padded, as suites/model.c does."""
    return vocabulary if vocabulary % 8 == 0 else -(-vocabulary // 128) * 128


def model_shapes(shape):
    """As kernels/model/model.h has them: with padded tables, a tied head is no tensor."""
    sizes = parameter_shapes(dict(shape, v=table_rows(shape["v"])))
    return sizes[:-1] if shape["tied"] else sizes


LAYER_NAMES = ("ln1.weight", "ln1.bias", "qkv.weight", "qkv.bias", "proj.weight", "proj.bias",
               "ln2.weight", "ln2.bias", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")


def parameter_names(shape):
    """As kernels/model/checkpoint.h calls them, in the order of model_shapes."""
    of_layers = [f"h.{layer}.{name}" for layer in range(shape["l"]) for name in LAYER_NAMES]
    names = ["token_embedding", "position_embedding", *of_layers, "ln.weight", "ln.bias"]
    return names if shape["tied"] else [*names, "head.weight"]
