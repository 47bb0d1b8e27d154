#!/bin/sh
# history.sh - how cases fared from campaign to campaign: a panel for each case whose
# level changed, with the dates and the revisions between which it did.
set -eu
plots=$(dirname "$0")
usage="usage: history.sh [-e] [-s] [-n MOST] [-t DEVICE] STEM HISTORY.csv
  HISTORY.csv is written by gpubench-compare --history FILES --format csv
  -n  at most so many cases, those that changed most first
  -t  the device, for the title: the history does not name it
  -e  a picture for each panel, STEM-PANEL, instead of one with all of them
  -s  only SVG, no PNG"
. "$plots/draw.sh"
read_options esn:t: "$@"
shift $((OPTIND - 1))
start "$@"
shift
awk -v needs="case variant dtype params mode campaign timestamp git metric runs median best worst level cost_change lone" \
    -v folder="$work" -v each="$each" -v most="$most" -v device="$device" \
    -f "$reader" -f "$numbers" -f "$plots/plot.awk" -f "$plots/history.awk" "$@" || die "$*: nothing to draw"
draw
