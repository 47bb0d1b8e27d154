#!/bin/sh
# test_collective_nccl.sh COLLECTIVE NCCL - the collective suite as one process with two
# GPUs, on substitutes for the CUDA runtime and for NCCL, which FAKE_NCCL scripts: each
# operation, in graphs too, and libraries that are old, absent, wrong or stuck. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
. tests/suites/ranks.sh
export GPUBENCH_NCCL="$PWD/$2"

# measure OPTION...: into $rows; what is said goes to $log.
measure() {
    rm -f "$rows"
    timeout 120 "$program" --quiet --max-time 0.01 --max-samples 6 --csv "$rows" "$@" > "$log" 2>&1
}

measure --shape 'bytes=4006;bytes=6' --mode hot,graph
[ $? -eq 0 ] && [ "$(statuses)" = ' 80 ok ' ] && [ "$(column mode | grep -c graph)" -eq 40 ]
check $? "every operation on two ranks, at odd counts, in graphs too"

[ "$(column runs_on | sort -u)" = 'NCCL 2.23.4, 2 ranks on 1 host' ]
check $? "rows name NCCL's version and the ranks"

# An operation of the substitute takes 5 us of simulated time, and what else is on its
# stream a few.
awk -v wanted=min_us -f compare/csv.awk -f "$work/column.awk" "$rows" |
    awk '$1 < 5 || $1 > 13 { wrong = 1 } END { exit wrong || NR != 80 }'
check $? "times are those of the streams' events"

FAKE_GRAPHS=28 measure --shape bytes=64 --mode graph --filter 'all_reduce nccl f32'
[ "$(statuses)" = ' 1 ok ' ] && [ "$(column batch)" -gt 28 ]
check $? "a batch of more graphs than a stream's queue holds"

FAKE_NCCL=late measure --shape bytes=64 --filter "all_reduce nccl f32"
[ "$(statuses)" = ' 1 ok ' ] && [ "$(column flags | grep -c host-paced)" -eq 0 ]
check $? "what the host takes to enqueue a batch is not in its time"

FAKE_NCCL='late waiting' measure --shape bytes=64 --filter "all_reduce nccl f32"
[ "$(statuses)" = ' 1 ok ' ] && [ "$(column flags | grep -c host-paced)" -eq 1 ]
check $? "a library that waits for the device is not held, and times that are the host's are flagged"

FAKE_NCCL=longest measure --shape bytes=64 --filter "all_reduce nccl f32"
[ "$(statuses)" = ' 1 ok ' ] && [ "$(column flags | grep -c host-paced)" -eq 0 ]
check $? "times of GPUs that the host is ahead of are not"

FAKE_GPUS=1 measure --shape bytes=64
[ $? -eq 0 ] && [ "$(statuses)" = ' 12 ok 8 unsupported ' ] && [ "$(column flags | grep -c one-rank)" -eq 12 ]
check $? "one GPU is a communicator of one rank, which has nothing to do in place"

NCCL_NVLS_ENABLE=0 measure --shape bytes=64 --filter broadcast
column runs_on | grep -q 'host, NCCL_NVLS_ENABLE=0$'
check $? "multicast that is switched off is in the rows"

few='all_(reduce|gather) nccl f32'
measure --shape bytes=64 --filter "$few" --ranks 3
[ "$(statuses)" = ' 2 unsupported ' ] && grep -q '2 GPUs are visible to the 3 ranks' "$log"
check $? "more ranks than GPUs are unsupported"

FAKE_NCCL=old measure --shape bytes=64 --filter "$few"
[ "$(statuses)" = ' 2 unsupported ' ] && grep -q 'NCCL 2.8.4 of .*libfake_nccl.so is too old' "$log"
check $? "an old NCCL is named with version and path"

echo 'int ncclGetVersion(int *v) { *v = 22304; return 0; }' > "$work/stub.c"
${CC:-cc} -shared -fPIC -o "$work/libstub.so" "$work/stub.c"
GPUBENCH_NCCL=/nowhere measure --shape bytes=64 --filter "$few" --nccl "$work/libstub.so"
[ "$(statuses)" = ' 2 unsupported ' ] && grep -q 'NCCL 2.23.4 of .*libstub.so has no nccl' "$log"
check $? "a library that lacks functions says which, with version and path"

GPUBENCH_NCCL=/nowhere measure --shape bytes=64 --filter "$few"
[ "$(statuses)" = ' 2 unsupported ' ] && grep -q 'no NCCL (GPUBENCH_NCCL or --nccl names it): /nowhere' "$log"
check $? "without NCCL the rows are unsupported"

FAKE_NCCL=absent measure --shape bytes=64 --filter "$few" --timeout 2
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed 1 ok ' ] &&
    grep -q 'all_gather.*not done on rank 0; done, and so perhaps not in it, on rank 1' "$log"
check $? "a rank that takes no part is named within --timeout, and the rest is measured"

FAKE_NCCL='absent broken' measure --shape bytes=64 --filter "$few" --timeout 50
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed 1 ok ' ] && grep -q 'all_gather.*NCCL: internal error' "$log"
check $? "an error that NCCL notes meanwhile ends the wait"

FAKE_NCCL=wrong measure --shape bytes=64 --filter "$few"
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 mismatch 1 ok ' ] && grep -q 'rank 1: element 1 of 16' "$log"
check $? "a wrong result names the rank and the element"

FAKE_NCCL=failing measure --shape bytes=64 --filter "$few"
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed 1 ok ' ] && grep -q 'all_reduce: internal error' "$log"
check $? "an error of NCCL's is told in its words, and the rest is measured"

FAKE_NCCL=absent measure --shape bytes=64 --filter 'all_gather nccl f32' --timeout 2 --ranks 2 --mode graph
[ $? -eq 1 ] && [ "$(statuses)" = ' 1 failed ' ]
check $? "a graph that hangs ends too"

# Of two rows in whole numbers: half the time, and 5 of 4 GB/s.
printf '%s\n' 'case,variant,params,status,flags,median_us,counters' \
    'collective.all_reduce,nccl,n=2 bytes=64,ok,,10,busB/s=5e9' \
    'collective.all_gather,nccl,n=2 bytes=64,failed,reason=x,,' > "$work/ours.csv"
echo 'all_reduce,nccl,64,20.0,4.0' > "$work/theirs.csv"
awk -v theirs="$work/theirs.csv" -f compare/csv.awk -f tests/peers/nccl_tests.awk "$work/ours.csv" > "$log"
[ "$(tr -s ' ' < "$log" | sed 1d)" = 'all_reduce nccl 64 20.00 10.00 0.500 4.00 5.00 1.250
all_gather nccl 64: failed reason=x' ]
check $? "the table beside nccl-tests"

measure --shape bytes=64 --ranks 0
[ $? -eq 2 ] && grep -q -e "--ranks '0': wants 1 to 64" "$log"
check $? "bad usage"
finish
