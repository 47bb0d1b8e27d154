#!/bin/sh
# test_timeline.sh - scripts/timeline.awk and the report's section of kernels, on a trace
# that is written here: 100 us of two cases, whose picture is known by hand. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

# The first case: 0 to 10 us, a part of it from 5 on, a kernel from 2 to 4.
cat >"$work/trace.json" <<'EOJ'
{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"host"}},
{"ph":"C","pid":2,"tid":0,"name":"memory in use, bytes","ts":0.000,"args":{"value":7}},
{"ph":"X","pid":1,"tid":0,"name":"one a<b \"q\"","ts":0.000,"dur":10.000},
{"ph":"X","pid":1,"tid":0,"name":"part","ts":5.000,"dur":5.000},
{"ph":"X","pid":2,"tid":8,"name":"k<1>","ts":2.000,"dur":2.000,"args":{"grid":"1 1 1"}},
{"ph":"X","pid":1,"tid":0,"name":"two","ts":90.000,"dur":10.000}
]}
EOJ
picture() { awk -f scripts/timeline.awk "$@" "$work/trace.json" >"$work/svg" 2>"$log"; }

# The axis begins at 110 and ends at 996: 88.6 a microsecond.
picture && [ "$(grep -c '<rect' "$work/svg")" -eq 3 ] &&
    grep -q '<title>part: 5.000 us</title><rect x="553.00" y="40" width="443.00"' "$work/svg" &&
    grep -q '<title>k&lt;1&gt;: 2.000 us</title><rect x="287.20" y="64" width="177.20"' "$work/svg" &&
    grep -q '>stream 7<' "$work/svg"
check $? "spans stand where their times say, a part below its range, the device below the host"
grep -q '<title>one a&lt;b "q"</title>' "$work/svg"
check $? "names are escaped"
picture -v want=2 && [ "$(grep -c '<rect' "$work/svg")" -eq 1 ] && grep -q '<title>two</title>' "$work/svg"
check $? "another case of the file"
picture -v want=3
[ $? -eq 2 ] && grep -q 'there is no case 3' "$log"
check $? "a case that is not there: status 2"
if command -v xmllint >/dev/null; then picture && xmllint --noout "$work/svg" 2>"$log"; check $? "XML"; else
    check 0 "XML" "no xmllint"
fi

if command -v gnuplot >/dev/null; then
    mkdir -p "$work/results/kernels"
    head -3 baselines/nvidia-h200/norm.csv >"$work/results/norm.csv"
    cp "$work/trace.json" "$work/results/kernels/norm.json"
    cat >"$work/results/kernels/norm.csv" <<'EOC'
kernels_schema,suite,case,variant,backend,dtype,params,campaign,kind,name,launches,total_us,mean_us,min_us,max_us,share,grid,block,registers,shared_bytes,occupancy,limit,waves,bytes,gb_per_s,tflop_per_s,span_us,busy_us,case_us,device,uuid,git
1,norm,one,a<b,cuda,f32,n=1,c,kernel,"k<1, 2>",2,30,15,15,15,0.75,8,256,40,0,0.5,registers,0.25,,,,40,40,44.5,,,
1,norm,one,a<b,cuda,f32,n=1,c,copy,host to device,1,10,10,10,10,0.25,,,,,,,,100,10,,40,40,44.5,,,
1,norm,two,,cuda,f32,,c,kernel,other,1,7,7,7,7,1,4,32,8,0,1,,0.01,,,,7,7,9,,,
EOC
    scripts/report.sh "$work/page.html" "$work/results" >"$log" 2>&1 &&
        grep -q '<summary>one a&lt;b f32 n=1: 40.00 us at work, timed 44.50</summary>' "$work/page.html" &&
        grep -q 'k&lt;1, 2&gt;</th><td data-label="us">30.00</td>.*75.0 %.*50.0 %.*registers.*0.25' "$work/page.html" &&
        [ "$(grep -c 'class="timeline"' "$work/page.html")" -eq 2 ] &&
        [ "$(grep -o '<details>' "$work/page.html" | wc -l)" -eq "$(grep -o '</details>' "$work/page.html" | wc -l)" ]
    check $? "the report has each case's kernels and timeline"
else
    check 0 "the report has each case's kernels and timeline" "no gnuplot"
fi

finish
