#!/bin/sh
# signals.sh PROGRAM COMPARE [COUNT] [SEED] - sends signals at random moments to a program
# built on gpubench.h that replaces a file of rows, plain and under --runs. What is on disk
# is then the earlier file or whole rows, no process goes on, nothing else is left but
# what a kill leaves (FILE.partial), and a second start works. As TAP lines.
set -u
program=$(realpath "$1") compare=$(realpath "$2")
count=${3:-20} seed=${4:-18}
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

quick='--quiet --max-time 0.02 --max-samples 20 --warmup 1'
mkdir "$work/tmp"
export TMPDIR="$work/tmp"

# Of a whole run of the kind: the moment of a signal is one before its end.
moments() {
    awk -v count="$count" -v seed="$seed" 'BEGIN {
        srand(seed)
        split("INT TERM HUP PIPE KILL", signals)
        for (i = 0; i < count; i++)
            print signals[1 + i % 5], rand() * 1.5, 1 + int(2 * rand()) }'
}

explain() { ls -la "$work" "$work/tmp"; tail -n 5 "$log"; }

# A file of rows that the compare tool reads, or the one that was there.
is_true() {
    cmp -s "$work/earlier.csv" "$work/rows.csv" || "$compare" --check "$work/rows.csv" > "$log" 2>&1
}

# Nobody of the session is alive a moment later.
is_alone() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        ps -e -o sid= -o stat= | awk -v sid="$1" '$1 == sid && $2 !~ /^Z/ { found = 1 } END { exit !found }' ||
            return 0
        sleep 0.1
    done
    return 1
}

$program $quick --csv "$work/earlier.csv" > "$log" 2>&1
check $? "the program measures when it is left alone"

failed=0
while read -r signal delay runs; do
    cp "$work/earlier.csv" "$work/rows.csv"
    setsid "$program" $quick --runs "$runs" --csv "$work/rows.csv" > "$log" 2>&1 &
    child=$!
    sleep "$delay"
    kill -s "$signal" "$child" 2> "$work/gone"
    wait "$child" 2> "$work/gone"
    problem=
    is_true || problem="rows.csv is neither the earlier file nor whole rows"
    is_alone "$child" || problem="a process goes on"
    [ -z "$(ls "$work/tmp")" ] || problem="something is left in the temporary folder"
    [ "$signal" = KILL ] || [ ! -e "$work/rows.csv.partial" ] || problem="FILE.partial is left"
    if [ -n "$problem" ]; then
        echo "# $signal after $delay s, --runs $runs: $problem"
        explain | sed 's/^/# /'
        failed=$((failed + 1))
    fi
    rm -f "$work"/rows.csv.partial* "$work/rows.csv"
done <<LIST
$(moments)
LIST
[ "$failed" -eq 0 ]
check $? "$count signals at random moments (seed $seed) leave what is true and nothing else"

$program $quick --csv "$work/rows.csv" > "$log" 2>&1 && "$compare" --check "$work/rows.csv" > "$log" 2>&1
check $? "a start afterwards works"
finish
