#!/bin/sh
# torch-baselines.sh RUNS [ARGUMENTS...] - measures PyTorch on the suites' cases
# (compare/pytorch) in RUNS processes and appends them, as one campaign, to
# baselines/<device>/torch/<suite>.csv, beside the suites' own. Refuses a working
# tree with changes. A case that failed keeps its row, which says why.
# Exit status: compare/pytorch's; 2 (no PyTorch, no GPU, bad usage) records nothing.
set -eu
. "$(dirname "$0")/orderly.sh"
. "$(dirname "$0")/followed.sh"
. "$(dirname "$0")/record.sh"
runs=$1
shift
measured=results/torch.csv

refuse_changes torch-baselines
prepare "$measured"
status=0
watched "${PYTHON:-python3}" compare/pytorch --runs "$runs" --csv "$measured" "$@" || status=$?
[ "$status" -le 1 ] && [ -e "$measured" ] || exit "$status"
folder=$(sh scripts/device-folder.sh "$measured")/torch
rm -rf results/torch
mkdir results/torch
sh scripts/csv.sh by_suite folder=results/torch "$measured"
# All or none: a campaign that lacks suites would look complete.
for file in results/torch/*.csv; do
    [ -e "$file" ] || exit "$status" # no rows at all
    refuse_other_columns "$file" "$folder/$(basename "$file")"
done
for file in results/torch/*.csv; do
    append "$file" "$folder/$(basename "$file")"
done
exit "$status"
