#!/bin/sh
# readme.sh - prints README.md with the part between its two markers made anew
# from baselines/.
set -eu
cd "$(dirname "$0")/.."
sed '/^<!-- begin generated -->$/q' README.md
for file in baselines/*/*.csv; do
    [ -e "$file" ] || continue
    printf '\n### %s\n\n' "$file"
    awk -f scripts/summarize.awk "$file"
done
echo
sed -n '/^<!-- end generated -->$/,$p' README.md
