#!/bin/sh
# test_examples.sh - each examples/*.c compiles without a warning, runs on the host and
# measures every case that it lists. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

for file in examples/*.c; do
    name=$(basename "$file" .c)
    ${CC:-cc} -std=c11 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I. \
        -o "$work/$name" "$file" > "$work/log" 2>&1
    check $? "$file compiles"
    "$work/$name" --list > "$work/list" 2> "$work/log" &&
        "$work/$name" --max-time 0.02 --csv "$work/$name.csv" > "$work/log" 2>&1 &&
        [ $(($(wc -l < "$work/list") + 1)) -eq "$(wc -l < "$work/$name.csv")" ]
    check $? "$file measures what it lists"
done

"$work/sweep" --axis stride=2 --axis n=2^5..2^7 --list > "$work/log" 2>&1 &&
    [ "$(sed -n 's/sum one f64 stride=2 n=//p' "$work/log" | tr '\n' ' ')" = "32 64 128 " ]
check $? "examples/sweep.c takes other sizes"

finish
