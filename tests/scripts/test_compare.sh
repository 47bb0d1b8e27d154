#!/bin/sh
# test_compare.sh - which cases scripts/compare.sh measures how often, what it finds by that, and
# the line that it ends with; a script in a suite's place takes the times that a file says. As
# TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
root=$PWD

mkdir -p "$work/build" "$work/scripts" "$work/compare" "$work/results" "$work/baselines/toy-card-1"
cp "$root"/scripts/*.sh "$root"/scripts/*.awk "$work/scripts/"
cp "$root"/compare/*.awk "$work/compare/"
cp "$root/build/gpubench-compare" "$work/build/"
cd "$work" || exit 2
log=$work/log baseline=baselines/toy-card-1/toy.csv current=results/toy.csv
explain() { cat "$log" calls; }

# A suite: line N of `cases` is a case's name and what it takes in the first process, in the
# second, and so on (the last goes on): microseconds, or a status, or throttled:US.
cat > toy <<'EOS'
#!/bin/sh
echo "$*" >> calls
filter=. runs=1 csv=
while [ $# -gt 0 ]; do
    case $1 in
    --filter) filter=$2 ;;
    --runs) runs=$2 ;;
    --csv) csv=$2 ;;
    esac
    shift
done
before=$(cat processes)
echo $((before + runs)) > processes
cut -d' ' -f1-4 cases | grep -nE "$filter" | cut -d: -f1 > numbers
[ -s numbers ] || exit 2
awk 'NR == FNR { chosen[$1] = 1; next } FNR in chosen' numbers cases > chosen
awk -v before="$before" -v runs="$runs" -v git="$GIT_OF" '
    BEGIN { print "schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,flags,median_us,device,git,timestamp" }
    { lines[NR] = $0 }
    END {
        for (run = 1; run <= runs; run++)
            for (i = 1; i <= NR; i++) {
                n = split(lines[i], word, " ")
                time = word[4 + before + run > n ? n : 4 + before + run]
                flags = sub(/throttled:/, "", time) ? "throttle=sw-thermal" : ""
                if (time == "absent") continue
                ok = time ~ /^[0-9.]+$/
                printf "2,toy,%s,%s,cuda,%s,%s,cold,now,%d,%s,%s,%s,\"Toy, Card \"\"1\"\"\",%s,2026-11-29T12:00:0%dZ\n",
                       word[1], word[2], word[3], word[4], run, ok ? "ok" : time, flags, ok ? time : "", git, run % 10
            }
    }' chosen > "$csv"
[ "$(wc -l < calls)" -ne "${FAILING:-0}" ] || exit 3
awk -F, '$11 == "mismatch" || $11 == "oom" { bad = 1 } END { exit bad }' "$csv"
EOS
chmod +x toy

# takes TEXT...: what the cases take from now on.
takes() { printf '%s\n' "$@" > cases; }

# compared STATUS RUNS [ARGUMENTS...]: does compare.sh end with that status?
compared() {
    expected=$1
    shift
    : > calls
    echo 0 > processes
    GIT_OF=now sh scripts/compare.sh ./toy toy "$@" > "$log" 2>&1
    [ $? -eq "$expected" ]
}

# has NAME ROWS: how often a case was measured; every row is one that the tool reads.
has() { build/gpubench-compare --check $current && [ "$(grep -c "^2,toy,toy.$1," $current)" -eq "$2" ]; }
calls_are() { [ "$(wc -l < calls)" -eq "$1" ]; }
says() { grep -qE -e "$1" "$log"; }
ends() { tail -n 1 "$log" | grep -qE -e "^compare-toy: $1\$"; }

echo 0 > processes
: > calls
spread='100 100.1 99.9 100.05 99.95'
takes "toy.steady a f32 n=1 $spread" "toy.other a f32 n=1 $spread" "toy.edge (x+y) f32 n=1 $spread" \
    "toy.last a f32 n=2 $spread"
GIT_OF='' ./toy --runs 5 --csv $baseline
cp cases healthy
sed -i 's/,now,/,before,/' $baseline

compared 0 3
[ $? -eq 0 ] && calls_are 1 && grep -q -- '--runs 1 ' calls && [ "$(wc -l < $current)" -eq 5 ]
check $? "nothing is doubtful: one process measures each case once"
ends '4 cases in 0\.0 min: 0 slower, 0 inconclusive \(0\.0 %\), 0 missing, 0 not ok, 0 raced'
check $? "and the last line says so"

# What the first process finds 1.5 % slower, and 0.9 %.
takes "toy.steady a f32 n=1 $spread" "toy.other a f32 n=1 100.9" "toy.edge (x+y) f32 n=1 101.5 100" \
    "toy.last a f32 n=2 101.5 100"
compared 0 3
[ $? -eq 0 ] && has edge 3 && has last 3 && has steady 1 && has other 1 && calls_are 2
check $? "what looks slower by more than 1 % has two further runs, and nothing else has"
sed -n 2p calls | grep -qF -- '--runs 2 --quiet --csv results/toy-further.txt.new --filter ^toy\.edge \(x\+y\) f32 n=1$|^toy\.last a f32 n=2$'
check $? "and these are measured by one call"
[ "$(awk -F, '$3 == "toy.edge" { print $9, $10, $13 }' $current | tr '\n' ';')" = \
    'now-doubtful 1 101.5;now-doubtful 2 100;now-doubtful 3 100;' ]
check $? "a case's runs are of one campaign, each with its number"
[ "$(sh scripts/device-folder.sh $current)" = baselines/toy-card-1 ] && ! says 'was the file cut'
check $? "the rows keep their quotes, and no run of a campaign lacks cases"
compared 0 1
[ $? -eq 0 ] && calls_are 1 && has edge 1
check $? "one process is asked for: there is no other, whatever is doubtful"
compared 0 3 --filter 'toy\.(edge|steady)' --quiet
[ $? -eq 0 ] && has edge 3 && has steady 1 && [ "$(sed -n 2p calls | grep -o -- --filter | wc -l)" -eq 1 ] &&
    ends '2 cases in .* 0 missing, .*'
check $? "of what the caller's filter takes the doubtful only, and nobody misses the others"
takes "toy.steady a f32 n=1 $spread" "toy.other a f32 n=1 absent" "toy.edge (x+y) f32 n=1 $spread" \
    "toy.last a f32 n=2 $spread"
compared 1 3
[ $? -eq 0 ] && ends '4 cases in .* 1 missing, .*'
check $? "a case that is measured no more is missed"
compared 0 3 --mode cold
[ $? -eq 0 ] && ends '3 cases in .* 0 missing, .*'
check $? "whoever asks for a mode does not miss what has none"

# Baselines of the model's suite are of its passes and parts: habits are not measured for them.
mv $baseline kept
takes "model.step a f32 n=1 $spread" "model.part a f32 n=1 $spread" "model.habit a f32 n=1 $spread"
echo 0 > processes
GIT_OF='' ./toy --runs 5 --csv baselines/toy-card-1/model.csv --filter 'step|part'
sed -i 's/,now,/,before,/' baselines/toy-card-1/model.csv
: > calls
sh scripts/compare.sh ./toy model 1 > "$log" 2>&1
[ $? -eq 0 ] && [ "$(wc -l < results/model.csv)" -eq 3 ] && says '^compare-model: 2 cases'
check $? "a training step's habits are compared only where they are asked for"
takes "model.part a f32 n=1 $spread"
sh scripts/compare.sh ./toy model 1 > "$log" 2>&1
[ $? -eq 1 ] && says '^compare-model: .* 1 missing'
check $? "and what else a baseline has is missed as always"
takes "model.step a f32 n=1 $spread" "model.habit a f32 n=1 $spread"
sh scripts/compare.sh ./toy model 1 --filter habit > "$log" 2>&1
[ "$(grep -c '^2,toy,model[.]habit' results/model.csv)" -eq 1 ] && [ "$(wc -l < results/model.csv)" -eq 2 ]
check $? "a filter of the caller's is the only one"
takes "model.step a f32 n=1 $spread" "model.part a f32 n=1 unsupported"
sed -i 's/^ *ok = time/if (time == "unsupported") flags = "reason=needs_two_GPUs"\n&/' toy
sh scripts/compare.sh ./toy model 1 > "$log" 2>&1
[ $? -eq 0 ] && tail -n 1 "$log" | grep -qE '^compare-model: 1 cases in .* 0 missing, 0 not ok, 0 raced; 1 of other hosts$'
check $? "what needs more GPUs than there are is told by itself"
rm -f results/model* baselines/toy-card-1/model.csv
mv kept $baseline

# Near the power cap a case takes other times alone than in turn with its other variants.
cp $baseline kept
takes "toy.pair a f32 n=3 $spread" "toy.pair b f32 n=3 $spread" "toy.pair a f32 n=4 $spread"
echo 0 > processes
GIT_OF='' ./toy --runs 5 --csv $baseline
sed -i 's/,now,/,before,/' $baseline
takes "toy.pair a f32 n=3 101.5 100" "toy.pair b f32 n=3 $spread" "toy.pair a f32 n=4 $spread"
compared 0 3
[ $? -eq 0 ] && sed -n 2p calls | grep -qF -- '--filter ^toy\.pair a f32 n=3$|^toy\.pair b f32 n=3$' && has pair 7
check $? "what is doubtful takes turns again with the other variants of its case"
compared 0 3 --filter ' a '
[ $? -eq 0 ] && [ "$(sed -n 's/.*--filter //; 2p' calls)" = '^toy\.pair a f32 n=3$' ]
check $? "of those that the caller's filter takes"
takes "toy.pair a f32 n=3 105" "toy.pair b f32 n=3 $spread" "toy.pair a f32 n=4 $spread"
compared 1 3
[ $? -eq 0 ] && sed -n 3p calls | grep -qF -- '--runs 3 --quiet --csv results/toy-again.csv.new --filter ^toy\.pair a f32 n=3$|^toy\.pair b' &&
    ends '3 cases in .*: 1 slower, .*'
check $? "so does what is slower when it is measured again, and alone is judged"
cp kept $baseline

for runs in 0 x 1.5 ''; do
    compared 2 "$runs"
    [ $? -eq 0 ] && calls_are 0 && says "RUNS: '$runs' is no number of processes"
    check $? "RUNS='$runs': refused, and nothing is measured"
done
for option in '--csv mine.csv' --csv=mine.csv '--runs 2'; do
    compared 2 3 $option
    [ $? -eq 0 ] && calls_are 0 && says "compare-toy: ${option%%[ =]*} is not for ARGS"
    check $? "$option is the script's own: whoever gives it would see nothing judged"
done
for seconds in 0 x 1.5; do
    RACE_SECONDS=$seconds compared 2 3
    [ $? -eq 0 ] && calls_are 0 && says "RACE_SECONDS: '$seconds' is no number of seconds"
    check $? "RACE_SECONDS=$seconds is refused before anything is measured"
done

# A slowdown that is there in every process, with no revision to race against.
sed 's/^toy.other .*/toy.other a f32 n=1 105.1 105 104.9/' healthy > cases
compared 1 3
[ $? -eq 0 ] && has other 3 && has steady 1 && calls_are 3 && says '^SLOWER .* toy\.other a' &&
    ends '4 cases in .*: 1 slower, 0 inconclusive \(0\.0 %\), 0 missing, 0 not ok, 0 raced'
