#!/bin/sh
# test_race.sh RACER [PROGRAM] - gpubench-compare --race, with tests/fixtures/racer.c
# in the place of benchmarks; PROGRAM is a real one, built on gpubench.h. As TAP lines.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
case $1 in /*) racer=$1 ;; *) racer=$PWD/$1 ;; esac
real=${2:+$(cd "$(dirname "$2")" && pwd)/$(basename "$2")}
compare=$root/build/gpubench-compare
. "$root/tests/tap.sh"
cd "$work" || exit 2
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR

explain() { cat out err; }

# program FILE WORD...: a program that is the racer with these words.
program() {
    file=$1
    shift
    {
        echo '#!/bin/sh'
        printf 'exec "%s"' "$racer"
        for word; do printf " '%s'" "$word"; done
        echo ' -- "$@"'
    } > "$file"
    chmod +x "$file"
}

# race WORD...: the status in $status, what it said in out and err; whatever happens,
# nothing stays in TMPDIR.
race() {
    timeout 120 "$compare" --race "$@" > out 2> err
    status=$?
    [ -z "$(ls tmp)" ] || { echo "left in TMPDIR: $(ls tmp)" >> err; status=99; }
}

# Whether the process of this id runs; one that nobody has waited for does not.
alive() {
    state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2> /dev/null) && [ "$state" != Z ]
}

# await FILE [PATTERN]: until the file has something in it, or that, ten seconds at most.
await() {
    turns=0
    while ! grep -qse "${2:-.}" "$1" && [ $turns -lt 100 ]; do
        sleep 0.1
        turns=$((turns + 1))
    done
}

says() { grep -qe "$1" out; }
complains() { grep -qe "$1" err; }

program old salt=old
program new salt=new
program slower salt=new 'slow=norm fast:1.05'
program faster salt=new 'slow=norm fast:0.9'

# ---- verdicts

race ./old ./new
[ $status -eq 0 ] && says '^3 cases: 3 same$' &&
    says ' 5 pairs in alternating order behind a warm-up of both, seeds 1 to 5, 12 processes'
check $? "nothing changed: status 0 after 5 pairs"
! says 'holds 1 campaign'
check $? "a race needs no other sittings, and its report asks for none"
race ./old ./slower
[ $status -eq 1 ] && says '^3 cases: 1 slower, 2 same$' &&
    grep '^SLOWER' out | grep -q 'toy norm fast'
check $? "5 % slower in one case: status 1, that case and no other"
race ./old ./faster
[ $status -eq 0 ] && says '^3 cases: 1 faster, 2 same$'
check $? "faster is no fault: status 0"
race ./old ./old
[ $status -eq 0 ] && says 'both are the same file'
check $? "a program against itself is said to be that, and judged"
ln old again
race ./old ./again
[ $status -eq 0 ] && says 'both are the same file'
check $? "so is a second name of it"

# ---- pairs

program old-logs salt=old log=calls
program new-logs salt=new log=calls 'spread=norm fast:6'
race ./old-logs ./new-logs
[ $status -eq 0 ] && says ' 40 pairs in alternating order .* 82 processes' &&
    says '1 inconclusive' && says '1 case stayed open after all 40 pairs'
check $? "a case that spreads by 6 % goes on to 40 pairs, and stays inconclusive"
! says 'was the file cut'
check $? "the shorter processes of later looks are no files that were cut"
[ "$(cut -d' ' -f1 calls | head -8 | tr '\n' ' ')" = 'old new old new new old old new ' ]
check $? "behind a warm-up of each, the sides take turns in going first"
awk '{ pair = NR > 2 ? int((NR - 1) / 2) : 1
       if ($2 != pair || $3 != "race") exit 1 }' calls
check $? "both sides of a pair have the same seed, each pair another one, and one campaign"
[ "$(cut -d' ' -f4- calls | head -12 | sort -u)" = '' ] &&
    [ "$(cut -d' ' -f4- calls | tail -n +13 | sort -u)" = '^(norm fast)$' ]
check $? "after the first look only the case that is open is measured"
rm calls
race ./old-logs ./new-logs --race-seconds 0.000001
[ $status -eq 0 ] && says ' 1 pairs in alternating order .* 4 processes' && says '^3 cases: 3 inconclusive$' &&
    says '^3 cases were open after 1 pair, when --race-seconds ran out$' && ! says 'after all'
check $? "out of time after the first pair: no other is begun, what it cannot tell is inconclusive"
rm calls
program twice salt=new 'slow=norm fast:2'
race ./old ./twice --race-seconds 0.000001 --format csv
[ $status -eq 0 ] && awk -f "$root/compare/csv.awk" -f /dev/fd/3 out 3<<'EOS'
value("case") == "norm" { found = value("verdict") == "inconclusive" && value("ratio") > 1.9 && value("ratio_low") == "" }
END { exit !found }
EOS
check $? "what its one pair says is told, without an interval"
race ./old ./twice --race-seconds 0.000001 --all
says '^inconclusive .* \[unknown\] *-  toy norm fast' && says 'too few pairs to judge by; 1 pair$'
check $? "that it would have found 5 % is not"
race ./old ./twice --race-seconds 0.000001 --format markdown
says 'norm fast.*| unknown | - |' || says '| unknown | - |.*norm fast'
check $? "in markdown either"
race ./old-logs ./new-logs --race-seconds 1000
[ $status -eq 0 ] && says ' 82 processes' && says 'after all 40 pairs' && ! says 'ran out'
check $? "with time enough it is as without"
rm calls
race ./old-logs ./new-logs -- --seed 7 --filter 'norm|sum'
[ $status -eq 0 ] && says '^2 cases: 1 same, 1 inconclusive$' &&
    [ "$(sed -n 1p calls)" = 'old 7 race norm|sum' ] &&
    [ "$(sed -n 13p calls)" = 'new 12 race ^(norm fast)$' ]
check $? "the user's filter and seed come first; the open ones are a part of what it took"

name='a.b*[1](x)|^y$+?{2}\d fast'
program old-odd salt=old log=odd "cases=$name:10,aab1x fast:10,a fast:20"
program new-odd salt=new "cases=$name:10,aab1x fast:10,a fast:20" "spread=$name:6"
race ./old-odd ./new-odd
[ $status -eq 0 ] && says '2 same, 1 inconclusive' &&
    [ "$(tail -1 odd)" = 'old 40 race ^(a\.b\*\[1]\(x\)\|\^y\$\+\?\{2}\\d fast)$' ]
check $? "a name of special characters is asked for by itself"

long=$(awk 'BEGIN { while (i < 1500) printf "%sc%04d-%070d fast:10", i ? "," : "", i++, 0 }')
program old-long salt=old log=long "cases=$long" noise=20
program new-long salt=new "cases=$long" noise=20
race ./old-long ./new-long
[ $status -eq 0 ] && says '^1500 cases: ' && says ' 40 pairs' &&
    [ "$(tail -1 long)" = 'old 40 race ' ]
check $? "names too long for one argument: all are measured, 1,500 cases without an alarm"

program old-place salt=old counter=turn place=3
program new-place salt=new counter=turn place=3
race ./old-place ./new-place
[ $status -eq 0 ] && says '^3 cases: 3 same$' &&
    says 'the first process of a pair takes +[23]\.[0-9]* %'
check $? "3 % for whoever goes first: nobody is slower, and it is said"
rm turn
program old-cold salt=old counter=turn cold=8
program new-cold salt=new counter=turn cold=8
race ./old-cold ./new-cold
[ $status -eq 0 ] && says '^3 cases: 3 same$' && says ' 5 pairs in'
check $? "8 % for the first process of all, whose card and caches are cold: in no pair"
rm turn
program old-place salt=old counter=turn drift=0.5
program new-place salt=new counter=turn drift=0.5
race ./old-place ./new-place
[ $status -eq 0 ] && ! says slower && ! says faster
check $? "a drift of 0.5 % a process: nobody is slower"
program once salt=new once=3 at=4
race ./old ./once
[ $status -eq 0 ] && says '^3 cases: 3 same$' && says '3 values of a pair left out'
check $? "one process that takes three times as long is left out, and said"

# ---- the warm-up, and verifying

program old-once salt=old how=how knows=no-verify
program new-once salt=new how=how knows=no-verify
race ./old-once ./new-once -- --min-samples 9 --max-time 3
[ $status -eq 0 ] && [ "$(head -2 how | tr '\n' ',')" = 'old 0.01 verifies,new 0.01 verifies,' ] &&
    [ "$(tail -n +3 how | sort | uniq -c | tr -s ' \n' ' ')" = ' 5 new 3 not 5 old 3 not ' ] &&
    ! says 'every process verifies'
check $? "each side verifies in its warm-up, which is brief, and in no pair"
rm how
program old-older salt=old how=how
race ./old-older ./new-once
[ $status -eq 0 ] &&
    [ "$(cut -d' ' -f3 how | sort | uniq -c | tr -s ' \n' ' ')" = ' 12 verifies ' ] &&
    says 'every process verifies its cases'
check $? "where one side cannot do without, both verify in every process, and it is said"
rm how
race ./old-once ./new-once -- --no-verify
[ $status -eq 0 ] && [ "$(cut -d' ' -f3 how | sort | uniq -c | tr -s ' \n' ' ')" = ' 12 not ' ]
check $? "--no-verify of the user's: nobody does"
program new-wrong salt=new knows=no-verify 'wrong=norm fast'
race ./old-once ./new-wrong
[ $status -eq 1 ] && says '2 same, 1 no longer ok' && says 'status mismatch' &&
    complains 'warm-up: NEW .* ended with status 1'
check $? "what the warm-up finds wrong on the new side is wrong: status 1"
race ./new-wrong ./old-once
[ $status -eq 0 ] && says '2 same' && says '1 new in current'
check $? "a case that is wrong on the old side only is new"
program old-wrong salt=old knows=no-verify 'wrong=norm fast'
race ./old-wrong ./new-wrong
[ $status -eq 0 ] && says '2 same' && ! says 'no longer ok'
check $? "one that is wrong on both sides is no news"
race ./old-once ./new-once --output kept-once
[ "$(cut -d, -f10 kept-once/new.csv | sort -u | tr '\n' ' ')" = '1 2 3 4 5 run ' ]
check $? "the times of the warm-up are not in the rows that are kept"
rm -r kept-once

# ---- cases that cannot be judged

program new-failed salt=new 'status=norm fast:failed' end=exit1
race ./old ./new-failed
[ $status -eq 1 ] && says '1 no longer ok' && says 'NEW.s row.*status failed' &&
    complains 'ended with status 1' && [ "$(grep -c 'a case failed' err)" -eq 1 ]
check $? "a case that fails on the new side: status 1, the program's own words once"
for state in oom mismatch; do
    program new-bad salt=new "status=norm fast:$state" end=exit1
    race ./old ./new-bad
    [ $status -eq 1 ] && says "status $state"
    check $? "$state on the new side: status 1"
done
race ./new-failed ./old
[ $status -eq 0 ] && says '1 new in current' && says '2 same'
check $? "a case that fails on the old side only is new"
program new-late salt=new from=7 'status=norm fast:failed' 'spread=norm fast:6' end=exit1
race ./old ./new-late
[ $status -eq 1 ] && says '2 same, 1 no longer ok' && says ' 10 pairs'
check $? "a case that fails in the seventh pair: status 1, and the race ends there"
program new-fewer salt=new 'cases=copy fast:100,sum fast:10'
race ./old ./new-fewer
[ $status -eq 1 ] && says '1 missing in current'
check $? "a case that is missing on the new side: status 1"
race ./old ./new-fewer --subset
[ $status -eq 0 ]
check $? "with --subset it may be missing"
race ./new-fewer ./old
[ $status -eq 0 ] && says '1 new in current'
check $? "a case that is missing on the old side is new: status 0"
program new-other salt=new 'cases=else fast:100'
race ./old ./new-other
[ $status -eq 2 ] && complains 'no case is on both sides' && ! complains 'race, 5 pairs'
check $? "no case in common: status 2 after the first pair"
program old-schema salt=old schema=1
race ./old-schema ./new
[ $status -eq 2 ] && complains 'different flushes'
check $? "schema 1's cold against schema 2's: status 2, and why"
program new-flag salt=new 'flag=norm fast:stop=precision ungated throttle=sw-thermal'
race ./old ./new-flag
[ $status -eq 0 ] &&
    says "flag 'ungated' on one side only: in 5 rows of NEW, none of OLD; .* case norm" &&
    says "flag 'throttle=sw-thermal'" && ! says "'stop="
check $? "flags of one side only are said"
race ./old ./new-flag --all
[ $status -eq 0 ] && says '^3 cases: 2 same, 1 inconclusive' &&
    says 'throttled in every run of the current results'
check $? "throttled rows are no evidence"
program new-hot salt=new from=7 'spread=norm fast:6' 'flag=norm fast:throttle=sw-thermal'
race ./old ./new-hot --all
[ $status -eq 0 ] && says 'pairs differ by .*; 6 pairs; left out, as the card was throttled: 0 .*, 34 of the current'
check $? "nor are the pairs that they are in"

# ---- work that the inputs decide, which the seed draws

program old-draws salt=old 'work=norm fast:1000' 'draw=norm fast:7'
program new-draws salt=new 'work=norm fast:1000' 'draw=norm fast:7'
race ./old-draws ./new-draws
[ $status -eq 0 ] && says '^3 cases: 3 same$'
check $? "bytes that depend on the seed are the same in each pair, so no work changed"
program new-more salt=new 'work=norm fast:1007' 'draw=norm fast:7'
race ./old-draws ./new-more
[ $status -eq 2 ] && says '^3 cases: 2 same, 1 whose work changed$' &&
    says "NEW.s row:3: other bytes or flops than in the baseline, so the times"
check $? "a program that moves more with each of these is found, though other pairs have as many"

# ---- cards

program other-device salt=new 'device=Other Card'
race ./old ./other-device
[ $status -eq 2 ] && complains "'Other Card'"
check $? "another device: status 2"
program other-card salt=new uuid=GPU-2
race ./old ./other-card
[ $status -eq 2 ] && complains "different cards, uuid 'GPU-2'" && ! complains 'race, 5 pairs'
check $? "another card of the same kind: status 2 after the first pair"
race ./old ./other-card --ignore-device
[ $status -eq 0 ]
check $? "with --ignore-device they race"

# ---- programs

for end in exit2 crash exit9 nothing empty garbage; do
    case $end in
    exit2) why='ended with status 2' ;;
    crash) why='ended by signal 6' ;;
    exit9) why='status 9: is it built on gpubench.h' ;;
    nothing) why='it wrote no rows' ;;
    empty) why='cannot be raced' ;;
    garbage) why="no column 'run'" ;;
    esac
    program bad salt=new "end=$end"
    race ./old ./bad
    [ $status -eq 2 ] && complains "warm-up: NEW ('./bad') .*$why"
    check $? "NEW that ends by $end: status 2"
    race ./bad ./old
    [ $status -eq 2 ] && complains "warm-up: OLD ('./bad') .*$why"
    check $? "OLD that ends by $end: status 2"
done
program bad salt=new end=exit2
race ./old ./bad
complains '^    racer: bad usage, it says$'
check $? "its own message is shown"
program bad salt=new end=crash at=8 'spread=norm fast:6'
race ./old ./bad --output kept
[ $status -eq 2 ] && complains 'pair 8: NEW' && [ "$(wc -l < kept/old.csv)" -eq 18 ] &&
    [ "$(wc -l < kept/new.csv)" -eq 18 ]
check $? "a crash in pair 8: status 2, the rows so far are kept"
program bad salt=new end=hang mark=pid
race ./old ./bad --timeout 0.5
[ $status -eq 2 ] && complains 'did not end within 0.5 s' && ! alive "$(cat pid)"
check $? "NEW that hangs: status 2, and it is gone"
program bad salt=new end=leave mark=pid
rm -f pid
race ./old ./bad
sleep 0.2
[ $status -eq 0 ] && [ -s pid ] && ! alive "$(cat pid)"
check $? "what a program leaves behind is ended with it"
for bad in /bin/true /bin/cat; do
    race ./old $bad
    [ $status -eq 2 ] && complains 'is it built on gpubench.h' && complains "NEW ('$bad')"
    check $? "$bad is no benchmark: status 2"
done
race ./old ./there-is-none
[ $status -eq 2 ] && complains "'./there-is-none': No such file"
check $? "a program that is not there: status 2"
race ./old ./tmp
[ $status -eq 2 ] && complains "'./tmp' is no program"
check $? "a folder: status 2"
echo text > text
race text ./old
[ $status -eq 2 ] && complains "'text' is no program"
check $? "a file that is no program: status 2"
chmod +x text
printf '\177ELF broken' > text
race ./old text
[ $status -eq 2 ] && complains 'cannot be started'
check $? "a program that cannot be started: status 2"
mkdir "with 'odd' \"name"
far="with 'odd' \"name/$(printf '%0100d' 0)"
cp new "$far"
race old "$far"
[ $status -eq 0 ] && says '3 same'
check $? "a path with quotes, blanks and 100 characters more"

# ---- signals

for name in TERM HUP INT; do
    program bad salt=new end=hang mark=pid
    rm -f pid
    timeout -s $name 1 "$compare" --race ./old ./bad > out 2> err
    [ -s pid ] && ! alive "$(cat pid)" && [ -z "$(ls tmp)" ]
    check $? "SIG$name: the program is gone, and nothing is left"
done
program slow-end salt=new "cases=copy:100,sum:100" slow=copy:1.2 spread=sum:6 end=hang at=7
program first-end salt=old "cases=copy:100,sum:100" spread=sum:6
timeout -s TERM 10 "$compare" --race ./first-end ./slow-end > out 2> err
[ $? -eq 124 ] && complains 'was ended by signal 15 .*; what 5 pairs told:' &&
    says '^2 cases: 1 slower, 1 inconclusive' && [ -z "$(ls tmp)" ]
check $? "what the looks so far told is printed when a signal ends the race"
mkfifo verdicts
rm -f err # the last race's, which says the same
"$compare" --race ./first-end ./slow-end --verdicts verdicts > out 2> err &
tool=$!
await err 'race, 5 pairs'
kill -TERM $tool
await err 'what 5 pairs told' # and then it waits for whoever reads the verdicts
kill -TERM $tool
timeout 10 cat verdicts > told
wait $tool
[ $? -eq 143 ] && [ "$(wc -l < told)" -eq 3 ] && says '^2 cases: 1 slower, 1 inconclusive'
check $? "also when it is sent twice, as timeout does"
rm -f pid
"$compare" --race ./old ./bad > out 2> err &
tool=$!
await pid
kill -TERM $tool
wait $tool
[ $? -eq 143 ]
check $? "the race ends by the signal that it was sent"
rm -f pid
"$compare" --race ./old ./bad > out 2> err &
tool=$!
await pid
kill -KILL $tool
wait $tool 2> /dev/null
sleep 0.3
! alive "$(cat pid)"
check $? "a race that is killed leaves no orphan"
rm -rf tmp/*

# ---- rows, formats, command line

race ./old ./slower --output rows
[ $status -eq 1 ] && says 'rows of both sides: rows/old.csv' &&
    [ "$(cut -d, -f10 rows/old.csv | sort -u | tr '\n' ' ')" = '1 2 3 4 5 run ' ] &&
    "$compare" --filter 'copy|sum' rows/old.csv rows/new.csv > /dev/null
check $? "the rows of both sides are kept, a pair's number as their run"
cp rows/old.csv before
race ./old ./slower --output rows
[ $status -eq 2 ] && complains "'rows/old.csv' is there already" && cmp -s rows/old.csv before
check $? "rows of another race are not touched"
race ./old ./slower --output before
[ $status -eq 2 ] && complains 'is no folder'
check $? "--output that is a file: status 2"
race ./old ./there-is-none --output none
[ $status -eq 2 ] && [ ! -e none ]
check $? "no folder is made for a race that cannot start"
program bad salt=new end=exit2
race ./bad ./old --output none
[ $status -eq 2 ] && [ ! -e none ]
check $? "nor left for one without a row"
race ./old ./slower --format csv
[ $status -eq 1 ] && [ "$(wc -l < out)" -eq 4 ] && head -1 out | grep -q '^suite,case,' &&
    complains "race of NEW './slower'"
check $? "CSV: rows only, the rest on standard error"
race ./old ./slower --format markdown
[ $status -eq 1 ] && says "^race of NEW '\./slower'" && says '^|'
check $? "markdown"
printf 'norm fast\n\nsum fast\n' > only
rm -f calls
race ./old-logs ./new-logs --only only
[ $status -eq 0 ] && says '^2 cases' && [ "$(head -1 calls)" = 'old 1 race ^(norm fast|sum fast)$' ]
check $? "--only: the cases of a file, and no other"
printf '\n' > only
race ./old ./new --only only
[ $status -eq 2 ] && complains "'only' names no case"
check $? "--only without a case: status 2"
race ./old ./new --only missing
[ $status -eq 2 ] && complains "'missing': No such file"
check $? "--only without a file: status 2"
race ./old ./new --filter copy
[ $status -eq 0 ] && says '^1 case: 1 same$'
check $? "the tool's own --filter chooses what is judged"
for word in --csv=x --runs --campaign --list --help --profile --samples; do
    race ./old ./new -- $word
    [ $status -eq 2 ] && complains "^gpubench-compare: ${word%%=*} behind '--'"
    check $? "$word behind -- is refused"
done
race ./old ./new -- --seed x
[ $status -eq 2 ] && complains "'x' is not a whole number"
check $? "a seed that is none"
race ./old
[ $status -eq 2 ] && complains 'needs two programs'
check $? "--race with one program"
race ./old ./new third
[ $status -eq 2 ] && complains 'more than one way'
check $? "--race beside files"
for words in '--only x' '--timeout 3' '-- x'; do
    timeout 10 "$compare" rows/old.csv rows/new.csv $words > out 2> err
    [ $? -eq 2 ] && complains 'is for --race'
    check $? "$words is for --race"
done
race ./old ./new --timeout 0
[ $status -eq 2 ] && complains "'0' is not a number of seconds"
check $? "--timeout 0"
TMPDIR=$work/there-is-none race ./old ./new
[ $status -eq 2 ] && complains 'cannot make a temporary folder'
check $? "a TMPDIR that is not there"

if [ -n "$real" ]; then
    race "$real" "$real" --margin 90 -- --mode hot --max-time 0.02 --min-samples 5
    [ $status -ne 2 ] && says '^1 case: '
    check $? "a program built on gpubench.h"
fi
finish
