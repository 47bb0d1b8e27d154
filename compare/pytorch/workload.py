"""One case at work, whatever it works with."""
import dataclasses


class Mismatch(Exception):
    """A result that is wrong."""


def nothing():
    """Comes before a run that needs nothing."""


@dataclasses.dataclass
class Workload:
    """One case at work. run enqueues it and returns its outputs, a sequence of tensors;
    verify gets those of the last run and returns (error, tolerance) pairs. What each run needs
    anew, before enqueues; it is not timed."""
    run: object
    verify: object
    ungated: bool = False  # it synchronizes, or how long its launches take is part of the cost
    before: object = nothing

    def once(self):
        self.before()
        return self.run()
