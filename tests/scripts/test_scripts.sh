#!/bin/sh
# test_scripts.sh - recording and comparing baselines, and judging a planted
# slowdown, with a program in a suite's place that hands out prepared results. As
# TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
root=$PWD

mkdir -p "$work/build" "$work/scripts" "$work/compare" "$work/tests/gpu"
cp "$root"/scripts/*.sh "$root"/scripts/*.awk "$work/scripts/"
cp "$root"/compare/*.awk "$work/compare/"
cp "$root"/tests/gpu/planted.* "$work/tests/gpu/"
cp "$root/build/gpubench-compare" "$work/build/"
cd "$work" || exit 2
git init -q . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m start
printf '/build/\n/scripts/\n/compare/\n/tests/\n/results/\n/fake\n/next*\n/calls\n/log\n/other\n/given\n/kept\n/before\n/parts\n/fake-steps\n/fake-block\n/ending-steps\n/shapes\n/study/\n/bin/\n/built/\n/inside/\n/torch-kept/\n/listed\n' > .git/info/exclude

# rows FILE CAMPAIGN MEDIAN...: one run each of a case that is steady, and of
# one that takes 10 us.
rows() {
    file=$1 campaign=$2 run=0
    shift 2
    echo schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,median_us,device > "$file"
    for median; do
        run=$((run + 1))
        echo "2,toy,toy.changing,a,cuda,f32,n=1,cold,$campaign,$run,ok,$median,Toy Card 1" >> "$file"
        echo "2,toy,toy.steady,a,cuda,f32,n=1,cold,$campaign,$run,ok,10.0$run,Toy Card 1" >> "$file"
    done
}

# A suite: writes next1, next2, ... in turn to where --csv says, notes how it was
# called, and ends with FAKE_STATUS.
cat > fake <<'EOS'
#!/bin/sh
case $* in *--list) cat listed 2> /dev/null; exit ;; esac
echo "$*" >> calls
turn=$(wc -l < calls)
while [ $# -gt 0 ]; do
    [ "$1" = --csv ] && cp "next$((turn))" "$2"
    shift
done
exit "${FAKE_STATUS:-0}"
EOS
chmod +x fake

: > calls
rows next1 first 100 100.1 99.9 100.2 99.8
sh scripts/baseline.sh ./fake toy 5 > log 2>&1
[ $? -eq 0 ] && cmp -s next1 baselines/toy-card-1/toy.csv
check $? "a first baseline is what was measured"

rows next2 second 100 100.1 99.9
sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 2 ] && grep -q 'has changes' log && cmp -s next1 baselines/toy-card-1/toy.csv
check $? "a tree with changes is refused and nothing is lost"

: > calls
cp next2 next1
FORCE=1 sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 0 ] && [ "$(wc -l < baselines/toy-card-1/toy.csv)" -eq 17 ] &&
    grep -q second baselines/toy-card-1/toy.csv && grep -q first baselines/toy-card-1/toy.csv
check $? "FORCE=1 appends a campaign"
grep -q -- '--runs 3' calls
check $? "the number of processes reaches the suite"

: > calls
cp baselines/toy-card-1/toy.csv kept
FORCE=1 sh scripts/baseline.sh ./fake toy 3 --csv mine.csv > log 2>&1
[ $? -eq 2 ] && [ ! -s calls ] && grep -q 'baseline-toy: --csv is not for ARGS' log && cmp -s kept baselines/toy-card-1/toy.csv
check $? "rows that would go elsewhere are refused before they are measured"

# Of the model's suite compare-model measures no habits, and would miss them.
: > calls
rows next1 model 100 100.1
sed 's/toy.steady/model.habit/' next1 > next2
FORCE=1 sh scripts/baseline.sh ./fake model 2 > log 2>&1
[ $? -eq 0 ] && grep -q -- '--filter ^model\[.\](forward|forward_loss|backward|step|part) $' calls &&
    [ "$(wc -l < baselines/toy-card-1/model.csv)" -eq 5 ]
check $? "the model's baseline is of its passes and parts"
FORCE=1 sh scripts/baseline.sh ./fake model 2 --filter habit > log 2>&1
[ $? -eq 2 ] && grep -q 'make baseline-habits' log && [ "$(wc -l < baselines/toy-card-1/model.csv)" -eq 5 ]
check $? "and habits that were asked for are not appended to it"
rm baselines/toy-card-1/model.csv

# What a later version of the header writes behind the old columns.
cp baselines/toy-card-1/toy.csv kept
: > calls
rows next1 later 100 100.1 99.9
sed '1s/$/,counters,"more"/; 2,$s/$/,steps=3,/' next1 > other && mv other next1
FORCE=1 sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 0 ] && { sed '1s/$/,counters,"more"/; 2,$s/$/,,/' kept; tail -n +2 next1; } |
    cmp -s - baselines/toy-card-1/toy.csv
check $? "columns that are new behind the old ones are empty in the old rows"
. scripts/record.sh
printf 'a,b\n1,"x\ny ""z"""\n2,\r\n' > other
[ "$(widened other ,c)" = "$(printf 'a,b,c\n1,"x\ny ""z""",\n2,,\r')" ]
check $? "a row that goes on in the next line is one row"
: > calls
sed '1s/counters/tokens/' next1 > other && mv other next1
FORCE=1 sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 2 ] && grep -q 'has other columns' log
check $? "other columns are refused"
mv kept baselines/toy-card-1/toy.csv

# One process, as its rows here are of three already: test_compare.sh has the others.
: > calls
rows next1 new 100 100.1 99.9
sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 0 ] && [ "$(wc -l < calls)" -eq 1 ]
check $? "the same times pass, measured once"

: > calls
rows next1 new 110 110.1 109.9
rows next2 newer 100 100.1 99.9
sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 0 ] && [ "$(wc -l < calls)" -eq 2 ]
check $? "slower once, and not when measured again: passes"
grep -q -F -- '--filter ^toy\.changing a f32 n=1$' calls
check $? "only the slower case is measured again"

: > calls
cp next1 next2
sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 1 ] && grep -q SLOWER log
check $? "slower twice fails"

: > calls
rows next1 new 100 100.1 99.9
sed 's/Toy Card 1/Other Card/' next1 > other && mv other next1
sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 2 ] && grep -q 'baselines/other-card/toy.csv is missing' log && grep -q 'make baseline-toy' log
check $? "no baseline of this device: status 2, the file's name and how to record it"

# With a revision to race against, its word counts for what the screen found.
real_race=$(cat scripts/race.sh)
cp baselines/toy-card-1/toy.csv kept
sed -i '1s/$/,git/; 2,$s/$/,abc1234/' baselines/toy-card-1/toy.csv
cat > scripts/race.sh <<'EOS'
echo "$*" >> race-calls
case "$*" in
*--build-only*) exit 0 ;;
esac
cp results/toy-screened.txt raced
echo verdict > results/toy-second.txt
exit "$RACE_STATUS"
EOS
printf '/race-calls\n/raced\n' >> .git/info/exclude
for verdict in 0 1 2; do
    : > calls
    : > race-calls
    rows next1 new 103 103.1 102.9
    RACE_STATUS=$verdict sh scripts/compare.sh ./fake toy 1 --seed 7 > log 2>&1
    [ $? -eq "$verdict" ] && [ "$(cat raced)" = 'toy.changing a f32 n=1' ] && [ "$(wc -l < calls)" -eq 1 ] &&
        grep -q -- '^./fake toy --rev abc1234 --only results/toy-screened.txt --verdicts results/toy-second.txt --seconds 180 -- --seed 7$' race-calls
    check $? "what looks slower by 3 % is raced, and status $verdict of the race is compare's"
done
: > calls
sed '/steady/d' next1 > other && mv other next1
RACE_STATUS=0 sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 1 ] && grep -q 'still missing: toy.steady a f32 n=1 cold' log
check $? "a missing case is not forgotten when the race finds nothing"
: > calls
: > race-calls
rows next1 new 101.5 101.6 101.4
RACE_STATUS=1 sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 0 ] && [ ! -s race-calls ]
check $? "nothing is raced within the margin"
printf '%s\n' "$real_race" > scripts/race.sh
cp kept baselines/toy-card-1/toy.csv

# S1: what the second measurement does not look at stays found.
: > calls
rows next1 new 110 110.1 109.9
sed '/steady/d' next1 > other && mv other next1
rows next2 newer 100 100.1 99.9
sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 1 ] && grep -q 'still missing: toy.steady a f32 n=1 cold' log
check $? "a missing case is not forgotten when the slower one recovers"
: > calls
rows next1 new 110 110.1 109.9
sed 's/steady\(.*\),3,ok,[^,]*/steady\1,3,mismatch,/' next1 > other && mv other next1
sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 1 ] && grep -q 'still not ok: toy.steady a f32 n=1 cold' log
check $? "nor is a case that no longer verifies"
for kind in skipped unsupported mismatch; do
    : > calls
    rows next1 new 110 110.1 109.9
    rows next2 newer 100 100.1 99.9
    sed "s/changing\\(.*\\),ok,[^,]*/changing\\1,$kind,/" next2 > other && mv other next2
    sh scripts/compare.sh ./fake toy 1 > log 2>&1
    [ $? -eq 1 ] && grep -q 'toy.changing' log
    check $? "a slower case that is $kind when measured again fails"
