#!/bin/sh
# parts.sh - the parts of a block as a stack beside the whole, a panel for each
# pass, dtype and shape whose parts were measured.
set -eu
plots=$(dirname "$0")
usage="usage: parts.sh [-e] [-s] STEM FILE.csv...
  -e  a picture for each panel, STEM-PANEL, instead of one with all of them
  -s  only SVG, no PNG"
. "$plots/draw.sh"
read_options es "$@"
shift $((OPTIND - 1))
start "$@"
shift
points "$work/points" "$@"
awk -v folder="$work" -v each="$each" -f "$numbers" -f "$plots/plot.awk" -f "$plots/parts.awk" \
    -f "$plots/parts_plot.awk" "$work/points" ||
    die "$*: nothing to draw"
draw
