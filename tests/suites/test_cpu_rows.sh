#!/bin/sh
# test_cpu_rows.sh NORM - which processors and how many threads the CPU's rows run on, by the
# suite's program; and how many rows reached their precision, of files that are written here.
# As TAP lines.
set -u
norm=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

# suite ARGUMENTS...: the last column's words, "avx2, 2 threads", of the row of all threads.
suite() {
    rm -f "$work/rows.csv"
    "$norm" --device cpu --shape 'n=64 c=96' --dtype f32 --filter '^layernorm[.]forward threads ' \
        --mode hot --max-samples 1 --min-samples 1 --max-time 0.001 --quiet --csv "$work/rows.csv" "$@" >"$log" 2>&1
}
runs_on() { awk -f compare/csv.awk -f "$work/runs_on.awk" "$work/rows.csv"; }
echo '{ print value("runs_on") }' >"$work/runs_on.awk"
first=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status 2>/dev/null)

suite --threads 3 && runs_on | grep -q ', 3 threads$'
check $? "--threads is how many the rows of all threads run on"
if [ -n "$first" ]; then
    suite --cpu "$first" && runs_on | grep -q ', 1 threads$'
    check $? "--cpu leaves the processors that it names, and their number of threads"
    suite --cpu 65535
    [ $? -eq 2 ] && grep -q -- "--cpu '65535': this process may not run on all of them" "$log"
    check $? "--cpu of a processor that is not there is refused"
else
    check 0 "--cpu" "this system names no processors"
fi
for list in '' x 1- 2-1 '0,'; do
    suite --cpu "$list"
    [ $? -eq 2 ] && grep -q -- '--cpu' "$log"
    check $? "--cpu '$list' is refused by name"
done
for count in 0 -1 x 1025; do
    suite --threads "$count"
    [ $? -eq 2 ] && grep -q -- "--threads '$count'" "$log"
    check $? "--threads $count is refused by name"
done

precise() { awk -f compare/csv.awk -f scripts/precise.awk "$@" >"$log" 2>&1; }
{
    echo suite,status,flags
    echo norm,ok,stop=precision
    echo 'norm,ok,stop=max-time imprecise busy'
    echo 'norm,ok,stop=max-time imprecise'
    echo norm,failed,
} >"$work/norm.csv"
{
    echo flags,status,suite
    echo 'near-overhead throttle=quota,ok,loss'
} >"$work/loss.csv"
precise "$work/norm.csv" "$work/loss.csv" && [ "$(cat "$log")" = \
    "norm: 1 of 3 rows reached their precision (33 %); 1 on a busy or throttled machine
loss: 1 of 1 rows reached their precision (100 %); 1 on a busy or throttled machine
all: 2 of 4 rows reached their precision (50 %); 2 on a busy or throttled machine" ]
check $? "what reached its precision is counted by suite and in all, of rows with numbers"
sed '/,ok,/d' "$work/norm.csv" >"$work/none.csv"
precise "$work/none.csv"
[ $? -eq 2 ] && grep -q 'no row with numbers' "$log"
check $? "of no rows nothing is said"

finish
