#!/bin/sh
# emulated.sh BUILD  measures and verifies suites at odd shapes on processors that this
# machine is not: a 64-bit Arm (built here, statically, by CROSS) and an x86-64 without
# AVX (the suites in BUILD). What qemu-user or the compiler is missing for is skipped.
# Prints TAP.

export LC_ALL=C CDPATH=
build=$1
cross=${CROSS:-aarch64-linux-gnu-gcc}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
count=0

has() { command -v "$1" > /dev/null 2>&1; }

# expect NAME EMULATOR... PROGRAM SHAPE: every case is ok, and says that it ran on NAME.
expect() {
    name=$1 && shift
    count=$((count + 1))
    "$@" --mode cold --max-samples 1 --min-samples 1 --warmup 1 --max-time 0.001 \
        --timeout 600 --quiet --csv "$work/rows.csv" > "$work/log" 2>&1 < /dev/null
    if [ $? -eq 0 ] && grep -q "$name" "$work/rows.csv"; then
        echo "ok $count - $name: $*"
    else
        sed 's/^/# /' "$work/log"
        echo "not ok $count - $name: $*"
    fi
    rm -f "$work/rows.csv"
}

# for_suites NAME FOLDER EMULATOR...
for_suites() {
    name=$1 folder=$2 && shift 2
    expect "$name" "$@" "$folder/norm" --shape 'n=7 c=97'
    expect "$name" "$@" "$folder/loss" --shape 'n=3 v=1021'
    expect "$name" "$@" "$folder/optimizer" --shape 'd=9 ff=33 l=1 v=11 t=5'
    expect "$name" "$@" "$folder/embedding" --shape 'n=13 v=29 c=71 t=5 zipf=0'
    expect "$name" "$@" "$folder/memcpy" --shape 'bytes=1237'
    expect "$name" "$@" "$folder/ffn" --shape 'n=5 d=33 ff=71'
    expect "$name" "$@" "$folder/attention" --shape 'b=1 h=2 t=67 d=41 causal=1'
    expect "$name" "$@" "$folder/block" --shape 'b=1 t=19 d=48 h=3 ff=71'
    expect "$name" "$@" "$folder/ceilings" --shape 'words=1237 m=7 n=13 k=33'
}

skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

build_arm() {
    for suite in norm loss optimizer embedding memcpy ffn attention block ceilings; do
        set -- suites/"$suite"*.c suites/part_check*.c suites/suite.c suites/gpubench.c suites/once.c \
            suites/parallel.c suites/peaks.c
        "$cross" -std=c11 -O1 -pthread -static -w -o "$work/$suite" "$@" "$work"/*.o -lm \
            2> "$work/log" || return 1
    done
}

if has "$cross" && has qemu-aarch64-static; then
    for source in kernels/*/*.c; do
        "$cross" -std=c11 -O1 -w -c "$source" -o "$work/$(echo "$source" | tr / _).o" || exit 2
    done
    build_arm || exit 2
    for_suites neon "$work" qemu-aarch64-static
else
    skip neon "no $cross or no qemu-aarch64-static"
fi
if [ "$(uname -m)" = x86_64 ] && has qemu-x86_64-static; then
    for_suites sse2 "$build" qemu-x86_64-static -cpu Nehalem
else
    skip sse2 "no qemu-x86_64-static"
fi
echo "1..$count"