check $? "a slowdown of 5 % is found"
sed 's/^toy.other .*/toy.other a f32 n=1 105 105 105 100/' healthy > cases
compared 0 3
[ $? -eq 0 ] && ends '4 cases in .*: 0 slower, .*'
check $? "one that is gone when measured again is no slower case of the last line"

# What ends otherwise than ok in the first process.
for status in mismatch skipped; do
    sed "s/^toy.other .*/toy.other a f32 n=1 $status 100/" healthy > cases
    compared 1 3
    [ $? -eq 0 ] && has other 3 && has steady 1
    check $? "a case that is $status in the first process has further runs"
done
sed 's/^toy.other .*/toy.other a f32 n=1 mismatch 100/' healthy > cases
compared 1 3
[ $? -eq 0 ] && ends '4 cases in .*: 0 slower, 0 inconclusive \(0\.0 %\), 0 missing, 1 not ok, 0 raced'
check $? "one that does not verify once is not forgotten"
sed 's/^toy.other .*/toy.other a f32 n=1 throttled:120 100/' healthy > cases
compared 0 3
[ $? -eq 0 ] && has other 3 && has steady 1
check $? "so has one whose clock was held back in the first"
sed 's/^toy.other .*/toy.other a f32 n=1 absent/' healthy > cases
compared 1 3
[ $? -eq 0 ] && calls_are 1 && ends '4 cases in .*: 0 slower, 0 inconclusive \(0\.0 %\), 1 missing, 0 not ok, 0 raced'
check $? "a case that is not there is missing, and no process is asked for it"

