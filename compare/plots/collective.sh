#!/bin/sh
# collective.sh - bus bandwidth over size, a line for each variant and number of ranks, a
# panel for each collective, dtype and mode, below the limit of the link.
set -eu
plots=$(dirname "$0")
usage="usage: collective.sh [-e] [-s] [-c MEMCPY.csv] STEM FILE.csv...
  FILE  results of the collective suite
  -c    results of the memcpy suite on the same GPUs: the fastest copy from one to
        another is the link's limit
  -e    a picture for each panel, STEM-PANEL, instead of one with all of them
  -s    only SVG, no PNG"
. "$plots/draw.sh"
read_options esc: "$@"
shift $((OPTIND - 1))
start "$@"
shift
[ -z "$ceilings" ] || readable "$ceilings"
awk -v needs="$result_columns gb_per_s counters" -v folder="$work" -v each="$each" -f "$reader" \
    -f "$numbers" -f "$plots/counters.awk" -f "$plots/plot.awk" -f "$plots/collective.awk" \
    ${ceilings:+reading=limit "$ceilings"} reading=results "$@" || die "$*: nothing to draw"
draw
