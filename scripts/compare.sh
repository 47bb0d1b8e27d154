#!/bin/sh
# compare.sh PROGRAM SUITE RUNS [ARGUMENTS...] - measures a suite and judges it
# against the baseline of this device. What looks slower is measured once more,
# in processes of their own, before that counts: SLOWER both times fails.
# Exit status: gpubench-compare's.
set -eu
program=$1 suite=$2 runs=$3
shift 3
current=results/$suite.csv
again=results/$suite-again.csv

mkdir -p results
"$program" --runs "$runs" --quiet --csv "$current" "$@"
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

# The --list line of each case that is slower, as one regular expression.
slower=$(build/gpubench-compare --format csv "$baseline" "$current" | awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    $(column["verdict"]) == "SLOWER" {
        line = $(column["case"])
        split("variant dtype params", part, " ")
        for (i = 1; i <= 3; i++) if ($(column[part[i]]) != "") line = line " " $(column[part[i]])
        gsub(/[.+*?()\[\]{}|^$]/, "\\\\&", line)
        printf "%s^%s$", separator, line
        separator = "|"
    }')
[ -n "$slower" ] || exit 1 # missing, or no longer ok: measuring again would not help
echo "compare-$suite: measuring the slower cases again"
"$program" --runs "$runs" --quiet --csv "$again" "$@" --filter "$slower"
exec build/gpubench-compare --subset "$baseline" "$again"