done
: > calls
sed '/changing/d' next2 > other && mv other next2
sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 1 ] && grep -q 'missing in current' log
check $? "a slower case that is missing when measured again fails"

# S2
: > calls
rows next1 new 110 110.1 109.9
cp next1 next2
sh scripts/compare.sh ./fake toy 1 --filter 'toy a' --quiet > log 2>&1
[ $? -eq 1 ] && [ "$(sed -n 2p calls | grep -o -- --filter | wc -l)" -eq 1 ] &&
    [ "$(grep -c -- '--quiet.*--quiet' calls)" -eq 0 ] && sed -n 2p calls | grep -qF -- '--filter ^toy\.changing a f32 n=1$'
check $? "the caller's filter gives way to the slower cases, and --quiet is given once"

# S3: an oom row is a row.
: > calls
rows next1 new 100 100.1 99.9
echo "2,toy,toy.large,a,cuda,f32,n=9,cold,new,1,oom,,Toy Card 1" >> next1
FAKE_STATUS=1 sh scripts/compare.sh ./fake toy 1 > log 2>&1
[ $? -eq 0 ] && grep -q '1 ok on neither side' log
check $? "a case that has no room is judged as that"
: > calls
cp next1 next2
cp baselines/toy-card-1/toy.csv kept
FORCE=1 FAKE_STATUS=1 sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 1 ] && tail -1 baselines/toy-card-1/toy.csv | grep -q ',oom,'
check $? "and recorded as that; the status says that a case failed"

