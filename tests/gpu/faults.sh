#!/bin/sh
# faults.sh BUILD [PART...] - what the worst costs on a true GPU, as TAP lines: its memory runs
# out at each allocation of a case, the context is lost in each phase, a kernel never ends in
# each phase, in each mode; and too little memory for all that the framework takes itself. BUILD
# is the folder with the programs of `make BACKEND=cuda`. PART is cold, hot, graph or memory.
set -u
. "$(dirname "$0")/../tap.sh"
build=$1
shift
[ $# -gt 0 ] || set -- cold hot graph memory
quick="--quiet --max-time 0.02 --max-samples 100 --min-samples 30 --timeout 1"
mkdir "$work/tmp"
TMPDIR=$work/tmp
export TMPDIR

column() { # column NAME: its number, by the header of the rows
    head -1 "$work/rows.csv" | tr , '\n' | grep -nx "$1" | cut -d: -f1
}

# ends_as CASE PATTERN: its one row has "STATUS FLAGS" like the pattern.
ends_as() {
    awk -F, -v name="$1" -v pattern="$2" -v case_="$case_column" -v status="$status_column" \
        -v flags="$flags_column" \
        '$case_ == name { rows++; right += $status " " $flags ~ pattern; print > "/dev/stderr" }
         END { exit !(rows == 1 && right == 1) }' "$work/rows.csv" 2>"$log"
}

healthy_are_ok() {
    grep ,healthy_after_ "$work/rows.csv" >"$log"
    [ "$(awk -F, -v status="$status_column" '$status == "ok"' "$log" | wc -l)" -eq 16 ]
}

starved_and_struck() { # starved_and_struck MODE
    for number in 1 2 3 4; do
        ends_as "starved_$number" '^oom .*needed_bytes=1073741824'
        check $? "$1: no memory at allocation $number is one row"
    done
    for phase in setup reset first_run later_run verify; do
        # A captured run is called a few times only.
        [ "$1-$phase" = graph-later_run ] && continue
        ends_as "lost_in_$phase" '^failed .*reason='
        check $? "$1: a context that is lost in $phase costs one row"
        ends_as "endless_in_$phase" '^failed .*reason='
        check $? "$1: a kernel that never ends in $phase costs one row"
    done
    for case in lost_in_teardown endless_in_teardown; do
        ends_as "$case" '^(ok |failed .*reason=)'
        check $? "$1: $case costs one row at most"
    done
}

every_fault() { # every_fault MODE
    echo "an earlier file" >"$work/rows.csv"
    "$build/tests/faults" $quick --mode "$1" --csv "$work/rows.csv" >"$log" 2>&1
    [ $? -eq 1 ]
    check $? "$1: the status is 1"
    case_column=$(column case) status_column=$(column status) flags_column=$(column flags)
    [ "$(wc -l <"$work/rows.csv")" -eq 33 ]
    check $? "$1: each case has its row"
    healthy_are_ok
    check $? "$1: all healthy cases are measured and verified"
    starved_and_struck "$1"
    ls "$work/tmp" >"$log"
    [ ! -s "$log" ]
    check $? "$1: nothing is left in the temporary folder"
}

# Whole rows, or a message and the earlier file.
ends_well() { # ends_well STATUS
    case $1 in
    2) [ "$(cat "$work/rows.csv")" = "an earlier file" ] && [ -s "$log" ] ;;
    1) [ "$(wc -l <"$work/rows.csv")" -eq 3 ] ;;
    *) false ;;
    esac
}

# Two cases with so little left of the device's memory. $verdict: 0 or 1, or 2 where they ended in
# another way while others gave memory back or took it, as the program that holds the rest sees
# by what is free before and after: then it judges nothing.
left_with() { # left_with MIB
    mkfifo "$work/ask" "$work/free"
    "$build/tests/faults" --hold "$1" <"$work/ask" >"$work/free" &
    exec 9>"$work/ask" 8<"$work/free"
    before='' after='' verdict=1
    read -r before <&8
    echo "an earlier file" >"$work/rows.csv"
    "$build/tests/faults" $quick --mode cold --filter '^(starved_1|healthy_after_starved_1)$' \
        --csv "$work/rows.csv" >"$log" 2>&1
    status=$?
    ends_well $status && verdict=0
    [ -z "$before" ] || { echo >&9; read -r after <&8; }
    exec 9>&- 8<&-
    wait $!
    rm "$work/ask" "$work/free"
    echo "status $status, ${before:-unknown} MiB free before, ${after:-unknown} after" >>"$log"
    [ -n "$before" ] && [ -n "$after" ] || verdict=1
    change=$((${after:-0} - ${before:-0}))
    [ $verdict -eq 1 ] && [ "${change#-}" -ge 16 ] && verdict=2
}

little_memory() {
    for mib in 0 64 256 512 640 768 1024 1536; do
        left_with $mib
        [ $verdict -eq 2 ] && left_with $mib
        [ $verdict -eq 2 ] && left_with $mib
        reason=''
        [ $verdict -eq 2 ] && reason="not judged: others' memory changed, $(tail -n 1 "$log")" verdict=0
        check $verdict "with $mib MiB left it ends with a reason (status $status, $before MiB free)" "$reason"
    done
}

for part; do
    case $part in
    memory) little_memory ;;
    *) every_fault "$part" ;;
    esac
done
finish
