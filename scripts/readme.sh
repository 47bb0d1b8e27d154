#!/bin/sh
# readme.sh - prints README.md with the part between its two markers made anew
# from baselines/; readme.sh FOLDER prints that folder's tables in full. PyTorch's
# rows, in a folder torch/ beside the others, are used where they are there. COMPARE:
# the tool that sets runs of the same code against each other.
set -eu
cd "$(dirname "$0")/.."

# The names of device folders and suites have no blanks: device-folder.sh.
files_of() { # files_of FOLDER/: the suites' baselines, then PyTorch's
    for file in "$1"*.csv "$1"torch/*.csv; do
        [ ! -e "$file" ] || echo "$file"
    done
}

if [ $# -eq 1 ]; then
    echo '<!-- written by `make readme` from the CSV files beside it -->'
    for file in $(files_of "$1/"); do
        case $file in
        "$1"/torch/*) by=' by PyTorch' ;;
        *) by= ;;
        esac
        printf '\n## %s%s\n\n' "$(basename "$file" .csv)" "$by"
        awk -f scripts/median.awk -f scripts/tables.awk "$file"
    done
    exit
fi
sed '/^<!-- begin generated -->$/q' README.md
for folder in baselines/*/; do
    [ -d "$folder" ] || continue
    printf '\n### %s\n\n' "$(basename "$folder")"
    awk -f scripts/median.awk -f scripts/largest.awk "$folder"*.csv
    printf '\nAgainst PyTorch and what the device can do (the `ceilings` suite):\n\n'
    awk -f scripts/median.awk -f scripts/speed_of_light.awk scripts/speed_of_light.txt $(files_of "$folder")
    printf '\nThe parts of a block against the whole (variant `best`):\n\n'
    awk -f scripts/median.awk -f scripts/parts.awk "$folder"block.csv
    printf '\nWhat the medians are of:\n\n'
    awk -f scripts/runs.awk $(files_of "$folder")
    printf '\nThe same code against itself (`--self` below):\n\n'
    sh scripts/self_table.sh "$folder"*.csv
    printf '\nEvery shape and variant: [%sREADME.md](%sREADME.md).\n' "$folder" "$folder"
done
echo
sed -n '/^<!-- end generated -->$/,$p' README.md
