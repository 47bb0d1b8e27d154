#!/bin/sh
# test_readme.sh - the README against what it quotes: the first example, the
# options, the numbers. As TAP lines.
set -u
cd "$(dirname "$0")/.."
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

report() { # report NUMBER NAME: the exit status of the command before decides
    if [ "$3" -eq 0 ]; then echo "ok $1 - $2"; else echo "not ok $1 - $2"; failed=1; fi
}

echo 1..5
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md > "$work/code"
cmp "$work/code" examples/first.cu
report 1 "README quotes examples/first.cu" $?

lines=$(wc -l < examples/first.cu)
[ "$lines" -le 25 ]
report 2 "the first benchmark is short" $?

${CC:-cc} -O1 -I. -o "$work/first" examples/first.c &&
    "$work/first" --help | sed -n '/^  --/p' > "$work/options" &&
    sed -n 's/^    \(  --.*\)/\1/p' README.md > "$work/quoted" &&
    cmp "$work/options" "$work/quoted"
report 3 "README lists every option as --help does" $?

scripts/readme.sh > "$work/readme" && cmp "$work/readme" README.md
report 4 "README's numbers are those of baselines/ (make readme)" $?
for folder in baselines/*/; do
    scripts/readme.sh "${folder%/}" | cmp - "${folder}README.md" || exit 1
done
report 5 "the tables beside the baselines are theirs" $?
exit $failed