# Slower, with a clock that is held back when it is measured again; another's is not.
takes "toy.steady a f32 n=1 110 110 110 throttled:110" "toy.other a f32 n=1 110 110 110 100" \
    "toy.edge (x+y) f32 n=1 $spread" "toy.last a f32 n=2 $spread"
compared 1 3
[ $? -eq 0 ] && says '^still SLOWER by the baseline, .*: toy toy\.steady' && ends '4 cases in .*: 1 slower, 0 inconclusive .*'
check $? "nothing was said against what is slower and then throttled"
cp $baseline before
sed -i 's/,toy.steady,a,/,toy.steady,+a,/' $baseline
sed 's/^toy.steady a f32 n=1.*/toy.steady +a f32 n=1 110/' healthy > cases
compared 1 3
[ $? -eq 0 ] && ends '4 cases in .*: 1 slower, .*'
check $? "a name may begin as a formula does"
cp before $baseline

# What goes wrong in the further processes.
takes "toy.steady a f32 n=1 103 100"
cp $current before
FAILING=2 compared 3 3
[ $? -eq 0 ] && [ "$(wc -l < $current)" -eq 2 ] && has steady 1 && [ ! -e $current.new ] &&
    [ ! -e results/toy-further.txt.new ] && [ ! -e results/toy-summary.txt ] && ! says '^compare-toy: 1 cases'
