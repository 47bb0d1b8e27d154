#!/bin/sh
# test_peers.sh - the scripts of tests/peers/, with other people's sources, the compiler and
# the driver's tool replaced by what says what it was asked. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
unset NVCC DROPIN_ARCH DROPIN_SOURCES NVBENCH_ARCH NVBENCH_SOURCES

explain() { tail -n 20 "$log"; }

# A copy of what the script needs, so that it builds and measures elsewhere.
mkdir -p "$work/tree/tests" "$work/bin" "$work/sources"
cp -R tests/peers "$work/tree/tests"
for file in llm.c/dev/cuda/common.h fast.cu/matmul.cu SGEMM_CUDA/src/runner.cu; do
    mkdir -p "$work/sources/${file%/*}"
    : >"$work/sources/$file"
done
# Compiles to a program that notes its name and arguments; bad.cu fails to compile.
cat >"$work/bin/nvcc" <<'END'
#!/bin/sh
echo "$*" >>"$COMPILED"
case $* in *"${BROKEN:-none}.cu"*) echo "no such thing as ${BROKEN}"; exit 1 ;; esac
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho "ran ${0##*/} $*"\n[ "${0##*/}" != "${FAILING:-}" ]\n' >"$2"
chmod +x "$2"
END
cat >"$work/bin/nvidia-smi" <<'END'
#!/bin/sh
[ -n "${GPU:-}" ] && echo "GPU 0: $GPU"
END
chmod +x "$work/bin/nvcc" "$work/bin/nvidia-smi"
PATH=$work/bin:$PATH
COMPILED=$work/compiled
export PATH COMPILED

dropin() { "$work/tree/tests/peers/dropin.sh" "$@" >"$log" 2>&1; }
programs="llmc_layernorm_forward llmc_adamw llmc_attention_forward fast sgemm"

DROPIN_SOURCES="$work/sources" dropin
[ $? -eq 0 ] && grep -q 'no GPU here: compiled, not measured' "$log" && ! grep -q '^ran' "$log"
check $? "without a GPU: compiled, not measured"
for name in $programs; do
    grep -qx " *$(wc -l <"tests/peers/dropin/$name.cu")  $name" "$log" || exit 1
done
check $? "the lines of each file are said"
[ "$(grep -c 'arch=compute_90a,code=sm_90a' "$COMPILED")" -eq 5 ] &&
    grep -q "llmc_adamw.cu .*-I$work/sources/llm.c/dev/cuda" "$COMPILED"
check $? "each is compiled for sm_90a, with the sources that were given"

GPU=toy DROPIN_SOURCES="$work/sources" dropin --max-time 0.1
[ $? -eq 0 ] && for name in $programs; do
    grep -qx "ran $name --csv results/dropin-$name.csv --max-time 0.1" "$log" || exit 1
done
check $? "with a GPU: each is measured, with the options that were given"
GPU=toy FAILING=fast DROPIN_SOURCES="$work/sources" dropin
[ $? -eq 1 ] && grep -q '^ran sgemm' "$log"
check $? "a case that fails is status 1, and the others are measured"
GPU=toy BROKEN=fast DROPIN_SOURCES="$work/sources" dropin
[ $? -eq 1 ] && grep -q 'fast.cu does not compile' "$log" &&
    grep -q 'no such thing as fast' "$log" && grep -q '^ran sgemm' "$log" &&
    ! grep -q '^ran fast' "$log"
check $? "a file that does not compile is named, and the others are measured"
rm "$work/sources/fast.cu/matmul.cu"
DROPIN_SOURCES="$work/sources" dropin
[ $? -eq 2 ] && grep -q "no matmul.cu in '$work/sources/fast.cu'" "$log"
check $? "a source that is missing is named"
NVCC="$work/bin/none" DROPIN_SOURCES="$work/sources" dropin
[ $? -eq 2 ] && grep -q "no compiler '$work/bin/none'" "$log"
check $? "a compiler that is missing is named"

# ---- nvbench.sh

nvbench="$work/sources/nvbench"
mkdir -p "$nvbench/nvbench/detail" "$nvbench/nvbench/internal" "$nvbench/docs" \
    "$work/sources/fmt/src" "$work/sources/json/include/nlohmann"
printf '#cmakedefine NVBENCH_HAS_NVML\n#define KEPT\n' >"$nvbench/nvbench/config.cuh.in"
for file in nvbench/main.cu nvbench/state.cxx nvbench/runner.cu nvbench/json_printer.cxx \
    nvbench/cupti_profiler.cxx nvbench/detail/measure_hot.cu nvbench/detail/gpu.cxx \
    nvbench/internal/nvml.cxx; do
    : >"$nvbench/$file"
done
echo 'how to use it' | tee "$nvbench/docs/cli_help.md" >"$nvbench/docs/cli_help_axis.md"
: >"$work/sources/fmt/src/format.cc"
: >"$work/sources/json/include/nlohmann/json.hpp"
nvbench() { "$work/tree/tests/peers/nvbench.sh" >"$log" 2>&1; }

: >"$COMPILED"
NVBENCH_SOURCES="$work/sources" nvbench
[ $? -eq 0 ] && for name in nvbench gpubench; do
    lines=$(wc -l <"tests/peers/gpu/$name.cu")
    grep -q "^$name: $lines lines, compiled in [0-9.]* s" "$log" || exit 1
done
check $? "nvbench.sh: lines and the time to compile"
[ "$(sed -n 's/.* -c .*\/\(.*\) -o .*/\1/p' "$COMPILED" | sort | tr '\n' ' ')" = \
    "format.cc gpu.cxx measure_hot.cu nvml.cxx runner.cu state.cxx " ]
check $? "nvbench.sh: the library is what needs neither CUPTI nor a main"
grep -qx '#define KEPT' "$work/tree/build/nvbench/include/nvbench/config.cuh" &&
    ! grep -q cmakedefine "$work/tree/build/nvbench/include/nvbench/config.cuh"
check $? "nvbench.sh: NVBench's configuration, without what was not found"
GPU=toy NVBENCH_SOURCES="$work/sources" nvbench
[ $? -eq 0 ] && grep -q '^ran gpubench' "$log" && grep -q 'nvbench: exit status 0, ' "$log"
check $? "nvbench.sh: with a GPU both are run, and their status is told"
GPU=toy BROKEN=gpu/nvbench NVBENCH_SOURCES="$work/sources" nvbench
[ $? -eq 1 ] && grep -q 'no such thing as gpu/nvbench' "$log" && ! grep -q '^ran' "$log"
check $? "nvbench.sh: what does not compile is told, and nothing is run"

finish
