#!/bin/sh
# test_plots.sh - the plots and the report, made from small files and from a
# baseline, as TAP lines. Argument: the compare tool (build/gpubench-compare).
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
COMPARE=${1:-build/gpubench-compare}
export COMPARE
plots=compare/plots
baseline=baselines/nvidia-h100-80gb-hbm3

if ! command -v gnuplot >/dev/null; then
    check 0 "plots and report" "needs gnuplot, and there is none (make deps)"
    finish
fi

well_formed() {
    if command -v xmllint >/dev/null; then
        xmllint --noout "$1"
    else
        grep -q '^<svg ' "$1" && tail -n 1 "$1" | grep -q '^</svg>$' &&
            [ "$(grep -o '<g[ >]' "$1" | wc -l)" -eq "$(grep -o '</g>' "$1" | wc -l)" ]
    fi
}

sound() { # sound FILE.svg WORD...: well-formed, no number that is none, no path, all words
    file=$1
    shift
    well_formed "$file" || return
    if grep -iqE '[^a-z](nan|inf)[^a-z]|/tmp/' "$file"; then echo "$file: nan, inf or a path"; return 1; fi
    for word; do grep -qF "$word" "$file" || { echo "$file: no $word"; return 1; }; done
}

is_png() { [ "$(head -c 4 "$1" | tail -c 3)" = PNG ] && [ "$(wc -c <"$1")" -gt 5000 ]; }

# draws NAME STEM WORDS COMMAND...: STEM.svg and STEM.png, holding WORDS; no complaint.
draws() {
    name=$1 stem=$work/$2 words=$3
    shift 3
    "$@" >"$log" 2>&1 && [ ! -s "$log" ] &&
        { sound "$stem.svg" $words && is_png "$stem.png"; } >>"$log" 2>&1
    check $? "$name"
}

# refuses NAME PATTERN COMMAND...: status 2, a message like PATTERN, nothing written.
refuses() {
    name=$1 pattern=$2
    shift 2
    mkdir -p "$work/out"
    "$@" >"$log" 2>&1
    [ $? -eq 2 ] && grep -q -e "$pattern" "$log" && [ -z "$(ls "$work/out")" ]
    check $? "$name"
}

# Two variants, four sizes, three runs, and a row that is not ok; quotes and commas.
small() {
    awk 'BEGIN {
        print "schema,suite,case,variant,dtype,params,mode,campaign,run,status,flags,median_us,bytes,flops," \
              "device,timestamp"
        for (run = 1; run <= 3; run++)
            for (size = 1000; size <= 1000000; size *= 10)
                for (variant = 1; variant <= 2; variant++)
                    printf "1,toy,toy.forward,v%d,f32,\"n=%d, \"\"odd\"\"\",cold,c,%d,ok,,%g,%d,%d," \
                           "\"A, B\",2026-01-01T00:00:00Z\n",
                           variant, size, run, size / 100 * variant * (1 + run / 100), size, size / 2
        print "1,toy,toy.forward,v3,f32,n=5,cold,c,1,oom,needed_bytes=9,,,,\"A, B\",2026-01-01T00:00:00Z"
    }'
}
small >"$work/small.csv"

# What the shape n=1000 of v1 moves and computes depends on the run; that of n=10000 is not said.
awk -F, -v OFS=, '/,v1,.*n=1000,/ { $14 = 800 * $10; $15 = 200 * $10 } /,v1,.*n=10000,/ { $14 = $15 = "" } 1' \
    "$work/small.csv" |
    awk -f compare/csv.awk -f compare/numbers.awk -f $plots/points.awk | cut -f 7,8,10,11 >"$log"
[ "$(sed -n 's/^n=10*, "odd"	//p' "$log" | sort -u | head -5 | tr '\t\n' ' ;')" = \
    'v1  ;v1 100000 50000;v1 1000000 500000;v1 1600 400;v2 1000 500;' ]
check $? "points: bytes and operations that differ by the seed are their medians"

