"""What else the processors did while a case was measured: the flags of gpubench.h."""
import contextlib
import os
import time

TICKS_AT_LEAST = 20  # of 10 ms, of all processors


def number_behind(path, name):
    """The number behind name in a file of such lines; 0: none."""
    with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if len(words) == 2 and words[0] == name:
                return float(words[1])
    return 0.0


def quota_file():
    """Where this process's limits of version 2 are; those of the tree's root elsewhere."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            if line.startswith("0::/") and line[4:].strip():
                return f"/sys/fs/cgroup{line[3:].strip()}/cpu.stat"
    return "/sys/fs/cgroup/cpu.stat"


def parse_processors(line, own):
    """Ticks of all processors: in all, stolen, and those of neither this process nor idleness."""
    words = line.split()
    if not words or words[0] != "cpu" or len(words) < 9:
        return 0.0, 0.0, 0.0
    ticks = [float(word) for word in words[1:9]]
    total, stolen = sum(ticks), ticks[7]
    return total, stolen, total - ticks[3] - ticks[4] - stolen - own


def processors():
    own = time.process_time() * os.sysconf("SC_CLK_TCK")
    with contextlib.suppress(OSError), open("/proc/stat", encoding="ascii") as file:
        return parse_processors(file.readline(), own)
    return 0.0, 0.0, 0.0


def words_of(before, now):
    """before, now: (total, stolen, others), and by how much the quota held the process back."""
    (total, stolen, others), held = [after - then for then, after in zip(before[0], now[0])], \
        now[1] - before[1]
    known = total >= TICKS_AT_LEAST
    found = {"busy": known and others > 0.1 * total, "steal": known and stolen > 0.05 * total,
             "throttle=quota": held > 0}
    return [word for word, holds in found.items() if holds]


class Pressure:
    """In the place of nvml.Nvml: the state that a GPU has is empty."""

    def __init__(self):
        self.before = None

    def now(self):
        return processors(), number_behind(quota_file(), "throttled_usec")

    def watch(self):
        self.before = self.now()

    def sm_mhz(self):
        return None

    def is_power_limited(self):
        return False

    def state(self):
        return {}

    def throttle_flags(self):
        return words_of(self.before, self.now())
