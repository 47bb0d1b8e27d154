#!/bin/sh
# test_locale.sh COMPARE - the scripts say the same whatever the user's locale, COMPARE being the
# compare tool: in many a comma stands for the point, which mawk and printf heed, and capitals
# are no part of the order. As TAP lines.
set -u
export COMPARE="$PWD/$1"
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

# Those that set no locale, of FILES: what they source may do it for them.
heeding() {
    for file; do
        head -n 1 "$file" | grep -q '^#!' || continue # sourced, by one that has set it
        grep -qE '^(export LC_ALL=C CDPATH=|\. .*/(tap|draw)\.sh"?)$' "$file" && continue
        grep -qE '(^|[^a-z.])(awk|sort|comm|join|printf|make)( |$)' "$file" && echo "$file"
    done
}
heeding .ci/run $(git ls-files '*.sh' 2> /dev/null || find . -name '*.sh') > "$log"
[ ! -s "$log" ]
check $? "every script says which locale it is to be read in"
printf '#!/bin/sh\nls | sort\n' > "$work/heeds.sh"
[ -n "$(heeding "$work/heeds.sh")" ]
check $? "one that does not is found"

comma=no
if localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" > "$log" 2>&1; then
    comma=$(LOCPATH="$work" LC_ALL=de_DE.UTF-8 awk 'BEGIN { printf "%.1f", 1 / 2 }')
fi

# same NAME COMMAND...: what it prints, in the locale with a comma too.
same() {
    name=$1
    shift
    if [ "$comma" != 0,5 ]; then
        check 0 "$name" "no locale with a comma here, or an awk that heeds none"
        return
    fi
    "$@" > "$work/points" 2> "$log"
    LOCPATH="$work" LC_ALL=de_DE.UTF-8 "$@" > "$work/commas" 2>> "$log"
    cmp "$work/points" "$work/commas" >> "$log" 2>&1 && [ -s "$work/points" ]
    check $? "$name"
}

# The committed rows, and copies in which every other case takes 5.5 % more.
baseline=baselines/nvidia-h200/norm.csv
awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
    /,bf16,/ { $column["median_us"] *= 1.055 }
    { print }' $baseline > "$work/norm.csv"
found=$work/found.csv
"$COMPARE" --format csv $baseline "$work/norm.csv" > "$found" 2> "$log"
same "what looks slower" sh scripts/csv.sh screened limit=0.02 "$found"
same "what is doubtful" sh scripts/csv.sh doubtful above=0.01 "$found" "$work/norm.csv"
same "what slower cases are told by" sh scripts/csv.sh slower "$found"
printf 'suite,cases,slower,inconclusive,missing,not_ok,raced,elsewhere,seconds\nnorm,256,1,2,0,0,5,0,83\n' > "$work/norm-summary.txt"
same "a suite's last line" sh scripts/csv.sh summary "$work/norm-summary.txt"
same "README's numbers" sh scripts/readme.sh
same "a device's tables" sh scripts/readme.sh baselines/nvidia-h200
same "the compare tool's manual" sh scripts/manual.sh "$COMPARE" 2
if command -v gnuplot > /dev/null; then
    page() { sh "$1" "$work/page.html" baselines/nvidia-h200 > /dev/null && cat "$work/page.html"; }
    same "the page of results" page scripts/report.sh
else
    check 0 "the page of results" "no gnuplot here"
fi
finish
