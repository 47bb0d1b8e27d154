#!/bin/sh
# test_peers_cpu.sh - compare/peers-cpu.sh, with the suites and Python replaced by what
# prints known numbers. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
unset PEERS_SUITES PEERS_FILTER PEERS_DTYPE PEERS_ROUNDS PEERS_TIME PEERS_SECONDS PEERS_BLAS PYTHON \
    GPUBENCH_BLAS
mkdir "$work/bin"

columns=schema,suite,case,variant,backend,dtype,params,mode,campaign,status,flags,median_us,ci95_low_us,ci95_high_us,bytes
# row CASE VARIANT US LOW HIGH [BYTES [STATUS]], in microseconds.
row() { echo "2,x,$1,$2,cpu,f32,n=1,cold,\$campaign,${7:-ok},,$3,$4,$5,${6:-}"; }

# What stands for a program: prints the rows of its name, notes its arguments, takes SLOW
# seconds, and lists nothing.
stand_in() { # stand_in NAME ROWS
    cat >"$work/bin/$1" <<END
#!/bin/sh
[ "\$1" != -c ] || { echo /lib/openblas.so; exit; }
echo "$1 blas=\${GPUBENCH_BLAS:-} \$*" >>"$work/calls"
csv= campaign=
while [ \$# -gt 0 ]; do
    case \$1 in
    --list) echo '[]'; exit ;;
    --csv) csv=\$2 ;;
    --campaign) campaign=\$2 ;;
    esac
    shift
done
{ echo "$columns"; echo "$2"; } >"\$csv"
sleep "\${SLOW:-0}"
[ -z "\${FAILING:-}" ]
END
    chmod +x "$work/bin/$1"
}
stand_in ffn "$(row ffn.forward threads 3000 2900 3100)
$(row ffn.forward simd 5000 4900 5100)
$(row ffn.forward blas 1500 1400 1600)"
stand_in norm "$(row layernorm.forward simd 0 0 0 '' unsupported)
$(row layernorm.forward threads 200 190 210 4000000)"
stand_in ceilings "$(row bandwidth.copy simd 2000 1900 2100 50000000)
$(row bandwidth.copy threads 1000 900 1100 50000000)
$(row bandwidth.read threads 1000 900 1100 70000000)"
stand_in python "$(row ffn.forward torch-eager 2000 1900 2100)
$(row ffn.forward numpy-products 1200 1100 1300)
$(row layernorm.forward torch-eager 250 240 260)
$(row layernorm.forward numpy 0 0 0 '' mismatch)"

peers() {
    rm -rf "$work/calls" "$work/out"
    PYTHON="$work/bin/python" PEERS_SUITES=${PEERS_SUITES:-ffn,norm,ceilings} \
        compare/peers-cpu.sh "$work/bin" "$work/out" "$@" >"$log" 2>&1
}
has() { grep -qxF -- "$1" "$work/out/peers.md"; }

peers 1 2
check $? "all of it is measured"
awk '!/--list/ { print $1 }' "$work/calls" | tr '\n' ' ' |
    grep -qx '\(ffn norm ceilings python \)\{4\}'
check $? "two rounds, in each the suites and then their peers for every number of threads"
[ "$(sed -n '/--list/d; s/.*--threads \([0-9]*\).*/\1/p' "$work/calls" | uniq | tr '\n' ' ')" = '1 2 1 2 ' ]
check $? "on as many threads as was asked for"
[ "$(sed -n '/--list/d; s/.*--campaign \([^ ]*\).*/\1/p' "$work/calls" | sort -u | wc -l)" -eq 2 ]
check $? "a campaign a round, which both sides share"
[ "$(sed -n 's/^norm.*\(--shape [^-]*\)--dtype.*/\1/p' "$work/calls" | sort -u | wc -l)" -eq 1 ]
check $? "the peers' cases are listed at the shapes that are measured"
has '| `ffn.forward` | f32 | n=1 | 2 | blas 1.500 | torch-eager 2.000 | 0.75 (0.67 to 0.84) |'
check $? "the fastest variant beside a peer, the interval the widest of both"
has '| `ffn.forward` | f32 | n=1 | 1 | threads 3.000 | numpy-products 1.200 | 2.50 (2.23 to 2.82) |' &&
    has '| `ffn.forward` | f32 | n=1 | 1 | blas 1.500 | numpy-products 1.200 | 1.25 (1.08 to 1.45) |'
check $? "own code and blas beside the products alone"
has '| `layernorm.forward` | f32 | n=1 | 1 | threads 20.0 | copy 50.0 | 0.40 |'
check $? "a pass over memory beside the fastest copy"
{
    echo "$columns"
    # shellcheck disable=SC2034 # what row prints has its name
    campaign=now
    for bytes in 4000000 2000000 9000000; do
        eval "echo \"$(row layernorm.forward threads 200 190 210 $bytes)\""
    done
    eval "echo \"$(row bandwidth.copy threads 1000 900 1100 50000000)\""
} > "$work/draws.csv"
awk -f compare/csv.awk -f compare/numbers.awk -f compare/peers-cpu.awk threads=1 "$work/draws.csv" > "$log"
grep -qxF '| `layernorm.forward` | f32 | n=1 | 1 | threads 20.0 | copy 50.0 | 0.40 |' "$log"
check $? "bytes that differ by the seed: their median"
[ "$(sed '1,/^Not ok/d' "$work/out/peers.md" | sort -u)" = "
- numpy layernorm.forward f32 n=1, 1 threads: mismatch
- numpy layernorm.forward f32 n=1, 2 threads: mismatch" ]
check $? "what is not ok is named, but for what is not there"

PEERS_BLAS=numpy peers 1
[ $? -eq 0 ] && grep -q '^ffn blas=/lib/openblas.so ' "$work/calls"
check $? "blas by numpy's library where that is asked for"
PEERS_FILTER='a|b' PEERS_DTYPE=bf16 PEERS_ROUNDS=1 peers 1
[ $? -eq 0 ] && grep -q '^norm .*--dtype bf16,u8 .*--filter ^(a|b)\.\* (simd|threads|blas) ' "$work/calls" &&
    grep -q '^python .*--dtype bf16,u8 --filter ^(a|b) ' "$work/calls"
check $? "a filter and dtypes are both sides'"
FAILING=1 peers 1
[ $? -eq 1 ] && has '| `layernorm.forward` | f32 | n=1 | 1 | threads 0.200 | torch-eager 0.250 | 0.80 (0.73 to 0.88) |'
check $? "rows of a program that failed are kept"
SLOW=30 PEERS_SECONDS=4 peers 1
[ $? -eq 1 ] && [ "$(awk 'END { print NR }' "$work/out/own-1.csv")" -eq 4 ]
check $? "time that runs out ends it, with what was measured before"
PEERS_SECONDS=0 peers 1
[ $? -eq 2 ] && grep -q 'nothing was measured' "$log"
check $? "nothing measured is status 2"
PEERS_SUITES=rope peers 1
[ $? -eq 2 ] && grep -q "no suite 'rope' with peers" "$log"
check $? "a suite without peers is refused"
for arguments in '' 'bin out' 'bin out 0' 'bin out 1 x'; do
    # shellcheck disable=SC2086 # words
    compare/peers-cpu.sh $arguments >"$log" 2>&1
    [ $? -eq 2 ]
    check $? "refused: peers-cpu.sh $arguments"
done

finish
