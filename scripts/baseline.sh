#!/bin/sh
# baseline.sh PROGRAM SUITE RUNS [ARGUMENTS...] - measures a suite in RUNS
# processes and appends them, as one campaign, to the baseline of this device.
# Refuses a working tree with changes, whose revision would name other code,
# unless FORCE=1. Prints what changed against the campaigns that were there.
set -eu
program=$1 suite=$2 runs=$3
shift 3
measured=results/baseline-$suite.csv

if [ "${FORCE:-0}" != 1 ] && [ -n "$(git status --porcelain 2>/dev/null)" ]; then
    echo "baseline-$suite: the working tree has changes; commit them first (FORCE=1 overrides)" >&2
    exit 2
fi
mkdir -p results
"$program" --runs "$runs" --csv "$measured" "$@"
folder=$(sh scripts/device-folder.sh "$measured")
baseline=$folder/$suite.csv
mkdir -p "$folder"
if [ -e "$baseline" ]; then
    if [ "$(head -1 "$baseline")" != "$(head -1 "$measured")" ]; then
        echo "$baseline has other columns than $measured: move it away to start anew" >&2
        exit 2
    fi
    # A change is news here, not a failure.
    build/gpubench-compare --subset "$baseline" "$measured" || true
    { cat "$baseline"; tail -n +2 "$measured"; } > "$baseline.new"
else
    cp "$measured" "$baseline.new"
fi
mv "$baseline.new" "$baseline"
echo "$baseline: $(($(wc -l < "$baseline") - 1)) rows"
