#!/bin/sh
# test_compilers.sh - the header with its implementation, and what `make
# suite-attention` builds, under the flags that distributions and people set:
# without a warning, linked, and run where the processor can. Prints TAP. A
# compiler that is missing is skipped; `make deps-ci` installs them.

# The flags of a distribution are found by its name.
# shellcheck disable=SC2034
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
unset MAKEFLAGS MAKEOVERRIDES BACKEND # of a make that runs this
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

# What make says of itself, and the commands, explain nothing.
explain() { grep -v -e '^make' -e ' -c ' "$log" | head -n 20; }

found() { command -v "$1" >/dev/null 2>&1; }

echo 'int main(void) { return 0; }' >"$work/empty.c"

# known COMPILER FLAGS...: those of the flags that this version knows, and whose programs this
# system runs: a linker may know of relocations that its C library does not.
known() {
    cc=$1
    shift
    for flag; do
        "$cc" -Werror -Wl,--fatal-warnings $flag -o "$work/empty" "$work/empty.c" \
            >/dev/null 2>&1 && "$work/empty" 2>/dev/null && printf '%s ' "$flag"
    done
}

# header NAME COMPILER FLAGS...: the example that newcomers copy.
header() {
    name="$1: header"
    shift
    if ! found "$1"; then
        check 0 "$name" "no $1 here"
        return
    fi
    case $1 in *++) language="-x c++" ;; *) language="-x c" ;; esac
    { "$@" $warnings -I. $language examples/first.c -o "$work/first" &&
        { [ -n "$foreign" ] || "$work/first" --mode hot --quiet --max-time 0.01 --max-samples 3; }; } \
        >"$log" 2>&1
    check $? "$name"
}

# What the attention suite is linked with; `all` builds the others' kernels too.
attention=$(for file in kernels/common/*.c kernels/attention/*.c kernels/ceilings/*.c \
    kernels/linear/*.c; do
    printf '%s ' "${file%.c}.o"
done)
all=$(for file in kernels/*/*.c; do printf '%s ' "${file%.c}.o"; done)

# suite NAME "OBJECTS" COMPILER FLAGS...: by the Makefile, with its own flags.
suite() {
    name="$1: suite" objects=$2 cc=$3
    shift 3
    if ! found "$cc"; then
        check 0 "$name" "no $cc here"
        return
    fi
    build=$work/build
    rm -rf "$build"
    { make -j2 BACKEND=cpu BUILD="$build" CC="$cc" CFLAGS="$*" GIT=none \
        OBJECTS="$(for object in $objects; do printf '%s ' "$build/$object"; done)" \
        "$build/attention" &&
        { [ -n "$foreign" ] || "$build/attention" --list; }; } >"$log" 2>&1
    check $? "$name"
}

# both NAME COMPILER FLAGS...
both() {
    under=$1
    shift
    header "$under" "$@"
    suite "$under" "$attention" "$@"
}

foreign= # not empty: what is built does not run here

# ---- libc's fortified functions: each level at each optimization

fortify() { echo "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$1"; }

for optimization in -O1 -O2 -O3 -Og; do
    for level in 1 2 3; do
        header "gcc $optimization _FORTIFY_SOURCE=$level" gcc $optimization $(fortify $level)
    done
done
for pair in -O1:3 -O2:2 -O3:1 -Og:3; do
    for cc in g++ clang; do
        header "$cc ${pair%:*} _FORTIFY_SOURCE=${pair#*:}" \
            $cc ${pair%:*} $(fortify ${pair#*:})
    done
done
suite "gcc -O2 _FORTIFY_SOURCE=3" "$attention" gcc -O2 $(fortify 3)
suite "clang -O2 _FORTIFY_SOURCE=3" "$attention" clang -O2 $(fortify 3)

# The header's tests run under sanitizers and without these functions, but Ubuntu's gcc
# compiles what is not told otherwise with them.
fortified_tests() {
    for test in tests/header/test_*.c; do
        cuda=
        case $test in *cuda*) cuda="-DGPUBENCH_CUDA=1 -DGPT_CUPTI=0 -Itests/fake_cuda" ;; *cupti*) continue ;; esac
        # shellcheck disable=SC2086
        gcc -std=c11 -O1 -Wall -Wextra -Werror -I. -Itests $cuda $(fortify 2) -S -o /dev/null "$test" || return 1
    done
}
if found gcc; then
    fortified_tests >"$log" 2>&1
    check $? "the header's tests, gcc _FORTIFY_SOURCE=2"
fi

# ---- what distributions build packages with

frames="-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer"
guards="-fstack-protector-strong -fstack-clash-protection -fcf-protection"
relro="-Wl,-z,relro -Wl,-z,now"

debian="-g -O2 $guards -fPIE -pie -Wformat -Werror=format-security -Wdate-time
        -Werror=implicit-function-declaration $(fortify 2) $relro"
ubuntu="-g -O2 $frames $guards -flto=auto -ffat-lto-objects -fPIE -pie -Wformat
        -Werror=format-security -Wdate-time $(fortify 3) -Wl,-Bsymbolic-functions $relro"
fedora="-O2 -flto=auto -ffat-lto-objects -fexceptions -g -grecord-gcc-switches -pipe -Wall
        -Werror=format-security $(fortify 3) -D_GLIBCXX_ASSERTIONS $guards $frames -fPIE -pie
        -march=x86-64 -mtune=generic -fasynchronous-unwind-tables -Wl,--as-needed
        -Wl,-z,pack-relative-relocs $relro"
arch="-march=x86-64 -mtune=generic -O2 -pipe -fno-plt -fexceptions $(fortify 3) -Wformat
      -Werror=format-security $guards $frames -D_GLIBCXX_ASSERTIONS -g -flto=auto
      -Wl,-O1 -Wl,--sort-common -Wl,--as-needed -Wl,-z,pack-relative-relocs $relro"

for distribution in debian ubuntu fedora arch; do
    eval "flags=\$$distribution"
    both "gcc as $distribution" gcc $(found gcc && known gcc $flags)
    header "g++ as $distribution" g++ $(found g++ && known g++ $flags)
done

# ---- what people add

both "gcc -O3 -march=native" gcc -O3 -march=native
both "gcc -O3 -ffast-math" gcc -O3 -ffast-math
both "clang -O3 -march=native -ffast-math" clang -O3 -march=native -ffast-math
for cc in gcc g++; do
    header "$cc -Ofast" $cc -Ofast
done

# ---- other C libraries and processors: every kernel

suite "musl" "$all" musl-gcc -O3
header "musl" musl-gcc -O2

# gcc -m32 or, where that has no libraries, a compiler for i686, whose programs
# find theirs only linked in.
echo '#include <errno.h>' | cat - "$work/empty.c" > "$work/errno.c"
if gcc -m32 -o "$work/empty" "$work/errno.c" >/dev/null 2>&1; then
    narrow="gcc -m32"
else
    narrow="i686-linux-gnu-gcc -static"
fi
header "32-bit x86" $narrow -O2
suite "32-bit x86" "$all" ${narrow%% *} ${narrow#* } -O3

foreign=yes
[ "$(uname -m)" = aarch64 ] && foreign=
header "aarch64" aarch64-linux-gnu-gcc -O2
suite "aarch64" "$all" aarch64-linux-gnu-gcc -O3

finish
