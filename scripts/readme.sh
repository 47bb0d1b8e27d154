#!/bin/sh
# readme.sh - prints README.md with the part between its two markers made anew
# from baselines/; readme.sh FOLDER prints that folder's tables in full.
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 1 ]; then
    echo '<!-- written by `make readme` from the CSV files beside it -->'
    for file in "$1"/*.csv; do
        printf '\n## %s\n\n' "$(basename "$file" .csv)"
        awk -f scripts/median.awk -f scripts/tables.awk "$file"
    done
    exit
fi
sed '/^<!-- begin generated -->$/q' README.md
for folder in baselines/*/; do
    [ -d "$folder" ] || continue
    printf '\n### %s\n\n' "$(basename "$folder")"
    awk -f scripts/median.awk -f scripts/largest.awk "$folder"*.csv
    printf '\nThe parts of a block against the whole (variant `best`):\n\n'
    awk -f scripts/median.awk -f scripts/parts.awk "$folder"block.csv
    printf '\nEvery shape and variant: [%sREADME.md](%sREADME.md).\n' "$folder" "$folder"
done
echo
sed -n '/^<!-- end generated -->$/,$p' README.md