# What two ranks and four take are two lines; a size that is called n is one.
{
    head -n 1 "$work/small.csv"
    for shape in 'collective.sum,v,f32,n=2 bytes=8' 'collective.sum,v,f32,n=4 bytes=8' \
        'toy.forward,v,f32,n=2 bytes=8' 'toy.forward,v,f32,n=4 bytes=8'; do
        echo "1,toy,$shape,cold,c,1,ok,,5,8,8,A,"
    done
} | awk -f compare/csv.awk -f compare/numbers.awk -f $plots/points.awk | cut -f 3,6 | sort -u | tr '\t\n' ' ;' >"$log"
[ "$(cat "$log")" = 'collective.sum n=2;collective.sum n=4;toy.forward ;' ]
check $? "points: cases of different numbers of ranks are not on one line"

draws "size: a small file with quotes" small 'toy.forward v1 v2 A, GB/s' $plots/size.sh "$work/small" "$work/small.csv"
cat >"$work/quotes.csv" <<EOF
$(head -n 1 "$work/small.csv")
1,toy,"it''; system(""touch $work/owned"") # \`touch $work/owned\`",v,f32,n=1,cold,c,1,ok,,5,8,8,"A, B",
EOF
$plots/size.sh -s "$work/quotes" "$work/quotes.csv" >"$log" 2>&1 && [ ! -e "$work/owned" ] &&
    grep -q 'it..*; system("touch' "$work/quotes.svg"
check $? "size: a name that would be a command is only drawn"
# A variant that is younger than the others has fewer runs.
grep -v ',v1,.*,c,[23],ok,' "$work/small.csv" >"$work/younger.csv"
$plots/size.sh -s "$work/younger" "$work/younger.csv" >"$log" 2>&1 &&
    grep -q 'median and range of 1 to 3 runs' "$work/younger.svg" &&
    grep -q 'median and range of 3 runs' "$work/small.svg"
check $? "size: of how many runs the points are"
draws "size: a suite of operations" attention 'attention.forward naive_cublas TFLOP/s causal=1' \
    $plots/size.sh "$work/attention" $baseline/attention.csv
draws "size: one size only" ceilings 'gemm.nn bandwidth.triad' $plots/size.sh "$work/ceilings" $baseline/ceilings.csv
draws "size: a picture for each panel" memcpy-memcpy.h2d-u8-cold 'memcpy.h2d pinned pageable' \
    $plots/size.sh -e "$work/memcpy" $baseline/memcpy.csv
draws "roofline: one suite" roofline 'attention.backward slope: flat: cublaslt' \
    $plots/roofline.sh -c $baseline/ceilings.csv "$work/roofline" $baseline/attention.csv
