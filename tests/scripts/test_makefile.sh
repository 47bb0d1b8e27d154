#!/bin/sh
# test_makefile.sh - which backend and which code the Makefile chooses, with
# tools in the place of nvidia-smi and nvcc. Nothing is built. As TAP lines.
set -u
unset MAKEFLAGS MAKEOVERRIDES BACKEND ARCH NVCC CUDA_HOME LDFLAGS CUDA_VISIBLE_DEVICES # of a make that runs this, or a user's
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

cat > "$work/nvcc" <<'EOS'
#!/bin/sh
case $1 in
--list-gpu-code) printf 'sm_75\nsm_80\nsm_90\nsm_100\n' ;;
--version) echo 'Cuda compilation tools, release 13.0, V13.0.0' ;;
esac
EOS
chmod +x "$work/nvcc"

# smi STATUS [LINE...]: what nvidia-smi prints and how it ends.
smi() {
    status=$1
    shift
    { echo '#!/bin/sh'; for line; do echo "echo '$line'"; done; echo "exit $status"; } > "$work/nvidia-smi"
    chmod +x "$work/nvidia-smi"
}

plan() { # plan ARGUMENTS...: the commands of a build from nothing
    PATH="$work:/usr/bin:/bin" make -n -B NVCC="$work/nvcc" "$@" > "$work/plan" 2>&1
}

codes() { grep -o 'code=[^ ]*' "$work/plan" | sort -u | tr '\n' ' '; }

smi 0 9.0 8.0
plan
[ "$(codes)" = 'code=sm_80 code=sm_90a ' ]
check $? "two GPUs: code for both"
smi 0 9.0 9.0
plan
[ "$(codes)" = 'code=sm_90a ' ]
check $? "two equal GPUs: code once"
smi 0 '[N/A]'
plan BACKEND=cuda
[ "$(codes)" = 'code=[sm_80,compute_80] code=sm_90a ' ] && grep -q 'No GPU tells' "$work/plan"
check $? "no number: the default set with PTX, and a line that says so"
smi 0 'Failed to initialize NVML'
plan BACKEND=cuda
[ "$(codes)" = 'code=[sm_80,compute_80] code=sm_90a ' ]
check $? "an error sentence never reaches the compiler"
smi 9
plan
! grep -q "^$work/nvcc -std" "$work/plan"
check $? "no GPU: auto builds for the CPU"
smi 0 9.0
# Each subshell has the variable for itself.
# shellcheck disable=SC2030,SC2031
for hidden in '' -1 none; do
    (export CUDA_VISIBLE_DEVICES="$hidden" && plan)
    ! grep -q "^$work/nvcc -std" "$work/plan"
    check $? "CUDA_VISIBLE_DEVICES='$hidden' hides the GPU: auto builds for the CPU"
done
# shellcheck disable=SC2030,SC2031
for seen in 0 1,0 GPU-0e9689 MIG-3f; do
    (export CUDA_VISIBLE_DEVICES="$seen" && plan)
    grep -q "^$work/nvcc -std" "$work/plan"
    check $? "CUDA_VISIBLE_DEVICES=$seen shows one: auto builds for it"
done
smi 9
plan BACKEND=cuda LDFLAGS='-Wl,-z,now -L/x' build/cuda/norm
grep -q -e "-Xcompiler '-Wl.,-z.,now' -Xcompiler '-L/x' -o build/cuda/norm" "$work/plan"
check $? "LDFLAGS reach the linker through nvcc, commas escaped"
smi 0 7.0
plan help
check $? "a GPU that the toolkit does not know stops nothing"
smi 0 9.0
plan ARCH='80 100'
[ "$(codes)" = 'code=sm_100 code=sm_80 ' ]
check $? "ARCH by hand wins over detection"
plan BACKEND=cuda ARCH=foo
[ $? -ne 0 ] && grep -q "ARCH.*foo" "$work/plan"
check $? "an ARCH that the toolkit does not know is refused by name"
PATH=/usr/bin:/bin make -n NVCC=/no/such/nvcc BACKEND=cuda > "$work/plan" 2>&1
[ $? -ne 0 ] && grep -q 'needs nvcc' "$work/plan" && grep -q NVCC "$work/plan"
check $? "no nvcc: one clear line that names the variable"
PATH=/usr/bin:/bin make -n NVCC=/no/such/nvcc build/gpubench-compare > "$work/plan" 2>&1
check $? "the compare tool needs no nvcc"
plan BACKEND=cuda CUDA_HOME='/x/my cuda'
[ $? -ne 0 ] && grep -q 'CUDA_HOME=/x/my cuda: .*a blank' "$work/plan"
check $? "a blank in CUDA_HOME is named as the reason"
plan BACKEND=gpu
[ $? -ne 0 ] && grep -q 'BACKEND=gpu' "$work/plan"
check $? "an unknown BACKEND is refused by name"
plan arch-matrix MATRIX='75 90a'
[ $? -eq 0 ] && [ "$(codes)" = 'code=sm_75 code=sm_90a ' ] &&
    grep -q 'sm_75.*-o build/arch-75/kernels/norm/norm.cu.o' "$work/plan" &&
    grep -q 'sm_90a.*-o build/arch-90a/kernels/norm/norm.cu.o' "$work/plan" &&
    grep -q '^arch-matrix: built for 75 90a$' "$work/plan"
