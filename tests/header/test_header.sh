#!/bin/sh
# gpubench.h in every language it promises, without a warning. Prints TAP.
#
# CUDA_HOME, or the nvcc of PATH or /usr/local/cuda, says where CUDA is;
# without it the CUDA cases are skipped with a reason.

cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
root=$PWD
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

nvcc=${NVCC:-$(command -v "${CUDA_HOME:+$CUDA_HOME/bin/}nvcc" ||
    ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
toolkit=${CUDA_HOME:-${nvcc:+$(dirname "$(dirname "$(realpath "$nvcc")")")}}
[ -f "$toolkit/include/cuda_runtime_api.h" ] || toolkit=

# try NAME COMMAND...
try() {
    name=$1
    shift
    "$@" >"$log" 2>&1
    check $? "$name"
}

# A program whose words are valid C99, C++11 and CUDA alike.
cat >"$work/whole.c" <<'END'
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
static int add(void *context, gpubench_stream stream)
{
    (void)stream;
    *(volatile int *)context = 1;
    return 0;
}
int main(int argc, char **argv)
{
    int sum = 0;
    gpubench *bench = gpubench_open("whole", argc, argv);
    gpubench_case one = gpubench_case_init("add", add, &sum);
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
END

# The same program in two files: one holds the implementation, and nothing else.
printf '%s\n' '#define GPUBENCH_IMPLEMENTATION' '#include "gpubench.h"' >"$work/one.c"
sed 1d "$work/whole.c" >"$work/two.c"

# Three times: the declarations before and after the implementation.
echo '#include "gpubench.h"' >"$work/declarations"
cat "$work/declarations" "$work/whole.c" "$work/declarations" >"$work/again.c"

# gpubench_keep takes each of these, in C and in C++.
cat >"$work/keep.c" <<'END'
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
struct flags { unsigned few : 3; };
static const char text[] = "kept";
static int keep(void *context, gpubench_stream stream)
{
    struct flags flags = {5};
    const double fixed = 1.5;
    char letters[4] = "abc";
    volatile int seen = 2;
    gpubench_keep((char)1);
    gpubench_keep((short)1);
    gpubench_keep(1);
    gpubench_keep(1ul);
    gpubench_keep(1.0f);
    gpubench_keep(fixed);
    gpubench_keep(1.0L);
    gpubench_keep(flags.few);
    gpubench_keep(letters);
    gpubench_keep(text);
    gpubench_keep(seen);
    gpubench_keep(context);
    gpubench_keep((const void *)text);
    gpubench_keep(memchr(text, 'p', sizeof text));
    if (stream)
        gpubench_keep(stream);
    else
        gpubench_keep(keep);
    return 0;
}
int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("keep", argc, argv);
    gpubench_case one = gpubench_case_init("keep", keep, NULL);
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
END

# A sum that is computed and thrown away.
cat >"$work/discard.c" <<'END'
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
static int discard(void *context, gpubench_stream stream)
{
    const char *where = (const char *)context;
    long sum = 0;
    int i;
    (void)stream;
    for (i = 0; i < 4096; i++)
        sum += where[i];
    (void)sum;
    return 0;
}
int main(int argc, char **argv)
{
    static char text[4096];
    gpubench *bench = gpubench_open("discard", argc, argv);
    gpubench_case one = gpubench_case_init("discard", discard, text);
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
END

# A setup that fails, and says why by a format.
cat >"$work/strict.c" <<'END'
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
enum status { FINE, ODD };
static enum status call(void) { return FINE; }
static const char *text_of(enum status status) { return status == ODD ? "odd" : ""; }
static int fail(void *context, gpubench *bench)
{
    uint64_t number;
    gpubench_keep(context);
    GPUBENCH_TRY(call(), text_of);
    GPUBENCH_TRY(gpubench_parse_count("1", &number), strerror);
    return gpubench_fail(bench, GPUBENCH_FAILED, "%d of %s", 1, "two");
}
int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("strict", argc, argv);
    gpubench_case one = gpubench_case_init("fail", NULL, NULL);
    one.setup = fail;
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
END
sed 's/1, "two"/"two", 1/' "$work/strict.c" >"$work/misprinted.c"

# What gnu modes show without any macro and POSIX does not have.
cat >"$work/bsd.c" <<'END'
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#include <endian.h>
int main(void)
{
    char text[] = "a,b", *rest = text;
    return strsep(&rest, ",") == text && be32toh(htobe32(1)) == 1 ? 0 : 1;
}
END

for extension in cpp cu; do
    for file in whole one two again keep strict; do
        cp "$work/$file.c" "$work/$file.$extension"
    done
done

compiler() { command -v "$1" >/dev/null 2>&1; }

run_program() { "$work/program" --mode hot --quiet --max-time 0.01 --max-samples 3; }

# What links must run as well. links NAME COMPILER ARGUMENTS...
links() {
    name=$1
    shift
    { "$@" -o "$work/program" && run_program; } >"$log" 2>&1
    check $? "$name"
}

# ---- host code in each language version

for pair in gcc:c gcc:cpp clang:c clang:cpp; do
    cc=${pair%:*} extension=${pair#*:}
    [ $extension = cpp ] && { [ "$cc" = gcc ] && cc=g++ || cc=clang++; }
    [ $extension = c ] && standards="c99 c11 gnu99" || standards="c++11 c++14 c++17 c++20"
    for standard in $standards; do
        name="$cc -std=$standard"
        if ! compiler $cc; then
            check 0 "$name" "no $cc here"
            continue
        fi
        try "$name" $cc -std=$standard $warnings -O2 -I"$root" -c "$work/whole.$extension" \
            -o "$work/object.o"
        if [ -n "$toolkit" ]; then
            try "$name, CUDA" $cc -std=$standard $warnings -O2 -I"$root" -DGPUBENCH_CUDA=1 \
                -isystem "$toolkit/include" -c "$work/whole.$extension" -o "$work/object.o"
        else
            check 0 "$name, CUDA" "no CUDA toolkit here"
        fi
    done
done

# ---- names: what is private says so, and so does what the linker sees

# prints each name of the implementation that is neither declared in the public
# part nor of the private prefix. Allowed: macros of a user's build, a column of
# the CSV, environment variables, and kernels, whose names profilers show.
foreign_names() {
    awk '
    /^#endif \/\* GPUBENCH_H \*\// { implementation = 1 }
    {
        while (match($0, /(^|[^A-Za-z0-9_])(gpubench|GPUBENCH)_[A-Za-z0-9_]+/)) {
            name = substr($0, RSTART, RLENGTH)
            sub(/^[^gG]/, "", name)
            $0 = substr($0, RSTART + RLENGTH)
            if (!implementation)
                public[name] = 1
            else if (!(name in public))
                print name
        }
    }' "$1" | sort -u | grep -vxE 'GPUBENCH_(IMPLEMENTED|GIT|COMPILER|INTERNAL_)|gpubench_version|gpubench_(empty|stamp|sweep|hold|discard)'
}

private_names() {
    ! foreign_names "$root/gpubench.h" &&
        gcc -std=c99 -O1 -fno-inline -I"$root" -c "$work/one.c" -o "$work/names.o" &&
        # Compilers add endings behind a point, and tables of their own.
        ! nm --defined-only "$work/names.o" | awk '$2 ~ /[a-z]/ { print $3 }' |
            grep -vE '^(gpb_|CSWTCH|__func__|\.L)|\.[0-9]+$' &&
        ! nm --defined-only "$work/names.o" | awk '$2 ~ /[A-Z]/ { print $3 }' |
            grep -v '^gpubench_'
}
try "private names have a prefix of their own" private_names
sed 's/static double gpb_now_s/static double gpubench_now_s/' "$root/gpubench.h" >"$work/renamed.h"
try "a private name without it is found" \
    sh -c '[ "$1" = gpubench_now_s ]' sh "$(foreign_names "$work/renamed.h")"

# ---- warnings that other people's projects ask for

pedantic="$warnings -Wformat=2 -Wcast-qual -Wundef -Wdouble-promotion"
for cc in gcc clang g++ clang++; do
    case $cc in
    *++) standard=c++11 extension=cpp more=-Wold-style-cast ;;
    *) standard=c99 extension=c more= ;;
    esac
    for cuda in "" ", CUDA"; do
        name="$cc$cuda: nothing for -Wformat=2 -Wcast-qual -Wundef -Wdouble-promotion $more"
        if ! compiler $cc || { [ -n "$cuda" ] && [ -z "$toolkit" ]; }; then
            check 0 "$name" "no $cc or no CUDA toolkit here"
            continue
        fi
        try "$name" $cc -std=$standard $pedantic $more -O2 -I"$root" \
            ${cuda:+-DGPUBENCH_CUDA=1 -isystem "$toolkit/include"} \
            -c "$work/strict.$extension" -o "$work/object.o"
    done
done
for cc in gcc clang; do
    if ! compiler $cc; then
        check 0 "$cc: formats and feature macros" "no $cc here"
        continue
    fi
    ! $cc -std=c99 -Wall -Werror -I"$root" -fsyntax-only "$work/misprinted.c" \
        >"$log" 2>&1 && grep -q 'misprinted.c.*-W.*format' "$log"
    check $? "$cc: arguments that do not fit gpubench_fail's format are found"
    links "$cc -std=gnu11: what BSD declares is still there" \
        $cc -std=gnu11 $warnings -I"$root" "$work/bsd.c"
done

# ---- who includes it, and how

for cc in gcc clang; do
    if ! compiler $cc; then
        check 0 "linking with $cc" "no $cc here"
        continue
    fi
    [ $cc = gcc ] && cxx=g++ || cxx=clang++
    links "$cc: one file" $cc -std=c99 $warnings -I"$root" "$work/whole.c"
    links "$cc: declarations before and after the implementation" \
        $cc -std=gnu11 $warnings -I"$root" "$work/again.c"
    links "$cc: two files" $cc -std=c11 $warnings -I"$root" "$work/one.c" "$work/two.c"
    compiler $cxx || continue
    links "$cxx: two files" $cxx -std=c++11 $warnings -I"$root" "$work/one.cpp" "$work/two.cpp"
    $cc -std=c99 -I"$root" -c "$work/one.c" -o "$work/one.o"
    links "$cc and $cxx: implementation in C, used from C++" \
        $cxx -std=c++17 $warnings -I"$root" "$work/one.o" "$work/two.cpp"
    $cxx -std=c++11 -I"$root" -c "$work/one.cpp" -o "$work/one.o"
    $cc -std=c99 $warnings -I"$root" -c "$work/two.c" -o "$work/two.o"
    links "$cc and $cxx: implementation in C++, used from C" \
        $cxx "$work/one.o" "$work/two.o"
    links "$cc: gpubench_keep of every type" $cc -std=c99 $warnings -O2 -I"$root" "$work/keep.c"
    links "$cxx: gpubench_keep of every type" \
        $cxx -std=c++11 $warnings -O2 -I"$root" "$work/keep.cpp"
done

# ---- the C++ layer

strict_cpp="$warnings -Wformat=2 -Wcast-qual -Wundef -Wdouble-promotion -Wold-style-cast"
for cc in g++ clang++; do
    for standard in c++11 c++14 c++17 c++20; do
        name="$cc -std=$standard: cases of lambdas and of objects"
        compiler $cc || { check 0 "$name" "no $cc here"; continue; }
        links "$name" $cc -std=$standard $strict_cpp -O2 -I"$root" "$root/tests/fixtures/layer.cpp"
    done
    compiler $cc || continue
    links "$cc: cases of lambdas without exceptions and RTTI" $cc -std=c++11 $strict_cpp \
        -fno-exceptions -fno-rtti -I"$root" "$root/tests/fixtures/layer.cpp"
    sed 's/x ? 5 : 0/x != nullptr/' "$root/tests/fixtures/layer.cpp" >"$work/layer.cpp"
    ! $cc -std=c++11 -fsyntax-only -I"$root" "$work/layer.cpp" >"$log" 2>&1 &&
        grep -q 'return an int' "$log"
    check $? "$cc: a lambda that returns a bool does not compile, and that says why"
done

# ---- work that the compiler removes is no result, however it is hardened

for cc in gcc clang; do
    for flags in -O2 -O3 "-Os -fcf-protection" "-O2 -fno-omit-frame-pointer"; do
        name="$cc $flags: a discarded check fails"
        if ! compiler $cc || [ "$(uname -m)" != x86_64 ]; then
            check 0 "$name" "no $cc here, or another processor"
            continue
        fi
        $cc $flags -I"$root" "$work/discard.c" -o "$work/program" >"$log" 2>&1 &&
            run_program >>"$log" 2>&1
        [ $? -eq 1 ] && grep -q "did nothing.*gpubench_keep" "$log"
        check $? "$name"
    done
done

# ---- other processors

# elsewhere NAME COMPILER ARGUMENTS...: compiles for a processor whose libc may not be here.
elsewhere() {
    name=$1
    shift
    if echo '#include <errno.h>' | "$@" -fsyntax-only -x c - >/dev/null 2>&1; then
        try "$name" "$@" $warnings -std=c99 -O2 -I"$root" -c "$work/keep.c" -o "$work/object.o"
    else
        check 0 "$name" "no compiler or libc for it here"
    fi
}

elsewhere "gcc -m32" gcc -m32
elsewhere "clang -m32" clang -m32
elsewhere "gcc -m32 -msse2" gcc -m32 -msse2
elsewhere "aarch64, gcc" aarch64-linux-gnu-gcc
elsewhere "aarch64, clang" clang --target=aarch64-linux-gnu -isystem /usr/aarch64-linux-gnu/include
elsewhere "riscv64, gcc" riscv64-linux-gnu-gcc

# ---- behind other headers: declarations always, the implementation says what it needs

printf '%s\n' '#include <stdio.h>' '#include "gpubench.h"' \
    'int main(void) { return puts(GPUBENCH_VERSION) < 0; }' >"$work/late.c"
try "declarations after another header" \
    gcc -std=c99 $warnings -I"$root" "$work/late.c" -fsyntax-only
gcc -std=c99 -I"$root" -fsyntax-only "$work/again.c" >"$log" 2>&1
grep -q 'error.*gpubench.h needs POSIX: include it first' "$log"
check $? "implementation after another header in strict C: the error says what to do"

# ---- the example that newcomers copy: README's, or the file that stands for it

first=$root/examples/first.c
if [ -f "$first" ]; then
    links "examples/first.c" gcc -O2 -Wall -Wextra -I"$root" "$first"
    test "$(wc -l <"$first")" -le 25 && status=0 || status=1
    : >"$log"
    check $status "examples/first.c has at most 25 lines"
else
    check 0 "examples/first.c" "not there"
fi

# ---- the implementation and its users disagree about CUDA

for cc in gcc g++; do
    name="$cc: a file for CUDA and an implementation without it do not link, and that says why"
    if ! compiler $cc || [ -z "$toolkit" ]; then
        check 0 "$name" "no $cc or no CUDA toolkit here"
        continue
    fi
    [ $cc = gcc ] && extension=c || extension=cpp
    $cc -O2 -I"$root" -c "$work/one.$extension" -o "$work/one.o"
    $cc -O2 -I"$root" -DGPUBENCH_CUDA=1 -isystem "$toolkit/include" \
        -c "$work/two.$extension" -o "$work/two.o"
    ! $cc "$work/one.o" "$work/two.o" -o "$work/program" >"$log" 2>&1 &&
        [ "$(grep -o 'undefined reference to.*' "$log" | sort -u | wc -l)" -eq 1 ] &&
        grep -q 'undefined.*gpubench_implementation_lacks_GPUBENCH_CUDA' "$log"
    check $? "$name"
done

# ---- nvcc

if [ -n "$nvcc" ] && [ -n "$toolkit" ]; then
    # nvcc, and the words below, take no folder with a blank in its name.
    include=$work/include
    mkdir "$include"
    cp "$root/gpubench.h" "$include/"
    strict="--Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I$include"
    for standard in c++11 c++14 c++17 c++20; do
        if "$nvcc" --help | grep -q "$standard"; then
            try "nvcc -std=$standard" "$nvcc" -std=$standard $strict -c "$work/whole.cu" \
                -o "$work/object.o"
        else
            check 0 "nvcc -std=$standard" "this nvcc does not know it"
        fi
    done
    try "nvcc: gpubench_keep of every type" "$nvcc" $strict -c "$work/keep.cu" \
        -o "$work/object.o"
    for order in "cuda_fp16.h cuda_bf16.h gpubench.h" "gpubench.h cuda_fp16.h cuda_bf16.h"; do
        {
            printf '#include <%s>\n' $order
            echo 'int compare(gpubench *b, const __half *x, const __nv_bfloat16 *y)'
            echo '{ return gpubench_compare(b, x, y, 1); }'
        } >"$work/halves.cu"
        try "nvcc: comparison of halves, ${order%% *} first" "$nvcc" -std=c++11 $strict \
            -c "$work/halves.cu" -o "$work/object.o"
    done
    cp "$root/tests/fixtures/layer.cpp" "$work/layer.cu"
    try "nvcc: cases of lambdas and of objects" \
        sh -c "'$nvcc' -std=c++11 $strict $work/layer.cu -o $work/program -ldl -lpthread &&
               $work/program --device cpu --mode hot --quiet --max-time 0.01 --max-samples 3"
    try "nvcc: two files" "$nvcc" $strict "$work/one.cu" "$work/two.cu" \
        -o "$work/program" -ldl -lpthread
    "$nvcc" -I"$include" -c "$work/one.cu" -o "$work/one.o"
    try "nvcc and gcc: implementation in .cu, used from C" \
        sh -c "gcc -std=c99 -DGPUBENCH_CUDA=1 -isystem '$toolkit/include' -I$include \
                   -c $work/two.c -o $work/two.o &&
               '$nvcc' $work/one.o $work/two.o -o $work/program -ldl -lpthread"
    try "nvcc and gcc: implementation in .cu, used from C that knows no CUDA" \
        sh -c "gcc -std=c99 -I$include -c $work/two.c -o $work/two.o &&
               '$nvcc' $work/one.o $work/two.o -o $work/program -ldl -lpthread &&
               $work/program --device cpu --mode hot --quiet --max-time 0.01 --max-samples 3"
else
    check 0 "nvcc" "no nvcc here"
fi

finish