draws "roofline: all suites" rooflines 'attention optimizer norm' \
    $plots/roofline.sh -c $baseline/ceilings.csv "$work/rooflines" $baseline/*.csv
grep -v ',bandwidth\.' $baseline/ceilings.csv >"$work/gemm.csv"
draws "roofline: no bandwidth row" gemm 'ffn.forward no slope' \
    $plots/roofline.sh -c "$work/gemm.csv" "$work/gemm" $baseline/ffn.csv
draws "parts of the block" parts 'block.forward block.backward attention qkv whole' \
    $plots/parts.sh "$work/parts" $baseline/block.csv

# The same results with one case 8 % slower and one left out.
mkdir "$work/current"
awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; print; next }
    $c["variant"] == "fused" && $c["dtype"] == "bf16" { $c["median_us"] *= 1.08 }
    $c["variant"] != "naive" || $c["case"] != "cross_entropy.forward"' $baseline/loss.csv >"$work/current/loss.csv"
"$COMPARE" --format csv $baseline/loss.csv "$work/current/loss.csv" >"$work/verdicts.csv" 2>/dev/null
draws "forest plot" forest 'cross_entropy.backward slower missing same' \
    $plots/forest.sh "$work/forest" "$work/verdicts.csv"
draws "forest plot of a few cases" few 'first 5' $plots/forest.sh -n 5 "$work/few" "$work/verdicts.csv"

# Seven campaigns, of which the fifth and later are 10 % slower in one case.
history() {
    awk 'BEGIN {
        print "schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,flags,median_us,bytes,flops," \
              "device,git,timestamp"
        for (campaign = 1; campaign <= 7; campaign++)
            for (run = 1; run <= 3; run++)
                for (changes = 0; changes <= 1; changes++)
                    printf "2,toy,toy.%s,v,cuda,f32,n=1,cold,c%d,%d,ok,,%g,8,8,\"A, B\",rev%d,2026-0%d-01T00:00:00Z\n",
                           changes ? "changing" : "steady", campaign, run,
                           100 * (changes && campaign >= 5 ? 1.1 : 1) * (1 + run / 1000), campaign, campaign
    }'
}
mkdir "$work/histories"
history >"$work/histories/toy.csv"
"$COMPARE" --format csv --history "$work/histories/toy.csv" >"$work/history.csv"
draws "history: the case that changed, with dates and revisions" history \
    'toy.changing +10.0 2026-05-01 rev5 2026-04-01 rev4' $plots/history.sh "$work/history" "$work/history.csv"
! grep -q toy.steady "$work/history.svg"
check $? "history: not the case that did not change"

page=$work/report.html

# reports NAME WORDS FOLDER...: a page that has every line of WORDS; no complaint.
reports() {
    name=$1
    printf '%s\n' "$2" >"$work/words"
    shift 2
    scripts/report.sh "$page" "$@" >"$log" 2>&1 && [ ! -s "$log" ] &&
        while read -r word; do
            grep -qF "$word" "$page" || echo "no $word"
        done <"$work/words" >"$log" && [ ! -s "$log" ]
    check $? "$name"
}

reports "report with verdicts" 'id="verdict"
something got slower
geometric mean of
gpubench-compare --race OLD NEW
<h2 id="rest">
<h2 id="loss">
cross_entropy.forward_backward
<h2 id="machine">
prefers-color-scheme
</html>' "$work/current" $baseline
reports "report of all baselines" "$(for file in "$baseline"/*.csv; do
    echo "<h2 id=\"$(basename "$file" .csv)\">"
done)" $baseline
if grep -iqE '[^a-z](nan|inf)[^a-z]|<script|/tmp/|(src|href)="?https?:' "$page"; then status=1; else status=0; fi
check $status "report: self-contained, no nan, no path"
reports "report with a history" '<h2 id="history">
1 change in the history of 2 cases
rev5
<title>001 toy.changing v' "$work/histories"
reports "report of all baselines" "<h2 id=" $baseline
[ -z "$(grep -oE " id=[\"'][^\"']*" "$page" | tr '"' "'" | sort | uniq -d)" ]
check $? "report: every id once"
mkdir "$work/odd folder"
cp "$work/small.csv" "$work/odd folder/"
scripts/report.sh "$page" "$work/odd folder" >"$log" 2>&1 && grep -q 'needed_bytes=9' "$page" &&
    grep -q '&quot;odd&quot;' "$page"
check $? "report: what is not ok, quotes, a blank in the folder"

# before FILE A B: A stands before B in the file.
before() { [ "$(grep -n "$2" "$1" | head -n 1 | cut -d: -f1)" -lt "$(grep -n "$3" "$1" | head -n 1 | cut -d: -f1)" ]; }

scripts/report.sh "$page" "$work/current" $baseline >"$log" 2>&1 && before "$page" 'class="outcome' '<svg' &&
    before "$page" '<svg' 'cross_entropy.forward naive' && before "$page" 'cross_entropy.forward naive' 'id="loss"' &&
    before "$page" 'id="loss"' '<summary>.* same<' && grep -q 'attention.csv: the results have no such file' "$page"
check $? "report: verdict, plot and changed cases first, what was left out last"

mkdir "$work/other"
sed 's/NVIDIA H100 80GB HBM3/NVIDIA L4/' $baseline/loss.csv >"$work/other/loss.csv"
scripts/report.sh "$page" "$work/other" $baseline >"$log" 2>&1 && grep -q 'class="outcome unknown">cannot judge' "$page" &&
    grep -q "new/loss.csv:2: column .device" "$page" && ! grep -q "<title>change of" "$page"
check $? "report: what cannot be judged says why, and has no plot"

# S9: names from strangers name no file.
mkdir -p "$work/names/of/results" "$work/clean"
for name in 'my suite' kernels/attn ../../../x 'a+b' '$(touch x)' machine; do
    awk -v name="$name" '{ sub(/^1,toy,/, "1," name ","); print }' "$work/small.csv" | if [ "$name" = 'my suite' ]; then cat; else tail -n +2; fi
done >"$work/names/of/results/names.csv"
find "$work/names" . -path ./build -prune -o -print | sort >"$work/files"
TMPDIR=$work/clean scripts/report.sh "$page" "$work/names/of/results" >"$log" 2>&1
status=$?
find "$work/names" . -path ./build -prune -o -print | sort | cmp -s - "$work/files" || status=1
[ -z "$(ls "$work/clean")" ] || status=1
for id in my-suite kernels-attn ..-..-..-x a-b; do grep -q "<h2 id=\"$id\">" "$page" || status=1; done
[ "$(grep -c '<title>toy.forward' "$page")" -eq 6 ] && [ "$(grep -c '<h3 id=.*toy.forward' "$page")" -eq 6 ] &&
    [ -z "$(grep -oE " id=[\"'][^\"']*" "$page" | tr '"' "'" | sort | uniq -d)" ] && [ $status -eq 0 ]
check $? "report: suites of any name have their tables and plots, and name no file"

# S10: what is there is drawn, what is not is said.
pictures() { (cd "$1" && printf '%s ' ./*.svg | sed 's|\./||g'); }
mkdir "$work/some"
cp $baseline/loss.csv $baseline/ceilings.csv "$work/some/"
scripts/plots.sh "$work/some/plots" "$work/some" attention block ceilings loss >"$log" 2>&1 &&
    [ "$(pictures "$work/some/plots")" = 'ceilings.svg loss.svg roofline.svg ' ] &&
    grep -q "not there: .*/attention.csv .*/block.csv" "$log" && ! grep -q 'no roofline' "$log"
