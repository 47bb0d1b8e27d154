#!/bin/sh
# report.sh - the results of a folder as one HTML page with everything inside: the
# verdict against a baseline with what changed, the history, for each suite tables and
# plots, the machine, and at the end what was left out. Needs gnuplot; a browser shows
# the page without a network or scripts.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
plots=$scripts/../compare/plots
tool=${COMPARE:-$scripts/../build/gpubench-compare}
usage="usage: report.sh [-m PERCENT] PAGE.html FOLDER [BASELINE_FOLDER]
  FOLDER           results/ or one of baselines/
  BASELINE_FOLDER  baselines of the same device: adds the verdicts
  -m               the margin of the verdicts (2)"
. "$scripts/options.sh"
# shellcheck source=compare/plots/draw.sh
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
case $tool in
/*) ;;
*) tool=$PWD/$tool ;;
esac
[ -z "$baseline" ] || [ -x "$tool" ] || die "$tool: not there (make build/gpubench-compare)"
whole_page=$(followed "$page")
make_room
most_in_forest=30
most_timelines=12
tab=$(printf '\t')

escape() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'; }

# print_notes TITLE FILE: what a tool said, if anything.
print_notes() {
    [ -s "$2" ] || return 0
    printf '<p>%s</p>\n<pre>' "$1"
    sed 's/^gpubench-compare: //' "$2" | escape
    printf '</pre>\n'
}

# The tools work on copies inside $work, so that their messages name no folder of this
# machine.
copy_inputs() {
    mkdir "$work/current" "$work/baseline"
    cp "$@" "$work/current/"
    [ -z "$baseline" ] || cp "$baseline"/*.csv "$work/baseline/" || die "$baseline: no CSV file there"
}

# The verdicts of the files that both folders have.
judge() {
    mkdir "$work/old" "$work/new"
    for file in "$work"/baseline/*.csv; do
        name=$(basename "$file")
        if [ -f "$work/current/$name" ]; then
            ln "$file" "$work/old/"
            ln "$work/current/$name" "$work/new/"
        else
            echo "$name: the results have no such file" >>"$work/unjudged"
        fi
    done
    for file in "$work"/current/*.csv; do
        name=$(basename "$file")
        [ -f "$work/baseline/$name" ] || echo "$name: the baseline has no such file" >>"$work/unjudged"
    done
    ls "$work"/old/*.csv >/dev/null 2>&1 || die "$baseline: no file named as one in $folder"
    judged=0
    run_tool --margin "$margin" --format csv >"$work/verdicts.csv" 2>"$work/said" || judged=$?
    run_tool --margin "$margin" --limit 1 >"$work/text" 2>/dev/null || true
}

run_tool() {
    (cd "$work" && "$tool" "$@" --host-params "$host_params" --baseline old/*.csv --current new/*.csv)
}

verdict_tables() { # verdict_tables PART
    needs='case variant dtype params mode verdict baseline current ratio ratio_low ratio_high'
    awk -v part="$1" -v needs="$needs smallest_change baseline_runs current_runs" -f "$reader" \
        -f "$numbers" -f "$scripts/report_html.awk" -f "$scripts/report_case.awk" -f "$scripts/report_verdicts.awk" "$work/verdicts.csv"
}

# How many rows of the verdicts are so, by an awk condition on `verdict` and `ratio`.
count_verdicts() {
    cat >"$work/count.awk" <<AWK
{ verdict = tolower(value("verdict")); ratio = value("ratio") }
$1 { n++ }
END { print n + 0 }
AWK
    awk -v needs='verdict ratio' -f "$reader" -f "$work/count.awk" "$work/verdicts.csv"
}

# What changed comes first in a forest plot; where nothing did, the ten that are
# farthest from the baseline are enough.
print_forest() { # print_forest CHANGED
    [ "$(count_verdicts 'ratio != ""')" -gt 0 ] || return 0
    most=$1
    [ "$most" -gt 0 ] || most=10
    [ "$most" -le $most_in_forest ] || most=$most_in_forest
    "$plots/forest.sh" -s -m "$margin" -n "$most" -t "$device" "$work/forest" "$work/verdicts.csv"
    cat "$work/forest.svg"
}

print_verdicts() {
    case $judged in
    0) outcome='nothing got slower' class=fine ;;
    1) outcome='something got slower, is missing or no longer right' class=worse ;;
    *) outcome='cannot judge' class=unknown ;;
    esac
    printf '<h2 id="verdict">verdict</h2>\n<p class="outcome %s">%s</p>\n' $class "$outcome"
    if [ "$judged" -eq 2 ]; then print_notes 'gpubench-compare said:' "$work/said"; fi
    [ "$(wc -l <"$work/verdicts.csv")" -gt 1 ] || return 0
    printf '<ul class="facts">\n'
    sed '/^$/,$d' "$work/text" | escape | sed 's/.*/<li>&<\/li>/'
    printf '</ul>\n'
    changed=$(count_verdicts 'verdict !~ /^(same|inconclusive|elsewhere|never ok|no value)$/')
    echo '<div class="beside">'
    print_forest "$changed"
    echo '<div>'
    if [ "$changed" -gt 0 ]; then
        verdict_tables changed
        echo '<p class="quiet"><i>findable</i> is the smallest change that such data would have shown. What could not be
