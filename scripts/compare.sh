#!/bin/sh
# compare.sh PROGRAM SUITE RUNS [ARGUMENTS...] - measures a suite with the settings
# of its baselines and judges it against the baseline of this device. What looks
# slower is measured once more, in processes of its own, before that counts:
# SLOWER both times fails, and so does whatever else the first measurement found.
# Exit status: gpubench-compare's.
set -eu
program=$1 suite=$2 runs=$3
shift 3
current=results/$suite.csv
again=results/$suite-again.csv
found=results/$suite-found.csv

values() { awk -v name="$1" -f scripts/fields.awk -f scripts/values.awk "$2"; }

# The settings that all baselines of the suite were measured with, one a line, if
# they agree: which device this is shows only in the rows.
common_settings() {
    for file in baselines/*/"$suite".csv; do
        [ ! -e "$file" ] || values settings "$file" | tail -1
    done | sort -u | { read -r first || exit 0; read -r second || printf '%s\n' "$first" | tr ' ' '\n'; }
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

# measure FILE ARGUMENTS...: a case that failed has a row, which is judged.
measure() {
    file=$1
    shift
    rm -f "$file"
    code=0
    case " $* " in
    *" --quiet "*) "$program" --runs "$runs" --csv "$file" "$@" || code=$? ;;
    *) "$program" --runs "$runs" --quiet --csv "$file" "$@" || code=$? ;;
    esac
    [ "$code" -le 1 ] || exit "$code"
    [ -e "$file" ] || exit "$code" # --help, --list
}

mkdir -p results
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
status=0
build/gpubench-compare $subset "$baseline" "$current" || status=$?
[ "$status" -eq 1 ] || exit "$status"

build/gpubench-compare $subset --format csv "$baseline" "$current" > "$found" 2> /dev/null || true
lines=$(awk -f scripts/fields.awk -f scripts/slower.awk "$found")
labels=$(awk -v labels=1 -f scripts/fields.awk -f scripts/slower.awk "$found")
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
    awk -f scripts/fields.awk -f scripts/others.awk "$found" || exit 1
fi
[ "$status" -eq 0 ] || exit "$status"
# What else the first measurement found is not forgotten.
status=0
awk -v subset="$subset" -f scripts/fields.awk -f scripts/others.awk "$found" || status=$?
exit "$status"
