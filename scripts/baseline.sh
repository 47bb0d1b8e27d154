#!/bin/sh
# baseline.sh PROGRAM SUITE RUNS [ARGUMENTS...] - measures a suite in RUNS
# processes and appends them, as one campaign, to the baseline of this device.
# Refuses a working tree with changes. Prints what changed against the campaigns
# that were there.
set -eu
. "$(dirname "$0")/record.sh"
program=$1 suite=$2 runs=$3
shift 3
measured=results/baseline-$suite.csv

refuse_changes "baseline-$suite"
prepare "$measured"
"$program" --runs "$runs" --csv "$measured" "$@"
[ -e "$measured" ] || exit 0
folder=$(sh scripts/device-folder.sh "$measured")
baseline=$folder/$suite.csv
# A change is news here, not a failure; other columns are for append to refuse.
[ ! -e "$baseline" ] || build/gpubench-compare --subset "$baseline" "$measured" || true
append "$measured" "$baseline"