told, and what is as it was: <a href="#rest">at the end</a>.</p>'
    else
        echo '<p>No case changed. The plot has those that moved most, as far as can be told; all of them stand
<a href="#rest">at the end</a>.</p>'
    fi
    sed -n '/^next: /,/)$/p' "$work/text" >"$work/next"
    if [ -s "$work/next" ]; then printf '<pre>%s</pre>\n' "$(escape <"$work/next")"; fi
    printf '</div>\n</div>\n'
}

find_history() {
    (cd "$work" && COMPARE=$tool sh "$scripts/histories.sh" current baseline) >"$work/history.csv" \
        2>"$work/no-history" || true
}

print_history() {
    [ -s "$work/history.csv" ] || return 0
    echo '<h2 id="history">history</h2>'
    awk -v needs="case variant dtype params mode campaign timestamp git level cost_change lone" -f "$reader" \
        -f "$numbers" -f "$scripts/report_html.awk" -f "$scripts/report_case.awk" -f "$scripts/report_history.awk" \
        "$work/history.csv"
    "$plots/history.sh" -e -s -n 24 -t "$device" "$work/history" "$work/history.csv" 2>/dev/null || return 0
    echo '<div class="plots">'
    cat "$work"/history-*.svg
    echo '</div>'
}

print_rest() {
    echo '<h2 id="rest">left out</h2>'
    if [ -n "$baseline" ]; then
        print_notes 'Not judged:' "$work/unjudged"
        [ ! -s "$work/verdicts.csv" ] || verdict_tables rest
        [ "$judged" -eq 2 ] || print_notes 'What to know about the verdicts:' "$work/said"
    fi
    print_notes 'Without a history:' "$work/no-history"
    echo '<p>Rows that are not ok have no time; they stand with their case, under <i>not measured</i>.</p>'
}

# Whether a suite has rows for which the awk condition $1 holds.
has_rows() {
    awk -F '\t' "\$1 \"\" == ENVIRON[\"SUITE\"] \"\" && \$8 == \"ok\" && $1 { found = 1 } END { exit !found }" \
        "$work/points"
}

# Whether a file holds rows of the suite.
holds() {
    awk -v needs=suite -f "$reader" -f "$scripts/report_holds.awk" "$1"
}

# One suite's tables and plots, drawn from the files that hold its rows. Its name may
# hold anything: the files here go by its number.
draw_suite() {
    pictures=$work/pictures-$1
    number=$1 rooflines=0
    shift
    mkdir "$pictures"
    for file; do
        shift
        if holds "$file"; then set -- "$@" "$file"; fi
    done
    if has_rows '$2 != "block.part" && ($9 > 0 || $10 > 0)'; then
        "$plots/size.sh" -e -s "$pictures/size-$number" "$@"
    fi
    if has_rows '$2 == "block.part"'; then "$plots/parts.sh" -e -s "$pictures/parts-$number" "$@"; fi
    if [ -f "$folder/ceilings.csv" ] && [ "$SUITE" != ceilings ] && has_rows '$9 > 0 && $10 > 0'; then
        rooflines=1
        "$plots/roofline.sh" -e -s -c "$folder/ceilings.csv" "$pictures/roofline-$number" "$@"
    fi
    awk -v anchor="$anchor" -v number="$number" -v pictures="$pictures" -v rooflines=$rooflines \
        -f "$numbers" -f "$scripts/report_html.awk" -f "$scripts/report_tables.awk" "$work/points"
}

