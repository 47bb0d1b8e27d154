#!/bin/sh
# run.sh BUILD - what can only be tested on a GPU, as TAP lines: each variant
# verified at odd shapes, every mode, every guard, and no finding of
# compute-sanitizer. BUILD is the folder with the programs of `make
# BACKEND=cuda`. Speed is not tested here: that is what baselines are for.
# SANITIZE='norm loss' in the environment: only the sanitizer's tests of these.
set -u
. "$(dirname "$0")/../tap.sh"
build=$1

report() { # report STATUS NAME [FILE with the explanation]
    log=${3:-/dev/null}
    check "$1" "$2"
    log=$work/log
}

# Columns are found by name; none in front of flags is ever quoted.
column() { # column FILE NAME
    head -1 "$1" | tr , '\n' | grep -nx "$2" | cut -d: -f1
}

quick="--max-time 0.02 --max-samples 200 --quiet"

verifies() { # verifies NAME PROGRAM ARGUMENTS...: all rows ok, or unsupported, not all of them
    name=$1
    shift
    "$@" $quick --csv "$work/out.csv" > "$work/log" 2>&1
    status=$?
    status_column=$(column "$work/out.csv" status)
    tail -n +2 "$work/out.csv" | cut -d, -f"$status_column" > "$work/statuses"
    [ "$status" -eq 0 ] && grep -qx ok "$work/statuses" && ! grep -qvx -e ok -e unsupported "$work/statuses"
    report $? "$name verifies" "$work/log"
}

# All of them could be unsupported; on the GPU that they are for they are not.
runs_on() { # runs_on CAPABILITY VARIANT: rows of the last file
    variant_column=$(column "$work/out.csv" variant)
    status_column=$(column "$work/out.csv" status)
    grep -q ",$1," "$work/out.csv" || return 0
    cut -d, -f"$variant_column","$status_column" "$work/out.csv" | grep -qx "$2,ok"
    report $? "$2 runs on compute capability $1"
}

ends_as() { # ends_as CASE STATUS [FLAG]: in the file of the guards
    case_column=$(column "$work/guards.csv" case)
    status_column=$(column "$work/guards.csv" status)
    flags_column=$(column "$work/guards.csv" flags)
    cut -d, -f"$case_column","$status_column","$flags_column" "$work/guards.csv" > "$work/ends"
    grep -q "^$1,$2,.*${3:-}" "$work/ends"
    report $? "guard: $1 ends as $2 ${3:-}" "$work/ends"
}

# A plan without results, or results without a plan, is a program that crashed.
includes() { # includes NAME FILE: the TAP lines that another program printed
    planned=$(sed -n 's/^1\.\.\([1-9][0-9]*\)$/\1/p' "$2")
    [ "${planned:-none}" = "$(grep -c -e '^ok ' -e '^not ok ' "$2")" ]
    report $? "$1: as many results as planned" "$2"
    while read -r line; do
        case $line in
        'ok '*' # SKIP '*) check 0 "$1" "${line#* # SKIP }" ;;
        'ok '*) report 0 "$1: ${line#* - }" ;;
        'not ok '*) report 1 "$1: ${line#* - }" ;;
        '#'*) echo "$line" ;;
        esac
    done < "$2"
}

sanitizes() { # sanitizes NAME PROGRAM ARGUMENTS..., with each of $tools
    name=$1
    shift
    for tool in $tools; do
        compute-sanitizer --tool $tool --error-exitcode 99 "$@" --profile > "$work/log" 2>&1
        status=$?
        # racecheck counts hazards, the others errors.
        [ $status -eq 0 ] && grep -q 'SUMMARY: 0 ' "$work/log" && ! grep -q 'SUMMARY: [1-9]' "$work/log"
        report $? "$name: $tool is clean" "$work/log"
    done
}

every_mode() {
    "$build/tests/four_cases" $quick --mode all --csv "$work/four.csv" > "$work/log" 2>&1
    report $? "four cases in every mode" "$work/log"
    [ "$(wc -l < "$work/four.csv")" -eq 13 ]
    report $? "four cases, three modes, one row each" "$work/four.csv"
    verifies "attention in every mode" "$build/attention" --mode all --shape 'b=1 h=2 t=130 d=64 causal=1'
    verifies "memcpy in every mode" "$build/memcpy" --mode all --shape 'bytes=1048579'
}

