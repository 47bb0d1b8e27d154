#!/bin/sh
# run.sh BUILD - what can only be tested on a GPU, as TAP lines: each variant
# verified at odd shapes, every mode, every guard, and no finding of
# compute-sanitizer. BUILD is the folder with the programs of `make
# BACKEND=cuda`. Speed is not tested here: that is what baselines are for.
set -u
build=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
count=0
failed=0

report() { # report STATUS NAME [FILE with the explanation]
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        [ $# -lt 3 ] || sed 's/^/# /' "$3" | head -40
        failed=1
    fi
}

# Columns are found by name; none in front of flags is ever quoted.
column() { # column FILE NAME
    head -1 "$1" | tr , '\n' | grep -nx "$2" | cut -d: -f1
}

quick="--max-time 0.02 --max-samples 200 --quiet"

verifies() { # verifies NAME PROGRAM ARGUMENTS...: all rows ok, or unsupported
    name=$1
    shift
    "$@" $quick --csv "$work/out.csv" > "$work/log" 2>&1
    status=$?
    status_column=$(column "$work/out.csv" status)
    bad=$(tail -n +2 "$work/out.csv" | cut -d, -f"$status_column" | grep -cv -e '^ok$' -e '^unsupported$')
    [ "$status" -eq 0 ] && [ "$bad" -eq 0 ]
    report $? "$name verifies" "$work/log"
}

ends_as() { # ends_as CASE STATUS [FLAG]: in the file of the guards
    case_column=$(column "$work/guards.csv" case)
    status_column=$(column "$work/guards.csv" status)
    flags_column=$(column "$work/guards.csv" flags)
    cut -d, -f"$case_column","$status_column","$flags_column" "$work/guards.csv" > "$work/ends"
    grep -q "^$1,$2,.*${3:-}" "$work/ends"
    report $? "guard: $1 ends as $2 ${3:-}" "$work/ends"
}

sanitizes() { # sanitizes NAME PROGRAM ARGUMENTS...
    name=$1
    shift
    for tool in memcheck racecheck initcheck; do
        compute-sanitizer --tool $tool --error-exitcode 99 "$@" --profile > "$work/log" 2>&1
        status=$?
        [ $status -eq 0 ] && ! grep -q 'ERROR SUMMARY: [1-9]' "$work/log"
        report $? "$name: $tool is clean" "$work/log"
    done
}

"$build/tests/four_cases" $quick --mode all --csv "$work/four.csv" > "$work/log" 2>&1
report $? "four cases in every mode" "$work/log"
[ "$(wc -l < "$work/four.csv")" -eq 13 ]
report $? "four cases, three modes, one row each" "$work/four.csv"

odd='b=1 h=1 t=1 d=64 causal=1; b=2 h=3 t=127 d=64 causal=1; b=2 h=3 t=129 d=128 causal=0;
     b=1 h=2 t=129 d=64 causal=0; b=1 h=2 t=200 d=80 causal=1; b=1 h=2 t=65 d=17 causal=0;
     b=1 h=1 t=1025 d=128 causal=1'
odd=$(echo "$odd" | tr '\n' ' ')
verifies "attention at odd shapes" "$build/attention" --dtype f32,tf32,f16,bf16 --shape "$odd"
verifies "attention in every mode" "$build/attention" --mode all --shape 'b=1 h=2 t=130 d=64 causal=1'
verifies "memcpy at odd sizes" "$build/memcpy" --shape 'bytes=1; bytes=15; bytes=4097; bytes=1048579'

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

CUDA_VISIBLE_DEVICES= "$build/memcpy" --csv "$work/none.csv" > "$work/log" 2>&1
[ $? -eq 2 ] && grep -q cudaErrorNoDevice "$work/log" && [ ! -e "$work/none.csv" ]
report $? "no visible GPU: status 2, CUDA's reason, no file" "$work/log"
"$build/memcpy" --device 99 --csv "$work/none.csv" > "$work/log" 2>&1
[ $? -eq 2 ] && grep -q -- '--device 99' "$work/log" && [ ! -e "$work/none.csv" ]
report $? "unknown GPU: status 2, no file" "$work/log"

if command -v compute-sanitizer > /dev/null; then
    small='b=1 h=2 t=129 d=64 causal=1; b=1 h=1 t=65 d=128 causal=0; b=1 h=1 t=33 d=40 causal=1'
    sanitizes attention "$build/attention" --dtype f32,tf32,f16,bf16 --shape "$small"
    sanitizes memcpy "$build/memcpy" --shape 'bytes=1; bytes=4099'
fi

echo "1..$count"
exit $failed