check $? "further processes that fail: their status, the first one's rows, and no line of what was found"
cp before $current
FAILING=1 compared 3 3
[ $? -eq 0 ] && cmp -s before $current
check $? "a first process that fails leaves the earlier rows"

# With a revision to race against, the race's verdicts count: RACED are its cases' own.
sed -i 's/,,\(2026[^,]*\)$/,abc1234,\1/' $baseline
cat > scripts/race.sh <<'EOS'
case "$*" in
*--build-only*) exit 0 ;;
*--seconds\ "$ALLOWED"\ --*) ;;
*) exit 3 ;;
esac
while [ "$1" != -- ]; do
    [ "$1" != --verdicts ] || verdicts=$2
    shift
done
{
    echo suite,case,variant,backend,dtype,params,mode,against,metric,verdict,ratio,ratio_low
    for name in edge last; do
        variant=a params=n=2
        [ $name = last ] || { variant='(x+y)' params=n=1; }
        eval "echo \"toy,toy.$name,$variant,cuda,f32,$params,cold,$variant,median_us,\$RACED_$name,1,${RACE_LOW-0.99}\""
    done
} > "$verdicts"
exit "$RACE_ENDS"
EOS
takes "toy.steady a f32 n=1 $spread" "toy.other a f32 n=1 $spread" "toy.edge (x+y) f32 n=1 103" \
    "toy.last a f32 n=2 103"
export RACED_edge=same RACED_last=inconclusive RACE_ENDS=0 ALLOWED=180
compared 0 3
[ $? -eq 0 ] && calls_are 2 && [ "$(wc -l < results/toy-screened.txt)" -eq 2 ] &&
    ends '4 cases in .*: 0 slower, 1 inconclusive \(25\.0 %\), 0 missing, 0 not ok, 2 raced'
