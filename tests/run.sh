#!/bin/sh
# run.sh COMMAND... [-- COMMAND...]  runs test programs and scripts that print TAP ("program"
# or "program argument ..."), shows what failed, and closes with one line:
# N passed, N failed, N skipped. Status 1 if any failed.
# A program that crashes, prints no plan, or fewer results than its plan, is one failure.
# What takes times is run alone, one after the other; what comes behind -- takes none, and as
# many as there are processors run at once.
export LC_ALL=C CDPATH=
# What a user has set for the programs and scripts, for NCCL, or where Slurm runs this, is not the
# tests': they set their own.
for name in RACE_SECONDS COMPARE DESTDIR PREFIX FORCE HOSTS LABELS DIR GPUBENCH_NCCL GPUBENCH_SIMD \
    $(env | sed -nE 's/^((NCCL|SLURM|PEERS)[A-Z0-9]*_[A-Za-z0-9_]*)=.*/\1/p'); do
    unset "$name"
done
work=${RUN_WORK:-}

# one COMMAND: prints what became of it, and adds its counts to $work/counts.
one() {
    log=$(mktemp "$work/log.XXXXXX") || exit 2
    begun=$(date +%s)
    CMOCKA_MESSAGE_OUTPUT=tap $1 > "$log" 2>&1 < /dev/null
    status=$?
    seconds=$(($(date +%s) - begun))
    # What a program says may hold a NUL, and to grep such a file is no text.
    tr -d '\000' < "$log" > "$log.text" && mv "$log.text" "$log"
    ok=$(grep '^ok ' "$log" | grep -vc '^ok [0-9]* *# SKIP')
    left_out=$(grep -c '^\(not \)*ok [0-9]* *# SKIP' "$log") # cmocka's and TAP's spelling
    bad=$(($(grep -c '^not ok ' "$log") - $(grep -c '^not ok [0-9]* *# SKIP' "$log")))
    planned=$(sed -n 's/^1\.\.\([0-9][0-9]*\)$/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
    why=
    if [ "$planned" -eq 0 ]; then
        why="no plan, exit status $status"
    elif [ "$planned" -ne $((ok + bad + left_out)) ]; then
        why="$((ok + bad + left_out)) results of $planned planned, exit status $status"
    elif [ $status -ne 0 ] && [ "$bad" -eq 0 ]; then
        why="exit status $status"
    fi
    lost=$((${#why} > 0))
    {
        [ -z "$why" ] || echo "$1: $why"
        [ $((bad + lost)) -eq 0 ] || sed 's|^|    |' "$log"
        echo "$1: $ok passed, $((bad + lost)) failed, $seconds s"
    } > "$log.told"
    # Of those that run at once, one prints at a time.
    flock "$work/printing" cat "$log.told"
    echo "$ok $((bad + lost)) $left_out" >> "$work/counts"
    rm -f "$log" "$log.told"
}

path_of() {
    case $1 in
    */*) echo "$1" ;;
    *) echo "./$1" ;;
    esac
}

if [ -n "$work" ]; then
    one "$1"
    exit
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
: > "$work/counts"
told=$#
for program; do [ "$program" != -- ] || told=$((told - 1)); done
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    one "$(path_of "$1")"
    shift
done
[ $# -eq 0 ] || shift
for program; do path_of "$program"; done | tr '\n' '\0' |
    RUN_WORK="$work" xargs -0 -r -n 1 -P "$(nproc 2> /dev/null || echo 1)" "$0"

# Whoever could not even count is one failure more.
awk -v told="$told" '{ passed += $1; failed += $2; skipped += $3 }
     END { failed += told - NR
           print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
           exit failed > 0 }' "$work/counts"