check $? "plots: without some suites"
mkdir "$work/one"
cp $baseline/loss.csv "$work/one/"
scripts/plots.sh "$work/one/plots" "$work/one" ceilings loss >"$log" 2>&1 &&
    [ "$(pictures "$work/one/plots")" = 'loss.svg ' ] && grep -q 'no roofline.*/ceilings.csv' "$log"
check $? "plots: without the ceilings"
cp $baseline/attention.csv "$work/some/"
cp "$work/histories/toy.csv" "$work/some/"
head -n 3 $baseline/block.csv | sed '3s/,.*//' >"$work/some/block.csv"
scripts/plots.sh "$work/some/plots" "$work/some" attention block loss ceilings >"$log" 2>&1
[ $? -eq 2 ] && grep -q 'block.csv: line 3' "$log" && [ -f "$work/some/plots/roofline.png" ] &&
    grep -q toy.changing "$work/some/plots/history.svg"
check $? "plots: a broken file is named, and the others are drawn"

# A page as a browser lays it out: nothing stands out of its box or of the page.
mkdir "$work/wide"
cp $baseline/attention.csv $baseline/block.csv $baseline/memcpy.csv "$work/current/loss.csv" "$work/wide/"
# Fourteen habits, each with two variants of its own and a shape as long as a training step's.
awk 'BEGIN {
    print "schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,flags,median_us,bytes,flops,device,git,timestamp"
    for (i = 1; i <= 28; i++)
        printf "1,habits,toy.habit,variant_%02d,cuda,bf16,habit=accumulation%d steps=1 size=given b=16 t=128 d=768 h=12 ff=3072 l=12 v=10000 tied=0,cold,c,1,ok,,%d,8,8000,\"NVIDIA H100 80GB HBM3\",rev,2026-01-01T00:00:00Z\n",
               i, (i + 1) / 2, 100 + i
}' >"$work/wide/habits.csv"
scripts/report.sh "$page" "$work/wide" $baseline >"$log" 2>&1
[ "$(grep -o '<caption>bf16, cold: microseconds, one run</caption>' "$page" | wc -l)" -eq 14 ] &&
    [ "$(grep -c '^<tr><th scope="row">habit=.*<b>[0-9]*\.0</b>' "$page")" -eq 14 ] &&
    ! grep '^<tr><th scope="row">habit=' "$page" | grep -q 'â'
check $? "report: a table of many variants is one for each set of them, without empty cells"
mkdir "$work/young" && cp "$work/younger.csv" "$work/young/toy.csv"
scripts/report.sh "$work/young.html" "$work/young" >"$log" 2>&1 &&
    grep -q '<caption>f32, cold: microseconds, median of 1 to 3 runs</caption>' "$work/young.html"
