#!/bin/sh
# test_dtypes.sh - a new dtype in kernel.h is a compile error in every file that
# has to know what it means, and no switch over dtypes swallows it by a default.
# As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

cp -R gpubench.h gpubench_trace.h suites kernels "$work"
exhaustive=$(sed -n 's/^EXHAUSTIVE := //p' Makefile)

compile() { # compile FILE: its messages, among them of the new dtype
    (cd "$work" && ${CC:-cc} -std=c11 -Wall -Wextra $exhaustive -Werror -fsyntax-only "$1") 2>&1
}

compile kernels/common/convert.c > "$work/log"
check $? "without a new dtype it compiles"

sed 's/^    KERNEL_U8$/    KERNEL_U8,\n    KERNEL_F8/; s/= KERNEL_U8 + 1/= KERNEL_F8 + 1/' \
    kernels/common/kernel.h > "$work/kernels/common/kernel.h"
for file in kernels/common/convert.c kernels/common/kernel.c kernels/linear/linear.c kernels/norm/norm.c \
    kernels/embedding/embedding.c kernels/optimizer/optimizer.c suites/suite.c; do
    compile "$file" | grep -q KERNEL_F8
    check $? "$file does not compile with a dtype that it does not know"
done

# A default in a switch over dtypes, in C and in CUDA.
awk '/switch \(.*dtype\)/ { inside = 1; indent = index($0, "switch") }
     inside && /default:/ { print FILENAME ": " FNR; bad = 1 }
     inside && index($0, "}") == indent { inside = 0 }
     END { exit bad }' kernels/*/* suites/*.[ch]
check $? "no switch over dtypes has a default"

finish
