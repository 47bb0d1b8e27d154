#!/bin/sh
# run.sh COMMAND...  runs test programs and scripts that print TAP ("program" or
# "program argument ..."), shows what failed, and closes with one line:
# N passed, N failed, N skipped. Status 1 if any failed.
# A program that crashes, prints no plan, or fewer results than its plan, is one failure.

log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
trap 'exit 2' HUP INT TERM
passed=0 failed=0 skipped=0

for program; do
    case $program in
    */*) ;;
    *) program=./$program ;;
    esac
    CMOCKA_MESSAGE_OUTPUT=tap $program >"$log" 2>&1 </dev/null
    status=$?
    ok=$(grep '^ok ' "$log" | grep -vc '^ok [0-9]* *# SKIP')
    left_out=$(grep -c '^\(not \)*ok [0-9]* *# SKIP' "$log") # cmocka's and TAP's spelling
    bad=$(($(grep -c '^not ok ' "$log") - $(grep -c '^not ok [0-9]* *# SKIP' "$log")))
    planned=$(sed -n 's/^1\.\.\([0-9][0-9]*\)$/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
    why=
    if [ "$planned" -eq 0 ]; then
        why="no plan, exit status $status"
    elif [ "$planned" -ne $((ok + bad + left_out)) ]; then
        why="$((ok + bad + left_out)) results of $planned planned, exit status $status"
    elif [ $status -ne 0 ] && [ "$bad" -eq 0 ]; then
        why="exit status $status"
    fi
    passed=$((passed + ok))
    failed=$((failed + bad))
    skipped=$((skipped + left_out))
    if [ -n "$why" ]; then
        failed=$((failed + 1))
        echo "$program: $why"
    fi
    if [ -n "$why" ] || [ "$bad" -gt 0 ]; then
        sed "s|^|    |" "$log"
    fi
    echo "$program: $ok passed, $((bad + (${#why} > 0))) failed"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
