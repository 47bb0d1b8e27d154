"""trace_format.py FILE [SPANS]  is it JSON of the trace event format that viewers draw whole?

By python's parser and by what the format asks for: times in microseconds to the nanosecond
that a double holds, spans of one thread that nest or follow each other, every thread of a
span named, and SPANS of them."""
import collections
import decimal
import json
import sys

KEYS = {"X": {"name", "ph", "pid", "tid", "ts", "dur"}, "M": {"name", "ph", "pid", "tid", "args"},
        "C": {"name", "ph", "pid", "tid", "ts", "args"}}


def faults_of_time(event):
    for key in ("ts", "dur"):
        value = event.get(key, decimal.Decimal(0))
        if value < 0:
            yield f"{event['name']!r}: {key} {value}"
        if value != round(value, 3) or abs(decimal.Decimal(float(value)) - value) > decimal.Decimal("5e-4"):
            yield f"{event['name']!r}: {key} {value} is not kept to the nanosecond"


def faults_of_thread(thread, spans):
    open_ends = []
    for start, minus_length, name in sorted(spans):
        end = start - minus_length
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            yield f"thread {thread}: {name!r} from {start} to {end} overlaps one that ends at {open_ends[-1]}"
        open_ends.append(end)


def faults(events, wanted):
    threads, named = collections.defaultdict(list), set()
    for event in events:
        missing = KEYS.get(event.get("ph"), {"a known ph"}) - set(event)
        if missing:
            yield f"{event}: no {sorted(missing)}"
            continue
        yield from faults_of_time(event)
        thread = event["pid"], event["tid"]
        if event["ph"] == "X":
            threads[thread].append((event["ts"], -event["dur"], event["name"]))
        if event["name"] == "thread_name":
            named.add(thread)
    for thread, spans in threads.items():
        if thread not in named:
            yield f"thread {thread} has no name"
        yield from faults_of_thread(thread, spans)
    count = sum(map(len, threads.values()))
    if wanted is not None and count != wanted:
        yield f"{count} spans, not {wanted}"


def refuse(constant):
    raise ValueError(constant)


def main(path, wanted=None):
    with open(path, "rb") as file:
        text = file.read().decode("utf-8")
    trace = json.loads(text, parse_float=decimal.Decimal, parse_int=decimal.Decimal,
                       parse_constant=refuse)
    found = list(faults(trace["traceEvents"], wanted and int(wanted)))
    for fault in found[:20]:
        print(fault)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
