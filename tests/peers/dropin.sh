#!/bin/sh
# dropin.sh [OPTION...] - other people's kernels through gpubench.h, their files unchanged
# and their launches on the default stream: llm.c's layernorm, AdamW and attention,
# fast.cu's matrix products, SGEMM_CUDA's. Prints how many lines each of the files in
# dropin/ has, compiles them and, where there is a GPU, measures: OPTION... goes to the
# programs, rows go to results/dropin-NAME.csv. The sources come from GitHub, at fixed
# revisions, or from DROPIN_SOURCES, a folder with llm.c, fast.cu and SGEMM_CUDA in it.
# NVCC and DROPIN_ARCH (90a, which fast.cu needs) say how to compile. Exit status: 0; 1 if
# a program does not compile or a case fails; 2 if nothing could be tried.
set -u
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/../.." || exit 2
arch=${DROPIN_ARCH:-90a}
build=build/dropin
given=${DROPIN_SOURCES:-}
. tests/peers/fetched.sh
mkdir -p "$build" results

fetched karpathy/llm.c f1e2ace651495b74ae22d45d1723443fd00ecd3a dev/cuda/common.h
fetched pranjalssh/fast.cu 38eb642e0c081231d6f695978be63604bd7c689b matmul.cu
fetched siboehm/SGEMM_CUDA 60cba6f9b20a198116c76f18de8047f44df8c8b8 src/runner.cu

# compile NAME ARGUMENTS...: in the background; its exit status goes to NAME.status.
# -w: of their warnings nothing is asked.
programs=
compile() {
    name=$1
    programs="$programs $name"
    shift
    {
        "$nvcc" -std=c++17 -O3 -w -gencode "arch=compute_$arch,code=sm_$arch" -I. \
            "tests/peers/dropin/$name.cu" -o "$build/$name" "$@" -lcublas -ldl -lpthread \
            >"$build/$name.log" 2>&1
        echo $? >"$build/$name.status"
    } &
}

# Each with the options that its project compiles with.
llmc="$sources/llm.c/dev/cuda"
compile llmc_layernorm_forward --use_fast_math "-I$llmc" -lcublasLt
compile llmc_adamw --use_fast_math "-I$llmc" -lcublasLt
compile llmc_attention_forward --use_fast_math "-I$llmc" -lcublasLt
compile fast --use_fast_math --expt-relaxed-constexpr --expt-extended-lambda -DNDEBUG \
    "-I$sources/fast.cu" -lcuda
compile sgemm "-I$sources/SGEMM_CUDA/src" "$sources/SGEMM_CUDA/src/runner.cu"
wait

failed=0
gpu=$(command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep '^GPU')
echo 'lines  program'
for name in $programs; do
    printf '%5d  %s\n' "$(wc -l <"tests/peers/dropin/$name.cu")" "$name"
    if [ "$(cat "$build/$name.status")" -ne 0 ]; then
        echo "dropin.sh: $name.cu does not compile:" >&2
        head -20 "$build/$name.log" >&2
        failed=1
        rm -f "$build/$name"
    fi
done
if [ -z "$gpu" ]; then
    echo 'no GPU here: compiled, not measured'
    exit $failed
fi
for name in $programs; do
    [ ! -e "$build/$name" ] || "$build/$name" --csv "results/dropin-$name.csv" "$@" || failed=1
done
exit $failed
