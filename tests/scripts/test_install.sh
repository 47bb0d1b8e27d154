#!/bin/sh
# test_install.sh - what make install, uninstall and dist leave behind, and that
# other people's programs build from it. Every path has a blank. As TAP lines.
set -u
unset MAKEFLAGS MAKEOVERRIDES DESTDIR PREFIX LDFLAGS # of a make that runs this
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
prefix="$work/a prefix"
stage="$work/a stage"
cc=${CC:-cc}
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
version=$(sed -n 's/^#define GPUBENCH_VERSION "\(.*\)"/\1/p' gpubench.h)

explain() { tail -n 20 "$log"; }
run_make() { make BACKEND=cpu "$@" >"$log" 2>&1; }
run_program() { "$@" --mode hot --quiet --max-time 0.01 --max-samples 3 >>"$log" 2>&1; }
files() { (cd "$1" && find . -type f | LC_ALL=C sort | tr '\n' ' '); }

installed='./bin/gpubench-compare ./include/gpubench.h ./include/gpubench_trace.h '
installed=$installed'./share/cmake/gpubench/gpubenchConfig.cmake '
installed=$installed'./share/cmake/gpubench/gpubenchConfigVersion.cmake '
installed=$installed'./share/man/man1/gpubench-compare.1 ./share/pkgconfig/gpubench.pc '

# ---- install

