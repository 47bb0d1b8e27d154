"""One case at work, whatever it works with."""
import dataclasses


class Mismatch(Exception):
    """A result that is wrong."""


@dataclasses.dataclass
class Workload:
    """One case at work. run enqueues it and returns its outputs, a sequence of tensors;
    verify gets those of the last run and returns (error, tolerance) pairs."""
    run: object
    verify: object
    ungated: bool = False  # it synchronizes, or how long its launches take is part of the cost
