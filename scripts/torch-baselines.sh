#!/bin/sh
# torch-baselines.sh BUILD ROUNDS [ARGUMENTS...] - measures PyTorch on the suites' cases
# (compare/pytorch, whose arguments they are) and beside it the suites' own fastest
# variants by the baseline of this device, in turn on one card, and appends both to
# baselines/<device>/torch/<suite>.csv. A round is a process of PyTorch and one of each
# suite that it measured, in the second round and every other one the suites first, and a
# campaign of its own. The suites' rows are not those of their own baselines: there the
# variants of a case take turns, and a naive one lets the card cool; here each is alone on
# it, as PyTorch's are. Refuses a working tree with changes. A case that failed keeps its
# row, which says why.
# Exit status: 0 all measured, 1 some case failed, 2 (no PyTorch, no GPU, bad usage) records
# nothing.
set -eu
export LC_ALL=C CDPATH=
. "$(dirname "$0")/orderly.sh"
. "$(dirname "$0")/followed.sh"
. "$(dirname "$0")/record.sh"
. "$(dirname "$0")/options.sh"
build=$1 rounds=$2
shift 2
measured=results/torch.csv
theirs=results/torch-theirs.csv
ours=results/torch-ours.csv
listed=results/torch-listed.txt # by a suite's program
sitting=$(date -u +%Y%m%dT%H%M%SZ)
worst=0

# counted STATUS: what only says that a case failed is remembered, the rest ends it.
counted() {
    [ "$1" -le 1 ] || exit "$1"
    [ "$1" -eq 0 ] || worst=1
}

# own SUITE SETTING...: with the settings of PyTorch's rows, and on one stream as they are.
own() {
    suite=$1 arguments=
    shift
    for setting; do
        case $setting in
        precision=* | max-time=* | min-samples=*) arguments="$arguments --${setting%%=*} ${setting#*=}" ;;
        esac
    done
    dtypes=$(sh scripts/csv.sh values name=dtype "$theirs" | paste -sd, -)
    arguments="$arguments${dtypes:+ --dtype $dtypes}"
    # shellcheck disable=SC2086 # words
    "$build/$suite" $arguments --list > "$listed"
    baseline=$folder/$suite.csv
    [ -e "$baseline" ] || baseline=
    lines=$(awk -v suite="$suite" -v listed="$listed" -f compare/csv.awk \
        -f compare/numbers.awk -f scripts/fastest.awk \
        "$theirs" $baseline | awk -f scripts/alternatives.awk | sed 's/ \\\* / [^ ]+ /g')
    [ -n "$lines" ] || return 0
    rm -f "$ours"
    status=0
    # shellcheck disable=SC2086 # words
    watched "$build/$suite" $arguments --streams 1 --runs 1 --seed "$round" --campaign "$sitting-$round" \
        --quiet --csv "$ours" --filter "$lines" || status=$?
    counted "$status"
    [ ! -s "$ours" ] || append "$ours" "$measured"
}

# PyTorch's side of a round, and the suites', of what PyTorch measured last.
their_side() {
    rm -f "$theirs"
    status=0
    watched "${PYTHON:-python3}" compare/pytorch --suites "$build" --runs 1 --seed "$round" \
        --campaign "$sitting-$round" --csv "$theirs" "$@" || status=$?
    counted "$status"
    [ -s "$theirs" ] || exit "$status" # --help, --list
    append "$theirs" "$measured"
}
our_side() {
    folder=$(sh scripts/device-folder.sh "$measured")
    settings=$(sh scripts/csv.sh values name=settings "$theirs" | tail -1)
    for suite in $(sh scripts/csv.sh values name=suite "$theirs"); do
        # shellcheck disable=SC2086 # words
        own "$suite" $settings
    done
}

refuse_options torch-baselines '--csv --runs --suites --campaign --seed' "$@"
refuse_changes torch-baselines
prepare "$measured"
round=0
while [ $((round += 1)) -le "$rounds" ]; do
    # The card is warmer for whoever comes second.
    if [ $((round % 2)) -eq 1 ]; then
        their_side "$@"
        our_side
    else
        our_side
        their_side "$@"
    fi
done
rm -rf results/torch
mkdir results/torch
sh scripts/csv.sh by_suite folder=results/torch "$measured"
# All or none: a campaign that lacks suites would look complete.
for file in results/torch/*.csv; do
    [ -e "$file" ] || exit "$worst" # no rows at all
    refuse_unverified "$file"
    refuse_other_columns "$file" "$folder/torch/$(basename "$file")"
done
for file in results/torch/*.csv; do
    append "$file" "$folder/torch/$(basename "$file")"
done
exit "$worst"
