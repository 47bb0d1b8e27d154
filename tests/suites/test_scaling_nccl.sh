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

# 86,000 elements or so are less than a bucket of 1 MiB: one overlap of the model, and one of
# the block. Of each dtype weak steps on 1 and on 2 ranks, two variants.
measure --filter 'weak|overlap|block'
[ $? -eq 0 ] && [ "$(statuses)" = ' 24 ok ' ] && [ "$(column params | grep -c '^gpus=1 ')" -eq 4 ]
check $? "steps on one rank and on two, and what overlaps, leave what one rank leaves"

# A pass of rank 1 takes 20,500 us of simulated time and one of rank 0 500: at the sum that
# follows, rank 0 waits 20,000, rank 1 nothing, and both are in it for as long.
cat > "$work/shares.awk" << 'EOS'
function near(found, wanted, most) { return found >= wanted - most && found <= wanted + most }
record {
    n = split(value("counters"), word, /[ =]/)
    for (i = 1; i < n; i += 2) counted[word[i]] = word[i + 1]
    print near(counted["compute_us"], 10500, 20), near(counted["exposed_us"], 5, 20),
        near(counted["longest_wait_us"], 20000, 20),
        near(2 * counted["wait_us"], counted["longest_wait_us"], 1), counted["slowest_rank"]
}
EOS
FAKE_SLOW=1 measure --filter '(block|overlap) serial f32'
[ $? -eq 0 ] && [ "$(statuses)" = ' 2 ok ' ] &&
    [ "$(awk -f compare/csv.awk -f "$work/shares.awk" "$rows" | sort -u)" = '1 1 1 1 1' ]
check $? "a rank that computes longer is named, with what the other waits for it"

# The substitute's sums take 5 us of simulated time, and what else is on their streams a few; or a
# second. The host enqueues each at once, or in a millisecond.
paced() { column flags | grep -c host-paced; }
between() { column median_us | awk '!($1 >= '"$1"' && $1 <= '"$2"') { wrong = 1 } END { exit wrong || NR == 0 }'; }
# A sum and its join are four entries of the substitute's queue.
FAKE_GPUS=1 FAKE_QUEUE=450 measure --filter 'overlap reduce f32'
[ "$(statuses)" = ' 1 ok ' ] && [ "$(paced)" -eq 0 ] && between 5 13 && [ "$(column batch)" -gt 112 ]
check $? "a batch of more sums than a GPU's queue has room for"
FAKE_NCCL=late measure --filter 'overlap reduce f32'
[ "$(statuses)" = ' 1 ok ' ] && [ "$(paced)" -eq 0 ] && between 5 13
check $? "what the host takes to enqueue sums is not in their time"
FAKE_GPUS=1 FAKE_NCCL='late waiting' measure --filter 'overlap reduce f32'
[ "$(statuses)" = ' 1 ok ' ] && [ "$(paced)" -eq 1 ]
check $? "sums of a library that waits for the device are the host's time, and flagged"
FAKE_NCCL=late measure --filter 'overlap serial f32'
[ "$(statuses)" = ' 1 ok ' ] && [ "$(paced)" -eq 1 ]
check $? "so are passes that the host enqueues more slowly than they run, which nothing holds"
FAKE_NCCL=longest measure --filter 'overlap (reduce|serial|overlapped) f32'
[ "$(statuses)" = ' 3 ok ' ] && [ "$(paced)" -eq 0 ]
check $? "times of GPUs that the host is ahead of are not"
FAKE_NCCL=apart measure --filter 'overlap (reduce|serial|overlapped) f32'
[ "$(statuses)" = ' 3 ok ' ] && between 5 510
check $? "what a rank begins later than the other is in no time"

FAKE_NCCL=wrong measure --filter '(strong|overlap|block).* f32 gpus=2'
[ $? -eq 1 ] && [ "$(statuses)" = ' 10 mismatch ' ]
check $? "sums with one wrong element on rank 1 show in every case"

FAKE_NCCL=failing measure --filter 'weak.* f32 gpus=2'
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed 1 skipped ' ] && grep -q 'all_reduce: internal error' "$log"
check $? "an error of NCCL's is told in its words, and the case beside it says why it is not there"

FAKE_NCCL=absent measure --filter 'weak.* f32 gpus=2' --timeout 2
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed 1 skipped ' ] &&
    grep -q 'replicated.*training not finished after 1.8 s (--timeout): not done on rank' "$log"
check $? "a rank that takes no part is named within --timeout"

GPUBENCH_NCCL=/nowhere measure --filter 'weak.* f32 gpus=2'
[ "$(statuses)" = ' 2 unsupported ' ] && grep -q 'no NCCL' "$log"
check $? "without NCCL the rows are unsupported"
finish