check $? "report: of how many runs a table's cells are"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
fits() { # fits WIDTH
    sed "s|WIDTH|$1|" tests/fixtures/page_fits.html >"$work/frame.html"
    timeout 100 "$browser" --headless=new --no-sandbox --disable-gpu --allow-file-access-from-files \
        --user-data-dir="$work/browser" --window-size=1500,3000 --virtual-time-budget=20000 \
        --dump-dom "file://$work/frame.html" >"$log" 2>/dev/null && grep -q '>cut: 0$' "$log"
}
for width in 400 1000 1400; do
    if [ -n "$browser" ]; then
        fits $width
        check $? "report: nothing cut at $width px"
    else
        check 0 "report: nothing cut at $width px" "needs chromium"
    fi
done

# ---- several GPUs

# Three GPUs, of which the first and the last have no peer access; three runs, whose median
# is 100 * (from + 1) + to, staged a tenth.
gpus() {
    awk 'BEGIN {
        print "schema,suite,case,variant,dtype,params,mode,campaign,run,status,flags,median_us,bytes,flops," \
              "device,gb_per_s,counters"
        for (from = 0; from < 3; from++) for (to = 0; to < 3; to++) for (run = 1; run <= 3; run++) {
            if (from == to) continue
            hop = (to - from + 3) % 3 == 2 ? " hop=2" : ""
            if (from + to != 2) row("peer", 100)
            row("staged", 10)
        }
        print "2,memcpy,memcpy.peer,peer,u8,bytes=64 hop=2,cold,c,1,unsupported,no_peer_access,,,,Toy,,"
    }
    function row(variant, scale) {
        printf "2,memcpy,memcpy.peer,%s,u8,bytes=64%s,cold,c,%d,ok,,10,64,,Toy,%g,from=%d to=%d\n",
               variant, hop, run, scale * (from + 1) + to + run - 2, from, to
    }'
}
gpus >"$work/gpus.csv"
draws "pairs: a matrix for each variant" pairs 'peer, staged, >101< >200< >202< >301< >12< >20< >31<' \
    $plots/pairs.sh "$work/pairs" "$work/gpus.csv"
! grep -q '>102<' "$work/pairs.svg"
check $? "pairs: one without peer access stays empty"

# Two ranks and four, three sizes, three runs.
ranks() {
    head -n 1 "$work/gpus.csv"
    for n in 2 4; do for bytes in 8 4096 1048576; do for run in 1 2 3; do
        echo "2,collective,collective.all_reduce,nccl,f32,n=$n bytes=$bytes,hot,c,$run,ok,,5,$bytes,,Toy,1,busB/s=${n}0000000$run"
        echo "2,collective,collective.broadcast,nccl,bf16,n=$n bytes=$bytes,hot,c,$run,ok,,5,$bytes,,Toy,1,busB/s=${n}0000000$run"
    done; done; done
    echo "2,collective,collective.broadcast,nccl,bf16,n=1 bytes=8,hot,c,1,ok,one-rank,5,8,,Toy,1,"
}
ranks >"$work/ranks.csv"
draws "collectives: bus bandwidth below the link's limit" bus 'all_reduce, nccl, ranks 301 GB/s dashed:' \
    $plots/collective.sh -c "$work/gpus.csv" "$work/bus" "$work/ranks.csv"
grep -v 'all_reduce,.*n=4 bytes=8,.*,c,[23],ok,' "$work/ranks.csv" >"$work/fewer.csv"
$plots/collective.sh -s "$work/fewer" "$work/fewer.csv" >"$log" 2>&1 &&
    grep -q 'median and range of 1 to 3 runs' "$work/fewer.svg"
check $? "collectives: of how many runs the points are"
draws "collectives: without a limit" bus-alone 'broadcast, bf16' $plots/collective.sh "$work/bus-alone" "$work/ranks.csv"

# One GPU, two and four: 1000 tokens a second, then 1800 and 3000, which is 90 % and 75 %.
steps() {
    head -n 1 "$work/gpus.csv"
    for pair in 4=3000 1=1000 2=1800; do
        echo "2,model,model.step,weak,bf16,b=4 gpus=${pair%=*},cold,c,1,ok,,5,8,,Toy,1,tokens/s=${pair#*=}"
    done
    echo "2,model,model.step,alone,bf16,b=4 gpus=4,cold,c,1,ok,,5,8,,Toy,1,tokens/s=9"
}
steps >"$work/steps.csv"
draws "efficiency: the rate per GPU" efficiency 'model.step bf16 weak, b=4 GPUs' \
    $plots/efficiency.sh "$work/efficiency" "$work/steps.csv"