check $? "what was raced has the race's verdict in the last line"
ALLOWED=60 RACE_SECONDS=60 compared 0 3
check $? "the race has 180 seconds, or RACE_SECONDS"
compared 0 3 --filter edge
[ $? -eq 0 ] && ! says 'still missing' && ends '2 cases in .*, 0 missing, 0 not ok, 2 raced'
check $? "nobody misses what the caller's filter left out, behind a race either"
cp cases before
sed -i 's/^toy.last.*/toy.last a f32 n=2 110/' cases
compared 0 3
[ $? -eq 0 ] && says '^SLOWER .* toy\.last' && ends '4 cases in .*: 0 slower, 1 inconclusive .* 2 raced'
check $? "a race with an interval clears what the baseline calls slower"
RACE_LOW='' compared 1 3
[ $? -eq 0 ] && says '^still SLOWER by the baseline, of which the second look cannot tell: toy toy.last a cuda f32 n=2 cold$' &&
    ! says 'still SLOWER.*edge' && ends '4 cases in .*: 1 slower, 0 inconclusive .* 2 raced'
check $? "a race that had no time to tell does not clear it"
cp before cases
RACED_edge=SLOWER RACE_ENDS=1 compared 1 3
[ $? -eq 0 ] && ends '4 cases in .*: 1 slower, 1 inconclusive \(25\.0 %\), 0 missing, 0 not ok, 2 raced'
check $? "what the race finds slower is"
RACE_ENDS=2 compared 2 3
[ $? -eq 0 ] && [ ! -e results/toy-summary.txt ]
check $? "a race that cannot judge leaves no count"

takes "toy.steady a f32 n=1 $spread" "toy.other a f32 n=1 $spread" "toy.edge (x+y) f32 n=1 103 100" \
    "toy.last a f32 n=2 $spread"
compared 0 3
[ $? -eq 0 ] && has edge 3 && [ ! -s results/toy-screened.txt ] && ends '4 cases in .* 0 raced'
check $? "what looks slower by 3 % in the first process only, and by 1 % in three, is not raced"

# Work that depends on the inputs compares where the seed is the baseline's.
# seeds FILE SEED...: the baselines' rows say these seeds in turn.
seeds() {
    file=$1
    shift
    awk -v list="$*" 'BEGIN { n = split(list, seed, " ") }
        { print $0 "," (NR == 1 ? "seed" : seed[NR % n + 1]) }' before-seeds > "$file"
}
# seeds_are SEED: what the first process was given, and those of the doubtful.
seeds_are() { [ "$(grep -o -- '--seed[ =][^ ]*' calls | tr '\n' ' ')" = "$1" ]; }
cp $baseline before-seeds
mkdir baselines/other-card
seeds $baseline 12 5 40
compared 0 3
[ $? -eq 0 ] && calls_are 2 && seeds_are '--seed 5 --seed 5 '
check $? "every process has the baseline's seed, the least of several"
seeds baselines/other-card/toy.csv 40 12
compared 0 3
[ $? -eq 0 ] && seeds_are '--seed 12 --seed 12 '
check $? "one that the baselines of every device have"
seeds $baseline 12 '--list'
seeds baselines/other-card/toy.csv 7 '--list'
compared 0 3
[ $? -eq 0 ] && seeds_are ''
check $? "where there is none, the program's own"
compared 0 3 --seed=9
[ $? -eq 0 ] && seeds_are '--seed=9 --seed=9 '
check $? "or the caller's, who comes first"
seeds baselines/other-card/toy.csv 5
compared 0 3 --seed 9
[ $? -eq 0 ] && seeds_are '--seed 9 --seed 9 '
check $? "whatever the baselines have"
rm -r baselines/other-card

# One line over all suites.
head='suite,cases,slower,inconclusive,missing,not_ok,raced,elsewhere,seconds'
printf '%s\nnorm,256,0,2,0,0,5,0,54\n' $head > results/norm-summary.txt
printf '%s\nloss,44,1,1,3,2,1,7,33\n' $head > results/loss-summary.txt
sh scripts/summary.sh norm loss > "$log" 2>&1 &&
    [ "$(cat "$log")" = 'compare: 2 suites, 300 cases in 1.4 min: 1 slower, 3 inconclusive (1.0 %), 3 missing, 2 not ok, 6 raced; 7 of other hosts' ]
check $? "all suites: their sums"
sh scripts/summary.sh model norm rope > "$log" 2>&1 &&
    [ "$(cat "$log")" = 'compare: 1 suites, 256 cases in 0.9 min: 0 slower, 2 inconclusive (0.8 %), 0 missing, 0 not ok, 5 raced; not judged: model rope' ]
check $? "and the names of those that could not be judged"

finish
