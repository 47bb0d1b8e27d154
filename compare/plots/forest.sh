#!/bin/sh
# forest.sh - a comparison as a forest plot: each case's change with its interval.
set -eu
plots=$(dirname "$0")
usage="usage: forest.sh [-s] [-m PERCENT] [-n MOST] [-t DEVICE] STEM COMPARISON.csv
  COMPARISON.csv is written by gpubench-compare --format csv
  -m  the margin that was given to gpubench-compare (2)
  -n  at most so many cases, those that changed most first
  -t  the device, for the title: the comparison does not name it
  -s  only SVG, no PNG"
. "$plots/draw.sh"
read_options sm:n:t: "$@"
shift $((OPTIND - 1))
start "$@"
shift
awk -v needs="case variant dtype params mode against metric verdict ratio ratio_low ratio_high" \
    -v folder="$work" -v margin="$margin" -v most="$most" -v device="$device" \
    -f "$reader" -f "$numbers" -f "$plots/plot.awk" -f "$plots/forest.awk" "$@" || die "$*: nothing to draw"
draw