check $? "arch-matrix: each in a folder of its own, and which were built"
plan arch-matrix MATRIX='75 foo 80'
[ $? -ne 0 ] && grep -q '^arch-matrix: built for 75 80, failed for foo$' "$work/plan"
check $? "arch-matrix: one that fails is named and keeps none from being built"
plan deps
grep -q 'install.*libcmocka-dev g++ ' "$work/plan" && ! grep -q 'musl-tools\|aarch64' "$work/plan"
check $? "deps installs a compiler for the tests in C++, and none of the build matrix's others"
plan deps-ci
grep 'install.*libcmocka-dev g++ ' "$work/plan" | grep 'musl-tools' | grep -q 'gcc-aarch64-linux-gnu'
check $? "deps-ci installs them, and what deps does"

# Ubuntu's gcc would define _FORTIFY_SOURCE by itself where it optimizes: what fails there for a
# warning has to fail everywhere.
smi 0 9.0
for backend in cpu cuda; do
    plan BACKEND=$backend ARCH=90a all compile-tests faults faults-more gpu-tests
    sed -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' "$work/plan" | grep -e ' -O[1-3sgf]' | grep -e -Werror > "$work/strict"
    [ "$(wc -l < "$work/strict")" -gt 100 ] && ! grep -v _FORTIFY_SOURCE "$work/strict" | grep -o -e '-o [^ ]*' > "$log"
    check $? "BACKEND=$backend: nothing leaves it to the compiler whether libc's functions are fortified"
done

# compare.sh races too: it needs what race.sh builds with.
for task in compare race; do
    plan BACKEND=cpu ARCH=90 CFLAGS=-O1 "$task-loss"
    grep "^BACKEND=cpu ARCH='90' CFLAGS='-O1' CC=.*NVCC=.*JOBS=[0-9].*scripts/$task.sh build/cpu/loss loss" \
        "$work/plan" > /dev/null
    check $? "make $task-loss says what an older revision is to be built with"
done

# A suite that fails, and one that cannot be judged, between two that are fine.
mkdir -p "$work/suites/results"
cp -R Makefile mk scripts compare gpubench.h "$work/suites/"
cat > "$work/suites/scripts/compare.sh" <<'EOS'
case $2 in
norm) exit 2 ;;
loss) slower=1 ;;
esac
{
    echo suite,cases,slower,inconclusive,missing,not_ok,raced,elsewhere,seconds
    echo "$2,10,${slower:-0},0,0,0,0,0,60"
} > "results/$2-summary.txt"
exit "${slower:-0}"
EOS
echo stale > "$work/suites/results/norm-summary.txt"
(cd "$work/suites" && make BACKEND=cpu COMPILE=@: SUITES='ffn loss norm block' compare) > "$work/log" 2>&1
[ $? -ne 0 ] && grep -v '^make' "$work/log" | tail -n 1 | grep -qx \
    'compare: 3 suites, 30 cases in 3.0 min: 1 slower, 0 inconclusive (0.0 %), 0 missing, 0 not ok, 0 raced; not judged: norm'
check $? "make compare: every suite, then one line over all, and it fails where one did"
(cd "$work/suites" && make BACKEND=cpu COMPILE=@: SUITES='ffn block' compare) > "$work/log" 2>&1 &&
    grep -v '^make' "$work/log" | tail -n 1 | grep -q '^compare: 2 suites, 20 cases .* 0 raced$'
check $? "and ends well where all did"

# S8: what is built with other flags is built anew, all of it.
mkdir "$work/tree"
cp -R Makefile mk gpubench.h compare scripts "$work/tree/"
rebuild() {
    (cd "$work/tree" && make BACKEND=cpu build/gpubench-compare "$@") > "$work/log" 2>&1
}
set -- compare/*.c
objects=$#
compiled() { grep -c -e ' -c compare/' "$work/log"; }
rebuild CFLAGS=-O0 && [ "$(compiled)" -eq "$objects" ] &&
    rebuild CFLAGS='-O0 -fsanitize=undefined' && [ "$(compiled)" -eq "$objects" ] &&
    touch "$work/tree/compare/main.c" &&
    rebuild CFLAGS=-O0 && [ "$(compiled)" -eq "$objects" ] &&
    rebuild CFLAGS=-O0 && [ "$(compiled)" -eq 0 ] &&
    rebuild CFLAGS=-O0 LDFLAGS=-Wl,-z,now &&
    readelf -d "$work/tree/build/gpubench-compare" | grep -q NOW
check $? "the compare tool is built anew when its flags change, and only then"

# S13: the tree above is in no repository of its own, but inside another one.
(cd "$work" && git init -q . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m t)
revision() {
    (cd "$work/tree" && "$@" make BACKEND=cpu build/cpu/revision) > "$work/log" 2>&1 &&
        cat "$work/tree/build/cpu/revision"
}
[ -z "$(revision env)" ] && [ -z "$(revision env GIT=/usr/bin/git)" ]
check $? "the revision is not that of a repository around the tree, nor of the environment"

# S12: programs that were built, each of which needs the machine to itself.
for suite in loss norm; do
    printf '#!/bin/sh\nmkdir lock || echo disturbed >> "$0.log"\nsleep 0.3\nrmdir lock\n' \
        > "$work/tree/build/cpu/$suite"
    chmod +x "$work/tree/build/cpu/$suite"
done
(cd "$work/tree" &&
    make -j2 -o alone-loss -o alone-norm BACKEND=cpu suite-loss suite-norm) > "$work/log" 2>&1 &&
    [ ! -e "$work/tree/build/cpu/loss.log" ] && [ ! -e "$work/tree/build/cpu/norm.log" ]
check $? "two suites are measured one after the other, also with -j2"

finish
