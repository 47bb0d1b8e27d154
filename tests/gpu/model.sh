#!/bin/sh
# model.sh BUILD [SIZE[:CASES]...] - the training step on a GPU: verified at odd shapes,
# then the sizes named (all without) measured for a short while on fresh random inputs,
# as tables: tokens per second, operations and memory; parts; habits; then
# compute-sanitizer on a tiny shape. BUILD is the folder of `make BACKEND=cuda
# build/cuda/model`; CASES a regular expression of what the lines of --list begin with.
# MODEL_TIME is the most seconds a case is measured (0.3), MODEL_SAMPLES the fewest
# samples (10), MODEL_DTYPES which (f32,bf16), MODEL_ODD=0 leaves the odd shapes out and
# MODEL_SANITIZE=0 the sanitizer, MODEL_TOTAL is after how many seconds measuring ends,
# rows that are done staying (500), RESULTS is where the CSV files stay.
# Exit status 0 if every row is ok, oom or unsupported and the sanitizer found nothing.
set -u
export LC_ALL=C CDPATH=
build=$1
shift
seconds=${MODEL_TIME:-0.3}
dtypes=${MODEL_DTYPES:-f32,bf16}
work=${RESULTS:-$(mktemp -d)}
mkdir -p "$work" || exit 2
seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
failed=0
begun=$(date +%s)
root=$(dirname "$0")/../..
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
          what = value("case") " " (p["part"] != "" ? p["pass"] "." p["part"] : p["habit"])
          steps = p["steps"] ? p["steps"] : 1
          us = us / steps
          printf "%-6s b=%-2s t=%-5s %-5s %-30s %-16s " \
              "%9.3f ms +- %8.3f %10.0f tok/s %7.1f TFLOP/s %7.0f MB\n", \
              p["size"], p["b"], p["t"], value("dtype"), what, value("variant"), us / 1000, \
              value("stddev_us") / 1000 / steps, p["b"] * p["t"] / us * 1e6, value("tflop_per_s"), \
              value("device_bytes") / 1e6 }
        END { for (s in status) printf "# %d %s\n", status[s], s }' "$1" | sort
}

measure() { # measure NAME ARGUMENTS...
    name=$1
    shift
    left=$((${MODEL_TOTAL:-500} - $(date +%s) + begun))
    [ $left -gt 0 ] || { echo "## $name: no time left"; return; }
    timeout $left "$build/model" --seed "$seed" --quiet --csv "$work/$name.csv" "$@" \
        > "$work/$name.log" 2>&1
    status=$?
    echo "## $name: status $status"
    [ -f "$work/$name.csv" ] && table "$work/$name.csv"
    for kind in part habit; do
        ! grep -q "model.$kind" "$work/$name.csv" 2> /dev/null ||
            awk -f "$root/compare/csv.awk" -f "$root/compare/numbers.awk" \
                -f "$root/scripts/tables/model_${kind}s.awk" "$work/$name.csv"
    done
    [ $status -eq 0 ] && return
    bad=$(table "$work/$name.csv" | grep -c -e '^  failed' -e '^  mismatch')
    [ "$bad" -eq 0 ] && [ $status -le 1 ] && return
    failed=1
    tail -5 "$work/$name.log"
}

[ "${MODEL_ODD:-1}" = 1 ] && measure odd --dtype f32,tf32,f16,bf16 --max-time 0.02 --max-samples 20 \
    --shape 'b=1 t=1 d=8 h=1 ff=8 l=1 v=9 tied=0; b=2 t=33 d=128 h=2 ff=256 l=2 v=1001 tied=1;
             b=3 t=65 d=160 h=2 ff=320 l=3 v=257 tied=0; b=1 t=129 d=62 h=2 ff=65 l=1 v=50 tied=1'
turn=0
[ $# -gt 0 ] || set -- small medium large xl 2.7B gpt2 batch
for wanted; do
    turn=$((turn + 1))
    cases=${wanted#*:}
    [ "$cases" != "$wanted" ] || cases=model
    measure "$turn-${wanted%%:*}" --dtype "$dtypes" --max-time "$seconds" --warmup 2 \
        --min-samples "${MODEL_SAMPLES:-10}" --filter "^$cases.*size=${wanted%%:*} "
done
if [ "${MODEL_SANITIZE:-1}" = 1 ] && command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck initcheck; do
        compute-sanitizer --tool $tool --error-exitcode 99 "$build/model" --profile \
            --shape 'b=1 t=17 d=62 h=2 ff=65 l=2 v=50 tied=1' > "$work/$tool.log" 2>&1
        status=$?
        echo "## $tool: status $status, $(grep 'SUMMARY: ' "$work/$tool.log" | tail -1)"
        [ $status -eq 0 ] || failed=1
    done
fi
exit $failed
