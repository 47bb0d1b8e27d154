#!/bin/sh
# install.sh install|uninstall VERSION  copies what gpubench's users need below
# $DESTDIR$PREFIX, or removes it. Both may hold blanks. make builds it first.
set -eu
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

# put MODE FILE: standard input becomes this file; a half-written one is never seen.
put() {
    mkdir -p "$(dirname "$root/$2")"
    cat >"$root/$2.new"
    chmod "$1" "$root/$2.new"
    mv "$root/$2.new" "$root/$2"
}

install_all() {
    put 644 include/gpubench.h <gpubench.h
    put 644 include/gpubench_trace.h <gpubench_trace.h
    put 755 bin/gpubench-compare <build/gpubench-compare
    put 644 share/man/man1/gpubench-compare.1 <build/gpubench-compare.1
    filled packaging/gpubench.pc.in | put 644 share/pkgconfig/gpubench.pc
    put 644 share/cmake/gpubench/gpubenchConfig.cmake <packaging/gpubenchConfig.cmake
    filled packaging/gpubenchConfigVersion.cmake.in |
        put 644 share/cmake/gpubench/gpubenchConfigVersion.cmake
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
