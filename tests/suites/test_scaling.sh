#!/bin/sh
# test_scaling.sh SCALING BAD_MPI - the scaling suite as processes of a job, on the CPU: what
# steps of 1 to 3 ranks leave is one rank's, memory is what was counted by hand, and sums
# that are wrong show. BAD_MPI is the library of tests/fixtures/bad_mpi.c. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
quick='--quiet --max-time 0.01 --max-samples 4'
. tests/suites/mpi.sh

# Two dtypes: weak and, where ranks divide the batch of 4, strong steps, each replicated and
# sharded; of the model's overlap three sizes of buckets and of the block's two, each four ways.
measure 1 --dtype f32
[ $? -eq 0 ] && [ "$(statuses)" = ' 24 ok ' ]
check $? "steps and overlaps of 1 rank leave what one rank leaves"
measure 2
[ $? -eq 0 ] && [ "$(statuses)" = ' 48 ok ' ]
check $? "steps and overlaps of 2 ranks leave what one rank leaves"
cp "$rows" "$work/two.csv"

# Three layers have 1,456 times 128 elements, which 3 ranks do not divide: 128 are left.
measure 3 --shape 'b=2 t=9 d=64 h=2 ff=256 l=3 v=250' --filter 'weak|overlapped'
[ $? -eq 0 ] && [ "$(statuses)" = ' 14 ok ' ]
check $? "3 ranks, which do not divide the batch or the parameters"

# 135,936 elements, by hand: 16,384 and 2,048 of the tables, twice 50,432 of a layer, 256 of
# the norm, 16,384 of the head, tensors of 64 and 192 padded by 64. Of 2 ranks each has half:
# 8 bytes of moments, and in bf16 4 of a master weight.
echo 'value("case") == "scaling.weak" { split(value("counters"), word, /[= ]/)
    for (i in word) if (word[i] == "rank_bytes") bytes[value("variant") value("dtype")] = word[i + 1] }
    END { print bytes["replicatedf32"] - bytes["shardedf32"], bytes["replicatedbf16"] - bytes["shardedbf16"] }' \
    > "$work/saved.awk"
[ "$(awk -f compare/csv.awk -f "$work/saved.awk" "$work/two.csv")" = '543744 815616' ]
check $? "what a sharded state saves of a rank's memory"

export BAD_RANK=1
few='(weak|overlap|block).* f32'
LD_PRELOAD=$PWD/$bad BAD_MPI=wrong measure 2 --filter "$few"
[ $? -eq 1 ] && [ "$(column variant | sort -u | tr '\n' ' ')" = 'backward overlapped reduce replicated serial sharded ' ] &&
    [ "$(statuses)" = ' 22 mismatch ' ] && grep -q "the gradient differs by .* from one rank's" "$log" &&
    grep -q "the update differs by .* from one rank's" "$log"
check $? "sums with one wrong element show in every case"

LD_PRELOAD=$PWD/$bad BAD_MPI=late measure 2 --filter 'weak replicated f32' --timeout 5
[ $? -ne 0 ] && grep -q 'training not finished after 4.5 s (--timeout)' "$log" && [ "$(column status)" = failed ]
check $? "a rank that is late ends the run in time"

# All-reduce 3 us, backward pass 2 us: overlapped in 3.5 us hides 1.5 of 2, in 5.5 us nothing.
table() { awk -f compare/csv.awk -f compare/numbers.awk -f "scripts/tables/$1" "$work/table.csv" | tail -n +4; }
{
    echo case,variant,dtype,params,status,median_us,counters
    for took in 3.5 5.5 2.8; do
        for one in reduce,3 backward,2 serial,5 overlapped,$took; do
            echo "scaling.overlap,${one%,*},f32,gpus=2 bucket=$took,ok,${one#*,},longest_wait_us=0.25 slowest_rank=1"
        done
    done
    echo 'scaling.block,reduce,f32,gpus=2 bucket=all,ok,3,longest_wait_us=0.25'
    echo 'scaling.strong,sharded,f32,gpus=2 b=4,ok,1,tokens/s=150 rank_bytes=2000000 compute_us=60 exposed_us=10 wait_us=30 slowest_rank=1'
    echo 'scaling.strong,sharded,f32,gpus=1 b=4,ok,1,tokens/s=100 rank_bytes=3000000 compute_us=99 exposed_us=1'
    echo 'scaling.strong,sharded,f32,gpus=2 b=8,ok,1,tokens/s=150 rank_bytes=2000000'
} > "$work/table.csv"
[ "$(table scaling_overlap.awk | sed 's/.*5.00 | //')" = '3.50 | 75 % | 0.25 |
5.50 | -25 % | 0.25 |
2.80 | 110 %, cannot judge | 0.25 |
| block | f32 | gpus=2 bucket=all | 3.00 |  |  |  |  |  |' ]
check $? "the table of what is hidden, which may be less than nothing"
[ "$(table scaling_steps.awk | sed 's/.*f32 | //')" = 'b=4 | 2 | 150 | 75.0 % | 2.0 | 60.0 % | 10.0 % | 30.0 % for rank 1 |
b=4 | 1 | 100 | 100.0 % | 3.0 | 99.0 % | 1.0 % | 0.0 % |
b=8 | 2 | 150 | - | 2.0 |  |  |  |' ]
check $? "the table of efficiencies, against one rank at the same shape, and of a step's shares"

measure 2 --shape 'b=1 t=9 d=63 h=2 ff=256 l=1 v=250'
[ $? -eq 2 ] && [ "$(grep -c 'h must divide d' "$log")" -eq 1 ]
check $? "bad usage is said once"
finish
