#!/bin/sh
# test_findings.sh MODEL - each row of the model suite that a finding of --kernels names is
# there, in MODEL's list. As TAP lines.
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
while IFS=', ' read -r case variant habit; do
    grep -q "^$case $variant [a-z0-9]* $habit " "$work/list"
    check $? "$case $variant $habit is there"
done <"$work/named"

finish
