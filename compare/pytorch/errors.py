"""What ends the program, and how it says so."""
import sys

PROGRAM = "pytorch"

STATUS_OK, STATUS_FAILED, STATUS_USAGE, STATUS_LOST = 0, 1, 2, 3


class UsageError(Exception):
    """Ends the program with status 2."""


def say(message):
    print(f"{PROGRAM}: {message}", file=sys.stderr, flush=True)
