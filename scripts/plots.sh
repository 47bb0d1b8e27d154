#!/bin/sh
# plots.sh FOLDER RESULTS SUITE... - draws what RESULTS/SUITE.csv hold into FOLDER: for
# each suite time and throughput, of the block its parts, of memcpy the pairs of GPUs, of
# collectives the bus bandwidths, of the model the efficiency over GPUs, a roofline below
# the ceilings suite's, and the history of what changed since the device's baselines. What has no
# results is said, and does not keep the rest from being drawn.
# Exit status: 2 if there is nothing to draw, or if a file is no good.
set -eu
export LC_ALL=C CDPATH=
scripts=$(dirname "$0")
plots=$scripts/../compare/plots
[ $# -ge 3 ] || { echo "usage: plots.sh FOLDER RESULTS SUITE..." >&2; exit 2; }
folder=$1 results=$2
shift 2
mkdir -p "$folder"
. "$scripts/ended.sh"
work=
clean_up() { rm -rf "$work"; }
work=$(unbroken mktemp -d) || exit 2
status=0 missing=

# draw WHAT COMMAND...: where there is nothing of the kind, that is said. False if a
# file is no good.
draw() {
    what=$1
    shift
    "$@" 2>"$work/complaint" && return
    if grep -q 'nothing to draw$' "$work/complaint"; then
        echo "plots: no $what: $(head -n 1 "$work/complaint")"
    else
        cat "$work/complaint" >&2
        status=2
        return 1
    fi
}

# Bus bandwidths, below the link's limit where copies between GPUs were measured.
draw_collectives() {
    if grep -q '^[^,]*,memcpy,memcpy.peer,.*,ok,' "$results/memcpy.csv" 2>/dev/null; then
        draw "bus bandwidths" "$plots/collective.sh" -c "$results/memcpy.csv" "$folder/bus" "$file"
    else
        draw "bus bandwidths" "$plots/collective.sh" "$folder/bus" "$file"
    fi
}

# The arguments become the files that are there, and good.
for suite; do
    shift
    file=$results/$suite.csv
    if [ ! -e "$file" ]; then
        missing="$missing $file"
        continue
    fi
    draw "plot of $suite" "$plots/size.sh" "$folder/$suite" "$file" || continue
    set -- "$@" "$file"
    case $suite in
    block) draw "parts of the block" "$plots/parts.sh" "$folder/block-parts" "$file" || true ;;
    memcpy) draw "pairs of GPUs" "$plots/pairs.sh" "$folder/pairs" "$file" || true ;;
    collective) draw_collectives || true ;;
    model) draw "efficiency over GPUs" "$plots/efficiency.sh" "$folder/efficiency" "$file" || true ;;
    esac
done
[ $# -gt 0 ] || { echo "plots: nothing to draw in $results (make suites measures)" >&2; exit 2; }
[ -z "$missing" ] || echo "plots: left out, as not there:$missing"
if [ -e "$results/ceilings.csv" ]; then
    draw roofline "$plots/roofline.sh" -c "$results/ceilings.csv" "$folder/roofline" "$@" || true
else
    echo "plots: no roofline, which takes $results/ceilings.csv"
fi
baselines=$(sh "$scripts/device-folder.sh" "$1" 2>/dev/null) || baselines=
sh "$scripts/histories.sh" "$results" "$baselines" >"$work/history.csv" 2>"$work/said"
grep -v 'is ok in two campaigns' "$work/said" >&2 || true
if [ -s "$work/history.csv" ]; then
    draw history "$plots/history.sh" "$folder/history" "$work/history.csv" || true
fi
exit $status
