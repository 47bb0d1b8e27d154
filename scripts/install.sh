#!/bin/sh
# install.sh install|uninstall VERSION  copies what gpubench's users need below
# $DESTDIR$PREFIX, or removes it. Both may hold blanks. make builds it first.
set -eu
export LC_ALL=C CDPATH=
. "$(dirname "$0")/ended.sh"
new= # a file that is not yet whole
clean_up() { rm -f "$new"; }
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}$prefix

case $prefix in
/*) ;;
*)
    echo "PREFIX='$prefix': wants an absolute path" >&2
    exit 2
    ;;
esac

# filled FILE: with what stands for @PREFIX@ and @VERSION@.
filled() {
    PREFIX=$prefix VERSION=$version awk '
        function put(word, text,    at) {
            if ((at = index($0, word)) > 0)
                $0 = substr($0, 1, at - 1) text substr($0, at + length(word))
        }
        { put("@PREFIX@", ENVIRON["PREFIX"]); put("@VERSION@", ENVIRON["VERSION"]); print }' "$1"
}

# put MODE FILE COMMAND...: what the command prints becomes this file; a half-written one is
# never seen.
put() {
    mode=$1 file=$root/$2
    shift 2
    mkdir -p "$(dirname "$file")"
    new=$(unbroken beside "$file")
    "$@" >"$new"
    chmod "$mode" "$new"
    mv "$new" "$file"
    new=
}

install_all() {
    put 644 include/gpubench.h cat gpubench.h
    put 644 include/gpubench_trace.h cat gpubench_trace.h
    put 755 bin/gpubench-compare cat build/gpubench-compare
    put 644 share/man/man1/gpubench-compare.1 cat build/gpubench-compare.1
    put 644 share/pkgconfig/gpubench.pc filled packaging/gpubench.pc.in
    put 644 share/cmake/gpubench/gpubenchConfig.cmake cat packaging/gpubenchConfig.cmake
    put 644 share/cmake/gpubench/gpubenchConfigVersion.cmake \
        filled packaging/gpubenchConfigVersion.cmake.in
}

# Folders that others use as well stay.
uninstall_all() {
    for file in include/gpubench.h include/gpubench_trace.h bin/gpubench-compare share/man/man1/gpubench-compare.1 \
        share/pkgconfig/gpubench.pc share/cmake/gpubench/gpubenchConfig.cmake \
        share/cmake/gpubench/gpubenchConfigVersion.cmake; do
        rm -f "$root/$file"
    done
    [ ! -d "$root/share/cmake/gpubench" ] || rmdir "$root/share/cmake/gpubench"
}

version=$2
"$1"_all
