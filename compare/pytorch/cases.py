"""The suites' cases, as their programs list them, each in the variants of its peers."""
import dataclasses
import json
import os
import subprocess

from .errors import UsageError
from .variants import variants_of

DTYPES = ("f32", "tf32", "f16", "bf16", "u8")


@dataclasses.dataclass(frozen=True)
class Case:
    suite: str
    name: str
    variant: str
    dtype: str
    params: str
    # What the suite's program knows of a row before anything is measured, by column.
    listed: dict = dataclasses.field(default_factory=dict, compare=False, repr=False)

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


def shape_of(params):
    pairs = (pair.split("=") for pair in params.split())
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


def printed_list(folder, suite, seed):
    """What the suite's program prints, or printed into a file beside it, elsewhere."""
    saved, program = os.path.join(folder, suite + ".json"), os.path.join(folder, suite)
    if os.path.exists(saved):
        with open(saved, encoding="utf-8") as file:
            return file.read()
    command = [os.path.abspath(program), "--list", "--json", "-", "--quiet",
               "--dtype", ",".join(DTYPES), "--seed", str(seed)]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"--suites '{folder}': no program of the suite {suite} "
                         f"({error.strerror}): make BACKEND=cuda builds it, or "
                         "for --device cpu BACKEND=cpu") from error
    if found.returncode != 0:
        raise UsageError(f"--suites '{folder}': {suite} --list: {found.stderr.strip()}")
    return found.stdout


def listed_rows(folder, suite, seed):
    """An object for each case and variant of the suite."""
    text = printed_list(folder, suite, seed)
    try:
        rows = json.loads(text)
        others = {row["seed"] for row in rows} - {seed}
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--suites '{folder}': {suite}: not what --list --json writes") from error
    if others:
        raise UsageError(f"--seed {seed}: the list of {suite} in '{folder}' is of seed "
                         f"{others.pop()}")
    return rows


def cases_of(suite, rows):
    """Of the suite's variants one stands for all: the one that does the whole of the work."""
    whole = {}
    for row in rows:
        at = row["case"], row["dtype"], row["params"] or ""
        if at not in whole or (row["bytes"] or 0) > (whole[at]["bytes"] or 0):
            whole[at] = row
    return [Case(suite, name, variant, dtype, params, row)
            for (name, dtype, params), row in whole.items()
            for variant in variants_of(suite, name, dtype, row["backend"])]


def all_cases(folder, suites, seed):
    return [case for suite in suites for case in cases_of(suite, listed_rows(folder, suite, seed))]
