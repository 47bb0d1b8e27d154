#!/bin/sh
# mutants.sh COUNT SEED [FILE...] - breaks one line of the code at a time and says whether a
# test notices: COUNT mutants drawn from all that mutants.awk knows of the files in files.txt
# (or of those that are named). What does not compile does not count; a test that crashes or
# takes a minute has noticed. Prints the survivors, then what was killed. Needs what
# `make all` and the tests build (make mutants does that). CC and JOBS=2 from the environment.
set -eu
cd "$(dirname "$0")/../.."
here=tests/mutation
count=$1 seed=$2
shift 2
jobs=${JOBS:-2} cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

# The lines of the header's section called so.
section() {
    awk -v name="$1" '/^\/\* ==== / { if (inside) { print NR - 1; exit } }
        index($0, "/* ==== " name " =") == 1 { print NR; inside = 1 }' gpubench.h
}

# Every mutant of one line of files.txt, the line's number in front.
mutants_of() {
    number=$1 path=${2%%:*} from=1 to=0
    case $2 in
    *:*)
        name=$(printf %s "${2#*:}" | tr _ ' ')
        from=$(section "$name" | sed -n 1p) to=$(section "$name" | sed -n 2p)
        ;;
    esac
    awk -v file="$path" -v from="$from" -v to="$to" -f $here/mutants.awk "$path" | sed "s/^/$number	/"
}

wanted() {
    [ $# -gt 1 ] || return 0
    target=$1
    shift
    for name; do [ "$name" != "$target" ] || return 0; done
    return 1
}

number=0
while read -r target _; do
    number=$((number + 1))
    case $target in '#'*) continue ;; esac
    if wanted "$target" "$@"; then mutants_of $number "$target"; fi
done < $here/files.txt > "$work/all"

awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' "$work/all" |
    sort | cut -f 2- | head -n "$count" > "$work/drawn"
split -l 1 -a 5 "$work/drawn" "$work/mutant."
find "$work" -name 'mutant.*' | sort | WORK=$work CC=$cc xargs -n 1 -P "$jobs" sh $here/mutant.sh > "$work/outcomes"

grep '^survived' "$work/outcomes" | cut -f 2- | sort || true
awk -F '\t' -v known="$(wc -l < "$work/all")" '{ n[$1]++ }
    END { judged = n["killed"] + n["survived"]
        printf "mutants: %d drawn of %d, %d do not compile; of %d others %d killed (%.1f %%), %d survived\n",
            NR, known, n["invalid"], judged, n["killed"], judged ? 100 * n["killed"] / judged : 0, n["survived"] }' "$work/outcomes"
