"""What llm.c's trainer printed as a row of the model suite: see tests/peers/llmc.sh."""
import argparse
import os
import re
import sys
import time

from pytorch.cases import shape_of
from pytorch.rows import append_row, read_rows, start_rows
from pytorch.statistics import describe, quantile

WARMUP_STEPS = 10  # the trainer's first, in which libraries choose and clocks rise
HALF_DIGIT_US = 5  # it prints hundredths of a millisecond
STEP = re.compile(r"^step +\d+/\d+ \| loss (\S+) .*\| +([0-9.]+) ms \|", re.MULTILINE)
SHAPE = {"b": 4, "d": 768, "h": 12, "ff": 3072, "l": 12, "v": 50257, "tied": 1}

# What a row has of the suite's: the case, and the machine that both were measured on.
SHARED = ("schema", "suite", "case", "backend", "dtype", "params", "mode", "campaign", "run", "bytes",
          "flops", "device", "uuid", "pci", "compute_capability", "sm_count", "l2_bytes",
          "memory_bytes", "power_limit_w", "driver", "cuda_runtime", "cpu", "gpubench_version",
          "git", "seed")


def fail(message):
    print(f"llmc_rows: {message}", file=sys.stderr)
    sys.exit(2)


def steps_of(text, path):
    """Microseconds of the steps behind the warm-up, and the losses of all."""
    found = STEP.findall(text)
    times = [1000 * float(ms) for _, ms in found[WARMUP_STEPS:]]
    if not times:
        fail(f"{path}: {len(found)} steps, of which the first {WARMUP_STEPS} are the warm-up")
    return times, [float(loss) for loss, _ in found]


def like_row(path, context):
    """The suite's row of the same step."""
    wanted = dict(SHAPE, t=context)
    for row in read_rows(path):
        if row["case"] == "model.step" and row["dtype"] == "bf16":
            shape = shape_of(row["params"])
            if all(shape.get(name) == value for name, value in wanted.items()):
                return row
    fail(f"{path}: no bf16 row of model.step at GPT-2's shape with t={context}")


def row_of(options):
    with open(options.log, encoding="utf-8", errors="replace") as file:
        times, losses = steps_of(file.read(), options.log)
    like = like_row(options.like, options.context)
    columns = describe(times)
    columns["ci95_low_us"] -= HALF_DIGIT_US
    columns["ci95_high_us"] += HALF_DIGIT_US
    median = quantile(sorted(times), 0.5)
    # A NaN is not below anything.
    status = "ok" if 0 < losses[-1] < losses[0] else "mismatch"
    return dict({column: like.get(column) for column in SHARED}, **columns,
                variant=options.variant, status=status,
                flags=f"loss={losses[0]:.3f}..{losses[-1]:.3f}", samples=len(times), batch=1,
                warmup=WARMUP_STEPS, order=1,
                gb_per_s=float(like["bytes"]) / median / 1e3,
                tflop_per_s=float(like["flops"]) / median / 1e6,
                counters=f"tokens/s={SHAPE['b'] * options.context / median * 1e6:.9g}",
                compiler="llm.c", timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--like", "--rows", "--log", "--variant"):
        parser.add_argument(name, required=True)
    parser.add_argument("--context", type=int, required=True)
    options = parser.parse_args()
    try:
        row = row_of(options)
        if not os.path.exists(options.rows):
            start_rows(options.rows, list(read_rows(options.like)[0]))
        append_row(options.rows, row)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    print(f"{row['case']} {row['variant']} {row['params']}: {row['median_us'] / 1000:.3f} ms, "
          f"{row['status']}")
    return row["status"] != "ok"


if __name__ == "__main__":
    sys.exit(main())
