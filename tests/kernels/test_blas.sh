#!/bin/sh
# test_blas.sh - which CBLAS libraries the variants named blas take, by the names that
# builds give their functions. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

${CC:-cc} -std=c11 -D_XOPEN_SOURCE=700 -pthread -o "$work/which" tests/fixtures/which_blas.c \
    build/cpu/libkernels.a -ldl -lm 2>"$log" || exit 2

# expect WHAT NAME FLAGS...: the answer for a library built with the flags.
expect() {
    wanted=$1 name=$2 && shift 2
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -fPIC -shared -o "$work/libtoy.so" "$@" \
        tests/fixtures/cblas.c >"$log" 2>&1
    GPUBENCH_BLAS=$work/libtoy.so "$work/which" >>"$log"
    grep -qx -- "$wanted" "$log"
    check $? "$name"
}

expect 'reference BLAS libtoy.so, 1 threads' "Netlib's names, and the file's without its folder"
expect 'libtoy.so, 1 threads' 'with a name of BLIS it is not the slow reference' -DBLIS
expect 'libtoy.so Toycore, 2 threads' 'an OpenBLAS takes several callers' -DOPENBLAS
for name in 'f##64_' 'scipy_##f##64_'; do
    expect 'libtoy.so Toycore, 2 threads' "integers of 64 bits: $name" -DOPENBLAS \
        "-DNAME(f)=$name" -DINTEGER=int64_t
done
expect 'libtoy.so Toycore, 2 threads' "scipy's with integers of 32 bits" -DOPENBLAS \
    '-DNAME(f)=scipy_##f'
expect '.*libtoy.so has no cblas_sgemm' 'none of the names' '-DNAME(f)=other_##f'
expect '.*libtoy.so multiplies wrongly' 'a wrong product is refused' -DOFF_BY=1
GPUBENCH_BLAS=$work/none.so "$work/which" >"$log"
grep -q '^cannot load a CBLAS library: .*none.so' "$log"
check $? 'a file that is not there is named'

finish
