#!/bin/sh
# lint.sh TOOL... - what a tool has to say of this tree: clang-tidy and cppcheck of the C files
# and the header (with its CUDA half, on the tests' substitute for the CUDA runtime), gcc's
# analyzer of the C files and the header's host half, shellcheck of the scripts, sizes of files
# and functions. What a tool is not asked, and why, stands in .clang-tidy, .shellcheckrc and below.
# Exit status: 0 nothing found, 1 something, 2 a tool that is not here.
set -u
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/.." || exit 2
jobs=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 1)
found=0

# The implementation, as one C file.
header='-x c -std=c11 -DGPUBENCH_IMPLEMENTATION -DGPUBENCH_CUDA=1 -Itests/fake_cuda'

# One process for each file: of several in one process clang-tidy 14 takes each va_list
# for one that nobody began.
lint_clang_tidy() {
    # shellcheck disable=SC2086
    printf '%s\n' gpubench.h compare/*.c kernels/*/*.c suites/*.c | HEADER=$header \
        xargs -n 1 -P "$jobs" sh -c '
            flags=-std=c11
            [ "$1" != gpubench.h ] || flags=$HEADER
            clang-tidy --quiet "$1" -- $flags 2> /dev/null' sh
}

# invalidPointerCast: a workspace holds several types, each aligned by its operation.
lint_cppcheck() {
    set -- --quiet --language=c --std=c11 --inline-suppr --error-exitcode=1 -j "$jobs" \
        --template='{file}:{line}: {message} [{id}]' --enable=warning,performance,portability \
        --suppress=invalidPointerCast
    cppcheck "$@" compare kernels suites && cppcheck "$@" -DGPUBENCH_IMPLEMENTATION \
        -DCLOCK_MONOTONIC=1 gpubench.h
}

# gcc's analyzer, of the header (its host half), compare, kernels and suites as C. Of every file
# it is not asked for
#   malloc-leak: what a structure owns is given back by a function of another file, which the
#     analyzer does not follow; the leak sanitizer looks at every test instead;
#   shift-count-overflow: gcc 12 takes how many elements a vector has for their bits.
# Of single files, what only the caller knows:
#   embedding/simd.c: positions are NULL without a context, and then token_rows runs;
#   optimizer/optimizer.c: AdamW's tensors have both moments;
#   part/part.c: part_layer_of is NULL of kinds of parts only that have no layer;
#   suite.c: behind exit nothing is read;
#   suites/gpubench.c: gpubench_value is NULL only of a column or row that there is not.
analyzer_flags() {
    case $1 in
    kernels/embedding/simd.c) echo -Wno-analyzer-null-argument ;;
    kernels/optimizer/optimizer.c | kernels/part/part.c) echo -Wno-analyzer-null-dereference ;;
    suites/suite.c) echo -Wno-analyzer-possible-null-dereference ;;
    suites/gpubench.c) echo -Wno-analyzer-null-argument ;;
    gpubench.h) echo -x c -DGPUBENCH_IMPLEMENTATION ;;
    esac
}

lint_analyzer() {
    # The header takes the longest, so it is the first.
    # shellcheck disable=SC2046
    for file in gpubench.h compare/*.c kernels/*/*.c suites/*.c; do
        echo "-Wno-analyzer-malloc-leak -Wno-analyzer-shift-count-overflow" $(analyzer_flags "$file") "$file"
    done | xargs -I LINE -P "$jobs" sh -c \
        "gcc -std=c11 -D_XOPEN_SOURCE=700 -O1 -U_FORTIFY_SOURCE -fanalyzer -Werror -c -o /dev/null LINE"
}

lint_shellcheck() {
    find .ci scripts compare tests \( -name "*.sh" -o -path .ci/run \) -exec shellcheck -x -f gcc {} +
}

lint_sizes() {
    find gpubench.h gpubench_trace.h kernels suites compare examples scripts tests -name '*.[ch]' -o -name '*.cu' \
        -o -name '*.cuh' -o -name '*.cpp' -o -name '*.sh' -o -name '*.py' | sort | xargs awk -f scripts/sizes.awk
}

for tool; do
    program=$tool
    [ "$tool" != analyzer ] || program=gcc
    if [ "$tool" != sizes ] && ! command -v "$program" > /dev/null; then
        echo "lint: no $tool here (make deps-lint installs it)" >&2
        exit 2
    fi
    if "lint_$(echo "$tool" | tr - _)"; then
        echo "lint: $tool finds nothing"
    else
        found=1
    fi
done
exit $found
