#!/bin/sh
# readme.sh - prints README.md with the part between its two markers made anew
# from baselines/; readme.sh FOLDER prints what that folder's own README says: its
# tables in full. PyTorch's rows, in a folder torch/ beside the others, and llm.c's, in
# llmc/, are used where they are there. COMPARE: the tool that sets runs of the same code against
# each other.
set -eu
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/.."

# The names of device folders and suites have no blanks: device-folder.sh.
files_of() { # files_of FOLDER/: the suites' baselines, then PyTorch's
    for file in "$1"*.csv "$1"torch/*.csv "$1"llmc/*.csv; do
        [ ! -e "$file" ] || echo "$file"
    done
}

table() { # table NAME FILE...: scripts/tables/NAME.awk on their rows
    name=$1
    shift
    awk -v markdown=1 -f compare/csv.awk -f compare/numbers.awk -f scripts/tables/ratio.awk \
        -f "scripts/tables/$name.awk" "$@"
}

against() { # against CASES FOLDER/: the cases beside PyTorch and the ceilings
    awk -v markdown=1 -v cases="$1" -f compare/csv.awk -f compare/numbers.awk -f scripts/tables/ratio.awk \
        -f scripts/tables/speed_of_light.awk $(files_of "$2")
}

# What runs on several devices is not measured with cold caches.
mode_of() { # mode_of FILE: cold, or hot where no row is
    if sh scripts/csv.sh values name=mode "$1" | grep -qx cold; then echo cold; else echo hot; fi
}

parts_of() { # parts_of FILE: through the lines that the plots are made from
    awk -f compare/csv.awk -f compare/numbers.awk -f compare/plots/points.awk "$1" | sort | cut -f 2- |
        awk -f compare/numbers.awk -f compare/plots/parts.awk -f scripts/tables/parts.awk
}

has_peers() { # has_peers FOLDER/: of the training step
    [ -e "$1torch/model.csv" ] || [ -e "$1llmc/model.csv" ]
}

# A training step: beside its peers, and its parts.
model_tables() { # model_tables FOLDER/
    [ -e "$1model.csv" ] || return 0
    if has_peers "$1"; then
        printf '\n## A training step beside its peers in the same sitting\n\n'
        table peers $(files_of "$1" | grep '/model\.csv$')
    fi
    printf '\n## The parts of a training step\n'
    table model_parts "$1model.csv"
    printf '\n## What habits cost a training step\n\n'
    if [ -e "$1habits.csv" ]; then
        sh scripts/habits.sh "$1habits.csv"
    else
        echo 'Not measured.'
    fi
}

# From the overview to each shape.
device_tables() {
    folder=$1
    echo '<!-- written by `make readme` from the CSV files beside it -->'
    printf '\n# %s\n' "$(basename "$folder")"
    printf '\nMedians over the process runs, in microseconds, mode cold. How they were\n'
    printf 'measured and what the columns mean: [docs/compare.md](../../docs/compare.md).\n'
    printf '\n## Each operation at its largest shape\n\n'
    table largest "$folder"*.csv
    printf '\n## Against PyTorch and what the device can do\n\n'
    against scripts/speed_of_light.txt "$folder"
    printf '\n## The parts of a block against the whole (variant `best`)\n\n'
    parts_of "$folder"block.csv
    model_tables "$folder"
    printf '\n## What the medians are of\n\n'
    table runs $(files_of "$folder")
    printf '\n## The same code against itself\n\n'
    sh scripts/tables/self.sh "$folder"*.csv
    if [ -e "${folder}compares.txt" ]; then
        printf '\n## Compared on other cards\n\n'
        awk -f scripts/tables/compares.awk "${folder}compares.txt"
    fi
    printf '\n# Every shape and variant\n'
    for file in $(files_of "$folder"); do
        case $file in
        "$folder"torch/*) by=' by PyTorch and beside it' ;;
        "$folder"llmc/*) by=' by llm.c' ;;
        *) by= ;;
        esac
        printf '\n## %s%s\n\n' "$(basename "$file" .csv)" "$by"
        awk -v markdown=1 -v mode="$(mode_of "$file")" -f compare/csv.awk -f compare/numbers.awk \
            -f scripts/tables/variants.awk "$file"
    done
}

if [ $# -eq 1 ]; then
    device_tables "${1%/}/"
    exit
fi
# Whether PyTorch measured more there than the training step, which has a table of its own.
has_torch() { # has_torch FOLDER/
    for file in "$1"torch/*.csv; do
        case $file in
        */model.csv | *'/*.csv') ;;
        *) return 0 ;;
        esac
    done
    return 1
}

sed '/^<!-- begin generated -->$/q' README.md
for folder in baselines/*/; do
    has_torch "$folder" || continue # nothing to set beside ours
    printf '\n[%s](%sREADME.md):\n\n' "$(basename "$folder")" "$folder"
    against scripts/summary.txt "$folder"
done
for folder in baselines/*/; do
    [ -e "$folder/model.csv" ] && has_peers "$folder" || continue
    printf '\nA training step beside the fastest peer, [%s](%sREADME.md):\n\n' "$(basename "$folder")" "$folder"
    awk -v markdown=1 -v best=1 -f compare/csv.awk -f compare/numbers.awk \
        -f scripts/tables/ratio.awk -f scripts/tables/peers.awk \
        $(files_of "$folder" | grep '/model\.csv$')
done
echo
sed -n '/^<!-- end generated -->$/,$p' README.md
