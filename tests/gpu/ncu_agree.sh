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
give_up() { echo "ncu_agree: $1" >&2; exit 2; }

[ $# -ge 1 ] || give_up "usage: ncu_agree.sh PROGRAM [ARGUMENTS...]"
program=$1
shift
[ -x "$program" ] || give_up "no '$program': nvcc builds it, and here is no nvcc or no GPU"
ncu=${NCU:-}
for found in ncu "${CUDA_HOME:-/usr/local/cuda}/bin/ncu"; do
    [ -n "$ncu" ] || ncu=$(command -v "$found")
done
command -v "${ncu:-ncu}" > /dev/null ||
    give_up "no '${ncu:-ncu}': Nsight Compute is needed (NCU=/where/it/is)"
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
LC_ALL=C # ncu writes numbers as the locale does
export LC_ALL

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
here=$(dirname "$0")
awk -f "$here/../../compare/csv.awk" -f "$here/../../compare/numbers.awk" -f "$here/ncu_agree.awk" \
    "$work"/ours.* "$work"/ncu.*