# S4, S5: what cannot be read is not appended to.
refused() { # refused TEXT NAME: of the baseline that is there
    cp baselines/toy-card-1/toy.csv before
    : > calls
    FORCE=1 sh scripts/baseline.sh ./fake toy 3 > log 2>&1
    [ $? -eq 2 ] && grep -q "$1" log && cmp -s before baselines/toy-card-1/toy.csv
    check $? "$2"
    cp kept baselines/toy-card-1/toy.csv
}
printf '%s' "$(cat kept)" > baselines/toy-card-1/toy.csv
refused 'no line end' "a baseline without its last line end is refused and untouched"
{ cat kept; echo '<<<<<<< HEAD'; } > baselines/toy-card-1/toy.csv
refused 'conflict markers' "a baseline with conflict markers is refused and untouched"
{ cat kept; echo '2,toy,toy.steady'; } > baselines/toy-card-1/toy.csv
refused 'the line has 3 fields' "a baseline with a broken row is refused and untouched"

: > calls
cp next1 next-verified
awk -F, -v OFS=, '{ $0 = $0 OFS (NR == 1 ? "flags" : NR == 3 ? "few-samples unverified" : "") } 1' \
    next-verified > next1
refused 'nobody verified' "rows that nobody verified are no baseline"
mv next-verified next1

# S6, S13
mkdir -p bin && printf '#!/bin/sh\necho "fatal: detected dubious ownership" >&2\nexit 128\n' > bin/git && chmod +x bin/git
: > calls
PATH=$work/bin:$PATH sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 2 ] && grep -q 'dubious ownership' log && [ ! -s calls ]
check $? "a git that cannot tell is no clean tree"
mkdir -p inside && cp -r scripts compare build fake next1 inside/
: > inside/calls
(cd inside && sh scripts/baseline.sh ./fake toy 3 > log 2>&1)
[ $? -eq 0 ] && [ -e inside/baselines/toy-card-1/toy.csv ]
check $? "the changes of a repository around the tree are not the tree's"
rm -r inside bin

# S7
sed 's/Toy Card 1/"Intel Xeon Processor (Skylake, IBRS)"/' next1 > other
[ "$(sh scripts/device-folder.sh other)" = baselines/intel-xeon-processor-skylake-ibrs ]
check $? "a processor with a comma in its name has a folder"

# S14: small losses add up.
: > calls
rows next1 loss 106 106.1 105.9
FORCE=1 sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 1 ] && grep -q 'slower than the oldest campaign' log && grep -q SLOWER log &&
    cmp -s kept baselines/toy-card-1/toy.csv
check $? "a loss against the oldest campaign is not recorded without a reason"
: > calls
FORCE=1 REASON='checks its input now' sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 0 ] && grep -q loss baselines/toy-card-1/toy.csv &&
    grep -q '^loss *checks its input now' baselines/toy-card-1/toy.reasons.txt
check $? "with one it is, and the reason is kept"

# Other work in one case leaves nothing to judge it by, and is no excuse for another's loss.
: > calls
cp baselines/toy-card-1/toy.csv kept-toy
sed '1s/$/,flops/; 2,$s/$/,8/' kept > baselines/toy-card-1/toy.csv
rows next1 worse 112 112.1 111.9
awk -F, -v OFS=, '{ print $0, (NR == 1 ? "flops" : /changing/ ? 8 : 9) }' next1 > next-flops && mv next-flops next1
FORCE=1 sh scripts/baseline.sh ./fake toy 3 > log 2>&1
[ $? -eq 1 ] && grep -q 'slower than the oldest campaign' log && ! grep -q worse baselines/toy-card-1/toy.csv
check $? "nor where another case's work has changed"
mv kept-toy baselines/toy-card-1/toy.csv

# The settings of the baseline are measured with, but for those that the caller gives.
mkdir -p baselines/other-card
sed '1s/$/,settings/; 2,$s/$/,precision=0.25 max_time=3 min_samples=30 max_samples=100000 warmup=5 streams=32/' next1 |
    sed 's/Toy Card 1/Other Card/' > baselines/other-card/set.csv
