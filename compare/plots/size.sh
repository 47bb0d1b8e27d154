#!/bin/sh
# size.sh - time and throughput over the size of the shape, a line for each
# variant, a panel for each case, dtype and options.
set -eu
plots=$(dirname "$0")
usage="usage: size.sh [-e] [-s] STEM FILE.csv...
  -e  a picture for each panel, STEM-PANEL, instead of one with all of them
  -s  only SVG, no PNG"
. "$plots/draw.sh"
read_options es "$@"
shift $((OPTIND - 1))
start "$@"
shift
points "$work/points" "$@"
awk -v folder="$work" -v each="$each" -f "$numbers" -f "$plots/plot.awk" -f "$plots/size.awk" "$work/points" ||
    die "$*: nothing to draw"
draw