! grep -q alone "$work/efficiency.svg"
check $? "efficiency: a single number of GPUs is no line"
awk -v folder="$work" -v each=0 -f compare/csv.awk -f compare/numbers.awk -f $plots/counters.awk \
    -f $plots/plot.awk -f $plots/efficiency.awk "$work/steps.csv"
[ "$(sed -n '/EOD/,/EOD/p' "$work/all.gp" | grep -c -e '^1 100$' -e '^2 90$' -e '^4 75$')" -eq 3 ]
check $? "efficiency: as by hand"
rm "$work/all.gp"

# ---- what is refused

out=$work/out/plot
refuses "a file that is not there" 'absent.csv: cannot read' $plots/size.sh "$out" "$work/absent.csv"
: >"$work/empty.csv"
refuses "an empty file" 'empty.csv: empty' $plots/size.sh "$out" "$work/empty.csv"
{ cat "$work/small.csv"; echo '1,toy,too,short'; } >"$work/short.csv"
refuses "a line with too few fields" 'short.csv: line 27: 4 fields' $plots/size.sh "$out" "$work/short.csv"
sed 's/,ok,,[0-9.]*,/,ok,,fast,/' "$work/small.csv" >"$work/word.csv"
refuses "a time that is no number" "word.csv: line 2: column median_us holds 'fast'" \
    $plots/size.sh "$out" "$work/word.csv"
{ cat "$work/small.csv"; echo '1,toy,"toy'; } >"$work/open.csv"
refuses "an open quote" 'open.csv: ends inside quotes' $plots/size.sh "$out" "$work/open.csv"
sed 's/^1,/3,/' "$work/small.csv" >"$work/schema.csv"
sed 's/,Toy,/,Other,/' "$work/gpus.csv" >"$work/others.csv"
refuses "the link of other GPUs" "copies are those of 'Other'" \
    $plots/collective.sh -c "$work/others.csv" "$out" "$work/ranks.csv"
refuses "steps of one GPU" 'nothing to draw' $plots/efficiency.sh "$out" "$work/ranks.csv"
refuses "pairs of one GPU" 'nothing to draw' $plots/pairs.sh "$out" "$work/ranks.csv"
grep -v 'n=[24]' "$work/ranks.csv" >"$work/one-rank.csv"
refuses "collectives of one rank" 'nothing to draw' $plots/collective.sh "$out" "$work/one-rank.csv"
refuses "another schema" "schema.csv: line 2: schema '3'" $plots/size.sh "$out" "$work/schema.csv"
sed 's/^1,/2,/' "$work/small.csv" >"$work/swept.csv"
refuses "two schemas, whose cold is not the same" "schema '2', where the rows before are of '1'" \
    $plots/size.sh "$out" "$work/small.csv" "$work/swept.csv"
draws "size: rows of schema 2" swept 'toy.forward v1 v2 A, GB/s' $plots/size.sh "$work/swept" "$work/swept.csv"
refuses "two devices" "device 'A, B'" $plots/size.sh "$out" $baseline/loss.csv "$work/small.csv"
refuses "ceilings of another device" "the ceilings are those of" \
    $plots/roofline.sh -c $baseline/ceilings.csv "$out" "$work/small.csv"
"$COMPARE" --format csv --history $baseline/loss.csv >"$work/calm.csv"
refuses "a history without a change" 'no case changed' $plots/history.sh "$out" "$work/calm.csv"
refuses "no results to plot" 'nothing to draw in' scripts/plots.sh "$work/out.d" "$work/absent" loss
refuses "no parts" 'no parts' $plots/parts.sh "$out" $baseline/loss.csv
refuses "a comparison that is none" 'line 1: no column against' $plots/forest.sh "$out" $baseline/loss.csv
refuses "a report of a folder that is not there" 'absent: no such folder' scripts/report.sh "$out.html" "$work/absent"
mkdir "$work/broken"
cp "$work/short.csv" "$work/broken/"
refuses "a report of a malformed file" 'short.csv: line 27' scripts/report.sh "$out.html" "$work/broken"
refuses "an option that is none" 'usage: size.sh' $plots/size.sh -x "$out" $baseline/loss.csv
refuses "a margin that is no number" "-m two: no percentage" $plots/forest.sh -m two "$out" "$work/verdicts.csv"

finish