odd_shapes() {
    odd='b=1 h=1 t=1 d=64 causal=1; b=2 h=3 t=127 d=64 causal=1; b=2 h=3 t=129 d=128 causal=0;
         b=1 h=2 t=129 d=64 causal=0; b=1 h=2 t=200 d=80 causal=1; b=1 h=2 t=65 d=17 causal=0;
         b=1 h=1 t=1025 d=128 causal=1'
    # More blocks of rows than multiprocessors: persistent blocks take several.
    odd="$odd; b=7 h=13 t=321 d=64 causal=1; b=1 h=23 t=2100 d=64 causal=1;
         b=3 h=31 t=400 d=64 causal=0; b=3 h=31 t=257 d=80 causal=1; b=3 h=31 t=257 d=128 causal=0"
    verifies "attention at odd shapes" "$build/attention" --dtype f32,tf32,f16,bf16,e4m3 --shape "$odd"
    runs_on 9.0 wgmma
    verifies "memcpy at odd sizes" "$build/memcpy" --shape 'bytes=1; bytes=15; bytes=4097; bytes=1048579'
    all="--dtype f32,tf32,f16,bf16"
    verifies "norm at odd shapes" "$build/norm" $all \
        --shape 'n=1 c=1; n=127 c=33; n=129 c=1025; n=3 c=768; n=5 c=1600; n=2 c=8191; n=31 c=31'
    verifies "loss at odd shapes" "$build/loss" $all \
        --shape 'n=1 v=1; n=7 v=31; n=33 v=1025; n=129 v=50257; n=5 v=10000'
    verifies "embedding at odd shapes" "$build/embedding" $all \
        --shape 'n=1 v=1 c=1 t=1 zipf=0; n=127 v=33 c=31 t=127 zipf=1; n=129 v=1025 c=33 t=0 zipf=0;
                 n=1025 v=50257 c=1025 t=128 zipf=1; n=300 v=1 c=64 t=0 zipf=0'
    verifies "optimizer at odd shapes" "$build/optimizer" $all \
        --shape 'd=1 ff=1 l=1 v=1 t=1; d=31 ff=33 l=2 v=1025 t=129; d=64 ff=256 l=1 v=127 t=8'
    verifies "ffn at odd shapes" "$build/ffn" $all,e4m3 \
        --shape 'n=1 d=8 ff=8; n=127 d=33 ff=129; n=129 d=64 ff=256; n=8 d=31 ff=65; n=37 d=48 ff=80'
    verifies "block at odd shapes" "$build/block" $all \
        --shape 'b=1 t=1 d=64 h=1 ff=64; b=2 t=127 d=128 h=2 ff=256; b=1 t=129 d=160 h=2 ff=320;
                 b=1 t=65 d=34 h=2 ff=70'
    verifies "model at odd shapes" "$build/model" $all \
        --shape 'b=1 t=1 d=8 h=1 ff=8 l=1 v=9 tied=0; b=2 t=33 d=128 h=2 ff=256 l=2 v=1001 tied=1;
                 b=3 t=65 d=160 h=2 ff=320 l=3 v=257 tied=0'
    verifies "ceilings at odd shapes" "$build/ceilings" $all --shape 'words=1000003 m=130 n=70 k=33'
}

guards_and_launches() {
    "$build/tests/guards" --timeout 1 --quiet --csv "$work/guards.csv" > "$work/log" 2>&1
    [ $? -eq 1 ]
    report $? "guards end with status 1" "$work/log"
    for healthy in 1 2 3 4; do ends_as healthy.$healthy ok; done
    ends_as nothing failed launched_nothing
    ends_as too_many_threads failed cudaErrorInvalid
    ends_as unchecked_launch failed cudaErrorInvalid
    ends_as empty_grid failed cudaErrorInvalid
    ends_as synchronizing ok ungated
    ends_as elsewhere failed works_outside_the_stream
    ends_as beyond mismatch wrote_out_of_bounds
    ends_as through_null failed cudaErrorIllegalAddress
    ends_as partly mismatch exceeds_the_tolerance
    ends_as one_tib oom needed_bytes=1099511627776
    ends_as two_to_the_63 oom needed_bytes=9223372036854775808
    ends_as many_launches ok
    ends_as too_long failed not_finished

    "$build/tests/launches" --mode all --timeout 5 $quick > "$work/launches" 2> "$work/log"
    includes launches "$work/launches"
}

