#!/bin/sh
# test_peers_model.sh - compare/peers-model.sh and tests/peers/llmc.sh, with the suite,
# PyTorch, the trainer and the compiler replaced by what prints known numbers. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
unset LLMC_SOURCES LLMC_STEPS LLMC_OPTIONS LLMC_SUFFIX PEERS_SECONDS PEERS_ROUNDS PEERS_CASES \
    PEERS_VARIANTS PEERS_TIME PEERS_WITHOUT PYTHON NVCC
if ! command -v python3 >/dev/null; then
    check 0 "a training step beside its peers" "no python3 here"
    finish
    exit
fi
root=$PWD
tree=$work/tree
mkdir -p "$tree/tests" "$tree/scripts" "$tree/build/llmc" "$work/bin"
cp -R compare "$tree"
cp -R tests/peers "$tree/tests"
cp -R scripts/tables scripts/orderly.sh "$tree/scripts"
export PYTHONDONTWRITEBYTECODE=1

head=schema,suite,case,variant,backend,dtype,params,mode,campaign,run,order,status,flags
head=$head,median_us,ci95_low_us,ci95_high_us,mean_us,samples,bytes,flops,gb_per_s,tflop_per_s
head=$head,device,counters,seed,settings
gpt2='size=gpt2 b=4 t=1024 d=768 h=12 ff=3072 l=12 v=50257 tied=1'
# row VARIANT US LOW HIGH [STATUS]
row() {
    echo "2,model,model.step,$1,cuda,bf16,$gpt2,cold,\$campaign,1,1,${5:-ok},,$2,$3,$4,$2,9,1000,2000,,,Toy,,1,"
}

# What stands for the suite and for PyTorch: prints its rows, the second time other ones,
# notes its arguments, and takes SLOW seconds.
stand_in() { # stand_in NAME FIRST-ROWS SECOND-ROWS
    cat >"$work/bin/$1" <<END
#!/bin/sh
case \$1 in *llmc_rows.py) exec python3 "\$@" ;; esac
echo "$1 \$*" >>"$work/calls"
while [ \$# -gt 0 ]; do
    case \$1 in
    --csv) csv=\$2 ;;
    --campaign) campaign=\$2 ;;
    esac
    shift
done
{ echo "$head"; if [ -e "$work/$1.again" ]; then echo "$3"; else echo "$2"; fi; } >"\$csv"
: >"$work/$1.again"
sleep "\${SLOW:-0}"
[ -z "\${FAILING:-}" ]
END
    chmod +x "$work/bin/$1"
}
stand_in model "$(row graph 9000 8900 9100)
$(row best 12000 11900 12100)" "$(row graph 11000 10900 11100)"
stand_in python "$(row torch-eager 20000 19500 20500)
$(row torch-compile 0 0 0 oom)" "$(row torch-eager 20000 19500 20500)"

# The trainer: ten slow steps, then five of 11.04 ms, and a loss that falls unless RISING.
cat >"$work/trainer" <<'END'
#!/bin/sh
echo "trainer $*" >>"$CALLS"
[ -z "${BROKEN:-}" ] || { echo 'CUDA error: no such thing'; exit 1; }
for step in $(seq 15); do
    ms=11.04
    [ "$step" -gt 10 ] || ms=99.00
    loss=$((30 - step)).500000
    [ -z "${RISING:-}" ] || loss=$((30 + step)).500000
    printf 'step %4d/15 | loss %s (+nanz)| norm 3.0 (+nanz)| lr 3.00e-04 | %s ms | 1.0%% bf16 MFU | 9 tok/s\n' \
        "$step" "$loss" "$ms"
done | head -n "${STEPS:-15}"
END
chmod +x "$work/trainer"
cp "$work/trainer" "$tree/build/llmc/llmc"
export CALLS="$work/calls"

peers() {
    rm -f "$work"/*.again "$work/calls"
    PYTHON="$work/bin/python" "$tree/compare/peers-model.sh" "$work/bin" "$work/out" "$@" >"$log" 2>&1
}
cell() { # cell PEER COLUMN: of peers.md
    awk -F'|' -v peer=" $1 " -v column="$2" 'index($6, peer) == 1 { print $column }' "$work/out/peers.md"
}

cd "$tree" || exit 2
peers gpt2:1024:bf16
[ $? -eq 0 ] && [ "$(awk 'END { print NR }' "$work/out/model.csv")" -eq 4 ]
check $? "two rounds, of which all rows are kept"
[ "$(cell torch-eager 9)" = ' 0.500 (0.434 to 0.569) ' ]
check $? "a ratio of medians over the rounds, with the widest interval"
[ "$(cell llmc 6)" = ' llmc 11.040 ' ] && [ "$(cell llmc 8)" = ' 371014 ' ]
check $? "llm.c's step is the median of those behind the first ten, 4096 tokens each"
[ "$(cell torch-compile 6)" = '' ] && grep -q '^- torch-compile model.step bf16 .*: oom' "$work/out/peers.md"
check $? "what is not ok is named and has no ratio"
awk 'sub(/ .*/, "")' "$work/calls" | tr '\n' ' ' | grep -qx 'model trainer python model trainer python '
check $? "the three take turns"
[ "$(sed -n 's/.*--campaign \([^ ]*\).*/\1/p' "$work/calls" | sort -u | wc -l)" -eq 2 ]
check $? "a campaign a round, which all three share"
[ "$(sed -n 's/.*-x \([0-9]*\) .*/\1/p' "$work/calls" | sort -u)" = 60 ] &&
    grep -q -- '-e d12 -b 4 -t 1024 -d 4096' "$work/calls"
