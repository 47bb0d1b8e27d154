#!/bin/sh
# ncu_agree.sh PROGRAM [ARGUMENTS...] - are the kernels of --kernels those that Nsight Compute
# sees? PROGRAM with the ARGUMENTS (build/cuda/tests/truth, or a suite with a --filter) writes
# its --kernels-csv, and ncu times the same kernels behind the program's own flush: caches and
# clocks are left alone. Both in several processes. Prints a table; of each kernel whether both
# count the same launches and agree within 1 % or 0.3 us.
#
# OUR_RUNS (3) and NCU_RUNS (3) change the numbers of processes, NCU the profiler.
# Exit status: 0 all agree; 1 some do not; 2 no GPU, no ncu, or ncu may not read the counters.
set -u
export LC_ALL=C CDPATH=
. "$(dirname "$0")/ncu.sh"

run=1
while [ $run -le "${OUR_RUNS:-3}" ]; do
    "$program" --mode cold --max-time 0.02 --quiet --kernels-csv "$work/ours.$run" "$@" > "$work/log" 2>&1
    [ -s "$work/ours.$run" ] || give_up "the program watched nothing: $(tail -1 "$work/log")"
    run=$((run + 1))
done
run=1
while [ $run -le "${NCU_RUNS:-3}" ]; do
    "$ncu" --metrics gpu__time_duration.sum --cache-control none --clock-control none \
        --csv --page raw --print-units base "$program" --profile --quiet "$@" > "$work/said" 2> "$work/log"
    # Without what ncu and the program say in between.
    grep '^"' "$work/said" > "$work/ncu.$run"
    [ -s "$work/ncu.$run" ] ||
        give_up "ncu profiled nothing: $(cat "$work/said" "$work/log" | grep -v '^==PROF==' | tail -3)"
    run=$((run + 1))
done
judge "$work"/ours.* "$work"/ncu.*
