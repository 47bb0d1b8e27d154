#!/bin/sh
# test_readme.sh - the README against what it quotes: the first example, the
# options, the numbers; and how the numbers are made. As TAP lines.
set -u
unset COMPARE # the tool in build/ is meant, in the toy's too
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

# Each block of code is the whole file that the text in front of it named last.
mkdir "$work/blocks"
awk -v to="$work/blocks/" '
    /^```c$/ { inside = 1; next }
    /^```$/ { inside = 0 }
    inside { print > (to name) }
    !inside && match($0, /`examples\/[a-z_]*\.[a-z]*`/) {
        name = substr($0, RSTART + 10, RLENGTH - 11)
    }' README.md
for file in "$work/blocks"/*; do
    cmp "$file" "examples/$(basename "$file")"
done > "$log" 2>&1
[ -e "$work/blocks/first.cu" ] && [ ! -s "$log" ]
check $? "the code that README quotes is that of examples/"

# Each file of examples/ stands in README, and no other.
{
    sed -n 's/^| \(`.*`\) | .* |$/\1/p' README.md
    grep -o '`examples/[a-z_]*\.[a-z]*`' README.md | sed 's/examples.//'
} | grep -o '`[a-z_]*\.\(c\|cu\|cpp\)`' | tr -d '`' | sort -u > "$work/named"
printf '%s\n' examples/* | sed 's|.*/||' | sort > "$work/there"
diff "$work/there" "$work/named" > "$log"
check $? "README names each example, and no other"

lines=$(wc -l < examples/first.cu)
[ "$lines" -le 25 ]
check $? "the first benchmark is short"

${CC:-cc} -O1 -I. -o "$work/first" examples/first.c &&
    "$work/first" --help | sed -n '/^  --/p' > "$work/options" &&
    sed -n 's/^    \(  --.*\)/\1/p' docs/reference.md > "$work/quoted" &&
    cmp "$work/options" "$work/quoted"
check $? "the reference lists every option as --help does"

