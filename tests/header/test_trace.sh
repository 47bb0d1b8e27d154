#!/bin/sh
# test_trace.sh PROGRAM EXAMPLE - --kernels, --kernels-csv and --trace on the host, with
# tests/fixtures/traced.c; what they write is read by parsers that are not ours.
# EXAMPLE is examples/trace.c. As TAP lines.
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
example=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
. "$(dirname "$0")/../tap.sh"
cd "$work" || exit 2

explain() { cat out err; }

# traced WORD...: the status in $status, what it said in out and err.
traced() {
    "$program" --max-time 0.01 --max-samples 3 "$@" > out 2> err
    status=$?
}

says() { grep -qe "$1" out err; }

if command -v python3 > /dev/null; then
    python=python3
else
    python=
fi

# read NAME: the Python program on standard input judges the files.
judge() {
    if [ -z "$python" ]; then check 0 "$1" "no python3"; return; fi
    $python - > err 2>&1
    check $? "$1"
}

# ---- what they write

traced --filter '^parts' --kernels --kernels-csv k.csv --trace t.json --csv rows.csv
[ $status -eq 0 ] && [ ! -e k.csv.partial ] && [ ! -e t.json.partial ]
check $? "a case is measured and watched"
judge "the CSV has a row for each name, and their times nest" <<'EOP'
import csv
rows = {r["name"]: r for r in csv.DictReader(open("k.csv", newline=""))}
assert set(rows) == {"run", "even", 'odd, or "middle"', "inner"}, rows
assert [int(rows[n]["launches"]) for n in ("run", "even", 'odd, or "middle"', "inner")] == [1, 2, 1, 3]
us = {n: float(r["total_us"]) for n, r in rows.items()}
assert us["even"] + us['odd, or "middle"'] <= us["run"] and us["inner"] < us["run"]
assert abs(us["even"] / 2 - float(rows["even"]["mean_us"])) < 1e-9
assert float(rows["even"]["min_us"]) <= float(rows["even"]["mean_us"]) <= float(rows["even"]["max_us"])
assert abs(float(rows["even"]["share"]) - us["even"] / us["run"]) < 1e-9
timed = next(csv.DictReader(open("rows.csv", newline="")))
for row in rows.values():
    assert row["kind"] == "range" and row["variant"] == "a,b" and row["params"] == "n=3"
    assert row["case_us"] == timed["median_us"] and row["campaign"] == timed["campaign"]
