# shellcheck shell=sh disable=SC2034
# ranks.sh - what the tests of the suites of several ranks share. They read it with `.` behind
# tap.sh and with their own arguments, of which the suite is the first, and write what they
# measure into $rows.
program=$1
rows=$work/rows.csv

# column NAME: of every row.
echo 'record { print value(wanted) }' > "$work/column.awk"
column() { awk -v wanted="$1" -f compare/csv.awk -f "$work/column.awk" "$rows"; }

# statuses: how many of each, as " 2 ok 1 failed ".
statuses() { column status | sort | uniq -c | tr -s ' \n' ' '; }
