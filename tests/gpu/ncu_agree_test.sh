#!/bin/sh
# ncu_agree_test.sh - how ncu_agree.sh reads Nsight Compute and judges, with scripts in the
# place of ncu and of the program: no GPU needed. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
here=$PWD/tests/gpu
cd "$work" || exit 2

explain() { cat out; }

# The program hands out `ours`, the profiler `theirs`.
cat > program <<'EOS'
#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" = --kernels-csv ] && [ -e ours ] && cp ours "$2"
    shift
done
echo 'program: no device'
EOS
cat > ncu <<'EOS'
#!/bin/sh
echo "ncu $*" > calls
cat theirs
EOS
chmod +x program ncu

kernel() { # kernel NAME LAUNCHES TOTAL_US
    echo "1,truth,c,kernel,\"$1\",$2,$3" >> ours
}

profiled() { # profiled NAME NS
    echo "\"0\",\"$1\",\"(256, 1, 1)\",\"$2\"" >> theirs
}

begin() {
    echo 'kernels_schema,suite,case,kind,name,launches,total_us' > ours
    {
        echo '==PROF== Connected to process 4711 (/somewhere/truth)'
        echo '"ID","Kernel Name","Block Size","gpu__time_duration.sum"'
        echo '"","","","ns"'
    } > theirs
}

judge() {
    NCU=./ncu OUR_RUNS=2 NCU_RUNS=1 "$here/ncu_agree.sh" ./program --filter x > out 2>&1
    status=$?
}

line_of() { tr -s ' ' < out | grep -qxF -- "$1"; }

begin
kernel 'copy<64>' 1 741
kernel 'add<float, 4>' 2 20
kernel 'split_kernel<(int)2, cublasGemvParams<x> >' 1 5
echo '1,truth,c,memset,memset,1,3' >> ours
profiled 'void copy<(int)64>(float4 *, const float4 *)' '740,000.0'
profiled 'void <unnamed>::add<float, (int)4>(float *)' 9800
profiled 'gpubench_sweep' 7000
profiled 'void <unnamed>::add<float, (int)4>(float *)' 9900
profiled 'void split_kernel<(int)2, cublasGemvParams<x>>(T1)' 5000
judge
[ $status -eq 0 ] && line_of 'copy<64> 1 1 740.000 741.000 +1.000 +0.14% agrees' &&
    line_of 'add<float,4> 2 2 9.850 10.000 +0.150 +1.52% agrees' && grep -q ': of 3 kernels 3 ' out
check $? "names of both sides meet; launches are counted and their mean is compared"
grep -q -- '--cache-control none --clock-control none' calls && grep -q -- '--profile --quiet --filter x' calls
check $? "ncu leaves caches and clocks alone and is given the same arguments"

begin
kernel far 1 50.6
kernel often 2 20
kernel unseen 1 5
profiled 'far(int)' 50000
profiled 'often(int)' 10000
judge
[ $status -eq 1 ] && line_of 'far 1 1 50.000 50.600 +0.600 +1.20% apart' &&
    line_of 'often 1 2 10.000 10.000 +0.000 +0.00% OTHER LAUNCHES' && line_of 'unseen not seen by ncu' &&
    grep -q ': of 3 kernels 0 ' out
check $? "another time, another number of launches, a kernel that ncu has not: status 1"

printf '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n' > theirs
judge
[ $status -eq 2 ] && grep -q 'profiled nothing: ==ERROR== ERR_NVGPUCTRPERM' out
check $? "counters that may not be read: ncu's words"
rm ours
judge
[ $status -eq 2 ] && grep -q 'watched nothing: program: no device' out
check $? "no GPU: the program's words"
"$here/ncu_agree.sh" ./none > out 2>&1
[ $? -eq 2 ] && grep -q "no './none'" out
check $? "no program: status 2"

finish
