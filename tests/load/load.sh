#!/bin/sh
# load.sh PROGRAM COMPARE - what is ten times as much takes ten times as long and no more, and
# its last row is as good as the first: LOAD_CASES cases in one process, LOAD_RUNS processes of
# --runs, LOAD_CLOCK cases in 24 hours of a clock that PROGRAM moves, LOAD_ROWS rows in each
# report of COMPARE. Both are linked with tests/load/work.c: each is held against a quarter of
# itself in what they executed, read, wrote and held, and not in time. As TAP lines.
set -u
program=$(realpath "$1") compare=$(realpath "$2")
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
root=$PWD rows_of=$PWD/tests/load/rows.awk
cases=${LOAD_CASES:-1200} runs=${LOAD_RUNS:-12} clock=${LOAD_CLOCK:-24} rows=${LOAD_ROWS:-8000}
cd "$work" || exit 2
mkdir tmp
export TMPDIR="$work/tmp"

explain() { head -n 5 "$log"; cat before after 2> /dev/null; }

# counted FILE COMMAND...: what each of its processes did goes to FILE, a line each, and to the
# reader with its time. Its status.
counted() {
    into=$1
    shift
    : > "$into"
    began=$(date +%s)
    LOAD_WORK=$into "$@" > out 2> "$log"
    ended=$?
    tail -n 1 "$into" | awk -v what="$what" -v s=$(($(date +%s) - began)) '{
        printf "# %s: %d s, %.0f MB, %.1f million blocks, %.1f MB read, %.1f MB written\n",
               what, s, $4 / 1024, $1 / 1e6, $2 / 1e6, $3 / 1e6
    }'
    return $ended
}

# Of the last process of each file: does the second, of four times the load, do more than five
# times as much? What is quadratic does sixteen times as much.
is_linear() {
    tail -q -n 1 "$1" "$2" | awk '
        NR == 1 { for (i = 1; i <= 4; i++) before[i] = $i }
        NR == 2 { for (i = 1; i <= 4; i++) worse += $i > 5 * before[i] }
        END { exit NR != 2 || worse > 0 }'
}

# The fields of rows.csv that the name says, without the name.
column() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
                          { print $at }' rows.csv
}

