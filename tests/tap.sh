# shellcheck shell=sh
# tap.sh - how the shell tests report, in TAP lines. They read it with `.` and then have
# a folder of their own, $work, which goes when they end, with a file $log in it.

export LC_ALL=C CDPATH=
# A hook of git's, or what else it runs, is told by variables which repository it is in;
# the tests have their own.
unset GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_PREFIX
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
log=$work/log
: >"$log"
results=0 failures=0

# check STATUS NAME [REASON TO SKIP]: one result; what explains a failure comes first.
check() {
    results=$((results + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $results ${3:+# SKIP $3 }- $2"
    else
        explain | sed 's/^/# /'
        echo "not ok $results - $2"
        failures=$((failures + 1))
    fi
}

# A test that has more to show, or less, defines its own.
explain() { head -n 20 "$log"; }

# The plan, and the status.
finish() {
    echo "1..$results"
    [ "$failures" -eq 0 ]
    exit
}