# A suite's name is a row's, which may hold the path of a file that is nobody's to show.
lies_here() { # lies_here SUITE
    case $1 in */*) return 1 ;; esac
}

# What `make kernels-SUITE` left: a timeline for each of the first cases, and a table for all.
draw_kernels() { # draw_kernels SUITE FOLDER
    lies_here "$1" || return 0
    csv=$folder/kernels/$1.csv json=$folder/kernels/$1.json
    [ -f "$csv" ] || return 0
    mkdir -p "$2"
    for case in $(seq $most_timelines); do
        [ -f "$json" ] && awk -v want="$case" -f "$scripts/svg.awk" -f "$scripts/timeline.awk" "$json" >"$2/$case.svg" 2>/dev/null && continue
        rm -f "$2/$case.svg"
        break
    done
    printf '<h3>inside the cases</h3>\n<p class="quiet">One more execution of each, watched (--kernels).</p>\n'
    needs='case variant dtype params name launches total_us share grid block registers occupancy limit'
    awk -v pictures="$2" -v needs="$needs waves busy_us span_us case_us" -f "$reader" -f "$numbers" -f "$scripts/report_html.awk" \
        -f "$scripts/report_kernels.awk" "$csv"
    draw_kernel_roofline "$csv"
}

# Nothing where no kernel's work is known.
draw_kernel_roofline() {
    [ -f "$folder/ceilings.csv" ] || return 0
    awk -f "$reader" -f "$scripts/svg.awk" -f "$scripts/kernel_roofline.awk" "$folder/ceilings.csv" "$1" \
        >"$work/kernels.svg" || return 0
    echo '<details><summary>kernels on the roofline of the measured ceilings</summary>'
    cat "$work/kernels.svg"
    echo '</details>'
}

# What --memory-csv left: a bar for each case, and how the first one came about.
draw_memory() { # draw_memory SUITE
    lies_here "$1" || return 0
    csv=$folder/kernels/$1.memory.csv
    [ -f "$csv" ] || return 0
    printf '<h3>memory</h3>\n<p class="quiet">By category (--memory).</p>\n'
    for over in cases time; do
        awk -v over=$over -v needs='case variant dtype params change category bytes at_us' -f "$reader" \
            -f "$scripts/svg.awk" -f "$scripts/memory_plot.awk" "$csv" || true
    done
}

anchor() { printf '<li><a href="#%s">%s</a></li>\n' "$1" "$(printf '%s' "$2" | escape)"; }

# Draws every suite, each into a file of its number.
draw_suites() {
    number=0
    while IFS=$tab read -r anchor SUITE; do
        number=$((number + 1))
        export SUITE
        draw_suite $number "$@" >"$work/suite-$number.html" </dev/null
        draw_kernels "$SUITE" "$work/kernels-$number" >>"$work/suite-$number.html" </dev/null
        draw_memory "$SUITE" >>"$work/suite-$number.html" </dev/null
    done <"$work/suites"
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
HTML
    [ -z "$baseline" ] || cat "$work/verdicts.html"
    cat "$work/history.html"
    echo '<h2 id="results">results</h2>'
    echo '<nav aria-label="contents"><ul>'
    while IFS=$tab read -r anchor suite; do anchor "$anchor" "$suite"; done <"$work/suites"
    anchor machine machine
    anchor rest 'left out'
    echo '</ul></nav>'
    for number in $(seq "$(wc -l <"$work/suites")"); do cat "$work/suite-$number.html"; done
    echo '<h2 id="machine">machine</h2>'
    cat "$work/machine.html" "$work/rest.html"
    printf '</body>\n</html>\n'
}

points "$work/points" "$@"
device=$(head -n 1 "$work/points" | cut -f 16)
device_html=$(printf '%s' "$device" | escape)
awk -f "$numbers" -f "$scripts/report_html.awk" -f "$scripts/report_suites.awk" "$work/points" >"$work/suites"
copy_inputs "$@"
if [ -n "$baseline" ]; then
    judge
    print_verdicts >"$work/verdicts.html"
fi
if [ -x "$tool" ]; then find_history; fi
print_history >"$work/history.html"
draw_suites "$@"
awk -v needs="$result_columns timestamp" -f "$reader" -f "$numbers" -f "$scripts/report_html.awk" \
    -f "$scripts/report_machine.awk" "$@" >"$work/machine.html"
print_rest >"$work/rest.html"
temporary=$(unbroken beside "$whole_page") || die "$page: cannot write it"
print_page >"$temporary"
mv "$temporary" "$whole_page"
