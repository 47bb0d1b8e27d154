"""same_rows.py JSON CSV  says, by parsers that are not ours, whether both hold the same rows."""
import csv
import json
import sys

TEXTS = "suite case variant backend dtype params mode campaign status flags device uuid pci " \
    "compute_capability driver cuda_runtime cpu gpubench_version compiler git settings " \
    "timestamp".split()


def agree(column, value, text):
    if text == "":
        return value is None
    if column == "counters":
        return value == {name: float(number) for name, number in
                         (pair.split("=") for pair in text.split())}
    if column in TEXTS:
        return value == text
    return type(value) in (int, float) and value == (int(text) if text.isdigit() else float(text))


with open(sys.argv[1], encoding="utf-8") as file:
    objects = json.load(file)
with open(sys.argv[2], encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
if len(objects) != len(rows):
    sys.exit(f"{len(objects)} objects, {len(rows)} rows")
for got, row in zip(objects, rows):
    if list(got) != list(row):
        sys.exit(f"columns {list(got)} instead of {list(row)}")
    for column, text in row.items():
        if not agree(column, got[column], text):
            sys.exit(f"{column} is {got[column]!r} instead of {text!r}")
