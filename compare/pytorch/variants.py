"""Which cases of the suites have a peer here, and in which variants."""

EAGER, COMPILE, GRAPH = "torch-eager", "torch-compile", "torch-graph"
FOREACH, FUSED = "torch-foreach", "torch-fused"
PINNED, PAGEABLE = "torch-pinned", "torch-pageable"
SDPA_BACKENDS = {"torch-sdpa-flash": "FLASH_ATTENTION", "torch-sdpa-cudnn": "CUDNN_ATTENTION",
                 "torch-sdpa-efficient": "EFFICIENT_ATTENTION", "torch-sdpa-math": "MATH"}

# Whole models in a graph, where launches cost nothing, with attention held to a backend.
GRAPH_BACKENDS = {"torch-graph-flash": "FLASH_ATTENTION", "torch-graph-cudnn": "CUDNN_ATTENTION",
                  "torch-compile-graph-cudnn": "CUDNN_ATTENTION"}
PLAIN, COMPILE_GRAPH = "torch-plain", "torch-compile-graph"
AUTOTUNE = "torch-max-autotune"
# PyTorch's own graphs, a piece at a time; a backward pass that is run again from the same
# forward pass would find their memory taken.
REDUCE_OVERHEAD = "torch-reduce-overhead"
COMPILED = (COMPILE, AUTOTUNE, COMPILE_GRAPH, REDUCE_OVERHEAD, "torch-compile-graph-cudnn")
GRAPHS = (GRAPH, COMPILE_GRAPH, *GRAPH_BACKENDS)

# Some backends take halves only.
ATTENTION = {"f32": ("torch-sdpa-efficient", "torch-sdpa-math"), "tf32": ("torch-sdpa-math",),
             "f16": tuple(SDPA_BACKENDS), "bf16": tuple(SDPA_BACKENDS)}
WAYS = (EAGER, PLAIN, COMPILE, GRAPH, COMPILE_GRAPH)
BACKWARD = {"f32": WAYS, "tf32": WAYS, "bf16": WAYS + tuple(GRAPH_BACKENDS)}
MODEL = {dtype: ways + (REDUCE_OVERHEAD,) for dtype, ways in BACKWARD.items()}
STEPS = (EAGER, FOREACH, FUSED)
FUSABLE = (EAGER, COMPILE, AUTOTUNE)
PRODUCTS_WITHIN = FUSABLE + (GRAPH, COMPILE_GRAPH)

# Beside PyTorch on the CPU: the same work in numpy's words, and of a case's matrix products
# those of its linear layers alone, by numpy's BLAS.
NUMPY, PRODUCTS = "numpy", "numpy-products"
NUMPY_VARIANTS = (NUMPY, PRODUCTS)
SDPA_ON_CPU = ("torch-sdpa-flash", "torch-sdpa-math")
PATHS = (PINNED, PAGEABLE)


def each(names, variants):
    return {name: variants for name in names.split()}


LOSSES = "cross_entropy.forward cross_entropy.backward cross_entropy.forward_backward"
NORMS = ("layernorm.forward layernorm.backward rmsnorm.forward rmsnorm.backward "
         "layernorm_residual.forward layernorm_residual.backward "
         "rmsnorm_residual.forward rmsnorm_residual.backward")


# By suite and case: the variants, or by dtype the variants.
VARIANTS = {
    "attention": each("attention.forward attention.backward", ATTENTION),
    "block": each("block.forward block.backward", PRODUCTS_WITHIN),
    "ceilings": each("bandwidth.read bandwidth.write bandwidth.copy bandwidth.triad gemm.nn",
                     (EAGER,)),
    "embedding": each("embedding.forward embedding.backward", FUSABLE),
    "ffn": each("ffn.forward ffn.backward", PRODUCTS_WITHIN),
    "loss": each(LOSSES, FUSABLE),
    "memcpy": each("memcpy.h2d memcpy.d2h", PATHS) | each("memcpy.d2d memcpy.memset", (EAGER,)),
    "model": each("model.forward model.forward_loss model.step", MODEL)
    | each("model.backward", BACKWARD),
    "norm": each(NORMS, FUSABLE),
    "optimizer": each("optimizer.adamw optimizer.sgd", STEPS)
    | each("optimizer.clip_norm optimizer.clip_scale", (EAGER, FOREACH)),
}


def in_f32(variants, *further):
    """numpy has no halves."""
    return dict({dtype: variants for dtype in ATTENTION}, f32=variants + further)


CPU_VARIANTS = {
    "attention": {"attention.forward": in_f32(SDPA_ON_CPU, NUMPY),
                  "attention.backward": SDPA_ON_CPU},
    "block": {"block.forward": in_f32((EAGER, COMPILE), NUMPY, PRODUCTS),
              "block.backward": in_f32((EAGER, COMPILE), PRODUCTS)},
    "ceilings": dict(VARIANTS["ceilings"], **{"gemm.nn": in_f32((EAGER,), NUMPY)}),
    "embedding": {"embedding.forward": in_f32((EAGER, COMPILE), NUMPY),
                  "embedding.backward": (EAGER,)},
    "ffn": {"ffn.forward": in_f32((EAGER, COMPILE), NUMPY, PRODUCTS),
            "ffn.backward": in_f32((EAGER, COMPILE), PRODUCTS)},
    "loss": dict(each(LOSSES, (EAGER, COMPILE)),
                 **{"cross_entropy.forward": in_f32((EAGER, COMPILE), NUMPY)}),
    "memcpy": each("memcpy.h2h memcpy.memset", (EAGER,)),
    "model": each("model.forward model.forward_loss model.backward model.step",
                  (EAGER, PLAIN, COMPILE)),
    "norm": dict(each(NORMS, (EAGER, COMPILE)),
                 **each("layernorm.forward rmsnorm.forward layernorm_residual.forward "
                        "rmsnorm_residual.forward", in_f32((EAGER, COMPILE), NUMPY))),
    "optimizer": dict(VARIANTS["optimizer"], **{"optimizer.adamw": in_f32(STEPS, NUMPY)}),
}
PEERS = {"cuda": VARIANTS, "cpu": CPU_VARIANTS}


def variants_of(suite, name, dtype, backend="cuda"):
    """Empty: there is no peer."""
    found = PEERS[backend][suite].get(name, ())
    return found.get(dtype, ()) if isinstance(found, dict) else found


def all_variants():
    dtypes = list(ATTENTION) + ["u8"]
    return sorted({variant for backend, suites in PEERS.items()
                   for suite, names in suites.items() for name in names
                   for dtype in dtypes for variant in variants_of(suite, name, dtype, backend)})
