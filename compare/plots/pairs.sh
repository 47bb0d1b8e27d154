#!/bin/sh
# pairs.sh - copies between GPUs as a matrix: from which to which, a panel for each
# variant, size and mode.
set -eu
plots=$(dirname "$0")
usage="usage: pairs.sh [-e] [-s] STEM FILE.csv...
  FILE  results of the memcpy suite on several GPUs (--device all)
  -e    a picture for each panel, STEM-PANEL, instead of one with all of them
  -s    only SVG, no PNG"
. "$plots/draw.sh"
read_options es "$@"
shift $((OPTIND - 1))
start "$@"
shift
awk -v needs="$result_columns counters gb_per_s" -v folder="$work" -v each="$each" -f "$reader" \
    -f "$numbers" -f "$plots/counters.awk" -f "$plots/plot.awk" -f "$plots/pairs.awk" "$@" || die "$*: nothing to draw"
draw
