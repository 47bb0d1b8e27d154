#!/bin/sh
# test_memory.sh MODEL - scripts/memory_changes.awk on files that are written here and on what
# MODEL, the model suite, says of itself. As TAP lines.
set -u
model=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

head='memory_schema,suite,case,variant,dtype,params,change,category,bytes,device_bytes'
changes() { awk -f compare/csv.awk -f scripts/memory_changes.awk "$@" >"$log" 2>&1; }

write() { # write FILE TAKEN: a case with b=2, what 4 would take, and the case with 4
    cat >"$1" <<EOC
$head
1,m,step,v,f32,size=s b=2 t=8,,weights,1000,9000
1,m,step,v,f32,size=s b=2 t=8,batch x2,weights,1000,9000
1,m,step,v,f32,size=s b=2 t=8,batch x2,states,600000,9000
1,m,step,v,f32,size=s b=2 t=8,batch x2,states,200000,9000
1,m,step,v,f32,size=s b=2 t=8,context x2,states,5,9000
1,m,step,v,f32,size=given b=4 t=8,,weights,1000,9500
1,m,step,v,f32,size=given b=4 t=8,,states,$2,9500
EOC
}

write "$work/m.csv" 800000
changes "$work/m.csv" && grep -q '^  weights  *1000  *1000$' "$log" &&
    grep -q '^  states  *800000  *800000$' "$log" && grep -q '^  all  *801000  *801000  (setup took 9500)$' "$log" &&
    [ "$(grep -c 'batch x2' "$log")" -eq 1 ] && ! grep -q 'context' "$log"
check $? "what was computed stands beside what was taken; what was not measured is left out"
write "$work/m.csv" 809000
changes "$work/m.csv"
[ $? -eq 1 ] && grep -q '^  states  *800000  *809000  apart$' "$log"
check $? "more than 1 % apart: status 1"
sed 's/b=4/b=5/' "$work/m.csv" >"$work/other.csv"
changes "$work/other.csv"
[ $? -eq 2 ] && grep -q 'no case here' "$log"
check $? "nothing to compare: status 2"

# Of 2 x 5 tokens and their targets: 2 * 10 * 4 bytes, and a gradient of 4 bytes a row; with
# twice as many, twice that. AdamW has two moments of each f32 parameter.
shape='d=24 h=3 ff=32 l=2 v=17 tied=1'
"$model" --device cpu --filter '^model\.step (unfused|recompute) f32' --mode hot --quiet --max-time 0.01 --memory-csv "$work/model.csv" \
    --shape "b=2 t=5 $shape; b=4 t=5 $shape; b=2 t=10 $shape" >"$log" 2>&1 && changes "$work/model.csv" &&
    [ "$(grep -c 'batch x2: model' "$log")" -eq 2 ] && [ "$(grep -c 'context x2: model' "$log")" -eq 2 ]
check $? "a model's doubled batch and context take what was computed"
awk -v needs=category -f compare/csv.awk -f /dev/stdin "$work/model.csv" >"$log" 2>&1 <<'EOA'
value("change") == "" && value("params") ~ /b=2 t=5 / && value("variant") == "unfused" { sum[value("category")] += value("bytes") }
value("change") == "" && value("params") ~ /b=4 t=5 / && value("variant") == "unfused" { more[value("category")] += value("bytes") }
END { exit !(more["inputs"] - sum["inputs"] == 3 * 4 * 10 && sum["gradients"] == sum["parameters"] &&
             sum["optimizer"] == 2 * sum["parameters"] && sum["parameters"] > 0) }
EOA
check $? "by category as counted by hand"

finish
