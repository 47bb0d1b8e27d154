#!/bin/sh
# nvbench.sh - the same five GPU benchmarks with NVBench and with gpubench.h (gpu/): lines,
# time to compile and, where there is a GPU, what each prints, its exit status and how long
# it takes. NVBench, fmt and json come from GitHub, at fixed revisions, or from
# NVBENCH_SOURCES, a folder with nvbench, fmt and json in it; NVBench is built without its
# CMake project, which fetches more, and without NVML and CUPTI, which the comparison does
# not need. NVCC and NVBENCH_ARCH (90a) say how to compile.
# Exit status: 0; 1 if a program does not compile; 2 if nothing could be tried.
set -u
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/../.." || exit 2
arch=${NVBENCH_ARCH:-90a}
build=build/nvbench
given=${NVBENCH_SOURCES:-}
. tests/peers/fetched.sh
mkdir -p "$build/include/nvbench/internal" "$build/include/nvbench/detail" "$build/objects"

fetched NVIDIA/nvbench 66212f1da71cc9afb2894a46fa8f234cbdd6c0d8 nvbench/config.cuh.in
fetched fmtlib/fmt 60ccad511fd680cb91d8b60a315759f71c67bef9 src/format.cc
fetched nlohmann/json 199dea11b17c533721b26249e2dcaee6ca1d51d3 include/nlohmann/json.hpp

# What its CMake project generates.
sed '/^#cmakedefine/d' "$sources/nvbench/nvbench/config.cuh.in" >"$build/include/nvbench/config.cuh"
for name in BRANCH SHA1 VERSION; do
    echo "#define NVBENCH_GIT_$name \"\""
done >"$build/include/nvbench/detail/git_revision.cuh"
for name in MAJOR MINOR PATCH; do
    echo "#define NVBENCH_VERSION_$name 0"
done >"$build/include/nvbench/detail/version.cuh"
for name in cli_help cli_help_axis; do
    printf '#include <string>\nconst std::string %s_text = R"expected(%s)expected";\n' \
        $name "$(cat "$sources/nvbench/docs/$name.md")" >"$build/include/nvbench/internal/$name.cuh"
done

includes="-I$build/include -I$sources/nvbench -I$sources/fmt/include -I$sources/json/include"
target="-gencode arch=compute_$arch,code=sm_$arch"

# The library, once: everything but its main, its tests and what needs CUPTI.
if [ ! -e "$build/libnvbench.a" ]; then
    {
        (cd "$sources/nvbench" && ls nvbench/*.cu nvbench/*.cxx nvbench/detail/*.cu \
            nvbench/detail/*.cxx nvbench/internal/nvml.cxx) |
            grep -v -e '/main.cu$' -e cupti -e json_printer.cxx | sed "s|^|$sources/nvbench/|"
        echo "$sources/fmt/src/format.cc"
    } >"$build/files"
    export COMPILE="$nvcc -std=c++17 -O2 -w -x cu $target $includes" OBJECTS="$build/objects"
    # shellcheck disable=SC2016 # of the shells that xargs starts
    xargs -P "$(nproc)" -n 1 sh -c 'exec $COMPILE -c "$1" -o "$OBJECTS/${1##*/}.o"' sh \
        <"$build/files" >"$build/log" 2>&1 ||
        { head -20 "$build/log" >&2; give_up "NVBench does not compile"; }
    ar qcs "$build/libnvbench.a" "$build"/objects/*.o
fi

# timed COMMAND...: its seconds go to $seconds; the status is the command's.
timed() {
    began=$(date +%s.%N)
    "$@"
    set -- $?
    seconds=$(echo "$began $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }')
    return "$1"
}

# shellcheck disable=SC2086 # words
compile_nvbench() {
    "$nvcc" -std=c++17 -O3 -w $target $includes tests/peers/gpu/nvbench.cu \
        "$sources/nvbench/nvbench/main.cu" "$build/libnvbench.a" -o "$build/nvbench" -lcuda -ldl
}
# shellcheck disable=SC2086 # words
compile_gpubench() {
    "$nvcc" -std=c++17 -O3 -w $target -I. tests/peers/gpu/gpubench.cu -o "$build/gpubench" \
        -ldl -lpthread
}

failed=0
for name in nvbench gpubench; do
    timed compile_$name >"$build/log" 2>&1 || { failed=1; head -20 "$build/log" >&2; }
    echo "$name: $(wc -l <tests/peers/gpu/$name.cu) lines, compiled in $seconds s"
done
if [ $failed -ne 0 ] || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    echo 'not measured: no GPU here, or it does not compile'
    exit $failed
fi
for name in nvbench gpubench; do
    echo "---- $name"
    timed "$build/$name"
    echo "---- $name: exit status $?, $seconds s"
done