scripts/readme.sh > "$work/readme" && cmp "$work/readme" README.md
check $? "README's numbers are those of baselines/ (make readme)"
for folder in baselines/*/; do
    scripts/readme.sh "${folder%/}" | cmp - "${folder}README.md" || exit 1
done
check $? "the tables beside the baselines are theirs"

# Baselines whose tables can be worked out by hand: a copy of 2 TB/s, bf16 products
# of 500 TFLOP/s and f32 ones of 40.
device=$work/baselines/toy-card
mkdir -p "$device/torch"
cp -r scripts "$work"
mkdir "$work/compare"
cp -r compare/*.awk compare/plots "$work/compare"
# Instead of the tool: what it says of ten runs, whatever the file.
mkdir "$work/build"
cat > "$work/build/gpubench-compare" <<'TOOL'
#!/bin/sh
[ "$1" = --self ] || exit 0
case $2 in *ceilings.csv) exit 2 ;; esac
echo '  0.40 %  a case'
echo '90 cases, 10 process runs, 12 cases left out (not ok, invalid, or fewer than four runs)'
echo 'balanced splits, every one: 252; with a false alarm: 2 (0.79 %)'
echo 'verdicts on single cases in them: 22680; false alarms: 3 (0.013 %)'
echo 'campaigns, each against the others: 3; with a false alarm: 1 (33.33 %)'
exit 1
TOOL
chmod +x "$work/build/gpubench-compare"
printf '<!-- begin generated -->\n<!-- end generated -->\n' > "$work/README.md"
header=suite,case,variant,dtype,params,mode,campaign,run,status,flags,median_us,bytes,flops,device,uuid,compiler
attention='b=2 h=16 t=8192 d=128 causal=1'
adamw='d=768 ff=3072 l=12 v=10000 t=128 p=100514304'
{
    echo $header
    echo "ceilings,bandwidth.copy,onepass,u8,bytes=1,cold,a,1,ok,,1000,2000000000,,Toy Card,one,cc"
    echo "ceilings,bandwidth.triad,onepass,f32,bytes=1,cold,a,1,ok,,1000,9000000000,,Toy Card,one,cc"
    echo "ceilings,gemm.nn,cublas,bf16,m=1,cold,a,1,ok,,2000,1,500000000000,Toy Card,one,cc"
    echo "ceilings,gemm.nn,cublaslt,bf16,m=1,cold,a,1,ok,,1000,1,500000000000,Toy Card,one,cc"
    echo "ceilings,gemm.nn,cublaslt,f32,m=1,cold,a,1,ok,,1000,1,40000000000,Toy Card,one,cc"
} > "$device/ceilings.csv"
{
    echo $header
    run=0
    for us in 100 103 99; do
        run=$((run + 1))
        echo "optimizer,optimizer.adamw,multi_tensor,f32,$adamw,cold,a,$run,ok,,$us,150000000,1000,Toy Card,one,cc"
    done
    echo "optimizer,optimizer.adamw,multi_tensor,f32,$adamw,hot,a,1,ok,,1,150000000,1000,Toy Card,one,cc"
    echo "optimizer,optimizer.adamw,per_tensor,f32,$adamw,cold,b,1,ok,,300,150000000,1000,Toy Card,two,cc"
    echo "optimizer,optimizer.adamw,broken,f32,$adamw,cold,b,1,failed,,,,,Toy Card,two,cc"
} > "$device/optimizer.csv"
{
    echo $header
    echo "attention,attention.forward,mma,bf16,$attention,cold,a,1,ok,,200,100000000,40000000000,Toy Card,one,cc"
} > "$device/attention.csv"
{
    echo $header
    echo "block,block.part,best,f32,pass=forward part=up b=1,cold,a,1,ok,,10,1,1,Toy Card,one,cc"
    echo "block,block.forward,best,f32,b=1 keep=1,cold,a,1,ok,,10,1,1,Toy Card,one,cc"
} > "$device/block.csv"
{
    echo $header
    echo "optimizer,optimizer.adamw,torch-foreach,f32,$adamw,cold,t,1,ok,,200,150000000,1000,Toy Card,one,PyTorch 2"
    echo "optimizer,optimizer.adamw,torch-fused,f32,$adamw,cold,t,1,ok,ungated,125,150000000,1000,Toy Card,one,PyTorch 2"
    echo "optimizer,optimizer.adamw,torch-eager,f32,$adamw,hot,t,1,ok,,1,150000000,1000,Toy Card,one,PyTorch 2"
} > "$device/torch/optimizer.csv"
# Each median with an interval of 2 % to both sides, at the full clock.
with_intervals() { # with_intervals FILE
    awk -F, -v OFS=, -v median=11 '
        FNR == 1 { print $0, "ci95_low_us", "ci95_high_us", "sm_mhz"; next }
        $median == "" { print $0, "", "", ""; next }
        { print $0, 0.98 * $median, 1.02 * $median, 1980 }' "$1" > "$work/with" && mv "$work/with" "$1"
}
for file in "$device"/*.csv "$device"/torch/*.csv; do with_intervals "$file"; done
"$work/scripts/readme.sh" baselines/toy-card > "$work/made"

has() { # has NAME LINE
    grep -qxF "$2" "$work/made"
    check $? "$1"
}

has "a case bound by memory, beside PyTorch" "| \`optimizer.adamw\` | f32 | $adamw \
| multi_tensor 100.0 | 1.50 TB/s | torch-fused 125.0 (ungated) | 0.800 (0.761 to 0.858) | bandwidth.copy 2.00 TB/s | 75 % |"
has "a case bound by its products, without a peer" "| \`attention.forward\` | bf16 | $attention \
| mma 200.0 | 200.0 TFLOP/s | not measured | not measured | gemm.nn bf16 500.0 TFLOP/s | 40 % |"
has "which PyTorch that was" "PyTorch's rows: PyTorch 2."

# Bytes that depend on the seed: the last row of the suite's, and of PyTorch's, has others.
draws() { sed -i "/,ok,.*,$1,150000000,/s/,150000000,/,190000000,/" "$2"; }
cp -r "$device" "$work/one-seed"
draws 99 "$device/optimizer.csv"
draws 125 "$device/torch/optimizer.csv"
"$work/scripts/readme.sh" baselines/toy-card > "$work/made"
has "the largest shape reaches what its median of bytes allows" "| \`optimizer.adamw\` | f32 | $adamw \
| per_tensor 300.0 | multi_tensor 100.0 | 1.50 TB/s |"
has "and so does a case beside PyTorch" "| \`optimizer.adamw\` | f32 | $adamw \
| multi_tensor 100.0 | 1.50 TB/s | torch-fused 125.0 (ungated) | 0.800 (0.761 to 0.858) | bandwidth.copy 2.00 TB/s | 75 % |"
rm -r "$device"
mv "$work/one-seed" "$device"
"$work/scripts/readme.sh" baselines/toy-card > "$work/made"
has "runs, campaigns and cards of a suite" "| optimizer | 4 | 1 to 3 | 2 | 2 |  |"
# Two cards; on one a case was doubtful and got two runs more, whose first is the process's.
cat > "$work/norm.csv" <<'EOF'
suite,case,variant,dtype,params,mode,campaign,run,status,uuid,git
norm,a,v,f32,n=1,cold,monday,1,ok,one,abc
norm,b,v,f32,n=1,cold,monday-doubtful,1,ok,one,abc
norm,b,v,f32,n=1,cold,monday-doubtful,2,ok,one,abc
norm,a,v,f32,n=1,cold,tuesday,1,ok,two,def
norm,b,v,f32,n=1,cold,tuesday,1,failed,two,fed
EOF
awk -f compare/csv.awk -f scripts/tables/runs.awk "$work/norm.csv" > "$work/made"
has "revisions, and doubtful cases of a campaign" "| norm | 3 | 2 | 2 | 2 | abc, def |"
sh scripts/tables/self.sh "$work/norm.csv" > "$work/made" 2> "$work/said"
[ $? -eq 2 ] && grep -q "norm.csv:1: column 'backend' is missing" "$work/said"
check $? "a file that does not read is none of too few runs"
# Processes of two cards that began in the same second.
sed '/,two,/d; s/,monday/,now/; s/,one,/,four,/' "$work/norm.csv" > "$work/ffn.csv"
sed '1d; s/,four,/,five,/; s/^norm/ffn/' "$work/ffn.csv" > "$work/five"
cat "$work/five" >> "$work/ffn.csv"
awk -f compare/csv.awk -f scripts/tables/runs.awk "$work/ffn.csv" > "$work/made"
has "a campaign is of one card" "| ffn | 4 | 2 to 4 | 2 | 2 | abc |"
awk -v mode=cold -f compare/csv.awk -f compare/numbers.awk -f scripts/tables/variants.awk "$work/ffn.csv" > "$work/made"
grep -q '^, 4 runs, driver' "$work/made"
check $? "and so it is in the full tables"
mkdir -p "$work/llmc"
cp "$work/norm.csv" "$work/llmc/norm.csv"
awk -f compare/csv.awk -f scripts/tables/runs.awk "$work/norm.csv" "$work/llmc/norm.csv" > "$work/made"
has "rows of llm.c are not the suite's" "| norm by llm.c | 3 | 2 | 2 | 2 | abc, def |"
# What make compare ends with, as scripts/summary.awk prints it.
printf 'suite,cases,slower,inconclusive,missing,not_ok,raced,elsewhere,seconds\nnorm,40,1,3,2,4,5,0,90\n' > "$work/summary.txt"
{
    echo '# GPUs, revision, last line'
    echo "2 abc1234 $(sh scripts/csv.sh summary "$work/summary.txt")"
} > "$work/compares.txt"
awk -f scripts/tables/compares.awk "$work/compares.txt" > "$work/made"
has "what compares ended with" '| `norm` | 2 | 40 | 1.5 | 5 | 1 | 3 (7.5 %) | 2 | 4 | abc1234 |'
echo '2 abc1234 compare-norm: 40 cases' >> "$work/compares.txt"
awk -f scripts/tables/compares.awk "$work/compares.txt" > "$work/made" 2> "$work/said"
[ $? -eq 2 ] && grep -q 'line 3: not what make compare ends with' "$work/said"
check $? "another line is refused by its number"
awk -v mode=cold -f compare/csv.awk -f compare/numbers.awk -f scripts/tables/variants.awk "$work/norm.csv" > "$work/made"
grep -q '^, 3 runs, driver' "$work/made"
check $? "the full tables count a campaign's runs once"
"$work/scripts/readme.sh" baselines/toy-card > "$work/made"
has "runs of PyTorch" "| optimizer by PyTorch | 1 | 1 | 1 | 1 |  |"
sed -n '/^# Every shape and variant$/,$p' "$work/made" > "$work/full"
grep -qx '## optimizer by PyTorch and beside it' "$work/full" && grep -q '| 200.0 | 125.0 |' "$work/full" &&
    ! grep -q 'multi_tensor.*torch-' "$work/full"
check $? "the full tables hold PyTorch's apart from the suites'"

# A sitting that both were measured in: campaign t on card one. Nothing else counts.
echo "optimizer,optimizer.adamw,multi_tensor,f32,$adamw,cold,t,1,ok,,150,150000000,1000,Toy Card,one,cc,147,153,1980" \
    >> "$device/optimizer.csv"
echo "optimizer,optimizer.adamw,multi_tensor,f32,$adamw,cold,t,1,ok,,120,150000000,1000,Toy Card,two,cc,117,123,1980" \
    >> "$device/optimizer.csv"
"$work/scripts/readme.sh" baselines/toy-card > "$work/made"
has "both sides are of one sitting where there is one" "| \`optimizer.adamw\` | f32 | $adamw \
| multi_tensor 150.0 | 1.00 TB/s | torch-fused 125.0 (ungated) | 1.200 (1.153 to 1.249) | bandwidth.copy 2.00 TB/s | 50 % |"
made_with() { # made_with SED: the tables with the sitting's own row changed
    cp "$device/optimizer.csv" "$work/kept"
    sed "/,cold,t,1,.*,one,/$1" "$work/kept" > "$device/optimizer.csv"
    "$work/scripts/readme.sh" baselines/toy-card > "$work/made"
    mv "$work/kept" "$device/optimizer.csv"
}
made_with 's/,150,\(.*\),147,153,/,126,\1,123.48,128.52,/'
has "an interval that contains 1 is a tie" "| \`optimizer.adamw\` | f32 | $adamw \
| multi_tensor 126.0 | 1.19 TB/s | torch-fused 125.0 (ungated) | 1.008 (0.968 to 1.049), a tie | bandwidth.copy 2.00 TB/s | 60 % |"
made_with 's/1980$/1935/'
has "clocks that are 2.3 % apart give no ratio" "| \`optimizer.adamw\` | f32 | $adamw \
| multi_tensor 150.0 | 1.00 TB/s | torch-fused 125.0 (ungated) | none, at 1935 and 1980 MHz | bandwidth.copy 2.00 TB/s | 50 % |"
made_with 's/1980$/1945/'
grep -q '| 1.200 (1.153 to 1.249) |' "$work/made"
check $? "clocks that are 1.8 % apart do"
cp "$device/torch/optimizer.csv" "$work/kept-torch"
echo "optimizer,optimizer.adamw,multi_tensor,f32,$adamw,cold,t2,1,ok,,120,150000000,1000,Toy Card,one,cc,117.6,122.4,1980" \
    >> "$device/torch/optimizer.csv"
sed -n 's/torch-fused\(.*\),t,/torch-fused\1,t2,/p' "$work/kept-torch" >> "$device/torch/optimizer.csv"
made_with d
has "the suite's rows in torch/ are a side too" "| \`optimizer.adamw\` | f32 | $adamw \
| multi_tensor 120.0 | 1.25 TB/s | torch-fused 125.0 (ungated) | 0.960 (0.922 to 0.999) | bandwidth.copy 2.00 TB/s | 62 % |"
has "which are no runs of its own baseline" "| optimizer beside PyTorch | 1 | 1 | 1 | 1 |  |"
mv "$work/kept-torch" "$device/torch/optimizer.csv"
"$work/scripts/readme.sh" baselines/toy-card > "$work/made"
has "what cannot be split is named" "Not split, for which some case needs four runs: ceilings."
has "false alarms of a suite" "| optimizer | 10 | 252 | 2 (0.79 %) | 22680 | 3 (0.013 %) | 3 | 1 |"

"$work/scripts/readme.sh" > "$work/made"
grep -q '^| .optimizer.adamw. | f32 | d=1600' "$work/made" && ! grep -q 'd=768 ff=3072 l=12' "$work/made"
check $? "the README itself has a few lines of them"

# Every page of the manual. Links to headings and to other sites are not followed.
pages="README.md CONTRIBUTING.md compare/README.md compare/pytorch/README.md $(ls docs/*.md baselines/*/README.md)"
for page in $pages; do
    sed '/^```./,/^```$/d' "$page" | grep -o '](\([^)#]*\))' | sed 's/^](//; s/)$//' | grep -v '^https*:' |
        while read -r link; do
            [ -e "$(dirname "$page")/$link" ] || echo "$page links to $link"
        done
done > "$work/dead"
cp "$work/dead" "$log"
[ ! -s "$work/dead" ]
check $? "no link of the manual is dead"

for target in $(sed -n 's/^    \(\$ \)*make \(.*\)/\2/p' $pages | tr ' ' '\n' | grep -x '[a-z][a-z-]*'); do
    make -n "$target" > "$work/log" 2>&1 || ! grep -q "No rule to make target .$target" "$work/log" ||
        echo "make $target"
done > "$work/unknown"
cp "$work/unknown" "$log"
[ ! -s "$work/unknown" ]
check $? "each target that the manual names exists"
finish
