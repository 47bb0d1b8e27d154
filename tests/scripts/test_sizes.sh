#!/bin/sh
# test_sizes.sh - no file of more than 800 lines but the headers that people copy, no function of more than
# 50, and that scripts/sizes.awk would see them. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

scripts/lint.sh sizes > "$log" 2>&1
check $? "every file and every function is short"

lines() { yes "$2" | head -n "$1"; }

# says EXPECTED NAME: of the file "$work/NAME", or nothing where EXPECTED is empty.
says() {
    awk -f scripts/sizes.awk "$work/$2" > "$log" 2>&1
    [ $? -eq $((${#1} > 0)) ] && [ "$(sed "s|^$work/||" "$log")" = "$1" ]
}

# A signature of two lines and two braces make 50 and 51 lines.
for more in 46 47; do
    {
        echo '/* void comment(void) */'
        printf 'static int\n'
        printf 'int before(void) { return 1; }\n\nvoid longest(int a,\n             int b)\n{\n'
        lines $more '    a++;'
        printf '}\n\nint after(void)\n{\n}\n'
    } > "$work/$more.c"
done
says '' 46.c
check $? "a C function of 50 lines is short enough"
says '47.c:5: longest: 51 lines, where 50 are enough' 47.c
check $? "one of 51 is named with its first line"

{ printf 'say() {\n'; lines 49 '    :'; printf '}\n'; } > "$work/long.sh"
says 'long.sh:1: say: 51 lines, where 50 are enough' long.sh
check $? "a function of a shell script"

{
    printf 'class A:\n    def short(self):\n        pass\n\n    def long(\n            self):\n'
    lines 49 '        pass'
    printf '\n    def last(self):\n        def inner():\n            pass\n        inner()\n'
} > "$work/long.py"
says 'long.py:5: long: 51 lines, where 50 are enough' long.py
check $? "a method of Python, without the empty lines behind it"

{ printf 'def f():\n    def inner():\n        pass\n'; lines 48 '    pass'; } > "$work/outer.py"
says 'outer.py:1: f: 51 lines, where 50 are enough' outer.py
check $? "what stands inside a function of Python counts to it"

lines 800 '/* x */' > "$work/full.h"
says '' full.h
check $? "a file of 800 lines is short enough"
lines 801 '/* x */' > "$work/full.cu"
says 'full.cu: 801 lines, where 800 are enough' full.cu
check $? "one of 801 is named"
cp "$work/full.cu" "$work/gpubench.h"
says '' gpubench.h
check $? "the header is one file whatever its length"

finish
