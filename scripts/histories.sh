#!/bin/sh
# histories.sh FOLDER [BASELINES] - how the cases of FOLDER/*.csv fared from campaign to
# campaign, as the CSV of gpubench-compare --history; each file together with the
# baseline of its name. What keeps a file from having a history (one campaign only,
# another device) goes to standard error.
set -eu
export LC_ALL=C CDPATH=
compare=${COMPARE:-$(dirname "$0")/../build/gpubench-compare}
folder=$1 baselines=${2:-}
for file in "$folder"/*.csv; do
    name=$(basename "$file")
    set -- "$file"
    if [ -n "$baselines" ] && [ -f "$baselines/$name" ] && ! cmp -s "$baselines/$name" "$file"; then
        set -- "$baselines/$name" "$file"
    fi
    # A comparison says better what is wrong with a file.
    "$compare" --format csv --history "$@" || [ $? -eq 2 ]
done | awk 'NR == 1 || !/^suite,case,/'
