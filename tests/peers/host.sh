#!/bin/sh
# host.sh [ROUNDS] - the same benchmarks of host functions written with gpubench.h, Google
# Benchmark, nanobench and ubench.h: how many lines each has, how long it compiles and runs,
# what it finds (the median of ROUNDS processes in turns, 5, and their range), and what it
# says of a function that does nothing. Google Benchmark is what pkg-config finds;
# nanobench.h and ubench.h come from GitHub, at fixed revisions, or from PEERS_SOURCES, a
# folder with nanobench/nanobench.h and ubench.h/ubench.h in it. A tool that cannot be had
# is left out, and that is said. CC, CXX. Exit status: 0; 1 if a program does not compile
# or run; 2 if there is no other tool.
set -u
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/../.." || exit 2
rounds=${1:-5}
build=build/peers
sources=${PEERS_SOURCES:-$build/sources}
folder=tests/peers/host
cc=${CC:-cc}
cxx=${CXX:-c++}
mkdir -p "$build"

case $rounds in '' | 0* | *[!0-9]*)
    echo "host.sh: '$rounds': wants a number of rounds" >&2
    exit 2
    ;;
esac

# fetched OWNER/NAME REVISION FILE: the header is in the folder of sources.
fetched() {
    header=$sources/${1#*/}/${3##*/}
    if [ ! -f "$header" ] && [ -z "${PEERS_SOURCES:-}" ]; then
        mkdir -p "${header%/*}"
        curl -fsSL -o "$header" "https://raw.githubusercontent.com/$1/$2/$3" || rm -f "$header"
    fi
    [ -f "$header" ] || echo "host.sh: without ${1#*/}: no ${3##*/} in '${header%/*}'" >&2
    [ -f "$header" ]
}

tools=gpubench
if pkg-config --exists benchmark 2>/dev/null; then
    tools="$tools benchmark"
else
    echo "host.sh: without Google Benchmark: pkg-config does not find it (libbenchmark-dev)" >&2
fi
fetched martinus/nanobench cdf49c64893c5fd65c6c6ac6b81e5d02a7ee91bc src/include/nanobench.h &&
    tools="$tools nanobench"
fetched sheredom/ubench.h 38a89d125917bb9fe6bd79eb9a1ef00fb5e6e500 ubench.h &&
    tools="$tools ubench"
[ "$tools" != gpubench ] || exit 2

give_up() {
    echo "host.sh: $*" >&2
    exit 1
}

# seconds COMMAND...: of the processor, what it took; its output goes to the log.
seconds() {
    ("$@" >"$build/log" 2>&1 && times >"$build/times") || return 1
    tail -1 "$build/times" | tr 'ms' '  ' |
        awk '{ printf "%.2f\n", 60 * ($1 + $3) + $2 + $4 }'
}

# compile TOOL: the seconds that it took.
compile() {
    case $1 in
    gpubench) set -- "$1" "$cc" c "" ;;
    benchmark) set -- "$1" "$cxx" cpp "$(pkg-config --cflags --libs benchmark)" ;;
    nanobench) set -- "$1" "$cxx" cpp "-I$sources/nanobench" ;;
    ubench) set -- "$1" "$cc" c "-I$sources/ubench.h -lm" ;;
    esac
    # shellcheck disable=SC2086 # the last are several words
    seconds "$2" -O2 -I. "$folder/with_$1.$3" "$build/work.o" -o "$build/$1" $4 -lpthread
}

# once TOOL: runs it, and writes "NAME NANOSECONDS" for each benchmark.
once() {
    case $1 in
    gpubench)
        "$build/gpubench" --quiet --csv "$build/rows.csv" 2>"$build/gpubench.says"
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
                 { print $at["case"], $at["median_us"] * 1000 }' "$build/rows.csv"
        ;;
    benchmark)
        # Its second time is the processor's, which others on the machine do not lengthen.
        "$build/benchmark" --benchmark_format=csv --benchmark_repetitions=9 \
            --benchmark_min_time=0.1 --benchmark_report_aggregates_only=true \
            2>/dev/null >"$build/rows.csv"
        sed -n 's/^"\(.*\)_median",[^,]*,[^,]*,\([^,]*\),.*/\1 \2/p' "$build/rows.csv"
        ;;
    nanobench)
        "$build/nanobench" "$build/rows.txt" >"$build/nanobench.says" 2>&1
        awk '{ print $1, $2 * 1e9 }' "$build/rows.txt"
        ;;
    ubench)
        # On a busy host its own limit of 2.5 % has it repeat itself for minutes.
        "$build/ubench" --confidence=25 --output="$build/rows.csv" >"$build/ubench.says" 2>&1
        sed -n 's/^\([a-z0-9]*\)\.\([^,]*\), \([0-9]*\),.*/\1\/\2 \3/p' "$build/rows.csv" |
            sed 's,^empty/empty,empty,'
        ;;
    esac
}

"$cc" -O2 -c "$folder/work.c" -o "$build/work.o" || give_up "work.c does not compile"
rm -f "$build"/*.ns "$build"/*.s "$build"/*.says
for tool in $tools; do
    compile "$tool" >"$build/$tool.compile" ||
        give_up "with_$tool does not compile: $(head -5 "$build/log")"
done
round=0
while [ "$round" -lt "$rounds" ]; do
    for tool in $tools; do
        start=$(date +%s.%N)
        once "$tool" >>"$build/$tool.ns"
        echo "$start $(date +%s.%N)" >>"$build/$tool.s"
    done
    round=$((round + 1))
done

printf '%-10s %5s %10s %8s\n' tool lines 'compile, s' 'run, s'
for tool in $tools; do
    [ -s "$build/$tool.ns" ] || give_up "$tool found nothing"
    printf '%-10s %5d %10s %8s\n' "$tool" "$(cat "$folder/with_$tool".* | wc -l)" \
        "$(cat "$build/$tool.compile")" \
        "$(awk '{ s += $2 - $1 } END { printf "%.1f", s / NR }' "$build/$tool.s")"
done

# The median of each tool's processes, and from the least to the most of them.
printf '\n%-14s' 'median, ns'
for tool in $tools; do printf ' %28s' "$tool"; done
echo
for name in fnv1a/64 fnv1a/4096 fnv1a/1048576 memchr/4096 sort/10000 empty; do
    printf '%-14s' "$name"
    for tool in $tools; do
        awk -v name="$name" '$1 == name && $2 > 0 { print $2 }' "$build/$tool.ns" | sort -g |
            awk '{ v[NR] = $1 }
                 END { if (NR == 0) { printf " %28s", "-"; exit }
                       m = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
                       d = m < 100 ? 2 : m < 1000 ? 1 : 0
                       printf " %28s", sprintf("%.*f (%.*f to %.*f)", d, m, d, v[1], d, v[NR]) }'
    done
    echo
done

echo
echo 'of an empty function they say'
for tool in $tools; do
    case $tool in
    benchmark) says=$(sed -n 's/^empty \(.*\)/\1 ns/p' "$build/benchmark.ns" | tail -1) ;;
    *) says=$(grep -e 'empty.*mean' -e 'empty.*failed' -e '`empty`' "$build/$tool.says" | head -1) ;;
    esac
    echo "$tool: $(echo "$says" | sed 's/^[-| ]*//')"
done
