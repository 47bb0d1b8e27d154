#!/bin/sh
# test_reliability.sh - each promise of docs/reliability.md names a test, and each test that it
# names exists. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

# The tests that a page names, as "file: name", one a line; and lines of tables without one.
named() { sed -n 's/^|.*| `\(tests\/[^`]*\)` |$/\1/p' "$1"; }
unproven() { grep '^| [^-]' "$1" | grep -v '^| \(promise\|what\) .*| test |$\|^| what .*| test |$' | grep -v '`tests/[^`]*` |$'; }

exists() {
    file=${1%%: *} name=${1#*: }
    [ -e "$file" ] && grep -q -- "$name" "$file"
}

missing_of() {
    named "$1" | while read -r test; do
        exists "$test" || echo "no test '$test'"
    done
}

missing_of docs/reliability.md > "$log"
[ "$(named docs/reliability.md | wc -l)" -gt 20 ] && [ ! -s "$log" ]
check $? "every test that docs/reliability.md names exists"

unproven docs/reliability.md > "$log"
[ ! -s "$log" ]
check $? "every promise in it names a test"

printf '| promise | test |\n|---|---|\n| A | `tests/header/test_rows.c: there_is_no_such_test` |\n| B | |\n' > "$work/page.md"
[ -n "$(missing_of "$work/page.md")" ] && [ -n "$(unproven "$work/page.md")" ]
check $? "a test that is gone and a promise without one are found"
finish