absent_devices() {
    CUDA_VISIBLE_DEVICES="" "$build/memcpy" --csv "$work/none.csv" > "$work/log" 2>&1
    [ $? -eq 2 ] && grep -q cudaErrorNoDevice "$work/log" && [ ! -e "$work/none.csv" ]
    report $? "no visible GPU: status 2, CUDA's reason, no file" "$work/log"
    "$build/memcpy" --device 99 --csv "$work/none.csv" > "$work/log" 2>&1
    [ $? -eq 2 ] && grep -q -- '--device 99' "$work/log" && [ ! -e "$work/none.csv" ]
    report $? "unknown GPU: status 2, no file" "$work/log"
}

# The first losses of the small size against the oracle's, in every dtype.
trains() {
    "$build/tests/train" > "$work/train" 2>&1
    report $? "a model trains" "$work/train"
    includes train "$work/train"
}

ones() {
    "$build/tests/ones" > "$work/ones" 2>&1
    report $? "attention of ones is one" "$work/ones"
    includes ones "$work/ones"
}

# At most two tiles of queries, so that the backward wgmma fills no stage again: at
# more (b=7 h=13 t=321 d=64) racecheck takes the next bulk copy into a stage for a
# race with the reads before it. It sees only the one lane that says for its warp that
# the stage is free, not the barrier between that and the reads of all lanes.
sanitize_attention() {
    small='b=1 h=2 t=129 d=64 causal=1; b=1 h=1 t=65 d=128 causal=0; b=1 h=1 t=33 d=40 causal=1'
    tools='memcheck racecheck'
    sanitizes attention "$build/attention" --dtype f32,tf32,f16,bf16,e4m3 --shape "$small"
    # initcheck does not see what the copy engine (TMA) stores, and takes it for
    # uninitialized when it is read; wgmma is the variant that stores so.
    tools=initcheck
    sanitizes 'attention but wgmma' "$build/attention" --dtype f32,tf32,f16,bf16 --shape "$small" \
        --filter ' (naive|naive_cublas|tiled|mma|mma_short|mma_atomic) '
}

# As in attention: of a head_dim beyond 128 block's attention is not wgmma.
sanitize_block() {
    tools='memcheck racecheck'
    sanitizes block "$build/block" --shape 'b=1 t=17 d=62 h=2 ff=65'
    tools=initcheck
    sanitizes block "$build/block" --shape 'b=1 t=17 d=131 h=1 ff=65'
}

# Odd widths in ffn and block: at multiples of 8, cuBLAS's products store by the
# copy engine too.
sanitize() { # sanitize SUITE
    tools='memcheck racecheck initcheck'
    case $1 in
    attention) sanitize_attention ;;
    memcpy) sanitizes memcpy "$build/memcpy" --shape 'bytes=1; bytes=4099' ;;
    norm) sanitizes norm "$build/norm" --shape 'n=33 c=65; n=40 c=768' ;;
    loss) sanitizes loss "$build/loss" --shape 'n=7 v=1025; n=3 v=50257' ;;
    embedding) sanitizes embedding "$build/embedding" --shape 'n=129 v=33 c=65 t=8 zipf=1' ;;
    optimizer) sanitizes optimizer "$build/optimizer" --shape 'd=31 ff=33 l=1 v=101 t=9' ;;
    ffn) sanitizes ffn "$build/ffn" --shape 'n=33 d=31 ff=65' ;;
    block) sanitize_block ;;
    model) sanitizes model "$build/model" --dtype f32,f16,bf16 --shape 'b=1 t=17 d=62 h=2 ff=65 l=2 v=50 tied=1' ;;
    ceilings) sanitizes ceilings "$build/ceilings" --shape 'words=100003 m=0 n=0 k=0' ;;
    *) echo "run.sh: no suite '$1'" >&2; exit 2 ;;
    esac
}

if [ -z "${SANITIZE:-}" ]; then
    every_mode
    odd_shapes
    guards_and_launches
    absent_devices
    trains
    ones
fi
if command -v compute-sanitizer > /dev/null; then
    for suite in ${SANITIZE:-attention memcpy norm loss embedding optimizer ffn block model ceilings}; do
        sanitize "$suite"
    done
elif [ -n "${SANITIZE:-}" ]; then
    echo "run.sh: SANITIZE needs compute-sanitizer" >&2
    exit 2
fi

finish
