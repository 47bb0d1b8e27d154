#!/bin/sh
# test_bounded.sh - files of hostile lines cost the compare tool a small multiple of their size:
# it ends with a report or a message although it may not have more, and never says that memory
# ran out. GPUBENCH_HOSTILE_MB=50 makes them so large (2). As TAP lines.
# Argument: the compare tool (build/gpubench-compare).
set -u
compare=$(realpath "${1:-build/gpubench-compare}")
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
size=$((${GPUBENCH_HOSTILE_MB:-2} * 1000000))
head='schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,flags,median_us,bytes,flops,overhead_us,device'

# bounded TIMES ARGUMENTS...: in so many times the size, and 32 MB for the program itself.
bounded() {
    limit=$(($1 * size / 1000 + 32000))
    shift
    (ulimit -v $limit && "$compare" "$@") >"$work/out" 2>"$log"
    status=$?
    [ $status -le 2 ] && ! grep -qi 'memory' "$log" "$work/out"
}
filled() { yes "$1" | tr -d '\n' | head -c "$size"; }

{ echo "$head"; filled x; } >"$work/line.csv"
{ echo "$head"; printf '"'; filled 'x""'; } >"$work/quoted.csv"
{ echo "$head"; filled ,; echo; } >"$work/fields.csv"
{ filled 'column,'; echo; } >"$work/header.csv"
awk -v size="$size" -v head="$head" 'BEGIN { print head; for (; size > 0; size -= length(line) + 1) {
    n++
    line = "2,s,c" n ",v" n ",cpu,f32,n=" n ",cold,c1,1,ok,,10,8,8,2,toy"
    print line } }' >"$work/cases.csv"
awk -v size="$size" 'BEGIN { print "kernels_schema,suite,case,variant,backend,dtype,params,kind,name,launches,total_us"
    for (; size > 0; size -= length(line) + 1) { n++; line = "1,s,c" n ",v,cuda,f32,n=1,kernel,k" n ",1,9"; print line } }' >"$work/kernels.csv"

for file in line quoted fields header; do
    bounded 4 --self "$work/$file.csv"
    check $? "one hostile line: $file (status $status)"
done
bounded 32 --history "$work/cases.csv"
check $? "as many cases as rows: their history (status $status)"
bounded 48 --ignore-device "$work/cases.csv" "$work/cases.csv"
check $? "as many cases as rows: both sides (status $status)"
for mode in --variants --cards --check; do
    bounded 32 $mode "$work/cases.csv"
    check $? "as many cases as rows: $mode (status $status)"
done
bounded 32 --kernels "$work/kernels.csv" "$work/kernels.csv"
check $? "as many cases as kernels (status $status)"

# A trace of one endless name, and one of many spans, as the page draws them.
{ printf '{"traceEvents":[\n{"ph":"X","pid":1,"tid":0,"ts":0,"dur":9,"name":"'; filled x; printf '"}\n]}\n'; } >"$work/name.json"
awk -v size="$size" 'BEGIN { print "{\"traceEvents\":["
    for (; size > 0; size -= length(line) + 1) {
        line = "{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":" n++ ",\"dur\":1,\"name\":\"k" n "\"},"
        print line }
    print "]}" }' >"$work/spans.json"
for trace in name spans; do
    (ulimit -v $((64 * size / 1000 + 32000)) && awk -f scripts/svg.awk -f scripts/timeline.awk "$work/$trace.json") >"$work/out" 2>"$log"
    status=$?
    { [ $status -eq 0 ] || [ $status -eq 2 ]; } && ! grep -qi 'memory' "$log"
    check $? "a trace's picture: $trace (status $status)"
done

# A bound that is too low is noticed.
bounded 1 --ignore-device "$work/cases.csv" "$work/cases.csv"
[ $? -ne 0 ]
check $? "the file's own size does not suffice"
finish
