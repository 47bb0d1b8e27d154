#!/bin/sh
# test_report.sh - what gpubench-compare says of the committed baselines against copies
# of them that were altered: found, and short enough to read. As TAP lines.
# Argument: the compare tool (build/gpubench-compare).
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
compare=${1:-build/gpubench-compare}
baseline=baselines/nvidia-h100-80gb-hbm3

# altered FILE AWK: a copy, on whose ok rows the statements work: `key` is a case's
# name, `us` its median.
altered() {
    awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; print; next }
        $c["status"] == "ok" {
            key = $c["case"] " " $c["variant"] " " $c["dtype"] " " $c["params"]
            us = $c["median_us"]
            '"$2"'
            $c["median_us"] = us
        }
        { print }' "$1"
}

# fits NAME STATUS AWK: the text on the norm suite, altered so, is one screen.
fits() {
    altered $baseline/norm.csv "$3" >"$work/norm.csv"
    "$compare" $baseline/norm.csv "$work/norm.csv" >"$work/text"
    [ $? -eq "$2" ] && [ "$(wc -l <"$work/text")" -le 50 ]
    check $? "norm fits 50 lines: $1"
}

fits "nothing changed" 0 ''
fits "all slower" 1 'us *= 1.1'
fits "all faster" 0 'us /= 1.1'
fits "slower, faster, gone and new, on another driver" 1 '
    if (key ~ /n=512/) us *= 1.3
    else if (key ~ /n=8192/) us /= 1.2
    if (key ~ /rmsnorm.forward/) $c["case"] = "renamed.forward"
    $c["uuid"] = "GPU-x"; $c["driver"] = "1"; $c["cuda_runtime"] = "2"; $c["gpubench_version"] = "3"'
fits "runs that are cut short or far off" 0 '
    if (NR % 97 == 0) us *= 3
    if ($c["run"] > 1 && key ~ /backward/) next'

altered $baseline/attention.csv 'us *= NR % 2 ? 1.1 : 0.9; $c["driver"] = "1"' >"$work/attention.csv"
"$compare" --format markdown $baseline/attention.csv "$work/attention.csv" >"$work/markdown"
[ "$(wc -c <"$work/markdown")" -le 60000 ] && grep -q '<details>' "$work/markdown" &&
    ! grep -qF "$work" "$work/markdown"
check $? "markdown of attention, all cases altered: at most 60 kB, folded, no folders"

altered $baseline/loss.csv 'if (key ~ /^cross_entropy.forward fused bf16 n=8192/) us *= 1.05' \
    >"$work/loss.csv"
"$compare" --format csv $baseline/loss.csv "$work/loss.csv" >"$work/verdicts" 2>/dev/null
[ $? -eq 1 ] && [ "$(grep -c SLOWER "$work/verdicts")" -eq 1 ] &&
    grep SLOWER "$work/verdicts" | grep -q 'cross_entropy.forward,fused,cuda,bf16'
check $? "5 % in one case is found, and nothing else"

# layernorm and layernorm_residual, forward and backward, two variants, two dtypes.
mkdir "$work/all"
cp $baseline/*.csv "$work/all/"
altered $baseline/norm.csv 'if (key ~ /^layernorm.* n=32768 c=2560/) us *= 1.05' >"$work/all/norm.csv"
"$compare" --format csv --baseline $baseline/*.csv --current "$work"/all/*.csv \
    >"$work/verdicts" 2>/dev/null
[ $? -eq 1 ] && [ "$(grep -c SLOWER "$work/verdicts")" -eq 16 ] &&
    [ "$(grep SLOWER "$work/verdicts" | grep -c 'layernorm.*n=32768 c=2560')" -eq 16 ]
check $? "5 % in 16 layernorm cases is found among all suites, in all of them and nowhere else"

finish
