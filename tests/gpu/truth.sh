#!/bin/sh
# truth.sh PROGRAM [ARGUMENTS...] - is the number of mode cold the kernel's? Measures
# the kernels of PROGRAM (build/cuda/tests/truth) and lets Nsight Compute time the
# same kernels: gpu__time_duration, caches flushed by ncu, clocks free. Both in
# several processes, of which medians are taken. What gpubench says is its median
# less the row's overhead_us plus the time of the empty kernel by ncu. Prints a
# table; of every kernel whether the two agree within 1 % or 0.3 us.
#
# ARGUMENTS go to PROGRAM when it measures. ROWS_RUNS (3) and NCU_RUNS (5) change
# the numbers of processes, NCU the profiler.
# Exit status: 0 all but two kernels agree and none is off by more than 3 % and 0.5
# us; 1 not so; 2 no GPU, no ncu, or ncu may not read the counters.
set -u
export LC_ALL=C CDPATH=
. "$(dirname "$0")/ncu.sh"

"$program" --mode cold --runs "${ROWS_RUNS:-3}" --max-time 0.2 --quiet --csv "$work/rows.csv" "$@" \
    > "$work/log" 2>&1
[ -e "$work/rows.csv" ] || give_up "the program measured nothing: $(tail -1 "$work/log")"

set -- "$work/rows.csv"
run=1
while [ $run -le "${NCU_RUNS:-5}" ]; do
    "$ncu" --metrics gpu__time_duration.sum --cache-control all --clock-control none \
        -k regex:truth_ --csv --page raw --print-units base \
        "$program" --profile --quiet --seed $run > "$work/ncu.$run" 2> "$work/log"
    grep -q '^".*truth_' "$work/ncu.$run" ||
        give_up "ncu profiled nothing: $(cat "$work/ncu.$run" "$work/log" | grep -v '^==PROF==' | tail -3)"
    # Without what ncu and the program say in between.
    grep '^"' "$work/ncu.$run" > "$work/ncu.$run.csv"
    set -- "$@" "$work/ncu.$run.csv"
    run=$((run + 1))
done
judge "$@"