EOP
judge "the timeline is JSON of the trace event format, and ranges lie inside each other" <<'EOP'
import json
events = json.load(open("t.json"))["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
assert [e["name"] for e in spans].count("inner") == 3 and len(spans) == 7
assert spans[0]["name"].split() == ["parts", "a,b", "n=3"]
assert spans[0]["ts"] < 1000, "not since the trace began"
whole = spans[0]["ts"], spans[0]["ts"] + spans[0]["dur"]
for e in spans:
    assert e["dur"] >= 0 and whole[0] <= e["ts"] and e["ts"] + e["dur"] <= whole[1] + 0.001, e
outer = [e for e in spans if e["name"] in ("even", 'odd, or "middle"')]
inner = [e for e in spans if e["name"] == "inner"]
for o, i in zip(outer, inner):
    assert o["ts"] <= i["ts"] and i["ts"] + i["dur"] <= o["ts"] + o["dur"] + 0.001
EOP
[ "$(grep -c 'inner$' out)" -eq 1 ] && grep -q '  ranges: 7, ' out
check $? "the table has a line for each name"

traced --filter '^unbalanced' --trace t.json
[ $status -eq 0 ]
check $? "ranges that do not match are no error"
judge "and end with the run" <<'EOP'
import json
spans = [e for e in json.load(open("t.json"))["traceEvents"] if e["ph"] == "X"]
assert [e["name"].strip() for e in spans] == ["unbalanced", "left open"], spans
EOP

traced --kernels-csv k.csv --runs 2
[ $status -eq 0 ] && [ "$(grep -c ',run,' k.csv)" -eq 3 ]
check $? "--runs: the last process watches, each case once"

# ---- memory

traced --filter '^parts' --memory --memory-csv m.csv --runs 2
[ $status -eq 0 ] && [ ! -e m.csv.partial ] && says '  memory: 0.00 MiB, all of it from setup' &&
    says '^   40.0  *0.00  *1 .*  parameters, "all"$' && says '^   20.0  *0.00  *2 .*  gradients$' &&
    says '^   33.3 .*  outputs$' && says '^    6.7 .*  other$' &&
    says '  batch x2 would take 0.00 MiB, computed: activations 0.00 (0.00)$' && ! says 'ranges:'
check $? "memory by category: what has no name is outputs or other, and is the device's only"
judge "and as CSV, a row for each part" <<'EOP'
import csv
rows = list(csv.DictReader(open("m.csv", newline="")))
parts = [(r["change"], r["category"], int(r["bytes"])) for r in rows]
assert sorted(parts) == [("", "gradients", 100), ("", "gradients", 200), ("", "other", 100),
                         ("", "outputs", 500), ("", 'parameters, "all"', 600),
                         ("batch x2", "activations", 1200)], parts
for row in rows:
    assert row["memory_schema"] == "1" and row["variant"] == "a,b" and row["campaign"]
    assert (row["at_us"] == "") == (row["change"] != ""), row
EOP

# ---- what may go wrong

traced --filter '^faulty' --csv before.csv
env FAULT=fail "$program" --mode hot --max-time 0.01 --max-samples 3 --csv rows.csv --kernels-csv k.csv \
    > out 2> err
status=$?
[ $status -eq 1 ] && says 'faulty: not traced: run, watched: .*Input/output error' &&
    [ "$(grep -c ',ok,' rows.csv)" -eq 3 ] && ! grep -q ',faulty,' k.csv && grep -q ',parts,' k.csv
check $? "a case that fails while it is watched: said, status 1, its row and the others stay"
env FAULT=crash "$program" --mode hot --max-time 0.01 --max-samples 3 --csv rows.csv --trace t2.json \
    > out 2> err
[ $? -ge 1 ] && [ "$(grep -c ',ok,' rows.csv)" -eq 3 ] && says 'parts'
check $? "one that crashes then: all rows are there, and the table"

traced --trace gone/t.json --csv none.csv
[ $status -eq 2 ] && says "trace 'gone/t.json': No such file or directory" && [ ! -e none.csv ]
check $? "a folder that is not there: status 2 before anything is measured"
mkdir closed && chmod a-w closed
if [ -w closed ]; then check 0 "a folder that nobody may write" "this user may"; else
    traced --kernels-csv closed/k.csv
    [ $status -eq 2 ] && says "kernels-csv 'closed/k.csv': Permission denied"
    check $? "a folder that nobody may write"
fi
mkdir folder
traced --filter '^parts' --trace folder --csv rows.csv
[ $status -eq 2 ] && says "trace 'folder': wants a file" && [ -d folder ] && grep -q ',ok,' rows.csv
check $? "a name that is a folder's: status 2, what was measured before stays"
traced --trace same --csv same
[ $status -eq 2 ] && says "trace 'same': --csv writes there"
check $? "two outputs in one file"
traced --profile --kernels
[ $status -eq 2 ] && says 'profile measures nothing: it does not go with --kernels'
check $? "--profile measures nothing"
traced --profile --memory
[ $status -eq 2 ] && says 'profile measures nothing: it does not go with --memory'
check $? "nor does it with --memory"
traced --memory-csv gone/m.csv --csv none.csv
[ $status -eq 2 ] && says "memory-csv 'gone/m.csv': No such file or directory" && [ ! -e none.csv ]
check $? "a folder that is not there for --memory-csv"
if [ -w /dev/full ]; then
    traced --filter '^parts' --csv rows.csv --kernels > out 2> err
    "$program" --filter '^parts' --max-time 0.01 --quiet --kernels > /dev/full 2> err
    [ $? -eq 2 ] && says 'kernels: No space left on device'
    check $? "a full disk: status 2"
else
    check 0 "a full disk" "no /dev/full"
fi
for option in kernels-csv memory-csv trace; do
    echo "an earlier file" > $option
    (trap '' XFSZ && ulimit -f 0 && "$program" --filter '^parts' --max-time 0.01 --$option $option 2>&1
        echo "status $?") | cat > out
    says '^status 2$' && says "$option '$option': File too large" && says '^ *parts  *a,b  *n=3' &&
        [ "$(cat $option)" = "an earlier file" ] && [ ! -e $option.partial ]
    check $? "no room for --$option: said, the earlier file and the rows stay"

    # What else may lie where the file is to be, or gathers.
    echo "of somebody else" > other
    ln -sf other $option.partial
    rm -f target && ln -sf ../"$(basename "$work")"/target $option
    traced --filter '^parts' --$option $option
    [ $status -eq 2 ] && says "$option '$option': No such file" && [ -L $option ] && [ ! -e target ]
    check $? "a link that leads nowhere is refused (--$option)"
    echo "an earlier file" > target
    traced --filter '^parts' --$option $option
    [ $status -eq 0 ] && [ -L $option ] && grep -q parts target && [ "$(cat other)" = "of somebody else" ] &&
        [ -L $option.partial ] && [ "$(ls $option.partial*)" = $option.partial ]
    check $? "a link stays one, its target is replaced, and one in the way of the partial file is gone around (--$option)"
    rm $option && mkfifo $option
    traced --filter '^parts' --$option $option
    [ $status -eq 2 ] && says "$option '$option': wants a file" && [ -p $option ]
    check $? "what is no file is refused and stays (--$option)"
    rm $option
done
NO_TRACER=1 "$program" --kernels > out 2> err
[ $? -eq 2 ] && says 'kernels: this program was built without gpubench_trace.h'
check $? "a program without gpubench_trace.h says so"
NO_TRACER=1 "$program" --memory > out 2> err
[ $? -eq 2 ] && says 'memory: this program was built without gpubench_trace.h'
check $? "also for --memory"

"$example" --max-time 0.01 --kernels > out 2> err && grep -q ' fill$' out && grep -q ' sum$' out
check $? "examples/trace.c"

finish
