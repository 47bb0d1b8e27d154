#!/bin/sh
# test_scaling_nccl.sh SCALING NCCL - the scaling suite as one process with two GPUs, on
# substitutes for the CUDA runtime, for NCCL and for the model's kernels: a thread and two
# streams for each rank, and ranks that fail. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
. tests/suites/ranks.sh
export GPUBENCH_NCCL="$PWD/$2"

# measure OPTION...: into $rows; what is said goes to $log.
measure() {
    rm -f "$rows"
    timeout 120 "$program" --quiet --max-time 0.01 --max-samples 4 --csv "$rows" \
        --shape 'b=2 t=9 d=64 h=2 ff=256 l=1 v=250' "$@" > "$log" 2>&1
}

# 86,000 elements or so are less than a bucket of 1 MiB: one overlap. Of each dtype weak and
# strong steps on 1 and on 2 ranks, two variants.
measure
[ $? -eq 0 ] && [ "$(statuses)" = ' 24 ok ' ] && [ "$(column params | grep -c '^gpus=1 ')" -eq 8 ]
check $? "steps on one rank and on two, and what overlaps, leave what one rank leaves"

FAKE_NCCL=wrong measure --filter 'gpus=2.*|overlap'
[ $? -eq 1 ] && [ "$(statuses)" = ' 16 mismatch ' ]
check $? "sums with one wrong element on rank 1 show in every case"

FAKE_NCCL=failing measure --filter 'weak.* f32 gpus=2'
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed 1 skipped ' ] && grep -q 'all_reduce: internal error' "$log"
check $? "an error of NCCL's is told in its words, and the case beside it says why it is not there"

FAKE_NCCL=absent measure --filter 'weak.* f32 gpus=2' --timeout 2
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed 1 skipped ' ] &&
    grep -q 'sharded.*training not finished after 1.8 s (--timeout): not done on rank' "$log"
check $? "a rank that takes no part is named within --timeout"

GPUBENCH_NCCL=/nowhere measure --filter 'weak.* f32 gpus=2'
[ "$(statuses)" = ' 2 unsupported ' ] && grep -q 'no NCCL' "$log"
check $? "without NCCL the rows are unsupported"
finish
