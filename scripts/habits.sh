#!/bin/sh
# habits.sh FILE... - what each habit of a training step costs, as markdown, from rows of
# the case model.habit: the five that cost most with a sentence each, whose text stands
# beside the habits' definition, then all. Each is held against the last variant of its
# group, the better habit, by `gpubench-compare --variants`. COMPARE: that tool.
set -eu
export LC_ALL=C CDPATH=
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/ended.sh"
work=
clean_up() { rm -rf "$work"; }
work=$(unbroken mktemp -d "${TMPDIR:-/tmp}/gpubench-habits.XXXXXX")

read_rows() { # read_rows SCRIPT FILE...: with compare/'s readers in front of it
    script=$1
    shift
    awk -f "$root/compare/csv.awk" -f "$root/compare/numbers.awk" \
        -f "$root/scripts/tables/$script" "$@"
}

[ $# -gt 0 ] || { echo "usage: habits.sh FILE..." >&2; exit 2; }
number=0
for file; do
    number=$((number + 1))
    read_rows habit_rows.awk "$file" > "$work/$number.csv"
done
[ -n "$(cat "$work"/*.csv | sed 1d)" ] ||
    { echo "habits.sh: no row of model.habit is ok in $*" >&2; exit 2; }
# Notes of runs that are far off belong to the verdicts that nobody asks for here.
"${COMPARE:-$root/build/gpubench-compare}" --format csv --all --variants "$work"/*.csv \
    > "$work/factors" 2> "$work/notes" || { cat "$work/notes" >&2; exit 2; }
awk -f "$root/scripts/tables/habit_why.awk" "$root/kernels/model/habit_why.h" > "$work/why"
read_rows habits.awk -v why="$work/why" "$work/factors" "$work"/*.csv