: > calls
cp baselines/other-card/set.csv next1
sh scripts/compare.sh ./fake set 1 --max-time 1 > log 2>&1
[ $? -eq 0 ] && grep -q -- '--max-time 1 --precision 0.25 --min-samples 30 --max-samples 100000 --warmup 5$' calls
check $? "compare measures with the baseline's settings"
: > calls
sed 's/precision=0.25/precision=0.5/' baselines/other-card/set.csv > next1
sh scripts/compare.sh ./fake set 1 > log 2>&1
grep -q "warning: settings differ: current has 'precision=0.5" log
check $? "or says that they differ"
cp kept baselines/toy-card-1/toy.csv

# What stands for Python measures two suites, of which one has a baseline here; each suite's
# program then measures its own.
mkdir built && ln -s ../fake built/toy && ln -s ../fake built/other
torch_baselines() { FORCE=1 PYTHON=./fake sh scripts/torch-baselines.sh built "$@" > log 2>&1; }
lines_of() { [ "$(wc -l < "baselines/toy-card-1/torch/$1.csv")" -eq "$2" ]; }
rows next2 own 150 150.1
grep -v steady next2 > next2.new && mv next2.new next2
sed 's/toy,toy/other,other/' next2 > next3
rows next1 first 200 200.1
sed -i '/steady/s/,toy,toy/,other,other/; s/,a,/,torch-eager,/' next1
# Behind the fastest in order and in name, and in another mode; and one that the program no
# longer has.
printf 'toy.changing %s f32 n=1\n' a b+ c d > listed
sed -n '/changing/{s/,a,/,b+,/; s/,ok,[0-9.]*/,ok,50/p; s/,b+,/,c,/; s/,cold,/,hot,/; s/,ok,50/,ok,20/p; s/,c,/,d,/; s/,hot,/,cold,/; s/,ok,20/,failed,/p; s/,d,/,gone,/; s/,failed,/,ok,10/p}' kept >> baselines/toy-card-1/toy.csv
: > calls
FAKE_STATUS=1 torch_baselines 1 --without x
[ $? -eq 1 ] && lines_of toy 5 && lines_of other 5 &&
    [ "$(grep -c '2,other,other.steady,torch-eager' baselines/toy-card-1/torch/other.csv)" -eq 2 ]
check $? "PyTorch's rows are kept by suite, with the suite's own; the status says that a case failed"
sed -n 1p calls | grep -q -- '^compare/pytorch --suites built --runs 1 --seed 1 --campaign [0-9TZ]*-1 .*--without x$'
check $? "a round is one process, and the arguments reach compare/pytorch"
sed -n 2p calls | grep -qF -- '--filter ^toy\.changing b\+ f32 n=1$' &&
    sed -n 3p calls | grep -qF -- '--filter ^other\.steady [^ ]+ f32 n=1$' && [ "$(wc -l < calls)" -eq 3 ]
check $? "beside it runs the fastest variant of each case by the baseline; without one, all"
[ "$(sed -n 's/.*--campaign \([^ ]*\).*/\1/p' calls | sort -u | wc -l)" -eq 1 ]
check $? "both sides of a round are one campaign"
[ "$(grep -o -- '--seed [^ ]*' calls | sort -u)" = '--seed 1' ]
check $? "with the round's number as the seed of both"
sed -i 's/first\|own/second/; 1s/$/,settings/; 2,$s/$/,precision=1 max-time=0.05 min-samples=30 warmup=5/' next[123]
: > calls
FORCE=1 PYTHON=./fake sh scripts/torch-baselines.sh built 1 > log 2>&1
[ $? -eq 0 ] && head -1 baselines/toy-card-1/torch/toy.csv | grep -q 'device,settings$' && lines_of toy 9 && lines_of other 9 &&
    sed -n 2p calls | grep -q -- '^--precision 1 --max-time 0.05 --min-samples 30 --dtype f32 --streams 1 --runs 1 '
check $? "the suites run with PyTorch's settings and dtypes, on one stream"
for file in 1 2 3; do # in the second round the suites come first
    sed 's/second/fourth/' "next$file" > "next$((file == 1 ? 6 : file + 2))"
    sed -i 's/second/third/' "next$file"
done
: > calls
torch_baselines 2
[ $? -eq 0 ] && lines_of toy 17 && lines_of other 17 && [ "$(wc -l < calls)" -eq 6 ] &&
    [ "$(grep -c ^schema baselines/toy-card-1/torch/toy.csv)" -eq 1 ] &&
    ! grep -q 'torch-\|,own,' baselines/toy-card-1/toy.csv
