#!/bin/sh
# compare.sh PROGRAM SUITE RUNS [ARGUMENTS...] - measures a suite with the settings
# and the seed of its baselines and screens it by the baseline of this device: cards and sittings
# differ by more than the margin, so what looks slower (by more than 2 %, whatever
# the verdict) is raced against the revision that the baseline names, on this card.
# One process measures every case; only what looks doubtful by it (slower by more than
# 1 %, or no longer ok) is measured by the RUNS - 1 others before it is screened, in turn
# with the other variants of its case, as in the first and in the baseline.
# The race begins no pair after RACE_SECONDS (180): what is open then is inconclusive, but
# where it has too few pairs to tell anything the baseline's SLOWER stands.
# Where the revision cannot be built, the baseline judges: what it calls slower is measured
# once more, and SLOWER both times fails. Whatever else the first measurement found
# (cases that are missing or no longer verify) fails either way.
# Of some suites only what baselines are of is measured (tracked in options.sh).
# Exit status: gpubench-compare's.
set -eu
export LC_ALL=C CDPATH=
. "$(dirname "$0")/orderly.sh"
. "$(dirname "$0")/followed.sh"
. "$(dirname "$0")/options.sh"
program=$1 suite=$2 runs=$3
shift 3
allowed=${RACE_SECONDS:-180}
refuse_but_whole() { # refuse_but_whole VARIABLE VALUE OF
    case $2 in
    '' | *[!0-9]* | 0*)
        echo "compare-$suite: $1: '$2' is no number of $3" >&2
        exit 2
        ;;
    esac
}
refuse_but_whole RUNS "$runs" processes
refuse_but_whole RACE_SECONDS "$allowed" seconds
refuse_options "compare-$suite" '--csv --runs' "$@"
# Whoever asks for some of the cases does not miss the others.
case " $* " in
*" --filter"*|*" --shape"*|*" --dtype"*|*" --mode"*) subset=--subset ;;
*) subset= ;;
esac
filter=$(tracked "$suite" "$@")
[ -z "$filter" ] || set -- "$@" --filter "$filter"
current=results/$suite.csv
again=results/$suite-again.csv
# CSV or names of cases, but no rows, which all *.csv of results/ have.
doubtful=results/$suite-doubtful.txt
further=results/$suite-further.txt
keys=results/$suite-screened.txt
found=results/$suite-found.txt
second=results/$suite-second.txt # verdicts of what is looked at a second time
summary=results/$suite-summary.txt
doubt=0.01 # a process that is slower by more than this needs others
limit=0.02 # of the screen

values() { sh scripts/csv.sh values name="$1" "$2"; }

# The settings that all baselines of the suite were measured with, one a line, if
# they agree: which device this is shows only in the rows.
common_settings() {
    for file in baselines/*/"$suite".csv; do
        [ ! -e "$file" ] || values settings "$file" | tail -1
    done | sort -u | { read -r first || exit 0; read -r _ || printf '%s\n' "$first" | tr ' ' '\n'; }
}

# The least seed that each of these baselines has rows of, if there is one: only rows of one
# seed tell whether the work changed.
common_seed() {
    set -- baselines/*/"$suite".csv
    [ -e "$1" ] || return 0
    for file; do values seed "$file"; done | grep -x '[0-9]\{1,20\}' | sort -n | uniq -c |
        awk -v files=$# '$1 == files { print "seed=" $2; exit }'
}

# Adds to the arguments each setting that the caller has not given.
for setting in $(common_settings) $(common_seed); do
    option=--$(printf '%s' "${setting%%=*}" | tr '_' '-')
    case $option in
    --precision | --max-time | --min-samples | --max-samples | --warmup | --seed) ;;
    *) continue ;;
    esac
    case " $* " in
    *" $option"[\ =]*) ;;
    *) set -- "$@" "$option" "${setting#*=}" ;;
    esac
done

# measure FILE RUNS ARGUMENTS...: a case that failed has a row, which is judged. What was there before
# stays until all is measured, also where the arguments ask for nothing to be (--help, --list).
measure() {
    into=$(followed "$1") new=$into.new processes=$2
    shift 2
    rm -f "$new"
    code=0
    case " $* " in
    *" --quiet "*) watched "$program" --runs "$processes" --csv "$new" "$@" || code=$? ;;
    *) watched "$program" --runs "$processes" --quiet --csv "$new" "$@" || code=$? ;;
    esac
    [ "$code" -le 1 ] || exit "$code"
    [ -e "$new" ] || exit "$code"
    mv -f "$new" "$into"
}