check $? "llm.c trains a random GPT-2 of twelve layers"
[ "$(od -An -tu4 -N12 build/llmc/tokens.bin | tr -s ' ')" = ' 20240520 1 65537' ] &&
    [ "$(wc -c <build/llmc/tokens.bin)" -eq $((1024 + 2 * 65537)) ] &&
    [ "$(od -An -v -tu2 -j1024 build/llmc/tokens.bin | tr -s ' ' '\n' | sort -n | tail -1)" -lt 50257 ]
check $? "its tokens: a header of 256 words, then as many ids of the vocabulary as it says"

peers small:128:f32
[ $? -eq 0 ] && ! grep -q trainer "$work/calls" &&
    grep -q -- '--filter ^model\\.(forward|step) (best|graph) .*size=small b=\[0-9\]+ t=128 ' "$work/calls"
check $? "another size is asked for by its name, and has no llm.c"
RISING=1 peers gpt2:1024:bf16
[ $? -eq 1 ] && grep -q ',llmc,.*,mismatch,' "$work/out/llmc.csv"
check $? "a loss that does not fall is a mismatch"
BROKEN=1 peers gpt2:1024:bf16
[ $? -eq 1 ] && grep -q 'no such thing' "$log" && [ -n "$(cell torch-eager 9)" ]
check $? "a trainer that fails is told, and the others are measured"
STEPS=10 peers gpt2:1024:bf16
[ $? -eq 1 ] && grep -q '10 steps, of which the first 10 are the warm-up' "$log"
check $? "a trainer that stops in the warm-up has no row"
FAILING=1 peers gpt2:1024:bf16
[ $? -eq 1 ] && [ -n "$(cell torch-eager 9)" ]
check $? "rows of a program that failed are kept"
SLOW=30 PEERS_SECONDS=2 peers gpt2:1024:bf16 gpt2:128:bf16
[ $? -eq 1 ] && [ "$(awk 'END { print NR }' "$work/out/model.csv")" -eq 3 ] &&
    grep -q 'no time for round 1: gpt2:128:bf16' "$log"
check $? "time that runs out ends it, with what was measured before"
PEERS_SECONDS=0 peers gpt2:1024:bf16
[ $? -eq 2 ] && grep -q 'nothing was measured' "$log"
check $? "nothing measured is status 2"
"$tree/compare/peers-model.sh" >"$log" 2>&1
[ $? -eq 2 ] && grep -q '^usage: ' "$log"
check $? "without arguments: how to use it"

# Recorded, and the table made of the baselines, in which a sitting without peers has no part.
cp -R "$root/scripts" "$tree"
cp "$root/build/gpubench-compare" "$tree/build" 2>/dev/null
peers gpt2:1024:bf16
"$tree/scripts/peers-baseline.sh" "$work/out" >"$log" 2>&1 &&
    [ "$(cat baselines/toy/torch/model.csv baselines/toy/llmc/model.csv | wc -l)" -eq 10 ] &&
    [ ! -e baselines/toy/model.csv ]
check $? "a sitting is recorded, the suite's rows beside PyTorch's, llm.c's in a folder of their own"
sed -n 's/,cold,[^,]*,/,cold,alone,/; s/,9000,8900,9100,/,1,1,1,/p' baselines/toy/torch/model.csv >"$work/alone"
cat "$work/alone" >>baselines/toy/torch/model.csv
awk -f compare/csv.awk -f compare/numbers.awk -f scripts/tables/ratio.awk -f scripts/tables/peers.awk \
    baselines/toy/torch/model.csv >"$work/out/peers.md"
[ -s "$work/alone" ] && [ "$(cell torch-eager 9)" = ' 0.500 (0.434 to 0.569) ' ]
check $? "rows of a sitting that no peer was in stay out of the ratio"
cp baselines/toy/llmc/model.csv before
echo 'other,columns' >baselines/toy/torch/model.csv
"$tree/scripts/peers-baseline.sh" "$work/out" >"$log" 2>&1
[ $? -eq 2 ] && grep -q 'has other columns' "$log" && cmp -s before baselines/toy/llmc/model.csv
check $? "one file that cannot be appended to: none is"

rm -rf "$tree/build/llmc"
NVCC="$work/bin/none" LLMC_SOURCES="$work" tests/peers/llmc.sh >"$log" 2>&1
[ $? -eq 2 ] && grep -q "no compiler '$work/bin/none'" "$log"
check $? "llmc.sh: a compiler that is missing is named"
finish
