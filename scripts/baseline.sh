#!/bin/sh
# baseline.sh PROGRAM SUITE RUNS [ARGUMENTS...] - measures a suite in RUNS
# processes and appends them, as one campaign, to the baseline of this device.
# Refuses a working tree with changes. Prints what changed against the campaigns
# that were there. What is slower than in the oldest of them needs a reason
# (REASON="why"), which is kept beside the baseline: a baseline that is refreshed
# after each small loss would hide their sum.
set -eu
export LC_ALL=C CDPATH=
. "$(dirname "$0")/orderly.sh"
. "$(dirname "$0")/followed.sh"
. "$(dirname "$0")/record.sh"
. "$(dirname "$0")/options.sh"
program=$1 suite=$2 runs=$3
shift 3
measured=results/baseline-$suite.csv

# A loss against the oldest campaign is recorded with its reason, or not at all.
judge_against_oldest() {
    loss=0 verdicts=results/oldest-$suite-verdicts.txt
    rm -f "$verdicts"
    build/gpubench-compare --oldest --subset --output "results/oldest-$suite.txt" --verdicts "$verdicts" \
        "$baseline" "$measured" 2> /dev/null || loss=$?
    # That one case cannot be judged does not excuse another's loss.
    [ "$loss" -ne 2 ] || [ ! -e "$verdicts" ] || [ -z "$(sh scripts/csv.sh slower "$verdicts")" ] || loss=1
    [ "$loss" -eq 1 ] || return 0
    if [ -z "${REASON:-}" ]; then
        cat "results/oldest-$suite.txt"
        echo "baseline-$suite: slower than the oldest campaign of $baseline, as above; nothing is recorded" \
             "(REASON=\"why\" records it; the rows are in $measured)" >&2
        exit 1
    fi
    campaign=$(sh scripts/csv.sh values name=campaign "$measured" | tr '\n' ' ')
    printf '%s %s\n' "$campaign" "$REASON" >> "$folder/$suite.reasons.txt"
}

refuse_options "baseline-$suite" --csv "$@"
filter=$(tracked "$suite" "$@")
[ -z "$filter" ] || set -- "$@" --filter "$filter"
refuse_changes "baseline-$suite"
prepare "$measured"
status=0
watched "$program" --runs "$runs" --csv "$measured" "$@" || status=$?
# A case that failed keeps its row, which says why.
[ "$status" -le 1 ] || exit "$status"
[ -e "$measured" ] || exit "$status"
refuse_unverified "$measured"
# What compare-model does not measure it would miss for ever.
if [ "$suite" = model ] && sh scripts/csv.sh values name=case "$measured" | grep -qx 'model[.]habit'; then
    echo "baseline-model: habits have a baseline of their own (make baseline-habits); nothing is appended" >&2
    exit 2
fi
folder=$(sh scripts/device-folder.sh "$measured")
baseline=$folder/$suite.csv
if [ -e "$baseline" ]; then
    refuse_other_columns "$measured" "$baseline"
    refuse_unreadable "$baseline"
    refuse_unwritable "$baseline"
    # A change since the last campaigns is news here, not a failure.
    build/gpubench-compare --subset "$baseline" "$measured" || true
    judge_against_oldest
fi
append "$measured" "$baseline"
exit "$status"
