#!/bin/sh
# llmc.sh [LIKE.csv ROWS.csv [CONTEXT...]] - llm.c's trainer at GPT-2 124M as a peer of the
# model's step: bf16 with f32 master weights, batch 4, random weights and tokens that are
# made here, no evaluation and no checkpoint. Builds it in build/llmc/, with its own
# attention and, where cuDNN and its frontend are, with cuDNN's; what is built already is
# taken as it is. With arguments it trains LLMC_STEPS (60) steps at each CONTEXT (1024 128)
# and appends a row each to ROWS.csv, of the steps behind the first ten. LIKE.csv are the
# model suite's rows of the same sitting: what a row says of the case and the machine comes
# from there. LLMC_OPTIONS are more options of the trainer, and LLMC_SUFFIX what such variants
# have behind their names. LD_LIBRARY_PATH says where libcudnn is.
# The sources come from GitHub, at fixed revisions, or from LLMC_SOURCES, a folder with llm.c
# and cudnn-frontend in it. NVCC and LLMC_ARCH (90a) say how to compile.
# Exit status: 0; 1 if it does not compile or does not run; 2 if nothing could be tried.
set -u
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/../.." || exit 2
arch=${LLMC_ARCH:-90a}
build=build/llmc
failed=0
mkdir -p "$build" || exit 2

# Whether the toolkit has that header.
has() { echo "#include <$1>" | "$nvcc" -E -x cu - >/dev/null 2>&1; }

# compile NAME ARGUMENTS...: with the options of its Makefile; it asks NVML where that is.
compile() {
    name=$1
    shift
    nvml=
    has nvml.h && nvml="-L${nvcc%/bin/*}/lib64/stubs -lnvidia-ml"
    # shellcheck disable=SC2086 # words
    "$nvcc" -std=c++17 -O3 --use_fast_math -w -DENABLE_BF16 -include tests/peers/llmc/cuda13.h \
        -gencode "arch=compute_$arch,code=sm_$arch" "$@" -o "$build/$name" \
        -lcublas -lcublasLt $nvml >"$build/$name.log" 2>&1 && return
    rm -f "$build/$name"
    echo "llmc.sh: $name does not compile:" >&2
    head -20 "$build/$name.log" >&2
    failed=1
}

build_all() {
    given=${LLMC_SOURCES:-}
    . tests/peers/fetched.sh
    fetched karpathy/llm.c f1e2ace651495b74ae22d45d1723443fd00ecd3a train_gpt2.cu
    [ -x "$build/llmc" ] || compile llmc "$sources/llm.c/train_gpt2.cu"
    [ ! -x "$build/llmc-cudnn" ] || return 0
    if ! has cudnn.h; then
        echo 'llmc.sh: without cuDNN: no cudnn.h here' >&2
        return 0
    fi
    fetched NVIDIA/cudnn-frontend 1a7b4b78db44712fb9707d21cd2e3179f1fd88b8 include/cudnn_frontend.h
    compile llmc-cudnn -DENABLE_CUDNN "-I$sources/cudnn-frontend/include" \
        "$sources/llm.c/train_gpt2.cu" "$sources/llm.c/llmc/cudnn_att.cpp" -lcudnn
}

# A file of tokens as its loader takes them: 256 words, of which the first three are a magic
# number, a version and how many tokens follow, of 16 bits each. They are drawn as the
# suite's: token k as often as 1 / (k + 1).
make_tokens() { # make_tokens COUNT
    awk -v count="$1" -v classes=50257 '
        function bytes(value, width) {
            for (; width > 0; width--) {
                printf "\\0%03o", value % 256
                value = int(value / 256)
            }
        }
        BEGIN {
            srand(1)
            bytes(20240520, 4); bytes(1, 4); bytes(count, 4)
            for (i = 3; i < 256; i++) bytes(0, 4)
            for (i = 0; i < count; i++) {
                if (i % 512 == 0) print ""
                token = int(exp(rand() * log(classes + 1))) - 1
                bytes(token < classes ? token : classes - 1, 2)
            }
            print ""
        }' | while read -r line; do printf '%b' "$line"; done
}

# train NAME CONTEXT: -v and -m 1: one batch is evaluated before the first step and one
# behind the last; -s 0: no text is generated.
train() {
    log="$build/$1-$2.txt"
    # shellcheck disable=SC2086 # words
    if ! "$build/$1" -i "$tokens" -j "$tokens" -e d12 -b 4 -t "$2" -d $((4 * $2)) \
        -x "$steps" -v 1000000 -m 1 -s 0 -h 0 ${LLMC_OPTIONS:-} >"$log" 2>&1; then
        echo "llmc.sh: $1 at context $2 does not run:" >&2
        tail -5 "$log" >&2
        return 1
    fi
    "${PYTHON:-python3}" compare/llmc_rows.py --like "$like" --rows "$rows" --log "$log" \
        --variant "$1${LLMC_SUFFIX:-}" --context "$2"
}

if [ $# -eq 0 ] || [ ! -x "$build/llmc" ]; then
    build_all
fi
[ $# -gt 0 ] || exit $failed
[ $# -ge 2 ] || { echo 'usage: llmc.sh [LIKE.csv ROWS.csv [CONTEXT...]]' >&2; exit 2; }
like=$1 rows=$2 steps=${LLMC_STEPS:-60} tokens=$build/tokens.bin
shift 2
[ $# -gt 0 ] || set -- 1024 128
[ -s "$tokens" ] || make_tokens $((4 * 1024 * 16 + 1)) >"$tokens" || exit 2
for context; do
    for name in llmc llmc-cudnn; do
        [ ! -x "$build/$name" ] || train $name "$context" || failed=1
    done
done
exit $failed
