#!/usr/bin/env python3
"""PyTorch on the cases of the suites, written as schema 2, so that the compare
tool and the plots take its rows like any other file's.

    python3 compare/pytorch.py --csv torch.csv
    python3 compare/pytorch.py --suite attention --filter 't=1024 .*causal=1' --csv -
    build/gpubench-compare --variants results/attention.csv torch.csv

`make torch-baselines` runs it and puts the rows beside the suites' baselines.

How long it takes: a case about a third of a second in each process, the optimizer
on the largest models some seconds; the first compilation of a case some seconds
more. That is many minutes for all cases. With less time, --cases takes the cases
that a file lists, --without leaves variants out, --max-time shortens sampling:

    make torch-baselines ARGS="--cases scripts/speed_of_light.txt \
        --without torch-compile,torch-sdpa-math --max-time 0.05"

Needs Python 3.9 and, for measuring, PyTorch 2.5 with CUDA. A row's case, dtype
and params are the suite's, and so are its bytes and operations, whatever PyTorch
really moves. The variants:

    torch-eager       the calls that a user writes, one after the other; of the
                      optimizer foreach=False, an operation at a time
    torch-compile     the same through torch.compile, static shapes; compiling
                      happens before the warm-up
    torch-graph       torch-eager captured in a CUDA graph, a sample is a replay
    torch-foreach     the optimizer's horizontally fused loops
    torch-fused       the optimizer's single kernel
    torch-sdpa-NAME   scaled_dot_product_attention held to one backend
    torch-pinned, torch-pageable   which host memory a copy has at its end

Not here: block.part (PyTorch has no such seams), memcpy's .bidirectional,
.overlap and .peer, and f32 and tf32 attention on the backends that take halves
only.

What differs from the suites' own work, in PyTorch's favour or against it:

  - A backward pass is autograd's, from activations that PyTorch chose to keep
    (log-probabilities instead of a logarithm of a sum, for instance). keep=1
    is a forward pass that records for autograd, keep=0 one under no_grad.
  - bf16 losses are bf16; the suite's are f32.
  - The optimizer steps unscaled gradients. bf16 parameters have f32 masters as
    in the suite: the gradients are copied to f32, the masters are stepped and
    copied back, since PyTorch has no step that does the three at once. AdamW of
    torch-eager is capturable=True: more launches than a queue holds need a graph.
  - Samples do not take turns on several streams.

One sample: a sleep kernel, an L2 flush (twice the L2), start event, the work,
stop event. In mode cold the flush only reads, as the suites' does, so that the
L2 holds nothing of the case's and nothing dirty; in mode dirty it writes, as
do_bench's does, and what it wrote is written back while the work is timed. The
sleep lasts until the host has enqueued everything: a sample whose start event
had come to pass before the stop event was enqueued is taken again, after a while
behind a longer sleep. Work that no sleep of 50 ms hides is captured in a CUDA
graph and flagged `captured`; what can be neither hidden nor captured is flagged
`ungated`, as in the suites. Warm-up, stopping rule and statistics are
gpubench.h's.

Every result is checked against the same operation in float64, on sampled rows
where the operation lets rows be taken alone, and every element must be a
number. The bound is ten times the suites': it is there to catch a wrong call
(mask, scale, layout), not to grade a library's rounding. Work that goes on
after the stop event, on another stream, fails the case.

Whatever goes wrong in a case is a row with a status, a message, and no numbers, and
the rest goes on: out of memory too; after an error that destroys the CUDA context,
and after a crash, in a fresh process. SIGTERM ends it with the rows so far. Exit
status: 0 all
measured and verified, 1 some case failed, 2 bad usage or no way to measure.
"""
import argparse
import bisect
import contextlib
import csv
import ctypes
import dataclasses
import functools
import gc
import itertools
import math
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

torch = functional = None  # load_torch sets them: all but measuring works without PyTorch

PROGRAM = "pytorch"
GPUBENCH_VERSION = "2.0.0"  # whose schema and definitions these are

COLUMNS = """
schema suite case variant backend dtype params mode
campaign run order status flags
samples batch warmup min_us p5_us p25_us median_us p75_us p95_us p99_us max_us mean_us stddev_us
ci95_low_us ci95_high_us overhead_us events_us host_us
bytes flops gb_per_s tflop_per_s max_error tolerance device_bytes
sm_mhz mem_mhz temperature_c power_w energy_mj
device uuid pci compute_capability sm_count l2_bytes memory_bytes power_limit_w driver cuda_runtime
cpu gpubench_version compiler git seed settings timestamp
""".split()

SCHEMA = 2
MODES = ("cold", "dirty")

DTYPE_BYTES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "u8": 1}
TOLERANCE = {"f32": 1e-5, "tf32": 1e-3, "f16": 1e-3, "bf16": 6e-3, "u8": 0.0}
LIBRARY_FACTOR = 10  # times the suites' tolerance

STATUS_OK, STATUS_FAILED, STATUS_USAGE, STATUS_LOST = 0, 1, 2, 3


class UsageError(Exception):
    """Ends the program with status 2."""


def say(message):
    print(f"{PROGRAM}: {message}", file=sys.stderr, flush=True)


# ---- statistics: gpubench.h's definitions --------------------------------------------


def quantile(ordered, p):
    """Definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996."""
    position = (len(ordered) - 1) * p
    below = int(position)
    if below + 1 >= len(ordered):
        return ordered[-1]
    return ordered[below] + (position - below) * (ordered[below + 1] - ordered[below])


def median_ranks(count):
    """The order statistics between which the median lies with 95 %: exactly by the
    binomial up to 64 samples, by its normal approximation above."""
    outside = 0
    if count > 64:
        outside = int(count / 2 - 0.98 * math.sqrt(count) + 0.5)
    else:
        term = tail = 0.5**count
        k = 0
        while tail <= 0.025 and k < count:
            outside = k + 1
            term *= (count - k) / (k + 1)
            tail += term
            k += 1
    low = max(outside - 1, 0)
    return low, count - 1 - low


def describe(samples):
    """The statistics of the file's time columns, by their names."""
    ordered = sorted(samples)
    count = len(ordered)
    # Around the minimum, so that equal samples give exactly 0.
    mean = ordered[0] + sum(sample - ordered[0] for sample in ordered) / count
    squares = sum((sample - mean) ** 2 for sample in ordered)
    low, high = median_ranks(count)
    quantiles = {f"p{percent}_us": quantile(ordered, percent / 100)
                 for percent in (5, 25, 75, 95, 99)}
    return dict(quantiles, min_us=ordered[0], max_us=ordered[-1], mean_us=mean,
                median_us=quantile(ordered, 0.5),
                stddev_us=math.sqrt(squares / (count - 1)) if count > 1 else 0.0,
                ci95_low_us=ordered[low], ci95_high_us=ordered[high])


# ---- seeded numbers that are the same as the suites' ---------------------------------

MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def splitmix(state):
    """The next state and number of Steele, Lea and Flood's generator, OOPSLA 2014."""
    state = (state + 0x9E3779B97F4A7C15) & MASK64
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return state, z ^ (z >> 31)


def shuffled(items, seed, run):
    """A permutation by the seed and the run (Fisher and Yates), gpubench.h's."""
    state, order = (seed * 1000003 + run) & MASK64, []
    for i, item in enumerate(items):
        state, number = splitmix(state)
        j = number % (i + 1)
        order.append(item)
        order[i], order[j] = order[j], item
    return order


def philox(seed, block):
    """Four 32-bit words: Philox4x32-10 (Salmon et al., SC 2011, section 3.3)."""
    key0, key1 = seed & MASK32, seed >> 32 & MASK32
    w0, w1, w2, w3 = block & MASK32, block >> 32, 0, 0
    for _ in range(10):
        product0, product1 = 0xD2511F53 * w0, 0xCD9E8D57 * w2
        w0, w1 = (product1 >> 32) ^ w1 ^ key0, product1 & MASK32
        w2, w3 = (product0 >> 32) ^ w3 ^ key1, product0 & MASK32
        key0, key1 = (key0 + 0x9E3779B9) & MASK32, (key1 + 0xBB67AE85) & MASK32
    return w0, w1, w2, w3