check $? "two more rounds are appended, and the suite's own baseline is as it was"
[ "$(grep -o -- '--seed [^ ]*' calls | tr '\n' ' ')" = '--seed 1 --seed 1 --seed 1 --seed 2 --seed 2 --seed 2 ' ]
check $? "and each has a seed of its own"
[ "$(grep -n '^compare/pytorch' calls | cut -d: -f1 | tr '\n' ' ')" = '1 6 ' ]
check $? "the sides take turns in going first"
cp next1 before && cp -r baselines/toy-card-1/torch torch-kept
sed -i '/other/s/,ok,[^,]*/,oom,/' next1
: > calls
FAKE_STATUS=1 torch_baselines 1
[ $? -eq 1 ] && [ "$(wc -l < calls)" -eq 2 ] && [ "$(grep -c ,oom, baselines/toy-card-1/torch/other.csv)" -eq 2 ]
check $? "beside what PyTorch could not measure nothing runs"
mv before next1 && rm -r baselines/toy-card-1/torch && mv torch-kept baselines/toy-card-1/torch
: > calls
FAKE_STATUS=2 torch_baselines 2
[ $? -eq 2 ] && lines_of toy 17
check $? "no way to measure PyTorch: status 2, nothing recorded"
FORCE=1 PYTHON=true sh scripts/torch-baselines.sh built 2 --help > log 2>&1 &&
    FORCE=1 sh scripts/baseline.sh true toy 2 --list >> log 2>&1 &&
    lines_of toy 17 && [ ! -s log ]
check $? "what was measured before is not recorded again by --help or --list"
torch_baselines 2 --csv=mine.csv
[ $? -eq 2 ] && grep -q 'torch-baselines: --csv is not for ARGS' log
check $? "torch-baselines: nor may PyTorch's rows go elsewhere"
PYTHON=./fake sh scripts/torch-baselines.sh built 2 > log 2>&1
[ $? -eq 2 ] && grep -q 'has changes' log
check $? "PyTorch is not recorded in a tree with changes either"
cp kept baselines/toy-card-1/toy.csv

# norm_rows FILE RUNS LARGE SMALL BACKWARD: medians of the kernel that is patched at
# two shapes and of one that is not; runs differ by 0.1 %.
norm_rows() {
    awk -v runs="$2" -v medians="$3 $4 $5" 'BEGIN {
        print "schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,median_us,bytes,flops,device"
        split(medians, median, " ")
        split("layernorm.forward layernorm.forward layernorm.backward", name, " ")
        split("n=32768 n=512 n=32768", params, " ")
        split("8000 200 9000", bytes, " ")
        for (run = 1; run <= runs; run++)
            for (i = 1; i <= 3; i++)
                printf "2,norm,%s,vectorized,cuda,f32,%s,cold,now,%d,ok,%s,%s,,Toy Card 1\n", name[i], params[i], run,
                       median[i] * (1 + 0.001 * (run % 3)), bytes[i]
    }' > "$1"
}

planted() { # planted STATUS TEXT NAME ARGUMENTS...: how the judgement ends and what it says
    status=$1 text=$2 name=$3
    shift 3
    : > calls
    sh tests/gpu/planted.sh "$@" ./fake ./fake --filter x > log 2>&1
    [ $? -eq "$status" ] && grep -q "^planted: $text" log
    check $? "planted: $name"
}

norm_rows next1 10 100 5 200
norm_rows next2 3 105 5 200
planted 0 'found, and only there: 1 of 3 cases SLOWER' "5 % at the largest shape is found"
grep -q -- '--runs 10 .*--filter x' calls && grep -q -- '--runs 3 .*--filter x' calls
check $? "planted: ten healthy runs, three patched ones, with the arguments of the caller"
norm_rows next2 3 105 5.3 200
planted 0 'found, and only there: 2 of 3 cases SLOWER' "a small shape may be slower too"
norm_rows next2 3 105 5 210
planted 1 'layernorm.backward vectorized f32 n=32768 cold is SLOWER, and nothing' "a kernel that nothing was done to must not be"
norm_rows next2 3 100 5.3 200
planted 1 'layernorm.forward vectorized f32 n=32768 cold is same, not SLOWER' "the largest shape must be"
cp next1 given
norm_rows next1 3 105 5 200
planted 0 'found, and only there' "a baseline that is given is not measured" -b given

