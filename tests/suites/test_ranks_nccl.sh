#!/bin/sh
# test_ranks_nccl.sh COLLECTIVE SCALING NCCL - suites of several ranks as processes that MPI
# starts, each with a GPU, on substitutes for the CUDA runtime and for NCCL, whose identifier
# MPI hands on: which GPUs they take, and ranks that are killed, stopped, absent or out of
# memory. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
program=$1
scaling=$2
export GPUBENCH_NCCL="$PWD/$3" FAKE_NCCL=long TMPDIR="$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1
quick='--quiet --max-time 0.01 --max-samples 4'
rows=$work/rows.csv

if ! command -v mpirun > /dev/null; then
    check 0 "ranks with a GPU each under mpirun" "no MPI here"
    finish
fi

# measure RANKS OPTION...: into $rows; what is said goes to $log.
measure() {
    ranks=$1
    shift
    rm -f "$rows"
    # shellcheck disable=SC2086 # words
    timeout 120 mpirun -np "$ranks" "$program" $quick --csv "$rows" "$@" > "$log" 2>&1
}

echo 'record { print value(wanted) }' > "$work/column.awk"
column() { awk -v wanted="$1" -f compare/csv.awk -f "$work/column.awk" "$rows"; }
statuses() { column status | sort | uniq -c | tr -s ' \n' ' '; }

measure 2 --shape bytes=4006 --dtype f32 --mode hot,graph
[ $? -eq 0 ] && [ "$(statuses)" = ' 20 ok ' ] && ! column flags | grep -q isolated &&
    [ "$(column runs_on | sort -u)" = 'NCCL 2.23.4, 2 ranks on 1 host' ]
check $? "every operation on two processes, in graphs too"

few='all_(reduce|gather) nccl f32'
FAKE_GPUS=3 measure 3 --shape bytes=30 --filter "$few"
[ $? -eq 0 ] && [ "$(statuses)" = ' 2 ok ' ]
check $? "three processes, at a count that they do not divide"

# ---- which GPU is whose ----

FAKE_GPUS=own measure 2 --shape bytes=64 --filter "$few"
[ $? -eq 0 ] && [ "$(statuses)" = ' 2 ok ' ] && [ "$(column flags | grep -c isolated)" -eq 2 ]
check $? "processes that see their own GPU only are flagged"

FAKE_GPUS=1 measure 2 --shape bytes=64 --filter "$few"
[ "$(statuses)" = ' 2 unsupported ' ] && grep -q 'rank 0 and rank 1 have one GPU, 0000:01:00.0' "$log"
check $? "two processes with one GPU are refused by name"

# One machine as two nodes: what NCCL_HOSTID tells NCCL, the ranks hear too.
rm -f "$rows"
# shellcheck disable=SC2086,SC2016 # words, of which the rank's shell expands one
FAKE_GPUS=1 timeout 120 mpirun -np 2 sh -c 'NCCL_HOSTID=$OMPI_COMM_WORLD_RANK exec "$@"' sh \
    "$program" $quick --csv "$rows" --shape bytes=64 --filter "$few" > "$log" 2>&1
[ $? -eq 0 ] && [ "$(statuses)" = ' 2 ok ' ] && ! column flags | grep -q isolated &&
    [ "$(column runs_on | sort -u)" = 'NCCL 2.23.4, 2 ranks on 2 hosts' ]
check $? "two sets of processes of one machine are two hosts"

# ---- what goes wrong ----

measure 2 --shape 'bytes=64;bytes=700000000' --filter 'all_reduce nccl f32'
[ $? -eq 1 ] && [ "$(column status | sort | tr '\n' ' ')" = 'ok oom ' ] &&
    grep -q 'oom: .*rank [01]: no 1400.* bytes of its GPU.s memory' "$log"
check $? "a rank without memory is named, and the other case is measured"

FAKE_NCCL='long absent broken' measure 2 --shape bytes=64 --filter 'all_gather nccl f32' --timeout 60
[ $? -ne 0 ] && [ "$(statuses)" = ' 1 failed ' ] && grep -q 'all_gather.*NCCL: internal error' "$log"
check $? "an asynchronous error ends the wait of all"

FAKE_NCCL='long alone' measure 2 --shape bytes=64 --filter 'broadcast nccl f32' --timeout 5
[ $? -ne 0 ] && [ "$(statuses)" = ' 1 failed ' ] && grep -q 'communicators not finished after 4.5 s' "$log"
check $? "a rank that does not come when communicators are made"

# hit SIGNAL: to rank 1, once three rows are there. What is left behind must be an end in
# time and a file of whole rows.
hit() {
    rm -f "$rows" "$work/pids"
    # shellcheck disable=SC2016 # of the shell that mpirun starts
    mpirun -np 2 sh -c 'echo "$OMPI_COMM_WORLD_RANK $$" >> "$0"; exec "$@"' "$work/pids" \
        "$program" --quiet --max-time 0.05 --csv "$rows" --timeout 5 --dtype f32 \
        --shape 'bytes=64;bytes=4096;bytes=65536' > "$log" 2>&1 &
    job=$!
    until [ -e "$rows" ] && [ "$(wc -l < "$rows")" -ge 4 ]; do
        kill -0 $job 2> /dev/null || return 1
        sleep 0.1
    done
    kill -"$1" "$(sed -n 's/^1 //p' "$work/pids")"
    began=$(date +%s)
    wait $job
    [ $? -ne 0 ] && [ $(($(date +%s) - began)) -le 30 ] && [ "$(column status | grep -c '^ok$')" -ge 3 ]
}

hit KILL && grep -qa 'process rank 1\|proc-aborted' "$log" # Ubuntu's Open MPI 5 has lost the text
check $? "a rank that is killed: rows are kept, it is named, all end"
hit STOP && grep -q 'rank 1 is silent' "$log" && [ "$(column status | grep -c failed)" -eq 1 ]
check $? "a rank that is stopped: rows are kept, it is named, all end"

# ---- a training step ----

program=$scaling
measure 2 --shape 'b=2 t=9 d=64 h=2 ff=256 l=1 v=250' --filter '(weak|block).* f32'
[ $? -eq 0 ] && [ "$(statuses)" = ' 6 ok ' ] && [ "$(column params | grep -c '^gpus=2 ')" -eq 6 ] &&
    [ "$(column counters | grep -c 'compute_us=[1-9].* slowest_rank=[01]$')" -eq 6 ]
check $? "steps and a block's overlap of two processes"
finish
