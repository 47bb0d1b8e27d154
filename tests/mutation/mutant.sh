#!/bin/sh
# mutant.sh FILE - one mutant, as mutants.sh drew it: builds the tests that its line of
# files.txt names with it, and runs them until the first failure, at last with the mutant under
# the address, leak and undefined-behaviour sanitizers, as `make test` and `make sanitized` do.
# Prints the outcome, and adds it to $KEPT. With TEST and NAME from the environment it is this
# test of that program that has to fail.
set -u
export LC_ALL=C CDPATH=
mutant=$1
IFS='	' read -r target _ _ path line rule _ text < "$1"
tree=$1.d
objects=build/mutants
# No program may take all memory, run for ever, or write where others are.
# shellcheck disable=SC3045
ulimit -S -v 4000000
# shellcheck disable=SC3045
ulimit -S -t 40
mkdir -p "$tree/$(dirname "$path")" "$tree/tmp"
export TMPDIR="$tree/tmp"
tests=${TEST:-}
[ -n "$tests" ] || tests=$(awk -v target="$target" '$1 == target { $1 = ""; print }' tests/mutation/files.txt)
LINE=$text awk -v line="$line" 'NR == line { print ENVIRON["LINE"]; next } { print }' "$path" > "$tree/$path"

ends() {
    printf '%s\t%s\n' "$1" "$(cat "$mutant")" >> "$KEPT"
    printf '%-8s %s:%s  %s:  %s%s\n' "$1" "$path" "$line" "$rule" "$(printf %s "$text" | sed 's/^ *//')" "${2:+  ($2)}"
    rm -rf "$tree"
    exit 0
}

flags='-std=c11 -w -D_XOPEN_SOURCE=700'
sane=
# As text from standard input, so that the same code has the same object.
object() { $CC $flags $sane "$1" -I"$(dirname "$path")" -I. -x c -c -o "$3" - < "$2" 2> /dev/null; }

# header_program SOURCES OBJECT: what includes the header, by the compiler that is quicker.
quick=$(command -v clang || echo "$CC")
# shellcheck disable=SC2086
header_program() { $quick $flags $sane -O0 -I"$tree" -I. -Itests -o "$2" $1 -lcmocka -lm -ldl 2> /dev/null; }

# The programs that a test of the header runs lie beside it.
fixtures() {
    for program in host rows sweep options; do
        grep -q "\"$program\"" "tests/$1.c" || continue
        [ ! -e "$tree/$program" ] || continue
        source=tests/fixtures/$program.c
        [ -e "$source" ] || source=examples/$program.c
        header_program "$source" "$tree/$program" || ends invalid
    done
    if grep -q '"cuda"' "tests/$1.c" && [ ! -e "$tree/cuda" ]; then
        cuda='-DGPUBENCH_CUDA=1 -DGPT_CUPTI=0 -Itests/fake_cuda'
        header_program "$cuda tests/fake_cuda/*.c tests/fixtures/cuda.c" "$tree/cuda" || ends invalid
    fi
}

# build TEST: the test with the mutant, everything else as it is.
build() {
    case $1 in
    header/*)
        fixtures "$1"
        if grep -q GPUBENCH_IMPLEMENTATION "tests/$1.c"; then
            header_program "tests/$1.c" "$tree/test"
        else
            $CC -o "$tree/test" $objects/"$1".o -lcmocka -lm
        fi
        ;;
    kernels/*) $CC $sane -pthread -o "$tree/test" $objects/"$1".o "$tree/mutant.o" build/cpu/libkernels.a -lcmocka -ldl -lm ;;
    compare/*)
        wrapped=
        ! grep -q __wrap_malloc "tests/$1.c" || wrapped=-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
        $CC $sane $wrapped -o "$tree/test" $objects/"$1".o $objects/compare/schema_text.o "$tree/mutant.o" $others -lcmocka -lm
        ;;
    esac
}

# Simulated fleets take 10 s with the sanitizers, and several times that where every core is busy.
seconds_of() { case $1 in compare/test_fleet) echo 150 ;; *) echo 40 ;; esac; }

# Whether the test passes; it is left at its first failure, which a test that was skipped is
# not, although cmocka begins its line so.
passes() {
    { CMOCKA_MESSAGE_OUTPUT=tap timeout -k 5 600 "$@" 2> /dev/null < /dev/null
      echo "status $?"; } 2> /dev/null | awk -v name="${NAME:-}" '
        /^not ok/ && !/^not ok [0-9]* *# SKIP/ && (!name || $NF == name) { exit } /^status/ { fine = name || $2 == 0 } END { exit !fine }'
}

# Whether the compiler makes the same of it as of what was mutated. The header is too long
# to ask.
equal() {
    [ "$path" != gpubench.h ] || return 1
    reference=$objects/plain/$(printf %s "$path" | tr / _).o
    mkdir -p $objects/plain
    [ -e "$reference" ] || { object -O1 "$path" "$tree/plain.o" && mv "$tree/plain.o" "$reference"; }
    object -O1 "$tree/$path" "$tree/mutant.o" && cmp -s "$tree/mutant.o" "$reference"
}

# The compare tool with the mutant, for the tests that run it.
tool() {
    [ -e "$tree/tool" ] || $CC $sane -o "$tree/tool" "$tree/mutant.o" $others build/compare/main.o -lm 2> /dev/null
}

others=
optimize=-O1
case $path in
compare/*)
    optimize=-O0
    # shellcheck disable=SC2010
    others=$(ls build/compare/*.o | grep -v "/main.o$\|/$(basename "$path" .c).o$")
    ;;
esac
# Ends with the outcome if it is not that all tests pass.
judge() {
    rm -f "$tree/tool" "$tree/host" "$tree/rows" "$tree/sweep" "$tree/options" "$tree/cuda"
    case $path in
    *.c) object $optimize "$tree/$path" "$tree/mutant.o" || ends invalid ;;
    esac
    for test in $tests; do
        # The header's other tests start many programs, which would take minutes.
        case $sane$path in
        ?*gpubench.h) grep -q GPUBENCH_IMPLEMENTATION "tests/$test.c" || continue ;;
        esac
        build "$test" 2> /dev/null || ends invalid
        argument=
        case $test in compare/test_tool*) tool && argument=$tree/tool || ends invalid ;; esac
        # shellcheck disable=SC3045
        ulimit -S -t "$(seconds_of "$test")"
        # shellcheck disable=SC2086
        passes "$tree/test" $argument || ends killed "$test${sane:+, sanitized}"
    done
}

case $path in
*.c) object -O1 "$tree/$path" "$tree/mutant.o" || ends invalid ;;
esac
if [ "$rule" != none ] && equal; then ends equal; fi
# A survivor with a reason is looked at once more, and not twice.
if awk -F '\t' -v target="$target" -v rule="$rule" -v line="$line" '
    FNR == 1 { file++ }
    file == 1 && FNR == line { was = $0; sub(/^ +/, "", was) }
    file == 2 && $1 == target && $2 == rule && $3 == was { known = 1 }
    END { exit !known }' "$path" tests/mutation/reasons.txt; then
    judge
    ends survived
fi
# What compare's small objects cost under the sanitizers is less than a round without them.
case $path in
compare/*) ;;
*) judge ;;
esac
# The sanitizers reserve more addresses than there is memory.
# shellcheck disable=SC3045
ulimit -S -v unlimited
sane='-fsanitize=address,undefined -fno-sanitize-recover=all'
judge
ends survived
