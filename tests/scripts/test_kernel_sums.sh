#!/bin/sh
# test_kernel_sums.sh - scripts/kernel_sums.awk on files that are written here. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

head='kernels_schema,suite,case,variant,dtype,params,kind,name,launches,total_us,own_us'
sums() { awk -f compare/csv.awk -f scripts/kernel_sums.awk "$@" >"$log" 2>&1; }

# One kernel each: 0.9 us off of 10, 1.9 % off of 100, and an own time that is not known;
# two kernels that take 30 of 40 us.
cat >"$work/good.csv" <<EOC
$head
1,norm,short,a,f32,n=1,kernel,k,1,10.9,10
1,norm,long,a,f32,n=1,kernel,"k<1, 2>",1,101.9,100
1,norm,unknown,a,f32,n=1,kernel,k,1,5,
1,ffn,two,a,f32,n=1,kernel,k,1,20,40
1,ffn,two,a,f32,n=1,kernel,l,1,10,40
EOC
sums "$work/good.csv" && grep -q '^norm  *2  *2  *0  *0 .*(1 without' "$log" &&
    grep -q '^ffn  *0  *0  *0  *1  *0.75 to 0.75$' "$log" && grep -q ': 2 of 2 cases' "$log"
check $? "2 % or 1 us is within; of several kernels the sum is told"

# 1.1 us of 10 and 2.1 us of 100 are too much; two launches of one kernel are several.
cat >"$work/bad.csv" <<EOC
$head
1,norm,short,a,f32,n=1,kernel,k,1,11.1,10
1,norm,long,a,f32,n=1,copy,k,1,97.9,100
1,norm,twice,a,f32,n=1,kernel,k,2,97.9,100
EOC
sums "$work/bad.csv"
[ $? -eq 1 ] && grep -q '^norm  *2  *0  *2  *1 ' "$log" &&
    grep -q '^norm: short a f32 n=1: 11.10 us, timed 10.00 (+1.10 us, +11.0 %)$' "$log" &&
    grep -q '^norm: long a f32 n=1: 97.90 us, timed 100.00 (-2.10 us, -2.1 %)$' "$log"
check $? "what is farther off is named: status 1"

printf '%s\n1,norm,one,a,f32,n=1,range,run,1,10,\n' "$head" >"$work/host.csv"
sums "$work/host.csv"
[ $? -eq 2 ] && grep -q 'measured on the CPU' "$log"
check $? "ranges of the CPU are refused: status 2"
printf '%s\n' "$head" >"$work/empty.csv"
sums "$work/empty.csv"
[ $? -eq 2 ] && grep -q 'no case' "$log"
check $? "no case: status 2"

finish
