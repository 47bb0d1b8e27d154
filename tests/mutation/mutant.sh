#!/bin/sh
# mutant.sh FILE - one mutant, as mutants.sh drew it: builds the tests that cover it, without
# optimization and warnings, and runs them until one fails. Prints the outcome and the mutant.
set -u
IFS='	' read -r number path line rule text < "$1"
tree=$1.d
# No program may take all memory, or write where others are.
# shellcheck disable=SC3045
ulimit -v 4000000
mkdir -p "$tree/$(dirname "$path")" "$tree/tmp"
export TMPDIR="$tree/tmp"
tests=$(sed -n "${number}p" tests/mutation/files.txt | cut -d ' ' -f 2-)
LINE=$text awk -v line="$line" 'NR == line { print ENVIRON["LINE"]; next } { print }' "$path" > "$tree/$path"

ends() {
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$path" "$line" "$rule" "$(printf %s "$text" | sed 's/^ *//')"
    rm -rf "$tree"
    exit 0
}

compile() { $CC -std=c11 -O1 -w -D_XOPEN_SOURCE=700 -I"$tree" -I. -Itests "$@"; }

# build TEST: as the Makefile links the tests of that room.
build() {
    case $1 in
    header/*) compile -o "$tree/test" "tests/$1.c" -lcmocka -lm ;;
    kernels/*) compile -pthread -o "$tree/test" "tests/$1.c" "$tree/mutant.o" build/cpu/libkernels.a -lcmocka -ldl -lm ;;
    compare/*) compile -o "$tree/test" "tests/$1.c" tests/compare/schema_text.c "$tree/mutant.o" $others -lcmocka -lm ;;
    esac 2> /dev/null
}

others=
case $path in
*.c) compile -I"$(dirname "$path")" -c -o "$tree/mutant.o" "$tree/$path" 2> /dev/null || ends invalid ;;
esac
case $path in
compare/*)
    # shellcheck disable=SC2010
    others=$(ls build/compare/*.o | grep -v "/main.o$\|/$(basename "$path" .c).o$")
    $CC -o "$tree/gpubench-compare" "$tree/mutant.o" $others build/compare/main.o -lm 2> /dev/null || ends invalid
    ;;
esac
for test in $tests; do
    build "$test" || ends invalid
    argument=
    case $test in compare/test_tool*) argument=$tree/gpubench-compare ;; esac
    timeout -k 5 60 "$tree/test" $argument > /dev/null 2>&1 < /dev/null || ends killed
done
ends survived
