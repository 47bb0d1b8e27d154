#!/bin/sh
# nccl_tests.sh [GPUS] - nccl-tests and the collective suite beside each other, with the same
# NCCL in the same sitting, in one process with GPUS GPUs (default: all): all-reduce,
# all-gather and reduce-scatter of f32, in place and not, 8 bytes to 1 GiB. Prints for each
# size both times and bus bandwidths and ours over theirs, and how long each took.
# nccl-tests comes from GitHub at a fixed revision, or from NCCL_TESTS_SOURCES, a folder with
# nccl-tests in it. NCCL is that of NCCL_HOME, a folder with include/nccl.h and
# lib/libnccl.so.2 (or NCCL_INCLUDE, where the header is elsewhere). COLLECTIVE is the suite's
# program (build/cuda/collective), OURS its options (those that take about as many executions
# as nccl-tests do), ARCH the GPUs' architecture (90).
# Exit status: 0; 1 if one of the two failed; 2 if nothing could be tried.
set -u
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/../.." || exit 2
build=build/nccl-tests
given=${NCCL_TESTS_SOURCES:-}
. tests/peers/fetched.sh
gpus=${1:-$(nvidia-smi -L 2> /dev/null | grep -c '^GPU')}
collective=${COLLECTIVE:-build/cuda/collective}
ours=${OURS:---max-time 0.03 --precision 1}
nccl=${NCCL_HOME:-/usr}
arch=${ARCH:-90}
mkdir -p "$build/nccl/lib" "$build/nccl/include"
fetched NVIDIA/nccl-tests a0b82b2260cf5152b9f8c061bbf7eaf0ba096432 src/all_reduce.cu
[ -e "$nccl/lib/libnccl.so.2" ] || give_up "no lib/libnccl.so.2 in '$nccl': set NCCL_HOME"

# The linker wants a name without a number, which wheels do not have.
ln -sf "$(realpath "$nccl/lib/libnccl.so.2")" "$build/nccl/lib/libnccl.so.2"
ln -sf libnccl.so.2 "$build/nccl/lib/libnccl.so"
for file in "${NCCL_INCLUDE:-$nccl/include}"/nccl*; do
    ln -sf "$(realpath "$file")" "$build/nccl/include/"
done

here=$PWD/$build
rm -rf "$build/src" && cp -r "$sources/nccl-tests" "$build/src"
make -C "$build/src/src" -j"$(nproc)" BUILDDIR="$here/bin" NCCL_HOME="$here/nccl" \
    CUDA_HOME="${CUDA_HOME:-$(dirname "$(dirname "$(realpath "$nvcc")")")}" \
    NVCC_GENCODE="-gencode=arch=compute_$arch,code=sm_$arch" os.build \
    "$here/bin/all_reduce_perf" "$here/bin/all_gather_perf" "$here/bin/reduce_scatter_perf" \
    > "$build/log" 2>&1 ||
    { tail -20 "$build/log" >&2; give_up "nccl-tests does not compile"; }
[ "$gpus" -gt 0 ] || { echo 'not measured: no GPU here'; exit 0; }

export LD_LIBRARY_PATH="$here/nccl/lib:${LD_LIBRARY_PATH:-}" GPUBENCH_NCCL="$here/nccl/lib/libnccl.so.2"
now() { date +%s.%N; }
failed=0

# Theirs as CSV: operation, place, bytes, microseconds, GB/s of the bus.
began=$(now)
for operation in all_reduce all_gather reduce_scatter; do
    "$build/bin/${operation}_perf" -b 8 -e 1G -f 8 -g "$gpus" > "$build/$operation.log" 2>&1 || failed=1
    awk -v op=$operation '$1 ~ /^[0-9]+$/ && NF >= 13 {
        print op ",nccl," $1 "," $6 "," $8
        print op ",nccl_in_place," $1 "," $10 "," $12 }' "$build/$operation.log"
done > "$build/theirs.csv"
middle=$(now)

sizes=$(awk 'BEGIN { for (b = 8; b <= 2 ^ 30; b *= 8) printf "bytes=%d;", b }')
# shellcheck disable=SC2086 # words
"$collective" --ranks "$gpus" --shape "$sizes" --dtype f32 $ours --quiet --csv "$build/ours.csv" \
    --filter 'collective.(all_reduce|all_gather|reduce_scatter) ' || failed=1
ended=$(now)

awk -v theirs="$build/theirs.csv" -f compare/csv.awk -f tests/peers/nccl_tests.awk "$build/ours.csv"
echo "$began $middle $ended" |
    awk '{ printf "nccl-tests took %.1f s, the suite %.1f s\n", $2 - $1, $3 - $2 }'
exit $failed