def unit_interval_numbers(count, seed):
    """In [0, 1), from the upper 53 of 64 bits."""
    numbers = []
    for block in range((count + 1) // 2):
        w0, w1, w2, w3 = philox(seed, block)
        numbers.append(((w1 << 32 | w0) >> 11) * 2.0**-53)
        numbers.append(((w3 << 32 | w2) >> 11) * 2.0**-53)
    return numbers[:count]


@functools.lru_cache(maxsize=None)
def make_tokens(count, vocabulary, distribution, seed):
    """Token ids as kernels/tokens.h defines them: how many of them differ decides
    the bytes of an embedding, so they must be the suite's own."""
    numbers = unit_interval_numbers(count, seed)
    if distribution == "uniform":
        return [int(number * vocabulary) for number in numbers]
    sums = list(itertools.accumulate(1.0 / (k + 1) for k in range(vocabulary)))
    return [min(bisect.bisect_right(sums, number * sums[-1]), vocabulary - 1)
            for number in numbers]


# ---- cases: the suites' names, dtypes and params -------------------------------------


@dataclasses.dataclass(frozen=True)
class Model:
    d_model: int
    d_ff: int
    layers: int
    heads: int


MODELS = (Model(768, 3072, 12, 12), Model(1024, 4096, 24, 16), Model(1280, 5120, 36, 20),
          Model(1600, 6400, 48, 25), Model(2560, 10240, 32, 32))
FILLING_MODELS = (MODELS[0], MODELS[3])  # also at batch 8, context 1024

PRODUCT_DTYPES = ("f32", "tf32", "f16", "bf16")
PLAIN_DTYPES = ("f32", "bf16")


@dataclasses.dataclass(frozen=True)
class Case:
    suite: str
    name: str
    variant: str
    dtype: str
    params: str

    @property
    def key(self):
        return f"{self.name} {self.variant} {self.dtype} {self.params}"

    @property
    def line(self):
        """What --cases calls it: all of its variants."""
        return f"{self.name} {self.dtype} {self.params}"

    @property
    def shape(self):
        return shape_of(self.params)

    def work(self, seed):
        """Bytes and operations of one run, 0 for none."""
        return WORK[self.name](self.shape, DTYPE_BYTES[self.dtype], seed)


def shape_of(params):
    pairs = (pair.split("=") for pair in params.split())
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


def params_of(**values):
    return " ".join(f"{name}={value}" for name, value in values.items())


def attention_cases():
    shapes = [(4, m.heads, 128, m.d_model // m.heads) for m in MODELS]
    shapes += [(4, 12, 1024, 64), (16, 16, 1024, 128), (4, 16, 4096, 64), (4, 16, 4096, 128),
               (2, 16, 8192, 64), (2, 16, 8192, 128)]
    for (b, h, t, d), causal in itertools.product(shapes, (0, 1)):
        params = params_of(b=b, h=h, t=t, d=d, causal=causal)
        for dtype in PRODUCT_DTYPES:
            yield "attention.forward", dtype, params
            if t != 4096:
                yield "attention.backward", dtype, params


def block_cases():
    def passes(batch, tokens, m, dtype, with_keep):
        params = params_of(b=batch, t=tokens, d=m.d_model, h=m.heads, ff=m.d_ff)
        yield "block.forward", dtype, f"{params} keep=0"
        yield "block.backward", dtype, params
        if with_keep:
            yield "block.forward", dtype, f"{params} keep=1"

    smallest, largest = MODELS[0], MODELS[-1]
    for m in MODELS:
        yield from passes(4, 128, m, "f32", m is smallest)
        yield from passes(4, 128, m, "bf16", m in (smallest, largest))
    yield from passes(8, 1024, smallest, "f32", False)
    yield from passes(8, 1024, smallest, "bf16", True)
    yield from passes(8, 1024, largest, "bf16", True)


def ceilings_cases():
    for operation, dtype in (("read", "u8"), ("write", "u8"), ("copy", "u8"), ("triad", "f32")):
        yield f"bandwidth.{operation}", dtype, params_of(bytes=1 << 30)
    for size, dtype in itertools.product((4096, 8192), PRODUCT_DTYPES):
        yield "gemm.nn", dtype, params_of(m=size, n=size, k=size)


def embedding_cases():
    shapes = [(512, 10000, m.d_model, 128, tokens)
              for m in MODELS for tokens in ("uniform", "zipf")]
    shapes += [(8192, 50257, m.d_model, 1024, tokens)
               for m in FILLING_MODELS for tokens in ("uniform", "zipf")]
    shapes += [(n, v, c, 0, "uniform")
               for n, v, c in ((512, 10000, 768), (512, 10000, 2560), (8192, 10000, 768),
                               (8192, 50257, 768), (32768, 50257, 1600))]
    for (n, v, c, t, tokens), dtype in itertools.product(shapes, PLAIN_DTYPES):
        params = params_of(n=n, v=v, c=c, t=t, tokens=tokens)
        yield "embedding.forward", dtype, params
        yield "embedding.backward", dtype, params


def ffn_cases():
    shapes = [(512, m.d_model, m.d_ff, PRODUCT_DTYPES) for m in MODELS]
    shapes += [(8192, m.d_model, m.d_ff, PRODUCT_DTYPES) for m in FILLING_MODELS]
    shapes += [(8192, 4096, 16384, ("f16", "bf16"))]
    for n, d, ff, dtypes in shapes:
        params = params_of(n=n, d=d, ff=ff)
        for dtype in dtypes:
            yield "ffn.forward", dtype, f"{params} keep=0"
            yield "ffn.forward", dtype, f"{params} keep=1"
            yield "ffn.backward", dtype, params


def loss_cases():
    passes = ("forward", "backward", "forward_backward")
    for (n, v), dtype, each in itertools.product(((512, 10000), (8192, 50257)), PLAIN_DTYPES,
                                                 passes):
        yield f"cross_entropy.{each}", dtype, params_of(n=n, v=v)


def memcpy_cases():
    sizes = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 1 << 30)
    for size, operation in itertools.product(sizes, ("h2d", "d2h", "d2d", "memset")):
        yield f"memcpy.{operation}", "u8", params_of(bytes=size)


def norm_cases():
    shapes = [(512, m.d_model) for m in MODELS] + [(8192, m.d_model) for m in FILLING_MODELS]
    shapes += [(32768, 2560)]
    kinds = ("layernorm", "layernorm_residual", "rmsnorm", "rmsnorm_residual")
    for (n, c), kind, dtype in itertools.product(shapes, kinds, PLAIN_DTYPES):
        yield f"{kind}.forward", dtype, params_of(n=n, c=c)
        yield f"{kind}.backward", dtype, params_of(n=n, c=c)


def optimizer_cases():
    operations = ("adamw", "sgd", "clip_norm", "clip_scale")
    for m, dtype, operation in itertools.product(MODELS, PLAIN_DTYPES, operations):
        shape = dict(d=m.d_model, ff=m.d_ff, l=m.layers, v=10000, t=128)
        elements = sum(map(math.prod, parameter_shapes(shape)))
        yield f"optimizer.{operation}", dtype, params_of(**shape, p=elements)


def parameter_shapes(shape):
    """The tensors of a pre-norm GPT, in kernels/parameters.h's order."""
    d, ff = shape["d"], shape["ff"]
    layer = [(d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (ff, d), (ff,), (d, ff),
             (d,)]
    return [(shape["v"], d), (shape["t"], d)] + layer * shape["l"] + [(d,), (d,), (shape["v"], d)]


SUITES = {"attention": attention_cases, "block": block_cases, "ceilings": ceilings_cases,
          "embedding": embedding_cases, "ffn": ffn_cases, "loss": loss_cases,
          "memcpy": memcpy_cases, "norm": norm_cases, "optimizer": optimizer_cases}

EAGER, COMPILE, GRAPH = "torch-eager", "torch-compile", "torch-graph"
SDPA_BACKENDS = {"torch-sdpa-flash": "FLASH_ATTENTION", "torch-sdpa-cudnn": "CUDNN_ATTENTION",
                 "torch-sdpa-efficient": "EFFICIENT_ATTENTION", "torch-sdpa-math": "MATH"}
SDPA_VARIANTS = {"f32": ("torch-sdpa-efficient", "torch-sdpa-math"), "tf32": ("torch-sdpa-math",),
                 "f16": tuple(SDPA_BACKENDS), "bf16": tuple(SDPA_BACKENDS)}
VARIANTS = {  # by suite, or by case where a suite's cases differ
    "block": (EAGER, COMPILE, GRAPH), "ffn": (EAGER, COMPILE, GRAPH),
    "loss": (EAGER, COMPILE), "norm": (EAGER, COMPILE),
    "embedding.forward": (EAGER, COMPILE), "embedding.backward": (EAGER,),
    "ceilings": (EAGER,), "memcpy": (EAGER,),
    "memcpy.h2d": ("torch-pinned", "torch-pageable"),
    "memcpy.d2h": ("torch-pinned", "torch-pageable"),
    "optimizer": (EAGER, "torch-foreach"),
    "optimizer.adamw": (EAGER, "torch-foreach", "torch-fused"),
    "optimizer.sgd": (EAGER, "torch-foreach", "torch-fused"),
}


def variants_of(suite, name, dtype):
    if suite == "attention":
        return SDPA_VARIANTS[dtype]
    return VARIANTS.get(name) or VARIANTS[suite]


def all_cases(suites, dtypes):
    return [Case(suite, name, variant, dtype, params)
            for suite in suites
            for name, dtype, params in SUITES[suite]() if dtype in dtypes
            for variant in variants_of(suite, name, dtype)]


ALL_VARIANTS = sorted({case.variant for case in all_cases(list(SUITES), list(DTYPE_BYTES))})


# ---- bytes and operations: the formulas of kernels/*.h -------------------------------
# Each takes the shape, the bytes of an element and the seed; 0 is "does not apply".


def attention_forward_work(s, size, _seed):
    elements = s["b"] * s["h"] * s["t"] * s["d"]
    return 4 * elements * size, 4 * elements * s["t"] // (2 if s["causal"] else 1)


def attention_backward_work(s, size, seed):
    data, flops = attention_forward_work(s, size, seed)
    return 2 * data, flops * 5 // 2


def block_parameters(s):
    d, ff = s["d"], s["ff"]
    return 4 * d * d + 2 * d * ff + 9 * d + ff


def block_products(s):
    return 2 * s["b"] * s["t"] * (4 * s["d"] ** 2 + 2 * s["d"] * s["ff"])


def block_forward_work(s, size, _seed):
    rows = s["b"] * s["t"]
    return (size * (2 * rows * s["d"] + block_parameters(s)),
            block_products(s) + 2 * rows * s["t"] * s["d"])


def block_backward_work(s, size, _seed):
    rows = s["b"] * s["t"]
    return (size * (3 * rows * s["d"] + 2 * block_parameters(s)),
            2 * block_products(s) + 5 * rows * s["t"] * s["d"])


def gemm_work(s, size, _seed):
    m, n, k = s["m"], s["n"], s["k"]
    return size * (m * k + k * n + m * n), 2 * m * n * k


def embedding_forward_work(s, size, seed):
    rows, columns, context = s["n"], s["c"], s["t"]
    distinct = len(set(make_tokens(rows, s["v"], s["tokens"], seed)))
    table_rows = distinct + min(context, rows)
    return (size * columns * (table_rows + rows) + 4 * rows, rows * columns if context else 0)


def embedding_backward_work(s, size, _seed):
    rows, columns, context = s["n"], s["c"], s["t"]
    return (size * columns * (rows + s["v"] + context) + 4 * rows,
            rows * columns * (2 if context else 1))


def ffn_forward_work(s, size, _seed):
    n, d, ff = s["n"], s["d"], s["ff"]
    kept = 2 * n * ff * s["keep"]
    return size * (2 * n * d + 2 * d * ff + d + ff + kept), 4 * n * d * ff


def ffn_backward_work(s, size, _seed):
    n, d, ff = s["n"], s["d"], s["ff"]
    return size * (3 * n * d + 2 * n * ff + 4 * d * ff + d + ff), 8 * n * d * ff


def loss_work(copies, row_bytes, flops):
    """Of logits that are passed over `copies` times (read, written)."""
    def work(s, size, _seed):
        elements = s["n"] * s["v"]
        return copies * elements * size + row_bytes * s["n"], flops * elements
    return work


def bytes_work(factor):
    return lambda s, _size, _seed: (factor * s["bytes"], 0)


def norm_work(copies, vectors, row_bytes, flops):
    """Of matrices passed over `copies` times and parameters passed over `vectors` times."""
    def work(s, size, _seed):
        elements = s["n"] * s["c"]
        data = copies * elements * size + vectors * s["c"] * size + row_bytes * s["n"]
        return data, flops * elements
    return work


def optimizer_work(size_to_bytes, flops):
    return lambda s, size, _seed: (size_to_bytes(size) * s["p"], flops * s["p"])


WORK = {
    "attention.forward": attention_forward_work, "attention.backward": attention_backward_work,
    "block.forward": block_forward_work, "block.backward": block_backward_work,
    "bandwidth.read": bytes_work(1), "bandwidth.write": bytes_work(1),
    "bandwidth.copy": bytes_work(2), "bandwidth.triad": bytes_work(3), "gemm.nn": gemm_work,
    "embedding.forward": embedding_forward_work, "embedding.backward": embedding_backward_work,
    "ffn.forward": ffn_forward_work, "ffn.backward": ffn_backward_work,
    "cross_entropy.forward": loss_work(1, 8, 4), "cross_entropy.backward": loss_work(2, 12, 3),
    "cross_entropy.forward_backward": loss_work(2, 12, 5),
    "memcpy.h2d": bytes_work(1), "memcpy.d2h": bytes_work(1), "memcpy.d2d": bytes_work(2),
    "memcpy.memset": bytes_work(1),
    "layernorm.forward": norm_work(2, 2, 8, 7), "layernorm.backward": norm_work(3, 3, 8, 13),
    "layernorm_residual.forward": norm_work(4, 2, 8, 8),
    "layernorm_residual.backward": norm_work(4, 3, 8, 14),
    "rmsnorm.forward": norm_work(2, 1, 4, 4), "rmsnorm.backward": norm_work(3, 2, 4, 9),
    "rmsnorm_residual.forward": norm_work(4, 1, 4, 5),
    "rmsnorm_residual.backward": norm_work(4, 2, 4, 10),
    "optimizer.adamw": optimizer_work(lambda size: 28, 15),
    "optimizer.sgd": optimizer_work(lambda size: 20, 5),
    "optimizer.clip_norm": optimizer_work(lambda size: size, 2),
    "optimizer.clip_scale": optimizer_work(lambda size: 2 * size, 1),
}


# ---- rows and the file ---------------------------------------------------------------


def number_text(value):
    """The shortest decimal of 15 to 17 digits that reads back as value; "" where a
    file has no text for it."""
    if not math.isfinite(value):
        return ""
    texts = (f"{value:.{digits}g}" for digits in (15, 16, 17))
    return next(text for text in texts if float(text) == value)


def field_text(value):
    if value is None:
        return ""
    return number_text(value) if isinstance(value, float) else str(value)


def write_rows(file, rows, with_header=True):
    """Rows are dictionaries; what they lack is empty."""
    writer = csv.writer(file, lineterminator="\n")
    if with_header:
        writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([field_text(row.get(column)) for column in COLUMNS])


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [dict(zip(COLUMNS, fields)) for fields in csv.reader(file)]


def is_replaceable(path):
    return not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)


def temporary_path(path):
    return f"{path}.{os.getpid()}.tmp"


def try_path(path):
    """Could the result be written? Found out before an hour of measuring."""
    real = os.path.realpath(path)
    try:
        if os.path.isdir(real):
            raise IsADirectoryError(21, os.strerror(21))
        if is_replaceable(real):
            os.close(os.open(temporary_path(real), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            os.unlink(temporary_path(real))
    except OSError as error:
        raise UsageError(f"--csv '{path}': {error.strerror}") from error


def write_csv(path, rows):
    """To a temporary file that then takes the name: a reader sees the old rows or all
    of the new ones. A pipe is written to as it is."""
    if path == "-":
        write_rows(sys.stdout, rows)
        return
    real = os.path.realpath(path)
    replaceable = is_replaceable(real)
    target = temporary_path(real) if replaceable else real
    try:
        with open(target, "w", newline="", encoding="utf-8") as file:
            write_rows(file, rows)
        if replaceable:
            os.replace(target, real)
    except OSError:
        if replaceable and os.path.exists(target):
            os.unlink(target)
        raise


def is_failure(status):
    return status not in ("ok", "unsupported", "skipped")


# ---- PyTorch -------------------------------------------------------------------------


def load_torch():
    global torch, functional
    try:
        import torch as torch_module
    except (ImportError, OSError) as error:  # not there, or not one of its libraries
        raise UsageError(f"cannot measure without PyTorch (pip install torch): {error}") from error
    torch, functional = torch_module, torch_module.nn.functional


def torch_dtype(dtype):
    names = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16",
             "u8": "uint8"}
    return getattr(torch, names[dtype])


@dataclasses.dataclass
class Workload:
    """One case at work. run enqueues it and returns its outputs, a sequence of tensors;
    verify gets those of the last run and returns (error, tolerance) pairs."""
    run: object
    verify: object
    synchronizes: bool = False  # inside run: no gate can hide its launches


class Inputs:
    """Seeded tensors; two with different streams differ."""

    def __init__(self, device, seed):
        self.device, self.seed = device, seed

    def generator(self, stream):
        return torch.Generator(self.device).manual_seed((self.seed * 1000 + stream) % 2**63)

    def normal(self, *size, dtype, stream, stddev=1.0, grad=False):
        values = torch.randn(size, dtype=torch_dtype(dtype), device=self.device,
                             generator=self.generator(stream))
        return values.mul_(stddev).requires_grad_(grad)

    def integers(self, count, stream, dtype, low, high):
        return torch.randint(low, high, (count,), dtype=dtype, device=self.device,
                             generator=self.generator(stream))

    def words(self, count, stream):
        return self.integers(count, stream, torch.int32, -2**31, 2**31)

    def bytes(self, count, stream):
        return self.integers(count, stream, torch.uint8, 0, 256)

    def tokens(self, shape, dtype):
        values = make_tokens(shape["n"], shape["v"], shape.get("tokens", "uniform"), self.seed)
        return torch.tensor(values, dtype=dtype, device=self.device)


def relative_error(output, reference):
    return ((output.detach().double() - reference).norm() / reference.norm()).item()


def compared(case, outputs, references):
    tolerance = LIBRARY_FACTOR * TOLERANCE[case.dtype]
    return [(relative_error(output, reference), tolerance)
            for output, reference in zip(outputs, references)]


def equal(output, reference):
    return [(0.0 if torch.equal(output, reference) else 1.0, 0.0)]


def doubles(*tensors, grad=False):
    return [None if tensor is None else tensor.detach().double().requires_grad_(grad)
            for tensor in tensors]


def sampled_indices(count, wanted, device):
    """Evenly spread, the first and the last among them."""
    spread = torch.linspace(0, count - 1, min(count, wanted), dtype=torch.float64, device=device)
    return spread.round().long()


def compiled(function, case):
    if case.variant != COMPILE:
        return function
    from torch._functorch import config
    if hasattr(config, "donated_buffer"):
        config.donated_buffer = False  # a backward pass is measured many times on one graph
    return torch.compile(function, fullgraph=True, dynamic=False)


def autograd_run(outputs, leaves, gradients):
    return lambda: torch.autograd.grad(outputs, leaves, gradients, retain_graph=True)


def reference_gradients(function, leaves, gradients, constants=()):
    """Gradients in float64 of function(*leaves, *constants)."""
    leaves, gradients = doubles(*leaves, grad=True), doubles(*gradients)
    outputs = function(*leaves, *doubles(*constants))
    return torch.autograd.grad(outputs, leaves, gradients)


# ---- attention -----------------------------------------------------------------------


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
    return Workload(autograd_run(attend(*leaves), leaves, gradient), verify)


# ---- feed-forward network ------------------------------------------------------------


def ffn(x, w1, b1, w2, b2):
    hidden = functional.gelu(functional.linear(x, w1, b1), approximate="tanh")
    return functional.linear(hidden, w2, b2)


def ffn_leaves(case, inputs, grad):
    n, d, ff = (case.shape[name] for name in ("n", "d", "ff"))
    normal = functools.partial(inputs.normal, dtype=case.dtype, grad=grad)
    return [normal(n, d, stream=0), normal(ff, d, stream=1, stddev=d**-0.5),
            normal(ff, stream=2, stddev=0.1), normal(d, ff, stream=3, stddev=ff**-0.5),
            normal(d, stream=4, stddev=0.1)]


def forward_run(function, leaves, keep):
    """keep: whether autograd records what a backward pass would read."""
    def run():
        with torch.set_grad_enabled(bool(keep)):
            return (function(*leaves),)
    return run


def build_ffn_forward(case, inputs):
    keep = case.shape["keep"]
    x, *parameters = ffn_leaves(case, inputs, grad=bool(keep))
    rows = sampled_indices(case.shape["n"], 16, inputs.device)

    def verify(outputs):
        return compared(case, [outputs[0][rows]], [ffn(*doubles(x[rows], *parameters))])
    return Workload(forward_run(compiled(ffn, case), [x, *parameters], keep), verify)


def build_ffn_backward(case, inputs):
    leaves = ffn_leaves(case, inputs, grad=True)
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
    return Workload(autograd_run(compiled(ffn, case)(*leaves), leaves, gradient), verify)


# ---- block ---------------------------------------------------------------------------


def transformer_block(heads):
    """kernels/block.h's, over x and its twelve parameters in that header's order."""
    def block(x, norm1, norm1_bias, qkv, qkv_bias, projection, projection_bias,
              norm2, norm2_bias, up, up_bias, down, down_bias):
        batch, tokens, width = x.shape
        rows = functional.linear(functional.layer_norm(x, (width,), norm1, norm1_bias), qkv,
                                 qkv_bias)
        q, k, v = [part.view(batch, tokens, heads, -1).transpose(1, 2)
                   for part in rows.split(width, dim=2)]
        heard = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
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
    leaves = block_leaves(case, inputs, grad=True)
    gradient = inputs.normal(*leaves[0].shape, dtype=case.dtype, stream=len(leaves))

    def verify(outputs):
        return compared(case, outputs, reference_gradients(block, leaves, [gradient]))
    return Workload(autograd_run(compiled(block, case)(*leaves), leaves, gradient), verify)


# ---- normalization -------------------------------------------------------------------

NORM_EPSILON = 1e-5


def norm_function(case):
    """Of x, weight, bias (layer norm only) and the residual (if fused, in front of the norm):
    the result, and the sum that is the next residual."""
    is_layer, has_residual = case.name.startswith("layernorm"), "_residual" in case.name

    def norm(x, weight, *rest):
        bias = rest[0] if is_layer else None
        total = x + rest[-1] if has_residual else x
        width = (x.shape[1],)
        if is_layer:
            normed = functional.layer_norm(total, width, weight, bias, NORM_EPSILON)
        else:
            normed = functional.rms_norm(total, width, weight, NORM_EPSILON)
        return (normed, total) if has_residual else (normed,)
    return norm


def norm_operands(case, inputs, grad):
    """What norm_function takes: those with a gradient of their own, and the residual, whose
    gradient is x's, as a list of one or none."""
    n, c = case.shape["n"], case.shape["c"]
    normal = functools.partial(inputs.normal, dtype=case.dtype)
    leaves = [normal(n, c, stream=0, grad=grad), normal(c, stream=1, grad=grad)]
    if case.name.startswith("layernorm"):
        leaves.append(normal(c, stream=2, grad=grad))
    return leaves, [normal(n, c, stream=3)] if "_residual" in case.name else []


def build_norm_forward(case, inputs):
    norm = norm_function(case)
    (x, *parameters), residual = norm_operands(case, inputs, grad=False)
    rows = sampled_indices(case.shape["n"], 64, inputs.device)
    run = compiled(norm, case)

    def verify(outputs):
        taken = [matrix[rows] for matrix in residual]
        return compared(case, [output[rows] for output in outputs],
                        norm(*doubles(x[rows], *parameters, *taken)))
    return Workload(lambda: run(x, *parameters, *residual), verify)


def build_norm_backward(case, inputs):
    norm = norm_function(case)
    leaves, residual = norm_operands(case, inputs, grad=True)
    outputs = compiled(norm, case)(*leaves, *residual)
    gradients = [inputs.normal(*output.shape, dtype=case.dtype, stream=4 + i)
                 for i, output in enumerate(outputs)]

    def verify(found):
        return compared(case, found, reference_gradients(norm, leaves, gradients, residual))
    return Workload(autograd_run(outputs, leaves, gradients), verify)


# ---- loss ----------------------------------------------------------------------------


def token_losses(logits, targets):
    return functional.cross_entropy(logits, targets, reduction="none")


def build_loss(case, inputs):
    which = case.name.split(".")[1]
    s, losses_of = case.shape, compiled(token_losses, case)
    logits = inputs.normal(s["n"], s["v"], dtype=case.dtype, stream=0, grad=which != "forward")
    targets = inputs.tokens(s, torch.int64)
    gradient = inputs.normal(s["n"], dtype=case.dtype, stream=1)
    rows = sampled_indices(s["n"], 16, inputs.device)

    def forward_backward():
        losses = losses_of(logits, targets)
        return losses, *torch.autograd.grad(losses, logits, gradient)

    def verify(outputs):
        sample, = doubles(logits[rows], grad=True)
        losses = token_losses(sample, targets[rows])
        slopes, = torch.autograd.grad(losses, sample, gradient[rows].double())
        references = {"forward": [losses], "backward": [slopes]}.get(which, [losses, slopes])
        return compared(case, [output[rows] for output in outputs],
                        [reference.detach() for reference in references])

    if which == "forward":
        run = forward_run(lambda x: losses_of(x, targets), [logits], keep=False)
    elif which == "backward":
        run = autograd_run(losses_of(logits, targets), logits, gradient)
    else:
        run = forward_backward
    return Workload(run, verify)


# ---- embedding -----------------------------------------------------------------------


def embed(tokens, token_table, position_table=None):
    """Rows are whole sequences, one after the other."""
    rows = functional.embedding(tokens, token_table)
    if position_table is None:
        return rows
    context, columns = position_table.shape
    return (rows.view(-1, context, columns) + position_table).view(-1, columns)


def embedding_tables(case, inputs, grad):
    s = case.shape
    sizes = [s["v"], s["t"]] if s["t"] else [s["v"]]
    return [inputs.normal(size, s["c"], dtype=case.dtype, stream=stream, grad=grad)
            for stream, size in enumerate(sizes)]


def build_embedding_forward(case, inputs):
    tokens = inputs.tokens(case.shape, torch.int32)
    tables = embedding_tables(case, inputs, grad=False)
    run = compiled(embed, case)

    def verify(outputs):
        reference = tables[0][tokens.long()].double()
        if len(tables) == 2:
            reference += tables[1].double().repeat(len(tokens) // len(tables[1]), 1)
        return compared(case, outputs, [reference])
    return Workload(lambda: (run(tokens, *tables),), verify)


def build_embedding_backward(case, inputs):
    s = case.shape
    tokens = inputs.tokens(s, torch.int32)
    tables = embedding_tables(case, inputs, grad=True)
    gradient = inputs.normal(s["n"], s["c"], dtype=case.dtype, stream=2)

    def verify(outputs):
        rows = gradient.double()
        by_token = torch.zeros(tables[0].shape, dtype=torch.float64, device=inputs.device)
        references = [by_token.index_add_(0, tokens.long(), rows)]
        if s["t"]:
            references.append(rows.view(-1, s["t"], s["c"]).sum(0))
        return compared(case, outputs, references)
    return Workload(autograd_run(embed(tokens, *tables), tables, gradient), verify)


# ---- optimizer -----------------------------------------------------------------------

ADAMW = dict(lr=1e-3, betas=(0.9, 0.99), eps=1e-3, weight_decay=0.1)
SGD = dict(lr=1e-3, momentum=0.9)
CHECKED_ELEMENTS = 4096  # of a tensor


def make_optimizer(case, parameters):
    implementation = {"foreach": case.variant == "torch-foreach",
                      "fused": case.variant == "torch-fused"}
    if case.name == "optimizer.sgd":
        return torch.optim.SGD(parameters, **SGD, **implementation)
    if case.variant == EAGER:
        implementation["capturable"] = parameters[0].is_cuda
    return torch.optim.AdamW(parameters, **ADAMW, **implementation)


def copy_all(destinations, sources, case):
    if case.variant == EAGER:
        for destination, source in zip(destinations, sources):
            destination.copy_(source)
    else:
        torch._foreach_copy_(destinations, sources)


def model_gradients(case, inputs):
    return [inputs.normal(*size, dtype=case.dtype, stream=2 * i + 1)
            for i, size in enumerate(parameter_shapes(case.shape))]


def adamw_reference(parameter, gradient, state):
    beta1, beta2 = ADAMW["betas"]
    step = float(state["step"]) + 1
    first = beta1 * state["exp_avg"] + (1 - beta1) * gradient
    second = beta2 * state["exp_avg_sq"] + (1 - beta2) * gradient**2
    direction = (first / (1 - beta1**step)) / ((second / (1 - beta2**step)).sqrt() + ADAMW["eps"])
    return (1 - ADAMW["lr"] * ADAMW["weight_decay"]) * parameter - ADAMW["lr"] * direction


def sgd_reference(parameter, gradient, state):
    return parameter - SGD["lr"] * (SGD["momentum"] * state["momentum_buffer"] + gradient)


def first_elements(tensor):
    return tensor.detach().flatten()[:CHECKED_ELEMENTS].double()


def checked_tensors(tensors):
    """The first, one from the middle and the last, of different sizes in every model."""
    return [0, len(tensors) // 2, len(tensors) - 1]


def step_references(case, optimizer, parameters, gradients):
    """What the next step makes of the checked elements."""
    reference = adamw_reference if case.name == "optimizer.adamw" else sgd_reference
    results = []
    for i in checked_tensors(parameters):
        state = {name: first_elements(value)
                 for name, value in optimizer.state[parameters[i]].items()}
        results.append(reference(first_elements(parameters[i]), first_elements(gradients[i]),
                                 state))
    return results


def build_step(case, inputs):
    sizes = parameter_shapes(case.shape)
    masters = [inputs.normal(*size, dtype="f32", stream=2 * i, stddev=0.02)
               for i, size in enumerate(sizes)]
    gradients = model_gradients(case, inputs)
    halves = case.dtype == "bf16"
    parameters = [master.bfloat16() for master in masters] if halves else masters
    for master, gradient in zip(masters, gradients):
        master.grad = torch.empty_like(master) if halves else gradient
    optimizer = make_optimizer(case, masters)
    master_gradients = [master.grad for master in masters]

    def run():
        if halves:
            copy_all(master_gradients, gradients, case)
        optimizer.step()
        if halves:
            copy_all(parameters, masters, case)
        return parameters[-1:]

    def verify(_outputs):
        references = step_references(case, optimizer, masters, gradients)
        run()
        checked = [first_elements(parameters[i]) for i in checked_tensors(parameters)]
        return compared(case, checked, references)
    return Workload(run, verify)


def build_clip_norm(case, inputs):
    gradients = model_gradients(case, inputs)

    def run():
        if case.variant == EAGER:
            norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
        else:
            norms = torch._foreach_norm(gradients, 2)
        norm = torch.linalg.vector_norm(torch.stack(norms))
        return norm, torch.clamp(1.0 / (norm + 1e-6), max=1.0)

    def verify(outputs):
        norms = [torch.linalg.vector_norm(g, dtype=torch.float64) for g in gradients]
        norm = torch.linalg.vector_norm(torch.stack(norms))
        return compared(case, outputs, [norm, torch.clamp(1.0 / (norm + 1e-6), max=1.0)])
    return Workload(run, verify)


def build_clip_scale(case, inputs):
    gradients = model_gradients(case, inputs)
    # A sign, as in the suite: gradients keep their size however often it runs.
    scale = torch.tensor(-1.0, dtype=torch_dtype(case.dtype), device=inputs.device)

    def run():
        if case.variant == EAGER:
            for gradient in gradients:
                gradient.mul_(scale)
        else:
            torch._foreach_mul_(gradients, scale)
        return gradients[-1:]

    def verify(_outputs):
        checked = checked_tensors(gradients)
        references = [-first_elements(gradients[i]) for i in checked]
        run()
        return compared(case, [first_elements(gradients[i]) for i in checked], references)
    return Workload(run, verify)


# ---- copies and ceilings -------------------------------------------------------------

SET_VALUE = 0x5A


def copy_workload(destination, source, synchronizes=False):
    def run():
        return (destination.copy_(source, non_blocking=True),)
    return Workload(run, lambda outputs: equal(outputs[0].cpu(), source.cpu()), synchronizes)


def build_h2d(case, inputs):
    pinned = case.variant == "torch-pinned"
    source = inputs.bytes(case.shape["bytes"], stream=0)
    host = source.cpu().pin_memory() if pinned else source.cpu()
    return copy_workload(torch.empty_like(source), host, synchronizes=not pinned)


def build_d2h(case, inputs):
    pinned = case.variant == "torch-pinned"
    source = inputs.bytes(case.shape["bytes"], stream=0)
    host = torch.zeros(source.shape, dtype=torch.uint8, pin_memory=pinned)
    return copy_workload(host, source, synchronizes=not pinned)


def build_d2d(case, inputs):
    source = inputs.bytes(case.shape["bytes"], stream=0)
    return copy_workload(torch.empty_like(source), source)


def build_memset(case, inputs):
    target = torch.empty(case.shape["bytes"], dtype=torch.uint8, device=inputs.device)
    return Workload(lambda: (target.fill_(SET_VALUE),),
                    lambda outputs: equal(outputs[0].amin(), outputs[0].amax())
                    + equal(outputs[0][0].cpu(), torch.tensor(SET_VALUE, dtype=torch.uint8)))


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


def build_gemm(case, inputs):
    m, n, k = (case.shape[name] for name in ("m", "n", "k"))
    a = inputs.normal(m, k, dtype=case.dtype, stream=0)
    b = inputs.normal(k, n, dtype=case.dtype, stream=1)
    c = torch.empty(m, n, dtype=a.dtype, device=inputs.device)
    rows = sampled_indices(m, 16, inputs.device)
    return Workload(lambda: (torch.mm(a, b, out=c),),
                    lambda outputs: compared(case, [outputs[0][rows]],
                                             [a[rows].double() @ b.double()]))


BUILDERS = {
    "attention.forward": build_attention_forward, "attention.backward": build_attention_backward,
    "block.forward": build_block_forward, "block.backward": build_block_backward,
    "bandwidth.read": build_read, "bandwidth.write": build_write, "bandwidth.copy": build_copy,
    "bandwidth.triad": build_triad, "gemm.nn": build_gemm,
    "embedding.forward": build_embedding_forward, "embedding.backward": build_embedding_backward,
    "ffn.forward": build_ffn_forward, "ffn.backward": build_ffn_backward,
    "cross_entropy.forward": build_loss, "cross_entropy.backward": build_loss,
    "cross_entropy.forward_backward": build_loss,
    "memcpy.h2d": build_h2d, "memcpy.d2h": build_d2h, "memcpy.d2d": build_d2d,
    "memcpy.memset": build_memset,
    "layernorm.forward": build_norm_forward, "layernorm.backward": build_norm_backward,
    "layernorm_residual.forward": build_norm_forward,
    "layernorm_residual.backward": build_norm_backward,
    "rmsnorm.forward": build_norm_forward, "rmsnorm.backward": build_norm_backward,
    "rmsnorm_residual.forward": build_norm_forward,
    "rmsnorm_residual.backward": build_norm_backward,
    "optimizer.adamw": build_step, "optimizer.sgd": build_step,
    "optimizer.clip_norm": build_clip_norm, "optimizer.clip_scale": build_clip_scale,
}


# ---- the device ----------------------------------------------------------------------


class Nvml:
    """NVML through ctypes. What it cannot tell is None."""

    THROTTLE_WORDS = {0x4: "power-cap", 0x8: "hw-slowdown", 0x10: "sync-boost",
                      0x20: "sw-thermal", 0x40: "hw-thermal", 0x80: "power-brake"}

    def __init__(self, uuid):
        self.device = None
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            initialized = self.library.nvmlInit_v2() == 0
        except (OSError, AttributeError):
            return
        device = ctypes.c_void_p()
        if initialized and self.library.nvmlDeviceGetHandleByUUID(
                uuid.encode(), ctypes.byref(device)) == 0:
            self.device = device

    def read(self, name, *arguments, type_=ctypes.c_uint):
        value = type_()
        function = getattr(self.library, name, None) if self.device else None
        if function is None or function(self.device, *arguments, ctypes.byref(value)) != 0:
            return None
        return value.value

    def driver(self):
        text = ctypes.create_string_buffer(96)
        if not self.device or self.library.nvmlSystemGetDriverVersion(text, len(text)) != 0:
            return None
        return text.value.decode()

    def watts(self, name):
        milliwatts = self.read(name)
        return None if milliwatts is None else milliwatts / 1000

    def sm_mhz(self):
        return self.read("nvmlDeviceGetClockInfo", 1)

    def state(self):
        return {"sm_mhz": self.sm_mhz(),
                "mem_mhz": self.read("nvmlDeviceGetClockInfo", 2),
                "temperature_c": self.read("nvmlDeviceGetTemperature", 0),
                "power_w": self.watts("nvmlDeviceGetPowerUsage")}

    def throttle_flags(self):
        reasons = self.read("nvmlDeviceGetCurrentClocksThrottleReasons",
                            type_=ctypes.c_ulonglong) or 0
        return [f"throttle={word}" for bit, word in self.THROTTLE_WORDS.items() if reasons & bit]


def processor_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = (line.split(":", 1)[1].strip() for line in file
                     if line.startswith("model name"))
            return next(names, "")
    except OSError:
        return ""


def revision():
    """The one that make knows, which may have been told it where there is no repository."""
    if os.environ.get("GIT"):
        return os.environ["GIT"]
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        found = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty"],
                               capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def choose_device(wanted):
    """The ordinal that --device names."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise UsageError(f"--device {wanted}: no usable GPU: PyTorch {torch.__version__} sees none")
    if wanted == "auto":
        return 0
    if wanted.isdigit() and int(wanted) < count:
        return int(wanted)
    for ordinal in range(count):
        if wanted == device_uuid(torch.cuda.get_device_properties(ordinal)):
            return ordinal
    raise UsageError(f"--device {wanted}: no such GPU; {count} visible, numbered from 0")


def device_uuid(properties):
    uuid = str(getattr(properties, "uuid", ""))
    return uuid if not uuid or uuid.startswith("GPU-") else f"GPU-{uuid}"


# Multiply-adds counted as two, per clock and SM: NVIDIA's architecture white papers.
FLOPS_PER_CLOCK = {80: {"f16": 2048, "bf16": 2048, "tf32": 1024, "f32": 128},
                   86: {"f16": 1024, "bf16": 1024, "tf32": 512, "f32": 256},
                   89: {"f16": 1024, "bf16": 1024, "tf32": 512, "f32": 256},
                   90: {"f16": 4096, "bf16": 4096, "tf32": 2048, "f32": 256},
                   100: {"f16": 8192, "bf16": 8192, "tf32": 4096, "f32": 256}}


class Gpu:
    """The device, the one stream that everything runs on, and the instrument: a sleep kernel
    for a gate, a buffer for the flush, two events."""

    CYCLES_PER_US = 2000  # of the sleep kernel: at a lower clock it sleeps longer, which is fine
    UNKNOWN_L2_BYTES = 128 << 20  # more than any device's, where PyTorch does not tell

    def __init__(self, wanted):
        ordinal = choose_device(wanted)
        torch.cuda.set_device(ordinal)
        self.device = torch.device("cuda", ordinal)
        self.properties = torch.cuda.get_device_properties(ordinal)
        self.l2_bytes = getattr(self.properties, "L2_cache_size", 0)
        self.nvml = Nvml(device_uuid(self.properties))
        # Autograd runs a backward pass on the stream of the forward pass, and a capture must
        # not leave its stream: so building, timing and capturing share one.
        self.stream = torch.cuda.Stream()
        self.mode = MODES[0]
        self.swept = torch.zeros(2 * (self.l2_bytes or self.UNKNOWN_L2_BYTES) // 4,
                                 dtype=torch.float32, device=self.device)
        self.swept_sum = torch.zeros((), dtype=torch.float32, device=self.device)
        self.start, self.stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def machine(self):
        p = self.properties
        return {"device": p.name, "uuid": device_uuid(p),
                "compute_capability": f"{p.major}.{p.minor}", "sm_count": p.multi_processor_count,
                "l2_bytes": self.l2_bytes or None, "memory_bytes": p.total_memory,
                "power_limit_w": self.nvml.watts("nvmlDeviceGetEnforcedPowerLimit"),
                "driver": self.nvml.driver(), "cuda_runtime": torch.version.cuda}

    def peak_gb_per_s(self):
        """Two transfers per clock on every memory that GPUs use; 0: unknown."""
        width = getattr(self.properties, "memory_bus_width", 0)
        return 2 * getattr(self.properties, "memory_clock_rate", 0) * width / 8 / 1e6

    def peak_tflop_per_s(self, dtype):
        p = self.properties
        per_clock = FLOPS_PER_CLOCK.get(10 * p.major + p.minor, {}).get(dtype, 0)
        return per_clock * p.multi_processor_count * getattr(p, "clock_rate", 0) / 1e9

    def context(self):
        return torch.cuda.stream(self.stream)

    def flush(self):
        """Twice the L2 of something else than the case's: read, which leaves no dirty line,
        or written."""
        if self.mode == "dirty":
            self.swept.zero_()
        else:
            torch.sum(self.swept, 0, out=self.swept_sum)

    def time(self, call, sleep_us):
        """Microseconds of one call, whether its launches were hidden, and what it returned."""
        if sleep_us > 0:
            torch.cuda._sleep(int(sleep_us * self.CYCLES_PER_US))
        self.flush()
        self.start.record()
        outputs = call()
        self.stop.record()
        hidden = not self.start.query()
        self.stop.synchronize()
        return self.start.elapsed_time(self.stop) * 1e3, hidden, outputs

    def trailing_us(self, call):
        """How long the device goes on after the stop event of one call: on other streams."""
        self.time(call, 0)
        start = time.perf_counter()
        self.wait()
        return (time.perf_counter() - start) * 1e6

    def enqueue_us(self, call):
        """How long the host takes to enqueue one call."""
        self.wait()
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        self.wait()
        return elapsed * 1e6

    def capture(self, call):
        """A function that replays call, with the same outputs each time."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            outputs = call()

        def replay():
            graph.replay()
            return outputs
        return replay

    def empty_launch(self):
        torch.cuda._sleep(0)

    def wait(self):
        torch.cuda.synchronize()

    def alive(self):
        try:
            self.wait()
        except RuntimeError:
            return False
        return True

    def free_bytes(self):
        return torch.cuda.mem_get_info()[0]

    def release_memory(self):
        gc.collect()
        torch.cuda.empty_cache()


# ---- measuring one case --------------------------------------------------------------


@dataclasses.dataclass
class Instrument:
    """A device in one mode, what measures the same on it for every case, and the wanted
    effort."""
    gpu: object
    precision: float
    min_samples: int
    max_time_s: float
    mode: str = MODES[0]
    events_us: float = 0.0
    overhead_us: float = 0.0
    clock_step_us: float = 0.0


WARMUP_RUNS = 5
MAX_SAMPLES = 100000


class Sampler:
    """Takes samples of one workload behind a sleep that is as long as it must be."""

    LONGEST_SLEEP_US = 50000
    MARGIN_US = 100
    MISSES = 3  # in a row: one is the host's hiccup, three are a gate that is too short

    def __init__(self, gpu, workload, as_graph):
        self.gpu, self.call, self.outputs = gpu, workload.run, None
        self.flags, self.misses, self.captured = [], 0, False
        self.ungated = workload.synchronizes
        if as_graph:
            self.call, self.captured = gpu.capture(workload.run), True
        self.sleep_us = self.first_sleep_us()
        if self.ungated:
            self.give_up()

    def first_sleep_us(self):
        wanted = 2 * self.gpu.enqueue_us(self.call) + self.MARGIN_US
        return min(wanted, self.LONGEST_SLEEP_US)

    def give_up(self):
        self.ungated, self.sleep_us = True, 0
        self.flags.append("ungated")

    def lengthen_gate(self):
        self.misses = 0
        if self.sleep_us < self.LONGEST_SLEEP_US:
            self.sleep_us = min(2 * self.sleep_us, self.LONGEST_SLEEP_US)
        elif self.captured:
            self.give_up()
        else:
            self.try_capture()

    def try_capture(self):
        self.outputs = None
        try:
            self.call = self.gpu.capture(self.call)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:  # a case that synchronizes, copies from pageable memory, ...
            self.give_up()
            return
        self.captured = True
        self.flags.append("captured")
        self.sleep_us = self.first_sleep_us()

    def take(self):
        """Microseconds of one run."""
        while True:
            self.outputs = None  # lets the allocator hand out the same memory again
            us, hidden, self.outputs = self.gpu.time(self.call, self.sleep_us)
            if hidden or self.ungated:
                self.misses = 0
                return us
            self.misses += 1
            if self.misses == self.MISSES:
                self.lengthen_gate()


def warm_up_window(sampler):
    """At least 5 samples and 10 ms, unless that takes over 100 ms."""
    window, start = [], time.monotonic()
    elapsed = 0.0
    while len(window) < 256 and elapsed < 0.1 and (len(window) < 5 or elapsed < 0.01):
        window.append(sampler.take())
        elapsed = time.monotonic() - start
    return window


def warm_up(sampler, instrument):
    """Until two windows agree within twice the precision and the SM clock within one step of
    15 MHz, or time is up: how many runs that took, and the flags."""
    start, runs, before, clock_before = time.monotonic(), 0, None, 0
    while True:
        window = warm_up_window(sampler)
        runs += len(window)
        median = quantile(sorted(window), 0.5)
        clock = instrument.gpu.nvml.sm_mhz() or 0  # a query takes milliseconds
        steady = (before is not None
                  and abs(median - before) <= 2 * instrument.precision * median + 0.064
                  and abs(clock - clock_before) <= 15)
        if runs >= WARMUP_RUNS and steady:
            return runs, []
        if runs >= WARMUP_RUNS and time.monotonic() - start > instrument.max_time_s:
            return runs, ["unsteady"]
        before, clock_before = median, clock


def is_precise(samples, precision):
    if len(samples) < 6:
        return False
    ordered = sorted(samples)
    low, high = median_ranks(len(ordered))
    return ordered[high] - ordered[low] <= precision * quantile(ordered, 0.5)


def take_samples(sampler, instrument):
    """The samples, and the flags that say why there are no more."""
    samples, start, next_check = [], time.monotonic(), 0
    while True:
        samples.append(sampler.take())
        count, spent = len(samples), time.monotonic() - start
        full, late = count >= MAX_SAMPLES, spent >= instrument.max_time_s
        settled = (count >= instrument.min_samples and count >= next_check
                   and spent >= instrument.max_time_s / 10)
        if not (full or late or settled):
            continue
        precise = is_precise(samples, instrument.precision)
        next_check = count + count // 8  # looking sorts a copy
        if precise and settled:
            return samples, ["stop=precision"]
        if full or late:
            flags = ["stop=max-samples" if full else "stop=max-time"]
            flags += [] if precise else ["imprecise"]
            flags += ["few-samples"] if count < instrument.min_samples else []
            return samples, flags


def sample_known(instrument, call):
    """A hundred times of something that every process measures, in order."""
    gpu = instrument.gpu
    gpu.mode = instrument.mode
    with gpu.context():
        sampler = Sampler(gpu, Workload(call, None), as_graph=False)
        warm_up_window(sampler)
        return sorted(sampler.take() for _ in range(100))


def measure_overhead(instrument):
    """What two events and what an empty kernel cost by the same method, and the step of the
    clock."""
    instrument.events_us = quantile(sample_known(instrument, lambda: None), 0.5)
    samples = sample_known(instrument, instrument.gpu.empty_launch)
    steps = [high - low for low, high in zip(samples, samples[1:]) if high - low > 0.0005]
    instrument.overhead_us = quantile(samples, 0.5)
    instrument.clock_step_us = min(steps, default=0.0)


class Mismatch(Exception):
    """A result that is wrong."""


def worst_check(checks):
    """The (error, tolerance) that comes closest to its tolerance. A NaN never passes."""
    for error, tolerance in checks:
        if not error <= tolerance:
            raise Mismatch(f"error {error:.3g} exceeds the tolerance {tolerance:.3g}")
    return max(checks, key=lambda check: check[0] / check[1] if check[1] else 0)


def verify(workload, outputs):
    for i, output in enumerate(outputs):
        if output.is_floating_point() and bool(torch.isnan(output).any()):
            raise Mismatch(f"output {i} holds a NaN")
    error, tolerance = worst_check(workload.verify(outputs))
    return {"max_error": float(error), "tolerance": float(tolerance)}


def measured_columns(instrument, case, seed):
    """Everything that an ok row says of a case; raises what went wrong."""
    gpu = instrument.gpu
    gpu.mode = instrument.mode
    free_before = gpu.free_bytes()
    torch.set_float32_matmul_precision("high" if case.dtype == "tf32" else "highest")
    workload = BUILDERS[case.name](case, Inputs(gpu.device, seed))
    for _ in range(3):  # the first runs load, tune, compile and allocate
        workload.run()
    gpu.wait()
    sampler = Sampler(gpu, workload, as_graph=case.variant == GRAPH)
    device_bytes = max(free_before - gpu.free_bytes(), 0)
    warmup, flags = warm_up(sampler, instrument)
    refuse_work_elsewhere(sampler)
    samples, stop_flags = take_samples(sampler, instrument)
    state, throttle = gpu.nvml.state(), gpu.nvml.throttle_flags()
    checks = verify(workload, sampler.outputs)
    return dict(time_columns(instrument, samples), **work_columns(case, samples, seed), **state,
                **checks, warmup=warmup, device_bytes=device_bytes,
                flags=flags + sampler.flags + stop_flags + throttle)


def refuse_work_elsewhere(sampler):
    """Events on one stream do not see what another one does. 50 us are the host's."""
    us = sampler.take()
    sampler.outputs = None
    trailing_us = min(sampler.gpu.trailing_us(sampler.call) for _ in range(3))
    if trailing_us > 50 + 0.2 * us:
        raise RuntimeError(f"works on another stream than the timed one: the device was busy for "
                           f"{trailing_us:.0f} us after the stop event")


def time_columns(instrument, samples):
    columns = describe(samples)
    half_step = instrument.clock_step_us / 2  # a time is known no better
    columns["ci95_low_us"] -= half_step
    columns["ci95_high_us"] += half_step
    return dict(columns, samples=len(samples), batch=1,
                overhead_us=instrument.overhead_us or None, events_us=instrument.events_us or None)


def work_columns(case, samples, seed):
    data, flops = case.work(seed)
    median = quantile(sorted(samples), 0.5)
    return {"bytes": data or None, "gb_per_s": data / median / 1e3 if data else None,
            "flops": flops or None, "tflop_per_s": flops / median / 1e6 if flops else None}


def share_of_peak(gpu, case, columns):
    """Of what the device's memory or arithmetic can do at most; 0: unknown."""
    if case.name in ("memcpy.h2d", "memcpy.d2h"):  # the link's business
        return 0
    tflop_peak, gb_peak = gpu.peak_tflop_per_s(case.dtype), gpu.peak_gb_per_s()
    if columns["flops"] and not tflop_peak:
        return 0  # memory may not be what bounds it
    return max((columns[rate] or 0) / peak if peak else 0
               for rate, peak in (("gb_per_s", gb_peak), ("tflop_per_s", tflop_peak)))


def warnings_of(instrument, case, columns):
    """What a reader has to know before believing the number."""
    median = columns["median_us"]
    found = {"near-overhead": median < 2 * instrument.overhead_us,
             "coarse-clock": instrument.clock_step_us > instrument.precision * median,
             "fits-l2": (columns["bytes"] or math.inf) <= instrument.gpu.l2_bytes,
             "above-peak": share_of_peak(instrument.gpu, case, columns) > 1}
    return [word for word, holds in found.items() if holds]


UNSUPPORTED = ("No available kernel", "No viable backend", "working triton installation",
               "TritonMissing")


def status_of(error):
    if isinstance(error, torch.OutOfMemoryError):
        return "oom"
    if isinstance(error, Mismatch):
        return "mismatch"
    return "unsupported" if any(text in str(error) for text in UNSUPPORTED) else "failed"


def reason_of(error):
    """One line; without paths, which name users and machines."""
    first_line = next(iter(str(error).splitlines()), "")
    named = f"{type(error).__name__}: {first_line}"
    return re.sub(r"(?<!\w)(?:/[\w.+-]+){2,}", "PATH", named)[:250]


def attempt(instrument, case, seed):
    """The columns of a row, whatever happens, and a reason that is empty if all went well."""
    try:
        with instrument.gpu.context():
            columns = measured_columns(instrument, case, seed)
        columns["flags"] += warnings_of(instrument, case, columns)
    except Exception as error:  # a library's; the next case must be measured all the same
        return {"status": status_of(error), "flags": []}, reason_of(error)
    return dict(columns, status="ok"), ""


def measure_case(instrument, case, seed):
    """The columns of a row, and the reason. Whether it failed or not, the case's memory is
    free afterwards: here its exception, whose traceback held the tensors, is gone."""
    columns, reason = attempt(instrument, case, seed)
    with contextlib.suppress(RuntimeError):  # of a context that is lost
        if columns["status"] == "oom":
            columns["flags"].append(f"free_bytes={instrument.gpu.free_bytes()}")
        if case.variant == COMPILE:
            torch.compiler.reset()  # or the next shape is compiled for any shape
        instrument.gpu.release_memory()
    return with_reason(columns, reason), reason


def with_reason(columns, reason):
    """Flags as the file has them."""
    words = columns["flags"] + (["reason=" + re.sub(r"\s", "_", reason)] if reason else [])
    return dict(columns, flags=" ".join(words))


# ---- one process ---------------------------------------------------------------------


def identity_columns(case, mode):
    return {"schema": SCHEMA, "suite": case.suite, "case": case.name, "variant": case.variant,
            "backend": "cuda", "dtype": case.dtype, "params": case.params, "mode": mode}


def build_columns(seed):
    python = ".".join(map(str, sys.version_info[:3]))
    return {"cpu": processor_name(), "gpubench_version": GPUBENCH_VERSION,
            "compiler": f"PyTorch {torch.__version__} with Python {python}", "git": revision(),
            "seed": seed}


def settings_text(instrument):
    """What decides how long a case is measured, in the suites' words."""
    return (f"precision={number_text(100 * instrument.precision)} "
            f"max-time={number_text(instrument.max_time_s)} "
            f"min-samples={instrument.min_samples} max-samples={MAX_SAMPLES} warmup={WARMUP_RUNS}")


def timestamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def key_of(row):
    return f"{row['case']} {row['variant']} {row['dtype']} {row['params']} {row['mode']}"


def measure_remaining(instruments, cases, settings, rows_path):
    """Appends a row for each case and mode that this run has none of. STATUS_LOST if the
    context went."""
    run, seed, gpu = settings.worker_run, settings.seed, instruments[0].gpu
    done = {key_of(row): row for row in read_rows(rows_path) if row["run"] == str(run)}
    failed = any(is_failure(row["status"]) for row in done.values())
    fixed = dict(gpu.machine(), **build_columns(seed), campaign=settings.campaign, run=run)
    crashed = read_text(started_path(rows_path))  # or "": the process before ended in no case
    for case, instrument in itertools.product(shuffled(cases, seed, run), instruments):
        identity = identity_columns(case, instrument.mode)
        key = key_of(identity)
        if key in done:
            continue
        if crashed == f"{run} {key}":
            reason = "ended_the_process_that_measured_it"
            columns = with_reason({"status": "failed", "flags": []}, reason)
        else:
            write_text(started_path(rows_path), f"{run} {key}")
            columns, reason = measure_case(instrument, case, seed)
        done[key] = row = dict(identity, **fixed, **columns, order=len(done) + 1,
                               settings=settings_text(instrument), timestamp=timestamp())
        with open(rows_path, "a", newline="", encoding="utf-8") as file:
            write_rows(file, [row], with_header=False)
        write_text(started_path(rows_path), "")
        report_progress(settings, row, reason)
        failed = failed or is_failure(row["status"])
        if reason and not gpu.alive():
            return STATUS_LOST
    return STATUS_FAILED if failed else STATUS_OK


def started_path(rows_path):
    """Where a process notes which case it has begun, for the one that comes after a crash."""
    return rows_path + ".started"


def read_text(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def report_progress(settings, row, reason):
    if reason:
        say(f"{key_of(row)}: {row['status']}: {reason}")
    elif not settings.quiet:
        say(f"run {row['run']}: {key_of(row)}: {row['median_us']:.3f} us")


def work(settings, cases):
    """What one of the fresh processes does."""
    load_torch()
    try:
        gpu = Gpu(settings.device)
        instruments = [Instrument(gpu, settings.precision / 100, settings.min_samples,
                                  settings.max_time, mode) for mode in settings.mode]
        for instrument in instruments:
            measure_overhead(instrument)
    except RuntimeError as error:  # CUDA's
        raise UsageError(f"--device {settings.device}: {reason_of(error)}") from error
    gc.freeze()  # collecting between cases need not look at all of PyTorch again
    return measure_remaining(instruments, cases, settings, settings.worker_rows)


# ---- all processes -------------------------------------------------------------------


def run_once(settings, arguments, run, rows_path):
    """The exit status of one run, which takes more than one process if the context is lost."""
    command = [sys.executable, os.path.abspath(__file__), *arguments,
               f"--campaign={settings.campaign}", f"--worker-run={run}",
               f"--worker-rows={rows_path}"]
    while True:
        before = progress(rows_path)
        status = subprocess.run(command, check=False).returncode
        if 0 <= status < STATUS_LOST:
            return status
        say(f"run {run}: ended by {signal.Signals(-status).name}" if status < 0
            else "the CUDA context is lost")
        if progress(rows_path) == before:  # starting over would never end
            say("the GPU does not recover: the other cases are not measured")
            return STATUS_FAILED
        say("going on in a fresh process")


def progress(rows_path):
    return os.path.getsize(rows_path), read_text(started_path(rows_path))


def run_all(settings, arguments):
    """The rows of all runs, and the worst status. What some runs measured is kept though
    others could not, or were interrupted."""
    worst = STATUS_OK
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        rows_path = os.path.join(folder, "rows.csv")
        with open(rows_path, "w", encoding="utf-8"):
            pass
        try:
            for run in range(1, settings.runs + 1):
                worst = max(worst, run_once(settings, arguments, run, rows_path))
                if worst >= STATUS_USAGE:
                    break
        except KeyboardInterrupt:
            worst = STATUS_FAILED
        return read_rows(rows_path), worst


def print_table(rows, file):
    """A line for each case: the median over the runs, and how far they lie apart."""
    groups = {}
    for row in rows:
        if row["status"] == "ok":
            groups.setdefault(key_of(row), []).append(row)
    if not groups:
        return
    width = max(map(len, groups))
    print(f"{'case':{width}}  {'median us':>12}  {'range':>7}  {'GB/s':>8}  {'TFLOP/s':>8}  flags",
          file=file)
    for key, group in groups.items():
        medians = sorted(float(row["median_us"]) for row in group)
        median = quantile(medians, 0.5)
        gb_per_s = rate_text(group[0]["bytes"], median * 1e3)
        tflop_per_s = rate_text(group[0]["flops"], median * 1e6)
        print(f"{key:{width}}  {median:12.3f}  {(medians[-1] / medians[0] - 1) * 100:6.2f}%  "
              f"{gb_per_s:>8}  {tflop_per_s:>8}  {group[0]['flags']}", file=file)


def rate_text(amount, unit):
    return f"{float(amount) / unit:.1f}" if amount else ""


def finish(settings, rows, worst):
    """Writes and prints; the exit status."""
    if not rows:
        return max(worst, STATUS_USAGE)  # an empty file would replace a good one
    if not settings.quiet:
        print_table(rows, sys.stderr if settings.csv == "-" else sys.stdout)
    if settings.csv:
        try:
            write_csv(settings.csv, rows)
        except OSError as error:
            say(f"--csv '{settings.csv}': {error.strerror}")
            return STATUS_USAGE
    failed = worst != STATUS_OK or any(is_failure(row["status"]) for row in rows)
    return STATUS_FAILED if failed else STATUS_OK


# ---- command line --------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(message)


def whole_number(least, most):
    def parse(text):
        if not re.fullmatch("[0-9]+", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"'{text}': wants a whole number from {least} to {most}")
        return int(text)
    return parse


def positive_number(most):
    def parse(text):
        try:
            value = float(text)
        except ValueError:
            value = 0
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"'{text}': wants a number above 0 and up to {most:g}")
        return value
    return parse


def list_of(words):
    def parse(text):
        chosen = text.split(",")
        if not set(chosen) <= set(words):
            raise argparse.ArgumentTypeError(f"'{text}': wants a list of {','.join(words)}")
        return [word for word in words if word in chosen]
    return parse


def case_list(path):
    """The lines of a file, which may have comments behind a # and empty lines."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = {line.split("#")[0].strip() for line in file} - {""}
    except OSError as error:
        raise argparse.ArgumentTypeError(f"'{path}': {error.strerror}")
    known = {case.line for case in all_cases(list(SUITES), list(DTYPE_BYTES))}
    if lines - known:
        raise argparse.ArgumentTypeError(f"'{path}': there is no case '{min(lines - known)}'")
    return lines


def regular_expression(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}")


def device_name(text):
    if text != "auto" and not text.startswith("GPU-") and not re.fullmatch("[0-9]+", text):
        raise argparse.ArgumentTypeError(f"'{text}': wants auto, a number or a GPU's UUID")
    return text


def campaign_name(text):
    if not 1 <= len(text) <= 63:
        raise argparse.ArgumentTypeError(f"'{text}': wants 1 to 63 characters")
    return text


def make_parser():
    parser = Parser(prog=PROGRAM, allow_abbrev=False,
                    description="Measures the suites' cases on PyTorch.",
                    epilog="exit status: 0 all measured and verified, 1 some case failed, 2 bad "
                           "usage or no way to measure")
    add = parser.add_argument
    add("--suite", metavar="LIST", type=list_of(list(SUITES)), default=list(SUITES),
        help="of " + ",".join(SUITES) + " (default all)")
    add("--dtype", metavar="LIST", type=list_of(list(DTYPE_BYTES)), default=["f32", "bf16", "u8"],
        help="of f32,tf32,f16,bf16,u8 (default f32,bf16,u8)")
    add("--list", action="store_true", help="print the cases and exit")
    add("--cases", metavar="FILE", type=case_list,
        help="only those of the file's lines, each a case, a dtype and params")
    add("--without", metavar="LIST", type=list_of(ALL_VARIANTS), default=[],
        help="variants to leave out: of " + ",".join(ALL_VARIANTS))
    add("--filter", metavar="REGEX", type=regular_expression,
        help="only cases whose --list line matches (Python's syntax)")
    add("--device", metavar="auto|N|UUID", type=device_name, default="auto",
        help="what to measure (auto: the first GPU)")
    add("--mode", metavar="LIST", type=list_of(MODES), default=[MODES[0]],
        help="of " + ",".join(MODES) + ": what the L2 flush in front of a sample does, read or "
             "write (default cold)")
    add("--precision", metavar="PERCENT", type=positive_number(100), default=0.5,
        help="wanted width of the median's 95 %% interval (default 0.5)")
    add("--min-samples", metavar="N", type=whole_number(1, MAX_SAMPLES), default=30,
        help="samples of a case at least (default 30)")
    add("--max-time", metavar="SECONDS", type=positive_number(86400), default=1.0,
        help="time of a case's samples at most (default 1)")
    add("--runs", metavar="N", type=whole_number(1, 1000), default=3,
        help="repeat in N fresh processes (default 3)")
    add("--seed", metavar="N", type=whole_number(0, MASK64), default=1,
        help="for the inputs and the order of the cases (default 1)")
    add("--campaign", metavar="NAME", type=campaign_name,
        default=time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        help="what the CSV calls this sitting (default: its start)")
    add("--csv", metavar="FILE|-", help="write the rows there; - is standard output")
    add("--quiet", action="store_true", help="no table, no progress")
    add("--worker-run", type=int, help=argparse.SUPPRESS)
    add("--worker-rows", help=argparse.SUPPRESS)
    return parser


def chosen_cases(settings):
    cases = [case for case in all_cases(settings.suite, settings.dtype)
             if case.variant not in settings.without
             and (settings.cases is None or case.line in settings.cases)]
    if not cases:
        raise UsageError("there is no case to measure")
    chosen = [case for case in cases if not settings.filter or settings.filter.search(case.key)]
    if not chosen:
        raise UsageError(f"--filter '{settings.filter.pattern}' matches none of the "
                         f"{len(cases)} cases")
    return chosen


def main(arguments):
    try:
        settings = make_parser().parse_args(arguments)
        cases = chosen_cases(settings)
        if settings.list:
            print("\n".join(case.key for case in cases))
            return STATUS_OK
        if settings.worker_run:
            return work(settings, cases)
        if settings.csv is not None and settings.csv != "-":
            try_path(settings.csv)
    except UsageError as error:
        say(error)
        return STATUS_USAGE
    except KeyboardInterrupt:  # of a run: its parent got it too, and keeps the rows so far
        return STATUS_FAILED
    return finish(settings, *run_all(settings, arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
