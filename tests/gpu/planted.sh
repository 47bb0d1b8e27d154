#!/bin/sh
# planted.sh [-b BASELINE.csv] HEALTHY PATCHED [ARGUMENTS...] - is a real
# slowdown of 5 % in one kernel found, and in that kernel only? HEALTHY and
# PATCHED are build/cuda/norm and build/cuda/planted/norm of `make planted`; the
# arguments go to both. Measures ten runs of the healthy program (or takes a
# baseline that is there already: -b) and three of the patched one, in one
# sitting, and lets gpubench-compare judge. HEALTHY_RUNS, PATCHED_RUNS and
# COMPARE change the numbers and the tool.
#
# The patched kernel works on the first twentieth of the rows once more, in blocks
# of their own behind the others: at the largest shape those rows have long left
# the L2 by then, so that reading and writing them again costs 5 % of the traffic.
# At a few hundred rows the blocks fit beside the others and cost nothing, and
# where everything fits the L2 they cost less than 5 %: such shapes may end as
# same or inconclusive. So found, and only there, means:
#
#   - every SLOWER verdict belongs to the patched kernel, and
#   - at the shape with the most bytes, each of its cases is SLOWER, and
#   - no case that was measured is invalid or no longer verifies.
#
# Exit status: 0 found, 1 not so, 2 could not measure.
set -u
export LC_ALL=C CDPATH=
compare=${COMPARE:-build/gpubench-compare}
usage="usage: planted.sh [-b BASELINE.csv] HEALTHY PATCHED [ARGUMENTS...]"
baseline=
while getopts b: option; do
    case $option in
    b) baseline=$OPTARG ;;
    *) echo "$usage" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { echo "$usage" >&2; exit 2; }
healthy=$1 patched=$2
shift 2
work=results/planted
mkdir -p $work || exit 2

measure() { # measure PROGRAM RUNS FILE ARGUMENTS...
    program=$1 runs=$2 file=$3
    shift 3
    "$program" --runs "$runs" --quiet --csv "$file" "$@" || { echo "planted: $program failed" >&2; exit 2; }
}

if [ -z "$baseline" ]; then
    baseline=$work/healthy.csv
    measure "$healthy" "${HEALTHY_RUNS:-10}" "$baseline" "$@"
fi
measure "$patched" "${PATCHED_RUNS:-3}" $work/patched.csv "$@"

# --subset: arguments may have chosen some of the cases of a baseline.
"$compare" --subset "$baseline" $work/patched.csv
status=$?
"$compare" --subset --format csv "$baseline" $work/patched.csv > $work/verdicts.csv
[ $status -ne 2 ] || exit 2
here=$(dirname "$0")
awk -v ended=$status -f "$here/../../compare/csv.awk" -f "$here/planted.awk" $work/patched.csv $work/verdicts.csv
