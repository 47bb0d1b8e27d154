#!/bin/sh
# efficiency.sh - the rate per GPU against that of the fewest GPUs, over their number: a
# line for each variant and shape, a panel for each case, dtype and mode.
set -eu
plots=$(dirname "$0")
usage="usage: efficiency.sh [-e] [-s] STEM FILE.csv...
  FILE  results whose params hold gpus=N and whose counters hold tokens/s
  -e    a picture for each panel, STEM-PANEL, instead of one with all of them
  -s    only SVG, no PNG"
. "$plots/draw.sh"
read_options es "$@"
shift $((OPTIND - 1))
start "$@"
shift
awk -v needs="$result_columns counters" -v folder="$work" -v each="$each" -f "$reader" -f "$numbers" \
    -f "$plots/counters.awk" -f "$plots/plot.awk" -f "$plots/efficiency.awk" "$@" ||
    die "$*: nothing to draw"
draw