# measure_only CASES FILE RUNS ARGUMENTS...: CASES, a file of their names, are among those that
# the caller's own filter takes.
measure_only() {
    filter=$(awk -f scripts/alternatives.awk "$1")
    file=$2 times=$3
    shift 3
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
    measure "$file" "$times" "$@" --filter "$filter"
}

verdicts() { build/gpubench-compare --host-params "$host_params" "$@"; }

# judge: what the tool says of the current rows, for the scripts.
judge() {
    screened=0
    # shellcheck disable=SC2086
    verdicts $subset --format csv "$baseline" "$current" > "$found" 2> /dev/null || screened=$?
}

# look_closer ARGUMENTS...: measures what is doubtful with the other processes, and judges anew.
look_closer() {
    sh scripts/csv.sh doubtful above="$doubt" "$found" "$current" > "$doubtful"
    [ -s "$doubtful" ] && [ "$runs" -gt 1 ] || return 0
    echo "compare-$suite: measuring what is doubtful, with its other variants:" \
        "$(wc -l < "$doubtful") cases, in $((runs - 1)) more processes"
    measure_only "$doubtful" "$further" $((runs - 1)) "$@"
    into=$(followed "$current") new=$into.new
    sh scripts/csv.sh joined further="$further" "$further" "$current" > "$new"
    mv -f "$new" "$into"
    judge
}

# conclude STATUS [VERDICTS]: ends with one line about what was found; VERDICTS, of what was looked
# at a second time, count instead of the first.
conclude() {
    status=$1
    shift
    [ "$status" -le 1 ] || exit "$status"
    sh scripts/csv.sh verdicts suite="$suite" subset="$subset" second="$second" race="$race" \
        seconds=$(($(date +%s) - began)) "$found" "$@" > "$summary"
    sh scripts/csv.sh summary "$summary"
    exit "$status"
}

# What the second look says nothing of, and what else the first measurement found, is not forgotten.
conclude_second() {
    sh scripts/csv.sh untold second="$second" "$second" "$found" || status=1
    sh scripts/csv.sh others subset="$subset" "$found" || status=1
    conclude "$status" "$second"
}

# What a measurement was at when it was ended.
new=
clean_up() { [ -z "$new" ] || rm -f "$new"; }

mkdir -p results
alone "results/$suite.lock" "compare-$suite"
rm -f "$summary"
began=$(date +%s)
measure "$current" 1 "$@"
folder=$(sh scripts/device-folder.sh "$current")
baseline=$folder/$suite.csv
if [ ! -e "$baseline" ]; then
    echo "compare-$suite: no baseline of this device: $baseline is missing;" \
         "make baseline-$suite records it" >&2
    exit 2
fi
judge
look_closer "$@"
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
verdicts $subset $screen --verdicts "$found" "$baseline" "$current" || first=$?
[ "$first" -le 1 ] || exit "$first"
if [ "$screened" -gt 1 ]; then # nothing else than a file can have been in the way
    echo "compare-$suite: cannot write $found, by which is screened" >&2
    exit 2
fi

if [ -n "$race" ]; then
    echo "compare-$suite: racing the $(wc -l < "$keys") cases that look slower"
    status=0
    watched sh scripts/race.sh "$program" "$suite" --rev "$rev" --only "$keys" --verdicts "$second" \
        --seconds "$allowed" -- "$@" || status=$?
    [ "$status" -le 1 ] || exit "$status"
    conclude_second
fi
[ "$first" -eq 1 ] || conclude 0
sh scripts/csv.sh doubtful slower=1 "$found" "$current" > "$keys"
[ -s "$keys" ] || conclude 1 # missing, or no longer ok: measuring again would not help
echo "compare-$suite: measuring the slower cases again"
measure_only "$keys" "$again" "$runs" "$@"
sh scripts/csv.sh slower "$found" > "$keys"
labels=$(awk -f scripts/alternatives.awk "$keys")
rm -f "$second"
status=0
verdicts --filter "$labels" --verdicts "$second" "$baseline" "$again" || status=$?
if [ "$status" -eq 2 ] && [ -e "$second" ]; then # gone, all of them: nothing to judge, and no good news
    sh scripts/csv.sh others "$second" || conclude 1 "$second"
fi
[ "$status" -eq 0 ] || conclude "$status" "$second"
conclude_second
