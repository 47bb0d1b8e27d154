#!/bin/sh
# roofline.sh - operations per byte against TFLOP/s for the fastest variant of each
# case and shape, a panel for each dtype, below the ceilings that were measured.
set -eu
plots=$(dirname "$0")
usage="usage: roofline.sh [-e] [-s] -c CEILINGS.csv STEM FILE.csv...
  -c  results of the ceilings suite on the same device
  -e  a picture for each panel, STEM-PANEL, instead of one with all of them
  -s  only SVG, no PNG"
. "$plots/draw.sh"
read_options esc: "$@"
shift $((OPTIND - 1))
[ -n "$ceilings" ] || { echo "$usage" >&2; exit 2; }
start "$@"
shift
readable "$ceilings"
points "$work/ceilings" "$ceilings"
points "$work/points" "$@"
awk -v folder="$work" -v each="$each" -f "$plots/plot.awk" -f "$plots/roofline.awk" \
    reading=ceilings "$work/ceilings" reading=results "$work/points" ||
    die "$*: nothing to draw"
draw