# A step of 100 us whose parts take 60, 25 and 5, and one that was not measured whole.
cat > parts <<'EOS'
schema,suite,case,variant,dtype,params,mode,run,status,median_us,counters
2,model,model.step,best,f32,size=x b=1,cold,1,ok,100,tokens/s=5
2,model,model.part,best,f32,pass=backward part=linear size=x b=1,cold,1,ok,60,ops=16
2,model,model.part,best,f32,pass=forward part=linear size=x b=1,cold,1,ok,24,ops=8
2,model,model.part,best,f32,pass=forward part=linear size=x b=1,cold,2,ok,26,ops=8
2,model,model.part,best,f32,pass=update part=clip size=x b=1,cold,1,ok,5,ops=1
2,model,model.part,best,f32,pass=update part=adamw size=x b=1,cold,1,failed,,
2,model,model.part,graph,f32,pass=update part=clip size=x b=1,cold,1,ok,5,ops=1 launches=2
2,model,model.step,graph,f32,size=x b=1,cold,1,ok,80,tokens/s=6 launches=33
EOS
parts_table() {
    awk -f compare/csv.awk -f compare/numbers.awk -f "$root/scripts/tables/model_parts.awk" parts > log 2>&1
}
parts_table &&
    grep -q '^| backward | linear | 16 | - | 60.00 | 66.7 % |$' log &&
    grep -q '^| forward | linear | 8 | - | 25.00 | 27.8 % |$' log &&
    [ "$(grep -c '^| update | clip | 1 | 2 | 5.00 | ' log)" -eq 2 ] &&
    [ "$(grep -c "^from a graph the step's 33 launches take 80.00 us, 80.0 % of the" log)" -eq 1 ] &&
    grep -q '^forward 25.0 %, loss 0.0 %, backward 60.0 %, update 5.0 %, rest 10.0 % of the step;' log &&
    grep -q 'sum is 90.00 us of 100.0 us: 0.900$' log && ! grep -q '^no row of the whole step$' log
check $? "the table of a step's parts: the longest first, shares, sum against the whole, launches"
sed -i '/model.step/d' parts
parts_table && [ "$(grep -c '^no row of the whole step$' log)" -eq 2 ]
check $? "the table of a step's parts: without the whole step it says so"

# Ten steps, of which the last takes twice as long: 10 in 11 ms, 1000 a second at first, 500
# at the end; another run of one step.
{
    echo suite,case,variant,backend,dtype,params,mode,campaign,run,sample,us
    for i in 1 2 3 4 5 6 7 8 9 10; do
        echo "model,model.step,best,cpu,f32,size=x b=1,cold,c,1,$i,$((i < 10 ? 1000 : 2000))"
    done
    echo 'model,model.part,best,cpu,f32,size=x b=1,cold,c,1,1,7'
    echo 'model,model.step,graph,cpu,f32,size=x b=1,cold,c,1,1,1000'
    echo 'model,model.step,graph,cpu,f32,size=x b=1,cold,c,2,1,3000'
} > parts
awk -f compare/csv.awk -f "$root/scripts/tables/steps.awk" parts > log 2>&1 &&
    grep -qF '| `model.step` | best | f32 | size=x b=1 | 10 | 909.1 | 1000.0 | 500.0 | 0.550 |' log &&
    grep -qF '| `model.step` | graph | f32 | size=x b=1 | 2 | 500.0 | 500.0 | 500.0 | 1.000 |' log &&
    [ "$(wc -l < log)" -eq 4 ]
check $? "the table of steps a second: the last tenth beside the average"

# 1 of 4 TFLOP/s of the same device and dtype; none of the dtype; and no room.
cat > products <<'EOS'
case,dtype,mode,status,device,tflop_per_s
gemm.nn,f32,cold,ok,Toy,2
gemm.nn,f32,cold,ok,Toy,4
gemm.nn,f32,cold,ok,Other,9
EOS
cat > passes <<'EOS'
case,dtype,mode,status,device,tflop_per_s,params,variant,mean_us,stddev_us,counters,flags
model.step,f32,cold,ok,Toy,1,size=a b=1,best,2000,20,tokens/s=64000 peak_bytes=5000000,
model.step,bf16,cold,ok,Toy,1,size=a b=1,best,2000,20,tokens/s=64000 peak_bytes=5000000,
model.step,f32,cold,oom,Toy,,size=b b=1,best,,,,needed_bytes=900 free_bytes=800 reason=x
EOS
awk -v ceilings=products -f compare/csv.awk -f compare/numbers.awk \
    -f "$root/scripts/tables/model_steps.awk" passes > log 2>&1 &&
    grep -q '^| model.step | f32 | size=a b=1 | best | 2000 | 20.00 | 64000 | 5 | 1.0 | 25 % |$' log &&
    grep -q '^| model.step | bf16 | .* | 1.0 | - |$' log &&
    grep -q '^| model.step | f32 | size=b b=1 | best | oom: 900 bytes needed, 800 free |' log
check $? "the table of passes: mean, tokens, memory, share of the fastest product"

# Twice and eight times as fast make four; of three runs the middle one counts. One shape
# was not measured by `threads`, `blas` nowhere; a GPU's rows have other steps.
cat > gains <<'EOS'
case,variant,backend,dtype,params,mode,run,status,median_us
attention.forward,naive,cpu,f32,t=1,cold,1,ok,80
attention.forward,tiled,cpu,f32,t=1,cold,1,ok,40
attention.forward,simd,cpu,f32,t=1,cold,1,ok,9
attention.forward,simd,cpu,f32,t=1,cold,2,ok,10
attention.forward,simd,cpu,f32,t=1,cold,3,ok,80
attention.forward,threads,cpu,f32,t=1,cold,1,ok,5
attention.forward,naive,cpu,f32,t=2,cold,1,ok,80
attention.forward,tiled,cpu,f32,t=2,cold,1,ok,10
attention.forward,simd,cpu,f32,t=2,cold,1,ok,10
attention.forward,threads,cpu,f32,t=2,cold,1,failed,
attention.forward,blas,cpu,f32,t=2,cold,1,unsupported,
attention.backward,naive,cuda,f32,t=2,cold,1,ok,80
attention.backward,tiled,cuda,f32,t=2,cold,1,ok,10
EOS
awk -f compare/csv.awk -f compare/numbers.awk -f "$root/scripts/tables/attention_gains.awk" gains > log 2>&1 &&
    [ "$(cat log)" = "attention.forward: tiled is 4 times as fast as naive, simd is 2 times tiled, threads is 2 times simd" ]
check $? "one sentence says how much faster each step is"

# Two variants of a habit at 100 steps a sample, the better last: 0.3 against 0.2 s; the
# intervals allow 0.29 / 0.21 to 0.31 / 0.19. A step whose `graph` takes half the time.
cat > parts <<'EOS'
schema,suite,case,variant,dtype,params,mode,run,status,median_us,ci95_low_us,ci95_high_us,device_bytes
2,model,model.habit,every_step,f32,habit=loss steps=100 size=x b=4 t=128,cold,1,ok,300000,290000,310000,5000000
2,model,model.habit,every_100,f32,habit=loss steps=100 size=x b=4 t=128,cold,1,ok,200000,190000,210000,5000000
2,model,model.step,best,f32,size=x b=4 t=128,cold,1,ok,2000,,,5000000
2,model,model.step,graph,f32,size=x b=4 t=128,cold,1,ok,1000,,,5000000
2,model,model.step,graph,f32,size=y b=4 t=128,cold,1,ok,1000,,,5000000
EOS
awk -f compare/csv.awk -f compare/numbers.awk -f "$root/scripts/tables/model_habits.awk" parts > log 2>&1 &&
    grep -q '^| loss, f32, x b=4 t=128 | every_step | 3000 | 170667 | 5 | 1.500 (1.381 to 1.632) |$' log &&
    grep -q '^| loss, f32, x b=4 t=128 | every_100 | 2000 | 256000 | 5 | 1 |$' log &&
    grep -q '^| step, f32, x b=4 t=128 | graph | 1000 | 512000 | 5 | 0.500 (0.500 to 0.500) |$' log &&
    ! grep -q 'y b=4' log
check $? "the table of habits: a step's time, tokens, times the better one with an interval"

# Three runs of habits whose factors are 3, and 1.2 for an evaluation in front of 50 steps:
# every 100 steps that is 1.1 and every 500 steps 1.02. Rows that are not ok have no line.
habit_rows() { # habit_rows PARAMS WORSE US BETTER US COUNTERS
    for run in 1 2 3; do
        echo "2,model,model.habit,$2,cpu,f32,$1 size=x b=4 t=128,cold,c,$run,ok,$3,$6,card"
        echo "2,model,model.habit,$4,cpu,f32,$1 size=x b=4 t=128,cold,c,$run,ok,$5,idle_us=0,card"
    done
}
{
    echo schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,median_us,counters,device
    habit_rows 'habit=evaluation steps=50' 10_batches 600 none 500 ''
    habit_rows 'habit=loader batch_ms=5 steps=8' 0_threads 900 resident 300 idle_us=75
    habit_rows 'habit=zero steps=1' memset 90 overwritten 100 ''
    echo '2,model,model.habit,first,cpu,f32,habit=products steps=1 size=x b=4 t=128,cold,c,1,unsupported,,,card'
} > habits
cat > want-habits <<'EOS'
card, 3 runs. Times a step by the better habit, with the interval of `gpubench-compare --variants`.

1. **loader**, 5 ms, 0_threads (f32, x b=4 t=128): 3.00 times `resident` (3.000 to 3.000). A batch
2. **evaluation**, 10_batches every 50 steps (f32, x b=4 t=128): 1.20 times `none` (1.200 to 1.200). An evaluation

| habit | variant | dtype | size | times | interval | against | idle us a step |
|---|---|---|---|---:|---|---|---:|
| loader | 5 ms, 0_threads | f32 | x b=4 t=128 | 3.000 | 3.000 to 3.000 | resident | 75.00 |
| evaluation | 10_batches every 50 steps | f32 | x b=4 t=128 | 1.200 | 1.200 to 1.200 | none | - |
| evaluation | 10_batches every 100 steps | f32 | x b=4 t=128 | 1.100 | 1.100 to 1.100 | none | - |
| evaluation | 10_batches every 500 steps | f32 | x b=4 t=128 | 1.020 | 1.020 to 1.020 | none | - |
| zero | memset | f32 | x b=4 t=128 | 0.900 | 0.900 to 0.900 | overwritten | - |
EOS
COMPARE="$root/build/gpubench-compare" "$root/scripts/habits.sh" habits > log 2>&1 &&
    sed 's/^\([12]\..*)\. A[n]* [a-z]*\).*/\1/' log | diff want-habits - > /dev/null
check $? "the table of habits' factors: the largest first, what comes once in 50 steps shared out"
sed '/,cpu,f32,habit=[lez]/d' habits > bad
"$root/scripts/habits.sh" bad > log 2>&1
[ $? -eq 2 ] && grep -q 'no row of model.habit is ok in bad' log
check $? "no habit that is ok: said, status 2"

# A first step of 9 ms where none came before, all others 1 ms: the mean of ten is 1.8.
cat > fake-steps <<'EOS'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --first-steps) file=$2 ;;
    --steps-before) before=$2 ;;
    esac
    shift
