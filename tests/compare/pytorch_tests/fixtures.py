"""The suites' cases as tests need them: what their programs would list, from baselines."""
import atexit
import csv
import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from pytorch.cases import Case
from pytorch.variants import VARIANTS

from . import ROOT

PROGRAM = os.path.join(ROOT, "compare", "pytorch")
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_NUMPY = importlib.util.find_spec("numpy") is not None

# What has no peer: a block's seams, and what only CUDA's own calls do.
WITHOUT_PEER = {"block.part", "memcpy.bidirectional", "memcpy.overlap", "memcpy.peer",
                "model.part", "model.habit"}


def read_baselines():
    rows = []
    for path in sorted(glob.glob(os.path.join(ROOT, "baselines", "*", "*.csv"))):
        with open(path, newline="", encoding="utf-8") as file:
            rows += [row for row in csv.DictReader(file)
                     if row["backend"] == "cuda"]
    return rows


BASELINES = read_baselines()


def header_text():
    with open(os.path.join(ROOT, "gpubench.h"), encoding="utf-8") as file:
        return file.read()


def columns_of_the_header():
    """gpubench.h's, without the last, which it writes to no file."""
    macro = re.search(r"#define \w+_COLUMNS\(X\)((?:.*\\\n)*.*)", header_text()).group(1)
    names = re.findall(r"X\((\w+)\)", macro)
    assert names.pop() == "share_of_peak"
    return names


COLUMNS = columns_of_the_header()


def listed(suite, name, variant, dtype, params, data=None, flops=None, backend="cuda"):
    """The object that --list --json writes for a case, of seed 1."""
    known = {"schema": 2, "suite": suite, "case": name, "variant": variant, "backend": backend,
             "dtype": dtype, "params": params or None, "bytes": data, "flops": flops,
             "gpubench_version": "2.0.0", "git": "abc1234", "cpu": "A processor", "seed": 1}
    return {column: known.get(column) for column in COLUMNS}


def make_case(suite, name, variant, dtype, params, data=None, flops=None, backend="cuda"):
    return Case(suite, name, variant, dtype, params,
                listed(suite, name, "naive", dtype, params, data, flops, backend))


def write_lists(folder):
    """SUITE.json of each suite: a row for each case and variant of the baselines."""
    suites = {suite: {} for suite in VARIANTS}
    for row in BASELINES:
        key = tuple(row[column] for column in ("suite", "case", "variant", "dtype", "params"))
        work = [int(row[column]) if row[column] else None for column in ("bytes", "flops")]
        suites.setdefault(row["suite"], {}).setdefault(key, listed(*key, *work))
    for suite, rows in suites.items():
        with open(os.path.join(folder, suite + ".json"), "w", encoding="utf-8") as file:
            json.dump(list(rows.values()), file)


LISTS = tempfile.mkdtemp()
atexit.register(shutil.rmtree, LISTS)
write_lists(LISTS)


def run_program(*arguments):
    return subprocess.run([sys.executable, PROGRAM, "--suites", LISTS, *arguments],
                          capture_output=True, text=True, check=False,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
