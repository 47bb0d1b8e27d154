#!/bin/sh
# test_timeline.sh - scripts/timeline.awk, memory_plot.awk and kernel_roofline.awk and the
# report's sections of them, on files that are written here: a trace of 100 us of two cases,
# whose picture is known by hand, 3 and 1 MiB, and a kernel under a roof. As TAP lines.
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
picture() { awk -f scripts/svg.awk -f scripts/timeline.awk "$@" "$work/trace.json" >"$work/svg" 2>"$log"; }

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

awk 'BEGIN { for (i = 0; i < 400; i++) digits = digits "9"
    print "{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"name\":\"one\",\"ts\":0,\"dur\":" digits "}" }' >"$work/endless.json"
timeout 20 awk -f scripts/svg.awk -f scripts/timeline.awk "$work/endless.json" >"$work/svg" 2>"$log" &&
    grep -q '<title>one: 0.000 us</title>' "$work/svg"
check $? "a time of 400 digits is none, and the picture ends"

# 880 for 4 MiB; the second part comes at 50 of the 55 us that are shown.
cat >"$work/memory.csv" <<'EOM'
memory_schema,suite,case,variant,dtype,params,change,category,bytes,at_us
1,norm,one,a<b,f32,n=1,,inputs,3145728,0
1,norm,one,a<b,f32,n=1,,workspace,1048576,50
1,norm,one,a<b,f32,n=1,batch x2,inputs,2097152,
EOM
plot() { # plot SCRIPT ARGUMENTS...
    script=$1
    shift
    awk -f compare/csv.awk -f scripts/svg.awk -f "scripts/$script" "$@" >"$work/svg" 2>"$log"
}
plot memory_plot.awk "$work/memory.csv" &&
    grep -q '<rect x="10.00" y="[0-9]*" width="660.00".*inputs: 3.00 MiB.*<rect x="670.00" y="[0-9]*" width="220.00"' "$work/svg" &&
    grep -q 'one a&lt;b f32 n=1 if batch x2<' "$work/svg" && grep -q 'width="440.00"' "$work/svg"
check $? "memory: a bar for each case and change, cut by category"
plot memory_plot.awk -v over=time "$work/memory.csv" &&
    grep -q '<rect x="810.00" y="40.00" width="80.00" height="50.00".*workspace: 1.000 MiB from 50.0 us on' "$work/svg" &&
    ! grep -q '2.000 MiB' "$work/svg"
check $? "memory over the setup's time, as it is"
head -1 "$work/memory.csv" >"$work/none.csv"
plot memory_plot.awk "$work/none.csv"
[ $? -eq 2 ]
check $? "memory of no case: status 2"

# 10 operations a byte at 5 TFLOP/s, of 1 to 1000 upwards: log10(5) / 3 of 310 above 330.
cat >"$work/ceilings.csv" <<'EOR'
case,dtype,status,median_us,gb_per_s,tflop_per_s
bandwidth.copy,u8,ok,1,1000,
bandwidth.read,u8,failed,1,9000,
gemm.nn,f32,ok,1,1,100
EOR
cat >"$work/rates.csv" <<'EOR'
kernels_schema,case,variant,dtype,params,kind,name,gb_per_s,tflop_per_s
1,one,v,f32,n=1,kernel,k<1>,500,5
1,two,v,f32,n=1,kernel,of many,,
EOR
plot kernel_roofline.awk "$work/ceilings.csv" "$work/rates.csv" && [ "$(grep -c '<circle' "$work/svg")" -eq 1 ] &&
    grep -q '<circle cx="60.00" cy="257.77".*k&lt;1&gt; (one v f32 n=1): 5.00 TFLOP/s, 10.00 operations a byte' "$work/svg" &&
    grep -q 'd="M60.00 226.67L510.00 123.33H960"' "$work/svg" && grep -q 'f32: 100 TFLOP/s' "$work/svg"
check $? "kernels stand under the measured roof"

if command -v gnuplot >/dev/null; then
    mkdir -p "$work/results/kernels"
    head -3 baselines/nvidia-h200/norm.csv >"$work/results/norm.csv"
    cp "$work/trace.json" "$work/results/kernels/norm.json"
    cat >"$work/results/kernels/norm.csv" <<'EOC'
kernels_schema,suite,case,variant,backend,dtype,params,campaign,kind,name,launches,total_us,mean_us,min_us,max_us,share,grid,block,registers,shared_bytes,occupancy,limit,waves,bytes,gb_per_s,tflop_per_s,span_us,busy_us,case_us,device,uuid,git
1,norm,one,a<b,cuda,f32,n=1,c,kernel,"k<1, 2>",2,30,15,15,15,0.75,8,256,40,0,0.5,registers,0.25,,,,50,40,44.5,,,
1,norm,one,a<b,cuda,f32,n=1,c,copy,host to device,1,10,10,10,10,0.25,,,,,,,,100,10,,40,40,44.5,,,
1,norm,two,,cuda,f32,,c,kernel,other,1,7,7,7,7,1,4,32,8,0,1,,0.01,,,,7,7,9,,,
EOC
    cp "$work/memory.csv" "$work/results/kernels/norm.memory.csv"
    scripts/report.sh "$work/page.html" "$work/results" >"$log" 2>&1 &&
        grep -q '<summary>one a&lt;b f32 n=1: 40.00 us at work, 20 % idle, timed 44.50</summary>' "$work/page.html" &&
        grep -q 'k&lt;1, 2&gt;</th><td data-label="us">30.00</td>.*75.0 %.*50.0 %.*registers.*0.25' "$work/page.html" &&
        [ "$(grep -c 'class="timeline"' "$work/page.html")" -eq 4 ] && grep -q '<h3>memory</h3>' "$work/page.html" &&
        [ "$(grep -o '<details>' "$work/page.html" | wc -l)" -eq "$(grep -o '</details>' "$work/page.html" | wc -l)" ]
    check $? "the report has each case's kernels and timeline"
else
    check 0 "the report has each case's kernels and timeline" "no gnuplot"
fi

finish
