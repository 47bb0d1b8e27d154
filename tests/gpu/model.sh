#!/bin/sh
# model.sh BUILD [SIZE...] - the training step on a GPU: verified at odd shapes, then
# the sizes named (all without) measured for a short while on fresh random inputs,
# as a table of tokens per second, operations and memory; then compute-sanitizer on
# a tiny shape. BUILD is the folder of `make BACKEND=cuda build/cuda/model`. MODEL_TIME
# is the most seconds a case is measured (0.3), MODEL_SAMPLES the fewest samples (10),
# MODEL_DTYPES which (f32,bf16), MODEL_CASES a regular expression of the cases wanted,
# MODEL_ODD=0 leaves the odd shapes out and MODEL_SANITIZE=0 the sanitizer, RESULTS is
# where the CSV files stay.
# Exit status 0 if every row is ok, oom or unsupported and the sanitizer found nothing.
set -u
build=$1
shift
sizes=${*:-small medium large xl 2.7B gpt2}
seconds=${MODEL_TIME:-0.3}
dtypes=${MODEL_DTYPES:-f32,bf16}
work=${RESULTS:-$(mktemp -d)}
mkdir -p "$work" || exit 2
seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
failed=0
echo "seed $seed, rows in $work"

# One line a row that is not ok; then a table of the others.
table() { # table FILE
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        function value(name) { return $(at[name]) }
        { status[value("status")]++ }
        value("status") != "ok" {
            print "  " value("status") ": " value("case"), value("variant"), value("dtype"), \
                value("params") " (" value("flags") ")"
            next
        }
        { split("", p); n = split(value("params"), pair, " ")
          for (i = 1; i <= n; i++) { split(pair[i], kv, "="); p[kv[1]] = kv[2] }
          us = value("median_us")
          printf "%-7s t=%-5s %-5s %-18s %-10s %9.3f ms +- %8.3f %10.0f tok/s %7.1f TFLOP/s %7.0f MB\n", \
              p["size"], p["t"], value("dtype"), value("case"), value("variant"), us / 1000, \
              value("stddev_us") / 1000, p["b"] * p["t"] / us * 1e6, value("tflop_per_s"), \
              value("device_bytes") / 1e6 }
        END { for (s in status) printf "# %d %s\n", status[s], s }' "$1" | sort
}

measure() { # measure NAME ARGUMENTS...
    name=$1
    shift
    timeout "${MODEL_LIMIT:-500}" "$build/model" --seed "$seed" --quiet --csv "$work/$name.csv" "$@" \
        > "$work/$name.log" 2>&1
    status=$?
    echo "## $name: status $status"
    [ -f "$work/$name.csv" ] && table "$work/$name.csv"
    [ $status -eq 0 ] && return
    bad=$(table "$work/$name.csv" | grep -c -e '^  failed' -e '^  mismatch')
    [ "$bad" -eq 0 ] && [ $status -le 1 ] && return
    failed=1
    tail -5 "$work/$name.log"
}

[ "${MODEL_ODD:-1}" = 1 ] && measure odd --dtype f32,tf32,bf16 --max-time 0.02 --max-samples 20 \
    --shape 'b=1 t=1 d=8 h=1 ff=8 l=1 v=9 tied=0; b=2 t=33 d=128 h=2 ff=256 l=2 v=1001 tied=1;
             b=3 t=65 d=160 h=2 ff=320 l=3 v=257 tied=0; b=1 t=129 d=62 h=2 ff=65 l=1 v=50 tied=1'
for size in $sizes; do
    measure "$size" --dtype "$dtypes" --max-time "$seconds" --min-samples "${MODEL_SAMPLES:-10}" \
        --filter "${MODEL_CASES:-^model}.*size=$size "
done
if [ "${MODEL_SANITIZE:-1}" = 1 ] && command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck initcheck; do
        compute-sanitizer --tool $tool --error-exitcode 99 "$build/model" --profile \
            --shape 'b=1 t=17 d=62 h=2 ff=65 l=2 v=50 tied=1' > "$work/$tool.log" 2>&1
        status=$?
        echo "## $tool: status $status, $(grep 'ERROR SUMMARY' "$work/$tool.log" | tail -1)"
        [ $status -eq 0 ] || failed=1
    done
fi
exit $failed