done
for step in 1 2 3 4 5 6 7 8 9 10; do
    us=1000
    [ "$before$step" != 01 ] || us=9000
    echo "$before,$step,$us" >> "$file"
done
exit "${FAKE_STATUS:-0}"
EOS
chmod +x fake-steps
PROCESSES=2 sh scripts/study-warmup.sh ./fake-steps study > log 2>&1 &&
    grep -q '^| 0 | 9.000 | 1.000 | 1.000 | 1.800 | 2.400 | +80.0 % |$' log &&
    grep -q '^| 10 | 1.000 | 1.000 | 1.000 | 1.000 | 0.000 | +0.0 % |$' log &&
    [ "$(wc -l < study/warmup.csv)" -eq 101 ] && [ "$(grep -c polyline study/warmup.svg)" -eq 5 ]
check $? "the study of warm-up: first steps, means and deviations, a line for each in the picture"
FAKE_STATUS=1 PROCESSES=1 sh scripts/study-warmup.sh ./fake-steps study > log 2>&1
[ $? -eq 2 ] && [ "$(wc -l < study/warmup.csv)" -eq 51 ]
check $? "the study of warm-up: a process that fails is a status, and rows stay"
[ "$(wc -l < study/warmup.before.csv)" -eq 101 ]
check $? "the study of warm-up: the rows of the study before are kept"
# The seventh process ends the study: its parent.
sed 's/^shift$/&/; $i [ "$(wc -l < "$file")" -lt 71 ] || kill $PPID' fake-steps > ending-steps
chmod +x ending-steps
PROCESSES=2 sh scripts/study-warmup.sh ./ending-steps study > log 2>&1
[ $? -eq 143 ] && [ "$(wc -l < study/warmup.csv)" -eq 71 ] &&
    grep -q '^| 0 | 9.000 | 1.000 |' study/warmup.md && grep -q '^</svg>' study/warmup.svg