# COUNT rows, each of another case and all as good as the first: of so many samples or one more
# or fewer, with a median that is at most 1 % off what it is known to be.
are_good() {
    count=$1 us=$2
    for name in order status samples median_us; do
        column $name > "$name.column"
    done
    [ "$(paste -d' ' order.column status.column samples.column median_us.column |
        awk -v us="$us" 'NR == 1 { first = $3 }
            $1 != NR || $2 != "ok" || ($3 - first) ^ 2 > 1 || $4 < 0.99 * us || $4 > 1.01 * us {
                print "row " NR ": " $0
            }' | tee -a "$log" | wc -l)" -eq 0 ] && [ "$(wc -l < status.column)" -eq "$count" ] &&
        [ "$(cut -d, -f3-8 rows.csv | sort -u | wc -l)" -eq $((count + 1)) ]
}

quick='--mode hot --max-time 1 --warmup 1 --min-samples 5 --max-samples 5'

# ---- cases of one process ----

for count in $((cases / 4)) "$cases"; do
    what="$count cases"
    mv after before 2> /dev/null
    counted after "$program" $quick --csv rows.csv --json rows.json --samples samples.csv "$count" 0.1
    status=$?
done
[ $status -eq 0 ] && is_linear before after
check $? "cases of one process cost as much as the first ones"
are_good "$cases" 100000 && [ "$(grep -c '"case"' rows.json)" -eq "$cases" ] &&
    [ "$(wc -l < samples.csv)" -eq $((5 * cases + 1)) ] && [ "$(grep -c '^load.case' out)" -ge "$cases" ]
check $? "the last of many cases has a row as good as the first one's, in each file"

# ---- processes of --runs ----

what="$runs processes of 60 cases, the last"
counted after "$program" $quick --csv rows.csv --json rows.json --samples samples.csv --runs "$runs" 60 0.1
status=$?
awk -v runs="$runs" '
    NR == 1 { for (i = 1; i <= 4; i++) most[i] = i == 4 ? $i + 700 : 1.1 * $i }
    NR <= runs { for (i = 1; i <= 4; i++) worse += $i > most[i] }
    END { exit NR != runs + 1 || worse > 0 }' after
[ $? -eq 0 ] && [ $status -eq 0 ]
check $? "each process of --runs does as much as the first, and holds as much"
[ "$(column run | sort -n | uniq -c | awk -v runs="$runs" '$1 != 60 || $2 != NR' | wc -l)" -eq 0 ] &&
    [ "$(column status | sort | uniq -c | tr -d ' ')" = "$((60 * runs))ok" ] &&
    [ "$(grep -c '"case"' rows.json)" -eq $((60 * runs)) ] && [ "$(tail -n 1 rows.json)" = "]" ] &&
    [ "$(wc -l < samples.csv)" -eq $((300 * runs + 1)) ]
check $? "the last of many processes leaves as many rows as the first, in each file"

"$program" $quick --json killed.json --csv killed.csv --runs 999 60 0.1 > "$log" 2>&1 &
started=$!
until [ "$(cat killed.csv* 2> /dev/null | wc -l)" -gt 200 ] || ! kill -0 $started; do sleep 0.05; done
kill -KILL $started
wait $started 2> /dev/null
[ "$(head -n 1 killed.json.*)" = "[" ] &&
    [ "$(grep -c '"case"' killed.json.*)" -ge $(($(cat killed.csv* | wc -l) - 2)) ]
check $? "a kill of many processes leaves the rows of all so far, in each file"

# ---- a day of the clock ----

# A case is sampled for a share of the day. Few cases have so many samples that memory shows
# whether any of these are kept.
share=$((86400 / clock))
each=$(awk -v share=$share -v clock="$clock" 'BEGIN { print share / (clock > 1000 ? 1000 : 5000) }')
: > before
for count in 1 "$clock"; do
    what="$count cases of $share s of the clock"
    mv after before
    counted after "$program" --mode hot --precision 0.00001 --max-time $share --warmup 1 --csv rows.csv \
        "$count" "$each"
    status=$?
done
[ $status -eq 0 ] && awk '$2 == "hours" && $1 >= 24 && $1 < 36 { found = 1 } END { exit !found }' "$log" &&
    are_good "$clock" "$(awk -v each="$each" 'BEGIN { print each * 1e6 }')" &&
    [ "$(column flags | grep -c stop=max-time)" -eq "$clock" ]
check $? "a suite of 24 hours ends with a row as good as its first"
tail -q -n 1 before after | awk -v cases="$clock" 'NR == 1 { kb = $4 } END { exit !($4 <= kb + 1024 + 4 * cases) }'
check $? "in 24 hours memory grows by the rows alone"

# ---- rows of the compare tool ----

# report NAME STATUS ARGUMENTS...: of a quarter of the rows, and of all.
report() {
    name=$1 wanted=$2
    shift 2
    for count in $((rows / 4)) "$rows"; do
        what="$name, $count rows"
        mv after before
        counted after "$compare" $(for argument; do echo "$argument" | sed "s/ROWS/$count/"; done)
        status=$?
    done
    [ $status -eq "$wanted" ] && is_linear before after
    check $? "$name of many rows costs as much a row as of few"
}

for count in $((rows / 4)) "$rows"; do
    awk -v rows=$((count / 2)) -v campaigns=1 -f "$rows_of" > "old.$count"
    awk -v rows=$((count / 2)) -v campaigns=1 -v slower=1 -f "$rows_of" > "new.$count"
    awk -v rows="$count" -v campaigns=4 -f "$rows_of" > "campaigns.$count"
done
# Half of the rows are of each side, five a case, and one case in 200 is slower.
slow=$((rows / 10 / 200))
report "a comparison" 1 --all old.ROWS new.ROWS
[ "$(grep -c '^SLOWER ' out)" -eq "$slow" ]
check $? "every slow case among many is named"
for format in markdown json csv github; do
    report "$format" 1 --format $format --limit 0 old.ROWS new.ROWS
done
report "--variants" 0 --variants campaigns.ROWS
report "--history" 0 --history campaigns.ROWS
report "--cards" 0 --cards campaigns.ROWS
# ---- scripts ----

# Falling keys, each twice: an order by insertion takes a hundred million steps of 20,000.
awk -f "$root/compare/numbers.awk" -f /dev/stdin <<'EOF' > "$log"
BEGIN {
    for (i = 1; i <= 20001; i++) { list[i] = i; key[i] = int((20001 - i) / 2) }
    sort_by(list, 20001, key)
    for (i = 2; i <= 20001; i++) {
        if (key[list[i]] < key[list[i - 1]]) print "key " i " is out of order"
        if (key[list[i]] == key[list[i - 1]] && list[i] != list[i - 1] + 1) print "pair " i " was turned"
    }
    print key[list[1]], key[list[20001]]
}
EOF
[ "$(cat "$log")" = "0 10000" ]
check $? "scripts put many keys in order, and equal ones stay as they were"

# A picture shows the few that changed most, of up to 100,000 cases.
if command -v gnuplot > /dev/null; then
    most=$((rows < 1000000 ? rows : 1000000))
    awk -v rows=$((most / 2)) -v campaigns=1 -f "$rows_of" > old.csv
    awk -v rows=$((most / 2)) -v campaigns=1 -v slower=1 -f "$rows_of" > new.csv
    "$compare" --format csv old.csv new.csv > forest.csv 2> "$log"
    what="a picture of $((most / 10)) cases"
    began=$(date +%s)
    "$root/compare/plots/forest.sh" -s -n 9 forest forest.csv >> "$log" 2>&1
    status=$?
    echo "# $what: $(($(date +%s) - began)) s"
    [ $status -eq 0 ] && [ "$(grep -c '+100\.0 %' forest.svg)" -ge $((most < 18000 ? 1 : 9)) ]
    check $? "a picture of many cases shows those that changed most"
fi

[ -z "$(ls tmp)" ]
check $? "nothing is left in the temporary folder"
finish
