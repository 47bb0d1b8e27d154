#!/bin/sh
# compare.sh PROGRAM SUITE RUNS [ARGUMENTS...] - measures a suite with the settings
# of its baselines and screens it by the baseline of this device: cards and sittings
# differ by more than the margin, so what looks slower (by more than 2 %, whatever
# the verdict) is raced against the revision that the baseline names, on this card.
# Where that cannot be built, the baseline judges: what it calls slower is measured
# once more, and SLOWER both times fails. Whatever else the first measurement found
# (cases that are missing or no longer verify) fails either way.
# Exit status: gpubench-compare's.
set -eu
. "$(dirname "$0")/orderly.sh"
. "$(dirname "$0")/followed.sh"
program=$1 suite=$2 runs=$3
shift 3
current=results/$suite.csv
again=results/$suite-again.csv
keys=results/$suite-screened.txt
found=results/$suite-found.txt # CSV, but no rows, which all *.csv of results/ have
limit=0.02 # of the screen

values() { sh scripts/csv.sh values name="$1" "$2"; }

# The settings that all baselines of the suite were measured with, one a line, if
# they agree: which device this is shows only in the rows.
common_settings() {
    for file in baselines/*/"$suite".csv; do
        [ ! -e "$file" ] || values settings "$file" | tail -1
    done | sort -u | { read -r first || exit 0; read -r _ || printf '%s\n' "$first" | tr ' ' '\n'; }
}

# Adds to the arguments each setting that the caller has not given.
for setting in $(common_settings); do
    option=--$(printf '%s' "${setting%%=*}" | tr '_' '-')
    case $option in
    --precision | --max-time | --min-samples | --max-samples | --warmup) ;;
    *) continue ;;
    esac
    case " $* " in
    *" $option"[\ =]*) ;;
    *) set -- "$@" "$option" "${setting#*=}" ;;
    esac
done

# measure FILE ARGUMENTS...: a case that failed has a row, which is judged. What was there before
# stays until all is measured, also where the arguments ask for nothing to be (--help, --list).
measure() {
    into=$(followed "$1") new=$into.new
    shift
    rm -f "$new"
    code=0
    case " $* " in
    *" --quiet "*) watched "$program" --runs "$runs" --csv "$new" "$@" || code=$? ;;
    *) watched "$program" --runs "$runs" --quiet --csv "$new" "$@" || code=$? ;;
    esac
    [ "$code" -le 1 ] || exit "$code"
    [ -e "$new" ] || exit "$code"
    mv -f "$new" "$into"
}

# What a measurement was at when it was ended.
new=
clean_up() { [ -z "$new" ] || rm -f "$new"; }

mkdir -p results
alone "results/$suite.lock" "compare-$suite"
measure "$current" "$@"
folder=$(sh scripts/device-folder.sh "$current")
baseline=$folder/$suite.csv
if [ ! -e "$baseline" ]; then
    echo "compare-$suite: no baseline of this device: $baseline is missing;" \
         "make baseline-$suite records it" >&2
    exit 2
fi
# Whoever asks for some of the cases does not miss the others.
case " $* " in
*" --filter"*|*" --shape"*|*" --dtype"*) subset=--subset ;;
*) subset= ;;
esac
screened=0
build/gpubench-compare $subset --format csv "$baseline" "$current" > "$found" 2> /dev/null || screened=$?
sh scripts/csv.sh screened limit="$limit" "$found" > "$keys"
rev=$(sh scripts/csv.sh newest-revision "$baseline")
case $rev in
'' | *-dirty) rev= ;; # nothing that could be built again
esac
race=
if [ -s "$keys" ] && [ -n "$rev" ] &&
    watched sh scripts/race.sh "$program" "$suite" --rev "$rev" --build-only > /dev/null; then
    race=1
fi
# What passes the screen needs no race: it is not slower. Without a race the
# baseline's own verdicts are all there is.
screen="--screen $(awk -v limit="$limit" 'BEGIN { print 100 * limit }')"
[ -n "$race" ] || [ ! -s "$keys" ] || screen=
first=0
build/gpubench-compare $subset $screen "$baseline" "$current" || first=$?
[ "$first" -le 1 ] || exit "$first"
if [ "$screened" -gt 1 ]; then # nothing else than a file can have been in the way
    echo "compare-$suite: cannot write $found, by which is screened" >&2
    exit 2
fi

if [ -n "$race" ]; then
    echo "compare-$suite: racing the $(wc -l < "$keys") cases that look slower"
    status=0
    watched sh scripts/race.sh "$program" "$suite" --rev "$rev" --only "$keys" -- "$@" || status=$?
    [ "$status" -le 1 ] || exit "$status"
    # What else the first measurement found is not forgotten.
    sh scripts/csv.sh others subset="$subset" "$found" || status=1
    exit "$status"
fi
[ "$first" -eq 1 ] || exit 0
lines=$(sh scripts/csv.sh slower "$found")
labels=$(sh scripts/csv.sh slower labels=1 "$found")
[ -n "$lines" ] || exit 1 # missing, or no longer ok: measuring again would not help

# The slower cases are among those that the caller's own filter takes.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    case $argument in
    --filter) shift; count=$((count - 1)) ;;
    --filter=*) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
echo "compare-$suite: measuring the slower cases again"
measure "$again" "$@" --filter "$lines"
status=0
build/gpubench-compare --filter "$labels" "$baseline" "$again" || status=$?
if [ "$status" -eq 2 ]; then # gone, all of them: nothing to judge, and no good news
    build/gpubench-compare --filter "$labels" --format csv "$baseline" "$again" > "$found" 2> /dev/null || true
    sh scripts/csv.sh others "$found" || exit 1
fi
[ "$status" -eq 0 ] || exit "$status"
# What else the first measurement found is not forgotten.
status=0
sh scripts/csv.sh others subset="$subset" "$found" || status=$?
exit "$status"
