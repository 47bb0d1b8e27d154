#!/bin/sh
# test_examples.sh - each file of examples/ compiles without a warning and measures every
# case that it lists; without a GPU, the CUDA ones list their cases. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
gpu=$(scripts/gpus.sh)
strict="-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

lists() { "$work/program" --list >"$work/list" 2>"$log" && [ -s "$work/list" ]; }

# measures MOST OPTION...: a row for each case, with an exit status of MOST or less.
measures() {
    most=$1
    shift
    rm -f "$work/rows.csv"
    "$work/program" --max-time 0.02 --csv "$work/rows.csv" "$@" >"$log" 2>&1
    [ $? -le "$most" ] && [ $(($(wc -l <"$work/list") + 1)) -eq "$(wc -l <"$work/rows.csv")" ]
}

for file in examples/*.c examples/*.cpp; do
    case $file in
    *.c) compile="${CC:-cc} -std=c11" ;;
    *) compile="${CXX:-c++} -std=c++11" ;;
    esac
    $compile $strict -I. -o "$work/program" "$file" >"$log" 2>&1
    check $? "$file compiles"
    lists && measures 0 --mode hot # a sweep of large caches takes longer than all samples
    check $? "$file measures what it lists"
    [ "$file" != examples/sweep.c ] || mv "$work/program" "$work/sweep"
done

"$work/sweep" --axis stride=2 --axis n=2^5..2^7 --list >"$log" 2>&1 &&
    [ "$(sed -n 's/sum one f64 stride=2 n=//p' "$log" | tr '\n' ' ')" = "32 64 128 " ]
check $? "examples/sweep.c takes other sizes"

# A case of theirs may be one that fails, to show how.
for file in examples/*.cu; do
    if [ -z "$nvcc" ]; then
        check 0 "$file compiles" "no nvcc here"
        check 0 "$file lists its cases" "no nvcc here"
        continue
    fi
    "$nvcc" --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. -o "$work/program" "$file" \
        -lcublas -ldl -lpthread >"$log" 2>&1
    check $? "$file compiles"
    if [ -z "$gpu" ]; then
        lists
        check $? "$file lists its cases"
    else
        lists && measures 1
        check $? "$file measures what it lists"
    fi
done
finish