check $? "the study of warm-up: one that is ended keeps its rows and makes its table"

# Parts of a block that take 3 and 1 us, of which attention is the latter, and a quarter of
# the operations; at the second context half of the time, and half of the operations.
cat > fake-block <<'EOS'
#!/bin/sh
[ "$FAILING" != "$4" ] || exit 1
echo "$4" >> shapes
case $4 in *t=128*) linear=3 flops=300 ;; *) linear=1 flops=100 ;; esac
while [ "$1" != --csv ]; do shift; done
echo case,variant,dtype,params,mode,status,median_us,flops > "$2"
for pass in forward backward; do
    echo "block.part,best,bf16,pass=$pass part=attention b=2 t=128 d=768 h=12 ff=3072,cold,ok,1,100"
    echo "block.part,best,bf16,pass=$pass part=up b=2 t=128 d=768 h=12 ff=3072,cold,ok,$linear,$flops"
done | case $linear in 3) cat ;; *) sed s/t=128/t=256/ ;; esac >> "$2"
EOS
chmod +x fake-block
study() { FAILING=${FAILING:-} CONTEXTS='256 128' sh scripts/study-attention.sh ./fake-block study > log 2>&1; }
study && [ "$(paste -sd' ' shapes)" = 'b=64 t=256 d=768 h=12 ff=3072 b=128 t=128 d=768 h=12 ff=3072' ]
check $? "the study of attention: as many tokens at each context"
[ "$(grep -n '^| 128 | 2 | 25.0 % | 25.0 % | 25.0 % | 1.00 | 1.00 |$' log | cut -d: -f1)" -lt \
  "$(grep -n '^| 256 | 2 | 50.0 % | 50.0 % | 50.0 % | 1.00 | 1.00 |$' log | cut -d: -f1)" ] &&
    [ "$(grep -c polyline study/attention.svg)" -eq 3 ]
check $? "the study of attention: shares of operations and of both passes by context"
FAILING='b=64 t=256 d=768 h=12 ff=3072' study
[ $? -eq 2 ] && grep -q '^| 256 ' log
check $? "the study of attention: a process that fails is a status, and rows stay"

# As the Makefile does.
plant() { patch --fuzz=0 --reject-file=- -o build/planted.cu "$1" tests/gpu/planted.patch > log 2>&1; }
kernel=$root/kernels/norm/vectorized.cu
plant "$kernel" && [ "$(grep -c 'rows / 20' build/planted.cu)" -eq 2 ]
check $? "planted: the patch fits the kernel"
sed 's/row >= r.rows/r.rows <= row/' "$kernel" > build/other.cu
! plant build/other.cu
check $? "planted: a kernel without the line is refused"

finish
