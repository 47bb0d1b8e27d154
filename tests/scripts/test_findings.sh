#!/bin/sh
# test_findings.sh MODEL - each row of the model suite that a finding of --kernels names is
# there, in MODEL's list. As TAP lines. What is found is found on a GPU, so that where MODEL
# is the CPU's, a variant that only the GPU has is looked for among the GPU's.
set -u
model=$1
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

"$model" --list >"$work/list" 2>"$log"
# Strings of C are joined over lines, and what is left of their quotes is dropped.
sed 's/^ *"//; s/"$//' gpubench_trace.h | tr '\n' ' ' | grep -o 'model\.habit [a-z0-9_]*, *habit=[a-z]*' |
    tr -s ' ' | sort -u >"$work/named"
[ "$(wc -l <"$work/named")" -ge 4 ]
check $? "findings name rows"
listed() { # listed CASE VARIANT HABIT
    grep -q "^$1 $2 [a-z0-9]* $3 " "$work/list" && return
    case $model in */cpu/*) grep -q ">(\"$2\", " kernels/model/habits.cu ;; *) return 1 ;; esac
}
while IFS=', ' read -r case variant habit; do
    listed "$case" "$variant" "$habit"
    check $? "$case $variant $habit is there"
done <"$work/named"

finish
