#!/bin/sh
# truth_test.sh - how truth.sh reads Nsight Compute and judges, with scripts in the
# place of ncu and of the program: no GPU needed. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
here=$PWD/tests/gpu
cd "$work" || exit 2

explain() { cat out; }

# The program hands out `rows` and the profiler `ncu_1`, `ncu_2`, ... by the seed.
cat > program <<'EOS'
#!/bin/sh
echo "$*" >> calls
while [ $# -gt 0 ]; do
    [ "$1" = --csv ] && [ -e rows ] && cp rows "$2"
    shift
done
echo 'program: no device'
EOS
cat > ncu <<'EOS'
#!/bin/sh
echo "ncu $*" >> calls
for seed; do :; done
cat "ncu_$seed"
EOS
chmod +x program ncu

judge() { # judge RUNS [ARGUMENTS...]
    runs=$1
    shift
    : > calls
    NCU=./ncu NCU_RUNS=$runs "$here/truth.sh" ./program "$@" > out 2>&1
    status=$?
}

line_of() { # line_of TEXT: blanks as one
    tr -s ' ' < out | grep -qxF -- "$1"
}

row() { # row CASE PARAMS MEDIAN OVERHEAD [STATUS]
    echo "2,truth,$1,,cuda,,$2,cold,sitting,1,${5:-ok},\"a,b \"\"c\"\"\",$3,$4" >> rows
}

start_rows() {
    echo schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,flags,median_us,overhead_us > rows
}

start_ncu() { # start_ncu FILE UNIT
    {
        echo '==PROF== Connected to process 4711 (/somewhere/truth)'
        echo '==PROF== Profiling "truth_empty" - 0: 0%....50%....100% - 1 pass'
        echo '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum"'
        echo "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"$2\""
    } > "$1"
}

kernel() { # kernel FILE NAME DURATION
    echo "\"3\",\"4711\",\"a \"\"truth\"\"\",\"127.0.0.1\",\"void $2\",\"1\",\"7\",\"(256, 1, 1)\",\"(1,056, 1, 1)\",\"0\",\"9.0\",\"$3\"" >> "$1"
    echo '==PROF== Profiling "truth_copy": 0%....50%....100% - 1 pass' >> "$1"
}

# ---- what ncu prints, and medians over files

start_rows
row empty '' 3.2 3.1
row copy kib=64 752.36 3.1
row copy kib=64 750.36 3.3
row chain steps=4 5 3.1
i=0
for duration in 2,400 2,200 2,300; do
    i=$((i + 1))
    start_ncu ncu_$i ns
    kernel ncu_$i 'truth_empty<(int)0>()' $duration
    kernel ncu_$i 'truth_copy<(int)64>(float4 *, const float4 *)' "$((739 + i)),480.0"
    kernel ncu_$i 'truth_chain<4>(const unsigned int *, unsigned int *)' "1,2${i}0,704"
    kernel ncu_$i 'flush_of_somebody<(int)9>(char *)' "7"
    echo '==PROF== Disconnected from process 4711' >> ncu_$i
done
judge 3
line_of 'empty 2.300 3.200 3.100 2.400 +0.100 +4.35% agrees'
check $? "thousands are read, and the median of three files is taken"
# 749.26 and 747.06 without their overheads: 748.16 and the empty kernel's 2.3.
line_of 'copy kib=64 741.480 751.360 3.200 750.460 +8.980 +1.21% apart'
check $? "template arguments and commas in a name; a row's own overhead is taken out"
line_of 'chain steps=4 1220.704 5.000 3.100 4.200 -1216.504 -99.66% FAR OFF'
check $? "a name without a cast; millions"
line_of 'truth: of 3 kernels 1 within 1 % or 0.3 us of ncu, 1 beyond 3 % or 0.5 us, 0 not measured'
check $? "the last line counts"
[ $status -eq 1 ]
check $? "one that is far off ends with 1"
[ "$(grep -c '^ncu' calls)" -eq 3 ] && grep -q -- '--cache-control all --clock-control none' calls
check $? "as many ncu processes as asked for"

# ---- verdicts: 28 kernels, of which some are apart

# twenty_eight UNIT ONE APART: kernels of 100 us (ONE of ncu's units), the first APART off by 2 us
twenty_eight() {
    start_rows
    start_ncu ncu_1 "$1"
    row empty '' 3 3
    kernel ncu_1 'truth_empty<(int)0>()' "$2"
    n=1
    while [ $n -lt 28 ]; do
        if [ $n -le "$3" ]; then row read kib=$n 5 3; else row read kib=$n 3.2 3; fi
        kernel ncu_1 "truth_read<(int)$n>(const float4 *, float *)" "$2"
        n=$((n + 1))
    done
}

twenty_eight ns 100,000 2
judge 1
[ $status -eq 0 ] && grep -q ' 26 within .* 0 beyond' out
check $? "26 of 28 are enough"
twenty_eight ns 100,000 3
judge 1
[ $status -eq 1 ] && grep -q ' 25 within .* 0 beyond' out
check $? "25 of 28 are not"
for unit in 'nsecond 100,000' 'usecond 100' 'us 100.000' 'ms 0.1' 's 1e-4'; do
    twenty_eight ${unit% *} ${unit#* } 0
    judge 1
    [ $status -eq 0 ] && line_of 'read kib=9 100.000 3.200 3.000 100.200 +0.200 +0.20% agrees'
    check $? "times in ${unit% *}"
done
twenty_eight ns 100,000 0
row read kib=99 3.2 3 oom
judge 1
[ $status -eq 0 ] && grep -q '^read kib=99  *oom$' out && grep -q '29 kernels 28 within .* 1 not measured' out
check $? "a case that was not measured is named and not taken for one that agrees"
row read kib=98 3.2 3
row read kib=97 3.2 3
judge 1
[ $status -eq 1 ] && grep -q '^read kib=98  *not measured by ncu$' out && grep -q '3 not measured' out
check $? "three that were not measured are too many"

start_rows
start_ncu ncu_1 ns
row empty '' 3 3 failed
row read kib=1 5 3
kernel ncu_1 'truth_empty<(int)0>()' 2000
kernel ncu_1 'truth_read<(int)1>(const float4 *, float *)' 3500
judge 1
[ $status -eq 1 ] && grep -q ' of 2 kernels 0 within .* 0 beyond' out
check $? "of two kernels one has to agree"

# ---- no way to measure

twenty_eight parsecs 100 0
judge 1
[ $status -eq 2 ] && grep -q 'truth: no times of the kernels' out
check $? "an unknown unit is no time"
printf '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n' > ncu_1
judge 5
[ $status -eq 2 ] && grep -q 'profiled nothing: ==ERROR== ERR_NVGPUCTRPERM' out && [ "$(grep -c '^ncu' calls)" -eq 1 ]
check $? "counters that may not be read: ncu's words, at once"
rm rows
judge 1
[ $status -eq 2 ] && grep -q 'measured nothing: program: no device' out && ! grep -q '^ncu' calls
check $? "no GPU: the program's words"
NCU=./none "$here/truth.sh" ./program > out 2>&1
[ $? -eq 2 ] && grep -q "no './none': Nsight Compute" out
check $? "no ncu: status 2 and what is needed"
"$here/truth.sh" ./none > out 2>&1
[ $? -eq 2 ] && grep -q "no './none'" out
check $? "no program: status 2"

finish
