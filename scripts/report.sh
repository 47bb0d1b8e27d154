#!/bin/sh
# report.sh - the results of a folder as one HTML page with everything inside:
# verdicts against a baseline, then for each suite tables and plots, then the
# machine. Needs gnuplot; a browser shows the page without a network or scripts.
set -eu
scripts=$(dirname "$0")
plots=$scripts/../compare/plots
compare=${COMPARE:-$scripts/../build/gpubench-compare}
usage="usage: report.sh [-m PERCENT] PAGE.html FOLDER [BASELINE_FOLDER]
  FOLDER           results/ or one of baselines/
  BASELINE_FOLDER  baselines of the same device: adds the verdicts
  -m               the margin of the verdicts (2)"
. "$plots/draw.sh"
read_options m: "$@"
shift $((OPTIND - 1))
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "$usage" >&2; exit 2; }
command -v gnuplot >/dev/null || die "needs gnuplot, and there is none (make deps)"
page=$1 folder=$2 baseline=${3:-}
[ -d "$(dirname "$page")" ] || die "$page: no such folder"
[ -d "$folder" ] || die "$folder: no such folder"
[ -z "$baseline" ] || [ -d "$baseline" ] || die "$baseline: no such folder"
set -- "$folder"/*.csv
[ -f "$1" ] || die "$folder: no CSV file there"
readable "$@"
work=$(mktemp -d) || exit 2
temporary=$page.$$
pictures=$work/pictures
mkdir "$pictures"

anchor() { printf '<li><a href="#%s">%s</a></li>\n' "$1" "$1"; }

# The verdicts of the files that both folders have. The tool works inside $work, so
# that its messages name no folder of this machine.
judge() {
    mkdir "$work/baseline" "$work/current"
    for file; do
        name=$(basename "$file")
        [ -f "$baseline/$name" ] || continue
        cp "$file" "$work/current/"
        cp "$baseline/$name" "$work/baseline/"
    done
    ls "$work"/baseline/*.csv >/dev/null 2>&1 || die "$baseline: no file named as one in $folder"
    tool=$(cd "$(dirname "$compare")" && pwd)/$(basename "$compare") || exit 2
    [ -x "$tool" ] || die "$compare: not there (make build/gpubench-compare)"
    judged=0
    (cd "$work" && "$tool" --margin "$margin" --format csv --baseline baseline/*.csv --current current/*.csv) \
        >"$work/verdicts.csv" 2>"$work/said" || judged=$?
}

print_verdicts() {
    case $judged in
    0) outcome='nothing got slower' ;;
    1) outcome='something got slower, is missing or no longer right' ;;
    *) outcome='cannot judge' ;;
    esac
    printf '<h2 id="verdicts">verdicts</h2>\n<p><b>%s</b> (exit status %s)</p>\n' "$outcome" "$judged"
    if [ -s "$work/said" ]; then
        printf '<pre>'
        sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' "$work/said"
        printf '</pre>\n'
    fi
    [ "$(wc -l <"$work/verdicts.csv")" -gt 1 ] || return 0
    awk -v needs='case variant dtype params mode verdict baseline current ratio ratio_low ratio_high
        smallest_change baseline_runs current_runs' -f "$plots/csv.awk" \
        -f "$scripts/report_html.awk" -f "$scripts/report_verdicts.awk" "$work/verdicts.csv"
    "$plots/forest.sh" -s -m "$margin" -n 30 -t "$device" "$pictures/forest" "$work/verdicts.csv"
    echo '<div class="plots">'
    cat "$pictures/forest.svg"
    echo '</div>'
}

# Whether a suite has rows for which the awk condition $2 holds.
has_rows() {
    awk -F '\t' -v suite="$1" "\$1 == suite && \$8 == \"ok\" && $2 { found = 1 } END { exit !found }" \
        "$work/points"
}

# Whether a file holds rows of a suite.
holds() {
    awk -F, -v suite="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "suite") c = i; next }
        $c == suite { found = 1; exit } END { exit !found }' "$2"
}

# One suite's tables and plots, drawn from the files that hold its rows.
draw_suite() {
    suite=$1 rooflines=0
    shift
    for file; do
        shift
        if holds "$suite" "$file"; then set -- "$@" "$file"; fi
    done
    has_rows "$suite" '$2 != "block.part" && ($9 > 0 || $10 > 0)' &&
        "$plots/size.sh" -e -s "$pictures/size-$suite" "$@"
    has_rows "$suite" '$2 == "block.part"' && "$plots/parts.sh" -e -s "$pictures/parts-$suite" "$@"
    if [ -f "$folder/ceilings.csv" ] && [ "$suite" != ceilings ] && has_rows "$suite" '$9 > 0 && $10 > 0'; then
        rooflines=1
        "$plots/roofline.sh" -e -s -c "$folder/ceilings.csv" "$pictures/roofline-$suite" "$@"
    fi
    awk -v suite="$suite" -v pictures="$pictures" -v rooflines=$rooflines \
        -f "$scripts/report_html.awk" -f "$scripts/report_tables.awk" "$work/points"
}

print_page() {
    cat <<HTML
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>gpubench: $device_html</title>
<style>
$(cat "$scripts/report.css")
</style>
</head>
<body>
<h1>gpubench: $device_html</h1>
<nav aria-label="contents"><ul>
HTML
    [ -z "$baseline" ] || anchor verdicts
    for suite in $suites; do anchor "$suite"; done
    anchor machine
    echo '</ul></nav>'
    [ -z "$baseline" ] || cat "$work/verdicts.html"
    for suite in $suites; do cat "$work/$suite.html"; done
    echo '<h2 id="machine">machine</h2>'
    cat "$work/machine.html"
    printf '</body>\n</html>\n'
}

points "$work/points" "$@"
device=$(head -n 1 "$work/points" | cut -f 16)
device_html=$(printf '%s' "$device" | sed 's/&/\&amp;/g; s/</\&lt;/g')
suites=$(cut -f 1 "$work/points" | sort -u)
if [ -n "$baseline" ]; then
    judge "$@"
    print_verdicts >"$work/verdicts.html"
fi
for suite in $suites; do draw_suite "$suite" "$@" >"$work/$suite.html"; done
awk -v needs="$result_columns timestamp" -f "$plots/csv.awk" -f "$scripts/report_html.awk" \
    -f "$scripts/report_machine.awk" "$@" >"$work/machine.html"
print_page >"$temporary" || die "$page: cannot write it"
mv "$temporary" "$page"