run_make install PREFIX="$prefix" && [ "$(files "$prefix")" = "$installed" ]
check $? "install: the header, the tool, its manual, pkg-config and CMake files"
cmp gpubench.h "$prefix/include/gpubench.h" >"$log" 2>&1
check $? "install: the header is the header"
"$prefix/bin/gpubench-compare" --check tests/compare/data/*.csv >"$log" 2>&1
[ $? -le 2 ] && "$prefix/bin/gpubench-compare" --help >"$work/help" 2>"$log"
check $? "install: the tool runs"

# The page's words are those of --help, however they are laid out.
words() { tr -s '[:space:]' '\n' | grep .; }
page="$prefix/share/man/man1/gpubench-compare.1"
sed -e 's/\\-/-/g' -e 's/\\e/\\/g' -e 's/^\\&//' -e '/^\.\(TH\|SH\|TP\|PP\|nf\|fi\)/d' \
    -e 's/^\.B //' "$page" | sed 1d | words >"$work/page"
sed -e 's/^usage: //' -e 's/^Exit status: //' "$work/help" | words >"$work/words"
[ -s "$work/page" ] && diff "$work/words" "$work/page" >"$log"
check $? "install: the manual page says what --help says"
if command -v groff >/dev/null; then
    groff -man -Tascii -ww "$page" >"$work/shown" 2>"$log" && [ ! -s "$log" ]
    check $? "install: the manual page is a manual page"
else
    check 0 "install: the manual page is a manual page" "no groff here"
fi

run_make install DESTDIR="$stage" PREFIX="/opt/of mine" &&
    [ "$(files "$stage/opt/of mine")" = "$installed" ] &&
    grep -qx 'prefix=/opt/of mine' "$stage/opt/of mine/share/pkgconfig/gpubench.pc"
check $? "install: DESTDIR goes in front, and into no file"
run_make install PREFIX="not absolute"
[ $? -ne 0 ] && grep -q "PREFIX='not absolute': wants an absolute path" "$log" &&
    [ ! -e "not absolute" ]
check $? "install: a relative PREFIX is refused by name"

# ---- programs that are built from it

$cc -std=c99 $strict $sanitize "-I$prefix/include" -Itests/dropin tests/dropin/c/main.c \
    -o "$work/c program" >"$log" 2>&1 && run_program "$work/c program"
check $? "a C program beside min, max, CHECK and I"

nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
for standard in c++11 c++17; do
    name="a CUDA program beside min, max, CHECK and I, as $standard"
    if [ -z "$nvcc" ]; then
        check 0 "$name" "no nvcc here"
        continue
    fi
    "$nvcc" -std=$standard --Werror all-warnings \
        -Xcompiler -Wall,-Wextra,-Wshadow,-Werror,-fsanitize=address,-fsanitize=undefined \
        -Xcompiler -fno-sanitize-recover=all "-I$prefix/include" -Itests/dropin \
        tests/dropin/cuda/main.cu -o "$work/cuda program" -ldl -lpthread >"$log" 2>&1 &&
        run_program "$work/cuda program" --device cpu
    check $? "$name"
done

if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH="$prefix/share/pkgconfig"
    export PKG_CONFIG_PATH
    [ "$(pkg-config --modversion gpubench 2>"$log")" = "$version" ] &&
        eval "$cc -std=c99 $(pkg-config --cflags gpubench) -Itests/dropin tests/dropin/c/main.c" \
            -o '"$work/pc program"' >"$log" 2>&1 && run_program "$work/pc program"
    check $? "a C program by pkg-config"
else
    check 0 "a C program by pkg-config" "no pkg-config here"
fi

# configured VERSION: what find_package says of it, in a project that does nothing else.
configured() {
    mkdir -p "$work/find $1"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.13)' 'project(find NONE)' \
        "find_package(gpubench $1 REQUIRED)" >"$work/find $1/CMakeLists.txt"
    cmake -S "$work/find $1" -B "$work/find $1/build" -DCMAKE_PREFIX_PATH="$prefix" \
        >"$log" 2>&1
}

if command -v cmake >/dev/null; then
    cmake -S tests/dropin/cmake -B "$work/a build" -DCMAKE_PREFIX_PATH="$prefix" \
        >"$log" 2>&1 && cmake --build "$work/a build" >"$log" 2>&1 &&
        run_program "$work/a build/dropin"
    check $? "a C++17 project of four files by CMake"
    configured "$version EXACT" && configured "${version%%.*}" && configured ""
    check $? "CMake finds this version, its major version and any"
    refused() {
        ! configured "$1" && grep -q "gpubenchConfig.cmake, version: $version" "$log"
    }
    refused 1.0 && refused "$((${version%%.*} + 1)).0" && refused "${version%%.*}.999"
    check $? "CMake finds no other major version and no later one"
else
    for name in "a C++17 project of four files by CMake" \
        "CMake finds this version, its major version and any" \
        "CMake finds no other major version and no later one"; do
        check 0 "$name" "no cmake here"
    done
fi

# ---- uninstall

touch "$prefix/include/other.h"
run_make uninstall PREFIX="$prefix" && [ "$(files "$prefix")" = "./include/other.h " ] &&
    [ ! -d "$prefix/share/cmake/gpubench" ]
check $? "uninstall: everything of ours, nothing of others"
run_make uninstall PREFIX="$prefix"
check $? "uninstall: twice is no error"

# ---- release

run_make dist && cmp gpubench.h "build/dist/gpubench-$version.h" >"$log" 2>&1
check $? "dist: the header by its version"
mkdir "$work/unpacked"
tar -C "$work/unpacked" -xzf "build/dist/gpubench-$version.tar.gz" >"$log" 2>&1 &&
    (for file in gpubench.h gpubench_trace.h LICENSE README.md examples; do
        diff -r $file "$work/unpacked/gpubench-$version/$file" || exit 1
    done) >"$log" 2>&1
check $? "dist: the archive holds header, licence, README and examples"
sed -n '/^\/\*$/,$p' gpubench.h | tail -n "$(($(wc -l <LICENSE) + 4))" >"$work/comment"
{
    printf '/*\n * gpubench %s\n *\n' "$version"
    sed -e 's/^/ * /' -e 's/ *$//' LICENSE
    echo ' */'
} | diff - "$work/comment" >"$log"
check $? "the header ends with its version and licence"

# ---- LDFLAGS

: >"$log"
run_make -n -B LDFLAGS='-Wl,-z,now -L/x' build/gpubench-compare build/cpu/norm
[ "$(grep -c -e '-Wl,-z,now -L/x .*-o build/\(gpubench-compare\|cpu/norm\) ' "$log")" -eq 2 ]
check $? "LDFLAGS link the compare tool and the suites"

finish
