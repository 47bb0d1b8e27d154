#!/bin/sh
# mutants.sh COUNT SEED [FILE...] - breaks one line of the code at a time and says whether a
# test notices: COUNT mutants drawn from all that mutants.awk knows of the files in files.txt
# (or of those that are named). What does not compile, or compiles to the same instructions,
# does not count; a test that crashes or does not end has noticed.
#
# Prints each mutant as it is judged, then the survivors that reasons.txt does not explain, and
# what was killed. Outcomes are kept in build/mutants/outcomes, so that a second call goes on
# where the first was stopped, and tries again only those that survived. Status 1 where fewer
# than 90 % of those that change anything were killed, or a survivor has no reason.
#
# mutants.sh control SEED [FILE...] - judges each file as it is: all have to survive, or a kill
# means nothing. Status 1 where one does not.
# Needs what `make mutants` builds. CC, JOBS=2 and NICE=10 from the environment.
set -eu
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/../.."
here=tests/mutation
count=$1 seed=$2
shift 2
jobs=${JOBS:-2}
kept=build/mutants/outcomes
rm -rf build/mutants/plain
mkdir -p build/mutants
touch $kept
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

# The lines of the header's section called so: the first and the last.
section() {
    awk -v name="$1" '/^\/\* ==== / { if (inside) { print NR - 1; exit } }
        index($0, "/* ==== " name " =") == 1 { print NR; inside = 1 }' gpubench.h
}

# Every mutant of a line of files.txt: target, checksum of what is mutated, first line, mutant.
mutants_of() {
    path=${1%%:*} from=1 to=0
    case $1 in
    *:*)
        name=$(printf %s "${1#*:}" | tr _ ' ')
        from=$(section "$name" | sed -n 1p) to=$(section "$name" | sed -n 2p)
        ;;
    esac
    sum=$(sed -n "$from,$([ "$to" -gt 0 ] && echo "$to" || echo '$')p" "$path" | cksum | cut -d ' ' -f 1)
    if [ "$count" = control ]; then
        printf '%s\t%s\t%s\t%s\t1\tnone\t%s\t%s\n' "$1" "$sum" "$from" "$path" "$(head -n 1 "$path")" "$(head -n 1 "$path")"
        return
    fi
    awk -v file="$path" -v from="$from" -v to="$to" -f $here/mutants.awk "$path" | sed "s|^|$1	$sum	$from	|"
}

wanted() {
    [ $# -gt 1 ] || return 0
    target=$1
    shift
    for name; do [ "$name" != "$target" ] || return 0; done
    return 1
}

while read -r target _; do
    case $target in '#'*) continue ;; esac
    if wanted "$target" "$@"; then mutants_of "$target"; fi
done < $here/files.txt > "$work/all"

# A quarter of the header, whose mutants cost the most time, and of compare and the kernels'
# formulas half of the rest each, unless files are named. Of each the same part is judged before
# the next, so that a run that is stopped has seen some of all.
awk -v seed="$seed" -f $here/draw.awk "$work/all" | sort | cut -f 2- |
    awk -v count="$count" -v named=$# '
        { room = $1; sub(/[\/:].*/, "", room) }
        named { room = "all" }
        BEGIN { part["all"] = 1; part["gpubench.h"] = 1 / 4; part["kernels"] = part["compare"] = 3 / 8 }
        count == "control" || drawn[room]++ < int(count * part[room] + 0.5) {
            printf "%.6f\t%s\n", drawn[room] / part[room], $0
        }' | sort -n -s -k 1,1 | cut -f 2- > "$work/drawn"

# What is known already stays, if neither the file nor the mutant is another one.
awk -F '\t' -v kept=$kept -v new="$work/new" -v known="$work/known" '
    function key(at) { return $at FS $(at + 1) FS $(at + 4) - $(at + 2) FS $(at + 5) FS $(at + 7) }
    FILENAME == kept { if ($1 != "survived") outcome[key(2)] = $0; next }
    { if (key(1) in outcome) print outcome[key(1)] > known; else print > new }' $kept "$work/drawn"
touch "$work/new" "$work/known"
echo "$(wc -l < "$work/drawn") mutants of $(wc -l < "$work/all"), $(wc -l < "$work/known") judged before"

[ ! -s "$work/new" ] || split -l 1 -a 5 "$work/new" "$work/mutant."
find "$work" -name 'mutant.*' | sort | KEPT=$kept CC=${CC:-cc} xargs -r -n 1 -P "$jobs" nice -n "${NICE:-10}" sh $here/mutant.sh

if [ "$count" = control ]; then
    awk -F '\t' -v drawn="$work/drawn" '
        FILENAME != drawn { if ($7 == "none") outcome[$2 FS $3] = $1; next }
        outcome[$1 FS $2] != "survived" { print $1 ": " outcome[$1 FS $2] " without a mutant"; wrong = 1 }
        END { exit wrong }' $kept "$work/drawn"
    exit
fi
awk -F '\t' -v kept=$kept -v drawn="$work/drawn" -f $here/summary.awk $here/reasons.txt $kept "$work/drawn"
