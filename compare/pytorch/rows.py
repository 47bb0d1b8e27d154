"""Rows as text, and the files that hold them."""
import csv
import math
import os
import stat
import sys

from .errors import UsageError


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


def start_rows(path, columns):
    """A file without rows, whose header says which columns they will have."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(columns)


def append_row(path, row):
    """Adds a dictionary; what it lacks is empty."""
    with open(path, newline="", encoding="utf-8") as file:
        columns = next(csv.reader(file))
    with open(path, "a", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(
            [field_text(row.get(column)) for column in columns])


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(file, rows):
    """Rows that were read, all of the same columns."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)


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


def key_of(row):
    return f"{row['case']} {row['variant']} {row['dtype']} {row['params']} {row['mode']}"
